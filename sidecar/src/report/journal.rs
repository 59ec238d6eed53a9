//! What happened, kept for those who look later, and told to those who wait.
//!
//! # Rules
//!
//! * The newest [`KEPT`] events are kept, in memory and in a file of the run directory, from which the next sidecar continues.
//! * A reader asks for what came after the last event it knows. Who is slower than [`KEPT`] events sees a gap in the numbers, and
//!   holds nobody up. At the end of the sidecar those who follow ([`Follower`]) have a moment to hear of what happened last.
//! * The file is for continuity and nothing depends on it: where it cannot be written or read, that is said once and the journal goes
//!   on in memory. So does that of a second sidecar of the same job, started early or by mistake, for as long as it lives: the file belongs to
//!   whoever held the lock beside it first.
//! * Texts in it are cut off at [`LONGEST`] bytes: errors quote what others said, and command lines may be megabytes.
//!
//! # Crash consistency
//!
//! A line is appended with one write. One that was cut off by the end of a sidecar does not parse, and is dropped with whatever else
//! does not; the file is written anew, beside the old one, at each start and after each [`KEPT`] lines.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::event::{Event, Record};
use crate::lock::try_lock;

/// How many events are kept.
pub const KEPT: usize = 4096;
/// Bytes of a text in an event at most.
pub const LONGEST: usize = 4096;
/// Bytes of the file that are read at most, from its end: twice as many events as are kept, of the longest texts.
const MAX_FILE: u64 = 64 << 20;
/// How long the sidecar waits at its end for those who follow.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The events of a job on this machine.
#[derive(Debug)]
pub struct Journal {
    kept: Mutex<Kept>,
    head: watch::Sender<Head>,
}

/// What those who follow wait for.
#[derive(Debug, Clone, Copy)]
struct Head {
    newest: u64,
    /// Nothing happens any more.
    over: bool,
}

#[derive(Debug)]
struct Kept {
    records: VecDeque<Record>,
    newest: u64,
    file: Option<Log>,
}

/// The file.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: File,
    lines: usize,
    /// Held for as long as this sidecar has the file.
    lock: Arc<File>,
}

impl Log {
    /// Writes these events, and nothing else, to the file.
    fn write_anew(path: &Path, records: &VecDeque<Record>, lock: Arc<File>) -> io::Result<Log> {
        let beside = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true).mode(0o600);
        let mut file = options.open(&beside)?;
        let mut text = String::new();
        for record in records {
            text.push_str(&serde_json::to_string(record)?);
            text.push('\n');
        }
        file.write_all(text.as_bytes())?;
        std::fs::rename(&beside, path)?;
        Ok(Log {
            path: path.to_owned(),
            file,
            lines: records.len(),
            lock,
        })
    }

    fn append(&mut self, records: &VecDeque<Record>) -> io::Result<()> {
        if self.lines >= 2 * KEPT {
            *self = Log::write_anew(&self.path, records, Arc::clone(&self.lock))?;
            return Ok(());
        }
        let Some(record) = records.back() else {
            return Ok(());
        };
        let mut line = serde_json::to_string(record)?;
        line.push('\n');
        self.lines += 1;
        self.file.write_all(line.as_bytes())
    }
}

/// The events in a file that another sidecar wrote, oldest first.
fn read(path: &Path) -> io::Result<VecDeque<Record>> {
    let mut text = Vec::new();
    match File::open(path) {
        Ok(mut file) => {
            let len = file.metadata()?.len();
            file.seek(io::SeekFrom::Start(len.saturating_sub(MAX_FILE)))?;
            file.take(MAX_FILE).read_to_end(&mut text)?
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
        Err(e) => return Err(e),
    };
    let mut records = VecDeque::new();
    for line in text.split(|byte| *byte == b'\n') {
        // Cut off, or of another release.
        let Ok(record) = serde_json::from_slice::<Record>(line) else {
            continue;
        };
        if (records.back()).is_none_or(|last: &Record| last.seq < record.seq) {
            records.push_back(record);
        }
        if records.len() > KEPT {
            records.pop_front();
        }
    }
    Ok(records)
}

impl Default for Journal {
    /// One that is kept in memory alone.
    fn default() -> Self {
        Self::with(VecDeque::new(), None)
    }
}

impl Journal {
    /// One that goes on from what the file has.
    #[must_use]
    pub fn open(path: &Path) -> Self {
        let opened = try_lock(&path.with_extension("lock")).and_then(|lock| {
            let Some(lock) = lock else { return Ok(None) };
            let records = read(path)?;
            let log = Log::write_anew(path, &records, Arc::new(lock))?;
            Ok(Some((records, log)))
        });
        match opened {
            Ok(Some((records, log))) => Self::with(records, Some(log)),
            Ok(None) => Self::default(),
            Err(error) => {
                say_lost(path, &error);
                Self::default()
            }
        }
    }

    fn with(records: VecDeque<Record>, file: Option<Log>) -> Self {
        let newest = records.back().map_or(0, |record| record.seq);
        Self {
            kept: Mutex::new(Kept {
                records,
                newest,
                file,
            }),
            head: watch::Sender::new(Head {
                newest,
                over: false,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that something happened, at a time in ms since 1970.
    pub fn add(&self, at_ms: u64, event: Event) {
        let mut kept = self.lock();
        kept.newest += 1;
        let mut record = Record {
            seq: kept.newest,
            at_ms,
            event,
        };
        record.event.cut_texts(LONGEST);
        kept.records.push_back(record);
        if kept.records.len() > KEPT {
            kept.records.pop_front();
        }
        let Kept { records, file, .. } = &mut *kept;
        if let Some(log) = file
            && let Err(error) = log.append(records)
        {
            say_lost(&log.path, &error);
            *file = None;
        }
        self.head.send_modify(|head| head.newest = kept.newest);
    }

    /// Up to `limit` of the events after this number, oldest first. Who knows of more events than there have been has them from another
    /// journal, of before the machine or its run directory began anew: everything is new to it.
    #[must_use]
    pub fn after(&self, seq: u64, limit: usize) -> Vec<Record> {
        let kept = self.lock();
        let seq = if seq > kept.newest { 0 } else { seq };
        let from = kept.records.partition_point(|record| record.seq <= seq);
        kept.records.range(from..).take(limit).cloned().collect()
    }

    /// The newest event that something is true of.
    #[must_use]
    pub fn newest_of(&self, is_it: impl Fn(&Event) -> bool) -> Option<Record> {
        let kept = self.lock();
        let mut records = kept.records.iter().rev();
        records.find(|record| is_it(&record.event)).cloned()
    }

    /// The number of the newest event; 0 before the first.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.head.borrow().newest
    }

    /// Hears of the events after this number, and of those to come.
    #[must_use]
    pub fn follow(self: &Arc<Self>, after: u64) -> Follower {
        Follower {
            journal: Arc::clone(self),
            head: self.head.subscribe(),
            after,
        }
    }

    /// Nothing happens any more: waits a moment until those who follow have heard of everything.
    pub async fn end(&self) {
        self.head.send_modify(|head| head.over = true);
        if (tokio::time::timeout(LAST_WORDS, self.head.closed()).await).is_err() {
            tracing::debug!("somebody who follows events has not heard of the last ones");
        }
    }
}

/// Hears of events as they happen. It is to be dropped once it has heard of the last.
#[derive(Debug)]
pub struct Follower {
    journal: Arc<Journal>,
    head: watch::Receiver<Head>,
    after: u64,
}

impl Follower {
    /// Up to `limit` of the events that it has not heard of yet, oldest first; none if it has heard of all.
    pub fn known(&mut self, limit: usize) -> Vec<Record> {
        let records = self.journal.after(self.after, limit);
        let newest = || self.journal.newest();
        self.after = (records.last()).map_or_else(|| self.after.min(newest()), |last| last.seq);
        records
    }

    /// Waits until there are events that it has not heard of; no if there will be none.
    pub async fn more(&mut self) -> bool {
        loop {
            let head = *self.head.borrow_and_update();
            if head.newest > self.after {
                return true;
            }
            if head.over || self.head.changed().await.is_err() {
                return false;
            }
        }
    }

    /// The next events, up to `limit`, oldest first; none after the last.
    pub async fn next(&mut self, limit: usize) -> Option<Vec<Record>> {
        loop {
            let records = self.known(limit);
            if !records.is_empty() {
                return Some(records);
            }
            if !self.more().await {
                return None;
            }
        }
    }
}

fn say_lost(path: &Path, error: &io::Error) {
    tracing::warn!(
        %error, path = %path.display(),
        "events are not kept in a file: what `phos-ft events` and the page show begins anew with the next sidecar. Make room, or \
         make the run directory writable"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(journal: &Journal, after: u64) -> Vec<(u64, String)> {
        (journal.after(after, usize::MAX).iter())
            .map(|record| (record.seq, record.event.name()))
            .collect()
    }

    #[test]
    fn the_next_one_goes_on_where_the_last_one_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let first = Journal::open(&path);
        first.add(1, Event::JobFound);
        first.add(2, Event::Protected);
        drop(first);
        // A line that was cut off, and one that is of no event.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"seq\":9,\"at_ms\":1,\"event\":\"unheard-of\"}\n{\"seq\":3,\"at");
        std::fs::write(&path, text).unwrap();
        let second = Journal::open(&path);
        second.add(3, Event::Possible);
        let expected = ["job-found", "protected", "possible"];
        let expected: Vec<_> = (1..).zip(expected.map(str::to_owned)).collect();
        assert_eq!(names(&second, 0), expected);
        drop(second);
        assert_eq!(names(&Journal::open(&path), 1), expected[1..]);
    }

    #[test]
    fn only_so_many_are_kept_in_memory_and_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let journal = Journal::open(&path);
        for at in 0..3 * KEPT as u64 {
            journal.add(at, Event::Possible);
        }
        let kept = journal.after(0, usize::MAX);
        assert_eq!(kept.len(), KEPT);
        assert_eq!(kept.last().unwrap().seq, 3 * KEPT as u64);
        assert_eq!(journal.newest(), 3 * KEPT as u64);
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!((KEPT..=2 * KEPT).contains(&lines), "{lines}");
        drop(journal);
        assert_eq!(Journal::open(&path).after(0, usize::MAX), kept);
    }

    #[test]
    fn texts_are_cut_off_between_characters() {
        let journal = Journal::default();
        let message = "é".repeat(LONGEST);
        journal.add(1, Event::CopyFailed { message });
        let command = vec!["x".repeat(3 * LONGEST), "y".repeat(10)];
        journal.add(2, Event::JobStarted { command });
        let command = vec!["é".to_owned(); 100_000];
        journal.add(3, Event::JobStarted { command });
        for record in journal.after(0, 3) {
            let text = serde_json::to_string(&record).unwrap();
            // Quotes and commas come to it.
            assert!(text.len() < 3 * LONGEST, "{}", text.len());
            assert!(text.contains('…'), "{text}");
        }
        let command: Vec<String> = ["a", "", "b"].map(str::to_owned).into();
        let short = Event::JobStarted { command };
        journal.add(4, short.clone());
        assert_eq!(journal.after(3, 1)[0].event, short);
    }

    #[test]
    fn who_knows_of_another_journal_hears_everything() {
        let journal = Journal::default();
        journal.add(1, Event::JobFound);
        assert_eq!(names(&journal, 1), []);
        assert_eq!(names(&journal, 5000), [(1, "job-found".to_owned())]);
        let found = journal.newest_of(|event| matches!(event, Event::JobFound));
        assert_eq!(found.unwrap().seq, 1);
    }

    #[test]
    fn a_second_one_at_the_same_time_leaves_the_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let first = Journal::open(&path);
        first.add(1, Event::JobFound);
        let second = Journal::open(&path);
        second.add(2, Event::Possible);
        first.add(3, Event::Protected);
        drop((first, second));
        let expected = [(1, "job-found".into()), (2, "protected".into())];
        assert_eq!(names(&Journal::open(&path), 0), expected);
    }

    #[test]
    fn without_a_file_it_goes_on_in_memory() {
        let journal = Journal::open(Path::new("/proc/self/no/such/directory"));
        journal.add(5, Event::JobFound);
        assert_eq!(names(&journal, 0), [(1, "job-found".to_owned())]);
    }

    #[tokio::test]
    async fn those_who_follow_hear_of_everything_and_of_the_end() {
        let journal = Arc::new(Journal::default());
        // One that knows of another journal, and one that hears of what comes.
        let (mut first, mut second) = (journal.follow(70), journal.follow(1));
        journal.add(1, Event::JobFound);
        let both = async {
            let told = tokio::join!(first.next(8), second.next(8));
            assert_eq!(told.0.unwrap().len(), 2);
            assert_eq!(told.1.unwrap()[0].event, Event::Protected);
            assert!(first.known(8).is_empty());
        };
        let add = async { journal.add(2, Event::Protected) };
        tokio::join!(add, both);
        // The last event is heard of by those who are slow as well.
        drop(second);
        let slow = async move {
            // Until the end has begun.
            while !first.head.borrow().over {
                tokio::task::yield_now().await;
            }
            (first.next(8).await, first.next(8).await)
        };
        let end = async {
            journal.end().await;
            journal.head.receiver_count()
        };
        journal.add(3, Event::Possible);
        let ((last, none), left) = tokio::join!(slow, end);
        assert_eq!(last.unwrap()[0].event, Event::Possible);
        assert_eq!((none, left), (None, 0));
        // Who hears nothing at all is waited for, but not for ever.
        let _deaf = journal.follow(0);
        journal.end().await;
    }
}
