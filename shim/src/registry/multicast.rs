//! What is to be known of a multicast object to make it anew: its devices of this process, and what is bound to it.
//!
//! The object itself is a [`Physical`](super::Physical) of the kind `Multicast`: it has a handle of ours, comes from this process or from
//! another one, and is mapped as memory is. What is bound keeps its allocation, as a mapping does.

use std::collections::BTreeSet;

use phos_protocol::types::AllocationId;

/// Memory that is bound to a part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// The ordinal of the device whose memory it is.
    pub device: i32,
    /// Whether the device was named: by the second version of the call.
    pub is_named: bool,
    /// Where the part of the object begins, in bytes.
    pub offset: u64,
    /// The length of the part in bytes.
    pub bytes: u64,
    /// The allocation that is bound.
    pub memory: AllocationId,
    /// Where in the allocation what is bound begins, in bytes.
    pub memory_offset: u64,
    /// The flags of the call.
    pub flags: u64,
    /// Whether it is bound now.
    pub is_bound: bool,
}

/// See the module's documentation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    /// The ordinals of the devices that this process has added.
    pub devices: BTreeSet<i32>,
    /// What it has bound.
    pub bindings: Vec<Binding>,
}

impl Object {
    /// The application has unbound what a device has in a part of the object; returns what that was.
    pub fn unbind(&mut self, device: i32, offset: u64, bytes: u64) -> Vec<Binding> {
        let end = offset.saturating_add(bytes);
        let meant = |known: &Binding| {
            known.device == device && known.offset < end && offset < known.offset + known.bytes
        };
        self.bindings.extract_if(.., |known| meant(known)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(device: i32, offset: u64) -> Binding {
        Binding {
            device,
            is_named: false,
            offset,
            bytes: 2,
            memory: offset,
            memory_offset: 0,
            flags: 0,
            is_bound: true,
        }
    }

    #[test]
    fn what_is_unbound_is_a_devices_part() {
        let mut object = Object {
            devices: BTreeSet::new(),
            bindings: vec![binding(0, 0), binding(0, 2), binding(1, 0)],
        };
        assert_eq!(object.unbind(0, 0, 2), [binding(0, 0)]);
        assert_eq!(object.bindings, [binding(0, 2), binding(1, 0)]);
        assert_eq!(object.unbind(1, 2, 2), []);
        // A range that reaches into it.
        assert_eq!(object.unbind(0, 1, 2), [binding(0, 2)]);
        assert_eq!(object.unbind(1, 0, u64::MAX), [binding(1, 0)]);
        assert_eq!(object, Object::default());
    }
}
