//! Environment variables by which the agent tells the shim where it is.

/// Absolute path of the agent's socket for shims. Set by the agent for the job; a process without
/// it runs with the shim inert.
pub const SHIM_SOCKET: &str = "PHOS_SHIM_SOCKET";

/// Shim log level: `off`, `error` (default), `info` or `debug`; written to standard error.
pub const SHIM_LOG: &str = "PHOS_SHIM_LOG";

/// Set by the agent to `1` where multicast objects (NVLS) may be used: the shim then takes them apart for a checkpoint. Without it they rule
/// checkpoints out.
pub const SHIM_MULTICAST: &str = "PHOS_SHIM_MULTICAST";

/// File name of the agent's socket for shims below the job's run directory.
pub const SHIM_SOCKET_FILE: &str = "shim.sock";

/// File name of the agent's socket for the sidecar below the job's run directory.
pub const AGENT_SOCKET_FILE: &str = "agent.sock";
