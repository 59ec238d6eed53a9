#!/usr/bin/env python3
"""The training program train.py under torch.profiler as people leave it on: a window of every few steps is recorded through CUPTI. What
each window saw goes to standard output; ends with 4 where one that was recorded in one piece has no kernels.

PROFILE: "always" (there are no steps in between), else windows of 20 steps after 15 without."""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from torch.profiler import ProfilerActivity, profile, schedule

import train

windows = []


def ready(profiler):
    """Counts kernels of a window."""
    kernels = sum(1 for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA)
    windows.append(kernels)
    print("window", len(windows), "kernels", kernels, flush=True)


def main():
    torch.zeros(1, device="cuda")
    wait, warmup = (0, 1) if os.environ.get("PROFILE") == "always" else (10, 5)
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=wait, warmup=warmup, active=20, repeat=0),
        on_trace_ready=ready,
    ) as profiler:
        train.main(after_step=lambda step: profiler.step())
    blind = sum(kernels == 0 for kernels in windows[:-1])
    print("windows", len(windows), "without kernels", blind, flush=True)
    if not windows or blind:
        os._exit(4)


if __name__ == "__main__":
    main()
