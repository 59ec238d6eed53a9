#!/usr/bin/env python3
"""What threads of a process meet while the driver has it checkpointed: builds stopped.c and runs every kind of host memory
and every call, several at a time; then what NVML and OpenCL leave open. What it printed is in docs/driver.md."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MEMORY = ["hostalloc", "writecombined", "allochost", "registered", "registered-shared", "registered-shm"]
CALLS = [
    "cuStreamQuery", "cuEventQuery", "cuEventElapsedTime", "cuMemGetInfo", "cuCtxGetCurrent", "cuCtxSynchronize",
    "cuStreamSynchronize", "cuEventSynchronize", "cuPointerGetAttribute", "cuDeviceGetAttribute", "cuDeviceTotalMem",
    "cuStreamGetFlags", "cuGetErrorString", "cuStreamCreate", "cuEventCreate", "cuMemHostAlloc", "cuModuleLoadData", "cuMemAlloc",
    "cuMemcpyHtoDAsync", "nvmlDeviceGetMemoryInfo", "nvmlOnly",
]
# What a process of its own holds after using NVML, or after mpi4py initialised MPI (hwloc, OpenCL).
HOLDS = """
import os, re, sys, ctypes
what = sys.argv[1]
def held(when):
    fds = []
    for fd in os.listdir("/proc/self/fd"):
        try: to = os.readlink("/proc/self/fd/" + fd)
        except OSError: continue
        if to.startswith("/dev/") and "null" not in to and "pts" not in to: fds.append(to)
    maps = [line.split(None, 5)[-1].strip() for line in open("/proc/self/maps")]
    devices = [m for m in maps if m.startswith("/dev/nvidia")]
    libraries = sorted({os.path.basename(m) for m in maps if re.search("nvidia|opencl|OpenCL|hwloc|cuda|EGL|GLX|vulkan|cupti", m) and m.startswith("/") and ".so" in m})
    count = lambda xs: {x: xs.count(x) for x in sorted(set(xs))}
    print("  %-28s fds %s maps %s" % (when, count(fds), count(devices)))
    print("    libraries", " ".join(libraries)[:700])
held("at the start")
def sockets():
    names = sorted({line.split()[-1] for line in open("/proc/net/unix") if "@cuda" in line or "@nvidia" in line})
    print("  abstract sockets", names, "PID", os.getpid(), "namespace", os.readlink("/proc/self/ns/pid"))
if what == "nvml":
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    a, b = ctypes.c_void_p(), ctypes.c_void_p()
    print("  init", nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(a)))
    held("NVML in use")
    keep = []
    for fd in list(map(int, os.listdir("/proc/self/fd"))):
        try: to = os.readlink("/proc/self/fd/%d" % fd)
        except OSError: continue
        if to.startswith("/dev/nvidia"):
            keep.append((fd, os.dup(fd)))
            null = os.open("/dev/null", os.O_RDWR); os.dup2(null, fd); os.close(null)
    info = (ctypes.c_uint64 * 16)()
    for fd, copy in keep: os.dup2(copy, fd); os.close(copy)
    print("  with its devices away for a moment and back:", nvml.nvmlDeviceGetMemoryInfo(a, info))
    print("  shutdown", nvml.nvmlShutdown()); held("NVML shut down")
    print("  init again", nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(b)), "same handle:", a.value == b.value,
          "old handle works:", nvml.nvmlDeviceGetMemoryInfo(a, info))
else:
    if what == "cuda+mpi":
        cuda = ctypes.CDLL("libcuda.so.1"); cuda.cuInit(0); c = ctypes.c_void_p(); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0)
        held("CUDA in use")
        sockets()
    from mpi4py import MPI
    held("MPI initialised")
    print("  MPI:", MPI.Get_library_version().split(",")[0])
"""


def run(command, **more):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, **more)
        return (done.stdout + done.stderr[-1500:]).rstrip() + ("" if done.returncode == 0 else "\n  rc %d" % done.returncode)
    except subprocess.TimeoutExpired as error:
        return "%s: no end within 90 s: %s" % (command, (error.stdout or b"")[-500:])


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "stopped")
        cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        subprocess.run(["nvcc", "-x", "cu", "-O1", "-o", program, HERE / "stopped.c", "-lcuda", "-lpthread", "-ldl"], check=True) \
            if not os.path.exists(cuda + "/include/cuda.h") else \
            subprocess.run(["cc", "-O1", "-I", cuda + "/include", "-o", program, HERE / "stopped.c", "-L", cuda + "/lib64/stubs",
                            "-lcuda", "-lpthread", "-ldl"], check=True)
        jobs = [[program, "memory", kind] for kind in MEMORY] + [[program, "call", name] for name in CALLS]
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            for text in pool.map(run, jobs):
                print(text, flush=True)
    for what, extra in [("nvml", {}), ("mpi", {}), ("cuda+mpi", {}), ("mpi", {"HWLOC_COMPONENTS": "-opencl,-gl"}),
                        ("cuda+mpi", {"HWLOC_COMPONENTS": "-opencl,-gl"})]:
        print(what, extra)
        print(run([sys.executable, "-c", HOLDS, what], env={**os.environ, **extra}), flush=True)


if __name__ == "__main__":
    main()
