#!/usr/bin/env bash
# Compiles the CUDA kernels to the committed PTX; needs no GPU. The driver compiles the PTX for the GPU at hand.
#   scripts/ptx.sh            writes the .ptx files
#   scripts/ptx.sh --check    compiles again and fails when a committed file differs
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.build/ptx-venv

# PTX ISA 8.7 comes from NVRTC 12.8, and drivers from 570 on load it. blake3 is the reference for
# kernel-test.sh; 1.0.10 is the last for the Python 3.10 of Ubuntu 22.04.
readonly PACKAGES=('nvidia-cuda-nvrtc-cu12==12.8.93' 'blake3==1.0.10')
# Lowest architecture the kernels need nothing beyond: A100 and later.
readonly ARCH=compute_80
readonly KERNELS=(sidecar/gpu/kernels/blake3 integration-tests/trainer/kernels/trainer)

want=$(printf '%s\n' "${PACKAGES[@]}")
if [[ $(cat "$venv/.packages" 2>/dev/null || true) != "$want" ]]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "${PACKAGES[@]}"
    printf '%s\n' "$want" >"$venv/.packages"
fi

case ${1:-} in
'')
    for kernel in "${KERNELS[@]}"; do
        "$venv/bin/python" "$root/scripts/ptx.py" --arch "$ARCH" --output "$root/$kernel.ptx" "$root/$kernel.cu"
        echo "ptx: $kernel.ptx written"
    done
    ;;
--check)
    fresh=$(mktemp)
    trap 'rm -f "$fresh"' EXIT
    status=0
    for kernel in "${KERNELS[@]}"; do
        "$venv/bin/python" "$root/scripts/ptx.py" --arch "$ARCH" --output "$fresh" "$root/$kernel.cu"
        if cmp -s "$fresh" "$root/$kernel.ptx"; then
            echo "ptx: $kernel.ptx is what its source gives"
        else
            echo "ptx: $kernel.ptx is not what its source gives: run scripts/ptx.sh and commit the result" >&2
            diff -u "$root/$kernel.ptx" "$fresh" | head -n 20 >&2 || true
            status=1
        fi
    done
    exit "$status"
    ;;
*)
    echo "usage: $0 [--check]" >&2
    exit 2
    ;;
esac
