#!/usr/bin/env python3
"""Data parallel training at full speed, a GPU a rank, over NCCL as it comes: under torchrun or another launcher. The first rank writes
the trace. COMPILE=1: through torch.compile; TIMEOUT_S: what NCCL's watchdog allows."""
import datetime
import os
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from record import Record


def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.use_deterministic_algorithms(True)
    options = {} if os.environ.get("LAZY") else {"device_id": torch.device("cuda", rank)}
    if os.environ.get("TIMEOUT_S"):
        options["timeout"] = datetime.timedelta(seconds=int(os.environ["TIMEOUT_S"]))
    dist.init_process_group("nccl", **options)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.Tanh(), torch.nn.Linear(2048, 512)).cuda()
    plain = os.environ.get("PLAIN")
    model = model if plain else DistributedDataParallel(model, device_ids=[rank])
    model = torch.compile(model) if os.environ.get("COMPILE") else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record, step, more = Record() if rank == 0 else None, 0, torch.ones(1, device="cuda")
    while more.item():
        x = torch.randn(256, 512, generator=torch.Generator().manual_seed(2 * step + rank)).cuda()
        loss = (model(x) - x.roll(1, 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if plain:
            for p in model.parameters():
                dist.all_reduce(p.grad)
        optimizer.step()
        time.sleep(float(os.environ.get("PAUSE", "0")))
        total = loss.detach().clone()
        dist.all_reduce(total)
        step += 1
        if record:
            more.fill_(record.step(total.item()))
        # All end at the same step.
        dist.broadcast(more, 0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
