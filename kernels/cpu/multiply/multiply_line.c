/* Matrix products with one row or one column: a matrix times a vector.
 *
 * Both are the same with the operands and their axes exchanged: of a matrix with n lines along the
 * depth, each line times the vector is one element of the result. The depth is done in pieces that
 * the scratch has room for, begun at the same places always; each adds its sums to the result. A
 * vector whose elements do not lie side by side is copied there.
 *
 *     scratch    | the vector's piece, dense | sums |
 *
 * What comes out depends on the layout of the matrix (which is told to the kernels), the extents
 * and the values, not on gaps.
 *
 * Called by multiply.c.
 */
#include "kernels/cpu/multiply/multiply_internal.h"

#include "kernels/cpu/multiply/multiply_kernels.h"
#include "proto/util.h"

#include <string.h>

#define PIECE_DEPTH 16384
#define PIECE_SUMS  2048
#define SUMS_OFFSET (PIECE_DEPTH * 8)

_Static_assert(SUMS_OFFSET + PIECE_SUMS * 8 <= CPU_SCRATCH_BYTES, "both are in the scratch");

struct line {
    const struct multiply_job *job;
    size_t item_bytes;
    int64_t n; /* lines of the matrix, elements of the result */
    const char *matrix, *vector;
    int64_t line_bytes, depth_bytes; /* of the matrix: from line to line, along the depth */
    int64_t vector_bytes,
        sums_bytes; /* from one element of the vector, of the result, to the next */
};

static struct line line_of(const struct multiply_job *job)
{
    struct line l = {.job = job, .item_bytes = dtype_size(job->dtype)};
    const struct cpu_matrix *left = job->left, *right = job->right;
    if (job->n_columns == 1) {
        l.n = job->n_rows;
        l.matrix = left->base, l.line_bytes = left->row_bytes, l.depth_bytes = left->column_bytes;
        l.vector = right->base, l.vector_bytes = right->row_bytes;
        l.sums_bytes = job->row_bytes;
    } else {
        l.n = job->n_columns;
        l.matrix = right->base, l.line_bytes = right->column_bytes,
        l.depth_bytes = right->row_bytes;
        l.vector = left->base, l.vector_bytes = left->column_bytes;
        l.sums_bytes = (int64_t)l.item_bytes;
    }
    return l;
}

/* The piece of the vector, dense. */
static const void *take_vector(const struct line *l, int64_t first, size_t depth)
{
    const char *from = l->vector + first * l->vector_bytes;
    char *to = l->job->scratch;
    if (l->vector_bytes == (int64_t)l->item_bytes)
        return from;
    for (size_t k = 0; k < depth; k++)
        memcpy(to + k * l->item_bytes, from + (int64_t)k * l->vector_bytes, l->item_bytes);
    return to;
}

static void multiply_piece(const struct line *l, int64_t first, size_t depth)
{
    const struct multiply_vectors *kernels = l->job->engine->vectors;
    enum dtype dtype = l->job->dtype;
    bool is_along = l->depth_bytes == (int64_t)l->item_bytes;
    struct multiply_vector v = {
        .depth = depth,
        .apart_bytes = is_along ? l->line_bytes : l->depth_bytes,
        .vector = take_vector(l, first, depth),
        .sums = (char *)l->job->scratch + SUMS_OFFSET,
    };
    for (int64_t i = 0; i < l->n; i += PIECE_SUMS) {
        v.n = min_u64(PIECE_SUMS, (uint64_t)(l->n - i));
        v.matrix = l->matrix + i * l->line_bytes + first * l->depth_bytes;
        (is_along ? kernels->along : kernels->across)[dtype](&v);
        kernels->add[dtype](v.n, l->job->result + i * l->sums_bytes, l->sums_bytes, v.sums,
                            l->job->is_added || first > 0);
    }
}

void multiply_line(const struct multiply_job *job)
{
    struct line l = line_of(job);
    for (int64_t k = 0; k < job->depth; k += PIECE_DEPTH)
        multiply_piece(&l, k, min_u64(PIECE_DEPTH, (uint64_t)(job->depth - k)));
}
