//! Keeps the driver right about the GPU that imported memory lies on, in a process that was restored on other GPUs.
//!
//! An import asks the kernel on which GPU the memory lies and gets that GPU's number on its machine, its *instance*. The driver
//! looks the instance up in a table that it made at `cuInit`; a restore onto another GPU changes everything in the process but
//! that table. So after a move the import fails (101; 3 where the GPU was one that `CUDA_VISIBLE_DEVICES` hid), or takes the
//! memory for another GPU's (docs/driver.md). The remedy is to let the driver read the instance that it knows the device by: the
//! kernel's answer passes through `ioctl`, and is changed while an import of ours is under way.
//!
//! # Rules
//!
//! * Nothing is changed in a process that was not moved, and nothing outside an import: other calls of `ioctl` cost one
//!   load more than without the shim.
//! * `ioctl` of this library neither allocates nor locks, and looks nothing up: before the first `cuInit` it is the system
//!   call itself.
//! * What the driver called a device first is learnt from its own memory at the first export, before the process can be
//!   moved, and remembered in the process, hence in its image.
//!
//! The structures are those of the kernel module's interface: `nv-ioctl-numbers.h` (`NV_ESC_RM_CONTROL`), `nvos.h`
//! (`NVOS54_PARAMETERS`) and `ctrl0000unix.h` (`NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO_PARAMS`) of NVIDIA's open GPU
//! kernel modules, unchanged since they were published.

use std::cell::Cell;
use std::ffi::{c_int, c_ulong, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::table::real;
use crate::{abi, log};

/// `_IOWR('F', NV_ESC_RM_CONTROL, NVOS54_PARAMETERS)`.
const CONTROL: c_ulong = 0xC020_462A;
/// `NV0000_CTRL_CMD_OS_UNIX_GET_EXPORT_OBJECT_INFO`.
const EXPORT_INFO: u32 = 0x3D08;
/// `NV_MAX_DEVICES`: instances are below; the number itself stands for no device at all.
const MOST: usize = 32;
const NONE: u32 = u32::MAX;
/// An instance that no device has in practice: the import is refused and changes nothing.
const NOWHERE: u32 = MOST as u32 - 1;

/// `NVOS54_PARAMETERS`.
#[repr(C)]
struct Control {
    client: u32,
    object: u32,
    command: u32,
    flags: u32,
    parameters: *mut ExportInfo,
    size: u32,
    status: u32,
}

/// The beginning of `NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO_PARAMS`.
#[repr(C)]
struct ExportInfo {
    fd: i32,
    instance: u32,
}

const _: () = assert!(size_of::<Control>() == 32);

/// What an import under way tells the driver, and what it found.
#[derive(Clone, Copy)]
struct Import {
    under_way: bool,
    /// The instance to tell; `NONE`: by [`MOVED`].
    wanted: u32,
    /// The instance that the kernel answered.
    actual: u32,
    /// The instance that the driver was told.
    told: u32,
}

const IDLE: Import = Import {
    under_way: false,
    wanted: NONE,
    actual: NONE,
    told: NONE,
};

thread_local! {
    static IMPORT: Cell<Import> = const { Cell::new(IDLE) };
}

/// Imports under way in all threads.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// The C library's `ioctl`, or another one preloaded after this library; 0: the system call.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// By device: the instance that the driver knows it by.
static FIRST: [AtomicU32; MOST] = [const { AtomicU32::new(NONE) }; MOST];
/// By instance on this machine: the one that the driver is to be told.
static MOVED: [AtomicU32; MOST] = [const { AtomicU32::new(NONE) }; MOST];

fn slot(table: &[AtomicU32; MOST], index: impl TryInto<usize>) -> Option<&AtomicU32> {
    table.get(index.try_into().ok()?)
}

fn known(table: &[AtomicU32; MOST], index: impl TryInto<usize>) -> Option<u32> {
    let value = slot(table, index)?.load(Ordering::Relaxed);
    (value != NONE).then_some(value)
}

/// Whether some device is not where the driver's table says.
fn moved() -> bool {
    (0..MOST as u32).any(|instance| known(&MOVED, instance).is_some_and(|told| told != instance))
}

/// Whether the driver knows a device by this instance of which we know where it is.
fn taken(instance: u32) -> bool {
    let is =
        |table: &[AtomicU32; MOST]| table.iter().any(|v| v.load(Ordering::Relaxed) == instance);
    is(&FIRST) || is(&MOVED)
}

/// Makes an import. When the driver knows no device by that instance, which happens where a device is used for the first
/// time after a move, those instances are tried of which no device is known.
fn found(wanted: u32, whose: Whose, call: &mut impl FnMut() -> u32) -> (u32, Import) {
    let (result, import) = telling(wanted, &mut *call);
    let searched = import.actual != NONE && (whose == Whose::Own || moved());
    if !unknown_gpu(result) || !searched {
        return (result, import);
    }
    for instance in (0..NOWHERE).filter(|&instance| !taken(instance)) {
        let (result, import) = telling(instance, &mut *call);
        if result == abi::SUCCESS {
            log::debug!(
                "memory of instance {} is found as instance {instance}",
                import.actual
            );
            note(import);
            return (result, import);
        }
    }
    (result, import)
}

/// Remembers by which instance the driver found memory of another.
fn note(import: Import) {
    if let Some(moved) = slot(&MOVED, import.actual) {
        moved.store(import.told, Ordering::Relaxed);
    }
}

/// Whose memory an import is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Ours, or what was imported before: there is a device that it belongs to.
    Own,
    /// Memory that the application brings, from whichever process.
    Anybodys,
}

/// Looks up the `ioctl` that this library's stands before.
pub fn start() {
    let next = crate::driver::next(c"ioctl");
    NEXT.store(next.expose_provenance(), Ordering::Release);
}

/// Calls the kernel, or another library's `ioctl` that stands before it.
///
/// # Safety
/// The same as for `ioctl`.
unsafe fn forward(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    type Ioctl = unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int;
    let next = NEXT.load(Ordering::Acquire);
    if next == 0 {
        // SAFETY: the caller's promise.
        return unsafe { libc::syscall(libc::SYS_ioctl, fd, request, argument) } as c_int;
    }
    // SAFETY: the address of a function of that name, which every library declares so; the one argument after the named
    // ones travels like a named one on the architectures that we support.
    let next: Ioctl = unsafe { std::mem::transmute(next) };
    // SAFETY: the caller's promise.
    unsafe { next(fd, request, argument) }
}

/// Stands before the C library's.
///
/// # Safety
/// The same as for `ioctl`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { forward(fd, request, argument) };
    if UNDER_WAY.load(Ordering::Relaxed) != 0 && request == CONTROL && !argument.is_null() {
        // SAFETY: this request's argument is that structure, and only the driver makes the request.
        unsafe { answered(argument.cast()) };
    }
    result
}

/// Changes the answer to an import's question.
///
/// # Safety
/// `control` is what the request was made with.
unsafe fn answered(control: *mut Control) {
    // SAFETY: the caller's promise.
    let control = unsafe { &*control };
    if control.command != EXPORT_INFO
        || control.status != 0
        || control.parameters.is_null()
        || (control.size as usize) < size_of::<ExportInfo>()
    {
        return;
    }
    // A thread that is ending has none any more, and imports nothing.
    let _ = IMPORT.try_with(|cell| {
        let mut import = cell.get();
        if !import.under_way {
            return;
        }
        // SAFETY: the parameters of this command, at least as long as checked above, and the caller's own.
        let info = unsafe { &mut *control.parameters };
        import.actual = info.instance;
        import.told = match import.wanted {
            NONE => match known(&MOVED, info.instance) {
                Some(told) => told,
                // The driver would take it for a device that it is not.
                None if moved() && taken(info.instance) => NOWHERE,
                None => info.instance,
            },
            wanted => wanted,
        };
        // What is parented by no device stays so.
        if (info.instance as usize) < MOST {
            info.instance = import.told;
        }
        cell.set(import);
    });
}

/// Makes an import; `wanted` is the instance that the driver is to find. What it was told, if it asked.
fn telling(wanted: u32, call: impl FnOnce() -> u32) -> (u32, Import) {
    let import = Import {
        under_way: true,
        wanted,
        ..IDLE
    };
    let _ = IMPORT.try_with(|cell| cell.set(import));
    UNDER_WAY.fetch_add(1, Ordering::Relaxed);
    let result = call();
    UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    let import = IMPORT.try_with(|cell| cell.replace(IDLE)).unwrap_or(IDLE);
    (result, import)
}

/// The application's import of memory: a process that was moved finds it on the device where it is. The instance that the
/// driver found, for [`import`].
pub fn importing(mut call: impl FnMut() -> u32) -> (u32, Option<u32>) {
    let (result, import) = found(NONE, Whose::Anybodys, &mut call);
    (result, (import.told != NONE).then_some(import.told))
}

/// An import after a detach: of memory of this device of the process, or of one that was found at `instance` before.
pub fn import(device: Option<i32>, instance: Option<u32>, fd: BorrowedFd<'_>) -> (u32, u64) {
    let mut handle = 0;
    let mut call = || {
        // SAFETY: writes one handle; the driver takes the descriptor's number as a pointer and does not keep it.
        unsafe {
            real::cuMemImportFromShareableHandle(
                &mut handle,
                fd.as_raw_fd() as usize as *mut c_void,
                abi::HANDLE_POSIX_FD,
            )
        }
    };
    let first = device.and_then(|device| known(&FIRST, device)).or(instance);
    let (result, import) = found(first.unwrap_or(NONE), Whose::Own, &mut call);
    if result == abi::SUCCESS && import.actual != NONE {
        note(import);
        if let Some(first) = device.and_then(|device| slot(&FIRST, device)) {
            first.store(import.told, Ordering::Relaxed);
        }
    }
    (result, handle)
}

/// The machine may be another one: what its instances are called is found anew.
pub fn forget_machine() {
    for moved in &MOVED {
        moved.store(NONE, Ordering::Relaxed);
    }
}

/// Learns what the driver calls a device from memory of its own there, once.
pub fn learn(device: i32, fd: BorrowedFd<'_>) {
    if slot(&FIRST, device).is_none() || known(&FIRST, device).is_some() {
        return;
    }
    let (result, handle) = import(Some(device), None, fd);
    if result == abi::SUCCESS {
        // SAFETY: the handle was made just now, beside that of the memory's owner.
        unsafe { real::cuMemRelease(handle) };
    }
    if known(&FIRST, device).is_none() {
        log::debug!("device {device}: its instance is not known ({result})");
    }
}

fn unknown_gpu(result: u32) -> bool {
    matches!(result, abi::INVALID_DEVICE | abi::NOT_INITIALIZED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An import whose question is answered with `actual`; what the driver read.
    fn asked(actual: u32, status: u32, command: u32) -> u32 {
        let mut info = ExportInfo {
            fd: 3,
            instance: actual,
        };
        let mut control = Control {
            client: 1,
            object: 1,
            command,
            flags: 0,
            parameters: &mut info,
            size: 80,
            status,
        };
        // SAFETY: the structure of this request; the descriptor is none, so the kernel changes nothing.
        unsafe { ioctl(-1, CONTROL, (&raw mut control).cast()) };
        info.instance
    }

    #[test]
    fn only_an_import_reads_another_instance() {
        assert_eq!(asked(5, 0, EXPORT_INFO), 5, "no import");
        let read = |wanted, actual, status, command| {
            let mut read = NONE;
            let (_, import) = telling(wanted, || {
                read = asked(actual, status, command);
                0
            });
            (read, import.actual, import.told)
        };
        assert_eq!(read(2, 5, 0, EXPORT_INFO), (2, 5, 2));
        assert_eq!(read(NONE, 5, 0, EXPORT_INFO), (5, 5, 5));
        assert_eq!(read(2, 5, 0x1F, EXPORT_INFO), (5, NONE, NONE), "it failed");
        assert_eq!(read(2, 5, 0, 0x3D0C), (5, NONE, NONE), "another command");
        assert_eq!(read(2, 32, 0, EXPORT_INFO).0, 32, "no device's");
        // After a move the application's imports follow.
        MOVED[7].store(1, Ordering::Relaxed);
        assert_eq!(read(NONE, 7, 0, EXPORT_INFO), (1, 7, 1));
        // One that the driver knows as another device's is not left to it.
        assert_eq!(read(NONE, 1, 0, EXPORT_INFO), (NOWHERE, 1, NOWHERE));
        assert_eq!(read(NONE, 4, 0, EXPORT_INFO), (4, 4, 4));
        // Used for the first time after a move: an instance that is nobody's is found.
        let mut tried = Vec::new();
        let (result, import) = found(NONE, Whose::Anybodys, &mut || {
            let read = asked(1, 0, EXPORT_INFO);
            tried.push(read);
            if read == 2 {
                abi::SUCCESS
            } else {
                abi::INVALID_DEVICE
            }
        });
        assert_eq!((result, import.told), (abi::SUCCESS, 2));
        assert_eq!(tried, [NOWHERE, 0, 2], "1 is another device's");
        assert_eq!(read(NONE, 1, 0, EXPORT_INFO), (2, 1, 2), "remembered");
        forget_machine();
        assert_eq!(read(NONE, 7, 0, EXPORT_INFO), (7, 7, 7));
        // Where nothing was moved, the driver's answer stays.
        let (result, import) = found(NONE, Whose::Anybodys, &mut || {
            asked(9, 0, EXPORT_INFO);
            abi::INVALID_DEVICE
        });
        assert_eq!((result, import.told), (abi::INVALID_DEVICE, 9));
        assert_eq!(asked(5, 0, EXPORT_INFO), 5, "over");
    }

    #[test]
    fn other_calls_reach_the_kernel_and_errno_the_caller() {
        start();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"abc").unwrap();
        let mut waiting: c_int = 0;
        // SAFETY: FIONREAD writes an int.
        let result = unsafe {
            ioctl(
                reader.as_raw_fd(),
                libc::FIONREAD,
                (&raw mut waiting).cast(),
            )
        };
        assert_eq!((result, waiting), (0, 3));
        // SAFETY: a descriptor that is none.
        let result = unsafe { ioctl(-1, libc::FIONREAD, (&raw mut waiting).cast()) };
        assert_eq!(result, -1);
        assert_eq!(
            std::io::Error::last_os_error().raw_os_error(),
            Some(libc::EBADF)
        );
    }
}
