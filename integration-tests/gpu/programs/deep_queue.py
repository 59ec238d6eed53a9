#!/usr/bin/env python3
"""PyTorch with far more work queued than a checkpoint may hold the job for. KIND:

laps       a hundred and fifty iterations between two looks at the loss, 1.5 s of kernels
pipelined  a CUDA graph of 0.4 s a step, and the next one is queued when the loss of the last is waited for: never idle
"""
import os

import torch

from record import DEVICE, Record

SIZE, ITERATIONS = (32, 4) if DEVICE == "cpu" else (6144, 150)
KIND = os.environ.get("KIND", "laps")


class Work:
    def __init__(self):
        torch.manual_seed(7)
        self.w = torch.randn(SIZE, SIZE, device=DEVICE) / SIZE**0.5
        self.x = torch.randn(SIZE, SIZE, device=DEVICE)
        self.loss = torch.zeros((), device=DEVICE)

    def iterate(self, count):
        for _ in range(count):
            self.x.copy_(torch.tanh(self.x @ self.w) + 0.01)
        self.loss.copy_(self.x.square().mean())


def laps(record):
    work = Work()
    while True:
        work.iterate(ITERATIONS)
        if not record.step(work.loss.item()):
            return


def pipelined(record):
    work = Work()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work.iterate(3)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work.iterate(ITERATIONS // 4)
    losses = [torch.zeros((), pin_memory=True) for _ in range(2)]
    ready = [torch.cuda.Event() for _ in range(2)]
    step = 0
    while True:
        graph.replay()
        losses[step % 2].copy_(work.loss, non_blocking=True)
        ready[step % 2].record()
        if step:
            before = (step - 1) % 2
            ready[before].synchronize()
            if not record.step(losses[before].item()):
                return
        step += 1


{"laps": laps, "pipelined": pipelined}[KIND](Record())
