/* Blocks of what is taken, asked for as the pump does: by several threads, in several orders, with
 * windows of several sizes; what is read for them; what fails. And marks, bit by bit. */
#include "client/array.h"
#include "client/gpuarrayd-take.h"
#include "client/lib/memory/memory.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define N_ROWS    6000
#define ROW       16 /* float64 */
#define ROW_BYTES (ROW * 8)
#define N_INDICES 20000
#define N_THREADS 3

/* Element (i, j) is i * ROW + j. It fails at a row, when it is told to. */
static struct maker {
    _Atomic uint64_t n_rows_read, n_calls;
    _Atomic int64_t failing_row;
} made;

static int fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct maker *maker = state;
    double *to = ret_block;
    maker->n_rows_read += (uint64_t)count[0];
    maker->n_calls++;
    for (int64_t i = start[0]; i < start[0] + count[0]; i++) {
        if (i == maker->failing_row)
            return EIO;
        for (int64_t j = start[1]; j < start[1] + count[1]; j++)
            *to++ = (double)(i * ROW + j);
    }
    return 0;
}

static void explain(void *state, struct gad_error *error)
{
    (void)state;
    snprintf(error->message, sizeof(error->message), "the row is damaged");
}

static const struct provider provider = {.is_concurrent = true, .fill = fill, .explain = explain};

static struct gad_array *new_array(enum access access, enum gad_dtype dtype, int ndim,
                                   const int64_t *shape, void *data)
{
    struct array described;
    struct gad_layout layout = {.dtype = dtype, .ndim = ndim, .shape = shape};
    struct gad_array *array = array_new(NULL, "test", access, NULL);
    cr_assert(zero(int, memory_describe(&layout, &described, NULL)));
    memory_fill_info(array, &described);
    array->data = data;
    return array;
}

static struct gad_array *made_array(void)
{
    static const int64_t shape[] = {N_ROWS, ROW};
    struct gad_array *array = new_array(ACCESS_PROVIDER, GAD_FLOAT64, 2, shape, NULL);
    made.n_rows_read = made.n_calls = 0;
    made.failing_row = -1;
    array->provider = &provider;
    array->provider_state = &made;
    return array;
}

static int64_t indices[N_INDICES];

enum order { SHUFFLED, ASCENDING, REPEATED };

static struct gad_array *new_indices(enum order order)
{
    static const int64_t shape[] = {N_INDICES};
    uint64_t seed = 1;
    for (int64_t i = 0; i < N_INDICES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int64_t random = (int64_t)(seed >> 33) % (2 * N_ROWS) - N_ROWS;
        indices[i] = order == SHUFFLED    ? random
                     : order == ASCENDING ? i * N_ROWS / N_INDICES
                                          : random % 3;
    }
    return new_array(ACCESS_MEMORY, GAD_INT64, 1, shape, indices);
}

/* Asking --------------------------------------------------------------------------------------- */

static struct asking {
    struct gad_array *array;
    int64_t block_rows, block_columns;
    bool is_backwards;
    _Atomic int64_t next;
    _Atomic int error_number;
    double *result;
} asking;

static void ask_block(int64_t n)
{
    int64_t n_down = (N_INDICES + asking.block_rows - 1) / asking.block_rows;
    int64_t row = n % n_down * asking.block_rows, column = n / n_down * asking.block_columns;
    if (asking.is_backwards)
        row = (n_down - 1) * asking.block_rows - row;
    int64_t start[] = {row, column},
            count[] = {row + asking.block_rows > N_INDICES ? N_INDICES - row : asking.block_rows,
                       asking.block_columns};
    double *block = malloc((size_t)(count[0] * count[1]) * sizeof(*block));
    int r = asking.array->provider->fill(asking.array->provider_state, start, count, block);
    for (int64_t i = 0; i < count[0] && r == 0; i++)
        memcpy(asking.result + (row + i) * ROW + column, block + i * count[1],
               (size_t)count[1] * sizeof(*block));
    free(block);
    if (r)
        asking.error_number = r;
}

static void *ask_some(void *unused)
{
    int64_t n =
        (N_INDICES + asking.block_rows - 1) / asking.block_rows * (ROW / asking.block_columns);
    for (int64_t i; (i = asking.next++) < n && !asking.error_number;)
        ask_block(i);
    return unused;
}

/* All blocks, by several threads. Their errno. */
static int ask_all(struct gad_array *array, int64_t rows, int64_t columns, bool is_backwards)
{
    pthread_t threads[N_THREADS];
    asking.array = array;
    asking.block_rows = rows;
    asking.block_columns = columns;
    asking.is_backwards = is_backwards;
    asking.next = 0;
    asking.error_number = 0;
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, ask_some, NULL);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    return asking.error_number;
}

static void check_result(void)
{
    for (int64_t i = 0; i < N_INDICES; i++) {
        int64_t row = indices[i] < 0 ? indices[i] + N_ROWS : indices[i];
        for (int64_t j = 0; j < ROW; j++) {
            double found = asking.result[i * ROW + j], want = (double)(row * ROW + j);
            if (found != want) /* asserting is slow */
                cr_assert(eq(dbl, found, want), "element (%d, %d)", (int)i, (int)j);
        }
    }
    memset(asking.result, 0xff, N_INDICES * ROW_BYTES);
}

static struct gad_array *take(struct gad_array *array, struct gad_array *of, uint64_t memory_bytes)
{
    struct gad_take_options options = {.memory_bytes = memory_bytes};
    struct gad_error error = {0};
    struct gad_array *taken = NULL;
    cr_assert(zero(int, (int)gad_array_take(array, of, &options, &taken, &error)), "%s",
              error.message);
    gad_array_release(array); /* what is taken holds both */
    gad_array_release(of);
    return taken;
}

static void begin(void)
{
    asking.result = calloc(N_INDICES, ROW_BYTES);
}

static void end(void)
{
    free(asking.result);
}

TestSuite(take, .init = begin, .fini = end, .timeout = 60);

Test(take, of_any_order_with_windows_of_any_size_walked_in_any_way)
{
    static const uint64_t memories[] = {1, 600 << 10, 1 << 20, 0};
    static const struct {
        int64_t rows, columns;
        bool is_backwards;
    } walks[] = {{256, ROW, false}, {100, ROW, false}, {5000, 4, false}, {256, ROW, true}};
    for (enum order order = SHUFFLED; order <= REPEATED; order++) {
        for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++) {
            struct gad_array *taken = take(made_array(), new_indices(order), memories[i]);
            for (size_t k = 0; k < sizeof(walks) / sizeof(walks[0]); k++) {
                cr_assert(zero(
                    int, ask_all(taken, walks[k].rows, walks[k].columns, walks[k].is_backwards)));
                check_result();
            }
            gad_array_release(taken);
        }
    }
}

Test(take, a_window_reads_all_rows_once)
{
    struct gad_array *taken = take(made_array(), new_indices(SHUFFLED), 0);
    cr_assert(zero(int, ask_all(taken, 256, ROW, false)));
    check_result();
    cr_assert(le(u64, made.n_rows_read, N_ROWS + 64 * 2048)); /* pieces may share a span */
    uint64_t once = made.n_rows_read;
    cr_assert(zero(int, ask_all(taken, 256, ROW, false))); /* it is there still */
    check_result();
    cr_assert(eq(u64, made.n_rows_read, once));
    gad_array_release(taken);
}

Test(take, rows_of_many_indices_have_windows_as_large)
{
    enum { N_IN_ROW = 50, N_BLOCK = 4 };
    static const int64_t shape[] = {N_INDICES / N_IN_ROW, N_IN_ROW};
    gad_array_release(new_indices(SHUFFLED));
    struct gad_array *taken = take(
        made_array(), new_array(ACCESS_MEMORY, GAD_INT64, 2, shape, indices), UINT64_C(8) << 20);
    for (int64_t row = 0; row < shape[0]; row += N_BLOCK) {
        int64_t start[] = {row, 0, 0}, count[] = {N_BLOCK, N_IN_ROW, ROW};
        cr_assert(zero(int, taken->provider->fill(taken->provider_state, start, count,
                                                  asking.result + row * N_IN_ROW * ROW)));
    }
    check_result();
    cr_assert(le(u64, made.n_rows_read, N_ROWS + 64 * 2048));
    gad_array_release(taken);
}

Test(take, what_is_in_order_needs_no_window)
{
    struct gad_array *taken = take(made_array(), new_indices(ASCENDING), 0);
    cr_assert(zero(int, ask_all(taken, 256, ROW, false)));
    check_result();
    cr_assert(le(u64, made.n_rows_read, 2 * N_ROWS));
    gad_array_release(taken);
}

Test(take, an_index_that_is_outside_is_told_with_its_place_and_forgotten)
{
    for (int is_windowed = 0; is_windowed < 2; is_windowed++) {
        struct gad_array *taken = take(made_array(), new_indices(SHUFFLED), !is_windowed);
        struct gad_error error = {.argument = "x"};
        int64_t good = indices[12345];
        indices[12345] = N_ROWS;
        cr_assert(eq(int, ask_all(taken, 256, ROW, false), ERANGE));
        taken->provider->explain(taken->provider_state, &error);
        cr_assert(eq(int, (int)error.status, GAD_BAD_INDEX));
        cr_assert(eq(str, error.found, (char *)"6000 at place (12345,)"));
        cr_assert(eq(str, error.expected, (char *)"-6000 to 5999"));
        cr_assert(eq(str, error.argument, (char *)"x"));
        indices[12345] = good;
        cr_assert(zero(int, ask_all(taken, 256, ROW, false)));
        check_result();
        gad_array_release(taken);
    }
}

Test(take, a_row_that_cannot_be_read_is_its_arrays_to_explain)
{
    for (int is_windowed = 0; is_windowed < 2; is_windowed++) {
        struct gad_array *taken = take(made_array(), new_indices(SHUFFLED), !is_windowed);
        struct gad_error error = {0};
        made.failing_row = 77;
        cr_assert(eq(int, ask_all(taken, 256, ROW, false), EIO));
        taken->provider->explain(taken->provider_state, &error);
        cr_assert(eq(str, error.message, (char *)"the row is damaged"));
        made.failing_row = -1;
        cr_assert(zero(int, ask_all(taken, 256, ROW, false)));
        check_result();
        gad_array_release(taken);
    }
}

Test(take, indices_of_every_dtype_and_mode)
{
    static double table[7] = {0, 1, 2, 3, 4, 5, 6};
    static const int64_t length[] = {7}, one[] = {1};
    static const struct {
        enum gad_dtype dtype;
        uint64_t bits;
        enum gad_take_mode mode;
        double want; /* -1: bad-index */
    } cases[] = {
        {GAD_INT8, 0xff, GAD_TAKE_RAISE, 6},
        {GAD_UINT8, 0xff, GAD_TAKE_RAISE, -1},
        {GAD_UINT8, 0xff, GAD_TAKE_WRAP, 3},
        {GAD_INT16, 0xfff9, GAD_TAKE_RAISE, 0},
        {GAD_INT16, 0xfff8, GAD_TAKE_RAISE, -1},
        {GAD_INT16, 0xfff8, GAD_TAKE_CLIP, 0},
        {GAD_UINT16, 0xfff8, GAD_TAKE_CLIP, 6},
        {GAD_INT32, 0xffffffff, GAD_TAKE_WRAP, 6},
        {GAD_UINT32, 0xffffffff, GAD_TAKE_WRAP, 3},
        {GAD_INT64, UINT64_MAX, GAD_TAKE_RAISE, 6},
        {GAD_INT64, UINT64_C(1) << 63, GAD_TAKE_WRAP, 6},
        {GAD_UINT64, UINT64_MAX, GAD_TAKE_WRAP, 1},
        {GAD_UINT64, UINT64_MAX, GAD_TAKE_CLIP, 6},
        {GAD_UINT64, UINT64_MAX, GAD_TAKE_RAISE, -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t bits = cases[i].bits; /* little-endian: its first bytes are the index */
        struct gad_array *of = new_array(ACCESS_MEMORY, cases[i].dtype, 1, one, &bits), *taken;
        struct gad_array *array = new_array(ACCESS_MEMORY, GAD_FLOAT64, 1, length, table);
        struct gad_take_options options = {.mode = cases[i].mode};
        int64_t start = 0;
        double found = -1;
        cr_assert(zero(int, (int)gad_array_take(array, of, &options, &taken, NULL)));
        int r = taken->provider->fill(taken->provider_state, &start, one, &found);
        cr_assert(eq(int, r, cases[i].want < 0 ? ERANGE : 0), "case %zu", i);
        cr_assert(eq(dbl, found, cases[i].want), "case %zu", i);
        gad_array_release(taken);
        gad_array_release(array);
        gad_array_release(of);
    }
}

Test(take, what_fits_no_array_is_refused)
{
    static const int64_t three[] = {3}, none[] = {0, 4};
    static double data[12];
    static int64_t index[3];
    static const struct {
        struct gad_take_options options;
        int status;
    } cases[] = {{{.axis = 2}, GAD_BAD_SHAPE},
                 {{.axis = -3}, GAD_BAD_SHAPE},
                 {{.axis = 1, .n_axes = 2}, GAD_BAD_SHAPE},
                 {{.mode = (enum gad_take_mode)3}, GAD_BAD_ARGUMENT},
                 {{.axis = 0}, GAD_BAD_INDEX},
                 {{.axis = 1}, GAD_OK}};
    struct gad_array *array = new_array(ACCESS_MEMORY, GAD_FLOAT64, 2, none, data);
    struct gad_array *of = new_array(ACCESS_MEMORY, GAD_INT64, 1, three, index), *taken = NULL;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gad_error error = {0};
        cr_assert(eq(int, (int)gad_array_take(array, of, &cases[i].options, &taken, &error),
                     cases[i].status),
                  "case %zu: %s", i, error.message);
    }
    gad_array_release(taken);
    cr_assert(eq(int, (int)gad_array_take(of, array, NULL, &taken, NULL), GAD_BAD_DTYPE));
    cr_assert(eq(int, (int)gad_array_take(NULL, of, NULL, &taken, NULL), GAD_BAD_ARGUMENT));
    cr_assert(eq(int, (int)gad_array_positions(of, &taken, NULL), GAD_BAD_ARGUMENT));
    gad_array_release(array);
    gad_array_release(of);
}
