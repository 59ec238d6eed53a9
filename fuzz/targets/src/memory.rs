//! Counts what is allocated, so that a decoder that believes a size it was told is found by its memory.
//!
//! Counted per thread: tests run on several. What C libraries allocate (zstd's context) is not seen.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    // No destructors: an allocator must not need one.
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(by: isize) {
    // Nothing is counted on a thread that is being torn down.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + by);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call goes to the system's allocator with the caller's arguments; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Runs `work` and panics if it had more than `limit` bytes at once beyond those there before.
pub fn bounded<T>(limit: usize, work: impl FnOnce() -> T) -> T {
    let before = NOW.get();
    PEAK.set(before);
    let done = work();
    let used = PEAK.get() - before;
    assert!(
        used <= limit.cast_signed(),
        "{used} bytes of memory where {limit} must do"
    );
    done
}

#[cfg(test)]
mod tests {
    use super::bounded;

    #[test]
    #[should_panic(expected = "must do")]
    fn too_much_is_noticed() {
        bounded(1000, || std::hint::black_box(vec![0_u8; 2000]).len());
    }
}
