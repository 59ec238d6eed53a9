//! How the sidecar's heap grows.
//!
//! glibc gives threads that allocate at once arenas of their own, up to eight for each core, and each keeps what was freed at its
//! top. Chunks are read, decoded, encoded and sent by many threads, in blocks of a megabyte and more: their arenas came to hold
//! as much memory again as was in use (192 MiB against 84 MiB while reading 1 GiB, `make bench-storage`). Sharing two arenas does
//! not slow the threads down: they allocate seldom, and much at a time.

/// As many arenas as there are kinds of work: what computes, and what waits for network and disk.
const ARENAS: i32 = 2;

/// Gives what was freed, and lies between what was not, back to the system.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes a number, and works on the allocator's own data under its locks.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Bounds the heap of this process. Before it has threads; nothing depends on it but memory.
pub fn bound() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes two numbers and sets a parameter of the allocator, under its own lock.
        let set = unsafe { libc::mallopt(libc::M_ARENA_MAX, ARENAS) };
        if set == 0 {
            tracing::debug!("the number of malloc arenas could not be bounded");
        }
    }
}
