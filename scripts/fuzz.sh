#!/usr/bin/env bash
# Fuzzes the decoders (fuzz/), one target after the other, starting from the kept corpus.
#   scripts/fuzz.sh [SECONDS [TARGET...]]     default: 60 seconds a target, all targets
#   scripts/fuzz.sh --keep [TARGET...]        adds what was found since to the kept corpus, smallest inputs only
#
# libFuzzer through libfuzzer-sys; a stable toolchain will do, as the instrumentation needs no sanitizer: the decoders are
# safe Rust, and their memory is counted by the targets. An input that fails is left in fuzz/artifacts/TARGET/; copy it to
# fuzz/targets/corpus/TARGET/, where `make test` replays it for ever.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root/fuzz"

if [[ ${1:-} == --rustc ]]; then
    # As the compiler's wrapper: only our own crates are instrumented. Generic decoders (serde, CBOR, postcard, JSON) are
    # compiled into them; everything else comes from the main workspace's build as it is.
    shift
    for argument in "$@"; do
        if [[ $argument == phos_* ]]; then
            exec "$@" --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
                -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0
        fi
    done
    exec "$@"
fi

seconds=60
keep=
case ${1:-} in
--keep) keep=1; shift ;;
[0-9]*) seconds=$1; shift ;;
esac
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || mapfile -t targets < <(basename -s .rs -a fuzz_targets/*.rs)

wrapper=$(mktemp)
trap 'rm -f "$wrapper"' EXIT
printf '#!/bin/sh\nexec "%s/scripts/fuzz.sh" --rustc "$@"\n' "$root" >"$wrapper"
chmod 0755 "$wrapper"
programs=${CARGO_TARGET_DIR:-$root/target}
# libFuzzer is C++, and the machine's C++ library needs the machine's C library.
export PHOS_OWN_LIBC=1
RUSTC_WRAPPER=$wrapper CARGO_TARGET_DIR=$programs cargo build --locked --bins

PHOS_WRITE_SEEDS=corpus "$programs/debug/seeds" -runs=0 2>/dev/null

status=0
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" "artifacts/$target" "targets/corpus/$target"
    if [[ -n $keep ]]; then
        "$programs/debug/$target" -set_cover_merge=1 -use_counters=0 -use_cmp=0 -max_len=16384 "targets/corpus/$target" "corpus/$target"
        continue
    fi
    echo "fuzz: $target for $seconds s"
    "$programs/debug/$target" -max_total_time="$seconds" -max_len=16384 -timeout=20 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="artifacts/$target/" "corpus/$target" "targets/corpus/$target" \
        >"artifacts/$target.log" 2>&1 || status=1
    grep -E "number_of_executed_units|peak_rss_mb|panicked|ERROR|Test unit written" "artifacts/$target.log" || true
done
exit "$status"
