//! What a collection decided, and what a writer says of itself while it writes: the two small objects that the protocol
//! in [`collect`](crate::collect) is made of. Drawn in `docs/format.md`.

use std::collections::HashSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::branch::Fork;
use crate::crypt::Crypt;
use crate::envelope::{self, EnvelopeError, Kind, SEALED_VERSION};
use crate::names::{Epoch, JobName, Nonce, PackId};

pub(crate) const KIND: Kind = Kind {
    what: "collection",
    magic: *b"PHOSCOLL",
    // 2: forks. 3: lost.
    version: 3,
    sealed: SEALED_VERSION,
    max_stored: 64 << 20,
    max_plain: 128 << 20,
};

/// One without what is newer is written so that an older phos-ft reads it.
const WITHOUT_FORKS: Kind = Kind { version: 1, ..KIND };
const WITHOUT_LOST: Kind = Kind { version: 2, ..KIND };

pub(crate) const NOTE_KIND: Kind = Kind {
    what: "writer's note",
    magic: *b"PHOSWRIT",
    version: 1,
    sealed: SEALED_VERSION,
    max_stored: 64 << 10,
    max_plain: 64 << 10,
};

/// Which manifest is that of a checkpoint, and what its bytes must be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ManifestRef {
    /// The name of the manifest below `manifests/`.
    pub name: String,
    /// Digest of its bytes.
    pub digest: Digest,
    /// The manifest's length in bytes.
    pub length: u64,
}

/// A checkpoint that a collection keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The checkpoint's number.
    pub number: u64,
    /// Its manifest: that of its record, or one that was made when its packs were repacked. `None` if the record could not be
    /// read when this was decided: then it is what the record says, if that can ever be read again.
    pub manifest: Option<ManifestRef>,
}

/// What a collection decided. It holds for all records before its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Collection {
    /// The job that the collection belongs to.
    pub job: JobName,
    /// Number of its record.
    pub number: u64,
    /// The checkpoints that are visible, oldest first.
    pub kept: Vec<Kept>,
    /// The newest record that says that the job ended by itself.
    pub completed: Option<u64>,
    /// Packs that no visible manifest names and none will: they may be deleted.
    pub packs: Vec<PackId>,
    /// Names of manifests of which the same is true.
    pub manifests: Vec<String>,
    /// Forks of the log that tell where the checkpoints that are kept belong, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forks: Vec<Fork>,
    /// The newest record before this one that could not be read, or whose collection could not: what it gave up for deletion is
    /// not known, so nobody references the checkpoints before it that this one keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

impl Collection {
    pub(crate) fn encode(&self, crypt: &Crypt) -> Result<Bytes, EnvelopeError> {
        let payload = envelope::to_cbor(KIND.what, self)?;
        let kind = match (self.lost, self.forks.is_empty()) {
            (Some(_), _) => KIND,
            (None, false) => WITHOUT_LOST,
            (None, true) => WITHOUT_FORKS,
        };
        Ok(envelope::seal_in(crypt, &place(self.number), &kind, &payload)?.into())
    }

    /// Reads the collection that the record of `number` names.
    pub(crate) fn decode(
        crypt: &Crypt,
        job: &JobName,
        number: u64,
        digest: Digest,
        bytes: &[u8],
    ) -> Result<Self, String> {
        let is_decided = Digest::of(bytes) == digest;
        let other = || "the collection is not the one that was decided".to_owned();
        let (_version, payload) = envelope::open_in(crypt, &place(number), &KIND, bytes).map_err(
            |error| match error {
                // Of damaged bytes the version is damaged as well.
                EnvelopeError::Newer { .. } if !is_decided => other(),
                error => error.to_string(),
            },
        )?;
        if !is_decided {
            return Err(other());
        }
        let collection: Self =
            envelope::from_cbor(KIND.what, &payload).map_err(|e| e.to_string())?;
        if collection.job != *job || collection.number != number {
            return Err(format!(
                "the collection is number {} of job {}",
                collection.number, collection.job
            ));
        }
        let sorted = collection.kept.is_sorted_by(|a, b| a.number < b.number);
        if !sorted || collection.kept.last().is_some_and(|k| k.number >= number) {
            return Err("the collection keeps checkpoints that cannot be".into());
        }
        let in_order = collection.forks.is_sorted_by(|a, b| a.at < b.at);
        if !in_order || (collection.forks.iter()).any(|f| f.after >= f.at || f.at >= number) {
            return Err("the collection names forks that cannot be".into());
        }
        if collection.lost.is_some_and(|lost| lost >= number) {
            return Err("the collection names a lost record that cannot be".into());
        }
        Ok(collection)
    }

    /// What the collection says of a checkpoint; `None` if it does not keep it.
    pub(crate) fn kept(&self, number: u64) -> Option<&Kept> {
        let at = self.kept.binary_search_by_key(&number, |kept| kept.number);
        self.kept.get(at.ok()?)
    }

    /// A pack among `packs` that was given up for deletion.
    pub(crate) fn sweeps<'a>(
        &self,
        mut packs: impl Iterator<Item = &'a PackId>,
    ) -> Option<&'a PackId> {
        if self.packs.is_empty() {
            return None;
        }
        let swept: HashSet<&PackId> = self.packs.iter().collect();
        packs.find(|pack| swept.contains(pack))
    }
}

/// Whether an object cannot be read because a newer phos-ft wrote it: it is what its record says, to the last bit.
pub(crate) fn is_newer(crypt: &Crypt, number: u64, digest: Digest, bytes: &[u8]) -> bool {
    let opened = envelope::open_in(crypt, &place(number), &KIND, bytes);
    matches!(opened, Err(EnvelopeError::Newer { .. })) && Digest::of(bytes) == digest
}

/// Name of a collection by its number and the digest of its bytes.
pub(crate) fn name(number: u64, digest: &Digest) -> String {
    format!("{number:020}-{}", &digest.to_string()[..16])
}

/// The number in the name of a collection or manifest.
pub(crate) fn number_in(name: &str) -> Option<u64> {
    let (number, _) = name.split_once('-')?;
    (number.len() == 20).then(|| number.parse().ok()).flatten()
}

/// The writer in the name of a manifest: `None` for one that was written with its record.
pub(crate) fn writer_in(manifest: &str) -> Option<Nonce> {
    let nonce = manifest.split('-').nth(2)?;
    let mut bytes = [0; 16];
    hex::decode_to_slice(nonce, &mut bytes).ok()?;
    Some(Nonce(bytes))
}

/// A writer's note, `writers/<nonce>`: written before it looks at the log for the last time and before its first pack,
/// deleted when it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WriterNote {
    /// The epoch in which it writes: once there is a later one, it is dead.
    pub epoch: Epoch,
    /// The number of the newest record that the writer knew.
    pub seen: u64,
    /// The manifests whose chunks it may name.
    #[serde(rename = "leans_on")]
    pub references: Vec<ManifestRef>,
    /// It leaves its packs to collection, whatever becomes of it; so others may take them. One of an older phos-ft
    /// deletes them when it fails.
    #[serde(default)]
    pub keeps_packs: bool,
    /// Writers that ended and whose packs it may name (see `writer::leftovers`).
    #[serde(default)]
    pub adopts: Vec<Nonce>,
}

impl WriterNote {
    pub(crate) fn encode(&self, crypt: &Crypt, writer: &Nonce) -> Result<Bytes, EnvelopeError> {
        let payload = envelope::to_cbor(NOTE_KIND.what, self)?;
        Ok(envelope::seal_in(crypt, &note_place(writer), &NOTE_KIND, &payload)?.into())
    }

    pub(crate) fn decode(
        crypt: &Crypt,
        writer: &Nonce,
        bytes: &[u8],
    ) -> Result<Self, EnvelopeError> {
        let (_version, payload) = envelope::open_in(crypt, &note_place(writer), &NOTE_KIND, bytes)?;
        envelope::from_cbor(NOTE_KIND.what, &payload)
    }
}

/// Where a collection stands below its job, as far as that can be known before it is sealed: its name has the digest of
/// its bytes in it, and its record says which it is.
fn place(number: u64) -> String {
    format!("collections/{number:020}")
}

/// Where a writer's note stands below its job.
fn note_place(writer: &Nonce) -> String {
    format!("writers/{writer}")
}

/// The writer whose note has this name; `None` if it is no note.
pub(crate) fn parse_note_name(name: &str) -> Option<Nonce> {
    let mut bytes = [0; 16];
    hex::decode_to_slice(name, &mut bytes).ok()?;
    let nonce = Nonce(bytes);
    (nonce.to_string() == name).then_some(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypt::tests::crypt;
    use proptest::prelude::*;

    fn manifest_ref() -> impl Strategy<Value = ManifestRef> {
        ("[0-9a-f-]{1,60}", any::<[u8; 32]>(), any::<u64>()).prop_map(|(name, digest, length)| {
            ManifestRef {
                name,
                digest: Digest(digest),
                length,
            }
        })
    }

    fn pack() -> impl Strategy<Value = PackId> {
        (any::<[u8; 16]>(), any::<u32>()).prop_map(|(nonce, sequence)| PackId {
            writer: Nonce(nonce),
            sequence,
        })
    }

    proptest! {
        #[test]
        fn a_collection_comes_back(
            kept in prop::collection::btree_map(0..1000u64, prop::option::of(manifest_ref()), 0..8),
            packs in prop::collection::vec(pack(), 0..8), manifests in prop::collection::vec("[0-9a-f-]{1,60}", 0..4),
            completed in prop::option::of(any::<u64>()), lost in prop::option::of(0..1000u64), forks in prop::collection::btree_map(1..1000u64, any::<u64>(), 0..4),
        ) {
            let forks = forks.into_iter().map(|(at, after)| Fork { at, after: after % at }).collect();
            let kept: Vec<Kept> = kept.into_iter().map(|(number, manifest)| Kept { number, manifest }).collect();
            let job = JobName::new("job").unwrap();
            let collection = Collection { job: job.clone(), number: 1000, kept, completed, packs, manifests, forks, lost };
            for crypt in [Crypt::PLAIN, crypt(1, "job")] {
                let bytes = collection.encode(&crypt).unwrap();
                let digest = Digest::of(&bytes);
                prop_assert_eq!(Collection::decode(&crypt, &job, 1000, digest, &bytes).unwrap(), collection.clone());
                prop_assert!(Collection::decode(&crypt, &job, 1001, digest, &bytes).is_err());
                prop_assert!(Collection::decode(&crypt, &job, 1000, Digest([0; 32]), &bytes).is_err());
            }
            for kept in &collection.kept {
                prop_assert_eq!(collection.kept(kept.number), Some(kept));
            }
            prop_assert_eq!(collection.kept(1000), None);
            prop_assert_eq!(collection.sweeps(collection.packs.iter()), collection.packs.first());
        }

        #[test]
        fn a_note_comes_back(epoch in any::<u64>(), seen in any::<u64>(), references in prop::collection::vec(manifest_ref(), 0..4), keeps_packs in any::<bool>(), adopts in prop::collection::vec(any::<[u8; 16]>(), 0..3)) {
            let adopts = adopts.into_iter().map(Nonce).collect();
            let note = WriterNote { epoch: Epoch(epoch), seen, references, keeps_packs, adopts };
            let (writer, other) = (Nonce([1; 16]), Nonce([2; 16]));
            for crypt in [Crypt::PLAIN, crypt(1, "job")] {
                let bytes = note.encode(&crypt, &writer).unwrap();
                prop_assert_eq!(&WriterNote::decode(&crypt, &writer, &bytes).unwrap(), &note);
                prop_assert_eq!(WriterNote::decode(&crypt, &other, &bytes).is_ok(), crypt.keys().is_none());
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), name in "[0-9a-f-]{0,70}") {
            let job = JobName::new("job").unwrap();
            for (kind, sealed) in [(&KIND, false), (&KIND, true), (&NOTE_KIND, true)] {
                let bytes = if sealed { envelope::seal(kind, &bytes).unwrap() } else { bytes.clone() };
                let _ = Collection::decode(&Crypt::PLAIN, &job, 1, Digest::of(&bytes), &bytes);
                let _ = WriterNote::decode(&Crypt::PLAIN, &Nonce([1; 16]), &bytes);
            }
            let _ = (number_in(&name), writer_in(&name), parse_note_name(&name));
        }
    }

    #[test]
    fn only_what_its_record_names_is_of_a_newer_phos_ft() {
        let job = JobName::new("job").unwrap();
        let collection = Collection {
            job: job.clone(),
            number: 7,
            kept: Vec::new(),
            completed: None,
            packs: Vec::new(),
            manifests: Vec::new(),
            forks: Vec::new(),
            lost: None,
        };
        let whole = collection.encode(&Crypt::PLAIN).unwrap();
        let digest = Digest::of(&whole);
        assert!(!is_newer(&Crypt::PLAIN, 7, digest, &whole));
        let mut bytes = whole.to_vec();
        bytes[8] = 9;
        assert!(is_newer(&Crypt::PLAIN, 7, Digest::of(&bytes), &bytes));
        assert!(!is_newer(&Crypt::PLAIN, 7, digest, &bytes));
        let decode = |digest| Collection::decode(&Crypt::PLAIN, &job, 7, digest, &bytes);
        let newer = decode(Digest::of(&bytes)).unwrap_err();
        let damaged = decode(digest).unwrap_err();
        assert!(
            newer.contains("newer") && !damaged.contains("newer"),
            "{newer}; {damaged}"
        );
    }

    #[test]
    fn names_say_whose_they_are() {
        let digest = Digest([0xab; 32]);
        let name = name(7, &digest);
        assert_eq!(name, "00000000000000000007-abababababababab");
        assert_eq!((number_in(&name), writer_in(&name)), (Some(7), None));
        let nonce = Nonce([3; 16]);
        assert_eq!(writer_in(&format!("{name}-{nonce}")), Some(nonce));
        assert_eq!(parse_note_name(&nonce.to_string()), Some(nonce));
        assert_eq!(parse_note_name("xyz"), None);
    }
}
