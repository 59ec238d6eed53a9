// A small deterministic CUDA runtime program built by nvcc, one line per step: `step bits seconds`.
// See h200.py.
#include "programs/check.cuh"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <unistd.h>

__global__ void step_kernel(float *x, size_t n, float a) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        x[i] = x[i] * a + (float)(i % 97) * 1e-3f;
}

// Needs more stack than the default limit, in a way that the compiler cannot know: the limit that the program set must
// be in force whenever it runs.
__device__ __noinline__ float deep(float x, int n) {
    volatile float frame[32];
    frame[n & 31] = x * 0.999f + (float)n;
    return n == 0 ? frame[0] : deep(frame[n & 31], n - 1) + frame[n & 31] * 1e-3f;
}

__global__ void deep_kernel(float *out, int n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    out[i] = deep(out[i] * 1e-6f + (float)i, n);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    size_t n = 64u << 20;
    float *x, *small, *stacked, value, other;
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 24 << 10));
    CHECK(cudaMalloc(&stacked, 64 * 128 * sizeof *stacked));
    CHECK(cudaMemset(stacked, 0, 64 * 128 * sizeof *stacked));
    CHECK(cudaMalloc(&x, n * sizeof *x));
    CHECK(cudaMalloc(&small, 1000));
    CHECK(cudaMemset(x, 0, n * sizeof *x));
    // The deep kernel is launched by a graph that lives through every checkpoint.
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    deep_kernel<<<64, 128, 0, stream>>>(stacked, 96);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    FILE *log = fopen(argv[1], "a");
    if (!log) return 1;
    for (int step = 0; step < atoi(argv[2]); step++) {
        step_kernel<<<528, 256>>>(x, n, 0.99f);
        CHECK(cudaMemcpyAsync(small, x + step * 1001, 4, cudaMemcpyDeviceToDevice));
        CHECK(cudaMemcpy(&value, small, 4, cudaMemcpyDeviceToHost));
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemcpy(&other, stacked + step, 4, cudaMemcpyDeviceToHost));
        size_t limit;
        CHECK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
        uint32_t bits, more;
        memcpy(&bits, &value, 4);
        memcpy(&more, &other, 4);
        fprintf(log, "%d %08x%08x%zx 0.1\n", step, bits, more, limit);
        fflush(log);
        usleep(100000);
    }
    return 0;
}
