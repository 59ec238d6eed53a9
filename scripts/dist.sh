#!/usr/bin/env bash
# Lays out what runs in other people's containers: .build/dist with bin/phos-ft, lib/ and criu/, which work
# wherever the folder lies, on glibc 2.31 and newer; what the phos-ft image adds; and, of a release, sbom.cdx.json (CycloneDX).
#   scripts/dist.sh [PROFILE]   of target/PROFILE (default: release), built before; into .build/dist or .build/dist-PROFILE
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

readonly GLIBC=2.31
profile=${1:-release}
out=.build/dist
[[ $profile == release ]] || out=.build/dist-$profile
target=${CARGO_TARGET_DIR:-$root/target}/$profile

die() { printf 'dist: error: %s\n' "$*" >&2; exit 1; }

scripts/criu-bundle.sh --bundle
for file in phos-ft libphos_shim.so libphos_criu_preload.so; do
    [[ -f $target/$file ]] || die "$target/$file is not there: build it first (make dist does)"
done
new=$(mktemp -d .build/dist.XXXXXX)
trap 'rm -rf "$new"' EXIT
mkdir -p "$new/bin" "$new/lib"
cp "$target/phos-ft" "$new/bin/"
cp "$target/libphos_shim.so" "$target/libphos_criu_preload.so" "$new/lib/"
# Where a test makes a process die or wait by its environment.
if [[ $profile == release ]] && grep -qaF 'failpoint: ' "$new/bin/phos-ft"; then
    die "phos-ft has failpoints: it was built with debug assertions"
fi
# Symbols stay in target/; a container does not need them.
strip "$new/bin/phos-ft"
strip --strip-unneeded "$new"/lib/*.so
cp -r .build/criu "$new/criu"
cp LICENSE docker/entrypoint docker/seccomp.json "$new/"
# What is released says what it is made of.
if [[ $profile == release ]]; then
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} scripts/sbom.sh "$new/criu" "$new/sbom.cdx.json"
fi
scripts/glibc-check.sh "$GLIBC" "$new/bin/phos-ft" "$new"/lib/*.so
# Names the content: the volume that trainers share is filled anew when it changes.
(cd "$new" && find . -type f ! -name release -print0 | sort -z | xargs -0 sha256sum) | sha256sum | cut -c1-16 >"$new/release"
chmod -R a+rX,go-w "$new"
rm -rf "$out"
mv "$new" "$out"
trap - EXIT
printf 'dist: %s, release %s, %s\n' "$out" "$(cat "$out/release")" "$(du -sh "$out" | cut -f1)" >&2
