//! Memory: physical allocations ([`phys`]), the address space of the process ([`space`]), and the four ways to it:
//! native allocations ([`native`]; arrays, [`array`], are such), virtual memory management ([`vmm`]), pools ([`pool`]), host memory ([`host`]);
//! then what is done with addresses: copies ([`copy`]), attributes ([`pointer`]), legacy IPC ([`ipc`]) and multicast objects ([`multicast`]).

pub mod array;
pub mod copy;
pub mod host;
pub mod ipc;
pub mod multicast;
pub mod native;
pub mod phys;
pub mod pointer;
pub mod pool;
pub mod space;
pub mod texture;
pub mod vmm;
