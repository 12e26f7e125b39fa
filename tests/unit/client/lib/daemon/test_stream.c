/* Streams, as sources and as outputs, in the client's thread, with a real daemon. */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TestSuite(stream, .init = set_up, .fini = tear_down, .timeout = 60);

static struct gad_error error;

static struct gad_stream *new_stream(bool is_output, int ndim, const int64_t *shape)
{
    struct gad_stream *stream;
    struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = ndim, .shape = shape};
    cr_assert(zero(int, (int)gad_stream_new(client, &layout, is_output, NULL, &stream, &error)),
              "%s", error.message);
    return stream;
}

static struct gad_job *submit(const char *expr, struct gad_stream *a, struct gad_array *b,
                              struct gad_array *to)
{
    struct gad_job *job;
    struct gad_argument args[] = {{.name = "a", .array = a ? gad_stream_array(a) : b},
                                  {.name = "b", .array = b}};
    struct gad_output output = {.expr = expr, .to = to, .name = "r"};
    struct gad_job_options options = {
        .args = args, .n_args = a && b ? 2 : 1, .outputs = &output, .n_outputs = 1};
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, &error)), "%s", error.message);
    return job;
}

static double at(int64_t i)
{
    return i % 97 == 0 ? (double)NAN : (double)i;
}

/* Elements from `first` on. */
static double *slab(int64_t first, int64_t n)
{
    double *elements = malloc((size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++)
        elements[i] = at(first + i);
    return elements;
}

static void push(struct gad_stream *stream, int64_t first, int64_t n)
{
    double *elements = slab(first, n);
    size_t n_pushed;
    cr_assert(
        zero(int, (int)gad_stream_push(stream, elements, (size_t)n, 20000, &n_pushed, &error)),
        "%s", error.message);
    cr_assert(eq(sz, n_pushed, (size_t)n));
    free(elements);
}

static void expect(enum gad_status status, enum gad_status wanted, const char *expected,
                   const char *found)
{
    cr_assert(eq(int, (int)status, (int)wanted), "%s", error.message);
    cr_assert(eq(str, error.expected, (char *)expected));
    cr_assert(eq(str, error.found, (char *)found));
}

Test(stream, is_pushed_in_slabs_of_any_size)
{
    enum { ROWS = 300001, COLUMNS = 3, N = ROWS * COLUMNS };
    int64_t shape[] = {ROWS, COLUMNS}, sizes[] = {1, 7, 100000, 3, 333333};
    double *r = calloc(N, sizeof(double));
    struct gad_stream *a = new_stream(false, 2, shape);
    struct gad_array *to = wrap(r, 2, shape, NULL);
    struct gad_job *job = submit("a + 1", a, NULL, to);
    int64_t done = 0;
    for (unsigned i = 0; done < N; i++) {
        int64_t n = min_i64(sizes[i % ARRAY_LENGTH(sizes)], N - done);
        push(a, done, n);
        done += n;
    }
    cr_assert(eq(int, (int)gad_job_wait(job, 50, NULL), GAD_TIMEOUT), "it waits for the end");
    cr_assert(zero(int, (int)gad_stream_end(a, &error)));
    cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s", error.message);
    for (int64_t i = 0; i < N; i++)
        cr_assert(i % 97 == 0 ? isnan(r[i]) : r[i] == at(i) + 1, "element %lld", (long long)i);
    gad_job_free(job);
    gad_stream_free(a);
    gad_array_release(to);
    free(r);
}

/* Rows that are wider than a grain and than the whole ring. */
Test(stream, has_rows_wider_than_its_buffer)
{
    enum { ROWS = 3, COLUMNS = 700000, N = ROWS * COLUMNS };
    int64_t shape[] = {ROWS, COLUMNS};
    struct gad_stream *a = new_stream(false, 2, shape), *r = new_stream(true, 2, shape);
    struct gad_job *job = submit("-a", a, NULL, gad_stream_array(r));
    double *block = malloc(10000 * sizeof(double));
    int64_t n_pushed = 0, n_taken = 0;
    while (n_taken < N) {
        size_t n = 0;
        int64_t n_next = min_i64(10000, N - n_pushed);
        double *elements = slab(n_pushed, n_next);
        enum gad_status status =
            n_next > 0 ? gad_stream_push(a, elements, (size_t)n_next, 0, &n, &error) : GAD_OK;
        cr_assert(status == GAD_OK || status == GAD_TIMEOUT, "%s", error.message);
        free(elements);
        n_pushed += (int64_t)n;
        if (n_pushed == N && n > 0)
            cr_assert(zero(int, (int)gad_stream_end(a, &error)));
        status = gad_stream_take(r, block, 10000, n_pushed == N ? 20000 : 1, &n, &error);
        cr_assert(status == GAD_OK || status == GAD_TIMEOUT, "%s", error.message);
        for (size_t i = 0; i < n; i++, n_taken++)
            cr_assert(n_taken % 97 == 0 ? isnan(block[i]) : block[i] == -at(n_taken));
    }
    size_t n;
    cr_assert(zero(int, (int)gad_stream_take(r, block, 1, -1, &n, &error)));
    cr_assert(zero(sz, n));
    cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s", error.message);
    gad_job_free(job);
    gad_stream_free(a);
    gad_stream_free(r);
    free(block);
}

Test(stream, that_ends_early_says_what_was_expected_and_found)
{
    int64_t shape[] = {100000, 3};
    double sum = 0;
    struct gad_stream *a = new_stream(false, 2, shape);
    struct gad_array *to = wrap(&sum, 0, NULL, NULL);
    struct gad_job *job = submit("sum(a)", a, NULL, to);
    push(a, 0, 3 * 40000 + 2);
    expect(gad_stream_end(a, &error), GAD_SHORT_READ, "100000 rows", "40000 rows and 2 elements");
    error = (struct gad_error){0};
    expect(gad_job_wait(job, -1, &error), GAD_SHORT_READ, "100000 rows",
           "40000 rows and 2 elements");
    cr_assert(eq(str, error.argument, (char *)"a"));
    gad_job_free(job);
    gad_stream_free(a);
    gad_array_release(to);
}

Test(stream, that_has_too_much_makes_its_job_fail)
{
    int64_t shape[] = {1000, 3};
    double sum = 0, more[3] = {1, 2, 3};
    struct gad_stream *a = new_stream(false, 2, shape);
    struct gad_array *to = wrap(&sum, 0, NULL, NULL);
    struct gad_job *job = submit("sum(a)", a, NULL, to);
    push(a, 0, 3000);
    expect(gad_stream_push(a, more, 3, -1, NULL, &error), GAD_BAD_SHAPE, "1000 rows",
           "3 elements more");
    expect(gad_job_wait(job, -1, &error), GAD_BAD_SHAPE, "1000 rows", "3 elements more");
    gad_job_free(job);
    gad_stream_free(a);
    gad_array_release(to);
}

Test(stream, whose_program_gives_up_fails_its_job_with_the_reason)
{
    int64_t shape[] = {1000, 3};
    double sum = 0;
    struct gad_stream *a = new_stream(false, 2, shape);
    struct gad_array *to = wrap(&sum, 0, NULL, NULL);
    struct gad_job *job = submit("sum(a)", a, NULL, to);
    push(a, 0, 300);
    gad_stream_fail(a, "the camera was unplugged");
    expect(gad_job_wait(job, -1, &error), GAD_PROVIDER_FAILED, "1000 rows", "100 rows");
    cr_assert(eq(str, error.message, (char *)"the camera was unplugged"));
    double one = 1;
    cr_assert(eq(int, (int)gad_stream_push(a, &one, 1, -1, NULL, &error), GAD_PROVIDER_FAILED));
    gad_job_free(job);
    gad_stream_free(a);
    gad_array_release(to);
}

Test(stream, that_nobody_takes_cancels_its_job)
{
    int64_t shape[] = {1000000};
    double first[10];
    size_t n;
    make_npy(path_in("a.npy"), shape[0]);
    struct gad_array *a = open_npy(path_in("a.npy"));
    struct gad_stream *r = new_stream(true, 1, shape);
    struct gad_job *job = submit("a * 2", NULL, a, gad_stream_array(r));
    cr_assert(zero(int, (int)gad_stream_take(r, first, 10, 20000, &n, &error)), "%s",
              error.message);
    cr_assert(eq(sz, n, 10));
    cr_assert(eq(dbl, first[9], 18));
    gad_stream_free(r);
    expect(gad_job_wait(job, -1, &error), GAD_CANCELLED, "1000000 rows", "10 rows");
    gad_job_free(job);
    gad_array_release(a);
}

/* Who pushes hears what has become of the job, though nobody else handles messages. */
Test(stream, hears_that_its_job_has_failed)
{
    int64_t shape[] = {2000000}, other[] = {7};
    double *elements = slab(0, shape[0]), seven[7] = {0};
    struct gad_stream *a = new_stream(false, 1, shape);
    struct gad_array *b = wrap(seven, 1, other, NULL);
    struct gad_job *job = submit("a + b", a, b, NULL);
    cr_assert(eq(int, (int)gad_stream_push(a, elements, (size_t)shape[0], -1, NULL, &error),
                 GAD_BAD_SHAPE));
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_BAD_SHAPE));
    gad_job_free(job);
    gad_stream_free(a);
    gad_array_release(b);
    free(elements);
}

Test(stream, is_refused_where_it_would_be_read_twice_or_out_of_order)
{
    static const struct {
        const char *expr, *found;
    } cases[] = {
        {"a - mean(a)", "reads it in several passes"},
        {"a @ a", "is a matrix product, which has an order of its own"},
        {"median(a)", "reads it in several passes"},
        {"sum(a, axis=0)", "goes through its axes in another order"},
    };
    int64_t shape[] = {40000, 40000};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct gad_stream *a = new_stream(false, 2, shape);
        struct gad_job *job = submit(cases[i].expr, a, NULL, NULL);
        enum gad_status status = gad_job_wait(job, -1, &error);
        cr_assert(eq(int, (int)status, GAD_BAD_ARGUMENT), "%s: %s", cases[i].expr, error.message);
        cr_assert(eq(str, error.found, (char *)cases[i].found), "%s", cases[i].expr);
        cr_assert(eq(str, error.argument, (char *)"a"));
        gad_job_free(job);
        gad_stream_free(a);
    }
}

Test(stream, reduces_its_first_axis)
{
    enum { ROWS = 50000, COLUMNS = 20 };
    int64_t shape[] = {ROWS, COLUMNS}, kept[] = {COLUMNS};
    double r[COLUMNS];
    struct gad_stream *a = new_stream(false, 2, shape);
    struct gad_array *to = wrap(r, 1, kept, NULL);
    struct gad_job *job = submit("nanmax(a, axis=0)", a, NULL, to);
    push(a, 0, ROWS * COLUMNS);
    cr_assert(zero(int, (int)gad_stream_end(a, &error)), "%s", error.message);
    cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s", error.message);
    cr_assert(eq(dbl, r[COLUMNS - 1], ROWS * COLUMNS - 1));
    gad_job_free(job);
    gad_stream_free(a);
    gad_array_release(to);
}

Test(stream, is_for_one_argument_of_one_job_in_one_direction)
{
    int64_t shape[] = {10};
    double ten[10] = {0};
    struct gad_job *job, *second;
    struct gad_stream *a = new_stream(false, 1, shape), *r = new_stream(true, 1, shape);
    struct gad_argument args[] = {{.name = "a", .array = gad_stream_array(a)},
                                  {.name = "b", .array = gad_stream_array(a)}};
    struct gad_output output = {.expr = "a + b"};
    struct gad_job_options options = {
        .args = args, .n_args = 2, .outputs = &output, .n_outputs = 1};
    cr_assert(eq(int, (int)gad_submit(client, &options, &job, &error), GAD_BUSY));
    args[1].array = gad_stream_array(r);
    cr_assert(eq(int, (int)gad_submit(client, &options, &job, &error), GAD_BAD_ARGUMENT));
    options.n_args = 1;
    output.expr = "a * 2";
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, &error)), "%s", error.message);
    cr_assert(eq(int, (int)gad_submit(client, &options, &second, &error), GAD_BUSY));
    push(a, 0, 10);
    cr_assert(zero(int, (int)gad_stream_end(a, &error)));
    cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s", error.message);
    cr_assert(eq(int, (int)gad_stream_end(a, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, (int)gad_stream_push(r, ten, 10, 0, NULL, &error), GAD_BAD_ARGUMENT));
    size_t n;
    cr_assert(eq(int, (int)gad_stream_take(a, ten, 10, 0, &n, &error), GAD_BAD_ARGUMENT));
    gad_job_free(job);
    gad_stream_free(a);
    gad_stream_free(r);
}

Test(stream, has_no_views)
{
    int64_t shape[] = {10};
    struct gad_stream *a = new_stream(false, 1, shape);
    struct gad_array *view;
    struct gad_view_axis axis = {.axis = 0, .count = 5, .step = 1};
    cr_assert(eq(int, (int)gad_array_view(gad_stream_array(a), NULL, 1, &axis, &view, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(str, (char *)gad_array_info(gad_stream_array(a))->format, (char *)"stream"));
    gad_stream_free(a);
}

Test(stream, of_no_rows_is_complete_at_once)
{
    int64_t shape[] = {0, 3};
    double sum = 7;
    struct gad_stream *a = new_stream(false, 2, shape);
    struct gad_array *to = wrap(&sum, 0, NULL, NULL);
    struct gad_job *job = submit("sum(a)", a, NULL, to);
    cr_assert(zero(int, (int)gad_stream_end(a, &error)));
    cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s", error.message);
    cr_assert(zero(dbl, sum));
    gad_job_free(job);
    gad_stream_free(a);
    gad_array_release(to);
}

Test(stream, waits_no_longer_than_it_may)
{
    int64_t shape[] = {4000000};
    double *elements = slab(0, shape[0]);
    size_t n = 1;
    struct gad_stream *a = new_stream(false, 1, shape), *r = new_stream(true, 1, shape);
    cr_assert(eq(int, (int)gad_stream_push(a, elements, 5, 1, &n, &error), GAD_TIMEOUT));
    cr_assert(zero(sz, n), "no job has begun");
    struct gad_job *job = submit("a * 2", a, NULL, gad_stream_array(r));
    cr_assert(eq(int, (int)gad_stream_push(a, elements, (size_t)shape[0], 1000, &n, &error),
                 GAD_TIMEOUT));
    cr_assert(n > 0 && n < (size_t)shape[0] / 2, "%zu are on the way", n);
    gad_job_free(job);
    cr_assert(eq(int, (int)gad_stream_push(a, elements, 5, -1, &n, &error), GAD_CANCELLED));
    gad_stream_free(a);
    gad_stream_free(r);
    free(elements);
}

/* What a pipe's thread does is seen from its two ends. */
static void write_npy(int fd, const char *shape, const void *elements, size_t n_bytes)
{
    char header[128];
    int n = snprintf(header, sizeof(header),
                     "{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }", shape);
    char preamble[10] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    memset(header + n, ' ', sizeof(header) - (size_t)n);
    header[117] = '\n';
    cr_assert(eq(sz, (size_t)write(fd, preamble, 10), 10));
    cr_assert(eq(sz, (size_t)write(fd, header, 118), 118));
    cr_assert(eq(sz, (size_t)write(fd, elements, n_bytes), n_bytes));
    close(fd);
}

static enum gad_status sum_of_pipe(const char *shape, size_t n_bytes, double *ret_sum)
{
    double elements[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int fds[2];
    cr_assert(zero(int, pipe(fds)));
    write_npy(fds[1], shape, elements, n_bytes);
    struct gad_stream *a;
    cr_assert(zero(int, (int)gad_stream_read_npy(client, fds[0], "the pipe", &a, &error)), "%s",
              error.message);
    struct gad_array *to = wrap(ret_sum, 0, NULL, NULL);
    struct gad_job *job = submit("sum(a)", a, NULL, to);
    enum gad_status status = gad_job_wait(job, -1, &error);
    gad_job_free(job);
    gad_stream_free(a);
    gad_array_release(to);
    close(fds[0]);
    return status;
}

Test(stream, reads_npy_from_a_pipe_to_its_end_and_no_further)
{
    double sum = 0;
    cr_assert(zero(int, (int)sum_of_pipe("2, 3", 48, &sum)), "%s", error.message);
    cr_assert(eq(dbl, sum, 21));
    cr_assert(zero(int, (int)sum_of_pipe("", 8, &sum)), "%s", error.message);
    cr_assert(eq(dbl, sum, 1));
    cr_assert(zero(int, (int)sum_of_pipe("0, 3", 0, &sum)), "%s", error.message);
    cr_assert(zero(dbl, sum));
    expect(sum_of_pipe("2, 3", 47, &sum), GAD_SHORT_READ, "48 bytes of elements", "47 bytes");
    expect(sum_of_pipe("2, 3", 49, &sum), GAD_BAD_SHAPE, "48 bytes of elements", "more");
}

Test(stream, writes_npy_to_a_pipe)
{
    int64_t shape[] = {3}, none[] = {0};
    double three[3] = {1, NAN, 3}, got[3];
    char header[4096];
    for (int i = 0; i < 2; i++) {
        int fds[2];
        cr_assert(zero(int, pipe(fds)));
        struct gad_stream *r;
        struct gad_array *a = wrap(three, 1, i ? none : shape, NULL);
        cr_assert(zero(int, (int)gad_stream_write_npy(client, fds[1], GAD_FLOAT64, 1,
                                                      i ? none : shape, &r, &error)));
        close(fds[1]);
        struct gad_job *job = submit("-a", NULL, a, gad_stream_array(r));
        cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s", error.message);
        cr_assert(zero(int, (int)gad_stream_join(r, &error)), "%s", error.message);
        gad_job_free(job);
        gad_stream_free(r);
        cr_assert(eq(sz, (size_t)read(fds[0], header, sizeof(header)), sizeof(header)));
        cr_assert(zero(int, memcmp(header, "\x93NUMPY", 6)));
        size_t n = i ? 0 : sizeof(got);
        cr_assert(eq(sz, (size_t)read(fds[0], got, sizeof(got)), n));
        if (n > 0)
            cr_assert(got[0] == -1 && isnan(got[1]) && got[2] == -3);
        close(fds[0]);
        gad_array_release(a);
    }
}

Test(stream, cancels_the_job_whose_pipe_has_no_reader)
{
    int64_t shape[] = {1000000};
    int fds[2];
    make_npy(path_in("a.npy"), shape[0]);
    struct gad_array *a = open_npy(path_in("a.npy"));
    struct gad_stream *r;
    cr_assert(zero(int, pipe(fds)));
    cr_assert(
        zero(int, (int)gad_stream_write_npy(client, fds[1], GAD_FLOAT64, 1, shape, &r, &error)));
    struct gad_job *job = submit("a * 2", NULL, a, gad_stream_array(r));
    char byte;
    cr_assert(eq(sz, (size_t)read(fds[0], &byte, 1), 1));
    close(fds[0]);
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_CANCELLED));
    cr_assert(eq(int, (int)gad_stream_join(r, &error), GAD_CANCELLED));
    cr_assert(eq(str, error.message, (char *)"the reader of the pipe has left"));
    gad_job_free(job);
    gad_stream_free(r);
    gad_array_release(a);
    close(fds[1]);
}
