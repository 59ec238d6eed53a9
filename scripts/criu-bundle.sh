#!/usr/bin/env bash
# Provides CRIU >= 4.1, which kernels from 6.13 on need (design.md, section 8).
#
#   scripts/criu-bundle.sh            the installed criu or the distribution's if new enough, else the bundle
#   scripts/criu-bundle.sh --bundle   the bundle in any case
#   scripts/criu-bundle.sh --print    the path of the criu to use, or an error; changes nothing
#
# The bundle, .build/criu/, is Debian's binary with its own libraries and loader. It may be copied anywhere, to a
# machine with an older C library too: `criu` in it is a wrapper that starts the loader by its path next to itself,
# because an ELF interpreter must be an absolute path and would tie the folder to one place.
#
#   PHOS_DEBIAN_MIRROR   see scripts/debian.sh
#   PHOS_CRIU_SUITES     suites to try, in order (default "sid trixie": the newest CRIU is the one that was measured)
set -euo pipefail

readonly MINIMUM=4.1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bundle=$root/.build/criu
work=$root/.build/criu-work

say() { printf 'criu-bundle: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# version_of CRIU: prints its version, nothing if it does not run.
version_of() { "$1" --version 2>/dev/null | sed -n 's/^Version: *\([0-9][0-9.]*\).*/\1/p'; }

new_enough() { [[ -n $1 ]] && dpkg --compare-versions "$1" ge "$MINIMUM"; }

installed() {
    local path
    path=$(command -v criu) && new_enough "$(version_of "$path")" && printf '%s\n' "$path"
}

bundled() { [[ -x $bundle/criu ]] && new_enough "$(version_of "$bundle/criu")" && printf '%s\n' "$bundle/criu"; }

# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"

# assemble: $work/root → $work/bundle, only what the loader says it loads.
assemble() {
    local from=$work/root to=$work/bundle loader binary libraries library
    loader=$(find "$from" -name 'ld-linux-x86-64.so.2' | head -n 1)
    binary=$(find "$from" -path '*bin/criu' -type f | head -n 1)
    [[ -n $loader && -n $binary ]] || die "the packages contain no criu or no loader"
    mkdir -p "$to/bin" "$to/lib"
    libraries=$(find "$from" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
    cp "$binary" "$to/bin/criu"
    cp -L "$loader" "$to/lib/"
    "$loader" --library-path "$libraries" --list "$binary" |
        sed -nE 's/.* => (\/[^ ]+) .*/\1/p' | while read -r library; do
        [[ $library == "$from"/* ]] || die "$library is the host's: the bundle would not be complete"
        cp -L "$library" "$to/lib/"
    done
    # glibc opens this one by name when a thread is cancelled.
    cp -L "$(find "$from" -name libgcc_s.so.1 | head -n 1)" "$to/lib/"
    # So that tools which run the binary without the wrapper (its own loader given) find the libraries too.
    patchelf --set-rpath "\$ORIGIN/../lib" "$to/bin/criu"
    mkdir -p "$to/licenses"
    local package
    for package in criu libc6 libgnutls30t64 libnftables1 libprotobuf-c1; do
        if [[ -r $from/usr/share/doc/$package/copyright ]]; then
            cp -L "$from/usr/share/doc/$package/copyright" "$to/licenses/$package"
        fi
    done
    cat >"$to/criu" <<'WRAPPER'
#!/bin/sh
# Runs the bundled criu through the bundled loader, wherever this folder lies.
self=$(readlink -f -- "$0")
here=${self%/*}
unset LD_PRELOAD LD_LIBRARY_PATH
exec "$here/lib/ld-linux-x86-64.so.2" --argv0 criu --library-path "$here/lib" "$here/bin/criu" "$@"
WRAPPER
    chmod 0755 "$to/criu"
}

make_bundle() {
    [[ $(uname -m) == x86_64 ]] || die "the bundle exists for x86_64 only; install CRIU >= $MINIMUM yourself"
    command -v patchelf >/dev/null || die "patchelf is missing: apt-get install patchelf"
    local suites=${PHOS_CRIU_SUITES:-sid trixie} suite version
    for suite in $suites renew $suites; do
        if [[ $suite == renew ]]; then
            renew_keyring || break
            continue
        fi
        say "fetching criu of Debian $suite from $(mirror)"
        if ! fetch "$suite" criu; then
            say "Debian $suite: no luck, trying the next suite"
            continue
        fi
        assemble
        version=$(version_of "$work/bundle/criu")
        if new_enough "$version"; then
            rm -rf "$bundle"
            mv "$work/bundle" "$bundle"
            rm -rf "$work"
            say "criu $version of Debian $suite in $bundle, $(du -sh "$bundle" | cut -f1)"
            return 0
        fi
        say "Debian $suite has criu ${version:-that does not run here}, too old"
    done
    die "no suite gave a criu >= $MINIMUM (set PHOS_DEBIAN_MIRROR or PHOS_CRIU_SUITES)"
}

case ${1:-} in
--print)
    installed || bundled || die "no criu >= $MINIMUM: run scripts/criu-bundle.sh (make setup does)"
    ;;
--bundle)
    bundled >/dev/null || make_bundle
    ;;
'')
    if path=$(installed) || path=$(bundled); then
        say "$path is $(version_of "$path")"
        exit 0
    fi
    candidate=$(apt-cache policy criu 2>/dev/null | sed -n 's/^ *Candidate: *//p')
    if [[ -n $candidate && $candidate != '(none)' ]] && dpkg --compare-versions "$candidate" ge "$MINIMUM"; then
        say "installing the distribution's criu $candidate"
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends criu
    else
        make_bundle
    fi
    ;;
*) die "usage: $0 [--bundle|--print]" ;;
esac
