#!/usr/bin/env python3
"""The GPU test: phos-ft on a real GPU with PyTorch, one run, a short table last.

    h200.py STAGE…        stages: see STAGES, PAIRED, APARTS and COMPARED below; all of STAGES without arguments

Needs root, an NVIDIA GPU with a driver that has the checkpoint calls, PyTorch, and beside it what
`make gpubundle` makes: `bin/` with phos-ft, its shim, the demo and its trainer, and `criu/`. Nothing is built here.
Figures go to $OUT/h200.json (or ./h200.json), merged over the stages; a stage that fails says so
in the table and in the exit code.
"""
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import job as jobs
from job import BUNDLE, CRIU, HERE, OUT, PHOS, driver_version, lines, say, trace, wait_for
from soak import TRAIN as SMALL

# Two runs beside each other, each on GPUs and processors of its own, need a directory each.
WORK = Path(os.environ.get("H200_WORK", "/dev/shm/phos-h200"))
APART = Path("/var/tmp/phos-apart")
TRAIN = HERE / "train.py"
FIGURES, TABLE, FAILED = {}, [], []


def seconds_per_step(path, skip=5):
    times = sorted(float(l[2]) for l in lines(path)[skip:])
    return times[len(times) // 2]


class Job(jobs.Job):
    """A job of a number of steps, train.py unless said."""

    def __init__(self, name, steps, store="discard://", interval="1h", env=None, flags=(), program=None):
        super().__init__(WORK / name, name, program, store, interval, env, flags)
        self.steps = steps
        self.program = program or ["python3", str(TRAIN), str(self.log), str(steps)]


def row(what, value):
    TABLE.append((what, value))
    say(what, value)


def same_losses(want, job, figures):
    """Every step is there with the loss of the undisturbed run."""
    got = trace(job.log)
    differs = sorted(s for s in want.keys() | got.keys() if want.get(s) != got.get(s))
    figures["bit_identical"] = not differs and len(got) == job.steps
    row("losses", "bit-identical over %d steps" % job.steps if figures["bit_identical"] else f"DIFFER: {differs[:3]}")
    if not figures["bit_identical"]:
        raise RuntimeError("losses differ or are not all there")


def last_resumed(job):
    """What the log says of the last resume: where the bytes came from, and how long each phase took. The job may make a step before it says so."""
    def said():
        log = (job.dir / "phos.log").read_text(errors="replace").splitlines()
        found = [l for l in log if "resumed checkpoint=" in l]
        return found[-1].split("resumed ")[1] if len(found) >= job.resumes() else None
    return wait_for("the sidecar to say that it has resumed the job", 30, said)


def correct():
    """39 GB: checkpoints, kill -9, resume, node loss, resume from the store; losses bit-identical."""
    steps = int(os.environ.get("CORRECT_STEPS", "220"))
    reference = Job("reference", steps).plain()
    reference.end()
    want = trace(reference.log)
    row("undisturbed", "%d steps, %.3f s a step" % (len(want), seconds_per_step(reference.log)))
    job = Job("correct", steps, store=f"file://{WORK}/store", interval="20s").start()
    try:
        wait_for("two checkpoints", 240, lambda: job.alive() and len(job.list()) >= 2)
        FIGURES["checkpoints_39gb"] = job.list()
        at = len(lines(job.log))
        start, resumes = time.monotonic(), job.resumes()
        job.kill_job()
        job.goes_on(resumes)
        FIGURES["resume_after_kill_s"] = time.monotonic() - start
        row("kill -9", "at step %d, on again after %.1f s" % (at, FIGURES["resume_after_kill_s"]))
        FIGURES["resumed_after_kill"] = last_resumed(job)
        row("of which", "memory_ms=" + FIGURES["resumed_after_kill"].split(" memory_ms=")[1])
        here = len(lines(job.log))
        job.step(here + 8)
        job.lose_machine()
        start, resumes = time.monotonic(), job.resumes()
        job.start()
        job.goes_on(resumes)
        FIGURES["resume_from_store_s"] = time.monotonic() - start
        row("node loss", "on again from the store alone after %.1f s" % FIGURES["resume_from_store_s"])
        FIGURES["resumed_from_store"] = last_resumed(job)
        row("of which", "memory_ms=" + FIGURES["resumed_from_store"].split(" memory_ms=")[1])
        # No further checkpoint: the store lies in memory and is nearly full.
        job.end()
        same_losses(want, job, FIGURES)
    finally:
        if not FIGURES.get("bit_identical"):
            print(job.tail(40))
        (OUT / "correct.log").write_text(job.tail(4000))
        job.clean()
        reference.clean()
        shutil.rmtree(WORK / "store", ignore_errors=True)


def work_of_sidecar(job):
    """Processor time and page faults of the sidecar, not of its supervisor: the last that was started."""
    pids = sorted(pid for pid, line in job.pids("phos-ft") if " run " not in line)
    if not pids:
        return {"pid": None, "user_s": 0, "system_s": 0, "faults": 0}
    stat = Path(f"/proc/{pids[-1]}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return {"pid": pids[-1], "user_s": int(stat[11]) / ticks, "system_s": int(stat[12]) / ticks, "faults": int(stat[7])}


def resumes():
    """39 GB: from SIGKILL to the next step with the image in `--host-cache` and without, and from a store in memory on an empty machine."""
    steps = int(os.environ.get("RESUMES_STEPS", "130"))
    reference = Job("reference", steps).plain()
    reference.end()
    want = trace(reference.log)
    job = Job("resumes", steps, store=f"file://{WORK}/store", flags=["--host-cache", "48GiB"]).start()
    found = FIGURES["resumes"] = []

    def again(what, lose):
        resumes, before = job.resumes(), work_of_sidecar(job)
        start = time.monotonic()
        lose()
        job.goes_on(resumes)
        took = time.monotonic() - start
        after = work_of_sidecar(job)
        # Another sidecar began with nothing.
        work = {name: after[name] - (before[name] if after["pid"] == before["pid"] else 0) for name in ("user_s", "system_s", "faults")}
        said = last_resumed(job)
        found.append({"what": what, "seconds": took, "said": said, **work})
        row(what, "on again after %.2f s" % took)
        row("of which", said.split(" seconds=")[1])
        row("the sidecar's", "%(user_s).1f s user, %(system_s).1f s system, %(faults)d page faults" % work)
        job.step(len(lines(job.log)) + 4)

    try:
        job.step(12)
        taken = job.checkpoint()
        row("checkpoint", "stop %.0f ms, stored after %.1f s" % (taken["stop_ms"], taken["seconds"]))
        job.step(len(lines(job.log)) + 4)
        again("kill -9, image in --host-cache", job.kill_job)
        again("kill -9, the same again", job.kill_job)
        job.lose_machine()
        job.flags = []
        again("node loss, store in memory", job.start)
        again("kill -9, no --host-cache", job.kill_job)
        job.end()
        same_losses(want, job, FIGURES)
    finally:
        (OUT / "resumes.log").write_text(job.tail(4000))
        job.clean()
        reference.clean()
        shutil.rmtree(WORK / "store", ignore_errors=True)


def stops(job, n):
    found = []
    for _ in range(n):
        at = len(lines(job.log))
        job.step(at + 2)
        found.append(job.checkpoint())
    return found


def rates(found):
    """The best of the rates seen, as the caller sees them: what is lost to others at the same time is not the code's."""
    for name in ("d2h_gb_s", "digest_gb_s"):
        FIGURES[name] = max([FIGURES.get(name, 0), *(c.get("rates", {}).get(name, 0) for c in found)])
        row(name, "%.1f (%s)" % (FIGURES[name], ", ".join("%.1f" % c.get("rates", {}).get(name, 0) for c in found)))


def stop39():
    """Stops of the 39 GB job with a store that discards, medians."""
    job = Job("stop39", 10**6, flags=["--host-buffer", "16GiB"]).start()
    try:
        job.step(6)
        found = stops(job, 4)
        FIGURES["stops_39gb"] = found
        # The first also fills the caches; all count.
        FIGURES["stop_ms_39gb"] = sorted(c["stop_ms"] for c in found)[len(found) // 2]
        row("stop, 39 GB", "%.0f ms (%s)" % (FIGURES["stop_ms_39gb"], ", ".join("%.0f" % c["stop_ms"] for c in found)))
        rates(found)
    finally:
        (OUT / "stop39.log").write_text(job.tail(400))
        for log in job.dir.rglob("criu-dump.log"):
            shutil.copy(log, OUT / "criu-dump-39gb.log")
        job.clean()


# Variables of CUDA's that make a context smaller.
LEAN = {
    "as it is": {},
    "a connection": {"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    "a connection, small queues": {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "CUDA_SCALE_LAUNCH_QUEUES": "0.25x"},
    "and one for copies": {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "CUDA_SCALE_LAUNCH_QUEUES": "0.25x", "CUDA_DEVICE_MAX_COPY_CONNECTIONS": "1"},
}


def lean():
    """What the driver takes in a stop, for contexts of several sizes: LEAN_STOPS (6) of a small job each."""
    figures = FIGURES.setdefault("lean", {})
    for name, env in LEAN.items():
        job = Job("lean", 10**6, env={**SMALL, **env})
        try:
            job.start().step(50)
            found = figures[name] = stops(job, int(os.environ.get("LEAN_STOPS", "6")))
            parts = {part: round(statistics.median(c["parts_ms"][part] for c in found[1:])) for part in ("control_checkpoint", "control_restore", "criu")}
            row(name, "%.0f ms in the median of %d (%s), %s, image of processes and driver %.0f MB" % (
                statistics.median(c["stop_ms"] for c in found[1:]), len(found) - 1, ", ".join("%.0f" % c["stop_ms"] for c in found), json.dumps(parts),
                (found[-1]["total_bytes"] - job.call("status", "--json").get("device_bytes", 0)) / 1e6))
        finally:
            job.clean()


def stop90():
    job = Job("stop90", 10**6, env={"EXTRA_GB": "51"}, flags=["--host-buffer", "40GiB"]).start()
    try:
        job.step(6)
        found = stops(job, 3)
        FIGURES["stops_90gb"] = found
        FIGURES["stop_ms_90gb"] = sorted(c["stop_ms"] for c in found)[len(found) // 2]
        rates(found)
        row("stop, 90 GB", "%.0f ms (%s)" % (FIGURES["stop_ms_90gb"], ", ".join("%.0f" % c["stop_ms"] for c in found)))
    finally:
        (OUT / "stop90.log").write_text(job.tail(400))
        job.clean()


def idle():
    """A job that computes nothing between two checkpoints."""
    job = Job("idle", 8, env={"IDLE_S": "60"}).start()
    try:
        job.step(7)
        time.sleep(1)
        job.checkpoint()
        second = job.checkpoint()
        FIGURES["idle_copied_fraction"] = second["copied_bytes"] / second["total_bytes"]
        row("idle job, second checkpoint", "copied %.3f %% of its bytes" % (100 * FIGURES["idle_copied_fraction"]))
    finally:
        job.clean()


def peer():
    """The driver's calls and CRIU, memory in place. Without DataLoader workers: those inherit the driver's
    descriptors and mappings, which CRIU refuses (phos-ft's shim replaces them)."""
    job = Job("peer", 10**6, env={"WORKERS": "0"}).plain()
    try:
        job.step(6)
        images = WORK / "peer-images"
        images.mkdir()
        done = subprocess.run(["python3", str(HERE / "peer.py"), str(job.process.pid), str(CRIU), str(images)],
                              capture_output=True, text=True, timeout=240)
        times = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else {"error": done.stderr}
        FIGURES["peer"] = times
        if times.get("criu_rc") != 0:
            log = (images / "dump.log").read_text(errors="replace").splitlines() if (images / "dump.log").exists() else []
            raise RuntimeError(f"the peer failed: {times} {[l for l in log if 'Error' in l][:5]}")
        FIGURES["peer_stop_ms_39gb"] = times["stop_ms"]
        row("peer, 39 GB", "%.0f ms" % times["stop_ms"])
    finally:
        job.clean()
        shutil.rmtree(WORK / "peer-images", ignore_errors=True)
    # The very same job under phos-ft.
    job = Job("peer-ours", 10**6, env={"WORKERS": "0"}, flags=["--host-buffer", "16GiB"]).start()
    try:
        job.step(6)
        found = stops(job, 4)
        ours = sorted(c["stop_ms"] for c in found)[len(found) // 2]
        FIGURES["stops_39gb_without_workers"] = found
        FIGURES["stop_ms_39gb_without_workers"] = ours
        row("the same job under phos-ft", "%.0f ms: %.1f times shorter (%s)" % (
            ours, times["stop_ms"] / ours, ", ".join("%.0f" % c["stop_ms"] for c in found)))
    finally:
        job.clean()


def ratio(pairs=5, steps=int(os.environ.get("RATIO_STEPS", "45"))):
    """Steps per second with the shim and no checkpoint against without, alternating."""
    found = []
    for i in range(pairs):
        times = {}
        for kind in ("plain", "shim") if i % 2 == 0 else ("shim", "plain"):
            job = Job(f"ratio-{kind}-{i}", steps)
            try:
                (job.plain() if kind == "plain" else job.start()).end()
                times[kind] = seconds_per_step(job.log)
            finally:
                job.clean()
        found.append(times["plain"] / times["shim"])
        say("pair", i, times)
    FIGURES["steps_ratios"] = found
    FIGURES["steps_ratio"] = sorted(found)[len(found) // 2]
    row("steps per second with the shim", "%.4f of without (%s)" % (
        FIGURES["steps_ratio"], ", ".join("%.4f" % f for f in found)))


def gate(pairs=5):
    """Nanoseconds that the open gate adds to a call, alternating runs with and without the shim, medians."""
    exe = WORK / "gate"
    subprocess.run(["nvcc", "-O2", "-arch=sm_90", "-o", str(exe), str(HERE / "gate.cu"), "-lcuda"], check=True)
    found = {"plain": [], "shim": []}
    for i in range(pairs):
        for kind in ("plain", "shim") if i % 2 == 0 else ("shim", "plain"):
            job = Job(f"gate-{kind}-{i}", 0)
            job.program = [str(exe), str(job.dir / "figures.json")]
            try:
                (job.plain() if kind == "plain" else job.start()).end()
                found[kind].append(json.loads((job.dir / "figures.json").read_text()))
            finally:
                job.clean()
    for name in found["shim"][0]:
        median = lambda kind, way: sorted(f[name][way] for f in found[kind])[pairs // 2]
        # The difference within each process: between processes and hosts the driver's own time differs by more.
        costs = sorted(f[name]["through"] - f[name]["around"] for f in found["shim"])
        FIGURES[f"gate_{name}_ns"] = {"plain": median("plain", "through"), "shim": median("shim", "through"),
                                      "around": median("shim", "around"), "costs": [round(c, 2) for c in costs]}
        row(f"a call, {name}", "%.1f ns without the shim, %.1f ns with it, %.1f ns around it; the gate costs %.1f ns (%s)" % (
            median("plain", "through"), median("shim", "through"), median("shim", "around"), costs[pairs // 2],
            ", ".join("%.1f" % c for c in costs)))


SMALL = {"D": "1024", "L": "8", "B": "4", "T": "512", "STEP_S": "0.15"}
COMPAT = {
    "PyTorch": {},
    "expandable segments": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "cudaMallocAsync backend": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "torch.compile": {"COMPILE": "1"},
    "CUDA graphs": {"GRAPH": "1"},
    "LoRA-like, frozen weights": {"FROZEN": "1"},
}
PROGRAMS = {"CuPy": "compat_cupy.py", "JAX": "compat_jax.py"}


def bare():
    """A prefix to run something as on a machine that never saw the job: no temporary files, no caches in the home directory."""
    kept = [HERE, BUNDLE, Path(sys.prefix), WORK]
    empty = sorted({Path("/tmp"), Path("/var/tmp"), Path.home()})
    if any(k.is_relative_to(d) for k in kept for d in empty):
        raise RuntimeError(f"{kept} must lie outside of {empty}")
    script = WORK / "bare.sh"
    script.write_text("set -e\n" + "".join(f"mount -t tmpfs -o mode=1777 tmpfs {d}\n" for d in empty) + 'cd "$PWD"\nexec "$@"\n')
    return ["unshare", "--mount", "sh", str(script)]


def one_compat(name, env, program=None, steps=140):
    key = "".join(c if c.isalnum() else "-" for c in name.lower())
    outcome = {}
    env = dict(SMALL, **env)
    make = lambda kind, **kw: Job(f"{key}-{kind}", steps, env=env, program=program and program(kind), **kw)
    reference = make("ref").plain()
    job = None
    try:
        reference.end()
        want = trace(reference.log)
        job = make("ft", store=f"file://{WORK}/compat-store")
        job.start()
        job.step(12)
        first = job.checkpoint()
        at = len(lines(job.log))
        job.step(at + 2)
        second = job.checkpoint()
        outcome["stop_ms"] = second["stop_ms"]
        outcome["total_gb"] = second["total_bytes"] / 1e9
        outcome["copied_gb"] = second["copied_bytes"] / 1e9
        resumes = job.resumes()
        job.kill_job()
        job.goes_on(resumes)
        job.lose_machine()
        job.within = bare()
        start, resumes = time.monotonic(), job.resumes()
        job.start()
        job.goes_on(resumes)
        outcome["resume_elsewhere_s"] = time.monotonic() - start
        job.end(120)
        got = trace(job.log)
        outcome["result"] = "works, bit-identical after kill -9 and a resume elsewhere" if got == want else "LOSSES DIFFER"
    except Exception as e:  # noqa: BLE001: the outcome is the result
        outcome["result"] = "FAILS: " + str(e).replace("\n", " ")[:300]
        if job is not None:
            (OUT / f"compat-{key}.log").write_text(str(e) + "\n" + job.tail(300))
    finally:
        reference.clean()
        if job is not None:
            job.clean()
        shutil.rmtree(WORK / "compat-store", ignore_errors=True)
    FIGURES.setdefault("compatibility", {})[name] = outcome
    row(name, json.dumps(outcome))


def compat():
    """PyTorch's ways of using a GPU."""
    for name, env in COMPAT.items():
        one_compat(name, env)


def programs():
    """Other ways into the driver."""
    for name, script in PROGRAMS.items():
        one_compat(name, {}, lambda kind, s=script, n=name: [
            "python3", str(HERE / s), str(WORK / (n.lower() + "-" + kind) / "loss.log"), "100"])
    exe = WORK / "compat_cuda"
    subprocess.run(["nvcc", "-O2", "-arch=sm_90", "-o", str(exe), str(HERE / "compat_cuda.cu")], check=True)
    one_compat("CUDA through nvcc", {}, lambda kind: [
        str(exe), str(WORK / ("cuda-through-nvcc-" + kind) / "loss.log"), "100"])


def many(count=20000):
    """CuPy without its pools and so many allocations, where the job may have 1,024 descriptors: what the stop takes for them,
    at first, once more, and after a resume."""
    program = ["prlimit", "--nofile=1024", "python3", str(HERE / "programs/cupy_train.py")]
    env = {"POOL": "0", "KEEP": str(count), "FINISH": str(WORK / "many.finish")}
    job = Job("many", 0, env=env, store=f"file://{WORK}/many-store")
    job.program = [*program, str(job.log), str(10**8)]
    reference = Job("many-reference", 0, env=env)
    found = []
    try:
        job.start().step(20)
        for i in range(4):
            if i == 2:
                resumes = job.resumes()
                job.kill_job()
                job.goes_on(resumes)
            taken = job.checkpoint()
            found.append({"stop_ms": taken["stop_ms"], **{k: taken["parts_ms"].get(k) for k in ("quiesce", "import", "detach", "attach")}})
            row(f"{count} allocations" + (" after a resume" if i > 1 else ""), json.dumps(found[-1]))
            job.step(len(lines(job.log)) + 20)
        Path(env["FINISH"]).touch()
        job.end()
        Path(env["FINISH"]).unlink()
        job.steps = len(lines(job.log))
        reference.program = [*program, str(reference.log), str(job.steps)]
        reference.plain().end()
        FIGURES["many"] = {"allocations": count, "stops": found,
                           "most_ms_per_1000": max(f["detach"] + f["attach"] for f in found) / count * 1000}
        row("detach and attach", "%.1f ms per 1,000 at most" % FIGURES["many"]["most_ms_per_1000"])
        same_losses(trace(reference.log), job, FIGURES["many"])
    except RuntimeError:
        (OUT / "many.log").write_text(job.tail(300))
        raise
    finally:
        job.clean()
        reference.clean()
        shutil.rmtree(WORK / "many-store", ignore_errors=True)


def natives():
    """What NVML says that processes hold while they are checkpointed: a program with 256 MiB in variables of a module. With 1.5 GiB
    there is no room, and the schedule stops nothing for that; who asks for a checkpoint has a stop tell."""

    import pynvml

    exe, larger = WORK / "globals", WORK / "globals-1536"
    for out, flags in ((exe, []), (larger, ["-DMIB=1536"])):
        subprocess.run(["nvcc", "-O2", "-arch=sm_90", *flags, "-o", str(out), str(HERE / "programs/globals.cu")], check=True)
    pynvml.nvmlInit()
    device, seen, over = pynvml.nvmlDeviceGetHandleByIndex(0), [], threading.Event()

    def watch():
        while not over.is_set():
            now = sorted((p.pid, (p.usedGpuMemory or 0) >> 20) for p in pynvml.nvmlDeviceGetComputeRunningProcesses(device))
            if not seen or seen[-1][1] != now:
                seen.append((time.monotonic(), now))

    job = Job("natives", 0, env={"CUDA_MODULE_LOADING": "LAZY"})
    tight = Job("natives-tight", 0, flags=["--image-limit", "300MiB"])
    unstopped = Job("natives-unstopped", 0, interval="5s", flags=["--image-limit", "600MiB"],
                    env={"PHOS_LOG": "info,phos=debug"})
    for one in (job, tight):
        one.program = [str(exe), str(one.log), str(10**8)]
    unstopped.program = [str(larger), str(unstopped.log), str(10**8)]
    start = time.monotonic()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        job.start().step(20)
        for _ in range(2):
            taken = job.checkpoint()
            job.step(len(lines(job.log)) + 20)
        row("memory in modules", json.dumps({k: taken[k] for k in ("stop_ms", "total_bytes", "parts_ms")}))
        tight.start().step(20)
        try:
            tight.checkpoint()
            raise AssertionError("a checkpoint was taken for which there is no room")
        except RuntimeError as e:
            row("without room for it", str(e).split("\n")[0][:300])
            if "variables of modules" not in str(e):
                raise
        tight.step(len(lines(tight.log)) + 20)
        unstopped.start().step(20)
        wait_for("the schedule to be refused", 60, lambda: "checkpoint given up" in unstopped.tail(10**6))
        said = unstopped.tail(10**6)
        for wrong in ("the job runs again", "the job runs on"):
            if wrong in said:
                raise AssertionError("the job was stopped for an image that has no room")
        refusal = [line for line in said.split("\n") if "checkpoint given up" in line]
        told = [line for line in said.split("\n") if "memory on GPUs" in line]
        row("refused without a stop", refusal[0][:300])
        row("what the shim said", told[-1][-120:])
        unstopped.step(len(lines(unstopped.log)) + 20)
        asked = time.monotonic()
        for _ in range(20):
            pynvml.nvmlDeviceGetComputeRunningProcesses(device)
        row("NVML's answer", "%.2f ms" % ((time.monotonic() - asked) / 20 * 1000))
    finally:
        over.set()
        watcher.join()
        pids = {pid: line.split()[0].rsplit("/", 1)[-1] for pid, line in job.pids("")}
        for at, now in seen:
            say("NVML at %.3f s:" % (at - start), ", ".join(f"{pids.get(pid, pid)} {pid}: {mib} MiB" for pid, mib in now))
        print(job.tail(15))
        for one in (job, tight, unstopped):
            one.clean()


def full():
    """A GPU with some 5 GiB left, and the default limits: the schedule's checkpoints are taken, and none is refused for room."""
    free = min(total - used for total, used in memory_mib())
    job = Job("full", 10**6, interval="10s", env=dict(SMALL, EXTRA_GB=str((free >> 10) - 8)))
    try:
        job.start().step(6)
        wait_for("three checkpoints of the schedule", 300, lambda: job.alive() and job.tail(10**6).count("checkpoint id=") >= 3)
        row("a full GPU", "; ".join("%d of %d MiB in use" % (used, total) for total, used in memory_mib()))
        said = job.tail(10**6)
        FIGURES["full"] = [line for line in said.split("\n") if "checkpoint id=" in line]
        for line in FIGURES["full"]:
            row("of the schedule", line[-200:])
        if "checkpoint given up" in said:
            raise RuntimeError(next(line for line in said.split("\n") if "checkpoint given up" in line))
    finally:
        (OUT / "full.log").write_text(job.tail(400))
        job.clean()


def by_criu():
    """phos-ft without the library that has CRIU leave the content of memory to the agent."""
    there = WORK / "by-criu"
    if not there.exists():
        shutil.copytree(BUNDLE / "bin", there, ignore=lambda _, names: [n for n in names if "criu" in n])
    return str(there / "phos-ft")


# Name → environment, and the flags that are the sidecar's before it had a buffer that grows.
CONCURRENT = {
    "full": {"D": "1024", "L": "8", "B": "4", "T": "512"},
    "pinned16": {"D": "1024", "L": "8", "B": "4", "T": "512", "EXTRA_GB": "2", "PINNED_GB": "16"},
    "small": {"D": "1024", "L": "8", "B": "4", "T": "512", "EXTRA_GB": "18"},
    "39gb": {},
    "compile": dict(SMALL, COMPILE="1"),
}


def concurrent():
    """Stops of jobs whose stops were long, CONCURRENT_STOPS (3) each, now and as before: CRIU copying memory, 4 GiB of host
    buffer. CONCURRENT names the jobs, with commas, CONCURRENT_KINDS one of the two."""
    count, names = int(os.environ.get("CONCURRENT_STOPS", "3")), os.environ.get("CONCURRENT", ",".join(CONCURRENT)).split(",")
    found = FIGURES.setdefault("concurrent", {})
    free = min(total - used for total, used in memory_mib())
    for name in names:
        env = CONCURRENT[name]
        if name == "full":
            env = dict(env, EXTRA_GB=str((free >> 10) - 6))
        for kind in os.environ.get("CONCURRENT_KINDS", "now,before").split(","):
            flags = ["--host-buffer", "4GiB"] if kind == "before" else []
            job = Job(f"concurrent-{name}-{kind}", 10**6, env=env, flags=flags)
            job.phos = by_criu() if kind == "before" else str(PHOS)
            try:
                job.start().step(6)
                stops_of = stops(job, count)
                log = job.tail(10**6)
                found[f"{name} {kind}"] = stops_of
                best = sorted(stops_of, key=lambda c: c["stop_ms"])[count // 2]
                parts = {k: round(best["parts_ms"].get(k, 0)) for k in
                         ("quiesce", "name", "control_checkpoint", "criu", "control_restore", "hold_drain", "attach")}
                row(f"{name}, {kind}", "%.0f ms (%s) of %.1f GB, %s" % (
                    best["stop_ms"], ", ".join("%.0f" % c["stop_ms"] for c in stops_of), best["total_bytes"] / 1e9, json.dumps(parts)))
                for line in log.split("\n"):
                    if "host buffer" in line or "memory copied" in line:
                        say(line[-170:])
            except Exception as e:  # noqa: BLE001: the others still run
                FAILED.append(f"{name} {kind}")
                row(f"{name}, {kind}", f"FAILED: {e}"[:600])
            finally:
                (OUT / "concurrent.log").open("a").write(f"\n== {name} {kind}\n{job.tail(2000)}\n")
                for kept in job.dir.rglob("criu-dump.log"):
                    shutil.copy(kept, OUT / f"criu-dump-{name}-{kind}.log")
                # Whatever comes after it.
                (OUT / "concurrent.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
                job.clean()


# What is drained beside a job, by the name of its stage's row: all of it through a snapshot but for what leaves in the stop.
DRAINED = {
    "offload": {"D": "2048", "L": "8", "B": "4", "T": "1024", "WORKERS": "0", "OFFLOAD": "1", "EXTRA_GB": "24"},
    "launch-bound": dict(SMALL, EXTRA_GB="24"),
    "39gb": {},
}


def during(job, report, seen):
    """The seconds of the steps that lay between the end of a stop and the moment at which its checkpoint was stored. `seen`: times and the numbers of steps
    that were done."""
    first = (report["held_at_ms"] + report["stop_ms"]) / 1e3
    last = report["taken_ms"] / 1e3
    from_, to = (max((n for at, n in seen if at <= when), default=0) for when in (first, last))
    # The step in which the stop was has the stop in it.
    return [float(l[2]) for l in lines(job.log)[from_ + 1 : to]]


def watch(job, seen, over):
    """Notes how many steps are done, until it is over."""
    while not over.is_set():
        seen.append((time.time(), len(lines(job.log))))
        time.sleep(0.004)


def topology():
    """What of this machine decides who is in whose way: hardware threads that share a core, and the memory of another socket."""
    try:
        told = subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines()
    except FileNotFoundError:
        told = []
    wanted = ("Thread(s)", "Core(s)", "Socket(s)", "NUMA", "Model name", "Hypervisor", "L3")
    found = {k.strip(): v.strip() for k, v in (l.split(":", 1) for l in told if ":" in l) if k.strip().startswith(wanted)}
    for node in sorted(Path("/sys/devices/system/node").glob("node[0-9]*")):
        memory = (node / "meminfo").read_text().splitlines()[0].split()[-2]
        found[node.name] = "cpus %s, %.0f GB" % ((node / "cpulist").read_text().strip(), int(memory) / 1e6)
    gpus = subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True).stdout.splitlines()
    found["gpus"] = [l for l in gpus if l.startswith("GPU")]
    return found


def processors(of):
    """What each thread has had of the processors and has waited for them, in seconds, by kind and thread; `of` names the kinds by the name of the program or of
    its first argument. And what the host took of this machine's."""
    steal = int(Path("/proc/stat").read_text().split("\n")[0].split()[8]) / os.sysconf("SC_CLK_TCK")
    found = {("host", 0): (steal, 0.0)}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = [Path(part).name for part in (process / "cmdline").read_bytes().decode(errors="replace").split("\0")[:2]]
            tasks = list((process / "task").iterdir())
        except OSError:
            continue
        kind = next((kind for kind, name in of.items() if name in command), None)
        for task in tasks if kind else ():
            try:
                ran, waited, _ = (task / "schedstat").read_text().split()
            except (OSError, ValueError):
                continue
            found[kind, task.name] = (int(ran) / 1e9, int(waited) / 1e9)
    return found


def look_at_processors(of, seen, over):
    """Notes the above twice a second until it is over."""
    while not over.wait(0.5):
        seen.append((time.time(), processors(of)))


def per_second(seen, windows, inside):
    """What each kind had and waited for, per second inside or outside of these windows: of threads that were there at the beginning and the end of a look. The
    last half second of one that ended is not known."""
    sums, seconds = {}, 0.0
    for (at, before), (then, after) in zip(seen, seen[1:]):
        is_inside = any(a <= at and then <= b for a, b in windows)
        is_outside = all(then < a or at > b for a, b in windows)
        if not (is_inside if inside else is_outside):
            continue
        seconds += then - at
        for thread in before.keys() & after.keys():
            grown = [max(0.0, y - x) for x, y in zip(before[thread], after[thread])]
            sums[thread[0]] = [x + y for x, y in zip(sums.get(thread[0], [0.0, 0.0]), grown)]
    return {kind: [round(v / seconds, 3) for v in both] for kind, both in sums.items()} if seconds else None


def drains():
    """Steps during drains against steps between them: of a job that offloads in each step, of one whose steps are as long as launching them takes, and of
    the 39 GB job. The checkpoints are the schedule's, DRAINS_EVERY: nobody waits for them. With DRAINS_BOTH=1 the same without
    CAP_SYS_NICE, where threads that store checkpoints share processors with the job. DRAINS names the jobs, DRAINS_OF the checkpoints of each; the job runs
    on the processors DRAINS_JOB_CPUS, phos-ft on DRAINS_PHOS_CPUS (which decide how many threads it has)."""
    figures = FIGURES.setdefault("drains", {})
    figures["topology"] = topology()
    say(json.dumps(figures["topology"]))
    on = lambda of: ["taskset", "-c", os.environ[of]] if of in os.environ else []
    without = ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"]
    kinds = {"": [], **({" without CAP_SYS_NICE": without} if "DRAINS_BOTH" in os.environ else {})}
    for name in os.environ.get("DRAINS", ",".join(DRAINED)).split(","):
        for kind, within in kinds.items():
            job = Job(f"drains-{name}-{len(within)}", 10**6, env=dict(DRAINED[name], PHOS_LOG="debug"), flags=["--host-buffer", "8GiB"],
                      interval=os.environ.get("DRAINS_EVERY", "40s"))
            job.within = [*on("DRAINS_PHOS_CPUS"), *within]
            job.program = [*on("DRAINS_JOB_CPUS"), *job.program]
            seen, had, over = [], [], threading.Event()
            kinds_of = {"job": "train.py", "phos-ft": "phos-ft"}
            watchers = [threading.Thread(target=watch, args=(job, seen, over)), threading.Thread(target=look_at_processors, args=(kinds_of, had, over))]
            try:
                job.start().step(12, 240)
                for watcher in watchers:
                    watcher.start()
                found, ratios = {}, []

                def next_one():
                    last = job.call("status", "--json")["last"]
                    return last if last and last["id"] not in found else None

                # The first has everything to store.
                for _ in range(1 + int(os.environ.get("DRAINS_OF", "4"))):
                    report = wait_for("a checkpoint", 240, next_one, 0.5)
                    found[report["id"]] = report
                found = list(found.values())
                job.step(len(lines(job.log)) + 6)
                held = [(r["held_at_ms"] / 1e3 - 2, r["held_at_ms"] / 1e3 + r["seconds"] + 2) for r in found]
                done = {}
                for at, steps in seen:
                    done.setdefault(steps, at)
                quiet = [float(line[2]) for n, line in list(enumerate(lines(job.log), 1))[8:]
                         if n in done and not any(a <= done[n] <= b for a, b in held)]
                for report in found:
                    report["steps_s"] = during(job, report, seen)
                usual = statistics.median(quiet)
                for report in found:
                    steps = report["steps_s"]
                    ratios.append(statistics.mean(steps) / usual if steps else None)
                stored_in = [((r["held_at_ms"] + r["stop_ms"]) / 1e3, r["taken_ms"] / 1e3) for r in found]
                shares = {"stored": per_second(had, stored_in, True), "else": per_second(had, held, False)}
                figures[name + kind] = {"checkpoints": found, "step_s": usual, "ratios": ratios, "ran_and_waited_per_s": shares}
                say("ran and waited for processors, per second:", json.dumps(shares))
                stored = [(r["seconds"], r["parts_ms"]["drain"] / 1e3, r["parts_ms"].get("left_to_job", 0) / 1e3) for r in found]
                row(name + kind, "step %.4f s, %s of that while stored; in %s s, drained in %s s, left to the job %s s; %s steps" % (
                    usual, ", ".join("%.3f" % r if r else "-" for r in ratios), *(", ".join("%.1f" % s for s in all) for all in zip(*stored)),
                    ", ".join(str(len(r["steps_s"])) for r in found)))
                row("stops", ", ".join("%.0f ms" % r["stop_ms"] for r in found))
                for line in job.tail(10**6).split("\n"):
                    if "while the job runs" in line:
                        say(line[-140:])
            finally:
                over.set()
                (OUT / f"drains-{name}-{len(within)}.log").write_text(job.tail(600))
                job.clean()


def rate(seen, seconds):
    """Steps a second over so many seconds at most, from the end of a step to the end of another."""
    done = {}
    for at, steps in seen:
        done.setdefault(steps, at)
    first = min(done)
    last = max(n for n, at in done.items() if at <= done[first] + seconds)
    return (last - first) / (done[last] - done[first])


def goodput():
    """What is left of a job's speed with checkpoints at an interval, all in all: steps a second over whole intervals against those without phos-ft, in
    alternating pairs. GOODPUT names the intervals in seconds, GOODPUT_PAIRS how many pairs of each, GOODPUT_FLAGS
    further flags of phos-ft's."""
    figures = FIGURES.setdefault("goodput", {})
    for every in map(int, os.environ.get("GOODPUT", "20,60").split(",")):
        found = figures[str(every)] = []
        window = every * max(2, 60 // every)
        for i in range(int(os.environ.get("GOODPUT_PAIRS", "3"))):
            pair = {}
            for kind in ("plain", "phos") if i % 2 == 0 else ("phos", "plain"):
                job = Job(f"goodput-{every}-{kind}-{i}", 10**6, interval=f"{every}s", flags=os.environ.get("GOODPUT_FLAGS", "").split())
                seen, over, reports = [], threading.Event(), {}
                watcher = threading.Thread(target=watch, args=(job, seen, over))
                try:
                    (job.plain() if kind == "plain" else job.start()).step(6, 240)
                    seen.append((time.time(), len(lines(job.log))))
                    watcher.start()
                    end = time.monotonic() + (30 if kind == "plain" else window)

                    def is_over():
                        last = job.call("status", "--json")["last"] if kind == "phos" else None
                        if last:
                            reports[last["id"]] = last
                        return job.alive() and time.monotonic() >= end

                    wait_for("the end of the window", window + 60, is_over, 1)
                    pair[kind] = rate(seen, window)
                    if kind == "phos":
                        pair["stops_ms"] = [round(r["stop_ms"], 1) for r in reports.values()]
                        pair["stored_s"] = [round(r["seconds"], 1) for r in reports.values()]
                        pair["steps_while_stored_s"] = [statistics.mean(steps) for r in reports.values() if (steps := during(job, r, seen))]
                finally:
                    over.set()
                    job.clean()
            pair["goodput"] = pair["phos"] / pair["plain"]
            found.append(pair)
            say("pair", i, json.dumps({k: v for k, v in pair.items()}))
        goodputs = [pair["goodput"] for pair in found]
        slower = [s * pair["plain"] for pair in found for s in pair["steps_while_stored_s"]]
        row(f"goodput at --interval {every}s", "%.4f (%s); a step while a checkpoint is stored %s" % (
            statistics.median(goodputs), ", ".join("%.4f" % g for g in goodputs), ", ".join("%.3f" % s for s in slower)))


# A training that fills an H100 by itself: 2.9 B parameters, AdamW in 32 bits, activations of 8192 tokens.
FILLS = {"D": os.environ.get("FILLS_D", "3072"), "L": "24", "B": os.environ.get("FILLS_B", "8"), "PHOS_LOG": "debug"}


def stop_rows(name, found):
    for one in found:
        parts = {k: round(v) for k, v in one["parts_ms"].items() if k in
                 ("quiesce", "criu", "dump", "hold_drain", "attach", "beside", "held_again", "control_checkpoint", "control_restore")}
        row(name, "%.0f ms, %.1f GB, %s" % (one["stop_ms"], one["changed_bytes"] / 1e9, json.dumps(parts)))


def beside_lines(job):
    for line in job.tail(10**6).split("\n"):
        if any(word in line for word in ("leaves alone", "given up", "has left alone", "no snapshot has room")):
            say(line[:27], line[line.find(": ") + 2 :][:240])


def fill_the_rest():
    """Another program has what is left of the first GPU, so that no snapshot has room there. None if there is nothing to fill."""
    total, used = memory_mib()[0]
    left = total - used - 2200
    hog = None
    if left > 0:
        hog = subprocess.Popen(["python3", "-c", "import torch, time; x = torch.empty(%d << 20, dtype=torch.uint8, device='cuda:0'); "
                                "print('there', flush=True); time.sleep(3600)" % left], stdout=subprocess.PIPE)
        hog.stdout.readline()
    row("GPU", "%d of %d MiB in use" % memory_mib()[0][::-1])
    return hog


def beside():
    """Stops of a training beside which its GPU is full: with all that changed leaving while the job is held, and with what the job leaves alone
    leaving while it runs; the same with a step of eight passes, which lasts longer than the copy, and with a second wait in each step, before
    the optimiser. BESIDE_STOPS of each; BESIDE names some of the kinds; FILLS_D and FILLS_B size the job."""
    figures = FIGURES.setdefault("beside", {})
    stops_of = int(os.environ.get("BESIDE_STOPS", "6"))
    kinds = (("never", {}, 2), ("auto", {}, stops_of), ("accum", {"ACCUM": "8"}, stops_of), ("clip", {"CLIP": "1"}, stops_of))
    named = os.environ.get("BESIDE", "never,auto,accum,clip").split(",")
    for kind, env, count in (one for one in kinds if one[0] in named):
        flag = "never" if kind == "never" else "auto"
        job = Job(f"beside-{kind}", 10**6, env=dict(FILLS, **env), flags=["--copy-beside", flag])
        hog = None
        try:
            job.start().step(6, 240)
            hog = fill_the_rest()
            found, at = [], len(lines(job.log))
            for _ in range(count):
                try:
                    found += stops(job, 1)
                except RuntimeError as e:
                    row("no checkpoint", str(e)[:200])
            figures[kind] = found
            stop_rows(kind, found)
            # All steps from the first request to the last, and then those with no checkpoint at all.
            until = len(lines(job.log))
            job.step(until + 12)
            steps = [float(l[2]) for l in lines(job.log)]
            usual = sorted(steps[-10:])[5]
            figures[f"steps_s_{kind}"] = steps
            row("steps", "%.3f s; what they took longer during %d checkpoints: %.2f s" % (
                usual, count, sum(max(0, s - usual) for s in steps[at:until])))
        finally:
            if hog:
                hog.kill()
            beside_lines(job)
            (OUT / f"beside-{kind}.log").write_text(job.tail(4000))
            job.clean()


def beside_correct():
    """What left while the job ran is restored, bit for bit: a job of 54 GB (CORRECT_D: smaller with less), and another program has the rest of the
    GPU. 256 GiB of memory for that size. With two GPUs, the undisturbed run has the second one meanwhile; otherwise it comes after it."""
    figures = FIGURES.setdefault("beside_correct", {})
    env, finish = dict(FILLS, D=os.environ.get("CORRECT_D", "2560"), B="8"), WORK / "beside.finish"
    beside_it = gpus() > 1
    reference = Job("beside-reference", 10**6, env=dict(env, CUDA_VISIBLE_DEVICES="1" if beside_it else "0"))
    if beside_it:
        reference.plain()
    job = Job("beside-correct", 10**6, store=f"file://{WORK}/store", flags=["--keep-last", "1"],
              env=dict(env, CUDA_VISIBLE_DEVICES="0", FINISH=str(finish)))
    hog = None
    try:
        job.start().step(6, 240)
        hog = fill_the_rest()
        found = []
        while not any(one["parts_ms"].get("beside") for one in found):
            found += stops(job, 1)
            stop_rows("stop", found[-1:])
        figures["stops"] = found
        resumes = job.resumes()
        job.kill_job()
        job.goes_on(resumes)
        row("kill -9", last_resumed(job)[:160])
        job.step(len(lines(job.log)) + 4)
        job.lose_machine()
        resumes = job.resumes()
        job.start()
        job.goes_on(resumes)
        row("node loss", last_resumed(job)[:160])
        job.step(len(lines(job.log)) + 4)
        finish.touch()
        job.end()
        job.steps = len(trace(job.log))
        if not beside_it:
            hog.kill()
            hog.wait()
            finish.unlink()
            reference.plain()
        reference.step(job.steps, 240)
        want = {step: loss for step, loss in trace(reference.log).items() if step < job.steps}
        same_losses(want, job, figures)
    finally:
        if hog:
            hog.kill()
        beside_lines(job)
        (OUT / "beside-correct.log").write_text(job.tail(4000))
        job.clean()
        reference.clean()
        finish.unlink(missing_ok=True)
        shutil.rmtree(WORK / "store", ignore_errors=True)


def arrays(checkpoints=5):
    """The trainer of the tests with arrays that kernels reach through textures and surfaces: the kernels that the simulated GPU
    runs in Rust, here on a GPU."""
    program = [str(BUNDLE / "bin/phos-trainer"), "--quiet", "--arrays", "--log"]
    finish = WORK / "arrays.finish"
    job = Job("arrays", 0, store=f"file://{WORK}/arrays-store")
    job.program = [*program, str(job.log), "--steps", str(10**8), "--finish-at", str(finish)]
    reference = Job("arrays-reference", 0)
    try:
        job.start().step(20)
        for _ in range(checkpoints):
            job.checkpoint()
            job.step(len(lines(job.log)) + 20)
        resumes = job.resumes()
        job.kill_job()
        job.goes_on(resumes)
        finish.touch()
        job.end()
        job.steps = len(trace(job.log))
        reference.program = [*program, str(reference.log), "--steps", str(job.steps)]
        reference.plain().end()
        same_losses(trace(reference.log), job, FIGURES.setdefault("arrays", {}))
    finally:
        finish.unlink(missing_ok=True)
        print(job.tail(10))
        job.clean()
        reference.clean()
        shutil.rmtree(WORK / "arrays-store", ignore_errors=True)


def profiler():
    """Beside torch.profiler a checkpoint is refused by name, before anything stops: no try says that the job runs again, and the
    longest step with requests for checkpoints is shown beside the longest without. A window of 20 steps takes the profiler 24 s."""
    job = Job("profiler", 0, env=dict(SMALL, PROFILE="always"))
    job.program = ["python3", str(HERE / "programs/profiled.py"), str(job.log), "100000"]
    figures = FIGURES.setdefault("profiler", {})
    try:
        job.start().step(45)
        before = len(lines(job.log))
        answers = []
        for _ in range(10):
            asked = time.monotonic()
            try:
                job.checkpoint()
                raise AssertionError("a checkpoint was taken beside a profiler")
            except RuntimeError as e:
                if "profiler" not in str(e):
                    raise
                answers.append(time.monotonic() - asked)
                figures["refusal"] = str(e).split("\n")[0][:400]
            job.step(len(lines(job.log)) + 1)
        if "the job runs again" in job.tail(10**6):
            raise AssertionError("the job was stopped for a checkpoint that was refused")
        steps = [float(l[2]) * 1000 for l in lines(job.log)]
        figures["longest_step_ms"] = {"before": max(steps[20:before]), "with_refusals": max(steps[before:])}
        figures["answer_ms"] = max(answers) * 1000
        row("beside a profiler", figures["refusal"])
        row("longest step", json.dumps(figures["longest_step_ms"]))
        job.alive()
    finally:
        print(job.tail(10))
        job.clean()


def user(checkpoints=4):
    """A job that is not root, with the job's directory its own: checkpointed, killed, and bit-identical without a privilege."""
    # Of nobody: torch asks for the name of its cache directory.
    who, ours = 12345, {"USER": "job", "LOGNAME": "job", "HOME": "/tmp"}
    finish = WORK / "user.finish"
    job = Job("user", 0, store=f"file://{WORK}/user-store", flags=["--user", f"{who}:{who}"],
              env={**SMALL, **ours, "FINISH": str(finish)})
    job.program[-1] = str(10**8)
    # Only root may put something else where root's sockets are.
    job.run_dir = WORK / "user-run"
    os.chmod(WORK, 0o755)
    os.chown(job.dir, who, who)
    reference = Job("user-reference", 0, env={**SMALL, **ours})
    try:
        job.start().step(20)
        for _ in range(checkpoints):
            job.checkpoint()
            job.step(len(lines(job.log)) + 10)
        resumes = job.resumes()
        job.kill_job()
        job.goes_on(resumes)
        status = Path(f"/proc/{job.trainers()[0]}/status").read_text().split("\n")
        row("status", [l.replace("\t", " ") for l in status if l.startswith(("Uid", "CapPrm", "CapBnd", "NoNewPrivs"))])
        job.checkpoint()
        finish.touch()
        job.end()
        job.steps = len(trace(job.log))
        reference.program[-1] = str(job.steps)
        reference.plain().end()
        same_losses(trace(reference.log), job, FIGURES.setdefault("user", {}))
    finally:
        finish.unlink(missing_ok=True)
        print(job.tail(10))
        job.clean()
        reference.clean()
        for left in ("user-store", "user-run"):
            shutil.rmtree(WORK / left, ignore_errors=True)


def notice(grace=75):
    """The 39 GB job under --interval auto: the interval after each checkpoint. Then a notice of `grace` s that the machine is taken away:
    a checkpoint at once, one as late as it fits, the machine is lost, and the losses are those of the undisturbed run."""
    file, finish = WORK / "preempted", WORK / "notice.finish"
    file.unlink(missing_ok=True)
    job = Job("notice", 0, store=f"file://{WORK}/notice-store", interval="auto", env={"FINISH": str(finish)},
              flags=["--preemption-file", str(file)])
    job.program[-1] = str(10**8)
    reference = Job("notice-reference", 0)
    figures = FIGURES.setdefault("notice", {})
    try:
        job.start().step(6)
        figures["intervals_s"] = [job.call("status", "--json")["interval_seconds"]]
        for _ in range(2):
            taken = job.checkpoint()
            figures["intervals_s"].append(job.call("status", "--json")["interval_seconds"])
            job.step(len(lines(job.log)) + 2)
        row("interval, auto", "%s s; the last checkpoint held the job %.2f s and took %.1f s" % (
            ", ".join("%.0f" % i for i in figures["intervals_s"]), taken["stop_ms"] / 1e3, taken["seconds"]))
        end = time.time() + grace
        file.with_suffix(".new").write_text(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end)))
        file.with_suffix(".new").rename(file)
        preempted = lambda: [c for c in job.list() if c["trigger"] == "preemption"]
        wait_for("both checkpoints", grace, lambda: job.alive() and len(preempted()) == 2)
        figures["left_s"] = end - time.time()
        row("notice of %d s" % grace, "two checkpoints, the second %.1f s before the end" % figures["left_s"])
        job.lose_machine()
        file.unlink()
        resumes = job.resumes()
        job.start()
        job.goes_on(resumes)
        finish.touch()
        job.end()
        job.steps = len(trace(job.log))
        reference.program[-1] = str(job.steps)
        reference.plain().end()
        same_losses(trace(reference.log), job, figures)
    finally:
        finish.unlink(missing_ok=True)
        (OUT / "notice.log").write_text(job.tail(400))
        print(job.tail(10))
        job.clean()
        reference.clean()
        shutil.rmtree(WORK / "notice-store", ignore_errors=True)


def nccl():
    """Two ranks over NCCL as it comes are checkpointed, killed and come back; where the user asks for what cannot be restored
    the checkpoint is refused by name and the job goes on. Needs two GPUs."""
    figures = FIGURES.setdefault("nccl", {})
    torchrun = ["python3", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(HERE / "programs/ddp_train.py")]
    env = {"FINISH": str(WORK / "nccl.finish"), "OMP_NUM_THREADS": "2"}
    job = Job("nccl", 0, env=env, store=f"file://{WORK}/nccl-store")
    job.program = [*torchrun, str(job.log), str(10**8)]
    reference, asked = Job("nccl-reference", 0, env=env), Job("nccl-refused", 0, env=dict(env, NCCL_CUMEM_HOST_ENABLE="1"))
    asked.program = [*torchrun, str(asked.log), str(10**8)]

    def attempts(of, n):
        taken, reasons = [], []
        for _ in range(n):
            try:
                taken.append(of.checkpoint()["stop_ms"])
            except RuntimeError as e:
                reasons.append(str(e).split("\n")[0][:400])
            of.step(len(lines(of.log)) + 50)
        return taken, reasons

    try:
        asked.start().step(50)
        taken, reasons = attempts(asked, 2)
        figures["refused"] = reasons
        row("NCCL that cannot be restored", f"{len(taken)} taken, {len(reasons)} refused: {reasons[:1]}")
        if taken:
            raise RuntimeError("a checkpoint was taken that cannot be restored")
        asked.clean()
        job.start().step(50)
        taken, reasons = attempts(job, 6)
        figures.update(stops_ms=taken, failures=reasons)
        row("NCCL as it comes", f"{len(taken)} taken, stops {taken}, {len(reasons)} failed: {reasons[:1]}")
        if taken:
            resumes = job.resumes()
            start = time.monotonic()
            job.kill_job()
            job.goes_on(resumes)
            figures["resume_s"] = time.monotonic() - start
            row("killed", "on again after %.1f s" % figures["resume_s"])
        Path(env["FINISH"]).touch()
        job.end(60)
        Path(env["FINISH"]).unlink()
        job.steps = len(lines(job.log))
        reference.program = [*torchrun, str(reference.log), str(job.steps)]
        reference.plain().end(120)
        same_losses(trace(reference.log), job, figures)
    except RuntimeError:
        (OUT / "nccl.log").write_text(asked.tail(200) + "\n=====\n" + job.tail(400))
        raise
    finally:
        for one in (job, reference, asked):
            one.clean()
        shutil.rmtree(WORK / "nccl-store", ignore_errors=True)


def torchrun(ranks, script, *args):
    return ["python3", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), str(script), *map(str, args)]


def gpus():
    return len(memory_mib())


def ranks39():
    """Stops of the 39 GB job with one rank and with a rank on each GPU, in one run. Needs two GPUs or more."""
    figures = FIGURES.setdefault("ranks39", {})
    counts = [int(n) for n in os.environ.get("RANKS", f"1,{gpus()}").split(",")]
    for ranks in counts:
        env = {"OMP_NUM_THREADS": "2", "PHOS_LOG": "info,phos=debug"}
        job = Job(f"ranks39-{ranks}", 0, env=env, flags=["--host-buffer", os.environ.get("RANKS_BUFFER", "16GiB")])
        job.program = torchrun(ranks, TRAIN, job.log, 10**6)
        try:
            job.start().step(6)
            found = stops(job, int(os.environ.get("RANKS_STOPS", "3")))
            figures[f"checkpoints_{ranks}"] = found
            row(f"stop, {ranks} x 39 GB", ", ".join("%.0f ms" % c["stop_ms"] for c in found))
            row("device to host", ", ".join("%.1f GB/s" % c.get("rates", {}).get("d2h_gb_s", 0) for c in found))
            row("of the last stop", json.dumps(found[-1].get("parts_ms", {})))
        finally:
            (OUT / f"ranks39-{ranks}.log").write_text(job.tail(2000))
            for log in job.dir.rglob("criu-dump.log"):
                shutil.copy(log, OUT / f"criu-dump-ranks39-{ranks}.log")
            job.clean()
    one, all_of_them = (min(c["stop_ms"] for c in figures[f"checkpoints_{n}"]) for n in (counts[0], counts[-1]))
    figures["stop_ranks_over_one"] = all_of_them / one
    row("best of each", "%.2f" % figures["stop_ranks_over_one"])


def bandwidth(checkpoints=10):
    """All-reduce bandwidth without phos-ft, under it, and after ten checkpoints. Needs two GPUs or more."""
    figures, at = FIGURES.setdefault("bandwidth", {}), 30
    program = HERE / "programs/all_reduce.py"

    def median(job, first, last):
        values = sorted(float(l[1]) for l in lines(job.log)[first:last])
        return values[len(values) // 2]

    plain, job = Job("bandwidth-plain", 0), Job("bandwidth", 0)
    try:
        plain.program = torchrun(gpus(), program, plain.log, 2 * at)
        plain.plain().end(60)
        figures["plain_gb_s"] = median(plain, at, None)
        job.program = torchrun(gpus(), program, job.log, 10**6)
        job.start().step(2 * at)
        figures["before_gb_s"] = median(job, at, 2 * at)
        figures["stops_ms"] = [job.checkpoint()["stop_ms"] for _ in range(checkpoints)]
        first = len(lines(job.log))
        job.step(first + 2 * at)
        figures["after_gb_s"] = median(job, first + at, first + 2 * at)
        row("all-reduce", "%.1f GB/s without phos-ft, %.1f before and %.1f after %d checkpoints" % (
            figures["plain_gb_s"], figures["before_gb_s"], figures["after_gb_s"], checkpoints))
    finally:
        (OUT / "bandwidth.log").write_text(job.tail(400))
        plain.clean()
        job.clean()


def ranks_ratio(pairs=5, steps=int(os.environ.get("RATIO_STEPS", "150"))):
    """Steps per second of DistributedDataParallel under phos-ft, without a checkpoint, against without; alternating. Needs two GPUs or
    more."""
    found = []
    for i in range(pairs):
        times = {}
        for kind in ("plain", "shim") if i % 2 == 0 else ("shim", "plain"):
            job = Job(f"ranks-ratio-{kind}-{i}", steps, env={**SMALL, "STEP_S": "0", "WORKERS": "0", "OMP_NUM_THREADS": "2"})
            job.program = torchrun(gpus(), TRAIN, job.log, steps)
            try:
                (job.plain() if kind == "plain" else job.start()).end(60)
                times[kind] = seconds_per_step(job.log, 30)
            finally:
                job.clean()
        found.append(times["plain"] / times["shim"])
        say("pair", i, times)
    FIGURES["ranks_ratios"] = found
    row("steps per second of ranks", "%.4f of without (%s)" % (sorted(found)[len(found) // 2], ", ".join("%.4f" % f for f in found)))


def two():
    """One process on two GPUs, with copies between them. Needs two GPUs."""
    one_compat("PyTorch, a process on two GPUs", {"GPUS": "2"})
    if FIGURES["compatibility"]["PyTorch, a process on two GPUs"]["result"].startswith("FAILS"):
        raise RuntimeError("see the row above")


def encrypted():
    """`correct` and `stop39` with a key: chunks are named by keyed digests on the GPU, and what is stored is encrypted."""
    key = WORK / "key"
    subprocess.run([str(PHOS), "keygen", str(key)], check=True, capture_output=True)
    plain = dict(FIGURES)
    FIGURES.clear()
    os.environ["PHOS_ENCRYPTION_KEY_FILE"] = str(key)
    try:
        correct()
        stop39()
    finally:
        del os.environ["PHOS_ENCRYPTION_KEY_FILE"]
        found = dict(FIGURES)
        FIGURES.clear()
        FIGURES.update(plain, encrypted=found)


def tiers():
    """`--remote-interval`: kill -9 of the job and of everything, the loss of the machine, a checkpoint of the store beside
    newer ones here; losses bit-identical."""
    env = dict(SMALL, STEP_S="0.1")
    # Not where the tier is: that is in memory here.
    steps, store = 500, Path("/var/tmp/phos-tiers-store")
    reference = Job("tiers-reference", steps, env=env).plain()
    reference.end()
    want = trace(reference.log)
    found = FIGURES["tiers"] = {}
    job = Job("tiers", steps, store=f"file://{store}", interval="3s", env=env,
              flags=["--remote-interval", "1h", "--host-cache", "16GiB"]).start()

    def place(here):
        return [c["id"] for c in job.list() if str(c["id"]).startswith("L") == here]

    def resumed(what, flags=()):
        """Starts all of it again; what it resumed from, in the words of its log."""
        start, resumes, flags_before = time.monotonic(), job.resumes(), job.flags
        job.flags = [*job.flags, *flags]
        job.start()
        job.goes_on(resumes)
        job.flags = flags_before
        took = time.monotonic() - start
        said = last_resumed(job)
        found[what] = {"s": took, "said": said}
        row(what, "%.1f s: %s" % (took, said))
        return said

    try:
        wait_for("a checkpoint in the store and one here", 120, lambda: job.alive() and place(True) and place(False))
        resumes = job.resumes()
        job.kill_job()
        job.goes_on(resumes)
        said = last_resumed(job)
        row("kill -9 of the job", said)
        if " in_memory=0" in said:
            raise RuntimeError("nothing was read in the sidecar's memory")
        stored = place(False)
        job.checkpoint()
        wait_for("the one that was asked for in the store", 120, lambda: job.alive() and place(False) != stored)
        job.step(len(lines(job.log)) + 60)
        job.kill_all()
        if "checkpoint=L" not in resumed("kill -9 of everything"):
            raise RuntimeError("not from this machine")
        wait_for("a newer one here", 60, lambda: job.alive() and place(True))
        job.kill_all()
        stored = place(False)[0]
        said = resumed("a checkpoint of the store, with newer ones here", ["--from", stored])
        if f"checkpoint={stored} " not in said or " cached=0" in said:
            raise RuntimeError("nothing of it was read here")
        wait_for("a newer one here", 60, lambda: job.alive() and place(True))
        job.kill_all()
        for part in ("run", "state"):
            shutil.rmtree(job.dir / part, ignore_errors=True)
        if "checkpoint=L" in resumed("loss of the machine"):
            raise RuntimeError("from a machine that is gone")
        job.end()
        same_losses(want, job, found)
    finally:
        if not found.get("bit_identical"):
            print(job.tail(60))
        (OUT / "tiers.log").write_text(job.tail(4000))
        job.clean()
        reference.clean()
        shutil.rmtree(store, ignore_errors=True)


def encoding():
    """What the encodings save on the memory of a large job that learns real text: the table of docs/encoding.md."""
    state = WORK / "state"
    made = subprocess.run(["python3", str(HERE / "state.py"), str(state), "400", "64"], capture_output=True, text=True, timeout=400)
    if made.returncode:
        raise RuntimeError("state.py: " + made.stderr.strip()[-1000:])
    print(made.stdout, flush=True)
    done = subprocess.run([str(BUNDLE / "bin/phos-encoding-table"), str(state)], capture_output=True, text=True, timeout=400)
    if done.returncode:
        raise RuntimeError("phos-encoding-table: " + done.stderr.strip()[-1000:])
    print(done.stdout, flush=True)
    FIGURES["encoding"] = {"job": made.stdout.splitlines(), "table": done.stdout.splitlines()}
    row("encoding, all GPU memory", next(l for l in done.stdout.splitlines() if l.startswith("| all-gpu")))
    shutil.rmtree(state)


def demo():
    """`make demo` where there is a GPU."""
    done = subprocess.run([str(BUNDLE / "bin/phos-demo")], env=dict(os.environ, PHOS_BIN_DIR=str(BUNDLE / "bin"), PHOS_CRIU=str(CRIU)),
                          capture_output=True, text=True, timeout=300)
    (OUT / "demo.log").write_text(done.stdout + done.stderr)
    said = done.stdout.splitlines()
    if done.returncode or not any("the real GPU" in line for line in said):
        raise RuntimeError(done.stdout[-600:] + done.stderr[-900:])
    FIGURES["demo"] = [line for line in said if line.startswith(("after ", "loss trace"))]
    row("make demo", "; ".join(FIGURES["demo"] + said[-1:]))


def memory_mib():
    """Of each GPU: all of its memory and what is in use."""
    text = subprocess.run(["nvidia-smi", "--query-gpu=memory.total,memory.used", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True, check=True).stdout
    return [tuple(int(n) for n in line.split(",")) for line in text.splitlines()]


def used_mib():
    return [used for _, used in memory_mib()]


def only(gpu):
    """A prefix to run something where there is one GPU, as in a container: a /dev without the nodes of the others, in which
    the driver's library cannot make them."""
    script = WORK / f"only-{gpu}.sh"
    script.write_text("""set -e
dev=$(mktemp -d)
mount -t tmpfs -o mode=755 tmpfs $dev
for node in /dev/*; do
  name=${node#/dev/}
  case $name in nvidia%d) ;; nvidia[0-9]*) continue ;; esac
  if [ -L $node ]; then cp -P $node $dev/; continue; fi
  if [ -d $node ]; then mkdir $dev/$name; else : > $dev/$name; fi
  mount --rbind $node $dev/$name
done
mount -o remount,ro $dev
mount --rbind $dev /dev
cd "$PWD"
exec "$@"
""" % gpu)
    return ["unshare", "--mount", "sh", str(script)]


def moved():
    """The job's GPU is gone: it resumes from the store on one that it never saw, is checkpointed and killed there, and
    ends. Needs two GPUs."""
    ways = {"to another node's GPU": (only(0), {}, only(1), {}),
            "to a GPU hidden before": ([], {"CUDA_VISIBLE_DEVICES": "0"}, [], {"CUDA_VISIBLE_DEVICES": "1"})}
    steps = 160
    reference = Job("moved-reference", steps, env=SMALL)
    reference.within = only(0)
    try:
        reference.plain().end()
        for way, (within, env, within_then, env_then) in ways.items():
            move(way, trace(reference.log), Job("moved", steps, env=dict(SMALL, **env), store=f"file://{WORK}/moved-store"),
                 within, within_then, env_then)
    finally:
        reference.clean()


def move(way, want, job, within, within_then, env_then):
    figures = FIGURES.setdefault("moved", {}).setdefault(way, {})
    job.within = within
    job.start()
    try:
        job.step(12)
        job.checkpoint()
        job.step(20)
        job.kill_all()
        for part in ("run", "state"):
            shutil.rmtree(job.dir / part, ignore_errors=True)
        before = used_mib()
        job.within = within_then
        job.env.update(env_then)
        start, resumes = time.monotonic(), job.resumes()
        job.start()
        job.goes_on(resumes)
        figures["resume_s"] = time.monotonic() - start
        after = used_mib()
        row(way, "on again after %.1f s; memory in use, MiB: %s before, %s after" % (figures["resume_s"], before, after))
        if max(a - b for a, b in zip(after, before)) < 1000 or min(a - b for a, b in zip(after, before)) > 200:
            raise RuntimeError("the job is not on one GPU")
        second = job.checkpoint()
        row("a checkpoint there", "stop %.0f ms, copied %.1f GB" % (second["stop_ms"], second["copied_bytes"] / 1e9))
        gpus = [sorted(g["uuid"] for g in job.call("show", str(c["number"]), "--json")["gpus"]) for c in job.list()]
        if gpus[0] == gpus[-1]:
            raise RuntimeError(f"it is where it was: {gpus}")
        job.kill_job()
        job.end(120)
        figures["bit_identical"] = trace(job.log) == want
        row("losses after the move", "bit-identical" if figures["bit_identical"] else "DIFFER")
        if not figures["bit_identical"]:
            raise RuntimeError("losses differ")
    finally:
        (OUT / ("moved-%s.log" % "".join(c if c.isalnum() else "-" for c in way))).write_text(job.tail(400))
        job.clean()
        shutil.rmtree(WORK / "moved-store", ignore_errors=True)


def machine():
    """What tells this machine and this build from others."""
    read = lambda path: Path(path).read_text().strip()
    gpus = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True, check=True)
    cpu = next(l for l in read("/proc/cpuinfo").splitlines() if l.startswith("model name")).split(": ")[1]
    version = subprocess.run([str(PHOS), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    digests = {n: hashlib.sha256((BUNDLE / "bin" / n).read_bytes()).hexdigest() for n in ("phos-ft", "libphos_shim.so")}
    return {"boot_id": read("/proc/sys/kernel/random/boot_id"), "gpus": gpus.stdout.split(), "cpu": cpu, "kernel": os.uname().release,
            "host": os.uname().nodename, "uptime_s": float(read("/proc/uptime").split()[0]), "version": version, "digests": digests}


def apart(steps=260):
    """The job of `written` and `elsewhere`: the same PyTorch, small enough for its store to be carried."""
    env = {"D": "128", "L": "4", "B": "4", "T": "128", "V": "2048", "STEP_S": "0.1"}
    # Not where the store of another job is, nor in memory.
    return lambda name: Job(name, steps, env=env, store=f"file://{APART}/store")


def written():
    """First of two machines: a job is checkpointed three times and killed with all of phos-ft. What remains is the store, in
    parts of 15 MiB in APART, to be carried to `elsewhere`."""
    make = apart()
    shutil.rmtree(APART, ignore_errors=True)
    APART.mkdir(parents=True)
    reference, job = make("apart-reference").plain(), None
    try:
        reference.end()
        job = make("apart").start()
        for at in (12, 30, 48):
            job.step(at)
            job.checkpoint()
        job.step(60)
        facts = dict(machine(), checkpoints=job.list(), losses=trace(reference.log))
        job.kill_all()
        (APART / "facts.json").write_text(json.dumps(facts))
        subprocess.run(["tar", "-cf", APART / "store.tar", "-C", APART, "store", "facts.json"], check=True)
        subprocess.run(["split", "-b", "15M", "-d", APART / "store.tar", APART / "part-"], check=True)
        size = (APART / "store.tar").stat().st_size
        row("store to carry", "%.1f MB in %d parts" % (size / 1e6, len(list(APART.glob("part-*")))))
        row("written by", json.dumps({k: v for k, v in facts.items() if k not in ("losses", "checkpoints")}))
    finally:
        reference.clean()
        if job:
            (OUT / "written.log").write_text(job.tail(400))
            job.clean()


def elsewhere():
    """Second of two machines, with another build: the job of `written` resumes from the store that was carried here, is
    checkpointed and killed here, and ends."""
    parts = b"".join(p.read_bytes() for p in sorted(APART.glob("part-*")))
    subprocess.run(["tar", "-xf", "-", "-C", APART], input=parts, check=True)
    then, now = json.loads((APART / "facts.json").read_text()), machine()
    row("written by", json.dumps({k: v for k, v in then.items() if k not in ("losses", "checkpoints")}))
    row("here", json.dumps(now))
    if then["boot_id"] == now["boot_id"] or then["gpus"] == now["gpus"]:
        raise RuntimeError("this is the machine that wrote it")
    if then["version"] != now["version"] or any(then["digests"][n] == now["digests"][n] for n in now["digests"]):
        raise RuntimeError("not another build of the same version")
    figures = FIGURES["elsewhere"] = {"then": then, "now": now}
    want = {int(k): v for k, v in then.pop("losses").items()}
    job = apart()("apart")
    try:
        job.call("verify", "--deep", "--json")
        start = time.monotonic()
        job.start()
        job.goes_on(0)
        figures["resume_s"] = time.monotonic() - start
        first = len(lines(job.log))
        row("resumed here", "on again after %.1f s, at step %d" % (figures["resume_s"], first))
        job.step(first + 20)
        second = job.checkpoint()
        row("a checkpoint here", "stop %.0f ms, stored %s of %s bytes" % (second["stop_ms"], second.get("stored_bytes"), second["total_bytes"]))
        figures["checkpoints"] = job.list()
        job.step(first + 30)
        job.kill_job()
        job.end(120)
        same_losses(want, job, figures)
    finally:
        (OUT / "elsewhere.log").write_text(job.tail(400))
        job.clean()


STAGES = {"correct": correct, "resumes": resumes, "stop39": stop39, "stop90": stop90, "idle": idle, "peer": peer, "ratio": ratio, "gate": gate,
          "compat": compat, "programs": programs, "demo": demo, "encoding": encoding, "encrypted": encrypted, "tiers": tiers,
          "many": many, "natives": natives, "full": full, "arrays": arrays, "profiler": profiler, "beside": beside,
          "user": user, "notice": notice}
# Only when named: they need two GPUs.
PAIRED = {"two": two, "moved": moved, "nccl": nccl, "ranks39": ranks39, "bandwidth": bandwidth, "ranks_ratio": ranks_ratio,
          "beside_correct": beside_correct}
# Only when named: the second needs another machine, to which the parts of APART were carried.
APARTS = {"written": written, "elsewhere": elsewhere}
# Only when named: they compare with what was before.
COMPARED = {"concurrent": concurrent, "drains": drains, "goodput": goodput, "lean": lean}


def main():
    for name in os.environ.get("SKIP_COMPAT", "").split(","):
        COMPAT.pop(name, None)
        PROGRAMS.pop(name, None)
    names = sys.argv[1:] or list(STAGES)
    WORK.mkdir(parents=True, exist_ok=True)
    path = OUT / "h200.json"
    # The host gives the machine its memory as it is touched: touch it once, for the peer as for us. Four at a time are four times as
    # fast.
    start = time.monotonic()
    gigabytes = int(os.environ.get("TOUCH_GB", "0"))
    parts = [WORK / f"touch-{i}" for i in range(4)]
    touching = [subprocess.Popen(["dd", "if=/dev/zero", f"of={part}", "bs=64M", "count=%d" % (gigabytes * 16 // len(parts))],
                                 stderr=subprocess.DEVNULL) for part in parts]
    for part, process in zip(parts, touching):
        process.wait()
        part.unlink(missing_ok=True)
    say("memory touched in %.1f s" % (time.monotonic() - start))
    import torch  # for the facts only
    FIGURES["gpu"] = torch.cuda.get_device_name(0)
    FIGURES["driver"] = driver_version()
    FIGURES["commit"] = os.environ.get("PHOS_COMMIT") or jobs.commit()
    for name in names:
        say("stage", name)
        start = time.monotonic()
        try:
            (STAGES | PAIRED | APARTS | COMPARED)[name]()
        except Exception as e:  # noqa: BLE001: the other stages still run
            FAILED.append(name)
            row(name, f"FAILED: {e}"[:1500])
        say("stage", name, "took %.1f s" % (time.monotonic() - start))
        path.write_text(json.dumps(FIGURES, indent=1, sort_keys=True) + "\n")
    print("\n" + "=" * 78)
    for what, value in TABLE:
        print("%-32s %s" % (what, str(value)[:200]))
    shutil.rmtree(WORK, ignore_errors=True)
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
