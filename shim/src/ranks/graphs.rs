//! Calls that were captured into graphs: each launch of such a graph issues them again.
#![allow(non_snake_case)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use phos_protocol::shim::Counted;

use super::communicators;
use super::position::{self, Call};
use crate::abi::{self, Handle};
use crate::sync::lock;
use crate::table::{Entry, real, tracked};
use crate::{capture, gate};

/// How often a launch issues what.
pub type Calls = BTreeMap<(communicators::Handle, Counted), u64>;

/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`.
const CAPTURING: u32 = 1;

#[derive(Debug, Default)]
struct Graphs {
    /// By graph: the capture that it is made by, since a handle may be that of another graph later, and its calls.
    graphs: BTreeMap<usize, (u64, Calls)>,
    /// By executable graph.
    executables: BTreeMap<usize, Calls>,
}

static ALL: Mutex<Graphs> = Mutex::new(Graphs {
    graphs: BTreeMap::new(),
    executables: BTreeMap::new(),
});
/// Whether any graph has calls: most programs capture none.
static ANY: AtomicBool = AtomicBool::new(false);

/// The capture that a stream is in, and its graph.
fn capture_of(stream: usize) -> Option<(u64, usize)> {
    if !capture::any() {
        return None;
    }
    let (mut status, mut id, mut graph) = (0_u32, 0_u64, std::ptr::null_mut());
    // SAFETY: the stream is the caller's, who is about to use it; three places to write to, and none for what is not asked.
    let result = unsafe {
        real::cuStreamGetCaptureInfo_v2(
            stream as Handle,
            &mut status,
            &mut id,
            &mut graph,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    (result == abi::SUCCESS && status == CAPTURING).then_some((id, graph as usize))
}

fn add(
    capture: u64,
    graph: usize,
    calls: impl IntoIterator<Item = ((communicators::Handle, Counted), u64)>,
) {
    let mut all = lock(&ALL);
    let (of, known) = all.graphs.entry(graph).or_default();
    if *of != capture {
        *of = capture;
        known.clear();
    }
    for (call, times) in calls {
        *known.entry(call).or_insert(0) += times;
    }
    ANY.store(true, Ordering::Release);
}

/// Notes a call whose stream is being captured, which issues nothing yet.
pub fn captured(call: &Call) -> bool {
    let Some((capture, graph)) = capture_of(call.stream) else {
        return false;
    };
    add(capture, graph, [((call.communicator, call.what), 1)]);
    true
}

fn calls_of(graph: Handle) -> Option<Calls> {
    if !ANY.load(Ordering::Acquire) {
        return None;
    }
    let all = lock(&ALL);
    all.graphs
        .get(&(graph as usize))
        .map(|(_, calls)| calls.clone())
}

fn set_executable(executable: Handle, graph: Handle) {
    if !ANY.load(Ordering::Acquire) {
        return;
    }
    let calls = calls_of(graph);
    let mut all = lock(&ALL);
    match calls {
        Some(calls) => all.executables.insert(executable as usize, calls),
        // A handle that was another one's.
        None => all.executables.remove(&(executable as usize)),
    };
}

macro_rules! instantiate {
    ($name:ident($($argument:ident: $kind:ty),*)) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, executable: *mut Handle, graph: Handle, $($argument: $kind),*) -> u32 {
            let _inside = gate::enter();
            // SAFETY: the caller's promise.
            let result = unsafe { tracked::$name(entry, executable, graph, $($argument),*) };
            if result == abi::SUCCESS && !executable.is_null() {
                // SAFETY: the driver has just written it.
                set_executable(unsafe { *executable }, graph);
            }
            result
        }
    };
}
instantiate!(cuGraphInstantiate(node: *mut Handle, log: *mut std::ffi::c_char, size: usize));
instantiate!(cuGraphInstantiate_v2(node: *mut Handle, log: *mut std::ffi::c_char, size: usize));
instantiate!(cuGraphInstantiateWithFlags(flags: u64));
instantiate!(cuGraphInstantiateWithParams(params: *mut c_void));

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGraphExecUpdate(
    entry: Entry,
    executable: Handle,
    graph: Handle,
    node: *mut Handle,
    outcome: *mut u32,
) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuGraphExecUpdate(entry, executable, graph, node, outcome) };
    if result == abi::SUCCESS {
        set_executable(executable, graph);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGraphExecUpdate_v2(
    entry: Entry,
    executable: Handle,
    graph: Handle,
    outcome: *mut c_void,
) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuGraphExecUpdate_v2(entry, executable, graph, outcome) };
    if result == abi::SUCCESS {
        set_executable(executable, graph);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGraphClone(entry: Entry, clone: *mut Handle, original: Handle) -> u32 {
    let _inside = gate::enter_query();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuGraphClone(entry, clone, original) };
    if result == abi::SUCCESS
        && !clone.is_null()
        && let Some(calls) = calls_of(original)
    {
        // SAFETY: the driver has just written it.
        let clone = unsafe { *clone };
        lock(&ALL).graphs.insert(clone as usize, (0, calls));
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGraphAddChildGraphNode(
    entry: Entry,
    node: *mut Handle,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
    child: Handle,
) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe {
        tracked::cuGraphAddChildGraphNode(entry, node, graph, dependencies, count, child)
    };
    if result == abi::SUCCESS
        && let Some(calls) = calls_of(child)
    {
        let capture = lock(&ALL)
            .graphs
            .get(&(graph as usize))
            .map_or(0, |(of, _)| *of);
        add(capture, graph as usize, calls);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGraphDestroy(entry: Entry, graph: Handle) -> u32 {
    let _inside = gate::enter_query();
    // Before: another thread may get the handle for a new one.
    if ANY.load(Ordering::Acquire) {
        lock(&ALL).graphs.remove(&(graph as usize));
    }
    // SAFETY: the caller's promise.
    unsafe { tracked::cuGraphDestroy(entry, graph) }
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGraphExecDestroy(entry: Entry, executable: Handle) -> u32 {
    let _inside = gate::enter_query();
    if ANY.load(Ordering::Acquire) {
        lock(&ALL).executables.remove(&(executable as usize));
    }
    // SAFETY: the caller's promise.
    unsafe { tracked::cuGraphExecDestroy(entry, executable) }
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGraphLaunch(entry: Entry, executable: Handle, stream: Handle) -> u32 {
    let _inside = gate::enter();
    let calls = if ANY.load(Ordering::Acquire) {
        lock(&ALL).executables.get(&(executable as usize)).cloned()
    } else {
        None
    };
    // SAFETY: the caller's promise.
    let launch = || unsafe { tracked::cuGraphLaunch(entry, executable, stream) };
    match (calls, capture_of(stream as usize)) {
        (None, _) => launch(),
        (Some(calls), Some((capture, graph))) => {
            add(capture, graph, calls);
            launch()
        }
        (Some(calls), None) => position::launch(&calls, launch),
    }
}
