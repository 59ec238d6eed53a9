//! Streams: ordered queues, each with a worker thread of its own, started with its first work.
//!
//! Rules. Work of one stream runs in order, work of two streams at the same time. The legacy default stream waits for
//! all blocking streams of its context and they for it; the order is fixed when work is submitted. Query and
//! synchronise answer for the work submitted before. A context with a sticky error runs nothing more.
//!
//! Capture: work given to a capturing stream becomes a node of a graph and does not run. Other streams join through an
//! event recorded in the capture. What could disturb a capture is refused with the real driver's codes and
//! invalidates it, depending on the thread's mode.

use crate::api::{Out, api};
use crate::context::{self, Context};
use crate::driver::Driver;
use crate::error::{
    CUresult, ERROR_CONTEXT_IS_DESTROYED, ERROR_ILLEGAL_STATE, ERROR_INVALID_HANDLE,
    ERROR_INVALID_VALUE, ERROR_NOT_READY, ERROR_NOT_SUPPORTED, ERROR_OPERATING_SYSTEM,
    ERROR_STREAM_CAPTURE_IMPLICIT, ERROR_STREAM_CAPTURE_INVALIDATED,
    ERROR_STREAM_CAPTURE_ISOLATION, ERROR_STREAM_CAPTURE_UNJOINED, ERROR_STREAM_CAPTURE_UNMATCHED,
    ERROR_STREAM_CAPTURE_UNSUPPORTED, ERROR_STREAM_CAPTURE_WRONG_THREAD, Res,
};
use crate::event::{self, Event};
use crate::graph::Graph;
use crate::memory::native;
use crate::sync::{lock, spawn};
use crate::task::{self, HostCall, Task};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Instant;

/// What a null stream stands for: which of the two families of entry points was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Null {
    Legacy,
    PerThread,
}

const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// A stream.
pub struct Stream {
    pub handle: u64,
    pub context: Arc<Context>,
    pub flags: u32,
    pub priority: i32,
    legacy: bool,
    queue: Mutex<Queue>,
    changed: Condvar,
    capture: Mutex<Option<Arc<Capture>>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Vec<Ticket>, Work)>,
    submitted: u64,
    completed: u64,
    worker: bool,
    closed: bool,
}

/// A point in a stream: everything submitted up to it.
#[derive(Clone)]
pub struct Ticket {
    stream: Arc<Stream>,
    number: u64,
}

/// What a queue holds.
pub enum Work {
    Task(Arc<Task>),
    /// A graph's tasks, in order.
    Graph(Arc<Vec<Arc<Task>>>),
    /// The given recording of an event.
    Record(Arc<Event>, u64),
    /// Nothing; the tickets that come with it are the point.
    Wait,
    /// The end of a stream-ordered allocation.
    Free(u64),
    /// `cuStreamAddCallback`.
    Callback(Callback),
}

/// `CUstreamCallback` with its arguments.
pub struct Callback {
    function: unsafe extern "C" fn(u64, CUresult, u64),
    stream: u64,
    data: u64,
}

impl Ticket {
    pub fn done(&self) -> bool {
        lock(&self.stream.queue).completed >= self.number
    }

    /// Waits for the point; false when the deadline passes first.
    pub fn wait(&self, deadline: Option<Instant>) -> bool {
        self.stream.wait(self.number, deadline)
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.stream.context
    }
}

impl Stream {
    fn new(handle: u64, context: &Arc<Context>, flags: u32, priority: i32) -> Self {
        Self {
            handle,
            context: Arc::clone(context),
            flags,
            priority,
            legacy: handle == LEGACY,
            queue: Mutex::default(),
            changed: Condvar::new(),
            capture: Mutex::default(),
        }
    }

    fn blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }

    fn wait(&self, number: u64, deadline: Option<Instant>) -> bool {
        let mut queue = lock(&self.queue);
        while queue.completed < number {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            let step = left.unwrap_or(std::time::Duration::from_secs(3600));
            queue = self
                .changed
                .wait_timeout(queue, step)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
        true
    }

    /// Waits for all work submitted so far.
    pub fn drain(&self, deadline: Option<Instant>) -> bool {
        let number = lock(&self.queue).submitted;
        self.wait(number, deadline)
    }

    fn idle(&self) -> bool {
        let queue = lock(&self.queue);
        queue.completed == queue.submitted
    }

    /// The last point, unless it is reached already.
    fn tail(self: &Arc<Self>) -> Option<Ticket> {
        let queue = lock(&self.queue);
        (queue.completed < queue.submitted).then(|| Ticket {
            stream: Arc::clone(self),
            number: queue.submitted,
        })
    }

    /// Lets the worker end when its queue is empty.
    pub fn close(&self) {
        lock(&self.queue).closed = true;
        self.changed.notify_all();
    }

    /// Queues work.
    pub fn submit(self: &Arc<Self>, driver: &'static Driver, work: Work) -> Res<Ticket> {
        self.submit_after(driver, work, Vec::new())
    }

    /// Queues work that also waits for points of other streams.
    pub fn submit_after(
        self: &Arc<Self>,
        driver: &'static Driver,
        work: Work,
        mut after: Vec<Ticket>,
    ) -> Res<Ticket> {
        self.context.healthy()?;
        if self.context.destroyed.load(Ordering::Acquire) {
            return Err(ERROR_CONTEXT_IS_DESTROYED);
        }
        let _order = lock(&self.context.submission);
        if self.legacy {
            let others = lock(&self.context.streams).clone();
            for other in others
                .iter()
                .filter(|other| other.blocking() && !other.legacy)
            {
                if other.capturing() {
                    other.invalidate_capture();
                    return Err(ERROR_STREAM_CAPTURE_IMPLICIT);
                }
                after.extend(other.tail());
            }
        } else if self.blocking() {
            after.extend(self.context.legacy.get().and_then(Self::tail));
        }
        let mut queue = lock(&self.queue);
        if !queue.worker {
            let worker = Arc::clone(self);
            if !spawn("phos-sim-stream", move || worker.work(driver)) {
                return Err(ERROR_OPERATING_SYSTEM);
            }
            queue.worker = true;
        }
        queue.submitted += 1;
        queue.waiting.push_back((after, work));
        self.changed.notify_all();
        Ok(Ticket {
            stream: Arc::clone(self),
            number: queue.submitted,
        })
    }

    /// Queues a task, or records it when the stream is captured (then there is no ticket).
    pub fn perform(self: &Arc<Self>, driver: &'static Driver, task: Task) -> Res<Option<Ticket>> {
        if let Some(capture) = self.captured()? {
            capture.append(driver, self, task);
            return Ok(None);
        }
        self.submit(driver, Work::Task(Arc::new(task))).map(Some)
    }

    fn work(self: Arc<Self>, driver: &'static Driver) {
        loop {
            let (after, work) = {
                let mut queue = lock(&self.queue);
                loop {
                    if let Some(next) = queue.waiting.pop_front() {
                        break next;
                    }
                    if queue.closed {
                        return;
                    }
                    queue = self
                        .changed
                        .wait(queue)
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                }
            };
            for ticket in after {
                ticket.wait(None);
            }
            self.run(driver, work);
            lock(&self.queue).completed += 1;
            self.changed.notify_all();
        }
    }

    fn run(&self, driver: &'static Driver, work: Work) {
        match work {
            Work::Task(task) => task::run(driver, &self.context, &task),
            Work::Graph(tasks) => tasks
                .iter()
                .for_each(|task| task::run(driver, &self.context, task)),
            Work::Record(event, recording) => event.reached(recording),
            Work::Wait => {}
            Work::Free(address) => {
                native::release(&mut driver.space.write(), address);
            }
            Work::Callback(callback) => {
                let status = crate::gate::code(self.context.healthy());
                // SAFETY: the application promised that the function and its data are valid until it was called.
                crate::gate::callback(|| unsafe {
                    (callback.function)(callback.stream, status, callback.data)
                });
            }
        }
    }

    /// The capture the stream is part of; an error once that was invalidated.
    pub fn captured(&self) -> Res<Option<Arc<Capture>>> {
        match &*lock(&self.capture) {
            Some(capture) if lock(&capture.state).invalid => Err(ERROR_STREAM_CAPTURE_INVALIDATED),
            capture => Ok(capture.clone()),
        }
    }

    pub fn capturing(&self) -> bool {
        lock(&self.capture).is_some()
    }

    pub fn invalidate_capture(&self) {
        if let Some(capture) = &*lock(&self.capture) {
            lock(&capture.state).invalid = true;
        }
    }
}

/// The default stream of a kind for a context.
fn default_stream(driver: &Driver, context: &Arc<Context>, null: Null) -> Arc<Stream> {
    match null {
        Null::Legacy => {
            let mut fresh = None;
            let stream = context.legacy.get_or_init(|| {
                let stream = Arc::new(Stream::new(LEGACY, context, 0, 0));
                fresh = Some(Arc::clone(&stream));
                stream
            });
            if let Some(fresh) = fresh {
                lock(&context.streams).push(fresh);
            }
            Arc::clone(stream)
        }
        Null::PerThread => {
            let mut streams = lock(&context.per_thread);
            let stream = streams
                .entry(std::thread::current().id())
                .or_insert_with(|| {
                    let (_, stream) = driver
                        .streams
                        .insert(|handle| Stream::new(handle, context, 0, 0));
                    lock(&context.streams).push(Arc::clone(&stream));
                    stream
                });
            Arc::clone(stream)
        }
    }
}

/// The stream that an argument names.
pub fn get(driver: &Driver, handle: u64, null: Null) -> Res<Arc<Stream>> {
    let null = match handle {
        0 => null,
        LEGACY => Null::Legacy,
        PER_THREAD => Null::PerThread,
        _ => return driver.streams.get(handle).ok_or(ERROR_INVALID_HANDLE),
    };
    Ok(default_stream(driver, &context::current(driver)?, null))
}

fn create(driver: &Driver, out: Out<u64>, flags: u32, priority: i32) -> Res {
    out.check()?;
    let context = context::current(driver)?;
    if flags & !NON_BLOCKING != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    let (handle, stream) = driver
        .streams
        .insert(|handle| Stream::new(handle, &context, flags, priority.clamp(-5, 0)));
    lock(&context.streams).push(stream);
    out.set(handle)
}

fn destroy(driver: &Driver, handle: u64) -> Res {
    if matches!(handle, 0..=2) {
        return Err(ERROR_INVALID_HANDLE);
    }
    let stream = driver.streams.get(handle).ok_or(ERROR_INVALID_HANDLE)?;
    driver.streams.remove(handle);
    stream.invalidate_capture();
    // Work that was submitted still runs; the context waits for it no longer, but memory it uses is checked.
    stream.drain(None);
    stream.close();
    lock(&stream.context.streams).retain(|known| !Arc::ptr_eq(known, &stream));
    Ok(())
}

fn query(driver: &'static Driver, handle: u64, null: Null) -> Res {
    let stream = get(driver, handle, null)?;
    stream.context.healthy()?;
    if stream.capturing() {
        stream.invalidate_capture();
        return Err(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    refuse_in_capture(driver)?;
    if implied(&stream).iter().all(|stream| stream.idle()) {
        stream.context.healthy()
    } else {
        Err(ERROR_NOT_READY)
    }
}

/// The streams whose work a stream's completion includes: for the legacy one, the blocking ones as well.
fn implied(stream: &Arc<Stream>) -> Vec<Arc<Stream>> {
    if stream.legacy {
        lock(&stream.context.streams)
            .iter()
            .filter(|other| other.blocking())
            .cloned()
            .collect()
    } else {
        vec![Arc::clone(stream)]
    }
}

fn synchronize(driver: &'static Driver, handle: u64, null: Null) -> Res {
    let stream = get(driver, handle, null)?;
    stream.context.healthy()?;
    if stream.capturing() {
        stream.invalidate_capture();
        return Err(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    refuse_in_capture(driver)?;
    for stream in implied(&stream) {
        stream.drain(None);
    }
    stream.context.healthy()
}

fn wait_event(driver: &'static Driver, handle: u64, event: u64, null: Null) -> Res {
    let stream = get(driver, handle, null)?;
    let event = event::get(driver, event)?;
    let (ticket, captured) = event.last();
    let capture = stream.captured()?;
    match (capture, captured) {
        (None, None) => match ticket.filter(|ticket| !ticket.done()) {
            Some(ticket) => stream
                .submit_after(driver, Work::Wait, vec![ticket])
                .map(drop),
            None => stream.context.healthy(),
        },
        (None, Some((capture, nodes))) => {
            if stream.legacy {
                return Err(ERROR_STREAM_CAPTURE_IMPLICIT);
            }
            capture.join(&stream, &nodes);
            Ok(())
        }
        (Some(capture), Some((other, nodes))) if Arc::ptr_eq(&capture, &other) => {
            capture.join(&stream, &nodes);
            Ok(())
        }
        (Some(capture), Some((other, _))) => {
            lock(&capture.state).invalid = true;
            lock(&other.state).invalid = true;
            Err(crate::error::ERROR_STREAM_CAPTURE_MERGE)
        }
        (Some(_), None) if ticket.is_none() => Ok(()),
        (Some(capture), None) => {
            lock(&capture.state).invalid = true;
            Err(ERROR_STREAM_CAPTURE_ISOLATION)
        }
    }
}

fn host_call(
    driver: &'static Driver,
    handle: u64,
    function: Option<HostFn>,
    data: u64,
    null: Null,
) -> Res {
    let function = function.ok_or(ERROR_INVALID_VALUE)?;
    get(driver, handle, null)?
        .perform(driver, Task::Host(HostCall { function, data }))
        .map(drop)
}

fn add_callback(
    driver: &'static Driver,
    handle: u64,
    function: Option<unsafe extern "C" fn(u64, CUresult, u64)>,
    data: u64,
    flags: u32,
    null: Null,
) -> Res {
    let function = function.ok_or(ERROR_INVALID_VALUE)?;
    if flags != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    let stream = get(driver, handle, null)?;
    if stream.capturing() {
        stream.invalidate_capture();
        return Err(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    stream
        .submit(
            driver,
            Work::Callback(Callback {
                function,
                stream: handle,
                data,
            }),
        )
        .map(drop)
}

/// `CUhostFn`.
pub type HostFn = unsafe extern "C" fn(u64);

// ---- capture ----

thread_local! {
    static MODE: Cell<i32> = const { Cell::new(GLOBAL) };
}

const GLOBAL: i32 = 0;
const RELAXED: i32 = 2;

/// A capture in progress.
pub struct Capture {
    pub id: u64,
    mode: i32,
    owner: ThreadId,
    origin: u64,
    pub graph: Arc<Graph>,
    state: Mutex<CaptureState>,
}

#[derive(Default)]
struct CaptureState {
    invalid: bool,
    /// For each stream that takes part: the nodes its next node depends on.
    tips: HashMap<u64, Vec<usize>>,
    streams: Vec<Arc<Stream>>,
}

/// All captures in progress.
#[derive(Default)]
pub struct CaptureModes {
    active: Mutex<Vec<Arc<Capture>>>,
    ids: AtomicU64,
}

impl Capture {
    fn append(&self, driver: &Driver, stream: &Stream, task: Task) {
        let mut state = lock(&self.state);
        let after = state.tips.get(&stream.handle).cloned().unwrap_or_default();
        let node = self.graph.add(driver, &self.graph, Arc::new(task), after);
        state.tips.insert(stream.handle, vec![node]);
    }

    /// Lets the capture end in an error.
    pub fn invalidate(&self) {
        lock(&self.state).invalid = true;
    }

    /// What an event recorded now stands for.
    pub fn tips(&self, stream: &Stream) -> Vec<usize> {
        lock(&self.state)
            .tips
            .get(&stream.handle)
            .cloned()
            .unwrap_or_default()
    }

    fn join(self: &Arc<Self>, stream: &Arc<Stream>, nodes: &[usize]) {
        let mut state = lock(&self.state);
        let tips = state.tips.entry(stream.handle).or_default();
        for node in nodes {
            if !tips.contains(node) {
                tips.push(*node);
            }
        }
        if !state.streams.iter().any(|known| Arc::ptr_eq(known, stream)) {
            state.streams.push(Arc::clone(stream));
        }
        drop(state);
        *lock(&stream.capture) = Some(Arc::clone(self));
    }
}

/// Refuses a call that could disturb a capture, and invalidates that capture, as the thread's mode says.
pub fn refuse_in_capture(driver: &Driver) -> Res {
    let active = lock(&driver.captures.active);
    if active.is_empty() {
        return Ok(());
    }
    let mode = MODE.try_with(Cell::get).unwrap_or(GLOBAL);
    if mode == RELAXED {
        return Ok(());
    }
    let this = std::thread::current().id();
    let mut refused = false;
    for capture in active.iter() {
        let own = capture.owner == this && capture.mode != RELAXED;
        let other = mode == GLOBAL && capture.owner != this && capture.mode == GLOBAL;
        if own || other {
            lock(&capture.state).invalid = true;
            refused = true;
        }
    }
    if refused {
        Err(ERROR_STREAM_CAPTURE_UNSUPPORTED)
    } else {
        Ok(())
    }
}

fn begin_capture(driver: &Driver, handle: u64, mode: i32, null: Null) -> Res {
    if !(GLOBAL..=RELAXED).contains(&mode) {
        return Err(ERROR_INVALID_VALUE);
    }
    let stream = get(driver, handle, null)?;
    stream.context.healthy()?;
    if stream.legacy {
        return Err(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if stream.capturing() {
        return Err(ERROR_ILLEGAL_STATE);
    }
    let id = driver.captures.ids.fetch_add(1, Ordering::Relaxed) + 1;
    let (_, graph) = driver.graphs.insert(Graph::new);
    let capture = Arc::new(Capture {
        id,
        mode,
        owner: std::thread::current().id(),
        origin: stream.handle,
        graph,
        state: Mutex::default(),
    });
    capture.join(&stream, &[]);
    lock(&driver.captures.active).push(capture);
    Ok(())
}

fn end_capture(driver: &Driver, handle: u64, out: Out<u64>, null: Null) -> Res {
    out.check()?;
    let stream = get(driver, handle, null)?;
    let capture = lock(&stream.capture).clone().ok_or(ERROR_ILLEGAL_STATE)?;
    if capture.origin != stream.handle {
        lock(&capture.state).invalid = true;
        return Err(ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != RELAXED && capture.owner != std::thread::current().id() {
        lock(&capture.state).invalid = true;
        return Err(ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }
    lock(&driver.captures.active).retain(|known| !Arc::ptr_eq(known, &capture));
    let (streams, tips, invalid) = {
        let mut state = lock(&capture.state);
        (
            std::mem::take(&mut state.streams),
            std::mem::take(&mut state.tips),
            state.invalid,
        )
    };
    for member in &streams {
        *lock(&member.capture) = None;
    }
    let reached = capture
        .graph
        .ancestors(tips.get(&stream.handle).map_or(&[][..], Vec::as_slice));
    let unjoined = tips.values().flatten().any(|node| !reached.contains(node));
    if invalid || unjoined {
        capture.graph.destroy(driver);
        out.set(0)?;
        return Err(if invalid {
            ERROR_STREAM_CAPTURE_INVALIDATED
        } else {
            ERROR_STREAM_CAPTURE_UNJOINED
        });
    }
    out.set(capture.graph.handle)
}

fn exchange_mode(mode: Out<i32>) -> Res {
    let wanted = mode.get()?;
    if !(GLOBAL..=RELAXED).contains(&wanted) {
        return Err(ERROR_INVALID_VALUE);
    }
    mode.set(MODE.try_with(|cell| cell.replace(wanted)).unwrap_or(GLOBAL))
}

/// Status (0 none, 1 active, 2 invalidated) and the capture.
fn status(
    driver: &Driver,
    handle: u64,
    null: Null,
) -> Res<(i32, Option<Arc<Capture>>, Arc<Stream>)> {
    let stream = get(driver, handle, null)?;
    if stream.legacy {
        let blocking = lock(&stream.context.streams)
            .iter()
            .any(|other| other.blocking() && other.capturing());
        return if blocking {
            Err(ERROR_STREAM_CAPTURE_IMPLICIT)
        } else {
            Ok((0, None, stream))
        };
    }
    let capture = lock(&stream.capture).clone();
    let status = capture.as_ref().map_or(
        0,
        |capture| if lock(&capture.state).invalid { 2 } else { 1 },
    );
    Ok((status, capture, stream))
}

fn capture_info(
    driver: &Driver,
    handle: u64,
    out: Out<i32>,
    id: Out<u64>,
    graph: Out<u64>,
    null: Null,
) -> Res<Option<Vec<u64>>> {
    let (status, capture, stream) = status(driver, handle, null)?;
    out.set(status)?;
    let Some(capture) = capture.filter(|_| status == 1) else {
        return Ok(None);
    };
    id.set_optional(capture.id);
    graph.set_optional(capture.graph.handle);
    Ok(Some(
        capture
            .tips(&stream)
            .iter()
            .filter_map(|node| capture.graph.node_handle(*node))
            .collect(),
    ))
}

thread_local! {
    /// What `dependencies_out` of the last capture query of this thread points to.
    static LAST_DEPENDENCIES: std::cell::RefCell<Vec<u64>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn give_dependencies(nodes: Option<Vec<u64>>, list: Out<*const u64>, count: Out<usize>) -> Res {
    let nodes = nodes.unwrap_or_default();
    count.set_optional(nodes.len());
    if !list.is_null() {
        let at = LAST_DEPENDENCIES.try_with(|last| {
            *last.borrow_mut() = nodes;
            last.borrow().as_ptr()
        });
        list.set(at.unwrap_or(std::ptr::null()))?;
    }
    Ok(())
}

api! { TABLE;
    2000 fn cuStreamCreate(stream: Out<u64>, flags: u32) |d| { create(d, stream, flags, 0) }
    5050 fn cuStreamCreateWithPriority(stream: Out<u64>, flags: u32, priority: i32) |d| {
        create(d, stream, flags, priority)
    }
    4000 fn cuStreamDestroy_v2(stream: u64) |d| { destroy(d, stream) }
    10010 fn cuThreadExchangeStreamCaptureMode(mode: Out<i32>) |_d| { exchange_mode(mode) }
    5050 fn cuStreamGetPriority(stream: u64, priority: Out<i32>) |d| {
        priority.set(get(d, stream, Null::Legacy)?.priority)
    }
    7000 fn cuStreamGetPriority_ptsz(stream: u64, priority: Out<i32>) |d| {
        priority.set(get(d, stream, Null::PerThread)?.priority)
    }
    5050 fn cuStreamGetFlags(stream: u64, flags: Out<u32>) |d| { flags.set(get(d, stream, Null::Legacy)?.flags) }
    7000 fn cuStreamGetFlags_ptsz(stream: u64, flags: Out<u32>) |d| {
        flags.set(get(d, stream, Null::PerThread)?.flags)
    }
    12000 fn cuStreamGetId(stream: u64, id: Out<u64>) |d| { id.set(get(d, stream, Null::Legacy)?.handle) }
    12000 fn cuStreamGetId_ptsz(stream: u64, id: Out<u64>) |d| { id.set(get(d, stream, Null::PerThread)?.handle) }
    9020 fn cuStreamGetCtx(stream: u64, context: Out<u64>) |d| {
        context.set(get(d, stream, Null::Legacy)?.context.handle)
    }
    9020 fn cuStreamGetCtx_ptsz(stream: u64, context: Out<u64>) |d| {
        context.set(get(d, stream, Null::PerThread)?.context.handle)
    }
    12080 fn cuStreamGetDevice(stream: u64, device: Out<i32>) |d| {
        device.set(get(d, stream, Null::Legacy)?.context.ordinal as i32)
    }
    12080 fn cuStreamGetDevice_ptsz(stream: u64, device: Out<i32>) |d| {
        device.set(get(d, stream, Null::PerThread)?.context.ordinal as i32)
    }
    2000 fn cuStreamQuery(stream: u64) @polled |d| { query(d, stream, Null::Legacy) }
    7000 fn cuStreamQuery_ptsz(stream: u64) @polled |d| { query(d, stream, Null::PerThread) }
    2000 fn cuStreamSynchronize(stream: u64) @polled |d| { synchronize(d, stream, Null::Legacy) }
    7000 fn cuStreamSynchronize_ptsz(stream: u64) @polled |d| { synchronize(d, stream, Null::PerThread) }
    3020 fn cuStreamWaitEvent(stream: u64, event: u64, _flags: u32) |d| { wait_event(d, stream, event, Null::Legacy) }
    7000 fn cuStreamWaitEvent_ptsz(stream: u64, event: u64, _flags: u32) |d| {
        wait_event(d, stream, event, Null::PerThread)
    }
    10000 fn cuLaunchHostFunc(stream: u64, function: Option<HostFn>, data: u64) |d| {
        host_call(d, stream, function, data, Null::Legacy)
    }
    10000 fn cuLaunchHostFunc_ptsz(stream: u64, function: Option<HostFn>, data: u64) |d| {
        host_call(d, stream, function, data, Null::PerThread)
    }
    5000 fn cuStreamAddCallback(
        stream: u64,
        function: Option<unsafe extern "C" fn(u64, CUresult, u64)>,
        data: u64, flags: u32,
    ) |d| {
        add_callback(d, stream, function, data, flags, Null::Legacy)
    }
    7000 fn cuStreamAddCallback_ptsz(
        stream: u64,
        function: Option<unsafe extern "C" fn(u64, CUresult, u64)>,
        data: u64, flags: u32,
    ) |d| {
        add_callback(d, stream, function, data, flags, Null::PerThread)
    }
    10000 fn cuStreamBeginCapture(stream: u64) |d| { begin_capture(d, stream, GLOBAL, Null::Legacy) }
    10000 fn cuStreamBeginCapture_ptsz(stream: u64) |d| { begin_capture(d, stream, GLOBAL, Null::PerThread) }
    10010 fn cuStreamBeginCapture_v2(stream: u64, mode: i32) |d| { begin_capture(d, stream, mode, Null::Legacy) }
    10010 fn cuStreamBeginCapture_v2_ptsz(stream: u64, mode: i32) |d| {
        begin_capture(d, stream, mode, Null::PerThread)
    }
    10000 fn cuStreamEndCapture(stream: u64, graph: Out<u64>) |d| { end_capture(d, stream, graph, Null::Legacy) }
    10000 fn cuStreamEndCapture_ptsz(stream: u64, graph: Out<u64>) |d| {
        end_capture(d, stream, graph, Null::PerThread)
    }
    10000 fn cuStreamIsCapturing(stream: u64, out: Out<i32>) |d| { out.set(status(d, stream, Null::Legacy)?.0) }
    10000 fn cuStreamIsCapturing_ptsz(stream: u64, out: Out<i32>) |d| { out.set(status(d, stream, Null::PerThread)?.0) }
    10010 fn cuStreamGetCaptureInfo(stream: u64, out: Out<i32>, id: Out<u64>) |d| {
        capture_info(d, stream, out, id, Out::nothing(), Null::Legacy).map(drop)
    }
    10010 fn cuStreamGetCaptureInfo_ptsz(stream: u64, out: Out<i32>, id: Out<u64>) |d| {
        capture_info(d, stream, out, id, Out::nothing(), Null::PerThread).map(drop)
    }
    11030 fn cuStreamGetCaptureInfo_v2(
        stream: u64,
        out: Out<i32>,
        id: Out<u64>,
        graph: Out<u64>,
        list: Out<*const u64>,
        count: Out<usize>,
    ) |d| {
        give_dependencies(capture_info(d, stream, out, id, graph, Null::Legacy)?, list, count)
    }
    11030 fn cuStreamGetCaptureInfo_v2_ptsz(
        stream: u64,
        out: Out<i32>,
        id: Out<u64>,
        graph: Out<u64>,
        list: Out<*const u64>,
        count: Out<usize>,
    ) |d| {
        give_dependencies(capture_info(d, stream, out, id, graph, Null::PerThread)?, list, count)
    }
    12030 fn cuStreamGetCaptureInfo_v3(
        stream: u64,
        out: Out<i32>,
        id: Out<u64>,
        graph: Out<u64>,
        list: Out<*const u64>,
        edges: Out<u64>,
        count: Out<usize>,
    ) |d| {
        edges.set_optional(0);
        give_dependencies(capture_info(d, stream, out, id, graph, Null::Legacy)?, list, count)
    }
    12030 fn cuStreamGetCaptureInfo_v3_ptsz(
        stream: u64,
        out: Out<i32>,
        id: Out<u64>,
        graph: Out<u64>,
        list: Out<*const u64>,
        edges: Out<u64>,
        count: Out<usize>,
    ) |d| {
        edges.set_optional(0);
        give_dependencies(capture_info(d, stream, out, id, graph, Null::PerThread)?, list, count)
    }
    6000 fn cuStreamAttachMemAsync(stream: u64, _address: u64, _size: usize, _flags: u32) |d| {
        get(d, stream, Null::Legacy).map(drop)
    }
    7000 fn cuStreamAttachMemAsync_ptsz(stream: u64, _address: u64, _size: usize, _flags: u32) |d| {
        get(d, stream, Null::PerThread).map(drop)
    }
    11000 fn cuStreamGetAttribute(stream: u64, _which: i32, _value: Out<u64>) |d| {
        get(d, stream, Null::Legacy)?;
        Err(ERROR_NOT_SUPPORTED)
    }
    11000 fn cuStreamGetAttribute_ptsz(stream: u64, _which: i32, _value: Out<u64>) |d| {
        get(d, stream, Null::PerThread)?;
        Err(ERROR_NOT_SUPPORTED)
    }
    11000 fn cuStreamSetAttribute(stream: u64, _which: i32, _value: u64) |d| { get(d, stream, Null::Legacy).map(drop) }
    11000 fn cuStreamSetAttribute_ptsz(stream: u64, _which: i32, _value: u64) |d| {
        get(d, stream, Null::PerThread).map(drop)
    }
    11000 fn cuStreamCopyAttributes(to: u64, from: u64) |d| {
        get(d, from, Null::Legacy)?;
        get(d, to, Null::Legacy).map(drop)
    }
    11000 fn cuStreamCopyAttributes_ptsz(to: u64, from: u64) |d| {
        get(d, from, Null::PerThread)?;
        get(d, to, Null::PerThread).map(drop)
    }
}
