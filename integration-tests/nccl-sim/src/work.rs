//! What runs in a stream: each part is copied to the host, a host function meets the other ranks, and the result is copied back. The
//! function stands for a kernel that spins until its peers have come.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crate::shared::{LOOK, MAX_BYTES, Shared};
use crate::{driver, lock};

/// What a rank does.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// The sum over all ranks, of floats.
    AllReduce,
    /// To this rank.
    Send(u32),
    /// From this rank.
    Receive(u32),
}

/// An operation, with addresses on the device.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub kind: Kind,
    pub from: u64,
    pub to: u64,
    pub bytes: usize,
}

/// Operations that a stream comes to together.
struct Work {
    shared: Arc<Shared>,
    buffers: Arc<Mutex<Vec<usize>>>,
    operations: Vec<(Operation, *mut u8)>,
}

/// How far an operation is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waits,
    /// Its part is in place: which collective or message it is.
    Placed(u64),
    Done,
}

/// Enqueues operations. False: the driver refuses.
pub fn enqueue(
    shared: &Arc<Shared>,
    buffers: &Arc<Mutex<Vec<usize>>>,
    stream: *mut c_void,
    operations: Vec<Operation>,
) -> bool {
    let Some(driver) = driver::get() else {
        return false;
    };
    let mut with_buffers = Vec::new();
    for operation in operations {
        let known = lock(buffers).pop().map(|at| at as *mut c_void);
        let Some(buffer) = known.or_else(|| driver.alloc_host(MAX_BYTES)) else {
            return false;
        };
        with_buffers.push((operation, buffer.cast::<u8>()));
    }
    let outgoing = |(operation, buffer): &(Operation, *mut u8)| {
        operation.from == 0
            || driver.to_host(buffer.cast(), operation.from, operation.bytes, stream)
    };
    let incoming = |(operation, buffer): &(Operation, *mut u8)| {
        operation.to == 0 || driver.to_device(operation.to, buffer.cast(), operation.bytes, stream)
    };
    let copies = with_buffers.clone();
    let work = Box::into_raw(Box::new(Work {
        shared: Arc::clone(shared),
        buffers: Arc::clone(buffers),
        operations: with_buffers,
    }));
    copies.iter().all(outgoing)
        && driver.call(stream, run, work.cast())
        && copies.iter().all(incoming)
        // What is captured runs again with every launch, so it stays.
        && (driver.is_capturing(stream) || driver.call(stream, forget, work.cast()))
}

unsafe extern "C" fn forget(work: *mut c_void) {
    // SAFETY: made in `enqueue`; the stream has come to its end, and calls this once.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    let free = work.operations.iter().map(|(_, buffer)| *buffer as usize);
    lock(&work.buffers).extend(free);
}

unsafe extern "C" fn run(work: *mut c_void) {
    // SAFETY: made in `enqueue`, and there until `forget`.
    let work = unsafe { &*work.cast::<Work>() };
    let mut stages = vec![Stage::Waits; work.operations.len()];
    loop {
        for (stage, (operation, buffer)) in stages.iter_mut().zip(&work.operations) {
            *stage = go_on(&work.shared, *stage, operation, *buffer);
        }
        if stages.iter().all(|stage| *stage == Stage::Done) {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

fn go_on(shared: &Shared, stage: Stage, operation: &Operation, buffer: *mut u8) -> Stage {
    let (me, order) = (shared.rank, Ordering::SeqCst);
    match (operation.kind, stage) {
        (_, Stage::Done) => Stage::Done,
        (Kind::AllReduce, Stage::Waits) => {
            let number = shared.departed(me).load(order);
            let is_free = |rank| shared.departed(rank).load(order) + 1 >= number;
            if !(0..shared.ranks).all(is_free) {
                return Stage::Waits;
            }
            copy(buffer, shared.part(number, me), operation.bytes);
            shared.arrived(me).store(number + 1, order);
            Stage::Placed(number)
        }
        (Kind::AllReduce, Stage::Placed(number)) => {
            if !(0..shared.ranks).all(|rank| shared.arrived(rank).load(order) > number) {
                return stage;
            }
            add_up(shared, number, buffer, operation.bytes / 4);
            shared.departed(me).store(number + 1, order);
            Stage::Done
        }
        (Kind::Send(to), Stage::Waits) => {
            let number = shared.sent(me, to).load(order);
            if shared.received(me, to).load(order) < number {
                return Stage::Waits;
            }
            copy(buffer, shared.message(me, to), operation.bytes);
            shared.sent(me, to).store(number + 1, order);
            Stage::Placed(number)
        }
        (Kind::Send(to), Stage::Placed(number)) => {
            match shared.received(me, to).load(order) > number {
                true => Stage::Done,
                false => stage,
            }
        }
        (Kind::Receive(from), _) => {
            let number = shared.received(from, me).load(order);
            if shared.sent(from, me).load(order) <= number {
                return Stage::Waits;
            }
            copy(shared.message(from, me), buffer, operation.bytes);
            shared.received(from, me).store(number + 1, order);
            Stage::Done
        }
    }
}

fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: both are at least as long as the longest operation, and one is in a mapping that nobody else has in this way.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

/// The sum in the order of the ranks, so that it is the same on all of them.
fn add_up(shared: &Shared, number: u64, buffer: *mut u8, floats: usize) {
    for index in 0..floats {
        let sum = (0..shared.ranks)
            .map(|rank| {
                let part = shared.part(number, rank).cast::<f32>();
                // SAFETY: inside the part, which is aligned and stays as it is until this rank departs.
                unsafe { part.add(index).read() }
            })
            .sum::<f32>();
        // SAFETY: inside the buffer, which is page-aligned.
        unsafe { buffer.cast::<f32>().add(index).write(sum) };
    }
}
