/* Nodes and their trees: the same bits as the recursive definition, however grains are grouped into
 * tiles, in whatever order tiles arrive, however small the window is; and what combining does. */
#include "kernels/reductions/reduce.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LEAVES 700
#define N_CELLS    3

static struct program program = {
    .n_passes = 1,
    .n_reductions = 4,
    .passes[0] = {.n_reductions = 4},
    .reductions = {{.op = OP_SUM, .result = DTYPE_FLOAT64, .src.dtype = DTYPE_FLOAT32},
                   {.op = OP_MIN, .result = DTYPE_FLOAT32, .src.dtype = DTYPE_FLOAT32},
                   {.op = OP_ARGMAX, .result = DTYPE_INT64, .src.dtype = DTYPE_INT16},
                   {.op = OP_SQUARED_DEVIATIONS, .result = DTYPE_FLOAT64}}};

static struct reduce_layout layout;
static char *leaves;

static char *leaf(uint64_t i)
{
    return leaves + i * layout.n_bytes;
}

static void *take(size_t n_bytes)
{
    void *memory = NULL;

    cr_assert(eq(int, posix_memalign(&memory, 64, n_bytes), 0));
    memset(memory, 0xa5, n_bytes);
    return memory;
}

static void make_leaf(char *node)
{
    reduce_identity(&layout, node);
    ((struct reduce_header *)node)->n_elements = 1 + (uint64_t)rand() % 1000;
    for (unsigned i = 0; i < N_CELLS; i++) {
        ((double *)reduce_plane(&layout, node, 0, 0))[i] = ldexp(rand() - 1e9, rand() % 80);
        ((float *)reduce_plane(&layout, node, 1, 0))[i] = (float)rand() - 1e8f;
        ((int16_t *)reduce_plane(&layout, node, 2, 0))[i] = (int16_t)(rand() % 5);
        ((int64_t *)reduce_plane(&layout, node, 2, 1))[i] = rand();
        ((double *)reduce_plane(&layout, node, 3, 0))[i] = rand() * 1e-3;
        ((double *)reduce_plane(&layout, node, 3, 1))[i] = rand() * 1e-5;
    }
}

static void make_leaves(void)
{
    srand(77);
    reduce_layout_init(&layout, &program, 0, N_CELLS);
    leaves = take(MAX_LEAVES * layout.n_bytes);
    memset(leaves, 0, MAX_LEAVES * layout.n_bytes);
    for (uint64_t i = 0; i < MAX_LEAVES; i++)
        make_leaf(leaf(i));
}

/* node(level, i) of a chain of n leaves from `first` on, as reduce.h defines it. */
static void make_node(uint64_t first, uint64_t n, unsigned level, uint64_t i, char *ret)
{
    if (level == 0) {
        memcpy(ret, leaf(first + i), layout.n_bytes);
        return;
    }
    make_node(first, n, level - 1, 2 * i, ret);
    if ((2 * i + 1) << (level - 1) < n) {
        char *right = take(layout.n_bytes);
        make_node(first, n, level - 1, 2 * i + 1, right);
        reduce_combine(&layout, ret, right);
        free(right);
    }
}

static void make_root(uint64_t first, uint64_t n, char *ret)
{
    unsigned level = 0;

    while (UINT64_C(1) << level < n)
        level++;
    make_node(first, n, level, 0, ret);
}

/* Compares what a node means: between planes there is what was there. */
static void check_same(const void *got, const void *want, const char *what, uint64_t n)
{
    cr_assert(eq(u64, ((const struct reduce_header *)got)->n_elements,
                 ((const struct reduce_header *)want)->n_elements));
    for (unsigned i = 0; i < layout.n_reductions; i++) {
        const struct reduction *r = &layout.reductions[i];
        for (unsigned plane = 0; plane < reduce_n_planes(r); plane++) {
            size_t n_bytes = layout.n_cells * dtype_size(reduce_plane_dtype(r, plane));
            cr_assert(eq(int,
                         memcmp(reduce_plane(&layout, got, i, plane),
                                reduce_plane(&layout, want, i, plane), n_bytes),
                         0),
                      "%s, %lu leaves, reduction %u plane %u", what, (unsigned long)n, i, plane);
        }
    }
}

struct run {
    uint64_t chain_leaves, n_chains, n_done;
    const char *what;
};

static void check_chain(void *argument, uint64_t chain, const struct reduce_layout *which,
                        const void *node)
{
    struct run *run = argument;
    char *want = take(which->n_bytes);

    cr_assert(eq(u64, chain, run->n_done));
    run->n_done++;
    make_root(chain * run->chain_leaves, run->chain_leaves, want);
    check_same(node, want, run->what, run->chain_leaves);
    free(want);
}

/* One tile: its leaves through the stack, in its place in the tree. */
static void add_tile(struct reduce_tree *t, const struct reduce_tree_shape *shape, struct run *run,
                     uint64_t tile)
{
    uint64_t chain = tile / shape->chain_tiles, index = tile % shape->chain_tiles;
    uint64_t first = index << shape->leaves_log2, n = run->chain_leaves - first;
    struct reduce_stack stack;

    if (n > UINT64_C(1) << shape->leaves_log2)
        n = UINT64_C(1) << shape->leaves_log2;
    reduce_stack_init(&stack, &layout, reduce_tree_place(t, tile));
    for (uint64_t i = 0; i < n; i++) {
        memcpy(reduce_stack_next(&stack), leaf(chain * run->chain_leaves + first + i),
               layout.n_bytes);
        reduce_stack_push(&stack);
    }
    cr_assert(eq(ptr, reduce_stack_finish(&stack), reduce_tree_place(t, tile)));
    reduce_tree_add(t, tile, &layout, check_chain, run);
}

/* Adds all tiles, each time one of those that the window allows, by the rule of `order`. */
static void run_tree(uint64_t chain_leaves, uint64_t n_chains, unsigned tile_log2, unsigned window,
                     int order)
{
    const struct reduce_tree_shape shape = {
        .node_bytes = layout.n_bytes,
        .chain_tiles = (chain_leaves + (UINT64_C(1) << tile_log2) - 1) >> tile_log2,
        .n_tiles = n_chains * ((chain_leaves + (UINT64_C(1) << tile_log2) - 1) >> tile_log2),
        .leaves_log2 = tile_log2,
        .window = window,
    };
    struct run run = {.chain_leaves = chain_leaves, .n_chains = n_chains, .what = "tree"};
    struct reduce_tree *t = reduce_tree_init(take(reduce_tree_size_bytes(&shape)), &shape);
    static bool is_added[2 * MAX_LEAVES];

    memset(is_added, 0, sizeof(is_added));
    while (!reduce_tree_is_complete(t)) {
        uint64_t oldest = reduce_tree_oldest_missing(t), end = oldest + window;
        end = end < shape.n_tiles ? end : shape.n_tiles;
        uint64_t tile = order == 0   ? oldest
                        : order == 1 ? end - 1
                                     : oldest + (uint64_t)rand() % (end - oldest);
        while (is_added[tile]) /* downwards, round to the newest */
            tile = tile == oldest ? end - 1 : tile - 1;
        is_added[tile] = true;
        add_tile(t, &shape, &run, tile);
    }
    cr_assert(eq(u64, run.n_done, n_chains));
    free(t);
}

Test(reduce, any_order_tiles_and_window_give_the_bits_of_the_recursive_tree)
{
    make_leaves();
    for (uint64_t n = 1; n <= MAX_LEAVES; n += n < 40 ? 1 : 61)
        for (unsigned tile_log2 = 0; tile_log2 < 10; tile_log2 += 1 + tile_log2 / 2)
            for (int order = 0; order < 3; order++)
                run_tree(n, 1, tile_log2, order == 0 ? 1 : 2 + 31 * (unsigned)(n % 3), order);
}

Test(reduce, chains_are_given_in_order_each_with_its_own_tree)
{
    make_leaves();
    for (uint64_t n = 1; n <= 13; n++)
        for (unsigned tile_log2 = 0; tile_log2 < 3; tile_log2++)
            for (int order = 0; order < 3; order++)
                run_tree(n, MAX_LEAVES / n, tile_log2, 3 + 20 * (unsigned)order, order);
}

Test(reduce, a_tree_stays_inside_its_memory)
{
    make_leaves();
    const struct reduce_tree_shape shape = {
        .node_bytes = layout.n_bytes, .chain_tiles = 63, .n_tiles = 63, .window = 2};
    size_t n_bytes = reduce_tree_size_bytes(&shape);
    char *memory = take(n_bytes + 64);
    struct reduce_tree *t = reduce_tree_init(memory, &shape);
    struct run run = {.chain_leaves = 63, .n_chains = 1, .what = "guarded"};

    for (uint64_t tile = 0; tile < 63; tile++)
        add_tile(t, &shape, &run, tile);
    cr_assert(eq(u64, run.n_done, 1));
    for (size_t i = 0; i < 64; i++)
        cr_assert(eq(int, (unsigned char)memory[n_bytes + i], 0xa5));
    free(memory);
}

static void begin_tree(struct reduce_tree **ret_tree, struct run *run)
{
    static const struct reduce_tree_shape shape = {
        .node_bytes = 4096, .chain_tiles = 1000, .n_tiles = 1000, .window = 16};

    make_leaves();
    *run = (struct run){.chain_leaves = 1000, .n_chains = 1};
    *ret_tree = reduce_tree_init(take(reduce_tree_size_bytes(&shape)), &shape);
}

Test(reduce, a_tile_beyond_the_window_is_a_fault_of_the_caller, .signal = SIGABRT)
{
    struct reduce_tree *t;
    struct run run;

    begin_tree(&t, &run);
    reduce_tree_add(t, 16, &layout, check_chain, &run);
}

Test(reduce, a_tile_twice_is_a_fault_of_the_caller, .signal = SIGABRT)
{
    struct reduce_tree *t;
    struct run run;

    begin_tree(&t, &run);
    reduce_tree_add(t, 3, &layout, check_chain, &run);
    reduce_tree_add(t, 3, &layout, check_chain, &run);
}

/* One reduction, one cell: what its plane holds after left with right. ----------------------- */

static struct program one = {.n_passes = 1, .n_reductions = 1, .passes[0] = {.n_reductions = 1}};

struct pair {
    struct reduce_layout layout;
    char *left, *right;
};

static struct pair new_pair(enum op op, enum dtype result, enum dtype src)
{
    struct pair p;

    one.reductions[0] = (struct reduction){
        .op = (uint16_t)op, .result = (uint8_t)result, .src.dtype = (uint8_t)src};
    reduce_layout_init(&p.layout, &one, 0, 1);
    p.left = take(p.layout.n_bytes);
    p.right = take(p.layout.n_bytes);
    reduce_identity(&p.layout, p.left);
    reduce_identity(&p.layout, p.right);
    ((struct reduce_header *)p.left)->n_elements = 1;
    ((struct reduce_header *)p.right)->n_elements = 1;
    return p;
}

static void set(const struct pair *p, char *node, unsigned plane, union scalar value)
{
    memcpy(reduce_plane(&p->layout, node, 0, plane), &value, sizeof(value));
}

static union scalar get(const struct pair *p, unsigned plane)
{
    union scalar value = {.u64 = 0};
    enum dtype dtype = reduce_plane_dtype(&p->layout.reductions[0], plane);

    memcpy(&value, reduce_plane(&p->layout, p->left, 0, plane), dtype_size(dtype));
    return value;
}

#define F64(x) ((union scalar){.f64 = (x)})
#define F32(x) ((union scalar){.f32 = (x)})
#define I64(x) ((union scalar){.i64 = (x)})

static union scalar combined(enum op op, enum dtype dtype, union scalar left, union scalar right)
{
    struct pair p = new_pair(op, dtype, dtype);

    set(&p, p.left, 0, left);
    set(&p, p.right, 0, right);
    reduce_combine(&p.layout, p.left, p.right);
    cr_assert(eq(u64, ((struct reduce_header *)p.left)->n_elements, 2));
    union scalar value = get(&p, 0);
    free(p.left);
    free(p.right);
    return value;
}

Test(reduce, nan_wins_from_either_side_and_of_zeros_the_left_one)
{
    cr_assert(isnan(combined(OP_MIN, DTYPE_FLOAT64, F64(1), F64(NAN)).f64));
    cr_assert(isnan(combined(OP_MIN, DTYPE_FLOAT64, F64(NAN), F64(-5)).f64));
    cr_assert(isnan(combined(OP_MAX, DTYPE_FLOAT32, F32(NAN), F32(3)).f32));
    cr_assert(isnan(combined(OP_MAX, DTYPE_FLOAT32, F32(3), F32(NAN)).f32));
    cr_assert(signbit(combined(OP_MAX, DTYPE_FLOAT64, F64(-0.0), F64(0.0)).f64));
    cr_assert(not(signbit(combined(OP_MIN, DTYPE_FLOAT32, F32(0.0f), F32(-0.0f)).f32)));
}

Test(reduce, integers_wrap_and_extremes_know_the_sign)
{
    cr_assert(eq(i64, combined(OP_SUM, DTYPE_INT64, I64(INT64_MAX), I64(1)).i64, INT64_MIN));
    cr_assert(eq(i64, combined(OP_PROD, DTYPE_INT64, I64(INT64_MAX), I64(2)).i64, -2));
    cr_assert(eq(i64, (int32_t)combined(OP_MIN, DTYPE_INT32, I64(3), I64(-2)).i64, -2));
    cr_assert(eq(u64, combined(OP_MAX, DTYPE_UINT64, I64(3), I64(-1)).u64, UINT64_MAX));
    cr_assert(eq(u64, combined(OP_MAX, DTYPE_BOOL, I64(0), I64(1)).u64, 1));
    cr_assert(eq(dbl, combined(OP_PROD, DTYPE_FLOAT64, F64(3), F64(0.5)).f64, 1.5));
}

/* The index that is left, of two values with their indices. */
static int64_t argument(enum op op, double left, int64_t left_index, double right,
                        int64_t right_index)
{
    struct pair p = new_pair(op, DTYPE_INT64, DTYPE_FLOAT32);

    *(float *)reduce_plane(&p.layout, p.left, 0, 0) = (float)left;
    *(float *)reduce_plane(&p.layout, p.right, 0, 0) = (float)right;
    set(&p, p.left, 1, I64(left_index));
    set(&p, p.right, 1, I64(right_index));
    reduce_combine(&p.layout, p.left, p.right);
    int64_t index = get(&p, 1).i64;
    free(p.left);
    free(p.right);
    return index;
}

Test(reduce, arguments_are_the_first_of_the_best_and_of_nan_the_first)
{
    cr_assert(eq(i64, argument(OP_ARGMIN, 2, 10, 1, 20), 20));
    cr_assert(eq(i64, argument(OP_ARGMAX, 2, 10, 1, 20), 10));
    cr_assert(eq(i64, argument(OP_ARGMAX, 1, 20, 1, 10), 10));
    cr_assert(eq(i64, argument(OP_ARGMIN, 0.0, 7, -0.0, 5), 5));
    cr_assert(eq(i64, argument(OP_ARGMIN, NAN, 7, -INFINITY, 5), 7));
    cr_assert(eq(i64, argument(OP_ARGMAX, 3, 7, NAN, 50), 50));
    cr_assert(eq(i64, argument(OP_ARGMAX, NAN, 70, NAN, 50), 50));
    cr_assert(eq(i64, argument(OP_ARGMIN, INFINITY, -1, INFINITY, 50), 50));
    cr_assert(eq(i64, argument(OP_ARGMAX, -INFINITY, 3, -INFINITY, -1), 3));
}

Test(reduce, squared_deviations_are_those_of_all_elements_together)
{
    struct pair p = new_pair(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT64, DTYPE_FLOAT64);

    /* 1 2 3 and 10: mean 4, 9 + 4 + 1 + 36 */
    ((struct reduce_header *)p.left)->n_elements = 3;
    set(&p, p.left, 0, F64(6));
    set(&p, p.left, 1, F64(2));
    set(&p, p.right, 0, F64(10));
    set(&p, p.right, 1, F64(0));
    reduce_combine(&p.layout, p.left, p.right);
    cr_assert(eq(u64, ((struct reduce_header *)p.left)->n_elements, 4));
    cr_assert(eq(dbl, get(&p, 0).f64, 16));
    cr_assert(eq(dbl, *(const double *)reduce_values(&p.layout, p.left, 0), 50));
    set(&p, p.right, 0, F64(INFINITY)); /* the deviation of an infinite element is no number */
    set(&p, p.right, 1, F64(NAN));
    reduce_combine(&p.layout, p.left, p.right);
    cr_assert(isnan(get(&p, 1).f64));
    free(p.left);
    free(p.right);
}

Test(reduce, a_node_without_elements_changes_nothing)
{
    struct pair p = new_pair(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT64, DTYPE_FLOAT64);

    set(&p, p.left, 0, F64(6));
    set(&p, p.left, 1, F64(2));
    ((struct reduce_header *)p.right)->n_elements = 0;
    reduce_combine(&p.layout, p.left, p.right);
    cr_assert(eq(dbl, get(&p, 1).f64, 2));
    reduce_combine(&p.layout, p.right, p.left);
    cr_assert(eq(dbl, *(double *)reduce_plane(&p.layout, p.right, 0, 0), 6));
    cr_assert(eq(u64, ((struct reduce_header *)p.right)->n_elements, 1));
    free(p.left);
    free(p.right);
}

Test(reduce, identities)
{
    static const struct {
        enum op op;
        enum dtype dtype;
        union scalar want;
    } cases[] = {
        {OP_SUM, DTYPE_FLOAT64, {.f64 = 0}},         {OP_SUM, DTYPE_INT64, {.i64 = 0}},
        {OP_PROD, DTYPE_FLOAT64, {.f64 = 1}},        {OP_PROD, DTYPE_UINT64, {.u64 = 1}},
        {OP_MAX, DTYPE_FLOAT64, {.f64 = -INFINITY}}, {OP_MAX, DTYPE_INT64, {.i64 = INT64_MIN}},
        {OP_MAX, DTYPE_UINT64, {.u64 = 0}},          {OP_MIN, DTYPE_UINT16, {.u64 = UINT16_MAX}},
        {OP_MIN, DTYPE_INT8, {.i64 = INT8_MAX}},     {OP_MIN, DTYPE_BOOL, {.u64 = 1}},
        {OP_MIN, DTYPE_UINT64, {.u64 = UINT64_MAX}}, {OP_COUNT_NONZERO, DTYPE_INT64, {.i64 = 0}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pair p = new_pair(cases[i].op, cases[i].dtype, cases[i].dtype);
        cr_assert(eq(u64, get(&p, 0).u64, cases[i].want.u64), "case %zu", i);
        free(p.left);
        free(p.right);
    }
    struct pair p = new_pair(OP_ARGMIN, DTYPE_INT64, DTYPE_FLOAT32);
    cr_assert(eq(flt, get(&p, 0).f32, INFINITY));
    cr_assert(eq(i64, get(&p, 1).i64, -1));
    free(p.left);
    free(p.right);
}
