//! Progress of long work: a bar on a terminal, nothing elsewhere (the log says when it began and ended).

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of work whose total in bytes is known.
pub(super) struct Progress(Option<ProgressBar>);

impl Progress {
    /// Begins to show the progress of `what`, of `total` in all.
    pub(super) fn new(what: &'static str, total: u64) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(None);
        }
        let style = ProgressStyle::with_template(
            "{msg} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress(Some(
            ProgressBar::new(total).with_style(style).with_message(what),
        ))
    }

    /// Notes that so many bytes more are done.
    pub(super) fn add(&self, bytes: u64) {
        if let Some(bar) = &self.0 {
            bar.inc(bytes);
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
