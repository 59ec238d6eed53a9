//! Units of work that streams run and graphs keep: kernels, copies, fills, host functions, memory operations.

use crate::context::Context;
use crate::driver::Driver;
use crate::error::Res;
use crate::launch::{self, KernelCall};
use crate::memory::copy::{self, Copy, Fill};
use crate::memory::space::Who;
use crate::stream::HostFn;
use std::sync::Arc;
use std::time::Duration;

/// One unit of work. Never changed once made: a graph runs it again and again.
pub enum Task {
    Kernel(KernelCall),
    Copy(Copy),
    Fill(Fill),
    Host(HostCall),
    /// `cuStreamWriteValue` and `cuStreamWaitValue`.
    Memory(MemoryOp),
    /// A graph inside a graph.
    Child(Vec<Arc<Task>>),
    Empty,
}

/// A host function and its argument.
pub struct HostCall {
    pub function: HostFn,
    pub data: u64,
}

/// A word written, or waited for.
#[derive(Clone, Copy)]
pub struct MemoryOp {
    pub wait: bool,
    pub wide: bool,
    pub address: u64,
    pub value: u64,
    pub flags: u32,
}

impl Task {
    /// `CUgraphNodeType`.
    pub fn node_type(&self) -> i32 {
        match self {
            Self::Kernel(_) => 0,
            Self::Copy(_) => 1,
            Self::Fill(_) => 2,
            Self::Host(_) => 3,
            Self::Child(_) => 4,
            Self::Empty => 5,
            Self::Memory(_) => 12,
        }
    }
}

/// Runs a task for a context, unless that has failed before; a failure becomes the context's.
pub fn run(driver: &'static Driver, context: &Context, task: &Task) {
    if context.healthy().is_err() {
        return;
    }
    let result = match task {
        Task::Kernel(call) => launch::run(driver, context, call),
        Task::Copy(copy) => copy::run(driver, context, copy),
        Task::Fill(fill) => copy::fill(driver, fill),
        Task::Host(call) => {
            // SAFETY: the application promised that the function and its data are valid whenever it may be called.
            crate::gate::callback(|| unsafe { (call.function)(call.data) });
            Ok(())
        }
        Task::Memory(op) => memory(driver, context, op),
        Task::Child(tasks) => {
            tasks.iter().for_each(|task| run(driver, context, task));
            Ok(())
        }
        Task::Empty => Ok(()),
    };
    if let Err(error) = result {
        context.fail(error);
    }
}

fn memory(driver: &'static Driver, context: &Context, op: &MemoryOp) -> Res {
    let size = if op.wide { 8 } else { 4 };
    loop {
        {
            let tables = driver.space.read();
            let at = tables.resolve(op.address, size, !op.wait, Who::Kernel(context.ordinal))?;
            // SAFETY: resolved for `size` bytes while the table is held; the address is aligned to its size.
            unsafe {
                match (op.wait, op.wide) {
                    (false, true) => at.cast::<u64>().write_volatile(op.value),
                    (false, false) => at.cast::<u32>().write_volatile(op.value as u32),
                    (true, true)
                        if satisfied(
                            at.cast::<u64>().read_volatile() as i64,
                            op.value as i64,
                            op.flags,
                        ) => {}
                    (true, false)
                        if satisfied(
                            i64::from(at.cast::<u32>().read_volatile() as i32),
                            i64::from(op.value as i32),
                            op.flags,
                        ) => {}
                    _ => {
                        drop(tables);
                        context.healthy()?;
                        std::thread::sleep(Duration::from_micros(100));
                        continue;
                    }
                }
            }
        }
        return Ok(());
    }
}

/// `CU_STREAM_WAIT_VALUE_GEQ` (cyclic), `EQ`, `AND`, `NOR`.
fn satisfied(found: i64, value: i64, flags: u32) -> bool {
    match flags & 3 {
        0 => found.wrapping_sub(value) >= 0,
        1 => found == value,
        2 => found & value != 0,
        _ => !(found | value) != 0,
    }
}
