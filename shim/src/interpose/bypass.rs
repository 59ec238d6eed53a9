//! Finds what reaches the driver past the wrappers: a library loaded with `RTLD_DEEPBIND`, or one that looks functions up by
//! `dlvsym` or through a `dlsym` that it found behind ours. However it was found, the address of a driver function ends in a slot
//! of the library's own: its table of imports, or a variable. So the writable parts of every object are looked through for
//! addresses of entry points. Calls through such a slot are not held by the gate, and a checkpoint would kill the process, so
//! they are ruled out.
//!
//! Addresses kept on the heap are not found.

use std::ffi::{CStr, c_int, c_void};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::driver;
use crate::sync::lock;

/// The number of bytes that are looked at in one piece.
const PIECE: usize = 1 << 20;
/// A library may look functions up long after it was loaded.
const AGAIN: Duration = Duration::from_secs(30);
/// What is known is looked for again after this many times as long as that took: it costs a hundredth of a core at most. (The first
/// time takes most of a second in PyTorch, whose pages come from the disk.)
const RARELY: u32 = 100;

/// A writable part of an object.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    object: String,
    start: usize,
    bytes: usize,
}

struct Last {
    /// How many objects the loader had ever loaded.
    loaded: u64,
    at: Option<Instant>,
    took: Duration,
    found: Vec<String>,
}

static LAST: Mutex<Last> = Mutex::new(Last {
    loaded: 0,
    at: None,
    took: Duration::ZERO,
    found: Vec::new(),
});

impl Last {
    fn is_older_than(&self, times: u32) -> bool {
        let age = AGAIN.max(self.took * RARELY) * times;
        self.at.is_none_or(|at| at.elapsed() >= age)
    }

    fn look(&mut self, parts: &[Part], loaded: u64) {
        let begun = Instant::now();
        self.found = holders(parts);
        self.took = begun.elapsed();
        self.at = Some(Instant::now());
        self.loaded = loaded;
    }
}

/// File names of the objects that hold addresses of driver functions, sorted, each once. Known already, unless libraries were loaded
/// a moment ago. For the control thread, with the gate open: it may take some time.
pub fn objects() -> Vec<String> {
    let (parts, loaded) = parts();
    let mut last = lock(&LAST);
    if last.loaded != loaded || last.is_older_than(2) {
        last.look(&parts, loaded);
    }
    last.found.clone()
}

/// Looks for them where libraries were loaded since the last time, and now and then, so that a checkpoint need not. For the control
/// thread, from time to time.
pub fn look_again() {
    let (parts, loaded) = parts();
    let mut last = lock(&LAST);
    // A program that is starting loads libraries all the time.
    let rested = last
        .at
        .is_none_or(|at| at.elapsed() >= last.took * (RARELY / 5));
    if last.loaded != loaded && rested || last.is_older_than(1) {
        last.look(&parts, loaded);
    }
}

fn holders(parts: &[Part]) -> Vec<String> {
    // Read by the file, which answers with an error where a page cannot be read.
    let Ok(memory) = std::fs::File::open("/proc/self/mem") else {
        return Vec::new();
    };
    let Some(range) = driver::range() else {
        return Vec::new();
    };
    let mut found: Vec<String> = Vec::new();
    let mut piece = vec![0_u8; PIECE];
    for part in parts {
        if found.contains(&part.object) {
            continue;
        }
        let mut at = part.start.next_multiple_of(8);
        let end = part.start + part.bytes;
        'part: while at < end {
            let length = (end - at).min(PIECE);
            if memory
                .read_exact_at(&mut piece[..length], at as u64)
                .is_err()
            {
                break;
            }
            for word in piece[..length].chunks_exact(8) {
                let mut value = [0; 8];
                value.copy_from_slice(word);
                let value = usize::from_ne_bytes(value);
                if range.contains(&value) && driver::entry_at(value as *const ()).is_some() {
                    found.push(part.object.clone());
                    break 'part;
                }
            }
            at += length;
        }
    }
    found.sort();
    found
}

struct Walk {
    parts: Vec<Part>,
    loaded: u64,
}

/// The writable parts of every object but the driver and this library, and how many objects were ever loaded.
fn parts() -> (Vec<Part>, u64) {
    let mut walk = Walk {
        parts: Vec::new(),
        loaded: 0,
    };
    // SAFETY: the callback gets what is passed here, and only while this call lasts.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut walk).cast()) };
    (walk.parts, walk.loaded)
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the loader's structure, and the one that `parts` passed; both live through this call.
    let (info, walk) = unsafe { (&*info, &mut *data.cast::<Walk>()) };
    walk.loaded = info.dlpi_adds;
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the object's program headers, as the loader gives them.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let holds = |address: usize| {
        headers.iter().any(|h| {
            let start = (info.dlpi_addr as usize).wrapping_add(h.p_vaddr as usize);
            h.p_type == libc::PT_LOAD && (start..start + h.p_memsz as usize).contains(&address)
        })
    };
    let own = visit as *const () as usize;
    if holds(own) || driver::range().is_some_and(|range| holds(range.start)) {
        return 0;
    }
    let name = if info.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: the loader's string.
        unsafe { CStr::from_ptr(info.dlpi_name) }
    };
    let name = name.to_string_lossy();
    let file = match name.rsplit('/').next() {
        Some(file) if !file.is_empty() => file.to_owned(),
        _ => "the program itself".to_owned(),
    };
    for header in headers {
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0 {
            walk.parts.push(Part {
                object: file.clone(),
                start: (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize),
                bytes: header.p_memsz as usize,
            });
        }
    }
    0
}
