/* Turns that are put aside: long tiles of several users on one thread. What is asserted are orders
 * of answers and bits, no times. */
#include "tests/unit/daemon/worker/harness.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <sys/mman.h>

#define N_VALUES   (32 * 1024) /* one grain */
#define N_BYTES    (N_VALUES * sizeof(double))
#define N_PLACES   8
#define POOL_BYTES (8u * 1024 * 1024)

struct fixture {
    struct harness h;
    double *values; /* N_PLACES arrays, the first is everybody's argument */
    int fd;
};

static void set_up(struct fixture *f, unsigned n_threads)
{
    harness_start(&f->h, POOL_BYTES, n_threads);
    f->fd = make_memfd(N_PLACES * N_BYTES, F_SEAL_SHRINK | F_SEAL_GROW);
    f->values = mmap(NULL, N_PLACES * N_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    cr_assert(ne(ptr, f->values, MAP_FAILED));
    for (size_t i = 0; i < N_VALUES; i++)
        f->values[i] = -170.3 - (double)i * 1e-7; /* where gamma is slow */
    cr_assert(zero(int, harness_attach(&f->h, 1, f->fd, N_PLACES * N_BYTES, true)));
}

static void tear_down(struct fixture *f)
{
    munmap(f->values, N_PLACES * N_BYTES);
    close(f->fd);
    harness_stop(&f->h);
}

/* Of one tile each: a moment; ten slices of time at least; and so long that who sends something
 * next is in time. */
#define SHORT  "a * 2" /* but not for the main thread */
#define SLICES "gamma(a) + gamma(a - 1e-5)"
#define LONG                                                                                       \
    "gamma(a) + gamma(a - 1e-5) + gamma(a - 2e-5) + gamma(a - 3e-5) + gamma(a - 4e-5) + "          \
    "gamma(a - 5e-5) + gamma(a - 6e-5) + gamma(a - 7e-5)"

/* Into the array at `place`. */
static uint32_t send_job(struct fixture *f, uint64_t id, uint32_t user, unsigned place,
                         const char *expr)
{
    const int64_t shape[] = {N_VALUES};
    struct test_job j;
    job_init(&j, id);
    j.user = user;
    at_region(job_arg(&j, "a", DTYPE_FLOAT64, 1, shape), 1, 0);
    at_region(job_output_to(&j, expr, "r", DTYPE_FLOAT64, 1, shape), 1, place * N_BYTES);
    return harness_send(&f->h, &j);
}

/* Of all that is asked: how many were computed. The others were cancelled. */
static unsigned count_done(struct fixture *f, unsigned n_answers)
{
    unsigned n_done = 0;
    for (unsigned i = 0; i < n_answers; i++) {
        struct outcome o;
        harness_receive(&f->h, &o, NULL);
        cr_assert(o.status == 0 || o.status == GAD_CANCELLED, "%s", o.error.message);
        n_done += o.status == 0;
        outcome_free(&o);
    }
    return n_done;
}

static uint32_t next_answer(struct fixture *f, int want_status)
{
    struct outcome o;
    harness_receive(&f->h, &o, NULL);
    cr_assert(eq(int, o.status, want_status), "%s", o.error.message);
    uint32_t id = o.id;
    outcome_free(&o);
    return id;
}

Test(aside, others_go_before_the_rest_of_a_long_tile)
{
    struct fixture f;
    set_up(&f, 1);
    uint32_t first = send_job(&f, 1, 1000, 1, LONG);
    uint32_t second = send_job(&f, 2, 1000, 2, LONG);
    uint32_t quick = send_job(&f, 3, 2000, 3, SHORT);
    cr_assert(eq(u32, next_answer(&f, 0), quick));
    cr_assert(eq(u32, next_answer(&f, 0), first), "of one user the first, which was begun");
    cr_assert(eq(u32, next_answer(&f, 0), second));
    cr_assert(eq(dbl, f.values[3 * N_VALUES + 5], 2 * f.values[5]));
    cr_assert(zero(int, memcmp(f.values + N_VALUES, f.values + 2 * N_VALUES, N_BYTES)));
    tear_down(&f);
}

Test(aside, equal_jobs_of_a_user_end_in_the_order_of_arrival)
{
    struct fixture f;
    uint32_t ids[5];
    set_up(&f, 1);
    for (unsigned i = 0; i < 5; i++)
        ids[i] = send_job(&f, i + 1, 1000, i + 1, SLICES);
    for (unsigned i = 0; i < 5; i++)
        cr_assert(eq(u32, next_answer(&f, 0), ids[i]));
    tear_down(&f);
}

Test(aside, many_users_long_tiles_take_turns_and_keep_their_bits)
{
    struct fixture f;
    set_up(&f, 2);
    (void)send_job(&f, 1, 1000, 1, SLICES);
    (void)next_answer(&f, 0); /* alone */
    for (unsigned i = 2; i < N_PLACES; i++)
        (void)send_job(&f, i, 1000 + i, i, SLICES);
    for (unsigned i = 0; i < 40; i++)
        (void)send_job(&f, 100 + i, 3000 + i % 3, 1, SHORT);
    for (unsigned i = 2; i < N_PLACES + 40; i++)
        (void)next_answer(&f, 0);
    for (unsigned i = 3; i < N_PLACES; i++)
        cr_assert(zero(int, memcmp(f.values + 2 * N_VALUES, f.values + i * N_VALUES, N_BYTES)));
    cr_assert(zero(u64, harness_stat(&f.h, "threads_busy")));
    tear_down(&f);
}

Test(aside, what_is_put_aside_can_be_cancelled)
{
    struct fixture f;
    set_up(&f, 1);
    for (unsigned i = 1; i < N_PLACES; i++)
        (void)send_job(&f, i, 1000 + i, i, LONG);
    uint32_t quick = send_job(&f, 100, 2000, 1, SHORT);
    cr_assert(eq(u32, next_answer(&f, 0), quick)); /* by now some tile has been put aside */
    for (unsigned i = 1; i < N_PLACES; i++)
        harness_cancel(&f.h, i);
    for (unsigned i = 1; i < N_PLACES; i++)
        (void)next_answer(&f, GAD_CANCELLED);
    cr_assert(zero(u64, harness_stat(&f.h, "jobs")));
    cr_assert(zero(u64, harness_stat(&f.h, "threads_busy")));
    (void)send_job(&f, 200, 2000, 1, SHORT);
    (void)next_answer(&f, 0); /* nobody has lost his place */
    tear_down(&f);
}

/* Spare threads are kept for tiles that were cancelled until these are over: who waits for one is
 * not forgotten then. Twenty users have more long tiles than there are spare threads. */
Test(aside, long_tiles_begin_when_cancelled_ones_are_over)
{
    struct fixture f;
    set_up(&f, 1);
    for (unsigned i = 0; i < 20; i++)
        (void)send_job(&f, 1 + i, 1000 + i, 1, LONG);
    uint32_t quick = send_job(&f, 100, 2000, 2, SHORT);
    cr_assert(eq(u32, next_answer(&f, 0), quick));
    for (unsigned i = 0; i < 10; i++)
        (void)send_job(&f, 101 + i, 2000, 2, SHORT); /* so that turns go round */
    for (unsigned i = 0; i < 10; i++)
        (void)next_answer(&f, 0);
    for (unsigned i = 0; i < 20; i++)
        harness_cancel(&f.h, 1 + i);
    (void)send_job(&f, 200, 3000, 3, LONG);
    (void)send_job(&f, 201, 3001, 4, LONG);
    cr_assert(ge(uint, count_done(&f, 22), 2));
    cr_assert(zero(int, memcmp(f.values + 3 * N_VALUES, f.values + 4 * N_VALUES, N_BYTES)));
    tear_down(&f);
}

Test(aside, a_worker_leaves_in_the_middle_of_them)
{
    struct fixture f;
    set_up(&f, 2);
    for (unsigned i = 1; i < N_PLACES; i++)
        (void)send_job(&f, i, 1000 + i, i, LONG);
    (void)send_job(&f, 100, 2000, 1, SHORT);
    (void)next_answer(&f, 0);
    tear_down(&f);
}
