// Enough of CUDA C to compile a .cu file with a C++ compiler and run it on the host: every CUDA thread is a fiber.
//
// The fibers of a block run one after another, each up to its next __syncthreads, in ascending, descending or shuffled
// order: a missing barrier shows as a result that depends on the order. Include this, then the .cu file.
#pragma once
#define PHOS_HOST_TEST 1
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

struct Dim3 {
    uint32_t x = 1, y = 1;
};
struct uint4 {
    uint32_t x, y, z, w;
};
static Dim3 threadIdx, blockIdx, blockDim, gridDim;

// The alignment that the GPU's loads require is checked; the host's would forgive.
template <class T> static T __ldg(const T *p) {
    if ((uintptr_t)p % sizeof(T) != 0) {
        fprintf(stderr, "misaligned load of %zu bytes at %p\n", sizeof(T), (const void *)p);
        abort();
    }
    return *p;
}

static inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
    return (uint32_t)(((uint64_t)high << 32 | low) >> (shift & 31));
}

namespace host {

enum Order { ASCENDING, DESCENDING, SHUFFLED, ORDERS };

constexpr size_t STACK = 128 * 1024;
struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    Dim3 index;
    bool finished;
};
static ucontext_t scheduler;
static std::vector<Fiber> fibers;
static uint32_t current;
static std::function<void()> body;

static void run_fiber() {
    body();
    fibers[current].finished = true;
    swapcontext(&fibers[current].context, &scheduler);
}

static void barrier() {
    uint32_t self = current;
    swapcontext(&fibers[self].context, &scheduler);
}

// Runs `kernel` (which calls the entry with its arguments) for every thread of the launch.
static void launch(Dim3 grid, Dim3 block, Order order, std::function<void()> kernel) {
    body = std::move(kernel);
    gridDim = grid;
    blockDim = block;
    const uint32_t count = block.x * block.y;
    if (fibers.size() < count) fibers.resize(count);
    for (uint32_t b = 0; b < grid.x * grid.y; b++) {
        blockIdx.x = b % grid.x;
        blockIdx.y = b / grid.x;
        for (uint32_t i = 0; i < count; i++) {
            Fiber &fiber = fibers[i];
            getcontext(&fiber.context);
            fiber.stack.resize(STACK);
            fiber.context.uc_stack.ss_sp = fiber.stack.data();
            fiber.context.uc_stack.ss_size = STACK;
            fiber.context.uc_link = &scheduler;
            makecontext(&fiber.context, run_fiber, 0);
            fiber.index.x = i % block.x;
            fiber.index.y = i / block.x;
            fiber.finished = false;
        }
        for (bool any = true; any;) {
            any = false;
            uint32_t done = 0;
            for (uint32_t k = 0; k < count; k++) {
                // 167 is prime: a permutation for every count below it and every power of two.
                uint32_t i = order == ASCENDING ? k : order == DESCENDING ? count - 1 - k : (k * 167 + 89) % count;
                if (fibers[i].finished) {
                    done++;
                    continue;
                }
                current = i;
                threadIdx = fibers[i].index;
                swapcontext(&scheduler, &fibers[i].context);
                any = true;
            }
            // Every thread of a block has to arrive at every barrier.
            if (done != 0 && done != count) {
                fprintf(stderr, "%u threads left before a barrier that the others wait at\n", done);
                abort();
            }
        }
    }
}

} // namespace host

#define __syncthreads() host::barrier()
