//! Result codes of the driver API: numbers, names and the texts of `cuGetErrorString`.
//!
//! Inside the crate a failed call is an [`Error`]; only the boundary turns it back into a number.

use crate::api::{Out, api};

/// A driver call's result as C sees it.
pub type CUresult = i32;

/// A result code other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub CUresult);

/// What every operation in this crate returns.
pub type Res<T = ()> = Result<T, Error>;

macro_rules! codes {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        $(#[allow(dead_code)] pub const $name: Error = Error($value);)*
        /// Name (NUL-terminated) and text (NUL-terminated) of a code.
        fn describe(code: CUresult) -> Option<(&'static str, &'static str)> {
            match code {
                $($value => Some((concat!("CUDA_", stringify!($name), "\0"), concat!($text, "\0"))),)*
                _ => None,
            }
        }
    };
}

codes! {
    SUCCESS = 0, "no error";
    ERROR_INVALID_VALUE = 1, "invalid argument";
    ERROR_OUT_OF_MEMORY = 2, "out of memory";
    ERROR_NOT_INITIALIZED = 3, "initialization error";
    ERROR_DEINITIALIZED = 4, "deinitialized";
    ERROR_PROFILER_DISABLED = 5, "profiler disabled";
    ERROR_PROFILER_NOT_INITIALIZED = 6, "profiler not initialized";
    ERROR_PROFILER_ALREADY_STARTED = 7, "profiler already started";
    ERROR_PROFILER_ALREADY_STOPPED = 8, "profiler already stopped";
    ERROR_STUB_LIBRARY = 34, "stub library";
    ERROR_CALL_REQUIRES_NEWER_DRIVER = 36, "call requires newer driver";
    ERROR_DEVICE_UNAVAILABLE = 46, "device unavailable";
    ERROR_NO_DEVICE = 100, "no CUDA-capable device is detected";
    ERROR_INVALID_DEVICE = 101, "invalid device ordinal";
    ERROR_DEVICE_NOT_LICENSED = 102, "device not licensed";
    ERROR_INVALID_IMAGE = 200, "device kernel image is invalid";
    ERROR_INVALID_CONTEXT = 201, "invalid device context";
    ERROR_CONTEXT_ALREADY_CURRENT = 202, "context already current";
    ERROR_MAP_FAILED = 205, "map failed";
    ERROR_UNMAP_FAILED = 206, "unmap failed";
    ERROR_ARRAY_IS_MAPPED = 207, "array is mapped";
    ERROR_ALREADY_MAPPED = 208, "already mapped";
    ERROR_NO_BINARY_FOR_GPU = 209, "no kernel image is available for execution on the device";
    ERROR_ALREADY_ACQUIRED = 210, "already acquired";
    ERROR_NOT_MAPPED = 211, "not mapped";
    ERROR_NOT_MAPPED_AS_ARRAY = 212, "not mapped as array";
    ERROR_NOT_MAPPED_AS_POINTER = 213, "not mapped as pointer";
    ERROR_ECC_UNCORRECTABLE = 214, "ecc uncorrectable";
    ERROR_UNSUPPORTED_LIMIT = 215, "unsupported limit";
    ERROR_CONTEXT_ALREADY_IN_USE = 216, "context already in use";
    ERROR_PEER_ACCESS_UNSUPPORTED = 217, "peer access unsupported";
    ERROR_INVALID_PTX = 218, "a PTX JIT compilation failed";
    ERROR_INVALID_GRAPHICS_CONTEXT = 219, "invalid graphics context";
    ERROR_NVLINK_UNCORRECTABLE = 220, "nvlink uncorrectable";
    ERROR_JIT_COMPILER_NOT_FOUND = 221, "jit compiler not found";
    ERROR_UNSUPPORTED_PTX_VERSION = 222, "unsupported ptx version";
    ERROR_JIT_COMPILATION_DISABLED = 223, "jit compilation disabled";
    ERROR_UNSUPPORTED_EXEC_AFFINITY = 224, "unsupported exec affinity";
    ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225, "unsupported devside sync";
    ERROR_CONTAINED = 226, "contained";
    ERROR_INVALID_SOURCE = 300, "invalid source";
    ERROR_FILE_NOT_FOUND = 301, "file not found";
    ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, "shared object symbol not found";
    ERROR_SHARED_OBJECT_INIT_FAILED = 303, "shared object init failed";
    ERROR_OPERATING_SYSTEM = 304, "OS call failed or operation not supported on this OS";
    ERROR_INVALID_HANDLE = 400, "invalid resource handle";
    ERROR_ILLEGAL_STATE = 401, "the operation cannot be performed in the present state";
    ERROR_LOSSY_QUERY = 402, "lossy query";
    ERROR_NOT_FOUND = 500, "named symbol not found";
    ERROR_NOT_READY = 600, "device not ready";
    ERROR_ILLEGAL_ADDRESS = 700, "an illegal memory access was encountered";
    ERROR_LAUNCH_OUT_OF_RESOURCES = 701, "too many resources requested for launch";
    ERROR_LAUNCH_TIMEOUT = 702, "launch timeout";
    ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703, "launch incompatible texturing";
    ERROR_PEER_ACCESS_ALREADY_ENABLED = 704, "peer access is already enabled";
    ERROR_PEER_ACCESS_NOT_ENABLED = 705, "peer access has not been enabled";
    ERROR_PRIMARY_CONTEXT_ACTIVE = 708, "primary context active";
    ERROR_CONTEXT_IS_DESTROYED = 709, "context is destroyed";
    ERROR_ASSERT = 710, "assert";
    ERROR_TOO_MANY_PEERS = 711, "too many peers";
    ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712, "part or all of the requested memory range is already mapped";
    ERROR_HOST_MEMORY_NOT_REGISTERED = 713, "pointer does not correspond to a registered memory region";
    ERROR_HARDWARE_STACK_ERROR = 714, "hardware stack error";
    ERROR_ILLEGAL_INSTRUCTION = 715, "illegal instruction";
    ERROR_MISALIGNED_ADDRESS = 716, "misaligned address";
    ERROR_INVALID_ADDRESS_SPACE = 717, "invalid address space";
    ERROR_INVALID_PC = 718, "invalid pc";
    ERROR_LAUNCH_FAILED = 719, "unspecified launch failure";
    ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720, "cooperative launch too large";
    ERROR_TENSOR_MEMORY_LEAK = 721, "tensor memory leak";
    ERROR_NOT_PERMITTED = 800, "operation not permitted";
    ERROR_NOT_SUPPORTED = 801, "operation not supported";
    ERROR_SYSTEM_NOT_READY = 802, "system not ready";
    ERROR_SYSTEM_DRIVER_MISMATCH = 803, "system driver mismatch";
    ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, "compat not supported on device";
    ERROR_MPS_CONNECTION_FAILED = 805, "mps connection failed";
    ERROR_MPS_RPC_FAILURE = 806, "mps rpc failure";
    ERROR_MPS_SERVER_NOT_READY = 807, "mps server not ready";
    ERROR_MPS_MAX_CLIENTS_REACHED = 808, "mps max clients reached";
    ERROR_MPS_MAX_CONNECTIONS_REACHED = 809, "mps max connections reached";
    ERROR_MPS_CLIENT_TERMINATED = 810, "mps client terminated";
    ERROR_CDP_NOT_SUPPORTED = 811, "cdp not supported";
    ERROR_CDP_VERSION_MISMATCH = 812, "cdp version mismatch";
    ERROR_STREAM_CAPTURE_UNSUPPORTED = 900, "operation not permitted when stream is capturing";
    ERROR_STREAM_CAPTURE_INVALIDATED = 901, "operation failed due to a previous error during capture";
    ERROR_STREAM_CAPTURE_MERGE = 902, "stream capture merge";
    ERROR_STREAM_CAPTURE_UNMATCHED = 903, "capture was not ended in the same stream as it began";
    ERROR_STREAM_CAPTURE_UNJOINED = 904, "capturing stream has unjoined work";
    ERROR_STREAM_CAPTURE_ISOLATION = 905, "dependency created on uncaptured work in another stream";
    ERROR_STREAM_CAPTURE_IMPLICIT = 906, "operation would make the legacy stream depend on a capturing blocking stream";
    ERROR_CAPTURED_EVENT = 907, "operation not permitted on an event last recorded in a capturing stream";
    ERROR_STREAM_CAPTURE_WRONG_THREAD = 908, "attempt to terminate a thread-local capture sequence from another thread";
    ERROR_TIMEOUT = 909, "timeout";
    ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update";
    ERROR_EXTERNAL_DEVICE = 911, "external device";
    ERROR_INVALID_CLUSTER_SIZE = 912, "invalid cluster size";
    ERROR_FUNCTION_NOT_LOADED = 913, "function not loaded";
    ERROR_INVALID_RESOURCE_TYPE = 914, "invalid resource type";
    ERROR_INVALID_RESOURCE_CONFIGURATION = 915, "invalid resource configuration";
    ERROR_KEY_ROTATION = 916, "key rotation";
    ERROR_UNKNOWN = 999, "unknown error";
}

api! { TABLE;
    6000 fn cuGetErrorName(error: CUresult, text: Out<*const u8>) @free { lookup(error, text, |d| d.0) }
    6000 fn cuGetErrorString(error: CUresult, text: Out<*const u8>) @free { lookup(error, text, |d| d.1) }
}

fn lookup(
    error: CUresult,
    text: Out<*const u8>,
    pick: fn((&'static str, &'static str)) -> &'static str,
) -> Res {
    match describe(error) {
        Some(both) => text.set(pick(both).as_ptr()),
        None => {
            text.set(std::ptr::null())?;
            Err(ERROR_INVALID_VALUE)
        }
    }
}
