//! Rules of collections and commits that matter only where two meet at one moment: each is brought about here. With others they
//! are undone one at a time by `make mutants`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{
    Error, Faulty, Gate, Image, NOW, Op, Verdict, below, change, handle, last, noise, stored, taken,
};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use phos_storage::{
    CheckpointNumber, CheckpointWriter, CollectError, CollectOptions, Collected, CommitError,
    Digest, Epoch, Job,
};

/// Of several packs, and of nothing that another one has.
fn image(version: u64) -> Image {
    Image {
        cpu: vec![noise(1000 * version + 999, 500)],
        ..Image::of((0..9).map(|i| noise(1000 * version + i, 20_000)).collect())
    }
}

/// A checkpoint that its node has begun, and stored in part.
async fn unfinished(store: &Arc<InMemory>) -> CheckpointWriter {
    let (job, epoch) = taken(store, 1).await;
    let writer = job.begin(epoch).await.unwrap();
    image(1).put(&writer).await.unwrap();
    stored(&writer, 2).await;
    writer
}

/// One round, which keeps so many.
async fn collect(job: &Job, keep: usize) -> Result<Collected, CollectError> {
    round(job, keep, 0).await
}

/// The same; packs of which less than so many percent are needed are repacked.
async fn round(
    job: &Job,
    keep: usize,
    repack_below_percent: u8,
) -> Result<Collected, CollectError> {
    let options = CollectOptions {
        rounds: 1,
        repack_below_percent,
        ..CollectOptions::default()
    };
    job.collect(&last(keep), options, NOW).await
}

/// The packs that another one deletes, which keeps the newest checkpoint.
async fn swept(store: &Arc<InMemory>) -> u64 {
    let other = handle(store.clone(), 3).await;
    collect(&other, 1).await.unwrap().packs
}

/// A collection that has decided and deletes nothing yet, as its packs are listed still.
#[tokio::test]
async fn a_commit_names_nothing_that_was_given_up_and_is_still_there() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    image(0).commit(&job, epoch).await.unwrap();
    let writer = job.begin(epoch).await.unwrap();
    image(1).put(&writer).await.unwrap();
    stored(&writer, 2).await;
    // What protects its packs is gone, which is against the protocol.
    for key in below(&*store, "writers").await {
        store.delete(&Path::from(key)).await.unwrap();
    }
    let stays = Faulty::new(store.clone(), |op, key| {
        match op == Op::Delete && key.contains("/packs/") {
            true => Verdict::Fail(Error::Denied),
            false => Verdict::Pass,
        }
    });
    let packs = below(&*store, "packs").await;
    let error = collect(&handle(stays, 2).await, 9).await.unwrap_err();
    assert!(matches!(error, CollectError::Store(_)), "{error}");
    assert_eq!(below(&*store, "packs").await, packs);
    let error = writer.commit(image(1).body(), NOW).await.unwrap_err();
    assert!(matches!(error, CommitError::PackLost { .. }), "{error}");
    assert_eq!(job.list().await.unwrap().checkpoints.len(), 1);
}

/// Whoever looks at a checkpoint while a collection removes it needs its packs a while longer.
#[tokio::test]
async fn what_a_collection_removes_is_there_for_those_that_began_beside_it() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in [7, 1] {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let (gated, gate) = Gate::before(&store, Op::Put, "/collections/");
    let collector = handle(gated, 2).await;
    let collection = tokio::spawn(async move { collect(&collector, 1).await });
    gate.reached().await;
    // It has listed the notes, and these are not among them.
    let reader = handle(store.clone(), 3).await;
    let held = reader.hold(CheckpointNumber(2), "a restore", NOW).await;
    let (manifest, hold) = held.unwrap();
    let writer = job.begin(epoch).await.unwrap();
    assert!(writer.contains(&Digest::of(&image(7).device[0][0])));
    gate.open();
    let done = collection.await.unwrap().unwrap();
    assert_eq!(done.removed, [CheckpointNumber(2)]);
    assert_eq!(Image::read(&reader, &manifest).await.unwrap(), image(7));
    image(7).put(&writer).await.unwrap();
    let commit = writer.commit(image(7).body(), NOW).await.unwrap();
    assert_eq!(commit.stats.new_chunks, 0);
    hold.release().await;
    // By the next one nobody needs the other any more.
    let done = collect(&job, 1).await.unwrap();
    assert_eq!(done.removed, [CheckpointNumber(3)]);
    assert!(collect(&job, 1).await.unwrap().packs > 0);
    let newest = job.newest_restorable().await.unwrap().manifest.unwrap();
    assert_eq!(Image::read(&job, &newest).await.unwrap(), image(7));
}

/// One collection takes the note of a dead writer away, the next one decides on its packs; who wanted to go on with them wrote its
/// own note between the two.
#[tokio::test]
async fn what_an_unfinished_checkpoint_left_is_not_used_once_its_note_is_gone() {
    let store = Arc::new(InMemory::new());
    let _stopped = unfinished(&store).await;
    let (gated, note) = Gate::before(&store, Op::Put, "/writers/");
    let job = handle(gated, 2).await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let next = job.clone();
    let begun = tokio::spawn(async move { next.begin(epoch).await });
    note.reached().await;
    // It has seen what was left, and nobody knows of it yet.
    let first = handle(store.clone(), 3).await;
    assert_eq!(collect(&first, 9).await.unwrap().packs, 0);
    assert_eq!(below(&*store, "writers").await, [""; 0]);
    let (gated, decision) = Gate::before(&store, Op::Put, "/collections/");
    let second = handle(gated, 4).await;
    let collection = tokio::spawn(async move { collect(&second, 9).await });
    decision.reached().await;
    note.open();
    let writer = begun.await.unwrap().unwrap();
    decision.open();
    assert!(collection.await.unwrap().unwrap().packs > 0);
    image(1).put(&writer).await.unwrap();
    let commit = writer.commit(image(1).body(), NOW).await.unwrap();
    assert_eq!(commit.resumed.packs, 0);
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image(1));
}

#[tokio::test]
async fn whatever_retention_says_the_newest_stays_and_the_newest_that_is_whole() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..3 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let done = collect(&job, 0).await.unwrap();
    assert_eq!(done.kept, [CheckpointNumber(4)]);
    let damaged = image(3).commit(&job, epoch).await.unwrap().number;
    let newest = Path::from(below(&*store, "manifests").await.pop().unwrap());
    change(&*store, &newest, |bytes| bytes[100] ^= 1).await;
    let other = handle(store.clone(), 2).await;
    let done = collect(&other, 0).await.unwrap();
    assert_eq!(done.kept, [CheckpointNumber(4), damaged]);
    let found = other.newest_restorable().await.unwrap().manifest.unwrap();
    assert_eq!(found.number, CheckpointNumber(4));
    assert_eq!(Image::read(&other, &found).await.unwrap(), image(2));
}

/// The other way round: the note goes after it was looked at.
#[tokio::test]
async fn what_is_gone_on_with_stays_when_the_note_of_the_dead_goes() {
    let store = Arc::new(InMemory::new());
    let _stopped = unfinished(&store).await;
    let (job, epoch) = taken(&store, 2).await;
    let (gated, gate) = Gate::before(&store, Op::Delete, "/writers/");
    let first = handle(gated, 3).await;
    let collection = tokio::spawn(async move { collect(&first, 9).await });
    gate.reached().await;
    let writer = job.begin(epoch).await.unwrap();
    gate.open();
    collection.await.unwrap().unwrap();
    assert_eq!(below(&*store, "writers").await.len(), 1, "its own");
    let done = collect(&handle(store.clone(), 4).await, 9).await.unwrap();
    assert!(done.packs == 0 && done.protected_packs > 0, "{done:?}");
    image(1).put(&writer).await.unwrap();
    let commit = writer.commit(image(1).body(), NOW).await.unwrap();
    assert!(commit.resumed.packs > 0);
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image(1));
}

/// A note that is written twice, as the first answer was late, may come back when it was taken away already.
#[tokio::test]
async fn what_was_collected_meanwhile_is_not_used_though_its_note_came_back() {
    let store = Arc::new(InMemory::new());
    let _stopped = unfinished(&store).await;
    let note = Path::from(below(&*store, "writers").await.remove(0));
    let said = store.get(&note).await.unwrap().bytes().await.unwrap();
    let (gated, gate) = Gate::before(&store, Op::Put, "/writers/");
    let job = handle(gated, 2).await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let next = job.clone();
    let begun = tokio::spawn(async move { next.begin(epoch).await });
    gate.reached().await;
    let other = handle(store.clone(), 3).await;
    collect(&other, 9).await.unwrap();
    assert!(collect(&other, 9).await.unwrap().packs > 0);
    store.put(&note, said.into()).await.unwrap();
    gate.open();
    let writer = begun.await.unwrap().unwrap();
    image(1).put(&writer).await.unwrap();
    let commit = writer.commit(image(1).body(), NOW).await.unwrap();
    assert_eq!(commit.resumed.packs, 0);
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image(1));
}

#[tokio::test]
async fn a_writer_drops_what_was_collected_before_its_note_stood() {
    let store = Arc::new(InMemory::new());
    let (first, epoch) = taken(&store, 1).await;
    for version in [7, 1] {
        image(version).commit(&first, epoch).await.unwrap();
    }
    let (gated, gate) = Gate::before(&store, Op::Put, "/writers/");
    let job = handle(gated, 2).await;
    let next = job.clone();
    let begun = tokio::spawn(async move { next.begin(epoch).await });
    gate.reached().await;
    let other = handle(store.clone(), 3).await;
    assert_eq!(collect(&other, 1).await.unwrap().removed.len(), 1);
    assert!(collect(&other, 1).await.unwrap().packs > 0);
    gate.open();
    let writer = begun.await.unwrap().unwrap();
    image(7).put(&writer).await.unwrap();
    let commit = writer.commit(image(7).body(), NOW).await.unwrap();
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image(7));
}

#[tokio::test]
async fn who_was_taken_over_is_told_before_anything_is_stored() {
    let store = Arc::new(InMemory::new());
    let (old, epoch) = taken(&store, 1).await;
    image(1).commit(&old, epoch).await.unwrap();
    taken(&store, 2).await;
    let error = old.begin(epoch).await.unwrap_err();
    assert!(
        matches!(error, phos_storage::JobError::Fenced { .. }),
        "{error}"
    );
    assert_eq!(below(&*store, "writers").await, [""; 0]);
}

/// Its note is written before its first pack, so packs are listed before notes.
#[tokio::test]
async fn a_writer_that_begins_while_packs_are_listed_keeps_what_it_stores() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    image(0).commit(&job, epoch).await.unwrap();
    let (gated, gate) = Gate::before(&store, Op::List, "/packs");
    let collector = handle(gated, 2).await;
    let collection = tokio::spawn(async move { collect(&collector, 9).await });
    gate.reached().await;
    let writer = job.begin(epoch).await.unwrap();
    image(1).put(&writer).await.unwrap();
    stored(&writer, 2).await;
    gate.open();
    let done = collection.await.unwrap().unwrap();
    assert!(done.packs == 0 && done.protected_packs > 0, "{done:?}");
    let commit = writer.commit(image(1).body(), NOW).await.unwrap();
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image(1));
}

/// Its manifest is there, under the number that it will have.
#[tokio::test]
async fn a_commit_that_is_under_way_is_not_collected() {
    let store = Arc::new(InMemory::new());
    let (first, epoch) = taken(&store, 1).await;
    image(0).commit(&first, epoch).await.unwrap();
    let (gated, gate) = Gate::before(&store, Op::Create, "/head/");
    let job = handle(gated, 2).await;
    let next = job.clone();
    let committed = tokio::spawn(async move { image(1).commit(&next, epoch).await });
    gate.reached().await;
    assert_eq!(below(&*store, "manifests").await.len(), 2);
    let done = collect(&handle(store.clone(), 3).await, 9).await.unwrap();
    assert_eq!((done.other_objects, done.packs), (0, 0));
    gate.open();
    let commit = committed.await.unwrap().unwrap();
    assert_eq!(commit.number, CheckpointNumber(3));
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image(1));
}

#[tokio::test]
async fn a_collection_that_meets_another_begins_anew() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..2 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let (gated, gate) = Gate::before(&store, Op::List, "/packs");
    let collector = handle(gated, 2).await;
    let collection = tokio::spawn(async move { collect(&collector, 9).await });
    gate.reached().await;
    let other = handle(store.clone(), 3).await;
    assert_eq!(collect(&other, 1).await.unwrap().removed.len(), 1);
    assert!(collect(&other, 1).await.unwrap().packs > 0);
    // A commit, so that the late one has something to see.
    image(2).commit(&job, epoch).await.unwrap();
    let abandoned = job.begin(epoch).await.unwrap();
    image(3).put(&abandoned).await.unwrap();
    stored(&abandoned, 2).await;
    for key in below(&*store, "writers").await {
        store.delete(&Path::from(key)).await.unwrap();
    }
    gate.open();
    let done = collection.await.unwrap().unwrap();
    assert_eq!(done.kept, [3, 6].map(CheckpointNumber), "{done:?}");
    let listed = handle(store.clone(), 4).await.list().await.unwrap();
    assert_eq!(listed.checkpoints.len(), 2);
    for checkpoint in listed.checkpoints {
        let manifest = other.manifest(checkpoint.number).await.unwrap();
        other.check_packs(&manifest).await.unwrap();
    }
}

#[tokio::test]
async fn a_collection_of_one_who_is_taken_over_meanwhile_decides_nothing() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..2 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let (gated, gate) = Gate::before(&store, Op::List, "/packs");
    let collector = handle(gated, 2).await;
    let collection = tokio::spawn(async move { collect(&collector, 1).await });
    gate.reached().await;
    taken(&store, 3).await;
    gate.open();
    let error = collection.await.unwrap().unwrap_err();
    assert!(error.is_fenced(), "{error}");
    assert_eq!(job.list().await.unwrap().checkpoints.len(), 2);
}

/// Checkpoints may come faster than a store can be listed.
#[tokio::test]
async fn a_collection_that_a_checkpoint_forestalls_decides_again_by_what_it_listed() {
    const OFTEN: u64 = 6;
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..2 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let [decided, let_through, listed] = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
    let (decisions, turns, lists) = (decided.clone(), let_through.clone(), listed.clone());
    let mut waits = false;
    let slow = Faulty::new(store.clone(), move |op, key| {
        if op == Op::List && key.contains("/packs") {
            lists.fetch_add(1, Ordering::SeqCst);
        }
        if op != Op::Put || !key.contains("/collections/") {
            return Verdict::Pass;
        }
        if !waits {
            decisions.fetch_add(1, Ordering::SeqCst);
        }
        waits = turns.load(Ordering::SeqCst) < decisions.load(Ordering::SeqCst);
        match waits {
            true => Verdict::Wait,
            false => Verdict::Pass,
        }
    });
    let collector = handle(slow, 2).await;
    let collection = tokio::spawn(async move { collect(&collector, 1).await });
    for often in 1..=OFTEN {
        while decided.load(Ordering::SeqCst) < often {
            tokio::task::yield_now().await;
        }
        image(1 + often).commit(&job, epoch).await.unwrap();
        let_through.store(often, Ordering::SeqCst);
    }
    let_through.store(u64::MAX, Ordering::SeqCst);
    let done = collection.await.unwrap().unwrap();
    assert_eq!(listed.load(Ordering::SeqCst), 1);
    assert_eq!(done.kept, [CheckpointNumber(3 + OFTEN)]);
    assert_eq!(done.removed.len() as u64, 1 + OFTEN);
    // What it removed is swept by the next.
    assert!(swept(&store).await > 0);
    let newest = job.newest_restorable().await.unwrap();
    let manifest = newest.manifest.unwrap();
    assert_eq!(
        Image::read(&job, &manifest).await.unwrap(),
        image(1 + OFTEN)
    );
}

/// A job whose checkpoint 3 needs little of packs that checkpoint 2 filled.
async fn sparse(store: &Arc<InMemory>) -> (Job, Epoch, Image) {
    let (job, epoch) = taken(store, 1).await;
    image(0).commit(&job, epoch).await.unwrap();
    let mut small = image(0);
    small.device[0].truncate(2);
    small.commit(&job, epoch).await.unwrap();
    (job, epoch, small)
}

/// One round, which keeps the newest and repacks.
async fn repack(job: &Job) -> Result<Collected, CollectError> {
    round(job, 1, 90).await
}

/// It may be written once more under the same name, and what was decided before may be done after that.
#[tokio::test]
async fn a_manifest_that_another_collection_writes_is_left_alone() {
    let store = Arc::new(InMemory::new());
    let (job, _, small) = sparse(&store).await;
    let (gated, gate) = Gate::before(&store, Op::Put, "/collections/");
    let first = handle(gated, 2).await;
    let repacked = tokio::spawn(async move { repack(&first).await });
    gate.reached().await;
    let late: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let asked = late.clone();
    let failing = Faulty::new(store.clone(), move |op, key| {
        if op == Op::Delete && key.contains("/manifests/") {
            asked.lock().unwrap().push(key.to_owned());
            return Verdict::Fail(Error::Denied);
        }
        Verdict::Pass
    });
    // Nor does it take the packs that are meant to be named.
    let done = collect(&handle(failing, 3).await, 1).await;
    assert!(done.is_ok_and(|done| done.packs == 0 && done.protected_packs > 0));
    gate.open();
    assert!(repacked.await.unwrap().unwrap().repacked_packs > 0);
    for key in late.lock().unwrap().drain(..) {
        let _ = futures::executor::block_on(store.delete(&Path::from(key)));
    }
    let other = handle(store.clone(), 4).await;
    let newest = other.newest_restorable().await.unwrap();
    assert_eq!(newest.skipped, []);
    let manifest = newest.manifest.unwrap();
    assert_eq!(Image::read(&other, &manifest).await.unwrap(), small);
    drop(job);
}

#[tokio::test]
async fn what_was_repacked_and_given_up_by_another_is_repacked_anew() {
    let store = Arc::new(InMemory::new());
    let (_, _, small) = sparse(&store).await;
    let (gated, gate) = Gate::before(&store, Op::Put, "/collections/");
    let first = handle(gated, 2).await;
    let repacked = tokio::spawn(async move { repack(&first).await });
    gate.reached().await;
    // What protects its packs is gone, which is against the protocol.
    for key in below(&*store, "writers").await {
        store.delete(&Path::from(key)).await.unwrap();
    }
    assert!(swept(&store).await > 0);
    gate.open();
    repacked.await.unwrap().unwrap();
    let other = handle(store.clone(), 4).await;
    let newest = other.newest_restorable().await.unwrap();
    assert_eq!(newest.skipped, []);
    let manifest = newest.manifest.unwrap();
    assert_eq!(Image::read(&other, &manifest).await.unwrap(), small);
}

/// A collection before still sweeps, and a writer whose node has not seen it begins.
#[tokio::test]
async fn a_writer_that_notes_what_is_being_swept_blocks_nobody() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..2 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let writer = job.begin(epoch).await.unwrap();
    let key = Path::from(below(&*store, "writers").await.pop().unwrap());
    let note = store.get(&key).await.unwrap().bytes().await.unwrap();
    // It was not there yet when the collection before decided.
    drop(writer);
    store.delete(&key).await.unwrap();
    let sweeping = Faulty::new(store.clone(), |op, key| {
        match op == Op::Delete && key.contains("/manifests/") {
            true => Verdict::Fail(Error::Denied),
            false => Verdict::Pass,
        }
    });
    let other = handle(sweeping, 2).await;
    // What the one gives up, the next one sweeps.
    collect(&other, 1).await.unwrap();
    let error = collect(&other, 1).await.unwrap_err();
    assert!(matches!(error, CollectError::Store(_)), "{error}");
    let manifests = below(&*store, "manifests").await;
    assert_eq!(manifests.len(), 2);
    let (gated, gate) = Gate::before(&store, Op::List, "/writers");
    let collector = handle(gated, 3).await;
    let collection = tokio::spawn(async move { collect(&collector, 1).await });
    gate.reached().await;
    store
        .delete(&Path::from(manifests[0].as_str()))
        .await
        .unwrap();
    store.put(&key, note.into()).await.unwrap();
    gate.open();
    let done = collection.await.unwrap().unwrap();
    assert_eq!(done.blocked, [], "{done:?}");
}

/// Another collection comes between, so it lists and decides once more, and that listing does not show its own note.
#[tokio::test]
async fn what_a_collection_repacked_is_not_swept_by_it() {
    let store = Arc::new(InMemory::new());
    let (_job, _, small) = sparse(&store).await;
    let (gated, gate) = Gate::before(&store, Op::Put, "/collections/");
    let first = handle(gated, 2).await;
    let repacked = tokio::spawn(async move { repack(&first).await });
    gate.reached().await;
    let removed = collect(&handle(store.clone(), 4).await, 1).await.unwrap();
    assert_eq!(removed.removed, [CheckpointNumber(2)]);
    for key in below(&*store, "writers").await {
        store.delete(&Path::from(key)).await.unwrap();
    }
    gate.open();
    let done = repacked.await.unwrap().unwrap();
    assert!(done.repacked_packs > 0, "{done:?}");
    // What was decided is swept by the next.
    let other = handle(store.clone(), 3).await;
    collect(&other, 1).await.unwrap();
    let newest = other.newest_restorable().await.unwrap();
    assert_eq!(newest.skipped, []);
    let manifest = newest.manifest.unwrap();
    assert_eq!(Image::read(&other, &manifest).await.unwrap(), small);
}

#[tokio::test]
async fn what_is_damaged_is_not_repacked() {
    let store = Arc::new(InMemory::new());
    let (job, _, _) = sparse(&store).await;
    for key in below(&*store, "packs").await {
        // In every chunk.
        change(&*store, &Path::from(key), |bytes| {
            bytes.iter_mut().step_by(300).for_each(|byte| *byte ^= 1);
        })
        .await;
    }
    let packs = below(&*store, "packs").await;
    let done = repack(&job).await.unwrap();
    assert_eq!(done.repacked_packs, 0, "{done:?}");
    assert_eq!(below(&*store, "packs").await, packs);
}

/// Its commit compares itself with every collection since it began.
#[tokio::test]
async fn collections_that_a_writer_has_not_met_stay() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..4 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let writer = job.begin(epoch).await.unwrap();
    let other = handle(store.clone(), 2).await;
    for keep in [3, 2, 1, 1] {
        collect(&other, keep).await.unwrap();
    }
    image(4).put(&writer).await.unwrap();
    writer.commit(image(4).body(), NOW).await.unwrap();
    collect(&other, 1).await.unwrap();
    collect(&other, 1).await.unwrap();
    collect(&other, 1).await.unwrap();
    assert_eq!(below(&*store, "collections").await.len(), 1);
}

/// It may become readable again.
#[tokio::test]
async fn a_damaged_checkpoint_stays_while_it_would_if_it_were_whole() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..3 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let path = Path::from(below(&*store, "manifests").await.remove(1));
    let sound = store.get(&path).await.unwrap().bytes().await.unwrap();
    let mut damaged = sound.to_vec();
    damaged[100] ^= 1;
    store.put(&path, damaged.into()).await.unwrap();
    let other = handle(store.clone(), 2).await;
    let done = collect(&other, 9).await.unwrap();
    assert_eq!(done.kept, [2, 3, 4].map(CheckpointNumber));
    assert_eq!(done.blocked.len(), 1);
    store.put(&path, sound.into()).await.unwrap();
    let manifest = other.manifest(CheckpointNumber(3)).await.unwrap();
    assert_eq!(Image::read(&other, &manifest).await.unwrap(), image(1));
}

/// What is missing by a listing of a moment ago was replaced.
#[tokio::test]
async fn a_collection_that_was_replaced_is_not_called_missing() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..3 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    for keep in [2, 1] {
        assert_eq!(collect(&job, keep).await.unwrap().removed.len(), 1);
    }
    // The second has replaced the first, and the third sweeps and takes the first away.
    let last = collect(&job, 1).await.unwrap();
    assert!(last.packs > 0);
    collect(&job, 1).await.unwrap();
    assert_eq!(below(&*store, "collections").await.len(), 1);
    let asked = AtomicU64::new(0);
    let stale = Faulty::new(store.clone(), move |op, key| {
        // More often than a reader of the log looks again by itself.
        let is_head = op == Op::List && key.ends_with("/head");
        match is_head && asked.fetch_add(1, Ordering::SeqCst) < 12 {
            true => Verdict::OneLess,
            false => Verdict::Pass,
        }
    });
    let done = collect(&handle(stale, 2).await, 1).await.unwrap();
    assert_eq!((done.kept.len(), done.gone_past.len()), (1, 0));
}
