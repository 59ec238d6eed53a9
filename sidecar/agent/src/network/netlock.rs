//! What a CRIU that died leaves in the firewall.
//!
//! While it dumps a tree whose TCP connections are kept, CRIU holds their packets back by an nftables table of its own, `inet
//! CRIU-…`, and deletes it at the end. If it is killed before (by the kernel for lack of memory, or for hanging), the table
//! stays, and the connections stand still for ever, in the job that continues and in one that is restored beside it. The tables
//! are deleted here, by netlink: the program `nft` is not on every machine.
//!
//! Layout of the messages: the kernel's `include/uapi/linux/netfilter/nf_tables.h` and `nfnetlink.h`.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::network::netlink::{ACK, DUMP, Netlink, REQUEST, message};

const NETLINK_NETFILTER: i32 = 12;
const NFTABLES: u16 = 10;
const NEW_TABLE: u16 = NFTABLES << 8;
const GET_TABLE: u16 = (NFTABLES << 8) | 1;
const DELETE_TABLE: u16 = (NFTABLES << 8) | 2;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const TABLE_NAME: u16 = 1;
const INET: u8 = 1;

/// The prefix of the names of CRIU's tables.
const PREFIX: &str = "CRIU-";

/// What the names of the tables of one job's dumps begin with.
///
/// A table is named after the identifier of CRIU's run, of which the agent gives the first half (`shim/criu-preload/src/run.rs`). So the agent that cleans up,
/// which may be another than the one that began the dump, knows its own, and leaves those of dumps of other jobs that are under way alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locks([u8; 8]);

impl Locks {
    /// Those of the job with this directory on this machine.
    pub fn of(job_dir: &Path) -> Locks {
        let mut hasher = blake3::Hasher::new();
        // By its path alone, which has the job's name: a container that takes another one's place has a directory of its own, and is to know what that one left.
        hasher.update(job_dir.as_os_str().as_bytes());
        let digest = hasher.finalize();
        let mut bytes = [0; 8];
        for (byte, from) in bytes.iter_mut().zip(digest.as_bytes()) {
            *byte = *from;
        }
        Locks(bytes)
    }

    /// As the library that CRIU gets is told: sixteen digits.
    pub fn in_digits(self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.0))
    }

    /// Whether a table by that name is of this job. As much of it stands in the name as four groups of an identifier have.
    fn are_of(self, table: &str) -> bool {
        let digits = self.in_digits();
        let groups = [digits.get(..8), digits.get(8..12), digits.get(12..)];
        let own = groups.map(Option::unwrap_or_default).join("-");
        (table.strip_prefix(PREFIX)).is_some_and(|id| {
            id.strip_prefix(&own)
                .is_some_and(|rest| rest.starts_with('-'))
        })
    }

    /// Deletes what dumps of this job have left: none is under way.
    pub fn delete_stale(self) {
        let all = tables();
        let own = all.iter().filter(|table| self.are_of(table));
        own.for_each(|table| delete_one(table));
    }
}

fn delete_one(table: &str) {
    match delete(table) {
        Ok(()) => tracing::warn!(
            table,
            "deleted what a CRIU that died left in the firewall: it held the job's TCP connections back"
        ),
        Err(e) => tracing::error!(
            table,
            cause = %e,
            "cannot delete what a CRIU that died left in the firewall: it holds TCP connections of the job back. Delete \
             it: nft delete table inet {table}"
        ),
    }
}

/// Deletes all of CRIU's tables: where CRIU does not get the library by which they are named, nobody can tell whose they are, and connections that stand
/// still for ever are worse than a dump of another job's that fails.
pub fn delete_all() {
    tables().iter().for_each(|table| delete_one(table));
}

/// The names of CRIU's tables that the firewall has.
fn tables() -> BTreeSet<String> {
    list().unwrap_or_else(|e| {
        // A kernel without nftables has none.
        tracing::debug!(cause = %e, "cannot list firewall tables");
        BTreeSet::new()
    })
}

/// `nfgenmsg`: family, version 0, resource.
fn head(family: u8, resource: u16) -> Vec<u8> {
    let [high, low] = resource.to_be_bytes();
    vec![family, 0, high, low]
}

fn list() -> io::Result<BTreeSet<String>> {
    let socket = Netlink::open(NETLINK_NETFILTER)?;
    socket.send(&message(GET_TABLE, REQUEST | DUMP, &head(INET, 0)))?;
    let mut found = BTreeSet::new();
    socket.answer(|kind, payload| {
        if kind == NEW_TABLE
            && let Some(name) = payload.get(4..).and_then(name_of)
            && name.starts_with(PREFIX)
        {
            found.insert(name);
        }
    })?;
    Ok(found)
}

/// The name among the attributes of a table, if it has one.
fn name_of(mut attributes: &[u8]) -> Option<String> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*attributes.first_chunk()?));
        let kind = u16::from_ne_bytes([*attributes.get(2)?, *attributes.get(3)?]);
        let value = attributes.get(4..length)?;
        if kind == TABLE_NAME {
            let text = value.strip_suffix(&[0]).unwrap_or(value);
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn with_name(name: &str) -> Vec<u8> {
    let mut payload = head(INET, 0);
    let length = 4 + name.len() + 1;
    payload.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes());
    payload.extend_from_slice(&TABLE_NAME.to_ne_bytes());
    payload.extend_from_slice(name.as_bytes());
    payload.push(0);
    payload
}

/// Makes one change to the firewall, as a transaction.
fn change(kind: u16, name: &str) -> io::Result<()> {
    let socket = Netlink::open(NETLINK_NETFILTER)?;
    let mut batch = message(BATCH_BEGIN, REQUEST, &head(0, NFTABLES));
    batch.extend(message(kind, REQUEST | ACK, &with_name(name)));
    batch.extend(message(BATCH_END, REQUEST, &head(0, NFTABLES)));
    socket.send(&batch)?;
    socket.answer(|_, _| {})
}

fn delete(name: &str) -> io::Result<()> {
    change(DELETE_TABLE, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_knows_its_tables() {
        let locks = Locks([0xda, 0x4a, 0xd8, 0x95, 0x26, 0xf6, 0x46, 0x03]);
        assert_eq!(locks.in_digits(), "da4ad89526f64603");
        assert!(locks.are_of("CRIU-da4ad895-26f6-4603-b8"));
        for other in [
            "CRIU-da4ad895-26f6-4604-b8",
            "CRIU-da4ad895-26f6-46031",
            "CRIU-1",
            "da4ad895-26f6-4603-b8",
        ] {
            assert!(!locks.are_of(other), "{other}");
        }
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(Locks::of(one.path()), Locks::of(one.path()));
        assert_ne!(Locks::of(one.path()), Locks::of(other.path()));
    }

    #[test]
    fn what_another_job_needs_is_kept() {
        // A network namespace of the thread's own, so that nobody's tables are met.
        std::thread::spawn(|| {
            // SAFETY: an integer; only this thread changes its namespace.
            let own = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
            let locks = Locks([7; 8]);
            let (theirs, ours) = ("CRIU-08080808-0808-0808-08", "CRIU-07070707-0707-0707-1f");
            if !own || change(NEW_TABLE, theirs).is_err() {
                eprintln!("skipped: needs root and a kernel with nftables");
                return;
            }
            change(NEW_TABLE, ours).unwrap();
            change(NEW_TABLE, "mine").unwrap();
            assert_eq!(tables().len(), 2);
            locks.delete_stale();
            assert_eq!(tables(), BTreeSet::from([theirs.to_owned()]));
            // Not CRIU's: it is still there.
            delete("mine").unwrap();
            assert!(delete("mine").is_err());
        })
        .join()
        .unwrap();
    }
}
