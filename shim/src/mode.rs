//! Whether the shim sleeps, works or stands aside in this process, and which process that is.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use phos_protocol::types::MemberId;

/// CUDA was not initialised yet.
const SLEEPING: u8 = 0;
/// The value of a shim that is at work in this process.
const ACTIVE: u8 = 1;
/// Every call passes as if the shim were not there: no agent was named, or this is the forked child of a process that
/// had initialised CUDA.
const INERT: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(SLEEPING);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static INSTANCE: AtomicU64 = AtomicU64::new(0);
static MULTICAST: AtomicBool = AtomicBool::new(false);

/// Claims the one start of this process: true for the caller that has to do it.
pub fn claim_start() -> bool {
    MODE.compare_exchange(SLEEPING, INERT, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
}

/// The start is done: take over from now on.
pub fn set_active() {
    PROCESS.store(std::process::id(), Ordering::Release);
    MODE.store(ACTIVE, Ordering::Release);
}

/// In the forked child: stand aside for ever if the parent had initialised CUDA.
pub fn set_inert() {
    MODE.store(INERT, Ordering::Release);
}

/// Whether allocations are taken over. Slow paths only: it asks the kernel for the process number, which tells a child
/// that was made without the fork handlers (`vfork`, `clone`).
pub fn active() -> bool {
    MODE.load(Ordering::Acquire) == ACTIVE && PROCESS.load(Ordering::Acquire) == std::process::id()
}

/// The same without asking the kernel: for the fork handler, where the child still has the parent's answer.
pub fn is_active() -> bool {
    MODE.load(Ordering::Acquire) == ACTIVE
}

/// This process's number inside the job. A restore brings it back.
pub fn process() -> u32 {
    PROCESS.load(Ordering::Acquire)
}

/// This process, named across the machines of the job.
pub fn member() -> MemberId {
    MemberId::here(process())
}

/// The number that tells this process from another that gets its PID, as the agent was told it.
pub fn instance() -> u64 {
    INSTANCE.load(Ordering::Relaxed)
}

/// Chooses that number: once, before the agent is told.
pub fn set_instance(number: u64) {
    INSTANCE.store(number, Ordering::Relaxed);
}

/// Whether multicast objects are taken apart for checkpoints, and do not rule them out.
pub fn takes_multicast() -> bool {
    MULTICAST.load(Ordering::Relaxed)
}

/// Has multicast objects taken apart from now on: before the first is made.
pub fn set_takes_multicast() {
    MULTICAST.store(true, Ordering::Relaxed);
}
