//! The target's side: a thread that looks for commands and does them.
//!
//! Rules. Locking closes the gate (new calls wait, calls inside finish) and waits for submitted work; when the time is
//! up everything is as before. A checkpoint is refused while the process holds memory of another one (imports, IPC
//! mappings) or managed memory. (Driver 580 lets imports pass and fails at the restore, the process lost; refusing at
//! once finds the mistake earlier, and `PHOS_SIM_LATE_IMPORTS` gives the real behaviour.) Else it moves all device memory
//! of the process into anonymous memory and closes every descriptor and mapping. Memory that was exported comes back as
//! new memory, which the old descriptors do not share. A restore needs that much free device memory at once: without it the process is failed for
//! good and stays locked, as real ones do.

use super::Operation;
use super::client::{self, Command, THREAD_NAME};
use crate::device::{self, Backing, Uuid};
use crate::driver::Driver;
use crate::error::{
    ERROR_ILLEGAL_STATE, ERROR_INVALID_VALUE, ERROR_NO_DEVICE, ERROR_NOT_READY,
    ERROR_NOT_SUPPORTED, Res,
};
use crate::memory::host;
use crate::memory::phys::{Phys, Use};
use crate::memory::space::HostKind;
use crate::sync::{lock, read, spawn, write};
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

const RUNNING: i32 = 0;
const LOCKED: i32 = 1;
const CHECKPOINTED: i32 = 2;
const FAILED: i32 = 3;

/// Between two looks for a command, and where the last [`IN_VAIN`] have found none. Each process of a job has such a thread all the time, and a look takes
/// a tenth of a millisecond of a processor.
const POLL: Duration = Duration::from_millis(3);
const IDLE: Duration = Duration::from_millis(10);
/// Looks of about a second.
const IN_VAIN: u32 = 300;

/// `CUprocessState`, and the thread that serves.
#[derive(Default)]
pub struct State {
    state: AtomicI32,
    thread: AtomicI32,
    /// The node that the process was restored on. Empty: the one that it began on.
    node: Mutex<Vec<Backing>>,
    pub tools: Tools,
}

/// What a tool that records or debugs the driver has taken of its private tables. Driver 580 does not lock a process any more in which
/// CUPTI 13 was used once; it takes 37 different ones.
#[derive(Default)]
pub struct Tools(Mutex<BTreeSet<[u8; 16]>>);

impl Tools {
    const LOCKABLE: usize = 30;

    /// Notes a table.
    pub fn note(&self, id: [u8; 16]) {
        lock(&self.0).insert(id);
    }

    fn are_attached(&self) -> bool {
        lock(&self.0).len() > Self::LOCKABLE
    }
}

impl State {
    /// Whether the process is between its checkpoint and its restore.
    pub fn is_checkpointed(&self) -> bool {
        self.state.load(Ordering::Acquire) == CHECKPOINTED
    }

    /// Reads a page of the driver's that is gone while the process is checkpointed.
    pub fn touch_pages(&self) {
        if !self.is_checkpointed() {
            return;
        }
        eprintln!(
            "phos simulated GPU: a thread is inside the driver while the process is checkpointed"
        );
        // SAFETY: a new mapping wherever the kernel puts it.
        let page = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                4096,
                rustix::mm::ProtFlags::empty(),
                rustix::mm::MapFlags::PRIVATE,
            )
        };
        if let Ok(page) = page {
            // SAFETY: the page belongs to this function. It cannot be read: that is the point, and the process dies of it.
            unsafe { page.cast::<u8>().read_volatile() };
        }
    }
}

/// Starts the serving thread. Callers know it by its name, which a thread takes when it first runs: on a busy machine that may be
/// after the program's first steps.
pub fn start(driver: &'static Driver) -> bool {
    let (runs, it_runs) = mpsc::channel();
    let thread = move || {
        let _ = runs.send(());
        serve(driver);
    };
    spawn(THREAD_NAME, thread) && it_runs.recv().is_ok()
}

fn serve(driver: &'static Driver) {
    // SAFETY: always succeeds.
    driver
        .checkpoint
        .thread
        .store(unsafe { libc::gettid() }, Ordering::Relaxed);
    // SAFETY: always succeeds.
    let pid = unsafe { libc::getpid() };
    let directory = client::directory(&driver.config.dir);
    let mut in_vain = 0_u32;
    loop {
        std::thread::sleep(if in_vain < IN_VAIN { POLL } else { IDLE });
        in_vain = in_vain.saturating_add(1);
        let path = directory.join(format!("{}.command", client::key(pid)));
        if fs::metadata(&path).is_err() {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        in_vain = 0;
        let _ = fs::remove_file(&path);
        let Some((answer, command)) = Command::parse(&text) else {
            continue;
        };
        let reply = match perform(driver, &command) {
            Ok(value) => format!("0 {value}\n"),
            Err(error) => format!("{} 0\n", error.0),
        };
        let draft = directory.join(format!("{answer}.part"));
        if fs::write(&draft, reply).is_ok() {
            let _ = fs::rename(&draft, directory.join(answer));
        }
    }
}

fn perform(driver: &'static Driver, command: &Command) -> Res<i32> {
    let state = &driver.checkpoint.state;
    let need = |wanted: i32| {
        if state.load(Ordering::Acquire) == wanted {
            Ok(())
        } else {
            Err(ERROR_ILLEGAL_STATE)
        }
    };
    let reached = match command.operation {
        Operation::State => return Ok(state.load(Ordering::Acquire)),
        Operation::Thread => return Ok(driver.checkpoint.thread.load(Ordering::Relaxed)),
        Operation::Lock => {
            need(RUNNING)?;
            if driver.checkpoint.tools.are_attached() {
                return Err(ERROR_NOT_SUPPORTED);
            }
            lock_process(driver, command.timeout)?;
            LOCKED
        }
        Operation::Checkpoint => {
            need(LOCKED)?;
            checkpoint(driver)?;
            CHECKPOINTED
        }
        Operation::Restore => {
            need(CHECKPOINTED)?;
            let plan = plan(driver, command)?;
            if let Err(error) = restore(driver, plan) {
                state.store(FAILED, Ordering::Release);
                return Err(error);
            }
            lock(&driver.checkpoint.node).clone_from(&command.node);
            LOCKED
        }
        Operation::Unlock => {
            need(LOCKED)?;
            driver.gate.open();
            RUNNING
        }
    };
    state.store(reached, Ordering::Release);
    Ok(reached)
}

fn lock_process(driver: &'static Driver, timeout: Option<Duration>) -> Res {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    if !driver.gate.close(deadline) {
        return Err(ERROR_NOT_READY);
    }
    for context in driver.contexts.all() {
        if let Err(error) = context.healthy() {
            driver.gate.open();
            return Err(error);
        }
        let streams = lock(&context.streams).clone();
        for stream in streams {
            if !stream.drain(deadline) {
                driver.gate.open();
                return Err(ERROR_NOT_READY);
            }
        }
    }
    Ok(())
}

/// What keeps a process from being checkpointed, in words for its standard error.
fn obstacle(driver: &Driver) -> Option<&'static str> {
    if !driver.config.late_imports && driver.space.physical().iter().any(|phys| phys.foreign()) {
        return Some("memory imported from another process is held");
    }
    let is_multicast = |phys: &Arc<Phys>| phys.used_for == Use::Multicast;
    if driver.space.physical().iter().any(is_multicast) {
        return Some("a multicast object is alive, with which a real driver hangs");
    }
    if driver
        .space
        .read()
        .hosts
        .values()
        .any(|host| host.kind == HostKind::Managed)
    {
        return Some("managed memory exists");
    }
    None
}

fn checkpoint(driver: &'static Driver) -> Res {
    if let Some(reason) = obstacle(driver) {
        eprintln!("phos simulated GPU: checkpoint refused: {reason}");
        return Err(ERROR_NOT_SUPPORTED);
    }
    let (foreign, physical): (Vec<_>, Vec<_>) = driver
        .space
        .physical()
        .into_iter()
        .partition(|phys| phys.foreign());
    host::copy_write_combined(driver);
    // Contents first: if host memory runs out nothing has changed yet but what is restored at once.
    for (index, phys) in physical.iter().enumerate() {
        if let Err(error) = phys.save() {
            for saved in &physical[..index] {
                if let Some(device) = driver.devices.get(saved.ordinal) {
                    device
                        .backing()
                        .and_then(|backing| saved.restore(&backing.dir))?;
                }
            }
            let _ = driver.space.write().map_all();
            host::give_write_combined_back();
            return Err(error);
        }
    }
    driver.space.write().blank_all();
    host::take_write_combined();
    driver.files.close();
    foreign.iter().for_each(|phys| phys.lose());
    Ok(())
}

/// No pairs, or one for every GPU of the node that the process was on, used or not and visible or not, to GPUs of this
/// node, none twice: what driver 580 takes (integration-tests/gpu/pairs.py).
fn check_pairs(driver: &Driver, command: &Command) -> Res {
    let pairs = &command.pairs;
    if pairs.is_empty() {
        return Ok(());
    }
    let mut had = lock(&driver.checkpoint.node).clone();
    if had.is_empty() {
        had = device::node(&driver.config);
    }
    let complete = had
        .iter()
        .all(|gpu| pairs.iter().filter(|(old, _)| *old == gpu.uuid).count() == 1);
    let new: BTreeSet<Uuid> = pairs.iter().map(|(_, new)| *new).collect();
    let here = new
        .iter()
        .all(|uuid| command.node.iter().any(|gpu| gpu.uuid == *uuid));
    if complete && here && pairs.len() == had.len() && new.len() == had.len() {
        Ok(())
    } else {
        Err(ERROR_INVALID_VALUE)
    }
}

/// The backing of each device after a restore.
fn plan(driver: &Driver, command: &Command) -> Res<Vec<Option<Backing>>> {
    let used: BTreeSet<usize> = driver
        .space
        .physical()
        .iter()
        .map(|phys| phys.ordinal)
        .chain(driver.contexts.all().iter().map(|context| context.ordinal))
        .collect();
    let on_node = |uuid: Uuid| {
        command
            .node
            .iter()
            .find(|backing| backing.uuid == uuid)
            .cloned()
    };
    check_pairs(driver, command)?;
    let mut plan = Vec::new();
    for device in &driver.devices {
        let current = read(&device.backing).as_ref().map(|backing| backing.uuid);
        let wanted =
            match current.and_then(|uuid| command.pairs.iter().find(|(old, _)| *old == uuid)) {
                Some((_, new)) => on_node(*new),
                None => current.and_then(on_node),
            };
        if wanted.is_none() && used.contains(&device.ordinal) {
            return Err(ERROR_NO_DEVICE);
        }
        plan.push(wanted);
    }
    Ok(plan)
}

fn restore(driver: &'static Driver, plan: Vec<Option<Backing>>) -> Res {
    for (device, backing) in driver.devices.iter().zip(plan) {
        *write(&device.backing) = backing;
    }
    let physical = driver.space.physical();
    if physical.iter().any(|phys| phys.foreign()) {
        return Err(ERROR_NOT_SUPPORTED);
    }
    for phys in &physical {
        let device = driver.devices.get(phys.ordinal).ok_or(ERROR_NO_DEVICE)?;
        if let Err(error) = device
            .backing()
            .and_then(|backing| phys.restore(&backing.dir))
        {
            eprintln!(
                "phos simulated GPU: restore failed with error {}: the process is lost",
                error.0
            );
            physical.iter().for_each(|phys| phys.lose());
            return Err(error);
        }
    }
    host::give_write_combined_back();
    driver.files.open(&driver.config);
    driver.space.write().map_all()
}
