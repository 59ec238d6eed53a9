//! The environment variables that set the simulation up. Read once, at `cuInit`.

use std::path::PathBuf;

/// Settings of this process's driver.
pub struct Config {
    /// `PHOS_SIM_DIR`: the node. Holds `dev0`, `dev1`, … (the devices) and `proc` (checkpoint commands).
    pub dir: PathBuf,
    /// `PHOS_SIM_LINK_MBPS`: bandwidth of each device's link to the host, in 10^6 bytes a second. Unset: unlimited.
    pub link_mbps: Option<f64>,
    /// `PHOS_SIM_KERNEL_US`: how long every kernel takes at least.
    pub kernel_us: u64,
    /// `PHOS_SIM_CTX_MIB`: device memory that a context itself takes.
    pub context_mib: u64,
    /// `PHOS_SIM_STACK_MIB`: device memory that backs the stacks of a context's threads at the default limit.
    pub stack_mib: u64,
    /// `PHOS_SIM_MULTIPROCESSORS`: what a device says that it has of them.
    pub multiprocessors: i32,
    /// `PHOS_SIM_UUID_SALT`: stands for the identity of the node in the devices' UUIDs.
    pub uuid_salt: Option<String>,
    /// `PHOS_SIM_INSTANCE`: the number that the machine's kernel module gives to the first device, the others following.
    pub first_instance: u32,
    /// `CUDA_VISIBLE_DEVICES`, as numbers of devices: those that the process sees, in its order. Unset: all.
    pub visible: Option<Vec<usize>>,
    /// `PHOS_SIM_NAME`: the model of the devices.
    pub name: String,
    /// `PHOS_SIM_LATE_IMPORTS`: a checkpoint with imports alive passes, and its restore fails and loses the process.
    pub late_imports: bool,
    /// `PHOS_SIM_FLIP`: when this file is there, a byte of the next copy to a device of 4 KiB or more is not what was sent, and the
    /// file is removed.
    pub flip: Option<PathBuf>,
    /// `PHOS_SIM_POISON`: new device memory holds 0xA5 instead of zeroes.
    pub poison: bool,
    /// `PHOS_SIM_SPARSE`: device memory is taken when it is touched: more of it can be allocated than there is.
    pub sparse: bool,
    /// `PHOS_SIM_NO_VMM`: the devices say that they have no virtual memory management.
    pub no_vmm: bool,
    /// `PHOS_SIM_IMPORT_US`: how long every import takes at least.
    pub import_us: u64,
    /// `PHOS_SIM_NODE`: the device that every process with the driver or NVML keeps open.
    pub node: Option<PathBuf>,
}

/// Where the node is, also before `cuInit`.
pub fn node_dir() -> PathBuf {
    std::env::var_os("PHOS_SIM_DIR")
        .map_or_else(|| PathBuf::from("/run/phos-gpu-sim"), PathBuf::from)
}

/// `PHOS_SIM_NO_CHECKPOINT`: an old driver is played: version 12.4, and `cuCheckpointProcess*` is not supported.
pub fn no_checkpoint() -> bool {
    flag("PHOS_SIM_NO_CHECKPOINT")
}

/// `PHOS_SIM_DRIVER_VERSION`: what `cuDriverGetVersion` says. May be asked for before `cuInit`.
pub fn driver_version() -> Option<i32> {
    number("PHOS_SIM_DRIVER_VERSION").map(|version| version as i32)
}

/// `PHOS_SIM_HANG`: `<call>=<file>`: a checkpoint call that hangs, once, when the file is there. It is removed when the
/// call is made. The call ends when its process does; with `<call>!=<file>` not even then.
pub fn hang() -> Option<(String, PathBuf)> {
    call_and_file("PHOS_SIM_HANG")
}

/// `PHOS_SIM_FAIL`: `<call>=<file>`: a checkpoint call that fails for as long as the file is there: with 304, as a restore
/// does whose communicators the driver cannot bring back; a lock with 801, as that of a process that a profiler records.
pub fn fail() -> Option<(String, PathBuf)> {
    call_and_file("PHOS_SIM_FAIL")
}

fn call_and_file(variable: &str) -> Option<(String, PathBuf)> {
    let setting = std::env::var(variable).ok()?;
    let (call, file) = setting.split_once('=')?;
    Some((call.to_owned(), file.into()))
}

impl Config {
    pub fn from_environment() -> Self {
        Self {
            dir: node_dir(),
            link_mbps: number("PHOS_SIM_LINK_MBPS").filter(|rate| *rate > 0.0),
            kernel_us: number("PHOS_SIM_KERNEL_US").map_or(0, |us| us.max(0.0) as u64),
            context_mib: number("PHOS_SIM_CTX_MIB").map_or(8, |mib| mib.max(0.0) as u64),
            stack_mib: number("PHOS_SIM_STACK_MIB").map_or(0, |mib| mib.max(0.0) as u64),
            multiprocessors: number("PHOS_SIM_MULTIPROCESSORS").map_or(132, |n| n.max(1.0) as i32),
            uuid_salt: std::env::var("PHOS_SIM_UUID_SALT").ok(),
            first_instance: number("PHOS_SIM_INSTANCE").map_or(0, |first| first.max(0.0) as u32),
            visible: std::env::var("CUDA_VISIBLE_DEVICES").ok().map(|list| {
                // As the real one, it ends at the first that it does not understand.
                list.split(',')
                    .map_while(|number| number.trim().parse().ok())
                    .collect()
            }),
            name: std::env::var("PHOS_SIM_NAME")
                .unwrap_or_else(|_| "phos simulated GPU".to_owned()),
            late_imports: flag("PHOS_SIM_LATE_IMPORTS"),
            flip: std::env::var_os("PHOS_SIM_FLIP").map(PathBuf::from),
            poison: flag("PHOS_SIM_POISON"),
            sparse: flag("PHOS_SIM_SPARSE"),
            no_vmm: flag("PHOS_SIM_NO_VMM"),
            import_us: number("PHOS_SIM_IMPORT_US").map_or(0, |us| us.max(0.0) as u64),
            node: std::env::var_os("PHOS_SIM_NODE").map(PathBuf::from),
        }
    }
}

fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok()?.trim().parse().ok()
}

fn flag(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| !value.is_empty() && value != "0")
}
