#!/usr/bin/env bash
# Makes the images that compose.sim.yaml and compose.two-nodes.yaml use, of what target/PROFILE has:
#   phos-ft                 docker/Dockerfile on Debian 13
#   phos-ft-sim             the same with the simulated driver
#   phos-trainer:SUITE      the example trainer on bullseye (glibc 2.31), bookworm, trixie
#   phos-trainer:noshell    the example trainer with its libraries and nothing else: no shell, no coreutils, no passwd
#   phos-s3                 the S3 server of the tests
#   phos-trainer:SUITE-python    the same with the suite's Python, with --packages
#   scripts/docker-images.sh [--packages] [PROFILE]     default: release; --packages makes packages too (scripts/packages.sh)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
packages=
if [[ ${1:-} == --packages ]]; then
    packages=yes
    shift
fi
profile=${1:-release}
target=${CARGO_TARGET_DIR:-$root/target}/$profile
dist=.build/dist
[[ $profile == release ]] || dist=.build/dist-$profile

scripts/dist.sh "$profile"
scripts/image-bases.sh
if [[ -n $packages ]]; then
    scripts/python-image.sh trixie bookworm bullseye
    scripts/packages.sh "$profile"
fi

DOCKER_BUILDKIT=0 docker build -q -t phos-ft -f docker/Dockerfile --build-arg BASE=phos-base:trixie "$dist" >/dev/null

work=$(mktemp -d .build/images.XXXXXX)
trap 'rm -rf "$work"' EXIT
cp "$target/phos-trainer" "$target/libphos_gpu_sim.so" "$work/"
strip "$work/phos-trainer"
strip --strip-unneeded "$work/libphos_gpu_sim.so"
# They stand for programs of users' old images.
scripts/glibc-check.sh 2.31 "$work/phos-trainer" "$work/libphos_gpu_sim.so"
DOCKER_BUILDKIT=0 docker build -q -t phos-ft-sim -f docker/sim/Dockerfile "$work" >/dev/null
# One waits for the disk while another does not.
trainers=()
for suite in trixie bookworm bullseye; do
    DOCKER_BUILDKIT=0 docker build -q -t "phos-trainer:$suite" -f docker/trainer/Dockerfile --build-arg "BASE=phos-base:$suite" "$work" >/dev/null &
    trainers+=($!)
    [[ -n $packages ]] || continue
    DOCKER_BUILDKIT=0 docker build -q -t "phos-trainer:$suite-python" -f docker/trainer/Dockerfile --build-arg "BASE=phos-python:$suite" "$work" >/dev/null &
    trainers+=($!)
done

# Without a shell: the loader and the libraries that the two name, of Debian 12.
mkdir -p "$work/root/usr/local/bin" "$work/root/usr/lib/x86_64-linux-gnu" "$work/root/usr/lib64" "$work/root/etc" "$work/root/work" \
    "$work/root/run/phos-gpu-sim/proc"
# As in docker/trainer/Dockerfile.
chmod 777 "$work/root/run/phos-gpu-sim/proc"
ln -s usr/lib "$work/root/lib"
ln -s usr/lib64 "$work/root/lib64"
cp "$work/phos-trainer" "$work/root/usr/local/bin/"
cp "$work/libphos_gpu_sim.so" "$work/root/usr/lib/x86_64-linux-gnu/libcuda.so.1"
base=$(docker create phos-base:bookworm)
for library in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libgcc_s.so.1; do
    docker cp -L "$base:/lib/x86_64-linux-gnu/$library" "$work/root/usr/lib/x86_64-linux-gnu/" >/dev/null
done
docker cp -L "$base:/lib64/ld-linux-x86-64.so.2" "$work/root/usr/lib64/" >/dev/null
docker rm "$base" >/dev/null
tar -C "$work/root" --numeric-owner --owner 0 --group 0 -c . |
    docker import --change 'WORKDIR /work' --change 'ENV PATH=/usr/local/bin' --change 'CMD ["phos-trainer"]' - phos-trainer:noshell >/dev/null
for trainer in "${trainers[@]}"; do
    wait "$trainer"
done
docker image ls --format '{{.Repository}}:{{.Tag}} {{.Size}}' | grep '^phos-' | sort >&2
