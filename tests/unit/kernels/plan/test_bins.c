/* Counts in nodes and results: where bins lie, what nothing counts, nodes of any size in few of
 * them, running sums, what later passes read; then what the planner makes of many bins. */
#include "kernels/cpu/engine.h"
#include "kernels/plan/plan.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define N_BINS  7
#define N_CELLS 3

/* A sum, counts, weights, a largest value. */
static const struct program mixed = {
    .n_passes = 1,
    .n_reductions = 4,
    .passes[0] = {.n_reductions = 4, .scanned_axis = -1},
    .reductions = {
        {.op = OP_SUM, .result = DTYPE_FLOAT64, .src.dtype = DTYPE_FLOAT32},
        {.op = OP_BINCOUNT, .result = DTYPE_INT64, .src.dtype = DTYPE_INT64, .n_bins = N_BINS},
        {.op = OP_BINCOUNT,
         .result = DTYPE_FLOAT64,
         .src.dtype = DTYPE_INT64,
         .weights = {.kind = OPERAND_INPUT, .dtype = DTYPE_FLOAT64},
         .n_bins = 2},
        {.op = OP_MAX, .result = DTYPE_INT8, .src.dtype = DTYPE_INT8}}};

static void *take(size_t n_bytes)
{
    void *memory = NULL;

    cr_assert(eq(int, posix_memalign(&memory, 64, n_bytes), 0));
    memset(memory, 0xa5, n_bytes);
    return memory;
}

Test(bins, of_a_cell_are_neighbours_and_planes_do_not_overlap)
{
    struct reduce_layout layout;

    reduce_layout_init(&layout, &mixed, 0, N_CELLS);
    char *node = take(layout.n_bytes);
    reduce_identity(&layout, node);
    cr_assert(eq(u64, reduce_n_values(&layout, 0), N_CELLS));
    cr_assert(eq(u64, reduce_n_values(&layout, 1), N_CELLS * N_BINS));
    cr_assert(eq(u64, reduce_n_values(&layout, 2), N_CELLS * 2));
    const char *end = node + 64;
    for (unsigned i = 0; i < 4; i++) {
        const char *plane = reduce_plane(&layout, node, i, 0);
        cr_assert(eq(int, (plane - node) % 64, 0));
        cr_assert(plane >= end, "plane %u", i);
        end = plane + reduce_n_values(&layout, i) * 8;
    }
    cr_assert(end <= node + layout.n_bytes);
    for (unsigned i = 0; i < N_CELLS * N_BINS; i++)
        cr_assert(eq(i64, ((const int64_t *)reduce_values(&layout, node, 1))[i], 0));
    for (unsigned i = 0; i < N_CELLS * 2; i++)
        cr_assert(eq(dbl, ((const double *)reduce_values(&layout, node, 2))[i], 0));
    cr_assert(eq(int, ((const int8_t *)reduce_values(&layout, node, 3))[N_CELLS - 1], INT8_MIN));
    cr_assert(not(layout.is_flat)); /* sums of floats have an order */
    free(node);
}

Test(bins, all_of_them_are_added_when_nodes_are_combined)
{
    struct reduce_layout layout;

    reduce_layout_init(&layout, &mixed, 0, N_CELLS);
    char *left = take(layout.n_bytes), *right = take(layout.n_bytes);
    reduce_identity(&layout, left);
    reduce_identity(&layout, right);
    ((struct reduce_header *)left)->n_elements = ((struct reduce_header *)right)->n_elements = 1;
    for (int i = 0; i < N_CELLS * N_BINS; i++) {
        ((int64_t *)reduce_plane(&layout, left, 1, 0))[i] = i;
        ((int64_t *)reduce_plane(&layout, right, 1, 0))[i] = 1000 * i;
    }
    for (int i = 0; i < N_CELLS * 2; i++)
        ((double *)reduce_plane(&layout, right, 2, 0))[i] = 0.5 + i;
    reduce_combine(&layout, left, right);
    for (int i = 0; i < N_CELLS * N_BINS; i++)
        cr_assert(eq(i64, ((const int64_t *)reduce_values(&layout, left, 1))[i], 1001 * i));
    for (int i = 0; i < N_CELLS * 2; i++)
        cr_assert(eq(dbl, ((const double *)reduce_values(&layout, left, 2))[i], 0.5 + i));
    free(left);
    free(right);
}

/* Exact counts: one node for all that were combined so far ------------------------------------ */

#define MANY_BINS 1000

static const struct program counts = {
    .n_passes = 1,
    .n_reductions = 2,
    .passes[0] = {.n_reductions = 2, .scanned_axis = -1},
    .reductions = {
        {.op = OP_BINCOUNT, .result = DTYPE_INT64, .src.dtype = DTYPE_INT64, .n_bins = MANY_BINS},
        {.op = OP_COUNT_NONZERO, .result = DTYPE_INT64, .src.dtype = DTYPE_BOOL}}};

static void make_leaf(const struct reduce_layout *layout, void *node, uint64_t index)
{
    reduce_identity(layout, node);
    ((struct reduce_header *)node)->n_elements = 3;
    ((int64_t *)reduce_plane(layout, node, 0, 0))[index % MANY_BINS] += 2;
    ((int64_t *)reduce_plane(layout, node, 0, 0))[0] += 1;
    *(int64_t *)reduce_plane(layout, node, 1, 0) = (int64_t)index;
}

struct chain {
    unsigned n_done;
    uint64_t n_leaves;
};

static void check_chain(void *argument, uint64_t chain, const struct reduce_layout *layout,
                        const void *node)
{
    struct chain *c = argument;
    const int64_t *bins = reduce_values(layout, node, 0), n = (int64_t)c->n_leaves;
    int64_t sum = 0;

    (void)chain;
    for (unsigned i = 0; i < MANY_BINS; i++)
        sum += bins[i];
    cr_assert(eq(i64, sum, 3 * n));
    cr_assert(eq(i64, bins[1], 2));
    cr_assert(eq(i64, *(const int64_t *)reduce_values(layout, node, 1), n * (n - 1) / 2));
    cr_assert(eq(u64, ((const struct reduce_header *)node)->n_elements, c->n_leaves * 3));
    c->n_done++;
}

Test(bins, exact_counts_need_one_node_for_a_tile_and_one_for_a_chain)
{
    const uint64_t n_tiles = 37, tile_grains = 16;
    struct chain chain = {.n_leaves = n_tiles * tile_grains};
    struct reduce_layout layout;

    reduce_layout_init(&layout, &counts, 0, 1);
    cr_assert(layout.is_flat);
    const struct reduce_tree_shape shape = {.node_bytes = layout.n_bytes,
                                            .chain_tiles = n_tiles,
                                            .n_tiles = n_tiles,
                                            .leaves_log2 = 4,
                                            .is_flat = true,
                                            .window = 2};
    cr_assert(eq(uint, reduce_stack_nodes(4, true), 2));
    cr_assert(lt(u64, reduce_tree_size_bytes(&shape), 6 * layout.n_bytes));
    struct reduce_tree *t = reduce_tree_init(take(reduce_tree_size_bytes(&shape)), &shape);
    for (uint64_t tile = 0; tile < n_tiles; tile++) {
        struct reduce_stack stack;
        reduce_stack_init(&stack, &layout, reduce_tree_place(t, tile));
        for (uint64_t i = 0; i < tile_grains; i++) {
            make_leaf(&layout, reduce_stack_next(&stack), tile * tile_grains + i);
            reduce_stack_push(&stack);
        }
        cr_assert(reduce_stack_finish(&stack) == reduce_tree_place(t, tile));
        reduce_tree_add(t, tile, &layout, check_chain, &chain);
    }
    cr_assert(eq(uint, chain.n_done, 1));
    free(t);
}

/* Results ------------------------------------------------------------------------------------- */

/* Counts over axis 0 of (5, 4, 6) int64: results of (4, 6, N_BINS); a second pass reads them. */
static struct program along = {
    .n_passes = 2,
    .n_reductions = 2,
    .passes =
        {{.ndim = 3, .shape = {5, 4, 6}, .n_reductions = 2, .reduced_axes = 1, .scanned_axis = -1},
         {.ndim = 3, .shape = {4, 6, N_BINS}, .reduced_used = 3, .scanned_axis = -1}},
    .reductions = {
        {.op = OP_BINCOUNT, .result = DTYPE_INT64, .src.dtype = DTYPE_INT64, .n_bins = N_BINS},
        {.op = OP_BINCOUNT,
         .result = DTYPE_INT64,
         .src.dtype = DTYPE_INT64,
         .n_bins = N_BINS,
         .is_cumulative = true}}};

static int64_t count_of(int64_t i, int64_t j, int64_t bin)
{
    return 100 * i + 10 * j + bin;
}

/* A plan whose first pass is walked in an order of its own, with grains of 2 x 3 cells. */
static void make_plan(struct plan *plan, bool is_turned)
{
    static const int turned[] = {0, 2, 1}, straight[] = {0, 1, 2};
    struct geometry *g = &plan->passes[0].geometry;

    *plan = (struct plan){.n_passes = 2, .n_rounds = 1, .n_tiles = 4};
    plan->passes[0].n_tiles = 4;
    *g = (struct geometry){.ndim = 3,
                           .shape = {5, 4, 6},
                           .grain_shape = {5, 2, 3},
                           .grid = {1, 2, 2},
                           .n_grains = 4,
                           .reduced_axes = 1,
                           .chain_grains = 1,
                           .round_axis = -1,
                           .n_rounds = 1,
                           .round_grains = 4};
    memcpy(g->axis_order, is_turned ? turned : straight, sizeof(turned));
    memcpy(g->grid_order, g->axis_order, sizeof(turned));
    plan->passes[1].geometry.round_axis = -1;
    plan->results[1].offset_bytes = 4 * 6 * N_BINS * 8;
    plan->results[0].round_axis = plan->results[1].round_axis = -1;
}

static void keep_grain(const struct plan *plan, uint64_t grain, char *carry)
{
    const struct geometry *g = &plan->passes[0].geometry;
    int64_t start[3], count[3];
    struct reduce_layout layout;

    geometry_grain(g, grain, start, count);
    reduce_layout_init(&layout, &along, 0, 6);
    void *node = take(layout.n_bytes);
    for (unsigned i = 0; i < 2; i++) {
        int64_t *bins = reduce_plane(&layout, node, i, 0);
        bool is_turned = g->axis_order[1] == 2;
        for (int64_t cell = 0; cell < 6; cell++) {
            int64_t row = start[1] + (is_turned ? cell % 2 : cell / 3);
            int64_t column = start[2] + (is_turned ? cell / 2 : cell % 3);
            for (int64_t bin = 0; bin < N_BINS; bin++)
                bins[cell * N_BINS + bin] = count_of(row, column, bin);
        }
    }
    plan_keep_results(plan, &along, 0, grain, INT64_MAX, &layout, node, carry);
    free(node);
}

static void check_view(const struct plan *plan, char *carry, int64_t i, int64_t j, int64_t bin)
{
    const int64_t start[] = {i, j, bin};
    struct engine_view view;
    int64_t sum = 0;

    plan_result_view(plan, &along, 0, 1, start, carry, &view);
    cr_assert(eq(i64, *(const int64_t *)view.base, count_of(i, j, bin)));
    cr_assert(eq(i64, view.strides[2], 8));
    cr_assert(eq(i64, view.strides[1], 8 * N_BINS));
    cr_assert(eq(i64, view.strides[0], 8 * N_BINS * 6));
    for (int64_t k = 0; k <= bin; k++)
        sum += count_of(i, j, k);
    plan_result_view(plan, &along, 1, 1, start, carry, &view);
    cr_assert(eq(i64, *(const int64_t *)view.base, sum));
}

Test(bins, results_have_them_behind_the_kept_axes_and_running_sums_where_wanted)
{
    char *carry = take(2 * 4 * 6 * N_BINS * 8);

    for (int is_turned = 0; is_turned < 2; is_turned++) {
        struct plan plan;
        make_plan(&plan, is_turned);
        memset(carry, 0, 2 * 4 * 6 * N_BINS * 8);
        for (uint64_t grain = 0; grain < 4; grain++)
            keep_grain(&plan, grain, carry);
        for (int64_t i = 0; i < 4; i++)
            for (int64_t j = 0; j < 6; j++)
                for (int64_t bin = 0; bin < N_BINS; bin++)
                    check_view(&plan, carry, i, j, bin);
    }
    cr_assert(plan_table(&(struct plan){.results[1].offset_bytes = 128}, 1, carry) == carry + 128);
    free(carry);
}

Test(bins, of_nothing_are_zeros_all_of_them)
{
    size_t n_bytes = 2 * 4 * 6 * N_BINS * 8;
    char *carry = take(n_bytes + 8);
    struct plan plan;

    make_plan(&plan, false);
    plan.passes[0].n_tiles = 0;
    plan_keep_identities(&plan, &along, 0, 0, carry);
    for (size_t i = 0; i < n_bytes; i++)
        cr_assert(eq(int, carry[i], 0), "byte %zu", i);
    cr_assert(eq(int, (unsigned char)carry[n_bytes], 0xa5));
    free(carry);
}
