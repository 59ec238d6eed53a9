//! Quiesce: gate closed, nothing in flight, every context idle, the table sent.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_protocol::channel::BATCH;
use phos_protocol::shim::{QuiesceFacts, Refusal, Sequence, TableEntry, ToAgent, ToShim};
use phos_protocol::types::AllocationKey;

use super::{Control, End, Phase, link, receive, synchronizer};
use crate::registry::{self, Origin};
use crate::table::real;
use crate::unsupported::{self, Reason};
use crate::{abi, capture, context, driver, gate, instances, log, memory, mode};

/// How long the gate is watched without sleeping: calls in flight are usually a matter of microseconds.
const SPIN: Duration = Duration::from_micros(200);
const STEP: Duration = Duration::from_millis(1);

/// Why the attempt ended.
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
    /// Serves `Quiesce`. `Err` if the connection ended meanwhile.
    pub(super) fn quiesce(
        &mut self,
        socket: &Arc<OwnedFd>,
        seq: Sequence,
        timeout_ms: u32,
    ) -> Result<(), End> {
        let outcome = match self.phase {
            Phase::Running => {
                self.try_quiesce(socket, seq, Duration::from_millis(timeout_ms.into()))
            }
            _ => {
                let refusal = Refusal::Other(format!("Quiesce({seq}) during another attempt"));
                return send(
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
                self.phase = Phase::Quiesced(seq);
                Ok(facts)
            }
            Err(stop) => {
                gate::open();
                match stop {
                    Stop::Refused(refusal) => Err(refusal),
                    Stop::Abandoned => return Ok(()),
                    Stop::End(end) => return Err(end),
                }
            }
        };
        if let Err(refusal) = &outcome {
            log::debug!("quiesce {seq}: {refusal}");
        }
        send(socket, &ToAgent::Quiesced { seq, outcome })
    }

    fn try_quiesce(
        &mut self,
        socket: &Arc<OwnedFd>,
        seq: Sequence,
        timeout: Duration,
    ) -> Result<QuiesceFacts, Stop> {
        if driver::copies_mapped() > 1 {
            unsupported::set(Reason::SeveralDrivers, true);
        }
        supported()?;
        let start = Instant::now();
        gate::close();
        loop {
            if gate::is_idle() {
                break;
            }
            if start.elapsed() >= timeout {
                return Err(Refusal::Timeout.into());
            }
            if start.elapsed() < SPIN {
                std::hint::spin_loop();
            } else {
                self.listen(socket, STEP)?;
            }
        }
        let gate_ns = start.elapsed();
        if capture::any() {
            return Err(Refusal::Capturing.into());
        }
        // Once more: a call that was in flight may have changed the answer.
        supported()?;

        let sync_start = Instant::now();
        while synchronizer::is_busy() {
            if start.elapsed() >= timeout {
                return Err(Refusal::Timeout.into());
            }
            self.listen(socket, STEP)?;
        }
        context::find_primary_contexts(self.devices.len() as i32);
        synchronizer::begin(context::live())
            .map_err(|error| Refusal::Other(format!("cannot start a thread: {error}")))?;
        let result = loop {
            if let Some(result) = synchronizer::outcome(STEP) {
                break result;
            }
            if start.elapsed() >= timeout {
                synchronizer::cancel();
                return Err(Refusal::Timeout.into());
            }
            if let Err(stop) = self.listen(socket, Duration::ZERO) {
                synchronizer::cancel();
                return Err(stop);
            }
        };
        match result {
            abi::SUCCESS => {}
            abi::STREAM_CAPTURE_UNSUPPORTED..=abi::STREAM_CAPTURE_WRONG_THREAD => {
                return Err(Refusal::Capturing.into());
            }
            result => {
                return Err(Refusal::Driver {
                    call: "cuCtxSynchronize".to_owned(),
                    result,
                }
                .into());
            }
        }
        let sync_ns = sync_start.elapsed();
        memory::plain::free_deferred_while_closed();

        let export_start = Instant::now();
        let bytes = memory::native::reserved_bytes(self.devices.len() as i32);
        if bytes > 0 {
            send(socket, &ToAgent::Native { seq, bytes }).map_err(Stop::End)?;
        }
        send_table(socket, seq)?;
        Ok(QuiesceFacts {
            gate_ns: gate_ns.as_nanos() as u64,
            sync_ns: sync_ns.as_nanos() as u64,
            export_ns: export_start.elapsed().as_nanos() as u64,
        })
    }

    /// Serves what must not wait for the quiesce, for at most `limit`.
    fn listen(&mut self, socket: &Arc<OwnedFd>, limit: Duration) -> Result<(), Stop> {
        match receive(socket, limit) {
            Ok(None) => Ok(()),
            Ok(Some((ToShim::Resume { .. }, _))) => Err(Stop::Abandoned),
            Ok(Some((ToShim::Quiesce { seq, .. }, _))) => {
                let refusal = Refusal::Other(format!("Quiesce({seq}) during another attempt"));
                send(
                    socket,
                    &ToAgent::Quiesced {
                        seq,
                        outcome: Err(refusal),
                    },
                )
                .map_err(Stop::End)
            }
            Ok(Some((message, fds))) => match self.handle(socket, message, fds) {
                None => Ok(()),
                Some(end) => Err(Stop::End(end)),
            },
            Err(end) => Err(Stop::End(end)),
        }
    }
}

fn supported() -> Result<(), Refusal> {
    unsupported::text().map_or(Ok(()), |text| Err(Refusal::Unsupported(text)))
}

fn send(socket: &OwnedFd, message: &ToAgent) -> Result<(), End> {
    link::send_on(socket, message, &[]).map_err(|error| End::Lost(error.to_string()))
}

/// Exports what the agent does not hold and sends the table. The gate is closed and idle: nothing changes meanwhile.
fn send_table(socket: &OwnedFd, seq: Sequence) -> Result<(), Stop> {
    let mut registry = registry::lock();
    let mut imported: Vec<AllocationKey> = Vec::new();
    let mut own: Vec<u64> = Vec::new();
    for (id, physical) in registry.all() {
        match physical.origin {
            Origin::Own => own.push(id),
            Origin::Imported(key) => imported.push(key),
            Origin::Foreign(_) => {}
        }
    }
    imported.sort_unstable();
    imported.dedup();
    let mut imported = imported.chunks(BATCH);
    for ids in own.chunks(BATCH) {
        let mut entries = Vec::new();
        let mut fds: Vec<OwnedFd> = Vec::new();
        let mut sent: Vec<u64> = Vec::new();
        for &id in ids {
            let Some(physical) = registry.physical_mut(id) else {
                continue;
            };
            if !physical.held {
                fds.push(export(physical)?);
                sent.push(id);
            }
            entries.push(TableEntry {
                allocation: registry::describe(mode::process(), id, physical),
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

fn export(physical: &mut registry::Physical) -> Result<OwnedFd, Refusal> {
    if let Some(fd) = physical.fd.as_ref().and_then(|fd| fd.try_clone().ok()) {
        return Ok(fd);
    }
    let Some(handle) = physical.real.filter(|_| physical.exportable) else {
        unsupported::set(Reason::LostMemory, true);
        return Err(Refusal::Unsupported(
            unsupported::text().unwrap_or_default(),
        ));
    };
    let mut fd = -1_i32;
    // SAFETY: writes one integer; the handle is that of a live allocation.
    let result = unsafe {
        real::cuMemExportToShareableHandle((&raw mut fd).cast(), handle, abi::HANDLE_POSIX_FD, 0)
    };
    if result != abi::SUCCESS || fd < 0 {
        return Err(Refusal::Driver {
            call: "cuMemExportToShareableHandle".to_owned(),
            result,
        });
    }
    // SAFETY: the driver has just made it for us.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // It travels and is closed at once; if the process executes another program meanwhile, that must not keep it.
    let _ = rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC);
    instances::learn(physical.device, fd.as_fd());
    Ok(fd)
}
