/* Tiles: how a slot is divided, grains that share operands, what comes back. The kernel runs on the
 * host, in the slot itself. */
#include "kernels/cuda/tile.h"

#include "tests/unit/kernels/cpu/builder.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES (8u * 1024 * 1024)
#define N          20000 /* elements: three blocks */

static struct built built;
static char *slot;
static struct cuda_tile tile;
static struct engine_warnings warnings;
static const int axes[] = {0, 1, 2};

static void begin(void)
{
    slot = aligned_alloc(ENGINE_SLOT_ALIGN, SLOT_BYTES);
    cr_assert(ne(ptr, slot, NULL));
    memset(slot, 0xee, SLOT_BYTES);
    built_init(&built);
    warnings = (struct engine_warnings){0};
}

static void end(void)
{
    free(slot);
}

TestSuite(tile, .init = begin, .fini = end);

static void begin_tile(unsigned max_grains, int64_t n_elements, uint64_t input_bytes,
                       uint64_t output_bytes)
{
    struct pass *pass = &built.program.passes[0];
    struct engine_room room = {input_bytes, output_bytes, (uint64_t)n_elements, 1};
    pass->ndim = 1;
    pass->shape[0] = n_elements;
    int r = cuda_tile_begin(&tile, &built.program, 0, NULL, max_grains, &room, slot, SLOT_BYTES);
    cr_assert(eq(i32, r, 0));
}

static void add_grain(int64_t n, int64_t start, void *input, int64_t stride, void *output)
{
    struct engine_view in = {.base = input, .strides = {stride}}, out = {.base = output};
    struct engine_box box = {.ndim = 1, .count = &n, .axis_order = axes, .start = &start};
    out.strides[0] = (int64_t)dtype_size(built.outputs[0].dtype);
    cuda_tile_add(&tile, &box, &in, &out, NULL);
}

static void run(void)
{
    struct interpreter_launch launch = cuda_tile_describe(&tile);
    cr_assert(eq(i32, cuda_interpreter_run_on_host(&launch, slot), 0));
}

static double sum_of(const double *items, int64_t n)
{
    double *copy = cuda_tile_place_input(&tile, (uint64_t)n * sizeof(*items));
    struct reduce_layout layout;
    uint64_t node[32] __attribute__((aligned(64)));
    reduce_layout_init(&layout, &built.program, 0, 1);
    cr_assert(le(u64, layout.n_bytes, sizeof(node)));
    memcpy(copy, items, (size_t)n * sizeof(*items));
    add_grain(n, 0, copy, sizeof(double), NULL);
    run();
    cr_assert(eq(i32, cuda_tile_result(&tile, tile.n_grains - 1, &layout, node, &warnings), 0));
    return *(const double *)reduce_plane(&layout, node, 0, 0);
}

static void begin_sum(unsigned max_grains)
{
    built_reduction(&built, OP_SUM, DTYPE_FLOAT64, built_input(&built, DTYPE_FLOAT64));
    begin_tile(max_grains, N, N * sizeof(double) + ENGINE_SLOT_ALIGN, 0);
}

Test(tile, sums_lose_nothing_that_cancels)
{
    static double items[N];
    begin_sum(1);
    for (int i = 0; i < N; i++)
        items[i] = i % 2 ? -1e100 : 1e100;
    items[N / 3] += 0;
    items[0] = 1;
    items[1] = 1e-30;
    cr_assert(eq(dbl, sum_of(items, N), 1 + 1e-30));
}

Test(tile, sums_keep_infinities_nan_and_the_sign_of_zero)
{
    static double items[N];
    begin_sum(4);
    for (int i = 0; i < N; i++)
        items[i] = -0.0;
    double sum = sum_of(items, N);
    cr_assert(sum == 0 && signbit(sum));
    items[9000] = INFINITY;
    items[17] = 1e308;
    items[18] = -1e308;
    cr_assert(eq(dbl, sum_of(items, N), INFINITY));
    items[3] = -INFINITY;
    cr_assert(isnan(sum_of(items, N)));
    items[3] = NAN;
    items[9000] = 0;
    cr_assert(isnan(sum_of(items, N)));
}

Test(tile, a_grain_gives_the_same_bits_wherever_it_lies)
{
    static double items[N];
    for (int i = 0; i < N; i++)
        items[i] = sin(i) * pow(10, i % 300 - 150);
    begin_sum(3);
    double first = sum_of(items, N);
    (void)sum_of(items, N / 7);
    double last = sum_of(items, N);
    cr_assert(eq(i32, memcmp(&first, &last, sizeof(first)), 0));
}

/* Of a float64 and so many negations of it; with a sum of them, or the last alone. */
static unsigned blocks_of_chain(unsigned n_negations, bool is_summed)
{
    struct operand last = built_input(&built, DTYPE_FLOAT64), none = {0};
    for (unsigned i = 0; i < n_negations; i++)
        last = built_insn(&built, OP_NEGATIVE, DTYPE_FLOAT64, DTYPE_FLOAT64, 0, last, none, none);
    built_store(&built, last);
    if (is_summed)
        built_reduction(&built, OP_SUM, DTYPE_FLOAT64, last);
    begin_tile(1, N, N * sizeof(double) + ENGINE_SLOT_ALIGN,
               N * sizeof(double) + ENGINE_SLOT_ALIGN);
    double *items = cuda_tile_place_input(&tile, N * sizeof(double));
    double *results = cuda_tile_place_output(&tile, N * sizeof(double));
    for (int i = 0; i < N; i++)
        items[i] = i * 0.5;
    add_grain(N, 0, items, sizeof(double), results);
    run();
    for (int i = 0; i < N; i++)
        cr_assert(eq(dbl, results[i], n_negations % 2 ? -items[i] : items[i]), "element %d", i);
    return cuda_tile_describe(&tile).n_blocks;
}

Test(tile, long_arithmetic_has_many_blocks)
{
    cr_assert(eq(uint, blocks_of_chain(40, false), (N - 1) / CODE_HEAVY_BLOCK_ELEMENTS + 1));
}

Test(tile, short_arithmetic_has_few_blocks)
{
    cr_assert(eq(uint, blocks_of_chain(3, false), (N - 1) / CODE_BLOCK_ELEMENTS + 1));
}

/* A block's part of a sum decides its bits. */
Test(tile, what_is_reduced_keeps_its_blocks)
{
    cr_assert(eq(uint, blocks_of_chain(40, true), (N - 1) / CODE_BLOCK_ELEMENTS + 1));
}

Test(tile, grains_share_an_operand)
{
    struct operand in = built_input(&built, DTYPE_INT32);
    struct operand index = {OPERAND_INDEX, DTYPE_INT64, 0}, none = {0};
    struct operand wide = built_insn(&built, OP_CAST, DTYPE_INT32, DTYPE_INT64, 0, in, none, none);
    built_store(&built, built_insn(&built, OP_ADD, DTYPE_INT64, DTYPE_INT64, 0, wide, index, none));
    begin_tile(3, 30, ENGINE_SLOT_ALIGN, ENGINE_SLOT_ALIGN);
    int32_t *shared = cuda_tile_place_input(&tile, sizeof(*shared));
    int64_t *outputs[3];
    *shared = -5;
    for (int i = 0; i < 3; i++) {
        outputs[i] = cuda_tile_place_output(&tile, 10 * sizeof(int64_t));
        add_grain(10, 10 * i, shared, 0, outputs[i]);
    }
    run();
    for (int i = 0; i < 30; i++)
        cr_assert(eq(i64, outputs[i / 10][i % 10], i - 5));
    uint64_t offset, n_bytes;
    cuda_tile_from_device(&tile, &offset, &n_bytes);
    cr_assert(ge(u64, offset, cuda_tile_to_device_bytes(&tile)));
    cr_assert(le(ptr, outputs[2] + 10, slot + offset + n_bytes));
}

Test(tile, counts_what_arithmetic_met_in_every_block)
{
    struct operand in = built_input(&built, DTYPE_INT16), none = {0};
    struct operand one = built_const(&built, DTYPE_INT16, (union scalar){.i64 = 1});
    built_store(&built,
                built_insn(&built, OP_FLOOR_DIVIDE, DTYPE_INT16, DTYPE_INT16, 0, one, in, none));
    begin_tile(1, N, N * 2 + ENGINE_SLOT_ALIGN, N * 2 + ENGINE_SLOT_ALIGN);
    int16_t *input = cuda_tile_place_input(&tile, N * 2);
    for (int i = 0; i < N; i++)
        input[i] = i % 1000 ? -1 : 0;
    add_grain(N, 0, input, 2, cuda_tile_place_output(&tile, N * 2));
    run();
    cr_assert(eq(i32, cuda_tile_result(&tile, 0, NULL, NULL, &warnings), 0));
    cr_assert(eq(u64, warnings.n_divide_by_zero, N / 1000));
    cr_assert(eq(u64, warnings.n_invalid_casts, 0));
}

Test(tile, reports_a_negative_power)
{
    struct operand in = built_input(&built, DTYPE_INT64), none = {0};
    built_store(&built, built_insn(&built, OP_POWER, DTYPE_INT64, DTYPE_INT64, 0, in, in, none));
    begin_tile(1, 3, ENGINE_SLOT_ALIGN, ENGINE_SLOT_ALIGN);
    int64_t *input = cuda_tile_place_input(&tile, 24), *output = cuda_tile_place_output(&tile, 24);
    for (int i = 0; i < 3; i++)
        input[i] = i + 3;
    add_grain(3, 0, input, 8, output);
    run();
    cr_assert(eq(i32, cuda_tile_result(&tile, 0, NULL, NULL, &warnings), 0));
    cr_assert(eq(i64, output[2], 5 * 5 * 5 * 5 * 5));
    input[1] = -1;
    run();
    cr_assert(eq(i32, cuda_tile_result(&tile, 0, NULL, NULL, &warnings), GAD_NEGATIVE_POWER));
}

Test(tile, says_how_much_it_needs)
{
    built_store(&built, built_input(&built, DTYPE_FLOAT32));
    built.program.passes[0].ndim = 1;
    built.program.passes[0].shape[0] = N;
    struct engine_room room = {4096, 8192, 2048, 1};
    uint64_t need = cuda_tile_need_bytes(&built.program, 0, 5, &room);
    cr_assert(ge(u64, need, 5 * (4096 + 8192)));
    struct cuda_tile t;
    cr_assert(eq(i32, cuda_tile_begin(&t, &built.program, 0, NULL, 5, &room, slot, need), 0));
    cr_assert(
        eq(i32, cuda_tile_begin(&t, &built.program, 0, NULL, 5, &room, slot, need - 1), -ENOSPC));
}

Test(tile, one_grain_of_the_largest_job_fits_the_least_slot)
{
    for (unsigned i = 0; i < REQUEST_MAX_ARGS; i++)
        (void)built_input(&built, DTYPE_FLOAT64);
    for (unsigned i = 0; i < PROGRAM_MAX_INSNS - 1; i++) {
        struct operand a = {OPERAND_INPUT, DTYPE_FLOAT64, (uint16_t)(i % 64)}, none = {0};
        struct operand b = {OPERAND_INPUT, DTYPE_FLOAT64, (uint16_t)((i * 7 + 3) % 64)};
        built_insn(&built, OP_ADD, DTYPE_FLOAT64, DTYPE_FLOAT64, i % 32, a, b, none);
    }
    for (unsigned i = 0; i < PASS_MAX_REDUCTIONS; i++)
        built_reduction(&built, OP_SUM, DTYPE_FLOAT64,
                        (struct operand){OPERAND_INPUT, DTYPE_FLOAT64, (uint16_t)i});
    for (unsigned i = 0; i < REQUEST_MAX_OUTPUTS; i++)
        built_store(&built, (struct operand){OPERAND_REGISTER, DTYPE_FLOAT64, (uint16_t)i});
    struct pass *pass = &built.program.passes[0];
    pass->ndim = ARRAY_MAX_NDIM;
    for (int i = 0; i < ARRAY_MAX_NDIM; i++)
        pass->shape[i] = 3;
    struct engine_room room = {
        .input_bytes =
            GRAIN_MAX_TOTAL_BYTES + (REQUEST_MAX_ARGS + PASS_MAX_REDUCTIONS) * ENGINE_SLOT_ALIGN,
        .output_bytes = REQUEST_MAX_OUTPUTS * ENGINE_SLOT_ALIGN,
        .n_elements = GRAIN_MAX_OTHER_BYTES / sizeof(double) / PASS_MAX_REDUCTIONS,
        .n_cells = 1024};
    cr_assert(le(u64, cuda_tile_need_bytes(&built.program, 0, 1, &room), CUDA_SLOT_MIN_BYTES));
    pass->reduced_axes = 1;
    for (unsigned i = 0; i < PASS_MAX_REDUCTIONS; i++)
        built.program.reductions[i].src =
            (struct operand){OPERAND_REGISTER, DTYPE_FLOAT64, (uint16_t)i};
    enum dtype dtypes[PASS_MAX_VALUES];
    cr_assert(eq(u32, program_values(&built.program, 0, dtypes), PASS_MAX_REDUCTIONS));
    cr_assert(eq(i32, dtypes[PASS_MAX_REDUCTIONS - 1], DTYPE_FLOAT64));
    cr_assert(le(u64, cuda_tile_need_bytes(&built.program, 0, 1, &room), CUDA_SLOT_MIN_BYTES));
}

#define ROWS    50
#define COLUMNS 40

/* The largest of column j is in row j; rows are those from 300 on. */
static void add_columns(void)
{
    const int64_t count[] = {ROWS, COLUMNS}, start[] = {300, 0};
    int32_t *items = cuda_tile_place_input(&tile, ROWS * COLUMNS * sizeof(*items));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            items[i * COLUMNS + j] = i == j ? 1000 : j;
    struct engine_view in = {.base = items, .strides = {COLUMNS * 4, 4}};
    struct engine_box box = {.ndim = 2, .count = count, .axis_order = axes, .start = start};
    cuda_tile_add(&tile, &box, &in, NULL, NULL);
}

Test(tile, reduces_along_axes_what_is_there_and_what_is_computed)
{
    struct operand x = built_input(&built, DTYPE_INT32), none = {0};
    struct operand y = built_insn(&built, OP_NEGATIVE, DTYPE_INT32, DTYPE_INT32, 0, x, none, none);
    built_reduction(&built, OP_SUM, DTYPE_INT64, x);
    built_reduction(&built, OP_ARGMIN, DTYPE_INT64, y);
    struct pass *pass = &built.program.passes[0];
    *pass = (struct pass){.ndim = 2,
                          .shape = {1000, COLUMNS},
                          .n_insns = 1,
                          .n_reductions = 2,
                          .n_registers = 1,
                          .inputs_used = 1,
                          .reduced_axes = 1,
                          .scanned_axis = -1};
    struct engine_room room = {ROWS * COLUMNS * 4 + ENGINE_SLOT_ALIGN, 0, ROWS * COLUMNS, COLUMNS};
    int r = cuda_tile_begin(&tile, &built.program, 0, NULL, 1, &room, slot, SLOT_BYTES);
    cr_assert(eq(i32, r, 0));
    add_columns();
    run();
    struct reduce_layout layout;
    char node[8192] __attribute__((aligned(64)));
    reduce_layout_init(&layout, &built.program, 0, COLUMNS);
    cr_assert(le(u64, layout.n_bytes, sizeof(node)));
    cr_assert(eq(i32, cuda_tile_result(&tile, 0, &layout, node, &warnings), 0));
    const int64_t *sums = reduce_values(&layout, node, 0);
    const int64_t *places = reduce_values(&layout, node, 1);
    for (int j = 0; j < COLUMNS; j++) {
        cr_assert(eq(i64, sums[j], (ROWS - 1) * j + 1000));
        cr_assert(eq(i64, places[j], 300 + j));
    }
}

Test(tile, running_sums_go_on_from_the_states)
{
    built_reduction(&built, OP_CUMSUM, DTYPE_INT64, built_input(&built, DTYPE_INT32));
    built_store(&built, (struct operand){.dtype = DTYPE_INT64});
    struct pass *pass = &built.program.passes[0];
    pass->ndim = 2;
    pass->shape[0] = 1000;
    pass->shape[1] = COLUMNS;
    pass->reduced_axes = 1;
    pass->scanned_axis = 0;
    struct engine_room room = {.input_bytes = ROWS * COLUMNS * 4 + COLUMNS * 8 + 512,
                               .output_bytes = ROWS * COLUMNS * 8 + ENGINE_SLOT_ALIGN,
                               .n_elements = ROWS * COLUMNS,
                               .n_cells = COLUMNS};
    int r = cuda_tile_begin(&tile, &built.program, 0, NULL, 2, &room, slot, SLOT_BYTES);
    cr_assert(eq(i32, r, 0));
    int64_t *outputs[2];
    for (int64_t g = 0; g < 2; g++) { /* the first begins behind others, the second is the first */
        const int64_t count[] = {ROWS, COLUMNS}, start[] = {300 - 300 * g, 0};
        int32_t *items = cuda_tile_place_input(&tile, ROWS * COLUMNS * sizeof(*items));
        int64_t *states = cuda_tile_place_input(&tile, COLUMNS * sizeof(*states));
        outputs[g] = cuda_tile_place_output(&tile, ROWS * COLUMNS * sizeof(int64_t));
        for (int i = 0; i < ROWS * COLUMNS; i++)
            items[i] = i % COLUMNS;
        for (int j = 0; j < COLUMNS; j++)
            states[j] = 1000 * j;
        struct engine_view in = {.base = items, .strides = {COLUMNS * 4, 4}};
        struct engine_view out = {.base = outputs[g], .strides = {COLUMNS * 8, 8}};
        struct engine_view state = {.base = states, .strides = {0, 8}};
        struct engine_box box = {.ndim = 2, .count = count, .axis_order = axes, .start = start};
        cuda_tile_add(&tile, &box, &in, &out, &state);
    }
    run();
    for (unsigned g = 0; g < 2; g++) {
        cr_assert(eq(i32, cuda_tile_result(&tile, g, NULL, NULL, &warnings), 0));
        const int64_t *after = cuda_tile_states(&tile, g, 0);
        for (int j = 0; j < COLUMNS; j++) {
            int64_t before = g == 0 ? 1000 * j : 0;
            for (int i = 0; i < ROWS; i++)
                cr_assert(eq(i64, outputs[g][i * COLUMNS + j], before + (i + 1) * j));
            cr_assert(eq(i64, after[j], before + ROWS * j));
        }
    }
}

Test(tile, tables_are_there_once_for_all_grains)
{
    static int64_t table[20000];
    struct operand whole = {OPERAND_TABLE, DTYPE_INT64, 0}, none = {0};
    struct operand x = built_input(&built, DTYPE_INT64);
    built_store(&built, built_insn(&built, OP_TAKE, DTYPE_INT64, DTYPE_INT64, 0, x, whole, none));
    struct program *p = &built.program;
    p->reductions[0] = (struct reduction){.op = OP_MAX, .result = DTYPE_INT64};
    p->n_reductions = 1;
    p->n_passes = 2;
    p->passes[1] = p->passes[0];
    p->passes[1].ndim = 1;
    p->passes[1].shape[0] = 30;
    p->passes[1].tables_used = 1;
    p->passes[0] =
        (struct pass){.ndim = 2, .n_reductions = 1, .reduced_axes = 1, .scanned_axis = -1};
    p->passes[0].shape[0] = 1;
    p->passes[0].shape[1] = 20000;
    for (int i = 0; i < 20000; i++)
        table[i] = 3 * i;
    struct engine_view reduced = {.base = table};
    struct engine_room room = {ENGINE_SLOT_ALIGN, ENGINE_SLOT_ALIGN, 10, 1};
    uint64_t one = cuda_tile_need_bytes(p, 1, 1, &room),
             three = cuda_tile_need_bytes(p, 1, 3, &room);
    cr_assert(ge(u64, one, sizeof(table)));
    cr_assert(le(u64, three, sizeof(table) + ENGINE_SLOT_ALIGN * 16));
    cr_assert(eq(i32, cuda_tile_begin(&tile, p, 1, &reduced, 3, &room, slot, three), 0));
    int64_t *outputs[3];
    for (int g = 0; g < 3; g++) {
        int64_t *items = cuda_tile_place_input(&tile, 10 * sizeof(*items));
        outputs[g] = cuda_tile_place_output(&tile, 10 * sizeof(int64_t));
        for (int i = 0; i < 10; i++)
            items[i] = 2500 * i - 2 + g;
        add_grain(10, 10 * g, items, sizeof(int64_t), outputs[g]);
    }
    run();
    for (int g = 0; g < 3; g++) {
        for (int i = 0; i < 10; i++) {
            int64_t index = 2500 * i - 2 + g;
            index = index < 0 ? 0 : index >= 20000 ? 19999 : index;
            cr_assert(eq(i64, outputs[g][i], 3 * index));
        }
    }
}
