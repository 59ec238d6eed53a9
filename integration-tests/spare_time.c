/* A program whose threads wait for each other in each round, as those of an optimizer on the host do: what background threads cost it.
 *
 *     cc -O2 -pthread -o spare_time spare_time.c
 *     spare_time beside none|nice|idle own|other|NICE   rounds beside threads that encode: of this session, of another, of another with this nice value as a whole
 *     spare_time job MIB FILE                           rounds for ever, in memory that is written anew all the time; FILE has the rounds until now
 *
 * As many threads as there are cores, a millisecond of work a round. The figures of the first are in docs/benchmarks.md, the second is the job of
 * spare_time.py. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const double ROUND = 0.001, UNIT = 0.0025, SECONDS = 3;
static int cores;
static pthread_barrier_t barrier;
static uint8_t *memory;
static size_t share;
static volatile uint64_t *rounds;
static volatile long *units;
static double until;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Works until it has had so many seconds of a processor. */
static void work(double seconds) {
    double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds;
    volatile unsigned x = 1;
    while (now(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 200; i++) x = x * 3 + 1;
}

static void *round_trips(void *of) {
    long thread = (long)of;
    uint64_t state = 88172645463325252u + thread;
    size_t at = 0;
    for (;;) {
        pthread_barrier_wait(&barrier);
        if (until && now(CLOCK_MONOTONIC) >= until && thread == 0) *rounds |= 1ull << 63;
        work(ROUND);
        /* 64 KiB, which can be compressed by half. */
        for (size_t i = 0; share && i < 65536; i += 16, at = (at + 16) % share) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            *(uint64_t *)(memory + thread * share + at) = state;
        }
        pthread_barrier_wait(&barrier);
        if (*rounds >> 63) return NULL;
        if (thread == 0) ++*rounds;
    }
}

static void run(void) {
    pthread_t threads[1024];
    pthread_barrier_init(&barrier, NULL, cores);
    for (long i = 0; i < cores; i++) pthread_create(threads + i, NULL, round_trips, (void *)i);
    for (int i = 0; i < cores; i++) pthread_join(threads[i], NULL);
}

static void *encode(void *none) {
    for (;;) {
        work(UNIT);
        __sync_fetch_and_add(units, 1);
    }
    return none;
}

static void encode_beside(const char *how, const char *session) {
    if (strcmp(session, "own")) setsid();
    if (strcmp(session, "own") && strcmp(session, "other")) {
        FILE *file = fopen("/proc/self/autogroup", "w");
        if (!file || fputs(session, file) < 0 || fclose(file)) perror("/proc/self/autogroup");
    }
    setpriority(PRIO_PROCESS, 0, 5);
    struct sched_param none = {0};
    if (!strcmp(how, "idle") && sched_setscheduler(0, SCHED_IDLE, &none)) perror("sched_setscheduler");
    for (int i = 1; i < cores; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, encode, NULL);
    }
    encode(NULL);
}

int main(int count, char **words) {
    cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (count == 4 && !strcmp(words[1], "job")) {
        size_t bytes = strtoull(words[2], NULL, 10) << 20;
        int file = open(words[3], O_RDWR | O_CREAT, 0600);
        if (file < 0 || ftruncate(file, 4096)) return perror(words[3]), 1;
        share = bytes / cores / 65536 * 65536;
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        run();
    } else if (count == 4 && !strcmp(words[1], "beside")) {
        void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        units = shared, rounds = (uint64_t *)shared + 1;
        pid_t other = strcmp(words[2], "none") ? fork() : -1;
        if (!other) encode_beside(words[2], words[3]);
        usleep(300000);
        long before = *units;
        double began = now(CLOCK_MONOTONIC);
        until = began + SECONDS;
        run();
        double took = now(CLOCK_MONOTONIC) - began;
        printf("%-5s %-6s %6.3f ms a round, %5.1f %% of the processors\n", words[2], words[3], took / (*rounds << 1 >> 1) * 1e3,
               (*units - before) * UNIT / took / cores * 100);
        if (other > 0) kill(other, SIGKILL);
    } else {
        fprintf(stderr, "see the comment at the top of spare_time.c\n");
        return 2;
    }
    return 0;
}
