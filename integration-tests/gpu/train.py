#!/usr/bin/env python3
"""The training job of the GPU tests: a decoder-only transformer with AdamW under deterministic
algorithms, batches from DataLoader workers through pinned memory, one line per step in a log that
it appends to: `step loss_bits seconds`. Knows nothing of phos-ft.

Shapes by environment: D (width), L (layers), B (batch), T (sequence), V (tokens known), EXTRA_GB (further state that
changes in every step), FROZEN=1 (a LoRA-like run: base weights frozen, small adapters trained),
PINNED_GB (optimizer state in pinned host memory, an eighth of it changed in each step and verified at the end), COMPILE=1
(torch.compile), GRAPH=1 (the optimiser-free forward and backward as a CUDA graph),
GPUS=2 (the second half of the layers on the second GPU), under torchrun a rank a GPU with DistributedDataParallel (the first writes the log), WORKERS (DataLoader workers), IDLE_S (seconds to do nothing before the end), STEP_S
(seconds to do nothing after each step), RECOMPILE=n (with COMPILE: another sequence length, and so another compilation, every n
steps, six of them), ACCUM (so many passes over its batch in each step, whose gradients add up), CLIP=1 (gradients are clipped, and their norm is looked at before the optimiser:
a second wait in each step), OFFLOAD=1 (what the backward pass needs is kept in pinned host memory: each step copies it there and back), FINISH (a file: the step at which it is there is the last).
"""
import contextlib
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import struct
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def env(name, default):
    return int(os.environ.get(name, default))


log_path, steps = sys.argv[1], int(sys.argv[2])
D, L, B, T = env("D", 2048), env("L", 24), env("B", 8), env("T", 1024)
V, HEAD = env("V", 32000), 128
EXTRA_GB, FROZEN, COMPILE, GRAPH = env("EXTRA_GB", 0), env("FROZEN", 0), env("COMPILE", 0), env("GRAPH", 0)
WORKERS, GPUS, RECOMPILE = env("WORKERS", 2), env("GPUS", 1), env("RECOMPILE", 0)
ACCUM, CLIP, OFFLOAD = env("ACCUM", 1), env("CLIP", 0), env("OFFLOAD", 0)
RANK, RANKS = env("RANK", 0), env("WORLD_SIZE", 0)
FINISH = os.environ.get("FINISH")


class Tokens(Dataset):
    """Batch number i is a function of i alone."""

    def __len__(self):
        return 1 << 40

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i * max(RANKS, 1) + RANK)
        return torch.randint(0, V, (T + 1,), generator=g)


class Adapter(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base, self.a = base, nn.Linear(base.in_features, rank, bias=False)
        self.b = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.b.weight)
        for p in base.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        wrap = Adapter if FROZEN else (lambda m: m)
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q, self.o = wrap(nn.Linear(D, 3 * D)), wrap(nn.Linear(D, D))
        self.f = nn.Sequential(wrap(nn.Linear(D, 4 * D)), nn.GELU(), wrap(nn.Linear(4 * D, D)))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.q(self.n1(x)).view(b, t, 3, D // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.o(y.transpose(1, 2).reshape(b, t, D)))
        return x + self.drop(self.f(self.n2(x)))


class To(nn.Module):
    """A hop to another GPU."""

    def __init__(self, device):
        super().__init__()
        self.device = device

    def forward(self, x):
        return x.to(self.device)


def placed():
    layers = [nn.Embedding(V, D), *[Block() for _ in range(L)], nn.LayerNorm(D), nn.Linear(D, V)]
    if GPUS == 1:
        return nn.Sequential(*layers).cuda()
    half = len(layers) // 2
    first, second = nn.Sequential(*layers[:half]).cuda(0), nn.Sequential(*layers[half:]).cuda(1)
    return nn.Sequential(first, To("cuda:1"), second, To("cuda:0"))


def main(after_step=lambda step: None):
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(0)
    if RANKS:
        torch.cuda.set_device(RANK)
        torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", RANK))
    model = placed()
    if RANKS:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[RANK], gradient_as_bucket_view=True)
    if FROZEN:
        for name, p in model.named_parameters():
            p.requires_grad_(".a." in name or ".b." in name)
    # Every chunk of it differs from every other, in every step.
    extra = [torch.arange(1 << 28, dtype=torch.int32, device="cuda") + i * 1000003 for i in range(EXTRA_GB)]
    # 128 MiB each, as an offloading optimizer has them; each chunk of it is another.
    pinned = [torch.arange(1 << 25, dtype=torch.int32).add_(i * 1000003).pin_memory() for i in range(8 * env("PINNED_GB", 0))]
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=1e-4)

    def loss_of(x):
        kept = torch.autograd.graph.save_on_cpu(pin_memory=True) if OFFLOAD else contextlib.nullcontext()
        with kept, torch.autocast("cuda", torch.bfloat16):
            out = model(x[:, :-1]).flatten(0, 1).float()
            return F.cross_entropy(out, x[:, 1:].flatten())

    compute = torch.compile(loss_of, dynamic=False if RECOMPILE else None) if COMPILE else loss_of
    loader = DataLoader(
        Tokens(), batch_size=B, num_workers=WORKERS, pin_memory=True,
        persistent_workers=WORKERS > 0, multiprocessing_context="fork" if WORKERS else None,
    )
    print("params %.2fB" % (sum(p.numel() for p in model.parameters()) / 1e9), flush=True)

    static = graph = static_loss = None
    log, ended = open(os.devnull if RANK else log_path, "a", buffering=1), steps
    for step, x in enumerate(loader):
        if step >= steps:
            break
        start = time.time()
        if RECOMPILE:
            x = x[:, : T + 1 - 8 * (step // RECOMPILE % 6)].contiguous().pin_memory()
        x = x.cuda(non_blocking=True)
        if GRAPH:
            if graph is None:
                static = x.clone()
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    for _ in range(3):
                        for p in params:
                            p.grad = None
                        loss_of(static).backward()
                torch.cuda.current_stream().wait_stream(side)
                for p in params:
                    p.grad = None
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    static_loss = loss_of(static)
                    static_loss.backward()
            static.copy_(x)
            graph.replay()
            loss = static_loss
            opt.step()
        else:
            for _ in range(ACCUM):
                loss = compute(x)
                loss.backward()
            if CLIP and not torch.nn.utils.clip_grad_norm_(params, 1.0).isfinite().item():
                raise FloatingPointError("gradients are not finite")
            opt.step()
            opt.zero_grad(set_to_none=True)
        for e in extra:
            e.add_(1)
        for p in pinned[step % 8 :: 8]:
            p.add_(1)
        value = loss.item()
        time.sleep(float(os.environ.get("STEP_S", 0)))
        log.write("%d %08x %.4f\n" % (step, struct.unpack("<I", struct.pack("<f", value))[0], time.time() - start))
        after_step(step)
        if FINISH and os.path.exists(FINISH):
            ended = step + 1
            break
    time.sleep(env("IDLE_S", 0))
    if extra:
        assert all(int(e[-1]) == (1 << 28) - 1 + i * 1000003 + ended for i, e in enumerate(extra)), "extra state differs"
    for i, p in enumerate(pinned):
        changed = len(range(i % 8, ended, 8))
        assert int(p[-1]) == (1 << 25) - 1 + i * 1000003 + changed, "pinned state differs"
    print(
        "done allocated %.1f GB reserved %.1f GB"
        % (torch.cuda.max_memory_allocated() / 1e9, torch.cuda.memory_reserved() / 1e9),
        flush=True,
    )


if __name__ == "__main__":
    main()
