//! Going back: which checkpoints the job leaves behind when it resumes from an older one (`--from`) or from its beginning
//! (`--start-fresh`).
//!
//! Each place has a log of its own (the store, the tier on this machine), and the job goes back in both: in the one that has the
//! checkpoint, to it; in the other, to the newest one there that was taken no later. Times order them, as everywhere where two
//! places are compared.

use phos_storage::{
    CheckpointNumber, CheckpointSummary, Holder, Job, JobError, TakenOver, UnixMillis,
};

use crate::engine::Tier;
use crate::engine::{CheckpointId, unix_millis};

/// The point that the job goes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum GoBack {
    /// The job begins with its first step again.
    Beginning,
    /// The job resumes from a checkpoint.
    To {
        /// Which checkpoint the job resumes from.
        id: CheckpointId,
        /// When that checkpoint was taken.
        created: UnixMillis,
        /// Whether it is of the current run, so that what is older in the other place belongs to it.
        current: bool,
    },
}

impl GoBack {
    /// To a checkpoint of a place.
    pub(in crate::engine) async fn to(job: &Job, id: CheckpointId) -> Result<GoBack, JobError> {
        let listed = job.list().await?.checkpoints;
        let found = listed.iter().find(|c| c.number == id.number);
        let found = found.ok_or_else(|| JobError::NoCheckpoint {
            job: job.name().clone(),
            number: id.number,
        })?;
        Ok(GoBack::To {
            id,
            created: found.created,
            current: found.is_current(),
        })
    }

    /// The last checkpoint of this place that is not left behind.
    fn last(self, here: Tier, listed: &[CheckpointSummary]) -> Option<CheckpointNumber> {
        match self {
            GoBack::Beginning => None,
            GoBack::To { id, .. } if id.tier == here => Some(id.number),
            GoBack::To { current: false, .. } => None,
            GoBack::To { created, .. } => (listed.iter())
                .filter(|c| c.is_current() && c.created <= created)
                .map(|c| c.number)
                .max(),
        }
    }
}

/// Takes a job over in one of the tiers (`here`).
pub(in crate::engine) async fn take_over(
    job: &Job,
    here: Tier,
    back: Option<GoBack>,
    holder: &Holder,
) -> Result<TakenOver, JobError> {
    let Some(back) = back else {
        return job.take_over(holder.clone(), unix_millis()).await;
    };
    let listed = job.list().await?.checkpoints;
    let last = back.last(here, &listed);
    job.take_over_from(holder.clone(), unix_millis(), last)
        .await
}

#[cfg(test)]
mod tests {
    use phos_storage::{Durability, Epoch};

    use super::*;

    fn checkpoint(number: u64, created: u64, branch: Option<u64>) -> CheckpointSummary {
        CheckpointSummary {
            number: CheckpointNumber(number),
            epoch: Epoch(1),
            created: UnixMillis(created),
            image_bytes: 1,
            new_bytes: 1,
            stored_bytes: 1,
            stop_us: 1,
            trigger: "interval".into(),
            durability: Durability::Local,
            earlier_run: false,
            branch,
        }
    }

    #[test]
    fn the_other_place_goes_back_to_the_same_time() {
        let listed = [
            checkpoint(9, 90, None),
            checkpoint(7, 50, None),
            checkpoint(5, 60, Some(6)),
            checkpoint(2, 20, None),
        ];
        let back = |tier, number, created, current| GoBack::To {
            id: CheckpointId {
                tier,
                number: CheckpointNumber(number),
            },
            created: UnixMillis(created),
            current,
        };
        use Tier::{Local, Remote};
        let last = |back: GoBack, here| back.last(here, &listed).map(|number| number.0);
        assert_eq!(
            last(back(Local, 3, 70, true), Local),
            Some(3),
            "its own place"
        );
        assert_eq!(last(back(Local, 3, 70, true), Remote), Some(7));
        assert_eq!(last(back(Local, 3, 49, true), Remote), Some(2));
        assert_eq!(
            last(back(Remote, 3, 10, true), Local),
            None,
            "all are later"
        );
        assert_eq!(
            last(back(Remote, 3, 70, false), Local),
            None,
            "not its past"
        );
        assert_eq!(last(GoBack::Beginning, Local), None);
    }
}
