//! What the ranks of a communicator share: a file in /dev/shm that each of them maps.
//!
//! ```text
//! 0       counters, 8 bytes each, for up to 16 ranks:
//!           joined, left
//!           arrived[16], departed[16]     collectives that a rank has brought its part of, and is done with
//!           split[16], choice[16]         the number of the split that a rank has chosen for, and its choice
//!           sent[16][16], posted[16][16], received[16][16]
//!                                         messages that lie in the receiver's memory, that it waits for, that it has taken
//!           port[16]                      of each rank's end of the ring
//!           written                       collectives whose results the first rank has written to the multicast object
//! 64 KiB  part[2][16]                     of every second collective, 64 KiB for each rank
//! ```

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::mm::{MapFlags, ProtFlags};

/// Ranks at most.
pub const RANKS: usize = 16;
/// Bytes of one operation at most.
pub const MAX_BYTES: usize = 64 << 10;
const COUNTERS: usize = 64 << 10;
const PARTS: usize = 2 * RANKS * MAX_BYTES;
const SIZE: usize = COUNTERS + PARTS;

/// How long ranks wait for each other to join.
const JOIN: Duration = Duration::from_secs(120);
/// How long a rank sleeps between two looks: this at first. After [`SOON`] looks it has to do with a rank that is far behind, or held, and
/// looks less often each time, so that those who wait leave the processors to those they wait for.
const LOOK: Duration = Duration::from_micros(50);
const SOON: u32 = 20;
const LATE: Duration = Duration::from_millis(2);

/// Looks again and again.
#[derive(Debug, Default)]
pub struct Looks(u32);

impl Looks {
    /// Sleeps until the next look.
    pub fn sleep(&mut self) {
        let pause = LOOK * 2_u32.pow(self.0.saturating_sub(SOON).min(6));
        std::thread::sleep(pause.min(LATE));
        self.0 += 1;
    }
}

const JOINED: usize = 0;
const LEFT: usize = 1;
const ARRIVED: usize = 2;
const DEPARTED: usize = ARRIVED + RANKS;
const SPLIT: usize = DEPARTED + RANKS;
const CHOICE: usize = SPLIT + RANKS;
const SENT: usize = CHOICE + RANKS;
const POSTED: usize = SENT + RANKS * RANKS;
const RECEIVED: usize = POSTED + RANKS * RANKS;
const PORT: usize = RECEIVED + RANKS * RANKS;
const WRITTEN: usize = PORT + RANKS;

/// The file, as one rank has it mapped.
#[derive(Debug)]
pub struct Shared {
    at: *mut c_void,
    /// The name of the communicator.
    pub name: String,
    /// This rank.
    pub rank: u32,
    /// How many there are.
    pub ranks: u32,
}

// SAFETY: the mapping lives as long as this; counters are atomic, and the bytes are a rank's own while the counters say so.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

fn path(name: &str) -> PathBuf {
    PathBuf::from(format!("/dev/shm/phos-nccl-sim-{name}"))
}

impl Shared {
    /// Joins the ranks, of whose ring this one has that port, and waits for all of them.
    ///
    /// # Errors
    /// When the file cannot be had, or somebody does not come.
    pub fn join(name: &str, rank: u32, ranks: u32, port: u16) -> io::Result<Self> {
        if ranks as usize > RANKS {
            return Err(io::Error::other("too many ranks"));
        }
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path(name))?;
        file.set_len(SIZE as u64)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping of a file that is as long.
        let at = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                SIZE,
                access,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )?
        };
        let shared = Self {
            at,
            name: name.to_owned(),
            rank,
            ranks,
        };
        shared
            .counter(PORT + rank as usize)
            .store(port.into(), Ordering::SeqCst);
        shared.counter(JOINED).fetch_add(1, Ordering::SeqCst);
        let begun = Instant::now();
        let mut looks = Looks::default();
        while shared.counter(JOINED).load(Ordering::SeqCst) < u64::from(ranks) {
            if begun.elapsed() > JOIN {
                return Err(io::Error::other("not all ranks joined"));
            }
            looks.sleep();
        }
        Ok(shared)
    }

    /// Leaves; the last one removes the file.
    pub fn leave(&self) {
        if self.counter(LEFT).fetch_add(1, Ordering::SeqCst) + 1 == u64::from(self.ranks) {
            // It may be gone already.
            let _ = std::fs::remove_file(path(&self.name));
        }
    }

    fn counter(&self, index: usize) -> &AtomicU64 {
        assert!((index + 1) * 8 <= COUNTERS, "a counter behind the others");
        // SAFETY: inside the mapping, aligned, and only ever used as this.
        unsafe { &*self.at.cast::<AtomicU64>().add(index) }
    }

    /// Tells the others what this rank chooses at this split; what all choose.
    pub fn exchange(&self, number: u64, color: i32, key: i32) -> Vec<(i32, i32)> {
        let choice = u64::from(color.cast_unsigned()) << 32 | u64::from(key.cast_unsigned());
        let me = self.rank as usize;
        self.counter(CHOICE + me).store(choice, Ordering::SeqCst);
        self.counter(SPLIT + me)
            .store(2 * number - 1, Ordering::SeqCst);
        let wait = |until| {
            let mut looks = Looks::default();
            let is_there = |rank| self.counter(SPLIT + rank).load(Ordering::SeqCst) >= until;
            while !(0..self.ranks as usize).all(is_there) {
                looks.sleep();
            }
        };
        wait(2 * number - 1);
        let read = |rank| {
            let choice = self.counter(CHOICE + rank).load(Ordering::SeqCst);
            (
                ((choice >> 32) as u32).cast_signed(),
                (choice as u32).cast_signed(),
            )
        };
        let all = (0..self.ranks as usize).map(read).collect();
        // Nobody chooses again before everybody has read.
        self.counter(SPLIT + me).store(2 * number, Ordering::SeqCst);
        wait(2 * number);
        all
    }

    /// Collectives that a rank has brought its part of.
    pub fn arrived(&self, rank: u32) -> &AtomicU64 {
        self.counter(ARRIVED + rank as usize)
    }

    /// Collectives that a rank is done with.
    pub fn departed(&self, rank: u32) -> &AtomicU64 {
        self.counter(DEPARTED + rank as usize)
    }

    /// Collectives whose results are written for all ranks.
    pub fn written(&self) -> &AtomicU64 {
        self.counter(WRITTEN)
    }

    /// The port of a rank's end of the ring.
    pub fn port(&self, rank: u32) -> u16 {
        self.counter(PORT + rank as usize).load(Ordering::SeqCst) as u16
    }

    /// Messages that a rank waits for, or has taken.
    pub fn posted(&self, from: u32, to: u32) -> &AtomicU64 {
        self.counter(POSTED + from as usize * RANKS + to as usize)
    }

    /// Messages that one rank has put in place for another.
    pub fn sent(&self, from: u32, to: u32) -> &AtomicU64 {
        self.counter(SENT + from as usize * RANKS + to as usize)
    }

    /// Those that the other has taken.
    pub fn received(&self, from: u32, to: u32) -> &AtomicU64 {
        self.counter(RECEIVED + from as usize * RANKS + to as usize)
    }

    /// Where a rank's part of a collective is.
    pub fn part(&self, collective: u64, rank: u32) -> *mut u8 {
        let index = (collective % 2) as usize * RANKS + rank as usize;
        self.at
            .cast::<u8>()
            .wrapping_add(COUNTERS + index * MAX_BYTES)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping that was made in `join`; no reference into it outlives this.
        let _ = unsafe { rustix::mm::munmap(self.at, SIZE) };
    }
}
