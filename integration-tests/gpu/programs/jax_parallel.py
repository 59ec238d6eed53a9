"""What both programs of data parallel training by JAX compute: one process that drives all GPUs, and a process for each."""
import os

os.environ["XLA_FLAGS"] = "--xla_gpu_deterministic_ops=true"
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp

WIDTH, BATCH = 1024, 256
# The losses of so many steps are looked at together.
EVERY = 10


def initial():
    return [jax.random.normal(key, (WIDTH, WIDTH)) / 32 for key in jax.random.split(jax.random.key(1), 8)]


def loss_of(weights, x):
    y = x
    for w in weights:
        y = y + jnp.tanh(y @ w)
    return jnp.mean((y - jnp.roll(x, 1, 1)) ** 2)


def made(seed):
    return jax.random.normal(jax.random.key(seed), (BATCH, WIDTH))


def step(weights, x):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x)
    gradients = jax.lax.pmean(gradients, "i")
    return [w - 0.1 * g for w, g in zip(weights, gradients)], jax.lax.pmean(loss, "i")
