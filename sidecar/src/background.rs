//! The threads that cut, encode, write and send checkpoints while the job runs, and when they get a processor.
//!
//! A job that is bound by the host's cores (optimizers or activations that are kept in CPU memory, data loaders, tokenizers) often has all its threads wait for
//! the slowest: one of ours on one of their cores, at whatever nice value, then slows down the whole job. [`phos_policies::spare_time`] has the figures.
//!
//! # Rules
//!
//! * These threads have the processors that nobody else wants: their class is idle.
//! * That ends while somebody waits for what they do ([`Background::raise`]): who holds the job, who has to store a checkpoint before the job or the machine
//!   ends, who asked for one, who renews the lease. One such wait counts for all of these threads, as what is waited for may be with any of them.
//! * It ends as well where little is left over: what is stored and lacks a share leaves the job the processors for so long at most ([`Background::patiently`]),
//!   and what nobody waits for does once it has starved, but not while a checkpoint is stored ([`Background::at_leisure`]).
//! * What a stop or a restore waits for, and what keeps the job ours (messages of the agent, the lease), runs on threads of another runtime. A
//!   connection to the store may be one of these threads' all the same: so the lease raises them.
//! * A thread that could not get back is never made idle: that takes `CAP_SYS_NICE`, or a limit on nice values that allows ours.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::select;
use phos_policies::spare_time::{self, Processors, Starving};
use phos_shared::scheduling::{self, Class};
use rustix::process::{Pid, setpriority_process};
use rustix::thread::gettid;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Against the job's threads and those that hold it, while they share processors in turns.
pub(crate) const NICE: i32 = 5;
/// How long a store takes at most that answers.
const ANSWERS: Duration = Duration::from_secs(5);

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
            ..Standing::default()
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

    /// The threads of the caller's runtime, as they are.
    #[cfg(test)]
    pub(crate) fn here() -> Background {
        Background {
            runtime: Handle::current(),
            standing: Arc::default(),
        }
    }

    /// Runs something there, and what it spawns as well.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.spawn(work)
    }

    /// Does something that leaves the job the processors: for so long in any case, and from then on unless it lacks a share. What came of it, and how much of the time
    /// it would have saved with its share from the beginning. In the context of this runtime.
    pub(crate) async fn patiently<T>(
        &self,
        at_most: Duration,
        work: impl Future<Output = T>,
    ) -> (T, Duration) {
        let _patient = self.patient();
        if at_most.is_zero() {
            let _raised = self.raise();
            return (work.await, Duration::ZERO);
        }
        let mut work = pin!(work);
        let (mut left, mut until) = (Duration::ZERO, at_most);
        loop {
            let (began, before) = (Instant::now(), self.standing.processors());
            let done = tokio::select! {
                biased;
                done = &mut work => Some(done),
                () = tokio::time::sleep(until) => None,
            };
            let time = began.elapsed();
            let given = self.standing.processors().since(before);
            left += self.standing.left_to_job(time, given);
            if let Some(done) = done {
                return (done, left);
            }
            // Those that are not idle have their share.
            if self.standing.may_be_idle && given.lack_a_share(time, cores()) {
                tracing::debug!(
                    ?at_most,
                    ?given,
                    ?time,
                    "what is stored takes its share of the processors"
                );
                let _raised = self.raise();
                return (work.await, left);
            }
            until = spare_time::LOOK;
        }
    }

    /// Does something that nobody waits for, and that must end some day all the same: it takes its share of the processors once it has starved for so long, and
    /// not while something else is done [patiently](Self::patiently), which decides by itself for how long it leaves the job the processors.
    pub(crate) async fn at_leisure<T>(&self, spare: Duration, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            done = work => done,
            never = self.takes_share_once_starved(spare) => match never {},
        }
    }

    /// Only time counts in which nothing is being done patiently.
    async fn takes_share_once_starved(&self, spare: Duration) -> Infallible {
        let mut patient = self.standing.patient.subscribe();
        let mut starving = Starving::new(spare);
        loop {
            // No error: what it listens to is kept by `self`.
            let _ = patient.wait_for(|&others| others == 0).await.map(drop);
            let other = pin!(patient.wait_for(|&others| others > 0).map(drop));
            let Some(left) = starving.left() else {
                let _raised = self.raise();
                other.await;
                continue;
            };
            let (began, before) = (Instant::now(), self.standing.processors());
            select(other, pin!(tokio::time::sleep(left))).await;
            let given = self.standing.processors().since(before);
            starving.passed(began.elapsed(), given);
            tracing::debug!(?given, ?starving, "what nobody waits for is not done yet");
        }
    }

    /// Something is done that decides by itself for how long it leaves the job the processors, until this is dropped.
    fn patient(&self) -> Patient {
        self.standing.patient.send_modify(|patient| *patient += 1);
        Patient(Arc::clone(&self.standing))
    }

    /// Has the calling thread be one of them until this is dropped. Others that they start have to.
    pub(crate) fn join(&self) -> Joined {
        self.standing.join();
        Joined(Arc::clone(&self.standing))
    }

    /// Somebody waits for what they do, until this is dropped.
    pub(crate) fn raise(&self) -> Raised {
        self.standing.count(|raised| raised + 1);
        Raised(Arc::clone(&self.standing))
    }

    /// Waits for something that they may do a part of, as long as that takes. They are not raised for longer than a store takes that answers.
    pub(crate) async fn waited_for<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let raised = self.raise();
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(ANSWERS) => drop(raised),
        }
        work.await
    }

    /// Waits until nobody does. (The lease does at times.)
    #[cfg(test)]
    pub(crate) async fn lowered(&self) {
        while self.is_raised() {
            tokio::task::yield_now().await;
        }
    }

    /// Whether somebody does.
    #[cfg(test)]
    pub(crate) fn is_raised(&self) -> bool {
        self.standing.state().raised > 0
    }
}

/// The threads take their share of the processors meanwhile.
#[derive(Debug)]
#[must_use]
pub(crate) struct Raised(Arc<Standing>);

impl Drop for Raised {
    fn drop(&mut self) {
        self.0.count(|raised| raised - 1);
    }
}

/// Something that is done patiently.
#[derive(Debug)]
#[must_use]
struct Patient(Arc<Standing>);

impl Drop for Patient {
    fn drop(&mut self) {
        self.0.patient.send_modify(|patient| *patient -= 1);
    }
}

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
#[derive(Debug, Default)]
struct Standing {
    may_be_idle: bool,
    /// How much is done patiently.
    patient: watch::Sender<usize>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    threads: HashSet<Pid>,
    /// How many wait for what they do.
    raised: usize,
    /// What threads were given that have ended.
    ended: Processors,
}

impl State {
    fn class(&self) -> Class {
        match self.raised {
            0 => Class::Idle,
            _ => Class::Normal,
        }
    }
}

impl Standing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling thread is one of them from now on. It has its maker's class, which may have changed meanwhile.
    fn join(&self) {
        // Raising it is always allowed. Of the calling thread alone, on Linux.
        let _ = setpriority_process(None, NICE);
        let mut state = self.state();
        state.threads.insert(gettid());
        if self.may_be_idle {
            set_class(gettid(), state.class());
        }
    }

    /// It ends, and its number may be another thread's.
    fn leave(&self) {
        let mut own = Processors::default();
        add(&mut own, gettid());
        let mut state = self.state();
        state.threads.remove(&gettid());
        state.ended.ran += own.ran;
        state.ended.waited += own.waited;
    }

    /// Has so many wait for them.
    fn count(&self, raised: impl FnOnce(usize) -> usize) {
        let mut state = self.state();
        let before = state.class();
        state.raised = raised(state.raised);
        let class = state.class();
        if self.may_be_idle && class != before {
            for &thread in &state.threads {
                set_class(thread, class);
            }
        }
    }

    /// How much of a time in which they were given this they would have saved with their share.
    fn left_to_job(&self, time: Duration, given: Processors) -> Duration {
        if !self.may_be_idle {
            // They had their share all the time, and would have no more in a hurry.
            return Duration::ZERO;
        }
        let threads = self.state().threads.len();
        given.left_to_job(time, cores(), threads)
    }

    /// What they were given until now.
    fn processors(&self) -> Processors {
        loop {
            // The lock is not held while files are read: who wants to raise them would wait for that.
            let (ended, threads) = {
                let state = self.state();
                (state.ended, Vec::from_iter(state.threads.iter().copied()))
            };
            let mut all = ended;
            for thread in threads {
                add(&mut all, thread);
            }
            // One that ended meanwhile would be missing now, and new the next time.
            if self.state().ended == ended {
                return all;
            }
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn add(all: &mut Processors, thread: Pid) {
    if let Some((ran, waited)) = scheduling::ran_and_waited(thread) {
        all.ran += Duration::from_nanos(ran);
        all.waited += Duration::from_nanos(waited);
    }
}

fn set_class(thread: Pid, class: Class) {
    if let Err(e) = scheduling::set_class(thread, class) {
        tracing::warn!(error = %e, ?class, "a thread keeps its scheduling class");
    }
}

/// Whether a thread that became idle gets back. Tried by one that is not needed any more.
fn may_be_idle() -> io::Result<bool> {
    let thread = std::thread::Builder::new().name("phos-idle".into());
    let tried = thread.spawn(|| -> io::Result<bool> {
        if scheduling::class_of(gettid()) != Some(Class::Normal) {
            // The user has chosen another one, for all that this program does.
            return Ok(false);
        }
        let _ = setpriority_process(None, NICE);
        scheduling::set_class(gettid(), Class::Idle)?;
        scheduling::set_class(gettid(), Class::Normal)?;
        Ok(true)
    })?;
    let tried = tried
        .join()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    if let Err(e) = &tried {
        tracing::info!(
            cause = %e,
            "the sidecar may not change the scheduling class of its threads: a job that has all cores busy is slowed down more than it has to be \
             while a checkpoint is stored. In a container of its own the sidecar's cpu_shares decide about that; beside the job, give phos-ft \
             CAP_SYS_NICE or a limit on nice values (ulimit -e 15)"
        );
    }
    Ok(tried.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

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

    #[tokio::test(flavor = "multi_thread")]
    async fn threads_are_idle_unless_somebody_waits() {
        let (threads, background) = Background::start().unwrap();
        assert!(background.standing.may_be_idle, "tests need CAP_SYS_NICE");
        assert_eq!(classes(&background), both(Class::Idle));
        let one = background.raise();
        assert_eq!(classes(&background), both(Class::Normal));
        let other = background.raise();
        drop(one);
        assert_eq!(classes(&background), both(Class::Normal));
        drop(other);
        assert_eq!(classes(&background), both(Class::Idle));
        assert_eq!(scheduling::class_of(gettid()), Some(Class::Normal));
        threads.shutdown_background();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_job_is_left_the_processors_unless_somebody_waits() {
        let (threads, background) = Background::start().unwrap();
        let look = || async { scheduling::class_of(gettid()) };
        let in_time = background.clone();
        let in_time = background.spawn(async move { in_time.patiently(LONG, look()).await.0 });
        assert_eq!(in_time.await.unwrap(), Some(Class::Idle));
        let not = background.clone();
        let not = background.spawn(async move { not.patiently(Duration::ZERO, look()).await });
        let (class, left) = not.await.unwrap();
        assert_eq!((class, left), (Some(Class::Normal), Duration::ZERO));
        threads.shutdown_background();
    }

    /// Whether what is done patiently is raised that has so much of the processors all the time.
    async fn is_raised_that_has(given: Processors) -> bool {
        const PATIENT: Duration = Duration::from_millis(20);
        let background = Background {
            standing: Arc::new(Standing {
                may_be_idle: true,
                ..Standing::default()
            }),
            ..Background::here()
        };
        let began = Instant::now();
        let lacks = given.lack_a_share(PATIENT, cores());
        let work = async {
            while !background.is_raised() && (lacks || began.elapsed() < 4 * PATIENT) {
                {
                    let mut state = background.standing.state();
                    state.ended = state.ended.and(given);
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            background.is_raised()
        };
        let (is_raised, left) = background.patiently(PATIENT, work).await;
        assert_eq!(
            left >= PATIENT,
            given.ran.is_zero() && is_raised && !given.waited.is_zero(),
            "{left:?}"
        );
        assert!(!background.is_raised(), "it has ended");
        is_raised
    }

    #[tokio::test]
    async fn what_starves_leaves_the_job_the_processors_for_so_long_at_most() {
        let given = |ran, waited| Processors { ran, waited };
        let none = Duration::ZERO;
        assert!(is_raised_that_has(given(none, LONG)).await);
        // Nothing is counted.
        assert!(is_raised_that_has(given(none, none)).await);
        // However much more it wants.
        assert!(!is_raised_that_has(given(LONG, LONG)).await);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_takes_its_share_once_it_has_starved() {
        let background = Background::here();
        let never = std::future::pending::<()>();
        let mut work = Box::pin(background.at_leisure(Duration::from_millis(1), never));
        let other = background.patient();
        assert!(futures::poll!(&mut work).is_pending());
        background.standing.state().ended.waited += LONG;
        let mut until = async |raised| {
            while background.is_raised() != raised {
                assert!(futures::poll!(&mut work).is_pending());
                background.standing.state().ended.waited += LONG;
                tokio::task::yield_now().await;
            }
        };
        drop(other);
        until(true).await;
        // What else is done has a patience of its own.
        let other = background.patient();
        until(false).await;
        drop(other);
        until(true).await;
        drop(work);
        assert!(!background.is_raised(), "it has ended");
        assert_eq!(background.at_leisure(LONG, async { 7 }).await, 7);
    }

    #[tokio::test]
    async fn what_is_done_patiently_is_known() {
        let background = Background::here();
        let counted = async { *background.standing.patient.borrow() };
        assert_eq!(background.patiently(LONG, counted).await.0, 1);
        assert_eq!(*background.standing.patient.borrow(), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_threads_were_given_that_have_ended_counts() {
        let background = Background::here();
        let before = background.standing.processors();
        let other = background.clone();
        let ran = std::thread::spawn(move || {
            let _joined = other.join();
            let began = Instant::now();
            while scheduling::ran_and_waited(gettid()).unwrap().0 < 2_000_000 {
                assert!(began.elapsed() < LONG);
            }
        });
        ran.join().unwrap();
        let given = background.standing.processors().since(before);
        assert!(given.ran >= Duration::from_millis(2), "{given:?}");
        assert!(background.standing.state().threads.is_empty());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn threads_that_could_not_get_back_stay_as_they_are() {
        assert_eq!(classes(&Background::here()), both(Class::Normal));
    }
}
