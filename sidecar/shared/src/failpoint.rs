//! Places at which a test lets a process of phos-ft die or wait, in agent and sidecar alike.
//!
//! `PHOS_FAILPOINT=<point>[=<action>]`, where the point is what [`reach`] was given and the action one of:
//!
//! | action | at the point |
//! |---|---|
//! | none | the process kills itself |
//! | `once:<file>` | it kills itself if it is the one that creates the file |
//! | `wait:<file>` | the first time, it creates the file and waits until somebody has removed it |
//! | `hold:<file>` | while the file is there, it creates `<file>.reached` and waits |
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
    point: String,
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
        Some(Setting {
            point: point.to_owned(),
            action,
        })
    }
}

/// Dies or waits here if the environment says so.
pub fn reach(point: &str) {
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
    let Some(setting) = setting.as_ref().filter(|s| s.point == point) else {
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
                tracing::warn!(point, file = %file.display(), "failpoint: the process waits");
                while file.exists() {
                    std::thread::sleep(LOOK);
                }
            }
        }
        Action::Hold(file) => {
            let mut reached = file.as_os_str().to_owned();
            reached.push(".reached");
            while file.exists() {
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
fn die(point: &str) -> ! {
    tracing::error!(point, "failpoint: the process kills itself");
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    // The first process of a PID namespace gets no signals from inside it.
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(137) }
}

#[cfg(test)]
mod tests {
    use super::{Action, Setting};

    #[test]
    fn points_and_actions() {
        let parsed = |text| Setting::parse(text).map(|s| (s.point, s.action));
        let at = |point: &str, action| Some((point.to_owned(), action));
        assert_eq!(
            parsed("sidecar:mid-drain"),
            at("sidecar:mid-drain", Action::Kill)
        );
        assert_eq!(
            parsed("a=once:/x:y=z"),
            at("a", Action::KillOnce("/x:y=z".into()))
        );
        assert_eq!(parsed("a=wait:/x"), at("a", Action::Wait("/x".into())));
        assert_eq!(parsed("a=hold:/x"), at("a", Action::Hold("/x".into())));
        assert_eq!(parsed("a=later:/x"), None);
        assert_eq!(parsed("a=once"), None);
    }
}
