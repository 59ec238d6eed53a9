//! Variables that are added to the job's environment so that what it does can be checkpointed: only those that the user has not
//! set anywhere, and that take nothing from a job on one machine.
//!
//! | variable | why |
//! |---|---|
//! | `HWLOC_COMPONENTS=-opencl,-gl` | hwloc (Open MPI, `import mpi4py`) else opens the GPU through OpenCL, whose mappings the driver does not checkpoint, and asks X displays for theirs; what it learns there no MPI uses |
//! | `NCCL_RAS_ENABLE=0` | all ranks else listen on one port for a monitor; with it NCCL's ranks did not come back |
//! | `NCCL_CUMEM_ENABLE=1` | memory that ranks share is then made by `cuMemCreate`, which the shim takes over; the other way is legacy IPC, which the driver cannot checkpoint |
//! | `NCCL_CUMEM_HOST_ENABLE=0` | the same for host memory, which nothing can take over |
//! | `NCCL_NVLS_ENABLE=0` | multicast objects hang the driver's checkpoint; not with `--nvls`, where the shim takes them apart for it |
//! | `NCCL_IB_DISABLE=1` | verbs cannot be dumped, and ranks on one machine do not need them; not where the job says that it has several machines |
//!
//! With `--lean-context`, `CUDA_DEVICE_MAX_CONNECTIONS=1` is added: each context has one queue for its streams instead of eight, and the driver has
//! less to save and to restore.
//!
//! `NCCL_SOCKET_IFNAME` is left alone: `lo` would break a job that has several machines without saying so.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use phos_protocol::env;
use phos_protocol::types::ProcessId;

use crate::config::Tcp;
use crate::proc;
use crate::tree::TcpUse;

/// See the module's table.
const DEFAULTS: &[(&str, &str)] = &[
    ("HWLOC_COMPONENTS", "-opencl,-gl"),
    ("NCCL_RAS_ENABLE", "0"),
    ("NCCL_CUMEM_ENABLE", "1"),
    ("NCCL_CUMEM_HOST_ENABLE", "0"),
    (NVLS, "0"),
    (VERBS, "1"),
];
const VERBS: &str = "NCCL_IB_DISABLE";
const NVLS: &str = "NCCL_NVLS_ENABLE";

/// What makes the driver's state of a process smaller (`--lean-context`).
const LEAN: &[(&str, &str)] = &[("CUDA_DEVICE_MAX_CONNECTIONS", "1")];

/// What NCCL's ranks need to come back, of the table; of legacy IPC and of verbs their use tells, not the environment.
const NEEDED: &[(&str, &str)] = &[
    ("NCCL_RAS_ENABLE", "0"),
    ("NCCL_CUMEM_HOST_ENABLE", "0"),
    (NVLS, "0"),
];

/// The first driver of which it is not known: CUDA 13.1.
const UNKNOWN_FROM: u32 = 13_010;

/// Variables by which launchers say on how many machines a job is.
const MACHINES: &[&str] = &[
    "SLURM_NNODES",
    "SLURM_JOB_NUM_NODES",
    "PET_NNODES",
    "GROUP_WORLD_SIZE",
];

/// How the names of phos-ft's own variables begin.
const OURS: &str = "PHOS_";
/// Those that are read in the job: by the shim, and by the simulated GPU.
const IN_THE_JOB: [&str; 2] = [phos_protocol::env::SHIM_LOG, "PHOS_SIM_"];

/// Whether a variable says something to phos-ft alone, such as where the store and the key are, and is kept from the job.
pub fn is_of_the_agent(name: &OsStr, keep: &[String]) -> bool {
    let begins = |start: &str| name.as_encoded_bytes().starts_with(start.as_bytes());
    let is_kept = keep.iter().any(|kept| name == kept.as_str());
    begins(OURS) && !IN_THE_JOB.into_iter().any(begins) && !is_kept
}

/// What the user has chosen that decides about the defaults.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chosen {
    /// Multicast objects may be used.
    pub nvls: bool,
    /// Contexts are to be small.
    pub lean: bool,
}

/// The defaults for a job's environment, where `get` is what it would have and `configured` says which variables NCCL finds
/// in a file.
pub fn defaults(
    get: impl Fn(&str) -> Option<String>,
    configured: &[String],
    chosen: Chosen,
) -> Vec<(&'static str, &'static str)> {
    let number = |name: &str| get(name)?.trim().parse::<u64>().ok();
    let several = MACHINES.iter().any(|name| number(name) > Some(1))
        || matches!((number("WORLD_SIZE"), number("LOCAL_WORLD_SIZE")), (Some(all), Some(here)) if all > here);
    let lean = if chosen.lean { LEAN } else { &[] };
    (DEFAULTS.iter().chain(lean))
        .filter(|(name, _)| get(name).is_none() && !configured.iter().any(|c| c == name))
        .filter(|(name, _)| !(several && *name == VERBS))
        .filter(|(name, _)| !(chosen.nvls && *name == NVLS))
        .copied()
        .collect()
}

/// Variables that NCCL reads from its files, which a variable would win over.
pub fn nccl_configured(home: Option<&Path>) -> Vec<String> {
    let named = std::env::var_os("NCCL_CONF_FILE").map(PathBuf::from);
    let user = named.or_else(|| home.map(|home| home.join(".nccl.conf")));
    user.into_iter()
        .chain([PathBuf::from("/etc/nccl.conf")])
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|text| names(&text))
        .collect()
}

fn names(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once('=')?.0.trim().to_owned()))
        .collect()
}

/// Why communicators of NCCL would not come back on a driver, going by the environment of a process that has some.
fn hopeless(environment: &[u8], driver: u32) -> Option<String> {
    if driver >= UNKNOWN_FROM {
        return None;
    }
    let value = |name: &str| {
        environment.split(|&b| b == 0).find_map(|entry| {
            let rest = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(rest).trim().to_owned())
        })
    };
    // As its shim takes it.
    let takes_multicast = value(env::SHIM_MULTICAST).as_deref() == Some("1");
    let missing: Vec<String> = NEEDED
        .iter()
        .filter(|(name, needed)| value(name).as_deref() != Some(needed))
        .filter(|(name, _)| !(takes_multicast && *name == NVLS))
        .map(|(name, needed)| format!("{name}={needed}"))
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "it has NCCL communicators that this driver checkpoints and cannot restore: start the job with {}",
            missing.join(" ")
        )
    })
}

/// Whether a process has communicators, as far as can be told from outside: a socket or a segment of NCCL's, or a thread that
/// watches over one. A library that is only mapped tells nothing.
fn has_communicators(pid: ProcessId, sockets: &[u64]) -> bool {
    let segment = proc::text(pid, "maps").is_ok_and(|maps| maps.contains("/dev/shm/nccl-"));
    let thread = || {
        proc::has_thread(pid, |name| {
            name.starts_with("pt_nccl_") || name.starts_with("NCCL ")
        })
    };
    let socket = || {
        crate::tree::open_files(pid).iter().any(|file| {
            let inode = file.link.to_str().and_then(|link| {
                link.strip_prefix("socket:[")?
                    .strip_suffix(']')?
                    .parse()
                    .ok()
            });
            inode.is_some_and(|inode: u64| sockets.contains(&inode))
        })
    };
    segment || thread() || socket()
}

/// Inodes of the unix sockets by which NCCL's ranks hand descriptors to each other.
fn nccl_sockets(table: &str) -> Vec<u64> {
    table
        .lines()
        .filter(|line| line.contains("/nccl-socket-"))
        .filter_map(|line| line.split_ascii_whitespace().nth(6)?.parse().ok())
        .collect()
}

/// Those of the processes with CUDA that have communicators, where there are at least two: one alone shares nothing.
pub fn ranks(processes: &[ProcessId]) -> Vec<ProcessId> {
    if processes.len() < 2 {
        return Vec::new();
    }
    // Names there need not be text.
    let table = std::fs::read(format!("/proc/{}/net/unix", processes[0])).unwrap_or_default();
    let sockets = nccl_sockets(&String::from_utf8_lossy(&table));
    let mut ranks: Vec<ProcessId> = processes
        .iter()
        .copied()
        .filter(|&pid| has_communicators(pid, &sockets))
        .collect();
    if ranks.len() < 2 {
        ranks.clear();
    }
    ranks
}

/// One of the ranks whose communicators would not come back on a driver, and why.
pub fn hopeless_rank(ranks: &[ProcessId], driver: u32) -> Option<(ProcessId, String)> {
    ranks.iter().find_map(|&pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        Some((pid, hopeless(&environment, driver)?))
    })
}

/// Why ranks would not come back that find their connections closed: NCCL ends with them, and so does what watches over them.
pub fn closed_connections(tcp: &TcpUse, mode: Tcp) -> Option<String> {
    const WHY: &str = "it has NCCL communicators, whose connections would come back closed";
    match (mode, tcp.outside) {
        (Tcp::Auto, Some((here, there))) => Some(format!(
            "{WHY}, since the job also has a TCP connection to a process outside ({here} to {there}): close that one, run its \
             other end inside the job, or give --tcp keep"
        )),
        (Tcp::Close, _) if tcp.internal_only || tcp.outside.is_some() => {
            Some(format!("{WHY} with --tcp close: leave that out"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_phos_ft_is_not_said_to_the_job() {
        let keep = ["PHOS_JOB".to_owned()];
        for (name, is) in [
            ("PHOS_STORE", true),
            ("PHOS_ENCRYPTION_KEY_FILE", true),
            ("PHOS_FAILPOINT", true),
            ("PHOS_JOB", false),
            ("PHOS_SHIM_LOG", false),
            ("PHOS_SIM_DIR", false),
            ("PHOSPHOR", false),
            ("AWS_REGION", false),
        ] {
            assert_eq!(is_of_the_agent(OsStr::new(name), &keep), is, "{name}");
        }
    }

    fn given(set: &[(&str, &str)], configured: &[&str]) -> Vec<(&'static str, &'static str)> {
        let get = |name: &str| {
            let found = set.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let configured: Vec<String> = configured.iter().map(|c| (*c).to_owned()).collect();
        defaults(get, &configured, Chosen::default())
    }

    #[test]
    fn multicast_objects_are_not_ruled_out_where_they_may_be_used() {
        let chosen = Chosen {
            nvls: true,
            ..Chosen::default()
        };
        let left = defaults(|_| None, &[], chosen);
        assert!(left.iter().all(|(name, _)| *name != NVLS));
        assert_eq!(left.len(), DEFAULTS.len() - 1);
        let rank = b"NCCL_RAS_ENABLE=0\0NCCL_CUMEM_HOST_ENABLE=0\0NCCL_NVLS_ENABLE=1\0PHOS_SHIM_MULTICAST=";
        for (said, hopeless_then) in [("1", false), ("0", true), ("", true)] {
            let rank = [&rank[..], said.as_bytes(), b"\0"].concat();
            assert_eq!(hopeless(&rank, 13_000).is_some(), hopeless_then, "{said}");
        }
    }

    #[test]
    fn contexts_are_small_where_that_is_wanted_and_the_user_has_said_nothing_else() {
        let chosen = Chosen {
            lean: true,
            ..Chosen::default()
        };
        let all = defaults(|_| None, &[], chosen);
        assert_eq!(all, [DEFAULTS, LEAN].concat());
        let eight = |name: &str| (name == LEAN[0].0).then(|| "8".to_owned());
        assert_eq!(defaults(eight, &[], chosen), DEFAULTS);
    }

    #[test]
    fn what_the_user_set_stays() {
        assert_eq!(given(&[], &[]), DEFAULTS);
        let some = given(
            &[("NCCL_RAS_ENABLE", "1"), ("HWLOC_COMPONENTS", "")],
            &["NCCL_NVLS_ENABLE"],
        );
        for name in ["NCCL_RAS_ENABLE", "HWLOC_COMPONENTS", "NCCL_NVLS_ENABLE"] {
            assert!(some.iter().all(|(n, _)| *n != name), "{name}");
        }
        assert!(some.contains(&("NCCL_CUMEM_HOST_ENABLE", "0")));
    }

    #[test]
    fn verbs_are_left_to_a_job_on_several_machines() {
        for set in [
            &[("SLURM_NNODES", "2")][..],
            &[("WORLD_SIZE", "16"), ("LOCAL_WORLD_SIZE", "8")],
        ] {
            assert!(given(set, &[]).iter().all(|(n, _)| *n != VERBS), "{set:?}");
        }
        for set in [
            &[("SLURM_NNODES", "1")][..],
            &[("WORLD_SIZE", "8"), ("LOCAL_WORLD_SIZE", "8")],
        ] {
            assert!(given(set, &[]).contains(&(VERBS, "1")), "{set:?}");
        }
    }

    #[test]
    fn files_of_nccl_are_read_as_it_reads_them() {
        assert_eq!(
            names("# NCCL_X=1\nNCCL_RAS_ENABLE=1\n\nNCCL_DEBUG = INFO\nnothing\n"),
            ["NCCL_RAS_ENABLE", "NCCL_DEBUG"]
        );
    }

    #[test]
    fn an_environment_that_cannot_be_restored_is_named() {
        let good = b"A=1\0NCCL_RAS_ENABLE=0\0NCCL_CUMEM_HOST_ENABLE=0\0NCCL_NVLS_ENABLE=0\0";
        assert_eq!(hopeless(good, 13_000), None);
        let why = hopeless(b"NCCL_RAS_ENABLE=0\0NCCL_NVLS_ENABLE=1\0", 13_000).unwrap();
        assert!(
            why.contains("NCCL_NVLS_ENABLE=0")
                && why.contains("NCCL_CUMEM_HOST_ENABLE=0")
                && !why.contains("RAS"),
            "{why}"
        );
        assert_eq!(
            hopeless(b"", UNKNOWN_FROM),
            None,
            "of newer ones nothing is known"
        );
    }

    #[test]
    fn sockets_of_nccl_are_found() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     0000000000000000: 00000002 00000000 00000000 0002 01 38213 @/tmp/nccl-socket-1-a1b2\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 40000 /run/x.sock\n";
        assert_eq!(nccl_sockets(table), [38213]);
    }

    #[test]
    fn one_process_alone_is_no_rank() {
        let me = std::process::id();
        assert!(ranks(&[]).is_empty() && ranks(&[me]).is_empty());
        assert!(ranks(&[me, me]).is_empty(), "no communicators");
    }

    #[test]
    fn ranks_need_their_connections() {
        let inside = TcpUse {
            internal_only: true,
            ..TcpUse::default()
        };
        let outside = TcpUse {
            outside: Some((
                "10.0.0.1:5000".parse().unwrap(),
                "10.0.0.9:443".parse().unwrap(),
            )),
            ..TcpUse::default()
        };
        let why = closed_connections(&outside, Tcp::Auto).unwrap();
        assert!(
            why.contains("10.0.0.9:443") && why.contains("--tcp keep"),
            "{why}"
        );
        for (tcp, mode) in [
            (&inside, Tcp::Auto),
            (&inside, Tcp::Keep),
            (&outside, Tcp::Keep),
            (&TcpUse::default(), Tcp::Close),
        ] {
            assert_eq!(closed_connections(tcp, mode), None, "{tcp:?} {mode:?}");
        }
        for tcp in [&inside, &outside] {
            let why = closed_connections(tcp, Tcp::Close).unwrap();
            assert!(why.contains("--tcp close"), "{why}");
        }
    }
}
