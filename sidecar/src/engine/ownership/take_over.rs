//! The job becomes ours, once in the life of this process.
//!
//! # Rules
//!
//! * A job that runs here and belongs to an epoch which is no longer in force was taken over by another node while no sidecar
//!   was here: it is not taken back.
//! * A job that the agent started by itself is not taken into a history that has checkpoints.

use phos_policies::lease::LeaseWatch;
use phos_protocol::agent::ToAgent;
use phos_storage::{JobError, JobState, TakenOver, UnixMillis};

use super::Ownership;
use super::lease::{self, Keeper};
use crate::engine::Tier;
use crate::engine::history::branch::{self, GoBack};
use crate::engine::history::holder::{agent_of, this_process};
use crate::engine::session::Session;
use crate::engine::tiers::local::{LocalTier, LocalTierError};
use crate::engine::{Engine, EngineError, Start, no_local_tier};

/// What was found in the store and on this machine before the take-over.
struct Before {
    /// The point that the job goes back to, if it does.
    back: Option<GoBack>,
    /// The store's log, where there is a tier on this machine.
    state: Option<JobState>,
}

impl Session<'_> {
    /// Who else has the job: the holder of the epoch in force, if it is neither the one that the job here belongs to nor one that
    /// was begun by a sidecar of this agent that died before it could say so.
    pub(in crate::engine) async fn other_holder(&self) -> Result<Option<(u64, String)>, JobError> {
        let job = &self.engine.job;
        let Some(now) = job.state().await?.epoch else {
            return Ok(None);
        };
        if now.0 == self.job_epoch {
            return Ok(None);
        }
        let holder = job.began_by(now).await?.unwrap_or_default();
        let other = agent_of(&holder) != Some(self.agent);
        Ok(other.then_some((now.0, holder.name)))
    }

    /// Whether a job that runs may be taken into the history. One that the agent started by itself, because no sidecar was here in
    /// time, began with its first step: its checkpoints must not come after those that another start would resume.
    pub(in crate::engine) async fn may_adopt(&self) -> Result<Result<(), String>, JobError> {
        let Engine {
            job,
            ownership,
            tiers,
            origin,
            ..
        } = &*self.engine;
        if ownership.epoch.is_some() || self.job_epoch != 0 {
            return Ok(Ok(()));
        }
        let now = || origin.elapsed();
        let mut watch = LeaseWatch::default();
        if !ownership.lease.is_zero()
            && let Some(holder) = lease::holder(job, &ownership.node, &mut watch, now).await?
        {
            return Ok(Err(format!(
                "the job was started here without a sidecar, and another node has it: {}. No checkpoint is taken. End one \
                 of the two",
                holder.name
            )));
        }
        let newest = job.state().await?.newest;
        let mut newest = newest.map(|newest| (newest.to_string(), "in the store"));
        if let (None, Some(local)) = (&newest, tiers.local_history()) {
            let here = local.state().await?.newest;
            newest = here.map(|newest| (format!("L{newest}"), "on this machine"));
        }
        Ok(match newest {
            Some((newest, place)) => Err(format!(
                "the job was started from its beginning, as no sidecar was here in time, and checkpoint {newest} of it is \
                 {place}: none is taken of this one, so that they do not replace that. To resume from checkpoint {newest}, \
                 end this job and start it again; to keep this one, give it another --job name"
            )),
            None => Ok(()),
        })
    }

    /// Takes the job over, once, and tells the agent.
    pub(in crate::engine) async fn take_over(&mut self) -> Result<(), EngineError> {
        if self.engine.ownership.epoch.is_none()
            && self.job_epoch != 0
            && let Some((now, holder)) = self.other_holder().await.map_err(EngineError::Job)?
        {
            return Err(EngineError::Fenced(format!(
                "job {} was taken over by {holder} in epoch {now}, while the job here, of epoch {}, had no sidecar",
                self.engine.job.name(),
                self.job_epoch
            )));
        }
        self.engine.take_over(self.agent).await?;
        if let Some(epoch) = self.engine.ownership.epoch
            && epoch.0 != self.job_epoch
        {
            self.job_epoch = epoch.0;
            // If it has gone, the next connection finds out.
            let _ = self.link.send(&ToAgent::TakenOver { epoch: epoch.0 });
        }
        Ok(())
    }
}

impl Engine {
    /// Takes the job over, once, for the agent whose job it is.
    async fn take_over(&mut self, agent: u64) -> Result<(), EngineError> {
        if self.ownership.epoch.is_some() {
            return Ok(());
        }
        let Before { back, state } = self.before_take_over().await?;
        let tier = self.tiers.local.as_ref().map(LocalTier::id);
        let holder = this_process(agent, tier);
        let taken = branch::take_over(&self.job, Tier::Remote, back, &holder)
            .await
            .map_err(EngineError::Job)?;
        if let (Some(local), Some(state)) = (&mut self.tiers.local, &state)
            && let Err(e) = local
                .taken(self.job.name(), state, taken, &holder, back)
                .await
        {
            without_tier(local, &e, back);
        }
        self.taken(taken, &holder.name).await
    }

    /// Looks at both tiers: what is on this machine counts, is deleted or set aside from here on.
    async fn before_take_over(&mut self) -> Result<Before, EngineError> {
        // One on this machine is known once the tier is open.
        let mut back = match self.resume.from {
            _ if self.resume.start == Start::Fresh => Some(GoBack::Beginning),
            Some(id) if id.tier == Tier::Remote => {
                Some(GoBack::to(&self.job, id).await.map_err(EngineError::Job)?)
            }
            _ => None,
        };
        let Some(local) = &mut self.tiers.local else {
            return Ok(Before { back, state: None });
        };
        let state = self.job.state().await.map_err(EngineError::Job)?;
        let standing = local.standing(&self.job, &state).await;
        let standing = standing.map_err(EngineError::Job)?;
        let noted = local.before(self.job.name(), standing, &state).await;
        let from = self.resume.from.filter(|id| id.tier == Tier::Local);
        if let (Some(id), Some(here)) = (from, local.reading()) {
            back = Some(GoBack::to(here, id).await.map_err(EngineError::Job)?);
        }
        if let Err(e) = noted {
            without_tier(local, &e, back);
        }
        Ok(Before {
            back,
            state: Some(state),
        })
    }

    /// The job is taken over in the store.
    async fn taken(&mut self, taken: TakenOver, holder: &str) -> Result<(), EngineError> {
        let keeps_history = !self.job.store().is_discarding();
        if keeps_history {
            // What was found is what is there from now on, for the life of this process.
            let known = self.job.known().await.map_err(EngineError::Job)?;
            self.job.expect(known);
            self.look_at_both().await?;
        }
        tracing::info!(
            epoch = taken.epoch.0,
            previous = taken.previous.map(|e| e.0),
            "took the job over"
        );
        self.ownership.epoch = Some(taken.epoch);
        if keeps_history {
            let (status, background) = (self.status.clone(), self.background.clone());
            let Ownership { lease, node, .. } = &self.ownership;
            let keeper = Keeper::start(
                &self.job,
                taken.epoch,
                holder,
                node,
                *lease,
                status,
                background,
            );
            self.ownership.keeper = Some(keeper);
        }
        Ok(())
    }

    /// Checkpoints that an earlier sidecar left on this machine are copied to the store; what comes later is newer.
    async fn look_at_both(&mut self) -> Result<(), EngineError> {
        let listed = self.job.list().await.map_err(EngineError::Job)?;
        let newest = listed.checkpoints.iter().map(|c| c.created).max();
        self.tiers.newest = newest.unwrap_or(UnixMillis(0));
        if newest.is_some() {
            self.remember();
        }
        let Some(local) = self.tiers.local_history() else {
            return Ok(());
        };
        match local.list().await {
            Ok(listed) => {
                let here = listed.checkpoints.iter().map(|c| c.created).max();
                if here.is_some() {
                    self.remember();
                }
                if let Some(replication) = self.tiers.replication.as_mut().filter(|_| here > newest)
                {
                    replication.found_here();
                }
                self.tiers.newest = self.tiers.newest.max(here.unwrap_or(UnixMillis(0)));
            }
            // A restore says so as well, and goes on with the store's.
            Err(e) => tracing::error!(error = %e, "the checkpoints on this machine cannot be read"),
        }
        Ok(())
    }
}

/// Nothing is stored on this machine by this process, which takes a job over.
fn without_tier(local: &mut LocalTier, error: &LocalTierError, back: Option<GoBack>) {
    no_local_tier(error);
    local.forget();
    if let Some(back) = back {
        local.could_not_go_back(back);
    }
}
