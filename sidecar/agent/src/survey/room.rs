//! Whether there is room for an image.

use phos_protocol::agent::AttemptError;
use phos_shared::host_memory;

/// What an image needs room for, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Memory of the tree's processes, in bytes.
    pub resident: u64,
    /// Device memory that the driver will save into their memory, in bytes: what the shim does not take over, that is contexts,
    /// pools of the driver, arrays, variables of modules.
    pub native: u64,
    /// Bytes that the image's directory takes; `None`: that is not known yet.
    pub image_room: Option<u64>,
}

/// Refuses what would fail for lack of memory half way.
///
/// # Errors
/// What is needed, what there is, and the remedy.
pub fn check(need: &Need) -> Result<(), AttemptError> {
    fits(need, host_memory::available())
}

fn fits(need: &Need, available: Option<u64>) -> Result<(), AttemptError> {
    let native = need.native;
    // Control state adds to it: measured 0.65 GB a process at most; an image is compact otherwise.
    let image = need.resident + need.resident / 16 + native;
    // What the driver saves is in the processes' memory as well, until they have it back.
    let memory = image + native;
    let mib = |bytes: u64| bytes >> 20;
    let why = if native > 0 {
        format!(
            " ({} MiB of them are GPU memory that phos-ft cannot take over: contexts, variables of modules, arrays, and the driver's \
             own pools; with PyTorch, use its own allocator instead of cudaMallocAsync)",
            mib(native)
        )
    } else {
        String::new()
    };
    if let Some(free) = need.image_room
        && free < image
    {
        return Err(AttemptError::Criu(format!(
            "the image needs about {} MiB{why} and its directory has room for {} MiB: raise --image-limit or free host memory",
            mib(image),
            mib(free)
        )));
    }
    if let Some(available) = available
        && available < memory
    {
        return Err(AttemptError::Criu(format!(
            "the checkpoint needs about {} MiB of host memory{why} and {} MiB are available: free host memory",
            mib(memory),
            mib(available)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_the_driver_saves_counts_twice() {
        let need = Need {
            resident: 160 * MIB,
            native: 100 * MIB,
            image_room: Some(270 * MIB),
        };
        fits(&need, Some(370 * MIB)).unwrap();
        let text = fits(&need, Some(369 * MIB)).unwrap_err().to_string();
        assert!(
            text.contains("host memory") && text.contains("100 MiB"),
            "{text}"
        );
        let tight = Need {
            image_room: Some(269 * MIB),
            ..need
        };
        let text = fits(&tight, None).unwrap_err().to_string();
        assert!(text.contains("--image-limit"), "{text}");
        // Without the kernel's word, and before the directory is made, nothing is refused.
        let unknown = Need {
            image_room: None,
            ..need
        };
        fits(&unknown, None).unwrap();
    }
}
