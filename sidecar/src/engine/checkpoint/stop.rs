//! The stop: everything from the moment the job falls quiet until it runs again.
//!
//! The dump (control state and CRIU, by the agent) and the drain (what must leave the GPU, by the sidecar) run beside each other;
//! the job may continue when both are done.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_gpu::{GpuError, MemoryInfo};
use phos_policies::schedule::Trigger;
use phos_protocol::agent::{AttemptError, DumpFacts, DumpTimes, Process, ToAgent, ToSidecar};
use phos_protocol::types::GpuUuid;
use phos_shared::failpoint::{self, Point};
use phos_storage::{CheckpointWriter, Digest, UnixMillis};

use super::drain::{Beside, Drains, Ready, plan};
use super::manner::{Askers, Manner};
use super::name::Named;
use super::outcome::{Cause, HOLD, Measured, PartsMs, cancelled, ms};
use super::pipeline::{self, Control, Works};
use super::running;
use super::store::Work;
use crate::engine::image::Described;
use crate::engine::memory::registry::Table;
use crate::engine::session::{Session, WaitError};
use crate::engine::{CopyBeside, Tier, unix_millis};
use crate::report::work::Kind;

/// Control state and CRIU.
pub(super) const DUMP: Duration = Duration::from_secs(600);
/// Attach, all processes.
const ATTACH: Duration = Duration::from_secs(150);
/// Fewer bytes drained in a stop say nothing about the link.
const TELLING: u64 = 64 << 20;

/// What the agent dumped, and how it went beside the drain.
struct Dumped {
    /// The fd of the directory in which the CPU image lies.
    directory: OwnedFd,
    facts: Box<DumpFacts>,
    /// From the beginning of the drain until the dump was there.
    took: Duration,
    ready: Ready,
}

/// The job, held, with its dump begun and its memory named.
struct Held {
    /// When it had fallen quiet.
    quiet: Instant,
    held_at: UnixMillis,
    /// So many processes use GPUs.
    processes: usize,
    device_bytes: u64,
    /// What was free of each GPU, before the driver gave its own memory up for the dump, which it wants back.
    free: BTreeMap<GpuUuid, MemoryInfo>,
    /// Of that, what snapshots may take.
    rooms: BTreeMap<GpuUuid, u64>,
    named: Named,
}

/// How long the job stood still, by the agent's clock.
struct Resumed {
    stop: Duration,
    attach_ns: u64,
}

fn gb_s(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / took.as_secs_f64().max(1e-9) / 1e9
}

/// GB/s of the digests, and of what was copied off the GPUs while the job was held, if anything was.
fn rates(digests: f64, ready: Ready) -> BTreeMap<String, f64> {
    let mut rates = BTreeMap::from([("digest_gb_s".to_owned(), digests)]);
    if ready.direct > 0 {
        rates.insert("d2h_gb_s".into(), gb_s(ready.direct, ready.direct_took));
    }
    rates
}

/// What the agent did in the stop, in milliseconds.
fn note_times(parts: &mut PartsMs, times: &DumpTimes, attach_ns: u64) {
    for (name, ns) in [
        ("detach", times.detach_ns),
        ("control_checkpoint", times.control_checkpoint_ns),
        ("criu", times.criu_ns),
        ("control_restore", times.control_restore_ns),
        ("attach", attach_ns),
    ] {
        parts.insert(name.into(), ns as f64 / 1e6);
    }
}

impl Session<'_> {
    /// Everything while the job is held. What is left to do when it runs again.
    pub(super) async fn hold(
        &mut self,
        trigger: Trigger,
        began: Instant,
        tier: Tier,
        writer: CheckpointWriter,
        control: &Arc<Control>,
    ) -> Result<Work, Cause> {
        let mut parts = PartsMs::new();
        let manner = Manner::of(
            trigger,
            Askers {
                program: self.program_asked,
                others: !self.engine.requests.current.is_empty(),
            },
        );
        // That is what it asked for.
        self.program_asked &= trigger != Trigger::OnDemand;
        let asked = Instant::now();
        let held = self.quiet_and_named(&manner, &mut parts).await?;
        // How long the next one takes does not depend on how long this one waited for a good moment.
        let waited = self.attempt.held_since.map(|at| at.duration_since(asked));
        let began = began + waited.unwrap_or_default();
        let seq = self.attempt.seq;
        let device_bytes = held.device_bytes;
        let Named {
            memory,
            items,
            digest,
            ..
        } = held.named;
        let changed = plan::changed(items, |digest| writer.contains(digest));
        let changed_bytes: u64 = changed.iter().map(|i| i.range.len).sum();
        tracing::debug!(seq, device_bytes, changed_bytes, "named");
        self.show_work(control, changed_bytes);
        if manner.is_urgent {
            control.hurry();
        }
        // Begun before the pipeline, which would take the first chunk without it, and before the drains, which may end it.
        let rest = (!manner.is_urgent).then(|| control.rest());
        self.plan_caches(&writer, &memory, device_bytes);
        let (sink, puts) = pipeline::start(
            &self.engine.background,
            writer.clone(),
            Arc::clone(control),
            self.engine.put_concurrency,
        );
        let beside = self.may_copy_beside(&manner, held.processes);
        let mut drains =
            (self.engine).start_drains(changed, &held.rooms, &sink, control, beside)?;
        let rest = rest.filter(|_| drains.fits);
        let dumped = self
            .dump_and_drain(held.quiet, &held.free, control, &mut drains, &mut parts)
            .await?;
        let ready = dumped.ready;
        let resumed = self
            .let_run(&mut drains, &dumped, &held.rooms, &mut parts)
            .await?;
        drop(rest);
        let cpu_image = dumped.facts.image_bytes;
        self.engine.cpu_image = cpu_image;
        note_times(&mut parts, &dumped.facts.times, resumed.attach_ns);
        self.engine.status.lock().device_bytes = device_bytes;
        Ok(Work {
            trigger,
            began,
            held_at: held.held_at,
            durability: writer.durability(),
            writer,
            control: Arc::clone(control),
            sink,
            puts,
            drains,
            memory,
            directory: dumped.directory,
            facts: dumped.facts,
            reserve: self.engine.planning.reserves(),
            command: self.command.clone(),
            gpus: self.engine.gpus.clone(),
            background: self.engine.background.clone(),
            patience: match manner.is_waited_for {
                true => Duration::ZERO,
                false => self.engine.patience(began.elapsed()),
            },
            parts,
            rates: rates(gb_s(device_bytes, digest), ready),
            changed: changed_bytes,
            stop: resumed.stop,
            tried: self.attempt.held_for,
            measured: Measured {
                dump: dumped.took,
                link: link_rate(ready),
                changed: changed_bytes,
                cpu_image,
                beside: ready.beside,
            },
            seq,
            step: self.attempt.step,
            tier,
            newest: self.engine.tiers.newest,
        })
    }

    /// Waits until the job is quiet, has the dump begin, and names its memory.
    async fn quiet_and_named(
        &mut self,
        manner: &Manner,
        parts: &mut PartsMs,
    ) -> Result<Held, Cause> {
        let (table, processes) = self.fall_quiet(manner.insist, manner.at_step).await?;
        let seq = self.attempt.seq;
        // Of the try that the job fell quiet in.
        let quiesce = self.attempt.held_since.map(|at| at.elapsed());
        let held_at = unix_millis().0 - quiesce.unwrap_or_default().as_millis() as u64;
        parts.insert("quiesce".into(), ms(quiesce.unwrap_or_default()));
        failpoint::reach(Point::SidecarAfterQuiesce);
        let quiet = Instant::now();
        let device_bytes = table.bytes();
        let table = self.if_open(table, &processes)?;
        let free = self.engine.free_memory()?;
        let rooms = self.engine.snapshot_rooms(&free);
        self.link.send(&ToAgent::Dump { seq })?;
        failpoint::reach(Point::SidecarAfterDumpRequest);
        let count = processes.len();
        let named = self.name(table, processes).await?;
        parts.insert("import".into(), ms(named.import));
        parts.insert("name".into(), ms(named.name));
        failpoint::reach(Point::SidecarAfterName);
        Ok(Held {
            quiet,
            held_at: UnixMillis(held_at),
            processes: count,
            device_bytes,
            free,
            rooms,
            named,
        })
    }

    /// Whether what no snapshot has room for may be copied when the job runs again.
    fn may_copy_beside(&self, manner: &Manner, processes: usize) -> Beside {
        let may = self.engine.copy_beside == CopyBeside::Auto && self.attempt.takes_credit;
        // Several processes would be let go on as far as each other, which nobody has tried.
        match may && !manner.is_urgent && processes == 1 {
            true => Beside::Possible(self.attempt.found),
            false => Beside::No,
        }
    }

    /// Lets the job run again, as far as what is still to be copied, or to be learned of it, permits, until that is done.
    async fn let_run(
        &mut self,
        drains: &mut Drains,
        dumped: &Dumped,
        rooms: &BTreeMap<GpuUuid, u64>,
        parts: &mut PartsMs,
    ) -> Result<Resumed, Cause> {
        let seq = self.attempt.seq;
        let learn = drains.learn.take();
        let credit = match (&learn, drains.look()) {
            (Some(_), _) => Some(running::first()),
            (None, Some(look)) => Some(self.engine.planning.left_alone.credit(look)),
            (None, None) => None,
        };
        if credit.is_some() {
            self.link.send(&ToAgent::Credit { seq, credit })?;
        }
        let mut resumed = self.attach().await?;
        let again = Instant::now();
        let ready = dumped.ready;
        let held = match learn {
            Some(learn) => {
                // What this stop has shown counts already.
                let link = link_rate(ready);
                self.engine.planning.measured(dumped.took, link);
                self.learn(seq, learn, rooms).await?
            }
            None => {
                let held = self.copy_beside(seq, drains).await?;
                if ready.beside > 0 {
                    parts.insert("beside".into(), ms(again.elapsed()));
                }
                held
            }
        };
        if !held.is_zero() {
            // The job stood still again.
            parts.insert("held_again".into(), ms(held));
            resumed.stop += held;
        }
        let (snapshot, direct) = (ready.snapshot, ready.direct);
        tracing::debug!(seq, snapshot, direct, "attached");
        Ok(resumed)
    }

    /// Tells the caches what is to come: before anything is encoded, and beside what the stop waits for.
    fn plan_caches(&self, writer: &CheckpointWriter, memory: &[Described], device_bytes: u64) {
        // How large the image of the processes is shows in the dump.
        writer.plan_for(device_bytes + self.engine.cpu_image);
        let names: Vec<Digest> = memory
            .iter()
            .flat_map(|m| m.digests.iter().copied())
            .collect();
        let writer = writer.clone();
        tokio::task::spawn_blocking(move || writer.will_have(&names));
    }

    /// Shows from now on how far this checkpoint is, of which so many bytes are to leave the GPUs.
    fn show_work(&self, control: &Control, changed_bytes: u64) {
        let status = &self.engine.status;
        let work = |kind| status.begin(kind, changed_bytes, unix_millis());
        control.show(Works {
            drain: work(Kind::Drain),
            store: work(Kind::Store),
        });
    }

    /// The table, if every GPU in it is open; else its file descriptors are kept for the next one.
    fn if_open(&mut self, table: Table, processes: &[Process]) -> Result<Table, Cause> {
        let used = processes.iter().flat_map(|p| &p.devices).map(|d| d.uuid);
        let used: Vec<GpuUuid> = used.map(|uuid| self.engine.gpus.resolve(uuid)).collect();
        let closed = self.engine.gpus.missing(used);
        if closed.is_empty() || table.bytes() == 0 {
            return Ok(table);
        }
        self.registry.keep(table);
        Err(Cause::Closed(closed))
    }

    /// Waits for the dump and for what must leave the GPU, whichever takes longer.
    async fn dump_and_drain(
        &mut self,
        quiet: Instant,
        free: &BTreeMap<GpuUuid, MemoryInfo>,
        control: &Control,
        drains: &mut Drains,
        parts: &mut PartsMs,
    ) -> Result<Dumped, Cause> {
        let seq = self.attempt.seq;
        let mut dumped: Option<(OwnedFd, Box<DumpFacts>, Duration)> = None;
        let mut drained: Option<Ready> = None;
        let drain_began = Instant::now();
        let mut deadline = Instant::now() + DUMP;
        loop {
            dumped = match (dumped, drained) {
                (Some((directory, facts, took)), Some(ready)) => {
                    return Ok(Dumped {
                        directory,
                        facts,
                        took,
                        ready,
                    });
                }
                (dumped, _) => dumped,
            };
            tokio::select! {
                outcome = drains.all_ready(), if drained.is_none() => {
                    drained = Some(outcome.map_err(|e| match e {
                        GpuError::Cancelled => cancelled(control),
                        e => e.into(),
                    })?);
                    parts.insert("hold_drain".into(), ms(drain_began.elapsed()));
                }
                packet = self.link.recv() => match packet? {
                    (ToSidecar::Dumped { seq: s, outcome }, mut fds) if s == seq => {
                        let facts = outcome.map_err(Cause::Agent)?;
                        let Some(directory) = fds.pop() else {
                            return Err(Cause::Task("the CPU image came without its directory".into()));
                        };
                        parts.insert("dump".into(), ms(quiet.elapsed()));
                        control.set_due();
                        failpoint::reach(Point::SidecarAfterDumped);
                        dumped = Some((directory, facts, drain_began.elapsed()));
                        deadline = deadline.min(Instant::now() + HOLD);
                    }
                    (ToSidecar::ControlSaved { seq: s }, _) if s == seq => {
                        self.measure_reserve(free, control);
                    }
                    // It would not wait for us any longer: the memory that is still being copied is no longer what it was.
                    (ToSidecar::Resumed { seq: s, .. }, _) if s == seq => {
                        return Err(Cause::Agent(AttemptError::Abandoned));
                    }
                    packet => self.event_while_waiting(packet).await?,
                },
                () = tokio::time::sleep_until(deadline.into()) => {
                    return Err(if dumped.is_some() { Cause::Late } else { WaitError::Timeout(DUMP).into() });
                }
            }
        }
    }

    /// Lets the job have its memory back and run, and waits for the agent to say so.
    async fn attach(&mut self) -> Result<Resumed, Cause> {
        let seq = self.attempt.seq;
        failpoint::reach(Point::SidecarBeforeAttach);
        self.link.send(&ToAgent::Attach { seq })?;
        let resumed = self
            .answer(ATTACH, |message, _| match message {
                ToSidecar::Resumed {
                    seq: s,
                    stop_ns,
                    attach_ns,
                    whole,
                } if s == seq => Ok(whole.then_some(Resumed {
                    stop: Duration::from_nanos(stop_ns),
                    attach_ns,
                })),
                other => Err(other),
            })
            .await?
            .ok_or(Cause::Agent(AttemptError::Abandoned))?;
        failpoint::reach(Point::SidecarAfterAttach);
        Ok(resumed)
    }

    /// What the driver gave up when it saved the control state: `before` was measured before that. The
    /// largest of the job's checkpoints counts.
    fn measure_reserve(&mut self, before: &BTreeMap<GpuUuid, MemoryInfo>, control: &Control) {
        for (&uuid, memory) in before {
            let Ok(open) = self.engine.gpus.get(uuid) else {
                continue;
            };
            let Ok(now) = open.gpu().memory() else {
                continue;
            };
            // What the snapshot took meanwhile hides as much of what was freed.
            let freed = (now.free + control.snapshot_on(uuid)).saturating_sub(memory.free);
            let reserve = self.engine.planning.reserve.entry(uuid).or_default();
            *reserve = freed.max(*reserve);
        }
    }
}

/// Bytes per second over the link of one GPU; less a margin, so that the policy rather takes too little into the stop.
fn link_rate(ready: Ready) -> Option<u64> {
    let seconds = ready.direct_took.as_secs_f64();
    (ready.direct > TELLING && seconds > 0.0).then(|| (ready.direct as f64 / seconds * 0.8) as u64)
}
