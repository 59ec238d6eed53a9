#!/usr/bin/env python3
"""Runs the commands of a page, line by line in one shell, and compares what they print with what the page says.

    tour.py PAGE

Blocks of `sh` are commands, each line one. A block of `text` right after one says lines that these printed, in this order, perhaps with
others in between: any number stands for any other, … for anything, and any space for any run of spaces. A command that fails ends the tour.
"""

import re
import subprocess
import sys

DONE = "@done@"


def blocks(page: str) -> list[tuple[str, list[str]]]:
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.M | re.S)
    return [(kind, text.splitlines()) for kind, text in found]


def pattern(line: str) -> re.Pattern[str]:
    parts = re.split(r"(…|\d+(?:\.\d+)?|\s+)", line.strip())
    kinds = {"…": ".*"}
    whole = ""
    for part in parts:
        if part in kinds:
            whole += kinds[part]
        elif re.fullmatch(r"\d+(?:\.\d+)?", part):
            whole += r"\d+(?:\.\d+)?"
        elif part.isspace():
            whole += r"\s*"
        else:
            whole += re.escape(part)
    return re.compile(rf"\s*{whole}\s*")


def main() -> int:
    page = open(sys.argv[1], encoding="utf-8").read()
    shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    printed: list[str] = []
    ran = 0
    for kind, lines in blocks(page):
        if kind == "sh":
            printed = []
            for command in lines:
                print(f"$ {command}", flush=True)
                # What a job in the background prints later is not this command's, and not compared.
                print(f"{command}\necho {DONE} $?", file=shell.stdin, flush=True)
                for line in shell.stdout:
                    if line.startswith(DONE):
                        break
                    print(line, end="", flush=True)
                    printed.append(line.rstrip("\n"))
                else:
                    print("tour: error: the shell ended", file=sys.stderr)
                    return 1
                if line.split()[1] != "0":
                    print(f"tour: error: {command!r} ended with {line.split()[1]}", file=sys.stderr)
                    return 1
                ran += 1
        elif kind == "text":
            left = iter(printed)
            for line in lines:
                if not any(pattern(line).fullmatch(candidate) for candidate in left):
                    print(f"tour: error: the page says {line!r}, which was not printed (there)", file=sys.stderr)
                    return 1
    print(f"tour: ok, {ran} commands", flush=True)
    return 0 if ran else 1


if __name__ == "__main__":
    sys.exit(main())
