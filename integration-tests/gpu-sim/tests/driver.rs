//! The simulated driver through its C symbols: memory, sharing, streams, kernels, checkpoints.
//!
//! Needs root (tmpfs mounts). Result codes are those measured on an H200 with driver 580.

#![allow(
    clippy::too_many_lines,
    clippy::fn_params_excessive_bools,
    reason = "tests, which read from top to bottom"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod harness;

use harness::{
    Cuda, MIB, Process, READ_WRITE, device_references, heard, node, noise, properties, run, tell,
    used,
};
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const INVALID_VALUE: i32 = 1;
const OUT_OF_MEMORY: i32 = 2;
const NOT_INITIALIZED: i32 = 3;
const ILLEGAL_STATE: i32 = 401;
const NOT_READY: i32 = 600;
const ILLEGAL_ADDRESS: i32 = 700;
const NOT_SUPPORTED: i32 = 801;

const BLAKE3: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry phos_blake3_chunks(
    .param .u64 phos_blake3_chunks_param_0,
    .param .u64 phos_blake3_chunks_param_1,
    .param .u32 phos_blake3_chunks_param_2,
    .param .align 4 .b8 phos_blake3_chunks_param_3[36]
)
{ ret; }
.visible .entry trainer_fill(.param .u64 p0, .param .u32 p1, .param .f32 p2) { ret; }
.visible .entry nobody_knows() { ret; }
.visible .global .align 4 .u32 counter = 7;
";

/// Runs the scenario that the parent wants; nothing without one.
#[test]
fn scenario() {
    let Ok(name) = std::env::var("PHOS_SIM_SCENARIO") else {
        return;
    };
    match name.as_str() {
        "memory" => memory(),
        "rules" => rules(),
        "faults" => faults(),
        "streams" => streams(),
        "capture" => capture(),
        "digests" => digests(),
        "addresses" => addresses(),
        "kernels" => kernels(),
        "forks" => forks(),
        "link" => link(),
        "export" => export(),
        "import" => import(),
        "multicast" => multicast(),
        "multicast-peer" => multicast_peer(),
        "job" => job(),
        "hog" => hog(),
        "control" => control(),
        _ => panic!("no scenario {name}"),
    }
    tell("done");
}

#[test]
fn native_memory_is_accounted_and_runs_out() {
    let node = node("memory", &[64 * MIB]);
    run("memory", node.dir(), &[]);
    assert_eq!(used(&node, 0), 0, "a process that ended holds nothing");
}

fn memory() {
    let cuda = Cuda::ready();
    assert_eq!(cuda.free_memory(), 56 * MIB, "a context takes 8 MiB itself");
    let (mut small, mut next, mut large) = (0, 0, 0);
    assert_eq!(cuda.cuMemAlloc_v2(&mut small, 100), 0);
    assert_eq!(cuda.cuMemAlloc_v2(&mut next, 100), 0);
    assert_eq!(next - small, 512, "small allocations share a block");
    assert_eq!(cuda.free_memory(), 54 * MIB);
    assert_eq!(cuda.cuMemAlloc_v2(&mut large, 55 * MIB), OUT_OF_MEMORY);
    assert_eq!(cuda.cuMemAlloc_v2(&mut large, 54 * MIB), 0);
    assert_eq!(cuda.free_memory(), 0);
    let bytes = noise(3 * MIB + 17, 1);
    cuda.upload(large + 5, &bytes);
    assert_eq!(cuda.download(large + 5, bytes.len()), bytes);
    assert_eq!(cuda.cuMemFree_v2(large + 1), INVALID_VALUE);
    assert_eq!(cuda.cuMemFree_v2(large), 0);
    assert_eq!(cuda.cuMemFree_v2(large), INVALID_VALUE);
    assert_eq!(cuda.cuMemFree_v2(0), 0);
    assert_eq!(cuda.cuMemFree_v2(small), 0);
    assert_eq!(
        cuda.free_memory(),
        54 * MIB,
        "the block lives while one allocation in it does"
    );
    assert_eq!(cuda.cuMemAlloc_v2(&mut large, 50), 0);
    assert_eq!(large, small, "the gap is used again");
    assert_eq!((cuda.cuMemFree_v2(next), cuda.cuMemFree_v2(large)), (0, 0));
    assert_eq!(cuda.free_memory(), 56 * MIB);
    let mut pooled = 0;
    assert_eq!(cuda.cuMemAllocAsync(&mut pooled, 4 * MIB, 0), 0);
    assert_eq!(cuda.free_memory(), 52 * MIB);
    assert_eq!(cuda.cuMemFreeAsync(pooled, 0), 0);
    assert_eq!(cuda.cuStreamSynchronize(0), 0);
    assert_eq!(cuda.free_memory(), 56 * MIB);
}

#[test]
fn virtual_memory_follows_the_real_drivers_rules() {
    let node = node("rules", &[64 * MIB]);
    run("rules", node.dir(), &[]);
}

fn rules() {
    let cuda = Cuda::ready();
    let free = cuda.free_memory();
    let (mut plain, mut shared, mut at, mut fd) = (0, 0, 0, -1);
    assert_eq!(
        cuda.cuMemCreate(&mut plain, 2 * MIB + 1, &properties(false), 0),
        INVALID_VALUE
    );
    assert_eq!(
        cuda.cuMemCreate(&mut plain, 4 * MIB, &properties(false), 0),
        0
    );
    assert_eq!(
        cuda.cuMemCreate(&mut shared, 4 * MIB, &properties(true), 0),
        0
    );
    assert_eq!(
        cuda.cuMemExportToShareableHandle(&mut fd, plain, 1, 0),
        INVALID_VALUE,
        "not asked for at creation"
    );
    assert_eq!(cuda.cuMemExportToShareableHandle(&mut fd, shared, 1, 0), 0);
    assert_eq!(cuda.cuMemAddressReserve(&mut at, 16 * MIB, 0, 0, 0), 0);
    assert_eq!(
        cuda.cuMemMap(at, 2 * MIB, 0, plain, 0),
        NOT_SUPPORTED,
        "allocations are mapped as a whole"
    );
    assert_eq!(cuda.cuMemMap(at, 4 * MIB, 0, plain, 0), 0);
    assert_eq!(
        cuda.cuMemMap(at + 2 * MIB as u64, 4 * MIB, 0, shared, 0),
        INVALID_VALUE
    );
    assert_eq!(
        cuda.cuMemSetAccess(at, 8 * MIB, &READ_WRITE, 1),
        INVALID_VALUE
    );
    assert_eq!(cuda.cuMemSetAccess(at, 4 * MIB, &READ_WRITE, 1), 0);
    assert_eq!(cuda.cuMemsetD8_v2(at, 3, 4 * MIB), 0);
    assert_eq!(cuda.cuMemUnmap(at, 2 * MIB), INVALID_VALUE);
    assert_eq!(
        cuda.cuMemAddressFree(at, 16 * MIB),
        INVALID_VALUE,
        "something is mapped there"
    );
    // A second name for the same handle; released, the mapping keeps the memory.
    let mut again = 0;
    assert_eq!(cuda.cuMemRetainAllocationHandle(&mut again, at), 0);
    assert_eq!(again, plain);
    assert_eq!((cuda.cuMemRelease(plain), cuda.cuMemRelease(plain)), (0, 0));
    assert_eq!(cuda.cuMemRelease(plain), INVALID_VALUE);
    assert_eq!(cuda.download(at, 8), [3; 8]);
    assert_eq!(cuda.free_memory(), free - 8 * MIB);
    assert_eq!(cuda.cuMemUnmap(at, 16 * MIB), 0, "gaps do not matter");
    assert_eq!(cuda.free_memory(), free - 4 * MIB);
    // Imports: the same bytes, no second export, only this driver's memory.
    let (mut imported, mut other) = (0, -1);
    assert_eq!(
        cuda.cuMemImportFromShareableHandle(&mut imported, fd as u64, 1),
        0
    );
    assert_eq!(
        cuda.cuMemExportToShareableHandle(&mut other, imported, 1, 0),
        INVALID_VALUE
    );
    assert_eq!(
        cuda.cuMemImportFromShareableHandle(&mut imported, 0, 1),
        999
    );
    assert_eq!(cuda.cuMemAddressFree(at, 16 * MIB), 0);
}

#[test]
fn bad_pointers_are_errors_and_not_faults() {
    let node = node("faults", &[64 * MIB]);
    run("faults", node.dir(), &[("PHOS_SIM_KERNEL_US", "20000")]);
}

fn faults() {
    let cuda = Cuda::ready();
    let (mut handle, mut at) = (0, 0);
    assert_eq!(
        cuda.cuMemCreate(&mut handle, 2 * MIB, &properties(true), 0),
        0
    );
    assert_eq!(cuda.cuMemAddressReserve(&mut at, 2 * MIB, 0, 0, 0), 0);
    let mut byte = [0; 8];
    assert_eq!(
        cuda.cuMemcpyDtoH_v2(byte.as_mut_ptr(), at, 8),
        INVALID_VALUE
    );
    assert_eq!(cuda.cuMemMap(at, 2 * MIB, 0, handle, 0), 0);
    assert_eq!(
        cuda.cuMemcpyDtoH_v2(byte.as_mut_ptr(), at, 8),
        INVALID_VALUE,
        "mapped, but nobody has access"
    );
    assert_eq!(
        cuda.cuCtxSynchronize(),
        0,
        "a refused argument does not stick"
    );
    assert_eq!(cuda.cuMemSetAccess(at, 2 * MIB, &READ_WRITE, 1), 0);
    // A kernel that is queued when its memory goes away.
    let fill = cuda.function(BLAKE3, "trainer_fill");
    let (count, value) = (16_u32, 1.0_f32);
    let params = [
        (&raw const at).cast::<c_void>(),
        (&raw const count).cast(),
        (&raw const value).cast(),
    ];
    assert_eq!(cuda.launch(fill, 0, &params), 0);
    assert_eq!(cuda.cuCtxSynchronize(), 0);
    assert_eq!(cuda.launch(fill, 0, &params), 0);
    assert_eq!(cuda.cuMemUnmap(at, 2 * MIB), 0, "unmap does not wait");
    assert_eq!(cuda.cuCtxSynchronize(), ILLEGAL_ADDRESS);
    assert_eq!(
        cuda.cuMemAlloc_v2(&mut at, 8),
        ILLEGAL_ADDRESS,
        "and that is the context's end"
    );
}

#[test]
fn memory_outlives_the_process_that_made_it() {
    let node = node("sharing", &[64 * MIB]);
    let mut owner = Process::start("export", node.dir(), &[]);
    let fd: i32 = owner.hear().parse().unwrap();
    let path = format!("/proc/{}/fd/{fd}", owner.pid());
    let kept = opened(&path);
    owner.kill();
    assert_eq!(
        used(&node, 0),
        32 * MIB,
        "the context is gone, the exported memory is not"
    );
    let mut reader = Process::start("import", node.dir(), &[]);
    let path = format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        std::os::fd::AsRawFd::as_raw_fd(&kept)
    );
    assert_eq!(reader.ask(&path), "same");
    drop(kept);
    assert_eq!(used(&node, 0), 40 * MIB);
    reader.kill();
    assert_eq!(used(&node, 0), 0);
}

/// What a descriptor of another process stands for.
fn opened(path: &str) -> std::fs::File {
    std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap()
}

fn export() {
    let cuda = Cuda::ready();
    let (handle, at) = cuda.vmm(32 * MIB);
    cuda.upload(at, &noise(32 * MIB, 9));
    let mut fd = -1;
    assert_eq!(cuda.cuMemExportToShareableHandle(&mut fd, handle, 1, 0), 0);
    tell(fd);
    heard();
}

fn import() {
    let cuda = Cuda::ready();
    let file = opened(&heard().unwrap());
    let (mut handle, mut at) = (0, 0);
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
    assert_eq!(cuda.cuMemImportFromShareableHandle(&mut handle, fd, 1), 0);
    assert_eq!(cuda.cuMemAddressReserve(&mut at, 32 * MIB, 0, 0, 0), 0);
    assert_eq!(cuda.cuMemMap(at, 32 * MIB, 0, handle, 0), 0);
    assert_eq!(cuda.cuMemSetAccess(at, 32 * MIB, &READ_WRITE, 1), 0);
    drop(file);
    tell(if cuda.download(at, 32 * MIB) == noise(32 * MIB, 9) {
        "same"
    } else {
        "different"
    });
    heard();
}

/// What is written to a multicast object is written to what two processes have bound to it; what was unbound gets no more.
#[test]
fn a_multicast_object_reaches_the_memory_of_each_process() {
    let node = node("multicast", &[64 * MIB]);
    let mut first = Process::start("multicast", node.dir(), &[]);
    let fd = first.hear();
    let mut second = Process::start("multicast-peer", node.dir(), &[]);
    let path = format!("/proc/{}/fd/{fd}", first.pid());
    assert_eq!(second.ask(&path), "joined");
    // It waits for the device of the other one.
    second.say("bind");
    assert_eq!(first.ask("add"), "added");
    assert_eq!(second.hear(), "bound");
    assert_eq!(first.ask("write"), "written");
    assert_eq!(second.ask("read"), "same");
    assert_eq!(second.ask("unbind"), "unbound");
    assert_eq!(first.ask("write again"), "written again");
    assert_eq!(second.ask("read"), "same");
}

const PART: usize = 2 * MIB;

/// The object mapped; memory of this process's own, which is not bound yet.
fn mapped(cuda: &Cuda, object: u64) -> (u64, u64, u64) {
    let mut at = 0;
    assert_eq!(cuda.cuMemAddressReserve(&mut at, PART, 0, 0, 0), 0);
    assert_eq!(cuda.cuMemMap(at, PART, 0, object, 0), 0);
    assert_eq!(cuda.cuMemSetAccess(at, PART, &READ_WRITE, 1), 0);
    let (memory, mine) = cuda.vmm(PART);
    assert_eq!(cuda.cuMemsetD8_v2(mine, 0, PART), 0);
    // It is done some time after the call, and the other process may write before that.
    assert_eq!(cuda.cuCtxSynchronize(), 0);
    (at, memory, mine)
}

fn multicast() {
    let cuda = Cuda::ready();
    let mut object = 0;
    let mut props = harness::MulticastProperties {
        devices: 2,
        size: PART,
        handle_types: 1,
        flags: 1,
    };
    assert_eq!(cuda.cuMulticastCreate(&mut object, &props), INVALID_VALUE);
    props.flags = 0;
    assert_eq!(cuda.cuMulticastCreate(&mut object, &props), 0);
    let mut fd = -1;
    assert_eq!(cuda.cuMemExportToShareableHandle(&mut fd, object, 1, 0), 0);
    tell(fd);
    heard();
    // The other one has added its device already.
    assert_eq!(cuda.cuMulticastAddDevice(object, 0), 0);
    assert_eq!(cuda.cuMulticastAddDevice(object, 0), INVALID_VALUE);
    tell("added");
    heard();
    let (at, memory, mine) = mapped(&cuda, object);
    let bind = |flags| cuda.cuMulticastBindMem(object, 0, memory, 0, PART, flags);
    assert_eq!((bind(1), bind(0)), (INVALID_VALUE, 0));
    // Alive without its handle.
    assert_eq!(cuda.cuMemRelease(memory), 0);
    cuda.upload(at + 4096, &noise(8192, 5));
    assert_eq!(cuda.download(mine + 4096, 8192), noise(8192, 5));
    // It cannot be read, nor filled.
    let mut byte = 0;
    assert_ne!(cuda.cuMemcpyDtoH_v2(&mut byte, at, 1), 0);
    // As long as it is there, no checkpoint.
    let pid = std::process::id() as i32;
    assert_eq!(cuda.cuCheckpointProcessLock(pid, std::ptr::null()), 0);
    let refused = cuda.cuCheckpointProcessCheckpoint(pid, std::ptr::null());
    assert_eq!(refused, NOT_SUPPORTED);
    assert_eq!(cuda.cuCheckpointProcessUnlock(pid, std::ptr::null()), 0);
    tell("written");
    heard();
    cuda.upload(at + 4096, &noise(8192, 6));
    assert_eq!(cuda.download(mine + 4096, 8192), noise(8192, 6));
    tell("written again");
    heard();
}

fn multicast_peer() {
    let cuda = Cuda::ready();
    let file = opened(&heard().unwrap());
    let mut object = 0;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
    assert_eq!(cuda.cuMemImportFromShareableHandle(&mut object, fd, 1), 0);
    assert_eq!(cuda.cuMulticastAddDevice(object, 0), 0);
    let (_, _, mine) = mapped(&cuda, object);
    tell("joined");
    heard();
    assert_eq!(cuda.cuMulticastBindAddr(object, 0, mine, PART, 0), 0);
    tell("bound");
    heard();
    let written = noise(8192, 5);
    let is_there = || match cuda.download(mine + 4096, 8192) == written {
        true => "same",
        false => "different",
    };
    tell(is_there());
    heard();
    assert_eq!(
        cuda.cuMulticastUnbind(object, 0, 0, PART / 2),
        INVALID_VALUE
    );
    assert_eq!(cuda.cuMulticastUnbind(object, 0, 0, PART), 0);
    tell("unbound");
    heard();
    tell(is_there());
    heard();
}

#[test]
fn streams_keep_their_order() {
    let node = node("streams", &[64 * MIB]);
    run("streams", node.dir(), &[]);
}

static HELD: AtomicBool = AtomicBool::new(true);
static CALLS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn hold(_: *mut c_void) {
    while HELD.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_micros(200));
    }
}

unsafe extern "C" fn count(_: *mut c_void) {
    CALLS.fetch_add(1, Ordering::AcqRel);
}

fn streams() {
    let cuda = Cuda::ready();
    let (mut first, mut second, mut free, mut event, mut start) = (0, 0, 0, 0, 0);
    assert_eq!(
        (
            cuda.cuStreamCreate(&mut first, 0),
            cuda.cuStreamCreate(&mut second, 0)
        ),
        (0, 0)
    );
    assert_eq!(cuda.cuStreamCreate(&mut free, 1), 0);
    assert_eq!(
        (
            cuda.cuEventCreate(&mut event, 0),
            cuda.cuEventCreate(&mut start, 0)
        ),
        (0, 0)
    );
    let (mut at, mut pinned) = (0, 0);
    assert_eq!(cuda.cuMemAlloc_v2(&mut at, 4096), 0);
    assert_eq!(cuda.cuMemHostAlloc(&mut pinned, 4096, 0), 0);
    let words = pinned as *mut u32;
    let read = || {
        // SAFETY: pinned memory of the driver, 4096 bytes.
        unsafe { words.read_volatile() }
    };
    assert_eq!(cuda.cuEventQuery(event), 0, "never recorded: complete");
    // A stream that is held: everything behind it waits, a non-blocking stream does not.
    assert_eq!(cuda.cuEventRecord(start, first), 0);
    assert_eq!(cuda.cuEventSynchronize(start), 0);
    assert_eq!(cuda.cuLaunchHostFunc(first, hold, std::ptr::null_mut()), 0);
    assert_eq!(cuda.cuMemsetD32Async(at, 0x1111, 1024, first), 0);
    assert_eq!(cuda.cuEventRecord(event, first), 0);
    assert_eq!(cuda.cuStreamWaitEvent(second, event, 0), 0);
    assert_eq!(
        cuda.cuMemcpyDtoHAsync_v2(pinned as *mut u8, at, 4096, second),
        0,
        "with pinned memory it returns"
    );
    assert_eq!(cuda.cuLaunchHostFunc(0, count, std::ptr::null_mut()), 0);
    assert_eq!(cuda.cuLaunchHostFunc(free, count, std::ptr::null_mut()), 0);
    assert_eq!(cuda.cuStreamSynchronize(free), 0);
    assert_eq!(
        CALLS.load(Ordering::Acquire),
        1,
        "the legacy stream waits for the blocking ones"
    );
    for stream in [first, second, 0] {
        assert_eq!(cuda.cuStreamQuery(stream), NOT_READY);
    }
    assert_eq!((cuda.cuEventQuery(event), read()), (NOT_READY, 0));
    std::thread::sleep(Duration::from_millis(30));
    HELD.store(false, Ordering::Release);
    assert_eq!(cuda.cuEventSynchronize(event), 0);
    assert_eq!(cuda.cuCtxSynchronize(), 0);
    assert_eq!((read(), CALLS.load(Ordering::Acquire)), (0x1111, 2));
    let mut ms = 0.0;
    assert_eq!(cuda.cuEventElapsedTime_v2(&mut ms, start, event), 0);
    assert!(ms >= 29.0, "{ms}");
    // What comes later on a blocking stream waits for the legacy one.
    HELD.store(true, Ordering::Release);
    assert_eq!(cuda.cuLaunchHostFunc(0, hold, std::ptr::null_mut()), 0);
    assert_eq!(cuda.cuLaunchHostFunc(first, count, std::ptr::null_mut()), 0);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(CALLS.load(Ordering::Acquire), 2);
    HELD.store(false, Ordering::Release);
    assert_eq!(cuda.cuStreamSynchronize(first), 0);
    assert_eq!(CALLS.load(Ordering::Acquire), 3);
}

#[test]
fn captured_work_runs_at_each_launch() {
    let node = node("capture", &[64 * MIB]);
    run("capture", node.dir(), &[]);
}

fn capture() {
    let cuda = Cuda::ready();
    let (mut stream, mut side, mut fork, mut join) = (0, 0, 0, 0);
    assert_eq!(
        (
            cuda.cuStreamCreate(&mut stream, 1),
            cuda.cuStreamCreate(&mut side, 1)
        ),
        (0, 0)
    );
    assert_eq!(
        (
            cuda.cuEventCreate(&mut fork, 2),
            cuda.cuEventCreate(&mut join, 2)
        ),
        (0, 0)
    );
    let mut at = 0;
    assert_eq!(cuda.cuMemAlloc_v2(&mut at, 4096), 0);
    let (mut graph, mut exec, mut nodes) = (0, 0, 0);
    assert_eq!(cuda.cuStreamBeginCapture_v2(stream, 0), 0);
    assert_eq!(cuda.cuMemsetD32Async(at, 5, 16, stream), 0);
    assert_eq!(cuda.cuEventRecord(fork, stream), 0);
    assert_eq!(cuda.cuStreamWaitEvent(side, fork, 0), 0);
    assert_eq!(cuda.cuLaunchHostFunc(side, count, std::ptr::null_mut()), 0);
    assert_eq!(cuda.cuEventRecord(join, side), 0);
    assert_eq!(cuda.cuStreamWaitEvent(stream, join, 0), 0);
    assert_eq!(cuda.cuStreamEndCapture(stream, &mut graph), 0);
    assert_eq!(
        cuda.cuGraphGetNodes(graph, std::ptr::null_mut(), &mut nodes),
        0
    );
    assert_eq!(
        (nodes, CALLS.load(Ordering::Acquire)),
        (2, 0),
        "captured, not run"
    );
    assert_eq!(cuda.cuGraphInstantiateWithFlags(&mut exec, graph, 0), 0);
    assert_eq!(cuda.cuGraphDestroy(graph), 0);
    for _ in 0..3 {
        assert_eq!(cuda.cuGraphLaunch(exec, stream), 0);
    }
    assert_eq!(cuda.cuStreamSynchronize(stream), 0);
    assert_eq!(
        (CALLS.load(Ordering::Acquire), cuda.download(at, 4)),
        (3, vec![5, 0, 0, 0])
    );
    assert_eq!(cuda.cuGraphExecDestroy(exec), 0);
    // What does not come back to the stream it started from, and what disturbs a capture.
    assert_eq!(cuda.cuStreamBeginCapture_v2(stream, 0), 0);
    assert_eq!(cuda.cuEventRecord(fork, stream), 0);
    assert_eq!(cuda.cuStreamWaitEvent(side, fork, 0), 0);
    assert_eq!(cuda.cuMemsetD32Async(at, 6, 16, side), 0);
    assert_eq!(cuda.cuStreamEndCapture(stream, &mut graph), 904);
    assert_eq!(cuda.cuStreamBeginCapture_v2(stream, 0), 0);
    assert_eq!(cuda.cuMemAlloc_v2(&mut at, 4096), 900);
    assert_eq!(cuda.cuStreamEndCapture(stream, &mut graph), 901);
}

#[test]
fn digests_are_those_of_the_crate() {
    let node = node("digests", &[64 * MIB]);
    run("digests", node.dir(), &[]);
}

fn digests() {
    let cuda = Cuda::ready();
    let lengths = [0, 1, 1023, 1024, 1025, 64 << 10, MIB - 1, MIB];
    let bytes = noise(MIB, 77);
    let (_, data) = cuda.vmm(2 * MIB);
    cuda.upload(data, &bytes);
    let (mut descs, mut out) = (0, 0);
    assert_eq!(
        (
            cuda.cuMemAlloc_v2(&mut descs, 16 * lengths.len()),
            cuda.cuMemAlloc_v2(&mut out, 512)
        ),
        (0, 0)
    );
    let list: Vec<u8> = lengths
        .iter()
        .flat_map(|n| [data, *n as u64])
        .flat_map(u64::to_le_bytes)
        .collect();
    cuda.upload(descs, &list);
    let kernel = cuda.function(BLAKE3, "phos_blake3_chunks");
    let (mut offset, mut size) = (0, 0);
    assert_eq!(
        cuda.cuFuncGetParamInfo(kernel, 2, &mut offset, &mut size),
        0
    );
    assert_eq!((offset, size), (16, 4));
    assert_eq!(
        cuda.cuFuncGetParamInfo(kernel, 3, &mut offset, &mut size),
        0
    );
    assert_eq!((offset, size), (20, 36));
    assert_eq!(
        cuda.cuFuncGetParamInfo(kernel, 4, &mut offset, &mut size),
        INVALID_VALUE
    );
    let number = lengths.len() as u32;
    let plain: [u32; 9] = [
        0x6A09_E667,
        0xBB67_AE85,
        0x3C6E_F372,
        0xA54F_F53A,
        0x510E_527F,
        0x9B05_688C,
        0x1F83_D9AB,
        0x5BE0_CD19,
        0,
    ];
    let keyed: [u32; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 16];
    let secret: [u8; 32] = std::array::from_fn(|i| if i % 4 == 0 { i as u8 / 4 + 1 } else { 0 });
    let mut digests = Vec::new();
    for key in [keyed, plain] {
        let params = [
            (&raw const descs).cast::<c_void>(),
            (&raw const out).cast(),
            (&raw const number).cast(),
            (&raw const key).cast(),
        ];
        assert_eq!(cuda.launch(kernel, 0, &params), 0);
        digests = cuda.download(out, 32 * lengths.len());
        for (digest, length) in digests.chunks(32).zip(lengths) {
            let bytes = &bytes[..length];
            let right = match key[8] {
                0 => blake3::hash(bytes),
                _ => blake3::keyed_hash(&secret, bytes),
            };
            assert_eq!(digest, right.as_bytes(), "{length} bytes");
        }
    }
    // The same arguments as one packed buffer.
    let mut packed = [descs.to_le_bytes(), out.to_le_bytes()].concat();
    packed.extend(number.to_le_bytes());
    packed.extend(plain.iter().flat_map(|word| word.to_le_bytes()));
    let room = packed.len();
    let extra: [*const c_void; 5] = [
        std::ptr::without_provenance(1),
        packed.as_ptr().cast(),
        std::ptr::without_provenance(2),
        (&raw const room).cast(),
        std::ptr::null(),
    ];
    assert_eq!(cuda.cuMemsetD8_v2(out, 0, 512), 0);
    assert_eq!(
        cuda.cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            0,
            std::ptr::null(),
            extra.as_ptr()
        ),
        0
    );
    assert_eq!(cuda.download(out, 32 * lengths.len()), digests);
    // Globals have their value; a kernel nobody wrote is not found.
    let (text, name) = (
        CString::new(BLAKE3).unwrap(),
        CString::new("nobody_knows").unwrap(),
    );
    let (mut module, mut function, mut counter) = (0, 0, 0);
    assert_eq!(cuda.cuModuleLoadData(&mut module, text.as_ptr().cast()), 0);
    assert_eq!(
        cuda.cuModuleGetFunction(&mut function, module, name.as_ptr().cast()),
        500
    );
    assert_eq!(
        cuda.cuModuleGetGlobal_v2(&mut counter, &mut size, module, c"counter".as_ptr().cast()),
        0
    );
    assert_eq!((size, cuda.download(counter, 4)), (4, vec![7, 0, 0, 0]));
}

#[test]
fn every_kernel_of_the_project_has_its_function() {
    let node = node("kernels", &[64 * MIB]);
    run("kernels", node.dir(), &[]);
}

fn kernels() {
    let cuda = Cuda::ready();
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut trainer = None;
    for place in [
        "../trainer/kernels/trainer.ptx",
        "../../sidecar/gpu/kernels/blake3.ptx",
    ] {
        let Ok(text) = std::fs::read_to_string(here.join(place)) else {
            continue;
        };
        for line in text
            .lines()
            .filter_map(|line| line.trim().strip_prefix(".visible .entry "))
        {
            cuda.function(&text, line.trim_end_matches(['(', ' ']));
        }
        trainer = trainer.or(Some(text).filter(|text| text.contains("trainer_gemm")));
    }
    let Some(trainer) = trainer else { return };
    // A product, one operand transposed, against the plain sum.
    let (m, n, k) = (5_u32, 7_u32, 3_u32);
    let value = |i: u32, seed: u32| ((i * 37 + seed) % 11) as f32 - 5.0;
    let bytes = |count: u32, seed| {
        (0..count)
            .flat_map(|i| value(i, seed).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let (mut a, mut b, mut c) = (0, 0, 0);
    for (address, count) in [(&mut a, m * k), (&mut b, n * k), (&mut c, m * n)] {
        assert_eq!(cuda.cuMemAlloc_v2(address, count as usize * 4), 0);
    }
    cuda.upload(a, &bytes(m * k, 1));
    cuda.upload(b, &bytes(n * k, 2));
    let (no, yes) = (0_u32, 1_u32);
    let words = [
        &raw const m,
        &raw const n,
        &raw const k,
        &raw const no,
        &raw const yes,
    ];
    let pointers = [&raw const a, &raw const b, &raw const c].map(|at| at.cast::<c_void>());
    let params: Vec<_> = pointers
        .into_iter()
        .chain(words.map(|at| at.cast()))
        .collect();
    assert_eq!(
        cuda.launch(cuda.function(&trainer, "trainer_gemm"), 0, &params),
        0
    );
    let product = cuda.download(c, (m * n) as usize * 4);
    for (i, found) in product.as_chunks::<4>().0.iter().enumerate() {
        let (row, column) = (i as u32 / n, i as u32 % n);
        let sum: f32 = (0..k)
            .map(|d| value(row * k + d, 1) * value(column * k + d, 2))
            .sum();
        assert_eq!(
            f32::from_le_bytes(*found),
            sum,
            "row {row}, column {column}"
        );
    }
}

#[test]
fn functions_are_the_same_however_they_are_found() {
    let node = node("addresses", &[16 * MIB]);
    run("addresses", node.dir(), &[]);
}

fn addresses() {
    let cuda = Cuda::ready();
    let found = |name: &str, version, flags| {
        let name = CString::new(name).unwrap();
        let (mut at, mut status) = (std::ptr::null_mut(), -1);
        assert_eq!(
            cuda.cuGetProcAddress_v2(name.as_ptr().cast(), &mut at, version, flags, &mut status),
            0
        );
        (at, status)
    };
    let plain = [
        "cuInit",
        "cuMemCreate",
        "cuMemMap",
        "cuLaunchKernel",
        "cuStreamSynchronize",
        "cuGraphLaunch",
    ];
    let renamed = [
        ("cuMemAlloc", "cuMemAlloc_v2"),
        ("cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2"),
        ("cuCtxCreate", "cuCtxCreate_v4"),
        ("cuGetProcAddress", "cuGetProcAddress_v2"),
        ("cuStreamBeginCapture", "cuStreamBeginCapture_v2"),
        ("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2"),
    ];
    for (name, symbol) in plain.iter().map(|name| (*name, *name)).chain(renamed) {
        assert_eq!(found(name, 13000, 0), (cuda.symbol(symbol), 0), "{name}");
        assert!(!cuda.symbol(symbol).is_null());
    }
    assert_eq!(
        found("cuMemcpyHtoD", 13000, 2),
        (cuda.symbol("cuMemcpyHtoD_v2_ptds"), 0)
    );
    assert_eq!(
        found("cuLaunchKernel", 13000, 2),
        (cuda.symbol("cuLaunchKernel_ptsz"), 0)
    );
    assert_eq!(
        found("cuMemAlloc", 13000, 2),
        (cuda.symbol("cuMemAlloc_v2"), 0)
    );
    assert_eq!(found("cuNoSuchThing", 13000, 0), (std::ptr::null_mut(), 1));
    assert_eq!(found("cuMemCreate", 9000, 0), (std::ptr::null_mut(), 2));
    assert!(
        cuda.symbol("rust_eh_personality").is_null()
            && cuda.symbol("blake3_hash_many_avx2").is_null()
    );
}

#[test]
fn a_forked_child_has_no_driver() {
    let node = node("forks", &[16 * MIB]);
    run("forks", node.dir(), &[]);
}

fn forks() {
    let cuda = Cuda::ready();
    // SAFETY: the child calls nothing but the driver's entry checks and _exit.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let mut number = 0;
            let fine = cuda.cuInit(0) == NOT_INITIALIZED
                && cuda.cuDeviceGetCount(&mut number) == NOT_INITIALIZED
                && cuda.cuDriverGetVersion(&mut number) == 0;
            libc::_exit(i32::from(!fine));
        }
        let mut status = -1;
        libc::waitpid(child, &raw mut status, 0);
        assert_eq!(status, 0);
    }
    assert_eq!(cuda.cuCtxSynchronize(), 0);
}

#[test]
fn the_link_has_the_bandwidth_it_was_given() {
    let node = node("link", &[64 * MIB]);
    run("link", node.dir(), &[("PHOS_SIM_LINK_MBPS", "20")]);
}

fn link() {
    let cuda = Cuda::ready();
    let (_, at) = cuda.vmm(16 * MIB);
    let start = Instant::now();
    cuda.upload(at, &noise(16 * MIB, 3));
    let took = start.elapsed().as_secs_f64();
    assert!(took >= 0.8, "{took}");
    let start = Instant::now();
    assert_eq!(cuda.cuMemsetD8_v2(at, 0, 16 * MIB), 0);
    assert_eq!(cuda.cuCtxSynchronize(), 0);
    assert!(
        start.elapsed().as_secs_f64() < took / 2.0,
        "the device's own memory is not behind the link"
    );
}

// ---- checkpoints ----

/// A process with native, pinned and virtual memory, that does what it is told.
fn job() {
    let cuda = Cuda::ready();
    let (mut native, mut pinned, mut managed) = (0, 0, 0);
    assert_eq!(cuda.cuMemAlloc_v2(&mut native, 6 * MIB), 0);
    assert_eq!(cuda.cuMemHostAlloc(&mut pinned, MIB, 0), 0);
    cuda.upload(native, &noise(6 * MIB, 1));
    let (handle, at) = cuda.vmm(4 * MIB);
    cuda.upload(at, &noise(4 * MIB, 2));
    let mut fd = -1;
    assert_eq!(cuda.cuMemExportToShareableHandle(&mut fd, handle, 1, 0), 0);
    let mut stream = 0;
    assert_eq!(cuda.cuStreamCreate(&mut stream, 0), 0);
    // A stream that has worked has a thread; it must not stand in the way.
    assert_eq!(cuda.cuMemsetD32_v2(native + 5 * MIB as u64, 1, 16), 0);
    assert_eq!(cuda.cuCtxSynchronize(), 0);
    let native_bytes = cuda.download(native, 6 * MIB);
    let mut imported = 0;
    tell("ready");
    while let Some(line) = heard() {
        let ok = |code: i32| tell(code);
        match line.as_str() {
            "check" => {
                let same = cuda.download(native, 6 * MIB) == native_bytes
                    && cuda.download(at, 4 * MIB) == noise(4 * MIB, 2);
                tell(if same { "same" } else { "different" });
            }
            "import" => ok(cuda.cuMemImportFromShareableHandle(&mut imported, fd as u64, 1)),
            "release" => ok(cuda.cuMemRelease(imported)),
            "manage" => ok(cuda.cuMemAllocManaged(&mut managed, 4096, 1)),
            "unmanage" => ok(cuda.cuMemFree_v2(managed)),
            "close" => {
                // SAFETY: the descriptor is this scenario's own and not used after it.
                ok(unsafe { libc::close(fd) });
            }
            "detach" => {
                // As the shim does: the addresses stay reserved, the memory goes.
                ok(cuda.cuMemUnmap(at, 4 * MIB)
                    + cuda.cuMemRelease(handle)
                    + cuda.cuMemFree_v2(native));
            }
            "hold" => {
                HELD.store(true, Ordering::Release);
                ok(cuda.cuLaunchHostFunc(stream, hold, std::ptr::null_mut()));
            }
            "let" => {
                HELD.store(false, Ordering::Release);
                ok(0);
            }
            _ => return,
        }
    }
}

/// Takes all the memory that is left on device 0.
fn hog() {
    let cuda = Cuda::ready();
    let mut at = 0;
    tell(cuda.cuMemAlloc_v2(&mut at, cuda.free_memory()));
    heard();
}

/// Does checkpoint operations on other processes: `pid operation`.
fn control() {
    let cuda = Cuda::open();
    assert_eq!(cuda.cuInit(0), 0);
    tell("ready");
    while let Some(line) = heard() {
        let (pid, operation) = line.split_once(' ').unwrap();
        let pid = pid.parse().unwrap();
        let mut state = -1;
        match operation {
            "state" => {
                let code = cuda.cuCheckpointProcessGetState(pid, &mut state);
                tell(if code == 0 { state } else { -code });
                continue;
            }
            "lock" => tell(cuda.cuCheckpointProcessLock(pid, &[10_000, 0, 0, 0, 0, 0, 0, 0])),
            "lock briefly" => tell(cuda.cuCheckpointProcessLock(pid, &[50, 0, 0, 0, 0, 0, 0, 0])),
            "checkpoint" => tell(cuda.cuCheckpointProcessCheckpoint(pid, std::ptr::null())),
            "restore" => tell(cuda.cuCheckpointProcessRestore(pid, std::ptr::null())),
            "restore on 1" | "restore on 1 alone" => {
                let mut uuids = [[0; 16]; 2];
                assert_eq!(cuda.cuDeviceGetUuid_v2(&mut uuids[0], 0), 0);
                assert_eq!(cuda.cuDeviceGetUuid_v2(&mut uuids[1], 1), 0);
                let pairs = [[uuids[0], uuids[1]], [uuids[1], uuids[0]]];
                let count = if operation.ends_with("alone") { 1 } else { 2 };
                tell(cuda.cuCheckpointProcessRestore(
                    pid,
                    &[pairs.as_ptr() as u64, count, 0, 0, 0, 0, 0, 0],
                ));
            }
            "unlock" => tell(cuda.cuCheckpointProcessUnlock(pid, std::ptr::null())),
            _ => return,
        }
    }
}

/// A job and somebody who can checkpoint it.
struct Pair {
    job: Process,
    control: Process,
}

impl Pair {
    fn start(node: &phos_gpu_sim::Node) -> Self {
        Self::start_with(node, &[])
    }

    fn start_with(node: &phos_gpu_sim::Node, environment: &[(&str, &str)]) -> Self {
        let mut job = Process::start("job", node.dir(), environment);
        assert_eq!(job.hear(), "ready");
        let mut control = Process::start("control", node.dir(), &[]);
        assert_eq!(control.hear(), "ready");
        Self { job, control }
    }

    fn order(&mut self, operation: &str) -> i32 {
        self.control
            .ask(&format!("{} {operation}", self.job.pid()))
            .parse()
            .unwrap()
    }
}

#[test]
fn a_checkpoint_frees_the_device_and_a_restore_brings_it_back() {
    let node = node("checkpoint", &[64 * MIB]);
    let mut pair = Pair::start(&node);
    assert_eq!(pair.job.ask("close"), "0");
    let before = used(&node, 0);
    assert_eq!(before, (8 + 6 + 4) * MIB);
    assert_eq!(pair.order("checkpoint"), ILLEGAL_STATE, "not locked");
    assert_eq!((pair.order("lock"), pair.order("state")), (0, 1));
    pair.job.say("check");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(pair.order("lock"), ILLEGAL_STATE);
    assert_eq!((pair.order("checkpoint"), pair.order("state")), (0, 2));
    assert_eq!(used(&node, 0), 0);
    assert_eq!(
        device_references(pair.job.pid(), &node),
        0,
        "nothing stands in CRIU's way"
    );
    assert_eq!(pair.order("unlock"), ILLEGAL_STATE);
    assert_eq!((pair.order("restore"), pair.order("state")), (0, 1));
    assert_eq!(used(&node, 0), before);
    assert_eq!((pair.order("unlock"), pair.order("state")), (0, 0));
    assert_eq!(
        pair.job.hear(),
        "same",
        "the call that was held back goes on"
    );
    // Again, and detached, as the shim does it.
    assert_eq!(pair.job.ask("detach"), "0");
    assert_eq!(
        (pair.order("lock"), pair.order("checkpoint"), used(&node, 0)),
        (0, 0, 0)
    );
    assert_eq!(
        (pair.order("restore"), pair.order("unlock"), used(&node, 0)),
        (0, 0, 8 * MIB)
    );
}

#[test]
fn a_checkpoint_is_refused_where_the_real_one_cannot_be_restored() {
    let node = node("refused", &[64 * MIB]);
    let mut pair = Pair::start(&node);
    for (take, give) in [("import", "release"), ("manage", "unmanage")] {
        assert_eq!(pair.job.ask(take), "0");
        assert_eq!(
            (
                pair.order("lock"),
                pair.order("checkpoint"),
                pair.order("state")
            ),
            (0, NOT_SUPPORTED, 1)
        );
        assert_eq!(
            (pair.order("unlock"), pair.job.ask("check").as_str()),
            (0, "same")
        );
        assert_eq!(pair.job.ask(give), "0");
    }
    assert_eq!(
        (
            pair.order("lock"),
            pair.order("checkpoint"),
            pair.order("state")
        ),
        (0, 0, 2)
    );
}

#[test]
fn as_on_driver_580_imports_can_be_found_out_at_the_restore() {
    let node = node("late", &[64 * MIB]);
    let mut pair = Pair::start_with(&node, &[("PHOS_SIM_LATE_IMPORTS", "1")]);
    assert_eq!(pair.job.ask("import"), "0");
    assert_eq!((pair.order("lock"), pair.order("checkpoint")), (0, 0));
    assert_eq!(
        (pair.order("restore"), pair.order("state")),
        (NOT_SUPPORTED, 3)
    );
}

#[test]
fn a_lock_gives_up_when_work_does_not_end() {
    let node = node("busy", &[64 * MIB]);
    let mut pair = Pair::start(&node);
    assert_eq!(pair.job.ask("hold"), "0");
    assert_eq!(
        (pair.order("lock briefly"), pair.order("state")),
        (NOT_READY, 0)
    );
    assert_eq!(pair.job.ask("let"), "0");
    assert_eq!((pair.order("lock"), pair.order("unlock")), (0, 0));
    assert_eq!(pair.job.ask("check"), "same");
}

#[test]
fn a_restore_without_memory_loses_the_process() {
    let node = node("lost", &[64 * MIB]);
    let mut pair = Pair::start(&node);
    assert_eq!(pair.job.ask("close"), "0");
    assert_eq!((pair.order("lock"), pair.order("checkpoint")), (0, 0));
    let mut hog = Process::start("hog", node.dir(), &[]);
    assert_eq!(hog.hear(), "0");
    assert_eq!(
        (pair.order("restore"), pair.order("state")),
        (OUT_OF_MEMORY, 3)
    );
    hog.kill();
    assert_eq!(
        (pair.order("restore"), pair.order("unlock")),
        (ILLEGAL_STATE, ILLEGAL_STATE)
    );
}

#[test]
fn a_process_moves_to_another_gpu() {
    let node = node("moved", &[64 * MIB, 64 * MIB]);
    let mut pair = Pair::start(&node);
    assert_eq!(pair.job.ask("close"), "0");
    assert_eq!((pair.order("lock"), pair.order("checkpoint")), (0, 0));
    // A pair for each GPU, or none.
    assert_eq!(pair.order("restore on 1 alone"), INVALID_VALUE);
    assert_eq!((pair.order("restore on 1"), pair.order("unlock")), (0, 0));
    assert_eq!((used(&node, 0), used(&node, 1)), (0, 18 * MIB));
    assert_eq!(pair.job.ask("check"), "same");
}

#[test]
fn only_processes_with_a_driver_are_checkpointed() {
    let node = node("strangers", &[64 * MIB]);
    let mut control = Process::start("control", node.dir(), &[]);
    assert_eq!(control.hear(), "ready");
    let me = std::process::id();
    assert_eq!(
        control.ask(&format!("{me} lock")),
        NOT_INITIALIZED.to_string()
    );
    assert_eq!(control.ask("4000000 lock"), "304");
    let mut old = Process::start("control", node.dir(), &[("PHOS_SIM_NO_CHECKPOINT", "1")]);
    assert_eq!(old.hear(), "ready");
    assert_eq!(old.ask(&format!("{me} lock")), NOT_SUPPORTED.to_string());
}
