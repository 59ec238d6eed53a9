//! Files that the job has open and that no longer had a name at the checkpoint: CRIU's ghosts.
//!
//! CRIU makes such a file anew, with the owner and the mode that the image says, under a name of its own beside the one that it
//! had, and removes it. Where the job runs as another user, that user is made the owner of all of them here: nobody can reach a
//! file without a name by a name, and files of others could neither be made nor linked with that user's rights
//! (`shim/criu-preload`).
//!
//! ```text
//! ghost-file-N.img:  two magic numbers │ length, u32 │ ghost_file_entry │ what was in the file
//! ```
//!
//! The entry is walked field by field and not decoded, so that what this program does not know stays as it is.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};

use super::images::{self, damaged};
use super::wire::fields;
use crate::user::{JobUser, way};

const MAGIC: u32 = 0x5258_3605;
/// `ghost_file_entry`: whose it is, and what.
const UID: u32 = 1;
const GID: u32 = 2;
const MODE: u32 = 3;
/// Most bytes of an entry: the longest part is the target of a symbolic link.
const MOST: u32 = 64 << 10;

/// A file without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ghost {
    /// The path that the file had.
    pub path: PathBuf,
    /// The user and group that owned the file.
    pub owner: (u32, u32),
    /// The file's kind and permission bits (`st_mode`).
    pub mode: u32,
}

/// An image file: its entry, and the file after it.
struct Image {
    path: PathBuf,
    entry: Vec<u8>,
    rest: File,
}

impl Image {
    fn open(images: &Path, id: u32) -> io::Result<Image> {
        let path = images.join(format!("ghost-file-{id:x}.img"));
        let mut rest = File::open(&path)?;
        let mut head = [0; 12];
        rest.read_exact(&mut head)?;
        let (magics, length) = head.split_at(8);
        let length = length.try_into().map_or(0, u32::from_le_bytes);
        if magics != images::magics(MAGIC) || length > MOST {
            return Err(damaged(&path));
        }
        let mut entry = vec![0; length as usize];
        rest.read_exact(&mut entry)?;
        Ok(Image { path, entry, rest })
    }

    /// A number of the entry. One that is there twice, or is none, is damage: CRIU might take the other.
    fn number(&self, wanted: u32) -> io::Result<u32> {
        let all = fields(&self.entry).map_err(|_| damaged(&self.path))?;
        let mut found = all.iter().filter(|field| field.number == wanted);
        let (Some(field), None) = (found.next(), found.next()) else {
            return Err(damaged(&self.path));
        };
        let mut whole = field.whole;
        let read = match decode_key(&mut whole) {
            Ok((_, WireType::Varint)) => decode_varint(&mut whole).ok(),
            _ => None,
        };
        let read = read.and_then(|value| u32::try_from(value).ok());
        read.ok_or_else(|| damaged(&self.path))
    }

    fn owner(&self) -> io::Result<(u32, u32)> {
        Ok((self.number(UID)?, self.number(GID)?))
    }

    /// Writes it with another owner.
    fn give(mut self, (uid, gid): (u32, u32)) -> io::Result<()> {
        let mut entry = Vec::with_capacity(self.entry.len() + 8);
        for field in fields(&self.entry).map_err(|_| damaged(&self.path))? {
            let number = match field.number {
                UID => uid,
                GID => gid,
                _ => {
                    entry.extend_from_slice(field.whole);
                    continue;
                }
            };
            encode_key(field.number, WireType::Varint, &mut entry);
            encode_varint(number.into(), &mut entry);
        }
        let new = self.path.with_extension("new");
        let mut to = File::create(&new)?;
        let length = u32::try_from(entry.len()).map_err(|_| damaged(&self.path))?;
        to.write_all(&images::magics(MAGIC))?;
        to.write_all(&length.to_le_bytes())?;
        to.write_all(&entry)?;
        io::copy(&mut self.rest, &mut to)?;
        std::fs::rename(&new, &self.path)
    }
}

/// All of an image. `images` is CRIU's directory.
///
/// # Errors
/// The error of the file system; [`io::ErrorKind::InvalidData`] for what is not understood.
pub fn all(images: &Path) -> io::Result<Vec<Ghost>> {
    let mut found = Vec::new();
    for (id, path) in images::nameless(images)? {
        let image = Image::open(images, id)?;
        found.push(Ghost {
            path,
            owner: image.owner()?,
            mode: image.number(MODE)?,
        });
    }
    Ok(found)
}

/// Removes what a CRIU that failed or was killed has left of them, beside the names that they had.
pub fn sweep(images: &Path) {
    let Ok(all) = images::nameless(images) else {
        return;
    };
    for (id, path) in all {
        let Some(mut name) = path.file_name().map(std::ffi::OsStr::to_owned) else {
            continue;
        };
        name.push(format!(".cr.{id:x}.ghost"));
        let above = path.parent().unwrap_or(Path::new("/"));
        if let Ok(directory) = way::directory(above)
            && rustix::fs::unlinkat(&directory, &name, rustix::fs::AtFlags::empty()).is_ok()
        {
            tracing::debug!(path = %above.join(&name).display(), "CRIU left a file, which is removed");
        }
    }
}

/// Makes the job's user the owner of all of them.
///
/// # Errors
/// As for [`all`].
pub fn give_to(images: &Path, user: &JobUser) -> io::Result<()> {
    let ids: std::collections::BTreeSet<u32> = (images::nameless(images)?.into_iter())
        .map(|(id, _)| id)
        .collect();
    for id in ids {
        let image = Image::open(images, id)?;
        let (uid, gid) = image.owner()?;
        let group = if user.is_in(gid) { gid } else { user.gid() };
        if (uid, gid) != (user.uid(), group) {
            image.give((user.uid(), group))?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::criu::images::tests::write_remaps;

    /// One image, as CRIU writes it: with fields that this program does not know.
    pub(crate) fn write(images: &Path, id: u32, owner: (u32, u32), mode: u32, content: &[u8]) {
        let mut entry = Vec::new();
        for (number, value) in [(UID, owner.0), (GID, owner.1), (MODE, mode), (4, 70_000)] {
            encode_key(number, WireType::Varint, &mut entry);
            encode_varint(value.into(), &mut entry);
        }
        encode_key(7, WireType::LengthDelimited, &mut entry);
        encode_varint(4, &mut entry);
        entry.extend(b"time");
        let length = (entry.len() as u32).to_le_bytes();
        let whole = [&images::magics(MAGIC)[..], &length, &entry, content].concat();
        std::fs::write(images.join(format!("ghost-file-{id:x}.img")), whole).unwrap();
    }

    #[test]
    fn those_of_others_become_the_users_and_nothing_else_changes() {
        let dir = tempfile::tempdir().unwrap();
        let images = dir.path();
        assert_eq!(all(images).unwrap(), []);
        write_remaps(images, &[(7, 1, "/usr/lib/gone.so"), (8, 26, "/work/own")]);
        write(images, 1, (0, 0), 0o100_644, b"of root");
        write(images, 26, (12_345, 7), 0o100_600, b"own");
        let user = JobUser::find("12345:12345,7").unwrap();
        let own = std::fs::read(images.join("ghost-file-1a.img")).unwrap();
        give_to(images, &user).unwrap();
        let ghost = |path: &str, owner, mode| Ghost {
            path: path.into(),
            owner,
            mode,
        };
        let expected = [
            ghost("/usr/lib/gone.so", (12_345, 12_345), 0o100_644),
            ghost("/work/own", (12_345, 7), 0o100_600),
        ];
        assert_eq!(all(images).unwrap(), expected);
        assert_eq!(
            std::fs::read(images.join("ghost-file-1a.img")).unwrap(),
            own
        );
        let given = std::fs::read(images.join("ghost-file-1.img")).unwrap();
        assert!(given.ends_with(b"\x04timeof root"));
        write(images, 26, (12_345, 9), 0o100_600, b"own");
        give_to(images, &user).unwrap();
        assert_eq!(all(images).unwrap()[1].owner, (12_345, 12_345));
        // CRIU would take the second, or neither.
        for field in [&[0x08, 0][..], &[0x1d, 0xff, 0x81, 0, 0]] {
            let entry = [&given[12..], field].concat();
            let length = (entry.len() as u32).to_le_bytes();
            let twice = [&given[..8], &length, &entry].concat();
            std::fs::write(images.join("ghost-file-1.img"), twice).unwrap();
            all(images).unwrap_err();
        }
        // What is cut off is damage.
        std::fs::write(images.join("ghost-file-1.img"), &given[..20]).unwrap();
        all(images).unwrap_err();
    }
    #[test]
    fn what_criu_left_of_them_goes_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let had = dir.path().join("library.so");
        write_remaps(dir.path(), &[(7, 0x1a, had.to_str().unwrap())]);
        for name in [
            "library.so.cr.1a.ghost",
            "library.so.cr.1b.ghost",
            "library.so",
        ] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        sweep(dir.path());
        let is_there = |name: &str| dir.path().join(name).exists();
        assert!(!is_there("library.so.cr.1a.ghost"));
        assert!(is_there("library.so.cr.1b.ghost") && is_there("library.so"));
    }
}
