//! Handles what the shims say, and the ends of their connections and processes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_policies::cut::Standing;
use phos_protocol::agent::{JobState, ToSidecar};
use phos_protocol::shim::{
    COUNTS, Count, HELD, Refusal, Sequence, ShimState, ToAgent as FromShim, ToShim, Usage,
};
use phos_protocol::types::{
    Allocation, AllocationId, AllocationKey, AllocationKind, Device, GpuUuid, MemberId, ProcessId,
};
use rustix::event::{PollFd, PollFlags, poll};

use super::Init;
use super::hints::HintsTold;
use super::requests::Tell;
use crate::attempt::Input;
use crate::attempt::counts::position;
use crate::attempt::rejoin::Done;
use crate::channels::lines;
use crate::channels::link::timespec;
use crate::channels::shims::{ConnectionId, CudaProcess, End, watch};
use crate::vault::Entry;

/// How a process gives the agent memory that it shares.
enum Handle {
    /// The agent has it from before.
    Known,
    /// Beside the message.
    Brought(OwnedFd),
    /// The message announces a descriptor that did not come.
    Missing,
}

impl Init {
    /// Sends to a shim; a failure ends the connection as if it had been closed.
    pub(super) fn tell_shim(&mut self, id: ConnectionId, message: &ToShim) -> bool {
        self.send_shim(id, message.clone(), Vec::new())
    }

    pub(super) fn send_shim(
        &mut self,
        id: ConnectionId,
        message: ToShim,
        fds: Vec<Arc<OwnedFd>>,
    ) -> bool {
        let sent = self.shims.send(id, message, fds);
        if !sent {
            self.on_shim_closed(id, None);
        }
        sent
    }

    /// Sends a process all its memory and asks it to attach.
    pub(super) fn send_memory(&mut self, id: ConnectionId, pid: ProcessId, seq: Sequence) -> bool {
        let entries = self.vault.memory_of(pid);
        for batch in entries.chunks(phos_protocol::channel::SHIM_FDS) {
            let keys = batch.iter().map(|e| e.allocation.key).collect();
            let fds = batch.iter().map(|e| e.shared()).collect();
            if !self.shims.send(id, ToShim::Memory { seq, keys }, fds) {
                return false;
            }
        }
        self.shims.send(id, ToShim::Attach { seq }, Vec::new())
    }

    pub(super) fn on_shim(&mut self, id: ConnectionId, message: FromShim, fds: Vec<OwnedFd>) {
        let Some(connection) = self.shims.get_mut(id) else {
            return;
        };
        let pid = connection.pid;
        match message {
            FromShim::Hello {
                pid: said,
                instance,
                state,
                devices,
            } if said == pid && !connection.greeted => {
                connection.greeted = true;
                self.on_hello(id, pid, instance, state, devices);
            }
            FromShim::Hello { .. } => self.disconnect(id, pid, "said a hello that does not fit"),
            _ if !connection.greeted => self.disconnect(id, pid, "did not say hello first"),
            message => self.on_message(id, pid, message, fds),
        }
    }

    /// What a process says after its hello.
    fn on_message(
        &mut self,
        id: ConnectionId,
        pid: ProcessId,
        message: FromShim,
        fds: Vec<OwnedFd>,
    ) {
        match message {
            FromShim::Hello { .. } => {}
            FromShim::Table {
                seq,
                entries,
                imported,
            } => self.attempt_table(pid, seq, entries, imported, fds),
            FromShim::Quiesced { seq, outcome } => self.on_quiesced(pid, seq, outcome.map(drop)),
            FromShim::Native { seq, bytes } => self.attempt(Input::Native { pid, seq, bytes }),
            FromShim::Detached { seq, outcome } => {
                let outcome = outcome.map_err(in_plain_words);
                self.attempt(Input::Detached { pid, seq, outcome });
            }
            FromShim::Attached { seq, outcome } => {
                self.shim_attached(pid, seq, outcome.map_err(in_plain_words))
            }
            FromShim::Multicasts {
                seq,
                attached,
                held,
            } => self.on_multicasts(Input::Multicasts {
                pid,
                seq,
                attached,
                held,
            }),
            FromShim::Remade {
                seq,
                object,
                outcome,
            } => self.on_remade(pid, seq, object, outcome, fds.into_iter().next()),
            FromShim::Joined { seq, outcome } => {
                self.on_rejoined(pid, seq, outcome.map(|()| Done::Joined));
            }
            FromShim::Bound { seq, outcome } => {
                self.on_rejoined(pid, seq, outcome.map(|()| Done::Bound));
            }
            FromShim::OutOfMemory { device, bytes } => {
                self.on_out_of_memory(id, pid, device, bytes)
            }
            FromShim::Share {
                allocation,
                with_fd,
            } => {
                let handle = match (with_fd, fds.into_iter().next()) {
                    (true, Some(fd)) => Handle::Brought(fd),
                    (true, None) => Handle::Missing,
                    (false, _) => Handle::Known,
                };
                self.on_share(id, pid, allocation, handle);
            }
            FromShim::Identify => self.on_identify(id, pid, fds.first().map(AsFd::as_fd)),
            FromShim::Fetch { key, instance } => self.on_fetch(id, pid, key, instance),
            FromShim::LetGo { keys } => {
                let keys = self.vault.let_go(pid, &keys);
                self.tell_freed(keys);
            }
            FromShim::Freed { ids } => self.on_freed(pid, &ids),
            FromShim::Unsupported { reason } => {
                self.set_unsupported(pid, Some(lines::plain(&reason)));
            }
            FromShim::Supported => self.set_unsupported(pid, None),
            FromShim::Instrumented => self.note(pid, |process| process.instrumented = true),
            FromShim::Watches => self.note(pid, |process| process.watches = true),
            FromShim::TakesCredit => self.note(pid, |process| process.takes_credit = true),
            FromShim::Place { seq, place } => {
                self.note(pid, |process| process.place = Some((seq, place)));
            }
            FromShim::Spent { seq } => {
                self.sidecar.send(&ToSidecar::Spent { seq }, &[]);
            }
            FromShim::Communicates => self.note(pid, |process| process.communicates = true),
            FromShim::TellsEnd => self.note(pid, CudaProcess::will_tell_end),
            FromShim::Ends { code } => self.note(pid, |process| process.end = End::Told(code)),
            FromShim::Position { seq, held, counts } => {
                let standing = match held {
                    true => Standing::Held,
                    false => Standing::Continues,
                };
                self.on_position(id, pid, seq, standing, &counts);
            }
            FromShim::Moment { seq } => self.on_moment(pid, seq),
            FromShim::Hints { steps } => {
                self.note(pid, |process| process.steps |= steps);
                self.on_hints(id, pid);
            }
            FromShim::Request => self.on_request(pid),
            FromShim::Step { seq, step } => self.on_step(pid, seq, step),
            FromShim::Usage(usage) => self.on_usage(pid, usage),
        }
    }

    /// A process has fallen quiet, or says why not.
    fn on_quiesced(&mut self, pid: ProcessId, seq: Sequence, outcome: Result<(), Refusal>) {
        let outcome = outcome.map_err(in_plain_words);
        // Whoever was keeps it: it is the one to be watched.
        let is_busy = matches!(outcome, Err(Refusal::Timeout | Refusal::Slow { .. }));
        self.note(pid, |process| process.busy |= is_busy);
        self.attempt(Input::Quiesced { pid, seq, outcome });
    }

    /// A process asks what that descriptor is.
    fn on_identify(&mut self, id: ConnectionId, pid: ProcessId, fd: Option<BorrowedFd<'_>>) {
        let memory = fd.and_then(|fd| self.vault.identify(fd));
        if let Some(allocation) = memory {
            self.vault.note_import(pid, allocation.key);
        }
        let found = memory.or_else(|| self.multicasts.identify(fd?));
        self.tell_shim(id, &ToShim::Identified(found));
    }

    /// A process says what memory it has.
    fn on_usage(&mut self, pid: ProcessId, usage: Usage) {
        let (taken_over, native) = (usage.taken_over, usage.native);
        tracing::debug!(pid, taken_over, native, "memory on GPUs");
        self.note(pid, |process| process.usage = Some(usage));
    }

    /// The program asks for a checkpoint.
    fn on_request(&mut self, pid: ProcessId) {
        if self.hints.may_ask(Instant::now()) {
            tracing::debug!(pid, "the program asks for a checkpoint");
            self.sidecar.send(&ToSidecar::Request, &[]);
        }
    }

    /// A process has ended a step while it is asked to fall quiet: the sidecar is told once for each.
    fn on_step(&mut self, pid: ProcessId, seq: Sequence, step: u64) {
        let is_due = self.attempt_expects_table(pid, seq)
            && (self.processes.get_mut(&pid))
                .is_some_and(|process| process.step_said.replace(seq) != Some(seq));
        if is_due {
            self.sidecar.send(&ToSidecar::Step { seq, step }, &[]);
        }
    }

    /// Notes what a process has said of itself.
    fn note(&mut self, pid: ProcessId, what: impl FnOnce(&mut CudaProcess)) {
        if let Some(process) = self.processes.get_mut(&pid) {
            what(process);
        }
    }

    /// A process says what its ranks have issued.
    fn on_position(
        &mut self,
        id: ConnectionId,
        pid: ProcessId,
        seq: Sequence,
        standing: Standing,
        counts: &[Count],
    ) {
        if counts.len() > COUNTS {
            self.disconnect(id, pid, "says more counts than fit");
            return;
        }
        self.attempt(Input::Position {
            pid,
            seq,
            standing,
            position: position(counts),
        });
    }

    /// A process has freed that.
    fn on_freed(&mut self, pid: ProcessId, ids: &[AllocationId]) {
        self.multicasts.free(pid, ids);
        let keys = self.vault.free(pid, ids);
        self.tell_freed(keys);
    }

    fn tell_freed(&mut self, keys: Vec<AllocationKey>) {
        if !keys.is_empty() {
            self.sidecar.send(&ToSidecar::Freed { keys }, &[]);
        }
    }

    /// A process has waited for its own work. The first one that does is the one that was watched for.
    fn on_moment(&mut self, pid: ProcessId, seq: u64) {
        if let Some(watching) = &mut self.watching
            && watching.seq == seq
            && !std::mem::replace(&mut watching.told, true)
        {
            tracing::debug!(pid, seq, "the job has waited for its work");
            let waited = true;
            self.sidecar.send(&ToSidecar::Moment { seq, waited }, &[]);
        }
    }

    /// The program of a process uses hints: the sidecar is told what is new about that, and the process which checkpoint is the newest.
    fn on_hints(&mut self, id: ConnectionId, pid: ProcessId) {
        self.note(pid, |process| process.hints = true);
        self.tell_hints(HintsTold::OnlyNews);
        if self.hints.is_newest_known {
            let newest = self.hints.newest;
            self.tell_shim(id, &ToShim::Newest(newest));
        }
    }

    /// Ends a connection on which somebody says what no shim says.
    fn disconnect(&mut self, id: ConnectionId, pid: ProcessId, what: &str) {
        if self.shims.lines.may(Instant::now()) {
            tracing::warn!(pid, "a shim {what}: disconnected");
        }
        self.on_shim_closed(id, None);
    }

    fn on_hello(
        &mut self,
        id: ConnectionId,
        pid: ProcessId,
        instance: u64,
        state: ShimState,
        mut devices: Vec<Device>,
    ) {
        // The sidecar hears where they are: one that was started after a move cannot know it. A process that began after
        // the move names its GPUs rightly.
        let moved = state != ShimState::Fresh;
        for device in devices.iter_mut().filter(|_| moved) {
            if let Some((_, at)) = self.job.moved.iter().find(|(n, _)| *n == device.uuid) {
                device.uuid = *at;
            }
        }
        tracing::debug!(pid, ?state, devices = devices.len(), "shim connected");
        let known = self
            .processes
            .get(&pid)
            .is_some_and(|p| p.instance == instance);
        if state == ShimState::Fresh || (!known && state == ShimState::Running) {
            // Another program under this PID, or nothing of it is known: whatever was held is not its.
            self.vault.forget(pid);
            self.multicasts.forget(pid);
        }
        // What a process has said of its end holds.
        let end = (self.processes.get(&pid))
            .filter(|_| known)
            .map_or(End::default(), |p| p.end);
        let old = self.processes.insert(
            pid,
            CudaProcess {
                instance,
                devices,
                connection: Some(id),
                alive: watch(pid),
                unsupported: None,
                instrumented: false,
                usage: None,
                watches: false,
                takes_credit: false,
                place: None,
                communicates: false,
                busy: false,
                hints: false,
                steps: false,
                step_said: None,
                end,
            },
        );
        if let Some(old) = old.and_then(|p| p.connection) {
            self.shims.close(old);
        }
        let held = if state == ShimState::Fresh {
            Vec::new()
        } else {
            self.vault.held(pid)
        };
        if !self.welcome(id, held) {
            return;
        }
        self.shim_connected(id, pid, state);
    }

    /// `Welcome`, in as many packets as the list takes: one that is not full is the last.
    fn welcome(&mut self, id: ConnectionId, held: Vec<u64>) -> bool {
        let mut rest = &held[..];
        loop {
            let (part, more) = rest.split_at(rest.len().min(HELD));
            let message = ToShim::Welcome {
                held: part.to_vec(),
            };
            if !self.tell_shim(id, &message) {
                return false;
            }
            if part.len() < HELD {
                return true;
            }
            rest = more;
        }
    }

    /// A process opens memory that another one has given it a handle of.
    fn on_fetch(&mut self, id: ConnectionId, pid: ProcessId, key: AllocationKey, instance: u64) {
        // A PID may have been used again, and the number of an allocation with it.
        let same = self
            .processes
            .get(&key.owner.process)
            .is_some_and(|p| p.instance == instance);
        let found = self.vault.get(&key);
        let found = found.filter(|_| same && self.vault.is_shared(&key));
        let found = found.map(|entry| (entry.allocation, entry.shared()));
        let (allocation, fds) = match found {
            Some((allocation, fd)) => {
                self.vault.note_import(pid, key);
                (Some(allocation), vec![fd])
            }
            None => (None, Vec::new()),
        };
        self.send_shim(id, ToShim::Identified(allocation), fds);
    }

    fn on_out_of_memory(&mut self, id: ConnectionId, pid: ProcessId, device: i32, bytes: u64) {
        if self.waiting_for_memory.contains(&id) {
            // One answer is for all its threads.
            return;
        }
        let gpu: Option<GpuUuid> = self.processes.get(&pid).and_then(|p| {
            p.devices
                .iter()
                .find(|d| d.ordinal == device)
                .map(|d| d.uuid)
        });
        if let Some(gpu) = gpu
            && self.sidecar.is_connected()
            && self
                .sidecar
                .send(&ToSidecar::NeedMemory { gpu, bytes }, &[])
        {
            self.waiting_for_memory.push(id);
        } else {
            self.tell_shim(id, &ToShim::MemoryReleased);
        }
    }

    fn on_share(
        &mut self,
        id: ConnectionId,
        pid: ProcessId,
        allocation: Allocation,
        handle: Handle,
    ) {
        let is_multicast = matches!(allocation.kind, AllocationKind::Multicast { .. });
        let answer = if allocation.key.owner != MemberId::here(pid) {
            Err(format!(
                "process {pid} exports an allocation of process {}",
                allocation.key.owner
            ))
        } else if is_multicast {
            if let Handle::Brought(fd) = handle {
                self.multicasts.keep(allocation, fd);
            }
            Ok(())
        } else {
            match handle {
                Handle::Brought(fd) => {
                    self.vault.insert(allocation, allocation.bytes, fd);
                    Ok(())
                }
                Handle::Missing => Err("the fd is missing".into()),
                Handle::Known => Ok(()),
            }
        };
        let answer = answer.and_then(|()| {
            let fd = match is_multicast {
                true => self.multicasts.fd(&allocation.key),
                false => self.vault.get(&allocation.key).map(Entry::shared),
            };
            fd.ok_or_else(|| "the agent does not hold this allocation".to_owned())
        });
        if answer.is_ok() {
            self.vault.note_shared(allocation.key);
        }
        let (answer, fds) = match answer {
            Ok(fd) => (Ok(()), vec![fd]),
            Err(e) => (Err(e), Vec::new()),
        };
        self.send_shim(id, ToShim::Shared(answer), fds);
    }

    /// A connection ended.
    pub(super) fn on_shim_closed(&mut self, id: ConnectionId, why: Option<&str>) {
        self.shims.close(id);
        self.waiting_for_memory.retain(|w| *w != id);
        let Some((&pid, process)) = self
            .processes
            .iter_mut()
            .find(|(_, p)| p.connection == Some(id))
        else {
            return;
        };
        process.connection = None;
        if let Some(why) = why
            && self.shims.lines.may(Instant::now())
        {
            tracing::warn!(pid, why, "a shim's connection is unusable");
        }
        self.attempt(Input::Disconnected {
            pid,
            why: why.map(str::to_owned),
        });
        self.restore_connection_lost(pid);
    }

    /// Looks for processes with CUDA that have ended.
    pub(super) fn watch_processes(&mut self) {
        let ended: Vec<ProcessId> = self
            .processes
            .iter()
            .filter(|(_, p)| p.alive.as_ref().is_some_and(has_ended))
            .map(|(&pid, _)| pid)
            .collect();
        for pid in ended {
            self.rank_may_be_missing(pid);
            self.forget_process(pid);
        }
    }

    /// A process with CUDA ended (or became a program without).
    pub(super) fn forget_process(&mut self, pid: ProcessId) {
        let Some(process) = self.processes.remove(&pid) else {
            return;
        };
        tracing::debug!(pid, "a process with CUDA ended");
        if let Some(id) = process.connection {
            self.shims.close(id);
        }
        // The main process's memory may be of use to the restore that follows.
        if self.job.root != Some(pid) && matches!(self.job.state, JobState::Running) {
            self.vault.forget(pid);
            self.multicasts.forget(pid);
        }
        if process.unsupported.is_some() {
            self.tell_unsupported(Tell::AlsoNothing);
        }
        self.attempt_process_gone(pid);
        self.restore_process_gone(pid);
    }

    /// Why a process rules checkpoints out, if one does.
    pub(super) fn unsupported(&self) -> Option<(ProcessId, Refusal)> {
        self.processes
            .iter()
            .find_map(|(&pid, p)| Some((pid, Refusal::Unsupported(p.unsupported.clone()?))))
    }
}

/// A refusal with texts as they go into logs and answers.
pub(super) fn in_plain_words(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Unsupported(what) => Refusal::Unsupported(lines::plain(&what)),
        Refusal::Other(what) => Refusal::Other(lines::plain(&what)),
        Refusal::Driver { call, result } => Refusal::Driver {
            call: lines::plain(&call),
            result,
        },
        Refusal::Timeout | Refusal::Capturing | Refusal::Slow { .. } | Refusal::Section => refusal,
    }
}

fn has_ended(alive: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(alive, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&timespec(Duration::ZERO))), Ok(n) if n > 0)
}
