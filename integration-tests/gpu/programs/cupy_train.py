#!/usr/bin/env python3
"""CuPy at full speed, with its memory pools or (POOL=0) without any: then every array is an allocation of the driver's. Keeps
KEEP further allocations, one of which is replaced in each step."""
import os

import cupy as cp

from record import Record

if os.environ.get("POOL", "1") == "0":
    cp.cuda.set_allocator(None)
    cp.cuda.set_pinned_memory_allocator(None)
KEEP = int(os.environ.get("KEEP", "400"))


def main():
    rng = cp.random.RandomState(1)
    w = rng.standard_normal((512, 512), dtype=cp.float32) * 0.05
    m = cp.zeros_like(w)
    kept = [cp.full(1000 + i, i, dtype=cp.float32) for i in range(KEEP)]
    record, step = Record(), 0
    while True:
        x = rng.standard_normal((256, 512), dtype=cp.float32)
        y = cp.tanh(x @ w)
        g = x.T @ ((y - x) * (1 - y * y)) / 256
        m = 0.9 * m + g
        w = w - 0.05 * m
        i = step * 7 % KEEP
        # What was kept goes into what replaces it, so that each of them counts.
        kept[i] = kept[i] * 0.5 + (step % 1000)
        value = float(((y - x) ** 2).mean() + kept[(i + 7) % KEEP].sum() * 1e-6)
        step += 1
        if not record.step(value):
            break


if __name__ == "__main__":
    main()
