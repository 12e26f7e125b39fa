/* Multiplications of matrices on the device, and the mirror, against sums that are computed here
 * one element at a time: every dtype, both orders of each operand, gaps between lines, batches, a
 * matrix for all of a batch, results that are set and added to, no depth.
 *
 * Integers and bools must be right to the bit. Of floats the error is bounded by what any order of
 * additions can give, and with TF32 by the operands' rounding too. The same call gives the same
 * bits, and nothing on the device but the result changes.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include "kernels/cuda/product/multiply.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TF32_EPSILON (1.0L / 1024)
#define MARGIN_BYTES 64

struct multiply_trial {
    struct cuda_multiply m; /* addresses in the rig's slot */
    uint64_t used_bytes;
};

static struct cuda_blas *blas;
static void *workspace;

static void print_matrix(const char *what, const struct cuda_matrix *m, const char *slot)
{
    printf("    %s: at %td, %lld to the next row, %lld column, %lld matrix\n", what, m->base - slot,
           (long long)m->row_bytes, (long long)m->column_bytes, (long long)m->matrix_bytes);
}

static void report(struct checkcuda *c, const struct multiply_trial *t, const char *what)
{
    const struct cuda_multiply *m = &t->m;
    c->check.n_failed++;
    printf("FAILED multiply %s%s: %s\n    seed %llu, %lld matrices, %lld x %lld x %lld, %s\n",
           dtype_name(m->dtype), m->is_tf32 ? " tf32" : "", what, (unsigned long long)c->check.seed,
           (long long)m->n_matrices, (long long)m->n_rows, (long long)m->n_depth,
           (long long)m->n_columns, m->adds ? "added" : "set");
    print_matrix("left", &m->left, c->rig->slot);
    print_matrix("right", &m->right, c->rig->slot);
    print_matrix("result", &m->result, c->rig->slot);
}

static char *element(const struct cuda_matrix *m, int64_t matrix, int64_t row, int64_t column)
{
    return m->base + matrix * m->matrix_bytes + row * m->row_bytes + column * m->column_bytes;
}

static uint64_t bits_at(enum dtype dtype, const char *at)
{
    uint64_t bits = 0;
    memcpy(&bits, at, dtype_size(dtype));
    return bits;
}

static long double float_at(enum dtype dtype, const char *at)
{
    return dtype == DTYPE_FLOAT32 ? *(const float *)at : *(const double *)at;
}

static int64_t draw_extent(unsigned trial)
{
    static const int64_t edges[] = {63, 64, 65, 127, 128, 129};
    switch (trial % 4) {
    case 0: return (int64_t)check_below(17) + 1;
    case 1: return check_below(3) == 0 ? 1 : (int64_t)check_below(100) + 1;
    case 2: return edges[check_below(6)];
    default: return (int64_t)check_below(200) + 1;
    }
}

/* Behind what is used so far: by rows or by columns, with gaps, all matrices or one. */
static struct cuda_matrix draw_matrix(struct multiply_trial *t, char *slot, int64_t n_rows,
                                      int64_t n_columns, bool is_result)
{
    int64_t item = (int64_t)dtype_size(t->m.dtype), n_matrices = t->m.n_matrices;
    bool is_by_rows = is_result || check_below(2);
    int64_t across = is_by_rows ? n_columns : n_rows, n_lines = is_by_rows ? n_rows : n_columns;
    int64_t line = (across + (check_below(2) ? (int64_t)check_below(20) : 0)) * item;
    if (n_lines == 1 && check_below(2)) /* nobody goes to the next */
        line = item;
    bool is_shared = !is_result && check_below(3) == 0;
    struct cuda_matrix m = {
        .base = slot + t->used_bytes + MARGIN_BYTES + (int64_t)check_below(9) * item,
        .row_bytes = is_by_rows ? line : item,
        .column_bytes = is_by_rows ? item : line,
        .matrix_bytes =
            is_shared ? 0 : (n_lines - 1) * line + (across + (int64_t)check_below(9)) * item,
    };
    char *end = m.base + (n_matrices - 1) * m.matrix_bytes + (n_lines - 1) * line + across * item +
                MARGIN_BYTES;
    t->used_bytes = RIG_ALIGNED((uint64_t)(end - slot));
    return m;
}

static void fill_matrix(const struct multiply_trial *t, const struct cuda_matrix *m, int64_t n_rows,
                        int64_t n_columns)
{
    enum dtype dtype = t->m.dtype;
    for (int64_t matrix = 0; matrix < t->m.n_matrices; matrix++)
        for (int64_t i = 0; i < n_rows; i++)
            for (int64_t j = 0; j < n_columns; j++) {
                char *at = element(m, matrix, i, j);
                uint64_t bits = check_random();
                if (dtype == DTYPE_BOOL)
                    *at = bits % 8 == 0;
                else if (dtype == DTYPE_FLOAT32)
                    *(float *)at = (float)((double)(int64_t)bits / 0x1p62);
                else if (dtype == DTYPE_FLOAT64)
                    *(double *)at = (double)(int64_t)bits / 0x1p62;
                else
                    memcpy(at, &bits, dtype_size(dtype));
            }
}

static void draw_trial(struct multiply_trial *t, enum dtype dtype, bool is_tf32, unsigned trial,
                       char *slot)
{
    *t = (struct multiply_trial){.m = {.dtype = dtype, .is_tf32 = is_tf32}};
    t->m.adds = check_below(2);
    t->m.n_matrices = check_below(2) ? 1 : (int64_t)check_below(4) + 1;
    t->m.n_rows = draw_extent(trial);
    t->m.n_columns = draw_extent(trial);
    t->m.n_depth = check_below(8) == 0 ? 0 : draw_extent(trial);
    t->m.left = draw_matrix(t, slot, t->m.n_rows, t->m.n_depth, false);
    t->m.right = draw_matrix(t, slot, t->m.n_depth, t->m.n_columns, false);
    t->m.result = draw_matrix(t, slot, t->m.n_rows, t->m.n_columns, true);
    if (t->used_bytes > RIG_SLOT_BYTES)
        abort();
    for (uint64_t i = 0; i < t->used_bytes; i++)
        slot[i] = (char)(i * 37 + 11);
    fill_matrix(t, &t->m.left, t->m.n_rows, t->m.n_depth);
    fill_matrix(t, &t->m.right, t->m.n_depth, t->m.n_columns);
    fill_matrix(t, &t->m.result, t->m.n_rows, t->m.n_columns);
}

static bool is_float_right(const struct cuda_multiply *m, int64_t matrix, int64_t row,
                           int64_t column, const char *got)
{
    const char *old = element(&m->result, matrix, row, column);
    long double sum = m->adds ? float_at(m->dtype, old) : 0, size = fabsl(sum);
    long double epsilon = m->dtype == DTYPE_FLOAT32 ? FLT_EPSILON : DBL_EPSILON;
    for (int64_t i = 0; i < m->n_depth; i++) {
        long double product = float_at(m->dtype, element(&m->left, matrix, row, i)) *
                              float_at(m->dtype, element(&m->right, matrix, i, column));
        sum += product;
        size += fabsl(product);
    }
    long double bound = size * epsilon * (long double)(m->n_depth + 2);
    bound += m->is_tf32 ? size * 2 * TF32_EPSILON : 0;
    return fabsl(float_at(m->dtype, got) - sum) <= bound;
}

static bool is_integer_right(const struct cuda_multiply *m, int64_t matrix, int64_t row,
                             int64_t column, const char *got)
{
    uint64_t sum = m->adds ? bits_at(m->dtype, element(&m->result, matrix, row, column)) : 0;
    for (int64_t i = 0; i < m->n_depth; i++) {
        uint64_t a = bits_at(m->dtype, element(&m->left, matrix, row, i));
        uint64_t b = bits_at(m->dtype, element(&m->right, matrix, i, column));
        sum = m->dtype == DTYPE_BOOL ? sum | (a & b) : sum + a * b;
    }
    return memcmp(&sum, got, dtype_size(m->dtype)) == 0;
}

/* What came back; then it is as it was before, so that what else has changed is seen. */
static const char *compare(const struct rig *rig, const struct multiply_trial *t)
{
    const struct cuda_multiply *m = &t->m;
    bool is_float = dtype_is_float(m->dtype);
    for (int64_t matrix = 0; matrix < m->n_matrices; matrix++)
        for (int64_t i = 0; i < m->n_rows; i++)
            for (int64_t j = 0; j < m->n_columns; j++) {
                const char *old = element(&m->result, matrix, i, j);
                char *got = rig->back + (old - rig->slot);
                if (!(is_float ? is_float_right(m, matrix, i, j, got)
                               : is_integer_right(m, matrix, i, j, got)))
                    return "another result";
                memcpy(got, old, dtype_size(m->dtype));
            }
    return memcmp(rig->back, rig->slot, t->used_bytes) ? "wrote beside the result" : NULL;
}

static struct cuda_matrix on_device(const struct rig *rig, struct cuda_matrix m)
{
    m.base = rig->device_slot + (m.base - rig->slot);
    return m;
}

static void wait_for(const struct rig *rig, char *to, uint64_t n_bytes)
{
    rig_must(cuda_copy_from_device(to, rig->device_slot, n_bytes, rig->stream), "copying back");
    rig_must(cuda_event_record(rig->end, rig->stream), "an event");
    rig_must(cuda_event_wait(rig->end), "computing");
}

static void run(const struct rig *rig, const struct multiply_trial *t, char *to)
{
    struct cuda_multiply m = t->m;
    m.left = on_device(rig, m.left);
    m.right = on_device(rig, m.right);
    m.result = on_device(rig, m.result);
    rig_must(cuda_copy_to_device(rig->device_slot, rig->slot, t->used_bytes, rig->stream),
             "copying");
    rig_must(cuda_multiply(blas, &m, rig->stream), "multiplying");
    wait_for(rig, to, t->used_bytes);
}

static void check_dtype(struct checkcuda *c, enum dtype dtype, bool is_tf32)
{
    struct multiply_trial t;
    char name[64];
    snprintf(name, sizeof(name), "multiply %s%s", dtype_name(dtype), is_tf32 ? " tf32" : "");
    if ((c->check.filter && !strstr(name, c->check.filter)) || (dtype_is_float(dtype) && !blas))
        return;
    check_restart(&c->check, name, 0);
    for (unsigned i = 0; i < 2 * c->check.n_trials; i++) {
        draw_trial(&t, dtype, is_tf32, i, c->rig->slot);
        run(c->rig, &t, c->rig->back);
        run(c->rig, &t, c->rig->fill);
        c->check.n_run++;
        const char *what = memcmp(c->rig->back, c->rig->fill, t.used_bytes)
                               ? "other bits the second time"
                               : compare(c->rig, &t);
        if (what) {
            report(c, &t, what);
            break;
        }
    }
    memset(c->rig->fill, RIG_FILL_BYTE, RIG_SLOT_BYTES);
}

static bool is_mirrored(const struct rig *rig, const struct multiply_trial *t)
{
    const struct cuda_multiply *m = &t->m;
    size_t item = dtype_size(m->dtype);
    for (int64_t matrix = 0; matrix < m->n_matrices; matrix++)
        for (int64_t i = 0; i < m->n_rows; i++)
            for (int64_t j = i + 1; j < m->n_rows; j++) {
                char *above = element(&m->result, matrix, i, j);
                memcpy(above, element(&m->result, matrix, j, i), item);
            }
    return memcmp(rig->back, rig->slot, t->used_bytes) == 0;
}

static void check_mirror(struct checkcuda *c, enum dtype dtype)
{
    char name[64];
    snprintf(name, sizeof(name), "multiply mirror %s", dtype_name(dtype));
    if (c->check.filter && !strstr(name, c->check.filter))
        return;
    check_restart(&c->check, name, 0);
    for (unsigned i = 0; i < c->check.n_trials; i++) {
        struct multiply_trial t = {.m = {.dtype = dtype, .n_matrices = 1}};
        struct cuda_multiply *m = &t.m;
        m->n_matrices = (int64_t)check_below(3) + 1;
        m->n_rows = m->n_columns = draw_extent(i);
        m->result = draw_matrix(&t, c->rig->slot, m->n_rows, m->n_rows, true);
        for (uint64_t j = 0; j < t.used_bytes; j++)
            c->rig->slot[j] = (char)check_random();
        struct cuda_matrix there = on_device(c->rig, m->result);
        rig_must(
            cuda_copy_to_device(c->rig->device_slot, c->rig->slot, t.used_bytes, c->rig->stream),
            "copying");
        rig_must(cuda_mirror(&there, (int64_t)dtype_size(dtype), m->n_matrices, m->n_rows,
                             c->rig->stream),
                 "mirroring");
        wait_for(c->rig, c->rig->back, t.used_bytes);
        c->check.n_run++;
        if (is_mirrored(c->rig, &t))
            continue;
        report(c, &t, "not what is below the diagonal, or more than that");
        return;
    }
}

static void open_blas(struct checkcuda *c)
{
    struct gad_error error = {0};
    rig_must(cuda_malloc(CUDA_BLAS_WORKSPACE_BYTES, &workspace), "a workspace");
    int r = cuda_blas_open(workspace, CUDA_BLAS_WORKSPACE_BYTES, c->rig->stream, &blas, &error);
    printf("%s\n", r ? error.message : cuda_blas_version(blas));
    if (r == GAD_DEVICE_FAULT)
        c->check.n_failed++;
    rig_must(cuda_multiply_warm_up(blas, c->rig->device_slot, RIG_SLOT_BYTES, c->rig->stream),
             "warming up");
    wait_for(c->rig, c->rig->back, 1);
}

void checkcuda_multiply(struct checkcuda *c)
{
    if (c->check.filter && strncmp(c->check.filter, "multiply", 8) != 0)
        return;
    open_blas(c);
    for (int d = 0; d < DTYPE_COUNT; d++)
        check_dtype(c, (enum dtype)d, false);
    check_dtype(c, DTYPE_FLOAT32, true);
    check_mirror(c, DTYPE_INT8);
    check_mirror(c, DTYPE_UINT16);
    check_mirror(c, DTYPE_FLOAT32);
    check_mirror(c, DTYPE_FLOAT64);
    blas = cuda_blas_close(blas);
    cuda_free(workspace);
}
