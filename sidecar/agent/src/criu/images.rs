//! The processes and open files that an image would bring back, as far as it matters who may have them: parts of CRIU's
//! `images/*.proto`.
//!
//! An image file is magic numbers and then messages, each after its length. `core-*.img` has one message, of a thread;
//! `files.img` has one for each open or mapped file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use prost::Message;

/// `IMG_COMMON_MAGIC`.
const COMMON: u32 = 0x5456_4319;
const CORE: u32 = 0x5505_3847;
const REMAPS: u32 = 0x5913_3954;
/// The magic number of `files.img`.
pub(super) const FILES: u32 = 0x5630_3138;
/// The name of the image of open files.
pub(super) const FILES_NAME: &str = "files.img";
/// The most bytes of one image that are read here.
const MOST: u64 = 256 << 20;

/// `TASK_DEAD` and `TASK_ZOMBIE` of CRIU's `task_state`.
const DEAD: [u32; 2] = [2, 6];

#[derive(Clone, PartialEq, Message)]
struct Task {
    #[prost(uint32, required, tag = "1")]
    state: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Core {
    #[prost(message, optional, tag = "3")]
    task: Option<Task>,
    #[prost(message, optional, tag = "5")]
    thread: Option<Thread>,
}

#[derive(Clone, PartialEq, Message)]
struct Thread {
    #[prost(message, optional, tag = "10")]
    credentials: Option<Credentials>,
}

/// `creds_entry`: who a thread is.
#[derive(Clone, PartialEq, Message)]
pub struct Credentials {
    #[prost(uint32, required, tag = "1")]
    uid: u32,
    #[prost(uint32, required, tag = "2")]
    gid: u32,
    #[prost(uint32, required, tag = "3")]
    euid: u32,
    #[prost(uint32, required, tag = "4")]
    egid: u32,
    #[prost(uint32, required, tag = "5")]
    suid: u32,
    #[prost(uint32, required, tag = "6")]
    sgid: u32,
    #[prost(uint32, required, tag = "7")]
    fsuid: u32,
    #[prost(uint32, required, tag = "8")]
    fsgid: u32,
    #[prost(uint32, repeated, tag = "10")]
    permitted: Vec<u32>,
    #[prost(uint32, repeated, tag = "11")]
    effective: Vec<u32>,
    #[prost(uint32, repeated, tag = "14")]
    groups: Vec<u32>,
    #[prost(uint32, repeated, tag = "19")]
    ambient: Vec<u32>,
}

impl Credentials {
    /// All user ids of the thread: real, effective, saved and of the file system.
    pub fn users(&self) -> [u32; 4] {
        [self.uid, self.euid, self.suid, self.fsuid]
    }

    /// All group ids of the thread, supplementary ones included.
    pub fn groups(&self) -> impl Iterator<Item = u32> {
        [self.gid, self.egid, self.sgid, self.fsgid]
            .into_iter()
            .chain(self.groups.iter().copied())
    }

    /// Whether it has a capability.
    pub fn has_capabilities(&self) -> bool {
        // What is inheritable alone is nothing.
        let sets = [&self.permitted, &self.effective, &self.ambient];
        sets.into_iter().flatten().any(|&bits| bits != 0)
    }
}

#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(uint32, required, tag = "2")]
    id: u32,
    #[prost(message, optional, tag = "3")]
    regular: Option<Regular>,
    #[prost(message, optional, tag = "16")]
    unix: Option<Unix>,
}

#[derive(Clone, PartialEq, Message)]
struct Regular {
    #[prost(uint32, required, tag = "2")]
    flags: u32,
    #[prost(bytes = "vec", required, tag = "6")]
    name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Unix {
    #[prost(bytes = "vec", required, tag = "11")]
    name: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "14")]
    directory: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "15")]
    deleted: Option<bool>,
}

/// `remap-fpath.img`: a file that is opened otherwise than by its name.
#[derive(Clone, PartialEq, Message)]
struct Remap {
    #[prost(uint32, required, tag = "1")]
    id: u32,
    #[prost(uint32, required, tag = "2")]
    to: u32,
    #[prost(uint32, optional, tag = "3")]
    kind: Option<u32>,
}

impl Remap {
    /// The number of the file's ghost image, if the file no longer had a name: `GHOST`.
    fn ghost(&self) -> Option<u32> {
        match self.kind {
            Some(1) => Some(self.to),
            None if self.to & Self::IS_GHOST != 0 => Some(self.to & !Self::IS_GHOST),
            _ => None,
        }
    }

    /// The file by whose name it is opened: `LINKED`.
    fn linked(&self) -> Option<u32> {
        let is_linked = self.kind == Some(0) || self.kind.is_none() && self.ghost().is_none();
        is_linked.then_some(self.to)
    }

    /// Before there were kinds.
    const IS_GHOST: u32 = 1 << 31;
}

pub(super) fn damaged(path: &Path) -> io::Error {
    let text = format!("{} of the CPU image cannot be understood", path.display());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// The messages of an image file of this kind.
pub(super) fn read<M: Message + Default>(path: &Path, magic: u32) -> io::Result<Vec<M>> {
    messages(&bytes(path)?, magic).ok_or_else(|| damaged(path))
}

/// An image file, if it is not larger than any that is read here.
pub(super) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.len() > MOST {
        return Err(damaged(path));
    }
    std::fs::read(path)
}

fn messages<M: Message + Default>(bytes: &[u8], magic: u32) -> Option<Vec<M>> {
    let messages = split(bytes, magic)?.into_iter();
    messages.map(|message| M::decode(message).ok()).collect()
}

/// The beginning of an image file of this kind.
pub(super) fn magics(magic: u32) -> [u8; 8] {
    let mut both = [0; 8];
    both[..4].copy_from_slice(&COMMON.to_le_bytes());
    both[4..].copy_from_slice(&magic.to_le_bytes());
    both
}

/// The messages of an image file of this kind as they stand there; `None`: it is not one.
pub(super) fn split(bytes: &[u8], magic: u32) -> Option<Vec<&[u8]>> {
    let mut rest = bytes.strip_prefix(&magics(magic))?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (message, after) = after.split_at_checked(length)?;
        rest = after;
        found.push(message);
    }
    Some(found)
}

/// Who the threads of an image would be. `images` is CRIU's directory.
///
/// # Errors
/// The error of the file system; [`io::ErrorKind::InvalidData`] for what is not understood, or does not say it.
pub fn credentials(images: &Path) -> io::Result<Vec<Credentials>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(images)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if !name.is_some_and(|name| name.starts_with("core-") && name.ends_with(".img")) {
            continue;
        }
        for core in read::<Core>(&path, CORE)? {
            // Nothing of a process that has ended and was not waited for runs again.
            let is_dead = core.task.is_some_and(|task| DEAD.contains(&task.state));
            if is_dead && core.thread.is_none() {
                continue;
            }
            let credentials = core.thread.and_then(|thread| thread.credentials);
            found.push(credentials.ok_or_else(|| damaged(&path))?);
        }
    }
    if found.is_empty() {
        return Err(damaged(&images.join("core-*.img")));
    }
    Ok(found)
}

/// The absolute paths that CRIU would use.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Files that CRIU would open.
    pub opened: Vec<Opened>,
    /// Sockets that CRIU would bind, with their paths.
    pub bound: Vec<Bound>,
}

/// A file that is opened by its name.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its path. The kernel has resolved it: there were no links in it.
    pub path: PathBuf,
    /// The flags that it is opened with (`O_RDWR` and the like).
    pub flags: u32,
}

/// A name of a socket.
#[derive(Debug, PartialEq, Eq)]
pub struct Bound {
    /// The path as the program gave it, which may be relative.
    pub path: PathBuf,
    /// Whether it is there afterwards: a name that the job had removed CRIU removes again.
    pub stays: bool,
}

fn remaps(images: &Path) -> io::Result<Vec<Remap>> {
    match read(&images.join("remap-fpath.img"), REMAPS) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        remaps => remaps,
    }
}

/// The files without a name, by the numbers of their images, and the names that they had. One may have had several.
///
/// # Errors
/// As for [`credentials`].
pub(super) fn nameless(images: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let remaps = remaps(images)?;
    if remaps.is_empty() {
        return Ok(Vec::new());
    }
    let image = images.join(FILES_NAME);
    let files = read::<File>(&image, FILES)?;
    let names: BTreeMap<u32, Vec<u8>> = (files.into_iter())
        .filter_map(|file| Some((file.id, file.regular?.name)))
        .collect();
    let mut found = Vec::new();
    for remap in remaps {
        let Some(id) = remap.ghost() else { continue };
        let name = names.get(&remap.id).ok_or_else(|| damaged(&image))?;
        let name = OsString::from_vec(name.clone());
        found.push((id, Path::new("/").join(name)));
    }
    Ok(found)
}

/// What CRIU would open, make or bind.
///
/// # Errors
/// As for [`credentials`].
pub fn paths(images: &Path) -> io::Result<Paths> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let as_path = |bytes: Vec<u8>| PathBuf::from(OsString::from_vec(bytes));
    let image = images.join(FILES_NAME);
    let files = read::<File>(&image, FILES)?;
    // CRIU would look for them in images of an older form.
    if files.is_empty() {
        return Err(damaged(&image));
    }
    let remaps = remaps(images)?;
    // The others CRIU opens by their names all the same.
    let (mut ghosts, mut linked) = (BTreeSet::new(), BTreeMap::new());
    for remap in &remaps {
        if remap.ghost().is_some() {
            ghosts.insert(remap.id);
        } else if let Some(to) = remap.linked() {
            linked.insert(remap.id, to);
        }
    }
    let names: BTreeMap<u32, Vec<u8>> = (files.iter())
        .filter_map(|file| Some((file.id, file.regular.as_ref()?.name.clone())))
        .collect();
    let mut found = Paths::default();
    for file in files {
        if let Some(regular) = file.regular.filter(|_| !ghosts.contains(&file.id)) {
            let name = match linked.get(&file.id) {
                Some(to) => names.get(to).ok_or_else(|| damaged(&image))?.clone(),
                None => regular.name,
            };
            found.opened.push(Opened {
                path: Path::new("/").join(as_path(name)),
                flags: regular.flags,
            });
        }
        // Names that begin with a zero byte are in no directory, and one without a name is nowhere.
        if let Some(unix) = file.unix
            && unix.name.first().is_some_and(|&first| first != 0)
        {
            let mut name = unix.name;
            while name.last() == Some(&0) {
                name.pop();
            }
            let directory = as_path(unix.directory.unwrap_or_default());
            found.bound.push(Bound {
                path: Path::new("/").join(directory).join(as_path(name)),
                stays: unix.deleted != Some(true),
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn image(magic: u32, all: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = magics(magic).to_vec();
        for message in all {
            bytes.extend((message.len() as u32).to_le_bytes());
            bytes.extend(message);
        }
        bytes
    }

    /// Those of a user and its group alone.
    pub(crate) fn of_user(user: u32) -> Credentials {
        Credentials {
            uid: user,
            gid: user,
            euid: user,
            egid: user,
            suid: user,
            sgid: user,
            fsuid: user,
            fsgid: user,
            permitted: vec![0, 0],
            effective: vec![0, 0],
            groups: vec![user],
            ambient: vec![],
        }
    }

    /// The same with a saved user, an effective group, a supplementary one or a capability.
    pub(crate) fn strangers(user: u32) -> [Credentials; 4] {
        let own = || of_user(user);
        [
            Credentials { suid: 0, ..own() },
            Credentials { egid: 0, ..own() },
            Credentials {
                groups: vec![user, 0],
                ..own()
            },
            Credentials {
                ambient: vec![0, 1],
                ..own()
            },
        ]
    }

    fn regular_file(id: u32, regular: Regular) -> Vec<u8> {
        File {
            id,
            regular: Some(regular),
            unix: None,
        }
        .encode_to_vec()
    }

    fn unix_file(unix: Unix) -> Vec<u8> {
        File {
            id: 1,
            regular: None,
            unix: Some(unix),
        }
        .encode_to_vec()
    }

    /// Images of threads, of files with the flags that they are opened with, and of sockets.
    pub(crate) fn write(
        images: &Path,
        threads: &[Credentials],
        files: &[(&Path, i32)],
        sockets: &[&Path],
    ) {
        for (n, thread) in threads.iter().enumerate() {
            let thread = Thread {
                credentials: Some(thread.clone()),
            };
            let core = Core {
                task: Some(Task { state: 1 }),
                thread: Some(thread),
            };
            let bytes = image(CORE, &[core.encode_to_vec()]);
            std::fs::write(images.join(format!("core-{n}.img")), bytes).unwrap();
        }
        let file = |&(path, flags): &(&Path, i32)| {
            let regular = Regular {
                flags: flags.cast_unsigned(),
                name: path.as_os_str().as_encoded_bytes().to_vec(),
            };
            regular_file(1, regular)
        };
        let socket = |path: &&Path| {
            unix_file(Unix {
                name: path.as_os_str().as_encoded_bytes().to_vec(),
                directory: None,
                deleted: None,
            })
        };
        let all: Vec<Vec<u8>> = (files.iter().map(file))
            .chain(sockets.iter().map(socket))
            .collect();
        std::fs::write(images.join(FILES_NAME), image(FILES, &all)).unwrap();
    }

    /// By the kinds of `remap_type`: of files with other names, without a name, of `/proc`.
    const LINKED: u32 = 0;
    const GHOST: u32 = 1;
    const PROCFS: u32 = 2;

    fn write_remap(images: &Path, all: &[(u32, u32, Option<u32>)]) {
        let remap = |&(id, to, kind)| Remap { id, to, kind }.encode_to_vec();
        let all: Vec<Vec<u8>> = all.iter().map(remap).collect();
        std::fs::write(images.join("remap-fpath.img"), image(REMAPS, &all)).unwrap();
    }

    /// Files without a name: their number, that of their image, the name that they had.
    pub(crate) fn write_remaps(images: &Path, all: &[(u32, u32, &str)]) {
        let ghosts = all.iter().map(|&(id, to, _)| (id, to, Some(GHOST)));
        write_remap(images, &ghosts.collect::<Vec<_>>());
        let file = |&(id, _, name): &(u32, u32, &str)| {
            let name = name.trim_start_matches('/').as_bytes().to_vec();
            regular_file(id, Regular { flags: 0, name })
        };
        let files: Vec<Vec<u8>> = all.iter().map(file).collect();
        std::fs::write(images.join(FILES_NAME), image(FILES, &files)).unwrap();
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        credentials(dir.path()).unwrap_err();
        let threads = [of_user(7), strangers(7)[3].clone()];
        write(
            dir.path(),
            &threads,
            &[
                (Path::new("/a/b"), libc::O_RDWR),
                (Path::new("c"), libc::O_RDONLY),
            ],
            &[],
        );
        let found = credentials(dir.path()).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found.contains(&threads[0]) && found.contains(&threads[1]));
        assert_eq!(found.iter().filter(|one| one.has_capabilities()).count(), 1);
        let opened = |path: &str, flags: i32| Opened {
            path: path.into(),
            flags: flags.cast_unsigned(),
        };
        assert_eq!(
            paths(dir.path()).unwrap().opened,
            [opened("/a/b", libc::O_RDWR), opened("/c", libc::O_RDONLY)]
        );
        let unix = |name: &[u8], directory: Option<&str>, deleted| {
            unix_file(Unix {
                name: name.to_vec(),
                directory: directory.map(|d| d.into()),
                deleted,
            })
        };
        let all = [
            unix(b"\0abstract", None, None),
            unix(b"", None, None),
            unix(b"/run/a.sock\0", None, Some(false)),
            unix(b"b.sock", Some("/work"), Some(true)),
        ];
        std::fs::write(dir.path().join(FILES_NAME), image(FILES, &all)).unwrap();
        let bound = |path: &str, stays| Bound {
            path: path.into(),
            stays,
        };
        assert_eq!(
            paths(dir.path()).unwrap().bound,
            [bound("/run/a.sock", true), bound("/work/b.sock", false)]
        );
        // A file that had lost its name is not opened by it.
        let regular = |id, name: &str| {
            let name = name.as_bytes().to_vec();
            regular_file(id, Regular { flags: 0, name })
        };
        let all = [regular(7, "gone"), regular(8, "here")];
        std::fs::write(dir.path().join(FILES_NAME), image(FILES, &all)).unwrap();
        write_remap(dir.path(), &[(7, 1, Some(GHOST))]);
        assert_eq!(paths(dir.path()).unwrap().opened, [opened("/here", 0)]);
        // By another name than its own, as it was open; of a process of /proc by its own name, whatever stands there.
        let regular = |id, name: &str, flags: i32| {
            let name = name.as_bytes().to_vec();
            let flags = flags.cast_unsigned();
            regular_file(id, Regular { flags, name })
        };
        let all = [
            regular(7, "log", libc::O_RDWR),
            regular(8, "link_remap.3", libc::O_RDONLY),
            regular(9, "etc/shadow", libc::O_RDONLY),
        ];
        std::fs::write(dir.path().join(FILES_NAME), image(FILES, &all)).unwrap();
        for kind in [Some(LINKED), None] {
            write_remap(dir.path(), &[(7, 8, kind), (9, 1, Some(PROCFS))]);
            assert_eq!(
                paths(dir.path()).unwrap().opened,
                [
                    opened("/link_remap.3", libc::O_RDWR),
                    opened("/link_remap.3", libc::O_RDONLY),
                    opened("/etc/shadow", libc::O_RDONLY)
                ]
            );
            assert_eq!(nameless(dir.path()).unwrap(), []);
        }
        write_remap(dir.path(), &[(7, 1 << 31 | 5, None)]);
        assert_eq!(nameless(dir.path()).unwrap(), [(5, "/log".into())]);
        write_remap(dir.path(), &[(70, 1, Some(GHOST))]);
        nameless(dir.path()).unwrap_err();
        write_remap(dir.path(), &[(7, 80, Some(LINKED))]);
        paths(dir.path()).unwrap_err();
        std::fs::write(dir.path().join(FILES_NAME), image(FILES, &[])).unwrap();
        paths(dir.path()).unwrap_err();
        // One that has ended says nothing, and one that runs has to say who it is.
        for (state, is_well) in [(2, true), (6, true), (1, false)] {
            let task = Some(Task { state });
            let silent = Core { task, thread: None }.encode_to_vec();
            std::fs::write(dir.path().join("core-9.img"), image(CORE, &[silent])).unwrap();
            assert_eq!(credentials(dir.path()).is_ok(), is_well, "{state}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_an_image(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let bytes = image(CORE, &[]);
            let _ = messages::<Core>(&[&bytes[..], &tail].concat(), CORE);
            let _ = messages::<File>(&tail, FILES);
        }
    }
}
