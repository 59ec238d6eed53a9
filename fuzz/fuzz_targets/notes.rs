//! See `phos_fuzz_targets::notes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| phos_fuzz_targets::notes(bytes));
