#!/usr/bin/env bash
# Makes a base image of a Debian suite with its Python, in which a wheel is installed: phos-python:SUITE, on top of phos-base:SUITE.
#   scripts/python-image.sh SUITE...     quick when they are there
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
say() { printf 'python-image: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

add_python() {
    local suite=$1 tar=$2 name
    work=$root/.build/base/python-$suite.work
    # shellcheck source=scripts/debian.sh
    . "$root/scripts/debian.sh"
    say "fetching Python of Debian $suite"
    # For tests alone: as Debian has it now, by Debian's signature.
    # pip is brought along by whoever tests. That of an old Python needs distutils, and does not run on the newest.
    packages=(python3)
    case $suite in
    bullseye) packages+=(python3-distutils) ;;
    trixie) packages+=(python3-pip-whl) ;;
    esac
    fetch "$suite" "${packages[@]}" >/dev/null || { renew_keyring && fetch "$suite" "${packages[@]}" >/dev/null; } || die "no Python: see above"
    # In the base these are links below usr/.
    for name in bin lib lib64 sbin; do
        [[ -d $work/root/$name ]] || continue
        cp -an "$work/root/$name/." "$work/root/usr/$name/"
        rm -rf "${work:?}/root/$name"
    done
    rm -rf "$work"/root/usr/share/{doc,man,info,locale,lintian}
    tar -C "$work/root" --numeric-owner --owner 0 --group 0 -cf "$tar.new" .
    mv "$tar.new" "$tar"
    rm -rf "$work"
}

for wanted in "$@"; do
    ! docker image inspect "phos-python:$wanted" >/dev/null 2>&1 || continue
    "$root/scripts/base-image.sh" "$wanted"
    tar=$root/.build/base/python-$wanted.tar
    [[ -s $tar ]] || add_python "$wanted" "$tar"
    context=$(mktemp -d "$root/.build/base/context.XXXXXX")
    trap 'rm -rf "$context"' EXIT
    ln "$tar" "$context/python.tar"
    printf 'FROM phos-base:%s\nADD python.tar /\n' "$wanted" >"$context/Dockerfile"
    DOCKER_BUILDKIT=0 docker build -q -t "phos-python:$wanted" "$context" >/dev/null
    rm -rf "$context"
    say "phos-python:$wanted, $(du -h "$tar" | cut -f1)"
done
