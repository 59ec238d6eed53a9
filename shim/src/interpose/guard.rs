//! Functions of a newer driver, which the table does not know. The application gets a stub, which counts the call in and out of
//! the gate as work, without knowing its arguments. libcudart looks up everything at its start, so a look-up alone says nothing;
//! the first call of one that may enqueue, allocate or share rules checkpoints out from then on, and says which library made it.
//! The others are noted in the log.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::table::{self, Outside};
use crate::{driver, gate, log};

/// How many unknown functions can be told apart: more than any driver exports, known and unknown (707 on 580).
const STUBS: usize = 1024;

static TARGET: [AtomicPtr<c_void>; STUBS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; STUBS];
/// The names of the unknown functions, one for each stub: see [`name`].
static NAME: [[AtomicUsize; 8]; STUBS] = [const { [const { AtomicUsize::new(0) }; 8] }; STUBS];
/// Where the first call came from; 0: none yet.
static CALLER: [AtomicUsize; STUBS] = [const { AtomicUsize::new(0) }; STUBS];
/// Calls of how many functions came; of how many the control thread has heard.
static CALLED: AtomicUsize = AtomicUsize::new(0);
static HEARD: AtomicUsize = AtomicUsize::new(0);
static OVERFLOW: AtomicBool = AtomicBool::new(false);

/// An unknown function that was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The name of the function.
    pub name: String,
    /// The file name of the library or program that called it first.
    pub caller: String,
}

/// What the application gets for `found`, a function of libcuda called `symbol` that is not in the table.
pub fn substitute(found: *mut c_void, symbol: &CStr) -> *mut c_void {
    for (i, target) in TARGET.iter().enumerate() {
        let claimed = target.compare_exchange(
            std::ptr::null_mut(),
            found,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        match claimed {
            Ok(_) => {
                set_name(i, symbol);
                return stub(i);
            }
            Err(other) if other == found => return stub(i),
            Err(_) => {}
        }
    }
    OVERFLOW.store(true, Ordering::SeqCst);
    found
}

/// The unknown functions that were called, by their stubs.
fn called() -> impl Iterator<Item = (usize, Call)> {
    (0..STUBS).filter_map(|i| {
        let caller = CALLER[i].load(Ordering::SeqCst);
        (caller != 0).then(|| {
            let call = Call {
                name: name(i),
                caller: file_of(caller),
            };
            (i, call)
        })
    })
}

/// The unknown functions that were called and rule checkpoints out.
pub fn not_understood() -> Vec<Call> {
    let mut calls: Vec<Call> = called()
        .filter(|(i, _)| judge(*i) == Outside::NotUnderstood)
        .map(|(_, call)| call)
        .collect();
    if OVERFLOW.load(Ordering::SeqCst) {
        calls.push(Call {
            name: format!("one of more than {STUBS} functions of a newer driver"),
            caller: "the process".to_owned(),
        });
    }
    calls
}

/// Whether more were called since this was asked last, by the control thread; those that are only held are put into the
/// log.
pub fn changed() -> bool {
    let now = CALLED.load(Ordering::SeqCst);
    if HEARD.swap(now, Ordering::SeqCst) == now {
        return false;
    }
    for (i, call) in called() {
        static SAID: [AtomicBool; STUBS] = [const { AtomicBool::new(false) }; STUBS];
        if judge(i) == Outside::Held && !SAID[i].swap(true, Ordering::Relaxed) {
            log::info!(
                "{} calls {}, which this version of phos-ft does not know: it is held back for checkpoints like any other",
                call.caller,
                call.name
            );
        }
    }
    true
}

fn judge(stub: usize) -> Outside {
    std::ffi::CString::new(name(stub)).map_or(Outside::NotUnderstood, |name| table::outside(&name))
}

fn file_of(address: usize) -> String {
    let file = driver::object_of(address)
        .filter(|object| !object.file.is_null())
        .map(|object| {
            // SAFETY: the loader's string; the library is in use, since it has just called.
            let path = unsafe { CStr::from_ptr(object.file) };
            path.to_string_lossy().into_owned()
        })
        .unwrap_or_default();
    match file.rsplit('/').next() {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "code outside every library".to_owned(),
    }
}

// A name of up to 63 bytes, stored in words: no allocation, no locks.
fn set_name(stub: usize, name: &CStr) {
    for (word, bytes) in NAME[stub].iter().zip(name.to_bytes().chunks(8)) {
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        word.store(usize::from_le_bytes(value), Ordering::Relaxed);
    }
}

fn name(stub: usize) -> String {
    let bytes: Vec<u8> = NAME[stub]
        .iter()
        .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
        .take_while(|&b| b != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs before the call behind a stub, with the call's arguments saved. Returns what to call.
unsafe extern "C" fn before_call(stub: usize, caller: usize) -> *mut c_void {
    if CALLER[stub].load(Ordering::Relaxed) == 0
        && CALLER[stub]
            .compare_exchange(0, caller, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    {
        // Marked before the gate is looked at: the closer does it the other way round, so one sees the other.
        CALLED.fetch_add(1, Ordering::SeqCst);
    }
    gate::enter_unscoped();
    TARGET[stub].load(Ordering::Acquire)
}

/// Runs after the call, with its result saved.
unsafe extern "C" fn after_call() {
    gate::leave();
}

// The call is made from a frame of its own with the first 256 bytes of the caller's stack arguments: no entry point takes
// more than a third of that. What lies above a caller's arguments is its own frame, so those bytes can be read.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn go_on() {
    // rax: number of the stub. Saved around before_call: everything that can hold an argument.
    std::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 128",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov rdi, rax",
        "mov rsi, [rbp + 8]",
        "call {before}",
        "mov r11, rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 128",
        "sub rsp, 256",
        // Stack arguments, from the last to the first.
        "mov ecx, 32",
        "2:",
        "mov rax, [rbp + 8 + rcx * 8]",
        "mov [rsp - 8 + rcx * 8], rax",
        "dec ecx",
        "jnz 2b",
        "mov rdi, [rbp - 8]",
        "mov rsi, [rbp - 16]",
        "mov rdx, [rbp - 24]",
        "mov rcx, [rbp - 32]",
        "mov r8, [rbp - 40]",
        "mov r9, [rbp - 48]",
        // How many vector registers a function of variable arguments has to look at: all.
        "mov eax, 8",
        "call r11",
        "mov [rbp - 8], rax",
        "mov [rbp - 16], rdx",
        "call {after}",
        "mov rax, [rbp - 8]",
        "mov rdx, [rbp - 16]",
        "leave",
        "ret",
        before = sym before_call,
        after = sym after_call,
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn go_on() {
    // x16: number of the stub.
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-224]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x8, [sp, #80]",
        "stp q0, q1, [sp, #96]",
        "stp q2, q3, [sp, #128]",
        "stp q4, q5, [sp, #160]",
        "stp q6, q7, [sp, #192]",
        "mov x0, x16",
        "mov x1, x30",
        "bl {before}",
        "mov x16, x0",
        "sub sp, sp, #256",
        // Stack arguments, which begin above this frame.
        "add x9, x29, #224",
        "mov x10, sp",
        "mov x11, #32",
        "2:",
        "ldr x12, [x9], #8",
        "str x12, [x10], #8",
        "subs x11, x11, #1",
        "b.ne 2b",
        "ldp x0, x1, [x29, #16]",
        "ldp x2, x3, [x29, #32]",
        "ldp x4, x5, [x29, #48]",
        "ldp x6, x7, [x29, #64]",
        "ldr x8, [x29, #80]",
        "ldp q0, q1, [x29, #96]",
        "ldp q2, q3, [x29, #128]",
        "ldp q4, q5, [x29, #160]",
        "ldp q6, q7, [x29, #192]",
        "blr x16",
        "stp x0, x1, [x29, #16]",
        "bl {after}",
        "ldp x0, x1, [x29, #16]",
        "mov sp, x29",
        "ldp x29, x30, [sp], #224",
        "ret",
        before = sym before_call,
        after = sym after_call,
    )
}

// Entries of 16 bytes each: load the number, go on.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    std::arch::naked_asm!(
        ".balign 16",
        ".set phos_stub, 0",
        ".rept {count}",
        ".balign 16",
        "endbr64",
        "mov eax, phos_stub",
        "jmp {go_on}",
        ".set phos_stub, phos_stub + 1",
        ".endr",
        count = const STUBS,
        go_on = sym go_on,
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    std::arch::naked_asm!(
        ".balign 16",
        ".set phos_stub, 0",
        ".rept {count}",
        ".balign 16",
        "hint #34", // bti c
        "mov x16, phos_stub",
        "b {go_on}",
        ".set phos_stub, phos_stub + 1",
        ".endr",
        count = const STUBS,
        go_on = sym go_on,
    )
}

fn stub(index: usize) -> *mut c_void {
    let first = stubs as *const () as usize;
    // The function may begin with padding before its own alignment directive takes effect.
    ((first + 15) & !15).wrapping_add(index * 16) as *mut c_void
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use super::*;

    #[allow(clippy::too_many_arguments)]
    extern "C" fn eleven(
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        f: u64,
        g: u64,
        h: f64,
        i: u64,
        j: u64,
        k: u64,
    ) -> u64 {
        a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + h as u64 + 8 * i + 9 * j + 10 * k
    }

    #[test]
    fn a_stub_passes_all_arguments_and_is_noted_when_called() {
        let target = eleven as *const () as *mut c_void;
        let stub = substitute(target, c"cuTensorAllocFuture_v7");
        assert_ne!(stub, target);
        assert_eq!(stub, substitute(target, c"cuTensorAllocFuture_v7"));
        assert!(not_understood().is_empty());
        type Eleven = extern "C" fn(u64, u64, u64, u64, u64, u64, u64, f64, u64, u64, u64) -> u64;
        // SAFETY: the stub calls `eleven`.
        let call: Eleven = unsafe { std::mem::transmute(stub) };
        assert_eq!(
            call(1, 2, 3, 4, 5, 6, 7, 0.5 + 9.0, 10, 11, 12),
            eleven(1, 2, 3, 4, 5, 6, 7, 9.0, 10, 11, 12)
        );
        let calls = not_understood();
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert_eq!(calls[0].name, "cuTensorAllocFuture_v7");
        let program = std::env::current_exe().unwrap();
        assert_eq!(
            Some(calls[0].caller.as_str()),
            program.file_name().and_then(|n| n.to_str())
        );
    }

    #[test]
    fn looking_up_every_function_of_a_driver_leaves_room() {
        // Look-ups alone: none is called, so none is noted.
        for i in 0..900 {
            let found = (0x1000 + i) as *mut c_void;
            assert_ne!(substitute(found, c"cuSomethingTomorrow"), found);
        }
        assert!(!OVERFLOW.load(Ordering::SeqCst));
    }
}
