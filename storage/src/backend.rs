//! The object store as the rest of the crate sees it: a few whole operations, each retried, each failing with a
//! [`StoreFault`] that names the key. Also: which store a URL means.
//!
//! # Consistency
//!
//! [`Backend::create`] is the only conditional write. Its answer may be lost on the way and the request repeated by
//! the client, which then finds its own object: so an object that exists is compared with what was to be written, and
//! equal bytes mean that this caller won. Callers therefore put a nonce into what they create.

use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    Attributes, ClientConfigKey, GetOptions, ObjectStore, ObjectStoreExt, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, WriteMultipart,
};
use url::Url;

use crate::fault::{FaultKind, StoreFault};
use crate::medium::{self, Medium};
use crate::retry::RetryPolicy;
use crate::s3;
use crate::store::{OpenError, StoreOptions};
use crate::unfinished::{Unfinished, Uploads};

/// Parts of a multipart upload in flight at once, for one pack.
const PARTS_IN_FLIGHT: usize = 4;

/// An object store, the prefix that is ours in it, and the retry policy.
#[derive(Clone)]
pub(crate) struct Backend {
    store: Arc<dyn ObjectStore>,
    base: Path,
    retry: RetryPolicy,
    medium: Medium,
    uploads: Uploads,
}

/// How a conditional creation ended.
#[derive(Debug)]
pub(crate) enum Created {
    /// The object stands there with our bytes.
    Done,
    /// Another one stands there; these are its bytes, or `None` if they are more than asked for.
    Taken(Option<Bytes>),
}

/// One object of a listing.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// Last part of the key.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
}

impl Backend {
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        base: Path,
        retry: RetryPolicy,
        medium: Medium,
    ) -> Self {
        Self {
            store,
            base,
            retry,
            medium,
            uploads: Uploads::Unknown,
        }
    }

    fn with_uploads(mut self, uploads: Uploads) -> Self {
        self.uploads = uploads;
        self
    }

    pub(crate) const fn medium(&self) -> Medium {
        self.medium
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
                FaultKind::TooLarge,
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

    /// Writes a small object, replacing one of the same key.
    pub(crate) async fn write(&self, key: &str, bytes: Bytes) -> Result<(), StoreFault> {
        let path = self.path(key);
        self.retry
            .run(|| async {
                let put = self.store.put(&path, bytes.clone().into()).await;
                put.map(drop)
                    .map_err(|error| StoreFault::new("write", key, &error))
            })
            .await
    }

    /// Writes a pack. With more than `part_size` bytes it goes up in parts. Once it is stored, the cache has it too.
    pub(crate) async fn write_pack(
        &self,
        key: &str,
        pieces: Vec<Bytes>,
        options: &StoreOptions,
    ) -> Result<(), StoreFault> {
        let (part_size, pacer) = (options.part_size, options.pacer.as_ref());
        if self.medium == Medium::Discard {
            return Ok(());
        }
        let path = self.path(key);
        let total: usize = pieces.iter().map(Bytes::len).sum();
        let attributes = match self.uploads {
            Uploads::S3(_) => options.s3.pack_attributes(total as u64),
            _ => Attributes::default(),
        };
        let stored = self
            .retry
            .run(|| async {
                let fault = |error: object_store::Error| StoreFault::new("write", key, &error);
                if total <= part_size {
                    if let Some(pacer) = pacer {
                        pacer.take(total as u64).await;
                    }
                    let payload: PutPayload = pieces.iter().cloned().collect();
                    let options = PutOptions::from(attributes.clone());
                    let put = self.store.put_opts(&path, payload, options).await;
                    return put.map(drop).map_err(fault);
                }
                let options = PutMultipartOptions::from(attributes.clone());
                let upload = self.store.put_multipart_opts(&path, options).await;
                let upload = upload.map_err(fault)?;
                let mut upload = WriteMultipart::new_with_chunk_size(upload, part_size);
                for piece in &pieces {
                    if let Err(error) = upload.wait_for_capacity(PARTS_IN_FLIGHT).await {
                        // Best effort: what is left is an incomplete upload, which is invisible.
                        let _ = upload.abort().await;
                        return Err(fault(error));
                    }
                    if let Some(pacer) = pacer {
                        pacer.take(piece.len() as u64).await;
                    }
                    upload.put(piece.clone());
                }
                match upload.finish().await.map_err(fault) {
                    Err(fault)
                        if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Invalid) =>
                    {
                        self.find_finished(key, total as u64, fault).await
                    }
                    finished => finished.map(drop),
                }
            })
            .await;
        if let (Ok(()), Some(cache)) = (&stored, options.cache.clone()) {
            let key = key.to_owned();
            let kept = options.compute.run(move || cache.keep(&key, &pieces)).await;
            if let Err(error) = kept {
                tracing::warn!(error, "a pack was not kept on this disk");
            }
        }
        stored
    }

    /// When the answer to the end of an upload is lost and the client asks again, the server knows no such upload, or
    /// none of its parts, any more. Nobody else writes this key, so an object of the right length is it; else all of it
    /// has to go up again.
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
            Err(fault) if fault.kind() == FaultKind::TooLarge => Ok(Created::Taken(None)),
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

/// Whether the address means a directory of this machine that is not there.
pub(crate) fn is_missing_directory(address: &str) -> bool {
    let path = medium::directory_of(address);
    // Any other error is told by opening it.
    path.is_some_and(|path| matches!(path.try_exists(), Ok(false)))
}

/// Opens the store that an address means.
pub(crate) async fn connect(address: &str, options: &StoreOptions) -> Result<Backend, OpenError> {
    let retry = &options.retry;
    let backend = |store: Arc<dyn ObjectStore>, base, medium| {
        Backend::new(store, base, retry.clone(), medium)
    };
    if !address.contains("://") {
        let path = PathBuf::from(address);
        let (store, uploads) = directory(address, path.clone())?;
        return Ok(backend(store, Path::default(), Medium::of(&path)).with_uploads(uploads));
    }
    let invalid = |detail: String| OpenError::Address {
        address: address.to_owned(),
        detail,
    };
    let url = Url::parse(address).map_err(|error| invalid(error.to_string()))?;
    let base = || Path::from_url_path(url.path()).map_err(|error| invalid(error.to_string()));
    let bucket = |what: &str| match url.host_str() {
        Some(host) if !host.is_empty() => Ok(()),
        _ => Err(invalid(format!(
            "it names no {what}, as in {}://{what}/prefix",
            url.scheme()
        ))),
    };
    let refused = |error: object_store::Error| invalid(error.to_string());
    let timeout = format!("{} seconds", retry.request_timeout.as_secs().max(1));
    match url.scheme() {
        "file" => {
            let path = url
                .to_file_path()
                .map_err(|()| invalid("write it as file:///absolute/path".into()))?;
            let (store, uploads) = directory(address, path.clone())?;
            Ok(backend(store, Path::default(), Medium::of(&path)).with_uploads(uploads))
        }
        "memory" => Ok(backend(Arc::new(InMemory::new()), base()?, Medium::Local)),
        "discard" => Ok(backend(Arc::new(InMemory::new()), base()?, Medium::Discard)),
        "s3" | "s3a" => {
            bucket("bucket")?;
            let connection = s3::Connection::new(address, retry, &options.s3).await;
            let builder = connection.map_err(invalid)?.builder;
            let store = Arc::new(builder.clone().build().map_err(refused)?);
            let uploads = Uploads::s3(&builder, store.clone());
            Ok(backend(store, base()?, Medium::Remote).with_uploads(uploads))
        }
        "gs" => {
            bucket("bucket")?;
            let store = GoogleCloudStorageBuilder::from_env()
                .with_url(address)
                .with_config(GoogleConfigKey::Client(ClientConfigKey::Timeout), timeout)
                .with_retry(retry.client())
                .build()
                .map_err(refused)?;
            Ok(backend(Arc::new(store), base()?, Medium::Remote))
        }
        "az" | "azure" => {
            bucket("container")?;
            let store = MicrosoftAzureBuilder::from_env()
                .with_url(address)
                .with_config(AzureConfigKey::Client(ClientConfigKey::Timeout), timeout)
                .with_retry(retry.client())
                .build()
                .map_err(refused)?;
            Ok(backend(Arc::new(store), base()?, Medium::Remote))
        }
        scheme => Err(OpenError::Scheme {
            address: address.to_owned(),
            scheme: scheme.to_owned(),
        }),
    }
}

fn directory(address: &str, path: PathBuf) -> Result<(Arc<dyn ObjectStore>, Uploads), OpenError> {
    let failed = |path: &FilePath, error: &std::io::Error| OpenError::Directory {
        path: path.to_owned(),
        detail: error.to_string(),
    };
    if path.as_os_str().is_empty() {
        return Err(OpenError::Address {
            address: address.to_owned(),
            detail: "it is empty".into(),
        });
    }
    let path = std::path::absolute(&path).map_err(|error| failed(&path, &error))?;
    std::fs::create_dir_all(&path).map_err(|error| failed(&path, &error))?;
    let store = LocalFileSystem::new_with_prefix(&path).map_err(|error| OpenError::Directory {
        path: path.clone(),
        detail: error.to_string(),
    })?;
    let store = store.with_fsync(true).with_automatic_cleanup(true);
    Ok((Arc::new(store), Uploads::Directory(path)))
}
