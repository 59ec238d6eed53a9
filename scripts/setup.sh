#!/usr/bin/env bash
# Installs what building and testing phos-ft needs: distribution packages, the Rust toolchain, cargo-nextest, cargo-deny,
# moto (an S3 server for tests) and CRIU >= 4.1. On a fresh Debian >= 12 or Ubuntu >= 22.04, as root; Debian 12 has no
# new enough Rust, which must be there before. May be run again at any time; quick when everything is there.
#   scripts/setup.sh            everything
#   scripts/setup.sh --demo     what `make demo` needs: no test tools
#   scripts/setup.sh --demo-compose    and Docker and the S3 server, for `make demo-compose`
#   scripts/setup.sh --dist     what `make dist` needs
#   scripts/setup.sh --site     what `make site` needs
#   scripts/setup.sh --bench    everything, and the tools that `make bench-storage` compares with
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/.build
cd "$root"

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

demo=
docker=
dist=
bench=
site=
case ${1:-} in
'') ;;
--demo) demo=1 ;;
--demo-compose) demo=1 docker=1 ;;
--dist) demo=1 dist=1 ;;
--site) demo=1 site=1 ;;
--bench) bench=1 ;;
*) die "usage: $0 [--demo|--demo-compose|--dist|--site|--bench]" ;;
esac

# --- distribution packages ---------------------------------------------------------------------------------------------
packages=(
    build-essential pkg-config ca-certificates curl
    # The job's own namespaces; CRIU locks the network with one of the two.
    util-linux iproute2 iptables nftables procps
    # Unpacking and adjusting the CRIU bundle.
    patchelf xz-utils
    python3 python3-venv
    # The C library and CRIU are taken from Debian, also on Ubuntu: what its packages are signed with.
    debian-archive-keyring
)
# Base images.
[[ -n $demo && -z $docker ]] || packages+=(mmdebstrap)
# A test calls docker/slurm/phos-ft-job as a user of a cluster does.
[[ -n $demo ]] || packages+=(shellcheck sudo)
[[ -z $bench ]] || packages+=(restic zstd)
if [[ -z $demo || -n $docker ]]; then
    # Whoever brought an engine and a Compose of their own keeps them.
    command -v dockerd >/dev/null || docker info &>/dev/null || packages+=(docker.io)
    docker compose version &>/dev/null || command -v docker-compose >/dev/null || packages+=(docker-compose)
fi

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

# candidate PACKAGE: the version that apt would install; nothing if it knows none.
candidate() {
    local version
    version=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *//p')
    [[ $version == '(none)' ]] || printf '%s\n' "$version"
}
# use_rustup: the newest toolchain by way of rustup, which downloads it from a host of its own.
use_rustup() {
    say "installing the Rust toolchain by rustup"
    rustup toolchain install stable --profile minimal && rustup default stable
}
apt_install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

# use_packaged VERSION SUFFIX: the distribution's packages. Those with a suffix (Ubuntu has rustc-1.91 and the like beside
# an old rustc) put their programs out of the way: they are linked to where the Makefile looks first.
use_packaged() {
    local version=$1 suffix=$2 packages program
    packages=("cargo$suffix" "rustc$suffix")
    [[ -n $demo ]] || packages+=("rust$suffix-clippy" "rustfmt$suffix")
    say "installing the distribution's Rust $version"
    apt_install "${packages[@]}"
    [[ -n $suffix ]] || return 0
    mkdir -p "$build/tools/bin"
    for program in "/usr/lib/rust$suffix/bin"/*; do
        ln -sf "$program" "$build/tools/bin/"
    done
    hash -r
}
# packaged_rust: VERSION and SUFFIX of the distribution's newest Rust.
packaged_rust() {
    local name version
    apt-cache pkgnames rustc | grep -xE 'rustc(-[0-9.]+)?' | while read -r name; do
        version=$(candidate "$name")
        # A package version may carry an epoch and a revision; what counts is the part between them.
        version=${version#*:}
        [[ -z $version ]] || printf '%s %s\n' "${version%%[-+~]*}" "${name#rustc}"
    done | sort -V | tail -n 1
}

trouble=
if ! rust_ok && command -v rustup >/dev/null; then
    use_rustup || trouble="rustup could not download a newer one (its messages are above)"
fi
if ! rust_ok && ! command -v rustup >/dev/null && [[ $EUID -eq 0 ]]; then
    read -r version suffix < <(packaged_rust) || true
    if dpkg --compare-versions "${version:-0}" ge "$need"; then
        use_packaged "$version" "${suffix:-}"
    elif [[ -n $(candidate rustup) ]]; then
        say "installing rustup from the distribution"
        apt_install rustup
        use_rustup || trouble="the distribution's rustup could not download one (its messages are above)"
    else
        trouble="the distribution has ${version:+only rustc $version and }no rustup"
    fi
fi
found=$(rust_version || true)
rust_ok || die "Rust >= $need is needed, found ${found:-none}${trouble:+; $trouble}. Take it from https://rustup.rs, or put a
  toolchain's bin directory first in PATH, then run this again."
# A demo before may have brought the compiler alone.
lint_ok() { cargo clippy --version && cargo fmt --version; } &>/dev/null
if [[ -z $demo ]] && ! lint_ok; then
    if command -v rustup >/dev/null; then
        rustup component add clippy rustfmt
    elif [[ $EUID -eq 0 ]] && read -r version suffix < <(packaged_rust) &&
        dpkg --compare-versions "$version" ge "$need"; then
        use_packaged "$version" "${suffix:-}"
    fi
    lint_ok || die "this Rust has no clippy or no rustfmt, which \`make lint\` needs: install them beside $(command -v rustc)"
fi

# tool NAME VERSION [cargo install options]: builds it below .build if it is not there. Optimisation costs more time here
# than it saves.
tool() {
    local name=$1 version=$2
    shift 2
    command -v "$name" >/dev/null && return
    say "building $name $version (a minute or two, once)"
    CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64 \
        cargo install --quiet --locked --root "$build/tools" --target-dir "$build/tools-target" "$@" \
        --version "$version" "$name"
    rm -rf "$build/tools-target"
}
# Minutes of computing, beside which the rest is fetched.
deny=
if [[ -z $demo ]]; then
    # A process group of its own, which ends when this does.
    set -m
    tool cargo-deny 0.20.2 &
    deny=$!
    set +m
    trap 'kill -- "-$deny" 2>/dev/null || true' EXIT
fi

# --- the C library to link against ------------------------------------------------------------------------------------
scripts/sysroot.sh

# --- CRIU --------------------------------------------------------------------------------------------------------------
scripts/criu-bundle.sh

# --- tools ---------------------------------------------------------------------------------------------------------------
# Lists the crates of a release.
[[ -z $dist ]] || tool cargo-cyclonedx 0.5.9
# Makes a site of the documentation.
[[ -z $site ]] || tool mdbook 0.5.4 --no-default-features --features search
[[ -z $demo || -n $docker ]] || exit 0

# --- Python ------------------------------------------------------------------------------------------------------------
if ! cmp -s scripts/requirements.txt "$build/venv/.requirements"; then
    say "installing $(grep -v '^#' scripts/requirements.in | paste -sd' ')"
    rm -rf "$build/venv"
    python3 -m venv "$build/venv"
    "$build/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
        -r scripts/requirements.txt
    cp scripts/requirements.txt "$build/venv/.requirements"
fi
[[ -z $demo ]] || exit 0

# --- test tools --------------------------------------------------------------------------------------------------------
# Prometheus, which scrapes the metrics in a test: its programs alone, as its package would start a service on this machine.
if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
    say "unpacking the distribution's prometheus"
    unpacked=$(mktemp -d)
    # As the user that apt downloads as.
    chmod 755 "$unpacked"
    trap 'rm -rf "$unpacked"; kill -- "-$deny" 2>/dev/null || true' EXIT
    download() { (cd "$unpacked" && apt-get download -qq prometheus); }
    # A machine that has just been set up may know of no packages at all.
    download 2>/dev/null || { [[ $EUID -eq 0 ]] && apt-get update -qq && download; } ||
        die "the distribution's prometheus cannot be downloaded: as root, \`apt-get update\` and this again"
    dpkg -x "$unpacked"/prometheus_*.deb "$unpacked/root"
    mkdir -p "$build/tools/bin"
    install -m 755 "$unpacked/root/usr/bin/prometheus" "$unpacked/root/usr/bin/promtool" "$build/tools/bin/"
    rm -rf "$unpacked"
fi
# One after the other: they share a target directory.
wait "$deny" || die "cargo-deny could not be built: see above"
trap - EXIT
tool cargo-nextest 0.9.143 --no-default-features --features default-no-update

say "everything is there"
