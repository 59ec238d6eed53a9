//! The child of a process that had initialised CUDA: it shares nothing with the agent, must not use CUDA, and must not
//! stand in the way of a dump. The driver's device files and mappings that it inherits (measured on 580: 23 files, 30
//! mappings) are of no use to it, and no checkpoint of the parent takes them away; so the files become `/dev/null` and
//! the mappings private memory, under the same numbers and addresses, which the driver's own exit code may touch.

use std::ffi::CStr;

use crate::{gate, hints, link, mode, moment, ranks, saved};

/// The prefix of the paths of the driver's device files.
const DRIVER_FILES: &[u8] = b"/dev/nvidia";

/// Has the C library call the shim in every forked child from now on.
pub fn register() {
    // SAFETY: the handler calls only what may be called after a fork. The library is never unloaded.
    let result = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    if result != 0 {
        crate::log::error!(
            "pthread_atfork failed ({result}): forked children may keep the agent's socket open"
        );
    }
}

// Other threads' locks, the allocator's among them, may be held for ever here: system calls and atomics only.
unsafe extern "C" fn in_child() {
    if !mode::is_active() {
        return;
    }
    mode::set_inert();
    link::close_in_child();
    gate::reset_in_child();
    moment::reset_in_child();
    hints::reset_in_child();
    ranks::reset_in_child();
    let _ = saved::end();
    replace_files();
    replace_mappings();
}

fn open(path: &CStr, flags: i32) -> i32 {
    // SAFETY: a terminated path.
    unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) }
}

fn close(fd: i32) {
    // SAFETY: a descriptor opened here.
    unsafe { libc::close(fd) };
}

fn replace_files() {
    let null = open(c"/dev/null", libc::O_RDWR);
    let directory = open(c"/proc/self/fd", libc::O_RDONLY | libc::O_DIRECTORY);
    if null >= 0 && directory >= 0 {
        each_entry(directory, |name| {
            let mut target = [0_u8; 64];
            // SAFETY: an open directory, a terminated name, room for the target.
            let length = unsafe {
                libc::readlinkat(
                    directory,
                    name.as_ptr(),
                    target.as_mut_ptr().cast(),
                    target.len(),
                )
            };
            if length > 0 && target.starts_with(DRIVER_FILES) {
                let number = name.to_bytes().iter().fold(0_i32, |n, b| {
                    n.wrapping_mul(10)
                        .wrapping_add(i32::from(b.wrapping_sub(b'0')))
                });
                // SAFETY: both are open; the number is kept, so nothing else can take it and be closed by mistake.
                unsafe { libc::dup3(null, number, libc::O_CLOEXEC) };
            }
        });
    }
    for fd in [null, directory] {
        if fd >= 0 {
            close(fd);
        }
    }
}

/// Names in an open directory, without allocating.
fn each_entry(directory: i32, mut visit: impl FnMut(&CStr)) {
    #[repr(align(8))]
    struct Buffer([u8; 4096]);
    let mut buffer = Buffer([0; 4096]);
    loop {
        // SAFETY: an open directory and room of that length.
        let length = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                directory,
                buffer.0.as_mut_ptr(),
                buffer.0.len(),
            )
        };
        let Some(mut rest) = usize::try_from(length)
            .ok()
            .filter(|&l| l > 0)
            .and_then(|l| buffer.0.get(..l))
        else {
            return;
        };
        // d_ino 8, d_off 8, d_reclen 2, d_type 1, d_name
        while let (Some(&[low, high]), Some(name)) = (rest.get(16..18), rest.get(19..)) {
            if let Ok(name) = CStr::from_bytes_until_nul(name)
                && name.to_bytes().first().is_some_and(u8::is_ascii_digit)
            {
                visit(name);
            }
            let record = usize::from(u16::from_ne_bytes([low, high]));
            let Some(next) = rest.get(record.max(19)..) else {
                break;
            };
            rest = next;
        }
    }
}

fn replace_mappings() {
    // A few at a time; what was replaced is not found again.
    for _ in 0..64 {
        let mut found = [(0_usize, 0_usize); 64];
        let count = driver_mappings(&mut found);
        for &(start, end) in &found[..count] {
            // SAFETY: mappings of the driver, which this process must not use; whoever reads there finds zeroes.
            unsafe {
                libc::mmap(
                    start as *mut libc::c_void,
                    end - start,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                    -1,
                    0,
                );
            }
        }
        if count < found.len() {
            return;
        }
    }
}

/// Fills `found` from `/proc/self/maps`.
fn driver_mappings(found: &mut [(usize, usize)]) -> usize {
    let maps = open(c"/proc/self/maps", libc::O_RDONLY);
    if maps < 0 {
        return 0;
    }
    let mut scanner = Scanner::default();
    let mut buffer = [0_u8; 4096];
    let mut count = 0;
    'read: loop {
        // SAFETY: an open file and room of that length.
        let length = unsafe { libc::read(maps, buffer.as_mut_ptr().cast(), buffer.len()) };
        let Some(bytes) = usize::try_from(length)
            .ok()
            .filter(|&l| l > 0)
            .and_then(|l| buffer.get(..l))
        else {
            break;
        };
        for &byte in bytes {
            if let Some(range) = scanner.push(byte) {
                if count == found.len() {
                    break 'read;
                }
                found[count] = range;
                count += 1;
            }
        }
    }
    close(maps);
    count
}

/// Reads the lines of a maps file byte by byte: range first, file last.
#[derive(Default)]
struct Scanner {
    start: usize,
    end: usize,
    /// 0: start, 1: end, 2: what does not matter, 3: the file, 4: the rest of the line.
    part: u8,
    matched: usize,
}

impl Scanner {
    /// The range of a driver's mapping, when its line is complete enough to tell.
    fn push(&mut self, byte: u8) -> Option<(usize, usize)> {
        let digit = || (byte as char).to_digit(16).unwrap_or(0) as usize;
        match (self.part, byte) {
            (_, b'\n') => *self = Self::default(),
            (0, b'-') => self.part = 1,
            (0, _) => self.start = self.start << 4 | digit(),
            (1, b' ') => self.part = 2,
            (1, _) => self.end = self.end << 4 | digit(),
            (2, b'/') => {
                self.part = 3;
                self.matched = 1;
            }
            (3, _) if byte == DRIVER_FILES[self.matched] => {
                self.matched += 1;
                if self.matched == DRIVER_FILES.len() {
                    self.part = 4;
                    return Some((self.start, self.end));
                }
            }
            (3, _) => self.part = 4,
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_the_driver_are_found() {
        let maps = "7f00-7f10 r--p 00000000 08:01 42 /usr/lib/libcuda.so.580.1\n\
                    200000000-200200000 rw-s 00000000 00:05 1 /dev/nvidia-uvm\n\
                    7f40-7f50 rw-p 00000000 00:00 0 \n\
                    8000-9000 rw-s 0f000000 00:05 7                          /dev/nvidiactl\n\
                    a000-b000 rw-s 00000000 00:05 7 /dev/null\n";
        let mut scanner = Scanner::default();
        let found: Vec<_> = maps.bytes().filter_map(|b| scanner.push(b)).collect();
        assert_eq!(found, [(0x2_0000_0000, 0x2_0020_0000), (0x8000, 0x9000)]);
    }

    #[test]
    fn own_files_are_listed() {
        let directory = open(c"/proc/self/fd", libc::O_RDONLY | libc::O_DIRECTORY);
        let mut seen = Vec::new();
        each_entry(directory, |name| {
            seen.push(name.to_str().unwrap().parse::<i32>().unwrap())
        });
        close(directory);
        assert!(seen.contains(&directory) && seen.contains(&0));
    }
}
