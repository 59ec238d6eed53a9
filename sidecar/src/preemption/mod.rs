//! Notices that this machine will be taken away: spot and preemptible instances, scheduled maintenance.
//!
//! * [`sources`]: where they come from, each behind [`Source`](sources::Source): the metadata services of AWS, Google Cloud and Azure, a file;
//! * here: which of them are asked on this machine, and the task that asks.
//!
//! # Rules
//!
//! * Nothing leaves the machine: metadata services have link-local addresses, and no proxy is used for them.
//! * Which cloud this is, firmware says (`/sys/class/dmi`): no service is asked in order to find out.
//! * A source that does not answer never holds anything up; it is asked less often, and this is said once.
//! * What a source says is checked and bounded: it decides when a checkpoint is taken, and nothing else.

mod sources;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::sources::{Aws, Azure, File, Gcp, Source};

/// How often a source is asked: notices come 30 s ahead at the least.
const EVERY: Duration = Duration::from_secs(2);
/// How often one is asked that does not answer.
const RARELY: Duration = Duration::from_secs(60);
/// So many failures in a row are a source that does not answer.
const PATIENCE: u32 = 5;

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

/// The task that asks; it ends when this is dropped.
#[derive(Debug)]
pub struct Watching {
    /// The notice in force.
    notice: watch::Receiver<Option<Notice>>,
    task: Option<JoinHandle<()>>,
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

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Starts to ask. To be called within a tokio runtime.
pub fn watch(config: &Config) -> Watching {
    let (sender, notice) = watch::channel(None);
    let sources = sources_of(config);
    if sources.is_empty() {
        return Watching { notice, task: None };
    }
    let names: Vec<_> = sources.iter().map(|s| s.name()).collect();
    tracing::info!(
        sources = names.join(", "),
        "listening for preemption notices"
    );
    let task = tokio::spawn(ask(sources, sender));
    Watching {
        notice,
        task: Some(task),
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

/// One source, what it said last, and how it fares.
struct Asked {
    source: Box<dyn Source>,
    said: Option<Notice>,
    failures: u32,
    /// Not before that.
    next: tokio::time::Instant,
}

async fn ask(sources: Vec<Box<dyn Source>>, sender: watch::Sender<Option<Notice>>) {
    let mut all: Vec<Asked> = sources
        .into_iter()
        .map(|source| Asked {
            source,
            said: None,
            failures: 0,
            next: tokio::time::Instant::now(),
        })
        .collect();
    loop {
        let due = all.iter().map(|asked| asked.next).min();
        let Some(due) = due else { return };
        tokio::time::sleep_until(due).await;
        for asked in &mut all {
            if asked.next > tokio::time::Instant::now() {
                continue;
            }
            asked.look().await;
        }
        // The one that leaves least time counts; one without a deadline may come at once.
        let soonest = all
            .iter()
            .filter_map(|asked| asked.said.clone())
            .min_by_key(|n| n.at);
        sender.send_if_modified(|held| {
            let news = *held != soonest;
            *held = soonest;
            news
        });
        if sender.is_closed() {
            return;
        }
    }
}

impl Asked {
    async fn look(&mut self) {
        let name = self.source.name();
        match self.source.look().await {
            Ok(said) => {
                self.failures = 0;
                self.said = said;
            }
            // What it said before still holds: machines lose their network on their way out.
            Err(e) => {
                self.failures = self.failures.saturating_add(1);
                if self.failures == PATIENCE {
                    tracing::warn!(
                        source = name,
                        error = %e,
                        "no preemption notices can be had: in a container, the metadata service needs the host's network or, on EC2, a hop \
                         limit of 2; --preemption-notices none says that there is none"
                    );
                } else {
                    tracing::debug!(source = name, error = %e, "no answer about preemption");
                }
            }
        }
        let wait = if self.failures >= PATIENCE {
            RARELY
        } else {
            EVERY
        };
        self.next = tokio::time::Instant::now() + wait;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
