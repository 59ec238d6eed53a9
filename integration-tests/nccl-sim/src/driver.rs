//! The driver's functions, by `dlopen` and `dlsym`.

use std::ffi::{CStr, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

/// A function that a stream calls on the host.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);

type AllocHost = unsafe extern "C" fn(*mut *mut c_void, usize, u32) -> u32;
type ToHost = unsafe extern "C" fn(*mut c_void, u64, usize, *mut c_void) -> u32;
type ToDevice = unsafe extern "C" fn(u64, *const c_void, usize, *mut c_void) -> u32;
type CallHost = unsafe extern "C" fn(*mut c_void, HostFunction, *mut c_void) -> u32;
type OnDevice = unsafe extern "C" fn(u64, u64, usize, *mut c_void) -> u32;
type GetDevice = unsafe extern "C" fn(*mut i32) -> u32;
type Granularity = unsafe extern "C" fn(*mut usize, *const Properties, u32) -> u32;
type Create = unsafe extern "C" fn(*mut u64, usize, *const Properties, u64) -> u32;
type Reserve = unsafe extern "C" fn(*mut u64, usize, usize, u64, u64) -> u32;
type Map = unsafe extern "C" fn(u64, usize, usize, u64, u64) -> u32;
type SetAccess = unsafe extern "C" fn(u64, usize, *const Access, usize) -> u32;
type Export = unsafe extern "C" fn(*mut RawFd, u64, u32, u64) -> u32;
type Import = unsafe extern "C" fn(*mut u64, *mut c_void, u32) -> u32;
type MulticastCreate = unsafe extern "C" fn(*mut u64, *const MulticastProperties) -> u32;
type MulticastAdd = unsafe extern "C" fn(u64, i32) -> u32;
type MulticastBind = unsafe extern "C" fn(u64, usize, u64, usize, usize, u64) -> u32;
type MulticastBindOf = unsafe extern "C" fn(u64, i32, usize, u64, usize, usize, u64) -> u32;
type MulticastBindAt = unsafe extern "C" fn(u64, usize, u64, usize, u64) -> u32;
type MulticastBindAtOf = unsafe extern "C" fn(u64, i32, usize, u64, usize, u64) -> u32;
type IsCapturing = unsafe extern "C" fn(*mut c_void, *mut i32) -> u32;

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const DESCRIPTOR: u32 = 1;

/// `CUmemLocation`, of a device.
#[repr(C)]
struct Location {
    kind: u32,
    id: i32,
}

/// `CUmemAllocationProp`.
#[repr(C)]
struct Properties {
    kind: u32,
    handle_types: u32,
    location: Location,
    windows: *const c_void,
    flags: [u8; 8],
}

/// `CUmulticastObjectProp`.
#[repr(C)]
struct MulticastProperties {
    devices: u32,
    size: usize,
    handle_types: u64,
    flags: u64,
}

/// `CUmemAccessDesc`.
#[repr(C)]
struct Access {
    location: Location,
    flags: u32,
}

/// What is used of the driver.
pub struct Driver {
    on_device: OnDevice,
    get_device: GetDevice,
    granularity: Granularity,
    create: Create,
    reserve: Reserve,
    map: Map,
    set_access: SetAccess,
    export: Export,
    import: Import,
    alloc_host: AllocHost,
    to_host: ToHost,
    to_device: ToDevice,
    host_function: CallHost,
    is_capturing: IsCapturing,
    multicast_create: MulticastCreate,
    multicast_add: MulticastAdd,
    multicast_bind: MulticastBind,
    multicast_bind_of: MulticastBindOf,
    multicast_bind_at: MulticastBindAt,
    multicast_bind_at_of: MulticastBindAtOf,
}

/// The driver, if the process has one.
pub fn get() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER.get_or_init(load).as_ref()
}

fn load() -> Option<Driver> {
    // SAFETY: a terminated name; the library is in the process already, and its initialisers have run.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return None;
    }
    let find = |name: &CStr| {
        // SAFETY: a handle of dlopen and a terminated name.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    // SAFETY: the addresses are those of the driver's functions of these names, whose C signatures stand above.
    unsafe {
        Some(Driver {
            on_device: std::mem::transmute::<*mut c_void, OnDevice>(find(c"cuMemcpyDtoDAsync_v2")?),
            get_device: std::mem::transmute::<*mut c_void, GetDevice>(find(c"cuCtxGetDevice")?),
            granularity: std::mem::transmute::<*mut c_void, Granularity>(find(
                c"cuMemGetAllocationGranularity",
            )?),
            create: std::mem::transmute::<*mut c_void, Create>(find(c"cuMemCreate")?),
            reserve: std::mem::transmute::<*mut c_void, Reserve>(find(c"cuMemAddressReserve")?),
            map: std::mem::transmute::<*mut c_void, Map>(find(c"cuMemMap")?),
            set_access: std::mem::transmute::<*mut c_void, SetAccess>(find(c"cuMemSetAccess")?),
            export: std::mem::transmute::<*mut c_void, Export>(find(
                c"cuMemExportToShareableHandle",
            )?),
            import: std::mem::transmute::<*mut c_void, Import>(find(
                c"cuMemImportFromShareableHandle",
            )?),
            alloc_host: std::mem::transmute::<*mut c_void, AllocHost>(find(c"cuMemHostAlloc")?),
            to_host: std::mem::transmute::<*mut c_void, ToHost>(find(c"cuMemcpyDtoHAsync_v2")?),
            to_device: std::mem::transmute::<*mut c_void, ToDevice>(find(c"cuMemcpyHtoDAsync_v2")?),
            host_function: std::mem::transmute::<*mut c_void, CallHost>(find(c"cuLaunchHostFunc")?),
            is_capturing: std::mem::transmute::<*mut c_void, IsCapturing>(find(
                c"cuStreamIsCapturing",
            )?),
            multicast_create: std::mem::transmute::<*mut c_void, MulticastCreate>(find(
                c"cuMulticastCreate",
            )?),
            multicast_add: std::mem::transmute::<*mut c_void, MulticastAdd>(find(
                c"cuMulticastAddDevice",
            )?),
            multicast_bind: std::mem::transmute::<*mut c_void, MulticastBind>(find(
                c"cuMulticastBindMem",
            )?),
            multicast_bind_of: std::mem::transmute::<*mut c_void, MulticastBindOf>(find(
                c"cuMulticastBindMem_v2",
            )?),
            multicast_bind_at: std::mem::transmute::<*mut c_void, MulticastBindAt>(find(
                c"cuMulticastBindAddr",
            )?),
            multicast_bind_at_of: std::mem::transmute::<*mut c_void, MulticastBindAtOf>(find(
                c"cuMulticastBindAddr_v2",
            )?),
        })
    }
}

impl Driver {
    /// Page-locked memory, which is never given back.
    pub fn alloc_host(&self, bytes: usize) -> Option<*mut c_void> {
        let mut at = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        let result = unsafe { (self.alloc_host)(&raw mut at, bytes, 0) };
        (result == 0).then_some(at)
    }

    /// Copies from one place on a device to another, which may be memory of another rank, in the stream.
    pub fn copy(&self, to: u64, from: u64, bytes: usize, stream: *mut c_void) -> bool {
        // SAFETY: memory that is nobody else's until the stream has come that far.
        unsafe { (self.on_device)(to, from, bytes, stream) == 0 }
    }

    /// New memory of at least so many bytes that other ranks may map: its address and a descriptor of it.
    pub fn shareable(&self, bytes: usize) -> Option<(u64, OwnedFd)> {
        let (properties, size) = self.for_sharing(bytes)?;
        let (mut handle, mut fd) = (0, -1);
        // SAFETY: each writes one value; the properties are as the driver's header has them.
        let made = unsafe {
            (self.create)(&raw mut handle, size, &raw const properties, 0) == 0
                && (self.export)(&raw mut fd, handle, DESCRIPTOR, 0) == 0
        };
        let at = made.then(|| self.mapped(handle, size))??;
        // SAFETY: the driver made it for the caller.
        Some((at, unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// A new multicast object for so many devices: its handle and a descriptor of it.
    pub fn multicast(&self, devices: u32, bytes: usize) -> Option<(u64, OwnedFd)> {
        let (_, size) = self.for_sharing(bytes)?;
        let properties = MulticastProperties {
            devices,
            size,
            handle_types: DESCRIPTOR.into(),
            flags: 0,
        };
        let (mut handle, mut fd) = (0, -1);
        // SAFETY: each writes one value; the properties are as the driver's header has them.
        let made = unsafe {
            (self.multicast_create)(&raw mut handle, &raw const properties) == 0
                && (self.export)(&raw mut fd, handle, DESCRIPTOR, 0) == 0
        };
        // SAFETY: the driver made it for the caller.
        made.then(|| (handle, unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// A multicast object that another rank has made.
    pub fn multicast_of_peer(&self, fd: BorrowedFd<'_>) -> Option<u64> {
        let mut handle = 0;
        let number = fd.as_raw_fd() as usize as *mut c_void;
        // SAFETY: writes one value; a descriptor that is open.
        let imported = unsafe { (self.import)(&raw mut handle, number, DESCRIPTOR) == 0 };
        imported.then_some(handle)
    }

    /// Takes part in a multicast object, as NCCL does: with this rank's device, and with new memory of it. Where the object is mapped, and
    /// where the memory. Waits for the other ranks. Ranks bind their memory by different ones of the driver's four functions for that.
    pub fn take_part(&self, object: u64, rank: u32, bytes: usize) -> Option<(u64, u64)> {
        let (properties, size) = self.for_sharing(bytes)?;
        let device = self.here()?.id;
        let mut memory = 0;
        // SAFETY: each writes one value at most; handles that are alive.
        let made = unsafe {
            (self.multicast_add)(object, device) == 0
                && (self.create)(&raw mut memory, size, &raw const properties, 0) == 0
        };
        let at = made.then(|| self.mapped(memory, size))??;
        // SAFETY: as above, and memory that is mapped.
        let result = unsafe {
            match rank % 4 {
                0 => (self.multicast_bind)(object, 0, memory, 0, size, 0),
                1 => (self.multicast_bind_at)(object, 0, at, size, 0),
                2 => (self.multicast_bind_of)(object, device, 0, memory, 0, size, 0),
                _ => (self.multicast_bind_at_of)(object, device, 0, at, size, 0),
            }
        };
        (result == 0).then(|| Some((self.mapped(object, size)?, at)))?
    }

    /// Memory of another rank, of so many bytes: where it is mapped here.
    pub fn of_peer(&self, fd: BorrowedFd<'_>, bytes: usize) -> Option<u64> {
        let (_, size) = self.for_sharing(bytes)?;
        let mut handle = 0;
        let number = fd.as_raw_fd() as usize as *mut c_void;
        // SAFETY: writes one value; a descriptor that is open.
        let imported = unsafe { (self.import)(&raw mut handle, number, DESCRIPTOR) == 0 };
        imported.then(|| self.mapped(handle, size))?
    }

    fn here(&self) -> Option<Location> {
        let mut id = 0;
        // SAFETY: writes one integer.
        let found = unsafe { (self.get_device)(&raw mut id) == 0 };
        found.then_some(Location { kind: 1, id })
    }

    /// What memory that ranks share is like, and how much of it there must be for so many bytes.
    fn for_sharing(&self, bytes: usize) -> Option<(Properties, usize)> {
        let properties = Properties {
            kind: 1,
            handle_types: DESCRIPTOR,
            location: self.here()?,
            windows: std::ptr::null(),
            flags: [0; 8],
        };
        let mut granularity = 0;
        // SAFETY: writes one number.
        let found =
            unsafe { (self.granularity)(&raw mut granularity, &raw const properties, 0) == 0 };
        found.then(|| (properties, bytes.next_multiple_of(granularity)))
    }

    fn mapped(&self, handle: u64, size: usize) -> Option<u64> {
        let access = Access {
            location: self.here()?,
            flags: 3,
        };
        let mut at = 0;
        // SAFETY: a reservation that is as large as the memory, and nobody else's.
        let done = unsafe {
            (self.reserve)(&raw mut at, size, 0, 0, 0) == 0
                && (self.map)(at, size, 0, handle, 0) == 0
                && (self.set_access)(at, size, &raw const access, 1) == 0
        };
        done.then_some(at)
    }

    /// Copies to page-locked memory, in the stream.
    pub fn to_host(&self, to: *mut c_void, from: u64, bytes: usize, stream: *mut c_void) -> bool {
        // SAFETY: page-locked memory that is nobody else's until the stream has come that far.
        unsafe { (self.to_host)(to, from, bytes, stream) == 0 }
    }

    /// Copies from page-locked memory, in the stream.
    pub fn to_device(
        &self,
        to: u64,
        from: *const c_void,
        bytes: usize,
        stream: *mut c_void,
    ) -> bool {
        // SAFETY: as above.
        unsafe { (self.to_device)(to, from, bytes, stream) == 0 }
    }

    /// Has the stream call a function.
    pub fn call(&self, stream: *mut c_void, function: HostFunction, with: *mut c_void) -> bool {
        // SAFETY: what the function is called with is there when it is.
        unsafe { (self.host_function)(stream, function, with) == 0 }
    }

    /// Whether what is enqueued is captured.
    pub fn is_capturing(&self, stream: *mut c_void) -> bool {
        let mut status = 0;
        // SAFETY: writes one integer.
        unsafe { (self.is_capturing)(stream, &raw mut status) == 0 && status != 0 }
    }
}
