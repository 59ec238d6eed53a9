//! Memory of every kind that a process may have on the CPU, a little of each written and verified at each step.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

use anyhow::{Result, bail, ensure};

use crate::rng::mix;

const PAGE: usize = 4096;

/// `MADV_GUARD_INSTALL`, from 6.13 on.
const GUARD: i32 = 102;

/// A mapping, and which pages of it are in use.
struct Area {
    name: &'static str,
    base: *mut u8,
    /// Numbers of pages.
    pages: Vec<usize>,
    /// When each was written.
    versions: Vec<u64>,
    /// What the process may do with it between two steps.
    protection: i32,
    bytes: usize,
}

/// See the module.
pub(crate) struct Memories {
    areas: Vec<Area>,
    unmapped: Unmapped,
}

/// What a page has in it: its own number and when it was written decide.
fn word(name: &str, page: usize, version: u64, place: usize) -> u64 {
    let name = name.bytes().fold(7, |sum, byte| mix(sum ^ u64::from(byte)));
    mix(name ^ mix(page as u64) ^ mix(version) ^ place as u64)
}

impl Area {
    fn new(
        name: &'static str,
        bytes: usize,
        pages: Vec<usize>,
        protection: i32,
        flags: i32,
        file: Option<&File>,
    ) -> Result<Area> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let file = file.map_or(-1, AsRawFd::as_raw_fd);
        // SAFETY: a new mapping, wherever the kernel likes.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file, 0) };
        if base == libc::MAP_FAILED {
            bail!("{name}: {}", std::io::Error::last_os_error());
        }
        let mut area = Area {
            name,
            base: base.cast(),
            versions: vec![0; pages.len()],
            pages,
            protection,
            bytes,
        };
        for n in 0..area.pages.len() {
            area.write(n, 0);
        }
        area.protect(protection)?;
        Ok(area)
    }

    fn protect(&self, protection: i32) -> Result<()> {
        // SAFETY: the whole of a mapping of our own.
        let done = unsafe { libc::mprotect(self.base.cast(), self.bytes, protection) };
        ensure!(
            done == 0,
            "{}: {}",
            self.name,
            std::io::Error::last_os_error()
        );
        Ok(())
    }

    fn advise(&self, pages: std::ops::Range<usize>, advice: i32) -> bool {
        let length = pages.len() * PAGE;
        // SAFETY: pages of the mapping that nothing else is in.
        unsafe { libc::madvise(self.base.add(pages.start * PAGE).cast(), length, advice) == 0 }
    }

    fn words(&self, n: usize) -> *mut u64 {
        // SAFETY: the page lies in the mapping.
        unsafe { self.base.add(self.pages[n] * PAGE) }.cast()
    }

    fn write(&mut self, n: usize, version: u64) {
        self.versions[n] = version;
        for place in 0..PAGE / 8 {
            let word = word(self.name, self.pages[n], version, place);
            // SAFETY: inside the page, which may be written now.
            unsafe { self.words(n).add(place).write_volatile(word) };
        }
    }

    fn verify(&self, n: usize) -> Result<()> {
        for place in 0..PAGE / 8 {
            // SAFETY: inside the page, which may be read now.
            let found = unsafe { self.words(n).add(place).read_volatile() };
            let wanted = word(self.name, self.pages[n], self.versions[n], place);
            ensure!(
                found == wanted,
                "{}: word {place} of page {} is {found:#x} instead of {wanted:#x}",
                self.name,
                self.pages[n]
            );
        }
        Ok(())
    }

    fn step(&mut self, step: u64) -> Result<()> {
        self.protect(libc::PROT_READ | libc::PROT_WRITE)?;
        let n = step as usize % self.pages.len();
        self.verify(n)?;
        self.write(n, step + 1);
        self.protect(self.protection)
    }

    fn finish(&self) -> Result<()> {
        self.protect(libc::PROT_READ)?;
        (0..self.pages.len()).try_for_each(|n| self.verify(n))
    }
}

/// Memory with a name, of so many pages.
fn memfd(name: &std::ffi::CStr, pages: usize) -> Result<File> {
    // SAFETY: a name that ends with a zero; a new descriptor, which is the file's alone.
    let file = unsafe {
        let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        ensure!(
            file >= 0,
            "memfd_create: {}",
            std::io::Error::last_os_error()
        );
        File::from_raw_fd(file)
    };
    file.set_len((pages * PAGE) as u64)?;
    Ok(file)
}

/// What a memfd without a mapping has in it.
struct Unmapped(File);

impl Unmapped {
    fn start() -> Result<Unmapped> {
        let unmapped = Unmapped(memfd(c"unmapped", 1000)?);
        // It ends within a page.
        unmapped.0.set_len(700 * PAGE as u64 + 100)?;
        unmapped.write(0)?;
        Ok(unmapped)
    }

    fn write(&self, version: u64) -> Result<()> {
        let bytes = word("unmapped", 0, version, 0).to_ne_bytes();
        Ok(self.0.write_all_at(&bytes, 700 * PAGE as u64 + 9)?)
    }

    fn step(&self, step: u64) -> Result<()> {
        let mut found = [0; 8];
        self.0.read_exact_at(&mut found, 700 * PAGE as u64 + 9)?;
        let wanted = word("unmapped", 0, step, 0).to_ne_bytes();
        ensure!(
            found == wanted,
            "a memfd without a mapping lost what was in it"
        );
        self.write(step + 1)
    }
}

impl Memories {
    /// Makes one of each kind.
    pub(crate) fn start() -> Result<Memories> {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let own = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let all = |count: usize| (0..count).collect::<Vec<_>>();
        let program = File::open("/proc/self/exe")?;
        let (mapped, forked) = (memfd(c"mapped", 256)?, memfd(c"changed", 16)?);
        let guarded = Area::new(
            "guarded",
            64 * PAGE,
            (0..10).chain(20..64).collect(),
            both,
            own,
            None,
        )?;
        // Kernels before 6.13 have none.
        guarded.advise(10..20, GUARD);
        let huge = Area::new("huge", 8 << 20, all(1024), both, own, None)?;
        huge.advise(0..1024, libc::MADV_HUGEPAGE);
        let locked = Area::new("locked", 16 * PAGE, all(16), both, own, None)?;
        // SAFETY: a mapping of our own.
        unsafe { libc::mlock(locked.base.cast(), locked.bytes) };
        Ok(Memories {
            unmapped: Unmapped::start()?,
            areas: vec![
                Area::new("sealed", 32 * PAGE, all(32), libc::PROT_NONE, own, None)?,
                Area::new(
                    "for writing alone",
                    32 * PAGE,
                    all(32),
                    libc::PROT_WRITE,
                    own,
                    None,
                )?,
                guarded,
                huge,
                locked,
                // A page every 16 GiB of a terabyte.
                Area::new(
                    "sparse",
                    1 << 40,
                    (0..64).map(|n| n << 22).collect(),
                    both,
                    own | libc::MAP_NORESERVE,
                    None,
                )?,
                Area::new(
                    "shared",
                    2048 * PAGE,
                    (0..2048).step_by(3).collect(),
                    both,
                    shared,
                    None,
                )?,
                Area::new(
                    "shared, sealed",
                    64 * PAGE,
                    all(60),
                    libc::PROT_NONE,
                    shared,
                    None,
                )?,
                Area::new(
                    "memfd",
                    256 * PAGE,
                    (0..200).step_by(2).collect(),
                    both,
                    libc::MAP_SHARED,
                    Some(&mapped),
                )?,
                Area::new(
                    "changed memfd",
                    16 * PAGE,
                    vec![3, 4],
                    both,
                    libc::MAP_PRIVATE,
                    Some(&forked),
                )?,
                // Pages of a file, some of them changed.
                Area::new(
                    "file",
                    16 * PAGE,
                    vec![1, 2, 7],
                    both,
                    libc::MAP_PRIVATE,
                    Some(&program),
                )?,
            ],
        })
    }

    /// A little of each.
    pub(crate) fn step(&mut self, step: u64) -> Result<()> {
        self.unmapped.step(step)?;
        self.areas.iter_mut().try_for_each(|area| area.step(step))
    }

    /// All of it.
    pub(crate) fn finish(&self) -> Result<()> {
        self.areas.iter().try_for_each(Area::finish)
    }
}
