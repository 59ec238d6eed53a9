//! What the kernel says of a process in `/proc/PID`: texts, mappings, threads.
//!
//! All of it is read as bytes, because none of it need be text: a process may call itself anything, a name is cut off after 15
//! bytes in the middle of a character, and a file may have any name. One such name must not hide the rest of what is said, which
//! is why the `procfs` crate, which reads lines as UTF-8, is not used here.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file of `/proc/PID`. What is not UTF-8 in it is replaced.
///
/// # Errors
/// The process has ended, or may not be looked at.
pub fn text(pid: u32, file: &str) -> io::Result<String> {
    text_at(&format!("/proc/{pid}/{file}"))
}

/// The same of this process. By its PID it might be another one's: the `/proc` that is mounted may be of another namespace, as
/// it is between the making of one and the mounting of its own.
///
/// # Errors
/// There is no `/proc`.
pub fn own_text(file: &str) -> io::Result<String> {
    text_at(&format!("/proc/self/{file}"))
}

fn text_at(path: &str) -> io::Result<String> {
    let bytes = std::fs::read(path)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// The value of a field of a `/proc/PID/status`, without the spaces around it. A process's name cannot be taken for one: the kernel
/// writes a line break in it as `\n`.
pub fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(field, _)| *field == name)?;
    Some(value.trim())
}

/// The threads of a process. None if it has ended.
pub fn threads(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    (tasks.into_iter().flatten().flatten())
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect()
}

/// Whether a thread of a process has a name like that.
pub fn has_thread(pid: u32, is_it: impl Fn(&str) -> bool) -> bool {
    (threads(pid).into_iter())
        .filter_map(|thread| text(pid, &format!("task/{thread}/comm")).ok())
        .any(|name| is_it(name.trim_end_matches('\n')))
}

/// A mapping of a process: a line of `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The addresses as the kernel writes them: `7fa7437f7000-7fa743ff7000`.
    addresses: String,
    /// Whether it can be written to.
    pub writable: bool,
    /// Whether what is written there is in the file.
    pub shared: bool,
    /// The file system's device number.
    pub device: u64,
    /// The file's inode, 0 without a file.
    pub inode: u64,
    /// The file's path with [`DELETED`] behind it if it was removed, or a word in brackets. Empty of anonymous memory.
    name: Vec<u8>,
}

/// What the kernel appends to a name that was removed.
pub const DELETED: &str = " (deleted)";

impl Mapping {
    /// Where it begins.
    pub fn start(&self) -> Option<u64> {
        let start = self.addresses.split('-').next()?;
        u64::from_str_radix(start, 16).ok()
    }

    /// The path of what is mapped, if it has or had one: with [`DELETED`] behind it if it was removed.
    pub fn path(&self) -> Option<&Path> {
        (self.name.starts_with(b"/")).then(|| Path::new(OsStr::from_bytes(&self.name)))
    }

    /// The path that it has.
    pub fn present(&self) -> Option<&Path> {
        self.path().filter(|_| !self.is_removed())
    }

    /// The path that it had.
    pub fn removed(&self) -> Option<&Path> {
        let name = self.name.strip_suffix(DELETED.as_bytes())?;
        (name.starts_with(b"/")).then(|| Path::new(OsStr::from_bytes(name)))
    }

    fn is_removed(&self) -> bool {
        self.name.ends_with(DELETED.as_bytes())
    }

    /// The way to the file through the process that has it mapped.
    pub fn through(&self, pid: u32) -> PathBuf {
        PathBuf::from(format!("/proc/{pid}/map_files/{}", self.addresses))
    }

    fn parse(line: &[u8]) -> Option<Self> {
        // addresses access offset device inode name
        let mut rest = line;
        let mut next = || {
            let end = rest.iter().position(|&b| b == b' ')?;
            let (field, after) = rest.split_at(end);
            rest = after.trim_ascii_start();
            std::str::from_utf8(field).ok()
        };
        let (addresses, access, _offset, on) = (next()?, next()?, next()?, next()?);
        let inode = next()?.parse().ok()?;
        let (major, minor) = on.split_once(':')?;
        let number = |text| u32::from_str_radix(text, 16).ok();
        Some(Self {
            addresses: addresses.to_owned(),
            writable: access.as_bytes().get(1) == Some(&b'w'),
            shared: access.as_bytes().get(3) == Some(&b's'),
            device: rustix::fs::makedev(number(major)?, number(minor)?),
            inode,
            name: rest.to_owned(),
        })
    }
}

/// The mappings in the text of a `/proc/PID/maps`, as they are asked for.
pub fn mappings_in(maps: &[u8]) -> impl Iterator<Item = Mapping> + '_ {
    maps.split(|&b| b == b'\n').filter_map(Mapping::parse)
}

/// Every mapping of a process.
///
/// # Errors
/// The process has ended (ESRCH), or may not be looked at.
pub fn mappings(pid: u32) -> io::Result<Vec<Mapping>> {
    let maps = std::fs::read(format!("/proc/{pid}/maps"))?;
    Ok(mappings_in(&maps).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process whose name is no text, and ends when its standard input does.
    pub(crate) fn strangely_named(directory: &Path) -> Child {
        // "entraînement" cut off inside a character, as the kernel does it, and a byte that is in no text.
        let program = directory.join(OsStr::from_bytes(b"entra\xc3\xaenemen\xff\xc3"));
        std::fs::copy("/bin/cat", &program).unwrap();
        let mut command = Command::new(&program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It has its name when it answers.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let comm = std::fs::read(format!("/proc/{}/comm", child.id())).unwrap();
        assert!(std::str::from_utf8(&comm).is_err(), "{comm:?}");
        child
    }

    #[test]
    fn a_name_that_is_no_text_hides_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut child = strangely_named(directory.path());
        let pid = child.id();
        let status = text(pid, "status").unwrap();
        assert_eq!(
            field(&status, "PPid"),
            Some(&*std::process::id().to_string())
        );
        assert!(has_thread(pid, |name| name.starts_with("entra\u{ee}nemen")));
        assert_eq!(threads(pid), [pid]);
        let program = directory.path().canonicalize().unwrap();
        let mapped = mappings(pid).unwrap();
        let program = mapped
            .iter()
            .find(|m| m.path().is_some_and(|p| p.starts_with(&program)));
        let program = program.unwrap();
        assert!(program.path().unwrap().to_str().is_none());
        assert!(program.through(pid).exists());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(text(pid, "status").is_err() && mappings(pid).is_err() && threads(pid).is_empty());
    }

    #[test]
    fn mappings_are_read_as_the_kernel_writes_them() {
        let one = |line: &str| mappings_in(line.as_bytes()).next();
        let file = one("7fa7437f7000-7fa743ff7000 rw-s 00001000 fe:01 1522   /data/a b").unwrap();
        assert_eq!(
            (file.start(), file.writable, file.shared, file.inode),
            (Some(0x7fa7_437f_7000), true, true, 1522)
        );
        assert_eq!(file.device, rustix::fs::makedev(0xfe, 1));
        assert_eq!(file.present(), Some(Path::new("/data/a b")));
        assert_eq!(file.removed(), None);
        let way = "/proc/7/map_files/7fa7437f7000-7fa743ff7000";
        assert_eq!(file.through(7), Path::new(way));
        let gone = one("1000-2000 r--p 0 00:01 9   /memfd:a b (deleted)").unwrap();
        assert!(!gone.writable && !gone.shared);
        assert_eq!(gone.removed(), Some(Path::new("/memfd:a b")));
        assert_eq!(
            (gone.path(), gone.present()),
            (Some(Path::new("/memfd:a b (deleted)")), None)
        );
        for line in [
            "1000-2000 rw-p 0 00:00 0 ",
            "1000-2000 rw-p 0 00:00 0    [heap]",
        ] {
            let memory = one(line).unwrap();
            assert_eq!((memory.path(), memory.inode), (None, 0));
        }
        assert_eq!(one(""), None);
        assert_eq!(one("1000-2000 rw-p"), None);
    }
}
