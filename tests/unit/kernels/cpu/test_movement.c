/* Passes that move an array into another order of axes: at every level the bytes that element by
 * element gives, whatever the item size, the lengths, gaps, signs and alignment, and nothing beside
 * them. */
#include "tests/unit/kernels/cpu/builder.h"

#include "kernels/cpu/run/run.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#define MAX_NDIM    4
#define MARGIN      128
#define ARENA_BYTES (1 << 20)
#define N_TRIALS    400

#define EACH_LEVEL(level)                                                                          \
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++)                          \
        if (cpu_engine_level(cpu_engine_get((enum cpu_level)level)) == (enum cpu_level)level)

static char from[ARENA_BYTES], to[ARENA_BYTES], before[ARENA_BYTES], empty[ARENA_BYTES];
static struct built b;
static uint64_t state;

static int64_t below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % n);
}

struct move_case {
    int ndim;
    int64_t count[MAX_NDIM];
    struct engine_view in, out;
};

static void draw_shape(struct move_case *m)
{
    static const int64_t lengths[] = {2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 67};
    m->ndim = 2 + (int)below(MAX_NDIM - 1);
    for (int i = 0; i < m->ndim; i++)
        m->count[i] = i < 2 ? lengths[below(ARRAY_LENGTH(lengths))] : 1 + below(3);
}

/* `fastest` is dense; the others lie in any order, with gaps, backwards. */
static void draw_view(const struct move_case *m, int fastest, int64_t item_bytes, char *arena,
                      struct engine_view *ret_view)
{
    int64_t step = item_bytes, offset = MARGIN + below(9);
    int rest = (int)below((uint64_t)m->ndim);
    ret_view->strides[fastest] = step;
    step *= m->count[fastest];
    for (int k = 0; k < m->ndim; k++) {
        int i = (k + rest) % m->ndim;
        if (i == fastest)
            continue;
        step += below(3) ? 0 : below(40);
        bool is_backwards = below(3) == 0;
        ret_view->strides[i] = is_backwards ? -step : step;
        offset += is_backwards ? (m->count[i] - 1) * step : 0;
        step *= m->count[i];
    }
    cr_assert(le(i64, step + 2 * MARGIN, ARENA_BYTES));
    ret_view->base = arena + offset;
}

/* Element by element: `before` with what `to` must have. */
static void move_plainly(const struct move_case *m, int64_t item_bytes)
{
    int64_t n = 1;
    for (int i = 0; i < m->ndim; i++)
        n *= m->count[i];
    for (int64_t k = 0; k < n; k++) {
        const char *src = m->in.base;
        char *dst = before + ((char *)m->out.base - to);
        int64_t left = k;
        for (int i = 0; i < m->ndim; i++) {
            src += left % m->count[i] * m->in.strides[i];
            dst += left % m->count[i] * m->out.strides[i];
            left /= m->count[i];
        }
        memcpy(dst, src, (size_t)item_bytes);
    }
}

static void try_one(int level, enum dtype dtype)
{
    struct move_case m = {0};
    struct engine_warnings warnings;
    const int order[MAX_NDIM] = {0, 1, 2, 3};
    int64_t item_bytes = (int64_t)dtype_size(dtype);
    draw_shape(&m);
    draw_view(&m, 0, item_bytes, from, &m.in);
    draw_view(&m, 1, item_bytes, to, &m.out);
    m.in.is_swapped = m.out.is_swapped = below(2);
    memcpy(to, empty, sizeof(to));
    memcpy(before, empty, sizeof(to));
    move_plainly(&m, item_bytes);
    struct engine_box box = {.ndim = m.ndim, .count = m.count, .axis_order = order};
    cr_assert(
        zero(int, cpu_engine_run(cpu_engine_get((enum cpu_level)level), &b.program, 0, &box, &m.in,
                                 &m.out, NULL, NULL, NULL, &warnings, test_scratch())));
    cpu_engine_fence();
    cr_assert(zero(int, memcmp(to, before, sizeof(to))), "%s, level %s", dtype_name(dtype),
              cpu_level_name((enum cpu_level)level));
}

Test(movement, gives_the_bytes_of_every_element_and_no_others)
{
    static const enum dtype dtypes[] = {DTYPE_INT8, DTYPE_UINT16, DTYPE_FLOAT32, DTYPE_INT64,
                                        DTYPE_FLOAT64};
    for (size_t i = 0; i < sizeof(from); i++) {
        from[i] = (char)(i * 7 + (i >> 8));
        empty[i] = (char)(i * 5 + 3);
    }
    for (unsigned d = 0; d < ARRAY_LENGTH(dtypes); d++) {
        built_init(&b);
        built_store(&b, built_input(&b, dtypes[d]));
        EACH_LEVEL(level)
        for (int trial = 0; trial < N_TRIALS / (1 + level); trial++)
            try_one(level, dtypes[d]);
    }
}
