//! What phos-ft does, end to end: real binaries, real CRIU, the simulated GPU.

#![allow(
    clippy::too_many_lines,
    clippy::fn_params_excessive_bools,
    reason = "tests, which read from top to bottom"
)]

mod agent_death;
mod away;
mod beside;
mod boundary;
mod commands;
mod cpu_memory;
mod crash;
mod doctor;
mod encryption;
mod files;
mod hints;
mod history;
mod hostile;
mod init;
mod machine;
mod many;
mod memory;
mod moving;
mod newcomer;
mod nodes;
mod observe;
mod page;
mod preemption;
mod programs;
mod ranks;
mod refusals;
mod sidecar_death;
mod slurm;
mod soak;
mod spare_time;
mod store;
mod strange_shims;
mod tiers;
mod undisturbed;
