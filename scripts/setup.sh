#!/usr/bin/env bash
# Installs what building and testing phos-ft needs: distribution packages, the Rust toolchain, cargo-nextest, cargo-deny,
# moto (an S3 server for tests) and CRIU >= 4.1. On a fresh Debian >= 12 or Ubuntu >= 22.04, as root. May be run again at
# any time; quick when everything is there.
#   scripts/setup.sh            everything
#   scripts/setup.sh --demo     what `make demo` needs: no test tools
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/.build
cd "$root"

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

demo=
case ${1:-} in
'') ;;
--demo) demo=1 ;;
*) die "usage: $0 [--demo]" ;;
esac

# --- distribution packages ---------------------------------------------------------------------------------------------
packages=(
    build-essential pkg-config ca-certificates curl
    # The job's own namespaces; CRIU locks the network with one of the two.
    util-linux iproute2 iptables nftables procps
    # Unpacking and adjusting the CRIU bundle.
    patchelf debian-archive-keyring
    python3 python3-venv
)
[[ -n $demo ]] || packages+=(shellcheck)

missing=()
for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] || missing+=("$package")
done
if [[ ${#missing[@]} -gt 0 ]]; then
    [[ $EUID -eq 0 ]] || die "these packages are missing, and installing them needs root: ${missing[*]}"
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# --- Rust --------------------------------------------------------------------------------------------------------------
export PATH=$build/tools/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
need=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rust_version() { rustc --version 2>/dev/null | awk '{print $2}'; }
rust_ok() { command -v cargo >/dev/null && dpkg --compare-versions "$(rust_version)" ge "$need" 2>/dev/null; }

if ! rust_ok && command -v rustup >/dev/null; then
    say "updating the Rust toolchain"
    rustup toolchain install stable --profile minimal
    rustup default stable
fi
if ! rust_ok && [[ -n $(apt-cache policy rustup 2>/dev/null | sed -n 's/^ *Candidate: *\([^(].*\)/\1/p') ]]; then
    say "installing rustup from the distribution"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rustup >/dev/null
    rustup default stable
fi
found=$(rust_version || true)
rust_ok || die "Rust >= $need is needed, found ${found:-none}. The distribution has no rustup to install it with: take it from
  https://rustup.rs, then run this again."
if command -v rustup >/dev/null && [[ -z $demo ]]; then
    components=$(rustup component list --installed 2>/dev/null || true)
    for component in clippy rustfmt; do
        grep -q "^$component" <<<"$components" || rustup component add "$component"
    done
fi

# --- CRIU --------------------------------------------------------------------------------------------------------------
scripts/criu-bundle.sh

[[ -z $demo ]] || exit 0

# --- test tools --------------------------------------------------------------------------------------------------------
# tool NAME VERSION [cargo install options]: builds it below .build if it is not there. Optimisation costs more time here
# than it saves.
tool() {
    local name=$1 version=$2
    shift 2
    command -v "$name" >/dev/null && return
    say "building $name $version (a few minutes, once)"
    CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo install --quiet --locked --root "$build/tools" --target-dir "$build/tools-target" "$@" \
        --version "$version" "$name"
    rm -rf "$build/tools-target"
}
tool cargo-nextest 0.9.143 --no-default-features --features default-no-update
tool cargo-deny 0.20.2

# --- Python ------------------------------------------------------------------------------------------------------------
if ! cmp -s scripts/requirements.txt "$build/venv/.requirements"; then
    say "installing $(grep -v '^#' scripts/requirements.txt | paste -sd' ')"
    rm -rf "$build/venv"
    python3 -m venv "$build/venv"
    "$build/venv/bin/pip" install --quiet --disable-pip-version-check -r scripts/requirements.txt
    cp scripts/requirements.txt "$build/venv/.requirements"
fi
say "everything is there"
