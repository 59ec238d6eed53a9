//! How programs that do not link the driver directly reach our wrappers: `dlsym` and `cuGetProcAddress`.
//!
//! Both call the real resolver and then replace by the address it returned, so that versions, flags and stream variants
//! come out right whatever the name asked for was. libcudart's `cudaGetDriverEntryPoint*` and everything else that looks
//! a driver function up resolves `cuGetProcAddress` itself by `dlsym` through its PLT, hence through here.

pub mod bypass;
pub mod export_table;
pub mod guard;
pub mod proc_address;

use std::ffi::{CStr, c_char, c_void};

use crate::driver::{self, Load};

#[cfg_attr(test, allow(dead_code))]
/// `dlsym` for a handle of a library (not `RTLD_NEXT`; `RTLD_DEFAULT` for names of NCCL's alone).
unsafe extern "C" fn dlsym_by_handle(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's promise.
    let found = unsafe { driver::dlsym(handle, name) };
    if found.is_null() || name.is_null() {
        return found;
    }
    // SAFETY: a terminated string; the second byte is read only if the first is not the terminator.
    let candidate = unsafe {
        *name as u8 == b'c'
            && *name.add(1) as u8 == b'u'
            && (*name.add(2) as u8).is_ascii_uppercase()
    };
    // SAFETY: as above, each byte read only if the one before is not the terminator.
    let of_nccl = unsafe { (0..4).all(|i| *name.add(i) as u8 == b"nccl"[i]) };
    if of_nccl {
        // SAFETY: terminated, see above.
        return crate::ranks::library::substitute(found, unsafe { CStr::from_ptr(name) });
    }
    if !candidate || !driver::resolve(Load::Never) {
        return found;
    }
    // SAFETY: terminated, see above.
    substitute(found, unsafe { CStr::from_ptr(name) })
}

/// What the application gets instead of `found`, which it asked for as `asked`.
pub fn substitute(found: *mut c_void, asked: &CStr) -> *mut c_void {
    let address = found.cast_const().cast::<()>();
    if let Some(entry) = driver::entry_at(address) {
        return crate::table::wrapper(entry).map_or(found, |w| w.cast_mut().cast());
    }
    match driver::in_libcuda(address) {
        None => found,
        Some(symbol) => guard::substitute(found, symbol.unwrap_or(asked)),
    }
}

// RTLD_NEXT and RTLD_DEFAULT are resolved by the C library from the address it will return to: those calls must reach
// it as jumps. Everything else goes to dlsym_by_handle.
#[cfg(all(not(test), target_arch = "x86_64"))]
mod export {
    use std::ffi::{c_char, c_void};

    /// Replaces the C library's.
    ///
    /// # Safety
    /// The same as for the C library's function.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
        std::arch::naked_asm!(
            "endbr64",
            "mov rax, [rip + {real}]",
            "test rax, rax",
            "jz 3f",
            "2:",
            "lea rcx, [rdi + 1]", // RTLD_NEXT is -1, RTLD_DEFAULT 0
            "cmp rcx, 1",
            "ja {by_handle}",
            "jne 4f",
            // Our own exports are in the global scope, where NCCL's may be missing.
            "test rsi, rsi",
            "jz 4f",
            "cmp byte ptr [rsi], 'n'",
            "jne 4f",
            "cmp byte ptr [rsi + 1], 'c'",
            "jne 4f",
            "cmp byte ptr [rsi + 2], 'c'",
            "jne 4f",
            "cmp byte ptr [rsi + 3], 'l'",
            "je {by_handle}",
            "4:",
            "jmp rax",
            "3:",
            "push rdi",
            "push rsi",
            "sub rsp, 8",
            "call {find}",
            "add rsp, 8",
            "pop rsi",
            "pop rdi",
            "test rax, rax",
            "jnz 2b",
            "ret",
            real = sym crate::driver::REAL_DLSYM,
            by_handle = sym super::dlsym_by_handle,
            find = sym crate::driver::find_dlsym,
        )
    }
}

#[cfg(all(not(test), target_arch = "aarch64"))]
mod export {
    use std::ffi::{c_char, c_void};

    /// Replaces the C library's.
    ///
    /// # Safety
    /// The same as for the C library's function.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
        std::arch::naked_asm!(
            "hint #34", // bti c
            "adrp x9, {real}",
            "ldr x9, [x9, :lo12:{real}]",
            "cbz x9, 3f",
            "2:",
            "add x10, x0, #1", // RTLD_NEXT is -1, RTLD_DEFAULT 0
            "cmp x10, #1",
            "b.ls 4f",
            "b {by_handle}",
            "4:",
            "br x9",
            "3:",
            "stp x29, x30, [sp, #-32]!",
            "stp x0, x1, [sp, #16]",
            "bl {find}",
            "mov x9, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x29, x30, [sp], #32",
            "cbnz x9, 2b",
            "mov x0, #0",
            "ret",
            real = sym crate::driver::REAL_DLSYM,
            by_handle = sym super::dlsym_by_handle,
            find = sym crate::driver::find_dlsym,
        )
    }
}
