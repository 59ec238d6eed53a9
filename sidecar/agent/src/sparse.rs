//! Copies files with holes: shared memory and files of fixed size have few bytes for their length.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use rustix::fs::SeekFrom as Place;
use rustix::io::Errno;

/// Copies the first `length` bytes of `source` to the beginning of `target`, which is empty. What is a hole there is one here.
///
/// # Errors
/// Reading or writing failed, or the source is shorter.
pub fn copy(source: &File, target: &File, length: u64) -> io::Result<()> {
    if source.metadata()?.len() < length {
        let message = format!("it became shorter than {length} bytes");
        return Err(io::Error::other(message));
    }
    let (mut from, mut to) = (source, target);
    let mut at = 0;
    while at < length {
        let (data, end) = match rustix::fs::seek(source, Place::Data(at)) {
            Ok(data) => {
                // Every file ends in a hole.
                (data, rustix::fs::seek(source, Place::Hole(data))?)
            }
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            // A file system that knows no holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => (at, length),
            Err(e) => return Err(e.into()),
        };
        if data >= length {
            break;
        }
        let end = end.min(length);
        from.seek(SeekFrom::Start(data))?;
        to.seek(SeekFrom::Start(data))?;
        let copied = io::copy(&mut from.take(end - data), &mut to)?;
        if copied != end - data {
            return Err(io::Error::other("it became shorter"));
        }
        at = end;
    }
    target.set_len(length)
}

/// The most pieces that are counted one by one.
const PIECES: usize = 10_000;

/// About how many bytes of a file are not in holes.
pub fn content_bytes(file: &File) -> u64 {
    let all = file.metadata().map_or(0, |meta| meta.blocks() * 512);
    let (mut at, mut bytes) = (0, 0);
    for _ in 0..PIECES {
        let piece = rustix::fs::seek(file, Place::Data(at))
            .and_then(|data| Ok((data, rustix::fs::seek(file, Place::Hole(data))?)));
        match piece {
            Ok((data, end)) => (at, bytes) = (end, bytes + (end - data)),
            Err(Errno::NXIO) => return bytes,
            Err(_) => return all,
        }
    }
    all.max(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn holes_stay_holes_and_content_content() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let path = dir.path().join(name);
            let mut options = std::fs::OpenOptions::new();
            options.read(true).write(true).create(true).open(path)
        };
        const LENGTH: u64 = 5 << 30;
        let source = open("source").unwrap();
        source.set_len(LENGTH).unwrap();
        source.write_all_at(b"middle", LENGTH / 2).unwrap();
        let target = open("target").unwrap();
        copy(&source, &target, LENGTH).unwrap();
        let meta = target.metadata().unwrap();
        assert_eq!(meta.len(), LENGTH);
        assert!(meta.blocks() * 512 < 1 << 20, "{}", meta.blocks());
        let mut found = [0; 8];
        target.read_exact_at(&mut found, LENGTH / 2 - 1).unwrap();
        assert_eq!(&found, b"\0middle\0");
        let bytes = content_bytes(&target);
        assert!((6..1 << 20).contains(&bytes), "{bytes}");
        // A part of it, from wherever it was read last.
        let part = open("part").unwrap();
        copy(&source, &part, LENGTH / 2 + 3).unwrap();
        let mut found = [0; 3];
        part.read_exact_at(&mut found, LENGTH / 2).unwrap();
        assert_eq!(&found, b"mid");
        copy(&source, &part, LENGTH + 1).unwrap_err();
    }

    #[test]
    fn a_file_without_holes_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut source = File::create_new(&path).unwrap();
        source.write_all(b"content").unwrap();
        let target = File::create_new(dir.path().join("b")).unwrap();
        copy(&File::open(&path).unwrap(), &target, 7).unwrap();
        assert_eq!(std::fs::read(dir.path().join("b")).unwrap(), b"content");
    }
}
