//! What only the operating system knows: the time, for people; random numbers; the machine's name.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use phos_storage::UnixMillis;

/// A number from the operating system.
pub(crate) fn random_u64() -> u64 {
    let mut bytes = [0_u8; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            // Linux has had getrandom since 3.17, and flags 0 cannot fail.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    u64::from_le_bytes(bytes)
}

/// The wall-clock time, in ms since 1970 UTC.
pub fn unix_millis() -> UnixMillis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A time for people, of ms since 1970.
pub(super) fn utc(millis: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(millis)).to_string()
}

/// The host name of this machine.
pub(super) fn hostname() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
