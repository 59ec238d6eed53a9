//! Progress of long work: for those who ask the sidecar, and as a bar on a terminal (the log says when it began and ended).

use std::io::IsTerminal;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};

use crate::report::work::Working;

/// The progress of work whose total in bytes is known.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    work: Arc<Working>,
}

impl Progress {
    /// Begins to show the progress of `what`, of `total` in all.
    pub(super) fn new(what: &'static str, total: u64, work: Arc<Working>) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress { bar: None, work };
        }
        let style = ProgressStyle::with_template(
            "{msg} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(total).with_style(style).with_message(what);
        Progress {
            bar: Some(bar),
            work,
        }
    }

    /// Notes that so many bytes more are done.
    pub(super) fn add(&self, bytes: u64) {
        self.work.add(bytes);
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
