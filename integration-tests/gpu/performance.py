#!/usr/bin/env python3
"""What failures cost a job, from what was measured: the table and the plots of docs/performance.md.

    performance.py           writes them
    performance.py --check   fails if they are not what the results say

The model is that of policies/src/interval.rs: with a checkpoint every T seconds that costs C, that can be resumed from K seconds after its quiet
point (K includes the restore), and failures every M on average, a job loses 1 - (1 - C/T) * (1 - (T/2 + K)/M) of its time, least at
T = sqrt(2 * C * (M - K)).
"""
import json
import math
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs"
RESULTS = json.loads((HERE / "results/h200.json").read_text())
# Share of its speed that a job is assumed to lose while an image leaves beside it (policies/src/interval.rs).
SLOWDOWN = 0.02
# What PhoenixOS publishes for a job of 72 GB (Wei et al., SOSP 2025).
PHOENIX_STOP_S = 0.185
FAILURES = [("7.5 min", 450), ("30 min", 1800), ("1 h", 3600), ("3 h", 3 * 3600), ("12 h", 12 * 3600), ("1 day", 86400)]
BEGIN, END = "<!-- performance.py -->\n", "<!-- end -->\n"


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


class System:
    def __init__(self, name, checkpoint, latency, restore, colour, dash=""):
        self.name, self.c, self.latency, self.k, self.colour, self.dash = name, checkpoint, latency, latency + restore, colour, dash

    def best(self, m):
        return max(math.sqrt(2 * self.c * max(m - self.k, 0)), self.latency)

    def lost(self, t, m):
        return min(1, max(0, 1 - max(0, 1 - self.c / t) * max(0, 1 - (t / 2 + self.k) / m)))


def systems():
    run = RESULTS["again_on_78f0b07"]
    stop = median([c["stop_us"] / 1e6 for c in run["checkpoints_39gb"]])
    stored = median(run["stored_after_s"])
    restore = RESULTS["restores"]["now"]["resume_from_store_s"]
    peer = RESULTS["peer_stop_ms_39gb"] / 1e3
    return [
        System("phos-ft", stop + SLOWDOWN * (stored - stop), stored, restore, "#1b6ca8"),
        # Stored when the stop is over; its restores are taken to be as quick as ours.
        System("the driver's calls and CRIU", peer, peer, restore, "#b3541e"),
        System("PhoenixOS's published stop, the rest as phos-ft", PHOENIX_STOP_S + SLOWDOWN * (stored - PHOENIX_STOP_S), stored, restore,
               "#4a7c3a", "6 4"),
    ]


def table(of):
    rows = ["| a failure every | " + " | ".join(f"{s.name}: interval, time lost" for s in of) + " |", "|---|" + "---|" * len(of)]
    for name, m in FAILURES:
        cells = [f"{s.best(m):.0f} s, {100 * s.lost(s.best(m), m):.1f} %" if s.best(m) > s.c else "no interval helps" for s in of]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    ours = of[0]
    rows.append("")
    rows.append(f"A checkpoint of the 39 GB job costs {ours.c:.2f} s with phos-ft and {of[1].c:.1f} s with the driver's calls and CRIU.")
    return "\n".join(rows) + "\n"


def plot(title, x_title, curves, x_ticks, y_ticks):
    """Curves are (name, colour, dash, [(x, y)]); x is drawn by its logarithm. Ticks are (value, words)."""
    w, h, left, top, right, bottom = 720, 380, 64, 40, 28, 56
    lo, hi = math.log(x_ticks[0][0]), math.log(x_ticks[-1][0])
    most = y_ticks[-1][0]
    x = lambda v: left + (math.log(v) - lo) / (hi - lo) * (w - left - right)
    y = lambda v: h - bottom - min(v, most) / most * (h - top - bottom)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" font-family="sans-serif" font-size="12">',
           f'<rect width="{w}" height="{h}" fill="white"/>', f'<text x="{left}" y="22" font-size="14">{title}</text>']
    for v, words in x_ticks:
        out.append(f'<path d="M{x(v):.1f} {top}V{h - bottom}" stroke="#ddd"/><text x="{x(v):.1f}" y="{h - bottom + 16}" text-anchor="middle">{words}</text>')
    for v, words in y_ticks:
        out.append(f'<path d="M{left} {y(v):.1f}H{w - right}" stroke="#ddd"/><text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{words}</text>')
    out.append(f'<text x="{(left + w - right) / 2:.0f}" y="{h - 12}" text-anchor="middle">{x_title}</text>')
    for n, (name, colour, dash, points) in enumerate(curves):
        path = "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>')
        at = top + 16 + 18 * n
        out.append(f'<path d="M{w - 330} {at - 4}h24" stroke="{colour}" stroke-width="2"{dashed}/><text x="{w - 300}" y="{at}">{name}</text>')
    return "\n".join(out) + "\n</svg>\n"


def steps(low, high, n=200):
    return [math.exp(math.log(low) + (math.log(high) - math.log(low)) * i / n) for i in range(n + 1)]


def made():
    of = systems()
    share = [(v / 100, f"{v} %") for v in range(0, 61, 10)]
    by_rate = [(s.name, s.colour, s.dash, [(m, s.lost(s.best(m), m)) for m in steps(450, 86400) if s.best(m) > s.c]) for s in of]
    # No two checkpoints are under way at a time, so none comes sooner than the one before is stored.
    by_interval = [(s.name, s.colour, s.dash, [(t, s.lost(t, 3600)) for t in steps(5, 3600) if t >= s.latency and s.lost(t, 3600) <= 0.6])
                   for s in of]
    intervals = [(5, "5 s"), (20, "20 s"), (60, "1 min"), (300, "5 min"), (1200, "20 min"), (3600, "1 h")]
    doc = (DOCS / "performance.md").read_text()
    before, rest = doc.split(BEGIN)
    after = rest.split(END)[1]
    return {
        DOCS / "performance-failures.svg": plot("Time lost at the best interval, 39 GB", "time between failures", by_rate,
                                                [(s, n) for n, s in FAILURES], share),
        DOCS / "performance-interval.svg": plot("Time lost with a failure every hour, 39 GB", "interval between checkpoints", by_interval,
                                                intervals, share),
        DOCS / "performance.md": before + BEGIN + table(of) + END + after,
    }


def main():
    check = sys.argv[1:] == ["--check"]
    stale = [path for path, text in made().items() if not path.exists() or path.read_text() != text]
    if check and stale:
        sys.exit(f"performance: {', '.join(p.name for p in stale)} is not what the results say: run integration-tests/gpu/performance.py")
    if not check:
        for path, text in made().items():
            path.write_text(text)


main()
