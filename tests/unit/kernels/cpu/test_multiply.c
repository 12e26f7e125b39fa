/* Blocks of matrix products: every dtype at every level against sums that are right by
 * construction, over odd extents, both orders of each operand, gaps between rows, sums set and
 * added to, and nothing beside the result written.
 *
 * Integers and bools are compared exactly. So are floats of small whole numbers, whose sums have no
 * rounding; of others the error is bounded by what any order of additions can give. NaN and
 * infinities are where they have to be.
 */
#include "kernels/cpu/multiply/multiply.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define N_TRIALS    60
#define ARENA_BYTES (400 << 10)
#define MARGIN      64
#define FILLER      0x5a

#define EACH_LEVEL(level)                                                                          \
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)                          \
        if (cpu_engine_level(cpu_engine_get((enum cpu_level)level)) == (enum cpu_level)level)

static _Alignas(64) char arenas[3][ARENA_BYTES], scratch[CPU_SCRATCH_BYTES];
static uint64_t state;

static int64_t below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % n);
}

struct trial {
    enum dtype dtype;
    int64_t m, n, k, row_bytes;
    struct cpu_matrix left, right;
    char *result;
    bool is_added;
};

/* An element as a number: of integers their bits. */
static double float_at(enum dtype dtype, const void *p)
{
    return dtype == DTYPE_FLOAT32 ? *(const float *)p : *(const double *)p;
}

static uint64_t bits_at(enum dtype dtype, const void *p)
{
    uint64_t bits = 0;
    memcpy(&bits, p, dtype_size(dtype));
    return bits;
}

static char *element(const struct cpu_matrix *m, int64_t i, int64_t j)
{
    return (char *)m->base + i * m->row_bytes + j * m->column_bytes;
}

/* Integers of any bits, bools of 0 and 1, floats that are small whole numbers. */
static void draw_element(enum dtype dtype, char *p)
{
    uint64_t bits = (uint64_t)below(UINT64_C(1) << 31) << 33 ^ (uint64_t)below(UINT64_C(1) << 31);
    float f = (float)below(17) - 8;
    double d = f;
    if (dtype == DTYPE_BOOL)
        bits = below(8) == 0;
    if (dtype == DTYPE_FLOAT32)
        memcpy(p, &f, sizeof(f));
    else if (dtype == DTYPE_FLOAT64)
        memcpy(p, &d, sizeof(d));
    else
        memcpy(p, &bits, dtype_size(dtype));
}

static struct cpu_matrix draw_matrix(enum dtype dtype, int64_t n_rows, int64_t n_columns,
                                     char *arena)
{
    int64_t item_bytes = (int64_t)dtype_size(dtype);
    bool is_by_columns = below(2);
    int64_t apart = (is_by_columns ? n_rows : n_columns) + (below(2) ? 0 : below(20));
    struct cpu_matrix m = {.base = arena + MARGIN + below(5) * item_bytes,
                           .row_bytes = is_by_columns ? item_bytes : apart * item_bytes,
                           .column_bytes = is_by_columns ? apart * item_bytes : item_bytes};
    memset(arena, 0xff, ARENA_BYTES); /* gaps are NaN */
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t j = 0; j < n_columns; j++)
            draw_element(dtype, element(&m, i, j));
    return m;
}

static int64_t draw_extent(void)
{
    static const int64_t usual[] = {1, 2, 3, 4, 7, 8, 9, 16, 23, 24, 25, 48, 64, 97, 130};
    return usual[below(ARRAY_LENGTH(usual))];
}

static void draw_trial(struct trial *t, enum dtype dtype)
{
    static const int64_t depths[] = {1, 2, 5, 31, 32, 33, 64, 100, 255, 256, 257, 300};
    int64_t item_bytes = (int64_t)dtype_size(dtype);
    *t = (struct trial){.dtype = dtype, .m = draw_extent(), .n = draw_extent()};
    t->k = depths[below(ARRAY_LENGTH(depths))];
    t->left = draw_matrix(dtype, t->m, t->k, arenas[0]);
    t->right = draw_matrix(dtype, t->k, t->n, arenas[1]);
    t->row_bytes = (t->n + (below(2) ? 0 : below(9))) * item_bytes;
    t->result = arenas[2] + MARGIN + below(3) * item_bytes;
    t->is_added = below(2);
    memset(arenas[2], FILLER, ARENA_BYTES);
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = 0; j < t->n; j++)
            draw_element(dtype, t->result + i * t->row_bytes + j * item_bytes);
}

static void run(const struct cpu_engine *engine, const struct trial *t)
{
    memset(scratch, 0xff, sizeof(scratch)); /* what was in it before does not count */
    cpu_multiply(engine, t->dtype, t->m, t->n, t->k, &t->left, &t->right, t->result, t->row_bytes,
                 t->is_added, scratch);
}

/* `before`: the element of the result before. */
static bool is_right(const struct trial *t, int64_t i, int64_t j, const char *before,
                     const char *after)
{
    size_t item_bytes = dtype_size(t->dtype);
    double sum = t->is_added && dtype_is_float(t->dtype) ? float_at(t->dtype, before) : 0;
    uint64_t bits = t->is_added ? bits_at(t->dtype, before) : 0;
    for (int64_t k = 0; k < t->k; k++) {
        char *a = element(&t->left, i, k), *b = element(&t->right, k, j);
        if (dtype_is_float(t->dtype))
            sum += float_at(t->dtype, a) * float_at(t->dtype, b);
        else if (t->dtype == DTYPE_BOOL)
            bits |= bits_at(t->dtype, a) & bits_at(t->dtype, b);
        else
            bits += bits_at(t->dtype, a) * bits_at(t->dtype, b);
    }
    return dtype_is_float(t->dtype) ? sum == float_at(t->dtype, after)
                                    : memcmp(&bits, after, item_bytes) == 0;
}

/* Random floats: no order of k + 1 additions has an error above (k + 1) x epsilon x the sum of what
 * is added without its signs. */
static void draw_fractions(struct trial *t)
{
    for (int side = 0; side < 2; side++) {
        const struct cpu_matrix *m = side ? &t->right : &t->left;
        for (int64_t i = 0; i < (side ? t->k : t->m); i++) {
            for (int64_t j = 0; j < (side ? t->n : t->k); j++) {
                double value = (double)below(1u << 30) / (1u << 29) - 1;
                if (t->dtype == DTYPE_FLOAT32)
                    *(float *)element(m, i, j) = (float)value;
                else
                    *(double *)element(m, i, j) = value;
            }
        }
    }
}

static double error_of(const struct trial *t, int64_t i, int64_t j)
{
    long double sum = 0, size = 0;
    size_t item_bytes = dtype_size(t->dtype);
    for (int64_t k = 0; k < t->k; k++) {
        long double product = (long double)float_at(t->dtype, element(&t->left, i, k)) *
                              float_at(t->dtype, element(&t->right, k, j));
        sum += product;
        size += fabsl(product);
    }
    double found = float_at(t->dtype, t->result + i * t->row_bytes + j * (int64_t)item_bytes);
    double epsilon = t->dtype == DTYPE_FLOAT32 ? 0x1p-23 : 0x1p-52;
    return (double)(fabsl(found - sum) / (epsilon * (double)(t->k + 1) * size));
}

/* The result, and that nothing beside it is written. */
static void check_trial(const struct trial *t, const char *before, const char *level)
{
    static char expected[ARENA_BYTES];
    size_t row = (size_t)t->n * dtype_size(t->dtype);
    ptrdiff_t offset = t->result - arenas[2];
    memcpy(expected, before, ARENA_BYTES);
    for (int64_t i = 0; i < t->m; i++) {
        for (int64_t j = 0; j < t->n; j++) {
            ptrdiff_t at = i * t->row_bytes + j * (int64_t)dtype_size(t->dtype);
            cr_assert(is_right(t, i, j, before + offset + at, t->result + at),
                      "%s %s: %lld x %lld x %lld, added %d: element (%lld, %lld)", level,
                      dtype_name(t->dtype), (long long)t->m, (long long)t->k, (long long)t->n,
                      t->is_added, (long long)i, (long long)j);
        }
        memcpy(expected + offset + i * t->row_bytes, t->result + i * t->row_bytes, row);
    }
    cr_assert(memcmp(expected, arenas[2], ARENA_BYTES) == 0, "%s %s: written beside the result",
              level, dtype_name(t->dtype));
}

static void check_dtype(enum dtype dtype, unsigned n_trials)
{
    static char before[ARENA_BYTES];
    struct trial t;
    state = 4711 + dtype;
    for (unsigned i = 0; i < n_trials; i++) {
        draw_trial(&t, dtype);
        memcpy(before, arenas[2], ARENA_BYTES);
        EACH_LEVEL(level)
        {
            const struct cpu_engine *engine = cpu_engine_get((enum cpu_level)level);
            memcpy(arenas[2], before, ARENA_BYTES);
            run(engine, &t);
            check_trial(&t, before, cpu_level_name((enum cpu_level)level));
        }
    }
}

Test(multiply, integers_and_bools_equal_wrapped_sums_at_every_level)
{
    for (enum dtype dtype = DTYPE_BOOL; dtype <= DTYPE_UINT64; dtype++)
        check_dtype(dtype, N_TRIALS / 3);
}

Test(multiply, floats_of_whole_numbers_equal_exact_sums)
{
    cpu_multiply_init();
    check_dtype(DTYPE_FLOAT32, N_TRIALS);
    check_dtype(DTYPE_FLOAT64, N_TRIALS);
}

Test(multiply, floats_are_within_the_bound_of_any_order_of_additions)
{
    struct trial t;
    cpu_multiply_init();
    state = 42;
    for (unsigned n = 0; n < N_TRIALS; n++) {
        draw_trial(&t, n % 2 ? DTYPE_FLOAT32 : DTYPE_FLOAT64);
        draw_fractions(&t);
        t.is_added = false;
        run(cpu_engine_get(CPU_LEVEL_AVX512), &t);
        for (int64_t i = 0; i < t.m; i++)
            for (int64_t j = 0; j < t.n; j++)
                cr_assert(le(dbl, error_of(&t, i, j), 1), "%lld x %lld x %lld", (long long)t.m,
                          (long long)t.k, (long long)t.n);
    }
}

/* A NaN is in its row of C, an infinity where it is not multiplied by 0; C's own are gone where
 * nothing is added. */
static void check_not_finite(int64_t m, int64_t n)
{
    enum { DEPTH = 40 };
    static double a[64 * DEPTH], b[DEPTH * 64], c[64 * 64];
    const struct cpu_matrix left = {a, DEPTH * 8, 8}, right = {b, n * 8, 8};
    for (int64_t i = 0; i < m * DEPTH; i++)
        a[i] = 1;
    for (int64_t i = 0; i < DEPTH * n; i++)
        b[i] = i % n == 1 ? 0 : 2;
    for (int64_t i = 0; i < m * n; i++)
        c[i] = NAN;
    a[0 * DEPTH + 3] = NAN;
    if (m > 2)
        a[2 * DEPTH + 5] = INFINITY;
    cpu_multiply(cpu_engine_get(CPU_LEVEL_AVX512), DTYPE_FLOAT64, m, n, DEPTH, &left, &right, c,
                 n * 8, false, scratch);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double expected = j == 1 ? 0 : 2 * DEPTH;
            if (i == 0 || (i == 2 && j == 1))
                cr_assert(isnan(c[i * n + j]));
            else
                cr_assert(eq(dbl, c[i * n + j], i == 2 ? INFINITY : expected));
        }
    }
}

Test(multiply, nan_and_infinity_pass_through)
{
    cpu_multiply_init();
    check_not_finite(64, 64);
    check_not_finite(7, 5);
    check_not_finite(1, 33);
    check_not_finite(33, 1);
}

/* The product of matrices by rows, added to zeros. */
static void check_by_rows(enum dtype dtype, int64_t m, int64_t n, int64_t k)
{
    static char before[ARENA_BYTES];
    int64_t item = (int64_t)dtype_size(dtype);
    struct trial t = {.dtype = dtype, .m = m, .n = n, .k = k, .row_bytes = n * item};
    t.left = (struct cpu_matrix){arenas[0], k * item, item};
    t.right = (struct cpu_matrix){arenas[1], n * item, item};
    t.result = arenas[2] + MARGIN;
    t.is_added = true;
    memset(arenas[2], 0, ARENA_BYTES);
    for (int64_t i = 0; i < m * k; i++)
        draw_element(dtype, arenas[0] + i * item);
    for (int64_t i = 0; i < k * n; i++)
        draw_element(dtype, arenas[1] + i * item);
    memcpy(before, arenas[2], ARENA_BYTES);
    run(cpu_engine_get(CPU_LEVEL_AVX512), &t);
    check_trial(&t, before, "avx512");
}

/* Where there is none, OpenBLAS's kernels for small products would fault. What is large needs
 * buffers, which they keep. */
Test(multiply, small_products_take_no_memory)
{
    struct rlimit limit;
    cpu_multiply_init();
    state = 11;
    check_by_rows(DTYPE_FLOAT32, 200, 200, 100);
    cr_assert(getrlimit(RLIMIT_AS, &limit) == 0);
    const struct rlimit nothing = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    cr_assert(setrlimit(RLIMIT_AS, &nothing) == 0);
    check_by_rows(DTYPE_FLOAT64, 2, 3, 16000); /* 384 kB: of none that is at hand */
    check_by_rows(DTYPE_FLOAT32, 2, 7, 14000);
    check_by_rows(DTYPE_FLOAT32, 3, 23, 4000);
    check_by_rows(DTYPE_FLOAT64, 2, 2, 25000);
    check_by_rows(DTYPE_FLOAT64, 700, 3, 60);
    check_by_rows(DTYPE_FLOAT32, 500, 21, 70);
    check_by_rows(DTYPE_FLOAT64, 9, 9, 16);
    cr_assert(setrlimit(RLIMIT_AS, &limit) == 0);
}

Test(multiply, of_no_depth_sets_zeros_or_adds_nothing)
{
    static const struct cpu_matrix nothing = {"", 8, 8};
    double c[] = {1, 2, 3, 4, 5, 6};
    const struct cpu_engine *engine = cpu_engine_get(CPU_LEVEL_AVX512);
    cpu_multiply(engine, DTYPE_FLOAT64, 2, 2, 0, &nothing, &nothing, c, 24, true, scratch);
    cr_assert(eq(dbl, c[0], 1));
    cpu_multiply(engine, DTYPE_FLOAT64, 2, 2, 0, &nothing, &nothing, c, 24, false, scratch);
    static const double expected[] = {0, 0, 3, 0, 0, 6};
    cr_assert(memcmp(c, expected, sizeof(c)) == 0);
}

/* One call over blocks of whole units against a call for each. */
static void check_joined(enum dtype dtype, int64_t rows, int64_t columns, int64_t depth,
                         unsigned layout)
{
    int64_t item = (int64_t)dtype_size(dtype), m = 2 * rows;
    int64_t n_beside = cpu_multiply_may_join_beside(dtype) ? 2 : 1, n = n_beside * columns;
    cr_assert(cpu_multiply_may_join(dtype, rows, columns, depth));
    char *a = malloc((size_t)(m * depth * item)), *b = malloc((size_t)(depth * n * item));
    char *joined = malloc((size_t)(m * n * item)), *single = malloc((size_t)(m * n * item));
    struct cpu_matrix left = {a, depth * item, item}, right = {b, n * item, item};
    if (layout & 1)
        left = (struct cpu_matrix){a, item, m * item};
    if (layout & 2)
        right = (struct cpu_matrix){b, item, depth * item};
    struct trial t = {.dtype = dtype, .m = m, .n = n, .k = depth, .left = left, .right = right};
    draw_fractions(&t);
    const struct cpu_engine *engine = cpu_engine_get(CPU_LEVEL_AVX512);
    for (int is_added = 0; is_added < 2; is_added++) {
        cpu_multiply(engine, dtype, m, n, depth, &left, &right, joined, n * item, is_added,
                     scratch);
        for (int64_t i = 0; i < 2 * n_beside; i++) {
            struct cpu_matrix l = left, r = right;
            l.base = element(&left, i / n_beside * rows, 0);
            r.base = element(&right, 0, i % n_beside * columns);
            cpu_multiply(engine, dtype, rows, columns, depth, &l, &r,
                         single + (i / n_beside * rows * n + i % n_beside * columns) * item,
                         n * item, is_added, scratch);
        }
        cr_assert(memcmp(joined, single, (size_t)(m * n * item)) == 0,
                  "%s in blocks of %lld x %lld x %lld, layout %u, added %d", dtype_name(dtype),
                  (long long)rows, (long long)depth, (long long)columns, layout, is_added);
    }
    free(a), free(b), free(joined), free(single);
}

Test(multiply, joined_blocks_have_the_bits_of_single_ones)
{
    cpu_multiply_init();
    state = 7;
    for (unsigned layout = 0; layout < 4; layout++) {
        check_joined(DTYPE_FLOAT32, 144, 192, 384, layout);
        check_joined(DTYPE_FLOAT32, 240, 80, 1000, layout);
        check_joined(DTYPE_FLOAT64, 128, 192, 192, layout);
        check_joined(DTYPE_FLOAT64, 80, 112, 512, layout);
    }
}

Test(multiply, says_what_it_multiplies_with)
{
    cpu_multiply_init();
    cr_assert(eq(int, strncmp(cpu_multiply_library(), "OpenBLAS ", 9), 0));
    cr_assert(ne(ptr, (void *)strchr(cpu_multiply_library(), ','), NULL));
}
