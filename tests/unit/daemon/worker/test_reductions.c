#include "tests/unit/daemon/worker/harness.h"
#include "kernels/plan/plan.h"
#include "proto/util.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* Reductions along axes in the worker: many threads combine nodes of one job, jobs share a pool. */

#define MIB    (UINT64_C(1) << 20)
#define SEALS  (F_SEAL_SHRINK | F_SEAL_GROW)
#define N_ROWS 1200
#define N_COLS 1501
#define N_JOBS 3

/* The region: the source, then a place for each job's outputs. */
#define SOURCE_BYTES (8 * MIB)
#define PLACE_BYTES  (8 * MIB)
#define REGION_BYTES (SOURCE_BYTES + N_JOBS * PLACE_BYTES)

struct fixture {
    struct harness h;
    char *base;
    int fd;
};

static float *source_of(const struct fixture *f)
{
    return (float *)(void *)f->base;
}

static char *place_of(const struct fixture *f, unsigned job)
{
    return f->base + SOURCE_BYTES + job * PLACE_BYTES;
}

static void set_up(struct fixture *f, uint64_t pool_bytes, unsigned n_threads)
{
    uint64_t state = 1;
    harness_start(&f->h, pool_bytes, n_threads);
    f->fd = make_memfd(REGION_BYTES, SEALS);
    f->base = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    for (unsigned i = 0; i < N_ROWS * N_COLS; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        source_of(f)[i] = (float)ldexp((double)(int64_t)state, -55 - (int)(state >> 40) % 8);
    }
    cr_assert(eq(int, harness_attach(&f->h, 1, f->fd, REGION_BYTES, true), 0));
}

static void tear_down(struct fixture *f)
{
    cr_assert(eq(u64, harness_stat(&f->h, "carries"), 0));
    cr_assert(eq(u64, harness_stat(&f->h, "slots_lent"), 0));
    harness_stop(&f->h);
    munmap(f->base, REGION_BYTES);
    close(f->fd);
}

/* As the broker does: the plan says how large the carry is. */
static void take_carry(const struct fixture *f, struct test_job *j, struct plan *ret_plan)
{
    struct program *program;
    struct gad_error error;
    int r = program_compile(&j->request, &program, &error);
    if (!r)
        r = plan_make(&j->request, program, false, &f->h.worker->engine->limits, ret_plan, &error);
    cr_assert(eq(int, r, 0), "%s", error.message);
    program_free(program);
    j->needs_carry = true;
    j->carry_bytes = round_up_u64(ret_plan->carry_bytes, 4096);
}

/* mean and std of the rows, the largest of each row, the source less its mean. */
static void make_job(struct fixture *f, struct test_job *j, unsigned index)
{
    static const int64_t shape[] = {N_ROWS, N_COLS}, rows[] = {N_ROWS}, cols[] = {N_COLS};
    uint64_t at = SOURCE_BYTES + index * PLACE_BYTES;
    job_init(j, 1 + index);
    at_region(job_arg(j, "a", DTYPE_FLOAT32, 2, shape), 1, 0);
    at_region(job_output_to(j, "mean(a, axis=0)", "mean", DTYPE_FLOAT32, 1, cols), 1, at);
    at_region(job_output_to(j, "std(a, axis=0)", "std", DTYPE_FLOAT32, 1, cols), 1, at + 8192);
    at_region(job_output_to(j, "max(a, axis=1)", "max", DTYPE_FLOAT32, 1, rows), 1, at + 16384);
    at_region(job_output_to(j, "a - mean(a, axis=0)", "rest", DTYPE_FLOAT32, 2, shape), 1,
              at + 32768);
}

static void receive_done(struct fixture *f)
{
    struct outcome o;
    harness_receive(&f->h, &o, NULL);
    cr_assert(eq(int, o.status, 0), "%s", o.error.message);
    outcome_free(&o);
}

static void check_values(const struct fixture *f, unsigned job)
{
    const float *a = source_of(f), *mean = (const float *)(void *)place_of(f, job);
    const float *max = (const float *)(void *)(place_of(f, job) + 16384);
    for (unsigned col = 0; col < N_COLS; col += 97) {
        double sum = 0, magnitude = 0;
        for (unsigned row = 0; row < N_ROWS; row++) {
            sum += (double)a[row * N_COLS + col];
            magnitude += fabs((double)a[row * N_COLS + col]);
        }
        cr_assert(lt(dbl, fabs((double)mean[col] - sum / N_ROWS), 1e-6 * magnitude / N_ROWS));
    }
    for (unsigned row = 0; row < N_ROWS; row += 89) {
        float largest = a[row * N_COLS];
        for (unsigned col = 1; col < N_COLS; col++)
            largest = fmaxf(largest, a[row * N_COLS + col]);
        cr_assert(eq(flt, max[row], largest));
    }
}

/* All outputs of a job that is alone, into memory of the caller's. */
static void outputs_with(uint64_t pool_bytes, unsigned n_threads, char *ret)
{
    struct fixture f;
    struct test_job j;
    struct plan plan;
    set_up(&f, pool_bytes, n_threads);
    make_job(&f, &j, 0);
    take_carry(&f, &j, &plan);
    harness_send(&f.h, &j);
    receive_done(&f);
    check_values(&f, 0);
    memcpy(ret, place_of(&f, 0), PLACE_BYTES);
    tear_down(&f);
}

Test(reductions, along_axes_have_the_same_bits_whatever_the_pool_and_the_threads)
{
    static const struct {
        uint64_t pool_bytes;
        unsigned n_threads;
    } rows[] = {{16 * MIB, 8}, {4 * MIB, 3}, {2 * MIB, 4}};
    char *want = calloc(1, PLACE_BYTES), *got = calloc(1, PLACE_BYTES);
    outputs_with(16 * MIB, 1, want);
    for (unsigned i = 0; i < ARRAY_LENGTH(rows); i++) {
        outputs_with(rows[i].pool_bytes, rows[i].n_threads, got);
        cr_assert(eq(int, memcmp(got, want, PLACE_BYTES), 0), "row %u", i);
    }
    free(want);
    free(got);
}

Test(reductions, of_several_jobs_at_a_time_are_combined_apart)
{
    struct fixture f;
    struct test_job j;
    struct plan plan;
    uint64_t offset = 0;
    set_up(&f, 32 * MIB, 8);
    for (unsigned i = 0; i < N_JOBS; i++) {
        make_job(&f, &j, i);
        take_carry(&f, &j, &plan);
        j.carry_offset = offset;
        offset += j.carry_bytes;
        cr_assert(le(u64, offset, 16 * MIB));
        harness_send(&f.h, &j);
    }
    for (unsigned i = 0; i < N_JOBS; i++)
        receive_done(&f);
    for (unsigned i = 0; i < N_JOBS; i++) {
        check_values(&f, i);
        cr_assert(eq(int, memcmp(place_of(&f, i), place_of(&f, 0), PLACE_BYTES), 0), "job %u", i);
    }
    tear_down(&f);
}

Test(reductions, that_are_cancelled_give_everything_back)
{
    struct fixture f;
    struct test_job j;
    struct plan plan;
    struct outcome o;
    set_up(&f, 16 * MIB, 8);
    for (unsigned i = 0; i < 10; i++) {
        make_job(&f, &j, 0);
        take_carry(&f, &j, &plan);
        harness_send(&f.h, &j);
        if (i % 2 == 0) /* an answer in between: some tiles are under way */
            cr_assert(le(u64, harness_stat(&f.h, "carries"), 1));
        harness_cancel(&f.h, j.id);
        harness_receive(&f.h, &o, NULL);
        cr_assert(o.status == GAD_CANCELLED || o.status == 0);
        outcome_free(&o);
    }
    tear_down(&f);
}

/* Zeros elements along the reduced axis: identities, which later passes read. */
Test(reductions, of_nothing_are_the_identities)
{
    static const int64_t shape[] = {0, 5};
    struct fixture f;
    struct test_job j;
    struct plan plan;
    struct outcome o;
    size_t n_bytes;
    set_up(&f, 4 * MIB, 2);
    job_init(&j, 1);
    at_inline(job_arg(&j, "a", DTYPE_FLOAT64, 2, shape), "", 0);
    job_output(&j, "sum(a, axis=0) + 1", "");
    job_output(&j, "sum(a, axis=1)", "");
    take_carry(&f, &j, &plan);
    harness_run(&f.h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s", o.error.message);
    const char *sums = outcome_data(&o, 0, &n_bytes);
    cr_assert(eq(sz, n_bytes, 5 * sizeof(double)));
    for (unsigned i = 0; i < 5; i++) {
        double value;
        memcpy(&value, sums + i * sizeof(value), sizeof(value));
        cr_assert(eq(dbl, value, 1));
    }
    outcome_data(&o, 1, &n_bytes);
    cr_assert(eq(sz, n_bytes, 0));
    outcome_free(&o);
    tear_down(&f);
}
