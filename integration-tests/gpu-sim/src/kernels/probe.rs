//! Kernels for tests of the driver itself: `poke(uint32_t* at, uint32_t value)` writes a word, `spin(uint64_t ns)` takes
//! its time.

use super::{Kernel, Launch};
use crate::error::Res;
use std::time::Duration;

pub const TABLE: &[(&str, Kernel)] = &[("poke", poke), ("spin", spin)];

fn poke(launch: &Launch<'_>) -> Res {
    launch
        .view::<u32>(launch.param(0)?, 1, true)?
        .set(0, launch.param(1)?);
    Ok(())
}

fn spin(launch: &Launch<'_>) -> Res {
    launch.busy(Duration::from_nanos(launch.param(0)?));
    Ok(())
}
