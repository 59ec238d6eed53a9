//! The survey before a checkpoint stops anything: it looks for whatever would make the checkpoint fail, or its image useless, and
//! can be seen while the job runs.
//!
//! # Rules
//!
//! * A refusal names the process, what it has and what helps, and costs the job nothing.
//! * What may be over in a moment (a helper that ends, a process that is about to use CUDA) is first asked to be looked at
//!   again, [`AttemptError::Soon`]; only what stays for [`PATIENCE`] is refused.
//! * An obstacle that only a failed dump could find is remembered: while it is there, no checkpoint stops the job for it again,
//!   except for a try after waits that grow, and for a checkpoint that somebody asks for or that is the last.

pub mod devices;
mod estimate;
mod held;
mod questions;
pub mod room;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use phos_protocol::agent::AttemptError;
use phos_protocol::shim::{Refusal, Usage};
use phos_protocol::types::{MemberId, ProcessId};

use self::devices::InTheWay;
use self::estimate::Estimate;
use self::questions::{Against, Questions};
use crate::channels::shims;
use crate::config::Tcp;
use crate::control::Control;
use crate::files::linked;
use crate::job::environment;
use crate::job::signals;
use crate::tree;
use crate::user::JobUser;
use crate::user::rights::{self, Beyond, Rights};

/// How long what may be over in a moment is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// After a dump that failed for a device: how long until the next is tried although the device is there, at first and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));

/// What is said of a process with a shim that the agent does not hear of.
const UNCONNECTED: &str = "it uses CUDA, and its shim has not connected to the agent: $PHOS_SHIM_SOCKET must lead to the agent's \
                           socket in every process of the job (see its own messages for what it looked for)";

/// What is known of the job before a checkpoint.
#[derive(Debug)]
pub struct Job<'a> {
    /// The PID of the job's main process.
    pub root: ProcessId,
    /// Processes whose shims are connected.
    pub with_shim: &'a BTreeSet<ProcessId>,
    /// Those of them in which a tool has attached itself to the driver.
    pub instrumented: &'a [ProcessId],
    /// What those that have said so have on their GPUs.
    pub usage: &'a BTreeMap<ProcessId, Usage>,
    /// The driver's checkpoint calls.
    pub control: &'a Control,
    /// `--image-limit`, in bytes.
    pub image_limit: Option<u64>,
    /// What becomes of TCP connections of the job.
    pub tcp: Tcp,
    /// `--user`, if that is another than the agent's.
    pub user: Option<&'a JobUser>,
    /// Who wants the checkpoint: what is worth trying again depends on it.
    pub urgency: Urgency,
}

/// The urgency of a checkpoint: whether it waits for what a stop showed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// The schedule: what a stop showed before is waited for.
    Scheduled,
    /// Somebody waits for it, or it is the last: what a stop showed before, and may be over, is not waited for. A device
    /// that is seen to be there still is in the way all the same.
    Insisted,
}

/// A device that made a dump fail.
#[derive(Debug)]
struct Blocked {
    what: InTheWay,
    times: u32,
    not_before: Instant,
}

/// What only a stop shows, and is likely to be the same at the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// There was no room for what the driver was about to save.
    NoRoom,
    /// The driver does not checkpoint what this process uses.
    Process(ProcessId),
}

/// A stop showed that something like this was in the way.
#[derive(Debug)]
struct Shown {
    what: Lasting,
    why: AttemptError,
    times: u32,
    not_before: Instant,
}

/// When to look again after a failure that only a stop shows.
fn again(times: u32, now: Instant) -> Instant {
    now + AGAIN
        .0
        .saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX))
        .min(AGAIN.1)
}

/// What is remembered from one look to the next.
#[derive(Debug, Default)]
pub struct Survey {
    /// Processes that may be gone in a moment, and since when they have been seen.
    passing: BTreeMap<ProcessId, Instant>,
    blocked: Option<Blocked>,
    shown: Option<Shown>,
    estimate: Estimate,
    questions: Questions,
    lost: Option<String>,
}

fn refused(pid: ProcessId, why: impl std::fmt::Display) -> AttemptError {
    AttemptError::Shim {
        member: MemberId::here(pid),
        refusal: Refusal::Unsupported(why.to_string()),
    }
}

impl Survey {
    /// Looks at the job, which runs.
    ///
    /// # Errors
    /// Why no checkpoint is possible now.
    pub fn look(&mut self, job: &Job<'_>, now: Instant) -> Result<(), AttemptError> {
        // Before the tree: a helper that is reaped in between is then still known as one.
        let helpers = signals::children().clone();
        let Ok(mut tree) = tree::collect(job.root) else {
            // The dump says why.
            return Ok(());
        };
        tree.strays.retain(|(pid, _)| !helpers.contains(pid));
        let mut seen = Seen::new(&self.passing, now);
        for (pid, name) in &tree.strays {
            seen.note(*pid, AttemptError::Criu(stray(*pid, name)));
        }
        let settled = look_at_each(job, &tree.processes, &mut seen);
        let Seen {
            passing,
            passes,
            stays,
            ..
        } = seen;
        self.passing = passing;
        settled?;
        if let Some(error) = stays {
            return Err(error);
        }
        if let Some(error) = passes {
            return Err(AttemptError::Soon(error.to_string()));
        }
        self.still_blocked(now)?;
        self.shown.take_if(
            |shown| matches!(shown.what, Lasting::Process(pid) if !tree.processes.contains(&pid)),
        );
        if let Some(shown) = &self.shown
            && job.urgency == Urgency::Scheduled
            && now < shown.not_before
        {
            return Err(shown.why.clone());
        }
        self.ask_the_driver(job, now)?;
        check_ranks(job, &tree.processes)?;
        let resident = tree.anonymous_bytes() + tree::carried_bytes(&tree.processes);
        self.estimate.check(job, resident, self.shown.as_ref(), now)
    }

    fn ask_the_driver(&mut self, job: &Job<'_>, now: Instant) -> Result<(), AttemptError> {
        let driver = match job.instrumented {
            [] => None,
            _ => job.control.get().ok(),
        };
        match self.questions.ask(driver.as_ref(), job.instrumented, now) {
            Ok(()) => Ok(()),
            Err(Against::Refused(error)) => Err(AttemptError::Control(error.to_string())),
            Err(Against::Lost(error)) => {
                self.lost = Some(error.to_string());
                Err(AttemptError::Control(error.to_string()))
            }
            Err(Against::Silent(pid, since)) => {
                let why = "the driver has not said yet whether it can be checkpointed";
                match now.saturating_duration_since(since) < PATIENCE {
                    true => Err(AttemptError::Soon(refused(pid, why).to_string())),
                    false => Err(refused(pid, why)),
                }
            }
        }
    }

    /// Why the job cannot continue, if a look has made it so.
    pub fn take_lost(&mut self) -> Option<String> {
        self.lost.take()
    }

    fn still_blocked(&mut self, now: Instant) -> Result<(), AttemptError> {
        let Some(blocked) = &self.blocked else {
            return Ok(());
        };
        if !blocked.what.is_still_there() {
            self.blocked = None;
            return Ok(());
        }
        if now >= blocked.not_before {
            return Ok(());
        }
        Err(refused(blocked.what.pid, &blocked.what))
    }

    /// A dump failed for a device that no look from outside can tell from CUDA's own.
    pub fn blocked_by(&mut self, what: InTheWay, now: Instant) {
        let times = match &self.blocked {
            Some(before) if before.what == what => before.times + 1,
            _ => 0,
        };
        self.blocked = Some(Blocked {
            what,
            times,
            not_before: again(times, now),
        });
    }

    /// A stop showed why no dump is possible; after a while it is tried again, since the job may have let go of it.
    pub fn shown(&mut self, what: Lasting, why: AttemptError, now: Instant) {
        let times = self.shown.take().map_or(0, |before| before.times + 1);
        self.shown = Some(Shown {
            what,
            why,
            times,
            not_before: again(times, now),
        });
    }

    /// Notes that a dump succeeded.
    pub fn dumped(&mut self) {
        self.estimate.dumped();
        self.blocked = None;
        self.shown = None;
    }

    /// Forgets what was seen of processes that are gone.
    pub fn forget_processes(&mut self) {
        self.passing.clear();
        self.estimate.forget_processes();
        self.blocked = None;
        self.shown = None;
        // About processes that are no more the driver answers at once.
        if let Err(against) = self.questions.hear(PATIENCE) {
            tracing::debug!(?against, "of processes that are no more");
        }
    }
}

/// What may be over in a moment, as one look sees it.
struct Seen<'a> {
    /// What earlier looks saw, by process, and since when.
    before: &'a BTreeMap<ProcessId, Instant>,
    now: Instant,
    passing: BTreeMap<ProcessId, Instant>,
    /// The first thing that is seen for less than [`PATIENCE`].
    passes: Option<AttemptError>,
    /// The first thing that has stayed for longer.
    stays: Option<AttemptError>,
}

impl<'a> Seen<'a> {
    fn new(before: &'a BTreeMap<ProcessId, Instant>, now: Instant) -> Self {
        Self {
            before,
            now,
            passing: BTreeMap::new(),
            passes: None,
            stays: None,
        }
    }

    fn note(&mut self, pid: ProcessId, error: AttemptError) {
        let since = *self.before.get(&pid).unwrap_or(&self.now);
        self.passing.insert(pid, since);
        if self.now.saturating_duration_since(since) < PATIENCE {
            self.passes.get_or_insert(error);
        } else {
            self.stays.get_or_insert(error);
        }
    }
}

/// Looks at each process: what may be over in a moment is noted.
///
/// # Errors
/// What does not pass by itself.
fn look_at_each(
    job: &Job<'_>,
    processes: &[ProcessId],
    seen: &mut Seen<'_>,
) -> Result<(), AttemptError> {
    let rights = job.user.map(Rights::of);
    let mut foreign = None;
    let mut linked = None;
    for &pid in processes {
        if foreign.is_none() {
            foreign = devices::foreign(pid);
        }
        if let Some(why) = beyond_the_user(job, rights.as_ref(), pid) {
            seen.note(pid, refused(pid, why));
        }
        if linked.is_none() {
            linked = linked::in_the_way(pid).map(|found| (pid, found));
        }
        if job.with_shim.contains(&pid) {
            continue;
        }
        // One that began to use CUDA during the attempt before has to be back before the next one stops anything.
        if shims::is_about_to_connect(pid) {
            seen.note(pid, refused(pid, UNCONNECTED));
        } else if let Some(found) = devices::nvidia(pid)
            && !uses_cuda(job.control, pid)
        {
            seen.note(pid, refused(pid, found));
        }
    }
    if let Some(found) = foreign {
        return Err(refused(found.pid, found));
    }
    if let Some((pid, (file, why))) = linked {
        let why = format!(
            "it uses the file {} by a name that was removed while the file has another one, {why}, which cannot be restored: \
             let the job open it by the name that it has",
            file.display()
        );
        return Err(refused(pid, why));
    }
    Ok(())
}

/// What a process is or has that a job of this user does not get back.
fn beyond_the_user(job: &Job<'_>, rights: Option<&Rights<'_>>, pid: ProcessId) -> Option<String> {
    if let Some(user) = job.user
        && let Some(more) = rights::more_than(pid, user)
    {
        return Some(format!(
            "it {more}, and the job's user is {}, without any privilege: such a process (sudo, a set-user-ID program) is \
             not brought back under --user; let it end, or start the job without --user",
            user.uid()
        ));
    }
    let Beyond { path, owner, what } = rights?.beyond(pid)?;
    Some(format!(
        "it has {} of user {owner}, which the job's user may not {what}: under --user it would not get that back; let it \
         close the file, give the user that right, or start the job without --user",
        path.display()
    ))
}

/// Whether processes that talk to each other through NCCL or Gloo would find their connections as they left them.
fn check_ranks(job: &Job<'_>, processes: &[ProcessId]) -> Result<(), AttemptError> {
    let cuda: Vec<ProcessId> = processes
        .iter()
        .filter(|pid| job.with_shim.contains(pid))
        .copied()
        .collect();
    let ranks = environment::ranks(&cuda);
    let Some(&rank) = ranks.first() else {
        return Ok(());
    };
    if let Ok(driver) = job.control.get()
        && let Some((pid, why)) = environment::hopeless_rank(&ranks, driver.driver_version())
    {
        return Err(refused(pid, why));
    }
    let tcp = tree::tcp_use(job.root, processes);
    match environment::closed_connections(&tcp, job.tcp) {
        Some(why) => Err(refused(rank, why)),
        None => Ok(()),
    }
}

/// Why a process outside the tree is in the way.
pub fn stray(pid: ProcessId, name: &str) -> String {
    format!(
        "process {pid} ({name}) left the job's tree (its parent ended, as with a daemon) and would not be in the image: start \
         it in the foreground, or outside the job"
    )
}

/// A process that began to use CUDA when it was too late for it to be in this image: it will be in the next.
pub fn newcomer(pid: ProcessId) -> AttemptError {
    AttemptError::Soon(format!(
        "process {pid} began to use CUDA during the attempt"
    ))
}

/// Whether the driver knows the process: then its checkpoint takes the devices away.
fn uses_cuda(control: &Control, pid: ProcessId) -> bool {
    control.get().is_ok_and(|driver| driver.state(pid).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn look(survey: &mut Survey, root: ProcessId, now: Instant) -> Result<(), AttemptError> {
        // The machine's daemons are strays to a tree that has no PID namespace of its own.
        if let Ok(tree) = tree::collect(root) {
            signals::children().extend(tree.strays.iter().map(|(pid, _)| *pid));
        }
        let job = Job {
            root,
            with_shim: &BTreeSet::new(),
            instrumented: &[],
            usage: &BTreeMap::new(),
            control: &Control::default(),
            image_limit: None,
            tcp: Tcp::Auto,
            user: None,
            urgency: Urgency::Scheduled,
        };
        survey.look(&job, now)
    }

    #[test]
    fn what_is_more_than_the_user_is_asked_to_end() {
        let child = with_open("/dev/null");
        let pid = child.0.id();
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let user = |given: &str| JobUser::find(given).unwrap();
        let more = |given: &str| rights::more_than(pid, &user(given)).unwrap();
        assert_eq!(more("12345:12345"), "is user 0");
        assert_eq!(more("0:12345"), "is in group 0");
        let job_user = user("12345:12345");
        let mut survey = Survey::default();
        let mut look = |now| {
            let job = Job {
                root: pid,
                with_shim: &BTreeSet::new(),
                instrumented: &[],
                usage: &BTreeMap::new(),
                control: &Control::default(),
                image_limit: None,
                tcp: Tcp::Auto,
                user: Some(&job_user),
                urgency: Urgency::Scheduled,
            };
            if let Ok(tree) = tree::collect(pid) {
                signals::children().extend(tree.strays.iter().map(|(pid, _)| *pid));
            }
            survey.look(&job, now)
        };
        let start = Instant::now();
        assert!(matches!(look(start), Err(AttemptError::Soon(_))));
        let refused = look(start + PATIENCE).unwrap_err().to_string();
        assert!(
            refused.contains("is user 0") && refused.contains("--user"),
            "{refused}"
        );
    }

    struct Child(std::process::Child);

    impl Drop for Child {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A process that has `file` open when this returns.
    fn with_open(file: &str) -> Child {
        use std::io::Read;
        let script = format!("exec 9<{file}; echo ready; exec sleep 60");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 5];
        child.stdout.take().unwrap().read_exact(&mut word).unwrap();
        Child(child)
    }

    #[test]
    fn for_what_a_stop_showed_nothing_is_stopped_again_for_a_while() {
        let mut survey = Survey::default();
        let child = with_open("/dev/null");
        let start = Instant::now();
        assert_eq!(look(&mut survey, child.0.id(), start), Ok(()));
        let full = AttemptError::Criu("no room".into());
        let mut now = start;
        for wait in [AGAIN.0, 2 * AGAIN.0, 4 * AGAIN.0] {
            survey.shown(Lasting::NoRoom, full.clone(), now);
            let just_before = now + wait - Duration::from_millis(1);
            assert_eq!(
                look(&mut survey, child.0.id(), just_before),
                Err(full.clone())
            );
            now += wait;
            assert_eq!(look(&mut survey, child.0.id(), now), Ok(()));
        }
        survey.shown(Lasting::NoRoom, full.clone(), now);
        survey.dumped();
        assert_eq!(look(&mut survey, child.0.id(), now), Ok(()));
        survey.shown(Lasting::NoRoom, full.clone(), now);
        survey.forget_processes();
        assert_eq!(look(&mut survey, child.0.id(), now), Ok(()));
        // Not for a process that has gone.
        let other = with_open("/dev/null");
        let profiled = Lasting::Process(child.0.id());
        survey.shown(profiled, full.clone(), now);
        assert_eq!(look(&mut survey, child.0.id(), now), Err(full));
        assert_eq!(look(&mut survey, other.0.id(), now), Ok(()));
    }

    #[test]
    fn an_open_device_is_refused_by_name_and_no_longer_once_it_is_closed() {
        if !std::path::Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
            return;
        }
        let mut survey = Survey::default();
        let child = with_open("/dev/fuse");
        let error = look(&mut survey, child.0.id(), Instant::now()).unwrap_err();
        assert!(!error.is_transient(), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains("/dev/fuse") && text.contains(&child.0.id().to_string()),
            "{text}"
        );
        let harmless = with_open("/dev/null");
        look(&mut survey, harmless.0.id(), Instant::now()).unwrap();
    }

    #[test]
    fn a_file_by_a_removed_name_that_has_another_elsewhere_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        std::fs::write(at("first"), b"content").unwrap();
        let child = with_open(&at("first"));
        let mut survey = Survey::default();
        look(&mut survey, child.0.id(), Instant::now()).unwrap();
        std::fs::create_dir(at("elsewhere")).unwrap();
        std::fs::hard_link(at("first"), at("elsewhere/second")).unwrap();
        std::fs::remove_file(at("first")).unwrap();
        let error = look(&mut survey, child.0.id(), Instant::now()).unwrap_err();
        assert!(error.to_string().contains("/first by a name"), "{error}");
        // In the same directory, as semaphores have theirs, it is carried.
        std::fs::rename(at("elsewhere/second"), at("second")).unwrap();
        look(&mut survey, child.0.id(), Instant::now()).unwrap();
        // Not beside another file of the old name, which CRIU takes for it.
        std::fs::write(at("first"), b"other").unwrap();
        let error = look(&mut survey, child.0.id(), Instant::now()).unwrap_err();
        assert!(error.to_string().contains("has that name now"), "{error}");
        std::fs::remove_file(at("first")).unwrap();
        // One that has no name left is part of the image.
        std::fs::remove_file(at("second")).unwrap();
        look(&mut survey, child.0.id(), Instant::now()).unwrap();
    }

    #[test]
    fn a_dump_that_failed_for_a_device_is_not_tried_again_while_it_is_there() {
        let mut survey = Survey::default();
        let child = with_open("/dev/zero");
        let pid = child.0.id();
        let device = InTheWay::for_tests(pid, "/dev/zero");
        let now = Instant::now();
        survey.blocked_by(device.clone(), now);
        let error = look(&mut survey, pid, now).unwrap_err();
        assert!(error.to_string().contains("/dev/zero"), "{error}");
        // Once in a while it is, after waits that grow.
        look(&mut survey, pid, now + Duration::from_secs(60)).unwrap();
        survey.blocked_by(device.clone(), now);
        look(&mut survey, pid, now + Duration::from_secs(60)).unwrap_err();
        look(&mut survey, pid, now + Duration::from_secs(120)).unwrap();
        // At once when it has gone.
        drop(child);
        let other = with_open("/dev/null");
        look(&mut survey, other.0.id(), now).unwrap();
    }
}
