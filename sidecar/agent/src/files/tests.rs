use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::image::{FILES_DIR, FileRecord, ImageDirectory, NeededPath, Pages};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("sub/log.txt")
    }

    fn contents(&self) -> PathBuf {
        self.dir.path().join("files")
    }

    /// Of a file whose content is not kept.
    fn record_of_length(&self, bytes: &[u8]) -> FileRecord {
        FileRecord {
            content: None,
            ..self.record(bytes)
        }
    }

    fn record(&self, bytes: &[u8]) -> FileRecord {
        std::fs::write(self.contents().join("000"), bytes).unwrap();
        FileRecord {
            path: self.path(),
            length: bytes.len() as u64,
            mode: 0o640,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            content: Some("000".into()),
        }
    }

    fn write(&self, bytes: &[u8]) {
        std::fs::create_dir_all(self.dir.path().join("sub")).unwrap();
        std::fs::write(self.path(), bytes).unwrap();
    }

    fn saved(&self) -> Vec<Vec<u8>> {
        let mut found: Vec<_> = std::fs::read_dir(self.dir.path().join("sub"))
            .unwrap()
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().contains("phos-cut"))
            .map(|e| e.path())
            .collect();
        found.sort();
        found.iter().map(|p| std::fs::read(p).unwrap()).collect()
    }
}

fn an_image() -> (tempfile::TempDir, ImageDirectory) {
    let parent = tempfile::tempdir().unwrap();
    let image = ImageDirectory::create(None, Pages::Small, parent.path()).unwrap();
    image.subdirectory(FILES_DIR).unwrap();
    (parent, image)
}

#[rstest]
#[case::same(b"abc", b"abc", None)]
#[case::longer(b"abc", b"abcdef", Some(b"def".as_slice()))]
#[case::differs(b"abc", b"xyz", Some(b"xyz".as_slice()))]
#[case::differs_and_longer(b"abc", b"xyzzy", Some(b"xyzzy".as_slice()))]
#[case::shorter(b"abc", b"a", Some(b"a".as_slice()))]
#[case::emptied(b"abc", b"", None)]
fn with_content(#[case] then: &[u8], #[case] now: &[u8], #[case] saved: Option<&[u8]>) {
    let place = Place::new();
    place.write(now);
    put_back(&place.record(then), &place.contents()).unwrap();
    assert_eq!(std::fs::read(place.path()).unwrap(), then);
    assert_eq!(
        place.saved(),
        saved.map(<[u8]>::to_vec).into_iter().collect::<Vec<_>>()
    );
    assert_eq!(
        std::fs::metadata(place.path()).unwrap().mode() & 0o7777,
        0o640
    );
}

#[test]
fn a_missing_file_is_recreated_with_its_directory() {
    let place = Place::new();
    let action = put_back(&place.record(b"abc"), &place.contents()).unwrap();
    assert_eq!(action, Action::Rewritten { saved: None });
    assert_eq!(std::fs::read(place.path()).unwrap(), b"abc");
}

#[test]
fn without_content_a_missing_or_short_file_is_an_error_that_names_it() {
    let place = Place::new();
    let record = place.record_of_length(b"abc");
    let error = put_back(&record, &place.contents())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("log.txt") && error.contains("--max-file-size"),
        "{error}"
    );
    place.write(b"ab");
    assert!(matches!(
        put_back(&record, &place.contents()),
        Err(FilesError::NoContent { .. })
    ));
    assert_eq!(std::fs::read(place.path()).unwrap(), b"ab");
}

#[test]
fn a_second_cut_gets_another_name() {
    let place = Place::new();
    let record = place.record(b"abc");
    for tail in ["1", "2"] {
        place.write(format!("abc{tail}").as_bytes());
        put_back(&record, &place.contents()).unwrap();
    }
    assert_eq!(place.saved(), [b"1", b"2"]);
}

#[test]
fn a_directory_in_its_place_is_refused() {
    let place = Place::new();
    std::fs::create_dir_all(place.path()).unwrap();
    assert!(matches!(
        put_back(&place.record(b"abc"), &place.contents()),
        Err(FilesError::NotRegular { .. })
    ));
}

/// What a job's user can do in directories of its own between a checkpoint and a restore, for an agent that is root.
#[rstest]
#[case::missing_there("new", Some("000"))]
#[case::there("log.txt", Some("000"))]
#[case::a_longer_one("long", Some("000"))]
#[case::without_content("long", None)]
fn what_is_not_the_jobs_is_not_touched(#[case] name: &str, #[case] content: Option<&str>) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let place = Place::new();
    let at = |name: &str| place.dir.path().join(name);
    std::fs::create_dir(at("etc")).unwrap();
    for (file, bytes) in [("log.txt", &b"xyz"[..]), ("long", b"abc and more")] {
        std::fs::write(at("etc").join(file), bytes).unwrap();
    }
    let state = || -> BTreeSet<_> {
        let files = std::fs::read_dir(at("etc")).unwrap().flatten();
        files
            .map(|file| {
                let meta = file.metadata().unwrap();
                let bytes = std::fs::read(file.path()).unwrap();
                (file.path(), meta.uid(), meta.mode(), bytes)
            })
            .collect()
    };
    let before = state();
    let record = FileRecord {
        path: at("sub").join(name),
        uid: 1234,
        gid: 1234,
        mode: 0o6777,
        content: content.map(String::from),
        ..place.record(b"abc")
    };
    // `mv sub sub.old; ln -s etc sub`
    std::os::unix::fs::symlink("etc", at("sub")).unwrap();
    std::os::unix::fs::lchown(at("sub"), Some(1234), Some(1234)).unwrap();
    put_back(&record, &place.contents()).unwrap_err();
    assert_eq!(state(), before);
    // The same by another name of the file, where the kernel lets everybody make one.
    std::fs::remove_file(at("sub")).unwrap();
    std::fs::create_dir(at("sub")).unwrap();
    if at("etc").join(name).exists() {
        std::fs::hard_link(at("etc").join(name), at("sub").join(name)).unwrap();
        let refused = put_back(&record, &place.contents()).unwrap_err();
        assert!(
            matches!(
                refused,
                FilesError::Owner {
                    found: 0,
                    owner: 1234,
                    ..
                }
            ),
            "{refused}"
        );
        assert_eq!(state(), before);
    }
}

#[test]
fn what_is_cut_off_is_its_owners() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let place = Place::new();
    place.write(b"abc and more");
    std::os::unix::fs::chown(place.path(), Some(1234), Some(4321)).unwrap();
    let record = FileRecord {
        uid: 1234,
        gid: 4321,
        mode: 0o4750,
        ..place.record(b"abc")
    };
    let action = put_back(&record, &place.contents()).unwrap();
    let Action::Cut {
        saved: Some(saved), ..
    } = action
    else {
        panic!("{action:?}");
    };
    let facts = |path: &Path| {
        let meta = std::fs::metadata(path).unwrap();
        (meta.uid(), meta.gid(), meta.mode() & 0o7777)
    };
    assert_eq!(facts(&saved), (1234, 4321, 0o600));
    assert_eq!(facts(&place.path()), (1234, 4321, 0o4750));
    // Back to root: no bit lets others run it as root.
    let record = FileRecord { uid: 0, ..record };
    put_back(&record, &place.contents()).unwrap();
    assert_eq!(facts(&place.path()), (0, 4321, 0o750));
}

#[test]
fn files_open_for_writing_are_captured_and_others_not() {
    let place = Place::new();
    place.write(b"hello");
    let other = place.dir.path().join("read-only.txt");
    std::fs::write(&other, b"x").unwrap();
    let gone = place.dir.path().join("gone.txt");
    let _writer = OpenOptions::new().append(true).open(place.path()).unwrap();
    let _reader = File::open(&other).unwrap();
    let _deleted = File::create(&gone).unwrap();
    std::fs::remove_file(&gone).unwrap();
    let (_parent, image) = an_image();
    let records = capture(&[std::process::id()], 1 << 20, &image).unwrap();
    let found = records.iter().find(|r| r.path == place.path()).unwrap();
    assert_eq!(found.length, 5);
    let name = found.content.clone().unwrap();
    assert_eq!(
        std::fs::read(image.path_of(FILES_DIR).join(name)).unwrap(),
        b"hello"
    );
    assert!(records.iter().all(|r| r.path != other && r.path != gone));
    let small = capture(&[std::process::id()], 4, &image).unwrap();
    let found = small.iter().find(|r| r.path == place.path()).unwrap();
    assert_eq!((found.length, found.content.clone()), (5, None));
}

#[test]
fn what_is_needed_and_not_carried_is_found_and_missed_by_name() {
    let place = Place::new();
    let data = place.dir.path().join("data.bin");
    let dir = place.dir.path().join("shards");
    std::fs::write(&data, b"12345").unwrap();
    std::fs::set_permissions(&data, Permissions::from_mode(0o644)).unwrap();
    std::fs::create_dir(&dir).unwrap();
    place.write(b"log");
    let _reader = File::open(&data).unwrap();
    let _dir = File::open(&dir).unwrap();
    let _writer = OpenOptions::new().append(true).open(place.path()).unwrap();
    let record = place.record_of_length(b"log");
    let (_parent, image) = an_image();
    let (all, _) = needed(
        &[std::process::id()],
        std::slice::from_ref(&record),
        &[PathBuf::from("/made")],
        &Carry {
            below: &BTreeSet::new(),
            most: 1 << 20,
            image: &image,
        },
    );
    for (path, length) in [(&data, Some(5)), (&dir, None)] {
        let found = all.iter().find(|n| n.path == *path).unwrap();
        assert_eq!(found.length, length);
    }
    // What is mapped is shown to root alone.
    if rustix::process::geteuid().is_root() {
        let program = std::env::current_exe().unwrap();
        assert!(all.iter().any(|n| n.path == program));
    }
    assert!(all.iter().all(|n| n.path != place.path()));
    // Other tests of this process open and remove files.
    let ours: Vec<NeededPath> = all
        .into_iter()
        .filter(|n| n.path.starts_with(place.dir.path()))
        .collect();
    let records = [record];
    check(&ours, &records).unwrap();
    std::fs::write(&data, b"12345678").unwrap();
    check(&ours, &records).unwrap();
    assert_eq!(of_any_length(&ours), BTreeSet::from([data.clone()]));
    // A library that is longer is another one.
    std::fs::write(&data, b"\x7fELF5678").unwrap();
    let text = check(&ours, &records).unwrap_err().to_string();
    assert!(text.contains("data.bin has 8 bytes, 5 at"), "{text}");
    assert_eq!(of_any_length(&ours), BTreeSet::new());

    std::fs::write(&data, b"123").unwrap();
    assert_eq!(of_any_length(&ours), BTreeSet::new());
    std::fs::remove_dir(&dir).unwrap();
    place.write(b"l");
    let text = check(&ours, &records).unwrap_err().to_string();
    for words in [
        "data.bin has 3 bytes, 5 at the checkpoint",
        "shards is missing",
        "log.txt has 1 bytes, 3 at the checkpoint",
        "--max-file-size",
        "Mount the volumes",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    std::fs::write(&data, b"12345").unwrap();
    std::fs::set_permissions(&data, Permissions::from_mode(0o600)).unwrap();
    let text = check(&ours[..1], &[]).unwrap_err().to_string();
    assert!(
        text.contains("has mode 0600, 0644") && !text.contains("--max"),
        "{text}"
    );
}

#[test]
fn what_is_only_read_travels_if_it_is_temporary_and_not_large() {
    let place = Place::new();
    let [cache, data] = ["cache", "data"].map(|n| place.dir.path().join(n));
    let mut open = Vec::new();
    for (dir, name, bytes) in [
        (&cache, "kernel.so", &b"compiled"[..]),
        (&cache, "large.bin", &[7; 100]),
        (&data, "shard.bin", b"samples"),
    ] {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join(name), bytes).unwrap();
        std::fs::set_permissions(dir.join(name), Permissions::from_mode(0o750)).unwrap();
        open.push(File::open(dir.join(name)).unwrap());
    }
    let (_parent, image) = an_image();
    let below = BTreeSet::from([cache.clone()]);
    let carry = Carry {
        below: &below,
        most: 99,
        image: &image,
    };
    open.push(File::open(&cache).unwrap());
    let (mut all, directories) = needed(&[std::process::id()], &[], &[], &carry);
    assert_eq!(directories, std::slice::from_ref(&cache));
    // Other tests of this process open and remove files.
    all.retain(|n| n.path.starts_with(place.dir.path()));
    let carried: Vec<&Path> = all
        .iter()
        .filter(|n| n.copy.is_some())
        .map(|n| n.path.as_path())
        .collect();
    assert_eq!(carried, [cache.join("kernel.so")]);

    let contents = image.path_of(FILES_DIR);
    let brought = || -> Vec<bool> {
        let each = all.iter().map(|n| bring(n, &contents).unwrap());
        each.collect()
    };
    check(&all, &[]).unwrap();
    assert_eq!(brought(), [false, false, false]);
    std::fs::remove_dir_all(&cache).unwrap();
    std::fs::create_dir(&cache).unwrap();
    let text = check(&all, &[]).unwrap_err().to_string();
    assert!(
        text.contains("large.bin is missing") && !text.contains("kernel.so"),
        "{text}"
    );
    assert_eq!(brought(), [true, false, false]);
    let kernel = cache.join("kernel.so");
    assert_eq!(std::fs::read(&kernel).unwrap(), b"compiled");
    assert_eq!(std::fs::metadata(&kernel).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
    // One that is there is not ours to change.
    std::fs::write(&kernel, "compiled and more").unwrap();
    assert_eq!(brought(), [false, false, false]);
    std::fs::write(&kernel, "something else").unwrap();
    let found = (all.iter()).find_map(|n| bring(n, &contents).err());
    let text = found.unwrap().to_string();
    assert!(
        text.contains("kernel.so has 14 bytes, 8 at") && text.contains("begins differently"),
        "{text}"
    );
    std::fs::write(&kernel, "short").unwrap();
    let text = check(&all, &[]).unwrap_err().to_string();
    assert!(text.contains("kernel.so has 5 bytes, 8 at"), "{text}");
}

#[test]
fn a_refusal_names_so_many_and_counts_the_rest() {
    let missing: Vec<NeededPath> = (0..25)
        .map(|n| NeededPath {
            path: format!("/nowhere/{n}").into(),
            length: Some(1),
            mode: 0o644,
            uid: None,
            copy: None,
        })
        .collect();
    let text = check(&missing, &[]).unwrap_err().to_string();
    assert!(
        text.contains("/nowhere/19 is missing; and 5 more"),
        "{text}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happened to the file, it comes back, and nothing that was in it is lost.
    #[test]
    fn any_change_is_undone_and_nothing_is_lost(
        then in proptest::collection::vec(0_u8..4, 0..64),
        now in proptest::option::of(proptest::collection::vec(0_u8..4, 0..64)),
        grown in any::<bool>(),
    ) {
        let place = Place::new();
        let record = place.record(&then);
        let now = now.map(|tail| if grown { [then.clone(), tail].concat() } else { tail });
        if let Some(now) = &now {
            place.write(now);
        }
        put_back(&record, &place.contents()).unwrap();
        prop_assert_eq!(std::fs::read(place.path()).unwrap(), then.clone());
        let saved = place.saved().concat();
        match now {
            Some(now) if now.starts_with(&then) => prop_assert_eq!(saved, now[then.len()..].to_vec()),
            Some(now) => prop_assert_eq!(saved, now),
            None => prop_assert!(saved.is_empty()),
        }
        prop_assert_eq!(put_back(&record, &place.contents()).unwrap(), Action::Nothing);
    }
}
