#!/usr/bin/env python3
"""A small deterministic CuPy program, one line per step: `step bits seconds`. See h200.py."""
import struct
import sys
import time

import cupy as cp

log_path, steps = sys.argv[1], int(sys.argv[2])
rng = cp.random.RandomState(1)
w = rng.standard_normal((512, 512), dtype=cp.float32) * 0.05
m = cp.zeros_like(w)
big = cp.zeros(64 << 20, dtype=cp.float32)
log = open(log_path, "a", buffering=1)
for step in range(steps):
    start = time.time()
    x = rng.standard_normal((256, 512), dtype=cp.float32)
    y = cp.tanh(x @ w)
    g = x.T @ ((y - x) * (1 - y * y)) / 256
    m = 0.9 * m + g
    w = w - 0.1 * m
    big += step
    value = float(((y - x) ** 2).mean() + big[step])
    time.sleep(0.1)
    log.write("%d %08x %.4f\n" % (step, struct.unpack("<I", struct.pack("<f", value))[0], time.time() - start))
