//! The sidecar's own socket, and what it tells there.

pub mod socket;
pub mod status;
