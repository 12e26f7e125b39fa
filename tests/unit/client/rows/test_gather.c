/* Rows by number: of every kind of source the same bytes, whatever the order; what cannot be
 * read. */
#include "tests/unit/client/formats/support.h"

#include "tests/unit/client/rows/rows_gather.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

TestSuite(gather, .init = folder_make, .fini = folder_remove);

/* A source of int32 rows of 3, which fails for some. */
struct made {
    int64_t bad_first, bad_end;
    _Atomic int64_t n_read;
    atomic_int n_inside;
};

static int fill_made(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct made *made = state;
    int32_t *values = ret_block;
    cr_assert(eq(int, atomic_fetch_add(&made->n_inside, 1), 0)); /* it is not concurrent */
    for (int64_t i = 0; i < count[0] * 3; i++)
        values[i] = (int32_t)(start[0] * 3 + i);
    made->n_read += count[0];
    made->n_inside--;
    return start[0] < made->bad_end && start[0] + count[0] > made->bad_first ? EIO : 0;
}

static const struct provider made_provider = {.fill = fill_made};

static struct gad_array *make(struct made *made, int64_t n, int64_t chunk_rows)
{
    struct gad_array *array = array_new(NULL, "blocks", ACCESS_PROVIDER, "made");
    array->info.dtype = GAD_INT32;
    array->info.ndim = 2;
    array->info.shape[0] = n;
    array->info.shape[1] = 3;
    array->provider = &made_provider;
    array->provider_state = made;
    array->chunk_shape[0] = chunk_rows;
    array->chunk_shape[1] = 3;
    array->n_chunks = chunk_rows ? (uint64_t)((n + chunk_rows - 1) / chunk_rows) : 0;
    return array;
}

static int64_t *draw_rows(uint64_t n, int64_t n_rows, uint64_t seed)
{
    int64_t *rows = malloc((n + 1) * sizeof(*rows));
    uint64_t x = seed * 88172645463325252u + 1;
    for (uint64_t i = 0; i < n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        rows[i] = (int64_t)(x % (uint64_t)n_rows);
        if (i > 0 && x >> 60 == 0)
            rows[i] = rows[i - 1];
        if (i > 0 && x >> 61 == 1 && rows[i - 1] + 1 < n_rows)
            rows[i] = rows[i - 1] + 1;
    }
    return rows;
}

/* n rows with gaps between those in `out`, from several threads. */
static void check_rows(struct row_source *source, const int64_t *rows, uint64_t n, const char *all,
                       size_t gap)
{
    size_t stride = source->row_bytes + gap;
    char *out = malloc(n * stride + 1);
    memset(out, 0x5a, n * stride + 1);
    int r = rows_gather(source, n, rows, out, stride, 3, "idx", &last_error);
    cr_assert(eq(int, r, 0), "%s", last_error.message);
    for (uint64_t i = 0; i < n; i++) {
        cr_assert(memcmp(out + i * stride, all + (size_t)rows[i] * source->row_bytes,
                         source->row_bytes) == 0,
                  "place %lu, row %ld", i, rows[i]);
        for (size_t k = 0; k < gap; k++)
            cr_assert(out[i * stride + source->row_bytes + k] == 0x5a);
    }
    cr_assert(out[n * stride] == 0x5a);
    free(out);
}

static void check_source(struct gad_array *array)
{
    struct row_source source;
    cr_assert(eq(int, row_source_init(&source, array, "a", &last_error), 0));
    char *all = malloc((size_t)source.n_rows * source.row_bytes + 1);
    cr_assert(eq(int, row_source_read(&source, 0, source.n_rows, all), 0));
    char *wanted = elements(array);
    cr_assert(memcmp(all, wanted, (size_t)source.n_rows * source.row_bytes) == 0);
    static const uint64_t counts[] = {0, 1, 2, 300, 5000};
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        int64_t *rows = draw_rows(counts[k], source.n_rows, k + 1);
        check_rows(&source, rows, counts[k], all, k % 2 ? 12 : 0);
        free(rows);
    }
    int64_t *rows = malloc((size_t)source.n_rows * sizeof(*rows));
    for (int64_t i = 0; i < source.n_rows; i++)
        rows[i] = i;
    check_rows(&source, rows, (uint64_t)source.n_rows, all, 0);
    for (int64_t i = 0; i < source.n_rows; i++)
        rows[i] = source.n_rows - 1 - i;
    check_rows(&source, rows, (uint64_t)source.n_rows, all, 0);
    free(rows);
    free(all);
    free(wanted);
    row_source_deinit(&source);
}

static void check_spec(const char *spec)
{
    struct gad_array *array = open_ok(spec);
    check_source(array);
    gad_array_release(array);
}

Test(gather, brings_rows_of_files)
{
    npy_put_counting("a.npy", false, "(1000, 7)", 7000, 0);
    npy_put_counting("swapped.npy", true, "(900, 3, 2)", 5400, 9);
    npy_put("f.npy", 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (500, 9), }", 18000);
    npy_put("wide.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (40, 9000), }",
            1440000);
    check_spec("a.npy");
    check_spec("a.npy[::-3]");
    check_spec("a.npy[5:995, ::2]");
    check_spec("a.npy[:, 3]");
    check_spec("swapped.npy");
    check_spec("f.npy");
    check_spec("wide.npy");
    npy_put_counting("b1.npy", false, "(100, 7)", 700, 0);
    npy_put_counting("b2.npy", true, "(50, 7)", 350, 700);
    check_spec("b*.npy");
    check_spec("b*.npy[::-1, 1:]");
}

Test(gather, brings_rows_of_chunks)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), file = h5_create("a.h5", 0);
    H5Pset_shuffle(dcpl);
    H5Pset_deflate(dcpl, 1);
    h5_put(file, "packed", H5T_IEEE_F64LE, 2, (hsize_t[]){1003, 10}, (hsize_t[]){64, 4}, dcpl);
    h5_put(file, "plain", H5T_IEEE_F64LE, 2, (hsize_t[]){1003, 10}, (hsize_t[]){64, 10},
           H5Pcreate(H5P_DATASET_CREATE));
    H5Fclose(file);
    check_spec("a.h5:/packed");
    check_spec("a.h5:/packed[900:10:-1, 2:5]");
    check_spec("a.h5:/plain");
}

Test(gather, brings_rows_of_memory)
{
    int16_t values[3000];
    for (int i = 0; i < 3000; i++)
        values[i] = (int16_t)i;
    struct gad_array *array = array_new(NULL, "memory", ACCESS_MEMORY, NULL);
    array->info.dtype = GAD_INT16;
    array->info.ndim = 2;
    array->info.shape[0] = 100;
    array->info.shape[1] = 5;
    array->info.strides[0] = 60;
    array->info.strides[1] = -4;
    array->data = values + 20;
    struct row_source source;
    cr_assert(eq(int, row_source_init(&source, array, "a", &last_error), 0));
    static const int64_t rows[] = {99, 0, 0, 1, 2, 98};
    int16_t out[6][5];
    cr_assert(eq(int, rows_gather(&source, 6, rows, out, sizeof(out[0]), 0, "i", &last_error), 0));
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 5; k++)
            cr_assert(eq(i16, out[i][k], (int16_t)(20 + rows[i] * 30 - k * 2)));
    row_source_deinit(&source);
    gad_array_release(array);
}

Test(gather, decodes_each_unit_once_and_asks_a_program_in_one_thread)
{
    struct made made = {0};
    struct gad_array *array = make(&made, 10000, 100);
    struct row_source source;
    cr_assert(eq(int, row_source_init(&source, array, "a", &last_error), 0));
    int64_t *rows = draw_rows(4000, 10000, 5);
    int32_t(*out)[3] = calloc(4000, sizeof(*out));
    int r = rows_gather(&source, 4000, rows, out, sizeof(*out), 4, "idx", &last_error);
    cr_assert(eq(int, r, 0));
    for (int i = 0; i < 4000; i++)
        cr_assert(eq(i64, out[i][1], rows[i] * 3 + 1));
    cr_assert(made.n_read <= 10000);
    made.n_read = 0;
    r = rows_gather(&source, 1, rows, out, sizeof(*out), 4, "idx", &last_error);
    cr_assert(eq(int, r, 0));
    cr_assert(eq(i64, made.n_read, 1)); /* of a unit in which one row is wanted */
    free(out);
    free(rows);
    row_source_deinit(&source);
    gad_array_release(array);
}

Test(gather, a_scalar_has_no_rows)
{
    struct row_source source;
    struct gad_array *array = array_new(NULL, "memory", ACCESS_MEMORY, NULL);
    cr_assert(eq(int, row_source_init(&source, array, "scalar", &last_error), GAD_BAD_SHAPE));
    gad_array_release(array);
}

Test(gather, says_which_rows_of_which_file_cannot_be_read)
{
    npy_put_counting("a.npy", false, "(1000, 30)", 30000, 0);
    struct gad_array *array = open_ok("a.npy");
    struct row_source source;
    uint16_t out[2][30];
    static const int64_t rows[] = {990, 3};
    cr_assert(eq(int, row_source_init(&source, array, "a", &last_error), 0));
    cr_assert(eq(int, truncate("a.npy", 30000), 0));
    cr_assert(eq(int, rows_gather(&source, 2, rows, out, sizeof(out[0]), 0, "a", &last_error),
                 GAD_SHORT_READ));
    cr_assert(strstr(last_error.message, "a.npy") && strstr(last_error.message, "990"), "%s",
              last_error.message);
    row_source_deinit(&source);
    gad_array_release(array);
}

Test(gather, goes_on_behind_what_cannot_be_read)
{
    struct made made = {.bad_first = 250, .bad_end = 251};
    struct gad_array *array = make(&made, 1000, 100);
    struct row_source source;
    struct row_order order;
    struct row_failure failure;
    int64_t *rows = draw_rows(3000, 1000, 9);
    int32_t(*out)[3] = calloc(3000, sizeof(*out));
    uint8_t *failed = calloc(3000, 1);
    char *bases[] = {(char *)out, (char *)(out + 1500)};
    struct row_target target = {bases, 1500, sizeof(*out)};
    struct gather_options options = {.failed = failed, .mark = 7};
    cr_assert(eq(int, row_source_init(&source, array, "a", &last_error), 0));
    cr_assert(eq(int, row_order_init(&order, 3000, rows), 0));
    cr_assert(eq(int, gather(&source, &order, &target, &options, &failure), 0));
    cr_assert(eq(int, failure.error_number, EIO));
    cr_assert(failure.first <= 250 && failure.first + failure.n > 250);
    for (int i = 0; i < 3000; i++) {
        cr_assert(eq(int, failed[i], rows[i] / 100 == 2 ? 7 : 0), "row %ld", rows[i]);
        cr_assert(failed[i] || out[i][2] == (int32_t)rows[i] * 3 + 2);
    }
    options.failed = NULL;
    cr_assert(eq(int, gather(&source, &order, &target, &options, &failure), EIO));
    atomic_bool is_cancelled = true;
    options.is_cancelled = &is_cancelled;
    cr_assert(eq(int, gather(&source, &order, &target, &options, &failure), ECANCELED));
    row_order_deinit(&order);
    free(rows);
    free(out);
    free(failed);
    row_source_deinit(&source);
    gad_array_release(array);
}

/* Rows of few bits and of nearly all that there are, beside which places have no room. */
Test(gather, an_order_is_by_row_and_of_one_row_by_place)
{
    uint64_t state = 5;
    for (unsigned n_bits = 1; n_bits <= 63; n_bits += 2)
        for (uint64_t n = 1; n < 5000; n = n * 4 + 1) {
            struct row_order order;
            int64_t *rows = malloc(n * sizeof(*rows));
            uint8_t *is_there = calloc(n, 1);
            for (uint64_t i = 0; i < n; i++) {
                state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                rows[i] = (int64_t)(state >> (64 - n_bits));
            }
            cr_assert(eq(int, row_order_init(&order, n, rows), 0));
            for (uint64_t i = 0; i < n; i++) {
                const struct wanted_row *one = &order.wanted[i];
                cr_assert(one->place < n && rows[one->place] == one->row && !is_there[one->place]);
                cr_assert(i == 0 || one[-1].row < one->row ||
                          (one[-1].row == one->row && one[-1].place < one->place));
                is_there[one->place] = 1;
            }
            row_order_deinit(&order);
            free(is_there);
            free(rows);
        }
}
