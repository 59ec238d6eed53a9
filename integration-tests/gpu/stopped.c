// What the driver does to a process between cuCheckpointProcessCheckpoint and cuCheckpointProcessRestore, as threads of the
// process meet it: to host memory that they compute on, and to each call that they make. Built and run by stopped.py; what it
// printed is in docs/driver.md.
//
//   stopped memory KIND    a thread counts in host memory of KIND (see kinds) through three checkpoints
//   stopped call NAME      a thread calls NAME without pause through a checkpoint
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include <cuda.h>

#define MUST(call) do { CUresult r_ = (call); if (r_) { printf("%s: %d\n", #call, (int)r_); exit(1); } } while (0)
enum { BYTES = 64 << 20, PAGE = 4096, PAGES = BYTES / PAGE };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

// What the job and its controller share.
struct shared {
    atomic_int ready, stop, done;
    atomic_ullong rounds, faults, lost, calls, errors;
    atomic_ullong fault_at, slowest_us, last_error;
    uintptr_t memory;
} *shared;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number; (void)context;
    atomic_fetch_add(&shared->faults, 1);
    atomic_store(&shared->fault_at, (uintptr_t)info->si_addr);
    // Tried again until the page is there, or for good.
    usleep(1000);
    if (atomic_load(&shared->faults) > 20000) _exit(99);
}

static void *count(void *argument) {
    volatile uint64_t *memory = argument;
    uint64_t mine = 0;
    while (!atomic_load(&shared->stop)) {
        for (int page = 0; page < PAGES; page++)
            memory[page * (PAGE / 8)] = memory[page * (PAGE / 8)] + 1;
        mine++;
        atomic_store(&shared->rounds, mine);
    }
    uint64_t lost = 0;
    for (int page = 0; page < PAGES; page++)
        lost += memory[page * (PAGE / 8)] != mine;
    atomic_store(&shared->lost, lost);
    return NULL;
}

static CUcontext ctx;
static void start_cuda(void) {
    CUdevice device;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&ctx, device));
    MUST(cuCtxSetCurrent(ctx));
}

static void *host_memory(const char *kind) {
    void *memory = NULL;
    if (!strcmp(kind, "hostalloc")) MUST(cuMemHostAlloc(&memory, BYTES, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    else if (!strcmp(kind, "writecombined")) MUST(cuMemHostAlloc(&memory, BYTES, CU_MEMHOSTALLOC_WRITECOMBINED));
    else if (!strcmp(kind, "allochost")) MUST(cuMemAllocHost(&memory, BYTES));
    else {
        int shared_map = !strcmp(kind, "registered-shared"), file = -1;
        if (!strcmp(kind, "registered-shm")) {
            file = memfd_create("shm", 0);
            if (ftruncate(file, BYTES)) exit(1);
            shared_map = 1;
        }
        memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, (shared_map ? MAP_SHARED : MAP_PRIVATE) | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
        MUST(cuMemHostRegister(memory, BYTES, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    }
    memset(memory, 0, BYTES);
    return memory;
}

static int job_memory(const char *kind) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    start_cuda();
    uint64_t *memory = host_memory(kind);
    CUdeviceptr device, seen;
    MUST(cuMemAlloc(&device, BYTES));
    shared->memory = (uintptr_t)memory;
    pthread_t thread;
    pthread_create(&thread, NULL, count, memory);
    atomic_store(&shared->ready, 1);
    while (!atomic_load(&shared->stop)) usleep(1000);
    pthread_join(thread, NULL);
    // The GPU must see what the CPU wrote, and the other way round, through the same addresses.
    MUST(cuMemcpyHtoD(device, memory, BYTES));
    uint64_t expected = memory[0];
    memset(memory, 0, BYTES);
    MUST(cuMemcpyDtoH(memory, device, BYTES));
    int right = memory[0] == expected && memory[(PAGES - 1) * (PAGE / 8)] == expected;
    CUresult mapped = cuMemHostGetDevicePointer(&seen, memory, 0);
    if (mapped == CUDA_SUCCESS) {
        MUST(cuMemsetD8(seen, 0x5A, BYTES));
        MUST(cuCtxSynchronize());
        right = right && memory[0] == 0x5A5A5A5A5A5A5A5AULL && memory[BYTES / 8 - 1] == 0x5A5A5A5A5A5A5A5AULL;
    }
    printf("  device and host agree: %s (device pointer: %d)\n", right ? "yes" : "NO", (int)mapped);
    fflush(stdout);
    atomic_store(&shared->done, 1);
    return 0;
}

typedef void *nvml_device;
static CUresult (*nvml_memory)(nvml_device, void *);
static nvml_device nvml;
static void start_nvml(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) { printf("no NVML\n"); exit(1); }
    int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
    int (*get)(unsigned, nvml_device *) = (int (*)(unsigned, nvml_device *))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    nvml_memory = (CUresult (*)(nvml_device, void *))dlsym(library, "nvmlDeviceGetMemoryInfo");
    if (init() || get(0, &nvml)) { printf("NVML fails\n"); exit(1); }
}

// NVML in a process without a context, as a GPU monitor is.
static int job_nvml(void) {
    char info[256];
    start_nvml();
    atomic_store(&shared->ready, 1);
    while (!atomic_load(&shared->stop)) {
        int result = nvml_memory(nvml, info);
        if (result) { atomic_fetch_add(&shared->errors, 1); atomic_store(&shared->last_error, result); }
        atomic_fetch_add(&shared->calls, 1);
        usleep(1000);
    }
    atomic_store(&shared->done, 1);
    return 0;
}

static int job_call(const char *name) {
    if (!strcmp(name, "nvmlOnly")) return job_nvml();
    start_cuda();
    CUstream stream, busy;
    CUevent before, after;
    CUdeviceptr memory;
    void *pinned;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&before, 0));
    MUST(cuEventCreate(&after, 0));
    MUST(cuMemAlloc(&memory, BYTES));
    MUST(cuMemAllocHost(&pinned, PAGE));
    MUST(cuEventRecord(before, stream));
    MUST(cuMemsetD8Async(memory, 1, BYTES, stream));
    MUST(cuEventRecord(after, stream));
    MUST(cuCtxSynchronize());
    int nvml_call = !strncmp(name, "nvml", 4);
    if (nvml_call) start_nvml();
    atomic_store(&shared->ready, 1);
    size_t a, b;
    int number;
    float ms;
    CUcontext current;
    CUstream made;
    CUevent event;
    CUmodule module;
    char info[256];
    const char *text;
    unsigned flags;
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";
    while (!atomic_load(&shared->stop)) {
        double start = now();
        CUresult result = CUDA_SUCCESS;
        if (!strcmp(name, "cuStreamQuery")) result = cuStreamQuery(stream);
        else if (!strcmp(name, "cuEventQuery")) result = cuEventQuery(after);
        else if (!strcmp(name, "cuEventElapsedTime")) result = cuEventElapsedTime(&ms, before, after);
        else if (!strcmp(name, "cuMemGetInfo")) result = cuMemGetInfo(&a, &b);
        else if (!strcmp(name, "cuCtxGetCurrent")) result = cuCtxGetCurrent(&current);
        else if (!strcmp(name, "cuCtxSynchronize")) result = cuCtxSynchronize();
        else if (!strcmp(name, "cuStreamSynchronize")) result = cuStreamSynchronize(stream);
        else if (!strcmp(name, "cuEventSynchronize")) result = cuEventSynchronize(after);
        else if (!strcmp(name, "cuPointerGetAttribute")) result = cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory);
        else if (!strcmp(name, "cuDeviceGetAttribute")) result = cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
        else if (!strcmp(name, "cuDeviceTotalMem")) result = cuDeviceTotalMem(&a, 0);
        else if (!strcmp(name, "cuStreamGetFlags")) result = cuStreamGetFlags(stream, &flags);
        else if (!strcmp(name, "cuGetErrorString")) result = cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text);
        else if (!strcmp(name, "cuStreamCreate")) { result = cuStreamCreate(&made, 0); if (!result) cuStreamDestroy(made); }
        else if (!strcmp(name, "cuEventCreate")) { result = cuEventCreate(&event, 0); if (!result) cuEventDestroy(event); }
        else if (!strcmp(name, "cuMemHostAlloc")) { void *p; result = cuMemHostAlloc(&p, 1 << 20, 0); if (!result) cuMemFreeHost(p); }
        else if (!strcmp(name, "cuModuleLoadData")) { result = cuModuleLoadData(&module, ptx); if (!result) cuModuleUnload(module); }
        else if (!strcmp(name, "cuMemAlloc")) { CUdeviceptr p; result = cuMemAlloc(&p, 1 << 20); if (!result) cuMemFree(p); }
        else if (!strcmp(name, "cuMemcpyHtoDAsync")) result = cuMemcpyHtoDAsync(memory, pinned, PAGE, busy);
        else if (nvml_call) result = nvml_memory(nvml, info);
        else return 1;
        unsigned long long us = (now() - start) * 1e6;
        if (us > atomic_load(&shared->slowest_us)) atomic_store(&shared->slowest_us, us);
        if (result) { atomic_fetch_add(&shared->errors, 1); atomic_store(&shared->last_error, result); }
        atomic_fetch_add(&shared->calls, 1);
    }
    atomic_store(&shared->done, 1);
    return 0;
}

static void mapping(pid_t pid, const char *when, uintptr_t address) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    int nvidia = 0;
    char found[512] = "not mapped\n";
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && address >= from && address < to) strcpy(found, line);
        nvidia += strstr(line, "/dev/nvidia") != NULL;
    }
    if (maps) fclose(maps);
    printf("  %-12s %d mappings of /dev/nvidia*; here: %s", when, nvidia, found);
}

static void devices(pid_t pid, const char *when) {
    char path[64], to[256];
    int count = 0, all = 0;
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
        ssize_t n = readlink(path, to, sizeof to - 1);
        if (n < 0) continue;
        to[n] = 0;
        all++;
        count += strstr(to, "/dev/nvidia") != NULL;
    }
    printf("  %-12s %d descriptors of /dev/nvidia* among %d\n", when, count, all);
}

static int alive(pid_t pid, const char *when) {
    int status;
    if (waitpid(pid, &status, WNOHANG) == 0) return 1;
    printf("  %s: the process is GONE (%s %d)\n", when, WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int memory = !strcmp(argv[1], "memory");
    shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) exit(memory ? job_memory(argv[2]) : job_call(argv[2]));
    printf("%s %s\n", argv[1], argv[2]);
    for (int i = 0; i < 30000 && !atomic_load(&shared->ready); i++) usleep(1000);
    MUST(cuInit(0));
    usleep(100000);
    for (int round = 0; round < (memory ? 3 : 1); round++) {
        unsigned long long before = atomic_load(&shared->rounds) + atomic_load(&shared->calls);
        if (memory && !round) mapping(pid, "running", shared->memory);
        CUcheckpointLockArgs lock = {.timeoutMs = 10000};
        double t0 = now();
        if (!strncmp(argv[2], "nvml", 4)) devices(pid, "running");
        int locked = cuCheckpointProcessLock(pid, &lock);
        double t1 = now();
        usleep(50000);
        unsigned long long in_lock = atomic_load(&shared->rounds) + atomic_load(&shared->calls);
        if (!alive(pid, "locked")) return 0;
        double t2 = now();
        int saved = cuCheckpointProcessCheckpoint(pid, NULL);
        double t3 = now();
        unsigned long long at_saved = atomic_load(&shared->rounds) + atomic_load(&shared->calls);
        if (memory && !round) mapping(pid, "checkpointed", shared->memory);
        if (!strncmp(argv[2], "nvml", 4)) devices(pid, "checkpointed");
        usleep(300000);
        unsigned long long in_saved = atomic_load(&shared->rounds) + atomic_load(&shared->calls);
        if (!alive(pid, "checkpointed")) return 0;
        double t4 = now();
        int back = cuCheckpointProcessRestore(pid, NULL);
        double t5 = now();
        if (memory && !round) mapping(pid, "restored", shared->memory);
        int unlocked = cuCheckpointProcessUnlock(pid, NULL);
        usleep(50000);
        if (!alive(pid, "unlocked")) return 0;
        printf("  lock %d (%.0f ms) checkpoint %d (%.0f ms) restore %d (%.0f ms) unlock %d; went on: locked %llu, during the call %llu, checkpointed %llu; faults %llu at +%llx\n",
               locked, (t1 - t0) * 1e3, saved, (t3 - t2) * 1e3, back, (t5 - t4) * 1e3, unlocked, in_lock - before, at_saved - in_lock, in_saved - at_saved,
               (unsigned long long)atomic_load(&shared->faults), (unsigned long long)(memory && atomic_load(&shared->faults) ? atomic_load(&shared->fault_at) - shared->memory : 0));
        fflush(stdout);
    }
    atomic_store(&shared->stop, 1);
    for (int i = 0; i < 10000 && !atomic_load(&shared->done); i++) { usleep(1000); if (i % 100 == 0 && !alive(pid, "ending")) return 0; }
    if (memory) printf("  rounds %llu, pages that lost writes: %llu of %d\n", (unsigned long long)atomic_load(&shared->rounds), (unsigned long long)atomic_load(&shared->lost), PAGES);
    else printf("  calls %llu, errors %llu (last %llu), slowest %llu us\n", (unsigned long long)atomic_load(&shared->calls), (unsigned long long)atomic_load(&shared->errors),
                (unsigned long long)atomic_load(&shared->last_error), (unsigned long long)atomic_load(&shared->slowest_us));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return 0;
}
