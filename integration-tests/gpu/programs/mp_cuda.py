#!/usr/bin/env python3
"""torch.multiprocessing with CUDA tensors at full speed: two processes share weights and gradients in GPU memory (legacy IPC),
each computes the gradients of half of a batch, the first one makes the step. Now and then it shares memory that it has had for long, with checkpoints
between."""
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
import torch.multiprocessing as mp

WIDTH = 512
# Tensors that are allocated at the beginning, each by itself (PyTorch puts together what is smaller than 10 MiB), and shared one after the other.
LATE, LATE_FLOATS, LATE_EVERY = 16, 4 << 20, 200


def gradient(weights, half, step):
    g = torch.Generator().manual_seed(2 * step + half)
    x = torch.randn(128, WIDTH, generator=g).to(weights.device)
    w = weights.detach().requires_grad_(True)
    loss = ((torch.tanh(x @ w) - x.roll(1, 1)) ** 2).mean()
    loss.backward()
    return loss.item(), w.grad


def second(asked, answers):
    torch.use_deterministic_algorithms(True)
    weights, shared = asked.get()
    late = []
    while True:
        step = asked.get()
        if step is None:
            # Before the process that the memory belongs to.
            del weights, shared, late
            return
        if isinstance(step, torch.Tensor):
            late.append(step.mul_(2))
            answers.put(step.sum().item())
            continue
        loss, grad = gradient(weights, 1, step)
        shared.copy_(grad)
        if shared.is_cuda:
            torch.cuda.synchronize()
        answers.put(loss)


def main():
    from record import DEVICE, Record

    torch.use_deterministic_algorithms(True)
    mp.set_start_method("spawn")
    asked, answers = mp.SimpleQueue(), mp.SimpleQueue()
    child = mp.Process(target=second, args=(asked, answers))
    child.start()
    g = torch.Generator().manual_seed(1)
    weights = (torch.randn(WIDTH, WIDTH, generator=g) * 0.05).to(DEVICE)
    shared = torch.zeros_like(weights)
    if DEVICE == "cpu":
        weights.share_memory_(), shared.share_memory_()
    asked.put((weights, shared))
    momentum, record, step = torch.zeros_like(weights), Record(), 0
    late = [torch.full((LATE_FLOATS,), float(n), device=DEVICE) for n in range(LATE)]
    while True:
        if step % LATE_EVERY == LATE_EVERY - 1 and step // LATE_EVERY < LATE:
            number = step // LATE_EVERY
            asked.put(late[number])
            answer, here = answers.get(), late[number].sum().item()
            assert answer == here == 2.0 * number * LATE_FLOATS, (answer, here)
        asked.put(step)
        loss, grad = gradient(weights, 0, step)
        loss += answers.get()
        momentum.mul_(0.9).add_(grad + shared, alpha=0.5)
        weights.sub_(momentum, alpha=0.05)
        if shared.is_cuda:
            # Before the other one reads the weights.
            torch.cuda.synchronize()
        step += 1
        if not record.step(loss):
            break
    asked.put(None)
    child.join()
    raise SystemExit(child.exitcode)


if __name__ == "__main__":
    main()
