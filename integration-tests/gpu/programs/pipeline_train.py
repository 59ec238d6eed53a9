#!/usr/bin/env python3
"""A pipeline of one stage a rank, with several microbatches under way, at full speed under torchrun: activations and gradients by send
and receive, the loss by a second group, and now and then a barrier over Gloo. The first rank writes the trace."""
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
import torch.distributed as dist

from ranked import EVERY, Trace

WIDTH, BATCH, PARTS = 512, 128, 8


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    second, hosts = dist.new_group(list(range(ranks))), dist.new_group(list(range(ranks)), backend="gloo")
    torch.manual_seed(1 + rank)
    stage = torch.nn.Sequential(torch.nn.Linear(WIDTH, 2048), torch.nn.Tanh(), torch.nn.Linear(2048, WIDTH)).cuda()
    optimizer = torch.optim.AdamW(stage.parameters(), lr=1e-4)
    trace = Trace(rank)
    while trace.more:
        optimizer.zero_grad()
        generator = torch.Generator().manual_seed(trace.made)
        x = torch.randn(PARTS, BATCH, WIDTH, generator=generator).cuda(non_blocking=True)
        total, under_way = torch.zeros((), device="cuda"), []
        for part in range(PARTS):
            if rank == 0:
                given = x[part]
            else:
                given = torch.empty(BATCH, WIDTH, device="cuda")
                dist.recv(given, rank - 1)
                given.requires_grad_()
            made = stage(given)
            if rank + 1 < ranks:
                dist.send(made.detach(), rank + 1)
            else:
                made = (made - x[part].roll(1, 1)).square().mean()
                total += made.detach()
            under_way.append((given, made))
        for given, made in under_way:
            if rank + 1 < ranks:
                gradient = torch.empty(BATCH, WIDTH, device="cuda")
                dist.recv(gradient, rank + 1)
                made.backward(gradient)
            else:
                made.backward()
            if rank > 0:
                dist.send(given.grad, rank - 1)
        optimizer.step()
        dist.all_reduce(total, group=second)
        trace.step(total)
        if trace.made % (5 * EVERY) == 0:
            dist.barrier(group=hosts)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
