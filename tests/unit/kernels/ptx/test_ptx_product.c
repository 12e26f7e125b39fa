/* The kernels of matrix products as nvcc compiled them, thread by thread, against three loops.
 *
 * Matrices of random sizes, by rows or by columns, with gaps between rows that nothing has written:
 * reading one, or writing one, is found, as is all else that ptx_block.h looks for. A matrix ends
 * where its buffer does.
 */
#include "kernels/cuda/product/product_kernels.h"
#include "tests/unit/kernels/cpu/check/check.h"
#include "tests/unit/kernels/ptx/ptx_block.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define N_TRIALS  6
#define N_THREADS 256

#define KERNEL(name)                                                                               \
    void compiled_cuda_##name(void *const *arguments);                                             \
    extern const uint32_t compiled_cuda_##name##_shared_bytes;
KERNEL(product_u8)
KERNEL(product_u16)
KERNEL(product_u32)
KERNEL(product_u64)
KERNEL(product_b8)
KERNEL(mirror_u8)
KERNEL(mirror_u16)
KERNEL(mirror_u32)
KERNEL(mirror_u64)

struct compiled {
    void (*run)(void *const *arguments);
    const uint32_t *shared_bytes;
    int64_t item_bytes;
};
#define COMPILED(name, n)                                                                          \
    {                                                                                              \
        compiled_cuda_##name, &compiled_cuda_##name##_shared_bytes, n                              \
    }
static const struct compiled products[CUDA_PRODUCT_N_KINDS] = {
    COMPILED(product_u8, 1), COMPILED(product_u16, 2), COMPILED(product_u32, 4),
    COMPILED(product_u64, 8), COMPILED(product_b8, 1)};
static const struct compiled mirrors[] = {COMPILED(mirror_u8, 1), COMPILED(mirror_u16, 2),
                                          COMPILED(mirror_u32, 4), COMPILED(mirror_u64, 8)};

/* Matrices in a buffer of their size, and the buffer as it was. */
struct drawn {
    struct cuda_matrix m;
    struct ptx_buffer buffer;
    char *before;
    int64_t n_rows, n_columns, item_bytes;
};

static int64_t below(int64_t n)
{
    return (int64_t)(check_random() % (uint64_t)n);
}

static char *at(const struct drawn *o, const void *start, int64_t matrix, int64_t i, int64_t j)
{
    return (char *)(uintptr_t)start + matrix * o->m.matrix_bytes + i * o->m.row_bytes +
           j * o->m.column_bytes;
}

static uint64_t item(const struct drawn *o, const void *start, int64_t matrix, int64_t i, int64_t j)
{
    uint64_t value = 0;
    memcpy(&value, at(o, start, matrix, i, j), (size_t)o->item_bytes);
    return value;
}

static void draw(struct drawn *o, int64_t item_bytes, int64_t n_matrices, int64_t n_rows,
                 int64_t n_columns, bool is_bool, bool is_set)
{
    bool by_columns = below(2);
    int64_t along = by_columns ? n_rows : n_columns, lines = by_columns ? n_columns : n_rows;
    int64_t line_bytes = (along + below(3)) * item_bytes;
    o->n_rows = n_rows;
    o->n_columns = n_columns;
    o->item_bytes = item_bytes;
    o->m.row_bytes = by_columns ? item_bytes : line_bytes;
    o->m.column_bytes = by_columns ? line_bytes : item_bytes;
    o->m.matrix_bytes = line_bytes * lines;
    uint64_t n_bytes = (uint64_t)(n_matrices * o->m.matrix_bytes - line_bytes + along * item_bytes);
    o->buffer = (struct ptx_buffer){malloc(n_bytes), n_bytes, calloc(n_bytes, 1)};
    o->before = malloc(n_bytes);
    cr_assert(o->buffer.start && o->buffer.is_written && o->before);
    o->m.base = o->buffer.start;
    for (uint64_t i = 0; i < n_bytes; i++)
        o->m.base[i] = (char)(is_bool ? below(20) == 0 : below(256));
    memcpy(o->before, o->m.base, n_bytes);
    for (int64_t k = 0; is_set && k < n_matrices * n_rows * n_columns; k++) {
        char *place =
            at(o, o->m.base, k / (n_rows * n_columns), k / n_columns % n_rows, k % n_columns);
        memset(o->buffer.is_written + (place - o->m.base), true, (size_t)item_bytes);
    }
}

static void drop(struct drawn *o)
{
    free(o->buffer.start);
    free(o->buffer.is_written);
    free(o->before);
}

/* Every byte that is no item is as it was, and was not written. */
static void assert_gaps_are_whole(struct drawn *o, int64_t n_matrices)
{
    for (int64_t k = 0; k < n_matrices * o->n_rows * o->n_columns; k++) {
        char *place = at(o, o->m.base, k / (o->n_rows * o->n_columns), k / o->n_columns % o->n_rows,
                         k % o->n_columns);
        memset(o->buffer.is_written + (place - o->m.base), false, (size_t)o->item_bytes);
        memcpy(o->before + (place - o->m.base), place, (size_t)o->item_bytes);
    }
    cr_assert(memcmp(o->before, o->m.base, o->buffer.n_bytes) == 0);
    cr_assert(memchr(o->buffer.is_written, true, o->buffer.n_bytes) == NULL);
}

static void launch(const struct compiled *kernel, void *of, int64_t n_matrices, int64_t n_blocks,
                   const struct ptx_buffer *buffers, unsigned n_buffers)
{
    int64_t first_matrix = 0;
    void *arguments[] = {of, &first_matrix, &n_blocks};
    struct ptx_report report;
    int r = ptx_run(
        &(struct ptx_launch){
            .kernel = kernel->run,
            .shared_bytes = *kernel->shared_bytes,
            .arguments = arguments,
            .n_blocks = {(uint32_t)n_blocks, (uint32_t)n_matrices},
            .n_threads = N_THREADS,
            .buffers = buffers,
            .n_buffers = n_buffers,
        },
        &report);
    cr_assert(eq(int, r, 0));
    cr_assert(eq(int, (int)report.fault, PTX_FINE), "thread %u, line %d", report.thread,
              report.line);
}

static uint64_t masked(uint64_t value, int64_t item_bytes)
{
    return item_bytes == 8 ? value : value & ((UINT64_C(1) << 8 * item_bytes) - 1);
}

static void try_product(enum cuda_product_kind kind)
{
    const struct compiled *kernel = &products[kind];
    bool is_bool = kind == CUDA_PRODUCT_BOOL, adds = below(2);
    int64_t n_matrices = 1 + below(2), n_rows = 1 + below(100), n_columns = 1 + below(100),
            n_depth = 1 + below(70);
    struct drawn left, right, result;
    draw(&left, kernel->item_bytes, n_matrices, n_rows, n_depth, is_bool, true);
    draw(&right, kernel->item_bytes, n_matrices, n_depth, n_columns, is_bool, true);
    draw(&result, kernel->item_bytes, n_matrices, n_rows, n_columns, is_bool, adds);
    struct cuda_product p = {.left = left.m,
                             .right = right.m,
                             .result = result.m,
                             .n_matrices = n_matrices,
                             .n_rows = n_rows,
                             .n_columns = n_columns,
                             .n_depth = n_depth,
                             .kind = (uint8_t)kind,
                             .adds = adds};
    const struct ptx_buffer buffers[] = {left.buffer, right.buffer, result.buffer};
    launch(kernel, &p, n_matrices, cuda_product_blocks(&p), buffers, 3);
    for (int64_t e = 0; e < n_matrices * n_rows * n_columns; e++) {
        int64_t m = e / (n_rows * n_columns), i = e / n_columns % n_rows, j = e % n_columns;
        uint64_t sum = adds ? item(&result, result.before, m, i, j) : 0;
        for (int64_t k = 0; k < n_depth; k++) {
            uint64_t a = item(&left, left.m.base, m, i, k), b = item(&right, right.m.base, m, k, j);
            sum = is_bool ? sum | (a & b) : sum + a * b;
        }
        cr_assert(eq(u64, item(&result, result.m.base, m, i, j), masked(sum, kernel->item_bytes)),
                  "kind %d, element (%d, %d)", (int)kind, (int)i, (int)j);
    }
    assert_gaps_are_whole(&result, n_matrices);
    drop(&left);
    drop(&right);
    drop(&result);
}

static void try_mirror(uint8_t item_log2)
{
    const struct compiled *kernel = &mirrors[item_log2];
    int64_t n_matrices = 1 + below(2), n_rows = 1 + below(100);
    struct drawn o;
    draw(&o, kernel->item_bytes, n_matrices, n_rows, n_rows, false, true);
    struct cuda_mirror mirror = {
        .matrix = o.m, .n_matrices = n_matrices, .n_rows = n_rows, .item_log2 = item_log2};
    launch(kernel, &mirror, n_matrices, cuda_mirror_blocks(&mirror), &o.buffer, 1);
    for (int64_t e = 0; e < n_matrices * n_rows * n_rows; e++) {
        int64_t m = e / (n_rows * n_rows), i = e / n_rows % n_rows, j = e % n_rows;
        uint64_t wanted = item(&o, o.before, m, i > j ? i : j, i > j ? j : i);
        cr_assert(eq(u64, item(&o, o.m.base, m, i, j), wanted), "element (%d, %d)", (int)i, (int)j);
    }
    assert_gaps_are_whole(&o, n_matrices);
    drop(&o);
}

Test(ptx_product, compiled_products_give_what_three_loops_give)
{
    for (int trial = 0; trial < N_TRIALS; trial++) {
        for (int kind = 0; kind < CUDA_PRODUCT_N_KINDS; kind++)
            try_product((enum cuda_product_kind)kind);
    }
}

Test(ptx_product, compiled_mirrors_copy_what_lies_below_the_diagonal)
{
    for (int trial = 0; trial < N_TRIALS; trial++) {
        for (uint8_t item_log2 = 0; item_log2 < 4; item_log2++)
            try_mirror(item_log2);
    }
}
