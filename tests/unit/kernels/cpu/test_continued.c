/* Boxes that go on with the node of the ones before them: the bits of one box that has all rows. */
#include "tests/unit/kernels/cpu/builder.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS 1500
#define MAX_NODE    (64 + 16 * (MAX_COLUMNS + 8))

static struct built b;
static char whole[MAX_NODE] __attribute__((aligned(64)));
static char parts[MAX_NODE] __attribute__((aligned(64)));
static double elements[CPU_MAX_CONTINUED_ROWS * MAX_COLUMNS];

/* Rows [first, first + n) of all columns, into the node. */
static int take_rows(enum cpu_level level, enum dtype dtype, int64_t first, int64_t n,
                     int64_t n_columns, bool is_continued, void *node)
{
    struct engine_warnings warnings = {0};
    struct reduce_layout layout;
    int64_t item = (int64_t)dtype_size(dtype), count[] = {n, n_columns};
    struct engine_view view = {.base = (char *)elements + first * n_columns * item,
                               .strides = {n_columns * item, item}};
    struct engine_box box = {
        .ndim = 2, .count = count, .axis_order = (int[]){0, 1}, .is_continued = is_continued};
    reduce_layout_init(&layout, &b.program, 0, (uint64_t)n_columns);
    return cpu_engine_run(cpu_engine_get(level), &b.program, 0, &box, &view, NULL, NULL, &layout,
                          node, &warnings, test_scratch());
}

static void build(enum op op, enum dtype dtype, enum dtype result, int64_t n_rows,
                  int64_t n_columns, bool is_computed)
{
    built_init(&b);
    struct operand x = built_input(&b, dtype), none = {0};
    if (is_computed) /* so that the elements pass in strips */
        x = built_insn(&b, OP_NEGATIVE, dtype, dtype, 0, x, none, none);
    built_reduction(&b, op, result, x);
    b.program.passes[0].reduced_axes = 1;
    b.program.passes[0].shape[0] = n_rows;
    b.program.passes[0].shape[1] = n_columns;
}

static void fill(enum dtype dtype, unsigned seed)
{
    size_t n_bytes = sizeof(elements);
    srand(seed);
    if (dtype == DTYPE_FLOAT32)
        for (size_t i = 0; i < n_bytes / sizeof(float); i++)
            ((float *)elements)[i] = ldexpf((float)rand() / (float)RAND_MAX - 0.4f, rand() % 20);
    else if (dtype == DTYPE_FLOAT64)
        for (size_t i = 0; i < n_bytes / sizeof(double); i++)
            elements[i] = ldexp((double)rand() / RAND_MAX - 0.4, rand() % 20);
    else
        for (size_t i = 0; i < n_bytes; i++)
            ((char *)elements)[i] = (char)rand();
    for (int i = 0; i < 20 && seed % 3 == 0; i++) {
        const double specials[] = {NAN, -0.0, 0.0, INFINITY};
        size_t at = (size_t)rand() % (n_bytes / 8);
        if (dtype == DTYPE_FLOAT32)
            ((float *)elements)[at] = (float)specials[i % 4];
        else if (dtype == DTYPE_FLOAT64)
            elements[at] = specials[i % 4];
    }
}

static const struct {
    enum op op;
    enum dtype dtype, result;
} cases[] = {
    {OP_SUM, DTYPE_FLOAT32, DTYPE_FLOAT64},         {OP_SUM, DTYPE_FLOAT64, DTYPE_FLOAT64},
    {OP_PROD, DTYPE_FLOAT32, DTYPE_FLOAT64},        {OP_SUM, DTYPE_INT8, DTYPE_INT64},
    {OP_PROD, DTYPE_UINT16, DTYPE_UINT64},          {OP_MIN, DTYPE_FLOAT32, DTYPE_FLOAT32},
    {OP_MAX, DTYPE_FLOAT64, DTYPE_FLOAT64},         {OP_MIN, DTYPE_INT16, DTYPE_INT16},
    {OP_MAX, DTYPE_UINT64, DTYPE_UINT64},           {OP_COUNT_NONZERO, DTYPE_UINT8, DTYPE_INT64},
    {OP_COUNT_NONZERO, DTYPE_FLOAT32, DTYPE_INT64},
};

static void check(unsigned which, enum cpu_level level, int64_t n_rows, int64_t n_columns,
                  bool is_computed)
{
    enum dtype dtype = cases[which].dtype;
    size_t n_bytes = (size_t)n_columns * dtype_size(cases[which].result);
    build(cases[which].op, dtype, cases[which].result, n_rows, n_columns, is_computed);
    cr_assert(cpu_engine_can_continue(&b.program, &b.program.passes[0]));
    cr_assert(zero(int, take_rows(level, dtype, 0, n_rows, n_columns, false, whole)));
    memset(parts, 0x5a, sizeof(parts));
    for (int64_t first = 0, n; first < n_rows; first += n) {
        n = 1 + rand() % (n_rows - first);
        cr_assert(zero(int, take_rows(level, dtype, first, n, n_columns, first > 0, parts)));
        cr_assert(eq(u64, ((struct reduce_header *)parts)->n_elements, (uint64_t)(first + n)));
    }
    cr_assert(zero(int, memcmp(whole + 64, parts + 64, n_bytes)),
              "case %u, level %d: %d rows of %d", which, (int)level, (int)n_rows, (int)n_columns);
}

Test(continued, boxes_give_the_bits_of_one)
{
    static const int64_t columns[] = {2, 5, 63, 64, 200, 1024, MAX_COLUMNS};
    for (unsigned k = 0; k < 4 * 2 * 3 * 11; k++) {
        fill(cases[k % 11].dtype, k);
        for (unsigned i = 0; i < 7; i++)
            check(k % 11, (enum cpu_level)(k % 4), 2 + rand() % (CPU_MAX_CONTINUED_ROWS - 1),
                  columns[i], k / 11 % 2);
    }
}

/* Otherwise it would have been taken for a first box, or given wrong bits. */
Test(continued, boxes_are_refused_where_they_cannot_go_on)
{
    enum cpu_level level = CPU_LEVEL_AVX512;
    fill(DTYPE_FLOAT32, 1);
    build(OP_SUM, DTYPE_FLOAT32, DTYPE_FLOAT64, 65, 10, false);
    cr_assert(zero(int, take_rows(level, DTYPE_FLOAT32, 0, 60, 10, false, parts)));
    cr_assert(eq(int, take_rows(level, DTYPE_FLOAT32, 0, 5, 10, true, parts), -EINVAL));
    cr_assert(zero(int, take_rows(level, DTYPE_FLOAT32, 0, 4, 10, true, parts)));

    build(OP_SQUARED_DEVIATIONS, DTYPE_FLOAT32, DTYPE_FLOAT64, 8, 10, false);
    cr_assert(not(cpu_engine_can_continue(&b.program, &b.program.passes[0])));
    cr_assert(zero(int, take_rows(level, DTYPE_FLOAT32, 0, 4, 10, false, parts)));
    cr_assert(eq(int, take_rows(level, DTYPE_FLOAT32, 4, 4, 10, true, parts), -EINVAL));

    build(OP_SUM, DTYPE_FLOAT32, DTYPE_FLOAT64, 8, 1, false); /* a row that belongs to one cell */
    cr_assert(zero(int, take_rows(level, DTYPE_FLOAT32, 0, 4, 1, false, parts)));
    cr_assert(eq(int, take_rows(level, DTYPE_FLOAT32, 4, 4, 1, true, parts), -EINVAL));
}
