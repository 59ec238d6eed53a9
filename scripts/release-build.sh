#!/usr/bin/env bash
# Builds packages for release so that the same sources give the same bytes, wherever they lie and wherever cargo keeps its crates.
#   scripts/release-build.sh -p PACKAGE...     as options of cargo build --release
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
crates=${CARGO_HOME:-$HOME/.cargo}
target=${CARGO_TARGET_DIR:-$root/target}
# Paths stand in messages of panics and in what C compilers make of __FILE__. Of several prefixes that fit, the last one counts.
rust=
c=
for pair in "$root=/phos-ft" "$target=/phos-ft/target" "$crates=/cargo"; do
    rust+=" --remap-path-prefix=$pair"
    c+=" -ffile-prefix-map=$pair"
done
export RUSTFLAGS="${RUSTFLAGS:-}$rust" CARGO_INCREMENTAL=0
export CFLAGS_x86_64_unknown_linux_gnu="${CFLAGS_x86_64_unknown_linux_gnu:-}$c"
export CXXFLAGS_x86_64_unknown_linux_gnu="${CXXFLAGS_x86_64_unknown_linux_gnu:-}$c"
exec "${CARGO:-cargo}" build --release --locked "$@"
