//! Copies the memory of processes that CRIU has left, while it describes the next ones.
//!
//! CRIU describes one process after another, with one thread: 60 ms for a rank of PyTorch and 25 ms for each of its workers. It closes a process's
//! `mm-PID.img` when its own code is out of that process for good (`dump_one_task` of its `cr-dump.c`: `compel_cure`, `dump_task_mm`, `close_cr_imgset`), and
//! has closed what it wrote about the process's pages by then. inotify says so.
//!
//! # Rules
//!
//! * A name that was not seen is no loss: [`super::remaining`] copies what is not done.
//! * What fails here fails the dump when CRIU is done with the rest, and CRIU's own failure comes first.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::AtomicBool;
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

/// The thread that copies beside CRIU. It ends when this is dropped, after what CRIU has left until then.
#[derive(Debug)]
pub(super) struct Follower<'scope> {
    thread: ScopedJoinHandle<'scope, io::Result<Early>>,
    /// Closed, it tells the thread that there will be nothing more for it.
    end: OwnedFd,
}

impl<'scope> Follower<'scope> {
    /// Begins to follow CRIU, which has not begun to write into the image's directory.
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
        let thread = Builder::new()
            .name("phos-early".into())
            .spawn_scoped(scope, move || follow(order, &left, &ended, over))?;
        Ok(Self { thread, end })
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
) -> io::Result<Early> {
    let mut early = Early::default();
    let mut bounds = None;
    while left.wait(ended.as_fd())? {
        let mut pids = left.processes()?;
        // Of others it is said at the end that they are not the job's.
        pids.retain(|pid| order.processes.contains(pid) && !early.processes.contains(pid));
        if pids.is_empty() {
            continue;
        }
        // Until then CRIU waits for the driver, or for the tree to stand still.
        let bounds = *bounds.get_or_insert_with(|| Bounds::from_now_on(order, over));
        early.taken = early.taken.and(of_processes(order, &pids, bounds)?);
        early.processes.extend(pids);
    }
    Ok(early)
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

    /// Waits until files were closed; false: none was, and `ended` was on its other side.
    fn wait(&self, ended: BorrowedFd<'_>) -> io::Result<bool> {
        let mut fds = [
            PollFd::new(&self.inotify, PollFlags::IN),
            PollFd::from_borrowed_fd(ended, PollFlags::IN),
        ];
        loop {
            match poll(&mut fds, None) {
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
                Ok(_) => return Ok(fds.first().is_some_and(|files| !files.revents().is_empty())),
            }
        }
    }

    /// Those that CRIU has left since the last call.
    fn processes(&self) -> io::Result<Vec<u32>> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut found = Vec::new();
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
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::super::beside;
    use super::*;

    #[test]
    fn a_process_is_left_when_its_areas_are_closed() {
        let images = tempfile::tempdir().unwrap();
        let left = Left::watch(images.path()).unwrap();
        let (ended, end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let mut open = File::create(images.path().join("mm-7.img")).unwrap();
        open.write_all(b"areas").unwrap();
        for name in ["mm-12.img", "core-12.img", "mm-x.img", "pagemap-13.img"] {
            File::create(images.path().join(name)).unwrap();
        }
        assert!(left.wait(ended.as_fd()).unwrap());
        assert_eq!(left.processes().unwrap(), [12]);
        assert!(left.processes().unwrap().is_empty());
        drop(open);
        assert!(left.wait(ended.as_fd()).unwrap());
        assert_eq!(left.processes().unwrap(), [7]);
        // What was closed before the end is not forgotten.
        File::create(images.path().join("mm-9.img")).unwrap();
        drop(end);
        assert!(left.wait(ended.as_fd()).unwrap());
        assert_eq!(left.processes().unwrap(), [9]);
        assert!(!left.wait(ended.as_fd()).unwrap());
    }

    fn order<'a>(images: &'a Path, processes: &'a [u32], cancelled: &'a AtomicBool) -> Order<'a> {
        Order {
            images,
            processes,
            patience: Duration::from_secs(60),
            cancelled,
        }
    }

    #[test]
    fn what_fails_beside_criu_is_said_at_the_end_and_without_criu_nothing_is_waited_for() {
        let images = tempfile::tempdir().unwrap();
        let not = AtomicBool::new(false);
        let processes = [7];
        let order = order(images.path(), &processes, &not);
        // Not the job's: it is left to the end, which says so.
        let error = beside(&order, |rest| {
            std::fs::write(images.path().join("mm-8.img"), b"nothing").unwrap();
            rest().unwrap_err().to_string()
        });
        assert!(error.contains("a process 8"), "{error}");
        std::fs::remove_file(images.path().join("mm-8.img")).unwrap();
        let error = beside(&order, |rest| {
            std::fs::write(images.path().join("mm-7.img"), b"nothing").unwrap();
            rest().unwrap_err()
        });
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        // CRIU fails, and nobody asks for the rest.
        assert_eq!(beside(&order, |_| 5), 5);
        assert!(!not.load(Ordering::Acquire));
    }
}
