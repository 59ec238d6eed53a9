//! Where keys are kept: memory that does not go to a disk, and is wiped when nobody needs it.
//!
//! # Rules
//!
//! * Each set of keys has a page of its own, so that what locks or unlocks it concerns nothing else.
//! * The page is locked in memory (`mlock`), so that it does not get into swap. Where the limit for that (`ulimit -l`) is spent,
//!   it is used all the same, and a warning says so, once.
//! * It is wiped before it is unlocked.
//!
//! What the cryptographic libraries leave on the stack is not covered; the process itself has to see to it that nobody else reads
//! its memory (`sidecar/src/cli/look.rs`).

use std::fmt;
use std::sync::Once;

use zeroize::Zeroize as _;

/// The length of a key, in bytes.
pub(crate) const KEY: usize = 32;

/// As large as a page of memory, on x86-64 and as a rule.
#[repr(C, align(4096))]
struct Page<const N: usize>([[u8; KEY]; N]);

/// `N` keys in a page of their own, wiped when they are dropped.
pub(crate) struct Secret<const N: usize> {
    // Dropped in this order: what is unlocked was wiped and is still there.
    locked: Option<region::LockGuard>,
    page: Box<Page<N>>,
}

impl<const N: usize> Secret<N> {
    /// Room for keys, all zeros, where `fill` writes them.
    pub(crate) fn new(fill: impl FnOnce(&mut [[u8; KEY]; N])) -> Self {
        let mut page = Box::new(Page([[0; KEY]; N]));
        // Before anything secret is in it.
        let locked = region::lock(&raw const *page, size_of::<Page<N>>());
        if let Err(error) = &locked {
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                tracing::warn!(
                    %error,
                    "the encryption key cannot be locked in memory, so a machine with swap may write it to its disk: raise the limit \
                     (`ulimit -l`; LimitMEMLOCK= in systemd, ulimits: memlock: in compose), or use no swap or an encrypted one"
                );
            });
        }
        fill(&mut page.0);
        Self {
            locked: locked.ok(),
            page,
        }
    }

    pub(crate) fn keys(&self) -> &[[u8; KEY]; N] {
        &self.page.0
    }
}

impl<const N: usize> Drop for Secret<N> {
    fn drop(&mut self) {
        self.page.0.zeroize();
    }
}

impl<const N: usize> fmt::Debug for Secret<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = if self.locked.is_some() {
            "locked"
        } else {
            "not locked"
        };
        write!(f, "Secret({kept})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel has locked of this process, in KiB. Of one process for each test.
    fn locked_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmLck:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn keys_have_a_locked_page_each_and_give_it_back() {
        let before = locked_kib();
        let one = Secret::new(|keys: &mut [_; 1]| keys[0] = [1; KEY]);
        let three = Secret::new(|keys: &mut [_; 3]| keys[2] = [3; KEY]);
        assert_eq!(locked_kib() - before, 8);
        assert!(one.locked.is_some() && three.locked.is_some());
        assert_eq!((one.keys(), three.keys()[2]), (&[[1; KEY]], [3; KEY]));
        assert!(!format!("{one:?}").contains('1'));
        drop(one);
        // The other one stays.
        assert_eq!(locked_kib() - before, 4);
        assert_eq!(three.keys()[2], [3; KEY]);
        drop(three);
        assert_eq!(locked_kib(), before);
    }
}
