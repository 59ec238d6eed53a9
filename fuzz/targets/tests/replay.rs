//! The kept corpus, which every target must take: what fuzzing has found once stays found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use phos_fuzz_targets::{TARGETS, seeds};

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
}

#[test]
fn the_kept_corpus_is_taken() {
    for (name, target) in TARGETS {
        let mut inputs = 0;
        for entry in std::fs::read_dir(corpus(name)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            // Shown by the test runner when the target panics.
            println!("{}", path.display());
            target(&bytes);
            inputs += 1;
        }
        assert!(inputs > 0, "{name} has no corpus");
    }
}

#[test]
fn seeds_of_today_are_taken() {
    for (name, input) in seeds::all() {
        println!("{name}");
        let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).unwrap();
        target(&input);
    }
}

/// What a seed claims is far beyond what reading it may take; `memory::bounded` in the targets says so.
#[test]
fn size_bombs_are_refused_in_little_memory() {
    for (name, input) in seeds::bombs() {
        println!("{name}");
        let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).unwrap();
        target(&input);
    }
}
