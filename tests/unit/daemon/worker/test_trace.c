/* The trace's ring: what it keeps, of whom, and that threads which meet in it leave nothing torn.
 */
#include "daemon/worker/trace.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdlib.h>

static struct trace *trace;
static struct trace_record *found;

static void set_up(void)
{
    cr_assert(eq(int, trace_new(1000, &trace), 0));
    found = calloc(TRACE_SLOTS, sizeof(*found));
    cr_assert(found != NULL);
}

static void tear_down(void)
{
    trace = trace_free(trace);
    free(found);
}

static void add(uint64_t job, uint64_t begin_ns, uint64_t duration_ns, uint32_t tile)
{
    const struct trace_record record = {.begin_ns = begin_ns,
                                        .duration_ns = duration_ns,
                                        .tile = tile,
                                        .lane = TRACE_LANE_KERNELS,
                                        .kind = TRACE_KERNEL,
                                        .pass = 39};
    trace_add(trace, job, &record);
}

TestSuite(trace, .init = set_up, .fini = tear_down);

Test(trace, records_are_of_their_job)
{
    uint64_t since_ns = 0;
    cr_assert(eq(uint, trace_find(trace, 7, found, &since_ns), 0));
    cr_assert(eq(u64, since_ns, 1000));
    add(7, 2000, 10, 1);
    add(8, 3000, 20, UINT32_MAX);
    add(7, 4000, 0, 3);
    cr_assert(eq(uint, trace_find(trace, 8, found, &since_ns), 1));
    cr_assert(eq(u64, found[0].begin_ns, 3000));
    cr_assert(eq(u64, found[0].duration_ns, 20));
    cr_assert(eq(u32, found[0].tile, UINT32_MAX));
    cr_assert(eq(uint, found[0].lane, TRACE_LANE_KERNELS));
    cr_assert(eq(uint, found[0].kind, TRACE_KERNEL));
    cr_assert(eq(uint, found[0].pass, 39));
    cr_assert(eq(uint, trace_find(trace, 7, found, &since_ns), 2));
    cr_assert(eq(uint, trace_find(trace, 9, found, &since_ns), 0));
    cr_assert(eq(u64, since_ns, 1000));
}

Test(trace, the_oldest_are_forgotten)
{
    uint64_t since_ns = 0;
    for (uint64_t i = 0; i < TRACE_SLOTS; i++)
        add(1, 10000 + i, 5, (uint32_t)i);
    cr_assert(eq(uint, trace_find(trace, 1, found, &since_ns), TRACE_SLOTS));
    cr_assert(eq(u64, since_ns, 1000));
    for (uint64_t i = 0; i < 100; i++)
        add(2, 90000 + i, 5, (uint32_t)i);
    cr_assert(eq(uint, trace_find(trace, 2, found, &since_ns), 100));
    cr_assert(eq(u64, since_ns, 10000 + 99 + 5)); /* the last that is gone has ended then */
    unsigned n = trace_find(trace, 1, found, &since_ns);
    cr_assert(eq(uint, n, TRACE_SLOTS - 100));
    for (unsigned i = 0; i < n; i++)
        cr_assert(le(u64, 10000 + 100, found[i].begin_ns));
    for (uint64_t i = 0; i < 10 * TRACE_SLOTS; i++)
        add(3, i, 5, (uint32_t)i);
    cr_assert(eq(uint, trace_find(trace, 1, found, &since_ns), 0));
}

/* A device's copies are told of when its tile has landed. */
Test(trace, what_is_forgotten_may_have_ended_after_what_is_left)
{
    uint64_t since_ns = 0;
    add(1, 50000, 5, 0);
    for (uint64_t i = 0; i < TRACE_SLOTS; i++)
        add(2, 10000 + i, 5, (uint32_t)i);
    cr_assert(eq(uint, trace_find(trace, 1, found, &since_ns), 0));
    cr_assert(eq(u64, since_ns, 50005), "or job 1 would seem to have done nothing");
}

Test(trace, what_ends_before_it_begins_is_left_out)
{
    uint64_t since_ns;
    add(1, 5, (uint64_t)-1, 0);
    cr_assert(eq(uint, trace_find(trace, 1, found, &since_ns), 0));
    trace_add(NULL, 1, &(struct trace_record){.tile = 1});
}

/* All numbers of a record follow from its job and its tile. */
static uint64_t number_of(uint64_t job, uint32_t tile)
{
    return (job << 32 | tile) * 3;
}

static void *write_many(void *argument)
{
    uint64_t job = (uint64_t)(uintptr_t)argument;
    for (uint32_t i = 0; i < 4 * TRACE_SLOTS; i++)
        add(job, number_of(job, i), job * 7, i);
    return NULL;
}

Test(trace, threads_that_meet_tear_nothing)
{
    pthread_t threads[4];
    uint64_t since_ns;
    unsigned n_all = 0;
    for (uintptr_t i = 0; i < 4; i++)
        cr_assert(eq(int, pthread_create(&threads[i], NULL, write_many, (void *)(i + 1)), 0));
    for (unsigned round = 0; round < 60; round++)
        for (uint64_t job = 1; job <= 4; job++) {
            unsigned n = trace_find(trace, job, found, &since_ns);
            for (unsigned i = 0; i < n; i++) {
                cr_assert(eq(u64, found[i].begin_ns, number_of(job, found[i].tile)));
                cr_assert(eq(u64, found[i].duration_ns, job * 7));
            }
        }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (uint64_t job = 1; job <= 4; job++)
        n_all += trace_find(trace, job, found, &since_ns);
    cr_assert(le(uint, n_all, TRACE_SLOTS));
    cr_assert(lt(uint, TRACE_SLOTS / 2, n_all));
}
