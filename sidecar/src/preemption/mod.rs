//! Notices that this machine will be taken away: spot and preemptible instances, scheduled maintenance.
//!
//! * [`sources`]: where they come from, each behind [`Source`](sources::Source): the metadata services of AWS, Google Cloud and Azure, a file;
//! * here: which of them are asked on this machine, and the task that asks.
//!
//! # Rules
//!
//! * Nothing leaves the machine: metadata services have link-local addresses, and no proxy is used for them.
//! * Which cloud this is, firmware says (`/sys/class/dmi`): no service is asked in order to find out.
//! * A source that does not answer holds nothing up, the others neither; one that never did is asked less often, which is said once.
//! * What a source says is checked and bounded: it decides when a checkpoint is taken, and nothing else.

mod sources;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::JoinSet;

use self::sources::{Aws, Azure, File, Gcp, Source};

/// How often a source is asked: notices come 30 s ahead at the least.
const EVERY: Duration = Duration::from_secs(2);
/// How often one is asked that does not answer.
const RARELY: Duration = Duration::from_secs(60);
/// So many failures in a row are said, and are a source that does not answer if it never did.
const FAILURES: u32 = 5;

/// Which metadata service is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Cloud {
    /// The one that belongs to this machine, if it is known.
    Auto,
    /// None.
    None,
    /// Amazon EC2.
    Aws,
    /// Google Compute Engine.
    Gcp,
    /// Microsoft Azure.
    Azure,
}

/// Where notices come from.
#[derive(Debug, Clone)]
pub struct Config {
    /// The metadata service.
    pub cloud: Cloud,
    /// A file whose existence is a notice.
    pub file: Option<PathBuf>,
}

/// This machine will be taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Who says so.
    pub source: &'static str,
    /// What will happen, in the source's words.
    pub what: String,
    /// When, if that is known.
    pub at: Option<SystemTime>,
}

/// The tasks that ask, one for each source; they end when this is dropped.
#[derive(Debug)]
pub struct Watching {
    notice: watch::Receiver<Option<Notice>>,
    _tasks: JoinSet<()>,
}

impl Watching {
    /// Waits until another notice is in force, or none any more. Cancellation loses nothing.
    pub async fn changed(&mut self) -> Option<Notice> {
        if self.notice.changed().await.is_err() {
            // Nobody is asked.
            return std::future::pending().await;
        }
        self.notice.borrow_and_update().clone()
    }
}

/// Starts to ask. To be called within a tokio runtime.
pub fn watch(config: &Config) -> Watching {
    let (sender, notice) = watch::channel(None);
    let sources = sources_of(config);
    let mut tasks = JoinSet::new();
    if !sources.is_empty() {
        let names: Vec<_> = sources.iter().map(|s| s.name()).collect();
        tracing::info!(
            sources = names.join(", "),
            "listening for preemption notices"
        );
    }
    let board = Arc::new(Board {
        said: Mutex::new(vec![None; sources.len()]),
        sender,
    });
    for (number, source) in sources.into_iter().enumerate() {
        tasks.spawn(ask(source, number, Arc::clone(&board)));
    }
    Watching {
        notice,
        _tasks: tasks,
    }
}

/// What each source said last.
struct Board {
    said: Mutex<Vec<Option<Notice>>>,
    sender: watch::Sender<Option<Notice>>,
}

impl Board {
    fn say(&self, number: usize, notice: Option<Notice>) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = said.get_mut(number) {
            *place = notice;
        }
        let now = SystemTime::now();
        let soonest = said
            .iter()
            .flatten()
            .min_by_key(|notice| rank(notice, now))
            .cloned();
        self.sender.send_if_modified(|held| {
            let news = *held != soonest;
            *held = soonest;
            news
        });
    }
}

/// Which of several notices counts: the least. The one that leaves least time; then those without a time, which may be for days from
/// now; then those whose time has passed, which were not meant or are nearly over.
fn rank(notice: &Notice, now: SystemTime) -> (u8, Option<SystemTime>) {
    match notice.at {
        Some(at) if at >= now => (0, Some(at)),
        None => (1, None),
        Some(at) => (2, Some(at)),
    }
}

fn sources_of(config: &Config) -> Vec<Box<dyn Source>> {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    if let Some(file) = &config.file {
        sources.push(Box::new(File::new(file.clone())));
    }
    let cloud = match config.cloud {
        Cloud::Auto => cloud_of(Path::new("/sys/class/dmi/id")),
        given => given,
    };
    let service: Result<Box<dyn Source>, reqwest::Error> = match cloud {
        Cloud::Aws => Aws::new().map(|s| Box::new(s) as _),
        Cloud::Gcp => Gcp::new().map(|s| Box::new(s) as _),
        Cloud::Azure => Azure::new().map(|s| Box::new(s) as _),
        Cloud::None | Cloud::Auto => return sources,
    };
    match service {
        Ok(service) => sources.push(service),
        Err(e) => {
            tracing::warn!(error = %e, "the metadata service cannot be asked for preemption notices")
        }
    }
    sources
}

/// The cloud that a machine is in, by what its firmware says of it in `dmi`.
fn cloud_of(dmi: &Path) -> Cloud {
    let says = |name: &str| {
        let text = std::fs::read_to_string(dmi.join(name)).unwrap_or_default();
        text.trim().to_owned()
    };
    /// The tag of every virtual machine of Azure's; other Hyper-V machines have the same vendor and not this.
    const AZURE_TAG: &str = "7783-7084-3265-9085-8269-3286-77";
    if says("sys_vendor") == "Amazon EC2" {
        Cloud::Aws
    } else if says("product_name") == "Google Compute Engine" {
        Cloud::Gcp
    } else if says("chassis_asset_tag") == AZURE_TAG {
        Cloud::Azure
    } else {
        Cloud::None
    }
}

/// Asks one source until the task is ended.
async fn ask(mut source: Box<dyn Source>, number: usize, board: Arc<Board>) {
    let name = source.name();
    let (mut failures, mut answered) = (0_u32, false);
    loop {
        match source.look().await {
            Ok(said) => {
                failures = 0;
                answered = true;
                board.say(number, said);
            }
            // What it said before still holds: machines lose their network on their way out.
            Err(e) => {
                failures = failures.saturating_add(1);
                if failures == FAILURES {
                    tracing::warn!(source = name, error = %e, "no preemption notices can be had");
                } else {
                    tracing::debug!(source = name, error = %e, "no answer about preemption");
                }
            }
        }
        // One that has answered is there, and will be again.
        let rarely = failures >= FAILURES && !answered;
        tokio::time::sleep(if rarely { RARELY } else { EVERY }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_notices_the_soonest_counts() {
        let now = SystemTime::now();
        let notice = |source, seconds: Option<i64>| {
            let at = seconds.map(|s| {
                let apart = Duration::from_secs(s.unsigned_abs());
                if s < 0 { now - apart } else { now + apart }
            });
            let what = String::new();
            Notice { source, what, at }
        };
        let (sender, mut receiver) = watch::channel(None);
        let board = Board {
            said: Mutex::new(vec![None; 4]),
            sender,
        };
        let mut in_force = || {
            let news = receiver.has_changed().unwrap();
            let source = receiver.borrow_and_update().as_ref().map(|n| n.source);
            (news, source)
        };
        for (number, said, expected) in [
            (0, None, (false, None)),
            // A file that somebody left there.
            (0, Some(notice("stale", Some(-600))), (true, Some("stale"))),
            (1, Some(notice("sometime", None)), (true, Some("sometime"))),
            (2, Some(notice("days", Some(200_000))), (true, Some("days"))),
            (3, Some(notice("now", Some(30))), (true, Some("now"))),
            (3, Some(notice("now", Some(30))), (false, Some("now"))),
            (3, None, (true, Some("days"))),
        ] {
            board.say(number, said);
            assert_eq!(in_force(), expected);
        }
    }

    #[test]
    fn firmware_says_which_cloud_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let dmi = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        assert_eq!(cloud_of(dir.path()), Cloud::None);
        // A Hyper-V machine of one's own.
        dmi("sys_vendor", "Microsoft Corporation\n");
        dmi("chassis_asset_tag", "none\n");
        assert_eq!(cloud_of(dir.path()), Cloud::None);
        dmi("chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77\n");
        assert_eq!(cloud_of(dir.path()), Cloud::Azure);
        dmi("product_name", "Google Compute Engine\n");
        assert_eq!(cloud_of(dir.path()), Cloud::Gcp);
        dmi("sys_vendor", "Amazon EC2\n");
        assert_eq!(cloud_of(dir.path()), Cloud::Aws);
    }
}
