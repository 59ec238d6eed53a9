//! Environment variables by which the agent tells the shim where it is.

/// Absolute path of the agent's socket for shims. Set by the agent for the job; a process without
/// it runs with the shim inert.
pub const SHIM_SOCKET: &str = "PHOS_SHIM_SOCKET";

/// Shim log level: `off`, `error` (default), `info` or `debug`; written to standard error.
pub const SHIM_LOG: &str = "PHOS_SHIM_LOG";

/// File name of the agent's socket for shims below the job's run directory.
pub const SHIM_SOCKET_FILE: &str = "shim.sock";

/// File name of the agent's socket for the sidecar below the job's run directory.
pub const AGENT_SOCKET_FILE: &str = "agent.sock";
