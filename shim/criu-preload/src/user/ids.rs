//! The rights that a thread works with, and how it changes them for the length of a call.
//!
//! # Rules
//!
//! * They are the ids of this thread: the C library's functions would change those of all threads, and they take locks.
//! * If its own ids cannot be restored, the process ends: nothing that CRIU did with another user's rights would be what it
//!   meant.

use core::ffi::{CStr, c_int, c_long};

use crate::{kernel, number, variable};

/// The variable with the job's user: `UID:GID` and its supplementary groups, all separated by colons.
const USER: &CStr = c"PHOS_JOB_USER";

/// The most supplementary groups of a user, or of CRIU.
pub(super) const GROUPS: usize = 1024;

/// User, group and supplementary groups.
#[derive(Clone, Copy)]
pub(super) struct Ids {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: [u32; GROUPS],
    pub(super) count: usize,
}

/// Reads what stands in [`USER`].
pub(super) fn ids_in(text: &[u8]) -> Option<Ids> {
    let mut numbers = text
        .split(|&byte| byte == b':')
        .map(|word| u32::try_from(number(word).filter(|_| !word.is_empty())?).ok());
    let mut ids = Ids {
        uid: numbers.next()??,
        gid: numbers.next()??,
        groups: [0; GROUPS],
        count: 0,
    };
    for group in numbers {
        *ids.groups.get_mut(ids.count)? = group?;
        ids.count = ids.count.checked_add(1)?;
    }
    Some(ids)
}

/// The negative of an error, as the kernel gives it.
pub(super) const fn refusal(errno: c_int) -> c_long {
    -(errno as c_long)
}

/// A call with numbers and addresses.
///
/// # Safety
/// The same as for the system call.
pub(super) unsafe fn call<const N: usize>(number: c_long, arguments: [c_long; N]) -> c_long {
    let mut all = [0; 6];
    for (place, argument) in all.iter_mut().zip(arguments) {
        *place = argument;
    }
    // SAFETY: what the caller gave.
    unsafe { kernel(number, all) }
}

/// The user that the job belongs to. `Ok(None)`: that does not matter here. `Err`: it cannot be understood, and nothing is done
/// for the job.
pub(super) fn job() -> Result<Option<Ids>, c_long> {
    let Some(text) = variable(USER) else {
        return Ok(None);
    };
    match ids_in(text) {
        Some(ids) => Ok(Some(ids)),
        None => Err(refusal(libc::EINVAL)),
    }
}

/// What `capget` and `capset` take: effective, permitted and inheritable, in two halves.
type Capabilities = [[u32; 3]; 2];

/// Their header for this thread: `_LINUX_CAPABILITY_VERSION_3`.
const THIS: [u32; 2] = [0x2008_0522, 0];

fn capabilities() -> Result<Capabilities, c_long> {
    let (mut header, mut sets) = (THIS, Capabilities::default());
    let arguments = [header.as_mut_ptr() as c_long, sets.as_mut_ptr() as c_long];
    // SAFETY: the addresses of what the version says.
    let got = unsafe { call(libc::SYS_capget, arguments) };
    if got < 0 { Err(got) } else { Ok(sets) }
}

fn set_capabilities(sets: &Capabilities) -> c_long {
    let mut header = THIS;
    let arguments = [header.as_mut_ptr() as c_long, sets.as_ptr() as c_long];
    // SAFETY: the addresses of what the version says.
    unsafe { call(libc::SYS_capset, arguments) }
}

/// The effective ones. They go with root's id, save where the process has that changed (`SECBIT_NO_SETUID_FIXUP`).
fn give_up_capabilities() -> Result<(), c_long> {
    let mut sets = capabilities()?;
    if sets.iter().all(|[effective, ..]| *effective == 0) {
        return Ok(());
    }
    for [effective, ..] in &mut sets {
        *effective = 0;
    }
    match set_capabilities(&sets) {
        0 => Ok(()),
        refused => Err(refused),
    }
}

impl Ids {
    /// The ids that this thread works with.
    pub(super) fn now() -> Result<Self, c_long> {
        let mut groups = [0; GROUPS];
        let room = [GROUPS as c_long, groups.as_mut_ptr() as c_long];
        // SAFETY: calls without addresses, and one that writes no more groups than there is room for.
        let (uid, gid, count) = unsafe {
            (
                call(libc::SYS_geteuid, []),
                call(libc::SYS_getegid, []),
                call(libc::SYS_getgroups, room),
            )
        };
        match (uid.try_into(), gid.try_into(), count.try_into()) {
            (Ok(uid), Ok(gid), Ok(count)) => Ok(Self {
                uid,
                gid,
                groups,
                count,
            }),
            _ => Err(refusal(libc::EINVAL)),
        }
    }

    fn set_groups(&self) -> c_long {
        let arguments = [self.count as c_long, self.groups.as_ptr() as c_long];
        // SAFETY: so many groups are there.
        unsafe { call(libc::SYS_setgroups, arguments) }
    }

    fn set_group(&self) -> c_long {
        // SAFETY: numbers only.
        unsafe { call(libc::SYS_setresgid, [-1, self.gid.into(), -1]) }
    }

    fn set_user(&self) -> c_long {
        // SAFETY: numbers only.
        unsafe { call(libc::SYS_setresuid, [-1, self.uid.into(), -1]) }
    }

    /// Works with these ids from now on. `Err`: it works with the previous ids, or with some of both.
    fn begin(&self) -> Result<(), c_long> {
        // Groups while this is root, who alone may.
        [Self::set_groups, Self::set_group, Self::set_user]
            .into_iter()
            .map(|set| set(self))
            .find(|&result| result < 0)
            .map_or(Ok(()), Err)?;
        give_up_capabilities()
    }

    /// Works with them and these capabilities again, after others.
    fn resume(&self, own: &Capabilities) {
        // A group can be set by whoever has the capability again.
        let is_back = self.set_user() == 0
            && set_capabilities(own) == 0
            && self.set_group() == 0
            && self.set_groups() == 0;
        if !is_back {
            // SAFETY: takes nothing, does not return.
            unsafe { libc::abort() }
        }
    }

    /// Does something with the rights of these, and gives its result.
    pub(super) fn run(&self, task: impl FnOnce() -> c_long) -> c_long {
        let (own, may) = match (Self::now(), capabilities()) {
            (Ok(own), Ok(may)) => (own, may),
            (Err(refused), _) | (_, Err(refused)) => return refused,
        };
        let result = match self.begin() {
            Ok(()) => task(),
            Err(refused) => refused,
        };
        own.resume(&may);
        result
    }

    pub(super) fn is_in(&self, group: u32) -> bool {
        let groups = self.groups.get(..self.count).unwrap_or(&[]);
        group == self.gid || groups.contains(&group)
    }
}
