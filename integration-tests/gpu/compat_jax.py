#!/usr/bin/env python3
"""A small deterministic JAX program, one line per step: `step bits seconds`. See h200.py."""
import os

os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")
os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.2")
import struct
import sys
import time

import jax
import jax.numpy as jnp

log_path, steps = sys.argv[1], int(sys.argv[2])


def loss_of(params, x):
    h = jnp.tanh(x @ params[0])
    return jnp.mean((h @ params[1] - x) ** 2)


@jax.jit
def train(params, key):
    key, sub = jax.random.split(key)
    x = jax.random.normal(sub, (256, 512))
    loss, grads = jax.value_and_grad(loss_of)(params, x)
    return [p - 0.1 * g for p, g in zip(params, grads)], key, loss


key = jax.random.key(1)
params = [jax.random.normal(key, (512, 1024)) * 0.05, jax.random.normal(key, (1024, 512)) * 0.05]
log = open(log_path, "a", buffering=1)
for step in range(steps):
    start = time.time()
    params, key, loss = train(params, key)
    value = float(loss)
    time.sleep(0.1)
    log.write("%d %08x %.4f\n" % (step, struct.unpack("<I", struct.pack("<f", value))[0], time.time() - start))
