#!/usr/bin/env python3
"""Makes the drawings of docs/drawings: the processes, a checkpoint's timeline, a store.

    scripts/drawings.py           writes them
    scripts/drawings.py --check   ends with 1 if one is not what this makes

The times of the timeline are those of a checkpoint of the 39 GB job on an H100 (`h200.py ranks39`, 3283198); the rest is drawn by hand.
"""
import sys
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs/drawings"

STYLE = """
  svg { --ink: #1c2330; --soft: #5b6677; --line: #b8c0cc; --page: #ffffff; --one: #dbe9ff; --two: #dff3e4; --three: #fdecd2; --four: #f3e0f5; background: var(--page); }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6eaf0; --soft: #a3adbb; --line: #4a5463; --page: #14181f; --one: #1f3354; --two: #1d3d2a; --three: #4a371b; --four: #40264a; }
  }
  text { font: 14px system-ui, sans-serif; fill: var(--ink); }
  .soft { fill: var(--soft); font-size: 12.5px; }
  .head { font-weight: 600; }
  .box { stroke: var(--line); stroke-width: 1.2; }
  .one { fill: var(--one); } .two { fill: var(--two); } .three { fill: var(--three); } .four { fill: var(--four); } .none { fill: none; }
  .arrow, .rule { stroke: var(--soft); stroke-width: 1.4; fill: none; }
  .rule { stroke-dasharray: 3 4; }
  .tip { fill: var(--soft); }
"""


class Drawing:
    def __init__(self, width, height, title, words):
        self.width, self.height, self.title, self.words, self.parts = width, height, title, words, []

    def box(self, x, y, width, height, kind, *lines):
        self.parts.append(f'<rect class="box {kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>')
        for i, line in enumerate(lines):
            self.text(x + 12, y + 22 + 18 * i, line, "head" if i == 0 else "soft")

    def text(self, x, y, words, kind="", anchor="start"):
        self.parts.append(f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>')

    def arrow(self, x1, y1, x2, y2, words="", both=False):
        marks = ' marker-end="url(#tip)"' + (' marker-start="url(#tip)"' if both else "")
        self.parts.append(f'<path class="arrow" d="M{x1} {y1} L{x2} {y2}"{marks}/>')
        if words:
            self.text((x1 + x2) / 2 + (6 if x1 == x2 else 0), (y1 + y2) / 2 - 6, words, "soft", "start" if x1 == x2 else "middle")

    def rule(self, x1, y1, x2, y2):
        self.parts.append(f'<path class="rule" d="M{x1} {y1} L{x2} {y2}"/>')

    def svg(self):
        body = "\n".join(self.parts)
        return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}" role="img" aria-labelledby="title words">
<title id="title">{escape(self.title)}</title>
<desc id="words">{escape(self.words)}</desc>
<style>{STYLE}</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>
{body}
</svg>
"""


def processes():
    d = Drawing(870, 390, "The processes of phos-ft",
                "The trainer with the shim in it talks to the agent, which is process 1 of the job's namespace and holds the job's GPU memory. The agent talks to the sidecar, "
                "which reads that memory and writes checkpoints to the store.")
    d.box(20, 50, 470, 320, "none", "PID namespace of the job")
    d.box(40, 90, 430, 110, "one", "trainer, and all that it starts", "unmodified program; libcuda behind the shim",
          "shim: the gate that holds new work, the table of allocations", "owns its address space and the driver's control state")
    d.box(40, 250, 430, 100, "two", "agent: phos-ft run -- CMD", "PID 1; the vault holds an fd for each allocation,",
          "so GPU memory outlives the trainer; runs CRIU", "and the driver's checkpoint calls; resumes alone")
    d.arrow(240, 202, 240, 246, "fds of GPU memory, unix socket", both=True)
    d.box(560, 250, 290, 100, "three", "sidecar: phos-ft --interval 60s", "imports the same memory, digests it on", "the GPU, drains what changed, encodes;", "policies; may die at any time")
    d.arrow(474, 300, 556, 300, "fds", both=True)
    d.box(560, 90, 290, 100, "four", "store: S3, GCS, Azure, a directory", "packs of chunks, manifests, and the log", "that says who has the job; what another", "machine needs to resume it")
    d.arrow(700, 246, 700, 194, "PUT")
    d.text(20, 28, "One machine", "head")
    return d.svg()


# A 39 GB job on one H100, ms from the first gate that closes; after the stop not to scale.
STOP = {"quiesce": (0, 19), "import, name": (19, 50), "snapshot, drain": (50, 416), "detach": (19, 51), "control_checkpoint": (51, 491), "criu": (491, 1001),
        "control_restore": (1001, 1484), "attach": (1484, 1542)}


def checkpoint():
    left, scale, stop = 150, 0.34, 1542
    d = Drawing(960, 330, "A checkpoint of a 39 GB job on an H100",
                "The job is held for 1.54 seconds. The agent detaches the memory, has the driver save control state, runs CRIU, has control state restored and attaches the memory. "
                "Beside that, the sidecar names all memory and drains a part of it. The rest is drained, encoded and stored while the job trains.")
    x = lambda ms: left + ms * scale
    for at in (0, 500, 1000, 1500):
        d.rule(x(at), 44, x(at), 270)
        d.text(x(at), 38, f"{at} ms", "soft", "middle")
    after = x(stop)
    d.rule(after, 44, after, 300)
    rows = {"job": 52, "agent": 102, "sidecar": 162, "store": 222}
    for name, y in rows.items():
        d.text(20, y + 22, name, "head")
    d.box(x(-60), rows["job"], 60 * scale, 34, "one")
    d.box(x(0), rows["job"], stop * scale, 34, "none", "held: 1.54 s")
    d.box(after, rows["job"], 260, 34, "one", "trains on")
    labels = {"detach": "", "control_checkpoint": "driver saves state", "criu": "CRIU: CPU side", "control_restore": "driver restores it", "attach": ""}
    for name, label in labels.items():
        begins, ends = STOP[name]
        lines = [label] if label else []
        d.box(round(x(begins), 1), rows["agent"], round((ends - begins) * scale, 1), 34, "two", *lines)
    d.text(x(37), rows["agent"] + 50, "detach", "soft", "middle")
    d.text(x(1513), rows["agent"] + 50, "attach", "soft", "middle")
    for name, label in {"quiesce": "", "import, name": "", "snapshot, drain": "snapshot, drain"}.items():
        begins, ends = STOP[name]
        d.box(round(x(begins), 1), rows["sidecar"], round((ends - begins) * scale, 1), 34, "three", *([label] if label else []))
    d.text(x(40), rows["sidecar"] + 50, "quiesce, name by BLAKE3", "soft", "middle")
    d.box(after, rows["sidecar"], 200, 34, "three", "drain what is left")
    d.box(after + 30, rows["store"], 230, 34, "four", "packs, manifest, log record")
    d.text(after + 260, rows["store"] + 56, "visible: it can be resumed", "soft", "end")
    d.text(20, 316, "Held times to scale; what follows takes seconds, at a lower priority than the job.", "soft")
    return d.svg()


def store():
    d = Drawing(1000, 330, "What a store contains",
                "The job's log has numbered records, each of which names a manifest. A manifest describes a whole checkpoint as a list of chunks. Chunks lie in packs, which several manifests share.")
    left, wide = 170, 164
    for y, head, words in ((46, "log", ("records by number,", "each written once")), (146, "manifests", ("a whole checkpoint", "each, by names")), (254, "packs", ("chunks, each", "stored once"))):
        d.text(20, y + 14, head, "head")
        for i, line in enumerate(words):
            d.text(20, y + 34 + 17 * i, line, "soft")
    for i, (head, words) in enumerate([("1 take-over", "machine a"), ("2 checkpoint", "epoch 1"), ("3 checkpoint", "epoch 1"), ("4 take-over", "machine b"), ("5 checkpoint", "epoch 4")]):
        d.box(left + wide * i, 42, 148, 52, "four" if "take" in head else "two", head, words)
    middles = {}
    for number, column in ((2, 1), (3, 2), (5, 4)):
        at = left + wide * column
        d.box(at, 142, 148, 52, "one", f"manifest {number}", "names of all chunks")
        middles[number] = at + 74
        d.arrow(at + 74, 96, at + 74, 138)
    packs = [left + wide // 2 + wide * i for i in range(4)]
    for name, at in zip("abcd", packs):
        d.box(at, 250, 148, 60, "three", f"pack {name}", "chunks, index")
    for number, reads in ((2, (0, 1)), (3, (0, 1, 2)), (5, (1, 2, 3))):
        for pack in reads:
            d.arrow(middles[number], 196, packs[pack] + 74, 246)
    return d.svg()


def main():
    drawings = {"processes.svg": processes(), "checkpoint.svg": checkpoint(), "store.svg": store()}
    if sys.argv[1:] == ["--check"]:
        wrong = [name for name, text in drawings.items() if not (FOLDER / name).is_file() or (FOLDER / name).read_text() != text]
        if wrong:
            sys.exit(f"drawings: error: {', '.join(wrong)} in docs/drawings: run scripts/drawings.py")
        return
    FOLDER.mkdir(exist_ok=True)
    for name, text in drawings.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
