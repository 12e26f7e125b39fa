/* Boxes, strips, registers, work in place, and the limits of the scratch. */
#include "tests/unit/kernels/cpu/builder.h"

#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#define F32 DTYPE_FLOAT32
#define F64 DTYPE_FLOAT64
#define N   5000

static struct built b;
static struct engine_warnings warnings;
static const struct operand none;
static float x[N], y[N], z[N], out[N], other[N];

static void fill(void)
{
    built_init(&b);
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = (float)(2 * i + 1);
        z[i] = (float)(i % 7);
    }
}

static void run(size_t n, const void *const *inputs, void *const *outputs)
{
    int r = run_flat(cpu_engine_get(CPU_LEVEL_AVX512), &b, n, inputs, outputs, NULL, &warnings);
    cr_assert(zero(int, r));
}

TestSuite(boxes, .init = fill);

Test(boxes, exchange_two_arrays_in_place)
{
    struct operand a = built_input(&b, F32), c = built_input(&b, F32);
    built_store(&b, c);
    built_store(&b, a);
    run(N, (const void *[]){x, y}, (void *[]){x, y});
    for (int i = 0; i < N; i++) {
        cr_assert(eq(flt, x[i], (float)(2 * i + 1)));
        cr_assert(eq(flt, y[i], (float)i));
    }
}

Test(boxes, keep_an_input_that_is_read_after_its_output_is_defined)
{
    struct operand a = built_input(&b, F32), c = built_input(&b, F32);
    struct operand sum = built_insn(&b, OP_ADD, F32, F32, 0, a, c, none);
    struct operand difference = built_insn(&b, OP_SUBTRACT, F32, F32, 1, a, c, none);
    built_store(&b, sum); /* over a, which the second instruction still reads */
    built_store(&b, difference);
    run(N, (const void *[]){x, y}, (void *[]){x, out});
    for (int i = 0; i < N; i++) {
        cr_assert(eq(flt, x[i], (float)(3 * i + 1)));
        cr_assert(eq(flt, out[i], (float)(-i - 1)));
    }
}

Test(boxes, reduce_an_input_that_is_overwritten)
{
    struct operand a = built_input(&b, F32);
    struct operand negative = built_insn(&b, OP_NEGATIVE, F32, F32, 0, a, none, none);
    built_store(&b, negative);
    built_reduction(&b, OP_SUM, F64, a);
    built_reduction(&b, OP_MIN, F32, negative);
    struct built_node node;
    cr_assert(zero(int, run_flat(cpu_engine_get(CPU_LEVEL_AVX512), &b, N, (const void *[]){x},
                                 (void *[]){x}, &node, &warnings)));
    cr_assert(eq(dbl, built_value(&b, &node, 0).f64, (double)N * (N - 1) / 2));
    cr_assert(eq(flt, built_value(&b, &node, 1).f32, (float)(1 - N)));
    cr_assert(eq(flt, x[N - 1], (float)(1 - N)));
}

Test(boxes, store_one_register_twice)
{
    struct operand a = built_input(&b, F32);
    struct operand square = built_insn(&b, OP_SQUARE, F32, F32, 0, a, none, none);
    built_store(&b, square);
    built_store(&b, square);
    run(N, (const void *[]){z}, (void *[]){out, other});
    for (int i = 0; i < N; i++)
        cr_assert(out[i] == z[i] * z[i] && other[i] == z[i] * z[i]);
}

Test(boxes, store_constants_inputs_and_reduced_values)
{
    union scalar value = {.f32 = 2.5f};
    struct operand a = built_input(&b, F32);
    built_store(&b, a);
    built_store(&b, built_const(&b, F32, value));
    b.program.reductions[0] = (struct reduction){.op = OP_SUM, .result = F32};
    b.program.n_reductions = 1;
    built_store(&b, (struct operand){OPERAND_REDUCED, F32, 0});
    static float third[N];
    struct engine_view in = {.base = x, .strides = {4}};
    struct engine_view outs[3] = {{.base = out, .strides = {4}},
                                  {.base = other, .strides = {4}},
                                  {.base = third, .strides = {4}}};
    float value_of_sum = -1.5f;
    struct engine_view reduced = {.base = &value_of_sum};
    struct engine_box box = {.ndim = 1, .count = (int64_t[]){N}, .axis_order = (int[]){0}};
    cr_assert(zero(int, cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX2), &b.program, 0, &box, &in,
                                       outs, &reduced, NULL, NULL, &warnings, test_scratch())));
    for (int i = 0; i < N; i++)
        cr_assert(out[i] == x[i] && other[i] == 2.5f && third[i] == -1.5f);
}

Test(boxes, change_the_item_size_within_one_register)
{
    struct operand a = built_input(&b, F32);
    struct operand doubled = built_insn(&b, OP_ADD, F32, F32, 1, a, a, none);
    struct operand wide = built_insn(&b, OP_ADD, F32, F32, 0, a, a, none);
    wide = built_insn(&b, OP_CAST, F32, F64, 0, wide, none, none);
    struct operand flag = built_insn(&b, OP_GREATER, F64, DTYPE_BOOL, 0, wide,
                                     built_const(&b, F64, (union scalar){.f64 = 100}), none);
    struct operand chosen = built_insn(&b, OP_WHERE, F32, F32, 0, flag, a, doubled);
    struct operand small = built_insn(&b, OP_CAST, F32, DTYPE_UINT8, 0, chosen, none, none);
    struct operand back = built_insn(&b, OP_CAST, DTYPE_UINT8, F64, 0, small, none, none);
    built_store(&b, built_insn(&b, OP_CAST, F64, F32, 0, back, none, none));
    run(N, (const void *[]){z}, (void *[]){out});
    for (int i = 0; i < N; i++)
        cr_assert(eq(flt, out[i], 2 * z[i]));
    run(N, (const void *[]){x}, (void *[]){out});
    for (int i = 0; i < N; i++)
        cr_assert(eq(flt, out[i], (float)(uint8_t)(2 * i > 100 ? i : 2 * i)));
}

Test(boxes, of_no_axes_hold_one_element)
{
    built_store(&b, built_insn(&b, OP_SQRT, F64, F64, 0,
                               built_const(&b, F64, (union scalar){.f64 = 9}), none, none));
    double root = 0;
    struct engine_view view = {.base = &root};
    struct engine_box box = {.ndim = 0};
    cr_assert(zero(int, cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX512), &b.program, 0, &box, NULL,
                                       &view, NULL, NULL, NULL, &warnings, test_scratch())));
    cr_assert(eq(dbl, root, 3));
}

/* rows x 3: a contiguous array, a row, a column, a single value. */
Test(boxes, broadcast_rows_and_columns_of_narrow_arrays)
{
    enum { ROWS = 1500 };
    struct operand a = built_input(&b, F32), row = built_input(&b, F32),
                   column = built_input(&b, F32), one = built_input(&b, F32);
    struct operand t = built_insn(&b, OP_ADD, F32, F32, 0, a, row, none);
    t = built_insn(&b, OP_MULTIPLY, F32, F32, 0, t, column, none);
    built_store(&b, built_insn(&b, OP_SUBTRACT, F32, F32, 0, t, one, none));
    struct engine_view in[] = {{.base = x, .strides = {12, 4}},
                               {.base = y, .strides = {0, 4}},
                               {.base = z, .strides = {4, 0}},
                               {.base = y + 9, .strides = {0, 0}}};
    struct engine_view to = {.base = out, .strides = {12, 4}};
    struct engine_box box = {.ndim = 2, .count = (int64_t[]){ROWS, 3}, .axis_order = (int[]){0, 1}};
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        memset(out, 0, sizeof(out));
        cr_assert(
            zero(int, cpu_engine_run(cpu_engine_get((enum cpu_level)level), &b.program, 0, &box, in,
                                     &to, NULL, NULL, NULL, &warnings, test_scratch())));
        for (int i = 0; i < ROWS * 3; i++)
            cr_assert(eq(flt, out[i], (x[i] + y[i % 3]) * z[i / 3] - y[9]), "element %d", i);
    }
}

Test(boxes, of_32_axes_are_walked)
{
    int64_t count[ARRAY_MAX_NDIM], in_stride = 4;
    int order[ARRAY_MAX_NDIM];
    struct engine_view in = {.base = x}, to = {.base = out};
    for (int i = 0; i < ARRAY_MAX_NDIM; i++) {
        count[i] = i % 3 == 0 ? 2 : 1;
        order[i] = ARRAY_MAX_NDIM - 1 - i; /* the first axis is the fastest */
        in.strides[i] = in_stride;
        to.strides[i] = in_stride;
        if (i % 3 == 0)
            in_stride *= 2;
    }
    built_store(&b, built_insn(&b, OP_NEGATIVE, F32, F32, 0, built_input(&b, F32), none, none));
    struct engine_box box = {.ndim = ARRAY_MAX_NDIM, .count = count, .axis_order = order};
    cr_assert(zero(int, cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX512), &b.program, 0, &box, &in,
                                       &to, NULL, NULL, NULL, &warnings, test_scratch())));
    for (int i = 0; i < 2048; i++)
        cr_assert(eq(flt, out[i], -x[i]));
}

/* Every kind of value as many times as a program may have it, all 8 bytes wide. */
Test(boxes, of_the_largest_program_fit_the_scratch)
{
    static char memory[CPU_SCRATCH_BYTES + 128] __attribute__((aligned(64)));
    static double values[1000], got[1000];
    struct operand sources[REQUEST_MAX_ARGS + PROGRAM_MAX_CONSTS + PASS_MAX_RESULTS];
    struct engine_view in[REQUEST_MAX_ARGS], to = {.base = got, .strides = {16, 8}};
    struct engine_view reduced[PASS_MAX_RESULTS];
    static double one = 1;
    unsigned n = 0;
    double constants = 0;
    for (int i = 0; i < REQUEST_MAX_ARGS; i++) { /* rows of two: periodic */
        sources[n++] = built_input(&b, F64);
        in[i] = (struct engine_view){.base = values + i, .strides = {i % 2 ? 16 : 0, 8}};
    }
    for (int i = 0; i < PROGRAM_MAX_CONSTS; i++, constants += i)
        sources[n++] = built_const(&b, F64, (union scalar){.f64 = i});
    constants -= PROGRAM_MAX_CONSTS;
    for (int i = 0; i < PASS_MAX_RESULTS; i++) {
        b.program.reductions[i] = (struct reduction){.op = OP_SUM, .result = F64};
        reduced[i] = (struct engine_view){.base = &one};
        sources[n++] = (struct operand){OPERAND_REDUCED, F64, (uint16_t)i};
    }
    b.program.n_reductions = PASS_MAX_RESULTS;
    struct operand sum = built_insn(&b, OP_ADD, F64, F64, 0, sources[0], sources[1], none);
    for (unsigned i = 2; i < n; i++)
        sum = built_insn(&b, OP_ADD, F64, F64, i % PROGRAM_MAX_REGISTERS, sum, sources[i], none);
    while (b.program.n_insns < PROGRAM_MAX_INSNS)
        sum = built_insn(&b, OP_ABSOLUTE, F64, F64, 31, sum, none, none);
    for (int i = 0; i < REQUEST_MAX_OUTPUTS; i++)
        built_store(&b, sum);
    for (int i = 0; i < 1000; i++)
        values[i] = i;
    struct engine_view outs[REQUEST_MAX_OUTPUTS];
    for (int i = 0; i < REQUEST_MAX_OUTPUTS; i++)
        outs[i] = to;
    memset(memory + CPU_SCRATCH_BYTES, 0x5a, 128);
    struct engine_box box = {.ndim = 2, .count = (int64_t[]){400, 2}, .axis_order = (int[]){0, 1}};
    cr_assert(zero(int, cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX512), &b.program, 0, &box, in,
                                       outs, reduced, NULL, NULL, &warnings, memory)));
    for (int i = 0; i < 128; i++)
        cr_assert(eq(chr, memory[CPU_SCRATCH_BYTES + i], 0x5a));
    for (int e = 0; e < 800; e++) {
        double wanted = PASS_MAX_RESULTS + 255 * 256 / 2;
        for (int i = 0; i < REQUEST_MAX_ARGS; i++)
            wanted += i + e % 2 + (i % 2 ? e / 2 * 2 : 0);
        cr_assert(eq(dbl, got[e], wanted), "element %d", e);
    }
}

/* The coordinates of a box that begins anywhere, visited in every order of its axes. */
Test(boxes, know_the_coordinates_of_their_elements)
{
    enum { A = 5, B = 13, C = 71 };
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static int64_t got[3][A * B * C];
    int64_t start[] = {100, INT64_C(1) << 40, 0};
    struct engine_view outs[3];
    for (unsigned axis = 0; axis < 3; axis++) {
        built_store(&b, (struct operand){OPERAND_INDEX, DTYPE_INT64, (uint16_t)axis});
        outs[axis] = (struct engine_view){.base = got[axis], .strides = {8 * B * C, 8 * C, 8}};
    }
    for (unsigned i = 0; i < ARRAY_LENGTH(orders); i++) {
        struct engine_box box = {.ndim = 3,
                                 .count = (int64_t[]){A, B, C},
                                 .axis_order = orders[i],
                                 .start = i % 2 ? NULL : start};
        memset(got, 0xff, sizeof(got));
        cr_assert(
            zero(int, cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX512), &b.program, 0, &box, NULL,
                                     outs, NULL, NULL, NULL, &warnings, test_scratch())));
        for (int e = 0; e < A * B * C; e++) {
            int64_t wanted[] = {e / (B * C), e / C % B, e % C};
            for (int axis = 0; axis < 3; axis++)
                cr_assert(eq(i64, got[axis][e], wanted[axis] + (i % 2 ? 0 : start[axis])),
                          "order %u, axis %d, element %d", i, axis, e);
        }
    }
}

Test(boxes, compute_with_coordinates_and_reduce_them)
{
    struct operand i = {OPERAND_INDEX, DTYPE_INT64, 0};
    struct operand wide = built_insn(&b, OP_CAST, DTYPE_INT64, F64, 0, i, none, none);
    struct operand narrow = built_insn(&b, OP_CAST, F64, F32, 0, wide, none, none);
    built_store(&b, built_insn(&b, OP_SUBTRACT, F32, F32, 0, built_input(&b, F32), narrow, none));
    built_reduction(&b, OP_SUM, DTYPE_INT64, i);
    struct built_node node;
    cr_assert(zero(int, run_flat(cpu_engine_get(CPU_LEVEL_AVX512), &b, N, (const void *[]){y},
                                 (void *[]){out}, &node, &warnings)));
    for (int e = 0; e < N; e++)
        cr_assert(eq(flt, out[e], (float)(e + 1)));
    cr_assert(eq(i64, built_value(&b, &node, 0).i64, (int64_t)N * (N - 1) / 2));
}

Test(boxes, refuse_the_coordinate_along_an_axis_that_is_not_there)
{
    built_store(&b, (struct operand){OPERAND_INDEX, DTYPE_INT64, 1});
    int64_t got[4];
    struct engine_view to = {.base = got, .strides = {8}};
    struct engine_box box = {.ndim = 1, .count = (int64_t[]){4}, .axis_order = (int[]){0}};
    cr_assert(eq(int,
                 cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX512), &b.program, 0, &box, NULL, &to,
                                NULL, NULL, NULL, &warnings, test_scratch()),
                 -EINVAL));
}

/* Results of an earlier pass are read by broadcasting, in every direction. */
Test(boxes, read_reduced_values_along_kept_axes)
{
    enum { ROWS = 37, COLUMNS = 129 };
    static double of_rows[ROWS], of_columns[COLUMNS], got[ROWS * COLUMNS];
    struct operand sources[2];
    for (uint16_t i = 0; i < 2; i++) {
        b.program.reductions[i] = (struct reduction){.op = OP_SUM, .result = F64};
        sources[i] = (struct operand){OPERAND_REDUCED, F64, i};
    }
    b.program.n_reductions = 2;
    built_store(&b, built_insn(&b, OP_SUBTRACT, F64, F64, 0, sources[0], sources[1], none));
    for (int i = 0; i < ROWS; i++)
        of_rows[i] = 1000 * i;
    for (int i = 0; i < COLUMNS; i++)
        of_columns[i] = i;
    struct engine_view reduced[] = {{.base = of_rows, .strides = {8, 0}},
                                    {.base = of_columns, .strides = {0, 8}}};
    struct engine_view to = {.base = got, .strides = {8 * COLUMNS, 8}};
    for (int k = 0; k < 2; k++) {
        int order[] = {k, 1 - k};
        struct engine_box box = {
            .ndim = 2, .count = (int64_t[]){ROWS, COLUMNS}, .axis_order = order};
        memset(got, 0, sizeof(got));
        cr_assert(
            zero(int, cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX512), &b.program, 0, &box, NULL,
                                     &to, reduced, NULL, NULL, &warnings, test_scratch())));
        for (int i = 0; i < ROWS * COLUMNS; i++)
            cr_assert(eq(dbl, got[i], 1000 * (i / COLUMNS) - i % COLUMNS), "element %d", i);
    }
}

/* A box in the middle of a pass, for any order of walking. */
Test(boxes, number_elements_in_c_order_of_the_pass)
{
    static const int64_t shape[] = {11, 30, 45}, count[] = {4, 13, 21}, start[] = {5, 10, 20};
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}};
    static uint64_t got[4 * 13 * 21];
    built_store(&b, (struct operand){OPERAND_INDEX, DTYPE_UINT64, OPERAND_INDEX_FLAT});
    memcpy(b.program.passes[0].shape, shape, sizeof(shape));
    struct engine_view to = {.base = got, .strides = {8 * 13 * 21, 8 * 21, 8}};
    for (int k = 0; k < 4; k++) {
        struct engine_box box = {
            .ndim = 3, .count = count, .axis_order = orders[k], .start = start};
        memset(got, 0, sizeof(got));
        cr_assert(
            zero(int, cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX512), &b.program, 0, &box, NULL,
                                     &to, NULL, NULL, NULL, &warnings, test_scratch())));
        for (int i = 0; i < 4 * 13 * 21; i++) {
            int64_t at = ((i / 273 + 5) * 30 + i / 21 % 13 + 10) * 45 + i % 21 + 20;
            cr_assert(eq(u64, got[i], (uint64_t)at), "element %d, order %d", i, k);
        }
    }
}

Test(boxes, refuse_a_node_of_another_number_of_cells)
{
    built_reduction(&b, OP_SUM, F64, built_input(&b, F32));
    struct reduce_layout layout;
    struct built_node node;
    reduce_layout_init(&layout, &b.program, 0, 2);
    struct engine_view in = {.base = x, .strides = {4}};
    struct engine_box box = {.ndim = 1, .count = (int64_t[]){N}, .axis_order = (int[]){0}};
    cr_assert(eq(int,
                 cpu_engine_run(cpu_engine_get(CPU_LEVEL_AVX512), &b.program, 0, &box, &in, NULL,
                                NULL, &layout, &node, &warnings, test_scratch()),
                 -EINVAL));
}
