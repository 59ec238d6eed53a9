//! How much of a job's time was of use: time in which it trained and whose result it kept.
//!
//! # Rules
//!
//! * The job *progresses* while its processes run and no checkpoint holds them.
//! * A resume throws away the progress since the checkpoint that it resumes from. Of a checkpoint that is not known, it was taken before
//!   anybody watched: all the progress since then is lost.
//! * Time is given by the caller, as for every policy. Time that goes backwards counts as none.

use std::collections::VecDeque;
use std::time::Duration;

/// Checkpoints whose progress is remembered; who resumes from an older one loses an unknown amount.
const MARKS: usize = 4096;

/// The account of a job, from the first time that anything is said of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Goodput {
    began: Option<Duration>,
    /// Since when the job runs.
    running: Option<Duration>,
    /// The last time that the job ran, if it does not run now.
    last: Option<(Duration, Duration)>,
    /// How long it ran before that.
    ran: Duration,
    /// How long it was held meanwhile.
    held: Duration,
    lost: Duration,
    /// The progress that each checkpoint has, less what was lost before it, by when it was stored.
    marks: VecDeque<(u64, Duration)>,
}

impl Goodput {
    /// The account begins, if it has not.
    pub fn watched(&mut self, now: Duration) {
        self.began.get_or_insert(now);
    }

    /// The job runs from now on.
    pub fn runs(&mut self, now: Duration) {
        self.watched(now);
        self.settle(now);
        self.running = Some(now);
    }

    /// Whether the job runs.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// The job does not run from now on.
    pub fn ends(&mut self, now: Duration) {
        self.watched(now);
        self.settle(now);
    }

    fn settle(&mut self, now: Duration) {
        if let Some(since) = self.running.take() {
            self.ran += now.saturating_sub(since);
            self.last = Some((since, now));
        }
    }

    /// The job was held for so long, lately.
    pub fn held(&mut self, time: Duration) {
        self.held += time;
    }

    /// A checkpoint is stored, of the job as it was when it began to be held. It is told of before its stop is.
    pub fn stored(&mut self, key: u64, held_at: Duration, now: Duration) {
        let since = match (self.running, self.last) {
            (Some(since), _) => now.saturating_sub(held_at.max(since)),
            (None, Some((since, until))) => until.saturating_sub(held_at.max(since)),
            (None, None) => Duration::ZERO,
        };
        let kept = self.kept(now).saturating_sub(since);
        self.marks.push_back((key, kept));
        if self.marks.len() > MARKS {
            self.marks.pop_front();
        }
    }

    /// The job was resumed from a checkpoint, and runs from now on. How much was lost with that.
    pub fn resumed(&mut self, key: u64, now: Duration) -> Duration {
        self.ends(now);
        let known = self.marks.iter().rposition(|(k, _)| *k == key);
        let kept = known.map_or(Duration::ZERO, |at| self.marks[at].1);
        let lost = self.kept(now).saturating_sub(kept);
        self.lost += lost;
        // What was stored after it is of a past that does not continue.
        self.marks.truncate(known.unwrap_or(0));
        self.marks.push_back((key, kept));
        self.runs(now);
        lost
    }

    /// How long the job ran without being held, kept or not.
    fn progress(&self, now: Duration) -> Duration {
        let current = self
            .running
            .map_or(Duration::ZERO, |since| now.saturating_sub(since));
        (self.ran + current).saturating_sub(self.held)
    }

    /// What of the progress was not lost.
    fn kept(&self, now: Duration) -> Duration {
        self.progress(now).saturating_sub(self.lost)
    }

    /// What was lost in resumes.
    #[must_use]
    pub const fn lost(&self) -> Duration {
        self.lost
    }

    /// Which part of the time until now was of use, from 0 to 1; `None` before there is any.
    #[must_use]
    pub fn ratio(&self, now: Duration) -> Option<f64> {
        let all = now.checked_sub(self.began?)?;
        let kept = self.kept(now);
        (!all.is_zero()).then(|| (kept.as_secs_f64() / all.as_secs_f64()).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_done_since_the_checkpoint_is_lost_with_a_crash() {
        let mut account = Goodput::default();
        account.runs(s(100));
        // Held from 160 to 162, stored at 170.
        account.stored(1, s(160), s(170));
        account.held(s(2));
        assert_eq!(account.ratio(s(200)), Some(0.98));
        account.ends(s(192));
        assert_eq!(account.resumed(1, s(200)), s(30));
        // 60 s of 100 are kept.
        assert_eq!(account.ratio(s(200)), Some(0.6));
        assert_eq!(account.lost(), s(30));
        // The same checkpoint once more: only what came since then.
        account.ends(s(205));
        assert_eq!(account.resumed(1, s(210)), s(5));
    }

    #[test]
    fn a_checkpoint_that_is_stored_after_the_job_ended_is_of_when_it_was_held() {
        let mut account = Goodput::default();
        account.runs(s(0));
        account.ends(s(50));
        account.stored(7, s(40), s(60));
        account.held(s(1));
        assert_eq!(account.resumed(7, s(70)), s(9));
    }

    #[test]
    fn of_a_checkpoint_that_nobody_saw_all_that_was_seen_is_lost() {
        let mut account = Goodput::default();
        account.watched(s(0));
        assert_eq!(account.ratio(s(0)), None);
        assert_eq!(account.resumed(3, s(10)), Duration::ZERO);
        assert_eq!(account.ratio(s(20)), Some(0.5));
        account.ends(s(20));
        // The one before the third: of what came after that, all is lost, and once.
        assert_eq!(account.resumed(2, s(20)), s(10));
        account.ends(s(25));
        assert_eq!(account.resumed(1, s(25)), s(5));
        assert_eq!(account.lost(), s(15));
    }

    proptest! {
        #[test]
        fn the_ratio_is_one_and_what_is_lost_was_done(
            steps in prop::collection::vec((0_u8..5, 0_u64..100, 0_u64..8), 0..60)
        ) {
            let mut account = Goodput::default();
            let mut now = s(1000);
            let mut before = Duration::ZERO;
            for (what, time, key) in steps {
                now += s(time);
                match what {
                    0 => account.runs(now),
                    1 => account.ends(now),
                    2 => account.held(Duration::from_millis(time)),
                    3 => account.stored(key, now.saturating_sub(s(key)), now),
                    _ => {
                        let kept = account.kept(now);
                        let lost = account.resumed(key, now);
                        prop_assert!(lost <= kept, "{lost:?} of {kept:?}");
                    }
                }
                prop_assert!(account.lost() >= before);
                before = account.lost();
                prop_assert!(account.marks.len() <= MARKS);
                if let Some(ratio) = account.ratio(now) {
                    prop_assert!((0.0..=1.0).contains(&ratio), "{ratio}");
                }
            }
        }
    }
}
