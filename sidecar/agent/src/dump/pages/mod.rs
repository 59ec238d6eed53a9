//! The content of the job's memory: copied into CRIU's image by all cores, where CRIU itself has one thread.
//!
//! ```text
//!  CRIU (PHOS_PAGES): everything but the content ─▶ mm-PID.img, pagemap-*.img with next to nothing in them
//!  we, of each process that CRIU has left, while it goes on with the next one:
//!     areas (mm-PID.img) ─▶ what is there (pagemap) ─▶ pieces ─▶ threads ─▶ pages-N.img
//!                                                         └─▶ pagemap-PID.img
//!  we, once CRIU has left all of them, while the tree still stands still: what is left of that, and what they share (SEEK_DATA)
//! ```
//!
//! CRIU is told by `shim/criu-preload` that there is nothing to copy. Each process stands still from before CRIU looks at the first one until after
//! the dump. While CRIU describes it, its memory has something of CRIU's in it; it is read afterwards.
//!
//! # Rules
//!
//! * What CRIU did copy (the vDSO, memory by names, or everything where the library had no effect) stays as it copied it.
//! * The image is as if CRIU had written it: which version of phos-ft or CRIU restores it makes no difference.
//! * Content that is known to have been left out and cannot be found or read fails the checkpoint. CRIU copies the next one, and
//!   twice as many after each further failure: what it reads from within a process may be out of the agent's reach.
//! * Memory that processes share is known by the file system that it is on, never by a name that a job may give.
//! * A copy that is under way when CRIU fails ends at its next piece.

mod copy;
mod early;
mod kernel;
mod layout;
mod mappings;
mod turns;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use self::copy::Source;
use self::early::{Early, Follower};
use self::kernel::Target;
use self::layout::{Content, Piece, Placed, lay_out, without};
use self::mappings::Mappings;
use self::turns::Turns;
use crate::criu::memory::{self, Area, Kind, PAGE, PageMap, Run};
use crate::proc::{self, Mapping};

static TURNS: Mutex<Turns> = Mutex::new(Turns::new());

fn turns() -> MutexGuard<'static, Turns> {
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether CRIU is to leave the content of the dump that begins now to the agent ([`copying`]).
pub fn begin() -> bool {
    kernel::can_copy() && turns().begin()
}

/// What is to be copied, and what bounds it: the job stands still meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The directory of CRIU's image.
    pub images: &'a Path,
    /// The PIDs of the job's processes.
    pub processes: &'a [u32],
    /// How long a copy may take.
    pub patience: Duration,
    /// Set when the attempt is given up.
    pub cancelled: &'a AtomicBool,
}

/// What bounds a copy that is under way.
#[derive(Debug, Clone, Copy)]
struct Bounds<'a> {
    /// The time at which the copy has taken too long and is given up.
    until: Instant,
    /// Set when the attempt is given up.
    cancelled: &'a AtomicBool,
    /// Set when CRIU has ended.
    over: &'a AtomicBool,
}

impl<'a> Bounds<'a> {
    fn from_now_on(order: &Order<'a>, over: &'a AtomicBool) -> Self {
        Self {
            until: Instant::now() + order.patience,
            cancelled: order.cancelled,
            over,
        }
    }

    fn check(&self) -> io::Result<()> {
        if self.cancelled.load(Ordering::Acquire) || self.over.load(Ordering::Acquire) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if Instant::now() > self.until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

/// What a copy of the job's memory came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// The bytes of the pages that were copied.
    pub bytes: u64,
    /// Pieces that they were copied in.
    pub pieces: usize,
    /// How long it took to find out what there is to copy, and to take the space for it.
    pub found_in: Duration,
}

impl Taken {
    fn and(self, other: Taken) -> Taken {
        Taken {
            bytes: self.bytes + other.bytes,
            pieces: self.pieces + other.pieces,
            found_in: self.found_in + other.found_in,
        }
    }
}

/// A copy of the job's memory, part of it while CRIU is at work.
pub struct Copying<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    order: &'env Order<'env>,
    over: &'env AtomicBool,
    follower: Cell<Option<Follower<'scope>>>,
    mappings: Cell<Option<Mappings<'scope>>>,
}

/// Runs CRIU, and copies what it leaves out of the image. With what CRIU came to: that there was no space for the copy, if nobody asked for its end
/// ([`Copying::finish`]).
pub fn copying<T>(
    order: &Order<'_>,
    criu: impl FnOnce(&Copying<'_, '_>) -> T,
) -> (T, io::Result<()>) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let copy = Copying {
            scope,
            order,
            over: &over,
            follower: Cell::new(None),
            mappings: Cell::new(
                Mappings::listen(scope, order)
                    .inspect_err(|e| tracing::debug!(cause = %e, "CRIU reads of mappings itself"))
                    .ok(),
            ),
        };
        let outcome = criu(&copy);
        over.store(true, Ordering::Release);
        drop(copy.mappings.take());
        let copied = match copy.follower.take().map(Follower::finish) {
            Some(Err(e)) if is_full(&e) => Err(e),
            _ => Ok(()),
        };
        (outcome, copied)
    })
}

impl Copying<'_, '_> {
    /// Begins to copy what CRIU leaves. CRIU has made the directory of the image, and has not begun with any process. Where it cannot be
    /// watched all is copied at the end.
    pub fn follow(&self) {
        match Follower::start(self.scope, self.order, self.over) {
            Ok(follower) => self.follower.set(Some(follower)),
            Err(e) => tracing::debug!(cause = %e, "memory is copied when CRIU is done"),
        }
    }

    /// Copies the rest: the image is complete otherwise, CRIU has left all processes, and they still stand still.
    ///
    /// # Errors
    /// What could not be read or written, now or before; [`io::ErrorKind::Interrupted`] and [`io::ErrorKind::TimedOut`] by the bounds.
    pub fn finish(&self) -> io::Result<Taken> {
        use io::ErrorKind::{Interrupted, TimedOut};
        let began = Instant::now();
        let given = self.mappings.take().map_or(0, Mappings::finish);
        let follower = self.follower.take();
        let during_criu = follower.as_ref().map_or(0, Follower::copied);
        let (order, over) = (self.order, self.over);
        let taken = follower
            .map_or_else(|| Ok(Early::default()), Follower::finish)
            .and_then(|early| {
                let bounds = Bounds::from_now_on(order, over);
                let rest = remaining(order, &early.processes, bounds)?;
                Ok((early.taken, early.taken.and(rest)))
            });
        let (early, taken) = taken.inspect_err(|e| {
            // It would have been the same for CRIU.
            if !is_full(e) && !matches!(e.kind(), Interrupted | TimedOut) {
                turns().failed();
            }
        })?;
        turns().went_well();
        tracing::debug!(
            bytes = taken.bytes,
            as_left = early.bytes,
            during_criu,
            mappings = given,
            pieces = taken.pieces,
            found_ms = taken.found_in.as_millis() as u64,
            after_criu_ms = began.elapsed().as_millis() as u64,
            "memory copied"
        );
        Ok(taken)
    }
}

/// Whether there is no space for the copy.
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

fn at(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |e| io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}

/// Copies the memory of these processes, which CRIU has left.
fn of_processes(order: &Order<'_>, pids: &BTreeSet<u32>, bounds: Bounds<'_>) -> io::Result<Taken> {
    let began = Instant::now();
    let mut work = Work::default();
    for &pid in pids {
        bounds.check()?;
        work.process(order.images, pid, bounds)?;
    }
    work.copy(began, bounds)
}

/// Copies the memory of all processes that are not `done`, and all that they share.
fn remaining(order: &Order<'_>, done: &BTreeSet<u32>, bounds: Bounds<'_>) -> io::Result<Taken> {
    let began = Instant::now();
    let images = order.images;
    let mut work = Work::default();
    for pid in memory::processes(images).map_err(at(images))? {
        // The image says it; what is read is memory of the job's.
        if !order.processes.contains(&pid) {
            let text = format!("the image has a process {pid}, which is not the job's");
            return Err(io::Error::other(text));
        }
        if done.contains(&pid) {
            continue;
        }
        bounds.check()?;
        work.process(images, pid, bounds)?;
    }
    let numbers = shared(images)?;
    if !numbers.is_empty() {
        let places = places(order.processes)?;
        for number in numbers {
            bounds.check()?;
            work.shared(
                images,
                number,
                places.get(&number).map(PathBuf::as_path),
                bounds,
            )?;
        }
    }
    work.copy(began, bounds)
}

/// CRIU's numbers of all shared memory in an image.
fn shared(images: &Path) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(images).map_err(at(images))? {
        let name = entry?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix("pagemap-shmem-")?.strip_suffix(".img"))
            .and_then(|number| number.parse::<u32>().ok());
        found.extend(number);
    }
    found.sort_unstable();
    Ok(found)
}

/// Where these processes have memory that they share and that CRIU leaves to the agent, by the inode: CRIU's number of it, in 32
/// bits.
fn places(pids: &[u32]) -> io::Result<BTreeMap<u32, PathBuf>> {
    let device = kernel::shared_device()?;
    let mut found = BTreeMap::new();
    for pid in pids {
        let maps = PathBuf::from(format!("/proc/{pid}/maps"));
        let text = match std::fs::read(&maps) {
            // A process that has ended has none.
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => continue,
            text => text.map_err(at(&maps))?,
        };
        found.extend(proc::mappings_in(&text).filter_map(|m| mapped(*pid, &m, device)));
        let fds = PathBuf::from(format!("/proc/{pid}/fd"));
        for entry in std::fs::read_dir(&fds).map_err(at(&fds))? {
            let place = entry?.path();
            let leads_to = std::fs::read_link(&place).unwrap_or_default();
            // Sockets, pipes and their like are called by a word.
            if !leads_to.as_os_str().as_encoded_bytes().starts_with(b"/") {
                continue;
            }
            // What cannot be asked is on another file system, and nothing of ours.
            if let Ok((on, inode)) = kernel::identity(&place)
                && on == device
            {
                found.insert(inode as u32, place);
            }
        }
    }
    Ok(found)
}

/// The same of one of a process's mappings.
fn mapped(pid: u32, mapping: &Mapping, device: u64) -> Option<(u32, PathBuf)> {
    // Those of System V are on it as well, and numbered otherwise. CRIU copies them.
    let is_system_v = || {
        let name = mapping.path().map(|path| path.as_os_str().as_bytes());
        name.is_some_and(|name| name.starts_with(b"/SYSV"))
    };
    if mapping.device != device || mapping.inode == 0 || is_system_v() {
        return None;
    }
    Some((mapping.inode as u32, mapping.through(pid)))
}

/// Areas of memory in which a thread looks for pages: with fewer it would take longer to start another one.
const SHARE: usize = 64;

/// Everything that is to be copied.
#[derive(Default)]
struct Work {
    sources: Vec<Source>,
    targets: Vec<Target>,
    pieces: Vec<Piece>,
    /// Written when everything is copied.
    maps: Vec<(PathBuf, PageMap)>,
}

impl Work {
    fn source(&mut self, source: Source) -> usize {
        self.sources.push(source);
        self.sources.len() - 1
    }

    /// Copies all of it. `began`: when it was begun to look for it.
    fn copy(self, began: Instant, bounds: Bounds<'_>) -> io::Result<Taken> {
        let found_in = began.elapsed();
        let (sources, targets, pieces) = (&self.sources, &self.targets, &self.pieces);
        copy::copy(sources, targets, pieces, &|| bounds.check())?;
        for (path, map) in &self.maps {
            map.write(path).map_err(at(path))?;
        }
        Ok(Taken {
            bytes: pieces.iter().map(|piece| piece.length).sum(),
            pieces: pieces.len(),
            found_in,
        })
    }

    /// Adds the private pages of a process to the work.
    fn process(&mut self, images: &Path, pid: u32, bounds: Bounds<'_>) -> io::Result<()> {
        let areas = memory::areas(images, pid)?;
        let path = images.join(format!("pagemap-{pid}.img"));
        let private = || areas.iter().filter(|area| area.kind == Kind::Private);
        let map = PageMap::read(&path).map_err(at(&path))?;
        let is_copied = |area: &Area| {
            let (from, to) = (area.addresses.start, area.addresses.end);
            map.runs
                .iter()
                .any(|run| run.address < to && run.end() > from)
        };
        if private().any(is_copied) {
            return Ok(());
        }
        let of_process = self.source(Source::Process(pid));
        let mut by_file = None;
        let pagemap = PathBuf::from(format!("/proc/{pid}/pagemap"));
        let file = File::open(&pagemap).map_err(at(&pagemap))?;
        let guards: Vec<Range<u64>> = (areas.iter())
            .filter(|area| area.kind == Kind::Guard)
            .map(|area| area.addresses.clone())
            .collect();
        let mut parts = Vec::new();
        for area in private() {
            let source = if area.readable {
                of_process
            } else if let Some(source) = by_file {
                source
            } else {
                let memory = PathBuf::from(format!("/proc/{pid}/mem"));
                let memory = File::open(&memory).map_err(at(&memory))?;
                *by_file.insert(self.source(Source::Memory(memory)))
            };
            let of_area = without(&area.addresses, &guards).into_iter();
            parts.extend(of_area.map(|part| (part, source)));
        }
        // The kernel looks through the page tables of each.
        let runs = copy::each(&parts, SHARE, |(part, _)| {
            kernel::pages(&file, part.clone())
        });
        let runs = runs.map_err(at(&pagemap))?;
        let mut content = Vec::new();
        for (runs, (_, source)) in runs.into_iter().zip(&parts) {
            content.extend(runs.into_iter().map(|run| Content {
                run,
                source: *source,
                from: run.address,
            }));
        }
        self.add(images, path, map, content, bounds)
    }

    /// Memory that processes share, and where it lies.
    fn shared(
        &mut self,
        images: &Path,
        number: u32,
        place: Option<&Path>,
        bounds: Bounds<'_>,
    ) -> io::Result<()> {
        let path = images.join(format!("pagemap-shmem-{number}.img"));
        let map = PageMap::read(&path).map_err(at(&path))?;
        // CRIU copied it: the library had no effect.
        if !map.runs.is_empty() {
            return Ok(());
        }
        let place = place.ok_or_else(|| {
            let text = "no process of the job's has this shared memory, which may be on its way through a socket: CRIU copies it at \
                        the next checkpoint";
            at(&path)(io::Error::other(text))
        })?;
        let file = File::open(place).map_err(at(place))?;
        let length = file.metadata().map_err(at(place))?.len();
        let data = kernel::data(&file, length.next_multiple_of(PAGE)).map_err(at(place))?;
        let source = self.source(Source::Shared(file));
        let content = data.into_iter().map(|data| Content {
            run: Run {
                address: data.start,
                pages: (data.end - data.start) / PAGE,
            },
            source,
            from: data.start,
        });
        self.add(images, path, map, content.collect(), bounds)
    }

    /// Content, and what CRIU copied beside it, in the order of their addresses.
    fn add(
        &mut self,
        images: &Path,
        path: PathBuf,
        map: PageMap,
        mut content: Vec<Content>,
        bounds: Bounds<'_>,
    ) -> io::Result<()> {
        if content.is_empty() {
            return Ok(());
        }
        let pages = map.pages_path(images);
        if !map.runs.is_empty() {
            // It keeps what is in it without a name.
            let copied = File::open(&pages).map_err(at(&pages))?;
            std::fs::remove_file(&pages).map_err(at(&pages))?;
            let source = self.source(Source::Copied(copied));
            let mut from = 0;
            for &run in &map.runs {
                content.push(Content { run, source, from });
                from += run.bytes();
            }
        }
        content.sort_unstable_by_key(|content| content.run.address);
        let Placed {
            runs,
            pieces,
            length,
        } = lay_out(&content, self.targets.len());
        let target = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&pages)
            .and_then(|file| Target::new(file, length, &|| bounds.check()))
            .map_err(at(&pages))?;
        self.targets.push(target);
        self.pieces.extend(pieces);
        let file = map.file;
        self.maps.push((path, PageMap { file, runs }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_known_by_its_line() {
        let device = rustix::fs::makedev(0, 1);
        let line = |rest: &str| {
            let line = format!("7fa7437f7000-7fa743ff7000 rw-s 00000000 {rest}");
            let mapping = proc::mappings_in(line.as_bytes()).next();
            mapped(7, &mapping.unwrap(), device)
        };
        let found = |inode| {
            let place = PathBuf::from("/proc/7/map_files/7fa7437f7000-7fa743ff7000");
            Some((inode, place))
        };
        assert_eq!(
            line("00:01 1522                   /dev/zero (deleted)"),
            found(1522)
        );
        assert_eq!(line("00:01 9 /memfd:a b (deleted)"), found(9));
        // Of an image that was restored.
        assert_eq!(line("00:01 9 /anything"), found(9));
        assert_eq!(line("00:01 5 /SYSV00000000 (deleted)"), None);
        assert_eq!(line("00:1a 9 /dev/shm/torch_9"), None);
        assert_eq!(line("fe:00 9 /memfd:x (deleted)"), None);
        assert_eq!(line("00:01 0 "), None);
    }

    fn work(
        images: &Path,
        number: u32,
        place: Option<&Path>,
    ) -> io::Result<Vec<(PathBuf, PageMap)>> {
        let mut work = Work::default();
        let not = AtomicBool::new(false);
        let bounds = Bounds {
            until: Instant::now() + Duration::from_secs(60),
            cancelled: &not,
            over: &not,
        };
        work.shared(images, number, place, bounds)?;
        Ok(work.maps)
    }

    #[test]
    fn shared_memory_that_was_left_and_cannot_be_found_is_an_error() {
        let images = tempfile::tempdir().unwrap();
        let path = images.path().join("pagemap-shmem-9.img");
        let mut map = PageMap {
            file: 4,
            runs: Vec::new(),
        };
        map.write(&path).unwrap();
        assert_eq!(shared(images.path()).unwrap(), [9]);
        let error = work(images.path(), 9, None).unwrap_err().to_string();
        assert!(error.contains("no process of the job's"), "{error}");
        // Where it is, what it has is found.
        let memory = images.path().join("memory");
        std::fs::write(&memory, vec![7; 5000]).unwrap();
        let maps = work(images.path(), 9, Some(&memory)).unwrap();
        let run = |address, pages| Run { address, pages };
        assert_eq!(maps[0].1.runs, [run(0, 2)]);
        // What CRIU copied is CRIU's.
        map.runs.push(run(PAGE, 1));
        map.write(&path).unwrap();
        assert_eq!(work(images.path(), 9, None).unwrap(), []);
    }

    #[test]
    fn a_memfd_of_this_process_is_found() {
        let own = rustix::fs::memfd_create("of a test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let inode = rustix::fs::fstat(&own).unwrap().st_ino as u32;
        let places = places(&[std::process::id()]).unwrap();
        assert!(places.contains_key(&inode), "{places:?}");
    }
}
