// A library that uses NCCL through its PLT, as libtorch does: linked with libnccl.so.2, or (STATIC) with an NCCL of its own inside, which it
// exports as all of NCCL's functions are exported, or (STUB) with functions of the same names that call what dlsym finds.
#include <stddef.h>
#include <string.h>

typedef struct { char b[128]; } Id;
int ncclCommInitRank(void **, int, Id, int);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);

#ifdef STUB
// As XLA has it: functions of NCCL's names that call what dlsym finds.
#include <dlfcn.h>
#define REAL(name) dlsym(dlopen("libnccl.so.2", RTLD_NOW), name)
int ncclCommInitRank(void **comm, int ranks, Id id, int rank) { return ((int (*)(void **, int, Id, int))REAL("ncclCommInitRank"))(comm, ranks, id, rank); }
int ncclAllReduce(const void *from, void *to, size_t count, int kind, int op, void *comm, void *stream) {
    return ((int (*)(const void *, void *, size_t, int, int, void *, void *))REAL("ncclAllReduce"))(from, to, count, kind, op, comm, stream);
}
#endif

#ifdef STATIC
static int reduced;
int ncclCommInitRank(void **comm, int ranks, Id id, int rank) { (void)ranks; (void)id; (void)rank; *comm = &reduced; return 0; }
int ncclAllReduce(const void *from, void *to, size_t count, int kind, int op, void *comm, void *stream) {
    (void)from; (void)to; (void)count; (void)kind; (void)op; (void)stream;
    if (comm != &reduced) return 5;
    reduced++;
    return 0;
}
int user_reduced(void) { return reduced; }
#endif

int user_join(void **comm, const char *name) {
    Id id = {{0}};
    strncpy(id.b, name, 127);
    return ncclCommInitRank(comm, 1, id, 0);
}
int user_reduce(void *buffer, void *comm, void *stream) { return ncclAllReduce(buffer, buffer, 4, 7, 0, comm, stream); }
