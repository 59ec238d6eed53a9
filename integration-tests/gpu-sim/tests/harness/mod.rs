//! Scenarios run in processes of their own: a driver belongs to one process and one node.
//!
//! A test starts this test binary again with `PHOS_SIM_SCENARIO` set; the test named `scenario` then runs the wanted
//! function there. The parent talks to it in lines: a line in, a line out.

#![allow(
    non_snake_case,
    dead_code,
    clippy::too_many_arguments,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::ffi::{CString, c_void};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The simulated driver's file, as cargo built it beside the test (only `cargo build` copies it one folder up).
pub fn library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let path = exe.parent().unwrap().join("libphos_gpu_sim.so");
    assert!(path.exists(), "{} is not built", path.display());
    path
}

/// The driver, opened as a program would.
pub struct Cuda(*mut c_void);

impl Cuda {
    pub fn open() -> Self {
        let path = CString::new(library().to_str().unwrap()).unwrap();
        // SAFETY: a plain dlopen of a library without constructors that depend on anything.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "the library cannot be opened");
        Self(handle)
    }

    /// Opened, initialised, and with the primary context of device 0 current.
    pub fn ready() -> Self {
        let cuda = Self::open();
        assert_eq!(cuda.cuInit(0), 0);
        let mut context = 0;
        assert_eq!(cuda.cuDevicePrimaryCtxRetain(&mut context, 0), 0);
        assert_eq!(cuda.cuCtxSetCurrent(context), 0);
        cuda
    }

    pub fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: the handle is open, the name a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }
}

macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {
        impl Cuda {
            $(pub fn $name(&self, $($arg: $type),*) -> i32 {
                let at = self.symbol(stringify!($name));
                assert!(!at.is_null(), concat!(stringify!($name), " is not exported"));
                // SAFETY: the symbol's type is the one declared here, checked against cuda.h.
                let call: unsafe extern "C" fn($($type),*) -> i32 = unsafe { std::mem::transmute(at) };
                // SAFETY: the tests pass valid pointers.
                unsafe { call($($arg),*) }
            })*
        }
    };
}

functions! {
    cuInit(flags: u32);
    cuDriverGetVersion(version: &mut i32);
    cuDeviceGetCount(count: &mut i32);
    cuDeviceGetUuid_v2(uuid: &mut [u8; 16], device: i32);
    cuDevicePrimaryCtxRetain(context: &mut u64, device: i32);
    cuCtxSetCurrent(context: u64);
    cuCtxSynchronize();
    cuMemGetInfo_v2(free: &mut usize, total: &mut usize);
    cuMemAlloc_v2(address: &mut u64, size: usize);
    cuMemFree_v2(address: u64);
    cuMemAllocManaged(address: &mut u64, size: usize, flags: u32);
    cuMemHostAlloc(address: &mut u64, size: usize, flags: u32);
    cuMemAllocAsync(address: &mut u64, size: usize, stream: u64);
    cuMemFreeAsync(address: u64, stream: u64);
    cuMemcpyHtoD_v2(to: u64, from: *const u8, size: usize);
    cuMemcpyDtoH_v2(to: *mut u8, from: u64, size: usize);
    cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, size: usize, stream: u64);
    cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, size: usize, stream: u64);
    cuMemsetD8_v2(address: u64, value: u8, count: usize);
    cuMemsetD32_v2(address: u64, value: u32, count: usize);
    cuMemsetD32Async(address: u64, value: u32, count: usize, stream: u64);
    cuMemCreate(handle: &mut u64, size: usize, props: &Properties, flags: u64);
    cuMemRelease(handle: u64);
    cuMemAddressReserve(address: &mut u64, size: usize, align: usize, hint: u64, flags: u64);
    cuMemAddressFree(address: u64, size: usize);
    cuMemMap(address: u64, size: usize, offset: usize, handle: u64, flags: u64);
    cuMemUnmap(address: u64, size: usize);
    cuMemSetAccess(address: u64, size: usize, access: &Access, count: usize);
    cuMemExportToShareableHandle(fd: &mut i32, handle: u64, kind: u32, flags: u64);
    cuMemImportFromShareableHandle(handle: &mut u64, fd: u64, kind: u32);
    cuMulticastCreate(handle: &mut u64, props: &MulticastProperties);
    cuMulticastAddDevice(handle: u64, device: i32);
    cuMulticastBindMem(handle: u64, offset: usize, memory: u64, memory_offset: usize, size: usize, flags: u64);
    cuMulticastBindAddr(handle: u64, offset: usize, address: u64, size: usize, flags: u64);
    cuMulticastUnbind(handle: u64, device: i32, offset: usize, size: usize);
    cuMemRetainAllocationHandle(handle: &mut u64, address: u64);
    cuPointerGetAttribute(data: *mut u64, which: i32, address: u64);
    cuStreamCreate(stream: &mut u64, flags: u32);
    cuStreamSynchronize(stream: u64);
    cuStreamQuery(stream: u64);
    cuStreamWaitEvent(stream: u64, event: u64, flags: u32);
    cuStreamBeginCapture_v2(stream: u64, mode: i32);
    cuStreamEndCapture(stream: u64, graph: &mut u64);
    cuLaunchHostFunc(stream: u64, function: unsafe extern "C" fn(*mut c_void), data: *mut c_void);
    cuEventCreate(event: &mut u64, flags: u32);
    cuEventRecord(event: u64, stream: u64);
    cuEventQuery(event: u64);
    cuEventSynchronize(event: u64);
    cuEventElapsedTime_v2(ms: &mut f32, start: u64, end: u64);
    cuGraphInstantiateWithFlags(exec: &mut u64, graph: u64, flags: u64);
    cuGraphLaunch(exec: u64, stream: u64);
    cuGraphGetNodes(graph: u64, nodes: *mut u64, count: &mut usize);
    cuGraphExecDestroy(exec: u64);
    cuGraphDestroy(graph: u64);
    cuModuleLoadData(module: &mut u64, image: *const u8);
    cuModuleGetFunction(function: &mut u64, module: u64, name: *const u8);
    cuModuleGetGlobal_v2(address: &mut u64, size: &mut usize, module: u64, name: *const u8);
    cuFuncGetParamInfo(function: u64, index: usize, offset: &mut usize, size: &mut usize);
    cuLaunchKernel(f: u64, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: u64,
        params: *const *const c_void, extra: *const *const c_void);
    cuGetProcAddress_v2(name: *const u8, out: &mut *mut c_void, version: i32, flags: u64, status: &mut i32);
    cuIpcGetMemHandle(handle: &mut [u8; 64], address: u64);
    cuCheckpointProcessGetState(pid: i32, state: &mut i32);
    cuCheckpointProcessLock(pid: i32, args: *const [u64; 8]);
    cuCheckpointProcessCheckpoint(pid: i32, args: *const [u64; 8]);
    cuCheckpointProcessRestore(pid: i32, args: *const [u64; 8]);
    cuCheckpointProcessUnlock(pid: i32, args: *const [u64; 8]);
}

/// `CUmemAllocationProp`.
#[repr(C)]
pub struct Properties {
    kind: i32,
    pub handle_types: u32,
    location: [i32; 2],
    windows: u64,
    flags: u64,
}

/// `CUmulticastObjectProp`.
#[repr(C)]
pub struct MulticastProperties {
    pub devices: u32,
    pub size: usize,
    pub handle_types: u64,
    pub flags: u64,
}

/// `CUmemAccessDesc`.
#[repr(C)]
pub struct Access {
    location: [i32; 2],
    pub flags: u32,
}

pub const MIB: usize = 1 << 20;
pub const READ_WRITE: Access = Access {
    location: [1, 0],
    flags: 3,
};

/// Memory on device 0, exportable or not.
pub fn properties(exportable: bool) -> Properties {
    Properties {
        kind: 1,
        handle_types: u32::from(exportable),
        location: [1, 0],
        windows: 0,
        flags: 0,
    }
}

impl Cuda {
    /// Memory by VMM, mapped and accessible: its handle and address.
    pub fn vmm(&self, size: usize) -> (u64, u64) {
        let (mut handle, mut address) = (0, 0);
        assert_eq!(self.cuMemCreate(&mut handle, size, &properties(true), 0), 0);
        assert_eq!(self.cuMemAddressReserve(&mut address, size, 0, 0, 0), 0);
        assert_eq!(self.cuMemMap(address, size, 0, handle, 0), 0);
        assert_eq!(self.cuMemSetAccess(address, size, &READ_WRITE, 1), 0);
        (handle, address)
    }

    pub fn upload(&self, to: u64, bytes: &[u8]) {
        assert_eq!(self.cuMemcpyHtoD_v2(to, bytes.as_ptr(), bytes.len()), 0);
    }

    pub fn download(&self, from: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        assert_eq!(self.cuMemcpyDtoH_v2(bytes.as_mut_ptr(), from, size), 0);
        bytes
    }

    pub fn free_memory(&self) -> usize {
        let (mut free, mut total) = (0, 0);
        assert_eq!(self.cuMemGetInfo_v2(&mut free, &mut total), 0);
        free
    }

    pub fn function(&self, text: &str, name: &str) -> u64 {
        let (text, name) = (CString::new(text).unwrap(), CString::new(name).unwrap());
        let (mut module, mut function) = (0, 0);
        assert_eq!(self.cuModuleLoadData(&mut module, text.as_ptr().cast()), 0);
        assert_eq!(
            self.cuModuleGetFunction(&mut function, module, name.as_ptr().cast()),
            0
        );
        function
    }

    pub fn launch(&self, function: u64, stream: u64, params: &[*const c_void]) -> i32 {
        self.cuLaunchKernel(
            function,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            stream,
            params.as_ptr(),
            std::ptr::null(),
        )
    }
}

/// Bytes that neither repeat nor compress.
pub fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    (0..size)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

/// A scenario in a process of its own.
pub struct Process {
    pub child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a scenario on a node.
    pub fn start(scenario: &str, node: &Path, environment: &[(&str, &str)]) -> Self {
        let mut child = Self::command(scenario, node, environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// The command that runs a scenario.
    pub fn command(scenario: &str, node: &Path, environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "scenario",
                "--nocapture",
                "--test-threads=1",
                "--quiet",
            ])
            .env("PHOS_SIM_SCENARIO", scenario)
            .env("PHOS_SIM_DIR", node)
            .envs(environment.iter().copied());
        command
    }

    /// Says a line and hears the answer.
    pub fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.hear()
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
        self.stdin.flush().unwrap();
    }

    /// The next line that starts with the mark of a scenario (the test runner prints others).
    pub fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(
                self.stdout.read_line(&mut line).unwrap() > 0,
                "the scenario ended"
            );
            if let Some(at) = line.find("> ") {
                return line[at + 2..].trim().to_owned();
            }
        }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In a scenario: answers a line.
pub fn tell(line: impl std::fmt::Display) {
    println!("> {line}");
    std::io::stdout().flush().unwrap();
}

/// In a scenario: the next line from the parent.
pub fn heard() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}

/// Runs a scenario that asserts by itself, to its end.
pub fn run(scenario: &str, node: &Path, environment: &[(&str, &str)]) {
    let output = Process::command(scenario, node, environment)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("> done"),
        "scenario {scenario}: {text}"
    );
}

/// A node below the temporary directory.
pub fn node(name: &str, sizes: &[usize]) -> phos_gpu_sim::Node {
    let dir = std::env::temp_dir().join(format!("phos-sim-{name}-{}", std::process::id()));
    let sizes: Vec<u64> = sizes.iter().map(|size| *size as u64).collect();
    phos_gpu_sim::Node::new(&dir, &sizes).expect("the tests need root, to mount tmpfs")
}

/// Bytes in use on a device.
pub fn used(node: &phos_gpu_sim::Node, device: usize) -> usize {
    let stat = rustix::fs::statfs(node.dir().join(format!("dev{device}"))).unwrap();
    ((stat.f_blocks - stat.f_bavail) * stat.f_bsize as u64) as usize
}

/// What of a process refers to the devices: descriptors and mappings.
pub fn device_references(pid: i32, node: &phos_gpu_sim::Node) -> usize {
    let place = format!("{}/dev", node.dir().display());
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten();
    let fds = fds
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .filter(|to| to.to_string_lossy().contains(&place));
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    fds.count() + maps.lines().filter(|line| line.contains(&place)).count()
}
