//! Whether an image would have room for what the driver is to save, as far as that can be told while the job runs.
//!
//! # Rules
//!
//! * Its data is up to a second old: only what stays for [`PATIENCE`] is a refusal.
//! * What the shims say of their own tables is exact. What NVML says is an estimate, which may be too high (stacks of GPU threads
//!   that a kernel made large): it refuses what the schedule asks for, and after waits that grow it lets a stop tell. If that
//!   stop succeeds, the estimate is not asked again while the job has these processes. A caller that insists on a checkpoint has
//!   a stop tell at once.

use std::time::Instant;

use phos_protocol::agent::AttemptError;

use super::held::{Held, Said};
use super::room::{self, Need};
use super::{Job, PATIENCE, Shown, Urgency, again};

/// What the looks of late saw of too little room.
#[derive(Debug)]
struct Tight {
    since: Instant,
    last: Instant,
}

/// A checkpoint that the estimate was against.
#[derive(Debug)]
struct Against {
    times: u32,
    /// Until then checkpoints are refused; after it a stop is to tell.
    until: Instant,
}

/// What is remembered from one look to the next.
#[derive(Debug, Default)]
pub struct Estimate {
    held: Held,
    tight: Option<Tight>,
    against: Option<Against>,
    /// A dump succeeded that it was against.
    is_wrong: bool,
}

impl Estimate {
    /// Looks whether there is room, besides `resident` bytes of host memory. `shown`: what a stop showed, after which the
    /// estimate is not asked.
    ///
    /// # Errors
    /// There is none, or it seems so: look again.
    pub fn check(
        &mut self,
        job: &Job<'_>,
        resident: u64,
        shown: Option<&Shown>,
        now: Instant,
    ) -> Result<(), AttemptError> {
        let with = |native| {
            room::check(&Need {
                resident,
                native,
                image_room: job.image_limit,
            })
        };
        let known = job.usage.values().map(|usage| usage.native);
        if let Err(error) = with(known.fold(0, u64::saturating_add)) {
            return Err(self.once_it_stays(error, now));
        }
        let is_asked = job.urgency == Urgency::Scheduled && shown.is_none() && !self.is_wrong;
        if !is_asked || job.usage.is_empty() {
            self.tight = None;
            return Ok(());
        }
        match self.held.native_at_least(job.control, job.usage, now) {
            Said::Nothing => Ok(()),
            Said::NotYet(since) if now.saturating_duration_since(since) < PATIENCE => {
                let why = "NVML has not said yet how much memory of the GPUs the job holds";
                Err(AttemptError::Soon(why.into()))
            }
            Said::NotYet(_) => Ok(()),
            Said::AtLeast(native) => match with(native) {
                Ok(()) => {
                    self.tight = None;
                    self.against = None;
                    Ok(())
                }
                Err(error) => match self.once_it_stays(error, now) {
                    soon @ AttemptError::Soon(_) => Err(soon),
                    error => self.refuse(error, now),
                },
            },
        }
    }

    fn once_it_stays(&mut self, error: AttemptError, now: Instant) -> AttemptError {
        let since = match &self.tight {
            // What another checkpoint met says nothing of what was there since.
            Some(tight) if now.saturating_duration_since(tight.last) <= PATIENCE => tight.since,
            _ => now,
        };
        self.tight = Some(Tight { since, last: now });
        match now.saturating_duration_since(since) < PATIENCE {
            true => AttemptError::Soon(error.to_string()),
            false => error,
        }
    }

    fn refuse(&mut self, error: AttemptError, now: Instant) -> Result<(), AttemptError> {
        let times = match &self.against {
            Some(against) if now < against.until => return Err(error),
            Some(against) => against.times + 1,
            None => 0,
        };
        let until = again(times, now);
        self.against = Some(Against { times, until });
        match times {
            0 => Err(error),
            _ => Ok(()),
        }
    }

    /// Notes that a dump succeeded: an estimate that was against it is wrong.
    pub fn dumped(&mut self) {
        self.is_wrong |= self.against.take().is_some();
    }

    /// Forgets what was seen of processes that are gone.
    pub fn forget_processes(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use phos_protocol::shim::Usage;
    use phos_protocol::types::ProcessId;

    use super::*;
    use crate::config::Tcp;
    use crate::control::Control;
    use phos_gpu::control::DeviceUsage;

    const GIB: u64 = 1 << 30;
    const PID: ProcessId = 7;

    /// A driver that says so of all processes.
    struct Says(Arc<AtomicU64>);

    impl DeviceUsage for Says {
        fn of(&self, processes: &[ProcessId]) -> Option<Vec<(ProcessId, u64)>> {
            let bytes = self.0.load(Ordering::Relaxed);
            Some(processes.iter().map(|&pid| (pid, bytes)).collect())
        }
    }

    /// A job whose image may have a GiB, and what is remembered of it.
    struct Bench {
        says: Arc<AtomicU64>,
        control: Control,
        estimate: Estimate,
        start: Instant,
    }

    impl Bench {
        fn new() -> Self {
            let says = Arc::new(AtomicU64::new(0));
            let control = Control::with_usage(Says(Arc::clone(&says)));
            Self {
                says,
                control,
                estimate: Estimate::default(),
                start: Instant::now(),
            }
        }

        /// NVML says so much from now on.
        fn held(&self, gib: u64) {
            self.says.store(gib * GIB, Ordering::Relaxed);
        }

        /// A look after so many seconds, of whoever asks; the shim says so many GiB.
        fn look(
            &mut self,
            urgency: Urgency,
            seconds: f64,
            taken_over: u64,
            native: u64,
        ) -> Result<(), AttemptError> {
            let usage = Usage {
                taken_over: taken_over * GIB,
                native: native * GIB,
                stacks: GIB,
            };
            let job = Job {
                root: PID,
                with_shim: &BTreeSet::from([PID]),
                instrumented: &[],
                usage: &BTreeMap::from([(PID, usage)]),
                control: &self.control,
                image_limit: Some(GIB),
                tcp: Tcp::Auto,
                user: None,
                urgency,
            };
            let now = self.start + Duration::from_secs_f64(seconds);
            loop {
                let seen = self.estimate.check(&job, 0, None, now);
                match &seen {
                    // A busy machine.
                    Err(AttemptError::Soon(why)) if why.contains("NVML") => {}
                    _ => return seen,
                }
            }
        }

        fn scheduled(&mut self, seconds: f64, taken_over: u64) -> Result<(), AttemptError> {
            self.look(Urgency::Scheduled, seconds, taken_over, 0)
        }
    }

    fn is_soon(seen: &Result<(), AttemptError>) -> bool {
        matches!(seen, Err(AttemptError::Soon(why)) if why.contains("--image-limit"))
    }

    fn is_refused(seen: &Result<(), AttemptError>) -> bool {
        matches!(seen, Err(AttemptError::Criu(why)) if why.contains("--image-limit"))
    }

    #[test]
    fn what_stays_is_refused_until_it_has_gone() {
        let mut job = Bench::new();
        // All of it was taken over, or goes with the stacks.
        job.held(21);
        assert_eq!(job.scheduled(0.0, 20), Ok(()));
        job.held(23);
        assert!(is_soon(&job.scheduled(0.0, 20)));
        // The shim had not told of it yet.
        assert_eq!(job.scheduled(1.0, 22), Ok(()));
        assert!(is_soon(&job.scheduled(1.5, 20)));
        assert!(is_soon(&job.scheduled(3.0, 20)));
        assert!(is_refused(&job.scheduled(3.5, 20)));
        // So it is for the next one, which takes its time as well.
        assert!(is_soon(&job.scheduled(30.0, 20)));
        assert!(is_soon(&job.scheduled(31.0, 20)));
        assert!(is_refused(&job.scheduled(32.0, 20)));
        job.held(21);
        assert_eq!(job.scheduled(32.5, 20), Ok(()));
    }

    #[test]
    fn an_estimate_that_a_dump_has_shown_to_be_wrong_is_not_asked_again() {
        let mut job = Bench::new();
        job.held(40);
        let mut stops = Vec::new();
        let mut refusals = 0;
        for second in 0..1000 {
            match job.scheduled(f64::from(second), 20) {
                Ok(()) => stops.push(second),
                seen if is_refused(&seen) => refusals += 1,
                seen => assert!(is_soon(&seen), "{seen:?}"),
            }
        }
        // After a minute, two more, four more and eight.
        assert_eq!(stops, [62, 182, 422, 902]);
        assert!(refusals > 900, "{refusals}");
        // Who insists is not kept waiting.
        assert_eq!(job.look(Urgency::Insisted, 1000.0, 20, 0), Ok(()));
        job.estimate.dumped();
        assert_eq!(job.scheduled(1001.0, 20), Ok(()));
        job.estimate.forget_processes();
        assert!(is_soon(&job.scheduled(1002.0, 20)));
    }

    #[test]
    fn what_the_shim_knows_of_is_in_everybodys_way() {
        let mut job = Bench::new();
        assert!(is_soon(&job.look(Urgency::Insisted, 0.0, 20, 2)));
        // It was let go of a moment ago.
        assert_eq!(job.look(Urgency::Insisted, 1.0, 20, 0), Ok(()));
        assert!(is_soon(&job.look(Urgency::Insisted, 2.0, 20, 2)));
        assert!(is_soon(&job.look(Urgency::Insisted, 3.0, 20, 2)));
        assert!(is_refused(&job.look(Urgency::Insisted, 4.0, 20, 2)));
    }
}
