#!/usr/bin/env python3
"""The soak test: real programs at full speed under phos-ft, checkpointed one time after another without a pause, killed at
random, and once resumed where nothing but the store is left. Whatever happens, none may be harmed.

    soak.py [--programs a,b,…] [--checkpoints N] [--seconds S] [--parallel K] [--limit L] [--gpus G] [--seed X]
            [--ranks N] [--merge FILE] [--sim]

Each program runs under phos-ft until it has had N checkpoints (with --merge, together with those of before) or S seconds, and then undisturbed for as many steps: the two
traces must be the same bit for bit. Several run at a time on one GPU, each with a store of its own in memory; with G GPUs they
are dealt out over them. After L seconds in all it ends whatever runs. Needs what h200.py needs, see job.py; `--sim` runs the
trainer on the simulated GPU instead, with what `cargo build` made. Results go to $OUT/soak.json, together with those of an
earlier result (--merge): for each program

    checkpoints    taken and stored
    failed         attempts that failed, each with its reason in `failures`
    refused        of a program that cannot be checkpointed (`expects`): attempts that were refused
    interrupted    attempts during which we killed the job
    held_in_vain_ms  how long the tries held it that came to nothing, of programs that have phos-ft say so
    harmed         what must never happen: it crashed, hung, ended or computed something else without our doing; `harm` says what
    at_steps       of the checkpoints, those whose step the program told
    kills, losses  our SIGKILLs of the job, our losses of the machine; `of_all` of the kills were of all ranks at once
    bit_identical  whether its trace is that of the undisturbed run

Ends with 1 if anything is harmed or not identical, or a hundredth of the attempts or more failed.
"""
import argparse
import collections
import concurrent.futures
import importlib.util
import json
import os
import queue
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import job as jobs
from job import HERE, OUT, START, say, wait_for

ROOT = HERE.parent.parent
WORK = Path("/dev/shm/phos-soak")
PROGRAMS_DIR = HERE / "programs"
# Steps of the disturbed run: until it is told to finish.
FOREVER = 10**8
# Longest time without a step, for an answer to a request, and for the job to be back.
HANG_S, ANSWER_S, RESUME_S = 60, 60, 120
# Imports and the first compilation.
FIRST_STEP_S = 150
# For the end of a job that was told to finish.
END_S = 90

# Small shapes: a step of train.py takes a few milliseconds.
TRAIN = {"D": "256", "L": "4", "B": "4", "T": "128", "V": "2048", "WORKERS": "0"}
# The program tells its steps, by the module and the callbacks that come with phos-ft.
HINTS = {"HINTS": "1", "PYTHONPATH": str(ROOT / "sidecar/packaging")}
# Has phos-ft say how long each try held the job that came to nothing.
TRIES = {"PHOS_LOG": "info,phos_agent::attempt=debug"}


class Program:
    """A program of the matrix. `expects`: "checkpoints", or "refused" of what cannot be checkpointed. `ranks`: it has several processes,
    any of which is killed, and a launcher that ends then. `away`: how many seconds nothing of it runs after the loss of the machine."""

    def __init__(self, command, env=None, expects="checkpoints", ranks=False, away=0):
        self.command, self.env, self.expects, self.ranks, self.away = command, dict(env or {}), expects, ranks, away


def python(script, env=None):
    return Program(["python3", str(script)], env)


PROGRAMS = {
    "jax-donated": python(PROGRAMS_DIR / "jax_train.py"),
    "jax-command-buffers": python(PROGRAMS_DIR / "jax_train.py", {"COMMAND_BUFFERS": "1"}),
    "torch-eager": python(HERE / "train.py", TRAIN),
    "torch-compile": python(HERE / "train.py", {
        **TRAIN, "COMPILE": "1", "RECOMPILE": "600", "TORCHINDUCTOR_COMPILE_THREADS": "4", "TORCHINDUCTOR_DETERMINISTIC": "1"}),
    "torch-graphs": python(HERE / "train.py", {**TRAIN, "GRAPH": "1"}),
    "torch-dataloader-8": python(HERE / "train.py", {**TRAIN, "WORKERS": "8"}),
    "torch-offload": python(HERE / "train.py", {**TRAIN, "PINNED_GB": "1"}),
    "torch-deep-queue": python(PROGRAMS_DIR / "deep_queue.py", {**TRIES, "KIND": "laps"}),
    "torch-never-idle": python(PROGRAMS_DIR / "deep_queue.py", {**TRIES, "KIND": "pipelined"}),
    "torch-multiprocessing": python(PROGRAMS_DIR / "mp_cuda.py"),
    "nvml-child": python(PROGRAMS_DIR / "monitored.py"),
    "lightning-mpi4py": python(PROGRAMS_DIR / "lightning_mpi.py"),
    "lightning-hints": python(PROGRAMS_DIR / "lightning_mpi.py", HINTS),
    "hf-trainer-hints": python(PROGRAMS_DIR / "hf_trainer.py", HINTS),
    "hf-trainer-lora": python(PROGRAMS_DIR / "hf_trainer.py"),
    "cupy-pool": python(PROGRAMS_DIR / "cupy_train.py"),
    "cupy-no-pool": Program(["prlimit", "--nofile=1024", "python3", str(PROGRAMS_DIR / "cupy_train.py")], {"POOL": "0", "KEEP": "3000"}),
    "numba": python(PROGRAMS_DIR / "numba_train.py"),
    "textures": Program([str(WORK / "bin/textures")]),
    "module-globals": Program([str(WORK / "bin/globals")]),
    "persistent-kernel": Program([str(WORK / "bin/persistent")], expects="refused"),
    "polling-thread": python(PROGRAMS_DIR / "beside.py", {**TRAIN, "BESIDE": "polls"}),
    "nvml-thread": python(PROGRAMS_DIR / "beside.py", {**TRAIN, "BESIDE": "nvml"}),
    "torch-profiler": Program(["python3", str(PROGRAMS_DIR / "profiled.py")], {**TRAIN, "PROFILE": "always"}, expects="refused"),
    "pinned-memory-thread": python(PROGRAMS_DIR / "beside.py", {**TRAIN, "BESIDE": "counts"}),
}

# With --ranks: programs on several GPUs.
def ranked(count):
    torchrun = ["python3", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    restarting = [*torchrun, "--max-restarts", "3"]
    accelerate = ["python3", "-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines", "1", "--num_processes", str(count),
                  "--mixed_precision", "no", "--dynamo_backend", "no"]

    mpirun = ["mpirun", "--allow-run-as-root", "-np", str(count), "python3", str(PROGRAMS_DIR / "mpi_rank.py")]
    deepspeed = ["python3", "-m", "deepspeed.launcher.runner", "--no_local_rank", "--num_gpus", str(count)]

    def launched(script, env=None, by=torchrun, away=0):
        return Program([*by, str(PROGRAMS_DIR / script)], {**TRIES, **(env or {})}, ranks=True, away=away)

    # Launchers that not every machine has.
    more = {}
    if shutil.which("mpirun"):
        more["ddp-mpirun"] = launched("ddp_train.py", by=mpirun)
    if importlib.util.find_spec("deepspeed"):
        more["ddp-deepspeed"] = launched("ddp_train.py", by=deepspeed)
    return {
        **more,
        # PyTorch's watchdogs run out sooner than it is back.
        "ddp-watchdogs": launched("ddp_train.py", {"TIMEOUT_S": "15", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "15"}, away=40),
        "ddp": launched("ddp_train.py"),
        "ddp-compile": launched("ddp_train.py", {"COMPILE": "1", "TORCHINDUCTOR_DETERMINISTIC": "1", "TORCHINDUCTOR_COMPILE_THREADS": "4"}),
        # A launcher that would start its ranks anew.
        "ddp-restarts": launched("ddp_train.py", by=restarting),
        "ddp-accelerate": launched("ddp_train.py", by=accelerate),
        "fsdp2": launched("fsdp_train.py"),
        "pipeline": launched("pipeline_train.py"),
        "tensor-graph": launched("tensor_train.py"),
        "jax-pmap": python(PROGRAMS_DIR / "jax_pmap.py", TRIES),
        "jax-processes": Program(["python3", str(PROGRAMS_DIR / "jax_processes.py")], {**TRIES, "COUNT": str(count)}, ranks=True),
    }


# What is built here: the result, and the compiler's arguments.
BUILT = {
    "textures": ["-O2", "-arch=sm_90", str(PROGRAMS_DIR / "textures.cu")],
    "globals": ["-O2", "-arch=sm_90", str(PROGRAMS_DIR / "globals.cu")],
    "persistent": ["-O2", "-arch=sm_90", str(PROGRAMS_DIR / "persistent.cu")],
    "threads.so": ["-O2", "-shared", "-Xcompiler", "-fPIC", str(PROGRAMS_DIR / "threads.c"), "-lcuda", "-lpthread", "-ldl"],
}


class Harmed(Exception):
    """The job is not what it would be without phos-ft."""


class Ended(Exception):
    """No time is left."""


class LogReader:
    """What phos-ft and the job said, read as it grows."""

    def __init__(self, path):
        self.path, self.at, self.rest = path, 0, ""
        self.restored, self.crashes, self.complaints, self.held_ms = 0, [], collections.Counter(), []

    def read(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self.at)
                new = file.read()
        except FileNotFoundError:
            return self
        self.at += len(new)
        *whole, self.rest = (self.rest + new.decode(errors="replace")).split("\n")
        for line in whole:
            self.restored += "the job was restored" in line
            if crash := re.search(r"the job crashed.*?exit=(\w+\(-?\d+\))", line):
                self.crashes.append(crash[1])
            if held := re.search(r"the job runs on.* stop_ms=(\d+)", line):
                self.held_ms.append(int(held[1]))
            if said := re.search(r" (WARN|ERROR) (.*)", line):
                self.complaints[re.sub(r"\d+", "N", said[2])[:300]] += 1
        return self


class SoakJob(jobs.Job):
    """A job whose own files lie in `here`, all of which is lost with the machine."""

    def __init__(self, name, program, env, flags=()):
        directory = WORK / name
        super().__init__(directory, name, None, f"file://{directory}/store", "never", env, flags)
        self.here = directory / "here"
        self.log = self.here / "loss.log"
        self.finish = directory / "finish"
        for variable, below in {"HOME": "home", "TMPDIR": "tmp"}.items():
            self.env[variable] = str(self.here / below)
        self.env["FINISH"] = str(self.finish)
        # With --user UID:GID among the flags, the job's own files are that user's. Of nobody: torch asks for a name.
        self.user = [int(n) for n in self.flags[self.flags.index("--user") + 1].split(":")] if "--user" in self.flags else None
        if self.user:
            self.env.update(USER="job", LOGNAME="job")
        self.program = program(self)
        self.furnish()

    def furnish(self):
        for below in ("home", "tmp"):
            (self.here / below).mkdir(parents=True, exist_ok=True)
        if self.user:
            for directory in (self.here, self.here / "home", self.here / "tmp"):
                os.chown(directory, *self.user)

    def lose_machine(self):
        self.kill_all()
        if self.pids(""):
            raise RuntimeError(f"processes outlive SIGKILL: {self.pids('')}")
        for part in ("run", "state", "here"):
            shutil.rmtree(self.dir / part, ignore_errors=True)
        self.furnish()

    def size(self):
        try:
            return self.log.stat().st_size
        except FileNotFoundError:
            return 0

    def main_process(self):
        """The one of the job's processes that none of the others started."""
        pids = self.trainers()
        for pid in sorted(pids):
            try:
                parent = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if parent not in pids:
                return pid
        return None

    def threads(self):
        """Where each thread of the job is, for the log of a hang."""
        said = []
        for pid, line in self.pids(""):
            for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
                try:
                    state = (task / "stat").read_text().rsplit(")", 1)[1].split()[0]
                    said.append("%s %s %s wchan=%s syscall=%s" % (
                        task.name, (task / "comm").read_text().strip(), state, (task / "wchan").read_text(),
                        (task / "syscall").read_text().split(" ")[0].strip()))
                except OSError:
                    continue
            said.append(f"^ {pid}: {line[:120]}")
        return "\n".join(said)


def read_trace(path):
    """The bits of each step. A line whose newline is missing is being written and does not count."""
    found = []
    try:
        text = Path(path).read_text()
    except FileNotFoundError:
        return found
    for line in text.split("\n")[:-1]:
        words = line.split()
        if len(words) < 2 or words[0] != str(len(found)):
            raise Harmed(f"the trace has {line[:80]!r} where step {len(found)} should be")
        found.append(words[1])
    return found


class Soak:
    """One program's soak: see the module."""

    def __init__(self, name, program, options, extra_env, before=0):
        self.name, self.program, self.options = name, program, options
        # A few in any case.
        self.wanted = max(options.checkpoints - before, 5)
        self.random = random.Random(f"{options.seed} {name}")
        env = {"OMP_NUM_THREADS": "2", "PYTHONUNBUFFERED": "1", "THREADS": str(WORK / "bin/threads.so"),
               "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **extra_env, **program.env}
        self.env = env
        flags = ["--keep-last", "3", "--host-buffer", "512MiB", "--max-restarts", "1000", *options.flags]
        self.job = SoakJob(name, lambda job: self.command(job, FOREVER), env, flags)
        self.reference = None
        self.said = LogReader(self.job.dir / "phos.log")
        self.stops, self.resumes, self.killed_in_vain = [], [], 0
        self.crashes_expected = 0
        self.result = {"expects": program.expects, "checkpoints": 0, "failed": 0, "refused": 0, "interrupted": 0, "harmed": 0, "at_steps": 0,
                       "kills": 0, "of_all": 0, "losses": 0, "bit_identical": None, "steps": 0, "failures": [], "harm": []}

    def command(self, job, steps):
        return [*self.program.command, *self.options.arguments(job, steps)]

    def harm(self, what):
        """Notes what must never happen."""
        self.result["harmed"] += 1
        self.result["harm"].append(what[:2000])
        say(self.name, "HARMED:", what[:600])

    # What the job does.

    def notice(self):
        """Notes crashes that are not ours."""
        self.said.read()
        for crash in self.said.crashes:
            # Of ranks the launcher ends, with a code of its own.
            if (crash == "Signal(9)" or self.program.ranks) and self.crashes_expected:
                self.crashes_expected -= 1
            else:
                self.harm(f"it crashed without our doing: {crash}, after {self.result['checkpoints']} checkpoints")
        self.said.crashes.clear()

    def watch(self):
        """The same; raises when the job has ended, or time has."""
        self.notice()
        if self.job.process.poll() is not None:
            raise Harmed(f"phos-ft and the job ended with {self.job.process.returncode}:\n{self.job.tail(12)}")
        if time.monotonic() > self.options.end:
            raise Ended("no time is left")
        return True

    def progress(self, limit, what="a step"):
        """Waits until the job has made a step."""
        at = self.job.size()
        try:
            wait_for(what, limit, lambda: self.job.size() != at or not self.watch(), 0.005)
        except RuntimeError:
            raise Harmed(f"it hangs: no step for {limit} s\n{self.job.tail(6)}\n{self.job.threads()}") from None

    def restored(self, before, began):
        """Waits until the job is back and makes steps."""
        try:
            wait_for("the job to be restored", RESUME_S, lambda: self.watch() and self.said.restored > before, 0.02)
        except RuntimeError:
            raise Harmed(f"it was not brought back within {RESUME_S} s:\n{self.job.tail(12)}") from None
        self.progress(HANG_S)
        self.resumes.append(time.monotonic() - began)

    # What is done to it.

    def attempt(self, kill_after=None):
        """One checkpoint; `kill_after`: the job is killed so many seconds after it was asked for."""
        asked = subprocess.Popen([str(jobs.PHOS), "checkpoint", "--json", *self.job.base()], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=self.job.env)
        before, began, killed = self.said.read().restored, None, False
        try:
            if kill_after is not None:
                time.sleep(kill_after)
                began = time.monotonic()
                killed = self.kill()
            out, err = asked.communicate(timeout=ANSWER_S)
        except subprocess.TimeoutExpired:
            asked.kill()
            asked.communicate()
            out, err = "", f"no answer within {ANSWER_S} s"
        crashes = self.result["harmed"]
        self.said.read()
        if asked.returncode == 0:
            report = json.loads(out)
            self.result["checkpoints"] += 1
            self.stops.append(report["stop_ms"])
            self.result["at_steps"] += report.get("step") is not None
        elif killed:
            self.result["interrupted"] += 1
        else:
            self.failed(err.strip())
        if killed:
            self.restored(before, began)
        self.watch()
        if self.result["harmed"] > crashes and self.said.restored <= before + killed:
            # It crashed in this attempt: phos-ft may bring it back.
            self.restored(before + killed, time.monotonic())

    def failed(self, reason):
        reason = reason.removeprefix("phos-ft: ").removeprefix("no checkpoint: ")
        kind = "refused" if self.program.expects == "refused" else "failed"
        self.result[kind] += 1
        if kind == "failed" or self.result[kind] <= 3:
            self.result["failures"].append({
                "attempt": sum(self.result[k] for k in ("checkpoints", "failed", "refused", "interrupted")),
                "seconds": round(time.monotonic() - self.began, 1), "kind": kind, "reason": reason[:600]})
        if kind == "failed":
            say(self.name, "no checkpoint:", reason[:300])

    def kill(self):
        pids = [self.job.main_process()]
        if self.program.ranks:
            pids = sorted(self.job.trainers()) or pids
            # One of them, then all, then one again.
            if self.result["kills"] % 2 == 0:
                pids = [self.random.choice(pids)]
        if pids[0] is None:
            self.killed_in_vain += 1
            return False
        # First: the crash may be read before this line ends.
        self.crashes_expected += 1
        self.result["kills"] += 1
        self.result["of_all"] += len(pids) > 1
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                # Its launcher was faster.
                pass
        return True

    def lose_machine(self):
        before, began = self.said.read().restored, time.monotonic()
        self.result["losses"] += 1
        self.job.lose_machine()
        # What was killed with everything else was not brought back, though the sidecar may have seen it end.
        self.said.read()
        self.said.crashes.clear()
        self.crashes_expected = 0
        time.sleep(self.program.away)
        began += self.program.away
        self.job.start()
        self.restored(before, began)

    def disturb(self):
        """Checkpoints without a pause, kills at random, a loss of the machine: until there were enough or time is up."""
        options, result = self.options, self.result
        end = min(time.monotonic() + options.seconds, self.began + 0.6 * (options.end - self.began))
        start, plan = time.monotonic(), []
        if self.program.expects == "checkpoints":
            plan = [(self.random.uniform(0.1, 0.9), "kill") for _ in range(options.kills)]
            plan = sorted([*plan, (self.random.uniform(0.4, 0.7), "lose")])
        while True:
            if result["harmed"] >= 3:
                raise Ended("it was harmed often enough")
            now = time.monotonic()
            done = max(result["checkpoints"] / self.wanted, (now - start) / max(end - start, 1))
            kill_after = None
            if plan and done >= plan[0][0] and result["checkpoints"]:
                _, what = plan.pop(0)
                if what == "lose":
                    self.lose_machine()
                else:
                    usual = statistics.median(self.seconds) if self.seconds else 0.5
                    kill_after = self.random.uniform(0, 1.3) * usual
            elif now >= end or (not plan and (result["checkpoints"] >= self.wanted or result["refused"] >= 50)):
                return
            asked, failed = time.monotonic(), result["failed"] + result["refused"]
            self.attempt(kill_after)
            if result["failed"] + result["refused"] > failed:
                # What is refused before anything stops is refused again at once.
                time.sleep(0.5)
            self.seconds.append(time.monotonic() - asked) if kill_after is None else None
            self.progress(HANG_S)

    def finish(self):
        """Tells the job to end, and waits for it."""
        self.job.finish.touch()
        end = time.monotonic() + END_S
        while self.job.process.poll() is None:
            self.notice()
            if self.result["harmed"]:
                raise Ended("it was harmed before its end")
            if time.monotonic() > min(end, self.options.end):
                raise Harmed(f"it does not end\n{self.job.tail(6)}\n{self.job.threads()}")
            time.sleep(0.05)
        code = self.job.process.returncode
        if code:
            raise Harmed(f"it ended with {code}:\n{self.job.tail(12)}")

    def compare(self):
        """The same number of steps, undisturbed."""
        trace = read_trace(self.job.log)
        self.result["steps"] = len(trace)
        if not trace:
            raise Harmed("its trace is empty")
        shutil.rmtree(self.job.dir / "store", ignore_errors=True)
        self.reference = reference = SoakJob(f"{self.name}.undisturbed", lambda job: self.command(job, len(trace)), self.env)
        reference.plain()
        while reference.process.poll() is None:
            if time.monotonic() > self.options.end - 3:
                reference.kill_all()
                break
            time.sleep(0.05)
        want = read_trace(reference.log)
        if reference.process.returncode and time.monotonic() <= self.options.end - 3:
            raise RuntimeError(f"the undisturbed run ended with {reference.process.returncode}: {reference.tail(12)}")
        both = min(len(want), len(trace))
        different = next((i for i in range(both) if want[i] != trace[i]), None)
        if different is not None or len(want) > len(trace):
            self.result["bit_identical"] = False
            self.harm(f"its trace differs from step {different if different is not None else both} of {len(trace)} on")
        elif len(want) == len(trace):
            self.result["bit_identical"] = True
        else:
            # Neither shown nor refuted.
            self.result["unfinished"] = f"time for {both} of {len(trace)} steps of the undisturbed run"

    def run(self):
        self.began, self.seconds = time.monotonic(), []
        try:
            self.job.start()
            try:
                wait_for("the first steps", FIRST_STEP_S, lambda: self.watch() and self.job.size() > 60, 0.05)
            except RuntimeError:
                raise Harmed(f"no steps within {FIRST_STEP_S} s:\n{self.job.tail(12)}") from None
            say(self.name, "runs after %.1f s" % (time.monotonic() - self.began))
            self.disturb()
            self.finish()
            self.compare()
        except Harmed as e:
            self.harm(str(e))
        except Ended as e:
            self.result["unfinished"] = str(e)
        except Exception as e:  # noqa: BLE001: the others go on
            self.result["unfinished"] = f"{type(e).__name__}: {e}"[:2000]
            say(self.name, "UNFINISHED:", self.result["unfinished"][:600])
        self.close()
        return self.result

    def close(self):
        result = self.result
        for job in filter(None, (self.job, self.reference)):
            job.kill_all(10)
        self.said.read()
        if self.stops:
            result["stop_ms"] = {"median": round(statistics.median(self.stops), 1), "most": round(max(self.stops), 1)}
        if self.resumes:
            result["resume_s"] = {"median": round(statistics.median(self.resumes), 1), "most": round(max(self.resumes), 1)}
        if self.said.held_ms:
            # Of tries that failed, in checkpoints that came about as well.
            result["held_in_vain_ms"] = {"median": statistics.median(self.said.held_ms), "most": max(self.said.held_ms)}
        result["seconds"] = round(time.monotonic() - self.began, 1)
        result["complaints"] = dict(self.said.complaints.most_common(12))
        if result["harmed"] or result["failed"] or result.get("unfinished") or self.options.keep_logs:
            self.write_log()
        for job in filter(None, (self.job, self.reference)):
            shutil.rmtree(job.dir, ignore_errors=True)
        say(self.name, row(self.name, result))

    def write_log(self):
        parts = [json.dumps(self.result, indent=1)]
        for job in filter(None, (self.job, self.reference)):
            parts.append(f"===== {job.name}\n" + job.tail(1500))
        for log in sorted(self.job.dir.rglob("criu*.log"))[-2:]:
            lines = log.read_text(errors="replace").splitlines()
            parts.append(f"===== {log}\n" + "\n".join([l for l in lines if "Error" in l][:20] + ["…"] + lines[-60:]))
        # Where a process died.
        kernel = subprocess.run(["dmesg"], capture_output=True, text=True).stdout.splitlines()
        parts.append("===== kernel\n" + "\n".join(kernel[-15:]))
        (OUT / f"soak-{self.name}.log").write_text("\n".join(parts) + "\n")


# Results.

COUNTS = ("checkpoints", "failed", "refused", "interrupted", "harmed", "at_steps", "kills", "of_all", "losses", "steps")


def merged(first, second):
    """Two results of one program."""
    both = {**first, **second}
    for name in COUNTS:
        both[name] = first.get(name, 0) + second.get(name, 0)
    for name in ("failures", "harm"):
        both[name] = first.get(name, []) + second.get(name, [])
    both["complaints"] = dict(collections.Counter(first.get("complaints", {})) + collections.Counter(second.get("complaints", {})))
    known = [r["bit_identical"] for r in (first, second) if r.get("bit_identical") is not None]
    both["bit_identical"] = all(known) if known else None
    both["runs"] = first.get("runs", 1) + second.get("runs", 1)
    for name in ("stop_ms", "resume_s", "held_in_vain_ms"):
        found = [r[name] for r in (first, second) if name in r]
        if found:
            both[name] = {"median": round(statistics.mean(f["median"] for f in found), 1), "most": max(f["most"] for f in found)}
    if "unfinished" in first and "unfinished" not in second and second.get("bit_identical"):
        both.pop("unfinished")
        both["unfinished_before"] = first["unfinished"]
    return both


def totals(programs):
    sums = {name: sum(p.get(name, 0) for p in programs.values()) for name in COUNTS if name != "steps"}
    sums["programs"] = len(programs)
    attempts = sums["checkpoints"] + sums["failed"]
    sums["failed_fraction"] = round(sums["failed"] / attempts, 5) if attempts else None
    sums["bit_identical"] = bool(programs) and all(p["bit_identical"] is True for p in programs.values())
    return sums


def good(sums):
    return sums["harmed"] == 0 and sums["bit_identical"] and (sums["failed_fraction"] or 0) < 0.01


def row(name, r):
    stop = r.get("stop_ms", {})
    note = (r["harm"] or [r.get("unfinished") or ""])[0] or next((f["reason"] for f in r["failures"]), "")
    return "%-22s %5d %6d %7d %6d %5d %6d  %-5s %7d %7s %7s  %s" % (
        name, r["checkpoints"], r["failed"], r["refused"], r["harmed"], r["kills"], r["losses"],
        {True: "yes", False: "NO", None: "?"}[r["bit_identical"]], r["steps"], stop.get("median", "-"), stop.get("most", "-"),
        " ".join(note.split())[:110])


HEADING = "%-22s %5s %6s %7s %6s %5s %6s  %-5s %7s %7s %7s" % (
    "program", "ckpts", "failed", "refused", "harmed", "kills", "losses", "same", "steps", "stop ms", "most")


class Results:
    """What is known so far; written after each program."""

    def __init__(self, facts, earlier):
        self.facts, self.lock, self.written = facts, threading.Lock(), False
        self.programs = dict(earlier.get("programs", {}))
        self.earlier = earlier
        self.fresh = {}

    def add(self, name, result):
        with self.lock:
            result = {k: v for k, v in result.items() if v not in ([], {})} | {k: result[k] for k in ("failures", "harm")}
            self.fresh[name] = result
            self.programs[name] = merged(self.programs[name], result) if name in self.programs else dict(result, runs=1)
            self.write()

    def write(self):
        commits = list(dict.fromkeys([*self.earlier.get("commits", []), self.facts["commit"]]))
        text = json.dumps({**self.facts, "commits": commits, "programs": self.programs, "totals": totals(self.programs)}, indent=1,
                          sort_keys=True)
        part = OUT / ".soak.json.part"
        part.write_text(text + "\n")
        part.rename(OUT / "soak.json")

    def table(self):
        print("\n" + "=" * 100 + "\n" + HEADING)
        for name, result in self.fresh.items():
            print(row(name, result))
        if self.earlier:
            print("together with earlier runs:")
            for name, result in self.programs.items():
                print(row(name, result))
        print("totals", json.dumps(totals(self.programs)), flush=True)


# The simulated GPU.


class Simulated:
    """gpu-sim, as integration-tests/src/gpu.rs sets it up: one for each program."""

    def __init__(self, target):
        self.target, self.mounts = target, []
        jobs.PHOS, jobs.CRIU = target / "phos-ft", ROOT / ".build/criu/criu"

    def env(self, name):
        base = WORK / "gpu" / name
        (base / "lib").mkdir(parents=True)
        for library in ("libcuda.so.1", "libcuda.so"):
            (base / "lib" / library).symlink_to(self.target / "libphos_gpu_sim.so")
        (base / "sim/dev0").mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "phos-gpu-sim", base / "sim/dev0"], check=True)
        self.mounts.append(base / "sim/dev0")
        return {"LD_LIBRARY_PATH": str(base / "lib"), "PHOS_SIM_DIR": str(base / "sim")}

    def close(self):
        for mount in self.mounts:
            subprocess.run(["umount", "-l", mount], check=False)

    def programs(self):
        trainer = str(self.target / "phos-trainer")
        return {
            "trainer": Program([trainer, "--quiet"]),
            "trainer-graph": Program([trainer, "--quiet", "--graph", "--churn-mib", "2"]),
            "trainer-workers": Program([trainer, "--quiet", "--workers", "2"]),
            "trainer-ranks": Program([trainer, "--quiet", "--rank-processes", "3", "--nccl", str(self.target / "libphos_nccl_sim.so"),
                                      "--layers", "16,16,4", "--batch", "16"], ranks=True),
        }


def simulated_arguments(job, steps):
    return ["--log", str(job.log), "--steps", str(steps), "--finish-at", str(job.finish)]


def real_arguments(job, steps):
    return [str(job.log), str(steps)]


def build(names):
    """What of the programs is compiled, side by side. Says what could not be."""
    (WORK / "bin").mkdir(parents=True, exist_ok=True)
    wanted = {"textures": "textures", "module-globals": "globals", "persistent-kernel": "persistent", "polling-thread": "threads.so",
              "nvml-thread": "threads.so", "pinned-memory-thread": "threads.so"}
    wanted = {wanted[name] for name in names if name in wanted}
    running = {what: subprocess.Popen(["nvcc", *BUILT[what], "-o", str(WORK / "bin" / what)], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True) for what in wanted}
    for what, compiler in running.items():
        said, _ = compiler.communicate(timeout=120)
        say("built", what) if compiler.returncode == 0 else say(what, "cannot be built:", said[-1500:])


def end_everything():
    """Whatever runs below WORK."""
    for _ in range(50):
        found = []
        for p in Path("/proc").glob("[0-9]*"):
            try:
                if f"{WORK}/" in (p / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                    found.append(int(p.name))
            except OSError:
                continue
        found = [pid for pid in found if pid != os.getpid()]
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)


def nccl_version():
    said = subprocess.run([sys.executable, "-c", "import torch; print(*torch.cuda.nccl.version(), sep='.')"], capture_output=True, text=True)
    return said.stdout.strip()


def facts(sim):
    commit = os.environ.get("PHOS_COMMIT") or jobs.commit()
    if sim:
        return {"commit": commit, "driver": "simulated", "gpu": "simulated"}
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
    return {"commit": commit, "driver": jobs.driver_version(), "gpu": gpu, "nccl": nccl_version()}


def options_of(arguments):
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("--programs", default="all", help="names of the matrix with commas; all; all,-NAME")
    parser.add_argument("--checkpoints", type=int, default=60, help="for each program")
    parser.add_argument("--seconds", type=float, default=60, help="most for the checkpoints of a program")
    parser.add_argument("--parallel", type=int, default=5, help="programs at a time")
    parser.add_argument("--limit", type=float, default=560, help="seconds for all of it")
    parser.add_argument("--gpus", type=int, default=1, help="GPUs that the programs are dealt out over; with --ranks, so many to each")
    parser.add_argument("--ranks", type=int, default=0, help="programs of so many ranks, each with a GPU, instead of the matrix")
    parser.add_argument("--kills", type=int, default=3, help="SIGKILLs for each program")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--merge", type=Path, help="an earlier soak.json that this one is added to")
    parser.add_argument("--sim", action="store_true", help="on the simulated GPU, with what cargo has built")
    parser.add_argument("--target", type=Path, default=ROOT / "target/debug", help="where that is")
    parser.add_argument("--flags", default="", help="further flags of phos-ft, with blanks")
    parser.add_argument("--keep-logs", action="store_true", help="logs of all programs, not of failures alone")
    options = parser.parse_args(arguments)
    options.flags = options.flags.split()
    options.end = START + options.limit
    options.gpus = max(options.gpus, options.ranks)
    options.arguments = simulated_arguments if options.sim else real_arguments
    return options


def chosen(wanted, programs):
    words = wanted.split(",")
    names = list(programs) if "all" in words else [w for w in words if not w.startswith("-")]
    names = [n for n in names if f"-{n}" not in words]
    unknown = [n for n in names if n not in programs]
    if unknown:
        sys.exit(f"no program {unknown}: there are {', '.join(programs)}")
    return names


def main(arguments=None):
    options = options_of(arguments)
    if os.geteuid():
        sys.exit("needs root")
    end_everything()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    OUT.mkdir(parents=True, exist_ok=True)
    sim = Simulated(options.target.resolve()) if options.sim else None
    programs = sim.programs() if sim else ranked(options.ranks) if options.ranks else PROGRAMS
    if options.ranks > 2:
        programs = {f"{name}-{options.ranks}": program for name, program in programs.items()}
    names = chosen(options.programs, programs)
    results = Results(facts(options.sim), json.loads(options.merge.read_text()) if options.merge else {})
    running = {}
    # Two programs of ranks on the same GPUs end in time-outs of the driver.
    groups = queue.SimpleQueue()
    for first in range(0, options.gpus - options.ranks + 1, options.ranks or options.gpus):
        groups.put(",".join(str(gpu) for gpu in range(first, first + options.ranks)))

    def stop(why):
        """The end of all, whatever is under way."""
        say("ENDING:", why)
        try:
            for name, soak in list(running.items()):
                if name not in results.fresh:
                    # Its thread may be writing to it.
                    results.add(name, dict(json.loads(json.dumps(soak.result)), unfinished=why))
                    soak.write_log()
            end_everything()
            results.table()
            if sim:
                sim.close()
            shutil.rmtree(WORK, ignore_errors=True)
        finally:
            os._exit(1)

    guard = threading.Timer(max(options.limit + 8 - (time.monotonic() - START), 1), stop, ["the limit of time has passed"])
    guard.daemon = True
    guard.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop("it was told to end"))

    def one(name):
        if options.end - time.monotonic() < 0.25 * options.limit and options.end - time.monotonic() < 75:
            say(name, "is left out: no time")
            return
        # What is not to be seen is not seen by phos-ft either.
        group = groups.get() if options.ranks else str(names.index(name) % options.gpus)
        gpu = {"CUDA_VISIBLE_DEVICES": group} if options.gpus > 1 else {}
        before = results.earlier.get("programs", {}).get(name, {}).get("checkpoints", 0)
        soak = running[name] = Soak(name, programs[name], options, sim.env(name) if sim else gpu, before)
        try:
            results.add(name, soak.run())
        finally:
            if options.ranks:
                groups.put(group)

    try:
        if not sim:
            build(names)
        say("seed", options.seed, "programs", ", ".join(names))
        with concurrent.futures.ThreadPoolExecutor(options.parallel) as pool:
            for future in [pool.submit(one, name) for name in names]:
                try:
                    future.result()
                except Exception as e:  # noqa: BLE001: the others go on
                    say("the test itself failed:", repr(e))
        guard.cancel()
        results.table()
    finally:
        end_everything()
        if sim:
            sim.close()
        shutil.rmtree(WORK, ignore_errors=True)
    everyone = all(name in results.fresh for name in names)
    sys.exit(0 if everyone and good(totals(results.fresh)) else 1)


if __name__ == "__main__":
    main()
