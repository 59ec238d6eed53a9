//! The identifier of a CRIU's run, which the name of its table in the firewall begins with.
//!
//! While CRIU dumps a tree whose TCP connections are kept, it holds their packets back by an nftables table named after a random identifier
//! (`inet CRIU-da4ad895-26f6-4603-b8`, as much of it as there is room for). If it is killed before it has deleted that table, the connections stand still for ever, and nobody can
//! tell whose the table is: of several jobs on a machine, one that cleans up would delete what another one's dump needs. The agent
//! gives the first half of the identifier in [`TAG`]; the rest stays random. CRIU makes it by `uuid_generate` of libuuid, which is
//! taken over here.

use core::ffi::CStr;

use crate::variable;

/// The variable with the first eight bytes, in hexadecimal digits.
const TAG: &CStr = c"PHOS_CRIU_RUN";

/// Eight bytes of sixteen digits.
fn tag(text: &[u8]) -> Option<[u8; 8]> {
    let mut bytes = [0; 8];
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    let digit = |c: u8| (c as char).to_digit(16).map(|digit| digit as u8);
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// Sixteen bytes that are as good as random, also where the kernel has none to give.
fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: as many bytes as there are.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(got) != Ok(bytes.len()) {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: room for a time; takes nothing.
        let pid = unsafe {
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
            libc::getpid()
        };
        let [first, second] = [now.tv_sec.rotate_left(32) ^ i64::from(pid), now.tv_nsec];
        let all = i128::from(first) << 64 | i128::from(second);
        bytes = all.to_ne_bytes();
    }
    bytes
}

/// Replaces libuuid's.
///
/// # Safety
/// The same as for libuuid's function: there is room for sixteen bytes at `out`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn uuid_generate(out: *mut u8) {
    let mut bytes = random();
    // Version 4: random.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    if let (Some(tag), Some(first)) = (variable(TAG).and_then(tag), bytes.first_chunk_mut::<8>()) {
        *first = tag;
    }
    // SAFETY: the caller's promise.
    unsafe { out.cast::<[u8; 16]>().write_unaligned(bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_sixteen_digits() {
        assert_eq!(
            tag(b"0123456789aBcDeF"),
            Some([0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef])
        );
        for bad in [&b""[..], b"0123", b"0123456789abcdeg", b"0123456789abcdef0"] {
            assert_eq!(tag(bad), None);
        }
    }

    #[test]
    fn without_a_tag_all_of_it_is_random() {
        let mut both = [[0; 16]; 2];
        for one in &mut both {
            // SAFETY: room for sixteen bytes.
            unsafe { uuid_generate(one.as_mut_ptr()) };
            assert_eq!((one[6] >> 4, one[8] >> 6), (4, 2));
        }
        assert_ne!(both[0], both[1]);
    }
}
