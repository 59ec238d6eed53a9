//! Writing to a file from many threads at once.
//!
//! `write` takes the lock of the file, so that the threads which fill one large file of a CPU image wait for each other. Who writes
//! to a mapping of it does not: 16 threads come to 26 GB/s on a tmpfs, where they came to 7. It takes half as much processor time
//! again, so that it is for machines with several, and for files in memory: on a disk each page would be made writable by itself.
//!
//! Nothing here touches the mapping itself. The kernel copies into it, and a file system that turns out to be full is an error and
//! not a signal.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;
use std::thread::available_parallelism;

/// Fewer bytes are written faster than they are mapped.
const WORTH: usize = 64 << 10;
/// Mappings begin at multiples of this: the size of a page, or a multiple of it, on any machine.
const ALIGNMENT: u64 = 64 << 10;

/// The kernel's `TMPFS_MAGIC`.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;
/// With fewer processors the lock costs less than the mapping.
const PROCESSORS: usize = 4;

/// Writes `bytes` at `offset`. The file is that long already, and nobody cuts it meanwhile.
///
/// # Errors
/// Those of a write.
pub fn write(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    static MANY: LazyLock<bool> =
        LazyLock::new(|| available_parallelism().is_ok_and(|count| count.get() >= PROCESSORS));
    // Where there can be no mapping, or no copy into it, the write says what is wrong, if anything is.
    if *MANY
        && bytes.len() >= WORTH
        && is_in_memory(file)
        && through_mapping(file, bytes, offset).is_ok()
    {
        return Ok(());
    }
    file.write_all_at(bytes, offset)
}

/// Whether a file lies on a tmpfs.
fn is_in_memory(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == TMPFS)
}

fn through_mapping(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let before = (offset % ALIGNMENT) as usize;
    let mapping = Mapping::of(file, offset - before as u64, before + bytes.len())?;
    let local = libc::iovec {
        iov_base: mapping.part(before, bytes.len())?,
        iov_len: bytes.len(),
    };
    let remote = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let this = std::process::id().cast_signed();
    // SAFETY: the kernel reads from `bytes` and writes to a part of the mapping, which is nobody else's.
    let copied =
        unsafe { libc::process_vm_readv(this, &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(copied) {
        Ok(copied) if copied == bytes.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// A part of a file, or memory of none, mapped while this lives. It is for the kernel to copy into or out of.
#[derive(Debug)]
pub struct Mapping {
    base: *mut libc::c_void,
    length: usize,
}

impl Mapping {
    /// So many bytes of a file from there on, which is a multiple of the size of a page. What is copied into it is written.
    ///
    /// # Errors
    /// The error that the kernel returns.
    pub fn of(file: &File, at: u64, length: usize) -> io::Result<Self> {
        let at = i64::try_from(at).map_err(io::Error::other)?;
        Self::new(libc::MAP_SHARED, file.as_raw_fd(), at, length)
    }

    /// Memory of no file.
    ///
    /// # Errors
    /// The error that the kernel returns.
    pub fn anonymous(length: usize) -> io::Result<Self> {
        Self::new(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0, length)
    }

    fn new(flags: i32, fd: i32, at: i64, length: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, wherever the kernel likes.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, fd, at) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base, length })
    }

    /// The address of a part of it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`]: it is beyond the end.
    pub fn part(&self, at: usize, length: usize) -> io::Result<*mut libc::c_void> {
        match at.checked_add(length) {
            Some(end) if end <= self.length => Ok(self.base.wrapping_byte_add(at)),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and not used after.
        unsafe { libc::munmap(self.base, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn many_threads_fill_one_file() {
        let file = tempfile::tempfile().unwrap();
        let wanted: Vec<u8> = (0..3_000_000_u32)
            .flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        file.set_len(wanted.len() as u64).unwrap();
        std::thread::scope(|threads| {
            for (i, part) in wanted.chunks(777_777).enumerate() {
                let file = &file;
                threads.spawn(move || through_mapping(file, part, i as u64 * 777_777).unwrap());
            }
        });
        let mut found = vec![0; wanted.len()];
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found == wanted);
    }

    #[test]
    fn memory_is_told_from_a_disk() {
        let memfd = rustix::fs::memfd_create("of a test", rustix::fs::MemfdFlags::CLOEXEC);
        assert!(is_in_memory(&File::from(memfd.unwrap())));
        assert!(!is_in_memory(&File::open("/proc/self/status").unwrap()));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let (_, path) = tempfile::NamedTempFile::new().unwrap().keep().unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        through_mapping(&file, &[1; 2 * WORTH], 0).unwrap_err();
        let error = write(&file, &[1; 2 * WORTH], 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }

    proptest! {
        #[test]
        fn nothing_but_its_place_is_written(offset in 0..10_000_u64, length in 0..3 * WORTH) {
            let file = tempfile::tempfile().unwrap();
            let all = offset as usize + length + 5000;
            file.write_all_at(&vec![7; all], 0).unwrap();
            let bytes: Vec<u8> = (0..length).map(|i| i as u8 ^ 0x55).collect();
            match length {
                0 => write(&file, &bytes, offset).unwrap(),
                _ => through_mapping(&file, &bytes, offset).unwrap(),
            }
            let mut found = vec![0; all];
            file.read_exact_at(&mut found, 0).unwrap();
            let (before, rest) = found.split_at(offset as usize);
            let (here, after) = rest.split_at(length);
            prop_assert!(here == bytes && before.iter().chain(after).all(|byte| *byte == 7));
            prop_assert_eq!(file.metadata().unwrap().len(), all as u64);
        }
    }
}
