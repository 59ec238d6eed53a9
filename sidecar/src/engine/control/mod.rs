//! The sidecar's own socket.

pub mod socket;
