#!/usr/bin/env python3
"""Numba CUDA at full speed: logistic regression in kernels of our own, without atomics."""
import math
import os

import numpy as np

# NumPy 2.5 no longer has a name that numba-cuda looks for at its import.
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
from numba import cuda

from record import Record

SAMPLES, FEATURES = (32, 16) if os.environ.get("SOAK_DEVICE") == "cpu" else (2048, 512)


@cuda.jit
def predict(x, w, target, error):
    i = cuda.grid(1)
    if i < x.shape[0]:
        s = np.float32(0.0)
        for j in range(x.shape[1]):
            s += x[i, j] * w[j]
        error[i] = np.float32(1.0) / (np.float32(1.0) + math.exp(-s)) - target[i]


@cuda.jit
def descend(x, error, w, m):
    j = cuda.grid(1)
    if j < x.shape[1]:
        s = np.float32(0.0)
        for i in range(x.shape[0]):
            s += x[i, j] * error[i]
        m[j] = np.float32(0.9) * m[j] + s / np.float32(x.shape[0])
        w[j] -= np.float32(0.05) * m[j]


@cuda.jit
def shift(x, by):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        v = x[i, j] + by
        x[i, j] = v - np.float32(4.0) if v > np.float32(2.0) else v


def main():
    rng = np.random.default_rng(1)
    host = rng.standard_normal((SAMPLES, FEATURES)).astype(np.float32)
    x, target = cuda.to_device(host), cuda.to_device((host.sum(axis=1) > 0).astype(np.float32))
    w, m = cuda.to_device(np.zeros(FEATURES, np.float32)), cuda.to_device(np.zeros(FEATURES, np.float32))
    error = cuda.device_array(SAMPLES, np.float32)
    rows, columns = (SAMPLES + 127) // 128, (FEATURES + 127) // 128
    tiles = ((SAMPLES + 15) // 16, (FEATURES + 15) // 16)
    record = Record()
    while True:
        for _ in range(4):
            predict[rows, 128](x, w, target, error)
            descend[columns, 128](x, error, w, m)
            shift[tiles, (16, 16)](x, np.float32(0.001))
        if not record.step(np.abs(error.copy_to_host()).sum(dtype=np.float64) + w.copy_to_host().sum(dtype=np.float64)):
            break


if __name__ == "__main__":
    main()
