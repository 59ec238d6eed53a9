//! The tests of the store, in one program: each of these modules was a program of its own, and linking them took longer than
//! running them.

#![allow(
    clippy::too_many_lines,
    clippy::fn_params_excessive_bools,
    reason = "tests, which read from top to bottom"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod absence;
mod addresses;
mod branches;
mod caches;
mod clouds;
mod collection;
mod common;
mod conformance;
mod copying;
mod encryption;
mod faults;
mod formats;
mod holders;
mod increments;
mod kills;
mod order;
mod quarantine;
mod readers;
mod rules;
mod s3;
mod simulation;
