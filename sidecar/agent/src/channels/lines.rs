//! A bound on what the job's processes can have the agent write to its log, which could otherwise fill a disk.

use std::time::{Duration, Instant};

/// The most lines that are said in one [`SPAN`].
const MOST: u32 = 30;
const SPAN: Duration = Duration::from_secs(60);
/// Characters of a text of the job's that are passed on: a reason with two paths has fewer.
const LONGEST: usize = 1024;

/// Counts lines of the log, so that a flood of them is kept back.
#[derive(Debug, Default)]
pub struct Lines {
    /// When the first line of the current span was said; `None` before one.
    since: Option<Instant>,
    said: u32,
    kept_back: u64,
}

impl Lines {
    /// Whether one more may be said.
    pub fn may(&mut self, now: Instant) -> bool {
        if self
            .since
            .is_none_or(|since| now.saturating_duration_since(since) >= SPAN)
        {
            if self.kept_back > 0 {
                tracing::warn!(
                    lines = self.kept_back,
                    "processes of the job gave cause for more lines like those than are written in a minute"
                );
            }
            *self = Self {
                since: Some(now),
                ..Self::default()
            };
        }
        if self.said == MOST {
            self.kept_back += 1;
            return false;
        }
        self.said += 1;
        true
    }
}

/// A text of the job's as it goes into logs and answers: one line, of bounded length.
pub fn plain(text: &str) -> String {
    let line = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(LONGEST).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_in_a_span() {
        let mut lines = Lines::default();
        let start = Instant::now();
        let mut said = |at| (0..MOST * 2).filter(|_| lines.may(at)).count();
        assert_eq!(said(start), 30);
        assert_eq!(said(start + SPAN - Duration::from_millis(1)), 0);
        assert_eq!(said(start + SPAN), 30);
    }

    #[test]
    fn a_text_is_one_line_and_no_more_than_that() {
        assert_eq!(plain("a\nb\u{1b}[31mé"), "a b [31mé");
        assert_eq!(plain(&"é".repeat(5000)).chars().count(), LONGEST);
    }
}
