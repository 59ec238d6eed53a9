//! What this machine remembers of a job's history in its store, so that a store that is away is not taken for an empty one.
//!
//! ```text
//! <run-dir>/<job>/history.json                   outlives sidecars and agents; agent and sidecar share it
//! <state-dir>/histories/<job>/<store>.json       outlives the machine's restarts; <store> is a digest of the address
//! ```
//!
//! # Rules
//!
//! * It is written once the job has a checkpoint, in the store or on its way there from this machine, and after each further one;
//!   the later of the two counts. By then the note in the state directory is on the disk.
//! * As long as it is there, the store must show that history, at least as long: see `phos_storage`'s `known`. The agent does
//!   not start the job from its beginning by itself while it is in the run directory.
//! * It goes when the job has ended by itself, and when a person says `--start-fresh`.
//! * A note that cannot be read or written costs this protection, never the job: a warning says so.

use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use phos_shared::run_dir::HISTORY;
use phos_storage::{Digest, HistoryId, JobName, Known, UnixMillis};
use serde::{Deserialize, Serialize};

const VERSION: u32 = 1;
const UNREADABLE: &str =
    "what is known of the job's history cannot be read there; delete the file if this goes on";
/// The most bytes that a note may have.
const MAX: u64 = 16 << 10;

/// How a store's address is called in names of files.
pub fn short_name(store: &str) -> String {
    let digest = Digest::of(store.as_bytes()).to_string();
    digest.get(..16).unwrap_or(&digest).to_owned()
}

/// A job's history as this machine remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// The history's identity, and how far it had come when it was last seen.
    pub known: Known,
    /// Whether it was begun, or accepted, by a start with `--start-fresh`, and no other start came since.
    pub fresh: bool,
}

/// Whether a file is on the disk at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fsync {
    /// It is, and survives a crash of the machine.
    Yes,
    /// The kernel writes it back in its own time.
    No,
}

/// The note as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    version: u32,
    store: String,
    history: String,
    records: u64,
    fresh: bool,
    written_ms: u64,
}

impl Note {
    /// `None`: there is none.
    fn read(path: &Path) -> io::Result<Option<Note>> {
        match std::fs::metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
            Ok(found) if found.len() > MAX => return Err(damaged()),
            Ok(_) => {}
        }
        let note: Note = serde_json::from_slice(&std::fs::read(path)?).map_err(|_| damaged())?;
        (note.version == VERSION)
            .then_some(Some(note))
            .ok_or_else(damaged)
    }

    fn remembered(&self) -> Option<Remembered> {
        let id: HistoryId = self.history.parse().ok()?;
        Some(Remembered {
            known: Known {
                id,
                tail: self.records,
            },
            fresh: self.fresh,
        })
    }

    /// Replaces the file as a whole.
    fn write(&self, path: &Path, fsync: Fsync) -> io::Result<()> {
        let new = path.with_extension("new");
        let mut file = std::fs::File::create(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        if fsync == Fsync::Yes {
            file.sync_all()?;
        }
        std::fs::rename(&new, path)?;
        match path.parent() {
            Some(directory) if fsync == Fsync::Yes => std::fs::File::open(directory)?.sync_all(),
            _ => Ok(()),
        }
    }
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "it is damaged or of another phos-ft",
    )
}

/// The memory of one job and store. Blocks.
#[derive(Debug)]
pub struct KnownHistory {
    run: PathBuf,
    state: PathBuf,
    store: String,
    written: Mutex<Option<Remembered>>,
    warned: Mutex<bool>,
}

impl KnownHistory {
    /// `job_dir` is the job's run directory.
    pub fn new(job_dir: &Path, state_dir: &Path, job: &JobName, store: &str) -> KnownHistory {
        let store = store.trim_end_matches('/').to_owned();
        let name = format!("{}.json", short_name(&store));
        KnownHistory {
            run: job_dir.join(HISTORY),
            state: state_dir.join("histories").join(job.as_str()).join(name),
            store,
            written: Mutex::new(None),
            warned: Mutex::new(false),
        }
    }

    /// What is remembered, for a command that only looks: nothing is changed, and a user that may not read it remembers nothing.
    pub fn look(&self) -> Option<Known> {
        let notes = [&self.run, &self.state].map(|path| match Note::read(path) {
            Ok(note) => note.filter(|note| note.store == self.store),
            Err(error) => {
                if error.kind() != io::ErrorKind::PermissionDenied {
                    tracing::warn!(path = %path.display(), %error, "{UNREADABLE}");
                }
                None
            }
        });
        let newest = notes
            .into_iter()
            .flatten()
            .reduce(|a, b| if a.written_ms < b.written_ms { b } else { a });
        newest?.remembered().map(|remembered| remembered.known)
    }

    /// What is remembered. It is in the run directory from here on, for the agent; what another store left there is not.
    pub fn recall(&self) -> Option<Remembered> {
        let mut newest: Option<Note> = None;
        for path in [&self.run, &self.state] {
            match Note::read(path) {
                Ok(Some(note)) if note.store == self.store => {
                    if newest
                        .as_ref()
                        .is_none_or(|n| n.written_ms < note.written_ms)
                    {
                        newest = Some(note);
                    }
                }
                Ok(Some(_)) if path == &self.run => {
                    // The job was given another store.
                    let _ = std::fs::remove_file(path);
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(path = %path.display(), %error, "{UNREADABLE}"),
            }
        }
        let note = newest?;
        let remembered = note.remembered()?;
        if let Err(error) = note.write(&self.run, Fsync::No) {
            self.warn(&self.run, &error);
        }
        *self.lock() = Some(remembered);
        Some(remembered)
    }

    /// The job has a checkpoint in this history.
    pub fn note(&self, now: Remembered, at: UnixMillis) {
        let mut written = self.lock();
        // Notes come from several tasks.
        let is_older = |w: &Remembered| w.known.id == now.known.id && w.known.tail > now.known.tail;
        if *written == Some(now) || written.as_ref().is_some_and(is_older) {
            return;
        }
        let note = Note {
            version: VERSION,
            store: self.store.clone(),
            history: now.known.id.to_string(),
            records: now.known.tail,
            fresh: now.fresh,
            written_ms: at.0,
        };
        if let Err(error) = note.write(&self.run, Fsync::No) {
            self.warn(&self.run, &error);
        }
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let directory = self.state.parent().map_or(Ok(()), |d| builder.create(d));
        if let Err(error) = directory.and_then(|()| note.write(&self.state, Fsync::Yes)) {
            self.warn(&self.state, &error);
        }
        *written = Some(now);
    }

    /// Removes the note: no history has to be there any more.
    pub fn forget(&self) {
        let mut written = self.lock();
        for path in [&self.run, &self.state] {
            match std::fs::remove_file(path) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.warn(path, &error),
            }
        }
        *written = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Remembered>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Once: a read-only state directory is not news at every checkpoint.
    fn warn(&self, path: &Path, error: &io::Error) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *warned, true) {
            tracing::warn!(
                path = %path.display(), %error,
                "what is known of the job's history cannot be kept there, so that a store which is away may be taken for an \
                 empty one after a restart: make the directory writable, or choose another with --state-dir"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use phos_shared::run_dir::has_checkpoints;

    use super::*;

    fn known(id: u8, tail: u64) -> Remembered {
        let id = format!("{id:02x}").repeat(16).parse().unwrap();
        Remembered {
            known: Known { id, tail },
            fresh: false,
        }
    }

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Machine {
            let machine = Machine(tempfile::tempdir().unwrap());
            std::fs::create_dir(machine.run()).unwrap();
            machine
        }

        fn run(&self) -> PathBuf {
            self.0.path().join("run")
        }

        fn at(&self, store: &str) -> KnownHistory {
            let state = self.0.path().join("state");
            KnownHistory::new(&self.run(), &state, &JobName::new("job").unwrap(), store)
        }
    }

    #[test]
    fn it_outlives_the_process_and_the_run_directory() {
        let machine = Machine::new();
        assert_eq!(machine.at("s3://a").recall(), None);
        assert!(!has_checkpoints(&machine.run()));
        machine.at("s3://a").note(known(1, 5), UnixMillis(1));
        assert!(has_checkpoints(&machine.run()));
        assert_eq!(machine.at("s3://a/").recall(), Some(known(1, 5)));
        assert_eq!(machine.at("s3://a").look(), Some(known(1, 5).known));
        // Started again: only the state directory is left.
        std::fs::remove_file(machine.run().join(HISTORY)).unwrap();
        assert_eq!(machine.at("s3://a").look(), Some(known(1, 5).known));
        assert!(!has_checkpoints(&machine.run()), "who looks writes nothing");
        assert_eq!(machine.at("s3://a").recall(), Some(known(1, 5)));
        assert!(has_checkpoints(&machine.run()), "the agent knows as well");
        machine.at("s3://a").forget();
        assert_eq!(machine.at("s3://a").recall(), None);
        assert!(!has_checkpoints(&machine.run()));
    }

    #[test]
    fn the_later_counts_and_nothing_is_set_back() {
        let machine = Machine::new();
        let history = machine.at("s3://a");
        history.note(known(1, 9), UnixMillis(1));
        history.note(known(1, 5), UnixMillis(2));
        assert_eq!(machine.at("s3://a").recall(), Some(known(1, 9)));
        history.note(known(2, 3), UnixMillis(3));
        assert_eq!(machine.at("s3://a").recall(), Some(known(2, 3)));
        // The state directory could not be written the last time.
        let path = machine.run().join(HISTORY);
        let mut note = Note::read(&path).unwrap().unwrap();
        note.records = 4;
        note.written_ms = 9;
        note.write(&path, Fsync::No).unwrap();
        assert_eq!(machine.at("s3://a").look(), Some(known(2, 4).known));
        assert_eq!(machine.at("s3://a").recall(), Some(known(2, 4)));
    }

    #[test]
    fn another_store_is_another_history() {
        let machine = Machine::new();
        machine.at("s3://a").note(known(1, 5), UnixMillis(1));
        assert_eq!(machine.at("s3://b").look(), None);
        assert!(has_checkpoints(&machine.run()), "who looks deletes nothing");
        assert_eq!(machine.at("s3://b").recall(), None);
        assert!(!has_checkpoints(&machine.run()), "of the other store");
        assert_eq!(machine.at("s3://a").recall(), Some(known(1, 5)));
    }

    #[test]
    fn what_is_damaged_is_passed_over() {
        let machine = Machine::new();
        machine.at("s3://a").note(known(1, 5), UnixMillis(1));
        let path = machine.run().join(HISTORY);
        for bytes in [
            &b"{"[..],
            &[b' '; (MAX + 1) as usize],
            b"{\"version\":2}",
            &[0xff; 9],
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert!(has_checkpoints(&machine.run()));
            assert_eq!(machine.at("s3://a").recall(), Some(known(1, 5)));
        }
        let note = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, note.replace("0101", "zz01")).unwrap();
        machine.at("s3://a").forget();
        std::fs::write(&path, note.replace("0101", "zz01")).unwrap();
        assert_eq!(machine.at("s3://a").recall(), None);
    }
}
