/* Array descriptors: limits, overflow, extents, contiguity, broadcasting. */
#include "proto/array.h"
#include "proto/wire/ring.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* C order, of float64, without a location. */
static struct array array_of(int ndim, const int64_t *shape)
{
    struct array array = {.dtype = DTYPE_FLOAT64, .ndim = ndim};
    memcpy(array.shape, shape, (size_t)ndim * sizeof(*shape));
    array_c_strides(ndim, shape, 8, array.strides);
    return array;
}
#define ARRAY_OF(...)                                                                              \
    array_of(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static int check(const struct array *array, struct gad_error *error)
{
    memset(error, 0, sizeof(*error));
    int r = array_check(array, "a", error);
    if (r)
        cr_assert(eq(str, error->argument, "a"));
    return r;
}

Test(array, c_strides_count_from_the_last_axis)
{
    struct array array = ARRAY_OF(2, 3, 4);
    cr_assert(eq(i64, array.strides[0], 96));
    cr_assert(eq(i64, array.strides[1], 32));
    cr_assert(eq(i64, array.strides[2], 8));
}

Test(array, sizes_of_ordinary_empty_and_zero_dimensional_arrays)
{
    struct gad_error error;
    struct array array = ARRAY_OF(2, 3);
    cr_assert(eq(int, check(&array, &error), 0));
    cr_assert(eq(i64, array_n_elements(&array), 6));
    cr_assert(eq(i64, array_n_bytes(&array), 48));
    struct array empty = ARRAY_OF(5, 0, 7);
    cr_assert(eq(int, check(&empty, &error), 0));
    cr_assert(eq(i64, array_n_elements(&empty), 0));
    struct array scalar = {.dtype = DTYPE_FLOAT64};
    cr_assert(eq(int, check(&scalar, &error), 0));
    cr_assert(eq(i64, array_n_elements(&scalar), 1));
}

Test(array, refuses_absurd_shapes)
{
    static const struct {
        int ndim;
        int64_t shape[4];
    } rows[] = {
        {33, {1, 1, 1, 1}},
        {-1, {0}},
        {1, {-1}},
        {2, {4, INT64_MIN}},
        {1, {INT64_MAX}},
        {1, {INT64_C(1) << 60}},
        {2, {INT64_C(1) << 31, INT64_C(1) << 31}},
        {3, {0, INT64_C(1) << 40, INT64_C(1) << 40}}, /* empty, but strides would overflow */
        {4, {INT64_C(1) << 32, INT64_C(1) << 32, 2, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gad_error error;
        struct array array = {.dtype = DTYPE_FLOAT64, .ndim = rows[i].ndim};
        memcpy(array.shape, rows[i].shape, sizeof(rows[i].shape));
        cr_assert(eq(int, check(&array, &error), GAD_BAD_SHAPE), "row %zu", i);
        cr_assert(ne(int, error.found[0], 0), "row %zu", i);
    }
}

Test(array, takes_the_largest_that_63_bits_can_count)
{
    struct gad_error error;
    struct array array = ARRAY_OF((INT64_C(1) << 60) - 1);
    cr_assert(eq(int, check(&array, &error), 0));
    array.dtype = DTYPE_UINT8;
    array.shape[0] = INT64_MAX;
    array.strides[0] = 1;
    cr_assert(eq(int, check(&array, &error), 0));
    cr_assert(eq(i64, array_n_bytes(&array), INT64_MAX));
    int64_t low, high;
    array_extent(&array, &low, &high);
    cr_assert(eq(i64, high, INT64_MAX));
}

Test(array, refuses_strides_that_reach_beyond_63_bits)
{
    static const int64_t strides[][2] = {
        {INT64_MAX, 8},
        {INT64_MIN, 8},
        {INT64_C(1) << 62, INT64_C(1) << 62},
        {-(INT64_C(1) << 62), INT64_C(1) << 62},
        {INT64_C(1) << 61, INT64_C(1) << 61},
    };
    for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); i++) {
        struct gad_error error;
        struct array array = ARRAY_OF(3, 3);
        memcpy(array.strides, strides[i], sizeof(strides[i]));
        cr_assert(eq(int, check(&array, &error), GAD_BAD_EXTENT), "row %zu", i);
    }
    struct gad_error error;
    struct array one = ARRAY_OF(1);
    one.strides[0] = INT64_MIN; /* never used, but somebody may negate it */
    cr_assert(eq(int, check(&one, &error), GAD_BAD_EXTENT));
}

Test(array, extent_covers_negative_and_zero_strides)
{
    struct array array = ARRAY_OF(3, 4);
    int64_t low, high;
    array.strides[0] = -32;
    array_extent(&array, &low, &high);
    cr_assert(eq(i64, low, -64));
    cr_assert(eq(i64, high, 32));
    array.strides[0] = array.strides[1] = 0;
    array_extent(&array, &low, &high);
    cr_assert(eq(i64, low, 0));
    cr_assert(eq(i64, high, 8));
    array.shape[1] = 0;
    array_extent(&array, &low, &high);
    cr_assert(eq(i64, low, 0));
    cr_assert(eq(i64, high, 0));
}

Test(array, an_offset_must_leave_room_on_both_sides)
{
    struct gad_error error;
    struct array array = ARRAY_OF(4);
    array.strides[0] = -8;
    array.at.kind = LOCATION_REGION;
    array.at.region.offset_bytes = 24;
    cr_assert(eq(int, check(&array, &error), 0));
    array.at.region.offset_bytes = 23;
    cr_assert(eq(int, check(&array, &error), GAD_BAD_EXTENT));
    cr_assert(eq(str, error.expected, "an offset of at least 24"));
    array = ARRAY_OF(4);
    array.at.kind = LOCATION_FILE;
    array.at.file.offset_bytes = (uint64_t)INT64_MAX - 32;
    cr_assert(eq(int, check(&array, &error), 0));
    array.at.file.offset_bytes++;
    cr_assert(eq(int, check(&array, &error), GAD_BAD_EXTENT));
    array.at.file.offset_bytes = UINT64_MAX;
    cr_assert(eq(int, check(&array, &error), GAD_BAD_EXTENT));
}

Test(array, inline_data_has_exactly_its_size)
{
    struct gad_error error;
    struct array array = ARRAY_OF(4);
    array.at.kind = LOCATION_INLINE;
    array.at.inlined.size_bytes = 32;
    cr_assert(eq(int, check(&array, &error), 0));
    array.at.inlined.size_bytes = 31;
    cr_assert(eq(int, check(&array, &error), GAD_BAD_EXTENT));
    array.at.inlined.size_bytes = 33;
    cr_assert(eq(int, check(&array, &error), GAD_BAD_EXTENT));
    array.at.inlined.size_bytes = ARRAY_MAX_INLINE_BYTES + 8;
    cr_assert(eq(int, check(&array, &error), GAD_TOO_LARGE_FOR_INLINE));
    struct array largest = ARRAY_OF(8192);
    largest.at.kind = LOCATION_INLINE;
    largest.at.inlined.size_bytes = 65536;
    cr_assert(eq(int, check(&largest, &error), 0));
    largest.shape[0] = 8193;
    cr_assert(eq(int, check(&largest, &error), GAD_TOO_LARGE_FOR_INLINE));
}

static struct array grid(int64_t n_chunks, int64_t chunk0, int64_t chunk1)
{
    struct array array = ARRAY_OF(10, 20);
    array.at.kind = LOCATION_FILE;
    array.at.file.is_grid = true;
    array.at.file.n_chunks = (uint64_t)n_chunks;
    array.at.file.chunk_shape[0] = chunk0;
    array.at.file.chunk_shape[1] = chunk1;
    return array;
}

Test(array, a_grid_has_as_many_chunks_as_its_shape_needs)
{
    struct gad_error error;
    struct array array = grid(15, 4, 4); /* 3 x 5 */
    cr_assert(eq(int, check(&array, &error), 0));
    array = grid(1, INT32_MAX, 100); /* one chunk larger than the array */
    cr_assert(eq(int, check(&array, &error), 0));
    array = grid(14, 4, 4);
    cr_assert(eq(int, check(&array, &error), GAD_BAD_CHUNK_TABLE));
    cr_assert(eq(str, error.expected, "15"));
    array = grid(15, 0, 4);
    cr_assert(eq(int, check(&array, &error), GAD_BAD_CHUNK_TABLE));
    array = grid(15, -4, 4);
    cr_assert(eq(int, check(&array, &error), GAD_BAD_CHUNK_TABLE));
    array = grid(1, INT64_MAX, INT64_MAX);
    cr_assert(eq(int, check(&array, &error), GAD_BAD_SHAPE));
    array = grid(0, 4, 4);
    array.shape[0] = 0;
    cr_assert(eq(int, check(&array, &error), 0));
}

Test(array, a_providers_ring_is_within_limits)
{
    struct gad_error error;
    struct array array = ARRAY_OF(10);
    array.at.kind = LOCATION_PROVIDER;
    array.at.provider.n_slots = 4;
    array.at.provider.slot_bytes = RING_MIN_SLOT_BYTES;
    cr_assert(eq(int, check(&array, &error), 0));
    array.at.provider.n_slots = 0;
    cr_assert(eq(int, check(&array, &error), GAD_LIMIT_EXCEEDED));
    array.at.provider.n_slots = 4;
    array.at.provider.slot_bytes = UINT64_MAX;
    cr_assert(eq(int, check(&array, &error), GAD_LIMIT_EXCEEDED));
}

Test(array, contiguity_ignores_dimensions_of_one)
{
    struct array array = ARRAY_OF(3, 1, 4);
    array.strides[1] = 12345;
    cr_assert(array_is_c_contiguous(&array));
    cr_assert(not(array_is_f_contiguous(&array)));
    array.strides[0] = 8;
    array.strides[2] = 24;
    cr_assert(array_is_f_contiguous(&array));
    cr_assert(not(array_is_c_contiguous(&array)));
    struct array line = ARRAY_OF(1, 7, 1);
    cr_assert(array_is_c_contiguous(&line) && array_is_f_contiguous(&line));
    line.strides[1] = -8;
    cr_assert(not(array_is_c_contiguous(&line)));
    struct array empty = ARRAY_OF(3, 0);
    empty.strides[0] = 99;
    cr_assert(array_is_c_contiguous(&empty) && array_is_f_contiguous(&empty));
    struct array scalar = {.dtype = DTYPE_INT8};
    cr_assert(array_is_c_contiguous(&scalar) && array_is_f_contiguous(&scalar));
}

Test(array, broadcasts_as_numpy_does)
{
    int64_t shape[ARRAY_MAX_NDIM] = {3, 1};
    int ndim = 2;
    cr_assert(eq(int, array_broadcast(&ndim, shape, 3, (int64_t[]){5, 1, 4}, NULL), 0));
    cr_assert(eq(int, ndim, 3));
    cr_assert(eq(i64, shape[0], 5));
    cr_assert(eq(i64, shape[1], 3));
    cr_assert(eq(i64, shape[2], 4));
    cr_assert(eq(int, array_broadcast(&ndim, shape, 0, NULL, NULL), 0));
    cr_assert(eq(int, ndim, 3));

    int64_t ones[ARRAY_MAX_NDIM] = {1};
    int n = 1;
    cr_assert(eq(int, array_broadcast(&n, ones, 1, (int64_t[]){0}, NULL), 0));
    cr_assert(eq(i64, ones[0], 0));
}

Test(array, shapes_that_do_not_broadcast_are_both_named)
{
    struct gad_error error;
    int64_t shape[ARRAY_MAX_NDIM] = {3, 4};
    int ndim = 2;
    int r = array_broadcast(&ndim, shape, 1, (int64_t[]){5}, &error);
    cr_assert(eq(int, r, GAD_BAD_SHAPE));
    cr_assert(strstr(error.message, "(3, 4)") != NULL && strstr(error.message, "(5,)") != NULL);
    cr_assert(eq(int, ndim, 2));
    r = array_broadcast(&ndim, shape, 2, (int64_t[]){0, 4}, &error);
    cr_assert(eq(int, r, GAD_BAD_SHAPE));
}

Test(array, formats_shapes_and_never_overruns)
{
    char text[32];
    cr_assert(eq(str, array_format_shape(0, NULL, text, sizeof(text)), "()"));
    cr_assert(eq(str, array_format_shape(1, (int64_t[]){5}, text, sizeof(text)), "(5,)"));
    cr_assert(eq(str, array_format_shape(2, (int64_t[]){3, 4}, text, sizeof(text)), "(3, 4)"));
    int64_t many[ARRAY_MAX_NDIM];
    for (int i = 0; i < ARRAY_MAX_NDIM; i++)
        many[i] = INT64_MAX;
    for (size_t n = 1; n <= sizeof(text); n++) {
        memset(text, '#', sizeof(text));
        array_format_shape(ARRAY_MAX_NDIM, many, text, n);
        cr_assert(eq(sz, strnlen(text, n), n - 1));
        cr_assert(n == sizeof(text) || text[n] == '#');
    }
}
