//! The caller's side: a command, written for the target to find, and the wait for its answer.

use super::{GpuPair, Operation};
use crate::config::{self, Config};
use crate::device::{self, Backing, Uuid};
use crate::driver;
use crate::error::{
    ERROR_INVALID_VALUE, ERROR_NOT_INITIALIZED, ERROR_NOT_SUPPORTED, ERROR_OPERATING_SYSTEM,
    ERROR_TIMEOUT, Error, Res,
};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The name of the target's waiting thread: how a process with a driver is recognised.
pub const THREAD_NAME: &str = "phos-sim-ctl";
/// How long a target that is alive may take for anything but a lock without a timeout.
const PATIENCE: Duration = Duration::from_secs(300);
const STEP: Duration = Duration::from_micros(300);

/// A command, as text: what to do, then lines with details.
#[derive(Clone, Debug)]
pub struct Command {
    pub operation: Operation,
    /// For a lock: how long to wait for the work that was submitted.
    pub timeout: Option<Duration>,
    /// For a restore: old and new GPU.
    pub pairs: Vec<(Uuid, Uuid)>,
    /// For a restore: the devices of this node as the caller sees them.
    pub node: Vec<Backing>,
}

/// The directory of commands.
pub fn directory(node: &Path) -> PathBuf {
    node.join("proc")
}

/// What names a process: the PID namespace it is in, as the caller shares it, and its number there.
pub fn key(pid: i32) -> String {
    let namespace =
        fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned());
    let digits: String = namespace
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    format!("{digits}-{pid}")
}

impl Command {
    pub fn new(operation: Operation) -> Self {
        Self {
            operation,
            timeout: None,
            pairs: Vec::new(),
            node: Vec::new(),
        }
    }

    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    pub fn pairs(mut self, pairs: Vec<GpuPair>) -> Self {
        self.pairs = pairs.into_iter().map(|pair| (pair.old, pair.new)).collect();
        self
    }

    /// Writes the command down; the answer goes to the file named `answer`.
    fn text(&self, answer: &str) -> String {
        let timeout = self.timeout.map_or(0, |timeout| timeout.as_millis());
        let mut text = format!("{} {answer} {timeout}\n", self.operation.name());
        for (old, new) in &self.pairs {
            let _ = writeln!(text, "pair {} {}", hex(old), hex(new));
        }
        for device in &self.node {
            let _ = writeln!(
                text,
                "device {} {} {} {}",
                device.index,
                device.instance,
                hex(&device.uuid),
                device.dir.display()
            );
        }
        text.push_str("end\n");
        text
    }

    /// What [`config::hang`] and [`config::fail`] ask for.
    fn hang(&self, pid: i32) -> Res {
        if config::fail().is_some_and(|(call, file)| call == self.operation.name() && file.exists())
        {
            return Err(match self.operation {
                Operation::Lock => ERROR_NOT_SUPPORTED,
                _ => ERROR_OPERATING_SYSTEM,
            });
        }
        let Some((call, file)) = config::hang() else {
            return Ok(());
        };
        let for_ever = call.ends_with('!');
        if call.trim_end_matches('!') != self.operation.name() || fs::remove_file(file).is_err() {
            return Ok(());
        }
        while for_ever || !matches!(target(pid), Target::Dead) {
            std::thread::sleep(STEP);
        }
        Err(ERROR_OPERATING_SYSTEM)
    }

    /// Reads a command: the name of the answer's file with it.
    pub fn parse(text: &str) -> Option<(String, Self)> {
        let mut lines = text.lines();
        let mut head = lines.next()?.split(' ');
        let operation = Operation::from_name(head.next()?)?;
        let answer = head.next()?.to_owned();
        let timeout = match head.next()?.parse().ok()? {
            0 => None,
            ms => Some(Duration::from_millis(ms)),
        };
        let mut command = Self::new(operation).timeout(timeout);
        for line in lines {
            let mut words = line.splitn(5, ' ');
            match words.next()? {
                "pair" => command
                    .pairs
                    .push((unhex(words.next()?)?, unhex(words.next()?)?)),
                "device" => command.node.push(Backing {
                    index: words.next()?.parse().ok()?,
                    instance: words.next()?.parse().ok()?,
                    uuid: unhex(words.next()?)?,
                    dir: words.next()?.into(),
                }),
                "end" => return Some((answer, command)),
                _ => return None,
            }
        }
        None
    }

    /// Has the target do it; the value it answers with.
    pub fn send(mut self, pid: i32) -> Res<i32> {
        if pid <= 0 {
            return Err(ERROR_INVALID_VALUE);
        }
        match target(pid) {
            Target::Dead => return Err(ERROR_OPERATING_SYSTEM),
            Target::WithoutDriver => return Err(ERROR_NOT_INITIALIZED),
            Target::Ready => {}
        }
        self.hang(pid)?;
        if self.operation == Operation::Restore {
            self.node = match driver::get() {
                Ok(driver) => device::node(&driver.config),
                Err(_) => device::node(&Config::from_environment()),
            };
        }
        let directory = directory(&config::node_dir());
        let _ = fs::create_dir_all(&directory);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let key = key(pid);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let answer = format!("{key}-{}-{number}.answer", std::process::id());
        let draft = directory.join(format!("{answer}.draft"));
        fs::write(&draft, self.text(&answer)).map_err(|_| ERROR_OPERATING_SYSTEM)?;
        let command = directory.join(format!("{key}.command"));
        let patience = self
            .timeout
            .map_or(PATIENCE, |timeout| timeout + Duration::from_secs(30));
        let until = Instant::now() + patience;
        let result = post(&draft, &command, pid, until)
            .and_then(|()| wait(&directory.join(&answer), pid, until));
        let _ = fs::remove_file(&draft);
        if result.is_err() && fs::read_to_string(&command).is_ok_and(|text| text.contains(&answer))
        {
            let _ = fs::remove_file(&command);
        }
        result
    }
}

/// Puts the command where the target looks, after any other caller's is done.
fn post(draft: &Path, command: &Path, pid: i32, until: Instant) -> Res {
    loop {
        match fs::hard_link(draft, command) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                patience(pid, until)?
            }
            Err(_) => return Err(ERROR_OPERATING_SYSTEM),
        }
    }
}

fn wait(answer: &Path, pid: i32, until: Instant) -> Res<i32> {
    loop {
        if let Ok(text) = fs::read_to_string(answer) {
            let _ = fs::remove_file(answer);
            let mut words = text
                .split_whitespace()
                .filter_map(|word| word.parse::<i32>().ok());
            return match (words.next(), words.next()) {
                (Some(0), Some(value)) => Ok(value),
                (Some(code), _) if code != 0 => Err(Error(code)),
                _ => Err(ERROR_OPERATING_SYSTEM),
            };
        }
        patience(pid, until)?;
    }
}

fn patience(pid: i32, until: Instant) -> Res {
    if matches!(target(pid), Target::Dead) {
        return Err(ERROR_OPERATING_SYSTEM);
    }
    if Instant::now() > until {
        return Err(ERROR_TIMEOUT);
    }
    std::thread::sleep(STEP);
    Ok(())
}

enum Target {
    Dead,
    WithoutDriver,
    Ready,
}

/// What a process is: told by the names of its threads.
fn target(pid: i32) -> Target {
    // A process's name need not be text.
    let state = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = String::from_utf8_lossy(&state);
    let letter =
        (state.rsplit_once(')').map(|(_, rest)| rest)).and_then(|rest| rest.trim().chars().next());
    if letter.is_none_or(|letter| matches!(letter, 'Z' | 'X')) {
        return Target::Dead;
    }
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Target::Dead;
    };
    for task in tasks.flatten() {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.trim() == THREAD_NAME {
            return Target::Ready;
        }
    }
    Target::WithoutDriver
}

fn hex(uuid: &Uuid) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Uuid> {
    let mut uuid = [0; 16];
    for (index, byte) in uuid.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_the_file() {
        let mut command = Command::new(Operation::Restore).timeout(Some(Duration::from_millis(70)));
        command.pairs.push(([1; 16], [0xab; 16]));
        command.node.push(Backing {
            index: 3,
            instance: 5,
            dir: "/run/with space/dev3".into(),
            uuid: [7; 16],
        });
        let Some((answer, read)) = Command::parse(&command.text("a-1-2.answer")) else {
            unreachable!("no command")
        };
        assert_eq!(answer, "a-1-2.answer");
        assert_eq!(format!("{read:?}"), format!("{command:?}"));
        assert!(
            Command::parse("lock a 5\n").is_none(),
            "a command without its end was not written whole"
        );
    }
}
