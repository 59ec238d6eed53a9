//! How a job is started and looked after.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`namespace`] | the PID namespace, and which PIDs are given in it |
//! | [`spawn`] | how CMD is started |
//! | [`environment`] | what CMD's environment is given |
//! | [`stdio`] | the streams between the job and whoever started the agent |
//! | [`signals`] | signals as events, and children that end |

pub mod environment;
pub mod namespace;
pub mod signals;
pub mod spawn;
pub mod stdio;
