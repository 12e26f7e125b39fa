/* Streams whose length is known when they end, with a real daemon. What is computed of them is what
 * is computed of streams of known length, bit for bit. */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "client/gpuarrayd-plan.h"
#include "client/gpuarrayd-stream.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <signal.h>
#include <string.h>

TestSuite(lengths, .init = set_up, .fini = tear_down, .timeout = 60);

#define GRAIN 32768 /* elements of float64 */

static struct gad_error error;

static struct gad_stream *new_stream(bool is_output, int ndim, const int64_t *shape)
{
    struct gad_stream *stream;
    struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = ndim, .shape = shape};
    cr_assert(zero(int, (int)gad_stream_new(client, &layout, is_output, NULL, &stream, &error)),
              "%s", error.message);
    return stream;
}

/* The arguments are a and b; either may be NULL. */
static struct gad_job *submit(const char *expr, struct gad_array *a, struct gad_array *b,
                              const struct gad_output *to)
{
    struct gad_job *job;
    struct gad_argument args[] = {{.name = "a", .array = a}, {.name = "b", .array = b}};
    struct gad_output output = to ? *to : (struct gad_output){0};
    output.expr = expr;
    struct gad_job_options options = {
        .args = args, .n_args = b ? 2 : 1, .outputs = &output, .n_outputs = 1};
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, &error)), "%s", error.message);
    return job;
}

/* Irregular, so that the order in which they are added tells. */
static double at(int64_t i)
{
    return sin((double)i) * (i % 11 == 0 ? 1e8 : 1);
}

static enum gad_status push(struct gad_stream *stream, int64_t first, int64_t n, unsigned seed)
{
    double slab[5000];
    enum gad_status status = GAD_OK;
    for (int64_t done = 0; done < n && status == GAD_OK;) {
        seed = seed * 1103515245u + 12345u;
        int64_t n_slab = min_i64(n - done, 1 + (int64_t)(seed >> 16) % 5000);
        for (int64_t i = 0; i < n_slab; i++)
            slab[i] = at(first + done + i);
        status = gad_stream_push(stream, slab, (size_t)n_slab, 20000, NULL, &error);
        done += n_slab;
    }
    return status;
}

/* What the expression gives of so many rows; of a stream that does not know how many, or does. */
static double reduced(const char *expr, int64_t n_rows, int64_t n_columns, bool is_open)
{
    double r = -7;
    int64_t shape[] = {is_open ? GAD_UNKNOWN_LENGTH : n_rows, n_columns};
    struct gad_stream *a = new_stream(false, n_columns > 1 ? 2 : 1, shape);
    struct gad_array *to = wrap(&r, 0, NULL, NULL);
    struct gad_job *job = submit(expr, gad_stream_array(a), NULL, &(struct gad_output){.to = to});
    cr_assert(zero(int, (int)push(a, 0, n_rows * n_columns, (unsigned)n_rows)), "%s",
              error.message);
    cr_assert(zero(int, (int)gad_stream_end(a, &error)), "%s", error.message);
    cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s: %s", expr, error.message);
    gad_job_free(job);
    gad_stream_free(a);
    gad_array_release(to);
    return r;
}

static void expect_same(const char *expr, int64_t n_rows, int64_t n_columns)
{
    double known = reduced(expr, n_rows, n_columns, false);
    double open = reduced(expr, n_rows, n_columns, true);
    cr_assert(zero(int, memcmp(&known, &open, sizeof(known))), "%s of %lld: %.17g, not %.17g", expr,
              (long long)n_rows, open, known);
}

Test(lengths, give_the_bits_of_a_known_length)
{
    static const char *const exprs[] = {"sum(a)", "mean(a)", "var(a, ddof=1)", "float64(argmin(a))",
                                        "max(abs(a))"};
    static const int64_t sizes[] = {1, 2, GRAIN - 1, GRAIN, GRAIN + 1, 3 * GRAIN, 9 * GRAIN + 77};
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++)
        expect_same(exprs[i % ARRAY_LENGTH(exprs)], sizes[i], 1);
    for (size_t i = 0; i < ARRAY_LENGTH(exprs); i++)
        expect_same(exprs[i], 5 * GRAIN + 13 * (int64_t)i, 1);
    expect_same("sum(mean(a, axis=0))", 40001, 3);
    expect_same("sum(std(a, axis=0)) + sum(min(a, axis=0))", 12345, 7);
    expect_same("mean(a)", 3, GRAIN + 5); /* rows wider than a grain */
    expect_same("sum(float64(histogram(a, bins=5, range=(-1, 1))[0]))", 70000, 2);
}

/* All that comes, and how many: n_most elements at most. */
static size_t take_all(struct gad_stream *stream, double *ret, size_t n_most)
{
    size_t n_taken = 0, n = 1;
    while (n > 0) {
        size_t n_wanted = min_u64(1234, n_most - n_taken);
        cr_assert(
            zero(int, (int)gad_stream_take(stream, ret + n_taken, n_wanted, 20000, &n, &error)),
            "%s", error.message);
        n_taken += n;
    }
    return n_taken;
}

/* The ring holds all of it, so one thread may push first. */
Test(lengths, go_from_a_source_to_an_output)
{
    static const struct {
        const char *expr;
        int64_t n_rows, n_columns, n_kept;
    } cases[] = {
        {"a * 2", 0, 3, 3},
        {"a * 2", 1, 3, 3},
        {"a * 2", GRAIN / 3 + 5, 3, 3},
        {"sum(a, axis=1)", 0, 3, 0},
        {"sum(a, axis=1)", 20000, 3, 0},
        {"cumsum(a, axis=0)", 30001, 3, 3},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        int64_t n_columns = cases[i].n_columns, n_kept = max_u64((uint64_t)cases[i].n_kept, 1);
        int64_t shape[] = {GAD_UNKNOWN_LENGTH, n_columns};
        size_t n = (size_t)(cases[i].n_rows * n_kept);
        double *r = calloc(n + 1, sizeof(*r)), sums[3] = {0};
        struct gad_stream *a = new_stream(false, 2, shape);
        struct gad_stream *to = new_stream(true, cases[i].n_kept ? 2 : 1, shape);
        struct gad_job *job = submit(cases[i].expr, gad_stream_array(a), NULL,
                                     &(struct gad_output){.to = gad_stream_array(to)});
        cr_assert(zero(int, (int)push(a, 0, cases[i].n_rows * n_columns, 5)), "%s", error.message);
        cr_assert(zero(int, (int)gad_stream_end(a, &error)), "%s", error.message);
        cr_assert(eq(sz, take_all(to, r, n + 1), n), "%s", cases[i].expr);
        cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s", error.message);
        for (int64_t row = 0; row < cases[i].n_rows; row++) {
            double sum = 0;
            for (int64_t k = 0; k < n_columns; k++) {
                double x = at(row * n_columns + k);
                sum += x;
                sums[k] += x;
                if (cases[i].expr[0] == 'a')
                    cr_assert(eq(dbl, r[row * n_columns + k], 2 * x));
                if (cases[i].expr[0] == 'c')
                    cr_assert(eq(dbl, r[row * n_columns + k], sums[k]));
            }
            if (cases[i].expr[0] == 's')
                cr_assert(fabs(r[row] - sum) <= 1e-7, "row %lld", (long long)row);
        }
        gad_job_free(job);
        gad_stream_free(a);
        gad_stream_free(to);
        free(r);
    }
}

Test(lengths, of_nothing_are_what_numpy_makes_of_it)
{
    cr_assert(zero(dbl, reduced("sum(a)", 0, 1, true)));
    cr_assert(isnan(reduced("mean(a)", 0, 1, true)));
    cr_assert(eq(dbl, reduced("float64(all(a)) + 2 * any(a)", 0, 1, true), 1));
    cr_assert(eq(dbl, reduced("min(a, initial=3)", 0, 1, true), 3));
    int64_t shape[] = {GAD_UNKNOWN_LENGTH, 3};
    struct gad_stream *a = new_stream(false, 2, shape);
    struct gad_job *job = submit("argmax(a)", gad_stream_array(a), NULL, NULL);
    cr_assert(zero(int, (int)gad_stream_end(a, &error)));
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_BAD_SHAPE));
    cr_assert(eq(str, error.message,
                 (char *)"zero-size array to reduction operation argmax which "
                         "has no identity"));
    gad_job_free(job);
    gad_stream_free(a);
}

static enum gad_status both(int64_t n_a, int64_t n_b, double *ret)
{
    int64_t shape[] = {GAD_UNKNOWN_LENGTH};
    struct gad_stream *a = new_stream(false, 1, shape), *b = new_stream(false, 1, shape);
    struct gad_array *to = wrap(ret, 0, NULL, NULL);
    struct gad_job *job = submit("sum(a) - sum(b) + sum(a * b)", gad_stream_array(a),
                                 gad_stream_array(b), &(struct gad_output){.to = to});
    enum gad_status status = push(a, 0, n_a, 1);
    if (status == GAD_OK)
        status = gad_stream_end(a, &error);
    if (status == GAD_OK)
        status = push(b, 0, n_b, 2);
    if (status == GAD_OK)
        status = gad_stream_end(b, &error);
    error = (struct gad_error){0};
    status = gad_job_wait(job, -1, &error);
    gad_job_free(job);
    gad_stream_free(a);
    gad_stream_free(b);
    gad_array_release(to);
    return status;
}

Test(lengths, of_two_streams_are_the_same)
{
    double r, squares = 0;
    cr_assert(zero(int, (int)both(3 * GRAIN, 3 * GRAIN, &r)), "%s", error.message);
    for (int64_t i = 0; i < 3 * GRAIN; i++)
        squares += at(i) * at(i);
    cr_assert(fabs(r - squares) <= 1e-9 * squares);
    cr_assert(eq(int, (int)both(GRAIN + 9, GRAIN + 3, &r), GAD_BAD_SHAPE));
    cr_assert(eq(str, error.expected, (char *)"32771 rows"), "%s", error.message);
    cr_assert(eq(str, error.found, (char *)"32777 rows"));
    cr_assert(eq(int, (int)both(GRAIN, GRAIN + 3, &r), GAD_BAD_SHAPE), "%s", error.message);
    cr_assert(eq(str, error.expected, (char *)"32768 rows"));
    cr_assert(eq(int, (int)both(0, 1, &r), GAD_BAD_SHAPE));
}

Test(lengths, end_with_a_whole_row)
{
    int64_t shape[] = {GAD_UNKNOWN_LENGTH, 3};
    struct gad_stream *a = new_stream(false, 2, shape);
    struct gad_job *job = submit("sum(a)", gad_stream_array(a), NULL, NULL);
    cr_assert(zero(int, (int)push(a, 0, 3 * GRAIN + 2, 1)));
    cr_assert(eq(int, (int)gad_stream_end(a, &error), GAD_SHORT_READ));
    cr_assert(eq(str, error.found, (char *)"32768 rows and 2 elements"));
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_SHORT_READ));
    cr_assert(eq(str, error.message, (char *)"the stream ended in the middle of a row"));
    gad_job_free(job);
    gad_stream_free(a);
}

Test(lengths, of_streams_that_nobody_ends_end_with_their_jobs)
{
    int64_t shape[] = {GAD_UNKNOWN_LENGTH};
    struct gad_stream *a = new_stream(false, 1, shape), *b = new_stream(false, 1, shape);
    struct gad_job *job = submit("sum(a)", gad_stream_array(a), NULL, NULL);
    cr_assert(zero(int, (int)push(a, 0, 2 * GRAIN + 1, 1)));
    gad_stream_free(a);
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_SHORT_READ));
    cr_assert(eq(str, error.found, (char *)"65537 rows"));
    gad_job_free(job);
    job = submit("sum(a)", gad_stream_array(b), NULL, NULL);
    cr_assert(zero(int, (int)push(b, 0, 20 * GRAIN, 1)));
    cr_assert(zero(int, (int)gad_job_cancel(job, &error)));
    enum gad_status status = GAD_OK;
    while (status == GAD_OK)
        status = push(b, 0, GRAIN, 1);
    cr_assert(eq(int, (int)status, GAD_CANCELLED));
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_CANCELLED));
    gad_job_free(job);
    gad_stream_free(b);
    cr_assert(eq(dbl, reduced("sum(a * 0)", 100, 1, true), 0), "its client goes on");
}

Test(lengths, are_refused_where_they_must_be_known)
{
    static const struct {
        const char *expr, *found;
    } cases[] = {
        {"a - mean(a)", "reads it in several passes"},
        {"sum(sum(a, axis=1))", "would keep something of each row for later"},
        {"a @ b", "multiplies matrices along it"},
        {"median(a)", "the first axis of a stream that ends when its producer says so"},
        {"histogram(a)[0]", "reads it in several passes"},
        {"a + b", "(?, 3) and (3, 3)"},
    };
    int64_t shape[] = {GAD_UNKNOWN_LENGTH, 3}, square[] = {3, 3}, none[] = {GAD_UNKNOWN_LENGTH, 0};
    double nine[9] = {0};
    struct gad_array *b = wrap(nine, 2, square, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct gad_stream *a = new_stream(false, 2, shape);
        struct gad_job *job = submit(cases[i].expr, gad_stream_array(a), b, NULL);
        cr_assert(ne(int, (int)gad_job_wait(job, -1, &error), GAD_OK), "%s", cases[i].expr);
        cr_assert(eq(str, error.found, (char *)cases[i].found), "%s: %s", cases[i].expr,
                  error.message);
        gad_job_free(job);
        gad_stream_free(a);
    }
    gad_array_release(b);
    struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 2, .shape = none};
    struct gad_stream *a;
    cr_assert(
        eq(int, (int)gad_stream_new(client, &layout, false, NULL, &a, &error), GAD_BAD_SHAPE));
}

Test(lengths, are_told_by_plans)
{
    int64_t shape[] = {GAD_UNKNOWN_LENGTH, 3};
    struct gad_stream *a = new_stream(false, 2, shape);
    struct gad_argument args[] = {{.name = "a", .array = gad_stream_array(a)}};
    struct gad_output outputs[] = {{.expr = "a + 1"}, {.expr = "mean(a, axis=0)"}};
    struct gad_job_options options = {
        .args = args, .n_args = 1, .outputs = outputs, .n_outputs = 2};
    struct gad_plan *plan;
    cr_assert(zero(int, (int)gad_plan(client, &options, &plan, &error)), "%s", error.message);
    cr_assert(eq(i64, plan->outputs[0]->shape[0], GAD_UNKNOWN_LENGTH));
    cr_assert(eq(i64, plan->outputs[0]->shape[1], 3));
    cr_assert(eq(int, plan->outputs[1]->ndim, 1));
    cr_assert(zero(dbl, plan->seconds));
    cr_assert(strstr(plan->text, "float64 (?, 3)") != NULL, "%s", plan->text);
    gad_plan_free(plan);
    gad_stream_free(a);
}

static enum gad_status to_file(const char *expr, const char *path, int64_t n_rows, bool is_ended)
{
    int64_t shape[] = {GAD_UNKNOWN_LENGTH, 3};
    struct gad_stream *a = new_stream(false, 2, shape);
    struct gad_job *job;
    struct gad_argument arg = {.name = "a", .array = gad_stream_array(a)};
    struct gad_output output = {.expr = expr, .to_path = path};
    struct gad_job_options options = {
        .args = &arg, .n_args = 1, .outputs = &output, .n_outputs = 1};
    enum gad_status status = gad_submit(client, &options, &job, &error);
    if (status == GAD_OK) {
        (void)!push(a, 0, 3 * n_rows, 3);
        if (is_ended)
            cr_assert(zero(int, (int)gad_stream_end(a, &error)), "%s", error.message);
        else
            gad_stream_fail(a, "the camera was unplugged");
        status = gad_job_wait(job, -1, &error);
        gad_job_free(job);
    }
    gad_stream_free(a);
    return status;
}

Test(lengths, are_those_of_new_files)
{
    static const int64_t sizes[] = {0, 1, GRAIN / 3, 100003};
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        int64_t n = sizes[i];
        const char *path = path_in("r.npy");
        cr_assert(zero(int, (int)to_file("-a", path, n, true)), "%s", error.message);
        struct gad_array *r;
        cr_assert(zero(int, (int)gad_array_open(client, path, &r, &error)), "%s", error.message);
        cr_assert(eq(i64, gad_array_info(r)->shape[0], n));
        cr_assert(eq(i64, gad_array_info(r)->shape[1], 3));
        double want = 0, got = n > 0 ? ask("sum(a)", r) : 0;
        for (int64_t k = 0; k < 3 * n; k++)
            want -= at(k);
        cr_assert(fabs(want - got) <= 1e-3, "%lld: %.17g %.17g", (long long)n, want, got);
        gad_array_release(r);
    }
    cr_assert(eq(int, (int)to_file("a + 1", path_in("s.npy"), 50000, false), GAD_PROVIDER_FAILED));
    cr_assert(
        eq(int, (int)to_file("a + 1", path_in("s.npz:d"), 50000, false), GAD_PROVIDER_FAILED));
    cr_assert(eq(int, n_files(), 1), "r.npy alone is there");
    cr_assert(zero(int, (int)to_file("a + 1", path_in("t.raw"), 5000, true)), "%s", error.message);
    cr_assert(eq(int, n_files(), 2));
}

Test(lengths, are_lost_with_their_worker)
{
    int64_t shape[] = {GAD_UNKNOWN_LENGTH};
    struct gad_stream *a = new_stream(false, 1, shape);
    struct gad_job *job = submit("sum(a)", gad_stream_array(a), NULL, NULL);
    cr_assert(zero(int, (int)push(a, 0, 20 * GRAIN, 1)));
    cr_assert(zero(int, kill(worker_pid(), SIGKILL)));
    enum gad_status status = GAD_OK;
    while (status == GAD_OK)
        status = push(a, 0, GRAIN, 1);
    cr_assert(eq(int, (int)status, GAD_WORKER_LOST), "%s", error.message);
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_WORKER_LOST));
    gad_job_free(job);
    gad_stream_free(a);
    cr_assert(eq(dbl, reduced("sum(a * 0)", 100, 1, true), 0), "its successor goes on");
}
