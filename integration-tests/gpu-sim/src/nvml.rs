//! NVML as far as a GPU monitor needs it.
//!
//! As on driver 580: a process in which only NVML uses the driver has the driver's device open, can be locked, checkpointed and
//! restored like one with a context, and its calls wait meanwhile. Results are those of NVML, not of CUDA.

use crate::api::Out;
use crate::driver::{self, Driver};
use crate::sync::lock;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;

type Return = i32;
const SUCCESS: Return = 0;
const UNINITIALIZED: Return = 1;
const INVALID_ARGUMENT: Return = 2;
const INSUFFICIENT_SIZE: Return = 7;
const DRIVER_NOT_LOADED: Return = 9;

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlProcessInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process {
    pid: u32,
    used: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// How often it was initialised, and with which driver.
struct State {
    count: u32,
    driver: Option<&'static Driver>,
}

static STATE: Mutex<State> = Mutex::new(State {
    count: 0,
    driver: None,
});

/// Runs a call, which waits while the process is locked.
fn call(body: impl FnOnce(&'static Driver) -> Return) -> Return {
    let driver = {
        let state = lock(&STATE);
        state.driver.filter(|_| state.count > 0)
    };
    match driver {
        Some(driver) => driver.gate.pass(|| body(driver)),
        None => UNINITIALIZED,
    }
}

/// See NVML's documentation.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> Return {
    let Ok(driver) = driver::load() else {
        return DRIVER_NOT_LOADED;
    };
    driver.gate.pass(|| {
        let mut state = lock(&STATE);
        if state.count == 0 {
            driver.files.add(&driver.config);
        }
        state.count += 1;
        state.driver = Some(driver);
        SUCCESS
    })
}

/// See NVML's documentation.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> Return {
    call(|driver| {
        let mut state = lock(&STATE);
        state.count = state.count.saturating_sub(1);
        if state.count == 0 {
            driver.files.remove();
        }
        SUCCESS
    })
}

/// See NVML's documentation. Handles are numbers, from 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: u32, device: Out<u64>) -> Return {
    call(|driver| {
        if index as usize >= driver.devices.len() {
            return INVALID_ARGUMENT;
        }
        device
            .set(u64::from(index) + 1)
            .map_or(INVALID_ARGUMENT, |()| SUCCESS)
    })
}

/// See NVML's documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(device: u64, memory: Out<Memory>) -> Return {
    call(|driver| {
        let index = (device as usize).wrapping_sub(1);
        let found = driver.devices.get(index).and_then(|d| d.memory().ok());
        let Some((free, total)) = found else {
            return INVALID_ARGUMENT;
        };
        let answer = Memory {
            total,
            free,
            used: total - free,
        };
        memory.set(answer).map_or(INVALID_ARGUMENT, |()| SUCCESS)
    })
}

/// See NVML's documentation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: Out<u32>) -> Return {
    call(|driver| {
        count
            .set(driver.devices.len() as u32)
            .map_or(INVALID_ARGUMENT, |()| SUCCESS)
    })
}

/// Bytes of a device's memory that a process has: allocations that it has a descriptor of (what a context takes for itself is mapped
/// nowhere), and parts of others that it has mapped, each once.
fn held(pid: u32, device: &str) -> u64 {
    let mut files = std::collections::BTreeMap::new();
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"));
    for entry in entries.into_iter().flatten().flatten() {
        let is_its = std::fs::read_link(entry.path())
            .is_ok_and(|to| to.to_str().is_some_and(|to| to.starts_with(device)));
        if is_its && let Ok(file) = std::fs::metadata(entry.path()) {
            files.insert(file.ino(), file.len());
        }
    }
    let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    let mut parts = std::collections::BTreeMap::new();
    for line in maps.lines().filter(|line| line.contains(device)) {
        // start-end, rights, offset, device, inode, path.
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let Some((start, end)) = fields.first().and_then(|range| range.split_once('-')) else {
            continue;
        };
        let number = |hex: &str| u64::from_str_radix(hex, 16).unwrap_or_default();
        let inode = fields.get(4).and_then(|inode| inode.parse().ok());
        if inode.is_some_and(|inode| files.contains_key(&inode)) {
            continue;
        }
        let key = (fields.get(2).copied(), inode);
        parts.insert(key, number(end).saturating_sub(number(start)));
    }
    files.values().sum::<u64>() + parts.values().sum::<u64>()
}

/// See NVML's documentation.
///
/// # Safety
/// `count` must be valid, and `processes` for as many entries as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: u64,
    count: *mut u32,
    processes: *mut Process,
) -> Return {
    call(|driver| {
        if device == 0 || device as usize > driver.devices.len() || count.is_null() {
            return INVALID_ARGUMENT;
        }
        let directory = driver.config.dir.join(format!("dev{}", device - 1));
        let directory = format!("{}/", directory.display());
        let entries = std::fs::read_dir("/proc");
        let found: Vec<Process> = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .map(|pid| Process {
                pid,
                used: held(pid, &directory),
                gpu_instance: u32::MAX,
                compute_instance: u32::MAX,
            })
            .filter(|process| process.used > 0)
            .collect();
        // SAFETY: the caller's promise.
        unsafe {
            let room = count.read() as usize;
            count.write(found.len() as u32);
            if found.len() > room || (processes.is_null() && !found.is_empty()) {
                return INSUFFICIENT_SIZE;
            }
            for (i, process) in found.into_iter().enumerate() {
                processes.add(i).write(process);
            }
        }
        SUCCESS
    })
}
