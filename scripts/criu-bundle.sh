#!/usr/bin/env bash
# Provides CRIU >= 4.1, which kernels from 6.13 on need (design.md, section 8).
#
#   scripts/criu-bundle.sh            the installed criu or the distribution's if new enough, else the bundle
#   scripts/criu-bundle.sh --bundle   the bundle in any case
#   scripts/criu-bundle.sh --print    the path of the criu to use, or an error; changes nothing
#
# The bundle, .build/criu/, is Debian's binary with its own libraries and loader. It may be copied anywhere, to a
# machine with an older C library too: `criu` in it is a wrapper that starts the loader by its path next to itself,
# because an ELF interpreter must be an absolute path and would tie the folder to one place. `packages` in it names what it was made
# of: those pinned in scripts/pins/criu (the CRIU that was measured), unless they have left the mirror.
#
#   PHOS_DEBIAN_MIRROR, PHOS_PINNED   see scripts/debian.sh
#   PHOS_CRIU_SUITES     suites to try, in order, instead of what is pinned (where that cannot be had: "trixie forky sid", the stable
#                        one first, since it is the least likely to be in disorder)
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

# Also that it is known what it is made of, and that this is what is pinned, if nothing else may be taken.
bundled() {
    [[ -x $bundle/criu && -s $bundle/packages ]] && new_enough "$(version_of "$bundle/criu")" &&
        { [[ -z ${PHOS_PINNED:-} ]] || is_pinned; } && printf '%s\n' "$bundle/criu"
}

is_pinned() {
    local sum path
    while IFS=$'\t' read -r _ _ sum path; do
        grep -qxF "$sum $path" "$root/scripts/pins/criu" || return 1
    done <"$bundle/packages"
}

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
    # What each file is of: name, version, SHA-256 and path in the archive.
    local file package wanted=$work/wanted sum path
    (cd "$to" && find bin lib -type f -printf '%f\n') >"$wanted"
    while read -r sum path; do
        # Downloads have the epoch of their version in their names, which paths in the archive do not.
        for file in "$work/cache/archives/"*"${path##*_}"; do
            [[ $(sha256sum <"$file") != "$sum"* ]] || break
        done
        dpkg-deb --fsys-tarfile "$file" | tar -t | sed 's|.*/||' | grep -qxFf "$wanted" || continue
        package=$(dpkg-deb -f "$file" Package)
        printf '%s\t%s\t%s\t%s\n' "$package" "$(dpkg-deb -f "$file" Version)" "$sum" "$path" >>"$to/packages"
        cp -L "$from/usr/share/doc/$package/copyright" "$to/licenses/$package"
    done <"$work/taken"
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
    local suites=${PHOS_CRIU_SUITES:-trixie forky sid} suite version pinned=pinned
    [[ -z ${PHOS_CRIU_SUITES:-} ]] || pinned=
    for suite in $pinned $suites renew $suites; do
        case $suite in
        renew)
            renew_keyring || break
            continue
            ;;
        pinned)
            say "fetching criu from $(mirror)"
            fetch_pinned criu || { unpinned criu; continue; }
            ;;
        *)
            say "fetching criu of Debian $suite from $(mirror)"
            fetch "$suite" criu || { say "Debian $suite: no luck, trying the next suite"; continue; }
            ;;
        esac
        rm -rf "$work/bundle"
        assemble
        version=$(version_of "$work/bundle/criu")
        if new_enough "$version"; then
            rm -rf "$bundle"
            mv "$work/bundle" "$bundle"
            rm -rf "$work"
            say "criu $version ($suite) in $bundle, $(du -sh "$bundle" | cut -f1)"
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
