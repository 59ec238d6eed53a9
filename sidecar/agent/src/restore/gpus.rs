//! Which GPU is which, for a job that is restored on other GPUs than its checkpoint was made on.

use phos_protocol::types::GpuUuid;

/// Why the driver cannot move the job to the GPUs that were chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// There are fewer GPUs than the job had.
    #[error(
        "the driver had {had} GPUs at the checkpoint and has {here} here: it moves a process only where it has as many. Give \
         this container or machine {had} GPUs; to keep GPUs that a job does not use out of its checkpoints, hide them from its \
         container (NVIDIA_VISIBLE_DEVICES, --gpus), not from CUDA (CUDA_VISIBLE_DEVICES)"
    )]
    Fewer {
        /// The number of GPUs at the checkpoint.
        had: usize,
        /// The number of GPUs here.
        here: usize,
    },
}

/// The pairs (old GPU → new GPU) for the driver's restore, from those of the GPUs that the job uses. The driver takes none,
/// when every GPU that it had is here and the job stays where it was, or one for every GPU that it had, used or not and
/// visible to the process or not, no new one twice (docs/driver.md).
///
/// # Errors
/// [`MoveError`].
pub fn complete(
    used: &[(GpuUuid, GpuUuid)],
    had: &[GpuUuid],
    here: &[GpuUuid],
) -> Result<Vec<(GpuUuid, GpuUuid)>, MoveError> {
    let stays = used.iter().all(|(old, new)| old == new);
    if stays && had.iter().all(|gpu| here.contains(gpu)) {
        return Ok(Vec::new());
    }
    let mut pairs = used.to_vec();
    let unused = |pairs: &[(GpuUuid, GpuUuid)]| -> Vec<GpuUuid> {
        let taken = |gpu: &GpuUuid| pairs.iter().any(|(old, _)| old == gpu);
        had.iter().filter(|gpu| !taken(gpu)).copied().collect()
    };
    for gpu in unused(&pairs) {
        if here.contains(&gpu) && !pairs.iter().any(|(_, new)| *new == gpu) {
            pairs.push((gpu, gpu));
        }
    }
    for gpu in unused(&pairs) {
        let free = here
            .iter()
            .find(|new| !pairs.iter().any(|(_, taken)| taken == *new));
        let Some(new) = free else {
            return Err(MoveError::Fewer {
                had: had.len(),
                here: here.len(),
            });
        };
        pairs.push((gpu, *new));
    }
    Ok(pairs)
}

/// What processes call their GPUs → where these are, after a restore of an image with `before` onto `pairs` (old GPU → new GPU,
/// or empty). A process continues to name the GPU that it saw first, however often it is moved.
pub fn moved(
    before: &[(GpuUuid, GpuUuid)],
    pairs: &[(GpuUuid, GpuUuid)],
) -> Vec<(GpuUuid, GpuUuid)> {
    let now = |gpu: GpuUuid| {
        let pair = pairs.iter().find(|(old, _)| *old == gpu);
        pair.map_or(gpu, |(_, new)| *new)
    };
    let again = before.iter().map(|&(name, at)| (name, now(at)));
    let first = pairs
        .iter()
        .filter(|(old, _)| !before.iter().any(|(_, at)| at == old))
        .copied();
    again.chain(first).filter(|(name, at)| name != at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(u8, u8)]) -> Vec<(GpuUuid, GpuUuid)> {
        let gpu = |n: u8| GpuUuid([n; 16]);
        list.iter().map(|&(a, b)| (gpu(a), gpu(b))).collect()
    }

    #[test]
    fn names_of_gpus_are_followed_from_node_to_node() {
        let there = moved(&[], &pairs(&[(1, 11), (2, 12)]));
        assert_eq!(there, pairs(&[(1, 11), (2, 12)]));
        assert_eq!(moved(&there, &[]), there, "a restore in place");
        let further = moved(&there, &pairs(&[(11, 22), (12, 21)]));
        assert_eq!(further, pairs(&[(1, 22), (2, 21)]));
        assert_eq!(moved(&further, &pairs(&[(22, 1), (21, 2)])), []);
        // One of them stays, and one that was never moved is.
        assert_eq!(
            moved(&pairs(&[(1, 11)]), &pairs(&[(11, 11), (2, 12)])),
            pairs(&[(1, 11), (2, 12)])
        );
    }

    #[test]
    fn the_driver_is_told_of_every_gpu_or_of_none() {
        let gpus = |ids: &[u8]| -> Vec<GpuUuid> { ids.iter().map(|i| GpuUuid([*i; 16])).collect() };
        let told = |used: &[(u8, u8)], had: &[u8], here: &[u8]| {
            complete(&pairs(used), &gpus(had), &gpus(here)).map(|mut told| {
                told.sort();
                told
            })
        };
        assert_eq!(told(&[], &[1, 2], &[2, 1]), Ok(vec![]));
        assert_eq!(told(&[(1, 1)], &[1], &[1, 2]), Ok(vec![]));
        // On one machine, to the other GPU: they change places.
        assert_eq!(
            told(&[(1, 2)], &[1, 2], &[1, 2]),
            Ok(pairs(&[(1, 2), (2, 1)]))
        );
        // To another machine, one that the job does not use being mapped as well.
        assert_eq!(
            told(&[(1, 11)], &[1, 2], &[10, 11]),
            Ok(pairs(&[(1, 11), (2, 10)]))
        );
        // It stays, and another GPU was exchanged.
        assert_eq!(told(&[], &[1, 2], &[1, 3]), Ok(pairs(&[(1, 1), (2, 3)])));
        assert_eq!(
            told(&[(1, 1)], &[1, 2], &[1, 3]),
            Ok(pairs(&[(1, 1), (2, 3)]))
        );
        assert_eq!(
            told(&[(1, 11)], &[1, 2], &[11]),
            Err(MoveError::Fewer { had: 2, here: 1 })
        );
        // An image that does not say.
        assert_eq!(told(&[(1, 11)], &[], &[11]), Ok(pairs(&[(1, 11)])));
    }
}
