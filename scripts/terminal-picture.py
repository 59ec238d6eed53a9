#!/usr/bin/env python3
"""Draws what stands on a terminal: terminal-picture.py OUTPUT PICTURE

OUTPUT is what a program wrote to a terminal of 120 columns and 40 rows, PICTURE an SVG. Needs pyte, which `make screenshots` installs.
"""
import sys
from html import escape
from pathlib import Path

import pyte

COLUMNS, ROWS, WIDE, HIGH = 120, 40, 8.4, 18
COLORS = {"default": None, "black": "#3b4252", "red": "#ff7b72", "green": "#56d364", "brown": "#e3b341", "blue": "#79c0ff", "magenta": "#d2a8ff",
          "cyan": "#76e3ea", "white": "#e6edf3", "brightblack": "#8b949e"}


def color(name, default):
    if name in COLORS:
        return COLORS[name] or default
    return f"#{name}" if len(name) == 6 and all(c in "0123456789abcdef" for c in name) else COLORS.get(name.removeprefix("bright"), default) or default


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(screen)
    stream.feed(Path(sys.argv[1]).read_text(errors="replace"))
    used = [y for y in range(ROWS) if any(screen.buffer[y][x].data.strip() for x in range(COLUMNS))]
    parts = []
    for y in range(used[-1] + 1 if used else 0):
        x = 0
        while x < COLUMNS:
            cell, begin = screen.buffer[y][x], x
            look = lambda c: (c.fg, c.bg, c.bold, c.reverse)
            while x < COLUMNS and look(screen.buffer[y][x]) == look(cell):
                x += 1
            text = "".join(screen.buffer[y][i].data for i in range(begin, x))
            fore, back = color(cell.fg, "#e6edf3"), color(cell.bg, "#0d1117")
            if cell.reverse:
                fore, back = back, fore
            if back != "#0d1117":
                parts.append(f'<rect x="{begin * WIDE:.1f}" y="{y * HIGH}" width="{(x - begin) * WIDE:.1f}" height="{HIGH}" fill="{back}"/>')
            if text.strip():
                bold = ' font-weight="700"' if cell.bold else ""
                parts.append(f'<text x="{begin * WIDE:.1f}" y="{y * HIGH + 14}" textLength="{len(text) * WIDE:.1f}" fill="{fore}"{bold} xml:space="preserve">{escape(text)}</text>')
    width, height = COLUMNS * WIDE + 24, (used[-1] + 1 if used else 1) * HIGH + 24
    Path(sys.argv[2]).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -12 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="14">\n'
        f'<rect x="-12" y="-12" width="{width:.0f}" height="{height:.0f}" rx="8" fill="#0d1117"/>\n' + "\n".join(parts) + "\n</svg>\n")


if __name__ == "__main__":
    main()
