//! Names and numbers that appear in keys: jobs, packs, checkpoints, epochs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::{deserialize_array, serialize_array};

/// Longest job name, in bytes.
const MAX_JOB_NAME: usize = 64;

/// The name of a job: the unit of history in a store.
///
/// Letters, digits, `.`, `_` and `-`, at most 64, not beginning with `.` or `-`: so a name is the same as a directory,
/// as a key of any object store and as an argument of a command.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct JobName(String);

/// Why a job name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobNameError {
    /// The name has no characters.
    #[error("the job name is empty: give one with --job NAME")]
    Empty,
    /// The name has too many bytes.
    #[error(
        "the job name \"{name}\" has {length} bytes, more than {MAX_JOB_NAME}: choose a shorter one with --job NAME"
    )]
    TooLong {
        /// The name that was refused.
        name: String,
        /// The length of the name in bytes.
        length: usize,
    },
    /// The name holds a character that is not allowed.
    #[error(
        "the job name {name:?} holds {character:?}: use letters, digits, '.', '_' and '-' only, for example --job {remedy}"
    )]
    Character {
        /// The name that was refused.
        name: String,
        /// The first character that is not allowed.
        character: char,
        /// A name of the same kind that would be accepted.
        remedy: String,
    },
    /// The name begins with `.` or `-`.
    #[error(
        "the job name {name:?} begins with {character:?}: begin it with a letter, a digit or '_'"
    )]
    Beginning {
        /// The name that was refused.
        name: String,
        /// The first character of the name.
        character: char,
    },
}

impl JobNameError {
    /// Whether trying again cannot help. A refused name stays refused.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        true
    }
}

impl JobName {
    /// Checks and takes a name.
    pub fn new(name: impl Into<String>) -> Result<Self, JobNameError> {
        let name = name.into();
        let Some(first) = name.chars().next() else {
            return Err(JobNameError::Empty);
        };
        if let Some(character) = name.chars().find(|&c| !allowed(c)) {
            let remedy: String = name
                .chars()
                .map(|c| if allowed(c) { c } else { '_' })
                .take(MAX_JOB_NAME)
                .collect();
            return Err(JobNameError::Character {
                name,
                character,
                remedy: remedy.replacen(['.', '-'], "_", 1),
            });
        }
        if name.len() > MAX_JOB_NAME {
            return Err(JobNameError::TooLong {
                length: name.len(),
                name,
            });
        }
        if matches!(first, '.' | '-') {
            return Err(JobNameError::Beginning {
                name,
                character: first,
            });
        }
        Ok(Self(name))
    }

    /// The job's name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

impl FromStr for JobName {
    type Err = JobNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for JobName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Milliseconds since 1970-01-01 00:00 UTC, as told by the caller. Used for display and retention, never for safety.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

/// Position of a record in a job's log, which for a checkpoint is its number. Grows; gaps are normal, as other records
/// (take-overs, completions) stand in the same log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckpointNumber(pub u64);

impl fmt::Display for CheckpointNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for CheckpointNumber {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Fencing epoch: the number of the record by which a job was taken over. A later take-over has a greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// 16 bytes that no other writer has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub [u8; 16]);

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Nonce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_array(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Nonce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_array(deserializer).map(Self)
    }
}

/// Where nonces come from: the operating system's random numbers in a program, a seed in a test.
///
/// It must never give the same nonce twice, in this process or another: pack names are made of them.
#[derive(Clone)]
pub struct NonceSource(Arc<dyn Fn() -> [u8; 16] + Send + Sync>);

impl NonceSource {
    /// Takes nonces from `source`.
    pub fn new(source: impl Fn() -> [u8; 16] + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    pub(crate) fn next(&self) -> Nonce {
        Nonce((self.0)())
    }
}

impl fmt::Debug for NonceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NonceSource")
    }
}

/// The name of a pack: the nonce of the writer that made it and the pack's place among that writer's packs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackId {
    /// The nonce of the writer that made the pack.
    pub writer: Nonce,
    /// 0 for the writer's first pack.
    pub sequence: u32,
}

impl fmt::Display for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08}", self.writer, self.sequence)
    }
}

impl fmt::Debug for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PackId {
    /// Reads a name as [`Display`](fmt::Display) writes it.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (writer, sequence) = name.split_once('-')?;
        let mut nonce = [0; 16];
        hex::decode_to_slice(writer, &mut nonce).ok()?;
        let id = Self {
            writer: Nonce(nonce),
            sequence: sequence.parse().ok()?,
        };
        (id.to_string() == name).then_some(id)
    }

    fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..16].copy_from_slice(&self.writer.0);
        bytes[16..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }
}

impl Serialize for PackId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_array(&self.to_bytes(), serializer)
    }
}

impl<'de> Deserialize<'de> for PackId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes: [u8; 20] = deserialize_array(deserializer)?;
        let (writer, sequence) = bytes.split_at(16);
        let mut nonce = [0; 16];
        nonce.copy_from_slice(writer);
        let mut number = [0; 4];
        number.copy_from_slice(sequence);
        Ok(Self {
            writer: Nonce(nonce),
            sequence: u32::from_le_bytes(number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_names() {
        for good in ["a", "train.7B_run-3", "_x", &"n".repeat(64)] {
            assert!(JobName::new(good).is_ok(), "{good}");
        }
        assert_eq!(JobName::new(""), Err(JobNameError::Empty));
        assert!(matches!(
            JobName::new("n".repeat(65)),
            Err(JobNameError::TooLong { length: 65, .. })
        ));
        assert!(matches!(
            JobName::new(".."),
            Err(JobNameError::Beginning { .. })
        ));
        assert!(matches!(
            JobName::new("-rf"),
            Err(JobNameError::Beginning { .. })
        ));
        for bad in ["a/b", "a b", "ü", "a\n", "a\0"] {
            let error = JobName::new(bad).unwrap_err();
            assert!(
                matches!(&error, JobNameError::Character { remedy, .. } if JobName::new(remedy.clone()).is_ok()),
                "{error}"
            );
        }
    }

    #[test]
    fn pack_names_round_trip_and_odd_ones_are_refused() {
        let id = PackId {
            writer: Nonce([0xab; 16]),
            sequence: 7,
        };
        assert_eq!(PackId::parse(&id.to_string()), Some(id));
        for odd in [
            "",
            "x",
            "ab-1",
            &format!("{}-7", id.writer),
            &id.to_string().to_uppercase(),
        ] {
            assert_eq!(PackId::parse(odd), None, "{odd}");
        }
    }
}
