#!/usr/bin/env python3
"""What of a training's memory changes in an interval, and what of that had been as it is for a while when the interval ends.

Pre-copying stores ahead of a checkpoint what has changed since the last one and is stable by then. This says how much that is, for trainings that differ in
what they write: with `--device cuda` on a GPU, else on the CPU. It needs PyTorch and neither phos-ft nor a checkpoint. Chunks are a MiB, as in a store, or as
large as a smaller tensor; shares are of bytes.

    changes.py [--device cpu] [--steps 60]
"""

import argparse
import json

import torch
from torch import nn

MIB = 1 << 20
AGO = (1, 2, 5, 10, 20)


class Watched:
    """The chunks of some tensors, and in which step each of them changed last."""

    def __init__(self):
        self.before, self.last, self.bytes = {}, {}, {}

    def look(self, tensors, step):
        for name, tensor in tensors:
            flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
            if name not in self.before:
                # What is new has changed.
                self.before[name] = flat.clone()
                self.last[name] = torch.full((-(-flat.numel() // MIB),), step)
                self.bytes[name] = torch.tensor([part.numel() for part in flat.split(MIB)])
                continue
            for number, (now, then) in enumerate(zip(flat.split(MIB), self.before[name].split(MIB))):
                if not torch.equal(now, then):
                    self.last[name][number] = step
            self.before[name].copy_(flat)


def held(model, optimizers):
    """All that the training keeps from one step to the next."""
    for name, parameter in model.named_parameters():
        yield name, parameter
        if parameter.grad is not None and not parameter.grad.is_sparse:
            yield name + " grad", parameter.grad
        for optimizer in optimizers:
            for key, value in optimizer.state.get(parameter, {}).items():
                if torch.is_tensor(value) and value.numel() > 1:
                    yield f"{name} {key}", value


class Transformer(nn.Module):
    def __init__(self, width=512, layers=6, words=16000):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens)))


class LoRA(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Experts(nn.Module):
    """One expert of many for each token, of which a step reaches few."""

    def __init__(self, width=256, experts=64, words=4000):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(words, width)
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(experts))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.embed(tokens)
        flat, weight = x.view(-1, x.shape[-1]), self.gate(x).softmax(-1).view(-1, len(self.experts))
        best, which = weight.max(-1)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            rows = (which == number).nonzero().squeeze(-1)
            if rows.numel():
                out = out.index_add(0, rows, expert(flat[rows]) * best[rows, None])
        return self.head(x + out.view_as(x))


class Recommender(nn.Module):
    """A large table, of which each step reads some rows: as often as words occur, or as users come."""

    def __init__(self, rows=1_000_000, width=64):
        super().__init__()
        self.words = rows
        self.table = nn.Embedding(rows, width, sparse=True)
        self.dense = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, width))

    def forward(self, rows):
        return self.dense(self.table(rows))


def uniform(words, shape, generator):
    return torch.randint(words, shape, generator=generator)


def zipf(words, shape, generator):
    """Row k as often as 1/k."""
    return (words ** torch.rand(shape, generator=generator)).long().sub_(1).clamp_(0, words - 1)


def tokens_loss(model, rows):
    return nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def table_loss(model, rows):
    return model(rows).square().mean()


def trainings():
    transformer = Transformer()
    adamw = lambda model: [torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])]
    yield "transformer, AdamW", transformer, adamw(transformer), tokens_loss, uniform, (4, 64)
    tuned = Transformer()
    tuned.requires_grad_(False)
    for layer in tuned.layers.layers:
        layer.linear1, layer.linear2 = LoRA(layer.linear1), LoRA(layer.linear2)
    yield "the same with LoRA", tuned, adamw(tuned), tokens_loss, uniform, (4, 64)
    for name, shape in (("64 experts, 30 tokens a step", (2, 16)), ("64 experts, 2,040 tokens a step", (8, 256))):
        experts = Experts()
        yield name, experts, adamw(experts), tokens_loss, zipf, shape
    for name, draw, shape in (("table, 4,096 rows a step", uniform, (4096,)), ("table, 256 rows by Zipf", zipf, (256,)), ("table, 16 rows", uniform, (16,))):
        table = Recommender()
        optimizers = [torch.optim.SparseAdam(table.table.parameters()), torch.optim.AdamW(table.dense.parameters())]
        yield name, table, optimizers, table_loss, draw, shape


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--steps", type=int, default=60, help="between two checkpoints")
    options = arguments.parse_args()
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    print(f"{'training':34} {'MiB':>6} {'changed':>8}   of that unchanged for the last " + ", ".join(map(str, AGO)) + " steps")
    for name, model, optimizers, loss, draw, shape in trainings():
        model.to(options.device)
        watched = Watched()
        # The first steps make what the optimizer keeps.
        for step in range(-2, options.steps + 1):
            rows = draw(model.words, shape, generator).to(options.device)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss(model, rows).backward()
            for optimizer in optimizers:
                optimizer.step()
            if step >= 0:
                watched.look(held(model, optimizers), step)
        last, sizes = (torch.cat(list(of.values())) for of in (watched.last, watched.bytes))
        # With gradients that are not there after every step.
        total, changed = int(sizes.sum()), int(sizes[last > 0].sum())
        stable = [int(sizes[(last > 0) & (last <= options.steps - ago)].sum()) for ago in AGO]
        shares = [stable_for / max(changed, 1) for stable_for in stable]
        print(f"{name:34} {total / MIB:6.0f} {changed / total:8.1%}   " + ", ".join(f"{share:.1%}" for share in shares), flush=True)
        print(json.dumps({"training": name, "bytes": total, "changed": changed, "stable": dict(zip(AGO, stable))}))


if __name__ == "__main__":
    main()
