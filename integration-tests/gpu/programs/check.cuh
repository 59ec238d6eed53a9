// What the CUDA programs here share.
#pragma once
#include <cstdio>
#include <cuda_runtime.h>

// Ends `main` with the error of a call that failed.
#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t e = (call);                                                                    \
        if (e != cudaSuccess) {                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e));                             \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)
