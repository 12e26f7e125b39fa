/* Grains: limits, coverage and shapes for the layouts that matter, then the same invariants over
 * many generated spaces. */
#include "kernels/grains/geometry.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024

static const struct geometry_rules whole = {.round_axis = -1};

static struct geometry_operand c_array(enum dtype dtype, int ndim, const int64_t *shape)
{
    return (struct geometry_operand){.dtype = dtype, .ndim = ndim, .shape = shape};
}

static int64_t box_bytes(const struct geometry_operand *operand, int ndim, const int64_t *count)
{
    int64_t start[ARRAY_MAX_NDIM] = {0}, own_start[ARRAY_MAX_NDIM], own[ARRAY_MAX_NDIM];
    int64_t n_bytes = (int64_t)dtype_size(operand->dtype);

    geometry_operand_box(ndim, start, count, operand->ndim, operand->shape, own_start, own);
    for (int i = 0; i < operand->ndim; i++)
        n_bytes *= own[i];
    return n_bytes;
}

/* Limits of the largest grain, and that the grains make up the space. */
static void check(const struct geometry *g, unsigned n, const struct geometry_operand *operands)
{
    int64_t total = 0, n_elements = 1, n_grain = 1;
    uint64_t n_grains = 1;
    uint32_t axes = 0;

    for (unsigned i = 0; i < n; i++) {
        int64_t n_bytes = box_bytes(&operands[i], g->ndim, g->grain_shape);
        cr_assert(le(i64, n_bytes, GRAIN_MAX_OPERAND_BYTES));
        total += (n_bytes + 63) / 64 * 64;
    }
    cr_assert(le(i64, total, GRAIN_MAX_TOTAL_BYTES));
    for (int i = 0; i < g->ndim; i++) {
        cr_assert(ge(i64, g->grain_shape[i], 1));
        cr_assert(le(i64, g->grain_shape[i], g->shape[i]));
        cr_assert(eq(i64, g->grid[i], (g->shape[i] - 1) / g->grain_shape[i] + 1));
        n_grains *= (uint64_t)g->grid[i];
        n_elements *= g->shape[i];
        n_grain *= g->grain_shape[i];
        axes |= UINT32_C(1) << g->axis_order[i];
    }
    cr_assert(eq(u64, g->n_grains, n_grains));
    cr_assert(eq(u64, axes, (UINT64_C(1) << g->ndim) - 1));
    cr_assert(le(i64, n_grain, 256 * KIB));
    if (g->n_grains > 100000)
        return;
    int64_t sum = 0, start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    for (uint64_t grain = 0; grain < g->n_grains; grain++) {
        int64_t product = 1;
        geometry_grain(g, grain, start, count);
        for (int i = 0; i < g->ndim; i++) {
            cr_assert(eq(i64, start[i] % g->grain_shape[i], 0));
            cr_assert(lt(i64, 0, count[i]));
            cr_assert(le(i64, start[i] + count[i], g->shape[i]));
            product *= count[i];
        }
        sum += product;
    }
    cr_assert(eq(i64, sum, n_elements));
}

static void make(struct geometry *g, int ndim, const int64_t *shape, unsigned n,
                 const struct geometry_operand *operands)
{
    geometry_init(g, ndim, shape, n, operands, &whole);
    check(g, n, operands);
}

Test(geometry, one_array_and_its_result_fill_a_slot)
{
    const int64_t shape[] = {1 << 20};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT32, 1, shape),
                                          c_array(DTYPE_FLOAT32, 1, shape)};
    struct geometry g;

    operands[1].is_output = true;
    make(&g, 1, shape, 2, operands);
    cr_assert(eq(i64, g.grain_shape[0], 65536));
    cr_assert(eq(u64, g.n_grains, 16));
}

Test(geometry, a_space_without_axes_is_one_grain)
{
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 0, NULL)};
    struct geometry g;

    make(&g, 0, NULL, 1, operands);
    cr_assert(eq(u64, g.n_grains, 1));
    geometry_grain(&g, 0, NULL, NULL);
}

Test(geometry, an_empty_space_has_no_grains)
{
    const int64_t shape[] = {INT64_MAX, 0, INT64_MAX};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 3, shape)};
    struct geometry g;

    geometry_init(&g, 3, shape, 1, operands, &whole);
    cr_assert(eq(u64, g.n_grains, 0));
    cr_assert(eq(i64, g.grid[1], 0));
}

Test(geometry, a_pass_without_operands_still_has_bounded_grains)
{
    const int64_t shape[] = {3000, 7000};
    struct geometry g;

    make(&g, 2, shape, 0, NULL);
    cr_assert(lt(u64, 1, g.n_grains));
}

Test(geometry, runs_of_a_long_axis_are_whole_pages)
{
    static const int64_t lengths[] = {65537, 70000, 100000, 1000003, 12345678};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (unsigned n = 1; n <= 20; n++) {
            struct geometry_operand operands[20];
            struct geometry g;
            for (unsigned k = 0; k < n; k++)
                operands[k] = c_array(DTYPE_FLOAT32, 1, &lengths[i]);
            make(&g, 1, &lengths[i], n, operands);
            cr_assert(eq(i64, g.grain_shape[0] * 4 % 4096, 0), "length %ld, %u operands",
                      (long)lengths[i], n);
        }
    }
}

Test(geometry, parts_of_the_split_axis_are_nearly_equal)
{
    const int64_t shape[] = {1000, 100000};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 2, shape)};
    struct geometry g;

    make(&g, 2, shape, 1, operands);
    cr_assert(eq(i64, g.grain_shape[0], 1));
    cr_assert(eq(i64, g.grid[1], 4));
    cr_assert(eq(i64, g.grain_shape[1], 28672));
}

Test(geometry, inner_axes_are_whole_one_is_split_outer_ones_have_one_index)
{
    const int64_t shape[] = {5, 132, 73, 144};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT32, 4, shape)};
    struct geometry g;

    make(&g, 4, shape, 1, operands);
    cr_assert(eq(i64, g.grain_shape[0], 1));
    cr_assert(eq(i64, g.grain_shape[1], 6));
    cr_assert(eq(i64, g.grain_shape[2], 73));
    cr_assert(eq(i64, g.grain_shape[3], 144));
}

Test(geometry, fortran_order_is_walked_in_fortran_order)
{
    const int64_t shape[] = {3000, 2000}, strides[] = {8, 24000};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 2, shape),
                                          c_array(DTYPE_FLOAT64, 2, shape)};
    struct geometry g;

    operands[0].strides = operands[1].strides = strides;
    operands[1].is_output = true;
    make(&g, 2, shape, 2, operands);
    cr_assert(eq(int, g.axis_order[0], 1));
    cr_assert(eq(int, g.axis_order[1], 0));
    cr_assert(eq(i64, g.grain_shape[0], 3000));
    cr_assert(lt(i64, 1, g.grain_shape[1]));
    int64_t start[2], count[2];
    geometry_grain(&g, 1, start, count);
    cr_assert(eq(i64, start[0], 0));
    cr_assert(eq(i64, start[1], g.grain_shape[1]));
}

Test(geometry, negative_strides_count_by_magnitude)
{
    const int64_t shape[] = {3000, 2000}, strides[] = {-8, -24000};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 2, shape)};
    struct geometry g;

    operands[0].strides = strides;
    make(&g, 2, shape, 1, operands);
    cr_assert(eq(int, g.axis_order[1], 0));
}

Test(geometry, outputs_decide_where_no_source_has_an_opinion)
{
    const int64_t shape[] = {3000, 2000}, row[] = {1, 2000}, strides[] = {8, 24000};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 2, row),
                                          c_array(DTYPE_FLOAT64, 2, shape)};
    struct geometry g;

    operands[1].is_output = true;
    operands[1].strides = strides;
    make(&g, 2, shape, 2, operands);
    cr_assert(eq(int, g.axis_order[1], 0));
}

Test(geometry, contrary_layouts_get_blocks_with_runs_on_both_sides)
{
    const int64_t shape[] = {10000, 10000}, strides[] = {4, 40000};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT32, 2, shape),
                                          c_array(DTYPE_FLOAT32, 2, shape)};
    struct geometry g;

    operands[0].strides = strides;
    operands[1].is_output = true; /* Fortran to C */
    make(&g, 2, shape, 2, operands);
    cr_assert(ge(i64, g.grain_shape[0], 256));
    cr_assert(ge(i64, g.grain_shape[1], 256));

    struct geometry_operand three[] = {operands[0], c_array(DTYPE_FLOAT32, 2, shape), operands[1]};
    make(&g, 2, shape, 3, three);
    cr_assert(eq(int, g.axis_order[0], 0));
    cr_assert(ge(i64, g.grain_shape[0], 128));
    cr_assert(ge(i64, g.grain_shape[1], 128));
}

Test(geometry, a_short_contrary_axis_does_not_stop_the_runs)
{
    const int64_t shape[] = {3, 1000000}, strides[] = {1, 3}; /* RGB pixels to planes */
    struct geometry_operand operands[] = {c_array(DTYPE_UINT8, 2, shape),
                                          c_array(DTYPE_UINT8, 2, shape)};
    struct geometry g;

    operands[0].strides = strides;
    operands[1].is_output = true;
    make(&g, 2, shape, 2, operands);
    cr_assert(eq(i64, g.grain_shape[0], 3));
    cr_assert(ge(i64, g.grain_shape[1], 1024));
}

Test(geometry, preferences_that_go_round_in_a_circle_end_in_c_order)
{
    const int64_t shape[] = {50, 60, 70};
    const int64_t a_shape[] = {50, 60, 1}, b_shape[] = {60, 70}, c_shape[] = {50, 1, 70};
    const int64_t c_strides[] = {8, 8, 400};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 3, a_shape),
                                          c_array(DTYPE_FLOAT64, 2, b_shape),
                                          c_array(DTYPE_FLOAT64, 3, c_shape)};
    struct geometry g;

    operands[2].strides = c_strides;
    make(&g, 3, shape, 3, operands);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, g.axis_order[i], i));
}

Test(geometry, broadcast_operands_count_what_they_touch)
{
    const int64_t shape[] = {1000, 8192}, row[] = {8192}, column[] = {1000, 1};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT32, 2, shape),
                                          c_array(DTYPE_FLOAT64, 1, row),
                                          c_array(DTYPE_FLOAT64, 2, column)};
    struct geometry g;

    make(&g, 2, shape, 3, operands);
    cr_assert(eq(i64, g.grain_shape[1], 8192));
    cr_assert(eq(i64, g.grain_shape[0], 8)); /* 256 KiB of the array, 64 KiB of the row */
}

Test(geometry, small_operands_against_each_other_make_no_endless_grain)
{
    const int64_t shape[] = {30000, 30000}, row[] = {30000}, column[] = {30000, 1};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 1, row),
                                          c_array(DTYPE_FLOAT64, 2, column)};
    struct geometry g;

    make(&g, 2, shape, 2, operands);
    cr_assert(lt(u64, 3000, g.n_grains));
}

Test(geometry, grains_are_whole_chunks)
{
    const int64_t shape[] = {132, 73, 144}, chunk[] = {1, 73, 144};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT32, 3, shape),
                                          c_array(DTYPE_FLOAT32, 3, shape),
                                          c_array(DTYPE_FLOAT32, 3, shape)};
    struct geometry g;

    operands[0].chunk_shape = operands[1].chunk_shape = chunk;
    operands[2].is_output = true;
    make(&g, 3, shape, 3, operands);
    cr_assert(eq(i64, g.grain_shape[0], 4));
    cr_assert(eq(i64, g.grain_shape[1], 73));
    cr_assert(eq(i64, g.grain_shape[2], 144));
}

Test(geometry, chunks_are_put_together_along_the_fastest_axis_first)
{
    const int64_t shape[] = {1000, 1000}, chunk[] = {100, 100};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT32, 2, shape)};
    struct geometry g;

    operands[0].chunk_shape = chunk;
    make(&g, 2, shape, 1, operands);
    cr_assert(eq(i64, g.grain_shape[0], 100));
    cr_assert(eq(i64, g.grain_shape[1], 500));
}

Test(geometry, a_chunk_too_large_is_divided_along_its_slowest_axes)
{
    const int64_t shape[] = {10, 5000, 3000}, chunk[] = {2, 1000, 1000};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 3, shape)};
    struct geometry g;

    operands[0].chunk_shape = chunk;
    make(&g, 3, shape, 1, operands);
    cr_assert(eq(i64, g.grain_shape[0], 1));
    cr_assert(eq(i64, g.grain_shape[1], 25)); /* 32 would fit; 25 divides 1000 */
    cr_assert(eq(i64, g.grain_shape[2], 1000));
}

Test(geometry, a_chunk_of_prime_length_is_still_divided)
{
    const int64_t shape[] = {10000019}, chunk[] = {1000003};
    struct geometry_operand operands[] = {c_array(DTYPE_UINT8, 1, shape)};
    struct geometry g;

    operands[0].chunk_shape = chunk;
    make(&g, 1, shape, 1, operands);
    cr_assert(ge(i64, g.grain_shape[0], 64 * KIB));
}

/* Chunks as narrow as a column, and rows that are written. */
static struct geometry cut_columns(const int64_t *shape, const int64_t *chunk, bool wants_runs,
                                   uint32_t reduced_axes)
{
    const struct geometry_rules rules = {.round_axis = -1, .reduced_axes = reduced_axes};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 2, shape),
                                          c_array(DTYPE_FLOAT64, 2, shape)};
    struct geometry g;

    operands[0].chunk_shape = chunk;
    operands[1].is_output = true;
    operands[1].wants_runs = wants_runs;
    geometry_init(&g, 2, shape, 2, operands, &rules);
    check(&g, 2, operands);
    return g;
}

Test(geometry, chunks_as_narrow_as_a_column_are_parted_where_rows_are_written)
{
    const int64_t few[] = {340000, 4}, many[] = {60000, 500}, chunk[] = {20000, 1};
    const int64_t long_chunk[] = {60000, 2}, pair[] = {20000, 2};
    struct geometry g = cut_columns(few, chunk, false, 0);

    cr_assert(eq(i64, g.grain_shape[0], 20000));
    cr_assert(eq(i64, g.grain_shape[1], 1));
    for (uint32_t reduced_axes = 0; reduced_axes < 4; reduced_axes++) {
        g = cut_columns(few, chunk, true, reduced_axes);
        cr_assert(eq(i64, g.grain_shape[1], 4));
        cr_assert(eq(i64, 20000 % g.grain_shape[0], 0));
        cr_assert(ge(i64, g.grain_shape[0], 2000));
        g = cut_columns(many, chunk, true, reduced_axes);
        cr_assert(ge(i64, g.grain_shape[1], 128));
        cr_assert(ge(i64, g.grain_shape[0], 64));
        g = cut_columns(many, long_chunk, true, reduced_axes);
        cr_assert(ge(i64, g.grain_shape[1], 128));
        cr_assert(eq(i64, g.grain_shape[1] % 2, 0));
    }
    g = cut_columns(few, pair, true, 0); /* of runs that are short, but whole */
    cr_assert(eq(i64, g.grain_shape[1], 4));
}

/* Of a chunk that is decoded: all parts of it soon after each other, whatever else is between. */
static void check_parts_are_near(const int64_t *shape, const int64_t *chunk, bool wants_runs,
                                 uint64_t most)
{
    static uint64_t first[64 * 64 * 64];
    const struct geometry_operand operands[] = {{.dtype = DTYPE_FLOAT64,
                                                 .ndim = 3,
                                                 .shape = shape,
                                                 .chunk_shape = chunk,
                                                 .is_decoded = true},
                                                {.dtype = DTYPE_FLOAT64,
                                                 .ndim = 3,
                                                 .shape = shape,
                                                 .is_output = true,
                                                 .wants_runs = wants_runs}};
    struct geometry g;
    int64_t start[3], count[3], n[3];

    geometry_init(&g, 3, shape, 2, operands, &(struct geometry_rules){.round_axis = -1});
    memset(first, 0xff, sizeof(first));
    for (int i = 0; i < 3; i++)
        n[i] = (shape[i] + chunk[i] - 1) / chunk[i];
    cr_assert(le(i64, n[0] * n[1] * n[2], (int64_t)(sizeof(first) / sizeof(first[0]))));
    for (uint64_t grain = 0; grain < g.n_grains; grain++) {
        geometry_grain(&g, grain, start, count);
        for (int64_t i = start[0] / chunk[0]; i <= (start[0] + count[0] - 1) / chunk[0]; i++)
            for (int64_t j = start[1] / chunk[1]; j <= (start[1] + count[1] - 1) / chunk[1]; j++)
                for (int64_t k = start[2] / chunk[2]; k <= (start[2] + count[2] - 1) / chunk[2];
                     k++) {
                    uint64_t *at = &first[(i * n[1] + j) * n[2] + k];
                    *at = *at == UINT64_MAX ? grain : *at;
                    cr_assert(le(u64, grain - *at, most));
                }
    }
}

Test(geometry, parts_of_a_chunk_that_is_decoded_are_neighbours)
{
    check_parts_are_near((const int64_t[]){640, 200, 200}, (const int64_t[]){320, 8, 8}, true, 40);
    check_parts_are_near((const int64_t[]){640, 200, 200}, (const int64_t[]){320, 8, 8}, false, 40);
    check_parts_are_near((const int64_t[]){50, 300, 400}, (const int64_t[]){50, 100, 100}, true,
                         100);
    check_parts_are_near((const int64_t[]){50, 300, 400}, (const int64_t[]){50, 100, 100}, false,
                         100);
}

Test(geometry, two_grids_use_the_common_multiple_where_it_fits)
{
    const int64_t shape[] = {1000, 100}, a_chunk[] = {4, 100}, b_chunk[] = {6, 50};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 2, shape),
                                          c_array(DTYPE_FLOAT64, 2, shape)};
    struct geometry g;

    operands[0].chunk_shape = a_chunk;
    operands[1].chunk_shape = b_chunk;
    make(&g, 2, shape, 2, operands);
    cr_assert(eq(i64, g.grain_shape[0] % 12, 0));
    cr_assert(eq(i64, g.grain_shape[1], 100));

    const int64_t wide_a[] = {211, 100}, wide_b[] = {199, 100};
    operands[0].chunk_shape = wide_a;
    operands[1].chunk_shape = wide_b;
    make(&g, 2, shape, 2, operands);
    cr_assert(eq(i64, g.grain_shape[0], 211)); /* the first grid's */
}

Test(geometry, chunks_larger_than_the_array_and_of_broadcast_axes_are_harmless)
{
    const int64_t shape[] = {20, 30}, row[] = {1, 30}, chunk[] = {INT64_MAX, INT64_MAX};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 2, shape),
                                          c_array(DTYPE_FLOAT64, 2, row)};
    struct geometry g;

    operands[0].chunk_shape = operands[1].chunk_shape = chunk;
    make(&g, 2, shape, 2, operands);
    cr_assert(eq(u64, g.n_grains, 1));
}

Test(geometry, the_most_operands_and_axes_fit)
{
    struct geometry_operand operands[80];
    int64_t shape[ARRAY_MAX_NDIM], strides[80][ARRAY_MAX_NDIM];
    struct geometry g;

    for (int i = 0; i < ARRAY_MAX_NDIM; i++)
        shape[i] = i < 3 ? 1000 : 2;
    for (unsigned n = 0; n < 80; n++) {
        operands[n] = c_array(DTYPE_FLOAT64, ARRAY_MAX_NDIM, shape);
        for (int i = 0; i < ARRAY_MAX_NDIM; i++)
            strides[n][i] = INT64_C(8) << ((i * 7 + (int)n) % 32);
        operands[n].strides = strides[n];
    }
    make(&g, ARRAY_MAX_NDIM, shape, 80, operands);
}

/* Of windows what lies around is computed for each grain: it must stay small beside that, and rows
 * begin where lines of a cache do. */
Test(geometry, windows_have_grains_that_are_long_against_what_lies_around_them)
{
    static const int64_t shape[] = {8192, 8192}, none[] = {0, 32};
    static const struct geometry_rules rules = {
        .round_axis = -1, .takes_steps = true, .long_bytes = 1 << 20};
    static const int64_t sizes[] = {5, 51, 501};
    for (int axis = 0; axis < 2; axis++)
        for (unsigned i = 0; i < 3; i++) {
            int64_t around[2] = {0, 0}, padded[2] = {0, 32};
            struct geometry_operand operands[4];
            struct geometry g;
            around[axis] = sizes[i] - 1;
            padded[axis] += sizes[i] - 1;
            for (int k = 0; k < 4; k++)
                operands[k] = c_array(DTYPE_FLOAT32, 2, shape);
            operands[0].reach = around;
            operands[1].is_output = true;
            operands[2].reach = none;
            operands[3].reach = padded;
            operands[2].is_internal = operands[3].is_internal = true;
            operands[2].is_window = operands[3].is_window = true;
            geometry_init(&g, 2, shape, 4, operands, &rules);
            double share = (double)around[axis] / (double)g.grain_shape[axis];
            cr_expect(lt(dbl, share, 0.4), "%d along %d", (int)sizes[i], axis);
            cr_expect(eq(i64, g.grain_shape[1] % 64, 0));
        }
}

/* What lies around a single element may be more than there is room for. */
Test(geometry, what_does_not_fit_says_so)
{
    static const int64_t shape[] = {400000}, near[] = {20000}, far[] = {399000};
    struct geometry_operand operand = c_array(DTYPE_FLOAT64, 1, shape);
    struct geometry g;
    operand.reach = near;
    geometry_init(&g, 1, shape, 1, &operand, &whole);
    cr_expect(not(g.is_too_large));
    operand.reach = far;
    geometry_init(&g, 1, shape, 1, &operand, &whole);
    cr_expect(g.is_too_large);
}

Test(geometry, the_largest_space_does_not_overflow)
{
    const int64_t shape[] = {INT64_C(1) << 31, INT64_C(1) << 31}, one[] = {1, 1};
    const int64_t long_row[] = {INT64_MAX};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 2, one)};
    struct geometry g;

    make(&g, 2, shape, 1, operands);
    operands[0].shape = long_row;
    operands[0].ndim = 1;
    make(&g, 1, long_row, 1, operands);
    int64_t start, count;
    geometry_grain(&g, g.n_grains - 1, &start, &count);
    cr_assert(eq(i64, start + count, INT64_MAX));
}

Test(geometry, an_operands_box_follows_broadcasting)
{
    const int64_t start[] = {5, 6, 7}, count[] = {2, 3, 4}, shape[] = {1, 100};
    int64_t own_start[2], own_count[2];

    geometry_operand_box(3, start, count, 2, shape, own_start, own_count);
    cr_assert(eq(i64, own_start[0], 0));
    cr_assert(eq(i64, own_count[0], 1));
    cr_assert(eq(i64, own_start[1], 7));
    cr_assert(eq(i64, own_count[1], 4));
    geometry_operand_box(3, start, count, 0, NULL, NULL, NULL);
}

static int64_t some_length(void)
{
    static const int64_t lengths[] = {1, 1, 2, 3, 5, 7, 16, 73, 144, 1000, 4097, 65536};

    return lengths[(size_t)rand() % (sizeof(lengths) / sizeof(lengths[0]))];
}

struct random_operand {
    int64_t shape[4], strides[4], chunk[4];
};

static struct geometry_operand random_operand(struct random_operand *r, const int64_t *space,
                                              int space_ndim)
{
    int ndim = 1 + rand() % space_ndim;
    struct geometry_operand operand = {.dtype = (enum dtype)(rand() % DTYPE_COUNT), .ndim = ndim};

    for (int i = 0; i < ndim; i++) {
        r->shape[i] = rand() % 3 ? space[space_ndim - ndim + i] : 1;
        r->chunk[i] = 1 + rand() % 200;
        r->strides[i] = (rand() % 2 ? 1 : -1) * (rand() % 100000);
    }
    operand.shape = r->shape;
    operand.strides = rand() % 2 ? r->strides : NULL;
    operand.chunk_shape = rand() % 3 ? NULL : r->chunk;
    operand.is_output = rand() % 2;
    operand.wants_runs = rand() % 2;
    return operand;
}

Test(geometry, generated_spaces_keep_the_limits_and_repeat_exactly)
{
    srand(20240607);
    for (int round = 0; round < 3000; round++) {
        struct random_operand storage[12];
        struct geometry_operand operands[12];
        int64_t space[4];
        int ndim = 1 + rand() % 4;
        unsigned n = (unsigned)(rand() % 13);
        struct geometry g, again;
        for (int i = 0; i < ndim; i++)
            space[i] = some_length();
        for (unsigned i = 0; i < n; i++)
            operands[i] = random_operand(&storage[i], space, ndim);
        make(&g, ndim, space, n, operands);
        geometry_init(&again, ndim, space, n, operands, &whole);
        cr_assert(eq(int, memcmp(&g, &again, sizeof(g)), 0));
    }
}

/* All that a grain's turn has in its slot: boxes with what lies around them, as far as the array
 * goes. */
static int64_t bytes_with_reach(const struct geometry *g, unsigned n,
                                const struct geometry_operand *operands)
{
    int64_t total = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct geometry_operand *o = &operands[i];
        int64_t n_bytes = (int64_t)dtype_size(o->dtype);
        for (int k = 0; k < o->ndim; k++) {
            int64_t count = g->grain_shape[g->ndim - o->ndim + k] + (o->reach ? o->reach[k] : 0);
            n_bytes *= count < o->shape[k] ? count : o->shape[k];
        }
        total += (n_bytes + 63) / 64 * 64;
    }
    return total;
}

Test(geometry, generated_boxes_with_what_lies_around_them_fit)
{
    static const uint64_t long_bytes[] = {0, GRAIN_MAX_TOTAL_BYTES, 1 << 20};
    unsigned n_fitting = 0;

    srand(20250803);
    for (int round = 0; round < 6000; round++) {
        struct random_operand storage[6];
        struct geometry_operand operands[6];
        int64_t space[4], reach[6][4];
        int ndim = 1 + rand() % 4;
        unsigned n = (unsigned)(1 + rand() % 6);
        struct geometry_rules rules = whole;
        struct geometry g;
        rules.long_bytes = long_bytes[rand() % 3];
        rules.gathers = rand() % 2;
        rules.takes_steps = !rules.gathers && rand() % 2;
        for (int i = 0; i < ndim; i++)
            space[i] = 1 + rand() % (ndim == 1 ? 500000 : ndim == 2 ? 3000 : 90);
        for (unsigned i = 0; i < n; i++) {
            operands[i] = random_operand(&storage[i], space, ndim);
            for (int k = 0; k < operands[i].ndim; k++)
                reach[i][k] = rand() % 3 ? rand() % 5 : rand() % 40;
            if (rand() % 2)
                operands[i].reach = reach[i];
        }
        geometry_init(&g, ndim, space, n, operands, &rules);
        int64_t most = rules.long_bytes > 0 ? (int64_t)rules.long_bytes : GRAIN_MAX_TOTAL_BYTES;
        cr_assert(g.is_too_large || bytes_with_reach(&g, n, operands) <= most, "round %d", round);
        n_fitting += !g.is_too_large;
    }
    cr_assert(lt(u32, 5000, n_fitting));
}
