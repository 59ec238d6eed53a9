"""The command ``phos-ft``, also as ``python -m phos_ft``: becomes the program, so that signals and exit codes are the program's own."""

import os
import sys

from . import PROGRAM


def main() -> None:
    try:
        os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"phos-ft: {PROGRAM} cannot be run: {error.strerror}; install the package again, on Linux for x86-64")


if __name__ == "__main__":
    main()
