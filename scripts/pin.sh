#!/usr/bin/env bash
# Pins anew what is taken from elsewhere (docs/decisions/19-supply-chain.md). What it writes is to be read, tested and committed.
#   scripts/pin.sh debian              packages of Debian: scripts/pins/*
#   scripts/pin.sh pip                 packages of Python: {scripts,docker}/requirements.txt, of the .in beside them
#   scripts/pin.sh advisories CLONE    known vulnerabilities of crates, of a clone of the RustSec database: scripts/pins/advisories.*
set -euo pipefail

readonly UV=0.13.9
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$root/.build/pin-work
pins=$root/scripts/pins
say() { printf 'pin: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"

# pin_debian NAME SUITE PACKAGE...
pin_debian() {
    local name=$1 suite=$2
    shift 2
    fetch "$suite" "$@" || { renew_keyring && fetch "$suite" "$@"; } || die "Debian $suite has no $*: see above"
    {
        printf '# %s of Debian %s with all that it depends on, %s: SHA-256 and path in the archive.\n' "$*" "$suite" "$(date -u +%F)"
        LC_ALL=C sort -k2 "$work/taken"
    } >"$pins/$name"
    rm -rf "$work"
    say "scripts/pins/$name: $(grep -vc '^#' "$pins/$name") packages"
}

mkdir -p "$pins"
case ${1:-} in
debian)
    # The newest CRIU is the one that is measured; the C library is the oldest that programs are to run on.
    pin_debian criu sid criu
    pin_debian glibc-2.31 bullseye libc6-dev
    ;;
pip)
    # uv resolves for all versions of Python and all machines at once.
    venv=$root/.build/uv
    [[ -x $venv/bin/uv && $("$venv/bin/uv" --version) == "uv $UV"* ]] || {
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check "uv==$UV"
    }
    cd "$root"
    for folder in scripts docker; do
        # Python 3.10 is Ubuntu 22.04's.
        "$venv/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes --no-annotate \
            --custom-compile-command 'scripts/pin.sh pip' "$folder/requirements.in" -o "$folder/requirements.txt"
    done
    ;;
advisories)
    clone=${2:?a clone of the RustSec database}
    commit=$(git -C "$clone" rev-parse HEAD)
    git -C "$clone" archive "$commit" crates LICENSE.txt LICENSES | xz -9 >"$pins/advisories.tar.xz"
    git -C "$clone" log -1 --format='%H %cI' "$commit" >"$pins/advisories.commit"
    ;;
*) die "usage: $0 debian|pip|advisories CLONE" ;;
esac
