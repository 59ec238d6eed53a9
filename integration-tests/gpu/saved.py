#!/usr/bin/env python3
"""What the driver's calls take to save and to restore the control state of a process of PyTorch, with small pages and with
huge ones, with CUDA's connections and with one. Needs root and one GPU, and phos-ft nowhere; sets the machine's huge pages to
`always` and back. What it printed is in docs/decisions/39-saved-state.md."""
import ctypes
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
JOB = """
import time, torch
a = torch.randn(1024, 1024, device="cuda")
print((a @ a).sum().item(), flush=True)
time.sleep(1000)
"""
cuda = ctypes.CDLL("libcuda.so.1")


def must(name, *args):
    result = getattr(cuda, name)(*args)
    if result:
        sys.exit(f"{name}: {result}")


def faults(pid):
    """Page faults of the process so far that needed no disk."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[7])


def timed(name, *args):
    began = time.monotonic()
    must(name, *args)
    return 1e3 * (time.monotonic() - began)


def row(what, env, rounds=6):
    job = subprocess.Popen([sys.executable, "-c", JOB], stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
    try:
        if not job.stdout.readline():
            sys.exit(f"{what}: the process ended")
        saved, restored, taken = [], [], []
        for _ in range(rounds):
            must("cuCheckpointProcessLock", job.pid, (ctypes.c_uint32 * 16)(10000))
            before = faults(job.pid)
            saved.append(timed("cuCheckpointProcessCheckpoint", job.pid, None))
            taken.append(faults(job.pid) - before)
            restored.append(timed("cuCheckpointProcessRestore", job.pid, (ctypes.c_uint64 * 16)()))
            must("cuCheckpointProcessUnlock", job.pid, None)
            time.sleep(0.5)
    finally:
        job.kill()
        job.wait()
    # The first also finds the machine's memory as it is.
    print(f"{what:36} checkpoint {statistics.median(saved[1:]):5.0f} ms, restore {statistics.median(restored[1:]):5.0f} ms, {taken[-1]} faults", flush=True)


def main():
    must("cuInit", 0)
    one = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    chosen = HUGE.read_text().split("[")[1].split("]")[0]
    row(f"huge pages: {chosen}", {})
    row(f"huge pages: {chosen}, one connection", one)
    try:
        HUGE.write_text("always")
        row("huge pages: always", {})
        row("huge pages: always, one connection", one)
    finally:
        HUGE.write_text(chosen)


main()
