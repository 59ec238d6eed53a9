// What the shim costs a call: nanoseconds for a copy of nothing, which the driver answers at once, and for a kernel
// launch, a query of an idle stream and one of a context, in the median of nine rounds. Run with and without the shim by h200.py; prints one JSON line to the file named.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void nothing() {}

static void check(int result, const char *what) {
    if (result != 0) {
        fprintf(stderr, "%s failed: %d\n", what, result);
        exit(1);
    }
}

template <typename Call> static double median_ns(int calls, Call call) {
    double rounds[9];
    for (double &round : rounds) {
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; i++) call();
        round = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
    }
    std::sort(rounds, rounds + 9);
    return rounds[4];
}

int main(int, char **arguments) {
    void *memory;
    check(cudaMalloc(&memory, 1 << 20), "cudaMalloc");
    CUdeviceptr pointer = (CUdeviceptr)memory;
    double copy = median_ns(1000000, [&] { cuMemcpyDtoDAsync(pointer, pointer + 4096, 0, 0); });
    cudaStream_t idle;
    check(cudaStreamCreate(&idle), "cudaStreamCreate");
    double query = median_ns(1000000, [&] { cuStreamQuery((CUstream)idle); });
    CUcontext context;
    double current = median_ns(1000000, [&] { cuCtxGetCurrent(&context); });
    // Fewer than the queue holds: the GPU is not waited for.
    double launch = median_ns(500, [] { nothing<<<1, 1>>>(); });
    check(cudaGetLastError(), "a launch");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    FILE *out = fopen(arguments[1], "w");
    if (!out) return 1;
    fprintf(out, "{\"copy_ns\": %.1f, \"launch_ns\": %.1f, \"query_ns\": %.1f, \"current_ns\": %.1f}\n", copy, launch, query, current);
    return fclose(out);
}
