//! Lines on standard error, silent unless something is wrong.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};

/// How much is written to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Off,
    Error,
    Info,
    Debug,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Error as u8);

/// Sets the level by its name in [`phos_protocol::env::SHIM_LOG`]; unknown names change nothing.
pub fn configure(name: &str) {
    let level = match name {
        "off" => Level::Off,
        "error" => Level::Error,
        "info" => Level::Info,
        "debug" => Level::Debug,
        _ => return,
    };
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether lines of this level are written.
pub fn enabled(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// Writes one line; use the macros.
pub fn write(arguments: Arguments<'_>) {
    let line = format!("phos-shim[{}]: {arguments}\n", std::process::id());
    // One write, so that lines of several processes do not mix. Nothing can be done if it fails.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

macro_rules! error {
    ($($argument:tt)*) => {
        if $crate::log::enabled($crate::log::Level::Error) { $crate::log::write(format_args!($($argument)*)) }
    };
}
macro_rules! info {
    ($($argument:tt)*) => {
        if $crate::log::enabled($crate::log::Level::Info) { $crate::log::write(format_args!($($argument)*)) }
    };
}
macro_rules! debug {
    ($($argument:tt)*) => {
        if $crate::log::enabled($crate::log::Level::Debug) { $crate::log::write(format_args!($($argument)*)) }
    };
}
pub(crate) use {debug, error, info};
