//! Copies the memory of processes that CRIU has left, while it describes the next ones.
//!
//! CRIU describes one process after another, with one thread: 60 ms for a rank of PyTorch and 25 ms for each of its workers. It closes a process's
//! `mm-PID.img` when its own code is out of that process for good (`dump_one_task` of its `cr-dump.c`: `compel_cure`, `dump_task_mm`, `close_cr_imgset`), and
//! has closed what it wrote about the process's pages by then. inotify says so.
//!
//! # Rules
//!
//! * A name that was not seen is no loss: [`super::remaining`] copies what is not done. Neither is a watch that fails.
//! * A copy that fails here fails the dump when CRIU is done with the rest.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::{Bounds, Order, Taken, of_processes};
use crate::criu::memory;

/// What was copied while CRIU was at work.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// The processes of which all private memory is copied.
    pub(super) processes: BTreeSet<u32>,
    pub(super) taken: Taken,
}

/// The thread that copies while CRIU is at work. It ends when this is dropped, after what CRIU has left until then.
#[derive(Debug)]
pub(super) struct Follower<'scope> {
    thread: ScopedJoinHandle<'scope, io::Result<Early>>,
    /// Closed, it tells the thread that there will be nothing more for it.
    end: OwnedFd,
    copied: Arc<AtomicU64>,
}

impl<'scope> Follower<'scope> {
    /// Begins to follow CRIU, which has not begun with any process.
    ///
    /// # Errors
    /// The kernel has no watch or no thread to give.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        order: &'env Order<'env>,
        over: &'env AtomicBool,
    ) -> io::Result<Self> {
        let left = Left::watch(order.images)?;
        let (ended, end) = pipe_with(PipeFlags::CLOEXEC)?;
        let copied = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&copied);
        let thread = Builder::new()
            .name("phos-early".into())
            .spawn_scoped(scope, move || follow(order, &left, &ended, over, &count))?;
        Ok(Self {
            thread,
            end,
            copied,
        })
    }

    /// Bytes that are copied so far.
    pub(super) fn copied(&self) -> u64 {
        self.copied.load(Ordering::Acquire)
    }

    /// Waits until all is copied that CRIU has left.
    ///
    /// # Errors
    /// What could not be read or written.
    pub(super) fn finish(self) -> io::Result<Early> {
        drop(self.end);
        self.thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that copies memory ended")))
    }
}

fn follow(
    order: &Order<'_>,
    left: &Left,
    ended: &OwnedFd,
    over: &AtomicBool,
    copied: &AtomicU64,
) -> io::Result<Early> {
    let mut early = Early::default();
    loop {
        let mut pids = match left.next(ended.as_fd()) {
            Ok(Some(pids)) => pids,
            Ok(None) => return Ok(early),
            Err(e) => {
                tracing::debug!(cause = %e, "the rest of the memory is copied when CRIU is done");
                return Ok(early);
            }
        };
        // Of others it is said at the end that they are not the job's.
        pids.retain(|pid| order.processes.contains(pid) && !early.processes.contains(pid));
        if pids.is_empty() {
            continue;
        }
        // What lies between two of them is CRIU's time.
        let bounds = Bounds::from_now_on(order, over);
        early.taken = early.taken.and(of_processes(order, &pids, bounds)?);
        early.processes.extend(pids);
        copied.store(early.taken.bytes, Ordering::Release);
    }
}

/// The processes that CRIU leaves, one after another.
#[derive(Debug)]
struct Left {
    inotify: OwnedFd,
}

impl Left {
    /// Of the image in this directory.
    fn watch(images: &Path) -> io::Result<Left> {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        add_watch(&inotify, images, WatchFlags::CLOSE_WRITE)?;
        Ok(Left { inotify })
    }

    /// Waits for processes that CRIU has left since the last call. `None`: there are none, and `ended` was, on its other side.
    fn next(&self, ended: BorrowedFd<'_>) -> io::Result<Option<BTreeSet<u32>>> {
        let mut fds = [
            PollFd::new(&self.inotify, PollFlags::IN),
            PollFd::from_borrowed_fd(ended, PollFlags::IN),
        ];
        while let Err(e) = poll(&mut fds, None) {
            if e != Errno::INTR {
                return Err(e.into());
            }
        }
        let has_files = (fds.first()).is_some_and(|files| !files.revents().is_empty());
        has_files.then(|| self.processes()).transpose()
    }

    fn processes(&self) -> io::Result<BTreeSet<u32>> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut found = BTreeSet::new();
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_bytes());
                    found.extend(name.and_then(memory::process_of));
                }
                Err(Errno::AGAIN) => return Ok(found),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::time::{Duration, Instant};

    use super::super::{copying, is_full};
    use super::*;
    use crate::criu::memory::{PAGE, PageMap, Run};
    use crate::image::{ImageDirectory, Pages};

    #[test]
    fn a_process_is_left_when_its_areas_are_closed() {
        let images = tempfile::tempdir().unwrap();
        let left = Left::watch(images.path()).unwrap();
        let (ended, end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let next = || left.next(ended.as_fd()).unwrap();
        let pids = |pids: &[u32]| Some(pids.iter().copied().collect());
        let mut open = File::create(images.path().join("mm-7.img")).unwrap();
        open.write_all(b"areas").unwrap();
        for name in ["mm-12.img", "core-12.img", "mm-x.img", "pagemap-13.img"] {
            File::create(images.path().join(name)).unwrap();
        }
        assert_eq!(next(), pids(&[12]));
        drop(open);
        assert_eq!(next(), pids(&[7]));
        // What was closed before the end is not forgotten.
        File::create(images.path().join("mm-9.img")).unwrap();
        drop(end);
        assert_eq!(next(), pids(&[9]));
        assert_eq!(next(), None);
    }

    fn order<'a>(images: &'a Path, processes: &'a [u32], cancelled: &'a AtomicBool) -> Order<'a> {
        Order {
            images,
            processes,
            patience: Duration::from_secs(60),
            cancelled,
        }
    }

    fn wait(is: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !is() {
            assert!(Instant::now() < until);
            std::thread::yield_now();
        }
    }

    /// What CRIU writes of this process, of which this memory alone is private.
    fn describe(images: &Path, memory: &[u8]) {
        let pid = std::process::id();
        let map = PageMap {
            file: 1,
            runs: Vec::new(),
        };
        map.write(&images.join(format!("pagemap-{pid}.img")))
            .unwrap();
        let start = memory.as_ptr().addr() as u64;
        memory::write_private(images, pid, start..start + memory.len() as u64);
    }

    #[test]
    fn memory_is_copied_while_criu_is_at_work() {
        let images = tempfile::tempdir().unwrap();
        let not = AtomicBool::new(false);
        let processes = [std::process::id()];
        let order = order(images.path(), &processes, &not);
        let memory: Vec<u8> = (0..4 * PAGE).map(|n| (n / 7) as u8).collect();
        // Whole pages of it.
        let first = memory.as_ptr().align_offset(PAGE as usize);
        let memory = &memory[first..][..3 * PAGE as usize];
        let name = images.path().join(format!("pagemap-{}.img", processes[0]));
        let (taken, _) = copying(&order, |copy| {
            copy.follow();
            describe(images.path(), memory);
            wait(|| PageMap::read(&name).is_ok_and(|map| !map.runs.is_empty()));
            copy.finish().unwrap()
        });
        assert_eq!(taken.bytes, 3 * PAGE);
        let run = Run {
            address: memory.as_ptr().addr() as u64,
            pages: 3,
        };
        let map = PageMap::read(&name).unwrap();
        assert_eq!(map.runs, [run]);
        assert!(std::fs::read(map.pages_path(images.path())).unwrap() == memory);
    }

    #[test]
    fn what_fails_early_is_said_at_the_end_and_without_criu_nothing_is_waited_for() {
        let images = tempfile::tempdir().unwrap();
        let not = AtomicBool::new(false);
        let processes = [7];
        let order = order(images.path(), &processes, &not);
        let failed = |name: &str| {
            let name = images.path().join(name);
            let (error, _) = copying(&order, |copy| {
                copy.follow();
                std::fs::write(&name, b"nothing").unwrap();
                copy.finish().unwrap_err()
            });
            std::fs::remove_file(&name).unwrap();
            error
        };
        // Not the job's: it is left to the end, which says so.
        let error = failed("mm-8.img");
        assert!(error.to_string().contains("a process 8"), "{error}");
        let error = failed("mm-7.img");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        // CRIU fails, and nobody asks for the rest.
        let (outcome, copied) = copying(&order, |copy| {
            copy.follow();
            5
        });
        assert_eq!((outcome, copied.is_ok()), (5, true));
    }

    #[test]
    fn an_image_without_space_is_named_though_criu_ended_first() {
        let parent = tempfile::tempdir().unwrap();
        let limit = Some(64 * PAGE);
        let image = ImageDirectory::create(limit, Pages::Small, parent.path()).unwrap();
        let (images, not) = (image.path_of("."), AtomicBool::new(false));
        let processes = [std::process::id()];
        let order = order(&images, &processes, &not);
        let memory = vec![7; 256 * PAGE as usize];
        let first = memory.as_ptr().align_offset(PAGE as usize);
        let ((), copied) = copying(&order, |copy| {
            copy.follow();
            describe(&images, &memory[first..][..255 * PAGE as usize]);
            // The copy has met it, and CRIU ends after that.
            let follower = copy.follower.take().unwrap();
            wait(|| follower.thread.is_finished());
            copy.follower.set(Some(follower));
        });
        assert!(is_full(&copied.unwrap_err()));
    }
}
