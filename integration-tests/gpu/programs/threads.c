// Threads beside a training program, in C so that nothing slows them: loaded by beside.py.
//
//   polls   asks every query function of the driver (and of NVML) as fast as it can
//   counts  counts in each word of host memory that the GPU can reach: pinned, write-combined, registered. A word that lost a
//           write differs from its twin in ordinary memory.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda.h>

static atomic_int over;
static atomic_ullong rounds;
static pthread_t thread, second_thread;
static int threads;
static CUcontext context;
// The first thing that went wrong.
static char wrong[256];
static atomic_int is_wrong;

static void went_wrong(const char *what, unsigned long long a, unsigned long long b) {
    if (!atomic_exchange(&is_wrong, 1)) snprintf(wrong, sizeof wrong, "%s: %llu, %llu in round %llu", what, a, b, atomic_load(&rounds));
}

static void expect(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) went_wrong(what, result, 0);
}
#define ASK(call) expect(call, #call)

// NVML, which not every machine has.
typedef int (*nvml_init)(void);
typedef int (*nvml_device)(unsigned, void **);
typedef int (*nvml_memory)(void *, uint64_t[3]);
typedef int (*nvml_number)(void *, unsigned *);

static const char nothing[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";

static void *polls(void *with_nvml) {
    CUstream stream;
    CUevent first, second;
    CUdeviceptr memory;
    CUdevice device;
    CUmodule module;
    CUfunction function;
    if (cuCtxSetCurrent(context) || cuCtxGetDevice(&device) || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
        cuEventCreate(&first, 0) || cuModuleLoadData(&module, nothing) || cuModuleGetFunction(&function, module, "nothing") || cuEventCreate(&second, 0) || cuMemAlloc(&memory, 1 << 20)) {
        went_wrong("making a stream, events, memory and a kernel", 0, 0);
        return NULL;
    }
    void *gpu = NULL;
    nvml_memory memory_info = NULL;
    nvml_number power_usage = NULL;
    if (with_nvml) {
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        nvml_init start = library ? (nvml_init)dlsym(library, "nvmlInit_v2") : NULL;
        nvml_device by_index = library ? (nvml_device)dlsym(library, "nvmlDeviceGetHandleByIndex_v2") : NULL;
        if (!start || !by_index || start() || by_index(0, &gpu)) {
            went_wrong("NVML cannot be used", 0, 0);
            return NULL;
        }
        memory_info = (nvml_memory)dlsym(library, "nvmlDeviceGetMemoryInfo");
        power_usage = (nvml_number)dlsym(library, "nvmlDeviceGetPowerUsage");
    }
    CUcontext current;
    CUdevice on;
    CUmemorytype type;
    CUdeviceptr base;
    size_t free_bytes, total, size;
    int number, least, greatest, value;
    unsigned flags, milliwatts;
    uint64_t memory_bytes[3];
    float ms;
    const char *text;
    // One function for a while, then the next: a caller that is held in one of them would never be seen in another.
    for (int which = 0; !atomic_load(&over); which = (which + 1) % 27) {
        if (which == 0) {
            // There is something to ask about.
            ASK(cuEventRecord(first, stream));
            ASK(cuMemsetD8Async(memory, 1, 1 << 20, stream));
            ASK(cuEventRecord(second, stream));
        }
        for (int i = 0; i < 20000 && !atomic_load(&over); i++) {
            switch (which) {
            case 0: ASK(cuStreamQuery(stream)); break;
            case 1: ASK(cuStreamQuery(CU_STREAM_PER_THREAD)); break;
            case 2: ASK(cuEventQuery(second)); break;
            case 3: ASK(cuEventElapsedTime(&ms, first, second)); break;
            case 4: ASK(cuStreamSynchronize(stream)); break;
            case 5: ASK(cuEventSynchronize(second)); break;
            case 6:
                ASK(cuCtxGetCurrent(&current));
                if (current != context) went_wrong("cuCtxGetCurrent yields another context", (uintptr_t)current, (uintptr_t)context);
                break;
            case 7: ASK(cuCtxGetDevice(&on)); break;
            case 8: ASK(cuCtxGetFlags(&flags)); break;
            case 9: ASK(cuCtxGetApiVersion(context, &flags)); break;
            case 10: ASK(cuCtxGetLimit(&size, CU_LIMIT_STACK_SIZE)); break;
            case 11: ASK(cuCtxGetStreamPriorityRange(&least, &greatest)); break;
            case 12: ASK(cuMemGetInfo(&free_bytes, &total)); break;
            case 13:
                ASK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
                if (type != CU_MEMORYTYPE_DEVICE) went_wrong("cuPointerGetAttribute yields another type", type, CU_MEMORYTYPE_DEVICE);
                break;
            case 14:
                ASK(cuMemGetAddressRange(&base, &size, memory + 4096));
                if (base != memory) went_wrong("cuMemGetAddressRange yields another base", base, memory);
                break;
            case 15: ASK(cuStreamGetCtx(stream, &current)); break;
            case 16: ASK(cuStreamGetFlags(stream, &flags)); break;
            case 17: ASK(cuStreamGetPriority(stream, &number)); break;
            case 18: ASK(cuDeviceGetCount(&number)); break;
            case 19: ASK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)); break;
            case 20: ASK(cuDeviceTotalMem(&total, device)); break;
            case 21: ASK(cuDriverGetVersion(&number)); break;
            case 22: ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function)); break;
            case 23: ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 128, 0)); break;
            case 24: ASK(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text)); break;
            // NVML is slow.
            case 25:
                if (gpu && i < 200 && memory_info && memory_info(gpu, memory_bytes)) went_wrong("nvmlDeviceGetMemoryInfo", 0, 0);
                break;
            case 26:
                // Not every board has it.
                if (gpu && i < 200 && power_usage) power_usage(gpu, &milliwatts);
                break;
            }
        }
        atomic_fetch_add(&rounds, 1);
    }
    return NULL;
}

// As XLA does: one function, nothing else.
static void *polls_a_stream(void *unused) {
    (void)unused;
    CUstream stream;
    if (cuCtxSetCurrent(context) || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) {
        went_wrong("making a stream", 0, 0);
        return NULL;
    }
    while (!atomic_load(&over)) ASK(cuStreamQuery(stream));
    return NULL;
}

enum { KINDS = 3, WORDS = 1 << 18 };
static const char *const names[KINDS] = {"pinned", "write-combined", "registered"};
static volatile uint64_t *shown[KINDS];
static uint64_t *twin;
static pthread_mutex_t still = PTHREAD_MUTEX_INITIALIZER;
// Somebody waits for it: without this the thread, which takes the mutex again at once, would never let go.
static atomic_int wanted;

static void *counts(void *unused) {
    (void)unused;
    while (!atomic_load(&over)) {
        while (atomic_load(&wanted)) sched_yield();
        pthread_mutex_lock(&still);
        uint64_t round = atomic_fetch_add(&rounds, 1);
        for (int i = 0; i < WORDS; i++) {
            uint64_t change = (round ^ (uint64_t)i) | 1;
            twin[i] += change;
            for (int kind = 0; kind < KINDS; kind++) {
                uint64_t before = shown[kind][i];
                shown[kind][i] = before + change;
                if (before + change != twin[i]) went_wrong(names[kind], i, before + change - twin[i]);
            }
        }
        pthread_mutex_unlock(&still);
    }
    return NULL;
}

// A current context is there. 0, or the error.
int beside_start(const char *what) {
    CUresult result = cuCtxGetCurrent(&context);
    if (result || !context) return result ? (int)result : CUDA_ERROR_INVALID_CONTEXT;
    if (strcmp(what, "counts")) {
        if (pthread_create(&second_thread, NULL, polls_a_stream, NULL)) return CUDA_ERROR_OPERATING_SYSTEM;
        threads = 2;
        return pthread_create(&thread, NULL, polls, strcmp(what, "nvml") ? NULL : (void *)1);
    }
    size_t bytes = WORDS * sizeof(uint64_t);
    void *ordinary = aligned_alloc(4096, bytes);
    twin = calloc(WORDS, sizeof *twin);
    if (!ordinary || !twin) return CUDA_ERROR_OUT_OF_MEMORY;
    if ((result = cuMemHostAlloc((void **)&shown[0], bytes, CU_MEMHOSTALLOC_DEVICEMAP))) return result;
    if ((result = cuMemHostAlloc((void **)&shown[1], bytes, CU_MEMHOSTALLOC_WRITECOMBINED))) return result;
    if ((result = cuMemHostRegister(ordinary, bytes, 0))) return result;
    shown[2] = ordinary;
    for (int kind = 0; kind < KINDS; kind++) memset((void *)shown[kind], 0, bytes);
    return pthread_create(&thread, NULL, counts, NULL);
}

// The GPU sees what the thread wrote, and the thread what the GPU writes. A current context is there.
void beside_check(void) {
    if (!twin) return;
    size_t bytes = WORDS * sizeof *twin;
    CUdeviceptr memory;
    uint64_t *back = malloc(bytes);
    atomic_store(&wanted, 1);
    pthread_mutex_lock(&still);
    atomic_store(&wanted, 0);
    for (int kind = 0; kind < KINDS; kind++) {
        ASK(cuMemAlloc(&memory, bytes));
        ASK(cuMemcpyHtoD(memory, (const void *)shown[kind], bytes));
        memset(back, 0, bytes);
        ASK(cuMemcpyDtoH(back, memory, bytes));
        if (memcmp(back, twin, bytes)) went_wrong(names[kind], 0, 1);
        memset((void *)shown[kind], 0, bytes);
        ASK(cuMemcpyDtoH((void *)shown[kind], memory, bytes));
        if (memcmp((const void *)shown[kind], twin, bytes)) went_wrong(names[kind], 0, 2);
        ASK(cuMemFree(memory));
    }
    pthread_mutex_unlock(&still);
    free(back);
}

// What went wrong; empty: nothing. The thread has ended then.
const char *beside_stop(unsigned long long *done) {
    beside_check();
    atomic_store(&over, 1);
    pthread_join(thread, NULL);
    if (threads == 2) pthread_join(second_thread, NULL);
    *done = atomic_load(&rounds);
    return wrong;
}
