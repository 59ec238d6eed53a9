#!/usr/bin/env python3
"""Tensor parallel training at full speed, a GPU a rank, under torchrun: each step is a captured graph with its all-reduces in it. The first
rank writes the trace."""
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
import torch.distributed as dist

from ranked import Trace

WIDTH, HIDDEN, BATCH, LAYERS = 1024, 2048, 256, 8


def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(1 + rank)
    layers = [(torch.randn(WIDTH, HIDDEN, device="cuda") / 32, torch.randn(HIDDEN, WIDTH, device="cuda") / 64) for _ in range(LAYERS)]
    x, loss = torch.zeros(BATCH, WIDTH, device="cuda"), torch.zeros((), device="cuda")

    def step():
        y, kept = x, []
        for first, second in layers:
            hidden = torch.tanh(y @ first)
            out = hidden @ second
            dist.all_reduce(out)
            kept.append((y, hidden))
            y = y + out
        wrong = y - x.roll(1, 1)
        loss.copy_(wrong.square().mean())
        gradient = wrong * (2 / wrong.numel())
        for (first, second), (given, hidden) in zip(reversed(layers), reversed(kept)):
            below = (gradient @ second.T) * (1 - hidden.square())
            second.sub_(hidden.T @ gradient, alpha=0.1)
            back = below @ first.T
            first.sub_(given.T @ below, alpha=0.1)
            dist.all_reduce(back)
            gradient = gradient + back

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    trace = Trace(rank)
    while trace.more:
        x.copy_(torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(trace.made)).cuda(non_blocking=True))
        graph.replay()
        trace.step(loss.clone())
    # NCCL waits for the end of graphs that use a communicator before that one's.
    torch.cuda.synchronize()
    graph.reset()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
