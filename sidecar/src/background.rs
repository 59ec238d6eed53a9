//! The threads that cut, encode, write and send checkpoints while the job runs, and when they get a processor.
//!
//! A job that is bound by the host's cores (optimizers that are kept in CPU memory, data loaders, tokenizers) often has all its threads wait for the
//! slowest: one of ours on one of their cores, at whatever nice value, then slows down the whole job. [`phos_policies::spare_time`] has the figures.
//!
//! # Rules
//!
//! * While something is stored beside the job ([`Background::beside`]), these threads have the time that nobody else wants: their class is idle, and so is
//!   the sidecar's session where the kernel shares processors among sessions first. That ends early when somebody waits for one of them
//!   ([`Background::in_full`]), and with the time that was allowed for it, so that a machine without any time to spare has checkpoints as well.
//! * What a stop or a restore waits for, and what keeps the job ours (messages of the agent, the lease), runs on threads of another runtime.
//! * A thread that could not get back is never made idle: that takes `CAP_SYS_NICE`, or a limit on nice values that allows ours.
//! * A session that is shared with others is left as it is.

use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use phos_shared::scheduling::{self, Class};
use rustix::process::{Pid, getpid, getsid, setpriority_process};
use rustix::thread::gettid;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{AbortHandle, JoinHandle};

/// Against the job's threads and those that hold it, while they share processors in turns.
pub(crate) const NICE: i32 = 5;
/// The session's as a whole, while it has what others leave: the most that there is.
const IDLE_SESSION: u8 = 19;
const NORMAL_SESSION: u8 = 0;

/// Threads for work beside the job.
#[derive(Debug, Clone)]
pub struct Background {
    runtime: Handle,
    standing: Arc<Standing>,
}

impl Background {
    /// Starts a runtime for them. To be called from a thread with the priority that the user gave the process.
    ///
    /// # Errors
    /// The system gives no threads.
    pub(crate) fn start() -> io::Result<(Runtime, Background)> {
        let standing = Arc::new(Standing {
            may_be_idle: may_be_idle()?,
            has_session: getsid(None).is_ok_and(|session| session == getpid()),
            state: Mutex::default(),
        });
        let (begins, ends) = (Arc::clone(&standing), Arc::clone(&standing));
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .thread_name("phos-background")
            .on_thread_start(move || begins.join())
            .on_thread_stop(move || ends.leave())
            .build()?;
        let background = Background {
            runtime: runtime.handle().clone(),
            standing,
        };
        Ok((runtime, background))
    }

    /// Those of the caller's runtime, as they are.
    #[cfg(test)]
    pub(crate) fn here() -> Background {
        Background {
            runtime: Handle::current(),
            standing: Arc::new(Standing {
                may_be_idle: false,
                has_session: false,
                state: Mutex::default(),
            }),
        }
    }

    /// Runs something there, and what it spawns as well.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.spawn(work)
    }

    /// Has the calling thread be one of them until this is dropped. Others that they start have to.
    pub(crate) fn join(&self) -> Joined {
        self.standing.join();
        Joined(Arc::clone(&self.standing))
    }

    /// Something runs beside the job from now on, and leaves it the processors for so long at most. In the context of a runtime whose threads
    /// are others.
    pub(crate) fn beside(&self, at_most: Duration) -> Beside {
        let place = Place::new(&self.standing, |state| &mut state.beside);
        let timer = tokio::spawn(async move {
            tokio::time::sleep(at_most).await;
            tracing::debug!(?at_most, "the job is not left the processors any longer");
            drop(place);
        });
        Beside(timer.abort_handle())
    }

    /// Somebody waits for what they do, until this is dropped.
    pub(crate) fn in_full(&self) -> InFull {
        InFull(Place::new(&self.standing, |state| &mut state.in_full))
    }
}

/// Something that leaves the job the processors.
#[derive(Debug)]
#[must_use]
pub(crate) struct Beside(AbortHandle);

impl Drop for Beside {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Something that is waited for.
#[derive(Debug)]
#[must_use]
pub(crate) struct InFull(#[expect(dead_code, reason = "counts until it is dropped")] Place);

/// A thread that is one of them.
#[derive(Debug)]
#[must_use]
pub(crate) struct Joined(Arc<Standing>);

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// How all of them stand against the job.
#[derive(Debug)]
struct Standing {
    may_be_idle: bool,
    has_session: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    threads: HashSet<Pid>,
    is_idle: bool,
    /// How much leaves the job the processors.
    beside: usize,
    /// How much is waited for.
    in_full: usize,
}

impl Standing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling thread is one of them from now on. It has its maker's class, which may have changed meanwhile.
    fn join(&self) {
        // Raising it is always allowed.
        let _ = setpriority_process(None, NICE);
        let mut state = self.state();
        state.threads.insert(gettid());
        if self.may_be_idle {
            set_class(gettid(), state.is_idle);
        }
    }

    fn leave(&self) {
        self.state().threads.remove(&gettid());
    }

    /// Has the threads stand as what goes on wants them to.
    fn settle(&self, state: &mut State) {
        let is_idle = state.beside > 0 && state.in_full == 0;
        if is_idle == state.is_idle {
            return;
        }
        state.is_idle = is_idle;
        for &thread in state.threads.iter().filter(|_| self.may_be_idle) {
            set_class(thread, is_idle);
        }
        if self.has_session {
            let nice = if is_idle {
                IDLE_SESSION
            } else {
                NORMAL_SESSION
            };
            if let Err(e) = scheduling::set_session_nice(nice) {
                tracing::debug!(error = %e, nice, "the session stays as it is");
            }
        }
    }
}

fn set_class(thread: Pid, is_idle: bool) {
    let class = if is_idle { Class::Idle } else { Class::Normal };
    if let Err(e) = scheduling::set_class(thread, class) {
        tracing::warn!(error = %e, ?class, "a thread keeps its scheduling class");
    }
}

/// One of those that a number counts.
#[derive(Debug)]
struct Place {
    standing: Arc<Standing>,
    number: fn(&mut State) -> &mut usize,
}

impl Place {
    fn new(standing: &Arc<Standing>, number: fn(&mut State) -> &mut usize) -> Place {
        let mut state = standing.state();
        *number(&mut state) += 1;
        standing.settle(&mut state);
        Place {
            standing: Arc::clone(standing),
            number,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.standing.state();
        *(self.number)(&mut state) -= 1;
        self.standing.settle(&mut state);
    }
}

/// Whether a thread that became idle gets back. Tried by one that is not needed any more.
fn may_be_idle() -> io::Result<bool> {
    let thread = std::thread::Builder::new().name("phos-idle".into());
    let tried = thread.spawn(|| {
        let _ = setpriority_process(None, NICE);
        scheduling::set_class(gettid(), Class::Idle)?;
        scheduling::set_class(gettid(), Class::Normal)
    })?;
    let tried = tried
        .join()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    if let Err(e) = &tried {
        tracing::info!(
            cause = %e,
            "the sidecar may not change the scheduling class of its threads: a job that has all cores busy is slowed down more than it has to be \
             while a checkpoint is stored. Give phos-ft CAP_SYS_NICE or a limit on nice values (ulimit -e 15), or, in a container of its own, \
             fewer cpu_shares than the job"
        );
    }
    Ok(tried.is_ok())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// The class of a thread of the background, and of one that it has started.
    fn classes(background: &Background) -> (Option<Class>, Option<Class>) {
        let other = background.clone();
        let (told, heard) = mpsc::channel();
        background.spawn(async move {
            let own = scheduling::class_of(gettid());
            let started = std::thread::spawn(move || {
                let _joined = other.join();
                scheduling::class_of(gettid())
            });
            told.send((own, started.join().unwrap())).unwrap();
        });
        heard.recv().unwrap()
    }

    fn both(class: Class) -> (Option<Class>, Option<Class>) {
        (Some(class), Some(class))
    }

    fn wait_until(background: &Background, is_idle: bool) {
        let began = Instant::now();
        while background.standing.state().is_idle != is_idle {
            assert!(began.elapsed() < LONG / 10);
            std::thread::yield_now();
        }
    }

    /// Only where tests may do that: as root.
    fn start() -> Option<(Runtime, Background)> {
        let started = Background::start().unwrap();
        started.1.standing.may_be_idle.then_some(started)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn threads_are_idle_beside_the_job_unless_somebody_waits() {
        let Some((threads, background)) = start() else {
            return;
        };
        assert_eq!(classes(&background), both(Class::Normal));
        let (one, other) = (background.beside(LONG), background.beside(LONG));
        assert_eq!(classes(&background), both(Class::Idle));
        let waited = background.in_full();
        assert_eq!(classes(&background), both(Class::Normal));
        drop(waited);
        assert_eq!(classes(&background), both(Class::Idle));
        drop(one);
        assert_eq!(classes(&background), both(Class::Idle));
        drop(other);
        wait_until(&background, false);
        assert_eq!(classes(&background), both(Class::Normal));
        assert_eq!(scheduling::class_of(gettid()), Some(Class::Normal));
        threads.shutdown_background();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_job_is_left_the_processors_for_so_long_at_most() {
        let Some((threads, background)) = start() else {
            return;
        };
        let short = background.beside(Duration::ZERO);
        wait_until(&background, false);
        assert_eq!(classes(&background), both(Class::Normal));
        // It was counted once.
        drop(short);
        let _long = background.beside(LONG);
        wait_until(&background, true);
        threads.shutdown_background();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn threads_that_could_not_get_back_stay_as_they_are() {
        let background = Background::here();
        let _beside = background.beside(LONG);
        assert_eq!(classes(&background), both(Class::Normal));
    }

    #[test]
    fn a_session_of_others_is_left_as_it_is() {
        let (threads, background) = Background::start().unwrap();
        let own = getsid(None).unwrap() == getpid();
        assert_eq!(background.standing.has_session, own);
        threads.shutdown_background();
    }
}
