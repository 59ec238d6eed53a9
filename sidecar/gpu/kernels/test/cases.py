"""The chunks the BLAKE3 kernel is tested with: every class of length, by the standard library alone."""

import random
import struct

MIB = 1 << 20
KEY = bytes(range(100, 132))
# The kernel's Key without one: BLAKE3's initialisation vector, no flag.
PLAIN = struct.pack("<9I", 0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19, 0)


def keyed(key: bytes) -> bytes:
    """The kernel's Key for a key of 32 bytes."""
    return key + struct.pack("<I", 16)


def lengths() -> list[int]:
    edges = [0, 1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 60, 61, 63, 64, 65, 127, 128, 129, 960, 961, 1023, 1024, 1025, 1087, 1088, 1089]
    # Trees of 2 to 9 leaves and around powers of two: whole, one byte less and one byte more.
    for leaves in [2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 258, 259,
                   511, 512, 513, 767, 768, 769, 1022, 1023, 1024]:
        edges += [n for n in (leaves * 1024 - 1, leaves * 1024, leaves * 1024 + 1) if n <= MIB]
    rng = random.Random(20)
    edges += [rng.randrange(0, 8192) for _ in range(40)]
    edges += [rng.randrange(0, MIB + 1) for _ in range(12)]
    return sorted(set(edges)) + [MIB, MIB]


def chunks() -> list[bytes]:
    """Random bytes, then all zeros and all ones for the largest size (fresh GPU memory, and its opposite)."""
    rng = random.Random(7)
    result = [rng.randbytes(n) for n in lengths()]
    result[-2] = bytes(MIB)
    result[-1] = b"\xff" * MIB
    return result
