/* Matrix products of integers and bools: operands are packed into the caller's scratch, and tiles
 * computed from there (multiply_tile.c).
 *
 *                 a stripe of columns, as many as the scratch holds of PACKED_DEPTH rows
 *                +-------+-------+-------+
 *                | panel | panel | panel |  the right operand: packed once for all rows
 *                +-------+-------+-------+
 *     +-------+  +-------+-------+-------+
 *     | rows  |  | tile  | tile  | tile  |  the left operand: a tile's rows at a time,
 *     +-------+  +-------+-------+-------+  which stay in the first-level cache
 *
 * Sums wrap, so no order of additions shows in the result.
 *
 * Called by multiply.c.
 */
#include "kernels/cpu/multiply/multiply_internal.h"

#include "kernels/cpu/multiply/multiply_kernels.h"
#include "proto/util.h"

#include <assert.h>

#define PACKED_DEPTH    256
#define LEFT_BYTES      (MULTIPLY_MAX_TILE_ROWS * PACKED_DEPTH * 8)
#define RIGHT_MAX_BYTES (576u * 1024u - LEFT_BYTES)

_Static_assert(LEFT_BYTES + RIGHT_MAX_BYTES <= CPU_SCRATCH_BYTES, "both are in the scratch");
_Static_assert(RIGHT_MAX_BYTES >= PACKED_DEPTH * MULTIPLY_MAX_TILE_BYTES, "a panel fits");

/* A stripe along one piece of the depth. */
struct stripe {
    const struct multiply_job *job;
    int64_t column, n_columns, first, depth;
    size_t width, packed_bytes; /* columns of a tile; bytes of a packed item */
    char *left, *right;
};

/* Bytes are multiplied as 16-bit integers. */
static size_t packed_bytes_of(enum dtype dtype)
{
    return dtype == DTYPE_INT8 || dtype == DTYPE_UINT8 ? 2 : dtype_size(dtype);
}

static char *panel_of(const struct stripe *s, int64_t column)
{
    return s->right + (size_t)column * (size_t)s->depth * s->packed_bytes;
}

static void pack_right(const struct stripe *s)
{
    const struct cpu_matrix *m = s->job->right;
    for (int64_t j = 0; j < s->n_columns; j += (int64_t)s->width) {
        struct multiply_pack pack = {
            .n = min_u64(s->width, (uint64_t)(s->n_columns - j)),
            .width = s->width,
            .depth = (size_t)s->depth,
            .src =
                (const char *)m->base + s->first * m->row_bytes + (s->column + j) * m->column_bytes,
            .lane_bytes = m->column_bytes,
            .depth_bytes = m->row_bytes,
            .dst = panel_of(s, j),
        };
        s->job->engine->tiles->pack[s->job->dtype](&pack);
    }
}

static void pack_left(const struct stripe *s, int64_t row, size_t n_rows)
{
    const struct cpu_matrix *m = s->job->left;
    struct multiply_pack pack = {
        .n = n_rows,
        .width = s->job->engine->tiles->n_rows,
        .depth = (size_t)s->depth,
        .src = (const char *)m->base + row * m->row_bytes + s->first * m->column_bytes,
        .lane_bytes = m->row_bytes,
        .depth_bytes = m->column_bytes,
        .dst = s->left,
    };
    s->job->engine->tiles->pack[s->job->dtype](&pack);
}

static void multiply_tiles(const struct stripe *s, int64_t row, size_t n_rows)
{
    const struct multiply_job *job = s->job;
    int64_t item_bytes = (int64_t)dtype_size(job->dtype);
    for (int64_t j = 0; j < s->n_columns; j += (int64_t)s->width) {
        struct multiply_tile tile = {
            .depth = (size_t)s->depth,
            .left = s->left,
            .right = panel_of(s, j),
            .result = job->result + row * job->row_bytes + (s->column + j) * item_bytes,
            .row_bytes = job->row_bytes,
            .rows = n_rows,
            .columns = min_u64(s->width, (uint64_t)(s->n_columns - j)),
            .is_added = job->is_added || s->first > 0,
        };
        job->engine->tiles->multiply[job->dtype](&tile);
    }
}

static void multiply_stripe(const struct stripe *s)
{
    int64_t step = (int64_t)s->job->engine->tiles->n_rows;
    pack_right(s);
    for (int64_t row = 0; row < s->job->n_rows; row += step) {
        size_t n_rows = min_u64((uint64_t)step, (uint64_t)(s->job->n_rows - row));
        pack_left(s, row, n_rows);
        multiply_tiles(s, row, n_rows);
    }
}

void multiply_blocks(const struct multiply_job *job)
{
    struct stripe s = {.job = job, .packed_bytes = packed_bytes_of(job->dtype)};
    s.width = job->engine->tiles->row_bytes / s.packed_bytes;
    s.left = job->scratch;
    s.right = s.left + LEFT_BYTES;
    int64_t widest = (int64_t)(RIGHT_MAX_BYTES / (PACKED_DEPTH * s.packed_bytes * s.width));
    widest *= (int64_t)s.width;
    for (; s.column < job->n_columns; s.column += widest) {
        s.n_columns = (int64_t)min_u64((uint64_t)widest, (uint64_t)(job->n_columns - s.column));
        for (s.first = 0; s.first < job->depth; s.first += PACKED_DEPTH) {
            s.depth = (int64_t)min_u64(PACKED_DEPTH, (uint64_t)(job->depth - s.first));
            multiply_stripe(&s);
        }
    }
}
