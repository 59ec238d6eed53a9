//! What `/proc` says about the job's tree: processes, memory, sockets, open files.
//!
//! Everything here reads a tree that may be running: a process that ends while it is looked at is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::image::Connections;
use crate::proc::{self, DELETED, Mapping};
use crate::sparse;

/// A process as `/proc/PID/stat` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stat {
    parent: u32,
    name: String,
    zombie: bool,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&proc::text(pid, "stat").ok()?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name is in parentheses and may contain both kinds of them and spaces.
    let open = text.find('(')?;
    let close = text.rfind(')')?;
    let mut rest = text.get(close + 1..)?.split_ascii_whitespace();
    let zombie = matches!(rest.next()?, "Z" | "X");
    Some(Stat {
        zombie,
        name: text.get(open + 1..close)?.to_owned(),
        parent: rest.next()?.parse().ok()?,
    })
}

/// The processes and threads of the job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// The tree below the root, the root first.
    pub processes: Vec<u32>,
    /// Their threads, the processes' own ids included.
    pub ids: BTreeSet<u32>,
    /// Processes of the namespace whose parents have ended, with their names: they hang on the agent and are
    /// not part of the tree.
    pub strays: Vec<(u32, String)>,
}

/// Collects the tree below `root`.
///
/// # Errors
/// `/proc` cannot be listed.
pub fn collect(root: u32) -> io::Result<Tree> {
    let mut stats: BTreeMap<u32, Stat> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|s| s.parse().ok())
            && let Some(stat) = stat(pid)
        {
            stats.insert(pid, stat);
        }
    }
    let mut tree = Tree::default();
    if stats.contains_key(&root) {
        tree.processes.push(root);
    }
    let mut next = 0;
    while let Some(&parent) = tree.processes.get(next) {
        next += 1;
        tree.processes.extend(
            stats
                .iter()
                .filter(|(_, s)| s.parent == parent)
                .map(|(&pid, _)| pid),
        );
    }
    for &pid in &tree.processes {
        tree.ids.insert(pid);
        tree.ids.extend(proc::threads(pid));
    }
    tree.strays = stats
        .iter()
        .filter(|(pid, s)| s.parent == 1 && **pid != root && !s.zombie)
        .map(|(&pid, s)| (pid, s.name.clone()))
        .collect();
    Ok(tree)
}

impl Tree {
    /// [`resident_bytes`] of all its processes.
    pub fn resident_bytes(&self) -> u64 {
        self.processes.iter().map(|&pid| resident_bytes(pid)).sum()
    }

    /// Anonymous bytes of all its processes: what CRIU will write at least. Shared memory is not among them, because
    /// before a job is detached it may be memory of a GPU, as on the simulated one.
    pub fn anonymous_bytes(&self) -> u64 {
        self.processes
            .iter()
            .map(|&pid| status_bytes(pid, &["RssAnon"]))
            .sum()
    }
}

/// Whether a process is there and has not ended.
pub fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !stat.zombie)
}

/// Name of a process, if it is there.
pub fn name(pid: u32) -> Option<String> {
    stat(pid).map(|stat| stat.name)
}

/// [`resident_bytes`] of a tree; 0 if it cannot be read.
pub fn image_bytes(root: u32) -> u64 {
    collect(root).map_or(0, |tree| tree.resident_bytes())
}

/// Resident bytes that are the process's own (anonymous and shared memory): what CRIU will write, about.
pub fn resident_bytes(pid: u32) -> u64 {
    status_bytes(pid, &["RssAnon", "RssShmem"])
}

/// The sum of lines of `/proc/PID/status`, in bytes; 0 if they cannot be read.
fn status_bytes(pid: u32, names: &[&str]) -> u64 {
    let status = proc::text(pid, "status").unwrap_or_default();
    let kib = |name: &&str| {
        proc::field(&status, name)?
            .strip_suffix(" kB")?
            .parse::<u64>()
            .ok()
    };
    names.iter().filter_map(kib).sum::<u64>() * 1024
}

/// Whether a process has another user or group than this one: real, effective or saved, as the kernel compares them.
pub fn is_of_another_user(pid: u32) -> bool {
    let Ok(status) = proc::text(pid, "status") else {
        return false;
    };
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    !(has_id(&status, "Uid", user.as_raw()) && has_id(&status, "Gid", group.as_raw()))
}

/// Whether the first three numbers of a line of `/proc/PID/status` are all this one.
fn has_id(status: &str, field: &str, id: u32) -> bool {
    proc::field(status, field).is_some_and(|ids| {
        ids.split_ascii_whitespace()
            .take(3)
            .all(|found| found.parse() == Ok(id))
    })
}

/// Whether a library whose file name starts with `prefix` is mapped.
pub fn maps_library(pid: u32, prefix: &str) -> bool {
    let is_it = |m: &Mapping| {
        let file = m.path().and_then(Path::file_name);
        file.is_some_and(|file| file.as_bytes().starts_with(prefix.as_bytes()))
    };
    proc::mappings(pid).is_ok_and(|maps| maps.iter().any(is_it))
}

/// Whether a process is stopped: by a signal, or by who traces it.
pub fn is_stopped(pid: u32) -> bool {
    let status = proc::text(pid, "status").unwrap_or_default();
    proc::field(&status, "State").is_some_and(|state| state.starts_with(['T', 't']))
}

/// Working directory, when it is a live path.
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    path.is_dir().then_some(path)
}

/// A TCP socket of the network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSocket {
    /// Local address and port.
    pub local: (IpAddr, u16),
    /// The address and port of the peer.
    pub remote: (IpAddr, u16),
    /// Kernel state: 1 established, 10 listening.
    pub state: u8,
    /// The inode of the socket.
    pub inode: u64,
}

const LISTEN: u8 = 10;
const TIME_WAIT: u8 = 6;

fn parse_address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    // Words in host byte order.
    let word = |i: usize| {
        let hex = address.get(i * 8..i * 8 + 8)?;
        Some(u32::from_str_radix(hex, 16).ok()?.to_ne_bytes())
    };
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for i in 0..4 {
                bytes[i * 4..i * 4 + 4].copy_from_slice(&word(i)?);
            }
            let v6 = Ipv6Addr::from(bytes);
            v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
        }
        _ => return None,
    };
    Some((address, port))
}

fn parse_tcp(table: &str) -> Vec<TcpSocket> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            Some(TcpSocket {
                local: parse_address(fields.get(1)?)?,
                remote: parse_address(fields.get(2)?)?,
                state: u8::from_str_radix(fields.get(3)?, 16).ok()?,
                inode: fields.get(9)?.parse().ok()?,
            })
        })
        .collect()
}

/// Every TCP socket that is visible to process `pid`.
pub fn tcp_sockets(pid: u32) -> Vec<TcpSocket> {
    ["tcp", "tcp6"]
        .iter()
        .filter_map(|f| proc::text(pid, &format!("net/{f}")).ok())
        .flat_map(|t| parse_tcp(&t))
        .collect()
}

/// How the tree uses TCP: what it listens on, and what it is connected to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpUse {
    /// Ports it listens on.
    pub listening: Vec<u16>,
    /// Whether it has connections, and all of them have both ends in the tree, on whatever interface.
    pub internal_only: bool,
    /// A connection whose other end is not in the tree: its own address, and that one's.
    pub outside: Option<(SocketAddr, SocketAddr)>,
    /// Addresses of this machine that it listens on, without loopback.
    pub listens_on: BTreeSet<IpAddr>,
    /// The same of those that its connections are from: NCCL's and Gloo's ranks on one machine talk through the first interface
    /// that they find.
    pub connected_from: BTreeSet<IpAddr>,
}

impl TcpUse {
    /// The addresses that are needed at the restore.
    pub fn needed(&self, connections: Connections) -> Vec<IpAddr> {
        let mut needed = self.listens_on.clone();
        if connections == Connections::Kept {
            needed.extend(&self.connected_from);
        }
        needed.into_iter().collect()
    }
}

/// The sockets that the processes have, by inode.
fn socket_inodes(processes: &[u32]) -> BTreeSet<u64> {
    processes
        .iter()
        .flat_map(|&pid| open_files(pid))
        .filter_map(|f| {
            let link = f.link.to_str()?;
            link.strip_prefix("socket:[")?
                .strip_suffix(']')?
                .parse()
                .ok()
        })
        .collect()
}

/// Absolute paths that unix sockets of the processes are bound to. Those of the abstract namespace have none.
pub fn unix_socket_paths(root: u32, processes: &[u32]) -> BTreeSet<PathBuf> {
    let Ok(table) = std::fs::read(format!("/proc/{root}/net/unix")) else {
        return BTreeSet::new();
    };
    let inodes = socket_inodes(processes);
    table
        .split(|&b| b == b'\n')
        .skip(1)
        .filter_map(parse_unix)
        .filter(|(inode, _)| inodes.contains(inode))
        .map(|(_, path)| path)
        .collect()
}

/// Inode and path of a line of `/proc/PID/net/unix`, if it has a path: seven fields, then the name to the end of the line.
fn parse_unix(line: &[u8]) -> Option<(u64, PathBuf)> {
    let start = line.iter().position(|&b| b == b'/')?;
    let (fields, path) = line.split_at(start);
    let fields: Vec<&str> = std::str::from_utf8(fields)
        .ok()?
        .split_ascii_whitespace()
        .collect();
    // An abstract name, or a relative one, with a slash in it.
    let [_, _, _, _, _, _, inode] = fields.as_slice() else {
        return None;
    };
    Some((inode.parse().ok()?, PathBuf::from(OsStr::from_bytes(path))))
}

/// Looks at the sockets of the tree's processes.
pub fn tcp_use(root: u32, processes: &[u32]) -> TcpUse {
    let inodes = socket_inodes(processes);
    if inodes.is_empty() {
        return TcpUse::default();
    }
    let sockets = tcp_sockets(root);
    tcp_use_of(&sockets, &inodes)
}

fn tcp_use_of(sockets: &[TcpSocket], inodes: &BTreeSet<u64>) -> TcpUse {
    let ours: Vec<&TcpSocket> = sockets
        .iter()
        .filter(|s| inodes.contains(&s.inode))
        .collect();
    let mut listening: Vec<u16> = ours
        .iter()
        .filter(|s| s.state == LISTEN)
        .map(|s| s.local.1)
        .collect();
    listening.sort_unstable();
    listening.dedup();
    let connected: Vec<&&TcpSocket> = ours
        .iter()
        .filter(|s| s.state != LISTEN && s.state != TIME_WAIT)
        .collect();
    let outside = connected
        .iter()
        .find(|s| {
            !ours
                .iter()
                .any(|o| o.local == s.remote && o.remote == s.local)
        })
        .map(|s| (s.local.into(), s.remote.into()));
    let is_scoped =
        |ip: &IpAddr| matches!(ip, IpAddr::V6(v6) if (v6.segments()[0] & 0xffc0) == 0xfe80);
    let is_of_the_machine =
        |ip: &IpAddr| !ip.is_loopback() && !ip.is_unspecified() && !is_scoped(ip);
    let listeners = ours.iter().filter(|s| s.state == LISTEN);
    TcpUse {
        listening,
        internal_only: outside.is_none() && !connected.is_empty(),
        outside,
        listens_on: listeners
            .map(|s| s.local.0)
            .filter(is_of_the_machine)
            .collect(),
        connected_from: connected
            .iter()
            .map(|s| s.local.0)
            .filter(is_of_the_machine)
            .collect(),
    }
}

/// Whether a TCP socket of one of the processes is in repair mode, as CRIU leaves it when it is killed: the process meets
/// errors there that nobody expects.
pub fn tcp_in_repair(processes: &[u32]) -> bool {
    processes
        .iter()
        .any(|&pid| sockets_in_repair(pid).unwrap_or(false))
}

fn sockets_in_repair(pid: u32) -> Option<bool> {
    use nix::sys::socket::{getsockopt, sockopt::TcpRepair};
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
    let process = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()?;
    let in_repair = |file: OpenFile| {
        let fd = i32::try_from(file.fd).ok()?;
        let socket = pidfd_getfd(&process, fd, PidfdGetfdFlags::empty()).ok()?;
        // Another kind of socket has no such option.
        Some(getsockopt(&socket, TcpRepair).ok()? != 0)
    };
    let sockets = open_files(pid)
        .into_iter()
        .filter(|f| f.link.to_string_lossy().starts_with("socket:["));
    Some(sockets.filter_map(in_repair).any(|repair| repair))
}

/// An open file of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// The number of the descriptor.
    pub fd: u32,
    /// What `/proc/PID/fd/N` points to.
    pub link: PathBuf,
}

/// Files that a process has open or mapped by a name that was removed while the file has another name: the way to each, and the
/// name that it had. What becomes of them is said in [`linked`](crate::files::linked).
pub fn files_by_removed_names(pid: u32) -> Vec<(PathBuf, PathBuf)> {
    let has_another_name = |through: &Path, link: &Path| {
        link.is_absolute()
            && link.as_os_str().as_bytes().ends_with(DELETED.as_bytes())
            && !link.exists()
            && std::fs::metadata(through).is_ok_and(|meta| meta.is_file() && meta.nlink() > 0)
    };
    let mapped = (proc::mappings(pid).unwrap_or_default().into_iter())
        .filter_map(|m| Some((m.through(pid), m.path()?.to_owned())));
    let open = (open_files(pid).into_iter()).map(|file| {
        (
            PathBuf::from(format!("/proc/{pid}/fd/{}", file.fd)),
            file.link,
        )
    });
    mapped
        .chain(open)
        .filter(|(through, link)| has_another_name(through, link))
        .filter_map(|(through, link)| {
            let removed = link
                .as_os_str()
                .as_bytes()
                .strip_suffix(DELETED.as_bytes())?;
            Some((through, OsStr::from_bytes(removed).into()))
        })
        .collect()
}

/// Bytes of what CRIU or this program put into an image besides the processes' own memory: files that the processes have open and
/// that were deleted, and named shared memory. Files that never had a name (`O_TMPFILE`) are not counted: the simulated driver
/// keeps device memory in such files, which is counted as that.
pub fn carried_bytes(processes: &[u32]) -> u64 {
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    for &pid in processes {
        for file in open_files(pid) {
            let through = format!("/proc/{pid}/fd/{}", file.fd);
            let Ok(meta) = std::fs::metadata(&through) else {
                continue;
            };
            let name = file.link.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(b"#") {
                continue;
            }
            let carried = meta.nlink() == 0 || file.link.starts_with(SHARED_MEMORY);
            if meta.is_file() && carried && seen.insert((meta.dev(), meta.ino())) {
                bytes +=
                    std::fs::File::open(through).map_or(0, |file| sparse::content_bytes(&file));
            }
        }
    }
    bytes
}

/// The directory in which POSIX shared memory has its names.
pub const SHARED_MEMORY: &str = "/dev/shm";

/// Every open file of the process.
pub fn open_files(pid: u32) -> Vec<OpenFile> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|e| {
            Some(OpenFile {
                fd: e.file_name().to_str()?.parse().ok()?,
                link: std::fs::read_link(e.path()).ok()?,
            })
        })
        .collect()
}

/// The flags of an open file (`O_RDWR` and the like), if it is open.
pub fn open_flags(pid: u32, fd: u32) -> Option<u32> {
    let text = proc::text(pid, &format!("fdinfo/{fd}")).ok()?;
    u32::from_str_radix(proc::field(&text, "flags")?, 8).ok()
}

/// Whether an open file was opened for writing.
pub fn is_writable(pid: u32, fd: u32) -> bool {
    let flags = open_flags(pid, fd).map_or(0, u32::cast_signed);
    matches!(flags & libc::O_ACCMODE, libc::O_WRONLY | libc::O_RDWR)
}

/// Files that a process can change through a shared mapping: the entry in `/proc/PID/map_files` and the path.
pub fn shared_writable_maps(pid: u32) -> Vec<(PathBuf, PathBuf)> {
    (proc::mappings(pid).unwrap_or_default().iter())
        .filter(|m| m.writable && m.shared)
        .filter_map(|m| Some((m.through(pid), m.present()?.to_owned())))
        .collect()
}

/// Files that a process has mapped, each once: the entry in `/proc/PID/map_files` and the path.
pub fn mapped_files(pid: u32) -> Vec<(PathBuf, PathBuf)> {
    each_once(pid, Mapping::present)
}

/// The same of files that have lost their names, with the names that they had.
pub fn removed_maps(pid: u32) -> Vec<(PathBuf, PathBuf)> {
    each_once(pid, Mapping::removed)
}

fn each_once(pid: u32, path: impl Fn(&Mapping) -> Option<&Path>) -> Vec<(PathBuf, PathBuf)> {
    let mut seen = BTreeSet::new();
    (proc::mappings(pid).unwrap_or_default().iter())
        .filter_map(|m| Some((m.through(pid), path(m)?.to_owned())))
        .filter(|(_, path)| seen.insert(path.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_parse() {
        assert_eq!(
            parse_stat("12 (a) b (c)) S 7 12 12 0"),
            Some(Stat {
                parent: 7,
                name: "a) b (c)".into(),
                zombie: false,
            })
        );
        assert_eq!(parse_stat("12 nonsense"), None);
    }

    #[test]
    fn a_process_whose_name_is_no_text_is_in_the_tree() {
        let directory = tempfile::tempdir().unwrap();
        let mut child = proc::tests::strangely_named(directory.path());
        let tree = collect(std::process::id()).unwrap();
        assert!(tree.processes.contains(&child.id()));
        assert!(is_alive(child.id()) && !is_stopped(child.id()));
        assert!(resident_bytes(child.id()) > 0);
        assert!(name(child.id()).unwrap().starts_with("entra\u{ee}nemen"));
        let program = mapped_files(child.id());
        assert!((program.iter()).any(|(_, path)| path.to_str().is_none() && path.is_file()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_of_another_user_is_known_by_any_of_its_ids() {
        assert!(!is_of_another_user(std::process::id()));
        let status = "Name:\tx\nUid:\t0\t0\t1000\t0\nGid:\t0\t0\t0\t7\n";
        assert!(!has_id(status, "Uid", 0));
        assert!(has_id(status, "Gid", 0));
        assert!(!has_id("", "Uid", 0));
    }

    #[test]
    fn the_own_tree_is_found() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let tree = collect(std::process::id()).unwrap();
        assert_eq!(tree.processes[0], std::process::id());
        assert!(tree.processes.contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn only_absolute_names_of_unix_sockets_are_paths() {
        let line = |name: &str| {
            let fields = "ffff8ec0: 00000002 00000000 00010000 0001 01 9351";
            parse_unix(format!("{fields}{name}").as_bytes())
        };
        assert_eq!(
            line(" /tmp/pymp x/listener"),
            Some((9351, "/tmp/pymp x/listener".into()))
        );
        for name in [
            "",
            " @abstract",
            " @abstract/with/slashes",
            " relative/name",
        ] {
            assert_eq!(line(name), None, "{name}");
        }
        let head = b"Num       RefCount Protocol Flags    Type St Inode Path";
        assert_eq!(parse_unix(head), None);
    }

    #[test]
    fn addresses_parse() {
        assert_eq!(
            parse_address("0100007F:1F90"),
            Some((IpAddr::V4(Ipv4Addr::LOCALHOST), 8080))
        );
        assert_eq!(
            parse_address("00000000000000000000000001000000:0016"),
            Some((IpAddr::V6(Ipv6Addr::LOCALHOST), 22))
        );
        assert_eq!(
            parse_address("0000000000000000FFFF00000100007F:0016"),
            Some((IpAddr::V4(Ipv4Addr::LOCALHOST), 22))
        );
    }

    #[test]
    fn only_connections_with_both_ends_inside_are_internal() {
        let a = (IpAddr::V4(Ipv4Addr::LOCALHOST), 1000);
        let b = (IpAddr::V4(Ipv4Addr::LOCALHOST), 2000);
        let none = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let socket = |local, remote, state, inode| TcpSocket {
            local,
            remote,
            state,
            inode,
        };
        let table = [
            socket(a, none, LISTEN, 1),
            socket(a, b, 1, 2),
            socket(b, a, 1, 3),
        ];
        let inside = tcp_use_of(&table, &BTreeSet::from([1, 2, 3]));
        assert_eq!(inside.listening, [1000]);
        assert!(inside.internal_only && inside.outside.is_none());
        assert!(inside.needed(Connections::Kept).is_empty());
        let half = tcp_use_of(&table, &BTreeSet::from([1, 2]));
        assert!(!half.internal_only);
        assert_eq!(half.outside, Some((a.into(), b.into())));
        let none_at_all = tcp_use_of(&table, &BTreeSet::from([1]));
        assert!(!none_at_all.internal_only && none_at_all.outside.is_none());

        // Between ranks of one machine, through its network card.
        let card = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));
        let (c, d) = ((card, 1000), (card, 2000));
        let mut table = vec![
            socket((none.0, 1000), none, LISTEN, 1),
            socket(c, d, 1, 2),
            socket(d, c, 1, 3),
        ];
        let all = BTreeSet::from([1, 2, 3, 4]);
        let inside = tcp_use_of(&table, &all);
        assert!(inside.internal_only);
        assert_eq!(inside.needed(Connections::Kept), [card]);
        assert!(
            inside.needed(Connections::Closed).is_empty(),
            "they come back closed"
        );
        table.push(socket((card, 3000), none, LISTEN, 4));
        assert_eq!(tcp_use_of(&table, &all).needed(Connections::Closed), [card]);
    }
}
