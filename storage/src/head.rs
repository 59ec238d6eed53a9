//! Records of a job's log: the only thing that makes anything visible.
//!
//! A record stands at `head/<number>`, 20 digits, created conditionally, never changed. The first one is number 1, and the number
//! after `n` is only created by a writer that saw that `n` is the newest; so of all that try, one wins, and the log is one line
//! of history whatever the clocks say. An epoch is the number of the take-over record that began it.
//!
//! No record is ever deleted, not even that of a checkpoint that retention removed: a number that became free could be created
//! again by a writer that slept since before it was taken, which would then believe that it owns the job.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::crypt::Crypt;
use crate::envelope::{self, EnvelopeError, Kind, SEALED_VERSION};
use crate::names::{Epoch, Nonce, UnixMillis};

pub(crate) const KIND: Kind = Kind {
    what: "head record",
    magic: *b"PHOSHEAD",
    // 2: records of a collection. Who does not know of them must neither list nor write.
    // 3: a take-over that goes on from an older checkpoint. Who does not know of it would resume what was left behind.
    version: 3,
    sealed: SEALED_VERSION,
    max_stored: 64 << 10,
    max_plain: 64 << 10,
};

/// Every other record is written so that an older phos-ft reads it.
const WITHOUT_BRANCH: Kind = Kind { version: 2, ..KIND };

/// Records read at once.
pub(crate) const READS: usize = 16;

/// A record of a job's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadRecord {
    /// The record's place in the log, which its key says too.
    pub number: u64,
    /// The epoch in which the record was written.
    pub epoch: Epoch,
    /// When it was written, as told by the caller.
    pub created: UnixMillis,
    /// The one who wrote it: makes its bytes unique.
    pub nonce: Nonce,
    /// What the record says.
    pub kind: RecordKind,
}

/// The content of a record of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// Someone took the job over. Its number is the epoch from here on.
    TakenOver {
        /// Who took the job over: host and process, for people.
        holder: String,
        /// The agent whose job it is, by its number; absent if none was named, as in records of an older phos-ft.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<u64>,
        /// The tier on the holder's machine, by its name; absent as before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<String>,
        /// Set if the job continues from an older checkpoint than the newest, or from its beginning: the record after which
        /// nothing of what was there belongs to the job's current branch; 0 for its beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u64>,
    },
    /// A checkpoint is complete.
    Checkpoint {
        /// Name of its manifest below `manifests/`.
        manifest: String,
        /// Digest of the manifest's bytes.
        digest: Digest,
        /// Length of the manifest in bytes.
        length: u64,
        /// The size of the whole image, in bytes.
        image_bytes: u64,
        /// Bytes of chunks that this checkpoint added, before encoding.
        new_bytes: u64,
        /// Bytes that this checkpoint added to the store in packs.
        stored_bytes: u64,
        /// How long the job was held back, in microseconds.
        stop_us: u64,
        /// The word for why the checkpoint was taken.
        trigger: String,
    },
    /// The job ended by itself: a later start begins afresh.
    Completed {
        /// The exit code of the job.
        exit_code: i32,
    },
    /// Retention or collection: of the checkpoints before this record, those that it keeps are visible, and what it
    /// sweeps may be deleted by anybody at any time from here on.
    Collected {
        /// Name of the collection below `collections/`.
        collection: String,
        /// Digest of the collection's bytes.
        digest: Digest,
        /// Length of the collection in bytes.
        length: u64,
        /// Checkpoints that it removed.
        removed: u64,
        /// Packs and manifests that it gave up for deletion.
        swept: u64,
    },
}

impl HeadRecord {
    pub(crate) fn encode(&self, crypt: &Crypt) -> Result<Bytes, EnvelopeError> {
        let payload = envelope::to_cbor(KIND.what, self)?;
        let kind = match self.kind {
            RecordKind::TakenOver { after: Some(_), .. } => KIND,
            _ => WITHOUT_BRANCH,
        };
        Ok(envelope::seal_in(crypt, &place(self.number), &kind, &payload)?.into())
    }

    /// Reads the record that stands at `number`.
    pub(crate) fn decode(crypt: &Crypt, number: u64, bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let (_version, payload) = envelope::open_in(crypt, &place(number), &KIND, bytes)?;
        let record: Self = envelope::from_cbor(KIND.what, &payload)?;
        if record.number != number {
            let detail = format!(
                "it says that it is number {} and stands at {number}",
                record.number
            );
            return Err(EnvelopeError::Payload {
                what: KIND.what,
                detail,
            });
        }
        Ok(record)
    }
}

/// Where the record of a number stands below its job.
pub(crate) fn place(number: u64) -> String {
    format!("head/{}", record_name(number))
}

/// Name of the record of a number.
pub(crate) fn record_name(number: u64) -> String {
    format!("{number:020}")
}

/// No log has more records: one each millisecond for 30,000 years. A name with a greater number is not a record's, and nobody
/// who reckons with numbers meets the end of them.
pub(crate) const MOST_RECORDS: u64 = 1_000_000_000_000_000;

/// The number of the record that has this name; `None` if it is no record's.
pub(crate) fn parse_record_name(name: &str) -> Option<u64> {
    let number = name.parse().ok()?;
    (number <= MOST_RECORDS && record_name(number) == name).then_some(number)
}

/// The number of records that are asked for in a run of missing numbers.
const MOST_MISSING: u64 = 64;

/// The numbers of a log's records with those that a listing lacks, oldest first: no record is ever deleted, so one that is not
/// there was lost, or the listing does not show it. Of many missing in a row, only the newest are included.
pub(crate) fn with_missing(listed: &[u64]) -> Vec<u64> {
    let mut all = Vec::with_capacity(listed.len());
    let mut next = 1;
    for &number in listed {
        all.extend(next.max(number.saturating_sub(MOST_MISSING))..=number);
        next = number + 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypt::tests::crypt;
    use proptest::prelude::*;

    fn kind() -> impl Strategy<Value = RecordKind> {
        prop_oneof![
            (
                "[ -~]{0,30}",
                prop::option::of(any::<u64>()),
                prop::option::of("[ -~]{0,30}"),
                prop::option::of(any::<u64>())
            )
                .prop_map(|(holder, agent, tier, after)| RecordKind::TakenOver {
                    holder,
                    agent,
                    tier,
                    after
                }),
            any::<i32>().prop_map(|exit_code| RecordKind::Completed { exit_code }),
            (
                "[ -~]{0,60}",
                any::<[u8; 32]>(),
                any::<[u64; 5]>(),
                "[ -~]{0,20}"
            )
                .prop_map(|(manifest, digest, n, trigger)| {
                    if n[0] % 2 == 0 {
                        return RecordKind::Collected {
                            collection: manifest,
                            digest: Digest(digest),
                            length: n[0],
                            removed: n[1],
                            swept: n[2],
                        };
                    }
                    RecordKind::Checkpoint {
                        manifest,
                        digest: Digest(digest),
                        length: n[0],
                        image_bytes: n[1],
                        new_bytes: n[2],
                        stored_bytes: n[3],
                        stop_us: n[4],
                        trigger,
                    }
                }),
        ]
    }

    /// The record of a take-over before it said which agent and tier.
    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Before {
        number: u64,
        epoch: Epoch,
        created: UnixMillis,
        nonce: Nonce,
        kind: BeforeKind,
    }

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum BeforeKind {
        TakenOver { holder: String },
    }

    #[test]
    fn who_took_over_is_read_by_an_older_phos_ft_and_of_one() {
        let nonce = Nonce([7; 16]);
        let record = |agent, tier| HeadRecord {
            number: 3,
            epoch: Epoch(3),
            created: UnixMillis(1),
            nonce,
            kind: RecordKind::TakenOver {
                holder: "host".into(),
                agent,
                tier,
                after: None,
            },
        };
        let before = Before {
            number: 3,
            epoch: Epoch(3),
            created: UnixMillis(1),
            nonce,
            kind: BeforeKind::TakenOver {
                holder: "host".into(),
            },
        };
        let named = record(Some(u64::MAX), Some("t".into()));
        let bytes = named.encode(&Crypt::PLAIN).unwrap();
        assert_eq!(HeadRecord::decode(&Crypt::PLAIN, 3, &bytes).unwrap(), named);
        let (version, payload) = envelope::open(&WITHOUT_BRANCH, &bytes).unwrap();
        assert_eq!(version, WITHOUT_BRANCH.version);
        let read: Before = envelope::from_cbor(KIND.what, &payload).unwrap();
        assert_eq!(read, before);

        let payload = envelope::to_cbor(KIND.what, &before).unwrap();
        let bytes = envelope::seal(&WITHOUT_BRANCH, &payload).unwrap();
        let unnamed = record(None, None);
        assert_eq!(
            HeadRecord::decode(&Crypt::PLAIN, 3, &bytes).unwrap(),
            unnamed
        );
        // Nobody named leaves the bytes as they were.
        assert_eq!(unnamed.encode(&Crypt::PLAIN).unwrap()[..], bytes[..]);
    }

    proptest! {
        #[test]
        fn round_trip(number in any::<u64>(), epoch in any::<u64>(), created in any::<u64>(), nonce in any::<[u8; 16]>(), kind in kind()) {
            let record = HeadRecord { number, epoch: Epoch(epoch), created: UnixMillis(created), nonce: Nonce(nonce), kind };
            for crypt in [Crypt::PLAIN, crypt(1, "a")] {
                let bytes = record.encode(&crypt).unwrap();
                prop_assert_eq!(&HeadRecord::decode(&crypt, number, &bytes).unwrap(), &record);
                prop_assert!(HeadRecord::decode(&crypt, number.wrapping_add(1), &bytes).is_err());
            }
            let number = number % (MOST_RECORDS + 1);
            prop_assert_eq!(parse_record_name(&record_name(number)), Some(number));
            prop_assert_eq!(parse_record_name(&record_name(number + MOST_RECORDS + 1)), None);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(HeadRecord::decode(&Crypt::PLAIN, 1, &bytes).is_err());
            prop_assert!(HeadRecord::decode(&Crypt::PLAIN, 1, &envelope::seal(&KIND, &bytes).unwrap()).is_err());
        }

        #[test]
        fn what_is_missing_is_asked_for(listed in prop::collection::btree_set(1_u64..300, 0..40)) {
            let listed: Vec<u64> = listed.into_iter().collect();
            let all = with_missing(&listed);
            prop_assert!(all.is_sorted() && listed.iter().all(|number| all.contains(number)));
            let end = listed.last().map_or(0, |last| last + 1);
            for number in 1..end {
                let next = listed[listed.partition_point(|n| *n < number)];
                prop_assert_eq!(all.contains(&number), next - number <= MOST_MISSING, "{}", number);
            }
            prop_assert!(!all.contains(&end));
        }

        #[test]
        fn odd_names_are_not_records(name in "[0-9+a-z]{1,22}") {
            if let Some(number) = parse_record_name(&name) {
                prop_assert_eq!(record_name(number), name);
            }
        }
    }
}
