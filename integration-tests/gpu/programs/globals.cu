// Variables of a module: memory that the driver takes when it loads the program, and saves by itself. A step reads and writes all
// of it. A line `step bits` for each step; see record.py.
#include "check.cuh"
#include <cstdint>
#include <cstdlib>

#ifndef MIB
#define MIB 256
#endif
enum { COUNT = MIB << 18, BLOCKS = 1024, THREADS = 256 };
__device__ float field[COUNT];

__global__ void fill() {
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < COUNT; i += (size_t)BLOCKS * THREADS) field[i] = (float)(i % 1009) / 1009;
}

// Each block adds in a fixed order.
__global__ void step_all(float *out, float a) {
    __shared__ float part[THREADS];
    float sum = 0;
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < COUNT; i += (size_t)BLOCKS * THREADS)
        sum += field[i] = field[i] * 0.999f + a * __sinf((float)(i & 255));
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (!threadIdx.x) out[blockIdx.x] = part[0];
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    float *out, host[BLOCKS];
    CHECK(cudaMalloc(&out, sizeof host));
    fill<<<BLOCKS, THREADS>>>();
    CHECK(cudaDeviceSynchronize());
    FILE *log = fopen(argv[1], "a");
    if (!log) return 1;
    for (long step = 0; step < atol(argv[2]); step++) {
        for (int i = 0; i < 20; i++) step_all<<<BLOCKS, THREADS>>>(out, 0.001f * (float)(step % 100 + i));
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
        double sum = 0;
        for (float one : host) sum += one;
        if (!record(log, step, sum)) break;
    }
    return 0;
}
