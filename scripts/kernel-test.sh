#!/usr/bin/env bash
# Tests the CUDA kernels without a GPU: their sources compiled for the host, with AddressSanitizer and UBSan; BLAKE3
# against the reference implementation, the trainer's against plain formulas.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/.build/kernel-test
"$root/scripts/ptx.sh" --check
mkdir -p "$out"
# -Wno-unknown-pragmas: `#pragma unroll` is nvcc's. -ffp-contract=off: as the PTX, which is compiled with --fmad=false.
compile() {
    ${CXX:-g++} -std=c++17 -O1 -g -Wall -Wno-unknown-pragmas -ffp-contract=off -fsanitize=address,undefined \
        -fno-sanitize-recover=all -o "$out/$1" "$root/$2"
}
compile blake3-host sidecar/gpu/kernels/test/host.cpp
compile trainer-host integration-tests/trainer/kernels/test/host.cpp
# Fibers switch stacks under AddressSanitizer's feet: no fake stacks, and it says at each start that it may be wrong.
export ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0 PYTHONDONTWRITEBYTECODE=1
"$root/.build/ptx-venv/bin/python" "$root/sidecar/gpu/kernels/test/host.py" "$out/blake3-host" "$out/digests.txt"
"$out/trainer-host"
