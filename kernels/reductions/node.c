/* Nodes: where their planes lie, what they hold before anything was taken in, combining two.
 *
 *     | header | plane | plane | ...        reductions in order, each with one plane or two
 *       64
 *
 * Planes are as long as if their values had 8 bytes, whatever they have: all that are not of counts
 * have plane_bytes. They begin at multiples of 64 bytes.
 *
 * Pure code on memory that is given. Called by both engines (layouts, planes), by stack.c and
 * tree.c (combining) and by results.c (values).
 */
#include "kernels/reductions/combine.h"
#include "kernels/reductions/reduce.h"
#include "proto/util.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define HEADER_BYTES 64

_Static_assert(sizeof(struct reduce_header) <= HEADER_BYTES, "the header has its own line");

static bool is_argument(const struct reduction *reduction)
{
    return reduction->op == OP_ARGMIN || reduction->op == OP_ARGMAX;
}

unsigned reduce_n_planes(const struct reduction *reduction)
{
    return is_argument(reduction) || reduction->op == OP_SQUARED_DEVIATIONS ? 2 : 1;
}

enum dtype reduce_plane_dtype(const struct reduction *reduction, unsigned plane)
{
    if (is_argument(reduction) && plane == 0)
        return (enum dtype)reduction->src.dtype;
    return (enum dtype)reduction->result;
}

uint64_t reduce_values_per_cell(const struct reduction *reduction)
{
    uint64_t n = max_u64(reduction->n_bins, 1);

    return reduction->op == OP_QR_R ? n * n : n;
}

uint64_t reduce_n_values(const struct reduce_layout *layout, unsigned i)
{
    return layout->n_cells * reduce_values_per_cell(&layout->reductions[i]);
}

/* All planes of reduction i. */
static uint64_t planes_bytes(const struct reduce_layout *layout, unsigned i)
{
    const struct reduction *r = &layout->reductions[i];

    if (r->n_bins == 0)
        return reduce_n_planes(r) * layout->plane_bytes;
    return round_up_u64(reduce_n_values(layout, i) * sizeof(union scalar), 64);
}

/* Whether nodes may be combined one after the other: it is exact in any order, or, of triangles, a
 * pass has tiles of one leaf (plan/tiles.c), so that there is one order. */
static bool is_in_a_row(const struct reduction *r)
{
    return r->op == OP_QR_R || (!dtype_is_float((enum dtype)r->result) && !is_argument(r));
}

void reduce_layout_init(struct reduce_layout *layout, const struct program *program, unsigned pass,
                        uint64_t n_cells)
{
    const struct pass *p = &program->passes[pass];

    *layout = (struct reduce_layout){
        .reductions = &program->reductions[p->first_reduction],
        .n_reductions = p->n_reductions,
        .n_cells = n_cells,
        .plane_bytes = round_up_u64(n_cells * sizeof(union scalar), 64),
        .n_bytes = HEADER_BYTES,
    };
    bool has_bins = false, are_in_a_row = true;
    for (unsigned i = 0; i < p->n_reductions; i++) {
        layout->n_bytes += planes_bytes(layout, i);
        has_bins |= layout->reductions[i].n_bins > 0;
        are_in_a_row &= is_in_a_row(&layout->reductions[i]);
    }
    layout->is_flat = has_bins && are_in_a_row;
}

void *reduce_plane(const struct reduce_layout *layout, const void *node, unsigned i, unsigned plane)
{
    uint64_t offset = HEADER_BYTES + plane * layout->plane_bytes;

    assert(i < layout->n_reductions && plane < reduce_n_planes(&layout->reductions[i]));
    for (unsigned k = 0; k < i; k++)
        offset += planes_bytes(layout, k);
    return (char *)node + offset;
}

static union scalar largest(enum dtype dtype)
{
    unsigned n_bits = 8 * (unsigned)dtype_size(dtype);

    if (dtype == DTYPE_FLOAT64)
        return (union scalar){.f64 = INFINITY};
    if (dtype == DTYPE_FLOAT32)
        return (union scalar){.f32 = INFINITY};
    if (dtype == DTYPE_BOOL)
        return (union scalar){.u64 = 1};
    if (dtype_is_signed(dtype))
        return (union scalar){.i64 = INT64_MAX >> (64 - n_bits)};
    return (union scalar){.u64 = UINT64_MAX >> (64 - n_bits)};
}

static union scalar smallest(enum dtype dtype)
{
    if (dtype == DTYPE_FLOAT64)
        return (union scalar){.f64 = -INFINITY};
    if (dtype == DTYPE_FLOAT32)
        return (union scalar){.f32 = -INFINITY};
    if (dtype_is_signed(dtype))
        return (union scalar){.i64 = -largest(dtype).i64 - 1};
    return (union scalar){.u64 = 0};
}

static union scalar identity_of(const struct reduction *reduction, unsigned plane)
{
    enum dtype dtype = reduce_plane_dtype(reduction, plane);

    if (is_argument(reduction) && plane == 1)
        return (union scalar){.i64 = -1};
    if (reduction->op == OP_MIN || reduction->op == OP_ARGMIN)
        return largest(dtype);
    if (reduction->op == OP_MAX || reduction->op == OP_ARGMAX)
        return smallest(dtype);
    if (reduction->op == OP_PROD && dtype == DTYPE_FLOAT64)
        return (union scalar){.f64 = 1.0};
    return (union scalar){.u64 = reduction->op == OP_PROD};
}

/* Little endian: an integer's lowest bytes come first, a float has the size of its member. */
static void fill(char *values, size_t item_bytes, uint64_t n, union scalar value)
{
    for (uint64_t i = 0; i < n; i++)
        memcpy(values + i * item_bytes, &value, item_bytes);
}

void reduce_fill_identity(const struct reduction *reduction, uint64_t n, void *values)
{
    unsigned last = reduce_n_planes(reduction) - 1;

    fill(values, dtype_size((enum dtype)reduction->result), n, identity_of(reduction, last));
}

void reduce_identity(const struct reduce_layout *layout, void *node)
{
    ((struct reduce_header *)node)->n_elements = 0;
    for (unsigned i = 0; i < layout->n_reductions; i++) {
        const struct reduction *r = &layout->reductions[i];
        for (unsigned plane = 0; plane < reduce_n_planes(r); plane++)
            fill(reduce_plane(layout, node, i, plane), dtype_size(reduce_plane_dtype(r, plane)),
                 reduce_n_values(layout, i), identity_of(r, plane));
    }
}

static void combine_one(const struct reduce_layout *layout, unsigned i, void *left, void *right)
{
    const struct reduction *r = &layout->reductions[i];
    enum dtype dtype = reduce_plane_dtype(r, 0);
    void *own = reduce_plane(layout, left, i, 0), *other = reduce_plane(layout, right, i, 0);

    if (r->op == OP_QR_R) {
        combine_triangles(r->n_bins, own, other);
        return;
    }
    if (reduce_n_planes(r) == 1) {
        combine_values((enum op)r->op, dtype, reduce_n_values(layout, i), own, other);
        return;
    }
    void *second = reduce_plane(layout, left, i, 1), *others = reduce_plane(layout, right, i, 1);
    if (is_argument(r)) {
        combine_arguments(r->op == OP_ARGMIN, dtype, layout->n_cells, own, second, other, others);
        return;
    }
    const struct reduce_header *header = left, *other_header = right;
    combine_deviations(layout->n_cells, &(struct deviations){own, second, header->n_elements},
                       &(struct deviations){other, others, other_header->n_elements});
}

void reduce_combine(const struct reduce_layout *layout, void *left, void *right)
{
    struct reduce_header *header = left;
    const struct reduce_header *other = right;

    if (other->n_elements == 0)
        return;
    if (header->n_elements == 0) {
        memcpy(left, right, layout->n_bytes);
        return;
    }
    for (unsigned i = 0; i < layout->n_reductions; i++)
        combine_one(layout, i, left, right);
    header->n_elements += other->n_elements;
}

const void *reduce_values(const struct reduce_layout *layout, const void *node, unsigned i)
{
    return reduce_plane(layout, node, i, reduce_n_planes(&layout->reductions[i]) - 1);
}
