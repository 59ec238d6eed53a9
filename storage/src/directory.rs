//! A directory as a store. Everything but reading and listing is `object_store`'s, which follows links where it writes and deletes.
//!
//! # Rules
//!
//! * What is read is a regular file, and lies where its key says: who may write to the store could put a named pipe there, which
//!   never answers, or a link to any file that phos-ft may read. The store's own directory may be a link.
//! * What is neither is a fault of the kind [`FaultKind::Foreign`](crate::FaultKind::Foreign): as good as damaged.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// What has the name of an object and is none.
#[derive(Debug, thiserror::Error)]
#[error("{name} is {kind}, which is not read")]
pub(crate) struct NotAFile {
    name: String,
    kind: &'static str,
}

/// A directory as a store.
#[derive(Debug)]
pub(crate) struct Directory {
    inner: LocalFileSystem,
    root: PathBuf,
}

impl Directory {
    pub(crate) fn new(inner: LocalFileSystem, root: PathBuf) -> Self {
        Self { inner, root }
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

fn kind_of(kind: FileType) -> &'static str {
    match kind {
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Directory => "a directory",
        _ => "something else",
    }
}

fn failed(source: io::Error) -> Error {
    Error::Generic {
        store: "directory",
        source: Box::new(source),
    }
}

/// An error that says what has the name of an object and is none.
fn foreign(name: &str, kind: &'static str) -> Error {
    let name = name.to_owned();
    failed(io::Error::other(NotAFile { name, kind }))
}

fn missing(location: &str) -> Error {
    Error::NotFound {
        path: location.to_owned(),
        source: io::Error::from(io::ErrorKind::NotFound).into(),
    }
}

/// The directory of these parts of a key, by a way without links.
fn directory_of(root: &std::path::Path, parts: &[&str]) -> Result<OwnedFd> {
    let look = |e: Errno| match e {
        Errno::NOENT => missing(&parts.join("/")),
        e => failed(e.into()),
    };
    let way = OFlags::PATH | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(root, way | OFlags::DIRECTORY, Mode::empty()).map_err(look)?;
    for &part in parts {
        at = rustix::fs::openat(&at, part, way | OFlags::NOFOLLOW, Mode::empty()).map_err(look)?;
        let found = rustix::fs::fstat(&at).map_err(look)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        if kind != FileType::Directory {
            return Err(foreign(part, kind_of(kind)));
        }
    }
    Ok(at)
}

/// Opens the regular file of a key, by a way without links.
fn open(root: &std::path::Path, location: &Path) -> Result<File> {
    let parts: Vec<_> = location.parts().collect();
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    let (last, above) = parts
        .split_last()
        .ok_or_else(|| missing(location.as_ref()))?;
    let at = directory_of(root, above)?;
    // Without waiting for a pipe's other end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::openat(&at, *last, flags | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Err(missing(location.as_ref())),
        Err(Errno::LOOP) => return Err(foreign(last, kind_of(FileType::Symlink))),
        Err(Errno::NXIO) => return Err(foreign(last, "a socket or a device")),
        opened => File::from(opened.map_err(|e| failed(e.into()))?),
    };
    let found = rustix::fs::fstat(&file).map_err(|e| failed(e.into()))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(file),
        // That a key goes on below this one is no object of this key.
        FileType::Directory => Err(missing(location.as_ref())),
        kind => Err(foreign(last, kind_of(kind))),
    }
}

/// What is not there has nothing in it; who looks may be one of several that add and delete.
fn if_there<T>(looked: io::Result<T>) -> Result<Option<T>> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed(e)),
    }
}

/// The regular files below a key, where no link leads. What cannot be a key, or is on its way to become an object, is none.
fn files_below(root: &std::path::Path, prefix: Path) -> Result<Vec<ObjectMeta>> {
    let parts: Vec<_> = prefix.parts().collect();
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match directory_of(root, &parts) {
        Err(Error::NotFound { .. }) => return Ok(Vec::new()),
        looked => looked.map(drop)?,
    }
    let mut found = Vec::new();
    let mut left = vec![prefix];
    while let Some(at) = left.pop() {
        let Some(entries) = if_there(std::fs::read_dir(root.join(at.as_ref())))? else {
            continue;
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| is_name(name)) else {
                continue;
            };
            let location = at.clone().join(name);
            // Of a link, what it is itself.
            let Some(meta) = if_there(entry.metadata())? else {
                continue;
            };
            if meta.is_dir() {
                left.push(location);
            } else if meta.is_file() {
                found.push(ObjectMeta {
                    size: meta.len(),
                    last_modified: meta.modified().unwrap_or(UNIX_EPOCH).into(),
                    e_tag: None,
                    version: None,
                    location,
                });
            }
        }
    }
    Ok(found)
}

/// Whether a file can be an object: of those that are being written, `object_store` has the names end in `#` and a number.
fn is_name(name: &str) -> bool {
    let is_staged = |(_, number): (&str, &str)| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    };
    !name.rsplit_once('#').is_some_and(is_staged)
}

#[async_trait::async_trait]
impl ObjectStore for Directory {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (root, location) = (self.root.clone(), location.clone());
        let opened = tokio::task::spawn_blocking(move || {
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
        });
        opened.await.map_err(|source| Error::JoinError { source })?
    }

    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let root = self.root.clone();
        let prefix = prefix.cloned().unwrap_or_default();
        let listed = async move {
            let looked = tokio::task::spawn_blocking(move || files_below(&root, prefix));
            let found = looked
                .await
                .map_err(|source| Error::JoinError { source })??;
            Ok::<_, Error>(stream::iter(found.into_iter().map(Ok)))
        };
        stream::once(listed).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use object_store::ObjectStoreExt;

    use super::*;

    fn store(root: &std::path::Path) -> Directory {
        let inner = LocalFileSystem::new_with_prefix(root).unwrap();
        Directory::new(inner, root.to_owned())
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
            assert!(fault.to_string().contains("which is not read"), "{fault}");
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
}
