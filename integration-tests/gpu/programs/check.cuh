// What the CUDA programs here share.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <unistd.h>

// Ends `main` with the error of a call that failed.
#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t e = (call);                                                                    \
        if (e != cudaSuccess) {                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e));                             \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

// Notes a step by the bits of its value; whether there is to be another one, as record.py has it.
static inline bool record(FILE *log, long step, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    fprintf(log, "%ld %016llx\n", step, (unsigned long long)bits);
    fflush(log);
    const char *finish = getenv("FINISH");
    return !finish || access(finish, F_OK) != 0;
}
