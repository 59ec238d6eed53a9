//! Which file system a path is on, as far as it matters to phos-ft: whether what is there survives this machine.
//!
//! A crate of its own, because the agent asks as well as the storage, and the agent has no network.

use std::path::Path;

/// File systems of the network, by the numbers that `statfs` gives them (`linux/magic.h`, and of those outside of the kernel their
/// own headers): NFS, SMB and CIFS, Ceph, AFS, 9p, Lustre, GPFS, BeeGFS, PanFS, OrangeFS.
const NETWORK: [u64; 12] = [
    0x6969,
    0x517B,
    0xFF53_4D42,
    0xFE53_4D42,
    0x00C3_6400,
    0x5346_414F,
    0x0102_1997,
    0x0BD0_0BD0,
    0x4750_4653,
    0x1983_0326,
    0xAAD7_AAEA,
    0x2003_0528,
];

/// Whether a file or directory, or where it is to be made, is on a network file system. Asks the file system.
#[must_use]
pub fn is_on_network(path: &Path) -> bool {
    let found = existing(path).and_then(|path| rustix::fs::statfs(path).ok());
    // The numbers have 32 bits, which some architectures extend by their sign.
    found.is_some_and(|found| NETWORK.contains(&(found.f_type as u64 & 0xFFFF_FFFF)))
}

/// The path, or the nearest directory above it that is there. `None`: there is none.
#[must_use]
pub fn existing(path: &Path) -> Option<&Path> {
    path.ancestors()
        .map(|path| match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        })
        .find(|path| path.exists())
}
