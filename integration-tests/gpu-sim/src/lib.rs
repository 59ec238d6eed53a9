//! A simulated CUDA driver: a `libcuda.so.1` for machines without a GPU.
//!
//! **It is a test double.** It implements the part of the driver API that the shim, `cudarc` and the test trainer use,
//! and refuses what the real driver refuses, so that a mistake fails here first. Nothing measured on it is a
//! performance figure. `cuDeviceGetName` says "phos simulated GPU" if it is not told otherwise.
//!
//! # Use
//!
//! ```sh
//! export PHOS_SIM_DIR=/run/phos-gpu-sim                       # a node
//! mkdir -p $PHOS_SIM_DIR/dev0 $PHOS_SIM_DIR/proc
//! mount -t tmpfs -o size=512m,mode=1777 none $PHOS_SIM_DIR/dev0   # a device: its size is the device's memory
//! mkdir lib && ln -s …/target/debug/libphos_gpu_sim.so lib/libcuda.so.1
//! ln lib/libcuda.so.1 lib/libnvidia-ml.so.1                       # for programs that use NVML
//! LD_LIBRARY_PATH=$PWD/lib program
//! ```
//!
//! Every device needs a tmpfs of its own: imported memory is told apart by file system. From Rust, [`Node`] does it.
//!
//! | variable | meaning (default) |
//! |---|---|
//! | `PHOS_SIM_DIR` | the node's directory (`/run/phos-gpu-sim`); without `dev0` in it there is no device |
//! | `PHOS_SIM_LINK_MBPS` | bandwidth of each device's link, shared by all processes of the node (unlimited); a number in `devN.link-mbps`, while that file is there, stands for it |
//! | `PHOS_SIM_KERNEL_US` | least duration of every kernel (0) |
//! | `PHOS_SIM_CTX_MIB` | device memory that each context takes for itself (8) |
//! | `PHOS_SIM_STACK_MIB` | more of it, growing and shrinking with the stack limit: at the default limit (0) |
//! | `PHOS_SIM_MULTIPROCESSORS` | how many the device says that it has, of 2048 threads each (132) |
//! | `PHOS_SIM_UUID_SALT` | identity of the node in the UUIDs of its devices (the path of `PHOS_SIM_DIR`) |
//! | `PHOS_SIM_INSTANCE` | the machine's own number of its first device (0), by which an import finds it |
//! | `PHOS_SIM_NAME` | what `cuDeviceGetName` says: the model (`phos simulated GPU`) |
//! | `PHOS_SIM_DRIVER_VERSION` | what `cuDriverGetVersion` says (13000) |
//! | `PHOS_SIM_NO_CHECKPOINT` | 1: an old driver, version 12.4, whose `cuCheckpointProcess*` are not supported |
//! | `PHOS_SIM_LATE_IMPORTS` | 1: a checkpoint with imports alive passes; its restore loses the process, as on 580 |
//! | `PHOS_SIM_HANG` | `restore=FILE`: that checkpoint call hangs once, when FILE is there, until its process ends; `restore!=FILE`: for ever |
//! | `PHOS_SIM_FAIL` | `restore=FILE`: that checkpoint call fails while FILE is there, with 304; a `lock` with 801 |
//! | `PHOS_SIM_NO_VMM` | 1: the devices say that they have no virtual memory management |
//! | `PHOS_SIM_FLIP` | a file: when it is there, a byte of the next copy to a device of 4 KiB or more arrives as another; it is removed |
//! | `PHOS_SIM_POISON` | 1: new device memory holds 0xA5, not zeroes |
//! | `PHOS_SIM_SPARSE` | 1: device memory is taken when it is touched, so that more can be allocated than there is |
//! | `PHOS_SIM_IMPORT_US` | least duration of every import (0) |
//! | `PHOS_SIM_NODE` | a character device that stands for /dev/nvidia*: open in a process from `cuInit` or `nvmlInit` on, but while it is checkpointed (none) |
//!
//! # Structure
//!
//! `api` and `gate` are the boundary: how C's arguments are taken and what every call passes. `driver` owns everything.
//! `device`, `context`, `stream`, `event`, `graph`, `module` and `launch` are the API's own parts, `memory` what lives
//! on a device, `task` what runs on one, `kernels` the Rust functions that stand for kernels, `link` the bandwidth.
//! `checkpoint` is `cuCheckpointProcess*`; `proc_address` finds functions by name. `nvml` is the little of NVML that a GPU
//! monitor needs, and `files` the descriptors that a process has of the driver's device.
//!
//! Rules that hold everywhere: handles are numbers that are looked up; device pointers are translated and checked;
//! no lock is held while waiting for a device; nothing panics across the boundary; and while no memory is held on a
//! device (detached, or checkpointed) the process has neither a descriptor nor a mapping of it.

#![allow(
    clippy::too_many_lines,
    clippy::fn_params_excessive_bools,
    reason = "the driver's own flags, and its own long calls"
)]
#![allow(clippy::missing_safety_doc, non_snake_case)]

mod api;
mod checkpoint;
mod config;
mod context;
mod device;
mod driver;
mod error;
mod event;
mod files;
mod gate;
mod graph;
mod kernels;
mod launch;
mod link;
mod memory;
mod module;
mod node;
mod nvml;
mod proc_address;
mod ptx;
mod stream;
mod sync;
mod task;

pub use node::Node;
