//! How much host memory is kept for device memory on its way out, where that may grow: enough that whatever must leave
//! the devices while a job is held never waits for the store.
//!
//! # Rules
//!
//! * It is never smaller than [`Bounds::least`] and never larger than [`Bounds::most`].
//! * It grows only as far as a quarter of the host's memory stays available beside it ([`HostMemory::total`] / [`SPARE`]), and what the
//!   image of the job's processes takes there meanwhile.
//! * It shrinks only where a quarter of it is of no use, and grows by less than an eighth only where that makes it large
//!   enough: pinning is slow, and what is wanted and what is available change from one checkpoint to the next.
//! * Where memory is so short that others may fail ([`is_short`]) it goes back to the least at once.
//!
//! What must leave a device while the job is held is what changed there and fits into no snapshot. Before a stop nobody
//! knows what changed; all that is in use bounds it, and from the second checkpoint on what changed at the last one is
//! the better guess.

/// The part of the host's memory that stays available: a quarter.
pub const SPARE: u64 = 4;

/// Less than this part of the host's memory available is too little: a sixteenth.
pub const SHORT: u64 = 16;

/// From one checkpoint to the next so much more may have changed before the guess is too small: an eighth.
const GROWTH: u64 = 8;

/// The least and the most that the buffer may take, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes that the buffer always keeps.
    pub least: u64,
    /// Bytes that the buffer may grow to.
    pub most: u64,
}

/// A device before a stop, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Memory in use, by whomever.
    pub used: u64,
    /// Memory that a snapshot may take.
    pub spare: u64,
}

/// Memory of the host, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostMemory {
    /// All of it, or what the tightest control group allows.
    pub total: u64,
    /// What can be taken beside what the buffer has already.
    pub available: u64,
    /// Bytes that the buffer has pinned already.
    pub pinned: u64,
    /// What the image of the job's processes will take; `None`: there was none yet, and as much again as stays available is
    /// left to it.
    pub image: Option<u64>,
}

/// Bytes that may have to leave the devices while the job is held. `changed`: what the last checkpoint had to copy.
#[must_use]
pub fn needed(devices: &[Device], changed: Option<u64>) -> u64 {
    let beside = |device: &Device| device.used.saturating_sub(device.spare);
    let all = devices.iter().map(beside).fold(0, u64::saturating_add);
    let spare = devices.iter().map(|d| d.spare).fold(0, u64::saturating_add);
    // With several devices one may have spare memory that is of no use to another: so no less than what one lacks where
    // all of what changed lies on it.
    let spare = if devices.len() == 1 { spare } else { 0 };
    let guess = changed.map_or(u64::MAX, |bytes| {
        bytes.saturating_add(bytes / GROWTH).saturating_sub(spare)
    });
    all.min(guess)
}

/// How large the buffer, now of `size` bytes, is to be.
#[must_use]
pub fn size(bounds: Bounds, now: u64, needed: u64, host: Option<HostMemory>) -> u64 {
    let room = host.map_or(u64::MAX, |host| {
        let spare = host.total / SPARE;
        (host.pinned)
            .saturating_add(host.available)
            .saturating_sub(spare)
            .saturating_sub(host.image.unwrap_or(spare))
    });
    let most = bounds.most.min(room).max(bounds.least);
    let wanted = needed.clamp(bounds.least, most);
    let shrinks_little = wanted < now && wanted >= now - now / 4;
    let grows_in_vain = wanted > now && wanted < needed && wanted - now < now / 8;
    let may_stay = (bounds.least..=bounds.most).contains(&now);
    if may_stay && (shrinks_little || grows_in_vain) {
        now
    } else {
        wanted
    }
}

/// Whether the host has so little memory left that the buffer is to go back to the least.
#[must_use]
pub const fn is_short(host: HostMemory) -> bool {
    host.available < host.total / SHORT
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GIB: u64 = 1 << 30;
    const BOUNDS: Bounds = Bounds {
        least: 4 * GIB,
        most: u64::MAX,
    };

    fn full(gib: u64) -> Device {
        Device {
            used: gib * GIB,
            spare: GIB,
        }
    }

    const fn host(total: u64, available: u64, pinned: u64) -> Option<HostMemory> {
        Some(HostMemory {
            total: total * GIB,
            available: available * GIB,
            pinned: pinned * GIB,
            image: Some(0),
        })
    }

    #[test]
    fn a_job_that_leaves_room_for_a_snapshot_needs_no_more_than_the_least() {
        let device = Device {
            used: 39 * GIB,
            spare: 40 * GIB,
        };
        assert_eq!(needed(&[device], None), 0);
        assert_eq!(size(BOUNDS, 4 * GIB, 0, host(128, 100, 4)), 4 * GIB);
    }

    #[test]
    fn a_full_device_needs_as_much_as_leaves_it() {
        assert_eq!(needed(&[full(78)], None), 77 * GIB);
        // Frozen weights: most of it is in the store.
        assert_eq!(needed(&[full(78)], Some(8 * GIB)), 8 * GIB);
        assert_eq!(needed(&[full(78), full(78)], None), 154 * GIB);
        assert_eq!(size(BOUNDS, 4 * GIB, 77 * GIB, host(256, 240, 4)), 77 * GIB);
    }

    /// In GiB, of a buffer that has all its memory.
    fn size_of(now: u64, needed: u64, total: u64, available: u64) -> u64 {
        size(BOUNDS, now * GIB, needed * GIB, host(total, available, now)) / GIB
    }

    #[test]
    fn a_quarter_of_the_host_stays_available() {
        assert_eq!(size_of(4, 77, 96, 60), 40);
        // Others took it meanwhile.
        assert_eq!(size_of(40, 77, 96, 4), 20);
        assert_eq!(size_of(4, 77, 16, 1), 4);
    }

    #[test]
    fn less_than_a_sixteenth_is_short() {
        let is_short = |available| host(64, available, 4).is_some_and(is_short);
        assert!(is_short(3) && !is_short(4));
    }

    #[test]
    fn the_image_of_the_processes_has_its_room() {
        let room = |image| {
            let host = HostMemory {
                total: 256 * GIB,
                available: 200 * GIB,
                pinned: 4 * GIB,
                image,
            };
            size(BOUNDS, 4 * GIB, 500 * GIB, Some(host)) / GIB
        };
        assert_eq!(room(Some(0)), 140);
        assert_eq!(room(Some(70 * GIB)), 70);
        assert_eq!(room(Some(170 * GIB)), 4);
        assert_eq!(room(None), 76);
        // What is to be pinned still is not there.
        let host = host(256, 100, 10);
        assert_eq!(size(BOUNDS, 77 * GIB, 77 * GIB, host), 46 * GIB);
    }

    #[test]
    fn what_is_nearly_right_stays() {
        assert_eq!(size_of(40, 31, 256, 200), 40);
        assert_eq!(size_of(40, 29, 256, 200), 29);
        assert_eq!(size_of(40, 41, 256, 200), 41);
        // Neither is enough.
        assert_eq!(size_of(40, 77, 128, 36), 40);
        assert_eq!(size_of(40, 77, 128, 28), 40);
    }

    proptest! {
        #[test]
        fn it_keeps_to_its_bounds(
            least in 0_u64..64, more in 0_u64..512, now in 0_u64..1024, needed in 0_u64..2048,
            total in 1_u64..2048, available in 0_u64..2048,
        ) {
            let bounds = Bounds { least: least * GIB, most: (least + more) * GIB };
            let host = HostMemory {
                total: total * GIB,
                available: available.min(total) * GIB,
                pinned: now * GIB,
                image: Some(0),
            };
            let next = size(bounds, now * GIB, needed * GIB, Some(host));
            prop_assert!(next >= bounds.least && next <= bounds.most.max(bounds.least));
            // What it grows by leaves a quarter of the host.
            if next > now * GIB && next > bounds.least {
                prop_assert!(host.available - (next - now * GIB) >= host.total / SPARE);
            }
            // It settles.
            let after = HostMemory {
                available: (host.available + now * GIB).saturating_sub(next),
                pinned: next,
                ..host
            };
            if host.available + now * GIB >= next {
                prop_assert_eq!(size(bounds, next, needed * GIB, Some(after)), next);
            }
        }

        #[test]
        fn no_more_is_needed_than_is_in_use(used in 0_u64..256, spare in 0_u64..256, changed in proptest::option::of(0_u64..256)) {
            let device = Device { used: used * GIB, spare: spare * GIB };
            prop_assert!(needed(&[device], changed.map(|c| c * GIB)) <= device.used);
        }
    }
}
