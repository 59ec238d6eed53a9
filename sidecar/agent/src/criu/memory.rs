//! What an image says of the processes' memory: `mm-PID.img` of its areas, `pagemap-*.img` of the pages that lie in a file
//! `pages-N.img`, one after another in the pagemap's order. Parts of CRIU's `images/mm.proto`, `vma.proto` and `pagemap.proto`;
//! the bits are those of its `criu/include/image.h` and `pagemap.h`.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use prost::Message;

use super::images::{bytes, damaged, magics, read, split};

/// The magic number of `mm-PID.img`: CRIU's `MM_MAGIC`.
const MM: u32 = 0x5749_2820;
/// The magic number of `pagemap-*.img`: CRIU's `PAGEMAP_MAGIC`.
const PAGEMAP: u32 = 0x5608_4025;

/// The size of a page, in bytes.
pub const PAGE: u64 = 4096;

/// `PE_PRESENT`: the page is in the file of pages.
const PRESENT: u32 = 1 << 2;
/// `PE_LAZY`: it may come later, where a restore is lazy.
const LAZY: u32 = 1 << 1;

const REGULAR: u32 = 1 << 0;
const VDSO: u32 = 1 << 3;
const FILE_PRIVATE: u32 = 1 << 6;
const ANON_PRIVATE: u32 = 1 << 9;
const VVAR: u32 = 1 << 12;
const AIO_RING: u32 = 1 << 13;
const GUARD: u32 = 1 << 16;

/// `MAP_DROPPABLE`: the kernel may forget it, and CRIU does.
const DROPPABLE: u32 = 0x08;

#[derive(Clone, PartialEq, Message)]
struct Memory {
    #[prost(message, repeated, tag = "14")]
    areas: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(uint64, required, tag = "1")]
    start: u64,
    #[prost(uint64, required, tag = "2")]
    end: u64,
    #[prost(uint32, required, tag = "5")]
    protection: u32,
    #[prost(uint32, required, tag = "6")]
    flags: u32,
    #[prost(uint32, required, tag = "7")]
    status: u32,
}

/// What the content of an area is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pages of the process's own.
    Private,
    /// Not a mapping: pages that must not be touched.
    Guard,
    /// What CRIU saves in its own way, or not at all.
    Other,
}

/// A part of a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// The addresses of the area, in the process.
    pub addresses: Range<u64>,
    /// What the content of the area is.
    pub kind: Kind,
    /// Whether the process may read it.
    pub readable: bool,
}

impl Entry {
    fn area(&self) -> Area {
        let any = |bits: u32| self.status & bits != 0;
        // CRIU copies the whole of the first and the last, whatever it is told, and nothing of the second.
        let special = VDSO | VVAR | AIO_RING;
        let kind = if any(GUARD) {
            Kind::Guard
        } else if !any(REGULAR) || any(special) || self.flags & DROPPABLE != 0 {
            Kind::Other
        } else if any(FILE_PRIVATE | ANON_PRIVATE) {
            Kind::Private
        } else {
            Kind::Other
        };
        Area {
            addresses: self.start..self.end,
            kind,
            readable: self.protection & libc::PROT_READ.cast_unsigned() != 0,
        }
    }
}

/// The process whose areas are in the file of this name, if it is such a file: its PID.
pub fn process_of(name: &[u8]) -> Option<u32> {
    let pid = name.strip_prefix(b"mm-")?.strip_suffix(b".img")?;
    std::str::from_utf8(pid).ok()?.parse().ok()
}

/// The processes of an image that have memory: their PIDs, in order.
///
/// # Errors
/// The error of the file system.
pub fn processes(images: &Path) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(images)? {
        found.extend(process_of(entry?.file_name().as_encoded_bytes()));
    }
    found.sort_unstable();
    Ok(found)
}

/// The areas of a process's memory, by address. Guards come after the others.
///
/// # Errors
/// The error of the file system; [`io::ErrorKind::InvalidData`] for what is not understood.
pub fn areas(images: &Path, pid: u32) -> io::Result<Vec<Area>> {
    let memory = read::<Memory>(&images.join(format!("mm-{pid}.img")), MM)?;
    let areas = memory.iter().flat_map(|memory| &memory.areas);
    Ok(areas.map(Entry::area).collect())
}

#[derive(Clone, PartialEq, Message)]
struct Head {
    #[prost(uint32, required, tag = "1")]
    pages: u32,
}

#[derive(Clone, PartialEq, Message)]
struct RunEntry {
    #[prost(uint64, required, tag = "1")]
    address: u64,
    /// The number of pages, as versions before 4.2 read it.
    #[prost(uint32, required, tag = "2")]
    few: u32,
    #[prost(bool, optional, tag = "3")]
    in_parent: Option<bool>,
    #[prost(uint32, optional, tag = "4")]
    flags: Option<u32>,
    #[prost(uint64, optional, tag = "5")]
    count: Option<u64>,
}

/// Most pages of one entry: what older versions can say.
const MOST: u64 = u32::MAX as u64;

/// Neighbouring pages, by their first address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The address of the first page.
    pub address: u64,
    /// The number of pages.
    pub pages: u64,
}

impl Run {
    /// The length of the run in bytes.
    pub const fn bytes(&self) -> u64 {
        self.pages * PAGE
    }

    /// The address after the last page.
    pub const fn end(&self) -> u64 {
        self.address + self.bytes()
    }
}

/// Which pages lie in a file of pages, in the order in which they lie there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageMap {
    /// The number of the file of pages: the `N` of `pages-N.img`.
    pub file: u32,
    /// The runs of pages, by address.
    pub runs: Vec<Run>,
}

impl PageMap {
    /// The path of the file of pages, in a directory of images.
    pub fn pages_path(&self, images: &Path) -> PathBuf {
        images.join(format!("pages-{}.img", self.file))
    }

    /// Reads the map of a process (`pagemap-PID.img`) or of shared memory (`pagemap-shmem-N.img`), of a dump without a parent.
    ///
    /// # Errors
    /// As for [`areas`].
    pub fn read(path: &Path) -> io::Result<PageMap> {
        let bytes = bytes(path)?;
        let messages = split(&bytes, PAGEMAP).ok_or_else(|| damaged(path))?;
        let (head, entries) = messages.split_first().ok_or_else(|| damaged(path))?;
        let head = Head::decode(*head).map_err(|_| damaged(path))?;
        let mut runs = Vec::new();
        for entry in entries {
            let entry = RunEntry::decode(*entry).map_err(|_| damaged(path))?;
            let flags = entry.flags.unwrap_or(PRESENT);
            if entry.in_parent == Some(true) || flags & !LAZY != PRESENT {
                return Err(damaged(path));
            }
            runs.push(Run {
                address: entry.address,
                pages: entry.count.unwrap_or_else(|| entry.few.into()),
            });
        }
        let file = head.pages;
        Ok(PageMap { file, runs })
    }

    /// Writes it.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut bytes = magics(PAGEMAP).to_vec();
        let mut add = |message: Vec<u8>| {
            // A message of a few numbers.
            bytes.extend((message.len() as u32).to_le_bytes());
            bytes.extend(message);
        };
        add(Head { pages: self.file }.encode_to_vec());
        for run in &self.runs {
            let (mut address, mut left) = (run.address, run.pages);
            while left > 0 {
                let count = left.min(MOST);
                let entry = RunEntry {
                    address,
                    few: count as u32,
                    in_parent: None,
                    flags: Some(PRESENT),
                    count: Some(count),
                };
                add(entry.encode_to_vec());
                address += count * PAGE;
                left -= count;
            }
        }
        std::fs::write(path, bytes)
    }
}

/// Writes `mm-PID.img` of a process with one private area that it may read.
#[cfg(test)]
pub fn write_private(images: &Path, pid: u32, addresses: Range<u64>) {
    let area = Entry {
        start: addresses.start,
        end: addresses.end,
        protection: libc::PROT_READ.cast_unsigned(),
        flags: 0x22,
        status: REGULAR | ANON_PRIVATE,
    };
    let memory = Memory { areas: vec![area] };
    let message = memory.encode_to_vec();
    let mut bytes = magics(MM).to_vec();
    bytes.extend((message.len() as u32).to_le_bytes());
    bytes.extend(message);
    std::fs::write(images.join(format!("mm-{pid}.img")), bytes).expect("the directory is there");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_map_of_pages_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pagemap-7.img");
        let run = |address, pages| Run { address, pages };
        let map = PageMap {
            file: 3,
            runs: vec![run(0x1000, 2), run(0x7fff_0000_0000, 1 << 20)],
        };
        map.write(&path).unwrap();
        assert_eq!(PageMap::read(&path).unwrap(), map);
        assert_eq!(map.pages_path(dir.path()), dir.path().join("pages-3.img"));
        // More than older versions can say is said twice.
        let long = PageMap {
            file: 3,
            runs: vec![run(0x1000, MOST + 5)],
        };
        long.write(&path).unwrap();
        let read = PageMap::read(&path).unwrap();
        assert_eq!(read.runs, [run(0x1000, MOST), run(0x1000 + MOST * PAGE, 5)]);
        std::fs::write(&path, magics(PAGEMAP)).unwrap();
        PageMap::read(&path).unwrap_err();
        let with_flags = |flags| {
            let mut bytes = magics(PAGEMAP).to_vec();
            let entry = RunEntry {
                address: PAGE,
                few: 1,
                in_parent: None,
                flags: Some(flags),
                count: None,
            };
            for message in [Head { pages: 1 }.encode_to_vec(), entry.encode_to_vec()] {
                bytes.extend((message.len() as u32).to_le_bytes());
                bytes.extend(message);
            }
            std::fs::write(&path, bytes).unwrap();
            PageMap::read(&path)
        };
        assert_eq!(with_flags(PRESENT | LAZY).unwrap().runs, [run(PAGE, 1)]);
        // In a parent, in nothing at all.
        with_flags(1).unwrap_err();
        with_flags(LAZY).unwrap_err();
    }

    #[test]
    fn areas_are_told_apart() {
        let entry = |status, flags| Entry {
            start: PAGE,
            end: 3 * PAGE,
            protection: 1,
            flags,
            status,
        };
        let kind = |status, flags| entry(status, flags).area().kind;
        assert_eq!(kind(REGULAR | ANON_PRIVATE, 0x22), Kind::Private);
        assert_eq!(kind(REGULAR | FILE_PRIVATE, 0x02), Kind::Private);
        // Of a memfd.
        assert_eq!(kind(REGULAR | FILE_PRIVATE | 1 << 14, 0x02), Kind::Private);
        assert_eq!(kind(GUARD, 0), Kind::Guard);
        for status in [
            VDSO | ANON_PRIVATE,
            VVAR | ANON_PRIVATE,
            AIO_RING | ANON_PRIVATE,
        ] {
            assert_eq!(kind(REGULAR | status, 0x22), Kind::Other);
        }
        // Shared, by a name or without.
        assert_eq!(kind(REGULAR | 1 << 7 | 1 << 14, 0x01), Kind::Other);
        assert_eq!(kind(REGULAR | 1 << 8, 0x21), Kind::Other);
        assert_eq!(kind(REGULAR | ANON_PRIVATE, 0x28), Kind::Other);
        let dir = tempfile::tempdir().unwrap();
        write_private(dir.path(), 12, PAGE..3 * PAGE);
        std::fs::write(dir.path().join("mm-x.img"), b"").unwrap();
        assert_eq!(processes(dir.path()).unwrap(), [12]);
        let found = areas(dir.path(), 12).unwrap();
        let area = Area {
            addresses: PAGE..3 * PAGE,
            kind: Kind::Private,
            readable: true,
        };
        assert_eq!(found, [area]);
        let error = areas(dir.path(), 13).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_a_map(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("pagemap-1.img");
            std::fs::write(&path, [&magics(PAGEMAP)[..], &tail].concat()).unwrap();
            let _ = PageMap::read(&path);
        }
    }
}
