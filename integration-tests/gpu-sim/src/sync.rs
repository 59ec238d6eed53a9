//! Locks without poisoning (the workspace aborts on panic), handle tables, and threads for somebody else's process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Objects by handle. A handle is a number that is no address, so a stale or foreign one is found out, not followed.
pub struct Registry<T> {
    kind: u64,
    next: AtomicU64,
    map: RwLock<HashMap<u64, Arc<T>>>,
}

impl<T> Registry<T> {
    /// `kind` makes handles of different kinds different.
    pub fn new(kind: u64) -> Self {
        Self {
            kind,
            next: AtomicU64::new(1),
            map: RwLock::default(),
        }
    }

    pub fn insert(&self, make: impl FnOnce(u64) -> T) -> (u64, Arc<T>) {
        let handle =
            0x5150_0000_0000 | self.kind << 32 | self.next.fetch_add(1, Ordering::Relaxed) << 4;
        let object = Arc::new(make(handle));
        write(&self.map).insert(handle, Arc::clone(&object));
        (handle, object)
    }

    pub fn get(&self, handle: u64) -> Option<Arc<T>> {
        read(&self.map).get(&handle).cloned()
    }

    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        write(&self.map).remove(&handle)
    }

    /// The handle of an object.
    pub fn find(&self, object: &Arc<T>) -> Option<u64> {
        read(&self.map)
            .iter()
            .find(|(_, known)| Arc::ptr_eq(known, object))
            .map(|(handle, _)| *handle)
    }

    /// All objects, oldest first.
    pub fn all(&self) -> Vec<Arc<T>> {
        let map = read(&self.map);
        let mut handles: Vec<_> = map.keys().copied().collect();
        handles.sort_unstable();
        handles
            .iter()
            .filter_map(|handle| map.get(handle).cloned())
            .collect()
    }
}

/// Starts a named thread with every signal blocked: the application's handlers must not run on it.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    // SAFETY: plain calls on local sets; the mask of this thread is put back.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        let started = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(512 << 10)
            .spawn(run)
            .is_ok();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, std::ptr::null_mut());
        started
    }
}
