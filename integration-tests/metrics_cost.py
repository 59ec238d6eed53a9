#!/usr/bin/env python3
"""What metrics cost a sidecar: its processor time for each checkpoint and its memory, with `--metrics` scraped once a second and the page's events followed, against
without, on the simulated GPU, alternating. Needs root and what `cargo build` made. The figures are in docs/metrics.md.

    metrics_cost.py [PAIRS] [SECONDS]     5 pairs of 40 s each
"""
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "target/debug"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def scrape(address, until):
    """As Prometheus does, but more often."""
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
                answer.read()
        except OSError:
            pass
        time.sleep(1)


def follow(address, until):
    """As the page does."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/events", timeout=5) as answer:
            while time.monotonic() < until:
                answer.readline()
    except OSError:
        pass


def sidecar(run_dir):
    for p in Path("/proc").glob("[0-9]*"):
        try:
            words = (p / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        # The supervisor has the job's command, the agent is `run`.
        if words and words[0].endswith("phos-ft") and str(run_dir) in words and "--" not in words and "run" not in words[1:2]:
            yield p


def one(seconds, metrics):
    here = Path(tempfile.mkdtemp(prefix="metrics-cost-", dir="/dev/shm"))
    (here / "lib").mkdir()
    (here / "sim/dev0").mkdir(parents=True)
    for library in ("libcuda.so.1", "libcuda.so"):
        (here / "lib" / library).symlink_to(TARGET / "libphos_gpu_sim.so")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "phos-gpu-sim", here / "sim/dev0"], check=True)
    env = {**os.environ, "LD_LIBRARY_PATH": str(here / "lib"), "PHOS_SIM_DIR": str(here / "sim"), "PHOS_LOG": "warn"}
    address = f"127.0.0.1:{free_port()}"
    common = ["--store", f"file://{here}/store", "--job", "cost", "--run-dir", str(here / "run"), "--state-dir", str(here / "state")]
    flags = ["--metrics", address] if metrics else []
    with open(here / "phos.log", "wb") as log:
        process = subprocess.Popen(
            [TARGET / "phos-ft", "--interval", "1s", "--keep-last", "3", *common, *flags, "--", TARGET / "phos-trainer", "--quiet", "--steps", "1000000",
             "--step-ms", "20", "--ballast-mib", "32", "--log", here / "loss.log"], env=env, stdout=log, stderr=log, cwd=here)
    try:
        def checkpoints():
            said = subprocess.run([TARGET / "phos-ft", "status", "--json", *common], capture_output=True, env=env)
            return json.loads(said.stdout)["checkpoints"] if said.returncode == 0 else 0

        end = time.monotonic() + 60
        while checkpoints() < 3:
            if time.monotonic() > end:
                raise RuntimeError((here / "phos.log").read_text(errors="replace")[-2000:])
            time.sleep(0.2)
        found = list(sidecar(here / "run"))
        if len(found) != 1:
            raise RuntimeError(f"not one sidecar: {found}")
        proc = found[0]
        times = lambda: sum(int(n) for n in (proc / "stat").read_text().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")
        until = time.monotonic() + seconds
        if metrics:
            for task in (scrape, follow):
                threading.Thread(target=task, args=(address, until), daemon=True).start()
        before, had = times(), checkpoints()
        while time.monotonic() < until:
            time.sleep(0.2)
        cpu, made = times() - before, checkpoints() - had
        resident = int(next(l for l in (proc / "status").read_text().splitlines() if l.startswith("VmHWM")).split()[1]) / 1024
        return {"cpu_s": cpu, "checkpoints": made, "cpu_ms_per_checkpoint": 1000 * cpu / max(made, 1), "peak_mib": resident}
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        subprocess.run(["umount", "-l", here / "sim/dev0"], check=False)
        shutil.rmtree(here, ignore_errors=True)


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 40
    found = {False: [], True: []}
    for pair in range(pairs):
        for metrics in (False, True) if pair % 2 == 0 else (True, False):
            result = one(seconds, metrics)
            found[metrics].append(result)
            print("with" if metrics else "without", json.dumps(result), flush=True)
    for what in ("cpu_ms_per_checkpoint", "peak_mib"):
        without, with_them = (statistics.median(r[what] for r in found[kind]) for kind in (False, True))
        print(f"{what}: {without:.1f} without, {with_them:.1f} with: {with_them / without:.3f}")


if __name__ == "__main__":
    main()
