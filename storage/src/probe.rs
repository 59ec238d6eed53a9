//! Whether a store can be trusted: asked at start-up, by doing what checkpoints will do.
//!
//! Some S3 servers accept conditional writes and ignore the condition, or let several of many racing writers win. On
//! such a store two nodes could both believe that they own a job, so it is refused.

use bytes::Bytes;
use futures::future::join_all;

use crate::backend::Backend;
use crate::fault::{FaultKind, StoreFault};
use crate::names::NonceSource;

/// Writers that race for one key.
const RACERS: usize = 16;

/// Why a store is not fit for checkpoints.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A request failed.
    #[error("the store failed its probe: {0}")]
    Store(#[from] StoreFault),
    /// What was read is not what was written.
    #[error(
        "the store failed its probe: {key} was read back with other bytes than were written: use another store"
    )]
    Content {
        /// The key.
        key: String,
    },
    /// What was written is not listed, or what was deleted is.
    #[error(
        "the store failed its probe: its listing of {prefix} does not show what was just written there: phos-ft needs \
         consistent listings, use another store"
    )]
    Listing {
        /// The listed prefix.
        prefix: String,
    },
    /// A conditional write replaced an object.
    #[error(
        "the store failed its probe: it accepted \"create only if absent\" for {key}, which was there: two nodes could \
         both write this job's history; use a store that honours conditional writes (If-None-Match)"
    )]
    ConditionIgnored {
        /// The key.
        key: String,
    },
    /// Of racing conditional writes not exactly one won.
    #[error(
        "the store failed its probe: of {racers} writers that raced to create {key}, {winners} were told that they won \
         where one must: two nodes could both write this job's history; use a store with atomic conditional writes"
    )]
    Race {
        /// The key.
        key: String,
        /// How many raced.
        racers: usize,
        /// How many won.
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

pub(crate) async fn run(backend: &Backend, nonces: &NonceSource) -> Result<(), ProbeError> {
    let prefix = format!("probe/{}", nonces.next());
    let result = try_all(backend, &prefix).await;
    // Whatever came out of it, what was written goes.
    let mut deleted = Ok(());
    for name in ["once", "raced"] {
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
    backend.write(&key, written.clone()).await?;
    if backend.read(&key, 1024).await? != written {
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
