//! Connects the store's uploads to the policies: how to encode a chunk, and how fast to send.
//!
//! The decisions are pure functions of the policies; their clocks and locks are here.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use phos_policies::encoding::{self, Levels, Shape};
use phos_policies::pace::Pace;
use phos_storage::{Encoding, EncodingPolicy, Pacer, Pressure, Sample};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Encodes as well as link, processors and interval allow.
#[derive(Debug)]
pub struct Adaptive {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    levels: Levels,
    /// When three quarters of the time until the next checkpoint are gone: for half of it, what is stored may have no more of the processors than the job leaves.
    late: Option<Instant>,
}

impl Default for Adaptive {
    fn default() -> Self {
        Adaptive {
            state: Mutex::new(State {
                levels: Levels::default(),
                late: None,
            }),
        }
    }
}

impl Adaptive {
    /// A checkpoint begins; the next one is due after so long.
    pub(in crate::engine) fn checkpoint_begins(&self, interval: Option<Duration>) {
        let mut state = lock(&self.state);
        state.levels.checkpoint_begins();
        state.late = interval.and_then(|interval| Instant::now().checked_add(interval / 4 * 3));
    }
}

impl EncodingPolicy for Adaptive {
    fn choose(&self, sample: &Sample<'_>) -> Encoding {
        let shape = encoding::choose(encoding::Sample {
            bytes: sample.len(),
            plain: sample.plain(),
            planes2: sample.planes2(),
            planes4: sample.planes4(),
        });
        match (shape, lock(&self.state).levels.level(shape)) {
            (Shape::Raw, _) | (_, None) => Encoding::Raw,
            (Shape::Plain, Some(level)) => Encoding::Zstd(level),
            (Shape::Planes2, Some(level)) => Encoding::Planes2(level),
            (Shape::Planes4, Some(level)) => Encoding::Planes4(level),
        }
    }

    fn pack_closed(&self, pressure: Pressure) {
        let mut state = lock(&self.state);
        let late = state.late.is_some_and(|late| Instant::now() > late);
        let before = state.levels.level(Shape::Plain);
        state.levels.pack_closed(encoding::Pressure {
            link_is_full: pressure.link_is_full,
            encoders_are_full: pressure.encoders_are_full,
            late,
        });
        let after = state.levels.level(Shape::Plain);
        if before != after {
            tracing::debug!(?before, ?after, ?pressure, late, "compression level");
        }
    }
}

/// The bound that `--upload-limit` sets on uploads, in bytes per second.
pub(in crate::engine) struct Limit {
    origin: Instant,
    pace: Mutex<Pace>,
    bytes_per_second: u64,
}

impl Limit {
    pub(in crate::engine) fn new(bytes_per_second: u64) -> Arc<Limit> {
        Arc::new(Limit {
            origin: Instant::now(),
            pace: Mutex::new(Pace::new(bytes_per_second)),
            bytes_per_second,
        })
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limit({} bytes/s)", self.bytes_per_second)
    }
}

impl Pacer for Limit {
    fn take(&self, bytes: u64) -> BoxFuture<'_, ()> {
        let wait = lock(&self.pace).take(bytes, self.origin.elapsed());
        Box::pin(tokio::time::sleep(wait))
    }
}
