//! Descriptors of the driver's device (`PHOS_SIM_NODE`), as every process has them that uses CUDA or NVML: CRIU cannot dump
//! them, so a process that the driver has not checkpointed makes a dump fail.

use crate::config::Config;
use crate::memory::phys::raise;
use crate::sync::lock;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::sync::Mutex;

/// See the module.
#[derive(Default)]
pub struct Files(Mutex<State>);

#[derive(Default)]
struct State {
    open: Vec<OwnedFd>,
    /// How many there are to be whenever the process is not checkpointed.
    wanted: usize,
}

impl State {
    fn open(&mut self, config: &Config) {
        let Some(node) = &config.node else { return };
        while self.open.len() < self.wanted {
            let opened = rustix::fs::open(node, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
            let Ok(file) = opened else { return };
            self.open.push(raise(file));
        }
    }
}

impl Files {
    /// One user more: CUDA, or NVML.
    pub fn add(&self, config: &Config) {
        let mut state = lock(&self.0);
        state.wanted += 1;
        state.open(config);
    }

    /// One user less.
    pub fn remove(&self) {
        let mut state = lock(&self.0);
        state.wanted = state.wanted.saturating_sub(1);
        let wanted = state.wanted;
        state.open.truncate(wanted);
    }

    /// The process is being checkpointed.
    pub fn close(&self) {
        lock(&self.0).open.clear();
    }

    /// It is back.
    pub fn open(&self, config: &Config) {
        lock(&self.0).open(config);
    }
}
