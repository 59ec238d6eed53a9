#!/usr/bin/env python3
"""flax and optax at full speed: parameters and moments are donated to each update, the loss of one step is read while the next
is under way. COMMAND_BUFFERS=1: what XLA can put into a command buffer (a CUDA graph), it does; else nothing."""
import glob
import importlib.util
import mmap
import os


def known(flag):
    """XLA ends the process at a flag that it does not know. Those that it knows stand in its libraries."""
    for package in ("jaxlib", "jax_plugins"):
        spec = importlib.util.find_spec(package)
        for directory in spec.submodule_search_locations if spec else []:
            for path in glob.glob(os.path.join(directory, "**", "*.so*"), recursive=True):
                if os.path.getsize(path) < 1 << 20:
                    continue
                with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                    if text.find(flag.encode()) >= 0:
                        return True
    return False


flags = {"xla_gpu_deterministic_ops": "true"}
if os.environ.get("COMMAND_BUFFERS") == "1":
    # Every kind that is on by default, however short.
    flags["xla_gpu_graph_min_graph_size"] = "1"
else:
    flags["xla_gpu_enable_command_buffer"] = ""
taken = {f: v for f, v in flags.items() if f == "xla_gpu_deterministic_ops" or known(f)}
os.environ["XLA_FLAGS"] = " ".join(f"--{f}={v}" for f, v in taken.items())
# Several programs share the GPU.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from record import Record


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = x
        for _ in range(4):
            y = y + nn.Dense(512)(nn.gelu(nn.Dense(1024)(nn.LayerNorm()(y))))
        return nn.Dense(x.shape[-1])(y)


model, optimizer = Model(), optax.adamw(1e-3)


def update(state, _):
    params, moments, key = state
    key, sub = jax.random.split(key)
    x = jax.random.normal(sub, (1024, 512))
    target = jnp.sin(jnp.cumsum(x, axis=1) * 0.1)
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, x) - target) ** 2))(params)
    change, moments = optimizer.update(grads, moments, params)
    return (optax.apply_updates(params, change), moments, key), loss


def step(params, moments, key):
    losses = []
    for _ in range(3):
        (params, moments, key), loss = update((params, moments, key), None)
        losses.append(loss)
    return params, moments, key, jnp.stack(losses).sum()


def main():
    print("XLA_FLAGS", os.environ["XLA_FLAGS"], flush=True)
    params = jax.jit(model.init)(jax.random.key(1), jnp.zeros((1, 512)))
    moments = jax.jit(optimizer.init)(params)
    train = jax.jit(step, donate_argnums=(0, 1, 2))
    key, record, before = jax.random.key(2), Record(), None
    while True:
        params, moments, key, loss = train(params, moments, key)
        # The step before this one is read now: there is always work under way.
        if before is not None and not record.step(before):
            break
        before = loss


if __name__ == "__main__":
    main()
