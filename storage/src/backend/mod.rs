//! The object store as the rest of the crate sees it: a few whole operations, each retried, each failing with a
//! [`StoreFault`] that names the key.
//!
//! # Consistency
//!
//! [`Backend::create`] is the only conditional write. Its answer may be lost on the way and the request repeated by
//! the client, which then finds its own object: so an object that exists is compared with what was to be written, and
//! equal bytes mean that this caller won. Callers therefore put a nonce into what they create.
//!
//! # Slow links
//!
//! A request that takes too long is given up with all that it sent, so many at once over a slow link may all be given up,
//! each time anew. Once one was, objects go up in one part after the other, until that is seen to be fast.

mod directory;
mod unfinished;

use std::ops::Range;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Attributes, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions,
    PutPayload, WriteMultipart,
};

pub(crate) use self::directory::Directory;
pub(crate) use self::unfinished::{Unfinished, Uploads};
use crate::fault::{FaultKind, StoreFault};
use crate::medium::Medium;
use crate::options::{Pacer, StoreOptions};
use crate::retry::RetryPolicy;
use crate::s3::S3Options;

/// Parts of a multipart upload in flight at once, for one object.
const PARTS_IN_FLIGHT: usize = 4;
/// With a pacer parts are as small as S3 takes them: each goes as fast as the link is, once it is let go.
const PACED_PART: usize = 5 << 20;
/// Objects of up to so many bytes are let go at once, as others wait for them: notes, records. Beside packs they are
/// nothing.
const UNPACED: usize = 64 << 10;

/// An object store, the prefix in it that this store has, and how it is used.
#[derive(Clone)]
pub(crate) struct Backend {
    store: Arc<dyn ObjectStore>,
    base: Path,
    retry: RetryPolicy,
    medium: Medium,
    uploads: Uploads,
    /// What is said of packs when they are written.
    s3: S3Options,
    part_size: usize,
    pacer: Option<Arc<dyn Pacer>>,
    /// A write took too long, and none was fast since.
    slow: Arc<AtomicBool>,
}

/// An object on its way to the store.
struct Outgoing<'a> {
    key: &'a str,
    pieces: &'a [Bytes],
    length: usize,
    attributes: Attributes,
    pacer: Option<&'a Arc<dyn Pacer>>,
}

/// How a conditional creation ended.
#[derive(Debug)]
pub(crate) enum Created {
    /// The object stands there with our bytes.
    Done,
    /// Another one stands there; these are its bytes, or `None` if they are more than asked for.
    Taken(Option<Bytes>),
}

/// One object of a listing, with its size.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// Last part of the key.
    pub name: String,
    /// The object's size in bytes.
    pub size: u64,
}

impl Backend {
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        base: Path,
        options: &StoreOptions,
        medium: Medium,
    ) -> Self {
        let part_size = match options.pacer {
            Some(_) => options.part_size.min(PACED_PART),
            None => options.part_size,
        };
        Self {
            store,
            base,
            retry: options.retry.clone(),
            medium,
            uploads: Uploads::Unknown,
            s3: options.s3.clone(),
            part_size: part_size.max(1),
            pacer: options.pacer.clone(),
            slow: Arc::default(),
        }
    }

    /// A backend for a store in which unfinished uploads can be found.
    pub(crate) fn with_uploads(mut self, uploads: Uploads) -> Self {
        self.uploads = uploads;
        self
    }

    /// Of a store other than S3: those refuse what is said of packs there.
    pub(crate) fn without_s3(mut self) -> Self {
        self.s3 = S3Options::default();
        self
    }

    pub(crate) const fn medium(&self) -> Medium {
        self.medium
    }

    /// How objects are written to S3; the defaults where they are not.
    pub(crate) const fn s3(&self) -> &S3Options {
        &self.s3
    }

    /// The directory that it is, if it is one.
    pub(crate) fn directory(&self) -> Option<&FilePath> {
        match &self.uploads {
            Uploads::Directory(path) => Some(path),
            Uploads::Unknown | Uploads::S3(_) => None,
        }
    }

    fn path(&self, key: &str) -> Path {
        key.split('/')
            .fold(self.base.clone(), |path, part| path.join(part))
    }

    /// Reads a whole object of at most `cap` bytes.
    pub(crate) async fn read(&self, key: &str, cap: u64) -> Result<Bytes, StoreFault> {
        self.retry.run(|| self.read_once(key, cap)).await
    }

    /// As [`Self::read`], of an object that shows by itself whether it is whole. One that is not is read once more, as the
    /// damage may have happened on the way: nobody should fall back to an older checkpoint for that.
    pub(crate) async fn read_checked<T, E>(
        &self,
        key: &str,
        cap: u64,
        check: impl Fn(&Bytes) -> Result<T, E>,
    ) -> Result<Result<T, E>, StoreFault> {
        let first = check(&self.read(key, cap).await?);
        if first.is_ok() {
            return Ok(first);
        }
        Ok(check(&self.read(key, cap).await?))
    }

    async fn read_once(&self, key: &str, cap: u64) -> Result<Bytes, StoreFault> {
        let fault = |error: object_store::Error| StoreFault::new("read", key, &error);
        let found = self
            .store
            .get_opts(&self.path(key), GetOptions::default())
            .await
            .map_err(fault)?;
        let too_large = |size: u64| {
            StoreFault::with_kind(
                "read",
                key,
                FaultKind::Foreign,
                format!("{size} bytes, at most {cap} are expected"),
            )
        };
        if found.meta.size > cap {
            return Err(too_large(found.meta.size));
        }
        // The size came from the store as well: count what really arrives.
        let mut body = found.into_stream();
        let mut bytes = Vec::new();
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(fault)?;
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 > cap {
                return Err(too_large(bytes.len() as u64));
            }
        }
        Ok(bytes.into())
    }

    /// Reads part of an object. May give fewer bytes if the object ends before.
    pub(crate) async fn read_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<Bytes, StoreFault> {
        let path = self.path(key);
        self.retry
            .run(|| async {
                self.store
                    .get_range(&path, range.clone())
                    .await
                    .map_err(|error| StoreFault::new("read", key, &error))
            })
            .await
    }

    /// Writes an object, replacing one of the same key. One that may be larger than a part has the same bytes whenever
    /// it is written.
    pub(crate) async fn write(&self, key: &str, bytes: Bytes) -> Result<(), StoreFault> {
        let length = bytes.len();
        self.send(&Outgoing {
            key,
            pieces: &[bytes],
            length,
            attributes: Attributes::default(),
            pacer: self.pacer.as_ref().filter(|_| length > UNPACED),
        })
        .await
    }

    /// Writes a pack. Once it is stored, the caches have it, too.
    pub(crate) async fn write_pack(
        &self,
        key: &str,
        pieces: Vec<Bytes>,
        options: &StoreOptions,
    ) -> Result<(), StoreFault> {
        if self.medium == Medium::Discard {
            return Ok(());
        }
        let length: usize = pieces.iter().map(Bytes::len).sum();
        let stored = self
            .send(&Outgoing {
                key,
                pieces: &pieces,
                length,
                attributes: self.s3.pack_attributes(length as u64),
                pacer: self.pacer.as_ref(),
            })
            .await;
        if stored.is_ok() && !options.caches.is_empty() {
            let (key, caches) = (key.to_owned(), options.caches.clone());
            let keep = move || caches.iter().for_each(|cache| cache.keep(&key, &pieces));
            if let Err(error) = options.compute.run(keep).await {
                tracing::warn!(error, "a pack was not kept on this machine");
            }
        }
        stored
    }

    /// Writes an object as a large pack is written, however small it is: in parts, and with what is said of packs.
    pub(crate) async fn write_as_pack(&self, key: &str, bytes: Bytes) -> Result<(), StoreFault> {
        let length = bytes.len();
        let object = Outgoing {
            key,
            pieces: &[bytes],
            length,
            attributes: self.s3.pack_attributes(length as u64),
            pacer: None,
        };
        self.retry.run(|| self.send_parts(&object, 1)).await
    }

    /// Sends an object, in parts if it is larger than one.
    async fn send(&self, object: &Outgoing<'_>) -> Result<(), StoreFault> {
        let timed_out = AtomicBool::new(false);
        self.retry
            .run(|| async {
                let sent = if object.length <= self.part_size {
                    self.send_whole(object).await
                } else if timed_out.load(Ordering::Relaxed) || self.slow.load(Ordering::Relaxed) {
                    self.send_parts(object, 1).await
                } else {
                    self.send_parts(object, PARTS_IN_FLIGHT).await
                };
                if let Err(fault) = &sent
                    && fault.timed_out()
                {
                    timed_out.store(true, Ordering::Relaxed);
                    self.slow.store(true, Ordering::Relaxed);
                }
                sent
            })
            .await
    }

    async fn send_whole(&self, object: &Outgoing<'_>) -> Result<(), StoreFault> {
        if let Some(pacer) = object.pacer {
            pacer.take(object.length as u64).await;
        }
        let payload: PutPayload = object.pieces.iter().cloned().collect();
        let options = PutOptions::from(object.attributes.clone());
        let path = self.path(object.key);
        let put = self.store.put_opts(&path, payload, options).await;
        put.map(drop)
            .map_err(|error| StoreFault::new("write", object.key, &error))
    }

    /// Sends an object in parts, so many of them at once.
    async fn send_parts(&self, object: &Outgoing<'_>, at_once: usize) -> Result<(), StoreFault> {
        let fault = |error: object_store::Error| StoreFault::new("write", object.key, &error);
        let options = PutMultipartOptions::from(object.attributes.clone());
        let path = self.path(object.key);
        let upload = self.store.put_multipart_opts(&path, options).await;
        let upload = upload.map_err(fault)?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, self.part_size);
        let parts = parts(object.pieces, self.part_size);
        let (count, begun) = (parts.len(), Instant::now());
        for part in parts {
            if let Err(error) = upload.wait_for_capacity(at_once).await {
                // Best effort: what is left is an incomplete upload, which is invisible.
                let _ = upload.abort().await;
                return Err(fault(error));
            }
            // For the whole part, so that parts of several objects are let go one after the other.
            if let Some(pacer) = object.pacer {
                let length: usize = part.iter().map(Bytes::len).sum();
                pacer.take(length as u64).await;
            }
            for piece in part {
                upload.put(piece);
            }
        }
        match upload.finish().await.map_err(fault) {
            Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Invalid) => {
                self.find_finished(object.key, object.length as u64, fault)
                    .await
            }
            Err(fault) => Err(fault),
            Ok(_) => {
                // Of more at once, each would take so much longer.
                let each = begun.elapsed().as_secs_f64() / count.max(1) as f64;
                let most = self.retry.request_timeout.as_secs_f64() / 2.0;
                if at_once == 1 && each * (PARTS_IN_FLIGHT as f64) < most {
                    self.slow.store(false, Ordering::Relaxed);
                }
                Ok(())
            }
        }
    }

    /// When the answer to the end of an upload is lost and the client asks again, the server knows no such upload, or none of its
    /// parts, any more. Every writer of this key writes the same bytes, so an object of the right length is the object; otherwise
    /// all of it has to be sent again.
    async fn find_finished(
        &self,
        key: &str,
        length: u64,
        refused: StoreFault,
    ) -> Result<(), StoreFault> {
        match self.store.head(&self.path(key)).await {
            Ok(found) if found.size == length => Ok(()),
            Ok(_) | Err(object_store::Error::NotFound { .. })
                if refused.kind() == FaultKind::NotFound =>
            {
                Err(StoreFault::with_kind(
                    "write",
                    key,
                    FaultKind::Transient,
                    format!("its parts are gone: {refused}"),
                ))
            }
            Ok(_) | Err(object_store::Error::NotFound { .. }) => Err(refused),
            Err(error) => Err(StoreFault::new("write", key, &error)),
        }
    }

    /// Creates an object if there is none of that key. `bytes` must be unique to this caller.
    pub(crate) async fn create(
        &self,
        key: &str,
        bytes: Bytes,
        cap: u64,
    ) -> Result<Created, StoreFault> {
        self.retry
            .run(|| self.create_once(key, bytes.clone(), cap))
            .await
    }

    async fn create_once(&self, key: &str, bytes: Bytes, cap: u64) -> Result<Created, StoreFault> {
        match self.create_raw(key, bytes.clone()).await {
            Ok(()) => return Ok(Created::Done),
            Err(fault) if fault.kind() == FaultKind::AlreadyExists => {}
            Err(fault) => return Err(fault),
        }
        match self.read_once(key, cap).await {
            Ok(found) if found == bytes => Ok(Created::Done),
            Ok(found) => Ok(Created::Taken(Some(found))),
            Err(fault) if fault.kind() == FaultKind::Foreign => Ok(Created::Taken(None)),
            // S3 answers "conflict" while another creation is under way, and that one may still fail.
            Err(fault) if fault.kind() == FaultKind::NotFound => Err(StoreFault::with_kind(
                "create",
                key,
                FaultKind::Transient,
                "a conflicting write is under way".into(),
            )),
            Err(fault) => Err(fault),
        }
    }

    /// One conditional write, without retry and without looking at what is there.
    pub(crate) async fn create_raw(&self, key: &str, bytes: Bytes) -> Result<(), StoreFault> {
        let options = PutOptions {
            mode: PutMode::Create,
            ..PutOptions::default()
        };
        let put = self
            .store
            .put_opts(&self.path(key), bytes.into(), options)
            .await;
        put.map(drop)
            .map_err(|error| StoreFault::new("create", key, &error))
    }

    /// Deletes an object. One that is not there counts as deleted.
    pub(crate) async fn delete(&self, key: &str) -> Result<(), StoreFault> {
        self.retry.run(|| self.delete_once(key)).await
    }

    /// As [`Self::delete`], tried once: for cleaning up after a failure, when more of the same would only take time.
    pub(crate) async fn delete_once(&self, key: &str) -> Result<(), StoreFault> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreFault::new("delete", key, &error)),
        }
    }

    /// Lists the objects directly or indirectly below a key, in no order.
    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<Listed>, StoreFault> {
        let path = self.path(prefix);
        self.retry
            .run(|| async {
                let listing = self.store.list(Some(&path)).map_ok(|meta| Listed {
                    name: meta.location.filename().unwrap_or_default().to_owned(),
                    size: meta.size,
                });
                match listing.try_collect().await {
                    Err(object_store::Error::NotFound { .. }) => Ok(Vec::new()),
                    listed => listed.map_err(|error| StoreFault::new("list", prefix, &error)),
                }
            })
            .await
    }

    /// Uploads to keys directly below a prefix that were never finished.
    pub(crate) async fn unfinished(&self, prefix: &str) -> Result<Vec<Unfinished>, StoreFault> {
        let path = self.path(prefix);
        self.retry.run(|| self.uploads.list(&path)).await
    }

    /// Ends an upload that was never finished. One that is gone counts as ended.
    pub(crate) async fn end_unfinished(&self, upload: &Unfinished) -> Result<(), StoreFault> {
        self.retry.run(|| self.uploads.end(upload)).await
    }

    /// Names of the directories directly below a key.
    pub(crate) async fn list_directories(&self, prefix: &str) -> Result<Vec<String>, StoreFault> {
        let path = self.path(prefix);
        self.retry
            .run(|| async {
                match self.store.list_with_delimiter(Some(&path)).await {
                    Ok(found) => Ok(found
                        .common_prefixes
                        .iter()
                        .filter_map(|prefix| prefix.filename().map(str::to_owned))
                        .collect()),
                    Err(object_store::Error::NotFound { .. }) => Ok(Vec::new()),
                    Err(error) => Err(StoreFault::new("list", prefix, &error)),
                }
            })
            .await
    }
}

/// Cuts pieces into parts of a size; the last one may be smaller.
fn parts(pieces: &[Bytes], size: usize) -> Vec<Vec<Bytes>> {
    let mut parts = Vec::new();
    let (mut part, mut room) = (Vec::new(), size);
    for piece in pieces {
        let mut rest = piece.clone();
        while rest.len() >= room {
            part.push(rest.split_to(room));
            parts.push(std::mem::take(&mut part));
            room = size;
        }
        if !rest.is_empty() {
            room -= rest.len();
            part.push(rest);
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_into_parts_of_one_size() {
        let bytes = Bytes::from_static(b"abcdefghijkl");
        let pieces = [bytes.slice(..5), bytes.slice(5..6), bytes.slice(6..)];
        for size in 1..15 {
            let parts = parts(&pieces, size);
            let lengths: Vec<usize> = (parts.iter())
                .map(|part| part.iter().map(Bytes::len).sum())
                .collect();
            let (last, others) = lengths.split_last().unwrap();
            assert!(others.iter().all(|length| *length == size), "{lengths:?}");
            assert!((1..=size).contains(last), "{lengths:?}");
            let all: Vec<u8> = parts.iter().flatten().flatten().copied().collect();
            assert_eq!(all[..], bytes[..]);
        }
        assert!(parts(&[], 3).is_empty());
    }
}
