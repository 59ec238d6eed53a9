//! Whether a store can be trusted: asked at start-up, by doing what checkpoints will do.
//!
//! Some S3 servers accept conditional writes and ignore the condition, or let several of many racing writers win. On
//! such a store two nodes could both believe that they own a job, so it is refused.

use bytes::Bytes;
use futures::future::join_all;

use crate::backend::Backend;
use crate::fault::{FaultKind, StoreFault};
use crate::names::NonceSource;
use crate::s3::{ChecksumChoice, S3Options};

/// Writers that race for one key.
const RACERS: usize = 16;
/// Bytes of the object that is written as packs are: from so many on they have their storage class.
const AS_PACK: usize = 128 << 10;

/// Why a store is not fit for checkpoints.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A request to the store failed.
    #[error("the store failed its probe: {0}")]
    Store(#[from] StoreFault),
    /// An object was read back with other bytes than were written.
    #[error(
        "the store failed its probe: {key} was read back with other bytes than were written: use another store"
    )]
    Content {
        /// The key of the object.
        key: String,
    },
    /// The server refuses what is said of objects.
    #[error(
        "the store failed its probe: {source}; objects are written there with {options}: choose what the store has and \
         these credentials may use, or leave that out"
    )]
    Refused {
        /// The options that say so, as on a command line.
        options: String,
        /// The request that was refused.
        source: StoreFault,
    },
    /// What was written is not listed, or what was deleted is.
    #[error(
        "the store failed its probe: its listing of {prefix} does not show what was just written there: phos-ft needs \
         consistent listings, use another store"
    )]
    Listing {
        /// The prefix that was listed.
        prefix: String,
    },
    /// A conditional write replaced an object.
    #[error(
        "the store failed its probe: it accepted \"create only if absent\" for {key}, which was there: two nodes could \
         both write this job's history; use a store that honours conditional writes (If-None-Match)"
    )]
    ConditionIgnored {
        /// The key of the object.
        key: String,
    },
    /// Not exactly one of several racing conditional writes won.
    #[error(
        "the store failed its probe: of {racers} writers that raced to create {key}, {winners} were told that they won \
         where one must: two nodes could both write this job's history; use a store with atomic conditional writes"
    )]
    Race {
        /// The key of the object.
        key: String,
        /// The number of writers that raced for it.
        racers: usize,
        /// The number of writers that were told that they had won.
        winners: usize,
    },
}

impl ProbeError {
    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Store(fault) => fault.is_permanent(),
            _ => true,
        }
    }
}

/// What an object is, on which depends how it is written to S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A pack.
    Pack,
    /// Anything else.
    Other,
}

/// The options that say how an object is written to S3, as on a command line.
fn given(options: &S3Options, kind: Kind) -> Vec<String> {
    let mut given = Vec::new();
    if let Some(class) = &options.storage_class
        && kind == Kind::Pack
    {
        given.push(format!("--s3-storage-class {}", class.as_str()));
    }
    if let Some(key) = &options.sse_kms_key {
        given.push(format!("--s3-sse-kms-key {key}"));
    }
    match options.checksum {
        ChecksumChoice::Auto | ChecksumChoice::None => {}
        ChecksumChoice::Sha256 | ChecksumChoice::Crc64Nvme => {
            given.push(format!("--s3-checksum {}", options.checksum));
        }
    }
    given
}

/// What it means that an object that is written so cannot be written, or not be read.
fn refused(given: &[String], fault: StoreFault) -> ProbeError {
    let refuses = matches!(
        fault.kind(),
        FaultKind::Denied | FaultKind::Invalid | FaultKind::Unsupported
    );
    if given.is_empty() || !refuses {
        return fault.into();
    }
    ProbeError::Refused {
        options: given.join(" and "),
        source: fault,
    }
}

pub(crate) async fn run(backend: &Backend, nonces: &NonceSource) -> Result<(), ProbeError> {
    let prefix = format!("probe/{}", nonces.next());
    let mut names = vec!["once", "raced"];
    let mut result = try_all(backend, &prefix).await;
    // What packs alone are written with is tried with one that looks like it.
    let given = given(backend.s3(), Kind::Pack);
    if result.is_ok() && !given.is_empty() {
        names.push("pack");
        result = try_as_pack(backend, &prefix, &given).await;
    }
    // Whatever came out of it, what was written goes.
    let mut deleted = Ok(());
    for name in names {
        let one = backend.delete(&format!("{prefix}/{name}")).await;
        deleted = deleted.and(one);
    }
    result?;
    deleted?;
    if !backend.list(&prefix).await?.is_empty() {
        return Err(ProbeError::Listing { prefix });
    }
    Ok(())
}

async fn try_all(backend: &Backend, prefix: &str) -> Result<(), ProbeError> {
    let key = format!("{prefix}/once");
    let written = Bytes::from_static(b"first");
    let given = given(backend.s3(), Kind::Other);
    let tried = async {
        backend.write(&key, written.clone()).await?;
        backend.read(&key, 1024).await
    };
    if tried.await.map_err(|fault| refused(&given, fault))? != written {
        return Err(ProbeError::Content { key });
    }
    if backend.read_range(&key, 1..3).await? != written.slice(1..3) {
        return Err(ProbeError::Content { key });
    }
    if !backend
        .list(prefix)
        .await?
        .iter()
        .any(|object| object.name == "once" && object.size == 5)
    {
        return Err(ProbeError::Listing {
            prefix: prefix.to_owned(),
        });
    }
    match backend
        .create_raw(&key, Bytes::from_static(b"second"))
        .await
    {
        Ok(()) => return Err(ProbeError::ConditionIgnored { key }),
        Err(fault) if fault.kind() == FaultKind::AlreadyExists => {}
        Err(fault) => return Err(fault.into()),
    }
    if backend.read(&key, 1024).await? != written {
        return Err(ProbeError::ConditionIgnored { key });
    }

    let key = format!("{prefix}/raced");
    let racers =
        (0..RACERS).map(|i| backend.create_raw(&key, Bytes::from(format!("racer {i:02}"))));
    let outcomes = join_all(racers).await;
    let mut winners = Vec::new();
    let mut unsure = None;
    for (i, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(()) => winners.push(i),
            Err(fault) if fault.kind() == FaultKind::AlreadyExists => {}
            Err(fault) => unsure = Some(fault),
        }
    }
    let race = |winners| ProbeError::Race {
        key: key.clone(),
        racers: RACERS,
        winners,
    };
    match (winners.as_slice(), unsure) {
        (&[winner], _) => {
            let found = backend.read(&key, 1024).await?;
            if found == format!("racer {winner:02}") {
                Ok(())
            } else {
                Err(ProbeError::Content { key })
            }
        }
        // An answer may be lost, or repeated by the client and then meet its own object: that is no dishonest store.
        ([], Some(fault)) => Err(fault.into()),
        ([], None) => match backend.read(&key, 1024).await {
            Ok(_) => Ok(()),
            Err(_) => Err(race(0)),
        },
        (winners, _) => Err(race(winners.len())),
    }
}

/// Writes and reads an object as large packs are written.
async fn try_as_pack(backend: &Backend, prefix: &str, given: &[String]) -> Result<(), ProbeError> {
    let key = format!("{prefix}/pack");
    let written = Bytes::from(vec![0x5a; AS_PACK]);
    let tried = async {
        backend.write_as_pack(&key, written.clone()).await?;
        backend.read(&key, AS_PACK as u64).await
    };
    match tried.await {
        Ok(found) if found == written => Ok(()),
        Ok(_) => Err(ProbeError::Content { key }),
        Err(fault) => Err(refused(given, fault)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_as_a_pack_has_what_packs_have() {
        let options = S3Options {
            storage_class: Some("STANDARD_IA".parse().unwrap()),
            sse_kms_key: Some("alias/k".into()),
            checksum: ChecksumChoice::Sha256,
        };
        assert_eq!(options.pack_attributes(AS_PACK as u64).len(), 1);
        assert_eq!(
            given(&options, Kind::Pack).join(" "),
            "--s3-storage-class STANDARD_IA --s3-sse-kms-key alias/k --s3-checksum sha256"
        );
        assert_eq!(given(&options, Kind::Other).len(), 2);
        assert!(given(&S3Options::default(), Kind::Pack).is_empty());
    }
}
