#!/usr/bin/env python3
"""Data parallel training by JAX with a process for each GPU, at full speed: they find each other through JAX's coordination service and
sum gradients by NCCL. The first writes the trace. Started without a rank it starts them, and ends as the first of them that fails.
"""
import os
import subprocess
import sys

COUNT = int(os.environ.get("COUNT", "2"))


def launch():
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": str(rank)}) for rank in range(COUNT)]
    codes = []
    while len(codes) < COUNT:
        pid, status = os.wait()
        codes.append(os.waitstatus_to_exitcode(status))
        if codes[-1]:
            for rank in ranks:
                if rank.pid != pid:
                    rank.kill()
            sys.exit(1)


def train(rank):
    import jax_parallel as parallel

    import jax
    import jax.numpy as jnp

    from record import Record

    jax.distributed.initialize("127.0.0.1:29501", COUNT, rank, local_device_ids=[rank])
    weights = [w[None] for w in parallel.initial()]
    made = jax.pmap(parallel.made)
    step = jax.pmap(parallel.step, axis_name="i", donate_argnums=0)
    agree = jax.pmap(lambda flag: jax.lax.pmin(flag, "i"), axis_name="i")
    record, at, more, waiting = Record() if rank == 0 else None, 0, True, []
    while more:
        weights, loss = step(weights, made(jnp.array([rank + COUNT * at])))
        waiting.append(loss)
        at += 1
        if len(waiting) == parallel.EVERY:
            losses = [float(loss.addressable_data(0)[0]) for loss in waiting]
            mine = not record or all([record.step(loss) for loss in losses])
            more, waiting = bool(agree(jnp.array([int(mine)])).addressable_data(0)[0]), []


if __name__ == "__main__":
    train(int(os.environ["RANK"])) if "RANK" in os.environ else launch()
