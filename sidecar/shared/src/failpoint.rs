//! Places at which a test lets a process of phos-ft die or wait, in agent and sidecar alike.
//!
//! `PHOS_FAILPOINT=<point>[=<action>]`, where the point is one of [`Point`], as in `agent:mid-attach`, and the action one of:
//!
//! | action | at the point |
//! |---|---|
//! | none | the process kills itself |
//! | `once:<file>` | it kills itself if it is the one that creates the file |
//! | `wait:<file>` | the first time, it creates the file and waits until somebody has removed it |
//! | `hold:<file>` | while the file is there, it creates `<file>.reached` and waits |
//!
//! `any=hold:<file>` holds at the point that the file names, one after another as a test writes it: so one job sees all of them.
//!
//! Without the variable a point costs one load; release builds contain no failpoints. The crate `fail` knows neither a death that
//! flushes nothing nor a wait that another process ends.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The environment variable that names a point and what happens there.
pub const VARIABLE: &str = "PHOS_FAILPOINT";

/// How often a process that waits looks whether it may continue.
const LOOK: Duration = Duration::from_millis(1);

/// A place at which a process can be made to die or wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Every shim is quiesced; the sidecar was not told yet.
    AgentAfterQuiesce,
    /// Every shim is detached; nothing was checkpointed yet.
    AgentAfterDetach,
    /// The control state is saved; CRIU was not started.
    AgentBeforeCriu,
    /// CRIU holds the tree frozen; files are about to be copied.
    AgentFrozen,
    /// The dump is complete; the control state was not restored yet.
    AgentAfterCriu,
    /// The job is detached, and the sidecar asked to attach.
    AgentBeforeAttach,
    /// The first process has its memory back, the others have not.
    AgentMidAttach,
    /// The first process has done its part in making multicast objects anew.
    AgentMidRejoin,
    /// The old tree is gone; nothing of the image was used yet.
    AgentBeforeRestore,
    /// Files are put back; CRIU was not started.
    AgentMidRestore,
    /// CRIU restored the tree; its control state is not restored.
    AgentAfterRestore,
    /// The agent said that the job is quiet; the dump was not asked for.
    SidecarAfterQuiesce,
    /// The dump was asked for; nothing was named.
    SidecarAfterDumpRequest,
    /// Device memory is named; the dump has not ended.
    SidecarAfterName,
    /// The agent said that the dump is complete.
    SidecarAfterDumped,
    /// All that must leave the GPUs has; the agent was not asked to attach.
    SidecarBeforeAttach,
    /// The agent said that the job runs again.
    SidecarAfterAttach,
    /// The job runs again, and its memory is still being copied.
    SidecarBeside,
    /// A part of the device memory has left.
    SidecarMidDrain,
    /// Every chunk is stored; the manifest is not.
    SidecarBeforeManifest,
    /// The manifest is complete; nothing of the commit was sent.
    SidecarBeforeHead,
    /// The checkpoint is visible.
    SidecarAfterHead,
    /// Processes of a restore are being brought back, or are back, and their memory is not there.
    SidecarBeforeFilled,
}

impl Point {
    const ALL: [(&'static str, Point); 23] = [
        ("agent:after-quiesce", Point::AgentAfterQuiesce),
        ("agent:after-detach", Point::AgentAfterDetach),
        ("agent:before-criu", Point::AgentBeforeCriu),
        ("agent:frozen", Point::AgentFrozen),
        ("agent:after-criu", Point::AgentAfterCriu),
        ("agent:before-attach", Point::AgentBeforeAttach),
        ("agent:mid-attach", Point::AgentMidAttach),
        ("agent:mid-rejoin", Point::AgentMidRejoin),
        ("agent:before-restore", Point::AgentBeforeRestore),
        ("agent:mid-restore", Point::AgentMidRestore),
        ("agent:after-restore", Point::AgentAfterRestore),
        ("sidecar:after-quiesce", Point::SidecarAfterQuiesce),
        ("sidecar:after-dump-request", Point::SidecarAfterDumpRequest),
        ("sidecar:after-name", Point::SidecarAfterName),
        ("sidecar:after-dumped", Point::SidecarAfterDumped),
        ("sidecar:before-attach", Point::SidecarBeforeAttach),
        ("sidecar:after-attach", Point::SidecarAfterAttach),
        ("sidecar:beside", Point::SidecarBeside),
        ("sidecar:mid-drain", Point::SidecarMidDrain),
        ("sidecar:before-manifest", Point::SidecarBeforeManifest),
        ("sidecar:before-head", Point::SidecarBeforeHead),
        ("sidecar:after-head", Point::SidecarAfterHead),
        ("sidecar:before-filled", Point::SidecarBeforeFilled),
    ];

    fn of(name: &str) -> Option<Point> {
        let known = Point::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, point)| *point)
    }
}

/// What a process does at a point.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Kill,
    KillOnce(PathBuf),
    Wait(PathBuf),
    Hold(PathBuf),
}

/// What a test asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    /// `None`: any point, if the file of the action names it.
    point: Option<Point>,
    action: Action,
}

impl Setting {
    fn parse(text: &str) -> Option<Setting> {
        let (point, action) = match text.split_once('=') {
            None => (text, Action::Kill),
            Some((point, action)) => {
                let (verb, file) = action.split_once(':')?;
                let file = PathBuf::from(file);
                let action = match verb {
                    "once" => Action::KillOnce(file),
                    "wait" => Action::Wait(file),
                    "hold" => Action::Hold(file),
                    _ => return None,
                };
                (point, action)
            }
        };
        let point = match (point, &action) {
            ("any", Action::Hold(_)) => None,
            (name, _) => Some(Point::of(name)?),
        };
        Some(Setting { point, action })
    }

    /// Whether it is about this point now.
    fn is_at(&self, point: Point) -> bool {
        match (self.point, &self.action) {
            (Some(at), _) => at == point,
            (None, Action::Hold(file)) => {
                let named = std::fs::read_to_string(file);
                named.is_ok_and(|name| Point::of(name.trim()) == Some(point))
            }
            (None, _) => false,
        }
    }
}

/// Dies or waits here if the environment says so.
pub fn reach(point: Point) {
    if !cfg!(debug_assertions) {
        return;
    }
    static SETTING: OnceLock<Option<Setting>> = OnceLock::new();
    let setting = SETTING.get_or_init(|| {
        // Empty is what Compose makes of a variable that is not set.
        let text = std::env::var(VARIABLE).ok().filter(|t| !t.is_empty())?;
        let setting = Setting::parse(&text);
        if setting.is_none() {
            tracing::error!(text, "failpoint: not a point with an action");
        }
        setting
    });
    let Some(setting) = setting.as_ref().filter(|s| s.is_at(point)) else {
        return;
    };
    match &setting.action {
        Action::Kill => die(point),
        Action::KillOnce(file) => {
            if std::fs::File::create_new(file).is_ok() {
                die(point);
            }
        }
        Action::Wait(file) => {
            static DONE: AtomicBool = AtomicBool::new(false);
            if !DONE.swap(true, Ordering::AcqRel) && create(file).is_ok() {
                tracing::warn!(?point, file = %file.display(), "failpoint: the process waits");
                while file.exists() {
                    std::thread::sleep(LOOK);
                }
            }
        }
        Action::Hold(file) => {
            let mut reached = file.as_os_str().to_owned();
            reached.push(".reached");
            while file.exists() && setting.is_at(point) {
                if create(Path::new(&reached)).is_err() {
                    return;
                }
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// Makes a file by which the test sees that the point was reached.
fn create(file: &Path) -> io::Result<()> {
    std::fs::write(file, b"").inspect_err(|e| {
        tracing::error!(error = %e, file = %file.display(), "failpoint: cannot say that it was reached");
    })
}

/// Ends the process at once: nothing is unwound, flushed or told, as in a real death.
fn die(point: Point) -> ! {
    tracing::error!(?point, "failpoint: the process kills itself");
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    // The first process of a PID namespace gets no signals from inside it.
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(137) }
}

#[cfg(test)]
mod tests {
    use super::{Action, Point, Setting};

    #[test]
    fn points_and_actions() {
        let parsed = |text: &str| Setting::parse(text).map(|s| (s.point, s.action));
        assert_eq!(
            parsed("sidecar:mid-drain"),
            Some((Some(Point::SidecarMidDrain), Action::Kill))
        );
        assert_eq!(
            parsed("any=hold:/x"),
            Some((None, Action::Hold("/x".into())))
        );
        let frozen = |action| Some((Some(Point::AgentFrozen), action));
        for (action, expected) in [
            ("once:/x:y=z", Action::KillOnce("/x:y=z".into())),
            ("wait:/x", Action::Wait("/x".into())),
            ("hold:/x", Action::Hold("/x".into())),
        ] {
            assert_eq!(parsed(&format!("agent:frozen={action}")), frozen(expected));
        }
        for wrong in [
            "agent:frozen=later:/x",
            "agent:frozen=once",
            "sidecar:frozen",
            "frozen",
            "any",
            "any=once:/x",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
