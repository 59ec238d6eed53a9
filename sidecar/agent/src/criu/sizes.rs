//! Letting CRIU open files that grew.
//!
//! CRIU notes the length of each regular file and refuses to open one whose length has changed. That includes a data set or a log
//! that the job only reads and that somebody else continues to append to. The length stands in `files.img`, of which a restore
//! has a copy of its own; where it is taken out, CRIU takes the file as it is.
//!
//! `files.img` is two magic numbers and then messages, each after its length: `file_entry` of CRIU's `images/fdinfo.proto`. They
//! are walked field by field and not decoded, so that what this program does not know stays as it is.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::images::{self, FILES_NAME};
use prost::encoding::{WireType, encode_key, encode_varint};

use super::wire::{Field, Malformed, fields};

/// The number of the field `reg` in CRIU's `file_entry`.
const REGULAR: u32 = 3;
/// `reg_file_entry.name`.
const NAME: u32 = 6;
/// `reg_file_entry.size`.
const SIZE: u32 = 8;

impl From<Malformed> for io::Error {
    fn from(_: Malformed) -> Self {
        damaged()
    }
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "files.img of the CPU image cannot be understood",
    )
}

/// A message of `files.img` without the length of the file, if that is one of `paths`.
fn without_size(message: &[u8], paths: &BTreeSet<PathBuf>) -> io::Result<Option<Vec<u8>>> {
    let entry = fields(message)?;
    let Some(regular) = entry.iter().find(|field| field.number == REGULAR) else {
        return Ok(None);
    };
    let file = fields(regular.content)?;
    let ours = |field: &Field<'_>| {
        field.number == NAME && paths.contains(Path::new(OsStr::from_bytes(field.content)))
    };
    if !file.iter().any(ours) || !file.iter().any(|field| field.number == SIZE) {
        return Ok(None);
    }
    let kept: Vec<u8> = (file.iter())
        .filter(|field| field.number != SIZE)
        .flat_map(|field| field.whole.iter().copied())
        .collect();
    let mut made = Vec::with_capacity(message.len());
    for field in &entry {
        if field.number == REGULAR {
            encode_key(REGULAR, WireType::LengthDelimited, &mut made);
            encode_varint(kept.len() as u64, &mut made);
            made.extend_from_slice(&kept);
        } else {
            made.extend_from_slice(field.whole);
        }
    }
    Ok(Some(made))
}

/// `files.img` without the lengths of these files; how many there were.
fn rewritten(image: &[u8], paths: &BTreeSet<PathBuf>) -> io::Result<(Vec<u8>, usize)> {
    let mut made = images::magics(images::FILES).to_vec();
    let mut count = 0;
    for message in images::split(image, images::FILES).ok_or_else(damaged)? {
        let changed = without_size(message, paths)?;
        count += usize::from(changed.is_some());
        let message = changed.as_deref().unwrap_or(message);
        let length = u32::try_from(message.len()).map_err(|_| damaged())?;
        made.extend_from_slice(&length.to_le_bytes());
        made.extend_from_slice(message);
    }
    Ok((made, count))
}

/// Lets CRIU open these files whatever length they have. `images` is its directory. How many entries that were.
///
/// # Errors
/// The error of the file system; [`io::ErrorKind::InvalidData`] for an image that is not understood, which is then as it was.
pub fn forget(images: &Path, paths: &BTreeSet<PathBuf>) -> io::Result<usize> {
    if paths.is_empty() {
        return Ok(0);
    }
    let path = images.join(FILES_NAME);
    let (made, count) = rewritten(&std::fs::read(&path)?, paths)?;
    if count > 0 {
        // A restore that is cut off here has no use for the directory.
        std::fs::write(&path, made)?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct Regular {
        #[prost(uint32, required, tag = "1")]
        id: u32,
        #[prost(string, required, tag = "6")]
        name: String,
        #[prost(sint32, optional, tag = "7")]
        mount: Option<i32>,
        #[prost(uint64, optional, tag = "8")]
        size: Option<u64>,
        #[prost(uint32, optional, tag = "10")]
        mode: Option<u32>,
        #[prost(uint32, repeated, tag = "11")]
        build_id: Vec<u32>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Entry {
        #[prost(uint32, required, tag = "1")]
        kind: u32,
        #[prost(uint32, required, tag = "2")]
        id: u32,
        #[prost(message, optional, tag = "3")]
        regular: Option<Regular>,
        #[prost(bytes = "vec", optional, tag = "18")]
        pipe: Option<Vec<u8>>,
    }

    fn regular(id: u32, name: &str) -> Entry {
        Entry {
            kind: 1,
            id,
            regular: Some(Regular {
                id,
                name: name.into(),
                mount: Some(-1),
                size: Some(1 << 40),
                mode: Some(0o100_644),
                build_id: vec![7, 8],
            }),
            pipe: None,
        }
    }

    fn image(entries: &[Entry]) -> Vec<u8> {
        let mut image = images::magics(images::FILES).to_vec();
        for entry in entries {
            let bytes = entry.encode_to_vec();
            image.extend((bytes.len() as u32).to_le_bytes());
            image.extend(bytes);
        }
        image
    }

    #[test]
    fn the_length_of_the_files_named_goes_and_nothing_else() {
        let pipe = Entry {
            kind: 2,
            id: 9,
            regular: None,
            pipe: Some(vec![1, 2, 3]),
        };
        let entries = [regular(1, "/data/a"), pipe.clone(), regular(2, "/data/b")];
        let paths = BTreeSet::from(["/data/b".into(), "/data/c".into()]);
        let mut without = regular(2, "/data/b");
        without.regular.as_mut().unwrap().size = None;
        let expected = image(&[regular(1, "/data/a"), pipe, without]);
        assert_eq!(
            rewritten(&image(&entries), &paths).unwrap(),
            (expected.clone(), 1)
        );
        assert_eq!(rewritten(&expected, &paths).unwrap(), (expected, 0));
    }

    #[test]
    fn an_image_that_is_not_understood_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let paths = BTreeSet::from(["/data/a".into()]);
        let whole = image(&[regular(1, "/data/a")]);
        for bytes in [b"somethingelse".to_vec(), whole[..whole.len() - 1].to_vec()] {
            std::fs::write(dir.path().join(FILES_NAME), &bytes).unwrap();
            let error = forget(dir.path(), &paths).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert_eq!(std::fs::read(dir.path().join(FILES_NAME)).unwrap(), bytes);
        }
        std::fs::write(dir.path().join(FILES_NAME), &whole).unwrap();
        assert_eq!(forget(dir.path(), &paths).unwrap(), 1);
        assert_eq!(forget(dir.path(), &paths).unwrap(), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_an_image(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let bytes = [&images::magics(images::FILES)[..], &tail].concat();
            let paths = BTreeSet::from(["".into(), "/".into()]);
            let _ = rewritten(&bytes, &paths);
        }
    }
}
