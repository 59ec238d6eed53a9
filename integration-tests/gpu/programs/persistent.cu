// A kernel that runs from the program's start to its end and takes its work from a flag in host memory: the job never falls
// quiet, so no checkpoint of it can be taken, and none may harm it. A line `step bits` for each step; see record.py.
#include "check.cuh"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <unistd.h>

enum { THREADS = 256 };
struct Desk {
    unsigned asked, over, pad[30];
    unsigned done, more[31];
    float result;
};

__global__ void serve(volatile Desk *desk, float *state) {
    __shared__ float part[THREADS];
    __shared__ unsigned work;
    for (unsigned served = 0;;) {
        if (threadIdx.x == 0) {
            while (desk->asked == served && !desk->over) __nanosleep(200);
            work = desk->asked;
        }
        __syncthreads();
        if (work == served) return;
        served = work;
        float x = state[threadIdx.x];
        for (int i = 0; i < 60000; i++) x = x * 0.999f + 0.001f * __sinf(x + threadIdx.x);
        part[threadIdx.x] = state[threadIdx.x] = x;
        __syncthreads();
        if (threadIdx.x == 0) {
            float sum = 0;
            for (int i = 0; i < THREADS; i++) sum += part[i];
            desk->result = sum;
            __threadfence_system();
            desk->done = served;
        }
        __syncthreads();
    }
}

__global__ void scale(float *x) { x[threadIdx.x] = x[threadIdx.x] * 0.999f + 0.5f; }

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *finish = getenv("FINISH");
    volatile Desk *desk;
    float *state, *other, *host;
    cudaStream_t serving, beside;
    CHECK(cudaSetDeviceFlags(cudaDeviceMapHost));
    CHECK(cudaHostAlloc((void **)&desk, sizeof(Desk), cudaHostAllocMapped));
    memset((void *)desk, 0, sizeof(Desk));
    CHECK(cudaHostAlloc((void **)&host, THREADS * sizeof *host, 0));
    CHECK(cudaMalloc(&state, THREADS * sizeof *state));
    CHECK(cudaMalloc(&other, THREADS * sizeof *other));
    CHECK(cudaMemset(state, 0, THREADS * sizeof *state));
    CHECK(cudaMemset(other, 0, THREADS * sizeof *other));
    CHECK(cudaStreamCreateWithFlags(&serving, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
    // Loaded now: loading may wait for all that runs, and the other kernel does not end.
    scale<<<1, THREADS, 0, beside>>>(other);
    CHECK(cudaMemcpyAsync(host, other, sizeof *host, cudaMemcpyDeviceToHost, beside));
    CHECK(cudaStreamSynchronize(beside));
    CHECK(cudaMemset(other, 0, THREADS * sizeof *other));
    CHECK(cudaDeviceSynchronize());
    void *desk_there;
    CHECK(cudaHostGetDevicePointer(&desk_there, (void *)desk, 0));
    serve<<<1, THREADS, 0, serving>>>((volatile Desk *)desk_there, state);
    CHECK(cudaGetLastError());
    FILE *log = fopen(argv[1], "a");
    if (!log) return 1;
    for (long step = 0; step < atol(argv[2]); step++) {
        desk->asked = (unsigned)step + 1;
        scale<<<1, THREADS, 0, beside>>>(other);
        CHECK(cudaMemcpyAsync(host, other, THREADS * sizeof *host, cudaMemcpyDeviceToHost, beside));
        CHECK(cudaStreamSynchronize(beside));
        while (desk->done != (unsigned)step + 1) {}
        float results[2] = {desk->result, host[THREADS / 2]};
        uint32_t bits[2];
        memcpy(bits, results, sizeof bits);
        fprintf(log, "%ld %08x%08x\n", step, bits[0], bits[1]);
        fflush(log);
        if (finish && access(finish, F_OK) == 0) break;
    }
    desk->over = 1;
    CHECK(cudaDeviceSynchronize());
    return 0;
}
