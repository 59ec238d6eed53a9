//! The sidecar's own socket, and what is said on it.

pub mod messages;
pub mod socket;
