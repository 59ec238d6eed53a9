//! What is said of a sidecar, in one place for those who change it and those who pass it on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use phos_storage::UnixMillis;

use super::event::Event;
use super::journal::{Follower, Journal};
use super::status::Report;
use super::work::{Kind, Working, Works};

/// What the sidecar says, shared between those who change it and those who pass it on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared {
    report: Arc<Mutex<Report>>,
    journal: Arc<Journal>,
    works: Works,
}

impl Shared {
    pub(crate) fn new(report: Report, journal: Journal) -> Shared {
        Shared {
            report: Arc::new(Mutex::new(report)),
            journal: Arc::new(journal),
            works: Works::default(),
        }
    }

    /// What is the case now.
    pub(crate) fn report(&self) -> Report {
        let mut report = self.lock().clone();
        report.work = self.works.report();
        report
    }

    /// Begins long work.
    pub(crate) fn begin(&self, kind: Kind, total: u64, now: UnixMillis) -> Arc<Working> {
        self.works.begin(kind, total, now.0)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self, state: impl Into<String>) {
        self.lock().state = state.into();
    }

    /// Something happened at that time.
    pub(crate) fn happened(&self, at: UnixMillis, event: Event) {
        self.journal.add(at.0, event);
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Hears of the events after this number, and of those to come.
    pub(crate) fn follow(&self, after: u64) -> Follower {
        self.journal.follow(after)
    }
}
