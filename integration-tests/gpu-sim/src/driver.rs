//! The driver of one process: everything it owns, and `cuInit`.

use crate::api::{Out, api};
use crate::checkpoint;
use crate::config::{self, Config};
use crate::context::Context;
use crate::device::{self, Device};
use crate::error::{
    ERROR_INVALID_VALUE, ERROR_NO_DEVICE, ERROR_NOT_INITIALIZED, ERROR_OPERATING_SYSTEM, Res,
};
use crate::event::Event;
use crate::files::Files;
use crate::gate::Gate;
use crate::graph::{Exec, Graph, NodeRef};
use crate::memory::array::Array;
use crate::memory::pool::Pool;
use crate::memory::space::Space;
use crate::memory::texture;
use crate::memory::vmm::Handle;
use crate::module::{Function, Library, Module};
use crate::stream::{CaptureModes, Stream};
use crate::sync::{Registry, lock};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock};

/// `cuDriverGetVersion`.
pub const VERSION: i32 = 13000;
/// The version of a driver without `cuCheckpointProcess*`.
const OLD_VERSION: i32 = 12040;

/// The driver of this process.
pub struct Driver {
    pub config: Config,
    pub devices: Vec<Device>,
    pub files: Files,
    pub gate: Gate,
    pub space: Space,
    pub checkpoint: checkpoint::server::State,
    pub captures: CaptureModes,
    pub contexts: Registry<Context>,
    pub streams: Registry<Stream>,
    pub events: Registry<Event>,
    pub modules: Registry<Module>,
    pub libraries: Registry<Library>,
    pub functions: Registry<Function>,
    pub graphs: Registry<Graph>,
    pub nodes: Registry<NodeRef>,
    pub execs: Registry<Exec>,
    pub handles: Registry<Handle>,
    pub pools: Registry<Pool>,
    pub arrays: Registry<Array>,
    /// And surfaces.
    pub textures: Registry<texture::Object>,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();
static INITIALISING: Mutex<()> = Mutex::new(());
/// The process that has the driver. A child of `fork` has the memory of its parent's but not its threads.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// Whether CUDA was initialised: NVML has the driver without that.
static INITIALISED: AtomicBool = AtomicBool::new(false);

fn own_pid() -> i32 {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() }
}

/// The driver, if this very process initialised it.
pub fn get() -> Res<&'static Driver> {
    match DRIVER.get() {
        Some(driver)
            if INITIALISED.load(Ordering::Acquire)
                && OWNER.load(Ordering::Acquire) == own_pid() =>
        {
            Ok(driver)
        }
        _ => Err(ERROR_NOT_INITIALIZED),
    }
}

fn init(flags: u32) -> Res {
    if flags != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    let driver = load()?;
    if !INITIALISED.swap(true, Ordering::AcqRel) {
        driver.files.add(&driver.config);
    }
    Ok(())
}

/// Makes the driver of this process, and the thread that serves its checkpoints.
pub fn load() -> Res<&'static Driver> {
    let owner = OWNER.load(Ordering::Acquire);
    if owner != 0 && owner != own_pid() {
        // A forked child: the real driver refuses it as well.
        return Err(ERROR_NOT_INITIALIZED);
    }
    let _one = lock(&INITIALISING);
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    let config = Config::from_environment();
    let devices = device::discover(&config);
    if devices.is_empty() {
        return Err(ERROR_NO_DEVICE);
    }
    let driver = Driver {
        space: Space::new(devices.len()),
        config,
        devices,
        files: Files::default(),
        gate: Gate::default(),
        checkpoint: checkpoint::server::State::default(),
        captures: CaptureModes::default(),
        contexts: Registry::new(1),
        streams: Registry::new(2),
        events: Registry::new(3),
        modules: Registry::new(4),
        libraries: Registry::new(5),
        functions: Registry::new(6),
        graphs: Registry::new(7),
        nodes: Registry::new(8),
        execs: Registry::new(9),
        handles: Registry::new(10),
        pools: Registry::new(11),
        arrays: Registry::new(12),
        textures: Registry::new(13),
    };
    let driver = DRIVER.get_or_init(|| driver);
    OWNER.store(own_pid(), Ordering::Release);
    for device in &driver.devices {
        let (handle, _) = driver
            .pools
            .insert(|handle| Pool::new(handle, device.ordinal));
        device.default_pool.store(handle, Ordering::Relaxed);
        device.current_pool.store(handle, Ordering::Relaxed);
    }
    if checkpoint::server::start(driver) {
        Ok(driver)
    } else {
        Err(ERROR_OPERATING_SYSTEM)
    }
}

api! { TABLE;
    2000 fn cuInit(flags: u32) @free { init(flags) }
    2020 fn cuDriverGetVersion(version: Out<i32>) @free {
        let usual = if config::no_checkpoint() { OLD_VERSION } else { VERSION };
        version.set(config::driver_version().unwrap_or(usual))
    }
}
