/* Two batches of slabs and two semaphores for each pair, in memory that both processes have:
 *
 *     thread   fill batch 0, ask, fill batch 1, ask, await, drain batch 0, fill batch 0, ask, ...
 *     child            await, compute batch 0, answer, await, compute batch 1, answer, ...
 */
#include "tests/bench/jobs/pairs.h"
#include "tests/bench/bulk.h"

#include "proto/box.h"
#include "proto/util.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAIRS      2u
#define BATCHES    2u
#define N_SLABS    8u /* in a batch; others are slower, as are smaller and larger slabs */
#define SLAB_BYTES ((size_t)128 << 10)

struct batch {
    size_t n_slabs, counts[N_SLABS]; /* elements */
    double in[N_SLABS][SLAB_BYTES / sizeof(double)] __attribute__((aligned(4096)));
    double out[N_SLABS][SLAB_BYTES / sizeof(double)] __attribute__((aligned(4096)));
};

struct pair {
    pid_t pid;
    sem_t asked, answered;
    struct batch batches[BATCHES];
};

static struct pair *pairs;
static cpu_set_t all_cpus;

/* The pair's process and this thread: on the index-th processor that there is, or wherever they are
 * put. Where they stay together one finds in the cache what the other had there. */
static void place(const struct pair *pair, unsigned index, bool stays)
{
    cpu_set_t cpus = all_cpus;
    for (int cpu = 0; stays && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus) && index-- != 0)
            CPU_CLR(cpu, &cpus);
    if (CPU_COUNT(&cpus) > 0)
        (void)!(sched_setaffinity(0, sizeof(cpus), &cpus) ||
                sched_setaffinity(pair->pid, sizeof(cpus), &cpus));
}

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore))
        ;
}

static void run_child(struct pair *pair, pairs_compute *compute)
{
    for (unsigned i = 0;; i = (i + 1) % BATCHES) {
        struct batch *batch = &pair->batches[i];
        await(&pair->asked);
        for (size_t j = 0; j < batch->n_slabs; j++)
            compute(batch->out[j], batch->in[j], batch->counts[j]);
        sem_post(&pair->answered);
    }
}

void pairs_start(pairs_compute *compute)
{
    pairs = mmap(NULL, PAIRS * sizeof(*pairs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    for (unsigned i = 0; i < PAIRS; i++) {
        if (sched_getaffinity(0, sizeof(all_cpus), &all_cpus) || pairs == MAP_FAILED ||
            sem_init(&pairs[i].asked, 1, 0) || sem_init(&pairs[i].answered, 1, 0)) {
            perror("memory of two processes");
            exit(1);
        }
        pairs[i].pid = fork();
        if (pairs[i].pid < 0) {
            perror("fork");
            exit(1);
        }
        if (pairs[i].pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run_child(&pairs[i], compute);
        }
    }
}

struct work {
    double *to;
    const double *from;
    size_t n;
    bool stays;
};

/* Of one thread: elements of its part, from `next` to `end`, are still to be asked for. */
struct part {
    size_t next, end, begins[BATCHES];
};

/* Copies out what was computed, and in what comes next, slab by slab, as the library does. */
static void turn_over(const struct work *w, struct part *part, struct pair *pair, unsigned i)
{
    struct batch *batch = &pair->batches[i];
    size_t old = part->begins[i], n_old = batch->n_slabs;
    part->begins[i] = part->next;
    batch->n_slabs = 0;
    for (size_t j = 0; j < N_SLABS; j++) {
        size_t n_out = j < n_old ? batch->counts[j] : 0;
        size_t n_in = min_u64(part->end - part->next, SLAB_BYTES / sizeof(double));
        const double *from = w->from + part->next;
        if (n_out > 0)
            box_copy_past_cache(w->to + old, batch->out[j], n_out * sizeof(double), from,
                                n_in * sizeof(double));
        if (n_in > 0)
            memcpy(batch->in[j], from, n_in * sizeof(double));
        old += n_out;
        part->next += n_in;
        batch->counts[j] = n_in;
        batch->n_slabs += n_in > 0;
    }
    if (batch->n_slabs > 0)
        sem_post(&pair->asked);
}

static void run_thread(void *data, size_t index, size_t n)
{
    const struct work *w = data;
    struct pair *pair = &pairs[index];
    struct part part = {.next = w->n / PAIRS * index};
    part.end = index + n == PAIRS ? w->n : part.next + w->n / PAIRS;
    unsigned i = 0;
    place(pair, (unsigned)index, w->stays);
    for (; i < BATCHES; i++) {
        pair->batches[i].n_slabs = 0;
        turn_over(w, &part, pair, i);
    }
    for (i = 0; pair->batches[i].n_slabs > 0; i = (i + 1) % BATCHES) {
        await(&pair->answered);
        turn_over(w, &part, pair, i);
    }
    box_fence();
}

double pairs_run(double *to, const double *from, size_t n, bool stays)
{
    struct work w = {.to = to, .from = from, .n = n, .stays = stays};
    return bulk_parallel(run_thread, &w, PAIRS, 1);
}
