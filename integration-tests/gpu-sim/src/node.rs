//! Setting up and taking down a simulated node, for tests (needs root).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A directory with one tmpfs for each device; unmounted when dropped.
#[derive(Debug)]
pub struct Node {
    dir: PathBuf,
    devices: usize,
    /// Whether the directory is this object's own, and goes with it.
    made: bool,
}

impl Node {
    /// Mounts `dev0`, `dev1`, … with the given sizes in bytes below `dir`, which is made if need be.
    pub fn new(dir: &Path, sizes: &[u64]) -> io::Result<Self> {
        let made = !dir.exists();
        fs::create_dir_all(dir.join("proc"))?;
        let mut node = Self {
            dir: dir.to_owned(),
            devices: 0,
            made,
        };
        for (index, size) in sizes.iter().enumerate() {
            let device = dir.join(format!("dev{index}"));
            fs::create_dir_all(&device)?;
            let options = std::ffi::CString::new(format!("size={size},mode=1777"))?;
            rustix::mount::mount(
                "none",
                &device,
                "tmpfs",
                rustix::mount::MountFlags::empty(),
                Some(options.as_c_str()),
            )?;
            node.devices += 1;
        }
        Ok(node)
    }

    /// What `PHOS_SIM_DIR` must be.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        for index in 0..self.devices {
            let device = self.dir.join(format!("dev{index}"));
            // Lazily: memory that a process still holds goes when it does.
            let _ = rustix::mount::unmount(&device, rustix::mount::UnmountFlags::DETACH);
            let _ = fs::remove_dir(&device);
        }
        if self.made {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}
