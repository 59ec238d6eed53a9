//! After the stop: what leaves the GPUs while the job already runs, from where the job itself has it; and what is learned for that.
//!
//! # Consistency
//!
//! The job may write anything at any time. What it was seen to leave alone in its first calls after a checkpoint is copied while it makes so many
//! calls, what is written first before the rest, and its next one waits until the copy is as far. Whatever it does, the store checks what arrives against the name that was taken while the job
//! was quiet, and drops the checkpoint if they differ ([`Cause::Overwritten`](super::outcome::Cause::Overwritten)).
//!
//! # Cancellation
//!
//! The job runs: a wait here ends early with the link, and with the job, and in each case within [`LONGEST`], after which the shims let the job
//! go on by themselves.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use phos_gpu::Range;
use phos_policies::speculation::{Search, WORTH, allowed};
use phos_protocol::agent::{ToAgent, ToSidecar};
use phos_protocol::shim::{Credit, Sequence};
use phos_protocol::types::{AllocationKey, GpuUuid};
use phos_shared::failpoint::{self, Point};
use phos_storage::Digest;

use super::drain::Drains;
use super::drain::plan::{self, Item};
use super::urgent::urgent;
use crate::engine::session::link::Packet;
use crate::engine::session::{Session, WaitError};

/// How long the job may be held for what is copied while it runs, and for a search, all looks together.
const LONGEST: Duration = Duration::from_secs(5);
/// How long that copy is meant to take. If the link carries less than it did, there is some time left before the job goes on by itself and the
/// checkpoint is lost.
pub(super) const BESIDE: Duration = Duration::from_secs(3);
/// How long the job may take for the calls until the next look.
const LOOK: Duration = Duration::from_secs(2);

/// How often it is looked how far the copy is.
const PROGRESS: Duration = Duration::from_millis(5);

/// A chunk of the job's memory: its allocation, and where in it it begins, in bytes.
type Chunk = (AllocationKey, u64);

/// What the job was seen to leave alone.
#[derive(Debug, Default)]
pub(in crate::engine) struct LeftAlone {
    /// It was looked after so many calls.
    looks: Vec<u64>,
    /// At which of these looks a chunk was last as it had been.
    chunks: HashMap<Chunk, usize>,
}

impl LeftAlone {
    /// The look at which this chunk was last seen unchanged; none: it is written at once, or is not known.
    pub(super) fn look(&self, item: &Item) -> Option<usize> {
        self.chunks.get(&(item.key, item.range.offset)).copied()
    }

    /// How far the job may go before all is copied that was last seen unchanged at this look.
    pub(super) fn credit(&self, look: usize) -> Credit {
        credit(self.looks.get(look).map_or(0, |&calls| allowed(calls)))
    }
}

/// What is to be learned after a checkpoint: when each of these chunks, which are all that changed, is written again.
#[derive(Debug)]
pub(super) struct ToLearn {
    pub(super) items: Vec<Item>,
}

/// The credit until the first look of a search.
pub(super) fn first() -> Credit {
    credit(Search::new(0).next())
}

fn credit(calls: u64) -> Credit {
    Credit {
        calls,
        for_ms: LONGEST.as_millis() as u32,
    }
}

impl Session<'_> {
    /// Waits until what is copied while the job runs has been copied, and lets it go on. How long it had nothing left to do.
    pub(super) async fn copy_beside(
        &mut self,
        seq: Sequence,
        drains: &mut Drains,
    ) -> Result<Duration, WaitError> {
        drains.job_runs();
        if drains.look().is_none() {
            return Ok(Duration::ZERO);
        }
        failpoint::reach(Point::SidecarBeside);
        let until = Instant::now() + LONGEST;
        let mut spent = Spent::new(seq);
        let (mut look, mut held) = (drains.look(), Duration::ZERO);
        let outcome = loop {
            tokio::select! {
                // A failure has cancelled the checkpoint, as it does later.
                () = drains.all_copied() => break Ok(()),
                packet = self.link.recv() => match packet {
                    Ok(packet) if spent.is(&packet.0) => {}
                    Ok(packet) => match self.event_while_waiting(packet).await {
                        Ok(()) => {}
                        // Nobody writes that memory any more.
                        Err(WaitError::JobExited) => break Ok(()),
                        Err(e) => break Err(e),
                    },
                    Err(e) => break Err(e.into()),
                },
                () = tokio::time::sleep(PROGRESS) => {
                    let now = drains.look();
                    if let Some(next) = now.filter(|_| now != look) {
                        let credit = Some(self.engine.planning.left_alone.credit(next));
                        self.link.send(&ToAgent::Credit { seq, credit })?;
                        held += spent.held();
                        spent = Spent::new(seq);
                    }
                    look = now;
                    if Instant::now() >= until {
                        break Ok(());
                    }
                }
            }
        };
        held += spent.held();
        self.link.send(&ToAgent::Credit { seq, credit: None })?;
        outcome.map(|()| held)
    }

    /// Sees what the job leaves alone in its first calls. How long it was held for that.
    pub(super) async fn learn(
        &mut self,
        seq: Sequence,
        learn: ToLearn,
        rooms: &BTreeMap<GpuUuid, u64>,
    ) -> Result<Duration, WaitError> {
        let until = Instant::now() + LONGEST;
        let (needed, longer, mut items) = self.engine.overflowed(learn.items, rooms);
        let mut search = Search::new(needed);
        let mut held = Duration::ZERO;
        let mut chunks = HashMap::new();
        // What this stop has shown of the link may leave nothing to gain.
        let is_worth_it = longer >= WORTH;
        let other = loop {
            if !is_worth_it {
                break None;
            }
            let mut spent = Spent::new(seq);
            let time = until.min(Instant::now() + LOOK);
            match self.until_spent(&mut spent, time).await? {
                Looks::Possible => {}
                // It does something else, or waits for a person.
                Looks::Late => break None,
                Looks::Other(packet) => break Some(packet),
            }
            let Some(unchanged) = self.unchanged(std::mem::take(&mut items)).await else {
                break None;
            };
            held += spent.held();
            let bytes = plan::bytes(&unchanged);
            let look = search.looks().len();
            let keys = unchanged.iter().map(|item| (item.key, item.range.offset));
            chunks.extend(keys.map(|chunk| (chunk, look)));
            let calls = search.next();
            let goes_on = search.seen(bytes);
            tracing::debug!(
                seq,
                calls,
                unchanged = bytes,
                needed,
                "what the job has left alone"
            );
            items = unchanged;
            if !goes_on || Instant::now() >= until {
                break None;
            }
            let credit = Some(credit(search.next()));
            self.link.send(&ToAgent::Credit { seq, credit })?;
        };
        // Before anything that the job asks for is answered: it may be this memory, which it has freed meanwhile.
        drop(items);
        self.link.send(&ToAgent::Credit { seq, credit: None })?;
        if is_worth_it {
            let planning = &mut self.engine.planning;
            match search.looks() {
                [] => planning.speculation.saw_nothing(),
                _ if search.is_enough() => planning.speculation.found_enough(),
                _ => planning.speculation.found_too_little(),
            }
            planning.left_alone = LeftAlone {
                looks: search.looks().to_vec(),
                chunks,
            };
            tracing::info!(
                looks = search.looks().len(),
                enough = search.is_enough(),
                held_ms = held.as_millis() as u64,
                "looked for memory that the job leaves alone after a checkpoint, and that can leave the GPU while the job runs"
            );
        }
        if let Some(packet) = other {
            match self.event_while_waiting(packet).await {
                // Its checkpoint is good all the same.
                Ok(()) | Err(WaitError::JobExited) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(held)
    }

    /// Waits for the job to have made its calls; whatever else it has to say ends that.
    async fn until_spent(&mut self, spent: &mut Spent, until: Instant) -> Result<Looks, WaitError> {
        tokio::select! {
            packet = self.link.recv() => {
                let packet = packet?;
                Ok(match spent.is(&packet.0) {
                    true => Looks::Possible,
                    false => Looks::Other(packet),
                })
            }
            () = tokio::time::sleep_until(until.into()) => Ok(Looks::Late),
        }
    }

    /// Those of these chunks that are what they were; none: that could not be found out.
    async fn unchanged(&mut self, items: Vec<Item>) -> Option<Vec<Item>> {
        let gpus = self.engine.gpus.clone();
        let naming = self.engine.job.naming();
        let looked = urgent("phos-look", move || {
            let ranges: Vec<Range> = items.iter().map(|item| item.range.clone()).collect();
            let digests = gpus.digest(&ranges, &naming)?;
            let pairs = items.into_iter().zip(digests);
            let same = pairs.filter(|(item, digest)| item.digest == Digest(*digest));
            Ok::<_, phos_gpu::GpuError>(same.map(|(item, _)| item).collect())
        });
        match looked.ok()?.await {
            Ok(Ok(same)) => Some(same),
            Ok(Err(e)) => {
                tracing::warn!(cause = %e, "it could not be seen what the job leaves alone");
                None
            }
            Err(_) => None,
        }
    }
}

/// What came of waiting for the next look.
enum Looks {
    Possible,
    Late,
    /// The agent has said something else, which is still to be dealt with.
    Other(Packet),
}

/// Whether the process has made its calls, and since when.
struct Spent {
    seq: Sequence,
    since: Option<Instant>,
}

impl Spent {
    fn new(seq: Sequence) -> Spent {
        Spent { seq, since: None }
    }

    /// Whether this is what a process says that has made its calls.
    fn is(&mut self, message: &ToSidecar) -> bool {
        let is = matches!(message, ToSidecar::Spent { seq, .. } if *seq == self.seq);
        if is {
            self.since = Some(Instant::now());
        }
        is
    }

    /// How long the job has had nothing to do.
    fn held(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}
