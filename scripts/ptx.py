"""Compiles CUDA C to PTX with NVRTC, on a machine without a GPU or a CUDA toolkit.

    ptx.py --arch compute_80 --output OUT.ptx SOURCE.cu

Called by ptx.sh, which provides the pinned NVRTC.
"""

import argparse
import ctypes
import glob
import os
import re
import sys


def load_nvrtc() -> ctypes.CDLL:
    import nvidia.cuda_nvrtc as package

    folder = os.path.join(list(package.__path__)[0], "lib")
    # NVRTC opens its built-in headers by bare name: have them loaded already.
    for path in glob.glob(os.path.join(folder, "libnvrtc-builtins.so*")):
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(os.path.join(folder, "libnvrtc.so.12"), mode=ctypes.RTLD_GLOBAL)


def compile_ptx(source: str, arch: str) -> str:
    nvrtc = load_nvrtc()
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p

    def check(code: int, what: str) -> None:
        if code != 0:
            raise RuntimeError(f"{what}: {nvrtc.nvrtcGetErrorString(code).decode()}")

    with open(source, "rb") as f:
        text = f.read()
    program = ctypes.c_void_p()
    name = os.path.basename(source).encode()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None), "nvrtcCreateProgram")
    # No fused multiply-add but where the source asks for it: results depend on the source, not on the optimiser.
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17", b"--fmad=false"]
    result = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    check(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)), "nvrtcGetProgramLogSize")
    log = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetProgramLog(program, log), "nvrtcGetProgramLog")
    if log.value.strip():
        print(log.value.decode(), file=sys.stderr)
    check(result, f"compiling {source}")
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)), "nvrtcGetPTXSize")
    ptx = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, ptx), "nvrtcGetPTX")
    return ptx.value.decode()


def normalise(ptx: str, source: str, arch: str) -> str:
    """Drops the compiler's own header: its build number changes without the code changing."""
    body = re.sub(r"\A(?://[^\n]*\n|\s*\n)*", "", ptx)
    header = f"// Generated from {os.path.basename(source)} by scripts/ptx.sh for {arch}. Do not edit.\n"
    return header + body.rstrip("\n") + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", default="compute_80")
    parser.add_argument("--output", required=True)
    parser.add_argument("source")
    args = parser.parse_args()
    ptx = normalise(compile_ptx(args.source, args.arch), args.source, args.arch)
    with open(args.output, "w") as f:
        f.write(ptx)


if __name__ == "__main__":
    main()
