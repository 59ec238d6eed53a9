#!/usr/bin/env python3
"""What the driver wants to be told when a process is restored on another GPU: which pairs of GPU UUIDs it takes, with
which GPUs visible to the process and to the caller. Needs two GPUs; prints a row for each way. What it printed is in
docs/driver.md."""
import ctypes
import os
import subprocess
import sys
import time

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *args):
    return getattr(cuda, name)(*args)


def must(name, *args):
    result = call(name, *args)
    if result:
        sys.exit(f"{name}: {result}")


def uuids():
    text = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    return [bytes.fromhex(line.split("UUID: GPU-")[1].rstrip(")\n ").replace("-", "")) for line in text.splitlines()]


def child():
    """Memory on the first visible GPU; for each line of input, whether it still holds what it should."""
    must("cuInit", 0)
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    must("cuDeviceGet", ctypes.byref(device), 0)
    must("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    must("cuMemAlloc_v2", ctypes.byref(memory), 64 << 20)
    must("cuMemsetD32_v2", memory, 0x5EED, 16 << 20)
    print("ready", flush=True)
    for _ in sys.stdin:
        back = (ctypes.c_uint32 * 4)()
        result = call("cuMemcpyDtoH_v2", back, ctypes.c_uint64(memory.value + (60 << 20)), 16)
        print("right" if result == 0 and set(back) == {0x5EED} else f"WRONG {result} {list(back)}", flush=True)


def caller(pid, pairs):
    """Lock, checkpoint, restore with the pairs, unlock; prints each result."""
    results = [call("cuInit", 0), call("cuCheckpointProcessLock", pid, (ctypes.c_uint32 * 16)(10000)),
               call("cuCheckpointProcessCheckpoint", pid, None)]
    flat = (ctypes.c_uint8 * (32 * max(1, len(pairs))))(*b"".join(old + new for old, new in pairs))
    args = (ctypes.c_uint64 * 16)(ctypes.addressof(flat), len(pairs))
    results.append(call("cuCheckpointProcessRestore", pid, args))
    if results[-1]:
        print("refused with", results[-1], "| without pairs:", call("cuCheckpointProcessRestore", pid, None), end=" | ")
    results.append(call("cuCheckpointProcessUnlock", pid, None))
    print(results)


def main():
    a, b = uuids()[:2]
    none = bytes(range(16))
    ways = [
        # name, the process sees, the caller sees, pairs
        ("process sees A, caller all: A>B", "0", None, [(a, b)]),
        ("process sees A, caller all: A>B B>A", "0", None, [(a, b), (b, a)]),
        ("process sees A, caller sees B: A>B", "0", "1", [(a, b)]),
        ("process sees A, caller sees B: A>B B>A", "0", "1", [(a, b), (b, a)]),
        ("process sees A, caller all: A>B B>B", "0", None, [(a, b), (b, b)]),
        ("process sees A, caller all: A>B unknown>A", "0", None, [(a, b), (none, a)]),
        ("process sees all, uses A, caller all: A>B", None, None, [(a, b)]),
        ("process sees all, uses A, caller all: A>B B>A", None, None, [(a, b), (b, a)]),
        ("process sees all, uses A, caller sees B: A>B B>A", None, "1", [(a, b), (b, a)]),
        ("process sees A, caller all: A>A", "0", None, [(a, a)]),
    ]
    for name, process, sees, pairs in ways:
        def env(visible):
            return {**{k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"},
                    **({"CUDA_VISIBLE_DEVICES": visible} if visible is not None else {})}
        job = subprocess.Popen([sys.executable, __file__, "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, env=env(process))
        try:
            job.stdout.readline()
            words = [(old + new).hex() for old, new in pairs]
            done = subprocess.run([sys.executable, __file__, "caller", str(job.pid), *words], capture_output=True,
                                  text=True, timeout=60, env=env(sees))
            job.stdin.write("\n")
            job.stdin.flush()
            used = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                                  capture_output=True, text=True).stdout.split()
            print("%-52s %s memory %s, used MiB %s" % (
                name, done.stdout.strip() or done.stderr.strip()[-200:], job.stdout.readline().strip(), used), flush=True)
        except (subprocess.TimeoutExpired, BrokenPipeError) as error:
            print("%-52s %r" % (name, error), flush=True)
        finally:
            job.kill()
            job.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child()
    elif sys.argv[1:2] == ["caller"]:
        halves = [bytes.fromhex(word) for word in sys.argv[3:]]
        caller(int(sys.argv[2]), [(pair[:16], pair[16:]) for pair in halves])
    else:
        start = time.monotonic()
        main()
        print("%.1f s" % (time.monotonic() - start))
