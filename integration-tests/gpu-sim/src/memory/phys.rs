//! Physical device memory: one unnamed file on the device's tmpfs for each allocation.
//!
//! The tmpfs's size is the device's memory, and the kernel frees a file exactly when the last descriptor and the last
//! mapping in any process are gone: the lifetime that memory shared through `cuMemExportToShareableHandle` has on a
//! real driver. All pages are taken when the file is made, so running out shows at allocation and not at first touch.
//!
//! A checkpoint moves the bytes into ordinary anonymous memory and closes the file ([`Phys::save`]); a restore makes a
//! new file ([`Phys::restore`]). In between nothing refers to the device.

use crate::driver::Driver;
use crate::error::{
    ERROR_NO_DEVICE, ERROR_OPERATING_SYSTEM, ERROR_OUT_OF_MEMORY, ERROR_UNKNOWN, Error, Res,
};
use crate::memory::multicast;
use crate::sync::lock;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The granularity of physical memory and of mappings.
pub const GRANULE: u64 = 2 << 20;
/// Descriptors of device memory start here where the limit can be raised so far. The limit of open files is one of numbers,
/// not of how many there are: the application keeps all that its limit promises, as with a real driver, which holds no
/// descriptor per allocation.
const FIRST_FD: i32 = 1 << 16;
/// Where there is no privilege to raise the limit.
const MODEST_FD: i32 = 1 << 12;
/// Number that the limit is raised to for a moment.
const MOST_FDS: libc::rlim_t = 1 << 20;
const PAGE: usize = 4096;

pub fn mib(count: u64) -> u64 {
    count << 20
}

/// What an allocation is for: decides what a checkpoint does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Plain, pool and module memory.
    Native,
    /// `cuMemCreate`, with the handle types asked for and whether RDMA was.
    Vmm { handle_types: u32, rdma: bool },
    /// `cuMemImportFromShareableHandle`.
    Import,
    /// `cuIpcOpenMemHandle`.
    Ipc,
    /// A multicast object, made here or imported: no memory of a device.
    Multicast,
    /// What a context takes for itself.
    Driver,
}

/// One physical allocation.
pub struct Phys {
    pub id: u64,
    pub ordinal: usize,
    pub size: u64,
    pub used_for: Use,
    state: Mutex<State>,
}

enum State {
    Device(OwnedFd),
    Saved(Saved),
    /// A restore failed: the contents are lost to the process.
    Lost,
}

impl Phys {
    /// Takes `size` bytes of a device.
    pub fn create(driver: &Driver, ordinal: usize, size: u64, used_for: Use) -> Res<Arc<Self>> {
        let backing = driver
            .devices
            .get(ordinal)
            .ok_or(ERROR_NO_DEVICE)?
            .backing()?;
        let file = new_file(&backing.dir, size, driver.config.sparse)?;
        if driver.config.poison {
            View::of(file.as_fd(), size)?.bytes().fill(0xa5);
        }
        Ok(Self::register(driver, ordinal, size, used_for, file))
    }

    /// Takes a file that another process made.
    pub fn adopt(
        driver: &Driver,
        ordinal: usize,
        size: u64,
        used_for: Use,
        file: OwnedFd,
    ) -> Arc<Self> {
        Self::register(driver, ordinal, size, used_for, file)
    }

    fn register(
        driver: &Driver,
        ordinal: usize,
        size: u64,
        used_for: Use,
        file: OwnedFd,
    ) -> Arc<Self> {
        let state = Mutex::new(State::Device(file));
        let phys = Arc::new(Self {
            id: driver.space.next_id(),
            ordinal,
            size,
            used_for,
            state,
        });
        driver.space.remember(&phys);
        phys
    }

    /// Whether the memory belongs to another process: a checkpoint cannot save it.
    pub fn foreign(&self) -> bool {
        matches!(self.used_for, Use::Import | Use::Ipc)
    }

    /// A descriptor of its own open file description, as each export is one.
    pub fn reopen(&self) -> Res<OwnedFd> {
        let state = lock(&self.state);
        let State::Device(file) = &*state else {
            return Err(ERROR_UNKNOWN);
        };
        let number = std::os::fd::AsRawFd::as_raw_fd(file);
        rustix::fs::open(
            format!("/proc/self/fd/{number}"),
            OFlags::RDWR | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|_| ERROR_OPERATING_SYSTEM)
    }

    /// Does something with the file.
    pub fn with_file<T>(&self, run: impl FnOnce(BorrowedFd<'_>) -> Res<T>) -> Res<T> {
        match &*lock(&self.state) {
            State::Device(file) => run(file.as_fd()),
            State::Saved(_) | State::Lost => Err(ERROR_UNKNOWN),
        }
    }

    /// Maps `size` bytes from `offset` at `address`, over whatever is there.
    pub fn map_at(&self, address: u64, size: u64, offset: u64) -> Res {
        let offset = match self.used_for {
            Use::Multicast => offset + multicast::WINDOW,
            _ => offset,
        };
        self.with_file(|file| {
            // SAFETY: `address` lies in an alias range that this crate reserved and nothing else refers to.
            unsafe {
                rustix::mm::mmap(
                    address as *mut c_void,
                    size as usize,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::SHARED | MapFlags::FIXED,
                    file,
                    offset,
                )
            }
            .map_err(|_| ERROR_OUT_OF_MEMORY)?;
            Ok(())
        })
    }

    /// Moves the bytes into anonymous memory and lets the device's memory go.
    pub fn save(&self) -> Res {
        let mut state = lock(&self.state);
        if let State::Device(file) = &*state {
            let saved = Saved::take(file.as_fd(), self.size)?;
            *state = State::Saved(saved);
        }
        Ok(())
    }

    /// Makes device memory again and fills it.
    pub fn restore(&self, dir: &Path) -> Res {
        let mut state = lock(&self.state);
        if let State::Saved(saved) = &*state {
            let file = new_file(dir, self.size, false)?;
            saved.put(file.as_fd(), self.size)?;
            *state = State::Device(file);
        }
        Ok(())
    }

    /// Gives up what a failed restore took.
    pub fn lose(&self) {
        *lock(&self.state) = State::Lost;
    }
}

impl Drop for Phys {
    fn drop(&mut self) {
        if let Ok(driver) = crate::driver::get() {
            driver.space.forget(self.id);
        }
    }
}

fn new_file(dir: &Path, size: u64, sparse: bool) -> Res<OwnedFd> {
    let file = rustix::fs::open(
        dir,
        OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
        Mode::from_raw_mode(0o600),
    )
    .map_err(open_error)?;
    if sparse {
        rustix::fs::ftruncate(&file, size).map_err(|_| ERROR_OPERATING_SYSTEM)?;
        return Ok(raise(file));
    }
    loop {
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(Errno::NOSPC | Errno::NOMEM | Errno::FBIG) => return Err(ERROR_OUT_OF_MEMORY),
            Err(_) => return Err(ERROR_OPERATING_SYSTEM),
        }
    }
    Ok(raise(file))
}

fn open_error(errno: Errno) -> Error {
    match errno {
        Errno::NOSPC | Errno::NOMEM | Errno::MFILE | Errno::NFILE => ERROR_OUT_OF_MEMORY,
        Errno::NOENT | Errno::NOTDIR => ERROR_NO_DEVICE,
        _ => ERROR_OPERATING_SYSTEM,
    }
}

/// Moves a descriptor out of the application's way, where there is room: above its limit of open files, which is raised
/// for that moment.
pub fn raise(file: OwnedFd) -> OwnedFd {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = lock(&ONE);
    let mut before = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: writes to a local structure.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut before) };
    let set = |soft, hard| {
        let limit = libc::rlimit {
            rlim_cur: soft,
            rlim_max: hard,
        };
        // SAFETY: reads a local structure.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 }
    };
    if !set(MOST_FDS, before.rlim_max.max(MOST_FDS)) {
        set(before.rlim_max, before.rlim_max);
    }
    let moved = [FIRST_FD, MODEST_FD]
        .into_iter()
        .find_map(|first| rustix::io::fcntl_dupfd_cloexec(&file, first).ok());
    set(before.rlim_cur, before.rlim_max);
    moved.unwrap_or(file)
}

/// A short-lived mapping of a whole file.
pub struct View {
    at: *mut c_void,
    size: usize,
}

impl View {
    pub fn of(file: BorrowedFd<'_>, size: u64) -> Res<Self> {
        let size = size as usize;
        // SAFETY: a new mapping wherever the kernel puts it.
        let at = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )
        }
        .map_err(|_| ERROR_OUT_OF_MEMORY)?;
        Ok(Self { at, size })
    }

    /// The bytes. Other processes may change them meanwhile, as they may on a device.
    #[allow(clippy::mut_from_ref)]
    pub fn bytes(&self) -> &mut [u8] {
        // SAFETY: the mapping is `size` long and lives as long as `self`; each caller uses one slice at a time.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.size) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's own.
        let _ = unsafe { rustix::mm::munmap(self.at, self.size) };
    }
}

/// From this many bytes on, contents are saved in memory that is asked for as the driver does.
const POPULATED: u64 = 16 << 20;

/// Memory of zeros as driver 580 asks for it in a checkpoint: from the C library, which a preloaded library may stand before, and filled at once.
fn populated(bytes: usize) -> Res<*mut c_void> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    // SAFETY: a new mapping wherever the kernel puts it.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(ERROR_OUT_OF_MEMORY);
    }
    Ok(at)
}

/// Contents in ordinary anonymous memory; untouched pages are zeroes, and cost nothing where there are fewer than [`POPULATED`] bytes.
struct Saved {
    at: *mut c_void,
    size: usize,
}

// SAFETY: the mapping is only reached through the mutex that holds this object.
unsafe impl Send for Saved {}

impl Saved {
    fn take(file: BorrowedFd<'_>, size: u64) -> Res<Self> {
        let view = View::of(file, size)?;
        let at = if size < POPULATED {
            // SAFETY: a new mapping wherever the kernel puts it.
            unsafe {
                rustix::mm::mmap_anonymous(
                    std::ptr::null_mut(),
                    size as usize,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::PRIVATE | MapFlags::NORESERVE,
                )
            }
            .map_err(|_| ERROR_OUT_OF_MEMORY)?
        } else {
            populated(size as usize)?
        };
        let saved = Self {
            at,
            size: size as usize,
        };
        for (page, source) in saved
            .bytes()
            .chunks_mut(PAGE)
            .zip(view.bytes().chunks(PAGE))
        {
            if source.iter().any(|byte| *byte != 0) {
                page.copy_from_slice(source);
            }
        }
        Ok(saved)
    }

    fn put(&self, file: BorrowedFd<'_>, size: u64) -> Res {
        let view = View::of(file, size)?;
        for (page, target) in self.bytes().chunks(PAGE).zip(view.bytes().chunks_mut(PAGE)) {
            if page.iter().any(|byte| *byte != 0) {
                target.copy_from_slice(page);
            }
        }
        Ok(())
    }

    #[allow(clippy::mut_from_ref)]
    fn bytes(&self) -> &mut [u8] {
        // SAFETY: the mapping is `size` long, and this object alone knows it.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.size) }
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's own.
        let _ = unsafe { rustix::mm::munmap(self.at, self.size) };
    }
}
