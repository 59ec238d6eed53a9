//! Devices: the directories `dev0`, `dev1`, … of the node, each a tmpfs whose size is the device's memory.
//!
//! A device of the process has a fixed ordinal and, behind it, a backing: the directory its memory comes from. A
//! checkpoint restore with UUID pairs exchanges the backing and nothing else, so that, as on a real driver, the process
//! goes on knowing its devices by the PCI bus ids and instances of the GPUs that they were first.

use crate::api::{In, Out, api, put_text};
use crate::config::Config;
use crate::driver::Driver;
use crate::error::{
    ERROR_INVALID_DEVICE, ERROR_INVALID_VALUE, ERROR_NO_DEVICE, ERROR_NOT_INITIALIZED, Res,
};
use crate::memory::phys::Phys;
use crate::sync::read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, RwLock};

/// 16 bytes that name a GPU.
pub type Uuid = [u8; 16];

/// Where a device's memory comes from on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backing {
    pub index: usize,
    /// The number that the kernel module of the machine gives it.
    pub instance: u32,
    pub dir: PathBuf,
    pub uuid: Uuid,
}

/// A device as the process sees it.
pub struct Device {
    pub ordinal: usize,
    /// Of the GPU that it was first; a restore onto another one does not change it.
    pub instance: u32,
    pub bus: u32,
    /// None when the node after a restore has no such device.
    pub backing: RwLock<Option<Backing>>,
    pub primary: Mutex<Primary>,
    pub default_pool: AtomicU64,
    pub current_pool: AtomicU64,
}

/// The primary context of a device.
#[derive(Default)]
pub struct Primary {
    pub handle: u64,
    pub retained: u64,
    pub flags: u32,
}

impl Device {
    pub fn backing(&self) -> Res<Backing> {
        read(&self.backing).clone().ok_or(ERROR_NO_DEVICE)
    }

    /// Free and total bytes.
    pub fn memory(&self) -> Res<(u64, u64)> {
        let stat = rustix::fs::statfs(&self.backing()?.dir).map_err(|_| ERROR_NO_DEVICE)?;
        let block = u64::try_from(stat.f_bsize).unwrap_or(4096);
        Ok((stat.f_bavail * block, stat.f_blocks * block))
    }
}

/// The number of the file system that holds a device's memory.
pub fn file_system(dir: &Path) -> Option<u64> {
    std::fs::metadata(dir).ok().map(|meta| meta.dev())
}

/// The devices of a node, by number.
pub fn node(config: &Config) -> Vec<Backing> {
    let salt = config
        .uuid_salt
        .clone()
        .unwrap_or_else(|| config.dir.display().to_string());
    (0..64)
        .map(|index| (index, config.dir.join(format!("dev{index}"))))
        .take_while(|(_, dir)| dir.is_dir())
        .map(|(index, dir)| Backing {
            index,
            instance: config.first_instance + index as u32,
            dir,
            uuid: uuid(&salt, index),
        })
        .collect()
}

/// A version-4 shaped UUID that depends on the node and the device's number only.
fn uuid(salt: &str, index: usize) -> Uuid {
    let digest = blake3::hash(format!("phos simulated GPU {index} of {salt}").as_bytes());
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&digest.as_bytes()[..16]);
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// The devices of this process.
pub fn discover(config: &Config) -> Vec<Device> {
    let all = node(config);
    let seen = match &config.visible {
        Some(numbers) => numbers
            .iter()
            .map_while(|&number| all.get(number).cloned())
            .collect(),
        None => all,
    };
    seen.into_iter()
        .enumerate()
        .map(|(ordinal, backing)| Device {
            ordinal,
            instance: backing.instance,
            bus: backing.index as u32 + 0x17,
            backing: RwLock::new(Some(backing)),
            primary: Mutex::default(),
            default_pool: AtomicU64::new(0),
            current_pool: AtomicU64::new(0),
        })
        .collect()
}

/// The device that the process knows by an instance: looked up in what it found at `cuInit`, as on driver 580. A GPU that
/// `CUDA_VISIBLE_DEVICES` hid is known and was not initialised.
pub fn by_instance(driver: &Driver, instance: u32) -> Res<&Device> {
    if let Some(device) = driver.devices.iter().find(|d| d.instance == instance) {
        return Ok(device);
    }
    let hidden = node(&driver.config)
        .iter()
        .any(|gpu| gpu.instance == instance);
    Err(if hidden {
        ERROR_NOT_INITIALIZED
    } else {
        ERROR_INVALID_DEVICE
    })
}

/// The device with a `CUdevice`.
pub fn get(driver: &Driver, device: i32) -> Res<&Device> {
    usize::try_from(device)
        .ok()
        .and_then(|i| driver.devices.get(i))
        .ok_or(ERROR_INVALID_DEVICE)
}

/// Device memory that the driver takes for itself: `size` bytes.
pub fn own_memory(driver: &'static Driver, ordinal: usize, size: u64) -> Res<Option<Arc<Phys>>> {
    if size == 0 {
        Ok(None)
    } else {
        Phys::create(driver, ordinal, size, crate::memory::phys::Use::Driver).map(Some)
    }
}

fn attribute(driver: &Driver, device: &Device, attribute: i32) -> Res<i32> {
    Ok(match attribute {
        1..=3 => 1024, // threads a block, block dimensions
        4 => 64,
        5 => i32::MAX, // grid
        6 | 7 => 65535,
        8 => 49152,
        9 => 65536,
        10 => 32,
        11 => i32::MAX,
        12 | 82 => 65536,
        13 => 1_980_000,
        14 | 30 => 512,
        15 | 19 | 31 | 41 => 1, // overlap, mapped host memory, concurrent kernels, unified addressing
        16 => driver.config.multiprocessors,
        17 | 18 | 20 => 0,
        32 => 1,
        33 => device.bus as i32,
        34 | 50 => 0,
        36 => 3_201_000,
        37 => 6144,
        38 => 62_914_560,
        39 => 2048,
        40 => 3,
        51 => 32,
        75 => 9,
        76 => 0,
        78..=80 => 1,
        81 => 233_472,
        83 => 1, // managed memory exists, so that its refusal at checkpoint can be met
        84..=86 => 0,
        87 => 2,
        88 => 0,
        89 => 1,
        90 | 91 => 1,
        92..=94 => 0, // stream memory operations, version 1
        95 => 1,
        96 => 0,
        97 => 232_448,
        98 => 0,
        99 => 1,
        100 | 101 => 0,
        // Virtual memory management, POSIX fds.
        102 => i32::from(!driver.config.no_vmm),
        103 => 1,
        104 | 105 => 0,
        106 => 32,
        107..=109 => 0,
        110 => 1, // GPUDirect RDMA with VMM
        111 => 1024,
        115 => 1, // memory pools
        116 => 1,
        117 => 1,
        118 => 100,
        119 => 0, // pools cannot be shared here
        120 => 1,
        122 | 123 => 1,
        124 => 0,
        125 => 0, // IPC events
        126 => 1,
        128 => 0, // fabric handles
        129 => 1,
        130 => 0,
        131 => -1,
        132 => i32::from(!driver.config.no_vmm), // multicast
        134 => 0,
        21..=29 | 42..=49 | 52..=74 | 77 => 16384,
        35 | 112..=114 | 121 | 127 | 133 | 135..=147 => 0,
        _ => return Err(ERROR_INVALID_VALUE),
    })
}

fn bus_id(device: &Device) -> String {
    format!("0000:{:02X}:00.0", device.bus)
}

fn by_bus_id(driver: &Driver, text: &str) -> Res<i32> {
    driver
        .devices
        .iter()
        .find(|device| {
            bus_id(device).eq_ignore_ascii_case(text)
                || bus_id(device)[5..].eq_ignore_ascii_case(text)
        })
        .map(|device| device.ordinal as i32)
        .ok_or(ERROR_INVALID_DEVICE)
}

fn p2p(driver: &Driver, attribute: i32, source: i32, target: i32) -> Res<i32> {
    let (source, target) = (get(driver, source)?, get(driver, target)?);
    if source.ordinal == target.ordinal {
        return Err(ERROR_INVALID_DEVICE);
    }
    match attribute {
        1 => Ok(0),
        2 => Ok(1),
        3..=5 => Ok(0),
        _ => Err(ERROR_INVALID_VALUE),
    }
}

api! { TABLE;
    2000 fn cuDeviceGet(device: Out<i32>, ordinal: i32) @query |d| { get(d, ordinal)?; device.set(ordinal) }
    2000 fn cuDeviceGetCount(count: Out<i32>) @query |d| { count.set(d.devices.len() as i32) }
    2000 fn cuDeviceGetName(name: Out<u8>, room: i32, device: i32) @query |d| {
        get(d, device)?;
        put_text(name, room, &d.config.name)
    }
    9020 fn cuDeviceGetUuid(uuid: Out<Uuid>, device: i32) @query |d| { uuid.set(get(d, device)?.backing()?.uuid) }
    11040 fn cuDeviceGetUuid_v2(uuid: Out<Uuid>, device: i32) @query |d| { uuid.set(get(d, device)?.backing()?.uuid) }
    3020 fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) @query |d| {
        bytes.set(get(d, device)?.memory()?.1 as usize)
    }
    2000 fn cuDeviceGetAttribute(value: Out<i32>, which: i32, device: i32) @query |d| {
        value.set(attribute(d, get(d, device)?, which)?)
    }
    2000 fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) @query |d| {
        get(d, device)?;
        major.set(9)?;
        minor.set(0)
    }
    4010 fn cuDeviceGetPCIBusId(text: Out<u8>, room: i32, device: i32) @query |d| {
        put_text(text, room, &bus_id(get(d, device)?))
    }
    4010 fn cuDeviceGetByPCIBusId(device: Out<i32>, text: In<u8>) @query |d| { device.set(by_bus_id(d, &text.text()?)?) }
    4000 fn cuDeviceCanAccessPeer(answer: Out<i32>, device: i32, peer: i32) @query |d| {
        let (device, peer) = (get(d, device)?, get(d, peer)?);
        answer.set(i32::from(device.ordinal != peer.ordinal))
    }
    8000 fn cuDeviceGetP2PAttribute(value: Out<i32>, which: i32, source: i32, target: i32) @query |d| {
        value.set(p2p(d, which, source, target)?)
    }
    11040 fn cuDeviceGetExecAffinitySupport(answer: Out<i32>, _which: i32, device: i32) @query |d| {
        get(d, device)?;
        answer.set(0)
    }
    11030 fn cuFlushGPUDirectRDMAWrites(_target: i32, _scope: i32) @query |_d| { Ok(()) }
}
