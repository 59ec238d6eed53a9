"""A job under phos-ft on a GPU machine: started, watched, killed and lost. What the GPU tests share.

Needs what `make gpubundle` makes: `bin/` with phos-ft, its shim and programs of ours, and `criu/`. PHOS_BUNDLE names it if it
lies elsewhere.
"""
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUNDLE = Path(os.environ.get("PHOS_BUNDLE", HERE.parent.parent / ".build/gpu-bundle"))
PHOS = Path(os.environ.get("PHOS_FT", BUNDLE / "bin/phos-ft"))
CRIU = Path(os.environ.get("PHOS_CRIU", BUNDLE / "criu/criu"))
OUT = Path(os.environ.get("OUT", "."))
START = time.monotonic()


def say(*words):
    print("[%7.1f s]" % (time.monotonic() - START), *words, flush=True)


def wait_for(what, limit, condition, pause=0.02):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(pause)
    raise RuntimeError(f"gave up after {limit:.0f} s waiting for {what}")


def lines(path):
    """The words of each line that is whole."""
    try:
        return [l.split() for l in Path(path).read_text().split("\n")[:-1] if " " in l]
    except FileNotFoundError:
        return []


def trace(path):
    return {int(l[0]): l[1] for l in lines(path)}


def commit():
    """What the bundle was built from; without a bundle, what is checked out."""
    told = BUNDLE / "commit"
    if told.exists():
        return told.read_text().strip()
    return subprocess.run(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()


def driver_version():
    # A line for each GPU.
    return subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                          capture_output=True, text=True).stdout.strip().split("\n")[0]


class Job:
    """One job under phos-ft, in a directory of its own. `program` is its command line; it appends a line for each step to
    the file `log`."""

    def __init__(self, directory, name, program, store, interval="1h", env=None, flags=()):
        self.name, self.store, self.program = name, store, program
        self.dir = Path(directory)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.log = self.dir / "loss.log"
        self.interval, self.flags = interval, list(flags)
        self.env = dict(os.environ, **(env or {}))
        self.process = None
        self.run_dir = self.dir / "run"
        self.within = []
        self.phos = str(PHOS)

    def base(self):
        return ["--store", self.store, "--job", self.name, "--run-dir", str(self.run_dir),
                "--state-dir", str(self.dir / "state")]

    def start(self):
        self.output = open(self.dir / "phos.log", "ab")
        self.process = subprocess.Popen(
            [*self.within, self.phos, "--interval", self.interval, *self.base(), "--criu", str(CRIU), *self.flags,
             "--", *self.program],
            stdout=self.output, stderr=self.output, stdin=subprocess.DEVNULL, env=self.env, cwd=self.dir)
        return self

    def plain(self):
        """The same program without phos-ft."""
        self.output = open(self.dir / "plain.log", "ab")
        self.process = subprocess.Popen([*self.within, *self.program], stdout=self.output, stderr=self.output,
                                        stdin=subprocess.DEVNULL, env=self.env, cwd=self.dir)
        return self

    def tail(self, n=25):
        text = b"".join(p.read_bytes() for p in self.dir.glob("*.log") if p != self.log)
        return "\n".join(text.decode(errors="replace").splitlines()[-n:])

    def alive(self):
        if self.process.poll() not in (None, 0):
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
        return True

    def step(self, n, limit=120):
        def there():
            if len(lines(self.log)) > n:
                return True
            self.alive()
            if self.process.poll() == 0:
                raise RuntimeError(f"{self.name} ended before step {n}")
            return False

        wait_for(f"{self.name}: step {n}", limit, there)

    def end(self, limit=300):
        self.process.wait(limit)
        self.alive()

    def call(self, *args, limit=300):
        done = subprocess.run([str(PHOS), *args, *self.base()], capture_output=True, text=True,
                              timeout=limit, env=self.env)
        if done.returncode:
            raise RuntimeError(f"phos-ft {args} failed: {done.stderr}\n{self.tail()}")
        return json.loads(done.stdout)

    def checkpoint(self):
        try:
            return self.call("checkpoint", "--json")
        except RuntimeError as e:
            # A compile worker, say: the next one has it.
            if "began to use a device" not in str(e):
                raise
            say("a second try:", str(e)[:300])
            return self.call("checkpoint", "--json")

    def list(self):
        return self.call("list", "--json")["checkpoints"]

    def pids(self, word):
        found = []
        for p in Path("/proc").glob("[0-9]*"):
            try:
                line = (p / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            # With the slash: the name of another job may begin with this one's.
            if word in line and f"{self.dir}/" in line and int(p.name) != os.getpid():
                found.append((int(p.name), line))
        return found

    def trainers(self):
        return [pid for pid, line in self.pids(str(self.log)) if "phos-ft" not in line.split(" ")[0]]

    def resumes(self):
        return (self.dir / "phos.log").read_text(errors="replace").count("the job was restored")

    def goes_on(self, resumes, limit=180):
        """Waits until the job, restored once more than `resumes` times, has finished a step."""
        wait_for("the job to be restored", limit, lambda: self.alive() and self.resumes() > resumes)
        self.step(len(lines(self.log)), limit)

    def kill_job(self):
        old = self.trainers()
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        return wait_for("the job to come back", 180, lambda: self.alive() and [
            p for p in self.trainers() if p not in old])

    def kill_all(self, limit=30):
        if self.process is None:
            return
        end = time.monotonic() + limit
        while time.monotonic() < end:
            pids = [pid for pid, _ in self.pids("")]
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.process.poll()
            if not pids:
                return
            time.sleep(0.1)

    def lose_machine(self):
        """All is killed, and what phos-ft had here is gone, and the job's log."""
        self.kill_all()
        for part in ("run", "state"):
            shutil.rmtree(self.dir / part, ignore_errors=True)
        self.log.unlink()

    def clean(self):
        self.kill_all()
        shutil.rmtree(self.dir, ignore_errors=True)
