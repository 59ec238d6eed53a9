//! Long work that is under way, and how far it is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::{Deserialize, Serialize};

/// What kind of work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Device memory whose content is not stored yet leaves the GPUs.
    Drain,
    /// What a checkpoint consists of goes to its place.
    Store,
    /// An image comes back from where it is, for a resume.
    Resume,
}

/// Work that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkReport {
    /// What kind of work it is.
    pub kind: Kind,
    /// How many bytes are done.
    pub done_bytes: u64,
    /// How many there are, as far as is known.
    pub total_bytes: u64,
    /// When it began, in ms since 1970.
    pub since_ms: u64,
}

/// Work that somebody does; it is under way for as long as this exists.
#[derive(Debug)]
pub struct Working {
    kind: Kind,
    since_ms: u64,
    done: AtomicU64,
    total: AtomicU64,
}

impl Working {
    /// So many bytes more are done.
    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// There is so much more to do than was known.
    pub fn add_total(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    fn report(&self) -> WorkReport {
        let total = self.total.load(Ordering::Relaxed);
        WorkReport {
            kind: self.kind,
            done_bytes: self.done.load(Ordering::Relaxed).min(total),
            total_bytes: total,
            since_ms: self.since_ms,
        }
    }
}

/// All that is under way.
#[derive(Debug, Clone, Default)]
pub struct Works(Arc<Mutex<Vec<Weak<Working>>>>);

impl Works {
    /// Begins work of `total` bytes, at a time in ms since 1970.
    #[must_use]
    pub fn begin(&self, kind: Kind, total: u64, since_ms: u64) -> Arc<Working> {
        let work = Arc::new(Working {
            kind,
            since_ms,
            done: AtomicU64::new(0),
            total: AtomicU64::new(total),
        });
        let mut works = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        works.retain(|work| work.strong_count() > 0);
        works.push(Arc::downgrade(&work));
        work
    }

    /// What is under way now.
    #[must_use]
    pub fn report(&self) -> Vec<WorkReport> {
        let works = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let under_way = works.iter().filter_map(Weak::upgrade);
        under_way.map(|work| work.report()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_under_way_until_it_is_let_go() {
        let works = Works::default();
        let drain = works.begin(Kind::Drain, 10, 5);
        let store = works.begin(Kind::Store, 10, 6);
        drain.add(4);
        store.add_total(2);
        store.add(20);
        let done: Vec<_> = (works.report().iter())
            .map(|w| (w.kind, w.done_bytes, w.total_bytes))
            .collect();
        assert_eq!(done, [(Kind::Drain, 4, 10), (Kind::Store, 12, 12)]);
        drop(drain);
        assert_eq!(works.report().len(), 1);
        drop(store);
        assert_eq!(works.report(), []);
    }
}
