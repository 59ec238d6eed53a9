//! Asks the kernel about a process's pages, and reads them.
//!
//! Sources: the kernel's `Documentation/admin-guide/mm/pagemap.rst` (`PAGEMAP_SCAN`, from 6.7 on) and process_vm_readv(2).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use linux_raw_sys::general::{
    PAGE_IS_FILE, PAGE_IS_PFNZERO, PAGE_IS_PRESENT, PAGE_IS_SWAPPED, page_region, pm_scan_arg,
};
use phos_shared::mapped::Mapping;
use rustix::fs::{AtFlags, FallocateFlags, SeekFrom, StatxFlags};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, opcode};

use crate::criu::memory::{PAGE, Run};

/// `PAGEMAP_SCAN`, which the headers have as a macro.
const PAGEMAP_SCAN: Opcode = opcode::read_write::<pm_scan_arg>(b'f', 16);

const NO_REGION: page_region = page_region {
    start: 0,
    end: 0,
    categories: 0,
};

/// Regions that are asked for at once.
const REGIONS: usize = 1024;

/// Asks for pages that are in memory or swapped out, and neither the kernel's page of zeros nor those of a file: what CRIU asks for.
/// Where it got to, and how many regions it found.
fn scan(pagemap: &File, range: &Range<u64>, found: &mut [page_region]) -> io::Result<(u64, usize)> {
    let of_no_use = u64::from(PAGE_IS_PFNZERO | PAGE_IS_FILE);
    let mut scan = pm_scan_arg {
        size: size_of::<pm_scan_arg>() as u64,
        flags: 0,
        start: range.start,
        end: range.end,
        walk_end: 0,
        vec: found.as_mut_ptr().addr() as u64,
        vec_len: found.len() as u64,
        max_pages: 0,
        category_inverted: of_no_use,
        category_mask: of_no_use,
        category_anyof_mask: u64::from(PAGE_IS_PRESENT | PAGE_IS_SWAPPED),
        return_mask: u64::from(PAGE_IS_PRESENT),
    };
    // SAFETY: the request takes the address of this struct, which names a vector of as many regions as there are.
    let count = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN.into(), &raw mut scan) };
    match usize::try_from(count) {
        Ok(count) => Ok((scan.walk_end, count)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Whether this kernel lets memory be copied from outside: it can be asked for pages, they are of the size that CRIU's images are
/// read with here, and memory that a process may not read itself can be read.
pub(super) fn can_copy() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| has_small_pages() && can_scan() && can_read_sealed())
}

fn has_small_pages() -> bool {
    // SAFETY: takes a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size) == Ok(PAGE)
}

fn can_scan() -> bool {
    let own = File::open("/proc/self/pagemap");
    own.is_ok_and(|own| scan(&own, &(0..PAGE), &mut [NO_REGION]).is_ok())
}

/// Kernels from 6.12 on may be told not to (`proc_mem.force_override`).
fn can_read_sealed() -> bool {
    let length = PAGE as usize;
    // SAFETY: a new mapping, which is this function's alone.
    let sealed = unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if page == libc::MAP_FAILED {
            return false;
        }
        page.cast::<u8>().write_volatile(7);
        libc::mprotect(page, length, libc::PROT_NONE);
        page
    };
    let mut read = [0];
    let memory = File::open("/proc/self/mem");
    let done = memory.and_then(|memory| memory.read_exact_at(&mut read, sealed.addr() as u64));
    // SAFETY: the mapping of above.
    unsafe { libc::munmap(sealed, length) };
    done.is_ok() && read == [7]
}

/// The file system of memory that processes share: its device.
///
/// # Errors
/// The error that the kernel returns.
pub(super) fn shared_device() -> io::Result<u64> {
    let own = rustix::fs::memfd_create("phos", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(rustix::fs::fstat(own)?.st_dev)
}

/// Device and inode of what a link of `/proc/PID/fd` leads to. Asks no file system that a program of the job's may be behind.
///
/// # Errors
/// The error that the kernel returns.
pub(super) fn identity(link: &Path) -> io::Result<(u64, u64)> {
    let flags = AtFlags::STATX_DONT_SYNC;
    let found = rustix::fs::statx(rustix::fs::CWD, link, flags, StatxFlags::INO)?;
    let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
    Ok((device, found.stx_ino))
}

/// The pages of a process in this range that are its own.
///
/// # Errors
/// The error that the kernel returns.
pub(super) fn pages(pagemap: &File, range: Range<u64>) -> io::Result<Vec<Run>> {
    let mut regions = [NO_REGION; REGIONS];
    let mut found: Vec<Run> = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let (end, count) = scan(pagemap, &(at..range.end), &mut regions)?;
        for region in regions.iter().take(count) {
            let pages = (region.end - region.start) / PAGE;
            match found.last_mut() {
                Some(last) if last.end() == region.start => last.pages += pages,
                _ => found.push(Run {
                    address: region.start,
                    pages,
                }),
            }
        }
        if end <= at {
            return Err(io::Error::other(
                "the kernel's list of pages does not go on",
            ));
        }
        at = end;
    }
    Ok(found)
}

/// The parts of a file's first `length` bytes that are no holes, in whole pages.
///
/// # Errors
/// The error that the kernel returns.
pub(super) fn data(file: &File, length: u64) -> io::Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < length {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start / PAGE * PAGE,
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            Err(e) => return Err(e.into()),
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
        let end = end.next_multiple_of(PAGE).min(length);
        if start >= end {
            break;
        }
        found.push(start..end);
        at = end;
    }
    Ok(found)
}

/// A file of pages that is filled.
#[derive(Debug)]
pub(super) struct Target {
    file: File,
    length: u64,
    /// There is space for all of it, so that it can be filled through a mapping.
    has_space: bool,
}

/// Bytes that are asked for at once: the kernel does not let itself be interrupted meanwhile.
const SPACE: u64 = 1 << 30;

impl Target {
    /// Makes the file as long as that, and takes the space for it, as long as `may_go_on` says so.
    ///
    /// # Errors
    /// The error that the kernel returns; [`io::ErrorKind::StorageFull`]; the error that `may_go_on` returns.
    pub(super) fn new(
        file: File,
        length: u64,
        may_go_on: &dyn Fn() -> io::Result<()>,
    ) -> io::Result<Target> {
        file.set_len(length)?;
        let (mut at, mut has_space) = (0, true);
        while at < length && has_space {
            may_go_on()?;
            let part = SPACE.min(length - at);
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), at, part) {
                Ok(()) => at += part,
                Err(Errno::INTR) => {}
                // A file system that cannot: it is found to be full when it is written to.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => has_space = false,
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Target {
            file,
            length,
            has_space,
        })
    }

    /// A part of it, to be filled.
    ///
    /// # Errors
    /// The error that the kernel returns; it is beyond the end.
    pub(super) fn window(&self, at: u64, length: u64) -> io::Result<Window<'_>> {
        if at.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(missing());
        }
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let mapping = match self.has_space {
            true => Mapping::of(&self.file, at, length)?,
            false => Mapping::anonymous(length)?,
        };
        Ok(Window {
            target: self,
            mapping,
            at,
        })
    }
}

fn missing() -> io::Error {
    io::Error::other("a piece without a place")
}

/// A part of a file of pages.
///
/// It is mapped, and the kernel copies into the mapping: writers of one file wait for each other, and readers into mappings do not
/// (16 threads: 7 GB/s and 26 GB/s). Nothing here touches the mapping itself, so that a file system that is full after all is an
/// error and not a signal. It is no larger than it must be, as what is mapped counts as memory of the agent's.
#[derive(Debug)]
pub(super) struct Window<'a> {
    target: &'a Target,
    mapping: Mapping,
    /// The offset in the file at which the window begins, in bytes.
    at: u64,
}

impl Window<'_> {
    /// A part of the mapping, by its offset in the file.
    fn part(&self, at: u64, length: usize) -> io::Result<*mut libc::c_void> {
        let at = at.checked_sub(self.at).ok_or_else(missing)?;
        let at = usize::try_from(at).map_err(io::Error::other)?;
        self.mapping.part(at, length).map_err(|_| missing())
    }

    /// Copies parts of a process's memory, addresses and lengths, one after another to this offset of the file.
    ///
    /// # Errors
    /// The error that the kernel returns; [`io::ErrorKind::UnexpectedEof`] where it could copy only a part.
    pub(super) fn copy_memory(&self, pid: u32, parts: &[(u64, u64)], at: u64) -> io::Result<()> {
        let remote: Vec<libc::iovec> = parts
            .iter()
            .map(|&(address, length)| libc::iovec {
                iov_base: std::ptr::without_provenance_mut(address as usize),
                iov_len: length as usize,
            })
            .collect();
        let length = remote.iter().map(|part| part.iov_len).sum();
        let local = libc::iovec {
            iov_base: self.part(at, length)?,
            iov_len: length,
        };
        // SAFETY: the kernel writes to a part of the mapping alone; addresses of the other process are not used here.
        let copied = unsafe {
            libc::process_vm_readv(
                pid.cast_signed(),
                &raw const local,
                1,
                remote.as_ptr(),
                remote.len() as libc::c_ulong,
                0,
            )
        };
        match usize::try_from(copied) {
            Ok(copied) if copied == length => Ok(()),
            Ok(copied) => {
                let text = format!("{copied} of {length} bytes could be read");
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, text))
            }
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Copies so many bytes of a file, or as many as there are, to this offset. How many there were.
    ///
    /// # Errors
    /// The error that the kernel returns.
    pub(super) fn copy_file(
        &self,
        file: &File,
        from: u64,
        length: u64,
        at: u64,
    ) -> io::Result<u64> {
        let mut done = 0;
        while done < length {
            let left = usize::try_from(length - done).map_err(io::Error::other)?;
            let to = self.part(at + done, left)?;
            let from = i64::try_from(from + done).map_err(io::Error::other)?;
            // SAFETY: the kernel writes to a part of the mapping alone.
            let copied = unsafe { libc::pread64(file.as_raw_fd(), to, left, from) };
            match u64::try_from(copied) {
                Ok(0) => break,
                Ok(copied) => done += copied,
                Err(_) => match io::Error::last_os_error() {
                    e if e.kind() == io::ErrorKind::Interrupted => {}
                    e => return Err(e),
                },
            }
        }
        Ok(done)
    }

    /// All that belongs here was copied: it is in the file when this returns.
    ///
    /// # Errors
    /// The error of the file system.
    pub(super) fn finish(self) -> io::Result<()> {
        if self.target.has_space {
            return Ok(());
        }
        let (mut done, length) = (0, self.mapping.length());
        while done < length {
            let at = i64::try_from(self.at + done as u64).map_err(io::Error::other)?;
            let left = length - done;
            let from = self.mapping.part(done, left)?;
            let fd = self.target.file.as_raw_fd();
            // SAFETY: the rest of the mapping.
            let written = unsafe { libc::pwrite64(fd, from, left, at) };
            match usize::try_from(written) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(_) => match io::Error::last_os_error() {
                    e if e.kind() == io::ErrorKind::Interrupted => {}
                    e => return Err(e),
                },
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_written_are_found() {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release
            .split(['.', '-'])
            .map_while(|part| part.parse::<u32>().ok());
        let version = (numbers.next().unwrap(), numbers.next().unwrap());
        assert_eq!(can_scan(), version >= (6, 7), "{release}");
        assert!(can_read_sealed());
        if !can_scan() {
            return;
        }
        let length = 64 * PAGE as usize;
        // SAFETY: a new mapping, which is the test's alone.
        let base = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED);
        let start = base.addr() as u64;
        // SAFETY: inside the mapping; huge pages would bring neighbours in.
        unsafe {
            libc::madvise(base, length, libc::MADV_NOHUGEPAGE);
            for page in [3, 4, 5, 9] {
                base.cast::<u8>().add(page * PAGE as usize).write(1);
            }
            // The page of zeros is no content.
            std::ptr::read_volatile(base.cast::<u8>().add(20 * PAGE as usize));
        }
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let found = pages(&pagemap, start..start + length as u64).unwrap();
        let run = |page: u64, pages| Run {
            address: start + page * PAGE,
            pages,
        };
        assert_eq!(found, [run(3, 3), run(9, 1)]);
        // SAFETY: the mapping of above.
        unsafe { libc::munmap(base, length) };
    }

    #[test]
    fn a_file_system_without_space_to_take_is_written_to() {
        let file = tempfile::tempfile().unwrap();
        let source = tempfile::tempfile().unwrap();
        source.write_all_at(&[7; 2 * PAGE as usize], 0).unwrap();
        for has_space in [true, false] {
            let copy = file.try_clone().unwrap();
            let mut target = Target::new(copy, 8 * PAGE, &|| Ok(())).unwrap();
            target.has_space &= has_space;
            let window = target.window(4 * PAGE, 4 * PAGE).unwrap();
            assert_eq!(
                window.copy_file(&source, 0, 3 * PAGE, 5 * PAGE).unwrap(),
                2 * PAGE
            );
            window.copy_file(&source, 0, PAGE, 8 * PAGE).unwrap_err();
            window.copy_file(&source, 0, PAGE, 3 * PAGE).unwrap_err();
            window.finish().unwrap();
            let mut got = vec![1; 8 * PAGE as usize];
            file.read_exact_at(&mut got, 0).unwrap();
            let sevens = 5 * PAGE as usize..7 * PAGE as usize;
            assert!(
                got.iter()
                    .enumerate()
                    .all(|(n, &byte)| byte == if sevens.contains(&n) { 7 } else { 0 })
            );
            file.set_len(0).unwrap();
            target.window(5 * PAGE, 4 * PAGE).unwrap_err();
        }
        let stopped = Target::new(file, PAGE, &|| Err(io::ErrorKind::TimedOut.into()));
        assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn holes_of_a_file_are_no_data() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(100 * PAGE).unwrap();
        file.write_all_at(b"x", 10 * PAGE + 7).unwrap();
        file.write_all_at(b"x", 50 * PAGE).unwrap();
        let page = |n: u64| n * PAGE..(n + 1) * PAGE;
        assert_eq!(data(&file, 100 * PAGE).unwrap(), [page(10), page(50)]);
        assert_eq!(data(&file, 50 * PAGE).unwrap(), [page(10)]);
        assert_eq!(data(&file, 0).unwrap(), []);
    }
}
