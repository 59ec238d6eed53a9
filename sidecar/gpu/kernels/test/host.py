"""Compares the BLAKE3 kernel, run on the host, with the reference implementation; see host.cpp.

    host.py HARNESS DIGESTS    DIGESTS: the reference digests are written there, plain and keyed, for gpu.py on a machine
                               without PyPI
"""

import struct
import subprocess
import sys

import blake3

from cases import KEY, PLAIN, chunks, keyed


def main() -> None:
    data = chunks()
    stream = b"".join(struct.pack("<Q", len(c)) + c for c in data)
    plain = [blake3.blake3(c).digest() for c in data]
    with_key = [blake3.blake3(c, key=KEY).digest() for c in data]
    for what, key, want in [("plain", PLAIN, plain), ("keyed", keyed(KEY), with_key)]:
        output = subprocess.run([sys.argv[1]], input=key + stream, stdout=subprocess.PIPE, check=True).stdout
        if len(output) != 32 * len(data):
            sys.exit(f"{len(output)} bytes of {what} digests for {len(data)} chunks")
        wrong = [len(c) for i, c in enumerate(data) if output[32 * i : 32 * i + 32] != want[i]]
        if wrong:
            sys.exit(f"{what} digests differ for lengths {wrong}")
    # More than a chunk is refused with zeros.
    too_long = bytes((1 << 20) + 1)
    refused = subprocess.run([sys.argv[1]], input=PLAIN + struct.pack("<Q", len(too_long)) + too_long, stdout=subprocess.PIPE, check=True)
    if refused.stdout != bytes(32):
        sys.exit("a chunk above 1 MiB got a digest")
    with open(sys.argv[2], "w") as f:
        f.writelines(d.hex() + "\n" for d in plain + with_key)
    print(f"kernel-test: {len(data)} chunks, plain and keyed digests equal to the reference")


if __name__ == "__main__":
    main()
