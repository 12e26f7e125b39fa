/* Streams that end when their client says so: what is computed of them is what is computed of known
 * ones. */
#include "tests/unit/daemon/worker/ring_client.h"
#include "proto/wire/map.h"

#include <math.h>

/* Open streams: what they give is what known ones give, whatever the pool and the threads
 * ---------- */

#define OPEN_ROWS (INT64_C(1) << 40)
/* Some grains, fewer on the test double, which computes each value ten times as slowly. */
#define MANY_ROWS (HARNESS_IS_CUDA ? 100000 : 300000)

static struct array *open_arg(struct test_job *j, const char *name, int64_t n_columns,
                              struct client *c)
{
    const int64_t shape[] = {OPEN_ROWS, n_columns};
    struct array *array = job_arg(j, name, DTYPE_FLOAT32, 2, shape);
    at_provider(j, array, c);
    array->at.provider.is_stream = array->is_open = true;
    j->request.open_length = OPEN_ROWS;
    return array;
}

/* Whatever the pool and the number of threads are, it is the same. */
static double open_sum(int64_t n_rows, int64_t n_columns, float *a, bool is_open,
                       uint64_t pool_bytes, unsigned n_threads)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in;
    double got;
    const int64_t shape[] = {n_rows, n_columns};
    harness_start(&h, pool_bytes, n_threads);
    client_start(&in, a, 4, 2, shape, 6, false);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    job_init(&j, 1);
    j.needs_carry = true;
    j.carry_bytes = h.worker->engine->limits.carry_limit_bytes;
    if (is_open) {
        in.end_row = n_rows;
        open_arg(&j, "a", n_columns, &in);
    } else {
        struct array *array = job_arg(&j, "a", DTYPE_FLOAT32, 2, shape);
        at_provider(&j, array, &in);
        array->at.provider.is_stream = true;
    }
    job_output(&j, "sum(mean(a, axis=0) + float64(max(a, axis=0)) * var(a, axis=0))", "");
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s: %s", o.error.argument, o.error.message);
    memcpy(&got, outcome_data(&o, 0, NULL), sizeof(got));
    outcome_free(&o);
    check_unused(&h, descriptors);
    client_stop(&in);
    harness_stop(&h);
    return got;
}

Test(open_streams, are_reduced_as_known_ones)
{
    const int64_t sizes[][2] = {
        {1, 3}, {21845, 3}, {21846, 3}, {MANY_ROWS, 3}, {MANY_ROWS / 150, 300}};
    float *a = floats(3 * MANY_ROWS);
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        double known = open_sum(sizes[i][0], sizes[i][1], a, false, 4 * MIB, 2);
        double first = open_sum(sizes[i][0], sizes[i][1], a, true, 4 * MIB, 1);
        double second = open_sum(sizes[i][0], sizes[i][1], a, true, 9 * MIB, 4);
        cr_assert(zero(int, memcmp(&known, &first, sizeof(known))), "%zu: %.17g %.17g", i, known,
                  first);
        cr_assert(zero(int, memcmp(&known, &second, sizeof(known))), "%zu", i);
    }
    free(a);
}

/* Rounds: rows are reduced, and what they give is stored, part by part. */
Test(open_streams, are_reduced_row_by_row)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    struct client in, out;
    const int64_t n_rows = 100001, shape[] = {n_rows, 5}, to_shape[] = {OPEN_ROWS};
    float *a = floats((unsigned)n_rows * 5), *r = calloc((size_t)n_rows, sizeof(*r));
    harness_start(&h, 4 * MIB, 2);
    client_start(&in, a, 4, 2, shape, 6, false);
    client_start(&out, r, 4, 1, shape, 6, true);
    in.end_row = n_rows;
    uint64_t descriptors = harness_stat(&h, "descriptors");
    job_init(&j, 1);
    j.needs_carry = true;
    j.carry_bytes = h.worker->engine->limits.carry_limit_bytes;
    open_arg(&j, "a", 5, &in);
    at_provider(&j, job_output_to(&j, "sqrt(sum(a * a, axis=1))", "r", DTYPE_FLOAT32, 1, to_shape),
                &out);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, 0), "%s: %s", o.error.argument, o.error.message);
    const msgpack_object *outputs = map_find(&o.message.result, "outputs");
    const msgpack_object *told = map_find(&outputs->via.array.ptr[0], "shape");
    cr_assert(eq(u64, told->via.array.ptr[0].via.u64, (uint64_t)n_rows));
    outcome_free(&o);
    check_unused(&h, descriptors);
    client_stop(&in);
    client_stop(&out);
    for (int64_t row = 0; row < n_rows; row++) {
        double sum = 0;
        for (int i = 0; i < 5; i++)
            sum += (double)a[row * 5 + i] * (double)a[row * 5 + i];
        cr_assert(fabs((double)r[row] - sqrt(sum)) <= 1e-3 * sqrt(sum), "row %lld", (long long)row);
    }
    harness_stop(&h);
    free(a);
    free(r);
}

static uint64_t too_many(int64_t start, int64_t count)
{
    return (uint64_t)count + 1;
}

static uint64_t far_too_many(int64_t start, int64_t count)
{
    return UINT64_MAX - 7;
}

static uint64_t a_hole(int64_t start, int64_t count)
{
    return start == 0 ? 1 : (uint64_t)count;
}

static uint64_t a_late_hole(int64_t start, int64_t count)
{
    return start == count ? 0 : start > 4 * count ? (uint64_t)count - 1 : (uint64_t)count;
}

/* The job fails, and nothing else does. */
Test(open_streams, whose_clients_lie_about_rows_fail)
{
    uint64_t (*const lies[])(int64_t, int64_t) = {too_many, far_too_many, a_hole, a_late_hole};
    struct harness h;
    const int64_t shape[] = {1, 3};
    float three[3] = {1, 2, 3};
    harness_start(&h, 4 * MIB, 2);
    uint64_t descriptors = harness_stat(&h, "descriptors");
    for (size_t i = 0; i < ARRAY_LENGTH(lies); i++) {
        struct test_job j;
        struct outcome o;
        struct client in;
        client_start(&in, three, 4, 2, shape, 6, false);
        in.end_row = 1;
        in.lie = lies[i];
        job_init(&j, 1 + i);
        j.needs_carry = true;
        j.carry_bytes = h.worker->engine->limits.carry_limit_bytes;
        open_arg(&j, "a", 3, &in);
        job_output(&j, "sum(a)", "");
        harness_run(&h, &j, &o);
        cr_assert(eq(int, o.status, GAD_PROVIDER_FAILED), "lie %zu: %s", i, o.error.message);
        cr_assert(eq(str, o.error.argument, text("a")));
        outcome_free(&o);
        client_stop(&in);
    }
    cr_assert(eq(u64, harness_stat(&h, "slots_lent"), 0));
    cr_assert(eq(u64, harness_stat(&h, "jobs"), 0));
    cr_assert(eq(u64, harness_stat(&h, "descriptors"), descriptors));
    harness_stop(&h);
}
