#!/usr/bin/env python3
"""The peer: what CRIUgpu does. The driver's checkpoint calls and CRIU on a process with its GPU
memory in place, nothing of phos-ft. `peer.py PID CRIU IMAGES` prints the steps in ms as JSON."""
import ctypes
import json
import subprocess
import sys
import time


def main():
    pid, criu, images = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        start = time.monotonic()
        result = getattr(cuda, name)(*args)
        if result:
            sys.exit(f"{name} failed with CUresult {result}")
        return (time.monotonic() - start) * 1e3

    call("cuInit", 0)
    lock = (ctypes.c_uint32 * 16)(20000)  # CUcheckpointLockArgs: timeoutMs, reserved
    times = {"lock": call("cuCheckpointProcessLock", pid, lock)}
    times["control_checkpoint"] = call("cuCheckpointProcessCheckpoint", pid, None)
    start = time.monotonic()
    dump = subprocess.run(
        [criu, "dump", "-t", str(pid), "-D", images, "-v2", "-o", "dump.log", "--shell-job",
         "--tcp-established", "--ext-unix-sk", "--file-locks", "--link-remap",
         "--ghost-limit", "100M", "--leave-running"],
        check=False,
    )
    times["criu_dump"] = (time.monotonic() - start) * 1e3
    times["control_restore"] = call("cuCheckpointProcessRestore", pid, None)
    times["unlock"] = call("cuCheckpointProcessUnlock", pid, None)
    times["stop_ms"] = sum(times.values())
    times["criu_rc"] = dump.returncode
    print(json.dumps(times))


if __name__ == "__main__":
    main()
