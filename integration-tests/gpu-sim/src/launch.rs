//! Kernel launches: from arguments in C to a call of a Rust function.
//!
//! Arguments come as an array of pointers or as one packed buffer (`extra`); both become the packed bytes that the
//! entry's layout describes. A kernel runs on the stream's worker, holding the table of mappings, so what it was given
//! access to stays mapped while it runs.

use crate::api::{In, api};
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{
    ERROR_INVALID_VALUE, ERROR_LAUNCH_FAILED, ERROR_LAUNCH_OUT_OF_RESOURCES, ERROR_NOT_SUPPORTED,
    Res,
};
use crate::kernels::Launch;
use crate::module::{self, Function};
use crate::stream::{self, Null};
use crate::task::{MemoryOp, Task};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// A launch with its arguments.
pub struct KernelCall {
    pub function: Arc<Function>,
    pub handle: u64,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    params: Vec<u8>,
    /// Address of each parameter in `params`: what a graph node shows as its `kernelParams`.
    pub pointers: Vec<u64>,
}

/// The head of `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: u64,
    attributes: u64,
    count: u32,
}

impl KernelCall {
    /// Checks a launch and takes its arguments.
    pub fn new(
        driver: &Driver,
        handle: u64,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        params: In<u64>,
        extra: In<u64>,
    ) -> Res<Self> {
        let function = module::function(driver, handle)?;
        let threads = block
            .iter()
            .try_fold(1_u32, |all, n| all.checked_mul(*n))
            .unwrap_or(u32::MAX);
        let too_many =
            grid[1] > 65535 || grid[2] > 65535 || grid[0] > i32::MAX as u32 || block[2] > 64;
        if grid.contains(&0)
            || threads == 0
            || threads > 1024
            || too_many
            || shared > function.max_shared()
        {
            return Err(ERROR_INVALID_VALUE);
        }
        if !params.is_null() && !extra.is_null() {
            return Err(ERROR_INVALID_VALUE);
        }
        let params = if extra.is_null() {
            gather(&function, params)?
        } else {
            packed(&function, extra)?
        };
        let start = params.as_ptr() as u64;
        let pointers = function
            .entry
            .params
            .iter()
            .map(|param| start + param.offset as u64)
            .collect();
        Ok(Self {
            function,
            handle,
            grid,
            block,
            shared,
            params,
            pointers,
        })
    }
}

fn gather(function: &Function, params: In<u64>) -> Res<Vec<u8>> {
    let mut bytes = vec![0; function.entry.bytes];
    for (index, param) in function.entry.params.iter().enumerate() {
        let value = In(params.at(index)? as *const u8).all(param.size)?;
        bytes[param.offset..param.offset + param.size].copy_from_slice(&value);
    }
    Ok(bytes)
}

fn packed(function: &Function, extra: In<u64>) -> Res<Vec<u8>> {
    let (mut buffer, mut size) = (0, None);
    let mut index = 0;
    loop {
        match extra.at(index)? {
            0 => break,
            1 => buffer = extra.at(index + 1)?,
            2 => size = Some(In(extra.at(index + 1)? as *const usize).get()?),
            _ => return Err(ERROR_INVALID_VALUE),
        }
        index += 2;
    }
    let size = size.ok_or(ERROR_INVALID_VALUE)?;
    // Measured: a longer buffer is refused, a shorter one is not.
    if size > function.entry.bytes {
        return Err(ERROR_LAUNCH_OUT_OF_RESOURCES);
    }
    let mut bytes = In(buffer as *const u8).all(size)?;
    bytes.resize(function.entry.bytes, 0);
    Ok(bytes)
}

/// Runs a launch.
pub fn run(driver: &'static Driver, context: &Context, call: &KernelCall) -> Res {
    if driver.config.kernel_us > 0 {
        std::thread::sleep(Duration::from_micros(driver.config.kernel_us));
    }
    let kernel = call.function.kernel.ok_or(ERROR_LAUNCH_FAILED)?;
    let (result, lasts) = {
        let tables = driver.space.read();
        let launch = Launch {
            params: &call.params,
            layout: &call.function.entry.params,
            tables: &tables,
            device: context.ordinal,
            lasts: Cell::default(),
        };
        (kernel(&launch), launch.lasts.get())
    };
    std::thread::sleep(lasts);
    if let Err(error) = result {
        let name = &call.function.entry.name;
        eprintln!(
            "phos simulated GPU: kernel {name:?} failed with error {}",
            error.0
        );
    }
    result
}

#[allow(clippy::too_many_arguments)]
fn start(
    driver: &'static Driver,
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    on: (u64, Null),
    params: In<u64>,
    extra: In<u64>,
) -> Res {
    crate::context::current(driver)?;
    let call = KernelCall::new(driver, function, grid, block, shared, params, extra)?;
    stream::get(driver, on.0, on.1)?
        .perform(driver, Task::Kernel(call))
        .map(drop)
}

fn memory_op(driver: &'static Driver, on: (u64, Null), op: MemoryOp) -> Res {
    let size = if op.wide { 8 } else { 4 };
    if !op.address.is_multiple_of(size) {
        return Err(ERROR_INVALID_VALUE);
    }
    driver.space.read().require(op.address, !op.wait)?;
    stream::get(driver, on.0, on.1)?
        .perform(driver, Task::Memory(op))
        .map(drop)
}

const NONE: In<u64> = In(std::ptr::null());

api! { TABLE;
    4000 fn cuLaunchKernel(
        function: u64,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        shared: u32,
        stream: u64,
        params: In<u64>,
        extra: In<u64>,
    ) |d| {
        start(d, function, [gx, gy, gz], [bx, by, bz], shared, (stream, Null::Legacy), params, extra)
    }
    7000 fn cuLaunchKernel_ptsz(
        function: u64,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        shared: u32,
        stream: u64,
        params: In<u64>,
        extra: In<u64>,
    ) |d| {
        start(d, function, [gx, gy, gz], [bx, by, bz], shared, (stream, Null::PerThread), params, extra)
    }
    11060 fn cuLaunchKernelEx(config: In<Config>, function: u64, params: In<u64>, extra: In<u64>) |d| {
        let c = config.get()?;
        start(d, function, c.grid, c.block, c.shared, (c.stream, Null::Legacy), params, extra)
    }
    11060 fn cuLaunchKernelEx_ptsz(config: In<Config>, function: u64, params: In<u64>, extra: In<u64>) |d| {
        let c = config.get()?;
        start(d, function, c.grid, c.block, c.shared, (c.stream, Null::PerThread), params, extra)
    }
    9000 fn cuLaunchCooperativeKernel(
        function: u64,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        shared: u32,
        stream: u64,
        params: In<u64>,
    ) |d| {
        start(d, function, [gx, gy, gz], [bx, by, bz], shared, (stream, Null::Legacy), params, NONE)
    }
    9000 fn cuLaunchCooperativeKernel_ptsz(
        function: u64,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        shared: u32,
        stream: u64,
        params: In<u64>,
    ) |d| {
        start(d, function, [gx, gy, gz], [bx, by, bz], shared, (stream, Null::PerThread), params, NONE)
    }
    9000 fn cuLaunchCooperativeKernelMultiDevice(_list: u64, _count: u32, _flags: u32) |_d| { Err(ERROR_NOT_SUPPORTED) }
    11070 fn cuStreamWriteValue32_v2(stream: u64, address: u64, value: u32, flags: u32) |d| {
        let op = MemoryOp { wait: false, wide: false, address, value: value.into(), flags };
        memory_op(d, (stream, Null::Legacy), op)
    }
    11070 fn cuStreamWriteValue32_v2_ptsz(stream: u64, address: u64, value: u32, flags: u32) |d| {
        let op = MemoryOp { wait: false, wide: false, address, value: value.into(), flags };
        memory_op(d, (stream, Null::PerThread), op)
    }
    11070 fn cuStreamWriteValue64_v2(stream: u64, address: u64, value: u64, flags: u32) |d| {
        memory_op(d, (stream, Null::Legacy), MemoryOp { wait: false, wide: true, address, value, flags })
    }
    11070 fn cuStreamWriteValue64_v2_ptsz(stream: u64, address: u64, value: u64, flags: u32) |d| {
        memory_op(d, (stream, Null::PerThread), MemoryOp { wait: false, wide: true, address, value, flags })
    }
    11070 fn cuStreamWaitValue32_v2(stream: u64, address: u64, value: u32, flags: u32) |d| {
        let op = MemoryOp { wait: true, wide: false, address, value: value.into(), flags };
        memory_op(d, (stream, Null::Legacy), op)
    }
    11070 fn cuStreamWaitValue32_v2_ptsz(stream: u64, address: u64, value: u32, flags: u32) |d| {
        let op = MemoryOp { wait: true, wide: false, address, value: value.into(), flags };
        memory_op(d, (stream, Null::PerThread), op)
    }
    11070 fn cuStreamWaitValue64_v2(stream: u64, address: u64, value: u64, flags: u32) |d| {
        memory_op(d, (stream, Null::Legacy), MemoryOp { wait: true, wide: true, address, value, flags })
    }
    11070 fn cuStreamWaitValue64_v2_ptsz(stream: u64, address: u64, value: u64, flags: u32) |d| {
        memory_op(d, (stream, Null::PerThread), MemoryOp { wait: true, wide: true, address, value, flags })
    }
}
