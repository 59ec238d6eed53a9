//! The GPU that a world has: the real one, or a simulated one made of tmpfs mounts.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::world::bin_dir;

/// Which GPU a world uses.
#[derive(Debug)]
pub enum Gpu {
    /// Whatever `libcuda.so.1` the dynamic linker finds.
    Real,
    /// gpu-sim.
    Sim(SimGpu),
}

impl Gpu {
    /// The real GPU if there is a driver with a device node, else a simulated one with `devices`
    /// devices of `mib` MiB below `dir`.
    ///
    /// # Errors
    /// When the simulated GPU cannot be set up.
    pub fn detect(dir: &Path, devices: u32, mib: u64) -> Result<Gpu> {
        if Path::new("/dev/nvidiactl").exists() && std::env::var_os("PHOS_FORCE_SIM").is_none() {
            Ok(Gpu::Real)
        } else {
            Ok(Gpu::Sim(SimGpu::new(dir, devices, mib)?))
        }
    }

    /// Environment by which programs find this GPU.
    pub fn env(&self) -> Vec<(String, String)> {
        match self {
            Gpu::Real => Vec::new(),
            Gpu::Sim(sim) => sim.env(),
        }
    }

    /// For headings.
    pub fn name(&self) -> &'static str {
        match self {
            Gpu::Real => "the real GPU",
            Gpu::Sim(_) => "a simulated GPU (no figure below is a performance figure)",
        }
    }
}

/// A simulated GPU: a directory with a tmpfs per device (its size is the device's memory) and a
/// folder in which gpu-sim is called `libcuda.so.1` and `libnvidia-ml.so.1`.
#[derive(Debug)]
pub struct SimGpu {
    dir: PathBuf,
    lib: PathBuf,
    mounts: Vec<PathBuf>,
}

impl SimGpu {
    /// Makes one with `devices` devices of `mib` MiB each.
    ///
    /// # Errors
    /// Not root (mounting needs it), or gpu-sim was not built.
    pub fn new(base: &Path, devices: u32, mib: u64) -> Result<SimGpu> {
        let dir = base.join("gpu-sim");
        let lib = base.join("gpu-sim-lib");
        std::fs::create_dir_all(&lib)?;
        let built = bin_dir().join("libphos_gpu_sim.so");
        let cuda = lib.join("libcuda.so.1");
        // Not a symbolic link: processes are seen to map the library under its name.
        if std::fs::hard_link(&built, &cuda).is_err() {
            std::fs::copy(&built, &cuda).with_context(|| format!("copying {}", built.display()))?;
        }
        std::fs::hard_link(&cuda, lib.join("libnvidia-ml.so.1"))?;
        // cudarc asks for the name without the version first.
        std::os::unix::fs::symlink("libcuda.so.1", lib.join("libcuda.so"))?;
        let mut sim = SimGpu {
            dir,
            lib,
            mounts: Vec::new(),
        };
        for device in 0..devices {
            let path = sim.dir.join(format!("dev{device}"));
            std::fs::create_dir_all(&path)?;
            rustix::mount::mount(
                "phos-gpu-sim",
                &path,
                "tmpfs",
                rustix::mount::MountFlags::empty(),
                Some(std::ffi::CString::new(format!("size={mib}m"))?.as_c_str()),
            )
            .with_context(|| {
                format!(
                    "mounting a tmpfs at {} (the simulated GPU needs root)",
                    path.display()
                )
            })?;
            sim.mounts.push(path);
        }
        Ok(sim)
    }

    /// Lets programs of every user use it.
    ///
    /// # Errors
    /// The file system's.
    pub fn for_everybody(&self) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let own = [self.dir.join("proc")];
        std::fs::create_dir_all(&own[0])?;
        for shared in self.mounts.iter().chain(&own) {
            // Not sticky: there the kernel lets nobody write to what others have made, root neither.
            std::fs::set_permissions(shared, std::fs::Permissions::from_mode(0o777))?;
        }
        Ok(())
    }

    /// How many devices it has.
    pub fn devices(&self) -> usize {
        self.mounts.len()
    }

    /// Changes the bandwidth of a device's link, in 10^6 bytes a second, of which there has to be one (`PHOS_SIM_LINK_MBPS`).
    ///
    /// # Errors
    /// The file system's.
    pub fn set_link_mbps(&self, device: usize, rate: f64) -> Result<()> {
        let path = self.dir.join(format!("dev{device}.link-mbps"));
        let new = path.with_extension("new");
        std::fs::write(&new, rate.to_string())?;
        Ok(std::fs::rename(new, path)?)
    }

    /// The directory (`PHOS_SIM_DIR`).
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Environment by which programs find this GPU.
    pub fn env(&self) -> Vec<(String, String)> {
        vec![
            ("LD_LIBRARY_PATH".to_owned(), self.lib.display().to_string()),
            ("PHOS_SIM_DIR".to_owned(), self.dir.display().to_string()),
        ]
    }
}

impl Drop for SimGpu {
    fn drop(&mut self) {
        for mount in &self.mounts {
            let _ = rustix::mount::unmount(mount, rustix::mount::UnmountFlags::DETACH);
        }
    }
}
