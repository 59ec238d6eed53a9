#!/usr/bin/env python3
"""The training program train.py beside a thread that polls the driver (BESIDE=polls), NVML too (nvml), or counts in pinned memory
(counts); THREADS names the library built of threads.c. Ends with 4 where that thread saw something wrong."""
import ctypes
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch

import train


def main():
    library = ctypes.CDLL(os.environ["THREADS"])
    library.beside_stop.restype = ctypes.c_char_p
    # The context is made, and current.
    torch.zeros(1, device="cuda")
    result = library.beside_start(os.environ["BESIDE"].encode())
    if result:
        sys.exit(f"the thread cannot be started: {result}")
    train.main(after_step=lambda step: step % 100 == 99 and library.beside_check())
    rounds = ctypes.c_ulonglong()
    wrong = library.beside_stop(ctypes.byref(rounds)).decode()
    print("rounds", rounds.value, wrong, flush=True)
    if wrong or not rounds.value:
        print("WRONG:", wrong or "the thread did nothing", file=sys.stderr, flush=True)
        os._exit(4)


if __name__ == "__main__":
    main()
