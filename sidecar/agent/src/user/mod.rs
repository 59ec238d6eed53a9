//! The user that the job runs as, when it is another than the agent's: `--user`.
//!
//! The agent needs root, since CRIU does; the job must not get root because of that. Names are looked up as Docker does for
//! `user:`, in `/etc/passwd` and `/etc/group` of the image itself, without a shell or a name service. A number needs no look-up.
//!
//! # Rules
//!
//! * The job gets user, group, supplementary groups and `HOME` that it would get from Docker, and no capability: the kernel
//!   drops them all when the last root id goes.
//! * Nor does it get any by a program that it runs (a set-user-ID one, one with capabilities of its own), unless that was asked
//!   for: `no_new_privs`, and an empty bounding set. Both are inherited, and are in its checkpoints.
//! * A job that is root, as the agent is, has the other capabilities of the container, but not those that the container has for
//!   the agent.
//! * Its standard streams belong to it, so that `/dev/stdout` may be opened again.
//! * A restored job has the user of the image, since CRIU brings it back; an image of another user is
//!   [refused](crate::restore::boundary).

pub mod rights;
pub mod way;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Whether a job can get privileges that it does not start with: from programs that are set-user-ID or have capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileges {
    /// It cannot, nor does a job that is root have what is there for the agent alone.
    Forgone,
    /// The job can get them, as it could without phos-ft.
    Allowed,
}

/// Whom the job runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobUser {
    uid: u32,
    gid: u32,
    groups: Vec<libc::gid_t>,
    home: PathBuf,
}

/// Leaves the calling process, and those that it starts, no privilege to gain. Between `fork` and `exec`: system calls only.
fn forgo_privileges() -> io::Result<()> {
    let zero: libc::c_ulong = 0;
    for capability in 0..libc::c_ulong::from(u64::BITS) {
        // SAFETY: numbers only.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, zero, zero, zero) };
        // The kernel has no more of them, or this process has no CAP_SETPCAP: what follows makes the set meaningless anyway.
        if dropped < 0 {
            break;
        }
    }
    let one: libc::c_ulong = 1;
    // SAFETY: numbers only.
    match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What a container gets for the agent and CRIU beyond what Docker gives to every container. Numbers: `capability.h`.
const OURS: [u32; 4] = [12, 19, 21, 25];

/// Leaves the calling process, and those that it starts, none of the capabilities that are there for the agent: a job that is root
/// would else mount a proc of its own and write to the machine's settings. Between `fork` and `exec`: system calls only.
///
/// # Errors
/// The error of the system call that failed.
pub fn forgo_ours() -> io::Result<()> {
    let zero: libc::c_ulong = 0;
    let mut ours = 0_u32;
    for capability in OURS {
        ours |= 1 << capability;
        let capability = libc::c_ulong::from(capability);
        // SAFETY: numbers only.
        unsafe {
            let held = libc::prctl(libc::PR_CAPBSET_READ, capability, zero, zero, zero) == 1;
            if held && libc::prctl(libc::PR_CAPBSET_DROP, capability, zero, zero, zero) < 0 {
                // No CAP_SETPCAP. Without this, root would have them again after an `exec`.
                let one: libc::c_ulong = 1;
                if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
    }
    // `capget` and `capset`: a header (version 3, this process), then effective, permitted and inheritable in two halves.
    let mut header = [0x2008_0522_u32, 0];
    let mut sets = [[0_u32; 3]; 2];
    // SAFETY: the addresses of what the version says, which the kernel reads and writes.
    if unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    sets[0] = sets[0].map(|set| set & !ours);
    // SAFETY: as above.
    if unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Why the user of `--user` cannot be had.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UserError {
    /// A name without an entry.
    #[error(
        "--user {given}: {file} has no {name:?}. Give its number, as in --user 1000:1000, or add it to the image"
    )]
    Unknown {
        /// The text that was given for the user.
        given: String,
        /// The name that was looked for.
        name: String,
        /// The file in which it was looked for.
        file: &'static str,
    },
    /// The text is not of the form USER or USER:GROUP,….
    #[error("--user {0:?} is not USER, USER:GROUP or USER:GROUP,GROUP,…, each a name or a number")]
    Form(String),
}

/// The fields of an entry of passwd or group whose name or number is `wanted`.
fn entry<'t>(table: &'t str, wanted: &str) -> Option<Vec<&'t str>> {
    let entries = || {
        table
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
    };
    // A name that is a number is a number only if no name is written so.
    entries()
        .find(|e| e.first() == Some(&wanted))
        .or_else(|| entries().find(|e| e.len() > 2 && e[2] == wanted))
}

fn number(entry: &[&str], field: usize) -> Option<u32> {
    entry.get(field)?.parse().ok()
}

impl JobUser {
    /// Looks `given` up in the image's files.
    ///
    /// # Errors
    /// [`UserError`].
    pub fn find(given: &str) -> Result<Self, UserError> {
        // An image may have neither file; then numbers are all there is.
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self::find_in(given, &read("/etc/passwd"), &read("/etc/group"))
    }

    fn find_in(given: &str, passwd: &str, group: &str) -> Result<Self, UserError> {
        let (user, wanted_group) = match given.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (given, None),
        };
        if user.is_empty() || wanted_group.is_some_and(|g| g.is_empty() || g.contains(':')) {
            return Err(UserError::Form(given.to_owned()));
        }
        let unknown = |name: &str, file| UserError::Unknown {
            given: given.to_owned(),
            name: name.to_owned(),
            file,
        };
        let found = entry(passwd, user);
        let uid = match &found {
            Some(entry) => number(entry, 2),
            None => user.parse().ok(),
        };
        let uid = uid.ok_or_else(|| unknown(user, "/etc/passwd"))?;
        let group_of = |name: &str| {
            match entry(group, name) {
                Some(entry) => number(&entry, 2),
                None => name.parse().ok(),
            }
            .ok_or_else(|| unknown(name, "/etc/group"))
        };
        // Beyond Docker: where users are in no file (LDAP), whoever asks knows the groups.
        let wanted: Vec<u32> = (wanted_group.into_iter())
            .flat_map(|names| names.split(','))
            .map(group_of)
            .collect::<Result<_, _>>()?;
        let gid = match wanted.first() {
            Some(&first) => first,
            None => found.as_ref().and_then(|e| number(e, 3)).unwrap_or(0),
        };
        let mut groups = BTreeSet::from([gid]);
        groups.extend(&wanted);
        // As Docker: a group that is asked for stands alone.
        if let (Some(entry), None) = (&found, wanted_group) {
            groups.extend(group.lines().filter_map(|line| {
                let fields: Vec<&str> = line.split(':').collect();
                let members = fields.get(3)?;
                members
                    .split(',')
                    .any(|member| member == entry[0])
                    .then(|| number(&fields, 2))?
            }));
        }
        let home = found
            .as_ref()
            .and_then(|e| e.get(5))
            .filter(|h| !h.is_empty());
        Ok(Self {
            uid,
            gid,
            groups: groups.into_iter().collect(),
            home: PathBuf::from(home.unwrap_or(&"/")),
        })
    }

    /// The uid of the user.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The gid of the user's main group.
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// The gids of all of the user's groups.
    pub fn groups(&self) -> impl Iterator<Item = u32> {
        self.groups.iter().copied()
    }

    /// `UID:GID` and its supplementary groups, all separated by colons: the form of `shim/criu-preload`.
    pub fn in_numbers(&self) -> String {
        let ids = [self.uid, self.gid].into_iter().chain(self.groups());
        let words: Vec<String> = ids.map(|id| id.to_string()).collect();
        words.join(":")
    }

    /// Whether it is another than the agent's, so that what the agent may is not for it.
    pub fn is_another(&self) -> bool {
        self.uid != rustix::process::geteuid().as_raw()
    }

    /// Whether it is in a group.
    pub fn is_in(&self, group: u32) -> bool {
        group == self.gid || self.groups.contains(&group)
    }

    /// `HOME` for the job, given the agent's: Docker has set root's, because the container runs as root. One that the image
    /// or the user has set stays.
    pub fn home(&self, present: Option<&Path>) -> Option<&Path> {
        match present {
            Some(home) if home != Path::new("/root") => None,
            _ => Some(&self.home),
        }
    }

    /// Gives one of the job's streams to it.
    ///
    /// # Errors
    /// The error that the system call returns.
    pub fn own(&self, stream: impl AsFd) -> io::Result<()> {
        use rustix::fs::{FileType, Gid, Uid, fchown, fstat};
        // `/dev/null` is everybody's.
        if !FileType::from_raw_mode(fstat(&stream)?.st_mode).is_fifo() {
            return Ok(());
        }
        fchown(
            &stream,
            Some(Uid::from_raw(self.uid)),
            Some(Gid::from_raw(self.gid)),
        )?;
        Ok(())
    }

    /// Makes the calling process this user's, for good; without a way to more, unless privileges are allowed. Between `fork` and `exec`: system calls only.
    ///
    /// # Errors
    /// The error of the system call that failed.
    pub fn become_it(&self, privileges: Privileges) -> io::Result<()> {
        if privileges == Privileges::Forgone && self.is_another() {
            forgo_privileges()?;
        }
        let check = |result: libc::c_long| {
            if result < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            }
        };
        // The calls themselves: glibc's functions would have the other threads follow, of which a forked child has none.
        // SAFETY: a pointer to as many groups as are said; the other calls take numbers.
        unsafe {
            check(libc::syscall(
                libc::SYS_setgroups,
                self.groups.len(),
                self.groups.as_ptr(),
            ))?;
            check(libc::syscall(
                libc::SYS_setresgid,
                self.gid,
                self.gid,
                self.gid,
            ))?;
            check(libc::syscall(
                libc::SYS_setresuid,
                self.uid,
                self.uid,
                self.uid,
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\ntrain:x:1000:1001:,,,:/home/train:/bin/sh\n1234:x:7:7::/seven:\n";
    const GROUP: &str = "root:x:0:\ntrain:x:1001:\nvideo:x:44:other,train\ngpu:x:45:root\n";

    fn find(given: &str) -> Result<JobUser, UserError> {
        JobUser::find_in(given, PASSWD, GROUP)
    }

    #[test]
    fn users_are_those_of_docker() {
        let user = find("train").unwrap();
        assert_eq!((user.uid, user.gid), (1000, 1001));
        assert_eq!(user.groups, [44, 1001]);
        assert_eq!(user.in_numbers(), "1000:1001:44:1001");
        assert_eq!(find("1000").unwrap(), user);
        let user = find("train:gpu").unwrap();
        assert_eq!((user.gid, user.groups.as_slice()), (45, &[45][..]));
        let user = find("train:train,555,gpu").unwrap();
        assert_eq!(
            (user.gid, user.groups.as_slice()),
            (1001, &[45, 555, 1001][..])
        );
        // Numbers need no entry.
        let user = find("555:666").unwrap();
        assert_eq!((user.uid, user.gid), (555, 666));
        assert_eq!(user.home(None), Some(Path::new("/")));
        assert_eq!(find("555").unwrap().gid, 0);
        // A name goes before a number.
        assert_eq!(find("1234").unwrap().uid, 7);
        assert_eq!(JobUser::find_in("8:9", "", "").unwrap().uid, 8);
        let own = rustix::process::geteuid().as_raw();
        for (uid, is) in [(own, false), (own + 1, true)] {
            assert_eq!(find(&format!("{uid}:0")).unwrap().is_another(), is);
        }
    }

    #[test]
    fn a_home_that_somebody_chose_stays() {
        let user = find("train").unwrap();
        assert_eq!(user.home(None), Some(Path::new("/home/train")));
        assert_eq!(
            user.home(Some(Path::new("/root"))),
            Some(Path::new("/home/train"))
        );
        assert_eq!(user.home(Some(Path::new("/data"))), None);
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (given, name) in [("nobody", "nobody"), ("train:staff", "staff")] {
            let text = find(given).unwrap_err().to_string();
            assert!(
                text.contains(name) && text.contains("--user 1000:1000"),
                "{text}"
            );
        }
        assert!(find("train:gpu,").is_err() && find("train:,gpu").is_err());
        for bad in ["", ":", "train:", ":gpu", "a:b:c"] {
            assert_eq!(find(bad), Err(UserError::Form(bad.into())), "{bad}");
        }
    }
}
