//! The beginning of a checkpoint: whether this job may have one, the tier that it goes to, its writer there; and another try at
//! once where it came at a bad moment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_policies::schedule::Trigger;
use phos_protocol::agent::{AttemptError, ToAgent, ToSidecar};
use phos_protocol::types::GpuUuid;
use phos_storage::CheckpointWriter;

use super::Flight;
use super::outcome::{Cause, Failed};
use super::pipeline::Control;
use super::stop::DUMP;
use crate::engine::Tier;
use crate::engine::session::{Session, WaitError, at};
use crate::engine::unix_millis;

/// How often a checkpoint is begun again at once that came at a bad moment.
const AT_ONCE: u32 = 3;

impl Session<'_> {
    /// Takes a checkpoint up to the moment the job runs again.
    pub(super) async fn attempt(&mut self, trigger: Trigger) -> Result<(), Failed> {
        self.attempt.held_for = Duration::ZERO;
        let (mut opened, mut again) = (false, 0);
        loop {
            self.attempt.held_since = None;
            let outcome = match self.prepare_buffer(trigger).await {
                Ok(()) => self.attempt_once(trigger).await,
                Err(cause) => Err(cause),
            };
            let Err(cause) = outcome else {
                return Ok(());
            };
            let held = self.attempt.held_since.map(|at| at.elapsed());
            self.attempt.held_for += held.unwrap_or_default();
            match cause {
                Cause::Closed(gpus) if !opened => {
                    opened = true;
                    let open = self.open_gpus(gpus).await;
                    open.map_err(|cause| cause.into_failed(Duration::ZERO))?;
                }
                Cause::Agent(AttemptError::Soon(reason)) if again < AT_ONCE => {
                    again += 1;
                    tracing::info!(reason, "the checkpoint is begun again at once");
                }
                // It counts like any other stop, or failures would take the job's time.
                cause => {
                    if matches!(&cause, Cause::Agent(e) if !e.is_transient()) {
                        self.engine.buffer.missed();
                    }
                    return Err(cause.into_failed(self.attempt.held_for));
                }
            }
        }
    }

    /// Opens GPUs, outside a stop.
    pub(in crate::engine) async fn open_gpus(&mut self, wanted: Vec<GpuUuid>) -> Result<(), Cause> {
        let mut gpus = self.engine.gpus.clone();
        let opened = tokio::task::spawn_blocking(move || gpus.open(&wanted).map(|()| gpus)).await;
        match opened {
            Ok(Ok(gpus)) => {
                self.engine.gpus = gpus;
                Ok(())
            }
            Ok(Err(e)) => Err(Cause::Opening(e)),
            Err(e) => Err(Cause::Task(e.to_string())),
        }
    }

    async fn attempt_once(&mut self, trigger: Trigger) -> Result<(), Cause> {
        let began = Instant::now();
        // The job is about to wait for it.
        let _raised = self.engine.background.raise();
        let (writer, tier) = self.open_writer().await?;
        self.attempt.seq += 1;
        let _quiet = self.engine.gpus.pause_pinning();
        let control = Arc::new(Control::default());
        if self.engine.signals.asked.is_some() {
            // This process ends when it is stored.
            control.hurry();
        }
        // So that a request for memory finds it.
        self.engine.in_progress.held = Some(Arc::clone(&control));
        let held = self.hold(trigger, began, tier, writer.clone(), &control);
        let outcome = held.await;
        self.engine.in_progress.held = None;
        // Each try has its own.
        let seq = self.attempt.seq;
        match outcome {
            Ok(work) => {
                let control = Arc::clone(&work.control);
                // Before this attempt's own is dropped: in between, they would be of the class idle.
                let is_waited_for = work.patience.is_zero() || control.hurries();
                let raised = is_waited_for.then(|| self.engine.background.raise());
                let task = self.engine.background.spawn(work.store());
                self.engine.in_progress.fly(Flight {
                    control,
                    task,
                    raised,
                });
                self.attempt.storing = Some(seq);
                Ok(())
            }
            Err(cause) => {
                control.cancel("the attempt was given up");
                let abandoned = if cause.leaves_job_held() {
                    self.abandon(seq).await
                } else {
                    Ok(())
                };
                (self.engine.background).spawn(writer.abort(unix_millis()));
                abandoned?;
                Err(cause)
            }
        }
    }

    /// Chooses the tier, and begins a checkpoint there. Reads what is stored, the first time; before the stop.
    async fn open_writer(&mut self) -> Result<(CheckpointWriter, Tier), Cause> {
        match self.may_adopt().await {
            Ok(Ok(())) => {}
            Ok(Err(reason)) => return Err(Cause::Refused(reason)),
            Err(e) => return Err(Cause::Task(e.to_string())),
        }
        if let Err(e) = self.take_over().await {
            return Err(if e.is_fenced() {
                Cause::Fenced(e)
            } else {
                Cause::Task(e.to_string())
            });
        }
        let Some((job, epoch, tier)) = self.engine.place_next() else {
            return Err(Cause::Task("the job is not ours".into()));
        };
        let mut begin = Box::pin(async move { job.begin(epoch).await });
        // The store may take its time; the job's requests do not wait for it.
        let begun = loop {
            let time_is_up = self.exit_at();
            tokio::select! {
                begun = &mut begin => break begun,
                packet = self.link.recv() => self.event_while_waiting(packet?).await?,
                () = at(time_is_up) => {
                    return Err(Cause::Task("the job is to end, and the store does not answer".into()));
                }
            }
        };
        match begun {
            Ok(writer) => Ok((writer, tier)),
            Err(error) => Err(Cause::begin(error, tier)),
        }
    }

    /// Lets the job run on, and waits until it does.
    async fn abandon(&mut self, seq: u64) -> Result<(), WaitError> {
        self.link.send(&ToAgent::Abandon { seq })?;
        let resumed = self
            .answer(DUMP, |message, _| match message {
                ToSidecar::Resumed { seq: s, .. } if s == seq => Ok(()),
                // The agent ended it by itself before it saw ours; no `Resumed` follows.
                ToSidecar::Quiesced {
                    seq: s,
                    outcome: Err(_),
                } if s == seq => Ok(()),
                ToSidecar::Dumped {
                    seq: s,
                    outcome: Err(_),
                } if s == seq => Ok(()),
                other => Err(other),
            })
            .await;
        match resumed {
            Err(WaitError::JobExited) => Ok(()),
            other => other,
        }
    }
}
