#!/usr/bin/env bash
# Shows that `make dist` gives the same bytes wherever it runs: builds the last commit twice, in folders of different names, with CRIU
# fetched anew for each, and compares. Takes as long as two release builds; what was built is deleted.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
work=$root/.build/dist-check
die() { printf 'dist-check: error: %s\n' "$*" >&2; exit 1; }

rm -rf "$work"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH PHOS_PINNED=1
for name in first second-in-a-longer-folder; do
    at=$work/$name
    mkdir -p "$at/.build"
    git archive HEAD | tar -x -C "$at"
    # Tools are the machine's.
    [[ ! -d .build/tools ]] || ln -s "$root/.build/tools" "$at/.build/tools"
    (
        cd "$at"
        export CARGO_TARGET_DIR=$at/target
        scripts/sysroot.sh
        scripts/release-build.sh -p phos-ft -p phos-shim -p phos-criu-preload
        scripts/dist.sh
        scripts/packages.sh
        mv .build/dist "$work/$name.dist"
        mv .build/packages "$work/$name.packages"
    )
    rm -rf "$at"
done
diff -r "$work/first.packages" "$work/second-in-a-longer-folder.packages" || die "two packages of the same sources differ (see above)"
diff -r "$work/first.dist" "$work/second-in-a-longer-folder.dist" || die "two builds of the same sources differ (see above)"
find "$work" -path '*/release' -exec cat {} + | sort -u | xargs printf 'dist-check: ok, release %s twice\n'
rm -rf "$work"
