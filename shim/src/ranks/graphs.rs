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
use crate::{capture, gate, mode};

/// How often a launch issues what.
pub type Calls = BTreeMap<(communicators::Handle, Counted), u64>;

/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`.
const CAPTURING: u32 = 1;

#[derive(Debug, Default)]
struct Graphs {
    /// By graph: the capture that it is made by, since a handle may be that of another graph later, and its calls. 0: it was made
    /// otherwise, and what is captured into it is added.
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
    let (of, known) = all.graphs.entry(graph).or_insert((capture, Calls::new()));
    // What is added by hand is added to what was captured.
    if *of != capture && *of != 0 && capture != 0 {
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
    if !ANY.load(Ordering::Acquire) || !mode::is_active() {
        return None;
    }
    let all = lock(&ALL);
    all.graphs
        .get(&(graph as usize))
        .map(|(_, calls)| calls.clone())
}

fn set_executable(executable: Handle, graph: Handle) {
    if !ANY.load(Ordering::Acquire) || !mode::is_active() {
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
        add(0, graph as usize, calls);
    }
    result
}

/// A graph is captured into that is there already: it keeps what it has.
pub fn captures_into(graph: Handle) {
    if !mode::is_active() || !super::there_are() {
        return;
    }
    lock(&ALL).graphs.entry(graph as usize).or_default().0 = 0;
    ANY.store(true, Ordering::Release);
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGraphCreate(entry: Entry, graph: *mut Handle, flags: u32) -> u32 {
    let _inside = gate::enter_query();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuGraphCreate(entry, graph, flags) };
    if result == abi::SUCCESS
        && !graph.is_null()
        && ANY.load(Ordering::Acquire)
        && mode::is_active()
    {
        // A handle that was another one's. SAFETY: the driver has just written it.
        let graph = unsafe { *graph };
        lock(&ALL).graphs.remove(&(graph as usize));
    }
    result
}

/// A node that holds a graph, as `CUgraphNodeParams` begins: its type, three reserved words, and the graph.
#[repr(C)]
struct ChildNode {
    kind: u32,
    reserved: [u32; 3],
    graph: Handle,
    ownership: u32,
}

/// `CU_GRAPH_NODE_TYPE_GRAPH`.
const CHILD: u32 = 4;
/// `CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE`.
const MOVED: u32 = 1;

fn added(graph: Handle, node: *const c_void) {
    if node.is_null() || !ANY.load(Ordering::Acquire) || !mode::is_active() {
        return;
    }
    // SAFETY: the driver has just read it: it is 256 bytes long, of which these are the first.
    let node = unsafe { node.cast::<ChildNode>().read_unaligned() };
    if node.kind != CHILD {
        return;
    }
    if let Some(calls) = calls_of(node.graph) {
        add(0, graph as usize, calls);
    }
    if node.ownership == MOVED {
        lock(&ALL).graphs.remove(&(node.graph as usize));
    }
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGraphAddNode(
    entry: Entry,
    node: *mut Handle,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
    params: *mut c_void,
) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result =
        unsafe { tracked::cuGraphAddNode(entry, node, graph, dependencies, count, params) };
    if result == abi::SUCCESS {
        added(graph, params);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGraphAddNode_v2(
    entry: Entry,
    node: *mut Handle,
    graph: Handle,
    dependencies: *const Handle,
    edges: *const c_void,
    count: usize,
    params: *mut c_void,
) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe {
        tracked::cuGraphAddNode_v2(entry, node, graph, dependencies, edges, count, params)
    };
    if result == abi::SUCCESS {
        added(graph, params);
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
    if ANY.load(Ordering::Acquire) && mode::is_active() {
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
    if ANY.load(Ordering::Acquire) && mode::is_active() {
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
    let calls = if ANY.load(Ordering::Acquire) && mode::is_active() {
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
