#!/usr/bin/env python3
"""All-reduces of 1 GiB without anything else, a GPU a rank, under torchrun. The first rank writes a line `step GB/s` for each ten: the
bus bandwidth, as nccl-tests count it.

    all_reduce.py LOG STEPS
"""
import os
import sys

import torch
import torch.distributed as dist

BYTES, EACH = 1 << 30, 10


def main():
    log_path, steps = sys.argv[1], int(sys.argv[2])
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    data = torch.zeros(BYTES // 4, device="cuda")
    began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    log = open(os.devnull if rank else log_path, "a", buffering=1)
    for step in range(steps):
        began.record()
        for _ in range(EACH):
            dist.all_reduce(data)
        ended.record()
        ended.synchronize()
        seconds = began.elapsed_time(ended) / 1000 / EACH
        log.write("%d %.2f\n" % (step, 2 * (ranks - 1) / ranks * BYTES / seconds / 1e9))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
