#!/usr/bin/env bash
# Makes a base image of a Debian suite with mmdebstrap, for where no registry is in reach: phos-base:SUITE.
#   scripts/base-image.sh SUITE...     bullseye (glibc 2.31), bookworm, trixie; quick when they are there
#   PHOS_DEBIAN_MIRROR   see scripts/debian.sh
# The file system is kept in .build/base/SUITE.tar, so that an engine that lost its images gets them back in seconds.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
say() { printf 'base-image: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

[[ $# -gt 0 ]] || die "usage: $0 SUITE..."

# bootstrap SUITE TAR
bootstrap() {
    local suite=$1 tar=$2 work=$root/.build/base/$1.work
    [[ $EUID -eq 0 ]] || die "mmdebstrap needs root"
    command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: make setup installs it"
    # shellcheck source=scripts/debian.sh
    . "$root/scripts/debian.sh"
    say "bootstrapping Debian $suite (half a minute)"
    rm -rf "$work"
    mkdir -p "$work"
    # By apt, which takes nothing without Debian's signature. Links in place of directories first, as in every Debian since 10.
    # shellcheck disable=SC2016
    local links='cd "$1" && mkdir -p usr/bin usr/sbin usr/lib usr/lib64 && ln -s usr/bin usr/sbin usr/lib usr/lib64 .'
    try() {
        rm -rf "$work/root"
        mmdebstrap --mode=root --variant=minbase --include=ca-certificates --keyring="$keyring" --setup-hook="$links" \
            "$suite" "$work/root" "$(mirror)" >"$tar.log" 2>&1
    }
    try || { renew_keyring && try; } || { tail -n 20 "$tar.log" >&2; die "mmdebstrap failed: see above"; }
    # What it is made of; a suite is not pinned, as its mirror has no more than its newest point release.
    dpkg-query --admindir="$work/root/var/lib/dpkg" -W >"$tar.packages"
    # As the slim images: nobody reads manuals in a container, and it gets its own names.
    (
        cd "$work/root"
        rm -rf var/cache/apt/archives/*.deb var/lib/apt/lists/* var/log/* var/cache/debconf/*-old \
            usr/share/{man,info,locale,lintian,groff}/* dev/* etc/resolv.conf etc/hostname
        find usr/share/doc -type f ! -name copyright -delete
    )
    tar -C "$work/root" --numeric-owner -cf "$tar.new" .
    mv "$tar.new" "$tar"
    rm -rf "$work"
}

mkdir -p "$root/.build/base"
for wanted in "$@"; do
    ! docker image inspect "phos-base:$wanted" >/dev/null 2>&1 || continue
    tar=$root/.build/base/$wanted.tar
    [[ -s $tar ]] || bootstrap "$wanted" "$tar"
    docker import --change 'CMD ["/bin/sh"]' "$tar" "phos-base:$wanted" >/dev/null
    say "phos-base:$wanted, $(du -h "$tar" | cut -f1)"
done
