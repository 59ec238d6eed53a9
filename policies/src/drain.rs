//! How the changed chunks of a checkpoint leave the device: during the stop, from a snapshot in spare device memory, or before
//! the job continues.
//!
//! # Rules
//!
//! * Every changed chunk is in exactly one part. Each device's chunks keep their order; the parts are consecutive.
//! * A snapshot never needs more than the device's spare memory, which the caller gives after taking the reserve for
//!   the driver's restore away.
//! * What is copied during the stop never needs more than the free host memory, over all devices, nor more than the
//!   link moves within the expected stop.
//! * What fits nowhere is drained before the job continues: it makes the stop longer and is always right.
//!
//! Host memory goes first to what no snapshot can hold, then to the rest, as a snapshot takes memory that the job may
//! want; within that, evenly over the devices, since their links work side by side and the slowest counts.

use std::ops::Range;
use std::time::Duration;

/// A device and what changed on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// Sizes in bytes of the changed chunks, in the order in which they are to be copied.
    pub changed: Vec<u32>,
    /// Device memory in bytes that a snapshot may take, the reserve already taken away.
    pub spare_bytes: u64,
    /// What the link to the host moves, in bytes per second.
    pub link_bytes_per_second: u64,
}

/// The inputs of a plan: what changed on each device, and what room there is for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainInputs {
    /// Each device with changed chunks, in the order in which the plan lists them.
    pub devices: Vec<Device>,
    /// Free host buffer in bytes, for all devices together.
    pub host_free_bytes: u64,
    /// How long the job will be held back anyway.
    pub expected_stop: Duration,
}

/// The parts of one device's chunks, as ranges of [`Device::changed`]: `during_stop`, then `snapshot`, then
/// `before_attach`, together all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevicePlan {
    /// Copied to the host while the job is held back for the control state.
    pub during_stop: Range<usize>,
    /// Copied within the device before the job continues, and to the host afterwards.
    pub snapshot: Range<usize>,
    /// Copied to the host before the job continues.
    pub before_attach: Range<usize>,
    /// The number of bytes in `during_stop`.
    pub during_stop_bytes: u64,
    /// The number of bytes in `snapshot`.
    pub snapshot_bytes: u64,
    /// The number of bytes in `before_attach`.
    pub before_attach_bytes: u64,
}

/// How every changed chunk leaves its device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainPlan {
    /// One for each device given, in the same order.
    pub devices: Vec<DevicePlan>,
}

impl DrainPlan {
    /// By how much draining before the job continues makes the stop longer: the slowest device counts.
    #[must_use]
    pub fn extra_stop(&self, inputs: &DrainInputs) -> Duration {
        let time = |(plan, device): (&DevicePlan, &Device)| {
            if plan.before_attach_bytes == 0 {
                return Duration::ZERO;
            }
            let seconds = plan.before_attach_bytes as f64 / device.link_bytes_per_second as f64;
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
        };
        self.devices
            .iter()
            .zip(&inputs.devices)
            .map(time)
            .max()
            .unwrap_or_default()
    }
}

/// A device while its plan is made.
struct Share<'a> {
    chunks: &'a [u32],
    /// Chunks copied during the stop so far: a prefix.
    taken: usize,
    taken_bytes: u64,
    /// The number of bytes that the link moves during the stop.
    link_bytes: u64,
    /// The number of bytes that are in no part yet.
    left_bytes: u64,
    spare_bytes: u64,
}

impl Share<'_> {
    /// The next chunk's size, if the link has time for it.
    fn next(&self) -> Option<u64> {
        let size = u64::from(*self.chunks.get(self.taken)?);
        (self.taken_bytes + size <= self.link_bytes).then_some(size)
    }

    /// Bytes that are neither taken nor fit into a snapshot.
    const fn overflow_bytes(&self) -> u64 {
        self.left_bytes.saturating_sub(self.spare_bytes)
    }
}

/// Makes the plan. Same inputs, same plan.
#[must_use]
pub fn plan(inputs: &DrainInputs) -> DrainPlan {
    let mut shares: Vec<Share<'_>> = inputs
        .devices
        .iter()
        .map(|device| Share {
            chunks: &device.changed,
            taken: 0,
            taken_bytes: 0,
            link_bytes: moved(device.link_bytes_per_second, inputs.expected_stop),
            left_bytes: device.changed.iter().map(|&size| u64::from(size)).sum(),
            spare_bytes: device.spare_bytes,
        })
        .collect();
    let mut host = inputs.host_free_bytes;
    hand_out(&mut shares, &mut host, |share| share.overflow_bytes());
    hand_out(&mut shares, &mut host, |share| share.left_bytes);
    DrainPlan {
        devices: shares.iter().map(finish).collect(),
    }
}

/// Gives host memory, a chunk at a time, to the device that needs most.
fn hand_out(shares: &mut [Share<'_>], host: &mut u64, need: impl Fn(&Share<'_>) -> u64) {
    loop {
        // The first of equals, so that plans are deterministic.
        let neediest = shares
            .iter_mut()
            .filter(|share| need(share) > 0 && share.next().is_some_and(|size| size <= *host))
            .reduce(|best, share| {
                if need(share) > need(best) {
                    share
                } else {
                    best
                }
            });
        let Some(share) = neediest else { return };
        let Some(size) = share.next() else { return };
        share.taken += 1;
        share.taken_bytes += size;
        share.left_bytes -= size;
        *host -= size;
    }
}

fn finish(share: &Share<'_>) -> DevicePlan {
    let mut end = share.taken;
    let mut snapshot_bytes = 0_u64;
    for &size in share.chunks.iter().skip(share.taken) {
        if snapshot_bytes + u64::from(size) > share.spare_bytes {
            break;
        }
        snapshot_bytes += u64::from(size);
        end += 1;
    }
    DevicePlan {
        during_stop: 0..share.taken,
        snapshot: share.taken..end,
        before_attach: end..share.chunks.len(),
        during_stop_bytes: share.taken_bytes,
        snapshot_bytes,
        before_attach_bytes: share.left_bytes - snapshot_bytes,
    }
}

fn moved(bytes_per_second: u64, time: Duration) -> u64 {
    let bytes = u128::from(bytes_per_second).saturating_mul(time.as_micros()) / 1_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u32 = 1 << 20;

    fn device(chunks: usize, spare_mib: u64) -> Device {
        Device {
            changed: vec![MIB; chunks],
            spare_bytes: spare_mib << 20,
            link_bytes_per_second: 100 << 20,
        }
    }

    fn counts(plan: &DevicePlan) -> (usize, usize, usize) {
        (
            plan.during_stop.len(),
            plan.snapshot.len(),
            plan.before_attach.len(),
        )
    }

    #[test]
    fn host_memory_goes_first_to_what_no_snapshot_holds() {
        let inputs = DrainInputs {
            devices: vec![device(50, 1000), device(50, 10)],
            host_free_bytes: 60 << 20,
            expected_stop: Duration::from_secs(1),
        };
        let plan = plan(&inputs);
        // 40 chunks of the second device have nowhere else to go; the other 20 are shared.
        assert_eq!(
            plan.devices
                .iter()
                .map(|d| d.before_attach.len())
                .sum::<usize>(),
            0
        );
        assert_eq!(
            plan.devices
                .iter()
                .map(|d| d.during_stop.len())
                .sum::<usize>(),
            60
        );
        assert_eq!(plan.extra_stop(&inputs), Duration::ZERO);
    }

    #[test]
    fn without_room_everything_is_drained_before_the_job_goes_on() {
        let inputs = DrainInputs {
            devices: vec![device(50, 0)],
            host_free_bytes: 0,
            expected_stop: Duration::from_secs(1),
        };
        let plan = plan(&inputs);
        assert_eq!(counts(&plan.devices[0]), (0, 0, 50));
        assert_eq!(plan.extra_stop(&inputs), Duration::from_millis(500));
    }

    #[test]
    fn equal_devices_share_evenly() {
        let inputs = DrainInputs {
            devices: vec![device(50, 0); 4],
            host_free_bytes: 80 << 20,
            expected_stop: Duration::from_secs(10),
        };
        for device in plan(&inputs).devices {
            assert_eq!(counts(&device), (20, 0, 30));
        }
    }

    proptest! {
        #[test]
        fn every_chunk_once_and_nothing_beyond_its_room(
            devices in prop::collection::vec(
                (prop::collection::vec(1..=9u32, 0..60), 0..200u64, 0..200u64), 0..5,
            ),
            host_free_bytes in 0..500u64, stop_ms in 0..3000u64,
        ) {
            let inputs = DrainInputs {
                devices: devices.into_iter().map(|(changed, spare_bytes, link_bytes_per_second)| {
                    Device { changed, spare_bytes, link_bytes_per_second }
                }).collect(),
                host_free_bytes,
                expected_stop: Duration::from_millis(stop_ms),
            };
            let made = plan(&inputs);
            prop_assert_eq!(&made, &plan(&inputs), "deterministic");
            prop_assert_eq!(made.devices.len(), inputs.devices.len());
            let mut host = 0;
            for (plan, device) in made.devices.iter().zip(&inputs.devices) {
                prop_assert_eq!(plan.during_stop.start, 0);
                prop_assert_eq!(plan.during_stop.end, plan.snapshot.start);
                prop_assert_eq!(plan.snapshot.end, plan.before_attach.start);
                prop_assert_eq!(plan.before_attach.end, device.changed.len());
                let bytes = |range: &Range<usize>| device.changed[range.clone()].iter().map(|&size| u64::from(size)).sum::<u64>();
                prop_assert_eq!(bytes(&plan.during_stop), plan.during_stop_bytes);
                prop_assert_eq!(bytes(&plan.snapshot), plan.snapshot_bytes);
                prop_assert_eq!(bytes(&plan.before_attach), plan.before_attach_bytes);
                prop_assert!(plan.snapshot_bytes <= device.spare_bytes);
                prop_assert!(plan.during_stop_bytes <= moved(device.link_bytes_per_second, inputs.expected_stop));
                host += plan.during_stop_bytes;
                // Nothing is drained before attaching while a snapshot had room for it.
                if let Some(&first) = device.changed.get(plan.before_attach.start) {
                    prop_assert!(plan.snapshot_bytes + u64::from(first) > device.spare_bytes);
                }
            }
            prop_assert!(host <= host_free_bytes);
        }
    }
}
