/* Grains of spaces of which some axes are reduced: the shapes that matter, then what must hold of
 * any: every element once, chains of neighbours, nodes that are small enough, extents along reduced
 * axes that nothing but the arrays decides, rounds. */
#include "kernels/grains/geometry.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024

static struct geometry_operand c_array(enum dtype dtype, int ndim, const int64_t *shape)
{
    return (struct geometry_operand){.dtype = dtype, .ndim = ndim, .shape = shape};
}

static struct geometry_rules rules_of(uint32_t reduced_axes, uint64_t max_cells)
{
    return (struct geometry_rules){.reduced_axes = reduced_axes,
                                   .max_cells = max_cells,
                                   .chunk_cells = 3 * max_cells,
                                   .round_axis = -1};
}

static struct geometry cut(const struct geometry_operand *operand, uint32_t reduced_axes)
{
    const struct geometry_rules rules = rules_of(reduced_axes, 8192);
    struct geometry g;

    geometry_init(&g, operand->ndim, operand->shape, 1, operand, &rules);
    return g;
}

static void check_shape(const struct geometry *g, const int64_t *want)
{
    for (int i = 0; i < g->ndim; i++)
        cr_assert(eq(i64, g->grain_shape[i], want[i]), "axis %d", i);
}

Test(axes, where_the_kept_axis_is_fast_runs_are_of_32_kib)
{
    const int64_t shape[] = {4096, 131072}, want[] = {8, 8192};
    const struct geometry_operand a = c_array(DTYPE_FLOAT32, 2, shape);
    struct geometry g = cut(&a, 1);

    check_shape(&g, want);
    cr_assert(eq(u64, g.chain_grains, 512));
    cr_assert(eq(int, g.grid_order[0], 1));
    cr_assert(eq(int, g.grid_order[1], 0));
}

Test(axes, larger_nodes_make_runs_longer_and_change_no_reduced_extent)
{
    const int64_t shape[] = {4096, 131072}, want[] = {8, 8192}, want_long[] = {8, 16384};
    const int64_t want_longest[] = {8, 32768};
    const struct geometry_operand a = c_array(DTYPE_FLOAT32, 2, shape);
    struct geometry_rules rules = rules_of(1, 65536);
    struct geometry g;

    geometry_init(&g, 2, shape, 1, &a, &rules);
    check_shape(&g, want);
    rules.long_bytes = GRAIN_MAX_TOTAL_BYTES;
    geometry_init(&g, 2, shape, 1, &a, &rules);
    check_shape(&g, want_long);
    rules.long_bytes = 4 * GRAIN_MAX_TOTAL_BYTES;
    geometry_init(&g, 2, shape, 1, &a, &rules);
    check_shape(&g, want_longest);
}

Test(axes, where_the_reduced_axis_is_fast_rows_are_whole_or_split)
{
    const int64_t shape[] = {4096, 131072}, want[] = {1, 65536};
    const int64_t short_rows[] = {100000, 1000}, want_short[] = {64, 1000};
    struct geometry_operand a = c_array(DTYPE_FLOAT32, 2, shape);
    struct geometry g = cut(&a, 2);

    check_shape(&g, want);
    cr_assert(eq(u64, g.chain_grains, 2));
    a.shape = short_rows;
    g = cut(&a, 2);
    check_shape(&g, want_short);
    cr_assert(eq(u64, g.chain_grains, 1));
}

Test(axes, fortran_order_is_the_same_the_other_way_round)
{
    const int64_t shape[] = {131072, 4096}, strides[] = {4, 4 * 131072}, want[] = {8192, 8};
    struct geometry_operand a = c_array(DTYPE_FLOAT32, 2, shape);

    a.strides = strides;
    struct geometry g = cut(&a, 2);
    check_shape(&g, want);
}

Test(axes, few_kept_elements_that_are_fast_leave_the_runs_long)
{
    const int64_t shape[] = {4000, 6000, 3}, want[] = {12, 6000, 3};
    const struct geometry_operand a = c_array(DTYPE_UINT8, 3, shape);
    struct geometry g = cut(&a, 3);

    check_shape(&g, want);
    cr_assert(eq(u64, g.chain_grains, g.n_grains));
}

Test(axes, many_tiny_chains_lie_in_one_grain)
{
    const int64_t shape[] = {100000000, 3}, want[] = {8192, 3};
    const struct geometry_operand a = c_array(DTYPE_FLOAT32, 2, shape);
    struct geometry g = cut(&a, 2);

    check_shape(&g, want);
    cr_assert(eq(u64, g.chain_grains, 1));
}

Test(axes, a_chunk_stays_whole_along_kept_axes_and_its_parts_are_neighbours)
{
    const int64_t shape[] = {500, 2000, 2000}, chunk[] = {24, 100, 100}, want[] = {6, 100, 100};
    const int64_t large[] = {24, 64, 640}, mostly_reduced[] = {24, 25, 100};
    struct geometry_operand a = c_array(DTYPE_FLOAT32, 3, shape);

    a.chunk_shape = chunk;
    struct geometry g = cut(&a, 1);
    check_shape(&g, want);
    g = cut(&a, 6);
    check_shape(&g, mostly_reduced); /* divided along the slower of the reduced axes */
    cr_assert(eq(int, g.grid_order[2], 1));
    a.chunk_shape = large; /* more than a node may hold: divided along the kept axes */
    g = cut(&a, 1);
    int64_t n_cells = (int64_t)geometry_n_cells(&g, g.grain_shape);
    cr_assert(le(i64, n_cells, 8192));
    cr_assert(eq(i64, g.grain_shape[2] % 640, 0));
    cr_assert(eq(i64, 64 % g.grain_shape[1], 0));
    cr_assert(ge(i64, g.grain_shape[0], 8));
}

Test(axes, small_nodes_change_the_kept_extents_alone)
{
    const int64_t shape[] = {4096, 131072};
    const struct geometry_operand a = c_array(DTYPE_FLOAT32, 2, shape);

    for (uint64_t max_cells = 8192; max_cells > 0; max_cells /= 2) {
        const struct geometry_rules rules = rules_of(1, max_cells);
        struct geometry g;
        geometry_init(&g, 2, shape, 1, &a, &rules);
        cr_assert(eq(i64, g.grain_shape[0], 8));
        cr_assert(le(u64, geometry_n_cells(&g, g.grain_shape), max_cells));
        cr_assert(
            ge(u64, 2 * geometry_n_cells(&g, g.grain_shape), max_cells < 4096 ? max_cells : 1));
    }
}

Test(axes, values_and_results_take_room_but_have_no_say)
{
    const int64_t shape[] = {3000, 2000}, strides[] = {8, 24000};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT64, 2, shape),
                                          c_array(DTYPE_FLOAT64, 2, shape)};
    const struct geometry_rules rules = rules_of(0, 0);
    struct geometry g;

    operands[0].strides = strides;
    operands[1].is_internal = true;
    geometry_init(&g, 2, shape, 2, operands, &rules);
    cr_assert(eq(int, g.axis_order[1], 0));
    cr_assert(eq(i64, g.grain_shape[0], 3000));
}

Test(axes, grains_that_read_results_again_are_blocks)
{
    const int64_t shape[] = {4096, 131072}, row[] = {131072}, column[] = {4096, 1};
    struct geometry_operand operands[] = {c_array(DTYPE_FLOAT32, 2, shape),
                                          c_array(DTYPE_FLOAT64, 1, row)};
    const struct geometry_rules rules = rules_of(0, 0);
    struct geometry g;

    operands[1].is_internal = true;
    geometry_init(&g, 2, shape, 2, operands, &rules);
    cr_assert(eq(i64, g.grain_shape[1], 8192));
    cr_assert(eq(i64, g.grain_shape[0], 8));
    operands[1].shape = column;
    operands[1].ndim = 2;
    geometry_init(&g, 2, shape, 2, operands, &rules);
    cr_assert(eq(i64, g.grain_shape[1], 65536));
}

/* Generated spaces --------------------------------------------------------------------------- */

#define MAX_ELEMENTS 200000

struct random_space {
    int ndim;
    int64_t shape[4], n_elements;
    unsigned n;
    struct geometry_operand operands[4];
    int64_t shapes[4][4], strides[4][4], chunks[4][4];
    struct geometry_rules rules;
};

static void random_operand(struct random_space *s, unsigned i)
{
    struct geometry_operand *operand = &s->operands[i];

    *operand = (struct geometry_operand){.dtype = (enum dtype)(rand() % DTYPE_COUNT),
                                         .ndim = s->ndim,
                                         .shape = s->shapes[i],
                                         .strides = rand() % 2 ? s->strides[i] : NULL,
                                         .chunk_shape = rand() % 3 ? NULL : s->chunks[i],
                                         .is_output = i > 0 && rand() % 4 == 0,
                                         .is_internal = i > 1 && rand() % 3 == 0,
                                         .wants_runs = rand() % 3 == 0};
    for (int axis = 0; axis < s->ndim; axis++) {
        s->shapes[i][axis] = rand() % 4 ? s->shape[axis] : 1;
        s->chunks[i][axis] = 1 + rand() % 40;
        s->strides[i][axis] = (rand() % 2 ? 1 : -1) * (rand() % 100000);
    }
}

static void random_space(struct random_space *s)
{
    static const int64_t lengths[] = {1, 2, 3, 5, 16, 31, 73, 144, 1000, 4097};

    s->ndim = 1 + rand() % 4;
    s->n_elements = 1;
    for (int i = 0; i < s->ndim; i++) {
        s->shape[i] = lengths[(size_t)rand() % (sizeof(lengths) / sizeof(lengths[0]))];
        if (s->n_elements * s->shape[i] > MAX_ELEMENTS)
            s->shape[i] = 1;
        s->n_elements *= s->shape[i];
    }
    s->n = 1 + (unsigned)rand() % 4;
    for (unsigned i = 0; i < s->n; i++)
        random_operand(s, i);
    s->rules = rules_of((uint32_t)rand() % (UINT32_C(1) << s->ndim), UINT64_C(1) << rand() % 14);
    s->rules.long_bytes = (uint64_t)(rand() % 3) * GRAIN_MAX_TOTAL_BYTES;
    int axis = rand() % s->ndim;
    if (rand() % 2 && !(s->rules.reduced_axes >> axis & 1)) {
        s->rules.round_axis = axis;
        s->rules.round_length = 1 + rand() % s->shape[axis];
    }
    if (s->rules.reduced_axes == 0)
        s->rules.max_cells = s->rules.chunk_cells = 0;
}

/* Number of the box's first element in C order of the kept axes, or of all. */
static int64_t place_of(const struct geometry *g, const int64_t *at, uint32_t skipped_axes)
{
    int64_t place = 0;

    for (int i = 0; i < g->ndim; i++)
        if (!(skipped_axes >> i & 1))
            place = place * g->shape[i] + at[i];
    return place;
}

static void mark(const struct geometry *g, const int64_t *start, const int64_t *count,
                 unsigned char *seen)
{
    int64_t at[ARRAY_MAX_NDIM] = {0};
    int i;

    memcpy(at, start, (size_t)g->ndim * sizeof(*at));
    do {
        seen[place_of(g, at, 0)]++;
        for (i = g->ndim - 1; i >= 0; i--) {
            if (++at[i] < start[i] + count[i])
                break;
            at[i] = start[i];
        }
    } while (i >= 0);
}

static void check_grains(const struct geometry *g, const struct random_space *s)
{
    static unsigned char seen[MAX_ELEMENTS];
    int64_t start[4] = {0}, count[4] = {0}, chain_place = -1, round_start = 0;
    uint64_t end_of_round = 0, round = 0, first, n;

    memset(seen, 0, (size_t)s->n_elements);
    for (uint64_t grain = 0; grain < g->n_grains; grain++) {
        if (grain == end_of_round) {
            geometry_round(g, round++, &first, &n);
            cr_assert(eq(u64, first, grain));
            cr_assert(lt(u64, 0, n));
            end_of_round += n;
        }
        geometry_grain(g, grain, start, count);
        mark(g, start, count, seen);
        if (grain % g->chain_grains == 0)
            chain_place = place_of(g, start, g->reduced_axes);
        cr_assert(eq(i64, place_of(g, start, g->reduced_axes), chain_place));
        if (s->rules.max_cells > 0)
            cr_assert(le(u64, geometry_n_cells(g, count), s->rules.chunk_cells));
        if (g->round_axis < 0)
            continue;
        round_start = (int64_t)(round - 1) * g->round_length;
        cr_assert(ge(i64, start[g->round_axis], round_start));
        cr_assert(
            le(i64, start[g->round_axis] + count[g->round_axis], round_start + g->round_length));
    }
    cr_assert(eq(u64, round, g->n_rounds));
    cr_assert(eq(u64, end_of_round, g->n_grains));
    for (int64_t i = 0; i < s->n_elements; i++)
        cr_assert(eq(int, seen[i], 1), "element %ld", (long)i);
}

Test(axes, generated_spaces_have_every_element_once_in_chains_and_rounds, .timeout = 60)
{
    srand(20250607);
    for (int round = 0; round < 1500; round++) {
        struct random_space s;
        struct geometry g, other;
        random_space(&s);
        geometry_init(&g, s.ndim, s.shape, s.n, s.operands, &s.rules);
        check_grains(&g, &s);
        struct geometry_rules rules = rules_of(s.rules.reduced_axes, 8192);
        geometry_init(&other, s.ndim, s.shape, s.n, s.operands, &rules);
        for (int i = 0; i < s.ndim; i++)
            if (s.rules.reduced_axes >> i & 1)
                cr_assert(eq(i64, g.grain_shape[i], other.grain_shape[i]));
    }
}

static bool has_room_for_cells(const struct random_space *s)
{
    int64_t n_reduced = 1, n_bytes = 0;

    for (int i = 0; i < s->ndim; i++)
        n_reduced *= s->rules.reduced_axes >> i & 1 ? s->shape[i] : 1;
    for (unsigned i = 0; i < s->n; i++)
        n_bytes += n_reduced * 8;
    return s->rules.reduced_axes != 0 && n_reduced <= 8192 && n_bytes <= GRAIN_MAX_TOTAL_BYTES;
}

Test(axes, generated_spaces_whose_cells_are_not_divided, .timeout = 60)
{
    int n_more = 0; /* grains of several cells */

    srand(20261123);
    for (int round = 0; round < 1500; round++) {
        struct random_space s;
        struct geometry g;
        do
            random_space(&s);
        while (!has_room_for_cells(&s));
        for (unsigned i = 0; i < s.n; i++)
            s.operands[i].chunk_shape = NULL;
        s.rules.whole_elements = rand() % 2 ? 32768 : 65536;
        geometry_init(&g, s.ndim, s.shape, s.n, s.operands, &s.rules);
        check_grains(&g, &s);
        int64_t n_elements = 1;
        for (int i = 0; i < s.ndim; i++) {
            n_elements *= g.grain_shape[i];
            if (s.rules.reduced_axes >> i & 1)
                cr_assert(eq(i64, g.grain_shape[i], s.shape[i]));
        }
        cr_assert(le(i64, n_elements, s.rules.whole_elements));
        cr_assert(eq(u64, g.chain_grains, 1));
        n_more += geometry_n_cells(&g, g.grain_shape) > 1;
    }
    cr_assert(lt(int, 500, n_more));
}

Test(axes, an_empty_space_has_rounds_without_grains)
{
    const int64_t shape[] = {0, 1000};
    const struct geometry_operand a = c_array(DTYPE_FLOAT64, 2, shape);
    struct geometry_rules rules = rules_of(1, 8192);
    struct geometry g;
    uint64_t first, n;

    rules.round_axis = 1;
    rules.round_length = 256;
    geometry_init(&g, 2, shape, 1, &a, &rules);
    cr_assert(eq(u64, g.n_grains, 0));
    cr_assert(eq(u64, g.n_rounds, 4));
    geometry_round(&g, 3, &first, &n);
    cr_assert(eq(u64, n, 0));
}
