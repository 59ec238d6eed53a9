//! `cuIpc*MemHandle` on taken-over memory: handles of our own, which another process of the job opens through the vault.
//!
//! ```text
//! make   allocation ── Share ──▶ vault            handle: owner, its instance, allocation, place in it
//! open   handle ── Fetch ──▶ vault ── fd ──▶ import, reserve, map      counted per context
//! close  unmap, release ── LetGo ──▶ vault
//! ```
//!
//! What is opened is a mapping of an imported allocation like any other: it is detached and attached with the rest, and a restore
//! brings it back at its address. The vault keeps the memory while any process has it open, even when its owner has freed it. The
//! driver's own handles (of memory that stayed its own) go to the driver.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;

use phos_protocol::types::{AllocationKey, MemberId};

use super::give_back;
use super::share::{TRIES, adopt, ask, export};
use crate::abi::{self, AccessDesc, IpcHandle};
use crate::link::{self, AskError};
use crate::relaxed::Relaxed;
use crate::sync::lock;
use crate::table::real;
use crate::unsupported::{self, Reason};
use crate::{context, gate, instances, log, mode, peers, registry};

/// The first bytes of the shim's own handles, with the version of what follows.
const MAGIC: [u8; 8] = *b"phosIPC1";
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`: the only flag, and one that must be given.
const LAZY_PEER_ACCESS: u32 = 1;

/// What a handle contains: whose memory it is, and where in the allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    key: AllocationKey,
    /// Tells the owner from a later process with its PID.
    instance: u64,
    /// Where in the allocation what the application asked for begins, in bytes.
    offset: u64,
    /// How much the application asked for, in bytes.
    bytes: u64,
}

impl Place {
    fn handle(self) -> IpcHandle {
        let mut bytes = [0; 64];
        let owner = self.key.owner.to_u64();
        let numbers = [owner, self.key.id, self.instance, self.offset, self.bytes];
        bytes[..8].copy_from_slice(&MAGIC);
        for (slot, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        IpcHandle(bytes)
    }

    /// The place that a handle names; `None` for a handle of the driver's.
    fn of(handle: &IpcHandle) -> Option<Self> {
        let (magic, rest) = handle.0.split_first_chunk::<8>()?;
        if *magic != MAGIC {
            return None;
        }
        let mut numbers = rest
            .chunks_exact(8)
            .filter_map(|b| Some(u64::from_le_bytes(b.try_into().ok()?)));
        Some(Self {
            key: AllocationKey {
                owner: MemberId::from_u64(numbers.next()?),
                id: numbers.next()?,
            },
            instance: numbers.next()?,
            offset: numbers.next()?,
            bytes: numbers.next()?,
        })
    }
}

/// Memory of another process that is open in a context.
#[derive(Debug, Clone, Copy)]
struct Opened {
    context: usize,
    key: AllocationKey,
    /// Offset of the pointer in the mapping, in bytes.
    offset: u64,
    /// The length from the pointer on, in bytes.
    bytes: u64,
    /// The length of the mapping, in bytes.
    mapped: u64,
    count: u64,
}

#[derive(Debug)]
struct Open {
    /// The opened memory, by the pointer that the application has.
    pointers: BTreeMap<u64, Opened>,
    /// (Context, allocation, offset) → pointer.
    places: BTreeMap<(usize, AllocationKey, u64), u64>,
}

static OPEN: Mutex<Open> = Mutex::new(Open {
    pointers: BTreeMap::new(),
    places: BTreeMap::new(),
});

/// A handle for taken-over memory; none if the address is not in such.
pub fn make(pointer: u64) -> Option<Result<IpcHandle, u32>> {
    for _ in 0..TRIES {
        let inside = gate::enter();
        let (place, allocation, held, handle) = {
            let registry = registry::lock();
            let (base, plain) = match registry.plain_at(pointer)? {
                Ok(found) => found,
                Err(()) => return Some(Err(abi::INVALID_VALUE)),
            };
            let (start, _) = registry.mapping_at(base)?;
            let physical = registry.physical(plain.allocation)?;
            let allocation = registry::describe(mode::member(), plain.allocation, physical);
            let place = Place {
                key: allocation.key,
                instance: mode::instance(),
                offset: base - start,
                bytes: plain.requested,
            };
            let handle = physical.real.filter(|_| physical.exportable);
            (place, allocation, physical.held, handle)
        };
        let line = link::hold();
        // What the vault has from a checkpoint it does not know to be shared: a handle opens nothing else.
        let fd = match (held, handle) {
            (true, _) => None,
            (false, Some(handle)) => match export(handle) {
                Ok(fd) => Some(fd),
                Err(result) => return Some(Err(result)),
            },
            (false, None) => {
                unsupported::set(Reason::LostMemory);
                return Some(Err(abi::NOT_SUPPORTED));
            }
        };
        if let Some(fd) = &fd {
            instances::learn(allocation.device, fd.as_fd());
        }
        drop(inside);
        // What comes back is the same memory, and not needed here.
        let shared = link::share(allocation, fd.as_ref().map(AsFd::as_fd)).map(drop);
        drop((fd, line));
        match shared {
            Ok(()) => {
                if let Some(physical) = registry::lock().physical_mut(allocation.key.id) {
                    physical.held = true;
                    physical.fd = None;
                }
                return Some(Ok(place.handle()));
            }
            Err(AskError::Lost) => {
                drop(gate::enter());
                link::wait_connected();
            }
            Err(AskError::NotConnected) => {
                link::wait_connected();
            }
            Err(AskError::Refused(why)) => {
                log::error!("cuIpcGetMemHandle: the agent could not share memory: {why}");
                return Some(Err(abi::NOT_SUPPORTED));
            }
        }
    }
    log::error!("cuIpcGetMemHandle: no agent to share memory through");
    Some(Err(abi::NOT_SUPPORTED))
}

/// Opens one of the shim's own handles in the current context; `None` for one of the driver's.
pub fn open(handle: &IpcHandle, flags: u32) -> Option<Result<u64, u32>> {
    Place::of(handle).map(|place| open_place(place, flags))
}

fn open_place(place: Place, flags: u32) -> Result<u64, u32> {
    let (context, device) = context::current().ok_or(abi::INVALID_CONTEXT)?;
    if flags != LAZY_PEER_ACCESS {
        return Err(abi::INVALID_VALUE);
    }
    // As the driver: whoever made it has the memory already.
    if place.key.owner == mode::member() && place.instance == mode::instance() {
        return Err(abi::INVALID_CONTEXT);
    }
    if let Some(pointer) = again(context, place) {
        return Ok(pointer);
    }
    let (fetched, _inside) = loop {
        // Passes when the gate is open.
        drop(gate::enter());
        let Ok(Some(fetched)) = ask(|| link::fetch(place.key, place.instance)) else {
            log::error!(
                "cuIpcOpenMemHandle: allocation {} of process {} is not there any more",
                place.key.id,
                place.key.owner
            );
            return Err(abi::MAP_FAILED);
        };
        if place.offset.saturating_add(place.bytes) > fetched.allocation.bytes {
            return Err(abi::INVALID_VALUE);
        }
        // Not waiting with the descriptor in hand: no process can be dumped that has device memory open.
        if let Some(inside) = gate::try_enter() {
            break (fetched, inside);
        }
    };
    let allocation = fetched.allocation;
    let _relaxed = Relaxed::new();
    let mut handle = 0;
    let (result, instance) = instances::importing(|| {
        // SAFETY: writes one handle; the driver takes the descriptor's number as a pointer and does not keep it.
        unsafe {
            real::cuMemImportFromShareableHandle(
                &mut handle,
                fetched.fd.as_raw_fd() as usize as *mut std::ffi::c_void,
                abi::HANDLE_POSIX_FD,
            )
        }
    });
    drop(fetched);
    if result != abi::SUCCESS {
        link::let_go(place.key);
        return Err(result);
    }
    let id = adopt(allocation, handle, instance, abi::HANDLE_POSIX_FD);
    let rights: Vec<AccessDesc> = std::iter::once(device)
        .chain(peers::accessors(context))
        .map(|d| AccessDesc::device(d, abi::ACCESS_READ_WRITE))
        .collect();
    let mapped = map(id, allocation.bytes, &rights);
    if let Ok(base) = mapped {
        let mut registry = registry::lock();
        registry.map(base, allocation.bytes, 0, id);
        registry.set_access(base..base + allocation.bytes, &rights);
    }
    // The mapping keeps it from here on, or nothing does.
    let released = registry::lock().release(id);
    if let Some(Some(dropped)) = released {
        give_back(dropped);
    }
    let base = mapped?;
    let pointer = base + place.offset;
    let first = {
        let mut open = lock(&OPEN);
        let known = open
            .places
            .get(&(context, place.key, place.offset))
            .copied();
        if known.is_none() {
            open.places
                .insert((context, place.key, place.offset), pointer);
            open.pointers.insert(
                pointer,
                Opened {
                    context,
                    key: place.key,
                    offset: place.offset,
                    bytes: place.bytes,
                    mapped: allocation.bytes,
                    count: 1,
                },
            );
        }
        known.is_none()
    };
    if first {
        return Ok(pointer);
    }
    // Another thread opened it meanwhile: its pointer is the one.
    unmap(base, allocation.bytes);
    again(context, place).ok_or(abi::MAP_FAILED)
}

/// One that is open in the context already is counted.
fn again(context: usize, place: Place) -> Option<u64> {
    let mut open = lock(&OPEN);
    let pointer = *open.places.get(&(context, place.key, place.offset))?;
    open.pointers.get_mut(&pointer)?.count += 1;
    Some(pointer)
}

/// Maps an imported allocation somewhere. Inside the gate.
fn map(id: u64, bytes: u64, rights: &[AccessDesc]) -> Result<u64, u32> {
    let handle = registry::lock().real_handle(id).ok_or(abi::MAP_FAILED)?;
    let (mut base, size) = (0, bytes as usize);
    // SAFETY: each step uses what the one before returned, and undoes it if the next fails.
    let result = unsafe {
        let mut result = real::cuMemAddressReserve(&mut base, size, 0, 0, 0);
        if result == abi::SUCCESS {
            result = real::cuMemMap(base, size, 0, handle, 0);
            if result == abi::SUCCESS {
                result = real::cuMemSetAccess(base, size, rights.as_ptr().cast(), rights.len());
                if result != abi::SUCCESS {
                    real::cuMemUnmap(base, size);
                }
            }
            if result != abi::SUCCESS {
                real::cuMemAddressFree(base, size);
            }
        }
        result
    };
    if result == abi::SUCCESS {
        Ok(base)
    } else {
        Err(result)
    }
}

/// Takes away a mapping that the shim made. Inside the gate.
fn unmap(base: u64, bytes: u64) -> u32 {
    let _relaxed = Relaxed::new();
    let taken = registry::lock().take_mappings(base..base + bytes);
    // SAFETY: a mapping and reservation of the shim's own that the registry has just forgotten.
    let result = unsafe {
        let result = real::cuMemUnmap(base, bytes as usize);
        real::cuMemAddressFree(base, bytes as usize);
        result
    };
    let dropped = registry::lock().forget(&taken);
    for dropped in dropped {
        give_back(dropped);
    }
    result
}

/// Closes what [`open`] returned; none if it did not.
pub fn close(pointer: u64) -> Option<u32> {
    let context = {
        let mut open = lock(&OPEN);
        let opened = open.pointers.get_mut(&pointer)?;
        if opened.count > 1 {
            opened.count -= 1;
            return Some(abi::SUCCESS);
        }
        opened.context
    };
    // Work of the context may still use it. Outside the gate and every lock: it may last as long as the GPU works.
    let synchronized = {
        let _relaxed = Relaxed::new();
        context::synchronize_for_free(context)
    };
    if synchronized != abi::SUCCESS {
        return Some(synchronized);
    }
    let _inside = gate::enter();
    let opened = {
        let mut open = lock(&OPEN);
        let opened = open.pointers.get_mut(&pointer)?;
        // Opened again meanwhile.
        if opened.count > 1 {
            opened.count -= 1;
            return Some(abi::SUCCESS);
        }
        let opened = open.pointers.remove(&pointer)?;
        open.places
            .remove(&(opened.context, opened.key, opened.offset));
        opened
    };
    Some(unmap(pointer - opened.offset, opened.mapped))
}

/// What is open at an address: from the pointer that [`open`] returned, as long as the owner asked for.
pub fn range_at(address: u64) -> Option<Range<u64>> {
    let open = lock(&OPEN);
    let (&pointer, opened) = open.pointers.range(..=address).next_back()?;
    (address - pointer < opened.bytes).then_some(pointer..pointer + opened.bytes)
}

/// A context is gone and with it what was open in it. Inside the gate.
pub fn context_gone(context: usize) {
    let gone: Vec<(u64, Opened)> = {
        let mut open = lock(&OPEN);
        open.places.retain(|(c, _, _), _| *c != context);
        let gone = open
            .pointers
            .iter()
            .filter(|(_, o)| o.context == context)
            .map(|(&pointer, o)| (pointer, *o))
            .collect();
        open.pointers.retain(|_, o| o.context != context);
        gone
    };
    for (pointer, opened) in gone {
        unmap(pointer - opened.offset, opened.mapped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_says_where_and_the_drivers_own_is_told_apart() {
        let place = Place {
            key: AllocationKey {
                owner: MemberId::here(0x1234_5678),
                id: 9,
            },
            instance: u64::MAX - 3,
            offset: 512,
            bytes: 77,
        };
        assert_eq!(Place::of(&place.handle()), Some(place));
        assert_eq!(Place::of(&IpcHandle([0x5a; 64])), None);
    }
}
