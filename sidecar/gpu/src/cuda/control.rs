//! The driver's own checkpoint calls (`cuCheckpointProcess*`), made by the agent on the processes of the job.
//!
//! They act on another process by PID and need no context here. The library is opened at run time: a machine
//! without it, or with a driver older than 570, gets a clear error and the job trains on.
//!
//! # Rules
//!
//! * One long-lived process makes the calls: starting a CUDA process costs 0.1 s to seconds.
//! * The argument structs are 64 bytes and zeroed; a process state is received as `u32`, so that a state this
//!   program does not know stays a number and never becomes an invalid enum.
//! * A failed [`ControlState::restore`] can leave the process stuck for good: the caller ends it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::time::Duration;

use phos_protocol::types::{GpuUuid, ProcessId};

use crate::control::{ControlError, ControlMeaning, ControlState, ProcessState};

const LOCK: &str = "cuCheckpointProcessLock";
const RESTORE: &str = "cuCheckpointProcessRestore";
/// `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: u32 = 801;
/// Results of a restore after which another try may succeed: it lacked memory, or a GPU that is ready.
const MAY_PASS: [u32; 4] = [2, 46, 100, 802];

fn meaning(call: &str, result: u32) -> ControlMeaning {
    match call {
        LOCK if result == NOT_SUPPORTED => ControlMeaning::Unsupported,
        RESTORE if !MAY_PASS.contains(&result) => ControlMeaning::Lost,
        _ => ControlMeaning::Other,
    }
}

type Code = c_uint;

/// CUDA 12.8, which driver 570 brought.
const FIRST_VERSION: u32 = 12_080;

const ARGUMENT_BYTES: usize = 64;

/// Room for the arguments of any of the calls, aligned as the structs are. Larger than they are today, so that
/// a driver that reads more of a grown struct finds zeros.
#[repr(C, align(8))]
struct Arguments([u8; 4 * ARGUMENT_BYTES]);

impl Arguments {
    const fn zeroed() -> Self {
        Self([0; 4 * ARGUMENT_BYTES])
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct GpuPair {
    old: [u8; 16],
    new: [u8; 16],
}

/// The driver's entry points for checkpoints, loaded from `libcuda.so.1`.
pub(crate) struct Control {
    version: u32,
    get_error_name: Option<unsafe extern "C" fn(Code, *mut *const c_char) -> Code>,
    get_state: unsafe extern "C" fn(c_int, *mut u32) -> Code,
    lock: unsafe extern "C" fn(c_int, *mut c_void) -> Code,
    checkpoint: unsafe extern "C" fn(c_int, *mut c_void) -> Code,
    restore: unsafe extern "C" fn(c_int, *mut c_void) -> Code,
    unlock: unsafe extern "C" fn(c_int, *mut c_void) -> Code,
    devices: Option<DeviceCalls>,
}

/// `cuDeviceGetCount`, `cuDeviceGet`, `cuDeviceGetUuid_v2`.
#[derive(Clone, Copy)]
struct DeviceCalls {
    count: unsafe extern "C" fn(*mut c_int) -> Code,
    get: unsafe extern "C" fn(*mut c_int, c_int) -> Code,
    uuid: unsafe extern "C" fn(*mut [u8; 16], c_int) -> Code,
}

impl DeviceCalls {
    fn find(library: *mut c_void) -> Option<Self> {
        let count = symbol(library, c"cuDeviceGetCount")?;
        let get = symbol(library, c"cuDeviceGet")?;
        let uuid = symbol(library, c"cuDeviceGetUuid_v2")?;
        // SAFETY: the documented signatures; `CUuuid` is 16 bytes, `CUdevice` an int.
        unsafe {
            Some(Self {
                count: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> Code>(
                    count,
                ),
                get: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_int, c_int) -> Code,
                >(get),
                uuid: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut [u8; 16], c_int) -> Code,
                >(uuid),
            })
        }
    }

    fn uuid_of(&self, ordinal: c_int) -> Option<GpuUuid> {
        let mut device: c_int = 0;
        let mut uuid = [0_u8; 16];
        // SAFETY: valid out pointers of the documented sizes.
        let good = unsafe {
            (self.get)(&raw mut device, ordinal) == 0 && (self.uuid)(&raw mut uuid, device) == 0
        };
        good.then_some(GpuUuid(uuid))
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

fn last_dl_error() -> String {
    // SAFETY: dlerror returns NULL or a NUL-terminated string that stays valid until the next dl call of this
    // thread; it is copied at once.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            String::from("no reason given")
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a handle from dlopen that is never closed, and a NUL-terminated name.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

impl Control {
    /// Opens the library and initialises the driver (no context is made). Takes 0.1 s to seconds.
    ///
    /// # Errors
    /// [`ControlError`].
    pub(crate) fn open() -> Result<Self, ControlError> {
        // SAFETY: loading the driver's library runs its initialisers, which is what is wanted. It is never
        // closed, so the addresses below stay valid.
        let library =
            unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(ControlError::NoLibrary(last_dl_error()));
        }
        let mut version: c_int = 0;
        if let Some(address) = symbol(library, c"cuDriverGetVersion") {
            // SAFETY: the documented signature of cuDriverGetVersion.
            let call: unsafe extern "C" fn(*mut c_int) -> Code =
                unsafe { std::mem::transmute(address) };
            // SAFETY: a valid pointer to an int.
            unsafe { call(&raw mut version) };
        }
        let version = version.unsigned_abs();
        // The symbols may be there and answer "not supported".
        if version != 0 && version < FIRST_VERSION {
            return Err(ControlError::NoSymbol {
                symbol: "working cuCheckpointProcessCheckpoint",
                version,
            });
        }
        let find = |name: &'static CStr, text: &'static str| {
            symbol(library, name).ok_or(ControlError::NoSymbol {
                symbol: text,
                version,
            })
        };
        let get_state = find(
            c"cuCheckpointProcessGetState",
            "cuCheckpointProcessGetState",
        )?;
        let lock = find(c"cuCheckpointProcessLock", LOCK)?;
        let checkpoint = find(
            c"cuCheckpointProcessCheckpoint",
            "cuCheckpointProcessCheckpoint",
        )?;
        let restore = find(c"cuCheckpointProcessRestore", "cuCheckpointProcessRestore")?;
        let unlock = find(c"cuCheckpointProcessUnlock", "cuCheckpointProcessUnlock")?;
        let init = find(c"cuInit", "cuInit")?;
        let name = symbol(library, c"cuGetErrorName");
        let devices = DeviceCalls::find(library);
        // SAFETY: the documented signatures; `CUresult` is a C enum of unsigned int size, argument structs are
        // passed as untyped pointers.
        let driver = unsafe {
            Self {
                version,
                get_error_name: name.map(|a| {
                    std::mem::transmute::<
                        *mut c_void,
                        unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
                    >(a)
                }),
                get_state: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, *mut u32) -> Code,
                >(get_state),
                lock: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, *mut c_void) -> Code,
                >(lock),
                checkpoint: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, *mut c_void) -> Code,
                >(checkpoint),
                restore: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, *mut c_void) -> Code,
                >(restore),
                unlock: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, *mut c_void) -> Code,
                >(unlock),
                devices,
            }
        };
        // SAFETY: the documented signature of cuInit.
        let init: unsafe extern "C" fn(c_uint) -> Code = unsafe { std::mem::transmute(init) };
        // SAFETY: flags must be 0.
        driver.check("cuInit", 0, unsafe { init(0) })?;
        Ok(driver)
    }

    fn check(&self, call: &'static str, pid: ProcessId, result: Code) -> Result<(), ControlError> {
        if result == 0 {
            return Ok(());
        }
        let mut name = String::from("unknown");
        if let Some(get) = self.get_error_name {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: a valid out pointer; the driver's strings are static.
            if unsafe { get(result, &raw mut text) } == 0 && !text.is_null() {
                // SAFETY: the driver returned a NUL-terminated static string.
                name = unsafe { CStr::from_ptr(text) }
                    .to_string_lossy()
                    .into_owned();
            }
        }
        Err(ControlError::Call {
            call,
            pid,
            result,
            name,
            hint: hint(result),
            meaning: meaning(call, result),
        })
    }
}

/// What helps, by `CUresult`.
fn hint(result: Code) -> &'static str {
    match result {
        2 => {
            ": not enough free memory; on a restore, free device memory first (the control state needs 0.3 to 0.8 GiB per process)"
        }
        1 => {
            ": the process has no CUDA state the driver can act on, or the GPUs do not match those of the checkpoint"
        }
        3 | 201 => ": the process has no CUDA state the driver can act on",
        100 | 101 => ": no usable GPU; map the image's GPUs to those of this machine",
        401 => ": the process is in another state than the call needs",
        600 => ": GPU work did not end within the timeout",
        NOT_SUPPORTED => {
            ": the driver cannot checkpoint what the process uses: a profiler (torch.profiler, Nsight: from its first use to the end of \
             the process, so leave it out where checkpoints are needed), UVM, MIG, MPS, IPC or multicast memory"
        }
        _ => "",
    }
}

impl ControlState for Control {
    fn driver_version(&self) -> u32 {
        self.version
    }

    fn gpus(&self) -> Vec<GpuUuid> {
        let Some(calls) = &self.devices else {
            return Vec::new();
        };
        let mut count: c_int = 0;
        // SAFETY: a valid out pointer.
        if unsafe { (calls.count)(&raw mut count) } != 0 {
            return Vec::new();
        }
        (0..count).filter_map(|i| calls.uuid_of(i)).collect()
    }

    fn state(&self, pid: ProcessId) -> Result<ProcessState, ControlError> {
        let mut state = 0_u32;
        // SAFETY: a valid out pointer to 32 bits, the size of the C enum.
        let result = unsafe { (self.get_state)(pid.cast_signed(), &raw mut state) };
        self.check("cuCheckpointProcessGetState", pid, result)?;
        Ok(state.into())
    }

    fn lock(&self, pid: ProcessId, timeout: Duration) -> Result<(), ControlError> {
        let mut arguments = Arguments::zeroed();
        let ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        arguments.0[..4].copy_from_slice(&ms.to_ne_bytes());
        // SAFETY: zeroed arguments with the timeout in the first word, alive during the call.
        let result =
            unsafe { (self.lock)(pid.cast_signed(), (&raw mut arguments).cast::<c_void>()) };
        self.check(LOCK, pid, result)
    }

    fn checkpoint(&self, pid: ProcessId) -> Result<(), ControlError> {
        let mut arguments = Arguments::zeroed();
        // SAFETY: zeroed arguments, alive during the call.
        let result =
            unsafe { (self.checkpoint)(pid.cast_signed(), (&raw mut arguments).cast::<c_void>()) };
        self.check("cuCheckpointProcessCheckpoint", pid, result)
    }

    fn restore(&self, pid: ProcessId, gpus: &[(GpuUuid, GpuUuid)]) -> Result<(), ControlError> {
        let mut pairs: Vec<GpuPair> = gpus
            .iter()
            .map(|(old, new)| GpuPair {
                old: old.0,
                new: new.0,
            })
            .collect();
        let mut arguments = Arguments::zeroed();
        if !pairs.is_empty() {
            let address = pairs.as_mut_ptr() as usize as u64;
            arguments.0[..8].copy_from_slice(&address.to_ne_bytes());
            let count = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
            arguments.0[8..12].copy_from_slice(&count.to_ne_bytes());
        }
        // SAFETY: `CUcheckpointRestoreArgs` is a pointer to the pairs, their number and zeros; the pairs and
        // the arguments are alive during the call.
        let result =
            unsafe { (self.restore)(pid.cast_signed(), (&raw mut arguments).cast::<c_void>()) };
        drop(pairs);
        self.check("cuCheckpointProcessRestore", pid, result)
    }

    fn unlock(&self, pid: ProcessId) -> Result<(), ControlError> {
        let mut arguments = Arguments::zeroed();
        // SAFETY: zeroed arguments, alive during the call.
        let result =
            unsafe { (self.unlock)(pid.cast_signed(), (&raw mut arguments).cast::<c_void>()) };
        self.check("cuCheckpointProcessUnlock", pid, result)
    }
}
