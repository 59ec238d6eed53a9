// What the shim costs a call: nanoseconds for a copy of nothing, which the driver answers at once, and for a kernel
// launch, a query of an idle stream and one of a context, in the median of nine rounds. The copy is also made around the shim, at
// the driver's own address, and between addresses that this program mapped itself: so what the gate costs is told from what the
// driver takes for memory that is mapped. Run with and without the shim by h200.py; prints one JSON line to the file named.
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

// The driver's function itself, read from its table of symbols: no look-up that the shim could answer.
static int find_driver(struct dl_phdr_info *object, size_t, void *found) {
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
            if (s->st_value && !strcmp(names + s->st_name, "cuMemcpyDtoDAsync_v2")) *(ElfW(Addr) *)found = object->dlpi_addr + s->st_value;
    }
    return 1;
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
    double copy = median_ns(300000, [&] { cuMemcpyDtoDAsync(pointer, pointer + 4096, 0, 0); });
    decltype(&cuMemcpyDtoDAsync) direct = nullptr;
    dl_iterate_phdr(find_driver, &direct);
    if (!direct) return 1;
    double around = median_ns(300000, [&] { direct(pointer, pointer + 4096, 0, 0); });
    CUdeviceptr mapped = map_memory(2 << 20);
    double mapped_copy = median_ns(300000, [&] { cuMemcpyDtoDAsync(mapped, mapped + 4096, 0, 0); });
    cudaStream_t idle;
    check(cudaStreamCreate(&idle), "cudaStreamCreate");
    double query = median_ns(300000, [&] { cuStreamQuery((CUstream)idle); });
    CUcontext context;
    double current = median_ns(300000, [&] { cuCtxGetCurrent(&context); });
    // Fewer than the queue holds: the GPU is not waited for.
    double launch = median_ns(500, [] { nothing<<<1, 1>>>(); });
    check(cudaGetLastError(), "a launch");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    FILE *out = fopen(arguments[1], "w");
    if (!out) return 1;
    fprintf(out, "{\"copy_ns\": %.1f, \"copy_around_ns\": %.1f, \"copy_mapped_ns\": %.1f, \"launch_ns\": %.1f, \"query_ns\": %.1f, \"current_ns\": %.1f}\n",
            copy, around, mapped_copy, launch, query, current);
    return fclose(out);
}
