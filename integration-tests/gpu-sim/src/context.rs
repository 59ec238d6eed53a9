//! Contexts, the thread's stack of them, and sticky errors.
//!
//! Rules. A context owns its native allocations, streams and modules, and a little device memory of its own. The first
//! illegal access of a context is its answer to every later call that works in it. Handles are looked up, never
//! followed: an unknown one is `CUDA_ERROR_INVALID_CONTEXT`, a destroyed current one `CUDA_ERROR_CONTEXT_IS_DESTROYED`.

use crate::api::{In, Out, api};
use crate::device::{self, Primary};
use crate::driver::Driver;
use crate::error::{
    ERROR_CONTEXT_IS_DESTROYED, ERROR_INVALID_CONTEXT, ERROR_INVALID_VALUE, ERROR_NOT_SUPPORTED,
    ERROR_PEER_ACCESS_ALREADY_ENABLED, ERROR_PEER_ACCESS_NOT_ENABLED,
    ERROR_PEER_ACCESS_UNSUPPORTED, ERROR_UNSUPPORTED_LIMIT, Error, Res,
};
use crate::memory::native;
use crate::memory::phys::{GRANULE, Phys, mib};
use crate::stream::{self, Stream};
use crate::sync::lock;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::ThreadId;

/// A context.
pub struct Context {
    pub handle: u64,
    pub ordinal: usize,
    pub primary: bool,
    pub flags: AtomicU32,
    pub destroyed: AtomicBool,
    /// The sticky error; 0 while all is well.
    pub fault: AtomicI32,
    /// Held while work is handed to a stream: gives the default stream's dependencies one order.
    pub submission: Mutex<()>,
    pub legacy: OnceLock<Arc<Stream>>,
    pub per_thread: Mutex<HashMap<ThreadId, Arc<Stream>>>,
    /// Streams the application made, and the default streams.
    pub streams: Mutex<Vec<Arc<Stream>>>,
    limits: Mutex<HashMap<i32, usize>>,
    /// What the driver itself keeps on the device for a context.
    own_memory: Mutex<Option<Arc<Phys>>>,
    /// Of that, what backs the stacks of its threads.
    stacks: Mutex<Option<Arc<Phys>>>,
}

/// `CU_LIMIT_STACK_SIZE`.
const STACK_LIMIT: i32 = 0;

/// Device memory behind the stacks of all threads at this limit.
fn stack_bytes(driver: &Driver, limit: usize) -> u64 {
    let all = mib(driver.config.stack_mib) as usize / 1024 * limit;
    (all as u64).next_multiple_of(GRANULE)
}

/// As an H200 has them: stack, printf, heap, pending launches, L2 fetch, L2 persistence, shared memory.
const DEFAULT_LIMITS: [(i32, usize); 7] = [
    (0, 1024),
    (1, 8_650_752),
    (2, 8 << 20),
    (4, 2048),
    (5, 64),
    (6, 11_796_480),
    (7, 232_448),
];

thread_local! {
    static STACK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl Context {
    fn create(
        driver: &'static Driver,
        ordinal: usize,
        flags: u32,
        primary: bool,
    ) -> Res<(u64, Arc<Self>)> {
        let own_memory = device::own_memory(driver, ordinal, mib(driver.config.context_mib))?;
        let stacks = device::own_memory(driver, ordinal, stack_bytes(driver, 1024))?;
        Ok(driver.contexts.insert(|handle| Self {
            handle,
            ordinal,
            primary,
            flags: AtomicU32::new(flags),
            destroyed: AtomicBool::new(false),
            fault: AtomicI32::new(0),
            submission: Mutex::default(),
            legacy: OnceLock::new(),
            per_thread: Mutex::default(),
            streams: Mutex::default(),
            limits: Mutex::new(HashMap::from(DEFAULT_LIMITS)),
            own_memory: Mutex::new(own_memory),
            stacks: Mutex::new(stacks),
        }))
    }

    /// The sticky error, if there is one.
    pub fn healthy(&self) -> Res {
        match self.fault.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Error(code)),
        }
    }

    /// Makes an error the context's answer to everything.
    pub fn fail(&self, error: Error) {
        let _ = self
            .fault
            .compare_exchange(0, error.0, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Waits for all work submitted so far.
    pub fn synchronize(&self) -> Res {
        let streams = lock(&self.streams).clone();
        for stream in streams {
            stream.drain(None);
        }
        self.healthy()
    }

    fn destroy(self: &Arc<Self>, driver: &'static Driver) {
        self.destroyed.store(true, Ordering::Release);
        let streams = std::mem::take(&mut *lock(&self.streams));
        for stream in &streams {
            stream.drain(None);
            stream.close();
            driver.streams.remove(stream.handle);
        }
        lock(&self.per_thread).clear();
        native::free_context(driver, self.handle);
        crate::module::unload_context(driver, self.handle);
        *lock(&self.own_memory) = None;
        *lock(&self.stacks) = None;
        driver.contexts.remove(self.handle);
    }
}

/// The context with a handle.
pub fn get(driver: &Driver, handle: u64) -> Res<Arc<Context>> {
    driver.contexts.get(handle).ok_or(ERROR_INVALID_CONTEXT)
}

fn top() -> Option<u64> {
    STACK
        .try_with(|stack| stack.borrow().last().copied())
        .ok()
        .flatten()
        .filter(|handle| *handle != 0)
}

/// The current context, healthy or not.
pub fn current_any(driver: &Driver) -> Res<Arc<Context>> {
    let handle = top().ok_or(ERROR_INVALID_CONTEXT)?;
    driver
        .contexts
        .get(handle)
        .ok_or(ERROR_CONTEXT_IS_DESTROYED)
}

/// The current context, which must have no sticky error.
pub fn current(driver: &Driver) -> Res<Arc<Context>> {
    let context = current_any(driver)?;
    context.healthy()?;
    Ok(context)
}

fn push(handle: u64) {
    let _ = STACK.try_with(|stack| stack.borrow_mut().push(handle));
}

/// Replaces the top of the stack; 0 takes it away.
fn replace(handle: u64) {
    let _ = STACK.try_with(|stack| {
        let mut stack = stack.borrow_mut();
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
}

fn create(driver: &'static Driver, out: Out<u64>, flags: u32, device: i32) -> Res {
    out.check()?;
    let ordinal = device::get(driver, device)?.ordinal;
    let (handle, _) = Context::create(driver, ordinal, flags, false)?;
    push(handle);
    out.set(handle)
}

fn destroy(driver: &'static Driver, handle: u64) -> Res {
    let context = get(driver, handle)?;
    if context.primary {
        return Err(ERROR_INVALID_CONTEXT);
    }
    context.destroy(driver);
    if top() == Some(handle) {
        replace(0);
    }
    Ok(())
}

fn retain(driver: &'static Driver, out: Out<u64>, device: i32) -> Res {
    out.check()?;
    let device = device::get(driver, device)?;
    let mut primary = lock(&device.primary);
    if primary.handle == 0 {
        primary.handle = Context::create(driver, device.ordinal, primary.flags, true)?.0;
    }
    primary.retained += 1;
    out.set(primary.handle)
}

fn drop_primary(driver: &'static Driver, primary: &mut Primary) {
    if let Some(context) = driver.contexts.get(std::mem::take(&mut primary.handle)) {
        context.destroy(driver);
    }
}

fn release(driver: &'static Driver, device: i32) -> Res {
    let mut primary = lock(&device::get(driver, device)?.primary);
    if primary.retained == 0 {
        return Err(ERROR_INVALID_CONTEXT);
    }
    primary.retained -= 1;
    if primary.retained == 0 {
        drop_primary(driver, &mut primary);
    }
    Ok(())
}

fn reset(driver: &'static Driver, device: i32) -> Res {
    let mut primary = lock(&device::get(driver, device)?.primary);
    // The count stays: who retained it still releases it.
    drop_primary(driver, &mut primary);
    primary.retained = 0;
    Ok(())
}

fn set_primary_flags(driver: &Driver, device: i32, flags: u32) -> Res {
    let mut primary = lock(&device::get(driver, device)?.primary);
    primary.flags = flags;
    if let Some(context) = driver.contexts.get(primary.handle) {
        context.flags.store(flags, Ordering::Relaxed);
    }
    Ok(())
}

fn enable_peer(driver: &Driver, peer: u64, flags: u32) -> Res {
    let context = current(driver)?;
    let peer = get(driver, peer)?;
    if flags != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    if peer.ordinal == context.ordinal {
        return Err(ERROR_PEER_ACCESS_UNSUPPORTED);
    }
    if driver.space.enable_peer(context.ordinal, peer.ordinal) {
        Ok(())
    } else {
        Err(ERROR_PEER_ACCESS_ALREADY_ENABLED)
    }
}

fn disable_peer(driver: &Driver, peer: u64) -> Res {
    let context = current(driver)?;
    let peer = get(driver, peer)?;
    if driver.space.disable_peer(context.ordinal, peer.ordinal) {
        Ok(())
    } else {
        Err(ERROR_PEER_ACCESS_NOT_ENABLED)
    }
}

/// The context that an argument names: 0 stands for the current one.
fn named(driver: &Driver, handle: u64) -> Res<Arc<Context>> {
    if handle == 0 {
        current_any(driver)
    } else {
        get(driver, handle)
    }
}

fn synchronize(driver: &'static Driver, context: &Context) -> Res {
    stream::refuse_in_capture(driver)?;
    context.healthy()?;
    context.synchronize()
}

api! { TABLE;
    7000 fn cuDevicePrimaryCtxRetain(context: Out<u64>, device: i32) |d| { retain(d, context, device) }
    7000 fn cuDevicePrimaryCtxRelease(device: i32) |d| { release(d, device) }
    11000 fn cuDevicePrimaryCtxRelease_v2(device: i32) |d| { release(d, device) }
    7000 fn cuDevicePrimaryCtxReset(device: i32) |d| { reset(d, device) }
    11000 fn cuDevicePrimaryCtxReset_v2(device: i32) |d| { reset(d, device) }
    7000 fn cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) |d| { set_primary_flags(d, device, flags) }
    11000 fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) |d| { set_primary_flags(d, device, flags) }
    7000 fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) |d| {
        let primary = lock(&device::get(d, device)?.primary);
        flags.set(primary.flags)?;
        active.set(i32::from(primary.handle != 0))
    }
    3020 fn cuCtxCreate_v2(context: Out<u64>, flags: u32, device: i32) |d| { create(d, context, flags, device) }
    11040 fn cuCtxCreate_v3(context: Out<u64>, params: In<u64>, count: i32, flags: u32, device: i32) |d| {
        if !params.is_null() && count != 0 { return Err(ERROR_NOT_SUPPORTED); }
        create(d, context, flags, device)
    }
    12050 fn cuCtxCreate_v4(context: Out<u64>, params: In<u64>, flags: u32, device: i32) |d| {
        if !params.is_null() && (params.at(0)? != 0 || params.at(2)? != 0) { return Err(ERROR_NOT_SUPPORTED); }
        create(d, context, flags, device)
    }
    2000 fn cuCtxDestroy(context: u64) |d| { destroy(d, context) }
    4000 fn cuCtxDestroy_v2(context: u64) |d| { destroy(d, context) }
    4000 fn cuCtxPushCurrent_v2(context: u64) @query |d| {
        get(d, context)?;
        push(context);
        Ok(())
    }
    4000 fn cuCtxPopCurrent_v2(context: Out<u64>) @query |d| {
        let popped = STACK.try_with(|stack| stack.borrow_mut().pop()).ok().flatten().ok_or(ERROR_INVALID_CONTEXT)?;
        let _ = d;
        context.set_optional(popped);
        Ok(())
    }
    4000 fn cuCtxSetCurrent(context: u64) @query |d| {
        if context != 0 { get(d, context)?; }
        replace(context);
        Ok(())
    }
    4000 fn cuCtxGetCurrent(context: Out<u64>) @query |_d| { context.set(top().unwrap_or(0)) }
    2000 fn cuCtxGetDevice(device: Out<i32>) @query |d| { device.set(current_any(d)?.ordinal as i32) }
    13000 fn cuCtxGetDevice_v2(device: Out<i32>, context: u64) @query |d| { device.set(named(d, context)?.ordinal as i32) }
    7000 fn cuCtxGetFlags(flags: Out<u32>) @query |d| { flags.set(current_any(d)?.flags.load(Ordering::Relaxed)) }
    12010 fn cuCtxSetFlags(flags: u32) |d| {
        current_any(d)?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }
    12000 fn cuCtxGetId(context: u64, id: Out<u64>) @query |d| { id.set(named(d, context)?.handle >> 4 & 0xffff) }
    2000 fn cuCtxSynchronize() @polled |d| { synchronize(d, &*current(d)?) }
    13000 fn cuCtxSynchronize_v2(context: u64) @polled |d| { synchronize(d, &*named(d, context)?) }
    3010 fn cuCtxGetLimit(value: Out<usize>, limit: i32) |d| {
        let context = current_any(d)?;
        let found = lock(&context.limits).get(&limit).copied();
        value.set(found.ok_or(ERROR_UNSUPPORTED_LIMIT)?)
    }
    3010 fn cuCtxSetLimit(limit: i32, value: usize) |d| {
        let context = current_any(d)?;
        if limit == STACK_LIMIT {
            let mut stacks = lock(&context.stacks);
            let now = lock(&context.limits).get(&limit).copied().unwrap_or(0);
            if value <= now {
                *stacks = None;
            }
            // A larger one is taken before the smaller is let go.
            *stacks = device::own_memory(d, context.ordinal, stack_bytes(d, value))?;
        }
        *lock(&context.limits).get_mut(&limit).ok_or(ERROR_UNSUPPORTED_LIMIT)? = value;
        Ok(())
    }
    3020 fn cuCtxGetApiVersion(context: u64, version: Out<u32>) @query |d| {
        named(d, context)?;
        version.set(3020)
    }
    3020 fn cuCtxGetCacheConfig(config: Out<i32>) |d| { current_any(d)?; config.set(0) }
    3020 fn cuCtxSetCacheConfig(_config: i32) |d| { current_any(d).map(drop) }
    4020 fn cuCtxGetSharedMemConfig(config: Out<i32>) |d| { current_any(d)?; config.set(1) }
    4020 fn cuCtxSetSharedMemConfig(_config: i32) |d| { current_any(d).map(drop) }
    11000 fn cuCtxResetPersistingL2Cache() |d| { current_any(d).map(drop) }
    5050 fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) |d| {
        current_any(d)?;
        least.set_optional(0);
        greatest.set_optional(-5);
        Ok(())
    }
    4000 fn cuCtxEnablePeerAccess(peer: u64, flags: u32) |d| { enable_peer(d, peer, flags) }
    4000 fn cuCtxDisablePeerAccess(peer: u64) |d| { disable_peer(d, peer) }
    4000 fn cuProfilerStart() |_d| { Ok(()) }
    4000 fn cuProfilerStop() |_d| { Ok(()) }
}
