/* The tree: the same bits as its recursive definition, however grains are grouped into tiles and in
 * whatever order tiles arrive. */
#include "kernels/reduce.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LEAVES 2048

static const struct reduction float_sum = {.op = OP_SUM, .result = DTYPE_FLOAT64};
static const struct reduction two[] = {{.op = OP_SUM, .result = DTYPE_FLOAT64},
                                       {.op = OP_MIN, .result = DTYPE_FLOAT32}};

static struct partial leaves[MAX_LEAVES][2];

static void make_leaves(void)
{
    srand(77);
    for (size_t i = 0; i < MAX_LEAVES; i++) {
        leaves[i][0] = (struct partial){.value.f64 = ldexp(rand() - RAND_MAX / 3, rand() % 80)};
        leaves[i][1] = (struct partial){.value.f32 = (float)rand() - 1e8f};
    }
}

/* node(level, i) as reduce.h defines it. */
static struct partial node(const struct reduction *reduction, unsigned r, uint64_t n,
                           unsigned level, uint64_t i)
{
    if (level == 0)
        return leaves[i][r];
    struct partial left = node(reduction, r, n, level - 1, 2 * i);
    if ((2 * i + 1) << (level - 1) < n) {
        struct partial right = node(reduction, r, n, level - 1, 2 * i + 1);
        partial_combine(reduction, &left, &right);
    }
    return left;
}

static struct partial whole(const struct reduction *reduction, unsigned r, uint64_t n)
{
    unsigned level = 0;

    while (UINT64_C(1) << level < n)
        level++;
    return node(reduction, r, n, level, 0);
}

static struct reduce_tree *new_tree(unsigned n_reductions, uint64_t n_tiles)
{
    void *memory = NULL;

    cr_assert(eq(int, posix_memalign(&memory, 64, reduce_tree_size_bytes(n_reductions)), 0));
    memset(memory, 0xa5, reduce_tree_size_bytes(n_reductions));
    return reduce_tree_init(memory, n_reductions, n_tiles);
}

static void tile_partials(uint64_t tile, unsigned tile_log2, uint64_t n, struct partial *ret)
{
    static struct reduce_stack stack;
    uint64_t first = tile << tile_log2, end = (tile + 1) << tile_log2;

    reduce_stack_init(&stack, 2);
    for (uint64_t i = first; i < end && i < n; i++)
        reduce_stack_add(&stack, two, leaves[i]);
    reduce_stack_finish(&stack, two, ret);
}

/* Adds all tiles, each time one of those that the window allows, by the rule of `order`. */
static void add_in_order(struct reduce_tree *t, uint64_t n, unsigned tile_log2, int order)
{
    uint64_t n_tiles = (n + (UINT64_C(1) << tile_log2) - 1) >> tile_log2;
    static bool is_added[MAX_LEAVES];
    struct partial partials[2];

    memset(is_added, 0, sizeof(is_added));
    while (!reduce_tree_is_complete(t)) {
        uint64_t oldest = reduce_tree_oldest_missing(t);
        uint64_t end = n_tiles < oldest + REDUCE_WINDOW ? n_tiles : oldest + REDUCE_WINDOW;
        uint64_t tile = order == 0 ? oldest : end - 1;
        if (order == 2)
            tile = oldest + (uint64_t)rand() % (end - oldest);
        while (is_added[tile]) /* downwards, round to the newest */
            tile = tile == oldest ? end - 1 : tile - 1;
        is_added[tile] = true;
        tile_partials(tile, tile_log2, n, partials);
        reduce_tree_add(t, two, tile, partials);
    }
}

Test(reduce, any_order_and_any_tiles_give_the_bits_of_the_recursive_tree)
{
    make_leaves();
    for (uint64_t n = 1; n <= 2000; n += n < 70 ? 1 : 37) {
        struct partial want[2] = {whole(&two[0], 0, n), whole(&two[1], 1, n)}, got[2];
        for (unsigned tile_log2 = 0; tile_log2 < 12; tile_log2 += 1 + tile_log2 / 3) {
            for (int order = 0; order < 3; order++) {
                uint64_t n_tiles = (n + (UINT64_C(1) << tile_log2) - 1) >> tile_log2;
                struct reduce_tree *t = new_tree(2, n_tiles);
                add_in_order(t, n, tile_log2, order);
                reduce_tree_result(t, two, got);
                cr_assert(eq(u64, got[0].value.u64, want[0].value.u64), "n %lu tile %u order %d",
                          (unsigned long)n, tile_log2, order);
                cr_assert(eq(flt, got[1].value.f32, want[1].value.f32));
                free(t);
            }
        }
    }
}

Test(reduce, every_number_of_tiles_up_to_2000_gives_the_recursive_tree)
{
    make_leaves();
    for (uint64_t n = 1; n <= 2000; n++) {
        struct reduce_tree *t = new_tree(1, n);
        struct partial got, want = whole(&float_sum, 0, n);
        for (uint64_t i = 0; i < n; i++) {
            cr_assert(not(reduce_tree_is_complete(t)));
            uint64_t tile = (i | 1) < n ? i ^ 1 : i; /* neighbours the other way round */
            reduce_tree_add(t, &float_sum, tile, &leaves[tile][0]);
        }
        reduce_tree_result(t, &float_sum, &got);
        cr_assert(eq(u64, got.value.u64, want.value.u64), "%lu tiles", (unsigned long)n);
        free(t);
    }
}

Test(reduce, no_tiles_give_identities)
{
    static const struct reduction all[] = {
        {.op = OP_SUM, .result = DTYPE_FLOAT64}, {.op = OP_SUM, .result = DTYPE_INT64},
        {.op = OP_MIN, .result = DTYPE_FLOAT32}, {.op = OP_MAX, .result = DTYPE_FLOAT64},
        {.op = OP_MIN, .result = DTYPE_INT8},    {.op = OP_MAX, .result = DTYPE_INT64},
        {.op = OP_MIN, .result = DTYPE_UINT16},  {.op = OP_MAX, .result = DTYPE_UINT64},
        {.op = OP_MIN, .result = DTYPE_BOOL},    {.op = OP_COUNT_NONZERO, .result = DTYPE_INT64},
        {.op = OP_MIN, .result = DTYPE_UINT64},  {.op = OP_MAX, .result = DTYPE_INT16}};
    struct partial got[12];
    struct reduce_tree *t = new_tree(12, 0);

    cr_assert(reduce_tree_is_complete(t));
    reduce_tree_result(t, all, got);
    cr_assert(eq(u64, got[0].value.u64, 0));
    cr_assert(eq(i64, got[1].value.i64, 0));
    cr_assert(eq(flt, got[2].value.f32, INFINITY));
    cr_assert(eq(dbl, got[3].value.f64, -INFINITY));
    cr_assert(eq(i64, got[4].value.i64, INT8_MAX));
    cr_assert(eq(i64, got[5].value.i64, INT64_MIN));
    cr_assert(eq(u64, got[6].value.u64, UINT16_MAX));
    cr_assert(eq(u64, got[7].value.u64, 0));
    cr_assert(eq(u64, got[8].value.u64, 1));
    cr_assert(eq(i64, got[9].value.i64, 0));
    cr_assert(eq(u64, got[10].value.u64, UINT64_MAX));
    cr_assert(eq(i64, got[11].value.i64, INT16_MIN));
    free(t);
}

Test(reduce, nan_wins_from_either_side)
{
    const struct reduction min = {.op = OP_MIN, .result = DTYPE_FLOAT64};
    const struct reduction max = {.op = OP_MAX, .result = DTYPE_FLOAT32};
    struct partial a = {.value.f64 = 1}, b = {.value.f64 = NAN};

    partial_combine(&min, &a, &b);
    cr_assert(isnan(a.value.f64));
    b.value.f64 = -5;
    partial_combine(&min, &a, &b);
    cr_assert(isnan(a.value.f64));
    a = (struct partial){.value.f32 = NAN};
    b = (struct partial){.value.f32 = 3};
    partial_combine(&max, &a, &b);
    cr_assert(isnan(a.value.f32));
    partial_combine(&max, &b, &a);
    cr_assert(isnan(b.value.f32));
}

Test(reduce, integer_sums_wrap_and_extremes_know_the_sign)
{
    const struct reduction sum = {.op = OP_SUM, .result = DTYPE_INT64};
    const struct reduction signed_min = {.op = OP_MIN, .result = DTYPE_INT32};
    const struct reduction unsigned_max = {.op = OP_MAX, .result = DTYPE_UINT64};
    struct partial a = {.value.i64 = INT64_MAX}, b = {.value.i64 = 1};

    partial_combine(&sum, &a, &b);
    cr_assert(eq(i64, a.value.i64, INT64_MIN));
    a.value.i64 = 3;
    b.value.i64 = -2;
    partial_combine(&signed_min, &a, &b);
    cr_assert(eq(i64, a.value.i64, -2));
    a.value.u64 = 3;
    b.value.u64 = UINT64_MAX;
    partial_combine(&unsigned_max, &a, &b);
    cr_assert(eq(u64, a.value.u64, UINT64_MAX));
}

Test(reduce, a_tree_of_the_most_reductions_stays_inside_its_memory)
{
    struct reduction reductions[PROGRAM_MAX_REDUCTIONS];
    struct partial partials[PROGRAM_MAX_REDUCTIONS];
    struct reduce_tree *t = new_tree(PROGRAM_MAX_REDUCTIONS, UINT64_MAX);

    for (unsigned i = 0; i < PROGRAM_MAX_REDUCTIONS; i++) {
        reductions[i] = (struct reduction){.op = OP_COUNT_NONZERO, .result = DTYPE_INT64};
        partials[i] = (struct partial){.value.i64 = 1};
    }
    for (uint64_t i = 1; i < REDUCE_WINDOW; i++)
        reduce_tree_add(t, reductions, i, partials);
    cr_assert(eq(u64, reduce_tree_oldest_missing(t), 0));
    reduce_tree_add(t, reductions, 0, partials);
    cr_assert(eq(u64, reduce_tree_oldest_missing(t), REDUCE_WINDOW));
    cr_assert(not(reduce_tree_is_complete(t)));
    free(t);
}

Test(reduce, a_tile_beyond_the_window_is_a_fault_of_the_caller, .signal = SIGABRT)
{
    struct partial partial = {.value.f64 = 1};
    struct reduce_tree *t = new_tree(1, 1000);

    reduce_tree_add(t, &float_sum, REDUCE_WINDOW, &partial);
    free(t);
}

Test(reduce, a_tile_twice_is_a_fault_of_the_caller, .signal = SIGABRT)
{
    struct partial partial = {.value.f64 = 1};
    struct reduce_tree *t = new_tree(1, 1000);

    reduce_tree_add(t, &float_sum, 3, &partial);
    reduce_tree_add(t, &float_sum, 3, &partial);
    free(t);
}
