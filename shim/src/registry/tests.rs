use super::*;

const MIB: u64 = 1 << 20;

/// What is bound stays as long as the object, and goes with it.
#[test]
fn bound_memory_is_kept_by_its_object() {
    let mut r = Registry::new();
    let object = r.add(Physical {
        references: 1,
        ..physical(AllocationKind::Multicast { devices: 1 }, 2 * MIB)
    });
    let memory = r.add(physical(AllocationKind::Vmm, 2 * MIB));
    assert_eq!(r.bytes(), 2 * MIB, "the object takes no memory");
    let binding = multicast::Binding {
        device: 0,
        is_named: false,
        offset: 0,
        bytes: 2 * MIB,
        memory,
        memory_offset: 0,
        flags: 0,
        is_bound: true,
    };
    r.bind(object, binding);
    assert!(matches!(r.release(memory), Some(None)));
    assert!(r.physical(memory).is_some());
    let dropped = r.unbind(object, 0, 0, 2 * MIB);
    assert_eq!(dropped.iter().map(|d| d.id).collect::<Vec<_>>(), [memory]);
    // The same by the end of the object.
    let memory = r.add(physical(AllocationKind::Vmm, 2 * MIB));
    r.bind(object, multicast::Binding { memory, ..binding });
    assert!(matches!(r.release(memory), Some(None)));
    assert!(matches!(r.release(object), Some(Some(_))));
    let orphans = r.take_orphans();
    assert_eq!(orphans.iter().map(|d| d.id).collect::<Vec<_>>(), [memory]);
    assert!(r.are_objects_whole() && r.bytes() == 0);
}

fn physical(kind: AllocationKind, bytes: u64) -> Physical {
    Physical {
        origin: Origin::Own,
        instance: None,
        device: 0,
        bytes,
        requested: bytes,
        kind,
        rdma: false,
        handle_types: 0,
        real: Some(77),
        exportable: true,
        held: false,
        fd: None,
        references: u32::from(kind == AllocationKind::Vmm),
        mappings: 0,
    }
}

fn read_write(device: i32) -> AccessDesc {
    AccessDesc::device(device, abi::ACCESS_READ_WRITE)
}

#[test]
fn handles_are_told_apart() {
    assert_eq!(handle_id(virtual_handle(5)), Some(5));
    assert_eq!(handle_id(0), None);
    assert_eq!(handle_id(0x7f12_3456_7890), None);
}

#[test]
fn memory_lives_while_a_handle_or_a_mapping_does() {
    let mut r = Registry::new();
    let id = r.add(physical(AllocationKind::Vmm, 4 * MIB));
    r.map(0x1000_0000, 4 * MIB, 0, id);
    assert_eq!(r.release(id), Some(None));
    assert_eq!(r.release(id), None, "released twice");
    assert_eq!(r.real_handle(id), None, "the handle is no longer valid");
    assert!(r.retain(id), "but can be got back from the mapping");
    assert_eq!(r.release(id), Some(None));
    let taken = r.take_mappings(0x1000_0000..0x1000_0000 + 4 * MIB);
    let dropped = r.forget(&taken);
    assert_eq!(dropped.len(), 1);
    assert_eq!(dropped[0].real, Some(77));
    assert!(r.physical(id).is_none());
    assert_eq!(r.bytes(), 0);
}

#[test]
fn partial_unmaps_cut_mappings() {
    let mut r = Registry::new();
    let id = r.add(physical(AllocationKind::Vmm, 8 * MIB));
    let base = 0x1000_0000;
    r.map(base, 8 * MIB, 0, id);
    r.set_access(base..base + 8 * MIB, &[read_write(0)]);
    let taken = r.take_mappings(base + 2 * MIB..base + 4 * MIB);
    assert_eq!(taken.len(), 1);
    assert_eq!((taken[0].1.offset, taken[0].1.bytes), (2 * MIB, 2 * MIB));
    assert!(r.forget(&taken).is_empty());
    assert_eq!(r.mapping_at(base + 2 * MIB), None);
    assert_eq!(r.mapping_at(base + 5 * MIB).unwrap().1.offset, 4 * MIB);
    assert_eq!(r.physical(id).unwrap().mappings, 2);
    let rest = r.take_mappings(base..base + 8 * MIB);
    assert_eq!(rest.len(), 2);
    assert!(r.forget(&rest).is_empty());
    assert!(r.release(id).unwrap().is_some());
}

#[test]
fn a_refused_unmap_changes_nothing() {
    let mut r = Registry::new();
    let id = r.add(physical(AllocationKind::Vmm, 2 * MIB));
    r.map(0x1000_0000, 2 * MIB, 0, id);
    let taken = r.take_mappings(0x1000_0000..0x1020_0000);
    assert_eq!(r.mapping_at(0x1000_0000), None);
    r.put_back(taken);
    assert!(r.mapping_at(0x1000_0000).is_some());
    assert_eq!(r.physical(id).unwrap().mappings, 1);
}

#[test]
fn only_one_reservation_is_joined() {
    let mut r = Registry::new();
    let base = 0x1000_0000;
    r.reserve(base..base + 8 * MIB);
    r.reserve(base + 8 * MIB..base + 16 * MIB);
    for i in 0..8 {
        let id = r.add(physical(AllocationKind::Vmm, 2 * MIB));
        r.map(base + i * 2 * MIB, 2 * MIB, 0, id);
    }
    r.set_access(base..base + 16 * MIB, &[read_write(0)]);
    r.set_access(base..base + 2 * MIB, &[read_write(1)]);
    assert_eq!(
        r.mapped_runs(),
        [base..base + 8 * MIB, base + 8 * MIB..base + 16 * MIB]
    );
    r.note_unmapped(base..base + 16 * MIB);
    let all = r.unmapped();
    let runs = r.access_runs(&all);
    assert_eq!(
        runs.iter()
            .map(|(range, d)| (range.clone(), d.len()))
            .collect::<Vec<_>>(),
        [
            (base..base + 2 * MIB, 2),
            (base + 2 * MIB..base + 8 * MIB, 1),
            (base + 8 * MIB..base + 16 * MIB, 1)
        ]
    );
    r.set_access(
        base..base + 2 * MIB,
        &[AccessDesc::device(1, abi::ACCESS_NONE)],
    );
    assert_eq!(r.access_runs(&all).len(), 2);
}

fn slab(r: &mut Registry, context: usize, base: u64) -> AllocationId {
    let id = r.add(physical(AllocationKind::Slab, 2 * MIB));
    r.map(base, 2 * MIB, 0, id);
    r.add_slab(context, 0, base, 2 * MIB, id);
    id
}

#[test]
fn one_empty_slab_stays() {
    let mut r = Registry::new();
    assert_eq!(r.take_small(9, 0, 100), None);
    slab(&mut r, 9, 0x1000_0000);
    slab(&mut r, 9, 0x2000_0000);
    assert_eq!(r.take_small(8, 0, 100), None, "another context");
    let a = r.take_small(9, 0, MIB).unwrap();
    let b = r.take_small(9, 0, MIB).unwrap();
    let c = r.take_small(9, 0, 700).unwrap();
    assert_eq!((a, b, c), (0x1000_0000, 0x1010_0000, 0x2000_0000));
    assert_eq!(r.plain_at(c + 699).unwrap().unwrap().0, c);
    assert_eq!(r.plain_at(c + 700), Some(Err(())));
    assert_eq!(r.plain_at(0x5000_0000), None);
    let plain = r.take_plain(c).unwrap();
    assert_eq!(r.take_plain(c), None, "freed twice");
    assert_eq!(r.free_plain(c, plain), None, "the only empty slab stays");
    for base in [a, b] {
        let plain = r.take_plain(base).unwrap();
        let gone = r.free_plain(base, plain);
        assert_eq!(gone.is_some(), base == b);
    }
    assert_eq!((r.all().count(), r.bytes()), (1, 2 * MIB));
}

#[test]
fn a_context_takes_its_memory_along() {
    let mut r = Registry::new();
    slab(&mut r, 9, 0x1000_0000);
    slab(&mut r, 8, 0x2000_0000);
    r.take_small(9, 0, 100).unwrap();
    let id = r.add(physical(AllocationKind::Plain, 4 * MIB));
    r.map(0x3000_0000, 4 * MIB, 0, id);
    r.add_plain(
        0x3000_0000,
        Plain {
            requested: 4 * MIB - 5,
            allocation: id,
            context: 9,
            device: 0,
            small: false,
        },
    );
    assert_eq!(r.bytes(), 8 * MIB);
    assert_eq!(r.ranges_of_context(9).len(), 2);
    let gone = r.free_context(9);
    assert_eq!(gone.len(), 2);
    assert_eq!((r.all().count(), r.bytes()), (1, 2 * MIB));
    assert!(r.plain_at(0x3000_0000).is_none());
}
