#!/usr/bin/env bash
# Provides .build/glibc-2.31: headers and libraries of Debian 11, to link against (scripts/cc). Quick when it is there.
#   PHOS_DEBIAN_MIRROR, PHOS_PINNED   see scripts/debian.sh
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
sysroot=$root/.build/glibc-2.31
work=$root/.build/sysroot-work

say() { printf 'sysroot: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"

# Its `packages` say what it is made of.
is_pinned() { diff <(grep -v '^#' "$root/scripts/pins/glibc-2.31") "$sysroot/packages" &>/dev/null; }
if [[ -d $sysroot ]]; then
    [[ -n ${PHOS_PINNED:-} ]] && ! is_pinned || exit 0
    say "it is not what is pinned"
fi
if [[ $(uname -m) != x86_64 ]]; then
    say "not on x86_64: programs are linked against this machine's C library"
    exit 0
fi
say "fetching the C library of Debian bullseye from $(mirror)"
if ! fetch_pinned glibc-2.31; then
    unpinned glibc-2.31
    fetch bullseye libc6-dev || { renew_keyring && fetch bullseye libc6-dev; } ||
        die "no C library of Debian bullseye: see above, or set PHOS_DEBIAN_MIRROR"
fi
# Links that lead out of the folder would end at the machine's own library.
find "$work/root" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -sfnr "$work/root$(readlink "$link")" "$link"
done
rm -rf "$work"/root/usr/share "$sysroot"
mv "$work/taken" "$work/root/packages"
mv "$work/root" "$sysroot"
rm -rf "$work"
say "$(sed -nE 's/^#define[[:space:]]+__GLIBC_MINOR__[[:space:]]+/glibc 2./p' "$sysroot/usr/include/features.h") in $sysroot, $(du -sh "$sysroot" | cut -f1)"
