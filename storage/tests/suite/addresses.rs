//! Addresses of stores, and directories that cannot be used: each refused with what it is and what to do.

use std::path::Path;
use std::process::Command;

use crate::common::{Image, NOW, name, noise, options};
use phos_storage::{CommitError, FaultKind, JobError, OpenError, ProbeError, Store};

async fn refused(address: &str) -> OpenError {
    let error = Store::open(address, options(1)).await.unwrap_err();
    assert!(error.is_permanent(), "{error}");
    error
}

#[tokio::test]
async fn odd_addresses_are_refused_with_the_known_ones() {
    let error = refused("ftp://host/x").await.to_string();
    assert!(
        error.contains("unknown scheme \"ftp\"") && error.contains("s3://bucket/prefix"),
        "{error}"
    );
    for address in [
        "s3:///prefix",
        "gs://",
        "az://",
        "file://relative",
        "",
        "s3://",
    ] {
        let error = refused(address).await;
        assert!(error.to_string().starts_with("--store "), "{error}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("store");
    assert!(matches!(
        refused(below.to_str().unwrap()).await,
        OpenError::Directory { .. }
    ));
}

#[tokio::test]
async fn a_directory_is_made_and_kept() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("state dir/ü/store");
    let url = url::Url::from_directory_path(&path).unwrap().to_string();
    let image = Image::of((0..5).map(|i| noise(i, 30_000)).collect());
    for (handle, address) in [path.to_str().unwrap(), &url].into_iter().enumerate() {
        let store = Store::open(address, options(10 + handle as u64))
            .await
            .unwrap();
        store.probe().await.unwrap();
        store.initialise().await.unwrap();
        let job = store.job(name("job"));
        let epoch = job.take_over("node", NOW).await.unwrap().epoch;
        let commit = image.commit(&job, epoch).await.unwrap();
        assert_eq!(
            commit.stats.new_chunks == 0,
            handle == 1,
            "the same store under both addresses"
        );
    }
}

#[tokio::test]
async fn memory_works_and_discard_measures_but_restores_nothing() {
    let store = Store::open("memory://", options(1)).await.unwrap();
    store.probe().await.unwrap();
    let image = Image::of(vec![noise(1, 100_000)]);

    let store = Store::open("discard://", options(2)).await.unwrap();
    store.probe().await.unwrap();
    store.initialise().await.unwrap();
    assert!(store.is_discarding());
    let job = store.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let first = image.commit(&job, epoch).await.unwrap();
    let second = image.commit(&job, epoch).await.unwrap();
    assert_eq!(
        (first.stats.new_chunks, second.stats.new_chunks),
        (2, 0),
        "it remembers what it dropped"
    );
    assert_eq!(job.list().await.unwrap().checkpoints.len(), 2);
    let error = job.newest_restorable().await.unwrap_err();
    assert!(matches!(error, JobError::Discarded { .. }), "{error}");
    assert!(job.reader(&first.manifest).is_err());
}

/// A small file system of its own, unmounted when dropped. Where mounting is not allowed the test fails, so that nobody
/// takes its silence for success.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn mount(options: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "phos-test"])
            .arg(directory.path())
            .output();
        let why = match mounted {
            Ok(done) if done.status.success() => return Self(directory),
            Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        panic!(
            "this test mounts a tmpfs, which needs root and CAP_SYS_ADMIN: run it as root, in a container with \
             --cap-add SYS_ADMIN; mount said: {why}"
        )
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{options}")])
            .arg(self.path())
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_a_permanent_error_with_a_remedy_and_what_was_committed_stays() {
    let disk = Tmpfs::mount("size=2m");
    let store = Store::open(disk.path().to_str().unwrap(), options(1))
        .await
        .unwrap();
    store.initialise().await.unwrap();
    let job = store.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let small = Image::of((0..5).map(|i| noise(i, 30_000)).collect());
    small.commit(&job, epoch).await.unwrap();
    let large = Image::of((0..100).map(|i| noise(1000 + i, 30_000)).collect());
    let error = large.commit(&job, epoch).await.unwrap_err();
    assert!(
        matches!(&error, CommitError::Upload(fault) if fault.kind() == FaultKind::NoSpace),
        "{error}"
    );
    assert!(error.is_permanent());
    assert!(
        error.to_string().contains("no space left (free some"),
        "{error}"
    );
    let found = job.newest_restorable().await.unwrap();
    assert_eq!(
        Image::read(&job, &found.manifest.unwrap()).await.unwrap(),
        small
    );
    // Its packs went, so there is room for what fits.
    let fits = Image::of((0..5).map(|i| noise(2000 + i, 30_000)).collect());
    let commit = fits.commit(&job, epoch).await.unwrap();
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), fits);
}

#[tokio::test]
async fn a_read_only_directory_is_refused_for_writing_and_can_be_read() {
    let disk = Tmpfs::mount("size=4m");
    let address = disk.path().to_str().unwrap();
    let store = Store::open(address, options(1)).await.unwrap();
    store.initialise().await.unwrap();
    let job = store.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let image = Image::of(vec![noise(1, 30_000)]);
    image.commit(&job, epoch).await.unwrap();
    disk.remount("ro");
    let store = Store::open(address, options(2)).await.unwrap();
    let error = store.probe().await.unwrap_err();
    assert!(
        matches!(&error, ProbeError::Store(fault) if fault.kind() == FaultKind::ReadOnly),
        "{error}"
    );
    assert!(
        error.is_permanent() && error.to_string().contains("read-only (remount it writable"),
        "{error}"
    );
    let job = store.job(name("job"));
    assert!(job.take_over("node", NOW).await.unwrap_err().is_permanent());
    let found = job.newest_restorable().await.unwrap().manifest.unwrap();
    assert_eq!(Image::read(&job, &found).await.unwrap(), image);
    let below = format!("{address}/new");
    assert!(matches!(
        Store::open(&below, options(3)).await.unwrap_err(),
        OpenError::Directory { .. }
    ));
}
