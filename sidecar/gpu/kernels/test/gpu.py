"""Runs the committed blake3.ptx on a real GPU: digests against those host.py wrote, then the rate.

    gpu.py PTX DIGESTS     needs Python and libcuda.so.1 only
"""

import ctypes
import struct
import sys

from cases import KEY, MIB, PLAIN, chunks, keyed

cuda = ctypes.CDLL("libcuda.so.1")
u64 = ctypes.c_uint64


def check(code: int, what: str) -> None:
    if code != 0:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(code, ctypes.byref(name))
        sys.exit(f"{what}: {name.value.decode() if name.value else code}")


def alloc(size: int) -> int:
    address = u64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), "cuMemAlloc")
    return address.value


def upload(address: int, data: bytes) -> None:
    if data:
        check(cuda.cuMemcpyHtoD_v2(u64(address), data, ctypes.c_size_t(len(data))), "cuMemcpyHtoD")


def launch(function: ctypes.c_void_p, descs: int, digests: int, count: int, key: bytes) -> None:
    values = [u64(descs), u64(digests), ctypes.c_uint32(count), (ctypes.c_char * 36).from_buffer_copy(key)]
    arguments = (ctypes.c_void_p * 4)(*[ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values])
    check(cuda.cuLaunchKernel(function, count, 1, 1, 256, 1, 1, 0, None, arguments, None), "cuLaunchKernel")


def main() -> None:
    check(cuda.cuInit(0), "cuInit")
    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    with open(sys.argv[1], "rb") as f:
        check(cuda.cuModuleLoadData(ctypes.byref(module), f.read() + b"\0"), "cuModuleLoadData")
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"phos_blake3_chunks"), "cuModuleGetFunction")
    for name, attribute in [("registers", 4), ("local bytes", 3), ("shared bytes", 1)]:
        value = ctypes.c_int()
        check(cuda.cuFuncGetAttribute(ctypes.byref(value), attribute, function), "cuFuncGetAttribute")
        print(f"{name}: {value.value}")

    data = chunks()
    with open(sys.argv[2]) as f:
        want = f.read().split()
    # One allocation, every chunk 16-byte aligned and no more.
    offsets, size = [], 0
    for chunk in data:
        offsets.append(size)
        size += (len(chunk) + 15) // 16 * 16
    base = alloc(size + 16)
    for offset, chunk in zip(offsets, data):
        upload(base + offset, chunk)
    descs = alloc(16 * len(data))
    upload(descs, b"".join(struct.pack("<QQ", base + o, len(c)) for o, c in zip(offsets, data)))
    digests = alloc(32 * len(data))
    modes = [("plain", PLAIN), ("keyed", keyed(KEY))]
    failed = False
    for number, (what, key) in enumerate(modes):
        launch(function, descs, digests, len(data), key)
        output = ctypes.create_string_buffer(32 * len(data))
        check(cuda.cuMemcpyDtoH_v2(output, u64(digests), ctypes.c_size_t(32 * len(data))), "cuMemcpyDtoH")
        right = want[number * len(data) :]
        wrong = [len(c) for i, c in enumerate(data) if output.raw[32 * i : 32 * i + 32].hex() != right[i]]
        failed |= bool(wrong)
        more = f", wrong for lengths {wrong}" if wrong else ""
        print(f"{what} digests: {len(data) - len(wrong)} of {len(data)} right{more}")

    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
    count = min(32 << 10, int(free.value * 0.8) // MIB)
    large = alloc(count * MIB)
    check(cuda.cuMemsetD32_v2(u64(large), ctypes.c_uint32(0x9E3779B9), ctypes.c_size_t(count * MIB // 4)), "cuMemsetD32")
    start, stop = ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuEventCreate(ctypes.byref(start), 0), "cuEventCreate")
    check(cuda.cuEventCreate(ctypes.byref(stop), 0), "cuEventCreate")
    for length, what in [(MIB, "1 MiB"), (MIB - 16, "1 MiB - 16")]:
        descs, digests = alloc(16 * count), alloc(32 * count)
        upload(descs, b"".join(struct.pack("<QQ", large + i * MIB, length) for i in range(count)))
        for mode, key in modes:
            best = float("inf")
            for _ in range(5):
                check(cuda.cuEventRecord(start, None), "cuEventRecord")
                launch(function, descs, digests, count, key)
                check(cuda.cuEventRecord(stop, None), "cuEventRecord")
                check(cuda.cuEventSynchronize(stop), "cuEventSynchronize")
                ms = ctypes.c_float()
                check(cuda.cuEventElapsedTime(ctypes.byref(ms), start, stop), "cuEventElapsedTime")
                best = min(best, ms.value)
            print(f"rate, {count} chunks of {what}, {mode}: {count * length / best / 1e6:.0f} GB/s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
