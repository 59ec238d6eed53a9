#!/usr/bin/env python3
"""Sharded data parallel training (FSDP2) with activation checkpointing at full speed, a GPU a rank, under torchrun. The host waits every
tenth step alone. The first rank writes the trace."""
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint

from ranked import Trace


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + checkpoint(lambda y: self.narrow(torch.tanh(self.wide(y))), x, use_reentrant=False)


def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.use_deterministic_algorithms(True)
    mesh = init_device_mesh("cuda", (int(os.environ["WORLD_SIZE"]),))
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(Block(512) for _ in range(8))).cuda()
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    trace = Trace(rank)
    while trace.more:
        x = torch.randn(256, 512, generator=torch.Generator().manual_seed(2 * trace.made + rank)).cuda(non_blocking=True)
        loss = (model(x) - x.roll(1, 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        trace.step(total)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
