#!/usr/bin/env python3
"""A job that gives phos-ft hints: hinting.py LOG ORDERS

It makes small steps on the GPU, through the driver's own interface, and tells each. Of each it writes a line to LOG, and one for what the step before took if that was long,
as when the job was away meanwhile: whether the time went by inside of the hint or outside. A file in the folder ORDERS has it do something once.
"""
import contextlib
import ctypes
import os
import sys
import time

import phos_ft

LONG_S = 1.5


class Number:
    """A number of another kind, as those of arrays and tensors are."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Cuda:
    """A little work on the first GPU."""

    BYTES = 1 << 20

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        device, context, self.memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuMemAlloc_v2", ctypes.byref(self.memory), ctypes.c_size_t(self.BYTES))

    def call(self, name, *arguments):
        result = getattr(self.driver, name)(*arguments)
        if result:
            raise RuntimeError(f"{name}: {result}")

    def work(self, number):
        self.call("cuMemsetD8Async", self.memory, ctypes.c_ubyte(number % 256), ctypes.c_size_t(self.BYTES), None)

    def content(self):
        first = ctypes.c_ubyte()
        self.call("cuMemcpyDtoH_v2", ctypes.byref(first), self.memory, ctypes.c_size_t(1))
        return first.value


def main():
    path, orders = sys.argv[1:]
    with open(path, "a", buffering=1) as log:
        run(log, orders)


def run(log, orders):
    cuda, sections, hints, number = Cuda(), contextlib.ExitStack(), True, 0
    ended = time.time()
    while True:
        number += 1
        cuda.work(number)
        time.sleep(0.01)
        began = time.time()
        if hints:
            phos_ft.step(Number(number))
        outside, inside, ended = began - ended, time.time() - began, time.time()
        if max(outside, inside) > LONG_S:
            log.write(f"away {'inside' if inside > outside else 'outside'} {number}\n")
        log.write(f"step {number}\n")
        if cuda.content() != number % 256:
            raise RuntimeError(f"step {number}: the GPU's memory holds something else")
        for order in os.listdir(orders):
            os.remove(os.path.join(orders, order))
            if order == "finish":
                return
            if order == "quiet":
                hints = False
            elif order == "begin":
                sections.enter_context(phos_ft.no_checkpoint())
            elif order == "end":
                sections.close()
            elif order == "ask":
                log.write(f"ask {phos_ft.checkpoint()}\n")
            elif order == "wait":
                log.write(f"wait {phos_ft.checkpoint(wait=60)}\n")
            elif order == "last":
                log.write(f"last {phos_ft.last()}\n")
            log.write(f"done {order}\n")


if __name__ == "__main__":
    main()
