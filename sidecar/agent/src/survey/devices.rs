//! Devices that the job's processes have, as far as they are in a checkpoint's way.
//!
//! CRIU can dump the devices of the kernel's memory driver, terminals and `tun`, and no others. Those of the NVIDIA
//! driver are taken away by the driver's own checkpoint, but only what CUDA opened in that process: what OpenCL, GL or
//! NVML opened beside it stays. So a device is
//!
//! * **plain**, and CRIU takes it;
//! * **CUDA's**, and in the way only of a process that does not use CUDA. In one that does, it cannot be told from outside
//!   whose it is before the driver has taken away its own ([`left_behind`]);
//! * **foreign**, and always in the way.

use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use phos_protocol::types::ProcessId;

use crate::proc::{self, Mapping};
use crate::tree;

/// How a device stands to a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Cuda,
    Foreign,
}

/// Majors that CRIU dumps: memory devices, consoles, terminals, serial lines, pseudo terminals.
fn is_plain(major: u32, minor: u32) -> bool {
    matches!(major, 1 | 4 | 5 | 136..=143 | 204 | 229) || (major, minor) == (10, 200)
}

/// Whether CUDA opens a device: all of the driver's but those that are known for others.
fn is_cudas(path: &str) -> bool {
    let rest = path.strip_prefix("/dev/nvidia");
    rest.is_some_and(|rest| !rest.starts_with("-fs") && !rest.starts_with("-modeset"))
}

/// Libraries whose users open devices beside CUDA: the beginning of the file's name, what it is to people, and what helps.
/// In the order in which they are suspected.
const LIBRARIES: &[(&str, &str, &str)] = &[
    (
        "libnvidia-opencl.so",
        "OpenCL",
        "do without it in the job; where hwloc loads it (Open MPI, mpi4py), set HWLOC_COMPONENTS=-opencl,-gl",
    ),
    ("libEGL_nvidia.so", "EGL", RENDERING),
    ("libGLX_nvidia.so", "GLX or Vulkan", RENDERING),
    ("libnvidia-glcore.so", "OpenGL", RENDERING),
    (
        "libgdrapi.so",
        "GDRCopy",
        "set NCCL_GDRCOPY_ENABLE=0 and UCX_TLS=^gdr_copy",
    ),
    (
        "libcufile.so",
        "GPUDirect Storage",
        "set CUFILE_FORCE_COMPAT_MODE=true",
    ),
    (
        "libnvperf_host.so",
        "a profiler",
        "end it before the checkpoint",
    ),
    (
        "libnvidia-ml.so",
        "NVML (nvidia-smi, a GPU monitor)",
        "run it outside the job, or let it call nvmlShutdown between two looks",
    ),
];
const RENDERING: &str = "render in a process outside the job, or without the GPU (MUJOCO_GL=osmesa, PYOPENGL_PLATFORM=osmesa)";

/// The same for devices that say by themselves whose they are.
const DEVICES: &[(&str, &str, &str)] = &[
    (
        "/dev/infiniband/",
        "InfiniBand verbs",
        "set NCCL_IB_DISABLE=1, UCX_TLS=^ib and OMPI_MCA_btl=^openib",
    ),
    (
        "/dev/gdrdrv",
        "GDRCopy",
        "set NCCL_GDRCOPY_ENABLE=0 and UCX_TLS=^gdr_copy",
    ),
    (
        "/dev/nvidia-fs",
        "GPUDirect Storage",
        "set CUFILE_FORCE_COMPAT_MODE=true",
    ),
    ("/dev/nvidia-modeset", "GL, EGL or Vulkan", RENDERING),
    ("/dev/dri/", "GL, EGL or Vulkan", RENDERING),
];

/// A device that is in the way of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InTheWay {
    /// The PID of the process that has it.
    pub pid: ProcessId,
    /// The name of that process.
    pub process: String,
    /// The path of the device.
    pub device: PathBuf,
    /// The library through which it is used, if one is suspected: the beginning of its file's name.
    pub library: Option<&'static str>,
    place: Place,
}

/// Where a process has a device: what it lets go and takes again is elsewhere, or CUDA's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Mapped, from this address on.
    Mapped(u64),
    /// Open, with this number.
    Open(u32),
}

impl fmt::Display for InTheWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            process, device, ..
        } = self;
        let path = device.to_string_lossy();
        let how = match self.place {
            Place::Mapped(_) => "mapped",
            Place::Open(_) => "open",
        };
        let library = LIBRARIES
            .iter()
            .find(|(file, ..)| Some(*file) == self.library);
        let found = DEVICES
            .iter()
            .find(|(prefix, ..)| path.starts_with(prefix))
            .or(library);
        let by = self
            .library
            .map_or(String::new(), |file| format!(", {file}"));
        match found {
            Some((_, what, remedy)) => write!(
                f,
                "{process} has {path} {how} ({what}{by}), which cannot be checkpointed: {remedy}"
            ),
            None => write!(
                f,
                "{process} has {path} {how}{by}, which cannot be checkpointed: let it close the device before the checkpoint, \
                 or run what uses it outside the job"
            ),
        }
    }
}

/// The devices and libraries that one process has.
#[derive(Debug, Default)]
struct Sight {
    /// Where each device is. A mapping before a file: it is what CRIU stumbles over first.
    devices: BTreeSet<(Place, PathBuf)>,
    libraries: BTreeSet<&'static str>,
}

/// Devices and libraries of a process's maps.
fn read_maps(maps: impl IntoIterator<Item = Mapping>, sight: &mut Sight) {
    for mapping in maps {
        let Some(path) = mapping.path() else {
            continue;
        };
        if path.starts_with("/dev/") && mapping.removed().is_none() {
            if let Some(start) = mapping.start() {
                (sight.devices).insert((Place::Mapped(start), path.to_owned()));
            }
        } else if let Some(file) = path.file_name()
            && let Some((library, ..)) =
                (LIBRARIES.iter()).find(|(l, ..)| file.as_bytes().starts_with(l.as_bytes()))
        {
            sight.libraries.insert(library);
        }
    }
}

fn look(pid: ProcessId) -> Sight {
    let mut sight = Sight::default();
    if let Ok(maps) = proc::mappings(pid) {
        read_maps(maps, &mut sight);
    }
    for file in tree::open_files(pid) {
        if file.link.starts_with("/dev") {
            sight.devices.insert((Place::Open(file.fd), file.link));
        }
    }
    sight
}

/// What a device of a process is; a regular file below /dev is plain.
fn kind(pid: ProcessId, path: &Path) -> Kind {
    let text = path.to_string_lossy();
    if is_cudas(&text) {
        return Kind::Cuda;
    }
    if DEVICES.iter().any(|(prefix, ..)| text.starts_with(prefix)) {
        return Kind::Foreign;
    }
    // As the process sees it.
    let seen = PathBuf::from(format!("/proc/{pid}/root{text}"));
    match std::fs::metadata(seen) {
        Ok(found) if found.file_type().is_char_device() => {
            let number = found.rdev();
            if is_plain(rustix::fs::major(number), rustix::fs::minor(number)) {
                Kind::Plain
            } else {
                Kind::Foreign
            }
        }
        Ok(found) if found.file_type().is_block_device() => Kind::Foreign,
        _ => Kind::Plain,
    }
}

fn first(pid: ProcessId, wanted: Kind) -> Option<InTheWay> {
    let sight = look(pid);
    let mut devices = sight.devices.iter();
    let (place, device) = devices.find(|(_, path)| kind(pid, path) == wanted)?;
    let of = |name: &str| sight.libraries.iter().find(|l| **l == name).copied();
    Some(InTheWay {
        pid,
        process: tree::name(pid).unwrap_or_default(),
        device: device.clone(),
        library: LIBRARIES.iter().find_map(|(name, ..)| of(name)),
        place: *place,
    })
}

/// A device of a process that no checkpoint can take, whatever the process does with CUDA.
pub fn foreign(pid: ProcessId) -> Option<InTheWay> {
    first(pid, Kind::Foreign)
}

/// A device of the NVIDIA driver that a process has, which is in the way if the process does not use CUDA.
pub fn nvidia(pid: ProcessId) -> Option<InTheWay> {
    first(pid, Kind::Cuda)
}

/// What a process with CUDA has left of the NVIDIA driver's devices now that the driver has taken away its own.
pub fn left_behind(pid: ProcessId) -> Option<InTheWay> {
    first(pid, Kind::Cuda)
}

impl InTheWay {
    #[cfg(test)]
    pub(super) fn for_tests(pid: ProcessId, device: &str) -> Self {
        Self {
            pid,
            process: "test".into(),
            device: device.into(),
            library: None,
            place: Place::Open(9),
        }
    }

    /// Whether it still is: the process has the device where it had it, and maps the library.
    pub fn is_still_there(&self) -> bool {
        let sight = look(self.pid);
        let device = sight.devices.contains(&(self.place, self.device.clone()));
        device && self.library.is_none_or(|l| sight.libraries.contains(l))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_cuda_are_known_by_name() {
        for path in [
            "/dev/nvidia0",
            "/dev/nvidia15",
            "/dev/nvidiactl",
            "/dev/nvidia-uvm",
            "/dev/nvidia-caps/nvidia-cap1",
        ] {
            assert!(is_cudas(path), "{path}");
        }
        for path in [
            "/dev/nvidia-fs0",
            "/dev/nvidia-modeset",
            "/dev/null",
            "/dev/gdrdrv",
        ] {
            assert!(!is_cudas(path), "{path}");
        }
        assert_eq!(kind(1, Path::new("/dev/null")), Kind::Plain);
        assert_eq!(kind(1, Path::new("/dev/infiniband/uverbs0")), Kind::Foreign);
        // Any other file there, and one that is no more.
        assert_eq!(kind(1, Path::new("/dev/shm/nccl-x")), Kind::Plain);
    }

    #[test]
    fn maps_tell_devices_and_libraries() {
        let maps = "7f00-7f10 r--p 00000000 08:01 42 /usr/lib/libnvidia-opencl.so.580.159.04\n\
                    200000000-200200000 rw-s 00000000 00:05 1 /dev/nvidia0\n\
                    7f20-7f30 rw-s 00000000 00:01 9 /dev/zero (deleted)\n\
                    7f40-7f50 r-xp 00000000 08:01 43 /usr/lib/libcupti.so.13\n\
                    7f60-7f70 rw-p 00000000 00:00 0 \n";
        let mut sight = Sight::default();
        read_maps(proc::mappings_in(maps.as_bytes()), &mut sight);
        assert_eq!(
            sight.devices.into_iter().collect::<Vec<_>>(),
            [(Place::Mapped(0x2_0000_0000), PathBuf::from("/dev/nvidia0"))]
        );
        assert_eq!(
            sight.libraries.into_iter().collect::<Vec<_>>(),
            ["libnvidia-opencl.so"]
        );
    }

    #[test]
    fn what_is_in_the_way_is_named_with_its_remedy() {
        let found = |device: &str, library| {
            InTheWay {
                pid: 7,
                process: "python".into(),
                device: device.into(),
                library,
                place: Place::Mapped(0),
            }
            .to_string()
        };
        let opencl = found("/dev/nvidia0", Some("libnvidia-opencl.so"));
        for word in ["python", "/dev/nvidia0", "OpenCL", "HWLOC_COMPONENTS"] {
            assert!(opencl.contains(word), "{opencl}");
        }
        let verbs = found("/dev/infiniband/uverbs0", None);
        assert!(verbs.contains("NCCL_IB_DISABLE=1"), "{verbs}");
        assert!(found("/dev/fuse", None).contains("/dev/fuse"));
    }

    #[test]
    fn this_process_is_in_nobodys_way() {
        let pid = std::process::id();
        assert_eq!(foreign(pid), None);
        assert_eq!(nvidia(pid), None);
    }
}
