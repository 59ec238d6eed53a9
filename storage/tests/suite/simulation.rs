//! Crash consistency by simulation: two nodes that both believe to own the job, a collector and a reader, on one thread,
//! with every request to the store in the hands of a seed: which is done next, which is late, lost, or done although its
//! answer is lost, who crashes over it, and what a crashed one still had on the way.
//!
//! What else a seed decides ([`Weather`]): encryption, packs that go up in parts, caches of packs in memory and on disk, nodes that
//! copy their checkpoints from a store of their own, clocks that jump, listings that are a moment old.
//!
//! After every request the history and what is deleted are compared with a model: invariants 2, 5 and 6 of the design.
//! Nothing depends on time, threads or the addresses of anything: a seed says all. To see one again:
//!
//!     PHOS_SEED=4711 cargo nextest run -p phos-storage --test suite one_seed --run-ignored all --no-capture
//!
//! The seeds of the long runs follow from the commit, so that each commit tries others, and are printed; `PHOS_SEED_BASE` has them
//! begin elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Image, NOW, name, noise, nonces, runtime};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};
use phos_storage::{
    Always, Candidate, CheckpointNumber, CollectError, CollectOptions, Commit, CommitError,
    Compute, CopyError, Epoch, Job, Key, Manifest, PackCache, RecordKind, RetryPolicy, Store,
    StoreOptions, UnixMillis,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::sync::oneshot;

// --- a store whose requests wait for the driver ----------------------------------------------------------------------

enum Request {
    Put(Path, PutPayload, PutOptions),
    Get(Path, GetOptions),
    Delete(Path),
    List(Option<Path>),
    Begin(Path),
    /// Which of the parts of an upload it is.
    Part(u64, usize, PutPayload),
    /// Of how many parts.
    Complete(u64, usize),
    Abort(u64),
}

impl Request {
    fn describe(&self) -> String {
        match self {
            Self::Put(path, _, options) if matches!(options.mode, PutMode::Create) => {
                format!("create {path}")
            }
            Self::Put(path, ..) => format!("put {path}"),
            Self::Get(path, _) => format!("get {path}"),
            Self::Delete(path) => format!("delete {path}"),
            Self::List(path) => format!("list {}", path.clone().unwrap_or_default()),
            Self::Begin(path) => format!("begin {path}"),
            Self::Part(upload, part, _) => format!("part {part} of upload {upload}"),
            Self::Complete(upload, _) => format!("complete upload {upload}"),
            Self::Abort(upload) => format!("abort upload {upload}"),
        }
    }
}

enum Answer {
    Put(PutResult),
    Get(GetResult),
    Deleted(Path),
    Listed(Vec<ObjectMeta>),
    Begun(u64),
    Done,
}

struct Waiting {
    instance: usize,
    request: Request,
    answer: Option<oneshot::Sender<Result<Answer>>>,
}

type Queue = Arc<Mutex<Vec<Waiting>>>;

/// The store as one process sees it.
struct Link {
    instance: usize,
    queue: Queue,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.instance)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "simulation")
    }
}

async fn ask(instance: usize, queue: Queue, request: Request) -> Result<Answer> {
    let (sender, receiver) = oneshot::channel();
    queue.lock().unwrap().push(Waiting {
        instance,
        request,
        answer: Some(sender),
    });
    match receiver.await {
        Ok(answer) => answer,
        // The process is dead.
        Err(_) => std::future::pending().await,
    }
}

impl Link {
    fn ask(&self, request: Request) -> impl Future<Output = Result<Answer>> + Send + 'static {
        ask(self.instance, self.queue.clone(), request)
    }
}

#[async_trait::async_trait]
impl ObjectStore for Link {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        match self.ask(Request::Put(at.clone(), payload, opts)).await? {
            Answer::Put(result) => Ok(result),
            _ => unreachable!(),
        }
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        match self.ask(Request::Begin(at.clone())).await? {
            Answer::Begun(upload) => Ok(Box::new(Upload {
                instance: self.instance,
                queue: self.queue.clone(),
                upload,
                parts: 0,
            })),
            _ => unreachable!(),
        }
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        match self.ask(Request::Get(at.clone(), options)).await? {
            Answer::Get(result) => Ok(result),
            _ => unreachable!(),
        }
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (instance, queue) = (self.instance, self.queue.clone());
        locations
            .then(move |at| {
                let queue = queue.clone();
                async move {
                    match ask(instance, queue, Request::Delete(at?)).await? {
                        Answer::Deleted(at) => Ok(at),
                        _ => unreachable!(),
                    }
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let asked = self.ask(Request::List(prefix.cloned()));
        let listed = asked.map(|answer| match answer? {
            Answer::Listed(found) => {
                Ok::<_, object_store::Error>(futures::stream::iter(found.into_iter().map(Ok)))
            }
            _ => unreachable!(),
        });
        futures::stream::once(listed).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        unreachable!()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unreachable!()
    }
}

/// An upload in parts as one process sees it.
#[derive(Debug)]
struct Upload {
    instance: usize,
    queue: Queue,
    upload: u64,
    parts: usize,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.instance, self.request.describe())
    }
}

#[async_trait::async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let request = Request::Part(self.upload, self.parts, data);
        self.parts += 1;
        let asked = ask(self.instance, self.queue.clone(), request);
        Box::pin(asked.map(|answer| answer.map(drop)))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let request = Request::Complete(self.upload, self.parts);
        match ask(self.instance, self.queue.clone(), request).await? {
            Answer::Put(result) => Ok(result),
            _ => unreachable!(),
        }
    }

    async fn abort(&mut self) -> Result<()> {
        let request = Request::Abort(self.upload);
        ask(self.instance, self.queue.clone(), request)
            .await
            .map(drop)
    }
}

/// Uploads that are under way: where each goes, and the parts that have come.
type Uploads = HashMap<u64, (Path, BTreeMap<usize, PutPayload>)>;

fn no_such_upload(upload: u64) -> object_store::Error {
    object_store::Error::NotFound {
        path: format!("upload {upload}"),
        source: "NoSuchUpload".into(),
    }
}

async fn execute(store: &InMemory, uploads: &mut Uploads, request: Request) -> Result<Answer> {
    match request {
        Request::Begin(at) => {
            let upload = uploads.keys().max().map_or(0, |last| last + 1);
            uploads.insert(upload, (at, BTreeMap::new()));
            Ok(Answer::Begun(upload))
        }
        Request::Part(upload, number, payload) => {
            let (_, parts) = uploads
                .get_mut(&upload)
                .ok_or_else(|| no_such_upload(upload))?;
            parts.insert(number, payload);
            Ok(Answer::Done)
        }
        Request::Complete(upload, count) => {
            // Under its number nothing else is ever begun.
            let (at, parts) = uploads
                .get_mut(&upload)
                .ok_or_else(|| no_such_upload(upload))?;
            if parts.len() != count {
                return Err(no_such_upload(upload));
            }
            let whole: PutPayload = std::mem::take(parts)
                .into_values()
                .flat_map(|part| part.iter().cloned().collect::<Vec<Bytes>>())
                .collect();
            let stored = store.put(at, whole).await;
            stored.map(Answer::Put)
        }
        Request::Abort(upload) => {
            let (_, parts) = uploads
                .get_mut(&upload)
                .ok_or_else(|| no_such_upload(upload))?;
            parts.clear();
            Ok(Answer::Done)
        }
        Request::Put(at, payload, options) => {
            store.put_opts(&at, payload, options).await.map(Answer::Put)
        }
        Request::Get(at, options) => store.get_opts(&at, options).await.map(Answer::Get),
        Request::Delete(at) => store.delete(&at).await.map(|()| Answer::Deleted(at)),
        Request::List(prefix) => {
            let found = store.list(prefix.as_ref()).try_collect().await?;
            Ok(Answer::Listed(found))
        }
    }
}

fn lost() -> object_store::Error {
    object_store::Error::Generic {
        store: "simulation",
        source: std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
    }
}

// --- the model -------------------------------------------------------------------------------------------------------

/// What a process was told of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    Committed(u64),
    /// It failed: nothing is visible.
    Refused(String),
    Unknown,
}

/// What all processes tell the test.
#[derive(Default)]
struct Book {
    next_tag: u64,
    images: HashMap<u64, Image>,
    told: Vec<(u64, Told)>,
    violations: Vec<String>,
    restores: u64,
    /// Of those, how many of a checkpoint that retention had removed before it was read.
    held: u64,
    /// Chunks that were not uploaded again, as an unfinished checkpoint had stored them.
    resumed: u64,
    collections: u64,
    repacked: u64,
    /// Checkpoints that came from a store of a node's own.
    copied: u64,
}

type Shared = Arc<Mutex<Book>>;

/// A visible checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Visible {
    tag: u64,
    needs: BTreeSet<String>,
}

/// What is visible, by the log as it stands.
#[derive(Debug, Default)]
struct Model {
    visible: BTreeMap<u64, Visible>,
    /// Everything that ever was, by its tag.
    ever: HashMap<u64, u64>,
    records: usize,
}

const PREFIX: &str = "p/jobs/job";

fn tag(manifest: &Manifest) -> u64 {
    manifest.body.timings.figures["tag"]
}

impl Model {
    /// Looks at the store after its log grew.
    async fn look(&mut self, job: &Job) -> std::result::Result<(), String> {
        let mut visible = BTreeMap::new();
        for (number, manifest) in job.checkpoints().await.unwrap() {
            let manifest = manifest.map_err(|e| {
                format!("checkpoint {number} is visible, its manifest not readable: {e}")
            })?;
            let needs: BTreeSet<String> = (manifest.packs.iter())
                .map(|pack| format!("{PREFIX}/packs/{}", pack.id))
                .collect();
            let tag = tag(&manifest);
            if let Some(before) = self.ever.insert(tag, number.0)
                && before != number.0
            {
                return Err(format!("one commit stands at {before} and {number}"));
            }
            if let Err(e) = job.check_packs(&manifest).await {
                return Err(format!("checkpoint {number} is visible and not whole: {e}"));
            }
            visible.insert(number.0, Visible { tag, needs });
        }
        let (newest, now) = (self.visible.keys().last(), visible.keys().last());
        if now < newest {
            return Err(format!(
                "the newest checkpoint was {newest:?} and now is {now:?}"
            ));
        }
        let records = job.records().await.unwrap();
        let (_, last) = records.last().unwrap();
        let collected = matches!(last.as_ref().unwrap().kind, RecordKind::Collected { .. });
        if !collected
            && !self
                .visible
                .keys()
                .all(|number| visible.contains_key(number))
        {
            return Err("a checkpoint vanished without a collection".into());
        }
        let mut epoch = Epoch(0);
        for (at, (number, record)) in records.iter().enumerate() {
            let record = record.as_ref().unwrap();
            if *number != at as u64 + 1 {
                return Err(format!("the log has a gap before {number}"));
            }
            if matches!(record.kind, RecordKind::TakenOver { .. }) {
                epoch = Epoch(*number);
            }
            if record.epoch != epoch {
                return Err(format!(
                    "record {number} is of epoch {}, not {epoch}",
                    record.epoch
                ));
            }
        }
        self.records = records.len();
        self.visible = visible;
        Ok(())
    }
}

// --- the processes ---------------------------------------------------------------------------------------------------

/// What a seed has to deal with from its beginning to its end.
#[derive(Debug, Clone, Copy)]
struct Weather {
    seed: u64,
    encrypted: bool,
    /// Packs and large manifests go up in parts.
    parts: bool,
    memory_caches: bool,
    disk_caches: bool,
    /// Nodes take checkpoints into stores of their own, and copy them.
    tiers: bool,
    /// Clocks differ, and jump forward and back.
    jumps: bool,
    /// Listings show what was there a moment ago.
    stale: bool,
}

impl Weather {
    fn of(seed: u64) -> Self {
        // What goes together follows from another number than what happens.
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5745_4154_4845_5221);
        Self {
            seed,
            encrypted: seed.is_multiple_of(3),
            parts: rng.random_ratio(1, 4),
            memory_caches: rng.random_ratio(1, 3),
            disk_caches: rng.random_ratio(1, 20),
            tiers: rng.random_ratio(1, 4),
            jumps: rng.random_ratio(1, 4),
            stale: rng.random_ratio(1, 6),
        }
    }

    fn options(&self, instance: usize) -> StoreOptions {
        StoreOptions {
            retry: RetryPolicy::immediate(0),
            pack_size: 3000,
            part_size: if self.parts { 1000 } else { 1 << 20 },
            uploads: 2,
            encoders: 2,
            compute: Compute::Inline,
            encryption: self.encrypted.then(|| Key::new(&[self.seed as u8; 32])),
            ..StoreOptions::new(nonces(self.seed * 1000 + instance as u64))
        }
    }
}

#[derive(Clone)]
struct Process {
    instance: usize,
    weather: Weather,
    queue: Queue,
    book: Shared,
    /// What time its machine says it is, in milliseconds.
    clock: Arc<AtomicU64>,
    /// Nearest first.
    caches: Vec<Arc<PackCache>>,
    /// The store of its machine, if nodes have such.
    near: Option<Arc<InMemory>>,
}

impl Process {
    async fn job(&self) -> Job {
        let link = Arc::new(Link {
            instance: self.instance,
            queue: self.queue.clone(),
        });
        loop {
            let options = StoreOptions {
                caches: self.caches.clone(),
                ..self.weather.options(self.instance)
            };
            if let Ok(store) = Store::from_object_store(link.clone(), "p", options).await {
                return store.job(name("job"));
            }
        }
    }

    /// The job in the store of its machine, which answers always and at once.
    async fn near(&self) -> Option<(Job, Epoch)> {
        let options = self.weather.options(500 + self.instance);
        let store = Store::from_object_store(self.near.clone()?, "near", options).await;
        let job = store.unwrap().job(name("job"));
        let taken = job.take_over("near", self.now()).await.unwrap();
        Some((job, taken.epoch))
    }

    /// The newest checkpoint in the store of its machine, without taking anything over.
    async fn nearest(&self) -> Option<(Job, Manifest)> {
        let options = self.weather.options(700 + self.instance);
        let store = Store::from_object_store(self.near.clone()?, "near", options).await;
        let job = store.unwrap().job(name("job"));
        let newest = job.newest_restorable().await.unwrap().manifest?;
        Some((job, newest))
    }

    fn now(&self) -> UnixMillis {
        UnixMillis(self.clock.load(Ordering::Relaxed))
    }

    fn violation(&self, what: String) {
        self.book.lock().unwrap().violations.push(what);
    }

    async fn collect(&self, job: &Job, epoch: Option<Epoch>, rng: &mut ChaCha8Rng) -> bool {
        let keep_last = rng.random_range(0..4_usize);
        let keep = move |candidates: &[Candidate]| -> BTreeSet<CheckpointNumber> {
            let newest_first = candidates.iter().rev().map(|c| c.number);
            if keep_last == 0 {
                newest_first.collect()
            } else {
                newest_first.take(keep_last).collect()
            }
        };
        let options = CollectOptions {
            epoch,
            rounds: rng.random_range(1..4),
            repack_below_percent: [0, 50, 90][rng.random_range(0..3_usize)],
            ..CollectOptions::default()
        };
        match job.collect(&keep, options, || self.now()).await {
            Ok(done) => {
                let mut book = self.book.lock().unwrap();
                book.collections += 1;
                book.repacked += done.repacked_packs;
                if !done.blocked.is_empty() && !self.weather.stale {
                    book.violations.push(format!(
                        "collection is blocked, and nothing is damaged: {done:?}"
                    ));
                }
            }
            Err(CollectError::Fenced { .. }) => return false,
            Err(CollectError::Store(_) | CollectError::Busy) => {}
            Err(other) => self.violation(format!("collection failed: {other}")),
        }
        true
    }
}

/// Takes a checkpoint, as far as it comes; `None`: it was given up.
async fn take(
    job: &Job,
    epoch: Epoch,
    image: &Image,
    tag: u64,
    now: UnixMillis,
    given_up: bool,
) -> Option<std::result::Result<Commit, CommitError>> {
    let writer = job.begin(epoch).await.ok()?;
    // Caches in memory keep every other image decoded.
    writer.plan_for(tag % 2 * u64::MAX);
    if image.put(&writer).await.is_err() || given_up {
        if tag.is_multiple_of(2) {
            writer.abort(now).await;
        }
        return None;
    }
    let mut body = image.body_in(&job.naming());
    body.timings.figures.insert("tag".into(), tag);
    Some(writer.commit(body, now).await)
}

/// A sidecar: takes the job over, takes checkpoints, collects after some of them. Comes back when it was fenced.
async fn node(process: Process, mut rng: ChaCha8Rng, steps: u32) {
    let job = process.job().await;
    let _ = job.store().initialise().await;
    let near = process.near().await;
    let mut epoch = None;
    // A few places of memory, whose contents come and go and come again.
    let mut memory = [0_u64; 6];
    for _ in 0..steps {
        let Some(current) = epoch else {
            epoch = job
                .take_over("node", process.now())
                .await
                .ok()
                .map(|taken| taken.epoch);
            continue;
        };
        for _ in 0..rng.random_range(0..4) {
            memory[rng.random_range(0..6_usize)] = rng.random_range(0..10);
        }
        let chunk = |value: u64| -> Bytes {
            match value {
                0 => vec![0; 700].into(),
                value => noise(value, 300 + 200 * (value as usize % 5)),
            }
        };
        let image = Image::of(memory.iter().map(|&value| chunk(value)).collect());
        let tag = {
            let mut book = process.book.lock().unwrap();
            book.next_tag += 1;
            let tag = book.next_tag;
            book.images.insert(tag, image.clone());
            tag
        };
        let taken = match &near {
            Some((near, near_epoch)) => {
                // Now and then one is left out, as the next one is there before it was copied.
                let at = process.now();
                let kept = take(near, *near_epoch, &image, tag, at, false).await;
                if rng.random_range(0..6) == 0 {
                    continue;
                }
                let made = kept.expect("its own store").expect("its own store");
                let copied = job
                    .copy_from(current, near, &made.manifest, &Always, at)
                    .await;
                let newest = |all: &[Candidate]| all.last().map(|c| c.number).into_iter().collect();
                if rng.random_bool(0.3) {
                    let done = near.collect(&newest, CollectOptions::default(), at).await;
                    assert!(done.is_ok_and(|done| done.blocked.is_empty()));
                }
                match copied {
                    Ok(commit) => {
                        process.book.lock().unwrap().copied += 1;
                        Ok(commit)
                    }
                    Err(CopyError::Commit(error)) => Err(error),
                    Err(CopyError::Read(error)) => {
                        process.violation(format!("its own store cannot be read: {error}"));
                        continue;
                    }
                    Err(CopyError::Job(_) | CopyError::Put(_)) => continue,
                }
            }
            None => {
                let given_up = rng.random_range(0..12) == 0;
                let at = process.now();
                match take(&job, current, &image, tag, at, given_up).await {
                    Some(taken) => taken,
                    None => continue,
                }
            }
        };
        let mut gone = false;
        let told = match taken {
            Ok(commit) => {
                process.book.lock().unwrap().resumed += commit.resumed.chunks;
                Told::Committed(commit.number.0)
            }
            Err(CommitError::Unknown(_)) => Told::Unknown,
            Err(error) => {
                if error.is_fenced() {
                    // Most go away then; this one may come back.
                    gone = rng.random_bool(0.6);
                    epoch = None;
                }
                let lost = matches!(
                    error,
                    CommitError::PackLost { .. } | CommitError::Manifest(_)
                );
                if lost && !process.weather.stale {
                    process.violation(format!("a living writer lost what it referenced: {error}"));
                }
                Told::Refused(error.to_string())
            }
        };
        process.book.lock().unwrap().told.push((tag, told));
        if gone {
            return;
        }
        if let Some(current) = epoch
            && rng.random_bool(0.5)
            && !process.collect(&job, Some(current), &mut rng).await
        {
            epoch = None;
        }
    }
}

/// `phos-ft prune`, now and then.
async fn collector(process: Process, mut rng: ChaCha8Rng, steps: u32) {
    let job = process.job().await;
    for _ in 0..steps {
        process.collect(&job, None, &mut rng).await;
    }
}

/// `phos-ft restore` or `export` on another machine, which may take its time.
async fn reader(process: Process, truth: Job, mut rng: ChaCha8Rng, steps: u32) {
    let job = process.job().await;
    let still_visible = async |number: CheckpointNumber| {
        let listed = truth.list().await.unwrap().checkpoints;
        listed.iter().any(|c| c.number == number)
    };
    for _ in 0..steps {
        // The newest, or one that was asked for by its number.
        let held = if rng.random_bool(0.5) {
            let Ok((found, hold)) = job.hold_newest("reader", process.now()).await else {
                continue;
            };
            for skipped in found.skipped {
                if still_visible(skipped.number).await && !process.weather.stale {
                    process.violation(format!("a whole checkpoint was passed over: {skipped:?}"));
                }
            }
            found.manifest.zip(hold)
        } else {
            let Ok(listed) = job.list().await else {
                continue;
            };
            let Some(oldest) = listed.checkpoints.last() else {
                continue;
            };
            job.hold(oldest.number, "reader", process.now()).await.ok()
        };
        let Some((manifest, mut hold)) = held else {
            continue;
        };
        // By a clock that jumps a reader is forgotten while it reads, and by an old listing it is not seen.
        let is_safe = !process.weather.jumps && !process.weather.stale;
        // A slow one is at it while others take many checkpoints.
        let reads = if rng.random_bool(0.2) { 20 } else { 2 };
        for _ in 0..reads {
            if rng.random_bool(0.3) {
                let _ = hold.renew(process.now()).await;
            }
            let reader = job.reader(&manifest).unwrap();
            let (reader, _tier) = match process.nearest().await {
                // Any checkpoint there may have some of the chunks, or none.
                Some((near, there)) => (reader.nearer(&near, &there), Some(near)),
                None => (reader, None),
            };
            match Image::read_by(&reader, &manifest).await {
                Ok(image) => {
                    let visible = still_visible(manifest.number).await;
                    let mut book = process.book.lock().unwrap();
                    book.restores += 1;
                    book.held += u64::from(!visible);
                    if book.images[&tag(&manifest)] != image {
                        book.violations
                            .push(format!("checkpoint {} is another image", manifest.number));
                    }
                }
                Err(error) if error.damaged_pack().is_some() => {
                    if hold.unprotected().is_none() && is_safe {
                        process.violation(format!("what is held cannot be read: {error}"));
                    } else if still_visible(manifest.number).await {
                        // It may have been repacked.
                        let now = truth.manifest(manifest.number).await;
                        if now.is_ok_and(|now| now.packs == manifest.packs) {
                            process
                                .violation(format!("a visible checkpoint cannot be read: {error}"));
                        }
                    }
                }
                Err(_) => {}
            }
        }
        if rng.random_bool(0.7) {
            hold.release().await;
        }
    }
}

// --- the driver ------------------------------------------------------------------------------------------------------

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Node,
    Collector,
    Reader,
}

struct Running {
    role: Role,
    instance: usize,
    task: tokio::task::JoinHandle<()>,
    frozen_until: u64,
    near: Option<Arc<InMemory>>,
}

/// What a seed came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Outcome {
    requests: u64,
    crashes: u64,
    committed: u64,
    restores: u64,
    held: u64,
    resumed: u64,
    collections: u64,
    repacked: u64,
    swept: u64,
    copied: u64,
    /// Parts of objects.
    parts: u64,
    /// Bytes that were read from caches.
    cached: u64,
    jumps: u64,
    /// Listings that were not as things were.
    stale: u64,
    /// Of all that happened, in order.
    trace: u64,
}

/// What is broken on purpose, to see that the simulation notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sabotage {
    Nothing,
    /// The store creates records over others.
    Conditions,
    /// The first record of a checkpoint that retention removed is deleted, as an orderly person might want it.
    Records,
    /// Nobody sees the notes of readers.
    Readers,
}

struct Simulation {
    sabotage: Sabotage,
    seed: u64,
    weather: Weather,
    rng: ChaCha8Rng,
    store: Arc<InMemory>,
    uploads: Uploads,
    /// What was put and deleted last: what a listing may not show yet, or still.
    recent: VecDeque<(bool, ObjectMeta)>,
    /// Of each process, dead or alive.
    caches: Vec<Arc<PackCache>>,
    clocks: Vec<Arc<AtomicU64>>,
    disks: Option<tempfile::TempDir>,
    queue: Queue,
    book: Shared,
    truth: Job,
    model: Model,
    running: Vec<Running>,
    instances: usize,
    outcome: Outcome,
    verbose: bool,
}

impl Simulation {
    /// `near` is the store of its machine, if that was one of the dead.
    fn spawn(&mut self, role: Role, near: Option<Arc<InMemory>>) {
        let instance = self.instances;
        self.instances += 1;
        let rng = ChaCha8Rng::seed_from_u64(self.rng.next_u64());
        let near = match role {
            // Of somebody's machine.
            Role::Reader => (self.running.iter()).find_map(|other| other.near.clone()),
            _ => near.or_else(|| self.weather.tiers.then(|| Arc::new(InMemory::new()))),
        };
        let mut caches = Vec::new();
        if self.weather.memory_caches {
            // So small that some of it goes again.
            let cache = PackCache::in_memory(9000, Box::new(|_| true));
            caches.push(Arc::new(cache));
        }
        if let Some(disks) = &self.disks {
            let directory = disks.path().join(instance.to_string());
            let cache = PackCache::on_disk_leaving(&directory, "p", 1 << 20, u64::MAX);
            caches.push(Arc::new(cache.unwrap()));
        }
        self.caches.extend(caches.iter().cloned());
        let clock = Arc::new(AtomicU64::new(NOW.0));
        self.clocks.push(clock.clone());
        let process = Process {
            instance,
            weather: self.weather,
            queue: self.queue.clone(),
            book: self.book.clone(),
            clock,
            caches,
            near: near.clone(),
        };
        let steps = self.rng.random_range(3..9);
        let task = match role {
            Role::Node => tokio::spawn(node(process, rng, 2 * steps)),
            Role::Collector => tokio::spawn(collector(process, rng, 2 * steps)),
            // Most looks come before there is anything.
            Role::Reader => tokio::spawn(reader(process, self.truth.clone(), rng, 8 * steps)),
        };
        self.running.push(Running {
            role,
            instance,
            task,
            frozen_until: 0,
            near,
        });
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        let what = what();
        if self.verbose {
            println!("{what}");
        }
        for byte in what.bytes() {
            self.outcome.trace =
                (self.outcome.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn fail(&self, what: &str) -> ! {
        panic!("seed {}: {what}", self.seed)
    }

    async fn crash(&mut self, at: usize) {
        let dead = self.running.swap_remove(at);
        self.note(|| format!("{} {:?} crashes", dead.instance, dead.role));
        self.outcome.crashes += 1;
        dead.task.abort();
        let _ = dead.task.await;
        // What it had on the way may arrive, at any time, or never.
        let mut queue = self.queue.lock().unwrap();
        for waiting in queue.iter_mut().filter(|w| w.instance == dead.instance) {
            waiting.answer = None;
        }
        let rng = &mut self.rng;
        queue.retain(|w| w.instance != dead.instance || rng.random_bool(0.6));
        drop(queue);
        if self.instances < 12 && self.rng.random_bool(0.8) {
            self.spawn(dead.role, dead.near);
        }
    }

    /// Does one request that waits, or not, and says so, or not.
    async fn step(&mut self, at: usize) {
        let mut waiting = self.queue.lock().unwrap().swap_remove(at);
        let described = waiting.request.describe();
        let fate = if waiting.answer.is_some() {
            self.rng.random_range(0..250)
        } else {
            99
        };
        self.note(|| format!("{} {described} {}", waiting.instance, fate.min(6)));
        let answer = waiting.answer.take();
        match fate {
            // Never arrives.
            0 | 1 => drop(answer.unwrap().send(Err(lost()))),
            // Its sender gives up; it arrives later.
            2 | 3 => {
                let _ = answer.unwrap().send(Err(lost()));
                self.queue.lock().unwrap().push(waiting);
            }
            fate => {
                let done = self.execute(waiting.request).await;
                if let Some(answer) = answer {
                    // Is done, and the answer is lost.
                    let done = if fate <= 5 { Err(lost()) } else { done };
                    let _ = answer.send(done);
                }
            }
        }
    }

    async fn execute(&mut self, request: Request) -> Result<Answer> {
        self.outcome.requests += 1;
        if let Request::Delete(at) = &request {
            let at = at.to_string();
            if at.starts_with(&format!("{PREFIX}/packs/")) {
                self.outcome.swept += 1;
                let needed = self
                    .model
                    .visible
                    .iter()
                    .find(|(_, v)| v.needs.contains(&at));
                if let Some((number, _)) = needed {
                    self.fail(&format!(
                        "checkpoint {number} is visible and its {at} is deleted"
                    ));
                }
            }
            if at.starts_with(&format!("{PREFIX}/head/")) {
                self.fail(&format!("{at} is deleted"));
            }
        }
        let grows = matches!(&request, Request::Put(at, ..) if at.as_ref().starts_with(&format!("{PREFIX}/head/")));
        let deletes_manifest = matches!(&request, Request::Delete(at) if at.as_ref().starts_with(&format!("{PREFIX}/manifests/")));
        let mut request = request;
        if let (Request::Put(_, _, options), Sabotage::Conditions) = (&mut request, self.sabotage) {
            options.mode = PutMode::Overwrite;
        }
        let readers = format!("{PREFIX}/readers");
        let hidden = self.sabotage == Sabotage::Readers
            && matches!(&request, Request::List(Some(at)) if at.as_ref() == readers);
        if matches!(request, Request::Part(..)) {
            self.outcome.parts += 1;
        }
        let changes = self.weather.stale.then(|| changed(&request, &self.uploads));
        let before = match changes.clone().flatten() {
            Some(at) => self.store.head(&at).await.ok(),
            None => None,
        };
        let listed = match &request {
            Request::List(prefix) => prefix.clone(),
            _ => None,
        };
        let mut done = execute(&self.store, &mut self.uploads, request).await;
        if let Some(at) = changes.flatten() {
            match (before, self.store.head(&at).await.ok()) {
                (None, Some(new)) => self.remember(true, new),
                (Some(old), None) => self.remember(false, old),
                _ => {}
            }
        }
        if let (Ok(Answer::Listed(found)), true) = (&mut done, self.weather.stale) {
            self.look_back(&listed.unwrap_or_default(), found);
        }
        if hidden {
            done = Ok(Answer::Listed(Vec::new()));
        }
        if self.sabotage == Sabotage::Records
            && let Some(oldest) = self.removed().await
        {
            let at = Path::from(format!("{PREFIX}/head/{oldest:020}"));
            let _ = self.store.delete(&at).await;
        }
        if done.is_ok() && (grows || deletes_manifest) {
            let truth = self.truth.clone();
            if let Err(what) = self.model.look(&truth).await {
                self.fail(&what);
            }
        }
        done
    }

    fn remember(&mut self, is_new: bool, meta: ObjectMeta) {
        self.recent.push_back((is_new, meta));
        if self.recent.len() > 12 {
            self.recent.pop_front();
        }
    }

    /// Makes a listing one of a moment ago, as far as some of the last changes are concerned.
    fn look_back(&mut self, prefix: &Path, found: &mut Vec<ObjectMeta>) {
        let mut is_stale = false;
        let recent: Vec<_> = self.recent.iter().rev().cloned().collect();
        for (is_new, meta) in recent {
            if !meta.location.prefix_matches(prefix) || !self.rng.random_ratio(1, 6) {
                continue;
            }
            let shown = found
                .iter()
                .position(|other| other.location == meta.location);
            match (is_new, shown) {
                (true, Some(at)) => drop(found.remove(at)),
                (false, None) => found.push(meta),
                _ => continue,
            }
            is_stale = true;
        }
        self.outcome.stale += u64::from(is_stale);
    }

    /// The clock of a machine is set, as by NTP or by a person.
    fn jump(&mut self) {
        let at = self.rng.random_range(0..self.clocks.len());
        let hours = 3_600_000;
        let to = NOW.0 - 12 * hours + self.rng.random_range(0..24 * hours);
        self.clocks[at].store(to, Ordering::Relaxed);
        self.outcome.jumps += 1;
        self.note(|| format!("the clock of {at} says {to}"));
    }

    /// A checkpoint that is no longer visible.
    async fn removed(&self) -> Option<u64> {
        let newest = *self.model.visible.keys().last()?;
        let mut ever: Vec<u64> = self.model.ever.values().copied().collect();
        ever.sort_unstable();
        ever.into_iter()
            .find(|n| *n < newest && !self.model.visible.contains_key(n))
    }

    async fn run(mut self) -> Outcome {
        for role in [Role::Node, Role::Node, Role::Collector, Role::Reader] {
            self.spawn(role, None);
        }
        // The second node comes when the first has been at it for a while.
        self.running[1].frozen_until = self.rng.random_range(0..300);
        let mut idle = 0;
        for now in 0.. {
            // Everybody gets as far as the next request. Three turns are enough for most; who needs more is late, in each
            // run alike.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            self.running.retain(|r| !r.task.is_finished());
            if let Some(what) = self.book.lock().unwrap().violations.first() {
                self.fail(what);
            }
            if self.running.is_empty() {
                break;
            }
            if self.rng.random_range(0..150) == 0 {
                let at = self.rng.random_range(0..self.running.len());
                self.crash(at).await;
                continue;
            }
            if self.weather.jumps && self.rng.random_range(0..60) == 0 {
                self.jump();
            }
            if self.rng.random_range(0..40) == 0 {
                let at = self.rng.random_range(0..self.running.len());
                self.running[at].frozen_until = now + self.rng.random_range(5..80);
            }
            let frozen: Vec<usize> = (self.running.iter())
                .filter(|r| r.frozen_until > now)
                .map(|r| r.instance)
                .collect();
            let ready: Vec<usize> = (self.queue.lock().unwrap().iter().enumerate())
                .filter(|(_, w)| !frozen.contains(&w.instance))
                .map(|(at, _)| at)
                .collect();
            if ready.is_empty() {
                // Who stands still is not stuck.
                idle += u32::from(frozen.is_empty());
                if idle > 500 {
                    self.fail("nobody does anything");
                }
                continue;
            }
            idle = 0;
            let at = ready[self.rng.random_range(0..ready.len())];
            self.step(at).await;
        }
        // What is still on the way arrives.
        loop {
            let late = self.queue.lock().unwrap().pop();
            let Some(late) = late else { break };
            let _ = self.execute(late.request).await;
        }
        self.end().await
    }

    /// What is left, seen by one who was not part of it.
    async fn end(mut self) -> Outcome {
        let job = self.truth.clone();
        let (told, images) = {
            let book = self.book.lock().unwrap();
            (book.told.clone(), book.images.clone())
        };
        let mut recorded = HashMap::new();
        for (number, record) in job.records().await.unwrap() {
            recorded.insert(number, record.unwrap());
        }
        for (tag, told) in told {
            let stands = self.model.ever.get(&tag).copied();
            match told {
                Told::Committed(number) if stands != Some(number) => {
                    self.fail(&format!(
                        "commit {tag} was told to be {number}, and is {stands:?}"
                    ));
                }
                Told::Refused(reason) if stands.is_some() => {
                    self.fail(&format!(
                        "commit {tag} was refused ({reason}), and is {stands:?}"
                    ));
                }
                Told::Committed(_) => self.outcome.committed += 1,
                _ => {}
            }
        }
        for (number, manifest) in job.checkpoints().await.unwrap() {
            let manifest = manifest.unwrap();
            let image = Image::read(&job, &manifest).await.unwrap();
            if images[&tag(&manifest)] != image {
                self.fail(&format!("checkpoint {number} is another image"));
            }
        }
        // A new epoch, and everything that nobody needs goes, however it came to be there.
        job.take_over("the last", NOW).await.unwrap();
        let keep = |all: &[Candidate]| all.iter().map(|c| c.number).collect();
        // Readers that died are remembered for an hour, by any clock.
        let later = UnixMillis(NOW.0 + 24 * 3_600_000);
        for _ in 0..2 {
            job.collect(&keep, CollectOptions::default(), later)
                .await
                .unwrap();
        }
        self.model.look(&job).await.unwrap();
        let mut needed: BTreeSet<String> = BTreeSet::new();
        for visible in self.model.visible.values() {
            needed.extend(visible.needs.iter().cloned());
        }
        let keys = crate::common::keys(&*self.store).await;
        let below = |what: &str| -> Vec<&String> {
            let prefix = format!("{PREFIX}/{what}/");
            keys.iter().filter(|key| key.starts_with(&prefix)).collect()
        };
        let packs: BTreeSet<String> = below("packs").into_iter().cloned().collect();
        if packs != needed {
            let (packs, needed) = (&packs, &needed);
            self.fail(&format!(
                "left behind: {:?}; missing: {:?}",
                packs - needed,
                needed - packs
            ));
        }
        let manifests = below("manifests").len();
        if manifests != self.model.visible.len() {
            self.fail(&format!(
                "{manifests} manifests for {} checkpoints",
                self.model.visible.len()
            ));
        }
        let (mut notes, collections) = (below("writers"), below("collections"));
        notes.extend(below("readers"));
        if !notes.is_empty() || collections.len() > 2 {
            self.fail(&format!("left behind: {notes:?} {collections:?}"));
        }
        let book = self.book.lock().unwrap();
        Outcome {
            restores: book.restores,
            held: book.held,
            resumed: book.resumed,
            collections: book.collections,
            repacked: book.repacked,
            copied: book.copied,
            cached: self.caches.iter().map(|cache| cache.served()).sum(),
            ..self.outcome.clone()
        }
    }
}

/// Where a request may make an object come or go.
fn changed(request: &Request, uploads: &Uploads) -> Option<Path> {
    match request {
        Request::Put(at, ..) | Request::Delete(at) => Some(at.clone()),
        Request::Complete(upload, _) => uploads.get(upload).map(|(at, _)| at.clone()),
        _ => None,
    }
}

fn simulate(seed: u64, verbose: bool) -> Outcome {
    simulate_with(seed, verbose, Sabotage::Nothing)
}

fn simulate_with(seed: u64, verbose: bool, sabotage: Sabotage) -> Outcome {
    runtime().block_on(async {
        let store = Arc::new(InMemory::new());
        let weather = Weather::of(seed);
        if verbose {
            println!("{weather:?}");
        }
        let truth = Store::from_object_store(store.clone(), "p", weather.options(999))
            .await
            .unwrap();
        let disks = weather.disk_caches.then(|| tempfile::tempdir().unwrap());
        Simulation {
            sabotage,
            seed,
            weather,
            uploads: Uploads::new(),
            recent: VecDeque::new(),
            caches: Vec::new(),
            clocks: Vec::new(),
            disks,
            rng: ChaCha8Rng::seed_from_u64(seed),
            store,
            queue: Queue::default(),
            book: Shared::default(),
            truth: truth.job(name("job")),
            model: Model::default(),
            running: Vec::new(),
            instances: 0,
            outcome: Outcome::default(),
            verbose,
        }
        .run()
        .await
    })
}

/// Runs some seeds; together they must have done everything that the simulation is about.
fn simulate_all(seeds: std::ops::Range<u64>) {
    let mut sum = Outcome::default();
    for seed in seeds {
        let outcome = simulate(seed, false);
        sum.requests += outcome.requests;
        sum.crashes += outcome.crashes;
        sum.committed += outcome.committed;
        sum.restores += outcome.restores;
        sum.held += outcome.held;
        sum.resumed += outcome.resumed;
        sum.collections += outcome.collections;
        sum.repacked += outcome.repacked;
        sum.swept += outcome.swept;
        sum.copied += outcome.copied;
        sum.parts += outcome.parts;
        sum.cached += outcome.cached;
        sum.jumps += outcome.jumps;
        sum.stale += outcome.stale;
    }
    println!("{sum:?}");
    for (what, count) in [
        ("crashes", sum.crashes),
        ("commits", sum.committed),
        ("restores", sum.restores),
        ("restores of what retention removed meanwhile", sum.held),
        ("chunks of unfinished checkpoints", sum.resumed),
        ("collections", sum.collections),
        ("repacked packs", sum.repacked),
        ("deleted packs", sum.swept),
        ("copies from a node's own store", sum.copied),
        ("parts", sum.parts),
        ("bytes of caches", sum.cached),
        ("clocks that jump", sum.jumps),
        ("listings of a moment ago", sum.stale),
    ] {
        assert!(count > 0, "no {what} in all these seeds: {sum:?}");
    }
}

#[test]
fn a_seed_says_all() {
    for seed in [1, 2, 3] {
        assert_eq!(simulate(seed, false), simulate(seed, false), "seed {seed}");
    }
}

#[test]
fn a_few_hundred_seeds() {
    simulate_all(0..300);
}

/// Of the first seeds, those in which sabotage shows.
fn noticed(sabotage: Sabotage, seeds: std::ops::Range<u64>) -> Vec<u64> {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let noticed = seeds
        .filter(|&seed| std::panic::catch_unwind(|| simulate_with(seed, false, sabotage)).is_err())
        .collect();
    std::panic::set_hook(quiet);
    noticed
}

/// A collection that had to decide again swept what its first try had repacked: a listing did not show its own note.
#[test]
fn a_seed_that_lost_what_was_repacked() {
    simulate(5_731_293_800_782, false);
}

#[test]
fn a_store_that_ignores_conditions_is_noticed() {
    assert!(noticed(Sabotage::Conditions, 0..60).len() > 10);
}

#[test]
fn readers_whose_notes_are_not_seen_are_noticed() {
    // A reader must be met in the moment between its look and its last byte.
    let noticed = noticed(Sabotage::Readers, 0..300);
    assert!(noticed.len() > 1, "{noticed:?}");
}

#[test]
fn records_that_are_deleted_are_noticed() {
    assert!(noticed(Sabotage::Records, 0..60).len() > 10);
}

/// Where the seeds of the long runs begin: what the environment says, else by the commit that is tested.
fn base() -> u64 {
    let said = std::env::var("PHOS_SEED_BASE").ok();
    let base = match said {
        Some(said) => said.parse().expect("PHOS_SEED_BASE is a number"),
        None => {
            let mut git = std::process::Command::new("git");
            git.args(["rev-parse", "HEAD"])
                .current_dir(env!("CARGO_MANIFEST_DIR"));
            // Of a tree without git, always the same ones.
            let commit = git.output().map(|done| done.stdout).unwrap_or_default();
            let digits = commit
                .get(..7)
                .and_then(|digits| std::str::from_utf8(digits).ok());
            let commit = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            commit.unwrap_or(0) * 100_000
        }
    };
    println!("seeds from {base}; for the same ones again, PHOS_SEED_BASE={base}");
    base
}

/// Runs seeds of the commit: those from `from` on, counted from its first.
fn simulate_from_base(from: u64, count: u64) {
    let first = base() + from;
    simulate_all(first..first + count);
}

/// Ten thousand, in pieces that run side by side: in the profile `slow`.
mod ten_thousand {
    macro_rules! pieces {
        ($($name:ident $from:literal)*) => {$(
            #[test]
            fn $name() {
                super::simulate_from_base($from, 1250);
            }
        )*};
    }
    pieces! {
        piece_0 0 piece_1 1250 piece_2 2500 piece_3 3750 piece_4 5000 piece_5 6250 piece_6 7500 piece_7 8750
    }
}

/// Seeds that found something once.
#[test]
fn seeds_that_found_something() {
    // A writer whose job was taken over while it compared with a collection was told that a pack was lost, not that it was fenced.
    simulate(14_659_547_700_321, false);
}

/// A hundred thousand, of which those are the first: in the profile `long`.
mod hundred_thousand {
    macro_rules! pieces {
        ($($name:ident $from:literal)*) => {$(
            #[test]
            fn $name() {
                super::simulate_from_base(6250 * $from, 6250);
            }
        )*};
    }
    pieces! {
        piece_0 0 piece_1 1 piece_2 2 piece_3 3 piece_4 4 piece_5 5 piece_6 6 piece_7 7
        piece_8 8 piece_9 9 piece_10 10 piece_11 11 piece_12 12 piece_13 13 piece_14 14 piece_15 15
    }
}

#[test]
#[ignore = "for a person, with PHOS_SEED"]
fn one_seed() {
    if let Ok(seed) = std::env::var("PHOS_SEED") {
        println!("{:?}", simulate(seed.parse().unwrap(), true));
    }
}
