//! How much host memory there is for this process: what the machine has, and what the control groups around it allow.
//!
//! Page cache counts as available, in both: the kernel takes it back. Sources: proc(5) on `/proc/meminfo`, cgroups(7), and the
//! kernel's `cgroup-v2.rst` and `cgroup-v1/memory.rst` on what the files of a group say.

use std::fs;
use std::path::{Path, PathBuf};

/// The host memory of this machine, or of the tightest control group, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostMemory {
    /// All bytes of the machine, or of the tightest group.
    pub total: u64,
    /// Bytes that can be taken now, page cache included.
    pub available: u64,
}

/// What there is now; `None` where the kernel does not say.
#[must_use]
pub fn now() -> Option<HostMemory> {
    of(Path::new("/"))
}

/// Bytes that can be taken now; `None` where the kernel does not say.
#[must_use]
pub fn available() -> Option<u64> {
    now().map(|memory| memory.available)
}

fn of(root: &Path) -> Option<HostMemory> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let kib = |name: &str| number_after(&meminfo, name).map(|kib| kib.saturating_mul(1024));
    let machine = HostMemory {
        total: kib("MemTotal:")?,
        available: kib("MemAvailable:")?,
    };
    Some(
        groups(root)
            .into_iter()
            .fold(machine, |all, group| HostMemory {
                total: all.total.min(group.total),
                available: all.available.min(group.available),
            }),
    )
}

/// The number after a word, on the line that begins with it.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    lines.find_map(|mut words| (words.next() == Some(word)).then(|| words.next()?.parse().ok())?)
}

/// The limits around this process, its own group's first.
fn groups(root: &Path) -> Vec<HostMemory> {
    let own = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in own.lines() {
        // hierarchy:controllers:path
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (mount, files) = match controllers {
            "" => ("sys/fs/cgroup", &V2),
            some if some.split(',').any(|c| c == "memory") => ("sys/fs/cgroup/memory", &V1),
            _ => continue,
        };
        let mount = root.join(mount);
        let inside = mount.join(path.trim_start_matches('/'));
        // In a container the path may be the host's, and what is mounted the container's own group.
        let first = if inside.is_dir() {
            inside
        } else {
            mount.clone()
        };
        let around = first
            .ancestors()
            .take_while(|path| path.starts_with(&mount));
        found.extend(around.filter_map(|path| files.read(path)));
    }
    found
}

/// The names of the files in which a control group says its limit and its usage.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// The entries of `memory.stat` for pages of files, which can be taken back.
    cached: [&'static str; 2],
}

const V2: Files = Files {
    limit: "memory.max",
    usage: "memory.current",
    cached: ["inactive_file", "active_file"],
};
const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cached: ["total_inactive_file", "total_active_file"],
};

impl Files {
    /// `None`: no limit is set.
    fn read(&self, group: &Path) -> Option<HostMemory> {
        let read = |name: &str| -> Option<u64> {
            let file: PathBuf = group.join(name);
            fs::read_to_string(file).ok()?.trim().parse().ok()
        };
        // Without a limit v2 says "max", and v1 a number near 2^63.
        let total = read(self.limit).filter(|limit| *limit < 1 << 60)?;
        let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let cached: u64 = (self.cached.iter())
            .filter_map(|name| number_after(&stat, name))
            .sum();
        let used = read(self.usage)?.saturating_sub(cached);
        Some(HostMemory {
            total,
            available: total.saturating_sub(used),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    struct Root(tempfile::TempDir);

    impl Root {
        /// 64 GiB, of which 40 are available.
        fn new(cgroup: &str) -> Root {
            let root = Root(tempfile::tempdir().unwrap());
            let meminfo =
                "MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   41943040 kB\n";
            root.file("proc/meminfo", meminfo);
            root.file("proc/self/cgroup", cgroup);
            root
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn gib(&self) -> (u64, u64) {
            let memory = of(self.0.path()).unwrap();
            (memory.total / GIB, memory.available / GIB)
        }
    }

    #[test]
    fn without_a_group_it_is_the_machines() {
        let root = Root::new("");
        assert_eq!(root.gib(), (64, 40));
        fs::remove_file(root.0.path().join("proc/self/cgroup")).unwrap();
        assert_eq!(root.gib(), (64, 40));
        fs::remove_file(root.0.path().join("proc/meminfo")).unwrap();
        assert_eq!(of(root.0.path()), None);
    }

    #[test]
    fn the_tightest_group_counts_and_page_cache_is_free() {
        let root = Root::new("0::/pods/one\n");
        let group = "sys/fs/cgroup/pods/one";
        root.file(&format!("{group}/memory.max"), "max\n");
        root.file(&format!("{group}/memory.current"), "1\n");
        assert_eq!(root.gib(), (64, 40));
        root.file("sys/fs/cgroup/pods/memory.max", &format!("{}\n", 16 * GIB));
        root.file(
            "sys/fs/cgroup/pods/memory.current",
            &format!("{}\n", 12 * GIB),
        );
        assert_eq!(root.gib(), (16, 4));
        let stat = format!(
            "anon 7\ninactive_file {}\nactive_file {}\n",
            3 * GIB,
            2 * GIB
        );
        root.file("sys/fs/cgroup/pods/memory.stat", &stat);
        assert_eq!(root.gib(), (16, 9));
        root.file(&format!("{group}/memory.max"), &format!("{}\n", 8 * GIB));
        assert_eq!(root.gib(), (8, 7));
    }

    #[test]
    fn version_one_and_a_path_of_the_host() {
        let root = Root::new("9:name=systemd:/\n4:cpu,memory:/docker/0123\n0::/\n");
        root.file(
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        root.file(
            "sys/fs/cgroup/memory/memory.usage_in_bytes",
            &format!("{}\n", 6 * GIB),
        );
        assert_eq!(root.gib(), (64, 40));
        root.file(
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            &format!("{}\n", 8 * GIB),
        );
        let stat = format!("inactive_file 1\ntotal_inactive_file {}\n", GIB);
        root.file("sys/fs/cgroup/memory/memory.stat", &stat);
        assert_eq!(root.gib(), (8, 3));
    }
}
