//! What the tests share: seeded options, bodies made of plain bytes, and a store that fails on command.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs
)]

pub mod cloud;
pub mod s3_server;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};
use phos_storage::{
    Allocation, Body, Candidate, CheckpointNumber, CheckpointWriter, Commit, CommitError, Digest,
    Epoch, FilePath, GpuUuid, ImageFile, Job, JobError, JobName, Key, Manifest, ManifestBody,
    MemberId, Naming, NonceSource, RetryPolicy, Store, StoreOptions, UnixMillis,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

/// Nonces that differ between all sources of this process and are the same in each run of a test.
pub fn nonces(seed: u64) -> NonceSource {
    let next = AtomicU64::new(0);
    NonceSource::new(move || {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&seed.to_be_bytes());
        nonce[8..].copy_from_slice(&next.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        nonce
    })
}

/// Small packs, no waiting.
pub fn options(seed: u64) -> StoreOptions {
    StoreOptions {
        retry: RetryPolicy::immediate(2),
        pack_size: 64 << 10,
        part_size: 5 << 20,
        uploads: 2,
        encoders: 2,
        ..StoreOptions::new(nonces(seed))
    }
}

/// The same, with a key: of a byte.
pub fn encrypted(seed: u64, key: u8) -> StoreOptions {
    StoreOptions {
        encryption: Some(Key::new(&[key; 32])),
        ..options(seed)
    }
}

pub fn name(name: &str) -> JobName {
    JobName::new(name).unwrap()
}

/// A chunk that does not shrink, of a few KiB.
pub fn noise(seed: u64, length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes.into()
}

/// An image: device memory and two files of the CPU image, cut into chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    pub device: Vec<Vec<Bytes>>,
    pub cpu: Vec<Bytes>,
    pub log: Vec<Bytes>,
}

fn digests(naming: &Naming, chunks: &[Bytes]) -> Vec<Digest> {
    chunks.iter().map(|chunk| naming.of(chunk)).collect()
}

fn length(chunks: &[Bytes]) -> u64 {
    chunks.iter().map(|chunk| chunk.len() as u64).sum()
}

impl Image {
    pub fn of(device: Vec<Bytes>) -> Self {
        Self {
            device: vec![device],
            cpu: vec![Bytes::from_static(b"core")],
            log: Vec::new(),
        }
    }

    pub fn chunks(&self) -> impl Iterator<Item = &Bytes> {
        self.device
            .iter()
            .flatten()
            .chain(&self.cpu)
            .chain(&self.log)
    }

    /// Of a job that is not encrypted.
    pub fn body(&self) -> ManifestBody {
        self.body_in(&Naming::PLAIN)
    }

    pub fn body_in(&self, naming: &Naming) -> ManifestBody {
        let allocation = |(id, chunks): (usize, &Vec<Bytes>)| Allocation {
            owner: MemberId {
                node: 0,
                process: 1000,
            },
            id: id as u64,
            gpu: GpuUuid([7; 16]),
            size_bytes: length(chunks),
            requested_bytes: length(chunks),
            kind: "plain".into(),
            chunks: digests(naming, chunks),
        };
        let file = |path: &str, chunks: &Vec<Bytes>| ImageFile {
            path: FilePath::from(path),
            length: length(chunks),
            mode: 0o600,
            chunks: digests(naming, chunks),
        };
        Body {
            phos_version: "0.1.0".into(),
            trigger: "interval".into(),
            driver_version: "580.159.04".into(),
            allocations: self.device.iter().enumerate().map(allocation).collect(),
            cpu_image: vec![
                file("pages-1.img", &self.cpu),
                file("files/log.txt", &self.log),
            ],
            agent: "{}".into(),
            ..Body::default()
        }
    }

    /// Puts what the writer does not have.
    pub async fn put(
        &self,
        writer: &CheckpointWriter,
    ) -> std::result::Result<(), phos_storage::PutError> {
        let naming = writer.naming();
        for chunk in self.chunks() {
            let digest = naming.of(chunk);
            if !writer.contains(&digest) {
                writer.put(digest, chunk.clone()).await?;
            }
        }
        Ok(())
    }

    pub async fn commit(
        &self,
        job: &Job,
        epoch: phos_storage::Epoch,
    ) -> std::result::Result<Commit, CommitError> {
        let writer = match job.begin(epoch).await {
            Ok(writer) => writer,
            // Who knows that it was taken over is told so before anything is put.
            Err(JobError::Fenced { job, epoch, by }) => {
                return Err(CommitError::Fenced { job, epoch, by });
            }
            Err(error) => panic!("{error}"),
        };
        if let Err(error) = self.put(&writer).await {
            // A failed upload shows in the commit as well.
            assert!(
                matches!(error, phos_storage::PutError::Upload(_)),
                "{error}"
            );
        }
        writer.commit(self.body_in(&job.naming()), NOW).await
    }

    /// Reads an image back, every chunk checked.
    pub async fn read(
        job: &Job,
        manifest: &Manifest,
    ) -> std::result::Result<Self, phos_storage::ReadError> {
        Self::read_by(&job.reader(manifest).unwrap(), manifest).await
    }

    /// The same by a reader that may know other places.
    pub async fn read_by(
        reader: &phos_storage::Reader,
        manifest: &Manifest,
    ) -> std::result::Result<Self, phos_storage::ReadError> {
        let all = 0..manifest.chunks.len() as u32;
        let chunks: std::collections::HashMap<u32, Bytes> = reader.fetch(all).try_collect().await?;
        let get = |list: &phos_storage::ChunkList| {
            list.iter()
                .map(|index| chunks[&index].clone())
                .collect::<Vec<_>>()
        };
        Ok(Self {
            device: manifest
                .body
                .allocations
                .iter()
                .map(|allocation| get(&allocation.chunks))
                .collect(),
            cpu: get(&manifest.body.cpu_image[0].chunks),
            // Before version 3 a manifest had it elsewhere, in what nobody but these tests ever wrote.
            log: (manifest.body.cpu_image.get(1)).map_or_else(Vec::new, |f| get(&f.chunks)),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Put,
    Create,
    Multipart,
    Part,
    Get,
    List,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Fails, and nothing is done.
    Fail(Error),
    /// Is done, but the answer is lost.
    Lose,
    /// A get whose bytes are flipped.
    Flip,
    /// A get that ends early.
    Truncate,
    /// A create that overwrites.
    IgnoreCondition,
    /// A listing that does not show its last name yet.
    OneLess,
    /// Not yet: asked again until the verdict is another one.
    Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    Server500,
    Throttled,
    Reset,
    Timeout,
    Denied,
    Expired,
    Full,
    /// Of a file system behind a network: EIO, ESTALE.
    Broken,
    Stale,
}

impl Error {
    pub fn make(self, path: &str) -> object_store::Error {
        use std::io::{Error as Io, ErrorKind};
        let generic =
            |source: Box<dyn std::error::Error + Send + Sync>| object_store::Error::Generic {
                store: "Faulty",
                source,
            };
        match self {
            Self::Server500 => {
                generic("Server returned non-2xx status code: 500 Internal Server Error: ".into())
            }
            Self::Throttled => {
                generic("Server returned non-2xx status code: 503 Slow Down: ".into())
            }
            Self::Reset => generic(Io::from(ErrorKind::ConnectionReset).into()),
            Self::Timeout => generic(Io::from(ErrorKind::TimedOut).into()),
            Self::Broken => generic(Io::from_raw_os_error(5).into()),
            Self::Stale => generic(Io::from_raw_os_error(116).into()),
            Self::Full => generic(Io::from(ErrorKind::StorageFull).into()),
            Self::Expired => object_store::Error::Unauthenticated {
                path: path.into(),
                source: "expired".into(),
            },
            Self::Denied => object_store::Error::PermissionDenied {
                path: path.into(),
                source: "403".into(),
            },
        }
    }
}

type Hook = Box<dyn FnMut(Op, &str) -> (Verdict, u32) + Send>;

/// A store before another one that asks a hook before each operation how it is to end, and how often to yield before it.
pub struct Faulty {
    pub inner: Arc<dyn ObjectStore>,
    hook: Arc<Mutex<Hook>>,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

async fn ask(hook: &Mutex<Hook>, op: Op, path: &str) -> Verdict {
    loop {
        let (verdict, yields) = (hook.lock().unwrap())(op, path);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        if verdict != Verdict::Wait {
            return verdict;
        }
        tokio::task::yield_now().await;
    }
}

impl Faulty {
    pub fn new(
        inner: Arc<dyn ObjectStore>,
        mut hook: impl FnMut(Op, &str) -> Verdict + Send + 'static,
    ) -> Arc<Self> {
        Self::yielding(inner, move |op, path| (hook(op, path), 0))
    }

    pub fn yielding(
        inner: Arc<dyn ObjectStore>,
        hook: impl FnMut(Op, &str) -> (Verdict, u32) + Send + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner,
            hook: Arc::new(Mutex::new(Box::new(hook))),
        })
    }

    async fn ask(&self, op: Op, path: &Path) -> Verdict {
        ask(&self.hook, op, path.as_ref()).await
    }
}

/// The first request of a kind, to a key with a part in it, waits until it is let through: those of tasks of their own, so that the test itself can go on
/// with the same handle.
#[derive(Default)]
pub struct Gate {
    reached: AtomicBool,
    is_open: AtomicBool,
}

impl Gate {
    pub fn before(store: &Arc<InMemory>, at: Op, part: &'static str) -> (Arc<Faulty>, Arc<Self>) {
        let gate = Arc::new(Self::default());
        let hook = gate.clone();
        let store = Faulty::new(store.clone(), move |op, key| {
            let is_it = op == at && key.contains(part) && tokio::task::try_id().is_some();
            if !is_it || hook.is_open.load(Ordering::SeqCst) {
                return Verdict::Pass;
            }
            hook.reached.store(true, Ordering::SeqCst);
            Verdict::Wait
        });
        (store, gate)
    }

    pub async fn reached(&self) {
        while !self.reached.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    }

    pub fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }
}

fn lost(path: &Path) -> object_store::Error {
    Error::Timeout.make(path.as_ref())
}

#[async_trait::async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut opts: PutOptions,
    ) -> Result<PutResult> {
        let op = if matches!(opts.mode, PutMode::Create) {
            Op::Create
        } else {
            Op::Put
        };
        match self.ask(op, location).await {
            Verdict::Fail(error) => return Err(error.make(location.as_ref())),
            Verdict::Lose => {
                self.inner.put_opts(location, payload, opts).await?;
                return Err(lost(location));
            }
            Verdict::IgnoreCondition => opts.mode = PutMode::Overwrite,
            _ => {}
        }
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        if let Verdict::Fail(error) = self.ask(Op::Multipart, location).await {
            return Err(error.make(location.as_ref()));
        }
        let inner = self.inner.put_multipart_opts(location, opts).await?;
        Ok(Box::new(FaultyUpload {
            inner,
            hook: self.hook.clone(),
            path: location.clone(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let verdict = self.ask(Op::Get, location).await;
        if let Verdict::Fail(error) = verdict {
            return Err(error.make(location.as_ref()));
        }
        if verdict == Verdict::Lose {
            return Err(lost(location));
        }
        let mut result = self.inner.get_opts(location, options).await?;
        if matches!(verdict, Verdict::Flip | Verdict::Truncate) {
            let (meta, range, attributes) = (
                result.meta.clone(),
                result.range.clone(),
                result.attributes.clone(),
            );
            let extensions = result.extensions.clone();
            let mut bytes = result.bytes().await?.to_vec();
            if verdict == Verdict::Flip {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x10;
            } else {
                bytes.truncate(bytes.len() / 2);
            }
            let stream = futures::stream::once(async move { Ok(Bytes::from(bytes)) }).boxed();
            result = GetResult {
                payload: GetResultPayload::Stream(stream),
                meta,
                range,
                attributes,
                extensions,
            };
        }
        Ok(result)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (hook, inner) = (self.hook.clone(), self.inner.clone());
        locations
            .then(move |location| {
                let (hook, inner) = (hook.clone(), inner.clone());
                async move {
                    let location = location?;
                    match ask(&hook, Op::Delete, location.as_ref()).await {
                        Verdict::Fail(error) => Err(error.make(location.as_ref())),
                        Verdict::Lose => {
                            object_store::ObjectStoreExt::delete(&*inner, &location).await?;
                            Err(lost(&location))
                        }
                        _ => object_store::ObjectStoreExt::delete(&*inner, &location)
                            .await
                            .map(|()| location),
                    }
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (hook, inner) = (self.hook.clone(), self.inner.clone());
        let prefix = prefix.cloned().unwrap_or_default();
        futures::stream::once(async move {
            match ask(&hook, Op::List, prefix.as_ref()).await {
                Verdict::Fail(error) => Err(error.make(prefix.as_ref())),
                Verdict::Lose => Err(lost(&prefix)),
                verdict => {
                    let mut found: Vec<_> = inner.list(Some(&prefix)).try_collect().await?;
                    found.sort_by(|a, b| a.location.cmp(&b.location));
                    if verdict == Verdict::OneLess {
                        found.pop();
                    }
                    Ok(futures::stream::iter(found.into_iter().map(Ok)))
                }
            }
        })
        .try_flatten()
        .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let path = prefix.cloned().unwrap_or_default();
        if let Verdict::Fail(error) = self.ask(Op::List, &path).await {
            return Err(error.make(path.as_ref()));
        }
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

struct FaultyUpload {
    inner: Box<dyn MultipartUpload>,
    hook: Arc<Mutex<Hook>>,
    path: Path,
}

impl fmt::Debug for FaultyUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyUpload({})", self.path)
    }
}

#[async_trait::async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> object_store::UploadPart {
        let part = self.inner.put_part(data);
        let (hook, path) = (self.hook.clone(), self.path.clone());
        Box::pin(async move {
            match ask(&hook, Op::Part, path.as_ref()).await {
                Verdict::Fail(error) => Err(error.make(path.as_ref())),
                Verdict::Lose => Err(lost(&path)),
                _ => part.await,
            }
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

pub async fn open(store: Arc<dyn ObjectStore>, seed: u64) -> Store {
    open_with(store, options(seed)).await
}

pub async fn open_with(store: Arc<dyn ObjectStore>, options: StoreOptions) -> Store {
    Store::from_object_store(store, "prefix", options)
        .await
        .unwrap()
}

/// Keys of all objects, sorted.
pub async fn keys(store: &dyn ObjectStore) -> Vec<String> {
    let mut keys: Vec<String> = store
        .list(None)
        .map_ok(|meta| meta.location.to_string())
        .try_collect()
        .await
        .unwrap();
    keys.sort();
    keys
}

/// Those of them in a part of the store.
pub async fn below(store: &dyn ObjectStore, part: &str) -> Vec<String> {
    let mut found = keys(store).await;
    found.retain(|key| key.contains(&format!("/{part}/")));
    found
}

/// Changes an object.
pub async fn change(store: &dyn ObjectStore, key: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let found = store.get(key).await.unwrap();
    let mut bytes = found.bytes().await.unwrap().to_vec();
    change(&mut bytes);
    store.put(key, bytes.into()).await.unwrap();
}

/// The tests' job, in a handle of its own on the store.
pub async fn handle(store: Arc<dyn ObjectStore>, seed: u64) -> Job {
    let store = open(store, seed).await;
    store.initialise().await.unwrap();
    store.job(name("job"))
}

/// The same, taken over.
pub async fn taken(store: &Arc<InMemory>, seed: u64) -> (Job, Epoch) {
    let job = handle(store.clone(), seed).await;
    let holder = format!("node {seed}");
    let epoch = job.take_over(&holder, NOW).await.unwrap().epoch;
    (job, epoch)
}

/// Keeps so many of the newest.
pub fn last(count: usize) -> impl Fn(&[Candidate]) -> BTreeSet<CheckpointNumber> + Send + Sync {
    move |all| all.iter().rev().take(count).map(|c| c.number).collect()
}

/// Until a writer has stored so many packs.
pub async fn stored(writer: &CheckpointWriter, packs: u64) {
    while writer.stats().stored_packs < packs {
        tokio::task::yield_now().await;
    }
}

/// A runtime of one thread, so that interleavings follow from the seed.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}
