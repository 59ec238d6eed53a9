//! See `phos_fuzz_targets::sealed_objects`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| phos_fuzz_targets::sealed_objects(bytes));
