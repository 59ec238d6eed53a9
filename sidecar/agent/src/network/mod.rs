//! What a job's TCP connections need of the machine, and what they leave on it.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`addresses`] | addresses that the job was on and this machine does not have |
//! | [`lingering`] | sockets that outlive a killed tree |
//! | [`netlock`] | what a CRIU that died leaves in the firewall |
//! | [`netlink`] | how the kernel is asked for these |

pub mod addresses;
pub mod lingering;
pub mod netlink;
pub mod netlock;
