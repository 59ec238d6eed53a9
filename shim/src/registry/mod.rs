//! The device memory that exists, and where it is mapped. Pure bookkeeping: no driver calls, so that it can be tested without a
//! driver; the modules of `memory` and `control` do what it says.
//!
//! ```text
//! address ──▶ Plain (what cuMemAlloc returned) ──▶ Physical ◀── virtual handle (what cuMemCreate returned)
//! address ──▶ Mapping (what is mapped where) ────▶ Physical ──▶ real handle, or an fd in the vault while detached
//! address ──▶ access rights per device
//! ```

pub mod intervals;
pub mod multicast;
pub mod slab;

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard};

use intervals::Intervals;
use multicast::{Binding, Object};
use phos_protocol::types::{Allocation, AllocationId, AllocationKey, AllocationKind, MemberId};
use slab::Slabs;

use crate::abi::{self, AccessDesc, MemLocation};
use crate::unsupported::Reason;

/// Marks a generic handle as one of the shim's. Handles of the driver are small numbers or addresses of this process.
const TAG: u64 = 0x7068_0000_0000_0000;
const TAG_MASK: u64 = 0xffff_0000_0000_0000;

/// The handle that the application gets for an allocation.
pub fn virtual_handle(id: AllocationId) -> u64 {
    TAG | id
}

/// The allocation behind a handle of the application; none for a handle of the driver's own.
pub fn handle_id(handle: u64) -> Option<AllocationId> {
    (handle & TAG_MASK == TAG).then_some(handle & !TAG_MASK)
}

/// Where a physical allocation comes from, and who accounts for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Created by this process: in its table.
    Own,
    /// Created by another process of the job and imported here.
    Imported(AllocationKey),
    /// Neither taken over nor known to the agent; rules checkpoints out while it lives.
    Foreign(Reason),
}

/// A physical allocation of device memory.
#[derive(Debug)]
pub struct Physical {
    /// Where the memory comes from: this process, another one of the job, or elsewhere.
    pub origin: Origin,
    /// For imported memory, the instance that the driver found it at (see `instances`).
    pub instance: Option<u32>,
    /// The ordinal in this process of the device that it lies on.
    pub device: i32,
    /// The physical size in bytes; of a multicast object, how much of its devices' memory it reaches.
    pub bytes: u64,
    /// The part of those bytes that was asked for.
    pub requested: u64,
    /// What the allocation is to the application.
    pub kind: AllocationKind,
    /// Whether `gpuDirectRDMACapable` was asked for.
    pub rdma: bool,
    /// Handle types the application asked for itself.
    pub handle_types: u32,
    /// The driver's handle; none while detached.
    pub real: Option<u64>,
    /// Whether the driver's handle is that of the creation, which alone can be exported.
    pub exportable: bool,
    /// Whether the agent holds its fd.
    pub held: bool,
    /// An fd exported while no agent was connected and handed to the application: the agent must get this one.
    pub fd: Option<OwnedFd>,
    /// References that the application holds.
    pub references: u32,
    /// Pieces of it that are mapped (or were, before a detach), or bound to multicast objects.
    pub mappings: u32,
}

impl Physical {
    /// What the application has just made, of so many bytes: on device 0, with the reference that it was given.
    pub const fn made(origin: Origin, kind: AllocationKind, bytes: u64, real: u64) -> Self {
        Self {
            origin,
            instance: None,
            device: 0,
            bytes,
            requested: bytes,
            kind,
            rdma: false,
            handle_types: 0,
            real: Some(real),
            exportable: true,
            held: false,
            fd: None,
            references: 1,
            mappings: 0,
        }
    }

    /// Whether it is a multicast object, which has no memory of its own and comes and goes by other rules.
    pub const fn is_multicast(&self) -> bool {
        matches!(self.kind, AllocationKind::Multicast { .. })
    }

    /// The device memory that it takes, in bytes.
    const fn taken(&self) -> u64 {
        if self.is_multicast() { 0 } else { self.bytes }
    }
}

/// A mapped piece of an allocation, by whose base address it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The length of the piece in bytes.
    pub bytes: u64,
    /// Offset into the allocation.
    pub offset: u64,
    /// The allocation that is mapped there.
    pub allocation: AllocationId,
    /// Whether the driver has it mapped now.
    pub mapped: bool,
}

/// What `cuMemAlloc` returned for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// The number of bytes that the application asked for.
    pub requested: u64,
    /// The allocation behind the address, which may be a slab that holds others too.
    pub allocation: AllocationId,
    /// The context in which it was allocated.
    pub context: usize,
    /// The ordinal of the device that it lies on.
    pub device: i32,
    /// Whether it is a place in a slab.
    pub small: bool,
}

/// Access rights of one range: sorted by location, never `ACCESS_NONE`.
type Rights = Vec<(MemLocation, u32)>;

/// What must be given back to the driver: a range and its allocation's handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    /// The allocation that was mapped there.
    pub id: AllocationId,
    /// The address at which it was mapped.
    pub base: u64,
    /// The length of the range in bytes.
    pub bytes: u64,
    /// The driver's handle of the allocation; `None` while it is detached.
    pub real: Option<u64>,
    /// Whether the driver has it mapped.
    pub mapped: bool,
    /// Whether the agent holds its fd.
    pub held: bool,
}

/// A physical allocation that nothing refers to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// The number of the allocation.
    pub id: AllocationId,
    /// Where the memory came from.
    pub origin: Origin,
    /// The driver's handle, which is to be released; `None` while detached.
    pub real: Option<u64>,
    /// Whether the agent holds its fd.
    pub held: bool,
}

/// Everything. One per process, behind [`lock`].
#[derive(Debug)]
pub struct Registry {
    next: AllocationId,
    physical: BTreeMap<AllocationId, Physical>,
    /// Sizes of those together.
    bytes: u64,
    /// The numbers of the imported allocations, by their keys.
    imported: BTreeMap<AllocationKey, AllocationId>,
    /// What there is to know of the multicast objects that are taken apart for checkpoints.
    objects: BTreeMap<AllocationId, Object>,
    /// What only a multicast object kept that is gone: to be given back.
    orphans: Vec<Dropped>,
    mappings: BTreeMap<u64, Mapping>,
    access: Intervals<Rights>,
    /// Reservations made by the application: start → end.
    reservations: BTreeMap<u64, u64>,
    plain: BTreeMap<u64, Plain>,
    slabs: BTreeMap<(usize, i32), Slabs>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new());

/// The registry of this process. Held for moments; see the rules of the crate.
pub fn lock() -> MutexGuard<'static, Registry> {
    crate::sync::lock(&REGISTRY)
}

impl Registry {
    const fn new() -> Self {
        Self {
            next: 1,
            physical: BTreeMap::new(),
            bytes: 0,
            imported: BTreeMap::new(),
            objects: BTreeMap::new(),
            orphans: Vec::new(),
            mappings: BTreeMap::new(),
            access: Intervals::new(),
            reservations: BTreeMap::new(),
            plain: BTreeMap::new(),
            slabs: BTreeMap::new(),
        }
    }

    /// Adds an allocation and names it.
    pub fn add(&mut self, physical: Physical) -> AllocationId {
        let id = self.next;
        self.next += 1;
        if let Origin::Imported(key) = physical.origin {
            self.imported.insert(key, id);
        }
        self.bytes += physical.taken();
        if physical.is_multicast() && !matches!(physical.origin, Origin::Foreign(_)) {
            self.objects.insert(id, Object::default());
        }
        self.physical.insert(id, physical);
        id
    }

    fn remove(&mut self, id: AllocationId) -> Option<Physical> {
        let physical = self.physical.remove(&id)?;
        self.bytes -= physical.taken();
        Some(physical)
    }

    /// A multicast object that is taken apart for checkpoints.
    pub fn object(&self, id: AllocationId) -> Option<&Object> {
        self.objects.get(&id)
    }

    /// The same, to be changed.
    pub fn object_mut(&mut self, id: AllocationId) -> Option<&mut Object> {
        self.objects.get_mut(&id)
    }

    /// The application has bound memory to an object, which keeps the memory from now on.
    pub fn bind(&mut self, id: AllocationId, binding: Binding) {
        if let Some(object) = self.objects.get_mut(&id) {
            object.bindings.push(binding);
            if let Some(memory) = self.physical.get_mut(&binding.memory) {
                memory.mappings += 1;
            }
        }
    }

    /// It has unbound what a device has in a part of an object: what nothing refers to any more comes back to be released.
    pub fn unbind(
        &mut self,
        id: AllocationId,
        device: i32,
        offset: u64,
        bytes: u64,
    ) -> Vec<Dropped> {
        let object = self.objects.get_mut(&id);
        let gone = object.map(|object| object.unbind(device, offset, bytes));
        let mut dropped = Vec::new();
        for binding in gone.unwrap_or_default() {
            self.unbound(&binding);
            dropped.extend(self.drop_if_unused(binding.memory));
        }
        dropped
    }

    /// Takes out what is to be given back since an object is gone.
    pub fn take_orphans(&mut self) -> Vec<Dropped> {
        std::mem::take(&mut self.orphans)
    }

    fn unbound(&mut self, binding: &Binding) {
        if let Some(memory) = self.physical.get_mut(&binding.memory) {
            memory.mappings = memory.mappings.saturating_sub(1);
        }
    }

    /// Whether every object is as the application left it: there, bound and mapped.
    pub fn are_objects_whole(&self) -> bool {
        let is_whole = |(id, object): (&AllocationId, &Object)| {
            let is_there = self.physical.get(id).is_some_and(|p| p.real.is_some());
            is_there && object.bindings.iter().all(|binding| binding.is_bound)
        };
        let is_mapped =
            |mapping: &Mapping| mapping.mapped || !self.objects.contains_key(&mapping.allocation);
        self.objects.iter().all(is_whole)
            && (self.objects.is_empty() || self.mappings.values().all(is_mapped))
    }

    /// The numbers of all of them.
    pub fn object_ids(&self) -> Vec<AllocationId> {
        self.objects.keys().copied().collect()
    }

    /// Sizes of all allocations together.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The allocation of that number, if it exists.
    pub fn physical(&self, id: AllocationId) -> Option<&Physical> {
        self.physical.get(&id)
    }

    /// The allocation of that number, to be changed.
    pub fn physical_mut(&mut self, id: AllocationId) -> Option<&mut Physical> {
        self.physical.get_mut(&id)
    }

    /// All physical allocations with their numbers, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = (AllocationId, &mut Physical)> {
        self.physical.iter_mut().map(|(&id, p)| (id, p))
    }

    /// All physical allocations with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (AllocationId, &Physical)> {
        self.physical.iter().map(|(&id, p)| (id, p))
    }

    /// The allocation with that name across the job.
    pub fn by_key(&self, key: AllocationKey, process: MemberId) -> Option<AllocationId> {
        if key.owner == process {
            return self
                .physical
                .get(&key.id)
                .filter(|p| p.origin == Origin::Own)
                .map(|_| key.id);
        }
        self.imported.get(&key).copied()
    }

    // ---- references and mappings ----

    /// One reference of the application more on a virtual handle; false if the handle is not valid.
    pub fn retain(&mut self, id: AllocationId) -> bool {
        match self.physical.get_mut(&id) {
            Some(p) if p.references > 0 || p.mappings > 0 => {
                p.references += 1;
                true
            }
            _ => false,
        }
    }

    /// One less. `None` if the handle is not valid; `Some(Some(_))` if that was the last thing that kept it.
    pub fn release(&mut self, id: AllocationId) -> Option<Option<Dropped>> {
        let physical = self.physical.get_mut(&id).filter(|p| p.references > 0)?;
        physical.references -= 1;
        Some(self.drop_if_unused(id))
    }

    fn drop_if_unused(&mut self, id: AllocationId) -> Option<Dropped> {
        let physical = self.physical.get(&id)?;
        if physical.references > 0 || physical.mappings > 0 {
            return None;
        }
        let physical = self.remove(id)?;
        if let Origin::Imported(key) = physical.origin {
            self.imported.remove(&key);
        }
        // The driver forgets what was bound to it.
        let object = self.objects.remove(&id).unwrap_or_default();
        for binding in &object.bindings {
            self.unbound(binding);
            let orphan = self.drop_if_unused(binding.memory);
            self.orphans.extend(orphan);
        }
        Some(Dropped {
            id,
            origin: physical.origin,
            real: physical.real,
            held: physical.held,
        })
    }

    /// The handle of the driver behind a valid virtual handle.
    pub fn real_handle(&self, id: AllocationId) -> Option<u64> {
        self.physical
            .get(&id)
            .filter(|p| p.references > 0)
            .and_then(|p| p.real)
    }

    /// Notes that a piece of an allocation was mapped.
    pub fn map(&mut self, base: u64, bytes: u64, offset: u64, id: AllocationId) {
        if let Some(physical) = self.physical.get_mut(&id) {
            physical.mappings += 1;
            self.mappings.insert(
                base,
                Mapping {
                    bytes,
                    offset,
                    allocation: id,
                    mapped: true,
                },
            );
        }
    }

    fn split_mapping(&mut self, at: u64) {
        let Some((&start, mapping)) = self.mappings.range_mut(..at).next_back() else {
            return;
        };
        let end = start + mapping.bytes;
        if end <= at {
            return;
        }
        let right = Mapping {
            bytes: end - at,
            offset: mapping.offset + (at - start),
            ..*mapping
        };
        mapping.bytes = at - start;
        if let Some(physical) = self.physical.get_mut(&right.allocation) {
            physical.mappings += 1;
        }
        self.mappings.insert(at, right);
    }

    /// Takes the mappings inside `range` out, cutting those that reach over its ends. Allocations that only they kept
    /// stay until [`Self::forget`].
    pub fn take_mappings(&mut self, range: Range<u64>) -> Vec<(u64, Mapping)> {
        if !self.mappings.range(range.clone()).any(|_| true)
            && self.mapping_at(range.start).is_none()
        {
            return Vec::new();
        }
        self.split_mapping(range.start);
        self.split_mapping(range.end);
        let starts: Vec<u64> = self.mappings.range(range).map(|(&s, _)| s).collect();
        starts
            .into_iter()
            .filter_map(|start| self.mappings.remove(&start).map(|m| (start, m)))
            .collect()
    }

    /// Puts mappings back that the driver refused to unmap.
    pub fn put_back(&mut self, taken: Vec<(u64, Mapping)>) {
        self.mappings.extend(taken);
    }

    /// The mappings taken out are unmapped: what nothing refers to any more comes back to be released.
    pub fn forget(&mut self, taken: &[(u64, Mapping)]) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        for (base, mapping) in taken {
            self.access.remove(*base..base + mapping.bytes);
            if let Some(physical) = self.physical.get_mut(&mapping.allocation) {
                physical.mappings = physical.mappings.saturating_sub(1);
            }
            dropped.extend(self.drop_if_unused(mapping.allocation));
        }
        dropped
    }

    /// The mapping that contains `address`.
    pub fn mapping_at(&self, address: u64) -> Option<(u64, Mapping)> {
        self.mappings
            .range(..=address)
            .next_back()
            .map(|(&base, m)| (base, *m))
            .filter(|(base, m)| address - base < m.bytes)
    }

    /// Notes access rights set for a range.
    pub fn set_access(&mut self, range: Range<u64>, rights: &[AccessDesc]) {
        self.access.update(range, |known| {
            let mut known = known.cloned().unwrap_or_default();
            for right in rights {
                match known.binary_search_by_key(&right.location, |k| k.0) {
                    Ok(i) if right.flags == abi::ACCESS_NONE => {
                        known.remove(i);
                    }
                    Ok(i) => known[i].1 = right.flags,
                    Err(_) if right.flags == abi::ACCESS_NONE => {}
                    Err(i) => known.insert(i, (right.location, right.flags)),
                }
            }
            (!known.is_empty()).then_some(known)
        });
    }

    /// The application reserved a range of addresses.
    pub fn reserve(&mut self, range: Range<u64>) {
        self.reservations.insert(range.start, range.end);
    }

    /// The application gave a reservation back.
    pub fn unreserve(&mut self, start: u64) {
        self.reservations.remove(&start);
    }

    /// The reservation of the application that contains `address`.
    fn reservation_of(&self, address: u64) -> Option<u64> {
        self.reservations
            .range(..=address)
            .next_back()
            .filter(|(_, end)| address < **end)
            .map(|(&start, _)| start)
    }

    /// Joins neighbours that one driver call may cover: those inside one reservation of the application.
    fn joined(&self, pieces: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
        let mut runs: Vec<(Option<u64>, Range<u64>)> = Vec::new();
        for piece in pieces {
            let reservation = self.reservation_of(piece.start);
            match runs.last_mut() {
                Some((known, run))
                    if reservation.is_some() && *known == reservation && run.end == piece.start =>
                {
                    run.end = piece.end;
                }
                _ => runs.push((reservation, piece)),
            }
        }
        runs.into_iter().map(|(_, run)| run).collect()
    }

    /// Ranges to unmap, each by one driver call.
    pub fn mapped_runs(&self) -> Vec<Range<u64>> {
        self.joined(
            self.mappings
                .iter()
                .filter(|(_, m)| m.mapped)
                .map(|(&base, m)| base..base + m.bytes),
        )
    }

    /// Mappings of multicast objects that are mapped now.
    pub fn mapped_objects(&self) -> Vec<(u64, Mapping)> {
        self.mappings
            .iter()
            .filter(|(_, m)| m.mapped && self.objects.contains_key(&m.allocation))
            .map(|(&base, m)| (base, *m))
            .collect()
    }

    /// Mappings inside `range`.
    pub fn mappings_in(&self, range: Range<u64>) -> Vec<(u64, Mapping)> {
        self.mappings.range(range).map(|(&b, m)| (b, *m)).collect()
    }

    /// Mappings that are not mapped now.
    pub fn unmapped(&self) -> Vec<(u64, Mapping)> {
        self.mappings
            .iter()
            .filter(|(_, m)| !m.mapped)
            .map(|(&b, m)| (b, *m))
            .collect()
    }

    /// Notes that the mapping at this address is mapped again.
    pub fn note_mapped(&mut self, base: u64) {
        if let Some(mapping) = self.mappings.get_mut(&base) {
            mapping.mapped = true;
        }
    }

    /// Notes that the mappings that begin inside `range` are not mapped any more.
    pub fn note_unmapped(&mut self, range: Range<u64>) {
        for (_, mapping) in self.mappings.range_mut(range) {
            mapping.mapped = false;
        }
    }

    /// Access rights to set for the mappings given (sorted by address): ranges that one driver call may cover.
    pub fn access_runs(&self, mappings: &[(u64, Mapping)]) -> Vec<(Range<u64>, Vec<AccessDesc>)> {
        let runs = self.joined(mappings.iter().map(|(base, m)| *base..base + m.bytes));
        runs.into_iter()
            .flat_map(|run| self.access.joined(run))
            .map(|(range, rights)| (range, descriptors(&rights)))
            .collect()
    }

    // ---- plain allocations ----

    /// Notes what `cuMemAlloc` returned for an allocation of its own.
    pub fn add_plain(&mut self, base: u64, plain: Plain) {
        self.plain.insert(base, plain);
    }

    /// A place in a slab of that context.
    pub fn take_small(&mut self, context: usize, device: i32, bytes: u64) -> Option<u64> {
        let (allocation, base) = self.slabs.get_mut(&(context, device))?.take(bytes)?;
        self.plain.insert(
            base,
            Plain {
                requested: bytes,
                allocation,
                context,
                device,
                small: true,
            },
        );
        Some(base)
    }

    /// A new slab, mapped at `base`.
    pub fn add_slab(
        &mut self,
        context: usize,
        device: i32,
        base: u64,
        bytes: u64,
        allocation: AllocationId,
    ) {
        let slabs = self.slabs.entry((context, device)).or_default();
        slabs.add(allocation, base, bytes);
    }

    /// Takes out what `cuMemAlloc` returned as `base`: the caller frees it, or puts it back by [`Self::add_plain`].
    pub fn take_plain(&mut self, base: u64) -> Option<Plain> {
        self.plain.remove(&base)
    }

    /// The plain allocation that contains `address`. `Err` if the address lies in the shim's memory and is not allocated.
    pub fn plain_at(&self, address: u64) -> Option<Result<(u64, Plain), ()>> {
        let found = self
            .plain
            .range(..=address)
            .next_back()
            .filter(|(base, p)| address - **base < p.requested)
            .map(|(&base, p)| (base, *p));
        if let Some(found) = found {
            return Some(Ok(found));
        }
        let (_, mapping) = self.mapping_at(address)?;
        let physical = self.physical.get(&mapping.allocation)?;
        matches!(physical.kind, AllocationKind::Plain | AllocationKind::Slab).then_some(Err(()))
    }

    /// Frees what was taken out by [`Self::take_plain`]. What has to go back to the driver is returned; nothing if it
    /// was a place in a slab that stays.
    pub fn free_plain(&mut self, base: u64, plain: Plain) -> Option<Gone> {
        if !plain.small {
            return self.gone(base, plain.allocation);
        }
        let slabs = self.slabs.get_mut(&(plain.context, plain.device))?;
        let slab = slabs.give(plain.allocation, base, plain.requested)?;
        self.gone(slab, plain.allocation)
    }

    fn gone(&mut self, base: u64, id: AllocationId) -> Option<Gone> {
        let mapping = self.mappings.remove(&base)?;
        self.access.remove(base..base + mapping.bytes);
        let physical = self.remove(id)?;
        Some(Gone {
            id,
            base,
            bytes: mapping.bytes,
            real: physical.real,
            mapped: mapping.mapped,
            held: physical.held,
        })
    }

    /// The context is gone and with it everything allocated in it.
    pub fn free_context(&mut self, context: usize) -> Vec<Gone> {
        let bases: Vec<u64> = self
            .plain
            .iter()
            .filter(|(_, p)| p.context == context)
            .map(|(&b, _)| b)
            .collect();
        let mut gone = Vec::new();
        for base in bases {
            if let Some(plain) = self.plain.remove(&base)
                && !plain.small
            {
                gone.extend(self.gone(base, plain.allocation));
            }
        }
        let keys: Vec<(usize, i32)> = self
            .slabs
            .keys()
            .filter(|k| k.0 == context)
            .copied()
            .collect();
        for key in keys {
            for (allocation, base) in self.slabs.remove(&key).unwrap_or_default().all() {
                gone.extend(self.gone(base, allocation));
            }
        }
        gone
    }

    /// Ranges of the plain allocations and slabs that belong to a context: what peer access opens.
    pub fn ranges_of_context(&self, context: usize) -> Vec<Range<u64>> {
        let whole = self
            .plain
            .iter()
            .filter(|(_, p)| p.context == context && !p.small)
            .map(|(&base, _)| base);
        let slabs = self
            .slabs
            .iter()
            .filter(|(k, _)| k.0 == context)
            .flat_map(|(_, slabs)| slabs.all().map(|(_, base)| base));
        whole
            .chain(slabs)
            .filter_map(|base| self.mappings.get(&base).map(|m| base..base + m.bytes))
            .collect()
    }
}

/// An entry of the table.
pub fn describe(process: MemberId, id: AllocationId, physical: &Physical) -> Allocation {
    let key = match physical.origin {
        Origin::Imported(key) => key,
        _ => AllocationKey { owner: process, id },
    };
    Allocation {
        key,
        device: physical.device,
        bytes: physical.bytes,
        kind: physical.kind,
        rdma: physical.rdma,
    }
}

fn descriptors(rights: &Rights) -> Vec<AccessDesc> {
    rights
        .iter()
        .map(|&(location, flags)| AccessDesc { location, flags })
        .collect()
}

#[cfg(test)]
mod tests;
