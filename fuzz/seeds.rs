//! Writes the seeds to the directory in `PHOS_WRITE_SEEDS`, a folder for each target. Shaped like a fuzzer, because that
//! is what the instrumented crates link with.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: {
        let to = std::env::var_os("PHOS_WRITE_SEEDS").expect("PHOS_WRITE_SEEDS names a directory");
        phos_fuzz_targets::seeds::write(std::path::Path::new(&to));
    },
    |_bytes: &[u8]| {}
);
