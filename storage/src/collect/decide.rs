//! Decides, by what was looked at, which checkpoints stay visible and what may be given up for deletion.

use std::collections::BTreeSet;

use super::look::Listed;
use super::mark::Marked;
use super::{Candidate, Collector, Seen};
use crate::collection;
use crate::job::{Entry, History, SkippedCheckpoint};
use crate::names::{CheckpointNumber, PackId};

impl Collector<'_> {
    /// Why nothing is swept, if so: what checkpoints that stay, or living writers, need is not known.
    pub(super) fn blocked_by(
        seen: &Seen,
        kept: &BTreeSet<CheckpointNumber>,
        marked: &mut Marked,
    ) -> Vec<SkippedCheckpoint> {
        let unknown = seen.now.entries.iter().filter_map(|entry| {
            let number = CheckpointNumber(entry.number);
            let reason = marked.damaged.get(&entry.number)?.clone();
            kept.contains(&number)
                .then_some(SkippedCheckpoint { number, reason })
        });
        let mut blocked: Vec<SkippedCheckpoint> = unknown.collect();
        blocked.append(&mut marked.unknown_references);
        blocked
    }

    /// Decides which checkpoints stay visible, by the retention policy.
    pub(super) fn choose(&self, now: &History, marked: &Marked) -> BTreeSet<CheckpointNumber> {
        // A run that has nothing yet leaves nothing behind.
        let newest = now.entries.last().map_or(0, |entry| entry.number);
        let end = now.completed.filter(|&end| end < newest);
        let candidate = |entry: &Entry| Candidate {
            number: CheckpointNumber(entry.number),
            created: entry.created,
            branch: entry
                .branch
                .or_else(|| end.filter(|&end| entry.number < end)),
        };
        let all: Vec<Candidate> = now.entries.iter().map(candidate).collect();
        let whole: Vec<Candidate> = (now.entries.iter())
            .filter(|entry| !marked.is_bad(entry.number))
            .map(candidate)
            .collect();
        let mut kept = (self.keep)(&whole);
        kept.retain(|number| whole.iter().any(|c| c.number == *number));
        kept.extend(whole.last().map(|newest| newest.number));
        // A damaged one stays while it would stay if it were whole: it may become readable again.
        let bad = (self.keep)(&all);
        kept.extend(bad.into_iter().filter(|number| marked.is_bad(number.0)));
        kept.extend(all.last().map(|newest| newest.number));
        kept
    }

    pub(super) fn sweepable(
        &self,
        listed: &Listed,
        marked: &Marked,
        now: &History,
        removed: &[CheckpointNumber],
    ) -> (Vec<PackId>, Vec<String>) {
        // A dry run says what the rounds after would sweep as well.
        let (mut named_packs, mut named_manifests) =
            (marked.packs.clone(), marked.manifests.clone());
        if self.options.dry_run {
            let kept = |number: &u64| !removed.contains(&CheckpointNumber(*number));
            named_packs = (marked.usages.iter())
                .filter(|(number, _)| kept(number))
                .flat_map(|(_, usage)| usage.packs.iter().map(|(pack, _)| pack.id))
                .collect();
            named_manifests = (now.entries.iter())
                .filter(|entry| kept(&entry.number))
                .filter_map(|entry| Some(entry.manifest.as_ref()?.name.clone()))
                .collect();
        }
        // What an earlier try of this collection wrote is not named yet, and a listing need not show the note that it stands under.
        let own = self.moves.writer;
        let mut packs: Vec<PackId> = (listed.packs.present.keys())
            .filter(|pack| !named_packs.contains(pack) && !marked.protects(pack))
            .filter(|pack| Some(pack.writer) != own)
            .copied()
            .collect();
        packs.sort_unstable();
        let in_the_past =
            |name: &str| collection::number_in(name).is_some_and(|number| number <= now.log.tail);
        let written_by_dead = |name: &str| {
            collection::writer_in(name).is_none_or(|writer| !marked.alive.contains(&writer))
        };
        let mut manifests: Vec<String> = (listed.manifests.iter())
            .filter(|name| in_the_past(name) && written_by_dead(name))
            .filter(|name| own.is_none() || collection::writer_in(name) != own)
            .filter(|name| !named_manifests.contains(*name) && !marked.referenced.contains(*name))
            .cloned()
            .collect();
        manifests.sort_unstable();
        (packs, manifests)
    }
}
