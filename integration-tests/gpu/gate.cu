// What the shim costs a call: nanoseconds for a copy of nothing, which the driver answers at once, for a kernel launch, a query of an
// idle stream, one of an event that has passed and one of a context. Each is made in turns through the shim and around it, at the
// driver's own address, in the same process: so what the gate costs is told from what the driver takes in a process whose memory is
// mapped, and from what differs between processes. Medians of the rounds. Run with and without the shim by h200.py, where both
// turns are the same without it; prints one JSON line to the file named.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <elf.h>
#include <link.h>

__global__ void nothing() {}

static void check(int result, const char *what) {
    if (result != 0) {
        fprintf(stderr, "%s failed: %d\n", what, result);
        exit(1);
    }
}

template <typename Call> static double round_ns(int calls, Call call) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; i++) call();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
}

struct Medians {
    double through, around;
};

const int ROUNDS = 31;

// One call by two addresses, in turns.
template <typename Function, typename Call> static Medians medians(int calls, Function shim, Function driver, Call call) {
    double through[ROUNDS], around[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        // Neither is always the first.
        if (i % 2) around[i] = round_ns(calls, [&] { call(driver); });
        through[i] = round_ns(calls, [&] { call(shim); });
        if (i % 2 == 0) around[i] = round_ns(calls, [&] { call(driver); });
    }
    std::sort(through, through + ROUNDS);
    std::sort(around, around + ROUNDS);
    return {through[ROUNDS / 2], around[ROUNDS / 2]};
}

struct Wanted {
    const char *name;
    ElfW(Addr) found;
};

// The driver's function itself, read from its table of symbols: no look-up that the shim could answer.
static int find_driver(struct dl_phdr_info *object, size_t, void *data) {
    auto *wanted = (Wanted *)data;
    const char *base = strrchr(object->dlpi_name, '/');
    if (strncmp(base ? base + 1 : object->dlpi_name, "libcuda.so", 10)) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Sym) *symbols = nullptr;
        const char *names = nullptr;
        for (auto *d = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr); d->d_tag != DT_NULL; d++) {
            if (d->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym) *)d->d_un.d_ptr;
            if (d->d_tag == DT_STRTAB) names = (const char *)d->d_un.d_ptr;
        }
        // The names follow the symbols.
        for (auto *s = symbols; s && names && (const char *)s < names; s++)
            if (s->st_value && !strcmp(names + s->st_name, wanted->name)) wanted->found = object->dlpi_addr + s->st_value;
    }
    return 1;
}

template <typename Function> static Function driver_own(Function, const char *name) {
    Wanted wanted = {name, 0};
    dl_iterate_phdr(find_driver, &wanted);
    check(wanted.found == 0, name);
    return (Function)wanted.found;
}

static CUdeviceptr map_memory(size_t bytes) {
    CUmemAllocationProp how = {};
    how.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    how.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    CUmemAccessDesc access = {};
    access.location = how.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check(cuMemCreate(&handle, bytes, &how, 0), "cuMemCreate");
    check(cuMemAddressReserve(&at, bytes, 0, 0, 0), "cuMemAddressReserve");
    check(cuMemMap(at, bytes, 0, handle, 0), "cuMemMap");
    check(cuMemSetAccess(at, bytes, &access, 1), "cuMemSetAccess");
    return at;
}

int main(int, char **arguments) {
    void *memory;
    check(cudaMalloc(&memory, 1 << 20), "cudaMalloc");
    CUdeviceptr pointer = (CUdeviceptr)memory;
    const int many = 100000;
    auto copy_of_nothing = [](CUdeviceptr at) {
        return [at](decltype(&cuMemcpyDtoDAsync) call) { call(at, at + 4096, 0, 0); };
    };
    auto driver_copy = driver_own(&cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
    Medians copy = medians(many, &cuMemcpyDtoDAsync, driver_copy, copy_of_nothing(pointer));
    Medians mapped = medians(many, &cuMemcpyDtoDAsync, driver_copy, copy_of_nothing(map_memory(2 << 20)));
    cudaStream_t idle;
    check(cudaStreamCreate(&idle), "cudaStreamCreate");
    Medians query = medians(many, &cuStreamQuery, driver_own(&cuStreamQuery, "cuStreamQuery"),
                            [&](decltype(&cuStreamQuery) call) { call((CUstream)idle); });
    cudaEvent_t passed;
    check(cudaEventCreate(&passed), "cudaEventCreate");
    check(cudaEventRecord(passed, idle), "cudaEventRecord");
    check(cudaEventSynchronize(passed), "cudaEventSynchronize");
    Medians event = medians(many, &cuEventQuery, driver_own(&cuEventQuery, "cuEventQuery"),
                            [&](decltype(&cuEventQuery) call) { call((CUevent)passed); });
    CUcontext context;
    Medians current = medians(many, &cuCtxGetCurrent, driver_own(&cuCtxGetCurrent, "cuCtxGetCurrent"),
                              [&](decltype(&cuCtxGetCurrent) call) { call(&context); });
    cudaFunction_t kernel;
    check(cudaGetFuncBySymbol(&kernel, (const void *)nothing), "cudaGetFuncBySymbol");
    // Fewer than the queue holds: the GPU is not waited for.
    Medians launch = medians(500, &cuLaunchKernel, driver_own(&cuLaunchKernel, "cuLaunchKernel"), [&](decltype(&cuLaunchKernel) call) {
        call((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    });
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    FILE *out = fopen(arguments[1], "w");
    if (!out) return 1;
    const struct {
        const char *name;
        Medians figures;
    } all[] = {{"copy", copy}, {"copy_mapped", mapped}, {"query", query}, {"event", event}, {"current", current}, {"launch", launch}};
    const char *before = "{";
    for (auto &one : all) {
        fprintf(out, "%s\"%s\": {\"through\": %.2f, \"around\": %.2f}", before, one.name, one.figures.through, one.figures.around);
        before = ", ";
    }
    fprintf(out, "}\n");
    return fclose(out);
}
