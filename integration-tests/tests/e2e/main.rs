//! What phos-ft does, end to end: real binaries, real CRIU, the simulated GPU.

mod agent_death;
mod away;
mod boundary;
mod commands;
mod cpu_memory;
mod crash;
mod doctor;
mod encryption;
mod files;
mod history;
mod hostile;
mod init;
mod machine;
mod many;
mod memory;
mod moving;
mod newcomer;
mod nodes;
mod preemption;
mod refusals;
mod sidecar_death;
mod slurm;
mod soak;
mod store;
mod strange_shims;
mod tiers;
