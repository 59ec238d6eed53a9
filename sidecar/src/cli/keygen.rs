//! `phos-ft keygen`: makes a key file for `--encryption-key-file`.

use std::path::Path;

use phos_storage::Key;

use super::{exit, fail};
use crate::engine;

pub(super) fn run(file: &Path) -> u8 {
    super::look::keep_to_itself();
    let key = Key::random(engine::random_u64);
    if let Err(e) = key.create(file) {
        return fail(e, exit::CANNOT_CREATE);
    }
    println!(
        "{}: key {}. Keep a copy where the store is not: without it nothing can be restored.",
        file.display(),
        key.id()
    );
    exit::OK
}
