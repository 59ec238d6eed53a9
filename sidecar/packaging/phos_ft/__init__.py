"""phos-ft as a Python package: the program, its shim for the job, and its CRIU.

The package brings the command ``phos-ft``. A training job needs nothing from here: it is checkpointed as it is.
"""

from pathlib import Path

__all__ = ["PROGRAM", "__version__"]

__version__ = "@VERSION@"

#: The program.
PROGRAM = Path(__file__).parent / "dist" / "bin" / "phos-ft"
