// A small deterministic CUDA runtime program built by nvcc, one line per step: `step bits seconds`.
// See h200.py.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <unistd.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t e = (call);                                                                    \
        if (e != cudaSuccess) {                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e));                             \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

__global__ void step_kernel(float *x, size_t n, float a) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        x[i] = x[i] * a + (float)(i % 97) * 1e-3f;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    size_t n = 64u << 20;
    float *x, *small, value;
    CHECK(cudaMalloc(&x, n * sizeof *x));
    CHECK(cudaMalloc(&small, 1000));
    CHECK(cudaMemset(x, 0, n * sizeof *x));
    FILE *log = fopen(argv[1], "a");
    if (!log) return 1;
    for (int step = 0; step < atoi(argv[2]); step++) {
        step_kernel<<<528, 256>>>(x, n, 0.99f);
        CHECK(cudaMemcpyAsync(small, x + step * 1001, 4, cudaMemcpyDeviceToDevice));
        CHECK(cudaMemcpy(&value, small, 4, cudaMemcpyDeviceToHost));
        uint32_t bits;
        memcpy(&bits, &value, 4);
        fprintf(log, "%d %08x 0.1\n", step, bits);
        fflush(log);
        usleep(100000);
    }
    return 0;
}
