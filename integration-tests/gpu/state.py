#!/usr/bin/env python3
"""Writes down what a real training job holds, by kind, for `phos-encoding-table` to measure.

    state.py DIR [STEPS] [MIB]      MIB of each kind at most, in chunks of 1 MiB taken evenly from all of it

The job is that of `train.py` (1.34 B parameters, AdamW, bf16 autocast), learning to go on with real text: the sources of the
Python packages of this machine, two bytes a token. `all-gpu` is the GPU memory as it lies there, of every segment of PyTorch's
allocator, which is what a checkpoint sees.
"""
import ctypes
import sys
import sysconfig
from pathlib import Path

out = Path(sys.argv[1])
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 400
mib = int(sys.argv[3]) if len(sys.argv) > 3 else 256
sys.argv = ["train.py", "/dev/null", "0"]
sys.path.insert(0, str(Path(__file__).resolve().parent))
import numpy
import torch
import torch.nn.functional as F

import train

CHUNK = 1 << 20


def tokens():
    """Two bytes of text a token, in a file, as data sets are: not part of what the job holds."""
    length = 0
    with open(out / ".text", "wb") as file:
        for path in sorted(Path(sysconfig.get_paths()["purelib"]).rglob("*.py")) + sorted(
            Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")
        ):
            length += file.write(path.read_bytes())
            if length > 256 << 20:
                break
    return numpy.memmap(out / ".text", dtype=numpy.uint16, mode="r", shape=(length // 2,)), length


def write(kind, tensors):
    """Chunks taken evenly from the bytes of some tensors."""
    flat = [t.detach().contiguous().reshape(-1).view(torch.uint8) for t in tensors]
    places = [(t, at) for t in flat for at in range(0, t.numel() - CHUNK + 1, CHUNK)]
    stride = max(1, len(places) // mib)
    with open(out / kind, "wb") as file:
        for t, at in places[::stride][:mib]:
            file.write(t[at : at + CHUNK].cpu().numpy().tobytes())
    print(f"{kind}: {len(places)} MiB, {min(mib, len(places[::stride]))} written", flush=True)


def write_activations(saved, parameters):
    """What autograd saved for the backward pass, each storage once and whole, but weights and their copies in bf16."""
    weights = {p.untyped_storage().data_ptr() for p in parameters}
    shapes = {tuple(p.shape) for p in parameters} | {tuple(p.shape[::-1]) for p in parameters}
    copies = {t.untyped_storage().data_ptr() for t in saved if tuple(t.shape) in shapes}
    held = {t.untyped_storage().data_ptr(): t for t in saved if t.is_cuda}
    held = [t for at, t in held.items() if at not in weights | copies]
    for kind, dtype in [("activations-fp32", torch.float32), ("activations-bf16", torch.bfloat16)]:
        whole = [torch.empty(0, dtype=dtype, device="cuda").set_(t.untyped_storage()) for t in held if t.dtype == dtype]
        write(kind, whole)


def write_segments():
    runtime = ctypes.CDLL("libcudart.so.13")
    segments = torch.cuda.memory_snapshot()
    places = [s["address"] + at for s in segments for at in range(0, s["total_size"] - CHUNK + 1, CHUNK)]
    stride = max(1, len(places) // mib)
    buffer = ctypes.create_string_buffer(CHUNK)
    with open(out / "all-gpu", "wb") as file:
        for place in places[::stride][:mib]:
            if runtime.cudaMemcpy(buffer, ctypes.c_void_p(place), ctypes.c_size_t(CHUNK), 2) != 0:
                raise RuntimeError(f"cannot read {place:#x}")
            file.write(buffer.raw)
    print(f"all-gpu: {len(places)} MiB, {min(mib, len(places[::stride]))} written", flush=True)


def write_heap():
    """Private memory of this process, but what is zeros alone: most of that was never touched."""
    places = []
    for line in open("/proc/self/maps"):
        words = line.split()
        name = words[5] if len(words) > 5 else ""
        if words[1].startswith("rw") and words[1].endswith("p") and name in ("", "[heap]"):
            begin, end = (int(x, 16) for x in words[0].split("-"))
            places += range(begin, end - CHUNK + 1, CHUNK)
    zeros = bytes(CHUNK)
    used = [at for at in places if ctypes.string_at(at, CHUNK) != zeros]
    stride = max(1, len(used) // mib)
    with open(out / "cpu-heap", "wb") as file:
        for at in used[::stride][:mib]:
            file.write(ctypes.string_at(at, CHUNK))
    print(f"cpu-heap: {len(used)} MiB, {min(mib, len(used[::stride]))} written", flush=True)


def main():
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    text, length = tokens()
    print(f"text: {length >> 20} MiB", flush=True)
    model = train.placed()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    generator = torch.Generator().manual_seed(1)
    saved = []

    def keep(tensor):
        saved.append(tensor)
        return tensor

    for step in range(1, steps + 1):
        starts = torch.randint(0, len(text) - train.T - 1, (train.B,), generator=generator).tolist()
        batch = numpy.stack([text[at : at + train.T + 1] for at in starts]).astype(numpy.int64)
        x = (torch.from_numpy(batch) % train.V).cuda()
        last = step == steps
        opt.zero_grad(set_to_none=True)
        with torch.autograd.graph.saved_tensors_hooks(keep if last else lambda t: t, lambda t: t):
            with torch.autocast("cuda", torch.bfloat16):
                logits = model(x[:, :-1]).flatten(0, 1).float()
                loss = F.cross_entropy(logits, x[:, 1:].flatten())
        if last:
            write_activations(saved, list(model.parameters()))
        loss.backward()
        saved.clear()
        if step in (1, steps) or step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
        if last:
            gradients = [p.grad for p in model.parameters()]
            write("gradients-fp32", gradients)
            write("gradients-bf16", [g.bfloat16() for g in gradients])
        opt.step()
    parameters = list(model.parameters())
    write_segments()
    write("weights-fp32", parameters)
    write("weights-bf16", [p.detach().bfloat16() for p in parameters])
    write("adam-first-moment", [opt.state[p]["exp_avg"] for p in parameters])
    write("adam-second-moment", [opt.state[p]["exp_avg_sq"] for p in parameters])
    write_heap()
    (out / ".text").unlink()


main()
