//! What runs in a stream: each part of a collective is copied to the host, a host function meets the other ranks, and the result is copied back;
//! messages go from device to device. The functions stand for kernels that spin until their peers have come.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crate::peers::Multicast;
use crate::shared::{Looks, MAX_BYTES, Shared};
use crate::{Communicator, driver, lock};

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
    /// Each with the buffer of a collective's part; messages have none.
    operations: Vec<(Operation, *mut u8)>,
}

/// How far an operation is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waits,
    /// Its part is in place: which collective it is.
    Placed(u64),
    Done,
}

/// Enqueues operations. False: the driver refuses.
///
/// Messages are copied from device to device, into the memory of the receiver: first the stream waits until their places there are
/// free, then they are copied, then it waits for those that are to come, and copies them away.
pub fn enqueue(of: &Communicator, stream: *mut c_void, operations: Vec<Operation>) -> bool {
    let Some(driver) = driver::get() else {
        return false;
    };
    if has_two_for_one_place(&operations) {
        return false;
    }
    let mut with_buffers = Vec::new();
    for operation in operations {
        let buffer = match operation.kind {
            Kind::AllReduce => {
                let known = lock(&of.buffers).pop().map(|at| at as *mut c_void);
                known.or_else(|| driver.alloc_host(MAX_BYTES))
            }
            Kind::Send(_) | Kind::Receive(_) => Some(std::ptr::null_mut()),
        };
        let Some(buffer) = buffer else {
            return false;
        };
        with_buffers.push((operation, buffer.cast::<u8>()));
    }
    // There is room for one result.
    let collectives = with_buffers.iter().filter(|(_, buffer)| !buffer.is_null());
    let multicast = of.peers.multicast.filter(|_| collectives.count() == 1);
    // As long as the communicator, which the caller keeps until its streams have come to their end.
    let shared: *const Shared = Arc::as_ptr(&of.shared);
    let outgoing = |(operation, buffer): &(Operation, *mut u8)| match operation.kind {
        Kind::AllReduce => driver.to_host(buffer.cast(), operation.from, operation.bytes, stream),
        Kind::Send(to) => (of.peers.to(to))
            .is_some_and(|place| driver.copy(place, operation.from, operation.bytes, stream)),
        Kind::Receive(_) => true,
    };
    let incoming = |(operation, buffer): &(Operation, *mut u8)| match operation.kind {
        Kind::AllReduce => match multicast {
            None => driver.to_device(operation.to, buffer.cast(), operation.bytes, stream),
            // The first rank writes it for all of them.
            Some(Multicast { all, mine }) => {
                (of.shared.rank > 0
                    || driver.to_device(all, buffer.cast(), operation.bytes, stream))
                    && driver.call(stream, meet_at_result, shared.cast_mut().cast())
                    && driver.copy(operation.to, mine, operation.bytes, stream)
            }
        },
        Kind::Send(_) => true,
        Kind::Receive(from) => {
            let place = of.peers.from(from);
            driver.copy(operation.to, place, operation.bytes, stream)
        }
    };
    let copies = with_buffers.clone();
    let work = Box::into_raw(Box::new(Work {
        shared: Arc::clone(&of.shared),
        buffers: Arc::clone(&of.buffers),
        operations: with_buffers,
    }));
    driver.call(stream, wait_for_places, work.cast())
        && copies.iter().all(outgoing)
        && driver.call(stream, run, work.cast())
        && copies.iter().all(incoming)
        && driver.call(stream, say_taken, work.cast())
        // What is captured runs again with every launch, so it stays.
        && (driver.is_capturing(stream) || driver.call(stream, forget, work.cast()))
}

/// Whether two messages of these would need the same place, of which there is one for each pair of ranks.
fn has_two_for_one_place(operations: &[Operation]) -> bool {
    let place = |operation: &Operation| match operation.kind {
        Kind::AllReduce => None,
        Kind::Send(to) => Some((true, to)),
        Kind::Receive(from) => Some((false, from)),
    };
    let mut places: Vec<_> = operations.iter().filter_map(place).collect();
    let all = places.len();
    places.sort_unstable();
    places.dedup();
    places.len() < all
}

unsafe extern "C" fn forget(work: *mut c_void) {
    // SAFETY: made in `enqueue`; the stream has come to its end, and calls this once.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    let free = work.operations.iter().map(|(_, buffer)| *buffer as usize);
    lock(&work.buffers).extend(free.filter(|buffer| *buffer != 0));
}

/// What was sent before to the same ranks has been taken.
unsafe extern "C" fn wait_for_places(work: *mut c_void) {
    // SAFETY: made in `enqueue`, and there until `forget`.
    let work = unsafe { &*work.cast::<Work>() };
    let (shared, order) = (&work.shared, Ordering::SeqCst);
    let is_free = |operation: &Operation| match operation.kind {
        Kind::Send(to) => {
            let sent = shared.sent(shared.rank, to).load(order);
            shared.received(shared.rank, to).load(order) >= sent
        }
        Kind::AllReduce | Kind::Receive(_) => true,
    };
    let mut looks = Looks::default();
    while !work
        .operations
        .iter()
        .all(|(operation, _)| is_free(operation))
    {
        looks.sleep();
    }
}

/// The result of a collective is there, written by the first rank.
unsafe extern "C" fn meet_at_result(shared: *mut c_void) {
    // SAFETY: the communicator's, as said in `enqueue`.
    let shared = unsafe { &*shared.cast::<Shared>() };
    let order = Ordering::SeqCst;
    // The collective was done when it departed.
    let number = shared.departed(shared.rank).load(order);
    if shared.rank == 0 {
        shared.written().store(number, order);
        return;
    }
    let mut looks = Looks::default();
    while shared.written().load(order) < number {
        looks.sleep();
    }
}

/// What was received is where it is to be: its place is free.
unsafe extern "C" fn say_taken(work: *mut c_void) {
    // SAFETY: as above.
    let work = unsafe { &*work.cast::<Work>() };
    for (operation, _) in &work.operations {
        if let Kind::Receive(from) = operation.kind {
            let taken = work.shared.received(from, work.shared.rank);
            taken.fetch_add(1, Ordering::SeqCst);
        }
    }
}

unsafe extern "C" fn run(work: *mut c_void) {
    // SAFETY: as above.
    let work = unsafe { &*work.cast::<Work>() };
    let (shared, order) = (&work.shared, Ordering::SeqCst);
    for (operation, _) in &work.operations {
        match operation.kind {
            Kind::Send(to) => shared.sent(shared.rank, to).fetch_add(1, order),
            Kind::Receive(from) => shared.posted(from, shared.rank).fetch_add(1, order),
            Kind::AllReduce => 0,
        };
    }
    let mut looks = Looks::default();
    let mut stages = vec![Stage::Waits; work.operations.len()];
    loop {
        for (stage, (operation, buffer)) in stages.iter_mut().zip(&work.operations) {
            *stage = go_on(shared, *stage, operation, *buffer);
        }
        if stages.iter().all(|stage| *stage == Stage::Done) {
            return;
        }
        looks.sleep();
    }
}

fn go_on(shared: &Shared, stage: Stage, operation: &Operation, buffer: *mut u8) -> Stage {
    let (me, order) = (shared.rank, Ordering::SeqCst);
    let done_if = |is_done| if is_done { Stage::Done } else { stage };
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
        // As a large message of NCCL's, it ends when the other one waits for it.
        (Kind::Send(to), _) => {
            let sent = shared.sent(me, to).load(order);
            done_if(shared.posted(me, to).load(order) >= sent)
        }
        (Kind::Receive(from), _) => {
            let posted = shared.posted(from, me).load(order);
            done_if(shared.sent(from, me).load(order) >= posted)
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
