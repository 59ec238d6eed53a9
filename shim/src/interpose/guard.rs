//! Functions of the driver that the table does not know and that may enqueue work: a newer driver's versions of what is
//! gated. libcudart looks up everything at its start, so a look-up alone says nothing. The application gets a stub; its
//! first call is noted, which rules checkpoints out from then on, and no call passes while the gate is closed.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::gate;
use crate::table::{self, Outside};

/// How many unknown functions can be told apart. More of them rule checkpoints out at look-up.
const STUBS: usize = 64;

static TARGET: [AtomicPtr<c_void>; STUBS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; STUBS];
/// The loader's or the application's string; see [`name`].
static NAME: [[AtomicUsize; 8]; STUBS] = [const { [const { AtomicUsize::new(0) }; 8] }; STUBS];
static CALLED: [AtomicBool; STUBS] = [const { AtomicBool::new(false) }; STUBS];
static ANNOUNCED: AtomicUsize = AtomicUsize::new(0);
static OVERFLOW: AtomicBool = AtomicBool::new(false);

/// What the application gets for `found`, a function of libcuda called `symbol` that is not in the table.
pub fn substitute(found: *mut c_void, symbol: &CStr, asked: &CStr) -> *mut c_void {
    if table::outside(symbol) == Outside::Pass
        || (symbol != asked && table::outside(asked) == Outside::Pass)
    {
        return found;
    }
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

/// Names of those that were called.
pub fn called() -> Vec<String> {
    let mut names: Vec<String> = (0..STUBS)
        .filter(|&i| CALLED[i].load(Ordering::SeqCst))
        .map(name)
        .collect();
    if OVERFLOW.load(Ordering::SeqCst) {
        names.push("more than 64 functions of a newer driver".to_owned());
    }
    names
}

/// Whether more were called than the agent was told of; the control thread asks now and then.
pub fn changed() -> bool {
    let now = called().len();
    ANNOUNCED.swap(now, Ordering::Relaxed) != now
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

/// Runs before the call behind a stub, with the call's arguments saved. Returns where to go on.
unsafe extern "C" fn before_call(stub: usize) -> *mut c_void {
    // Marked first, then looked at the gate: the closer does it the other way round, so one sees the other.
    CALLED[stub].store(true, Ordering::SeqCst);
    if gate::is_closed() {
        gate::wait_until_open();
    }
    TARGET[stub].load(Ordering::Acquire)
}

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn go_on() {
    // rax: number of the stub. Arguments in registers are kept over before_call; those on the stack are not touched.
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push r10",
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
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp r11",
        before = sym before_call,
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
        "bl {before}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldr x8, [sp, #80]",
        "ldp q0, q1, [sp, #96]",
        "ldp q2, q3, [sp, #128]",
        "ldp q4, q5, [sp, #160]",
        "ldp q6, q7, [sp, #192]",
        "ldp x29, x30, [sp], #224",
        "br x16",
        before = sym before_call,
    )
}

// 64 entries of 16 bytes each: load the number, go on.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    std::arch::naked_asm!(
        ".balign 16",
        ".set phos_stub, 0",
        ".rept 64",
        ".balign 16",
        "endbr64",
        "mov eax, phos_stub",
        "jmp {go_on}",
        ".set phos_stub, phos_stub + 1",
        ".endr",
        go_on = sym go_on,
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    std::arch::naked_asm!(
        ".balign 16",
        ".set phos_stub, 0",
        ".rept 64",
        ".balign 16",
        "hint #34", // bti c
        "mov x16, phos_stub",
        "b {go_on}",
        ".set phos_stub, phos_stub + 1",
        ".endr",
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

    extern "C" fn seven(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: f64) -> u64 {
        a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + h as u64
    }

    #[test]
    fn a_stub_passes_all_arguments_and_is_noted_when_called() {
        let target = seven as *const () as *mut c_void;
        let stub = substitute(target, c"cuMemcpyFuture_v7", c"cuMemcpyFuture");
        assert_ne!(stub, target);
        assert_eq!(
            stub,
            substitute(target, c"cuMemcpyFuture_v7", c"cuMemcpyFuture")
        );
        assert!(!called().contains(&"cuMemcpyFuture_v7".to_owned()));
        // SAFETY: the stub jumps to `seven`.
        let call: extern "C" fn(u64, u64, u64, u64, u64, u64, u64, f64) -> u64 =
            unsafe { std::mem::transmute(stub) };
        assert_eq!(
            call(1, 2, 3, 4, 5, 6, 7, 0.5 + 9.0),
            seven(1, 2, 3, 4, 5, 6, 7, 9.0)
        );
        assert!(called().contains(&"cuMemcpyFuture_v7".to_owned()));

        let passing = stubs as *const () as *mut c_void;
        assert_eq!(
            substitute(passing, c"cuDeviceGetTomorrow", c"cuDeviceGetTomorrow"),
            passing
        );
    }
}
