//! Encryption of a job by a key that the store never sees: the key file, what is derived from it, and boxes. Why it is
//! so, and against whom it helps: `docs/decisions/9-encryption.md`. Drawn in `docs/format.md`.
//!
//! # Rules
//!
//! * Everything below a job is a box, or a header that the box beside it vouches for. Anything that is not a box of the job's key
//!   is not believed.
//! * A box is opened only as what it was made for: that is its associated data, which begins with eight bytes that
//!   differ for every purpose.
//! * No key for AES is used twice: each box has one of its own, derived from a nonce that is made of random bits *and* of
//!   what the box is for and holds.
//! * Keys are locked in memory and wiped when the last handle goes (`secret`). They are neither printed nor written.

use std::borrow::Cow;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce as Iv, UnboundKey};
use bytes::Bytes;
use zeroize::Zeroizing;

use crate::Digest;
use crate::codec::Codec;
use crate::names::{JobName, NonceSource};
use crate::secret::{KEY, Secret};

/// Bytes of a box's nonce, which stands in front of it.
pub(crate) const NONCE: usize = 24;
/// The length of a box's tag, which ends it, in bytes.
pub(crate) const TAG: usize = 16;
/// How many bytes longer a box is than its content.
pub(crate) const OVERHEAD: usize = NONCE + TAG;
/// Bits that say who may read the file besides its owner, write it or run it.
const OTHERS: u32 = 0o077;

/// Contexts of BLAKE3's key derivation. They are part of the format: never change one.
mod context {
    pub(super) const ID: &str = "phos-ft 2026-11-21 id of a key file";
    pub(super) const JOB: &str = "phos-ft 2026-11-21 key of a job";
    pub(super) const BOXES: &str = "phos-ft 2026-11-21 boxes of a job";
    pub(super) const NONCES: &str = "phos-ft 2026-11-21 nonces of a job";
    pub(super) const NAMES: &str = "phos-ft 2026-11-21 chunk names of a job";
}

/// First bytes of the associated data of a chunk.
const CHUNK: [u8; 8] = *b"PHOSCHNK";

/// Why a key file cannot be used or made.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The key file cannot be read.
    #[error(
        "the key file {} cannot be read: {source}: give the file that the job was begun with, or make one with \
         `phos-ft keygen FILE`",
        path.display()
    )]
    Read {
        /// The path of the key file.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// The path leads to a directory, a pipe or a device.
    #[error("{} is no file: a key file is one of {KEY} bytes, made with `phos-ft keygen FILE`", path.display())]
    NotAFile {
        /// The path that was given for the key file.
        path: PathBuf,
    },
    /// Others than its owner may read or change it.
    #[error(
        "the key file {} has permissions {mode:04o}: others than its owner may use it: chmod 600 {}",
        path.display(), path.display()
    )]
    Permissions {
        /// The path of the key file.
        path: PathBuf,
        /// The permission bits of the file.
        mode: u32,
    },
    /// The file has another length than a key.
    #[error(
        "the key file {} has {found} bytes, a key has {KEY}: it is another file or was cut off; make one with \
         `phos-ft keygen FILE`",
        path.display()
    )]
    Length {
        /// The path of the key file.
        path: PathBuf,
        /// Its length in bytes, at most one more than a key.
        found: usize,
    },
    /// The key file cannot be made.
    #[error("the key file {} cannot be made: {source}", path.display())]
    Create {
        /// The path of the key file.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// Something stands at the path already.
    #[error(
        "{} is there already and was left alone: a key that was overwritten takes its checkpoints with it; choose another \
         name",
        path.display()
    )]
    Exists {
        /// The path at which something stands already.
        path: PathBuf,
    },
}

impl KeyError {
    /// Whether trying again, with nothing changed, cannot help. A file that is not there stays away; a disk or a file system of
    /// the network that fails may come back.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        use io::ErrorKind::{InvalidInput, NotADirectory, NotFound, PermissionDenied};
        match self {
            Self::Read { source, .. } => matches!(
                source.kind(),
                NotFound | PermissionDenied | NotADirectory | InvalidInput
            ),
            _ => true,
        }
    }
}

/// Which key file it is, for people: eight bytes that do not tell the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId(pub(crate) [u8; 8]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The bytes of a key file. Cheap to clone; wiped when the last clone goes.
#[derive(Clone)]
pub struct Key {
    secret: Arc<Secret<1>>,
    id: KeyId,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.id)
    }
}

impl Key {
    /// A key of these bytes, which should be random.
    #[must_use]
    pub fn new(bytes: &[u8; KEY]) -> Self {
        let secret = Secret::new(|keys| keys[0] = *bytes);
        let mut id = [0; 8];
        id.copy_from_slice(&derive(context::ID, &[bytes])[..8]);
        Self {
            secret: Arc::new(secret),
            id: KeyId(id),
        }
    }

    /// A new key, of random numbers that nobody can guess.
    #[must_use]
    pub fn random(mut source: impl FnMut() -> u64) -> Self {
        let mut bytes = Zeroizing::new([0; KEY]);
        for part in bytes.chunks_exact_mut(8) {
            part.copy_from_slice(&source().to_le_bytes());
        }
        Self::new(&bytes)
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or it does not hold a key's 32 bytes.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::Read {
            path: path.to_owned(),
            source,
        };
        // Opening a pipe would wait for whoever writes into it.
        let mut options = OpenOptions::new();
        options
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        let file = options.open(path).map_err(failed)?;
        // Of what was opened, not of what stands under that name by now.
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(KeyError::NotAFile {
                path: path.to_owned(),
            });
        }
        let mode = meta.mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(KeyError::Permissions {
                path: path.to_owned(),
                mode,
            });
        }
        // One more, to see that it ends there.
        let mut bytes = Zeroizing::new([0; KEY + 1]);
        let mut found = 0;
        while found < bytes.len() {
            match (&file).read(&mut bytes[found..]) {
                Ok(0) => break,
                Ok(n) => found += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        match bytes[..found].first_chunk::<KEY>() {
            Some(key) if found == KEY => Ok(Self::new(key)),
            _ => Err(KeyError::Length {
                path: path.to_owned(),
                found,
            }),
        }
    }

    /// Writes a key file that only its owner may read.
    ///
    /// # Errors
    /// It is there already or cannot be written.
    pub fn create(&self, path: &Path) -> Result<(), KeyError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists {
                path: path.to_owned(),
            },
            _ => KeyError::Create {
                path: path.to_owned(),
                source,
            },
        };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let written = file
            .write_all(self.bytes())
            .and_then(|()| file.sync_all())
            // Its name as well: a key that was used must not be lost with the power.
            .and_then(|()| std::fs::File::open(directory_of(path))?.sync_all());
        written.map_err(|source| {
            // Half a key is none.
            let _ = std::fs::remove_file(path);
            failed(source)
        })
    }

    /// The id of the key, by which keys are told apart without showing them.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    fn bytes(&self) -> &[u8; KEY] {
        let [bytes] = self.secret.keys();
        bytes
    }
}

fn directory_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// 32 bytes for one purpose.
fn derive(context: &str, material: &[&[u8]]) -> Zeroizing<[u8; KEY]> {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in material {
        hasher.update(part);
    }
    Zeroizing::new(*hasher.finalize().as_bytes())
}

/// How a job names its chunks: by the BLAKE3 digest of their bytes, keyed if the job is encrypted. Cheap to clone.
#[derive(Clone, Default)]
pub struct Naming(Option<Arc<Secret<3>>>);

impl fmt::Debug for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "keyed" } else { "plain" })
    }
}

impl Naming {
    /// Names chunks by their plain digest.
    pub const PLAIN: Self = Self(None);

    /// The name of a chunk with these bytes.
    #[must_use]
    pub fn of(&self, bytes: &[u8]) -> Digest {
        match self.key() {
            None => Digest::of(bytes),
            Some(key) => Digest(*blake3::keyed_hash(key, bytes).as_bytes()),
        }
    }

    /// The key of BLAKE3's keyed mode, if there is one: for those who compute digests elsewhere, as on a GPU.
    #[must_use]
    pub fn key(&self) -> Option<&[u8; KEY]> {
        self.0.as_ref().map(|secret| &secret.keys()[NAMES])
    }
}

/// A box cannot be opened: it was damaged, moved or replaced, or never made with this key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused;

/// What a job's objects are sealed with; nothing if it is not encrypted. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Crypt(Option<Arc<JobKeys>>);

impl fmt::Debug for Crypt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("plain"),
            Some(keys) => write!(f, "encrypted with key {}", keys.id),
        }
    }
}

impl Crypt {
    /// The encryption of a job that is not encrypted: none.
    pub(crate) const PLAIN: Self = Self(None);

    /// Of a job, with the key of the options of its store.
    pub(crate) fn of_job(key: Option<&Key>, job: &JobName, random: &NonceSource) -> Self {
        Self(key.map(|key| Arc::new(JobKeys::new(key, job, random.clone()))))
    }

    pub(crate) fn keys(&self) -> Option<&JobKeys> {
        self.0.as_deref()
    }

    /// The way in which the chunks of this job are named.
    pub(crate) fn naming(&self) -> Naming {
        Naming(self.keys().map(|keys| keys.secret.clone()))
    }

    /// The name of a chunk with these bytes.
    pub(crate) fn name(&self, bytes: &[u8]) -> Digest {
        match self.keys() {
            None => Digest::of(bytes),
            Some(keys) => Digest(*blake3::keyed_hash(keys.key(NAMES), bytes).as_bytes()),
        }
    }

    /// Bytes that each chunk and each index has more in a pack than what is in it.
    pub(crate) fn overhead(&self) -> u32 {
        self.keys().map_or(0, |_| OVERHEAD as u32)
    }

    /// What stands in a pack of a chunk that was encoded so.
    pub(crate) fn seal_chunk<'a>(
        &self,
        digest: &Digest,
        codec: Codec,
        raw: u32,
        encoded: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, Refused> {
        match self.keys() {
            // Of zeros nothing is stored, so there is nothing to seal.
            Some(keys) if codec != Codec::Zero => {
                // Its name stands for its content.
                let sealed = keys.seal(&about_chunk(digest, codec, raw), encoded, &[])?;
                Ok(sealed.into())
            }
            _ => Ok(encoded.into()),
        }
    }

    /// The encoded chunk of what stands in a pack.
    pub(crate) fn open_chunk(
        &self,
        digest: &Digest,
        codec: Codec,
        raw: u32,
        stored: Bytes,
    ) -> Result<Bytes, String> {
        match self.keys() {
            Some(keys) if codec != Codec::Zero => keys
                .open(&about_chunk(digest, codec, raw), &stored)
                .map(Bytes::from)
                .map_err(|Refused| {
                    "it cannot be decrypted: it was damaged, moved or replaced".to_owned()
                }),
            _ => Ok(stored),
        }
    }
}

/// Associated data of a chunk: its name, codec and length. Where it stands is not part of it, so that it may be moved.
fn about_chunk(digest: &Digest, codec: Codec, raw: u32) -> [u8; 45] {
    let mut about = [0; 45];
    about[..8].copy_from_slice(&CHUNK);
    about[8..40].copy_from_slice(&digest.0);
    about[40] = codec as u8;
    about[41..].copy_from_slice(&raw.to_le_bytes());
    about
}

/// The keys of one job, derived from its key file.
pub(crate) struct JobKeys {
    id: KeyId,
    /// The keys for [`BOXES`], [`NONCES`] and [`NAMES`].
    secret: Arc<Secret<3>>,
    random: NonceSource,
}

/// Places of a job's keys.
const BOXES: usize = 0;
const NONCES: usize = 1;
const NAMES: usize = 2;

impl JobKeys {
    fn new(key: &Key, job: &JobName, random: NonceSource) -> Self {
        let own = derive(context::JOB, &[key.bytes(), job.as_str().as_bytes()]);
        let secret = Secret::new(|keys| {
            for (place, context) in [
                (BOXES, context::BOXES),
                (NONCES, context::NONCES),
                (NAMES, context::NAMES),
            ] {
                keys[place] = *derive(context, &[&own[..]]);
            }
        });
        Self {
            id: key.id,
            secret: Arc::new(secret),
            random,
        }
    }

    fn key(&self, place: usize) -> &[u8; KEY] {
        &self.secret.keys()[place]
    }

    /// The id of the key file that the keys are derived from.
    pub(crate) const fn id(&self) -> KeyId {
        self.id
    }

    /// A box: nonce, encrypted bytes, tag. `about` is what it is for; `content` stands for what is in it.
    pub(crate) fn seal(
        &self,
        about: &[u8],
        plain: &[u8],
        content: &[u8],
    ) -> Result<Vec<u8>, Refused> {
        let nonce = self.nonce(about, plain.len(), content);
        let (key, iv) = self.once(&nonce)?;
        let mut sealed = Vec::with_capacity(plain.len() + OVERHEAD);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let tag = key.seal_in_place_separate_tag(iv, Aad::from(about), &mut sealed[NONCE..]);
        sealed.extend_from_slice(tag.map_err(|_| Refused)?.as_ref());
        Ok(sealed)
    }

    /// What is in a box that was made for this.
    pub(crate) fn open(&self, about: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Refused> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE>().ok_or(Refused)?;
        let (encrypted, tag) = rest.split_last_chunk::<TAG>().ok_or(Refused)?;
        let (key, iv) = self.once(nonce)?;
        let mut plain = vec![0; encrypted.len()];
        key.open_separate_gather(iv, Aad::from(about), encrypted, tag, &mut plain)
            .map_err(|_| Refused)?;
        Ok(plain)
    }

    fn nonce(&self, about: &[u8], length: usize, content: &[u8]) -> [u8; NONCE] {
        let mut hasher = blake3::Hasher::new_keyed(self.key(NONCES));
        hasher
            .update(&self.random.next().0)
            .update(&self.random.next().0)
            .update(&(about.len() as u64).to_le_bytes())
            .update(about)
            .update(&(length as u64).to_le_bytes())
            .update(content);
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&hasher.finalize().as_bytes()[..NONCE]);
        nonce
    }

    /// The key and initialisation vector of the box with this nonce, and of no other.
    fn once(&self, nonce: &[u8; NONCE]) -> Result<(LessSafeKey, Iv), Refused> {
        let mut derived = Zeroizing::new([0; KEY + 12]);
        blake3::Hasher::new_keyed(self.key(BOXES))
            .update(nonce)
            .finalize_xof()
            .fill(&mut derived[..]);
        let (key, iv) = derived.split_at(KEY);
        let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| Refused)?;
        let iv = Iv::try_assume_unique_for_key(iv).map_err(|_| Refused)?;
        Ok((LessSafeKey::new(key), iv))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt;

    /// The same number for ever: what a machine that was copied gives.
    pub(crate) fn stuck() -> NonceSource {
        NonceSource::new(|| [7; 16])
    }

    /// Of a job, with a key of a byte.
    pub(crate) fn crypt(key: u8, job: &str) -> Crypt {
        Crypt::of_job(
            Some(&Key::new(&[key; KEY])),
            &JobName::new(job).unwrap(),
            &stuck(),
        )
    }

    fn keys(key: u8, job: &str) -> Arc<JobKeys> {
        crypt(key, job).0.unwrap()
    }

    #[test]
    fn derivation_is_what_it_always_was() {
        // Part of the format: what is written here must not change.
        let key = Key::new(&std::array::from_fn(|i| i as u8));
        let keys = JobKeys::new(&key, &JobName::new("fixture").unwrap(), stuck());
        let by_hand = |context: &str, material: &[u8]| blake3::derive_key(context, material);
        let file: Vec<u8> = (0..32).collect();
        assert_eq!(
            keys.id.0,
            by_hand("phos-ft 2026-11-21 id of a key file", &file)[..8]
        );
        let job = by_hand(
            "phos-ft 2026-11-21 key of a job",
            &[&file[..], b"fixture"].concat(),
        );
        assert_eq!(
            *keys.key(BOXES),
            by_hand("phos-ft 2026-11-21 boxes of a job", &job)
        );
        assert_eq!(
            *keys.key(NONCES),
            by_hand("phos-ft 2026-11-21 nonces of a job", &job)
        );
        assert_eq!(
            *keys.key(NAMES),
            by_hand("phos-ft 2026-11-21 chunk names of a job", &job)
        );
    }

    #[test]
    fn a_key_file_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let key = Key::new(&[9; KEY]);
        key.create(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(Key::read(&path).unwrap().id(), key.id());
        assert_eq!(std::fs::read(&path).unwrap(), [9; KEY]);
        // It is never overwritten.
        assert!(matches!(
            Key::new(&[8; KEY]).create(&path),
            Err(KeyError::Exists { .. })
        ));
        assert_eq!(Key::read(&path).unwrap().id(), key.id());
        for mode in [0o640, 0o604, 0o620, 0o601] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let error = Key::read(&path).unwrap_err();
            assert!(error.to_string().contains("chmod 600"), "{mode:o}: {error}");
        }
    }

    #[test]
    fn what_is_no_key_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        assert!(matches!(Key::read(&path), Err(KeyError::Read { .. })));
        assert!(matches!(
            Key::read(dir.path()),
            Err(KeyError::NotAFile { .. })
        ));
        for length in [0, 31, 33, 1000] {
            std::fs::write(&path, vec![1; length]).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
            assert!(
                matches!(Key::read(&path), Err(KeyError::Length { found, .. }) if found == length.min(33)),
                "{length}"
            );
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn nothing_prints_a_key() {
        let key = Key::new(&[0x5a; KEY]);
        let crypt = crypt(0x5a, "a");
        for text in [
            format!("{key:?}"),
            format!("{crypt:?}"),
            format!("{:?}", crypt.naming()),
        ] {
            assert!(!text.contains("5a5a") && !text.contains("90, 90"), "{text}");
        }
    }

    #[test]
    fn names_are_the_jobs_own() {
        let (a, b, c) = (crypt(1, "a"), crypt(1, "b"), crypt(2, "a"));
        let names = [a.name(b"x"), b.name(b"x"), c.name(b"x"), Digest::of(b"x")];
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name));
        }
        assert_eq!(a.naming().of(b"x"), a.name(b"x"));
        assert_eq!(Crypt::PLAIN.naming().of(b"x"), Digest::of(b"x"));
        assert_eq!(
            a.name(b"x").0,
            *blake3::keyed_hash(a.naming().key().unwrap(), b"x").as_bytes()
        );
    }

    #[test]
    fn a_random_source_that_repeats_itself_repeats_no_nonce() {
        let keys = keys(1, "a");
        let boxes = [
            keys.seal(b"for this", b"one", b"one").unwrap(),
            keys.seal(b"for this", b"two", b"two").unwrap(),
            keys.seal(b"for that", b"one", b"one").unwrap(),
            keys.seal(b"for this", b"three", b"").unwrap(),
            keys.seal(b"for this", b"four", b"").unwrap(),
        ];
        for (i, sealed) in boxes.iter().enumerate() {
            assert!(
                boxes[..i]
                    .iter()
                    .all(|other| other[..NONCE] != sealed[..NONCE]),
                "{i}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_box_comes_back_and_only_as_what_it_was_made_for(
            plain in prop::collection::vec(any::<u8>(), 0..300), about in prop::collection::vec(any::<u8>(), 0..60),
            at in any::<prop::sample::Index>(), bit in 0..8u8, cut in any::<prop::sample::Index>(),
        ) {
            let keys = keys(1, "a");
            let sealed = keys.seal(&about, &plain, &plain).unwrap();
            prop_assert_eq!(sealed.len(), plain.len() + OVERHEAD);
            prop_assert_eq!(keys.open(&about, &sealed).unwrap(), plain);
            // Any byte of it, any cut, another purpose, another job, another key.
            let mut changed = sealed.clone();
            changed[at.index(sealed.len())] ^= 1 << bit;
            prop_assert_eq!(keys.open(&about, &changed), Err(Refused));
            prop_assert_eq!(keys.open(&about, &sealed[..cut.index(sealed.len())]), Err(Refused));
            let mut longer = about.clone();
            longer.push(0);
            prop_assert_eq!(keys.open(&longer, &sealed), Err(Refused));
            prop_assert_eq!(super::tests::keys(1, "b").open(&about, &sealed), Err(Refused));
            prop_assert_eq!(super::tests::keys(2, "a").open(&about, &sealed), Err(Refused));
        }

        #[test]
        fn a_chunk_is_opened_under_its_name_only(raw in prop::collection::vec(any::<u8>(), 1..300), other in any::<[u8; 32]>()) {
            let crypt = crypt(1, "a");
            let encoded = Bytes::from(raw.clone());
            let (name, length) = (crypt.name(&raw), raw.len() as u32);
            let stored = Bytes::from(crypt.seal_chunk(&name, Codec::Raw, length, &encoded).unwrap().into_owned());
            prop_assert_eq!(stored.len(), raw.len() + crypt.overhead() as usize);
            prop_assert_eq!(crypt.open_chunk(&name, Codec::Raw, length, stored.clone()).unwrap(), encoded);
            prop_assert!(crypt.open_chunk(&Digest(other), Codec::Raw, length, stored.clone()).is_err());
            prop_assert!(crypt.open_chunk(&name, Codec::Zstd, length, stored.clone()).is_err());
            prop_assert!(crypt.open_chunk(&name, Codec::Raw, length + 1, stored).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(keys(1, "a").open(b"", &bytes), Err(Refused));
        }
    }
}
