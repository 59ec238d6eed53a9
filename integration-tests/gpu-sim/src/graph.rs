//! Graphs: captured or built node by node, instantiated, launched.
//!
//! A launch runs the nodes one after the other, in an order that respects their dependencies. Memory nodes, conditional
//! nodes and nodes for events are not there: asking for one is not supported.

use crate::api::{In, Out, api};
use crate::driver::Driver;
use crate::error::{
    ERROR_GRAPH_EXEC_UPDATE_FAILURE, ERROR_INVALID_HANDLE, ERROR_INVALID_VALUE,
    ERROR_NOT_SUPPORTED, Res,
};
use crate::launch::KernelCall;
use crate::memory::copy::{self, Fill, Memcpy3D};
use crate::stream::{self, HostFn, Null, Work};
use crate::sync::lock;
use crate::task::{HostCall, Task};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// A graph.
pub struct Graph {
    pub handle: u64,
    nodes: Mutex<Vec<Node>>,
}

#[derive(Clone)]
struct Node {
    handle: u64,
    task: Arc<Task>,
    after: Vec<usize>,
    /// False once it was destroyed; its place stays.
    live: bool,
}

/// What a `CUgraphNode` names.
pub struct NodeRef {
    graph: Arc<Graph>,
    index: usize,
}

/// An instantiated graph.
pub struct Exec {
    steps: Mutex<Vec<Step>>,
    flags: u64,
}

#[derive(Clone)]
struct Step {
    /// Index of the node it came from.
    node: usize,
    task: Arc<Task>,
    enabled: bool,
}

/// `CUDA_KERNEL_NODE_PARAMS`, version 2; version 1 lacks the last two.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelParams {
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    params: u64,
    extra: u64,
    kernel: u64,
    context: u64,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FillParams {
    address: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostParams {
    function: Option<HostFn>,
    data: u64,
}

const _: () = assert!(size_of::<KernelParams>() == 72 && size_of::<FillParams>() == 40);

impl Graph {
    pub fn new(handle: u64) -> Self {
        Self {
            handle,
            nodes: Mutex::default(),
        }
    }

    /// Appends a node; its index.
    pub fn add(
        &self,
        driver: &Driver,
        own: &Arc<Self>,
        task: Arc<Task>,
        after: Vec<usize>,
    ) -> usize {
        let mut nodes = lock(&self.nodes);
        let index = nodes.len();
        let (handle, _) = driver.nodes.insert(|_| NodeRef {
            graph: Arc::clone(own),
            index,
        });
        nodes.push(Node {
            handle,
            task,
            after,
            live: true,
        });
        index
    }

    /// The nodes and everything they come after.
    pub fn ancestors(&self, from: &[usize]) -> HashSet<usize> {
        let nodes = lock(&self.nodes);
        let mut found: HashSet<usize> = HashSet::new();
        let mut left = from.to_vec();
        while let Some(index) = left.pop() {
            if found.insert(index) {
                left.extend(
                    nodes
                        .get(index)
                        .map(|node| node.after.clone())
                        .unwrap_or_default(),
                );
            }
        }
        found
    }

    pub fn node_handle(&self, index: usize) -> Option<u64> {
        lock(&self.nodes)
            .get(index)
            .filter(|node| node.live)
            .map(|node| node.handle)
    }

    /// Takes the graph and its nodes out of the tables.
    pub fn destroy(&self, driver: &Driver) {
        driver.graphs.remove(self.handle);
        // Outside the lock: the last reference to a node's graph may be the one in its handle.
        let nodes = std::mem::take(&mut *lock(&self.nodes));
        for node in nodes {
            driver.nodes.remove(node.handle);
        }
    }

    /// The live nodes in an order that respects dependencies, earliest index first; None for a cycle.
    fn order(&self) -> Option<Vec<Step>> {
        let nodes = lock(&self.nodes);
        let mut done = vec![false; nodes.len()];
        let mut steps = Vec::new();
        loop {
            let ready = nodes.iter().enumerate().find(|(index, node)| {
                !done[*index]
                    && node
                        .after
                        .iter()
                        .all(|before| done[*before] || !nodes[*before].live)
            });
            let Some((index, node)) = ready else { break };
            done[index] = true;
            if node.live {
                steps.push(Step {
                    node: index,
                    task: Arc::clone(&node.task),
                    enabled: true,
                });
            }
        }
        done.into_iter().all(|done| done).then_some(steps)
    }

    fn tasks(&self) -> Res<Vec<Arc<Task>>> {
        Ok(self
            .order()
            .ok_or(ERROR_INVALID_VALUE)?
            .into_iter()
            .map(|step| step.task)
            .collect())
    }
}

fn get(driver: &Driver, handle: u64) -> Res<Arc<Graph>> {
    driver.graphs.get(handle).ok_or(ERROR_INVALID_VALUE)
}

fn node(driver: &Driver, handle: u64) -> Res<(Arc<NodeRef>, Node)> {
    let reference = driver.nodes.get(handle).ok_or(ERROR_INVALID_VALUE)?;
    let node = lock(&reference.graph.nodes)
        .get(reference.index)
        .filter(|node| node.live)
        .cloned();
    Ok((reference, node.ok_or(ERROR_INVALID_VALUE)?))
}

fn exec(driver: &Driver, handle: u64) -> Res<Arc<Exec>> {
    driver.execs.get(handle).ok_or(ERROR_INVALID_VALUE)
}

fn add(
    driver: &Driver,
    out: Out<u64>,
    graph: u64,
    after: In<u64>,
    count: usize,
    task: Task,
) -> Res {
    out.check()?;
    let graph = get(driver, graph)?;
    let mut before = Vec::new();
    for handle in after.all(count)? {
        let (reference, _) = node(driver, handle)?;
        if !Arc::ptr_eq(&reference.graph, &graph) {
            return Err(ERROR_INVALID_VALUE);
        }
        before.push(reference.index);
    }
    let index = graph.add(driver, &graph, Arc::new(task), before);
    out.set(graph.node_handle(index).ok_or(ERROR_INVALID_VALUE)?)
}

fn kernel(driver: &Driver, params: KernelParams) -> Res<Task> {
    let handle = if params.function != 0 {
        params.function
    } else {
        params.kernel
    };
    let (list, extra) = (
        In(params.params as *const u64),
        In(params.extra as *const u64),
    );
    KernelCall::new(
        driver,
        handle,
        params.grid,
        params.block,
        params.shared,
        list,
        extra,
    )
    .map(Task::Kernel)
}

/// Version 1 of the parameters: the last two fields are not there.
fn kernel_v1(params: In<[u64; 7]>) -> Res<KernelParams> {
    let words = params.get()?;
    let mut whole = [0_u64; 9];
    whole[..7].copy_from_slice(&words);
    // SAFETY: the same size, and both are plain integers.
    Ok(unsafe { std::mem::transmute::<[u64; 9], KernelParams>(whole) })
}

fn kernel_params(driver: &Driver, handle: u64) -> Res<KernelParams> {
    match &*node(driver, handle)?.1.task {
        Task::Kernel(call) => Ok(KernelParams {
            function: call.handle,
            grid: call.grid,
            block: call.block,
            shared: call.shared,
            params: call.pointers.as_ptr() as u64,
            extra: 0,
            kernel: 0,
            context: 0,
        }),
        _ => Err(ERROR_INVALID_VALUE),
    }
}

fn fill(driver: &Driver, params: FillParams) -> Res<Task> {
    driver.space.read().require(params.address, true)?;
    if !matches!(params.element, 1 | 2 | 4) {
        return Err(ERROR_INVALID_VALUE);
    }
    Ok(Task::Fill(Fill {
        address: params.address,
        pitch: params.pitch as u64,
        value: params.value,
        element: params.element,
        width: params.width as u64,
        height: params.height as u64,
    }))
}

fn fill_params(driver: &Driver, handle: u64) -> Res<FillParams> {
    match &*node(driver, handle)?.1.task {
        Task::Fill(fill) => Ok(FillParams {
            address: fill.address,
            pitch: fill.pitch as usize,
            value: fill.value,
            element: fill.element,
            width: fill.width as usize,
            height: fill.height as usize,
        }),
        _ => Err(ERROR_INVALID_VALUE),
    }
}

fn host(params: HostParams) -> Res<Task> {
    Ok(Task::Host(HostCall {
        function: params.function.ok_or(ERROR_INVALID_VALUE)?,
        data: params.data,
    }))
}

/// Replaces the task of a node, which must stay of its type.
fn set_node(driver: &Driver, handle: u64, task: Task) -> Res {
    let (reference, old) = node(driver, handle)?;
    if old.task.node_type() != task.node_type() {
        return Err(ERROR_INVALID_VALUE);
    }
    if let Some(node) = lock(&reference.graph.nodes).get_mut(reference.index) {
        node.task = Arc::new(task);
    }
    Ok(())
}

/// Replaces the task of an instantiated graph's node.
fn set_step(driver: &Driver, handle: u64, node_handle: u64, task: Task) -> Res {
    let exec = exec(driver, handle)?;
    let (reference, old) = node(driver, node_handle)?;
    if old.task.node_type() != task.node_type() {
        return Err(ERROR_INVALID_VALUE);
    }
    let mut steps = lock(&exec.steps);
    steps
        .iter_mut()
        .find(|step| step.node == reference.index)
        .ok_or(ERROR_INVALID_VALUE)?
        .task = Arc::new(task);
    Ok(())
}

fn instantiate(driver: &Driver, out: Out<u64>, graph: u64, flags: u64) -> Res {
    out.check()?;
    let steps = Mutex::new(get(driver, graph)?.order().ok_or(ERROR_INVALID_VALUE)?);
    if flags & !15 != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    if flags & 4 != 0 {
        return Err(ERROR_NOT_SUPPORTED); // launch from the device
    }
    out.set(driver.execs.insert(|_| Exec { steps, flags }).0)
}

fn launch(driver: &'static Driver, handle: u64, on: (u64, Null)) -> Res {
    let exec = exec(driver, handle)?;
    let stream = stream::get(driver, on.0, on.1)?;
    let tasks: Vec<_> = lock(&exec.steps)
        .iter()
        .filter(|step| step.enabled)
        .map(|step| Arc::clone(&step.task))
        .collect();
    if stream.capturing() {
        return stream.perform(driver, Task::Child(tasks)).map(drop);
    }
    stream
        .submit(driver, Work::Graph(Arc::new(tasks)))
        .map(drop)
}

/// Takes over a graph of the same shape. Results: 0 success, 2 topology changed, 3 a node's type changed.
fn update(driver: &Driver, handle: u64, graph: u64) -> Res<i32> {
    let exec = exec(driver, handle)?;
    let fresh = get(driver, graph)?.order().ok_or(ERROR_INVALID_VALUE)?;
    let mut steps = lock(&exec.steps);
    if fresh.len() != steps.len() {
        return Ok(2);
    }
    if fresh
        .iter()
        .zip(steps.iter())
        .any(|(new, old)| new.task.node_type() != old.task.node_type())
    {
        return Ok(3);
    }
    *steps = fresh;
    Ok(0)
}

/// Fills a list of handles: all of them counted when there is no list.
fn give(handles: &[u64], list: Out<u64>, count: Out<usize>) -> Res {
    if !list.is_null() {
        let room = count.get()?;
        list.set_all(&handles[..handles.len().min(room)])?;
        return count.set(handles.len().min(room));
    }
    count.set(handles.len())
}

fn nodes(driver: &Driver, graph: u64, roots: bool) -> Res<Vec<u64>> {
    let graph = get(driver, graph)?;
    let nodes = lock(&graph.nodes);
    Ok(nodes
        .iter()
        .filter(|n| n.live && (!roots || n.after.is_empty()))
        .map(|n| n.handle)
        .collect())
}

/// Pairs (from, to).
fn edges(driver: &Driver, graph: u64) -> Res<Vec<(u64, u64)>> {
    let graph = get(driver, graph)?;
    let nodes = lock(&graph.nodes);
    let live = nodes.iter().filter(|node| node.live);
    Ok(live
        .flat_map(|n| {
            n.after
                .iter()
                .filter_map(|b| nodes.get(*b))
                .map(|b| (b.handle, n.handle))
        })
        .collect())
}

fn give_edges(driver: &Driver, graph: u64, from: Out<u64>, to: Out<u64>, count: Out<usize>) -> Res {
    let edges = edges(driver, graph)?;
    if from.is_null() || to.is_null() {
        return count.set(edges.len());
    }
    let room = count.get()?.min(edges.len());
    let (before, after): (Vec<_>, Vec<_>) = edges.into_iter().take(room).unzip();
    from.set_all(&before)?;
    to.set_all(&after)?;
    count.set(room)
}

fn neighbours(
    driver: &Driver,
    handle: u64,
    before: bool,
    list: Out<u64>,
    count: Out<usize>,
) -> Res {
    let (reference, _) = node(driver, handle)?;
    let edges = edges(driver, reference.graph.handle)?;
    let near: Vec<u64> = edges
        .into_iter()
        .filter_map(|(from, to)| {
            if before {
                (to == handle).then_some(from)
            } else {
                (from == handle).then_some(to)
            }
        })
        .collect();
    give(&near, list, count)
}

fn add_dependencies(driver: &Driver, graph: u64, from: In<u64>, to: In<u64>, count: usize) -> Res {
    let graph = get(driver, graph)?;
    for index in 0..count {
        let (before, after) = (
            node(driver, from.at(index)?)?.0,
            node(driver, to.at(index)?)?.0,
        );
        if !Arc::ptr_eq(&before.graph, &graph)
            || !Arc::ptr_eq(&after.graph, &graph)
            || before.index == after.index
        {
            return Err(ERROR_INVALID_VALUE);
        }
        if let Some(node) = lock(&graph.nodes).get_mut(after.index)
            && !node.after.contains(&before.index)
        {
            node.after.push(before.index);
        }
    }
    Ok(())
}

fn clone(driver: &Driver, out: Out<u64>, graph: u64) -> Res {
    out.check()?;
    let original = get(driver, graph)?;
    let copied = lock(&original.nodes).clone();
    let (handle, graph) = driver.graphs.insert(Graph::new);
    for node in copied {
        let index = graph.add(driver, &graph, node.task, node.after);
        if let Some(copy) = lock(&graph.nodes).get_mut(index) {
            copy.live = node.live;
        }
    }
    out.set(handle)
}

fn child(driver: &Driver, graph: u64) -> Res<Task> {
    get(driver, graph)?.tasks().map(Task::Child)
}

api! { TABLE;
    10000 fn cuGraphCreate(graph: Out<u64>, _flags: u32) |d| {
        graph.check()?;
        graph.set(d.graphs.insert(Graph::new).0)
    }
    10000 fn cuGraphDestroy(graph: u64) |d| {
        get(d, graph)?.destroy(d);
        Ok(())
    }
    10000 fn cuGraphClone(clone_out: Out<u64>, graph: u64) |d| { clone(d, clone_out, graph) }
    10000 fn cuGraphAddKernelNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize, params: In<[u64; 7]>) |d| {
        add(d, out, graph, after, count, kernel(d, kernel_v1(params)?)?)
    }
    12000 fn cuGraphAddKernelNode_v2(
        out: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        params: In<KernelParams>,
    ) |d| {
        add(d, out, graph, after, count, kernel(d, params.get()?)?)
    }
    10000 fn cuGraphKernelNodeGetParams(node: u64, params: Out<[u64; 7]>) |d| {
        let whole = kernel_params(d, node)?;
        // SAFETY: the same size, and both are plain integers.
        let words = unsafe { std::mem::transmute::<KernelParams, [u64; 9]>(whole) };
        params.set([words[0], words[1], words[2], words[3], words[4], words[5], words[6]])
    }
    12000 fn cuGraphKernelNodeGetParams_v2(node: u64, params: Out<KernelParams>) |d| {
        params.set(kernel_params(d, node)?)
    }
    10000 fn cuGraphKernelNodeSetParams(node: u64, params: In<[u64; 7]>) |d| {
        set_node(d, node, kernel(d, kernel_v1(params)?)?)
    }
    12000 fn cuGraphKernelNodeSetParams_v2(node: u64, params: In<KernelParams>) |d| {
        set_node(d, node, kernel(d, params.get()?)?)
    }
    10010 fn cuGraphExecKernelNodeSetParams(exec: u64, node: u64, params: In<[u64; 7]>) |d| {
        set_step(d, exec, node, kernel(d, kernel_v1(params)?)?)
    }
    12000 fn cuGraphExecKernelNodeSetParams_v2(exec: u64, node: u64, params: In<KernelParams>) |d| {
        set_step(d, exec, node, kernel(d, params.get()?)?)
    }
    10000 fn cuGraphAddMemcpyNode(
        out: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        params: In<Memcpy3D>,
        _context: u64,
    ) |d| {
        add(d, out, graph, after, count, Task::Copy(copy::node(d, &params.get()?)?))
    }
    10000 fn cuGraphMemcpyNodeGetParams(handle: u64, params: Out<Memcpy3D>) |d| {
        match &*node(d, handle)?.1.task {
            Task::Copy(copy) => params.set(copy::describe(copy)),
            _ => Err(ERROR_INVALID_VALUE),
        }
    }
    10000 fn cuGraphMemcpyNodeSetParams(node: u64, params: In<Memcpy3D>) |d| {
        set_node(d, node, Task::Copy(copy::node(d, &params.get()?)?))
    }
    10020 fn cuGraphExecMemcpyNodeSetParams(exec: u64, node: u64, params: In<Memcpy3D>, _context: u64) |d| {
        set_step(d, exec, node, Task::Copy(copy::node(d, &params.get()?)?))
    }
    10000 fn cuGraphAddMemsetNode(
        out: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        params: In<FillParams>,
        _context: u64,
    ) |d| {
        add(d, out, graph, after, count, fill(d, params.get()?)?)
    }
    10000 fn cuGraphMemsetNodeGetParams(node: u64, params: Out<FillParams>) |d| { params.set(fill_params(d, node)?) }
    10000 fn cuGraphMemsetNodeSetParams(node: u64, params: In<FillParams>) |d| {
        set_node(d, node, fill(d, params.get()?)?)
    }
    10020 fn cuGraphExecMemsetNodeSetParams(exec: u64, node: u64, params: In<FillParams>, _context: u64) |d| {
        set_step(d, exec, node, fill(d, params.get()?)?)
    }
    10000 fn cuGraphAddHostNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize, params: In<HostParams>) |d| {
        add(d, out, graph, after, count, host(params.get()?)?)
    }
    10000 fn cuGraphHostNodeGetParams(handle: u64, params: Out<HostParams>) |d| {
        match &*node(d, handle)?.1.task {
            Task::Host(call) => params.set(HostParams { function: Some(call.function), data: call.data }),
            _ => Err(ERROR_INVALID_VALUE),
        }
    }
    10020 fn cuGraphExecHostNodeSetParams(exec: u64, node: u64, params: In<HostParams>) |d| {
        set_step(d, exec, node, host(params.get()?)?)
    }
    10000 fn cuGraphAddEmptyNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize) |d| {
        add(d, out, graph, after, count, Task::Empty)
    }
    10000 fn cuGraphAddChildGraphNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize, child_graph: u64) |d| {
        add(d, out, graph, after, count, child(d, child_graph)?)
    }
    11010 fn cuGraphExecChildGraphNodeSetParams(exec: u64, node: u64, child_graph: u64) |d| {
        set_step(d, exec, node, child(d, child_graph)?)
    }
    11040 fn cuGraphAddMemAllocNode(_out: Out<u64>, _graph: u64, _after: In<u64>, _count: usize, _params: u64) |_d| {
        Err(ERROR_NOT_SUPPORTED)
    }
    11040 fn cuGraphAddMemFreeNode(_out: Out<u64>, _graph: u64, _after: In<u64>, _count: usize, _address: u64) |_d| {
        Err(ERROR_NOT_SUPPORTED)
    }
    10000 fn cuGraphNodeGetType(handle: u64, kind: Out<i32>) |d| { kind.set(node(d, handle)?.1.task.node_type()) }
    10000 fn cuGraphDestroyNode(handle: u64) |d| {
        let (reference, _) = node(d, handle)?;
        if let Some(node) = lock(&reference.graph.nodes).get_mut(reference.index) { node.live = false; }
        d.nodes.remove(handle);
        Ok(())
    }
    10000 fn cuGraphGetNodes(graph: u64, list: Out<u64>, count: Out<usize>) |d| {
        give(&nodes(d, graph, false)?, list, count)
    }
    10000 fn cuGraphGetRootNodes(graph: u64, list: Out<u64>, count: Out<usize>) |d| {
        give(&nodes(d, graph, true)?, list, count)
    }
    10000 fn cuGraphGetEdges(graph: u64, from: Out<u64>, to: Out<u64>, count: Out<usize>) |d| {
        give_edges(d, graph, from, to, count)
    }
    12030 fn cuGraphGetEdges_v2(graph: u64, from: Out<u64>, to: Out<u64>, _data: u64, count: Out<usize>) |d| {
        give_edges(d, graph, from, to, count)
    }
    10000 fn cuGraphNodeGetDependencies(node: u64, list: Out<u64>, count: Out<usize>) |d| {
        neighbours(d, node, true, list, count)
    }
    12030 fn cuGraphNodeGetDependencies_v2(node: u64, list: Out<u64>, _data: u64, count: Out<usize>) |d| {
        neighbours(d, node, true, list, count)
    }
    10000 fn cuGraphNodeGetDependentNodes(node: u64, list: Out<u64>, count: Out<usize>) |d| {
        neighbours(d, node, false, list, count)
    }
    12030 fn cuGraphNodeGetDependentNodes_v2(node: u64, list: Out<u64>, _data: u64, count: Out<usize>) |d| {
        neighbours(d, node, false, list, count)
    }
    10000 fn cuGraphAddDependencies(graph: u64, from: In<u64>, to: In<u64>, count: usize) |d| {
        add_dependencies(d, graph, from, to, count)
    }
    12030 fn cuGraphAddDependencies_v2(graph: u64, from: In<u64>, to: In<u64>, _data: u64, count: usize) |d| {
        add_dependencies(d, graph, from, to, count)
    }
    10000 fn cuGraphInstantiate(exec: Out<u64>, graph: u64, _error: Out<u64>, _log: Out<u8>, _room: usize) |d| {
        instantiate(d, exec, graph, 0)
    }
    11000 fn cuGraphInstantiate_v2(exec: Out<u64>, graph: u64, _error: Out<u64>, _log: Out<u8>, _room: usize) |d| {
        instantiate(d, exec, graph, 0)
    }
    11040 fn cuGraphInstantiateWithFlags(exec: Out<u64>, graph: u64, flags: u64) |d| { instantiate(d, exec, graph, flags) }
    12000 fn cuGraphInstantiateWithParams(exec: Out<u64>, graph: u64, params: In<u64>) |d| {
        instantiate(d, exec, graph, params.get()?)
    }
    12000 fn cuGraphInstantiateWithParams_ptsz(exec: Out<u64>, graph: u64, params: In<u64>) |d| {
        instantiate(d, exec, graph, params.get()?)
    }
    12000 fn cuGraphExecGetFlags(handle: u64, flags: Out<u64>) |d| { flags.set(exec(d, handle)?.flags) }
    11060 fn cuGraphNodeSetEnabled(handle: u64, node_handle: u64, enabled: u32) |d| {
        let exec = exec(d, handle)?;
        let (reference, _) = node(d, node_handle)?;
        let mut steps = lock(&exec.steps);
        let step = steps.iter_mut().find(|step| step.node == reference.index).ok_or(ERROR_INVALID_VALUE)?;
        step.enabled = enabled != 0;
        Ok(())
    }
    11060 fn cuGraphNodeGetEnabled(handle: u64, node_handle: u64, enabled: Out<u32>) |d| {
        let exec = exec(d, handle)?;
        let (reference, _) = node(d, node_handle)?;
        let found = lock(&exec.steps).iter().find(|step| step.node == reference.index).map(|step| step.enabled);
        enabled.set(u32::from(found.ok_or(ERROR_INVALID_VALUE)?))
    }
    11010 fn cuGraphUpload(handle: u64, on: u64) |d| {
        exec(d, handle)?;
        stream::get(d, on, Null::Legacy).map(drop)
    }
    11010 fn cuGraphUpload_ptsz(handle: u64, on: u64) |d| {
        exec(d, handle)?;
        stream::get(d, on, Null::PerThread).map(drop)
    }
    10000 fn cuGraphLaunch(exec: u64, on: u64) |d| { launch(d, exec, (on, Null::Legacy)) }
    10000 fn cuGraphLaunch_ptsz(exec: u64, on: u64) |d| { launch(d, exec, (on, Null::PerThread)) }
    10000 fn cuGraphExecDestroy(handle: u64) |d| { d.execs.remove(handle).map(drop).ok_or(ERROR_INVALID_HANDLE) }
    10020 fn cuGraphExecUpdate(exec: u64, graph: u64, error: Out<u64>, result: Out<i32>) |d| {
        let code = update(d, exec, graph)?;
        error.set_optional(0);
        result.set_optional(code);
        if code == 0 { Ok(()) } else { Err(ERROR_GRAPH_EXEC_UPDATE_FAILURE) }
    }
    12000 fn cuGraphExecUpdate_v2(exec: u64, graph: u64, info: Out<[u64; 3]>) |d| {
        let code = update(d, exec, graph)?;
        info.set_optional([code as u64, 0, 0]);
        if code == 0 { Ok(()) } else { Err(ERROR_GRAPH_EXEC_UPDATE_FAILURE) }
    }
}
