//! A directory as a store.
//!
//! # Rules
//!
//! * Every way below the store's own directory goes through descriptors that are opened one name after the other, none of them
//!   through a link: anyone who may write to the store could put one there that leads to any file or directory that phos-ft may
//!   read or write. The store's own directory may be a link. No part of a key is `..`.
//! * Only regular files are read: a named pipe would never answer.
//! * Anything else is a fault of the kind [`FaultKind::Foreign`](crate::FaultKind::Foreign): as good as damaged. Where an object
//!   would be replaced or deleted, a link in its place is replaced or deleted itself.
//!
//! # Crash consistency
//!
//! An object is written beside its place, under its name with `#` and a number, synchronised, and moved or linked to its place;
//! then the directory is synchronised, and so were those that had to be made. [`staged_below`] finds what a process leaves of
//! this when it dies. Directories that a deletion leaves empty are removed.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result, UploadPart,
};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::fault::NotAFile;
use crate::private::make_private;

/// Objects deleted at once.
const DELETES: usize = 10;

/// A directory as a store.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(crate) const fn new(root: PathBuf) -> Self {
        Self { root }
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root.display())
    }
}

fn kind_of(kind: FileType) -> &'static str {
    match kind {
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Directory => "a directory",
        FileType::RegularFile => "a file",
        FileType::Unknown => "something else",
    }
}

fn failed(source: impl Into<io::Error>) -> Error {
    Error::Generic {
        store: "directory",
        source: Box::new(source.into()),
    }
}

/// An error that says what has the name of an object and is none.
fn foreign(name: &str, kind: &'static str) -> Error {
    let name = name.to_owned();
    failed(io::Error::other(NotAFile::Object { name, kind }))
}

fn missing(location: &str) -> Error {
    Error::NotFound {
        path: location.to_owned(),
        source: io::Error::from(io::ErrorKind::NotFound).into(),
    }
}

fn names(location: &Path) -> Vec<String> {
    let parts = location.parts();
    parts.map(|part| part.as_ref().to_owned()).collect()
}

/// Splits a location into the directories on the way to it and its own name.
fn split(location: &Path) -> Result<(Vec<String>, String)> {
    let mut parts = names(location);
    let last = parts.pop().ok_or_else(|| missing(location.as_ref()))?;
    Ok((parts, last))
}

/// The directory below the root that these names lead to one after the other, by a way without links.
fn directory_of(root: &FilePath, parts: &[String]) -> Result<OwnedFd> {
    let look = |e: Errno| match e {
        Errno::NOENT => missing(&parts.join("/")),
        e => failed(e),
    };
    let mut at = open_root(root).map_err(look)?;
    for (depth, part) in (1..).zip(parts) {
        at = enter(&at, part).map_err(|e| blocked(&at, parts, depth, e, look))?;
    }
    Ok(at)
}

fn open_root(root: &FilePath) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(root, flags, Mode::empty())
}

/// Opens a directory in another one.
fn enter(at: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Opens the same directory anew, to be read or synchronised.
fn reopen(at: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(at, ".", flags, Mode::empty())
}

/// What was made, renamed or linked in a directory lasts.
fn sync(at: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::fsync(reopen(at)?)
}

/// Why the `depth`th of these names, in the directory `at`, could not be entered.
fn blocked(
    at: &OwnedFd,
    parts: &[String],
    depth: usize,
    error: Errno,
    look: impl Fn(Errno) -> Error,
) -> Error {
    let (Errno::NOTDIR | Errno::LOOP, Some(way)) = (error, parts.get(..depth)) else {
        return look(error);
    };
    let found = way.last().map(|name| look_at(at, name));
    match found {
        Some(Ok(found)) => failed(io::Error::other(NotAFile::Way {
            name: way.join("/"),
            kind: kind_of(FileType::from_raw_mode(found.st_mode)),
        })),
        _ => look(error),
    }
}

/// What a name in a directory is; of a link, what it is itself.
fn look_at(at: &OwnedFd, name: impl rustix::path::Arg) -> rustix::io::Result<Stat> {
    rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// As [`directory_of`]; what is missing is made, and lasts.
fn make_directory(root: &FilePath, parts: &[String]) -> Result<OwnedFd> {
    let mut at = match open_root(root) {
        Err(Errno::NOENT) => {
            make_private(root).map_err(failed)?;
            open_root(root)
        }
        opened => opened,
    }
    .map_err(failed)?;
    for (depth, part) in (1..).zip(parts) {
        let mut entered = enter(&at, part);
        if entered.as_ref().err() == Some(&Errno::NOENT) {
            match rustix::fs::mkdirat(&at, part.as_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => sync(&at).map_err(failed)?,
                Err(e) => return Err(failed(e)),
            }
            entered = enter(&at, part);
        }
        at = entered.map_err(|e| blocked(&at, parts, depth, e, failed))?;
    }
    Ok(at)
}

/// Opens the regular file of a key, by a way without links.
fn open(root: &FilePath, location: &Path) -> Result<File> {
    let (above, last) = split(location)?;
    let at = directory_of(root, &above)?;
    // Without waiting for a pipe's other end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = rustix::fs::openat(&at, last.as_str(), flags | OFlags::CLOEXEC, Mode::empty());
    let file = match opened {
        Err(Errno::NOENT) => return Err(missing(location.as_ref())),
        Err(Errno::LOOP) => return Err(foreign(&last, kind_of(FileType::Symlink))),
        Err(Errno::NXIO) => return Err(foreign(&last, "a socket or a device")),
        opened => File::from(opened.map_err(failed)?),
    };
    let found = rustix::fs::fstat(&file).map_err(failed)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(file),
        // That a key goes on below this one is no object of this key.
        FileType::Directory => Err(missing(location.as_ref())),
        kind => Err(foreign(&last, kind_of(kind))),
    }
}

/// An object beside its place, on its way there. What is not published is removed with it.
struct Staged {
    at: OwnedFd,
    file: Option<File>,
    /// Under which it is written.
    staged: String,
    /// The object's name in its directory.
    name: String,
    location: Path,
    is_published: bool,
}

impl Staged {
    fn new(root: &FilePath, location: &Path) -> Result<Self> {
        let (above, name) = split(location)?;
        if !is_name(&name) {
            return Err(failed(io::Error::new(
                io::ErrorKind::InvalidFilename,
                format!("{name} is the name of an object that is being written"),
            )));
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut number = 1_u64;
        let mut at = make_directory(root, &above)?;
        loop {
            let staged = format!("{name}#{number}");
            match rustix::fs::openat(&at, staged.as_str(), flags, Mode::from_raw_mode(0o666)) {
                Ok(file) => {
                    return Ok(Self {
                        at,
                        file: Some(file.into()),
                        staged,
                        name,
                        location: location.clone(),
                        is_published: false,
                    });
                }
                Err(Errno::EXIST) => number += 1,
                // Whoever deleted the last object in it removed it meanwhile.
                Err(Errno::NOENT) => at = make_directory(root, &above)?,
                Err(e) => return Err(failed(e)),
            }
        }
    }

    fn file(&self) -> Result<&File> {
        self.file
            .as_ref()
            .ok_or_else(|| failed(io::Error::other("it was completed or given up already")))
    }

    /// Makes it the object: in place of another one, or only if there is none.
    fn publish(mut self, mode: &PutMode) -> Result<()> {
        self.file()?.sync_all().map_err(failed)?;
        // Some file systems in user space store what was written when it is closed.
        drop(self.file.take());
        let (at, staged, name) = (&self.at, self.staged.as_str(), self.name.as_str());
        match mode {
            PutMode::Create => match rustix::fs::linkat(at, staged, at, name, AtFlags::empty()) {
                Err(Errno::EXIST) => {
                    return Err(Error::AlreadyExists {
                        path: self.location.to_string(),
                        source: io::Error::from(Errno::EXIST).into(),
                    });
                }
                linked => linked.map_err(failed)?,
            },
            _ => {
                rustix::fs::renameat(at, staged, at, name).map_err(failed)?;
                // Nothing is left of it, and its name may be that of another one now.
                self.is_published = true;
            }
        }
        sync(&self.at).map_err(failed)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_published {
            // What stays is found by the next collection.
            let _ = rustix::fs::unlinkat(&self.at, self.staged.as_str(), AtFlags::empty());
        }
    }
}

/// An object that comes in parts.
struct Upload {
    staged: Option<Arc<Staged>>,
    /// The offset at which the next part begins, in bytes.
    next: u64,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload({:?})", self.staged.as_ref().map(|s| &s.location))
    }
}

#[async_trait::async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let mut at = self.next;
        self.next += data.content_length() as u64;
        let staged = self.staged.clone();
        Box::pin(blocking(move || {
            let staged = staged.ok_or_else(|| missing("the upload"))?;
            for piece in data.iter() {
                staged.file()?.write_all_at(piece, at).map_err(failed)?;
                at += piece.len() as u64;
            }
            Ok(())
        }))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let staged = self.staged.take();
        blocking(move || {
            let staged = staged.and_then(Arc::into_inner);
            // A part that was given up may still be written.
            let staged =
                staged.ok_or_else(|| failed(io::Error::other("parts are on their way")))?;
            staged.publish(&PutMode::Overwrite)
        })
        .await?;
        Ok(done())
    }

    async fn abort(&mut self) -> Result<()> {
        let staged = self.staged.take();
        blocking(move || {
            drop(staged);
            Ok(())
        })
        .await
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(staged) = self.staged.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn_blocking(move || drop(staged));
        }
    }
}

fn done() -> PutResult {
    PutResult {
        e_tag: None,
        version: None,
        extensions: Default::default(),
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    task: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(task).await;
    done.map_err(|source| Error::JoinError { source })?
}

/// Removes a file of any kind, or a link itself.
fn delete(root: &FilePath, location: &Path) -> Result<()> {
    let (mut above, last) = split(location)?;
    let at = directory_of(root, &above)?;
    match rustix::fs::unlinkat(&at, last.as_str(), AtFlags::empty()) {
        Err(Errno::NOENT) => return Err(missing(location.as_ref())),
        unlinked => unlinked.map_err(failed)?,
    }
    // Directories that are empty now, as far as there are.
    while let Some(name) = above.pop() {
        let Ok(at) = directory_of(root, &above) else {
            break;
        };
        if rustix::fs::unlinkat(&at, name.as_str(), AtFlags::REMOVEDIR).is_err() {
            break;
        }
    }
    Ok(())
}

/// What is directly in a directory below the root that can be part of a key, or why it is not known. What vanishes meanwhile is
/// not there: several processes may add and delete at once.
fn entries(root: &FilePath, parts: &[String]) -> Result<Vec<(String, Stat)>> {
    let at = match directory_of(root, parts) {
        Err(Error::NotFound { .. }) => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut found = Vec::new();
    for entry in reopen(&at).and_then(Dir::new).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if name == "." || name == ".." {
            continue;
        }
        match look_at(&at, name) {
            Ok(stat) => found.push((name.to_owned(), stat)),
            Err(Errno::NOENT) => {}
            Err(e) => return Err(failed(e)),
        }
    }
    Ok(found)
}

fn modified(stat: &Stat) -> SystemTime {
    let since = Duration::new(
        u64::try_from(stat.st_mtime).unwrap_or(0),
        u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
    );
    UNIX_EPOCH + since
}

/// The regular files directly below a key and the directories, no links among them. What cannot be a key, or is on its way to
/// become an object, is neither.
fn look_below(root: &FilePath, prefix: &Path) -> Result<(Vec<ObjectMeta>, Vec<Path>)> {
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for (name, stat) in entries(root, &names(prefix))? {
        let location = prefix.clone().join(name.as_str());
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => directories.push(location),
            FileType::RegularFile if is_name(&name) => files.push(ObjectMeta {
                size: u64::try_from(stat.st_size).unwrap_or(0),
                last_modified: modified(&stat).into(),
                e_tag: None,
                version: None,
                location,
            }),
            _ => {}
        }
    }
    Ok((files, directories))
}

/// The regular files below a key, directly or indirectly, where no link leads.
fn files_below(root: &FilePath, prefix: &Path) -> Result<Vec<ObjectMeta>> {
    let (mut found, mut left) = look_below(root, prefix)?;
    while let Some(at) = left.pop() {
        match look_below(root, &at) {
            Ok((mut files, mut directories)) => {
                found.append(&mut files);
                left.append(&mut directories);
            }
            // It was one a moment ago.
            Err(error) if is_foreign(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn is_foreign(error: &Error) -> bool {
    crate::StoreFault::new("list", "", error).kind() == crate::FaultKind::Foreign
}

/// Whether a file can be an object: of those that are being written, the names end in `#` and a number.
fn is_name(name: &str) -> bool {
    object_of(name).is_none()
}

/// The name of the object that a file becomes once it is written.
fn object_of(staged: &str) -> Option<&str> {
    let (name, number) = staged.rsplit_once('#')?;
    let counts = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    counts.then_some(name)
}

/// A file whose writing was begun and not finished, as far as its name tells.
#[derive(Debug, Clone)]
pub(crate) struct StagedFile {
    directory: Path,
    name: String,
}

impl StagedFile {
    /// The name that the object was to have, had it been published.
    pub(crate) fn object(&self) -> &str {
        object_of(&self.name).unwrap_or_default()
    }

    /// Removes it. One that is gone counts as removed.
    pub(crate) fn remove(&self, root: &FilePath) -> Result<()> {
        let at = match directory_of(root, &names(&self.directory)) {
            Err(Error::NotFound { .. }) => return Ok(()),
            opened => opened?,
        };
        match rustix::fs::unlinkat(&at, self.name.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(failed(e)),
        }
    }
}

/// Such files directly below a key.
pub(crate) fn staged_below(root: &FilePath, directory: &Path) -> Result<Vec<StagedFile>> {
    let staged = |(name, _): (String, Stat)| {
        object_of(&name)?;
        let directory = directory.clone();
        Some(StagedFile { directory, name })
    };
    let found = entries(root, &names(directory))?;
    Ok(found.into_iter().filter_map(staged).collect())
}

fn unsupported<T>(operation: &str) -> Result<T> {
    Err(Error::NotImplemented {
        operation: operation.to_owned(),
        implementer: "a directory".to_owned(),
    })
}

#[async_trait::async_trait]
impl ObjectStore for Directory {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (root, location) = (self.root.clone(), location.clone());
        blocking(move || {
            let file = open(&root, &location)?;
            let found = file.metadata().map_err(failed)?;
            let meta = ObjectMeta {
                size: found.len(),
                last_modified: found.modified().unwrap_or(UNIX_EPOCH).into(),
                e_tag: None,
                version: None,
                location,
            };
            options.check_preconditions(&meta)?;
            let range = match options.range {
                Some(range) => range.as_range(meta.size).map_err(|source| Error::Generic {
                    store: "directory",
                    source: Box::new(source),
                })?,
                None => 0..meta.size,
            };
            let path = root.join(meta.location.as_ref());
            Ok(GetResult {
                payload: GetResultPayload::File(file, path),
                attributes: Default::default(),
                extensions: Default::default(),
                range,
                meta,
            })
        })
        .await
    }

    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if !options.attributes.is_empty() {
            return unsupported("attributes of objects");
        }
        if matches!(options.mode, PutMode::Update(_)) {
            return unsupported("replacing a version of an object");
        }
        let (root, at) = (self.root.clone(), at.clone());
        blocking(move || {
            let staged = Staged::new(&root, &at)?;
            for piece in payload.iter() {
                staged.file()?.write_all(piece).map_err(failed)?;
            }
            staged.publish(&options.mode)
        })
        .await?;
        Ok(done())
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        if !options.attributes.is_empty() {
            return unsupported("attributes of objects");
        }
        let (root, at) = (self.root.clone(), at.clone());
        let staged = blocking(move || Staged::new(&root, &at)).await?;
        Ok(Box::new(Upload {
            staged: Some(Arc::new(staged)),
            next: 0,
        }))
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let root = self.root.clone();
        let deleted = locations.map(move |location| {
            let root = root.clone();
            blocking(move || {
                let location = location?;
                delete(&root, &location)?;
                Ok(location)
            })
        });
        deleted.buffered(DELETES).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let root = self.root.clone();
        let prefix = prefix.cloned().unwrap_or_default();
        let listed = async move {
            let found = blocking(move || files_below(&root, &prefix)).await?;
            Ok::<_, Error>(stream::iter(found.into_iter().map(Ok)))
        };
        stream::once(listed).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let root = self.root.clone();
        let prefix = prefix.cloned().unwrap_or_default();
        let (objects, common_prefixes) = blocking(move || look_below(&root, &prefix)).await?;
        Ok(ListResult {
            common_prefixes,
            objects,
            extensions: Default::default(),
        })
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unsupported("copies")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use object_store::ObjectStoreExt;

    use super::*;

    fn store(root: &FilePath) -> Directory {
        Directory::new(root.to_owned())
    }

    #[tokio::test]
    async fn an_object_is_read_whole_and_in_part() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        std::fs::create_dir(&real).unwrap();
        // The store itself may be a link.
        let link = dir.path().join("link");
        symlink(&real, &link).unwrap();
        for root in [&real, &link] {
            let (store, key) = (store(root), Path::from("a/b/c"));
            store.put(&key, "content".into()).await.unwrap();
            let whole = store.get(&key).await.unwrap();
            assert_eq!(whole.meta.size, 7);
            assert_eq!(whole.bytes().await.unwrap(), "content");
            assert_eq!(store.get_range(&key, 3..5).await.unwrap(), "te");
            assert_eq!(store.get_range(&key, 3..50).await.unwrap(), "tent");
            store.get_range(&key, 8..9).await.unwrap_err();
            for none in ["a/b", "a/x", "x/y/z"] {
                let error = store.get(&Path::from(none)).await.unwrap_err();
                assert!(matches!(error, Error::NotFound { .. }), "{error}");
            }
        }
    }

    #[tokio::test]
    async fn nothing_but_a_file_is_read_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("real")).unwrap();
        std::fs::write(at("real/file"), "secret").unwrap();
        symlink(at("real"), at("link")).unwrap();
        symlink("real/file", at("file")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        let here = rustix::fs::CWD;
        rustix::fs::mknodat(here, at("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        let store = store(dir.path());
        for key in ["link/file", "file", "zero", "pipe", "socket", "pipe/below"] {
            let error = store.get(&Path::from(key)).await.unwrap_err();
            let fault = crate::StoreFault::new("read", key, &error);
            assert_eq!(fault.kind(), crate::FaultKind::Foreign, "{key}: {fault}");
            let said = fault.to_string();
            let way = key.contains('/');
            assert_eq!(said.contains("which is not read"), !way, "{said}");
            assert_eq!(said.contains("which is not followed: put a"), way, "{said}");
        }
        std::fs::write(at("real/other#12"), "staged").unwrap();
        symlink(dir.path(), at("real/up")).unwrap();
        let listed = |prefix: Option<&'static str>| {
            let prefix = prefix.map(Path::from);
            let found = store.list(prefix.as_ref());
            found
                .map_ok(|meta| format!("{} {}", meta.location, meta.size))
                .try_collect::<Vec<_>>()
        };
        assert_eq!(listed(None).await.unwrap(), ["real/file 6"]);
        assert_eq!(listed(Some("real")).await.unwrap(), ["real/file 6"]);
        assert_eq!(listed(Some("missing")).await.unwrap(), [""; 0]);
        for strange in ["link", "pipe", "link/up"] {
            let error = listed(Some(strange)).await.unwrap_err();
            let fault = crate::StoreFault::new("list", strange, &error);
            assert_eq!(fault.kind(), crate::FaultKind::Foreign, "{fault}");
        }
    }

    /// What lies in a directory: of a file its content, of anything else its kind.
    fn within(directory: &FilePath) -> Vec<(String, String)> {
        let mut found: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let kind = entry.file_type().unwrap();
                let what = match kind.is_file() {
                    true => std::fs::read_to_string(entry.path()).unwrap(),
                    false if kind.is_symlink() => "a link".to_owned(),
                    false => "a directory".to_owned(),
                };
                (entry.file_name().into_string().unwrap(), what)
            })
            .collect();
        found.sort();
        found
    }

    fn listed(found: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |&(name, what): &(&str, &str)| (name.to_owned(), what.to_owned());
        found.iter().map(owned).collect()
    }

    #[tokio::test]
    async fn nothing_is_written_or_deleted_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (outside, root) = (dir.path().join("outside"), dir.path().join("root"));
        std::fs::create_dir_all(outside.join("deep")).unwrap();
        std::fs::write(outside.join("victim"), "theirs").unwrap();
        std::fs::write(outside.join("deep/victim"), "theirs").unwrap();
        std::fs::write(outside.join("victim#1"), "staged").unwrap();
        std::fs::create_dir(&root).unwrap();
        symlink(&outside, root.join("way")).unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        symlink("../../outside/deep", root.join("real/way")).unwrap();
        let before = (within(&outside), within(&outside.join("deep")));
        let store = store(&root);

        let create = || PutOptions::from(PutMode::Create);
        for (way, key) in [
            ("way", "way/victim"),
            ("way", "way/new"),
            ("way", "way/deep/victim"),
            ("way", "way/made/new"),
            ("real/way", "real/way/victim"),
            ("real/way", "real/way/made/new"),
        ] {
            let at = Path::from(key);
            let put = store.put(&at, "ours".into()).await.map(drop);
            let created = store.put_opts(&at, "ours".into(), create()).await.map(drop);
            let begun = store.put_multipart(&at).await.map(drop);
            let deleted = store.delete(&at).await;
            for (action, done) in [
                ("write", put),
                ("create", created),
                ("write", begun),
                ("delete", deleted),
            ] {
                let fault = crate::StoreFault::new(action, key, &done.unwrap_err());
                assert_eq!(fault.kind(), crate::FaultKind::Foreign, "{key}: {fault}");
                let said = fault.to_string();
                let named =
                    format!("{way} is a symbolic link, which is not followed: put a directory");
                assert!(said.contains(&named), "{said}");
                assert!(!said.contains("not read"), "{said}");
            }
        }
        assert!(staged_below(&root, &Path::from("way")).is_err());
        assert_eq!((within(&outside), within(&outside.join("deep"))), before);
        // What was to be an object is looked at in the same way.
        let swapped = StagedFile {
            directory: Path::from("way"),
            name: "victim#1".into(),
        };
        swapped.remove(&root).unwrap_err();
        // Links are no directories of the store.
        let jobs = store.list_with_delimiter(None).await.unwrap();
        assert_eq!(jobs.common_prefixes, [Path::from("real")]);

        // In the place of an object, or of one that is being written, a link counts for itself.
        let objects = root.join("objects");
        std::fs::create_dir(&objects).unwrap();
        for name in ["put", "put#1", "created", "parts", "parts#1", "deleted"] {
            symlink(outside.join("victim"), objects.join(name)).unwrap();
        }
        let at = |name: &str| Path::from(format!("objects/{name}"));
        store.put(&at("put"), "ours".into()).await.unwrap();
        let taken = store
            .put_opts(&at("created"), "ours".into(), create())
            .await;
        assert!(matches!(taken, Err(Error::AlreadyExists { .. })));
        let mut upload = store.put_multipart(&at("parts")).await.unwrap();
        upload.put_part("ou".into()).await.unwrap();
        upload.put_part("rs".into()).await.unwrap();
        upload.complete().await.unwrap();
        store.delete(&at("deleted")).await.unwrap();
        let expected = [
            ("created", "a link"),
            ("parts", "ours"),
            ("parts#1", "a link"),
            ("put", "ours"),
            ("put#1", "a link"),
        ];
        assert_eq!(within(&objects), listed(&expected));
        for left in staged_below(&root, &Path::from("objects")).unwrap() {
            left.remove(&root).unwrap();
        }
        assert_eq!(within(&objects).len(), 3);
        assert_eq!((within(&outside), within(&outside.join("deep"))), before);
    }

    #[tokio::test]
    async fn what_is_given_up_leaves_nothing_and_what_is_deleted_takes_its_directories_along() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let store = store(&root);
        let (key, beside) = (Path::from("a/b/key"), Path::from("a/beside"));
        let mut upload = store.put_multipart(&key).await.unwrap();
        upload.put_part("part".into()).await.unwrap();
        let second = store.put_multipart(&key).await.unwrap();
        let staged = |n: &[&str]| {
            let mut found = staged_below(&root, &Path::from("a/b")).unwrap();
            found.sort_by(|a, b| a.name.cmp(&b.name));
            assert!(found.iter().all(|file| file.object() == "key"));
            assert_eq!(found.iter().map(|f| f.name.clone()).collect::<Vec<_>>(), n);
        };
        staged(&["key#1", "key#2"]);
        assert!(store.list(None).next().await.is_none());
        upload.abort().await.unwrap();
        staged(&["key#2"]);
        drop(second);
        while !staged_below(&root, &Path::from("a/b")).unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        store.put(&key, "one".into()).await.unwrap();
        store.put(&beside, "two".into()).await.unwrap();
        // A taken name is refused, and what was written for it is gone.
        let create = PutOptions::from(PutMode::Create);
        let taken = store.put_opts(&key, "other".into(), create).await;
        assert!(matches!(taken, Err(Error::AlreadyExists { .. })));
        assert_eq!(within(&root.join("a/b")), listed(&[("key", "one")]));
        store.put(&Path::from("a#1"), "x".into()).await.unwrap();
        store.put(&Path::from("a/key"), "x".into()).await.unwrap();
        store.delete(&Path::from("a#1")).await.unwrap();
        store.delete(&Path::from("a/key")).await.unwrap();
        store.delete(&key).await.unwrap();
        assert_eq!(within(&root.join("a")), listed(&[("beside", "two")]));
        let error = store.delete(&key).await.unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
        store.delete(&beside).await.unwrap();
        assert!(root.is_dir() && within(&root).is_empty());
        // The store itself may be gone meanwhile.
        std::fs::remove_dir(&root).unwrap();
        assert!(store.list(None).next().await.is_none());
        store.put(&key, "again".into()).await.unwrap();
        assert_eq!(within(&root.join("a/b")), listed(&[("key", "again")]));
    }
}
