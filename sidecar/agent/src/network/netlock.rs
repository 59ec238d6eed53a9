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

/// The names of CRIU's tables that the firewall has.
pub fn tables() -> BTreeSet<String> {
    list().unwrap_or_else(|e| {
        // A kernel without nftables has none.
        tracing::debug!(cause = %e, "cannot list firewall tables");
        BTreeSet::new()
    })
}

/// Deletes the tables that are not in `keep`.
pub fn delete_stale(keep: &BTreeSet<String>) {
    for table in tables().difference(keep) {
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
    fn what_was_there_before_is_kept() {
        // A network namespace of the thread's own, so that nobody's tables are met.
        std::thread::spawn(|| {
            // SAFETY: an integer; only this thread changes its namespace.
            let own = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
            if !own || change(NEW_TABLE, "CRIU-1").is_err() {
                eprintln!("skipped: needs root and a kernel with nftables");
                return;
            }
            let before = tables();
            assert_eq!(before, BTreeSet::from(["CRIU-1".to_owned()]));
            change(NEW_TABLE, "CRIU-2").unwrap();
            change(NEW_TABLE, "mine").unwrap();
            assert_eq!(tables().len(), 2);
            delete_stale(&before);
            assert_eq!(tables(), before);
            delete_stale(&BTreeSet::new());
            assert!(tables().is_empty());
            // Not CRIU's: it is still there.
            delete("mine").unwrap();
            assert!(delete("mine").is_err());
        })
        .join()
        .unwrap();
    }
}
