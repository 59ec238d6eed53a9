//! The job's device memory as the sidecar holds it, and the GPUs that it lies on.

pub(super) mod gpus;
pub(super) mod registry;
