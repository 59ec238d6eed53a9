//! The features of this machine's CPUs that programs use.
//!
//! Libraries ask the CPU once, when a process starts, and keep to what they found: a process that found AVX-512 and is resumed
//! where there is none dies of SIGILL, at whatever moment. So the image lists the features of the machine that it was taken on,
//! which are at least those of the machine that the job started on: a resume needs a machine with all of them.
//!
//! Names are those of /proc/cpuinfo. Most of what stands there concerns the kernel alone (virtualisation, mitigations, clocks)
//! and differs between machines on which the same programs run; [`is_for_programs`] keeps the rest.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Where the kernel says it. Tests put another file in its place.
const VARIABLE: &str = "PHOS_CPUINFO";

/// x86: instruction sets whose names share a beginning.
const FAMILIES: [&str; 5] = ["avx", "amx_", "sse", "sha", "fma"];
/// x86: others that fault, or that the C library keeps to, where they are missing.
const OTHERS: &[&str] = &[
    "abm",
    "adx",
    "aes",
    "bmi1",
    "bmi2",
    "cmpccxadd",
    "clflushopt",
    "clwb",
    "clzero",
    "cx16",
    "enqcmd",
    "f16c",
    "fsgsbase",
    "fxsr",
    "gfni",
    "lahf_lm",
    "mmx",
    "movbe",
    "movdir64b",
    "movdiri",
    "ospke",
    "pclmulqdq",
    "pni",
    "popcnt",
    "raoint",
    "rdpid",
    "rdrand",
    "rdseed",
    "rdtscp",
    "rtm",
    "serialize",
    "sm3",
    "sm4",
    "ssse3",
    "tbm",
    "vaes",
    "vpclmulqdq",
    "waitpkg",
    "xop",
    "xsave",
    "xsavec",
    "xsaveopt",
];

/// Whether programs can use it without the kernel, and fail where it is missing.
fn is_for_programs(name: &str) -> bool {
    FAMILIES.iter().any(|family| name.starts_with(family)) || OTHERS.contains(&name)
}

/// What every CPU of this machine has. Empty: the kernel does not say.
pub(super) fn features() -> BTreeSet<String> {
    let path = std::env::var_os(VARIABLE).map_or_else(|| "/proc/cpuinfo".into(), PathBuf::from);
    parse(&std::fs::read_to_string(path).unwrap_or_default())
}

fn parse(text: &str) -> BTreeSet<String> {
    let lists = text.lines().filter_map(|line| {
        let (name, list) = line.split_once(':')?;
        match name.trim() {
            "flags" => Some((true, list)),
            // ARM lists what programs can use and nothing else.
            "Features" => Some((false, list)),
            _ => None,
        }
    });
    let sets = lists.map(|(choose, list)| -> BTreeSet<&str> {
        list.split_ascii_whitespace()
            .filter(|name| !choose || is_for_programs(name))
            .collect()
    });
    let common = sets.reduce(|all, one| &all & &one).unwrap_or_default();
    common.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        parse(text).into_iter().collect()
    }

    #[test]
    fn what_every_cpu_has_and_programs_use_is_found() {
        let text = "processor\t: 0\nflags\t\t: fpu vmx avx2 avx512f amx_tile md_clear constant_tsc\nbugs\t\t: avx_bug\n\n\
                    processor\t: 1\nflags\t\t: fpu vmx avx2 amx_tile\nvmx flags\t: avx\n";
        assert_eq!(found(text), ["amx_tile", "avx2"]);
        assert_eq!(found("Features\t: fp asimd sve\n"), ["asimd", "fp", "sve"]);
        assert!(found("").is_empty());
    }

    #[test]
    fn this_machine_says_something() {
        assert!(!features().is_empty());
    }
}
