/* Selections: from text to numbers, and from a source's elements to the selected ones by every way
 * that an array has to them. What is right in general is compared with NumPy (test_selections.py);
 * here are the limits, and the blocks that providers serve. */
#include "client/formats/chunk_pick.h"
#include "client/formats/selection.h"
#include "support.h"

TestSuite(selection, .init = folder_make, .fini = folder_remove);

static const int64_t shape[3] = {7, 11, 5};

static struct selection read_ok(const char *text, int ndim, const int64_t *of_shape)
{
    struct selection selection;
    int r = selection_read(text, 1, ndim, of_shape, &selection, &last_error);
    cr_assert(eq(int, r, 0), "%s: %s", text, last_error.message);
    return selection;
}

static void expect_axis(const char *text, int64_t size, int64_t start, int64_t step, int64_t count)
{
    struct selection_axis axis = read_ok(text, 1, &size).axes[0];
    cr_assert(axis.start == start && axis.step == step && axis.count == count,
              "%s of %lld: %lld %lld %lld", text, (long long)size, (long long)axis.start,
              (long long)axis.step, (long long)axis.count);
}

Test(selection, clips_slices_as_numpy)
{
    expect_axis("a[:]", 7, 0, 1, 7);
    expect_axis("a[2:5]", 7, 2, 1, 3);
    expect_axis("a[-3:]", 7, 4, 1, 3);
    expect_axis("a[:-3]", 7, 0, 1, 4);
    expect_axis("a[-100:100]", 7, 0, 1, 7);
    expect_axis("a[100:]", 7, 0, 1, 0);
    expect_axis("a[5:2]", 7, 0, 1, 0);
    expect_axis("a[::3]", 7, 0, 3, 3);
    expect_axis("a[::-1]", 7, 6, -1, 7);
    expect_axis("a[::-3]", 7, 6, -3, 3);
    expect_axis("a[100::-3]", 7, 6, -3, 3);
    expect_axis("a[5:-100:-2]", 7, 5, -2, 3);
    expect_axis("a[:2:-1]", 7, 6, -1, 4);
    expect_axis("a[0:0:-1]", 7, 0, 1, 0);
    expect_axis("a[::9]", 7, 0, 1, 1);
    expect_axis("a[:]", 0, 0, 1, 0);
    expect_axis("a[::-1]", 0, 0, 1, 0);
}

Test(selection, takes_numbers_beyond_63_bits_as_the_greatest)
{
    expect_axis("a[-99999999999999999999:99999999999999999999]", 7, 0, 1, 7);
    expect_axis("a[::99999999999999999999]", INT64_MAX, 0, 1, 1);
    expect_axis("a[::-99999999999999999999]", INT64_MAX, INT64_MAX - 1, 1, 1);
    expect_axis("a[::9223372036854775806]", INT64_MAX, 0, INT64_MAX - 1, 2);
    expect_axis("a[9223372036854775806]", INT64_MAX, INT64_MAX - 1, 1, 1);
    expect_axis("a[-9223372036854775807]", INT64_MAX, 0, 1, 1);
    struct selection selection;
    cr_assert(eq(int, selection_read("a[9223372036854775808]", 1, 3, shape, &selection, NULL),
                 GAD_BAD_ARGUMENT));
}

Test(selection, lays_parts_on_axes)
{
    struct selection s = read_ok("a[ None, -1 ,..., newaxis, 1 : 3, np.newaxis ] ", 3, shape);
    const int wanted[5] = {SELECTION_NEW_AXIS, 1, SELECTION_NEW_AXIS, 2, SELECTION_NEW_AXIS};
    cr_assert(eq(int, s.source_ndim, 3));
    cr_assert(eq(int, s.ndim, 5));
    for (int i = 0; i < 5; i++)
        cr_assert(eq(int, s.axis_of[i], wanted[i]));
    cr_assert(s.axes[0].is_dropped && s.axes[0].start == 6 && !s.axes[1].is_dropped);
    cr_assert(eq(i64, selection_size(&s, 0), 1));
    cr_assert(eq(i64, selection_size(&s, 1), 11));
    cr_assert(eq(i64, selection_size(&s, 3), 2));
    cr_assert(not(selection_is_empty(&s)));
    s = read_ok("a[1:1]", 3, shape);
    cr_assert(selection_is_empty(&s));
    cr_assert(eq(int, s.ndim, 3));
    s = read_ok("a[...]", 0, shape);
    cr_assert(eq(int, s.ndim, 0));
}

Test(selection, is_found_at_the_end_of_a_text)
{
    static const struct {
        const char *text;
        int at; /* -1: none */
    } cases[] = {{"a[1]", 1},   {"a[1][2]", 4}, {"a[[1]] ", 1}, {"a", -1},    {"a]", -1},
                 {"a[1]]", -1}, {"[1]", -1},    {"", -1},       {" ", -1},    {"a[1", -1},
                 {"a[1].", -1}, {"a[]", 1},     {"a []", 2},    {"a][1]", 2}, {"a[1]\t\n", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t at = SIZE_MAX;
        bool is_found = selection_find(cases[i].text, strlen(cases[i].text), &at);
        cr_assert(eq(int, is_found ? (int)at : -1, cases[i].at), "%s", cases[i].text);
    }
}

Test(selection, becomes_offset_and_strides)
{
    struct selection s = read_ok("a[2, ::-2, newaxis, 1:4]", 3, shape);
    struct array array = {.dtype = DTYPE_FLOAT64, .ndim = 3, .shape = {7, 11, 5}};
    uint64_t offset = 100;
    array_c_strides(3, array.shape, 8, array.strides);
    selection_apply(&s, &array, &offset);
    cr_assert(eq(u64, offset, 100 + 2 * 440 + 10 * 40 + 8));
    cr_assert(array.ndim == 3 && array.shape[0] == 6 && array.shape[1] == 1 && array.shape[2] == 3);
    cr_assert(array.strides[0] == -80 && array.strides[2] == 8);
}

Test(selection, of_a_grid_is_a_grid_where_no_chunk_is_cut)
{
    static const struct {
        const char *text;
        int n_chunks; /* 0: it is none */
        int skip;     /* elements */
    } cases[] = {{"a[4:, 3:]", 2, 0},  {"a[2, :]", 3, 6},     {"a[1:3, 3:6]", 1, 3},
                 {"a[:, 1]", 0, 0},    {"a[1:]", 0, 0},       {"a[::2]", 0, 0},
                 {"a[2, 4:6]", 1, 7},  {"a[4:6]", 3, 0},      {"a[:, :3]", 2, 0},
                 {"a[-1, -1]", 0, 0},  {"a[-1:, -1]", 1, 11}, {"a[3, None, ::1]", 3, 9},
                 {"a[:, 8:9]", 0, 0},  {"a[:0]", 0, 0},       {"a[...]", 6, 0},
                 {"a[:, ::-1]", 0, 0}, {"a[2:5]", 0, 0},      {"a[1, 1:5]", 0, 0}};
    const int64_t whole[2] = {8, 9}, chunk[2] = {4, 3};
    struct chunk_grid grid;
    cr_assert(chunk_grid_init(&grid, 2, whole, chunk, 8));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chunk_pick pick = {0};
        struct selection s = read_ok(cases[i].text, 2, whole);
        bool is_grid = chunk_pick_init(&pick, &grid, &s, 8);
        cr_assert(eq(int, is_grid ? (int)pick.grid.n_chunks : 0, cases[i].n_chunks), "%s",
                  cases[i].text);
        cr_assert(eq(int, (int)pick.skip_bytes, cases[i].skip * 8), "%s", cases[i].text);
    }
}

/* Element `at` of an array of doubles 0, 1, 2, ... of this shape, in C order. */
static double selected(const struct selection *s, const int64_t *of_shape, const int64_t *at)
{
    int64_t index[ARRAY_MAX_NDIM], value = 0;
    for (int i = 0; i < s->source_ndim; i++)
        index[i] = s->axes[i].start;
    for (int i = 0; i < s->ndim; i++)
        if (s->axis_of[i] != SELECTION_NEW_AXIS)
            index[s->axis_of[i]] += at[i] * s->axes[s->axis_of[i]].step;
    for (int i = 0; i < s->source_ndim; i++)
        value = value * of_shape[i] + index[i];
    return (double)value;
}

static void expect_elements(const char *source, const char *text, int64_t step)
{
    char spec[160];
    int64_t at[ARRAY_MAX_NDIM] = {0};
    struct selection s = read_ok(text, 3, shape);
    snprintf(spec, sizeof(spec), "%s%s", source, text + 1);
    struct gad_array *array = open_ok(spec);
    cr_assert(eq(int, array->info.ndim, s.ndim));
    double *values = step ? elements_by_blocks(array, step) : elements(array);
    for (size_t k = 0, n = n_elements(array); k < n; k++) {
        double wanted = selected(&s, shape, at);
        cr_assert(values[k] == wanted, "%s, element %zu by %lld: %g, not %g", spec, k,
                  (long long)step, values[k], wanted);
        for (int i = s.ndim - 1; i >= 0 && ++at[i] == selection_size(&s, i); i--)
            at[i] = 0;
    }
    free(values);
    gad_array_release(array);
}

static void put_sources(void)
{
    const hsize_t dims[3] = {7, 11, 5}, rows[3] = {1, 11, 5}, odd[3] = {3, 4, 2};
    double turned[385], plain[385];
    for (int i = 0; i < 385; i++)
        plain[i] = i;
    for (int i = 0; i < 385; i++) /* Fortran order */
        turned[i / 55 + i / 5 % 11 * 7 + i % 5 * 77] = i;
    file_put("c.raw", plain, sizeof(plain));
    FILE *file = fopen("f.npy", "wb");
    char header[128];
    memset(header, ' ', sizeof(header));
    memcpy(header, "\x93NUMPY\1\0\x76\0", 10);
    memcpy(header + 10, "{'descr': '<f8', 'fortran_order': True, 'shape': (7, 11, 5)}", 60);
    header[127] = '\n';
    cr_assert(fwrite(header, 1, 128, file) == 128 && fwrite(turned, 1, 3080, file) == 3080);
    fclose(file);
    hid_t h5 = h5_create("x.h5", 0);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    cr_assert(H5Pset_deflate(dcpl, 1) >= 0);
    h5_put(h5, "plain", H5T_IEEE_F64LE, 3, dims, NULL, 0);
    h5_put(h5, "rows", H5T_IEEE_F64LE, 3, dims, rows, 0);
    h5_put(h5, "odd", H5T_IEEE_F64LE, 3, dims, odd, 0);
    h5_put(h5, "packed", H5T_IEEE_F64LE, 3, dims, odd, dcpl);
    H5Pclose(dcpl);
    H5Fclose(h5);
}

Test(selection, has_the_same_elements_whatever_the_way)
{
    static const char *const sources[] = {"c.raw:f8:7x11x5", "f.npy",     "x.h5:/plain",
                                          "x.h5:/rows",      "x.h5:/odd", "x.h5:/packed"};
    static const char *const texts[] = {"a[...]",
                                        "a[2]",
                                        "a[::-1]",
                                        "a[..., ::-1]",
                                        "a[::-2, ::-3, ::-2]",
                                        "a[1:6:2, 9:2:-2]",
                                        "a[3:, 4:, 2:]",
                                        "a[0, 8, 4]",
                                        "a[:, 3, :]",
                                        "a[..., 2]",
                                        "a[None, 3, None]",
                                        "a[1:1]",
                                        "a[6:7, 4:8, ::-4]",
                                        "a[3, 8:, 4:]"};
    int n_descriptors = descriptor_count();
    put_sources();
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
            expect_elements(sources[i], texts[k], 0);
            expect_elements(sources[i], texts[k], INT64_MAX);
            expect_elements(sources[i], texts[k], 2);
        }
    }
    cr_assert(eq(int, descriptor_count(), n_descriptors));
}

/* On a file system that the daemon does not write to. */
static void drain_by_blocks(struct gad_array *array, int64_t step, const double *values)
{
    const int64_t *size = array->info.shape;
    double block[385];
    for (int64_t i = 0; i < size[0]; i += step) {
        for (int64_t j = 0; j < size[1]; j += step) {
            int64_t start[2] = {i, j};
            int64_t count[2] = {size[0] - i < step ? size[0] - i : step,
                                size[1] - j < step ? size[1] - j : step};
            for (int64_t k = 0; k < count[0] * count[1]; k++)
                block[k] = values[(i + k / count[1]) * size[1] + j + k % count[1]];
            cr_assert(
                eq(int, array->provider->drain(array->provider_state, start, count, block), 0));
        }
    }
}

Test(selection, is_written_in_place_and_nothing_else)
{
    static const char *const texts[] = {"[2, ::-2, 1:]", "[::-3, ..., 4]", "[1:6:2, 9:2:-2, 0]"};
    static const char *const sources[] = {"c.raw:f8:7x11x5", "f.npy", "x.h5:/plain"};
    put_sources();
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 3; k++) {
            char spec[160], text[80];
            struct gad_array *array = NULL;
            double values[385];
            snprintf(spec, sizeof(spec), "%s%s", sources[i], texts[k]);
            snprintf(text, sizeof(text), "a%s", texts[k]);
            struct selection s = read_ok(text, 3, shape);
            cr_assert(eq(int, format_open(NULL, spec, true, &array, &last_error), 0), "%s", spec);
            size_t n = n_elements(array);
            int64_t at[ARRAY_MAX_NDIM] = {0};
            for (size_t e = 0; e < n; e++) { /* negated, then put back */
                values[e] = -selected(&s, shape, at);
                for (int d = s.ndim - 1; d >= 0 && ++at[d] == selection_size(&s, d); d--)
                    at[d] = 0;
            }
            drain_by_blocks(array, k + 2, values);
            struct gad_array *whole = open_ok(sources[i]);
            double *got = elements(whole), sum = 0, sum_of_values = 0;
            for (int e = 0; e < 385; e++)
                sum += got[e] + e * (got[e] == -e); /* the untouched, as they were */
            for (size_t e = 0; e < n; e++)
                sum_of_values += values[e];
            cr_assert(eq(dbl, sum, 385 * 384 / 2 + sum_of_values), "%s", spec);
            free(got);
            double *read_back = elements(array);
            cr_assert(memcmp(read_back, values, n * sizeof(double)) == 0, "%s", spec);
            free(read_back);
            for (size_t e = 0; e < n; e++)
                values[e] = -values[e];
            drain_by_blocks(array, INT64_MAX / 2, values);
            gad_array_release(whole);
            gad_array_release(array);
            expect_elements(sources[i], "a[...]", 0);
        }
    }
}
