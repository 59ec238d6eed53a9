"""What every program of the soak test does for its trace: a line `step bits` for each step in a file that it appends to, and an
end after so many steps, or at the step at which the file $FINISH is there. Knows nothing of phos-ft.

    PROGRAM LOG STEPS
"""
import os
import struct
import sys

LOG, STEPS = sys.argv[1], int(sys.argv[2])
FINISH = os.environ.get("FINISH", "")
# "cpu" to try a program out where there is no GPU.
DEVICE = os.environ.get("SOAK_DEVICE", "cuda")


def bits(value):
    return "%08x" % struct.unpack("<I", struct.pack("<f", float(value)))


class Record:
    def __init__(self):
        # A line is a write.
        self.file = open(LOG, "a", buffering=1)
        self.done = 0

    def step(self, value):
        """The next step is done; whether there is another."""
        self.file.write("%d %s\n" % (self.done, value if isinstance(value, str) else bits(value)))
        self.done += 1
        return self.done < STEPS and not (FINISH and os.path.exists(FINISH))
