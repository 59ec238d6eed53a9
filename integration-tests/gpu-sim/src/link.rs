//! The link between a device and the host: with `PHOS_SIM_LINK_MBPS`, a bandwidth that all copies of all processes on
//! the node share.
//!
//! Each device has a file `devN.link` in the node's directory that says when the link is free again. A piece of a copy
//! books its time there and waits for it. Nothing is kept open between pieces. While a file `devN.link-mbps` is there, a number in
//! it stands for the variable, so that a link can get slower under a running job.

use crate::config::Config;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Copies cross the link in pieces of this size.
pub const PIECE: u64 = 1 << 20;
/// A booking further ahead than this comes from another clock (a restore on another node): it does not count.
const TRUSTED: Duration = Duration::from_secs(30);

/// Waits as long as `bytes` take on a device's link.
pub fn cross(config: &Config, index: usize, bytes: u64) {
    let Some(mbps) = config.link_mbps else { return };
    let mbps = changed(config, index).unwrap_or(mbps);
    let cost = Duration::from_secs_f64(bytes as f64 / (mbps * 1e6));
    let until = book(config, index, cost).unwrap_or(cost);
    std::thread::sleep(until);
}

/// What a device's bandwidth was changed to, in 10^6 bytes a second.
fn changed(config: &Config, index: usize) -> Option<f64> {
    let text = std::fs::read_to_string(config.dir.join(format!("dev{index}.link-mbps"))).ok()?;
    text.trim().parse().ok().filter(|rate| *rate > 0.0)
}

/// Books `cost` of the link's time; how long until the booking is over.
fn book(config: &Config, index: usize, cost: Duration) -> Option<Duration> {
    let path = config.dir.join(format!("dev{index}.link"));
    let file = rustix::fs::open(
        path,
        OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC,
        Mode::from_raw_mode(0o666),
    )
    .ok()?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let mut word = [0; 8];
    let booked = match rustix::io::pread(&file, &mut word, 0) {
        Ok(8) => Duration::from_nanos(u64::from_le_bytes(word)),
        _ => now,
    };
    let start = if booked > now + TRUSTED {
        now
    } else {
        booked.max(now)
    };
    let end = start + cost;
    let _ = rustix::io::pwrite(&file, &(end.as_nanos() as u64).to_le_bytes(), 0);
    Some(end - now)
}
