#!/usr/bin/env python3
"""What storing checkpoints costs a job that is bound by the host's cores: how long its rounds take while one is stored, against the rest of the time, with
phos-ft as it is and without CAP_SYS_NICE, alternating. The job is spare_time.c. Needs root, cc, and what `cargo build` or
`cargo build --release` made. The figures are in docs/benchmarks.md.

    spare_time.py [PAIRS] [SECONDS] [MIB] [TARGET]     3 pairs of 80 s each, 1024 MiB of memory, target/debug
"""
import json
import os
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = Path(sys.argv[4]) if len(sys.argv) > 4 else HERE.parent / "target/debug"
EVERY = 30


def one(program, seconds, mib, without):
    here = Path(tempfile.mkdtemp(prefix="spare-time-", dir="/dev/shm"))
    common = ["--store", f"file://{here}/store", "--job", "spare", "--run-dir", str(here / "run"), "--state-dir", str(here / "state")]
    capabilities = ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"] if without else []
    with open(here / "phos.log", "wb") as log:
        process = subprocess.Popen(
            [*capabilities, TARGET / "phos-ft", "--interval", f"{EVERY}s", "--keep-last", "1", *common, "--", program, "job", str(mib), here / "rounds"],
            env={**os.environ, "PHOS_LOG": "info"}, stdout=log, stderr=log, cwd=here)
    try:
        until = time.monotonic() + seconds
        seen, stored = [], {}
        while time.monotonic() < until:
            time.sleep(0.05)
            if process.poll() is not None:
                raise RuntimeError((here / "phos.log").read_text(errors="replace")[-3000:])
            if not (here / "rounds").exists():
                continue
            rounds = struct.unpack("Q", (here / "rounds").read_bytes()[:8])[0]
            if rounds > (seen[-1][1] if seen else 0):
                seen.append((time.time() * 1000, rounds))
            if len(seen) % 20 == 0:
                said = subprocess.run([TARGET / "phos-ft", "status", "--json", *common], capture_output=True)
                last = json.loads(said.stdout)["last"] if said.returncode == 0 else None
                if last:
                    stored[last["id"]] = last
        inside, outside = [], []
        spans = [(c["held_at_ms"] + c["stop_ms"], c["held_at_ms"] + c["seconds"] * 1000) for c in stored.values()]
        for (t0, r0), (t1, r1) in zip(seen, seen[1:]):
            if any(a <= t0 and t1 <= b for a, b in spans):
                inside.append((t1 - t0, r1 - r0))
            elif not any(a - c["stop_ms"] - 1000 < t1 and t0 < b + 1000 for (a, b), c in zip(spans, stored.values())):
                outside.append((t1 - t0, r1 - r0))
        mean = lambda list: sum(t for t, _ in list) / sum(r for _, r in list)
        if not inside or not outside:
            raise RuntimeError(f"{stored}\n" + (here / "phos.log").read_text(errors="replace")[-3000:])
        return {"while_stored_ms": mean(inside), "else_ms": mean(outside), "ratio": mean(inside) / mean(outside),
                "stored_in_s": statistics.mean((b - a) / 1000 for a, b in spans), "stored_mib": statistics.mean(c["stored_bytes"] for c in stored.values()) / 2**20,
                "checkpoints": len(stored)}
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        subprocess.run(["pkill", "-9", "-f", str(here)], check=False)
        time.sleep(1)
        shutil.rmtree(here, ignore_errors=True)


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 80
    mib = int(sys.argv[3]) if len(sys.argv) > 3 else 1024
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "spare_time"
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, HERE / "spare_time.c"], check=True)
        found = {False: [], True: []}
        for pair in range(pairs):
            for without in (False, True) if pair % 2 == 0 else (True, False):
                result = one(program, seconds, mib, without)
                found[without].append(result)
                print("without CAP_SYS_NICE" if without else "as it is", json.dumps({k: round(v, 3) for k, v in result.items()}), flush=True)
    for what in ("ratio", "stored_in_s"):
        print(what, {("without CAP_SYS_NICE" if kind else "as it is"): round(statistics.median(r[what] for r in list), 3) for kind, list in found.items()})


if __name__ == "__main__":
    main()
