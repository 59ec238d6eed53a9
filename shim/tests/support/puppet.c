// A CUDA program that does what its standard input says, one command a line, and answers each with one line:
// "ok …" or "err RESULT". It reaches the driver by linking (L), dlsym (D) or cuGetProcAddress (P).
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int R;
typedef unsigned long long u64;
typedef struct { int type, id; } Loc;
typedef struct { int type, types; Loc loc; void *w; unsigned char compression, rdma; unsigned short usage; char r[4]; } Prop;
typedef struct { Loc loc; int flags; } Acc;

R cuInit(unsigned); R cuDeviceGet(int *, int); R cuDevicePrimaryCtxRetain(void **, int); R cuDevicePrimaryCtxReset_v2(int);
R cuCtxSetCurrent(void *); R cuCtxCreate_v2(void **, unsigned, int); R cuCtxDestroy_v2(void *); R cuCtxSynchronize(void);
R cuCtxGetLimit(size_t *, int); R cuCtxSetLimit(int, size_t);
R cuCtxEnablePeerAccess(void *, unsigned); R cuCtxDisablePeerAccess(void *);
R cuMemAlloc_v2(u64 *, size_t); R cuMemAllocPitch_v2(u64 *, size_t *, size_t, size_t, unsigned); R cuMemFree_v2(u64);
R cuMemAllocManaged(u64 *, size_t, unsigned); R cuMemGetInfo_v2(size_t *, size_t *);
R cuMemcpyHtoD_v2(u64, const void *, size_t); R cuMemcpyDtoH_v2(void *, u64, size_t); R cuMemcpyDtoD_v2(u64, u64, size_t);
R cuMemGetAddressRange_v2(u64 *, size_t *, u64); R cuPointerGetAttribute(void *, int, u64);
R cuPointerGetAttributes(unsigned, int *, void **, u64);
R cuMemCreate(u64 *, size_t, const Prop *, u64); R cuMemRelease(u64); R cuMemMap(u64, size_t, size_t, u64, u64);
R cuMemUnmap(u64, size_t); R cuMemSetAccess(u64, size_t, const Acc *, size_t); R cuMemGetAccess(u64 *, const Loc *, u64);
R cuMemAddressReserve(u64 *, size_t, size_t, u64, u64); R cuMemAddressFree(u64, size_t);
R cuMemRetainAllocationHandle(u64 *, void *); R cuMemGetAllocationPropertiesFromHandle(Prop *, u64);
R cuMemExportToShareableHandle(void *, u64, int, u64); R cuMemImportFromShareableHandle(u64 *, void *, int);
R cuStreamCreate(void **, unsigned); R cuStreamBeginCapture_v2(void *, int); R cuStreamEndCapture(void *, void **);
R cuGraphInstantiateWithFlags(void **, void *, u64); R cuGraphDestroy(void *); R cuGraphLaunch(void *, void *);
R cuStreamSynchronize(void *); R cuStreamDestroy_v2(void *); R cuLaunchHostFunc(void *, void (*)(void *), void *);
typedef struct { unsigned char b[64]; } Ipc;
R cuIpcOpenMemHandle_v2(u64 *, Ipc, unsigned); R cuIpcCloseMemHandle(u64);
R cuGetProcAddress_v2(const char *, void **, int, u64, int *); R cuIpcGetMemHandle(void *, u64);

R cuCheckpointProcessLock(int, void *); R cuCheckpointProcessCheckpoint(int, void *);
R cuCheckpointProcessRestore(int, void *); R cuCheckpointProcessUnlock(int, void *);
R cuMemHostAlloc(void **, size_t, unsigned); R cuMemHostGetFlags(unsigned *, void *); R cuMemFreeHost(void *);
R cuStreamQuery(void *); R cuEventCreate(void **, unsigned); R cuEventQuery(void *); R cuEventRecord(void *, void *);
R cuEventElapsedTime(float *, void *, void *); R cuEventSynchronize(void *); R cuCtxGetCurrent(void **);

R cuIpcGetEventHandle(void *, void *); R cuIpcOpenEventHandle(void **, Ipc); R cuStreamWaitEvent(void *, void *, unsigned);

static struct { char name[32]; u64 value; } vars[256];
static int nvars;
static u64 *var(const char *name) {
    for (int i = 0; i < nvars; i++) if (!strcmp(vars[i].name, name)) return &vars[i].value;
    if (nvars == 256) abort();
    strncpy(vars[nvars].name, name, 31);
    return &vars[nvars++].value;
}
static void reply(R r, const char *text) {
    if (r) printf("err %d\n", r); else printf("ok%s%s\n", *text ? " " : "", text);
    fflush(stdout);
}
static void *libcuda(void) { static void *h; if (!h) h = dlopen("libcuda.so.1", RTLD_NOW); return h; }
// 'D': dlsym, 'P': cuGetProcAddress of the base name, 'T': the same for the per-thread default stream.
static void *find(char how, const char *symbol, const char *base) {
    if (how == 'D') return dlsym(libcuda(), symbol);
    R (*get)(const char *, void **, int, u64, int *) = dlsym(libcuda(), "cuGetProcAddress_v2");
    void *f = 0;
    get(base, &f, 13000, how == 'T' ? 2 : 0, 0);
    return f;
}
static unsigned char pattern(u64 seed, size_t i) { u64 x = (i / 8 + 1) * 0x9e3779b97f4a7c15ull + seed * 0x2545f4914f6cdd1dull; x ^= x >> 29; return x >> (i % 8 * 8); }
static void nap(void *ms) { usleep((uintptr_t)ms * 1000); }
static u64 *many, nmany;
static volatile int spinning; static volatile u64 spins;
static void *spin(void *p) { u64 at = *(u64 *)p; cuCtxSetCurrent((void *)*var("ctx0")); char b[8]; while (spinning) { if (cuMemcpyDtoH_v2(b, at, 8)) abort(); spins++; } return 0; }
static void *importing(void *p) { u64 *at = p; cuCtxSetCurrent((void *)*var("ctx0")); at[1] = cuMemImportFromShareableHandle(at, (void *)(uintptr_t)at[0], 1); return 0; }

// Polls, and waits for what is done, without pause, and makes no call that is held back as work.
static void *poll_all(void *p) {
    void *stream = 0, *event = 0, *later = 0, *current; float ms;
    (void)p;
    if (cuCtxSetCurrent((void *)*var("ctx0")) || cuStreamCreate(&stream, 1) || cuEventCreate(&event, 0) || cuEventCreate(&later, 0)
        || cuEventRecord(event, stream) || cuEventRecord(later, stream) || cuStreamSynchronize(stream)) abort();
    while (spinning) {
        if (cuStreamQuery(stream) || cuEventQuery(event) || cuEventElapsedTime(&ms, event, later) || cuCtxGetCurrent(&current)
            || cuEventSynchronize(event) || cuStreamSynchronize(stream) || cuCtxSynchronize()) abort();
        spins++;
    }
    return 0;
}
// Counts in pinned memory, one word a page, and beside it.
static volatile u64 *counted; static u64 lost;
enum { COUNTED = 64 };
static void *count(void *p) {
    u64 mine = 0;
    (void)p;
    while (spinning) { for (int i = 0; i < COUNTED; i++) counted[i * 512]++; spins = ++mine; }
    for (int i = 0; i < COUNTED; i++) lost += counted[i * 512] != mine;
    return 0;
}
static pthread_t spinner;
// Trains as people do: queues so many naps of so many ms, waits for them, and begins again.
static struct { void *stream; u64 naps; u64 ms; volatile int queued; } lap;
static void *train(void *p) {
    (void)p;
    cuCtxSetCurrent((void *)*var("ctx0"));
    while (spinning) {
        for (u64 i = 0; i < lap.naps; i++) if (cuLaunchHostFunc(lap.stream, nap, (void *)lap.ms)) abort();
        lap.queued = 1;
        if (cuStreamSynchronize(lap.stream)) abort();
        spins++;
    }
    return 0;
}

// The same with the next batch queued whenever it waits for one: it is never idle.
static void *pipeline(void *p) {
    void *done[2] = {0};
    (void)p;
    cuCtxSetCurrent((void *)*var("ctx0"));
    for (int i = 0; i < 2; i++) if (cuEventCreate(&done[i], 2)) abort();
    for (u64 batch = 0; spinning; batch++) {
        for (u64 i = 0; i < lap.naps; i++) if (cuLaunchHostFunc(lap.stream, nap, (void *)lap.ms)) abort();
        if (cuEventRecord(done[batch % 2], lap.stream)) abort();
        if (batch && cuEventSynchronize(done[(batch + 1) % 2])) abort();
        lap.queued = 1;
        spins++;
    }
    return 0;
}
// Two waits in each step, the first after `naps` calls that take no time, the second after `ms` calls. `spins` is odd after the first.
static void *steps(void *p) {
    (void)p;
    cuCtxSetCurrent((void *)*var("ctx0"));
    while (spinning) {
        for (int half = 0; half < 2; half++) {
            for (u64 i = 0; i < (half ? lap.ms : lap.naps); i++) if (cuLaunchHostFunc(lap.stream, nap, (void *)0)) abort();
            if (cuStreamSynchronize(lap.stream)) abort();
            lap.queued = 1;
            spins++;
        }
    }
    return 0;
}
// Work that ends when this thread has made calls that are held back, again and again; the thread has but those to make.
static volatile int late;
static void until_late(void *p) { while (late != (int)(uintptr_t)p && spinning) usleep(1000); }
static void *be_late(void *p) {
    u64 free, total;
    (void)p;
    cuCtxSetCurrent((void *)*var("ctx0"));
    for (int n = 1; spinning; n++) {
        if (cuLaunchHostFunc(lap.stream, until_late, (void *)(uintptr_t)n)) abort();
        lap.queued = 1;
        usleep(lap.ms * 1000);
        for (u64 i = 0; i < lap.naps; i++) if (cuMemGetInfo_v2(&free, &total)) abort();
        late = n;
        spins++;
    }
    return 0;
}

// A rank that reduces as fast as it can, calls in groups of so many (1: without a group), and never waits.
typedef struct { char b[128]; } Id;
static struct {
    int (*init)(void **, int, Id, int), (*reduce)(const void *, void *, size_t, int, int, void *, void *), (*start)(void), (*end)(void);
    void *comm; u64 buffer; void *stream; u64 group;
} rank;
static int join(const char *path, const char *name) {
    void *l = dlopen(path, RTLD_NOW);
    Id id = {{0}};
    if (!l) return 999;
    rank.init = dlsym(l, "ncclCommInitRank"); rank.reduce = dlsym(l, "ncclAllReduce");
    rank.start = dlsym(l, "ncclGroupStart"); rank.end = dlsym(l, "ncclGroupEnd");
    strncpy(id.b, name, 127);
    return rank.init(&rank.comm, 1, id, 0);
}
static int reduce(void) { return rank.reduce((void *)rank.buffer, (void *)rank.buffer, 4, 7, 0, rank.comm, rank.stream); }
static void *reduce_always(void *p) {
    (void)p;
    cuCtxSetCurrent((void *)*var("ctx0"));
    while (spinning) {
        if (rank.group > 1 && rank.start()) abort();
        for (u64 i = 0; i < rank.group; i++) if (reduce()) abort();
        if (rank.group > 1 && rank.end()) abort();
        spins += rank.group;
        usleep(200);
    }
    return 0;
}

int main(void) {
    char line[512];
    setvbuf(stdin, 0, _IONBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        char *a[10] = {0}; int n = 0; char text[400] = ""; R r = 0;
        for (char *t = strtok(line, " \n"); t && n < 10; t = strtok(0, " \n")) a[n++] = t;
        if (!n) continue;
#define IS(s) else if (!strcmp(a[0], s))
#define NUM(i) (a[i] ? strtoull(a[i], 0, 0) : 0)
#define V(i) (*var(a[i]))
        if (!strcmp(a[0], "quit")) { reply(0, ""); return 0; }
        // As a library loaded with RTLD_DEEPBIND, or one that knows dlvsym, would find it.
        IS("bypass") { static void *volatile slot; void *(*find)(void *, const char *) = dlvsym(dlopen("libc.so.6", RTLD_NOW), "dlsym", "GLIBC_2.2.5"); slot = find(libcuda(), a[1]); snprintf(text, sizeof text, "%d", slot != 0); }
        IS("pollall") { spinning = 1; pthread_create(&spinner, 0, poll_all, 0); }
        IS("count") { void *m = 0; r = cuMemHostAlloc(&m, COUNTED * 4096, NUM(1)); if (!r) { memset(m, 0, COUNTED * 4096); counted = m; spinning = 1; pthread_create(&spinner, 0, count, 0); } }
        IS("stopcount") { unsigned flags = 0; spinning = 0; pthread_join(spinner, 0); r = cuMemHostGetFlags(&flags, (void *)counted); if (!r) r = cuMemFreeHost((void *)counted); snprintf(text, sizeof text, "%llu %u", lost, flags); }
        IS("control") {
            unsigned lock[16] = {10000}; int pid = NUM(2);
            if (!strcmp(a[1], "lock")) r = cuCheckpointProcessLock(pid, lock);
            else if (!strcmp(a[1], "checkpoint")) r = cuCheckpointProcessCheckpoint(pid, 0);
            else if (!strcmp(a[1], "restore")) r = cuCheckpointProcessRestore(pid, 0);
            else r = cuCheckpointProcessUnlock(pid, 0);
        }
        IS("init") { r = cuInit(0); }
        IS("initby") { R (*f)(unsigned) = find(*a[1], "cuInit", "cuInit"); r = f(0); }
        IS("device") { void *c = 0; char name[16]; r = cuDevicePrimaryCtxRetain(&c, NUM(1)); if (!r) r = cuCtxSetCurrent(c); snprintf(name, 16, "ctx%s", a[1]); *var(name) = (u64)c; }
        IS("context") { void *c = 0; r = cuCtxCreate_v2(&c, 0, NUM(2)); V(1) = (u64)c; }
        IS("limit") { size_t v = 0; r = cuCtxGetLimit(&v, NUM(1)); snprintf(text, 400, "%zu", v); }
        IS("setlimit") { r = cuCtxSetLimit(NUM(1), NUM(2)); }
        IS("setctx") { r = cuCtxSetCurrent((void *)V(1)); }
        IS("destroy") { r = cuCtxDestroy_v2((void *)V(1)); }
        IS("reset") { r = cuDevicePrimaryCtxReset_v2(NUM(1)); }
        IS("peer") { r = cuCtxEnablePeerAccess((void *)V(1), 0); }
        IS("unpeer") { r = cuCtxDisablePeerAccess((void *)V(1)); }
        IS("alloc") { r = cuMemAlloc_v2(&V(1), NUM(2)); snprintf(text, 400, "%llx", V(1)); }
        IS("allocby") { R (*f)(u64 *, size_t) = find(*a[1], "cuMemAlloc_v2", "cuMemAlloc"); r = f(&V(2), NUM(3)); }
        IS("same") { snprintf(text, 400, "%d", find(*a[1], a[2], a[3]) == dlsym(RTLD_DEFAULT, a[2])); }
        IS("next") { snprintf(text, 400, "%d", dlsym(RTLD_NEXT, "cuInit") == dlsym(RTLD_DEFAULT, "cuInit")); }
        IS("pitch") { size_t p; r = cuMemAllocPitch_v2(&V(1), &p, NUM(2), NUM(3), 4); snprintf(text, 400, "%zu", p); }
        IS("managed") { r = cuMemAllocManaged(&V(1), NUM(2), 1); }
        IS("free") { r = cuMemFree_v2(V(1)); }
        IS("info") { size_t f, t; r = cuMemGetInfo_v2(&f, &t); snprintf(text, 400, "%zu %zu", f, t); }
        IS("fill") { size_t s = NUM(2); unsigned char *b = malloc(s); for (size_t i = 0; i < s; i++) b[i] = pattern(NUM(3), i); r = cuMemcpyHtoD_v2(V(1), b, s); free(b); }
        IS("fillby") { R (*f)(u64, const void *, size_t) = find(*a[1], "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"); size_t s = NUM(3); unsigned char *b = malloc(s); for (size_t i = 0; i < s; i++) b[i] = pattern(NUM(4), i); r = f(V(2), b, s); free(b); }
        IS("check") { size_t s = NUM(2), bad = 0; unsigned char *b = calloc(1, s); r = cuMemcpyDtoH_v2(b, V(1), s); for (size_t i = 0; i < s; i++) bad += b[i] != pattern(NUM(3), i); if (!r && bad) snprintf(text, 400, "BAD %zu", bad); free(b); }
        IS("copy") { r = cuMemcpyDtoD_v2(V(1), V(2), NUM(3)); }
        IS("range") { u64 b; size_t s; r = cuMemGetAddressRange_v2(&b, &s, V(1) + NUM(2)); snprintf(text, 400, "%lld %zu", (long long)(b - V(1)), s); }
        IS("attr") { u64 v = 0; r = cuPointerGetAttribute(&v, NUM(2), V(1)); snprintf(text, 400, "%llx", v); }
        IS("attrs") { u64 v[2] = {0}; int k[2] = {11, 12}; void *d[2] = {&v[0], &v[1]}; r = cuPointerGetAttributes(2, k, d, V(1)); snprintf(text, 400, "%lld %llu", (long long)(v[0] - V(1)), v[1]); }
        IS("ipc") { char h[64]; r = cuIpcGetMemHandle(h, V(1)); }
        IS("ipcget") { unsigned char h[64]; r = cuIpcGetMemHandle(h, V(1)); for (int i = 0; i < 64; i++) sprintf(text + 2 * i, "%02x", h[i]); }
        IS("ipcopen") { Ipc h; for (int i = 0; i < 64; i++) { unsigned b = 0; sscanf(a[2] + 2 * i, "%2x", &b); h.b[i] = b; } u64 p = 0; r = cuIpcOpenMemHandle_v2(&p, h, 1); V(1) = p; snprintf(text, 400, "%llx", p); }
        IS("event") { void *e = 0; r = cuEventCreate(&e, 6); V(1) = (u64)e; }
        IS("record") { r = cuEventRecord((void *)V(1), (void *)V(2)); }
        IS("query") { r = cuEventQuery((void *)V(1)); }
        IS("ipcevent") { unsigned char h[64]; r = cuIpcGetEventHandle(h, (void *)V(1)); for (int i = 0; i < 64; i++) sprintf(text + 2 * i, "%02x", h[i]); }
        IS("openevent") { Ipc h; void *e = 0; for (int i = 0; i < 64; i++) { unsigned b = 0; sscanf(a[2] + 2 * i, "%2x", &b); h.b[i] = b; } r = cuIpcOpenEventHandle(&e, h); V(1) = (u64)e; }
        IS("waitevent") { r = cuStreamWaitEvent((void *)V(1), (void *)V(2), 0); }
        IS("ipcclose") { r = cuIpcCloseMemHandle(V(1)); }
        IS("create") { Prop p = {.type = 1, .types = NUM(4), .loc = {1, NUM(3)}}; r = cuMemCreate(&V(1), NUM(2), &p, 0); snprintf(text, 400, "%llx", V(1)); }
        IS("types") { Prop p; r = cuMemGetAllocationPropertiesFromHandle(&p, V(1)); snprintf(text, 400, "%d", p.types); }
        IS("release") { r = cuMemRelease(V(1)); }
        IS("reserve") { r = cuMemAddressReserve(&V(1), NUM(2), 0, 0, 0); }
        IS("unreserve") { r = cuMemAddressFree(V(1), NUM(2)); }
        IS("map") { r = cuMemMap(V(1) + NUM(2), NUM(3), NUM(4), V(5), 0); }
        IS("unmap") { r = cuMemUnmap(V(1) + NUM(2), NUM(3)); }
        IS("access") { Acc c = {{1, NUM(4)}, a[5] ? NUM(5) : 3}; r = cuMemSetAccess(V(1) + NUM(2), NUM(3), &c, 1); }
        IS("getaccess") { Loc l = {1, NUM(3)}; u64 f = 0; r = cuMemGetAccess(&f, &l, V(1) + NUM(2)); snprintf(text, 400, "%llu", f); }
        IS("retain") { r = cuMemRetainAllocationHandle(&V(1), (void *)(V(2) + NUM(3))); snprintf(text, 400, "%llx", V(1)); }
        IS("add") { V(1) = V(2) + NUM(3); }
        IS("export") { int fd = -1; r = cuMemExportToShareableHandle(&fd, V(2), 1, 0); V(1) = fd; snprintf(text, 400, "%d", fd); }
        IS("import") { r = cuMemImportFromShareableHandle(&V(1), (void *)(uintptr_t)NUM(2), 1); snprintf(text, 400, "%llx", V(1)); }
        IS("importvar") { r = cuMemImportFromShareableHandle(&V(1), (void *)(uintptr_t)V(2), 1); snprintf(text, 400, "%llx", V(1)); }
        IS("importtwice") { // two threads at once
            u64 at[2][2] = {{V(3)}, {V(3)}}; pthread_t t[2];
            for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, importing, at[i]);
            for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
            V(1) = at[0][0]; V(2) = at[1][0]; r = at[0][1] ? at[0][1] : at[1][1]; snprintf(text, 400, "%d", V(1) == V(2));
        }
        IS("nofile") { struct rlimit l; getrlimit(RLIMIT_NOFILE, &l); l.rlim_cur = NUM(1); r = setrlimit(RLIMIT_NOFILE, &l); }
        IS("limitis") { struct rlimit l; r = getrlimit(RLIMIT_NOFILE, &l); snprintf(text, 400, "%llu", (u64)l.rlim_cur); }
        IS("openall") { while (open("/dev/null", O_RDONLY) >= 0); }
        IS("closeall") { for (int i = 3; i < (int)NUM(1); i++) { char p[64], l[64] = ""; snprintf(p, 64, "/proc/self/fd/%d", i); if (readlink(p, l, 63) > 0 && !strcmp(l, "/dev/null")) close(i); } }
        IS("bulk") { many = calloc(NUM(1), 8); for (nmany = 0; nmany < NUM(1) && !r; nmany++) { r = cuMemAlloc_v2(&many[nmany], NUM(2)); if (!r) r = cuMemcpyHtoD_v2(many[nmany], &nmany, 8); } }
        IS("bulkcheck") { u64 bad = 0; for (u64 i = 0; i < nmany && !r; i++) { u64 v = ~0ull; r = cuMemcpyDtoH_v2(&v, many[i], 8); bad += v != i; } snprintf(text, 400, "%llu of %llu", bad, nmany); }
        IS("getfd") { int p = syscall(SYS_pidfd_open, (pid_t)NUM(2), 0); int fd = syscall(SYS_pidfd_getfd, p, (int)NUM(3), 0); close(p); V(1) = fd; r = fd < 0; }
        IS("forknvidia") { // what of the driver a forked child has
            int q[2]; if (pipe(q)) abort();
            pid_t p = fork();
            if (!p) {
                int fds = 0, maps = 0; char l[600]; DIR *d = opendir("/proc/self/fd"); struct dirent *e; char s[200];
                while ((e = readdir(d))) { char path[300]; snprintf(path, 300, "/proc/self/fd/%s", e->d_name); ssize_t k = readlink(path, l, 599); if (k > 0) { l[k] = 0; fds += !!strstr(l, "nvidia"); } }
                FILE *f = fopen("/proc/self/maps", "r"); while (fgets(l, 600, f)) maps += !!strstr(l, "/dev/nvidia");
                int k = snprintf(s, 200, "fds %d maps %d", fds, maps); if (write(q[1], s, k + 1) < 0) _exit(1); _exit(0);
            }
            int s; waitpid(p, &s, 0); if (read(q[0], text, 200) < 0) abort(); close(q[0]); close(q[1]);
        }
        IS("populate") { // a mapping as the driver asks for it in a checkpoint: whether it is to have huge pages
            size_t n = 20 << 20; char l[600], at[40]; int in = 0, huge = 0;
            void *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
            snprintf(at, 40, "%lx-", (unsigned long)p);
            FILE *f = fopen("/proc/self/smaps", "r");
            while (fgets(l, 600, f)) { if (strstr(l, at) == l) in = 1; if (in && strstr(l, "VmFlags:")) { huge = strstr(l, " hg") != 0; break; } }
            fclose(f); r = p == MAP_FAILED || munmap(p, n); snprintf(text, 400, "%s", huge ? "huge" : "small");
        }
        IS("close") { r = close(V(1)); }
        IS("stream") { void *s = 0; r = cuStreamCreate(&s, 1); V(1) = (u64)s; }
        IS("begin") { r = cuStreamBeginCapture_v2((void *)V(1), 2); }
        IS("end") { void *g; r = cuStreamEndCapture((void *)V(1), &g); V(2) = (u64)g; }
        IS("streamdestroy") { r = cuStreamDestroy_v2((void *)V(1)); }
        IS("nap") { r = cuLaunchHostFunc((void *)V(1), nap, (void *)NUM(2)); }
        IS("sync") { r = cuCtxSynchronize(); }
        IS("spin") { static pthread_t t; static u64 at; at = V(1); spinning = 1; for (int i = 0; i < 3; i++) pthread_create(&t, 0, spin, &at); }
        IS("pipeline") { lap.stream = (void *)V(1); lap.naps = NUM(2); lap.ms = NUM(3); spins = 0; spinning = 1; lap.queued = 0; pthread_create(&spinner, 0, pipeline, 0); while (!lap.queued) usleep(1000); }
        IS("late") { lap.stream = (void *)V(1); lap.naps = NUM(2); lap.ms = NUM(3); spins = 0; spinning = 1; lap.queued = 0; pthread_create(&spinner, 0, be_late, 0); while (!lap.queued) usleep(1000); }
        IS("laps") { lap.stream = (void *)V(1); lap.naps = NUM(2); lap.ms = NUM(3); spins = 0; spinning = 1; lap.queued = 0; pthread_create(&spinner, 0, train, 0); while (!lap.queued) usleep(1000); }
        IS("steps") { lap.stream = (void *)V(1); lap.naps = NUM(2); lap.ms = NUM(3); spins = 0; spinning = 1; lap.queued = 0; pthread_create(&spinner, 0, steps, 0); while (!lap.queued) usleep(1000); }
        IS("join") { rank.buffer = V(3); rank.stream = (void *)V(4); r = join(a[1], a[2]); }
        IS("reduce") { r = reduce(); }
        IS("joinby") { // a library that uses NCCL: its path, a name, and where to keep what it has
            void *l = dlopen(a[1], RTLD_NOW | RTLD_LOCAL), *c = 0;
            int (*f)(void **, const char *) = l ? dlsym(l, "user_join") : 0;
            r = f ? f(&c, a[2]) : 999; V(3) = (u64)c; V(4) = (u64)l;
        }
        IS("reduceby") { int (*f)(void *, void *, void *) = dlsym((void *)V(2), "user_reduce"); r = f((void *)V(3), (void *)V(1), (void *)V(4)); }
        IS("reducedby") { int (*f)(void) = dlsym((void *)V(1), "user_reduced"); snprintf(text, 400, "%d", f()); }
        IS("globally") { snprintf(text, 400, "%d", dlsym(RTLD_DEFAULT, a[1]) != 0); }
        IS("reducing") { rank.group = NUM(1); spins = 0; spinning = 1; pthread_create(&spinner, 0, reduce_always, 0); while (!spins) usleep(1000); }
        IS("startgraph") { void *x = 0, *g = (void *)V(1); r = cuGraphInstantiateWithFlags(&x, g, 0); V(2) = (u64)x; if (!r) r = cuGraphDestroy(g); }
        IS("launch") { r = cuGraphLaunch((void *)V(1), (void *)V(2)); }
        IS("spins") { snprintf(text, 400, "%llu", spins); }
        IS("stopspin") { spinning = 0; }
        IS("stopjob") { spinning = 0; r = pthread_join(spinner, 0); }
        IS("fds") { DIR *d = opendir("/proc/self/fd"); struct dirent *e; while ((e = readdir(d))) { char p[300], l[300] = ""; snprintf(p, 300, "/proc/self/fd/%s", e->d_name); if (e->d_name[0] != '.' && readlink(p, l, 299) > 0 && strstr(l, "socket")) strcat(text, "s"); } closedir(d); }
        IS("fork") {
            pid_t p = fork();
            if (!p) {
                int sockets = 0; DIR *d = opendir("/proc/self/fd"); struct dirent *e;
                while ((e = readdir(d))) { char q[300], l[300] = ""; snprintf(q, 300, "/proc/self/fd/%s", e->d_name); if (readlink(q, l, 299) > 0 && strstr(l, "socket")) sockets++; }
                u64 x; cuMemAlloc_v2(&x, 4096); // whatever it answers, it must return
                fprintf(stderr, "child: %d sockets\n", sockets);
                if (a[1]) exit(sockets); // with the driver's own exit code
                _exit(sockets);
            }
            int s; waitpid(p, &s, 0); r = WIFEXITED(s) ? WEXITSTATUS(s) : 999;
        }
        IS("forkwork") { // a child forked before cuInit works by itself
            pid_t p = fork();
            if (!p) { void *c; u64 x; if (cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c) || cuMemAlloc_v2(&x, 4 << 20)) _exit(1); usleep(300000); _exit(0); }
            int s; waitpid(p, &s, 0); r = WIFEXITED(s) ? WEXITSTATUS(s) : 999;
        }
        else { printf("what? %s\n", a[0]); fflush(stdout); continue; }
        reply(r, text);
    }
    return 0;
}
