/* Arrays whose blocks the caller moves, as sources and as outputs, with a real daemon. */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "proto/util.h"

#include <byteswap.h>
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

TestSuite(from_blocks, .init = set_up, .fini = tear_down, .timeout = 60);

enum { ROWS = 700, COLUMNS = 500 };

/* A matrix that only these functions can reach. */
struct store {
    double cells[ROWS][COLUMNS];
    bool is_swapped;
    int fails_with;
    pthread_t caller; /* who must never be called in */
    atomic_int n_inside, n_calls, n_freed;
};

static double turned(const struct store *store, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = store->is_swapped ? bswap_64(bits) : bits;
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

static int begin(struct store *store)
{
    bool is_alone = store->n_inside++ == 0;
    store->n_calls++;
    if (!is_alone || pthread_equal(pthread_self(), store->caller))
        return EBUSY;
    return store->fails_with;
}

static int read_block(void *data, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct store *store = data;
    double *block = ret_block;
    int r = begin(store);
    for (int64_t i = 0; i < count[0] && r == 0; i++)
        for (int64_t j = 0; j < count[1]; j++)
            *block++ = turned(store, store->cells[start[0] + i][start[1] + j]);
    store->n_inside--;
    return r;
}

static int write_block(void *data, const int64_t *start, const int64_t *count, const void *bytes)
{
    struct store *store = data;
    const double *block = bytes;
    int r = begin(store);
    for (int64_t i = 0; i < count[0] && r == 0; i++)
        for (int64_t j = 0; j < count[1]; j++)
            store->cells[start[0] + i][start[1] + j] = turned(store, *block++);
    store->n_inside--;
    return r;
}

static void free_store(void *data)
{
    ((struct store *)data)->n_freed++;
}

static struct store *new_store(bool is_swapped)
{
    struct store *store = calloc(1, sizeof(*store));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            store->cells[i][j] = i * COLUMNS + j;
    store->is_swapped = is_swapped;
    store->caller = pthread_self();
    return store;
}

/* The first `rows` of a store. */
static struct gad_array *over(struct store *store, int64_t rows, bool can_read, bool can_write)
{
    struct gad_array *array;
    struct gad_error error = {0};
    int64_t shape[] = {rows, COLUMNS};
    struct gad_layout layout = {
        .dtype = GAD_FLOAT64, .is_swapped = store->is_swapped, .ndim = 2, .shape = shape};
    struct gad_blocks blocks = {.read = can_read ? read_block : NULL,
                                .write = can_write ? write_block : NULL,
                                .free = free_store,
                                .data = store};
    cr_assert(zero(int, (int)gad_array_from_blocks(client, &layout, &blocks, &array, &error)), "%s",
              error.message);
    return array;
}

static void finish(struct store *store, struct gad_array *array)
{
    cr_assert(zero(int, store->n_freed));
    gad_array_release(array);
    cr_assert(eq(int, store->n_freed, 1));
    cr_assert(zero(int, store->n_inside));
    free(store);
}

Test(from_blocks, are_read_and_written_in_every_size_and_byte_order)
{
    int64_t rows[] = {1, 7, ROWS};
    for (size_t i = 0; i < 2 * ARRAY_LENGTH(rows); i++) {
        struct store *in = new_store(i % 2), *out = new_store(!(i % 2));
        int64_t n = rows[i / 2];
        struct gad_array *a = over(in, n, true, false), *r = over(out, n, false, true);
        const struct gad_array_info *info = gad_array_info(a);
        cr_assert(eq(str, (char *)info->format, (char *)"blocks"));
        cr_assert(eq(str, (char *)info->access, (char *)"provider"));
        cr_assert(zero(i64, info->strides[0]));
        memset(out->cells, 0, sizeof(out->cells));
        run_well("a + 0.5", a, r, NULL);
        for (int row = 0; row < ROWS; row++)
            for (int j = 0; j < COLUMNS; j++)
                cr_assert(eq(dbl, out->cells[row][j], row < n ? in->cells[row][j] + 0.5 : 0));
        cr_assert(eq(dbl, ask("max(a)", a), (double)(n * COLUMNS - 1)));
        finish(in, a);
        finish(out, r);
    }
}

static int read_one(void *data, const int64_t *start, const int64_t *count, void *ret_block)
{
    (void)start;
    (void)count;
    memcpy(ret_block, data, sizeof(double));
    return 0;
}

Test(from_blocks, may_be_one_element_without_axes)
{
    double value = 2.5;
    struct gad_array *a;
    struct gad_layout layout = {.dtype = GAD_FLOAT64};
    struct gad_blocks blocks = {.read = read_one, .data = &value};
    cr_assert(zero(int, (int)gad_array_from_blocks(client, &layout, &blocks, &a, NULL)));
    cr_assert(eq(dbl, ask("a * 2", a), 5));
    gad_array_release(a); /* free() may be NULL */
}

Test(from_blocks, are_freed_with_the_last_job_that_uses_them)
{
    struct store *in = new_store(false);
    struct gad_array *a = over(in, ROWS, true, false);
    struct gad_argument args[] = {{.name = "a", .array = a}};
    struct gad_output outputs[] = {{.expr = "sum(a)"}};
    struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    struct gad_job *job;
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, NULL)));
    gad_array_release(a);
    cr_assert(zero(int, in->n_freed));
    cr_assert(zero(int, (int)gad_job_wait(job, -1, NULL)));
    double n = ROWS * COLUMNS;
    cr_assert(eq(dbl, *(const double *)gad_job_result(job, 0, NULL), n * (n - 1) / 2));
    gad_job_free(job);
    cr_assert(eq(int, in->n_freed, 1));
    free(in);
}

Test(from_blocks, fail_the_job_with_the_callers_errno)
{
    struct gad_error error = {0};
    int failures[] = {ENOENT, EIO, -1};
    for (size_t i = 0; i < ARRAY_LENGTH(failures); i++) {
        struct store *in = new_store(false), *out = new_store(false);
        struct gad_array *a = over(in, ROWS, true, false), *r = over(out, ROWS, true, true);
        in->fails_with = failures[i];
        cr_assert(eq(int, (int)run("a + 1", a, r, NULL, &error), GAD_PROVIDER_FAILED));
        cr_assert(eq(str, error.argument, "a"));
        if (failures[i] > 0)
            cr_assert(ne(ptr, strstr(error.message, strerror(failures[i])), NULL), "%s",
                      error.message);
        in->fails_with = 0;
        out->fails_with = ENOSPC;
        cr_assert(eq(int, (int)run("a + 1", a, r, NULL, &error), GAD_PROVIDER_FAILED));
        cr_assert(eq(str, error.argument, "outputs[0]"));
        out->fails_with = 0;
        run_well("a + 1", a, r, NULL);
        cr_assert(eq(dbl, out->cells[1][1], COLUMNS + 2), "and may be tried again");
        finish(in, a);
        finish(out, r);
    }
}

Test(from_blocks, are_read_or_written_only_as_they_can)
{
    struct store *in = new_store(false), *out = new_store(false);
    struct gad_array *a = over(in, ROWS, true, false), *r = over(out, ROWS, false, true);
    struct gad_error error = {0};
    cr_assert(eq(int, (int)run("a", a, a, NULL, &error), GAD_READ_ONLY));
    cr_assert(eq(int, (int)run("a", r, NULL, NULL, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.argument, "a"));
    cr_assert(zero(int, in->n_calls));
    cr_assert(zero(int, out->n_calls));
    finish(in, a);
    finish(out, r);
}

Test(from_blocks, are_not_taken_when_refused)
{
    struct store *store = new_store(false);
    struct gad_array *array = NULL;
    struct gad_error error;
    int64_t shape[] = {-1, 2};
    struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 2, .shape = shape};
    struct gad_blocks blocks = {.read = read_block, .free = free_store, .data = store};
    struct gad_blocks neither = {.free = free_store, .data = store};
    cr_assert(eq(int, (int)gad_array_from_blocks(client, &layout, &blocks, &array, &error),
                 GAD_BAD_SHAPE));
    shape[0] = 1;
    cr_assert(eq(int, (int)gad_array_from_blocks(client, &layout, &neither, &array, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.argument, "blocks"));
    cr_assert(eq(int, (int)gad_array_from_blocks(client, &layout, NULL, &array, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(int, (int)gad_array_from_blocks(client, NULL, &blocks, &array, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(int, (int)gad_array_from_blocks(NULL, &layout, &blocks, &array, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(int, (int)gad_array_from_blocks(client, &layout, &blocks, NULL, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(zero(ptr, array));
    cr_assert(zero(int, store->n_freed));
    free(store);
}
