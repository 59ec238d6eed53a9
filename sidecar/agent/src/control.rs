//! Control state of the job's processes: every process in parallel, undone as a whole when one fails.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use phos_gpu as gpu;
use phos_gpu::control::{ControlError, ControlState, DeviceUsage, ProcessState};
use phos_protocol::types::{GpuUuid, ProcessId};

/// The driver's calls and NVML, each opened once, at the first use or by [`Control::warm`].
#[derive(Clone, Default)]
pub struct Control {
    driver: Arc<OnceLock<Result<Arc<dyn ControlState>, ControlError>>>,
    usage: Arc<OnceLock<Box<dyn DeviceUsage>>>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control")
            .field("open", &self.driver.get().map(Result::is_ok))
            .finish()
    }
}

impl Control {
    /// Starts opening the driver in the background: it takes 0.1 s to seconds, and a stop is no time for it.
    pub fn warm(&self) {
        let twin = self.clone();
        let spawned = std::thread::Builder::new()
            .name("driver".into())
            .spawn(move || match twin.get() {
                Ok(driver) => {
                    tracing::debug!(version = driver.driver_version(), "driver opened");
                    let _ = twin.held(&[]);
                }
                Err(e) => tracing::debug!(cause = %e, "no driver"),
            });
        if let Err(e) = spawned {
            tracing::warn!(cause = %e, "cannot open the driver ahead of time");
        }
    }

    /// The calls.
    ///
    /// # Errors
    /// Why there are none; the same every time.
    pub fn get(&self) -> Result<Arc<dyn ControlState>, ControlError> {
        self.driver.get_or_init(gpu::control).clone()
    }

    /// One whose processes hold what the test says.
    #[cfg(test)]
    pub fn with_usage(usage: impl DeviceUsage + 'static) -> Self {
        let control = Self::default();
        let _ = control.usage.set(Box::new(usage));
        control
    }

    /// Device memory that the processes hold, in bytes; none: that cannot be told.
    pub fn held(&self, processes: &[ProcessId]) -> Option<u64> {
        let held = self.held_by(processes)?;
        Some(
            held.iter()
                .fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes)),
        )
    }

    /// The same of each, on each device on which it holds something.
    pub fn held_by(&self, processes: &[ProcessId]) -> Option<Vec<(ProcessId, u64)>> {
        self.usage.get_or_init(gpu::usage).of(processes)
    }
}

/// Runs `work` for each process in a thread of its own.
fn each<T: Send>(pids: &[ProcessId], work: impl Fn(ProcessId) -> T + Sync) -> Vec<(ProcessId, T)> {
    if let [pid] = pids {
        return vec![(*pid, work(*pid))];
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = pids
            .iter()
            .map(|&pid| {
                let work = &work;
                (pid, scope.spawn(move || work(pid)))
            })
            .collect();
        threads
            .into_iter()
            .filter_map(|(pid, t)| Some((pid, t.join().ok()?)))
            .collect()
    })
}

/// A checkpoint of control state that failed and was undone.
#[derive(Debug)]
pub struct Undone {
    /// The failure for which the rest was undone.
    pub cause: ControlError,
    /// Set when a process could not be brought back from it.
    pub lost: Option<ControlError>,
}

/// Locks and checkpoints every process.
///
/// # Errors
/// [`Undone`].
pub fn checkpoint_all(
    driver: &dyn ControlState,
    pids: &[ProcessId],
    lock: Duration,
) -> Result<(), Box<Undone>> {
    // All are locked before the first is checkpointed: they may wait for each other's GPU work.
    let locked = each(pids, |pid| driver.lock(pid, lock));
    if let Some(error) = first_error(&locked) {
        for (pid, result) in &locked {
            if result.is_ok() {
                report(driver.unlock(*pid));
            }
        }
        return Err(Box::new(Undone {
            cause: error,
            lost: None,
        }));
    }
    let saved = each(pids, |pid| driver.checkpoint(pid));
    let Some(error) = first_error(&saved) else {
        return Ok(());
    };
    let mut lost = None;
    for (pid, result) in &saved {
        let checkpointed =
            result.is_ok() || matches!(driver.state(*pid), Ok(ProcessState::Checkpointed));
        if checkpointed && let Err(e) = driver.restore(*pid, &[]) {
            lost = Some(e);
            continue;
        }
        if let Err(e) = driver.unlock(*pid) {
            lost = Some(e);
        }
    }
    Err(Box::new(Undone { cause: error, lost }))
}

/// Restores and unlocks every process.
///
/// # Errors
/// The first failure, by which that process is lost.
pub fn restore_all(
    driver: &dyn ControlState,
    pids: &[ProcessId],
    gpus: &[(GpuUuid, GpuUuid)],
) -> Result<(), ControlError> {
    let restored = each(pids, |pid| driver.restore(pid, gpus));
    if let Some(error) = first_error(&restored) {
        return Err(error);
    }
    // None runs before all can.
    let unlocked = each(pids, |pid| driver.unlock(pid));
    first_error(&unlocked).map_or(Ok(()), Err)
}

/// Saves the CUDA state of processes that are about to be killed, in the time given: killing a process that was
/// restored can hang the host on some drivers.
pub fn save_before_kill(driver: &dyn ControlState, pids: &[ProcessId], bound: Duration) {
    let until = Instant::now() + bound;
    each(pids, |pid| {
        let left = until.saturating_duration_since(Instant::now());
        match driver.state(pid) {
            Ok(ProcessState::Checkpointed) | Err(_) => return,
            Ok(ProcessState::Running) => {
                if let Err(e) = driver.lock(pid, left) {
                    tracing::warn!(pid, cause = %e, "killing a restored process without saving its CUDA state");
                    return;
                }
            }
            Ok(_) => {}
        }
        report(driver.checkpoint(pid));
    });
}

fn first_error(results: &[(ProcessId, Result<(), ControlError>)]) -> Option<ControlError> {
    results
        .iter()
        .find_map(|(_, result)| result.as_ref().err().cloned())
}

fn report(result: Result<(), ControlError>) {
    if let Err(e) = result {
        tracing::warn!(cause = %e, "a control call failed");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;
    use phos_gpu::control::ControlMeaning;

    /// A driver whose calls fail where told.
    #[derive(Default)]
    struct Fake {
        states: Mutex<BTreeMap<ProcessId, u32>>,
        fail: Option<(&'static str, ProcessId)>,
    }

    impl Fake {
        fn new(fail: Option<(&'static str, ProcessId)>) -> Self {
            Self {
                states: Mutex::new(BTreeMap::from([(1, 0), (2, 0), (3, 0)])),
                fail,
            }
        }

        fn step(
            &self,
            call: &'static str,
            pid: ProcessId,
            from: u32,
            to: u32,
        ) -> Result<(), ControlError> {
            let mut states = self.states.lock().unwrap();
            let state = states.get_mut(&pid).unwrap();
            if self.fail == Some((call, pid)) || *state != from {
                return Err(ControlError::Call {
                    call,
                    pid,
                    result: 999,
                    name: "x".into(),
                    hint: "",
                    meaning: ControlMeaning::Other,
                });
            }
            *state = to;
            Ok(())
        }

        fn states(&self) -> Vec<u32> {
            self.states.lock().unwrap().values().copied().collect()
        }
    }

    impl ControlState for Fake {
        fn driver_version(&self) -> u32 {
            13000
        }
        fn gpus(&self) -> Vec<GpuUuid> {
            Vec::new()
        }
        fn state(&self, pid: ProcessId) -> Result<ProcessState, ControlError> {
            Ok(self.states.lock().unwrap()[&pid].into())
        }
        fn lock(&self, pid: ProcessId, _: Duration) -> Result<(), ControlError> {
            self.step("lock", pid, 0, 1)
        }
        fn checkpoint(&self, pid: ProcessId) -> Result<(), ControlError> {
            self.step("checkpoint", pid, 1, 2)
        }
        fn restore(&self, pid: ProcessId, _: &[(GpuUuid, GpuUuid)]) -> Result<(), ControlError> {
            self.step("restore", pid, 2, 1)
        }
        fn unlock(&self, pid: ProcessId) -> Result<(), ControlError> {
            self.step("unlock", pid, 1, 0)
        }
    }

    #[test]
    fn a_round_trip_ends_where_it_began() {
        let fake = Fake::new(None);
        checkpoint_all(&fake, &[1, 2, 3], Duration::ZERO).unwrap();
        assert_eq!(fake.states(), [2, 2, 2]);
        restore_all(&fake, &[1, 2, 3], &[]).unwrap();
        assert_eq!(fake.states(), [0, 0, 0]);
    }

    #[test]
    fn a_failure_half_way_is_undone_everywhere() {
        for call in ["lock", "checkpoint"] {
            let fake = Fake::new(Some((call, 2)));
            let undone = checkpoint_all(&fake, &[1, 2, 3], Duration::ZERO).unwrap_err();
            let (error, lost) = (undone.cause, undone.lost);
            assert!(error.to_string().contains("process 2"), "{error}");
            assert!(lost.is_none());
            assert_eq!(fake.states(), [0, 0, 0], "{call}");
        }
    }

    #[test]
    fn a_process_that_cannot_be_restored_is_reported() {
        let fake = Fake::new(Some(("restore", 3)));
        checkpoint_all(&fake, &[1, 2, 3], Duration::ZERO).unwrap();
        assert!(restore_all(&fake, &[1, 2, 3], &[]).is_err());
    }

    #[test]
    fn state_is_saved_before_a_kill() {
        let fake = Fake::new(None);
        save_before_kill(&fake, &[1, 2], Duration::from_secs(1));
        assert_eq!(fake.states(), [2, 2, 0]);
    }
}
