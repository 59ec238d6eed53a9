//! Who may connect to the agent, and what keeps the main loop from waiting for them.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`link`] | how a socket is listened at, received from and sent to |
//! | [`shims`] | which processes of the job may connect |
//! | [`sidecar_link`] | that there is one sidecar |
//! | [`lines`] | how much of the log the job's processes may fill |

pub mod lines;
pub mod link;
pub mod shims;
pub mod sidecar_link;
