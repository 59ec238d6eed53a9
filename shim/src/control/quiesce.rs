//! Quiesce: gate closed, nothing in flight, every context idle, the table sent.
//!
//! No try holds the job for longer than it was asked for. Work that is queued for longer than that ends in a later one, at a
//! moment at which the job waits for it (`watch`), or in one that lasts longer while no thread of the job's is held for more than
//! `hold` at a time: each then makes one call, and waits again. The GPU has more to do meanwhile than so few calls bring.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_protocol::channel::{BATCH, SHIM_FDS};
use phos_protocol::shim::{Count, QuiesceFacts, Refusal, Sequence, TableEntry, ToAgent, ToShim};
use phos_protocol::types::AllocationKey;

use super::attach::refused;
use super::{Control, End, Phase, receive, say, synchronizer};
use crate::interpose::bypass;
use crate::memory::share;
use crate::registry::{self, Origin};
use crate::unsupported::{self, Reason};
use crate::{
    abi, capture, context, driver, gate, hints, instances, link, log, memory, mode, ranks,
};

/// How long the gate is watched without sleeping: calls in flight are usually a matter of microseconds.
const SPIN: Duration = Duration::from_micros(200);
const STEP: Duration = Duration::from_millis(1);
/// How long threads have to take their turn.
const TURN: Duration = Duration::from_millis(5);
/// What a job that has no work any more may take to be idle beyond its time.
const LAST: Duration = Duration::from_millis(20);

/// How a process is asked to fall quiet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// The gate stays closed until it is quiet.
    AtOnce,
    /// No thread is held for longer than this at a time.
    InTurns(Duration),
    /// The process continues to where no other rank waits for it, as often as the agent says.
    AtCut,
}

/// What the agent says about the cut that it looks for.
enum News {
    /// Other ranks wait for this.
    Continue(Vec<Count>),
    /// Nobody waits for anybody.
    Settle,
}

/// Why an attempt to fall quiet ended early.
enum Stop {
    Refused(Refusal),
    /// The agent took the request back.
    Abandoned,
    End(End),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Stop::Refused(refusal)
    }
}

impl Control {
    /// Serves `Quiesce`, `QuiesceInTurns` and `QuiesceAtCut`: for `timeout` in all. `Err` if the connection ended meanwhile.
    pub(super) fn quiesce(
        &mut self,
        socket: &Arc<OwnedFd>,
        seq: Sequence,
        timeout: Duration,
        manner: Manner,
    ) -> Result<(), End> {
        self.end_credit();
        let mut began = None;
        let outcome = match self.phase {
            Phase::Running => match self.hopeless(timeout, manner) {
                Some(refusal) => Err(refusal.into()),
                None => {
                    began = Some(Instant::now());
                    self.try_quiesce(socket, seq, timeout, manner)
                }
            },
            _ => {
                let refusal = Refusal::Other(format!("Quiesce({seq}) during another attempt"));
                return say(
                    socket,
                    &ToAgent::Quiesced {
                        seq,
                        outcome: Err(refusal),
                    },
                );
            }
        };
        let outcome = match outcome {
            Ok(facts) => {
                log::debug!(
                    "quiesce {seq} gate_us={} sync_us={} export_us={}",
                    facts.gate_ns / 1000,
                    facts.sync_ns / 1000,
                    facts.export_ns / 1000
                );
                self.phase = Phase::Quiesced(seq);
                self.end_watch();
                Ok(facts)
            }
            Err(stop) => {
                self.end_watch();
                ranks::give_up();
                gate::open();
                match stop {
                    Stop::Refused(refusal) => Err(refusal),
                    Stop::Abandoned => return Ok(()),
                    Stop::End(end) => return Err(end),
                }
            }
        };
        if let Err(refusal) = &outcome {
            // What the agent sees is longer: it has to be heard, and answered.
            let held = began.map_or(Duration::ZERO, |began| began.elapsed());
            log::debug!("quiesce {seq} held_us={}: {refusal}", held.as_micros());
        }
        say(socket, &ToAgent::Quiesced { seq, outcome })
    }

    /// Why a quiesce would come to nothing, as far as that is known without closing the gate.
    fn hopeless(&self, timeout: Duration, manner: Manner) -> Option<Refusal> {
        if hints::in_section() {
            return Some(Refusal::Section);
        }
        if capture::any() {
            return Some(Refusal::Capturing);
        }
        if manner == Manner::AtCut && ranks::are_too_many() {
            let refusal = "the process has more NCCL communicators, or peers in them, than a checkpoint can bring to a common point";
            return Some(Refusal::Other(refusal.to_owned()));
        }
        if manner == Manner::AtCut {
            // How long work takes that waits for ranks which are held says nothing.
            return None;
        }
        let lasts = synchronizer::take_lasts();
        if self.is_watched() {
            // This process, or another one of the job's, has just waited for what was in flight, whatever was known of it.
            return None;
        }
        if let Some(lasts) = lasts.filter(|lasts| *lasts > timeout) {
            return Some(Refusal::Slow {
                needs_ms: u32::try_from(lasts.as_millis()).unwrap_or(u32::MAX),
            });
        }
        // What the last one gave up waiting for has not ended yet; one in turns waits for that as well.
        (synchronizer::is_busy() && manner == Manner::AtOnce).then_some(Refusal::Timeout)
    }

    fn try_quiesce(
        &mut self,
        socket: &Arc<OwnedFd>,
        seq: Sequence,
        timeout: Duration,
        manner: Manner,
    ) -> Result<QuiesceFacts, Stop> {
        if driver::copies_mapped() > 1 {
            unsupported::set(Reason::SeveralDrivers);
        }
        unsupported::set_bypassed(bypass::objects());
        supported()?;
        let start = Instant::now();
        if !gate::close() {
            return Err(cannot_tell());
        }
        // Who has ended a step waits at the gate from here on, or continues to the cut.
        hints::STEP_ENDS.forget();
        let end = start + timeout;
        let hold = match manner {
            Manner::InTurns(hold) => hold,
            Manner::AtOnce | Manner::AtCut => timeout,
        };
        let cut = match manner {
            Manner::AtCut => Some(self.find_cut(socket, seq, end)?),
            Manner::AtOnce | Manner::InTurns(_) => None,
        };
        let (until, gate_ns) = loop {
            let until = end.min(Instant::now() + hold);
            match self.settle(socket, start, until) {
                Err(Stop::Refused(Refusal::Timeout)) if Instant::now() < end => {
                    self.give_turn(socket)?;
                }
                Err(stop) => return Err(stop),
                Ok(gate_ns) => break (until.max(Instant::now() + LAST), gate_ns),
            }
        };
        // No work is enqueued any more, so what blocks until it is done ends now; then queries are held as well.
        if !gate::close_entirely() {
            return Err(cannot_tell());
        }
        self.wait_for_calls(socket, until, gate::is_idle)?;
        if gate::was_nested() {
            self.wait_for_contexts(socket, until)?;
        }
        if cut.is_some_and(|cut| cut != ranks::counts()) {
            // A call that had passed the gate was counted too late for the others to hear of it.
            return Err(Refusal::Timeout.into());
        }
        if hints::in_section() {
            // It was begun before the gate was closed.
            return Err(Refusal::Section.into());
        }
        let sync_ns = start.elapsed().saturating_sub(gate_ns);
        memory::plain::free_deferred_while_closed();

        let export_start = Instant::now();
        let bytes = memory::native::reserved_bytes(self.devices.len() as i32);
        if bytes > 0 {
            say(socket, &ToAgent::Native { seq, bytes }).map_err(Stop::End)?;
        }
        // In turns each thread has made calls since.
        if let Some(place) = self.place().filter(|_| manner == Manner::AtOnce) {
            say(socket, &ToAgent::Place { seq, place }).map_err(Stop::End)?;
        }
        if let Some(step) = hints::step() {
            say(socket, &ToAgent::Step { seq, step }).map_err(Stop::End)?;
        }
        send_table(socket, seq)?;
        // Whether they can be made anew shows before anything is let go.
        self.tell_multicasts(socket, seq).map_err(Stop::End)?;
        Ok(QuiesceFacts {
            gate_ns: gate_ns.as_nanos() as u64,
            sync_ns: sync_ns.as_nanos() as u64,
            export_ns: export_start.elapsed().as_nanos() as u64,
        })
    }

    /// Says what was issued and continues as far as the agent says, until no rank is behind another; what was issued then. The gate is
    /// closing, and is so in the end.
    fn find_cut(
        &mut self,
        socket: &Arc<OwnedFd>,
        seq: Sequence,
        end: Instant,
    ) -> Result<Vec<Count>, Stop> {
        let mut continues = false;
        let mut told = None;
        loop {
            if continues && ranks::have_arrived() {
                continues = false;
                if !gate::close() {
                    return Err(cannot_tell());
                }
            }
            if !continues {
                // Calls that were let in may not have been counted yet.
                let spin = Instant::now();
                while !gate::is_quiet() && spin.elapsed() < SPIN {
                    std::hint::spin_loop();
                }
            }
            // Who is still inside has issued more than is counted, or will have.
            let position = (!continues && gate::is_quiet(), ranks::counts());
            if told.as_ref() != Some(&position) {
                let (held, counts) = position.clone();
                let message = ToAgent::Position { seq, held, counts };
                // An agent that is slow to listen must not keep the gate closed: it is told in the next round.
                if link::try_send_on(socket, &message)
                    .map_err(|e| Stop::End(End::Lost(e.to_string())))?
                {
                    told = Some(position);
                }
            }
            if Instant::now() >= end {
                return Err(Refusal::Timeout.into());
            }
            match self.listen_for_news(socket, STEP)? {
                Some((of, News::Continue(goals))) if of == seq => {
                    continues |= ranks::pursue(goals);
                    told = None;
                }
                Some((of, News::Settle)) if of == seq && !continues => {
                    return Ok(told.map_or_else(Vec::new, |(_, counts)| counts));
                }
                _ => {}
            }
        }
    }

    /// Lets every thread that waits make one call.
    fn give_turn(&mut self, socket: &Arc<OwnedFd>) -> Result<(), Stop> {
        let until = Instant::now() + TURN;
        gate::begin_turn();
        let mut listened = Ok(());
        while listened.is_ok() && Instant::now() < until {
            listened = self.listen_for_news(socket, STEP).map(drop);
            gate::remind();
        }
        gate::end_turn();
        listened
    }

    /// Waits until no call is in flight and no context has work. How long after `start` the calls had left.
    fn settle(
        &mut self,
        socket: &Arc<OwnedFd>,
        start: Instant,
        until: Instant,
    ) -> Result<Duration, Stop> {
        self.wait_for_calls(socket, until, gate::is_quiet)?;
        let left = start.elapsed();
        if capture::any() {
            return Err(Refusal::Capturing.into());
        }
        // Once more: a call that was in flight may have changed the answer.
        supported()?;
        context::find_primary_contexts(self.devices.len() as i32);
        self.wait_for_contexts(socket, until)?;
        Ok(left)
    }

    /// Waits until the calls that the gate no longer lets in have left.
    fn wait_for_calls(
        &mut self,
        socket: &Arc<OwnedFd>,
        until: Instant,
        left: impl Fn() -> bool,
    ) -> Result<(), Stop> {
        let spin = Instant::now();
        while !left() {
            if Instant::now() >= until {
                return Err(Refusal::Timeout.into());
            }
            if spin.elapsed() < SPIN {
                std::hint::spin_loop();
            } else {
                self.listen_for_news(socket, STEP)?;
                gate::forget_the_dead();
            }
        }
        Ok(())
    }

    /// Waits until no context has work.
    fn wait_for_contexts(&mut self, socket: &Arc<OwnedFd>, until: Instant) -> Result<(), Stop> {
        // One that was given up ends when the work does that it was begun for.
        while synchronizer::outcome(STEP).is_none() {
            if Instant::now() >= until {
                return Err(Refusal::Timeout.into());
            }
            self.listen_for_news(socket, Duration::ZERO)?;
        }
        synchronizer::begin(context::live())
            .map_err(|error| Refusal::Other(format!("cannot start a thread: {error}")))?;
        let result = loop {
            if let Some(result) = synchronizer::outcome(STEP) {
                break result;
            }
            if Instant::now() >= until {
                synchronizer::cancel();
                return Err(Refusal::Timeout.into());
            }
            if let Err(stop) = self.listen_for_news(socket, Duration::ZERO) {
                synchronizer::cancel();
                return Err(stop);
            }
        };
        match result {
            abi::SUCCESS => Ok(()),
            abi::STREAM_CAPTURE_UNSUPPORTED..=abi::STREAM_CAPTURE_WRONG_THREAD => {
                Err(Refusal::Capturing.into())
            }
            result => Err(Refusal::Driver {
                call: "cuCtxSynchronize".to_owned(),
                result,
            }
            .into()),
        }
    }

    /// Serves what must not wait for the quiesce, for at most `limit`. What is said about the cut of which attempt.
    fn listen_for_news(
        &mut self,
        socket: &Arc<OwnedFd>,
        limit: Duration,
    ) -> Result<Option<(Sequence, News)>, Stop> {
        match receive(socket, limit) {
            Ok(None) => Ok(None),
            Ok(Some((ToShim::Resume { .. }, _))) => Err(Stop::Abandoned),
            Ok(Some((ToShim::Continue { seq, goals }, _))) => {
                Ok(Some((seq, News::Continue(goals))))
            }
            Ok(Some((ToShim::Settle { seq }, _))) => Ok(Some((seq, News::Settle))),
            // The gate is this try's.
            Ok(Some((
                ToShim::Watch { .. } | ToShim::WatchFor { .. } | ToShim::AwaitStep { .. },
                _,
            ))) => Ok(None),
            Ok(Some((
                ToShim::Quiesce { seq, .. }
                | ToShim::QuiesceInTurns { seq, .. }
                | ToShim::QuiesceAtCut { seq, .. },
                _,
            ))) => {
                let refusal = Refusal::Other(format!("Quiesce({seq}) during another attempt"));
                say(
                    socket,
                    &ToAgent::Quiesced {
                        seq,
                        outcome: Err(refusal),
                    },
                )
                .map_err(Stop::End)?;
                Ok(None)
            }
            Ok(Some((message, fds))) => match self.handle(socket, message, fds) {
                Ok(()) => Ok(None),
                Err(end) => Err(Stop::End(end)),
            },
            Err(end) => Err(Stop::End(end)),
        }
    }
}

fn cannot_tell() -> Stop {
    Refusal::Other(
        "the kernel refuses membarrier, which it offered before, so it cannot be told which threads are inside the \
         driver: allow the system call in the seccomp profile"
            .to_owned(),
    )
    .into()
}

fn supported() -> Result<(), Refusal> {
    unsupported::text().map_or(Ok(()), |text| Err(Refusal::Unsupported(text)))
}

/// Exports what the agent does not hold and sends the table. The gate is closed and idle: nothing changes meanwhile.
fn send_table(socket: &OwnedFd, seq: Sequence) -> Result<(), Stop> {
    let mut registry = registry::lock();
    let mut imported: Vec<AllocationKey> = Vec::new();
    let mut own: Vec<u64> = Vec::new();
    for (id, physical) in registry.all() {
        match physical.origin {
            // Taken apart and made anew: nobody holds it meanwhile.
            _ if physical.is_multicast() => {}
            Origin::Own => own.push(id),
            Origin::Imported(key) => imported.push(key),
            Origin::Foreign(_) => {}
        }
    }
    imported.sort_unstable();
    imported.dedup();
    if !own.is_empty() || !imported.is_empty() {
        descriptors_left(socket)?;
    }
    let mut imported = imported.chunks(BATCH);
    let mut own = own.into_iter().peekable();
    while own.peek().is_some() {
        let mut entries = Vec::new();
        let mut fds: Vec<OwnedFd> = Vec::new();
        let mut sent: Vec<u64> = Vec::new();
        while entries.len() < BATCH && fds.len() < SHIM_FDS {
            let Some(id) = own.next() else { break };
            let Some(physical) = registry.physical_mut(id) else {
                continue;
            };
            if !physical.held {
                fds.push(export(physical)?);
                sent.push(id);
            }
            entries.push(TableEntry {
                allocation: registry::describe(mode::member(), id, physical),
                requested: physical.requested,
                with_fd: !physical.held,
            });
        }
        let message = ToAgent::Table {
            seq,
            entries,
            imported: imported.next().unwrap_or_default().to_vec(),
        };
        let borrowed: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        link::send_on(socket, &message, &borrowed)
            .map_err(|e| Stop::End(End::Lost(e.to_string())))?;
        for id in sent {
            if let Some(physical) = registry.physical_mut(id) {
                physical.held = true;
                physical.fd = None;
            }
        }
    }
    for rest in imported {
        let message = ToAgent::Table {
            seq,
            entries: Vec::new(),
            imported: rest.to_vec(),
        };
        link::send_on(socket, &message, &[]).map_err(|e| Stop::End(End::Lost(e.to_string())))?;
    }
    Ok(())
}

/// Descriptors that an attach needs beside a packet of fds: the socket and what the driver opens.
const SPARE: usize = 8;

/// Whether the process has the descriptors that an export and the attach take. Found out before anything is let go: a
/// process that could not take its memory back would be lost.
fn descriptors_left(socket: &OwnedFd) -> Result<(), Refusal> {
    let wanted = SHIM_FDS + SPARE;
    let mut tried: Vec<OwnedFd> = Vec::with_capacity(wanted);
    for _ in 0..wanted {
        match rustix::io::fcntl_dupfd_cloexec(socket, 0) {
            Ok(fd) => tried.push(fd),
            Err(error) => {
                let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
                return Err(Refusal::Other(format!(
                    "the process has {} file descriptors left of {} ({error}), and a checkpoint needs {wanted}: raise \
                     ulimit -n, or have it close files",
                    tried.len(),
                    limit
                        .current
                        .map_or("unlimited".to_owned(), |n| n.to_string()),
                )));
            }
        }
    }
    Ok(())
}

fn export(physical: &mut registry::Physical) -> Result<OwnedFd, Refusal> {
    if let Some(fd) = physical.fd.as_ref().and_then(|fd| fd.try_clone().ok()) {
        return Ok(fd);
    }
    let Some(handle) = physical.real.filter(|_| physical.exportable) else {
        unsupported::set(Reason::LostMemory);
        return Err(Refusal::Unsupported(
            unsupported::text().unwrap_or_default(),
        ));
    };
    let fd =
        share::export(handle).map_err(|result| refused("cuMemExportToShareableHandle", result))?;
    instances::learn(physical.device, fd.as_fd());
    Ok(fd)
}
