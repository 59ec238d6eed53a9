//! The lease of the job: renewed while the job is ours, waited for while it is another node's.
//!
//! # Rules
//!
//! * It is a courtesy. The store's log alone says who may write; a lease that cannot be renewed costs the job nothing.
//! * Each renewal looks at the log as well. So a node that lost the job hears of it within a third of the lease, even if it
//!   stores nothing for a long time.
//! * A node does not wait for itself: a sidecar that starts on the machine that has the lease takes the job over at once.
//! * It is given up when the job has ended, not when the sidecar ends: the next sidecar continues with a job that runs.

use std::time::Duration;

use phos_policies::lease::{LeaseWatch, Sign, Verdict};
use phos_storage::{Epoch, Job, JobError, Lease};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::background::Background;
use crate::engine::{hostname, random_u64, unix_millis};
use crate::report::shared::Shared;

/// How often the log is looked at where there is no lease.
const LOOK: Duration = Duration::from_secs(20);
/// Renewals in the length of a lease: two may fail.
const BEATS: u32 = 3;
/// Most time for giving it up: what is not given up runs out.
const RELEASE: Duration = Duration::from_secs(2);
/// How often a node that waits for a lease looks at it.
const WATCH: Duration = Duration::from_secs(2);

/// The name under which this machine appears in leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Node {
    /// The machine's name, as people call it.
    host: String,
    /// The same for all containers on it, another after each start of it.
    boot: String,
}

impl Node {
    /// By the name that it was given, else by what the system says.
    pub(in crate::engine) fn new(name: Option<&str>) -> Node {
        if let Some(name) = name {
            return Node {
                host: name.to_owned(),
                boot: name.to_owned(),
            };
        }
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Node {
            host: hostname(),
            boot: boot.trim().to_owned(),
        }
    }

    fn text(&self) -> String {
        format!("{} {}", self.host, self.boot)
    }

    /// Whether a lease belongs to this machine, before or after a restart of it.
    fn has(&self, lease: &Lease) -> bool {
        let mut names = lease.node.split(' ');
        let (host, boot) = (names.next(), names.next());
        host == Some(&*self.host) || (!self.boot.is_empty() && boot == Some(&*self.boot))
    }
}

/// Renews the lease until it is dropped.
pub(in crate::engine) struct Keeper {
    job: Job,
    lease: Lease,
    task: JoinHandle<()>,
    lost: Option<oneshot::Receiver<JobError>>,
}

impl Keeper {
    /// Begins with the first renewal. A `length` of nothing: only the log is looked at.
    pub(in crate::engine) fn start(
        job: &Job,
        epoch: Epoch,
        holder: &str,
        node: &Node,
        length: Duration,
        status: Shared,
        background: Background,
    ) -> Keeper {
        let lease = Lease {
            epoch,
            holder: holder.chars().take(200).collect(),
            node: node.text().chars().take(200).collect(),
            beat: 0,
            renewed: unix_millis(),
            length_ms: u64::try_from(length.as_millis()).unwrap_or(u64::MAX),
            released: false,
        };
        let (sender, lost) = oneshot::channel();
        let renew = renew(
            job.clone(),
            lease.clone(),
            length,
            status,
            background,
            sender,
        );
        let task = tokio::spawn(renew);
        Keeper {
            job: job.clone(),
            lease,
            task,
            lost: Some(lost),
        }
    }

    /// Gives it up, so that nobody needs to wait.
    pub(in crate::engine) async fn release(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
        if self.lease.length_ms == 0 {
            return;
        }
        let lease = Lease {
            beat: random_u64(),
            renewed: unix_millis(),
            released: true,
            ..self.lease.clone()
        };
        match timeout(RELEASE, self.job.renew_lease(&lease)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the lease was not given up: it runs out"),
            Err(_) => tracing::debug!("the lease was not given up in time: it runs out"),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn renew(
    job: Job,
    mut lease: Lease,
    length: Duration,
    status: Shared,
    background: Background,
    lost: oneshot::Sender<JobError>,
) {
    let every = match length {
        Duration::ZERO => LOOK,
        length => length / BEATS,
    };
    // What was said already.
    let (mut failing, mut away) = (false, false);
    loop {
        lease.beat = random_u64();
        lease.renewed = unix_millis();
        let ask = async {
            match length {
                Duration::ZERO => job.still_has(lease.epoch).await,
                _ => job.renew_lease(&lease).await,
            }
        };
        // One of these threads may have the connection that the store is reached by.
        let outcome = background.waited_for(ask).await;
        status.lock().history_away = match &outcome {
            Err(error) if error.is_absent() => Some(error.to_string()),
            _ => None,
        };
        match outcome {
            Ok(()) => (failing, away) = (false, false),
            Err(error @ JobError::Fenced { .. }) => {
                let _ = lost.send(error);
                return;
            }
            Err(error) => {
                let first = !std::mem::replace(&mut failing, true);
                if error.is_absent() {
                    if !std::mem::replace(&mut away, true) {
                        tracing::error!(
                            %error,
                            "THE STORE SHOWS LESS OF THE JOB'S HISTORY THAN WAS SEEN THERE: the job goes on, and nothing is stored \
                             there until that is back"
                        );
                    }
                } else if first {
                    tracing::warn!(%error, "the lease could not be renewed; the job goes on");
                }
            }
        }
        tokio::time::sleep(every).await;
    }
}

/// Waits until the job is another node's.
pub(in crate::engine) async fn lost(keeper: &mut Option<Keeper>) -> JobError {
    if let Some(keeper) = keeper
        && let Some(lost) = &mut keeper.lost
    {
        if let Ok(error) = lost.await {
            keeper.lost = None;
            return error;
        }
        keeper.lost = None;
    }
    std::future::pending().await
}

/// Another node that has the job, and may be well.
pub(in crate::engine) struct Holder {
    /// The name of the holder, for people.
    pub(in crate::engine) name: String,
    /// Its lease runs out after this time, if it is not renewed.
    pub(in crate::engine) left: Duration,
}

impl Holder {
    /// How long to wait before the next look at the lease.
    pub(in crate::engine) fn look_again(&self) -> Duration {
        self.left.min(WATCH)
    }
}

/// Whether another node has the job; `now` is a time that never goes back.
pub(in crate::engine) async fn holder(
    job: &Job,
    node: &Node,
    watch: &mut LeaseWatch,
    now: impl Fn() -> Duration,
) -> Result<Option<Holder>, JobError> {
    let lease = job.lease().await?;
    let lease = lease.filter(|lease| !lease.released && !node.has(lease));
    let sign = lease.as_ref().map(|lease| Sign {
        beat: lease.beat,
        length: lease.length(),
        age: (unix_millis().0)
            .checked_sub(lease.renewed.0)
            .map(Duration::from_millis),
    });
    Ok(match (watch.look(sign, now()), lease) {
        (Verdict::Held(left), Some(lease)) => Some(Holder {
            name: lease.holder,
            left,
        }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use phos_storage::{JobName, Store};

    use super::*;
    use crate::engine::store_options;

    const LENGTH: Duration = Duration::from_millis(300);

    async fn job() -> Job {
        let store = Store::open("memory://", store_options(None)).await.unwrap();
        store.initialise().await.unwrap();
        store.job(JobName::new("job").unwrap())
    }

    fn node(name: &str) -> Node {
        Node::new(Some(name))
    }

    fn keep(job: &Job, epoch: Epoch, node: &Node, length: Duration) -> Keeper {
        let status = Shared::default();
        Keeper::start(job, epoch, "who", node, length, status, Background::here())
    }

    async fn held(job: &Job, node: &Node, watch: &mut LeaseWatch, at: u64) -> Option<String> {
        let now = || Duration::from_millis(at);
        let holder = holder(job, node, watch, now).await.unwrap();
        holder.map(|holder| holder.name)
    }

    #[tokio::test]
    async fn another_node_waits_until_it_runs_out_or_is_given_up() {
        let job = job().await;
        let (a, b) = (node("a"), node("b"));
        let mut watch = LeaseWatch::default();
        assert_eq!(held(&job, &b, &mut watch, 0).await, None, "nobody has it");
        let epoch = job.take_over("who", unix_millis()).await.unwrap().epoch;
        let keeper = keep(&job, epoch, &a, LENGTH);
        while job.lease().await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(held(&job, &b, &mut watch, 0).await.as_deref(), Some("who"));
        // What starts on the same machine does not wait for itself.
        assert_eq!(held(&job, &a, &mut LeaseWatch::default(), 0).await, None);
        // Renewed: it holds on.
        let beat = job.lease().await.unwrap().unwrap().beat;
        while job.lease().await.unwrap().unwrap().beat == beat {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(
            held(&job, &b, &mut watch, 290).await.as_deref(),
            Some("who")
        );
        assert_eq!(
            held(&job, &b, &mut watch, 580).await.as_deref(),
            Some("who")
        );
        // The node is gone.
        drop(keeper);
        // It may have been renewed since.
        held(&job, &b, &mut watch, 1000).await;
        assert_eq!(held(&job, &b, &mut watch, 1300).await, None);
        // It comes back and ends well.
        let keeper = keep(&job, epoch, &a, LENGTH);
        keeper.release().await;
        assert_eq!(held(&job, &b, &mut LeaseWatch::default(), 0).await, None);
        assert!(job.lease().await.unwrap().unwrap().released);
    }

    #[tokio::test]
    async fn who_lost_the_job_hears_of_it_and_writes_nothing() {
        for length in [LENGTH, Duration::ZERO] {
            let job = job().await;
            let epoch = job.take_over("a", unix_millis()).await.unwrap().epoch;
            let status = Shared::default();
            let keeper = Keeper::start(
                &job,
                epoch,
                "a",
                &node("a"),
                length,
                status,
                Background::here(),
            );
            let mut keeper = Some(keeper);
            // Another node has a handle of its own.
            let other = job.store().job(job.name().clone());
            let next = other.take_over("b", unix_millis()).await.unwrap();
            assert_eq!(next.previous, Some(epoch));
            let error = lost(&mut keeper).await;
            assert!(error.to_string().contains("taken over by b"), "{error}");
            keeper.unwrap().release().await;
            let lease = job.lease().await.unwrap();
            assert!(lease.is_none_or(|lease| !lease.released));
        }
    }

    #[test]
    fn a_machine_is_known_by_its_name_or_by_its_start() {
        let this = Node {
            host: "host".into(),
            boot: "1234".into(),
        };
        let lease = |node: &str| Lease {
            epoch: Epoch(1),
            holder: String::new(),
            node: node.into(),
            beat: 1,
            renewed: unix_millis(),
            length_ms: 1,
            released: false,
        };
        // Started anew; a container of another name on it.
        for same in ["host 1234", "host 99", "f00ba4 1234"] {
            assert!(this.has(&lease(same)), "{same}");
        }
        for other in ["other 99", "1234 host", "", " "] {
            assert!(!this.has(&lease(other)), "{other}");
        }
    }
}
