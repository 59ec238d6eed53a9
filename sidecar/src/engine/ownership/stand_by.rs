//! Standing by while another node has the job and is well, and waiting for a history that the store does not show.

use std::time::Duration;

use phos_policies::lease::LeaseWatch;
use phos_storage::{FaultKind, JobError};

use super::Ownership;
use super::lease;
use crate::engine::Engine;
use crate::engine::STORE_WAITS;
use crate::engine::session::{Session, Stop};

/// Until the lease is read again after a failure.
const AGAIN: Duration = Duration::from_secs(2);
/// The longest wait between two looks for the job's history.
const HISTORY_WAIT: Duration = Duration::from_secs(15);

impl Session<'_> {
    /// Waits until the store shows the history that the job has there. What the store answers otherwise is for those to deal
    /// with who need it; but of a job that had checkpoints, no refusal is taken for the last word.
    pub(in crate::engine) async fn await_history(&mut self) -> Result<(), Stop> {
        let has_tier = self.engine.tiers.local_history().is_some();
        if self.engine.ownership.epoch.is_some() && has_tier {
            // The newest checkpoint may be on this machine, and the job is ours.
            return Ok(());
        }
        let mut wait = STORE_WAITS.0;
        let mut waited = false;
        while self.engine.job.expected().is_some() && !self.engine.job.store().is_discarding() {
            let error = match self.engine.job.known().await {
                Err(JobError::Store(fault)) if fault.kind() != FaultKind::Key => fault,
                _ => break,
            };
            tracing::error!(
                %error,
                again_ms = wait.as_millis() as u64,
                "THE JOB WAITS FOR ITS HISTORY: it has checkpoints, and is not begun anew without them. It is resumed when the \
                 store shows them again"
            );
            self.engine
                .status
                .state(format!("waiting for the store: {error}"));
            waited = true;
            self.pause(wait).await?;
            wait = (wait * 2).min(HISTORY_WAIT);
        }
        if waited {
            tracing::info!("the store shows the job's history again");
        }
        Ok(())
    }

    /// Waits while another node has the job and is well. One that starts here again, or that already had it, does not.
    pub(in crate::engine) async fn stand_by(&mut self) -> Result<(), Stop> {
        let mut watch = LeaseWatch::default();
        let mut said = String::new();
        let wanted =
            !self.engine.ownership.lease.is_zero() && !self.engine.job.store().is_discarding();
        while wanted && self.engine.ownership.epoch.is_none() {
            let Engine {
                job,
                ownership: Ownership { node, .. },
                origin,
                ..
            } = &*self.engine;
            let held = lease::holder(job, node, &mut watch, || origin.elapsed()).await;
            let wait = match held {
                Ok(None) => return Ok(()),
                Ok(Some(holder)) => {
                    if said != holder.name {
                        tracing::warn!(
                            holder = holder.name,
                            lease_ends_s = holder.left.as_secs(),
                            "another node has the job: standing by until it does not renew its lease any more. \
                             To run the job here, stop it there, or give --lease 0s to take it over at once"
                        );
                        said.clone_from(&holder.name);
                    }
                    let state = format!("standing by: the job is {}'s", holder.name);
                    self.engine.status.state(state);
                    holder.look_again()
                }
                // What the lease says is not needed.
                Err(error) if error.is_permanent() => {
                    tracing::warn!(%error, "the lease of the job cannot be read");
                    return Ok(());
                }
                Err(_) => {
                    watch.missed(self.engine.origin.elapsed());
                    AGAIN
                }
            };
            self.pause(wait).await?;
        }
        Ok(())
    }
}
