//! Collections that were decided: what each one says, and what was swept between two records.

use super::Job;
use crate::collection::{self, Collection};
use crate::fault::{FaultKind, StoreFault};
use crate::head::{HeadRecord, RecordKind};
use crate::manifest::PackEntry;

impl Job {
    /// The collection that a record names, or why it cannot be used.
    pub(crate) async fn collection_of(
        &self,
        record: &HeadRecord,
    ) -> Result<Result<Collection, String>, StoreFault> {
        let RecordKind::Collected {
            collection: name,
            digest,
            ..
        } = &record.kind
        else {
            return Ok(Err(format!("record {} is no collection", record.number)));
        };
        if name.contains('/') {
            return Ok(Err(format!(
                "its record names the collection {name:?}, which is no name"
            )));
        }
        let key = self.key(&format!("collections/{name}"));
        let read = (self.backend()).read_checked(&key, collection::KIND.max_object(), |bytes| {
            Collection::decode(self.crypt(), self.name(), record.number, *digest, bytes)
        });
        match read.await {
            Ok(collection) => Ok(collection),
            Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Foreign) => {
                Ok(Err(fault.to_string()))
            }
            Err(fault) => Err(fault),
        }
    }

    /// What was collected in the records `after + 1` to `tail` of packs that a manifest names; why it cannot be known, if
    /// it cannot.
    pub(crate) async fn swept_between(
        &self,
        after: u64,
        tail: u64,
        packs: &[PackEntry],
    ) -> Result<Option<String>, StoreFault> {
        for number in after + 1..=tail {
            let record = match self.record(number).await? {
                Ok(record) => record,
                Err(reason) => return Ok(Some(reason)),
            };
            if !matches!(record.kind, RecordKind::Collected { .. }) {
                continue;
            }
            let collection: Collection = match self.collection_of(&record).await? {
                Ok(collection) => collection,
                Err(reason) => return Ok(Some(reason)),
            };
            if let Some(pack) = collection.sweeps(packs.iter().map(|pack| &pack.id)) {
                return Ok(Some(format!(
                    "pack {pack} was collected by record {number}"
                )));
            }
        }
        Ok(None)
    }
}
