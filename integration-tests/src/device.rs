//! A device node that stands for the NVIDIA driver's.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};

/// `/dev/nvidiaN` with a number that no GPU has; removed with it. It is /dev/fuse under another name, which CRIU can no more
/// dump than a GPU.
#[derive(Debug)]
pub struct DeviceNode(PathBuf);

impl DeviceNode {
    /// Makes one.
    ///
    /// # Errors
    /// When it cannot be made, which takes root.
    pub fn new() -> Result<DeviceNode> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/dev/nvidia9{:07}{number}", std::process::id()));
        let made = std::process::Command::new("mknod")
            .arg(&path)
            .args(["c", "10", "229"])
            .status()
            .context("starting mknod")?;
        ensure!(made.success(), "mknod {}: {made}", path.display());
        Ok(DeviceNode(path))
    }

    /// Its path.
    pub fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for DeviceNode {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
