//! Copies pieces with as many threads as there are cores.
//!
//! What a thread fills lies in a window, which it maps for itself. The kernel lets no thread of a process take a page while another one maps or
//! unmaps anything, and a page that is taken has to be cleared first. So there are few windows, and large ones: with windows of 16 MiB, 16 cores and 64
//! copied 14 to 15 GB/s, as if they took turns.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::kernel::{Target, Window};
use super::layout::{PIECE, Piece};

/// The place that content is read from.
#[derive(Debug)]
pub(super) enum Source {
    /// The memory of a process that may read it itself.
    Process(u32),
    /// The memory of a process that may not read it itself (`/proc/PID/mem`).
    Memory(File),
    /// Shared memory. Its last page need not be a whole one.
    Shared(File),
    /// What CRIU copied: the file that it wrote.
    Copied(File),
}

/// The most pieces that are read in one call.
const TOGETHER: usize = 128;

/// Bytes of a target that are filled at once by one thread, at least and at most: multiples of [`PIECE`], and of a huge page. What is mapped counts
/// as memory of the agent's.
const WINDOW: std::ops::RangeInclusive<u64> = 16 << 20..=128 << 20;

/// As many windows there are to be, if that makes them neither smaller nor larger.
const WINDOWS: u64 = 32;

/// The size of windows for so many bytes.
fn window_for(bytes: u64) -> u64 {
    let size = (bytes / WINDOWS).clamp(*WINDOW.start(), *WINDOW.end());
    size.next_multiple_of(HUGE)
}

/// A huge page.
const HUGE: u64 = 2 << 20;

/// Pieces that follow each other in one target and come from one source, as many as are read at once.
fn batches(pieces: &[Piece]) -> Vec<&[Piece]> {
    let mut found = Vec::new();
    let mut rest = pieces;
    while let Some(first) = rest.first() {
        let mut bytes = 0;
        let belongs = |piece: &&Piece| {
            let follows = piece.source == first.source
                && piece.target == first.target
                && piece.at == first.at + bytes
                && piece.at / PIECE == first.at / PIECE;
            bytes += piece.length;
            follows && bytes <= PIECE
        };
        let count = rest.iter().take(TOGETHER).take_while(belongs).count();
        let (batch, after) = rest.split_at(count.max(1));
        found.push(batch);
        rest = after;
    }
    found
}

/// Batches that lie in one window, of so many bytes, of one target.
fn windows<'a>(batches: &'a [&'a [Piece]], size: u64) -> Vec<&'a [&'a [Piece]]> {
    let place = |batch: &&[Piece]| batch.first().map(|first| (first.target, first.at / size));
    batches
        .chunk_by(|one, next| place(one) == place(next))
        .collect()
}

/// Copies all of them, as long as it may.
///
/// # Errors
/// The first piece that could not be read or written; the error that `may_go_on` returns.
pub(super) fn copy(
    sources: &[Source],
    targets: &[Target],
    pieces: &[Piece],
    may_go_on: &(dyn Fn() -> io::Result<()> + Sync),
) -> io::Result<()> {
    let batches = batches(pieces);
    let bytes = pieces.iter().map(|piece| piece.length).sum();
    let windows = windows(&batches, window_for(bytes));
    each(&windows, 1, |window| {
        copy_window(sources, targets, window, may_go_on)
    })?;
    Ok(())
}

/// Does something with each of these, with as many threads as there are cores and no more than one for so many of them (`share`); what came of
/// it, in the same order.
///
/// # Errors
/// The first that there was. What was not begun by then is not done.
pub(super) fn each<T: Sync, R: Send>(
    all: &[T],
    share: usize,
    work: impl Fn(&T) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let done = Mutex::new(Vec::with_capacity(all.len()));
    let turn = || {
        let mut mine = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(index) else { break };
            match work(one) {
                Ok(found) => mine.push((index, found)),
                Err(e) => {
                    failed
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(e);
                    // The others find nothing more to do.
                    next.store(all.len(), Ordering::Relaxed);
                }
            }
        }
        done.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut mine);
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..cores.min(all.len().div_ceil(share)) {
            let thread = thread::Builder::new().name("phos-pages".into());
            // With fewer it takes longer.
            if thread.spawn_scoped(scope, turn).is_err() {
                break;
            }
        }
        turn();
    });
    if let Some(e) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(e);
    }
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, found)| found).collect())
}

fn missing() -> io::Error {
    io::Error::other("a piece without a place")
}

fn copy_window(
    sources: &[Source],
    targets: &[Target],
    batches: &[&[Piece]],
    may_go_on: &(dyn Fn() -> io::Result<()> + Sync),
) -> io::Result<()> {
    let all = || batches.iter().copied().flatten();
    let first = all().next().ok_or_else(missing)?;
    let length = all().map(|piece| piece.length).sum();
    let target = targets.get(first.target).ok_or_else(missing)?;
    let window = target.window(first.at, length)?;
    for batch in batches {
        may_go_on()?;
        copy_batch(sources, &window, batch)?;
    }
    window.finish()
}

fn copy_batch(sources: &[Source], window: &Window<'_>, batch: &[Piece]) -> io::Result<()> {
    let first = batch.first().ok_or_else(missing)?;
    let source = sources.get(first.source).ok_or_else(missing)?;
    if let Source::Process(pid) = source {
        let parts: Vec<(u64, u64)> = (batch.iter())
            .map(|piece| (piece.from, piece.length))
            .collect();
        return window.copy_memory(*pid, &parts, first.at).map_err(|e| {
            let text = format!("memory of process {pid} at {:#x}: {e}", first.from);
            io::Error::new(e.kind(), text)
        });
    }
    for &Piece {
        from, at, length, ..
    } in batch
    {
        let (file, must_be_whole) = match source {
            Source::Memory(file) | Source::Copied(file) => (file, true),
            // What is beyond its end is zeros, as in a new file.
            Source::Shared(file) => (file, false),
            Source::Process(_) => return Err(missing()),
        };
        let copied = window.copy_file(file, from, length, at)?;
        if must_be_whole && copied != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    const PAGE: usize = 4096;

    fn target(pages: usize) -> (File, Target) {
        let file = tempfile::tempfile().unwrap();
        let copy = file.try_clone().unwrap();
        let target = Target::new(copy, (pages * PAGE) as u64, &|| Ok(())).unwrap();
        (file, target)
    }

    #[test]
    fn pieces_are_read_from_where_they_lie() {
        let own: Vec<u8> = (0..64 * PAGE).map(|n| (n / 7) as u8).collect();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&own, 0).unwrap();
        let sources = [
            Source::Process(std::process::id()),
            Source::Shared(file.try_clone().unwrap()),
            Source::Copied(file),
        ];
        let mut want = Vec::new();
        let mut pieces = Vec::new();
        for n in 0..300_usize {
            let (source, at) = (n / 10 % 3, n * 31 % 60 * PAGE);
            let length = (n % 4 + 1) * PAGE;
            let base = if source == 0 { own.as_ptr().addr() } else { 0 };
            pieces.push(Piece {
                source,
                from: (base + at) as u64,
                target: 0,
                at: want.len() as u64,
                length: length as u64,
            });
            want.extend_from_slice(&own[at..at + length]);
        }
        let (file, target) = target(want.len() / PAGE);
        copy(&sources, &[target], &pieces, &|| Ok(())).unwrap();
        let mut got = vec![0; want.len()];
        file.read_exact_at(&mut got, 0).unwrap();
        assert!(got == want);
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let (_, target) = target(1);
        let piece = Piece {
            source: 0,
            from: 0x1000,
            target: 0,
            at: 0,
            length: PAGE as u64,
        };
        let sources = [Source::Process(std::process::id())];
        let targets = [target];
        let error = |may_go_on: &(dyn Fn() -> io::Result<()> + Sync)| {
            copy(&sources, &targets, &[piece], may_go_on)
                .unwrap_err()
                .to_string()
        };
        let text = error(&|| Ok(()));
        assert!(text.contains("at 0x1000"), "{text}");
        assert_eq!(error(&|| Err(io::Error::other("late"))), "late");
    }

    #[test]
    fn a_file_that_ends_within_a_page_ends_in_zeros() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 5000], 0).unwrap();
        let (filled, target) = target(2);
        let piece = |at: u64| Piece {
            source: 0,
            from: at,
            target: 0,
            at,
            length: PAGE as u64,
        };
        let pieces = [piece(0), piece(PAGE as u64)];
        let sources = [Source::Shared(file)];
        copy(&sources, &[target], &pieces, &|| Ok(())).unwrap();
        let mut got = vec![1; 2 * PAGE];
        filled.read_exact_at(&mut got, 0).unwrap();
        assert!(
            got[..5000].iter().all(|&byte| byte == 7) && got[5000..].iter().all(|&byte| byte == 0)
        );
    }

    #[test]
    fn windows_are_few_and_neither_small_nor_large() {
        let mib = |n: u64| n << 20;
        for (bytes, window) in [
            (0, 16),
            (mib(100), 16),
            (mib(3440), 108),
            (mib(6580), 128),
            (mib(100_000), 128),
        ] {
            assert_eq!(window_for(bytes), mib(window), "{bytes}");
        }
        let batch = |at: u64| Piece {
            source: 0,
            from: at,
            target: 0,
            at,
            length: PIECE,
        };
        let pieces: Vec<Piece> = (0..100).map(|n| batch(n * PIECE)).collect();
        let batches = batches(&pieces);
        let counts: Vec<usize> = (windows(&batches, mib(32)).iter())
            .map(|window| window.len())
            .collect();
        assert_eq!(counts, [32, 32, 32, 4]);
    }

    #[test]
    fn each_is_done_once_and_in_order_until_one_fails() {
        let all: Vec<u32> = (0..1000).collect();
        assert_eq!(each(&all, 1, |n| Ok(n * 2)).unwrap()[999], 1998);
        assert_eq!(each(&all, 300, |n| Ok(*n)).unwrap(), all);
        assert!(each(&[], 1, |n: &u32| Ok(*n)).unwrap().is_empty());
        let error = each(&all, 1, |n| match n {
            500 => Err(io::Error::other("no")),
            n => Ok(*n),
        });
        assert_eq!(error.unwrap_err().to_string(), "no");
    }

    #[test]
    fn small_pieces_go_together_and_large_ones_alone() {
        let piece = |source, at, length| Piece {
            source,
            from: at,
            target: 0,
            at,
            length,
        };
        let pieces = [
            piece(0, 0, 10),
            piece(0, 10, 10),
            piece(1, 20, 10),
            piece(1, 30, PIECE),
            piece(1, 40 + PIECE, 10),
        ];
        let counts: Vec<usize> = batches(&pieces).iter().map(|batch| batch.len()).collect();
        assert_eq!(counts, [2, 1, 1, 1]);
    }
}
