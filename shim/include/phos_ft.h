/* What a program may tell phos-ft of itself. Nothing depends on it: a job needs none of this to be checkpointed, and where phos-ft does not look
 * after the process, each function answers PHOS_FT_ABSENT and does nothing else.
 *
 * The functions are found at run time (dlsym), so that a program needs no library to link with; before glibc 2.34 it has to be linked with -ldl.
 * They may be called from any thread, and not from signal handlers. The same for Python: `import phos_ft`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PHOS_FT_H
#define PHOS_FT_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This process is not looked after: phos-ft does not run the job, or the process has not initialised CUDA. */
#define PHOS_FT_ABSENT (-1)

/* A checkpoint, as phos_ft_last tells it. */
struct phos_ft_checkpoint {
    size_t size;      /* sizeof(struct phos_ft_checkpoint), set by the caller: later versions may have more members */
    uint64_t number;  /* its number, as `phos-ft list` shows it: on this machine, or in the store if it is there */
    uint64_t unix_ms; /* when the job was held for it, in ms since 1970; of one that the job was resumed from, when it was stored */
    int64_t step;     /* the last step that was told before it; -1: none was */
    int in_store;     /* 1: it is in the store; 0: on this machine only */
};

static inline void *phos_ft_find_(const char *name)
{
    /* RTLD_DEFAULT, which older C libraries name for _GNU_SOURCE alone. */
    return dlsym((void *)0, name);
}

/* A step of training has ended, and this was its number. A checkpoint that is due is taken here, before the function returns, if the GPU can be
 * idle within a second; its number is in `phos-ft show`. Cheap enough for every step. 0, or PHOS_FT_ABSENT. */
static inline int phos_ft_step_ended(uint64_t step)
{
    static int (*call)(uint64_t);
    if (!call) *(void **)&call = phos_ft_find_("phos_ft_step");
    return call ? call(step) : PHOS_FT_ABSENT;
}

/* From here to the matching phos_ft_end_no_checkpoint no checkpoint is taken: around work that must not be done twice, such as a message to a
 * service outside the job. Sections may nest; they end a checkpoint's wait after a minute, which then fails and is tried again. */
static inline int phos_ft_begin_no_checkpoint(void)
{
    static int (*call)(int);
    if (!call) *(void **)&call = phos_ft_find_("phos_ft_no_checkpoint");
    return call ? call(1) : PHOS_FT_ABSENT;
}

/* The end of such a section. 1: none was begun. */
static inline int phos_ft_end_no_checkpoint(void)
{
    static int (*call)(int);
    if (!call) *(void **)&call = phos_ft_find_("phos_ft_no_checkpoint");
    return call ? call(0) : PHOS_FT_ABSENT;
}

/* Asks for a checkpoint as soon as can be, and does not wait for it. 0, or PHOS_FT_ABSENT. */
static inline int phos_ft_request_checkpoint(void)
{
    static int (*call)(void);
    if (!call) *(void **)&call = phos_ft_find_("phos_ft_checkpoint");
    return call ? call() : PHOS_FT_ABSENT;
}

/* The newest checkpoint of the job. 1: *last is filled; 0: there is none yet; PHOS_FT_ABSENT. last->size has to be set. */
static inline int phos_ft_last_checkpoint(struct phos_ft_checkpoint *last)
{
    static int (*call)(struct phos_ft_checkpoint *);
    if (!call) *(void **)&call = phos_ft_find_("phos_ft_last");
    return call ? call(last) : PHOS_FT_ABSENT;
}

#ifdef __cplusplus
}
#endif

#endif
