/* Types widened as late as possible.
 *
 *     where(c, float64(f), float64(g))     float64(where(c, f, g))
 *     minimum(float64(i), 3.0)             float64(minimum(i, int8(3)))
 *     float64(i) < float64(j)              i < j
 *     float64(float32(i))                  float64(i)
 *
 * Selections, minima, maxima and comparisons only look at values or pass them on, so behind
 * conversions that keep every value they give the same as before them, to the bit, and move fewer
 * bytes. Constants take part where the narrower dtype has their value. Since such casts are never
 * stacked (the last line), what is narrowed once cannot be narrowed again.
 *
 * Called by graph.c for each operation.
 */
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"

#include <string.h>

/* Bits of the integers that a dtype holds without gaps, the sign left out. */
static unsigned whole_bits(enum dtype d)
{
    switch (d) {
    case DTYPE_BOOL: return 1;
    case DTYPE_FLOAT32: return 24;
    case DTYPE_FLOAT64: return 53;
    default: return (unsigned)dtype_size(d) * 8 - dtype_is_signed(d);
    }
}

bool narrow_is_lossless(enum dtype from, enum dtype to)
{
    if (from == to)
        return true;
    if (to == DTYPE_BOOL || (dtype_is_float(from) && !dtype_is_float(to)))
        return false;
    if (dtype_is_signed(from) && dtype_is_unsigned(to))
        return false;
    return whole_bits(from) <= whole_bits(to);
}

static bool is_lossless_cast(const struct graph_node *n)
{
    return n->kind == NODE_INSN && n->op == OP_CAST &&
           narrow_is_lossless((enum dtype)n->compute, (enum dtype)n->dtype);
}

/* To an integer that may not hold the value, floats and integers are cast differently: that stays.
 */
uint16_t narrow_cast_source(const struct graph *g, uint16_t src, enum dtype dtype)
{
    const struct graph_node *n = &g->nodes[src];
    enum dtype from = (enum dtype)n->compute, mid = (enum dtype)n->dtype;
    if (!is_lossless_cast(n))
        return src;
    bool is_kept =
        dtype_is_integer(dtype) && dtype_is_float(mid) && !narrow_is_lossless(from, dtype);
    return is_kept ? src : n->src[0];
}

static bool passes_values_on(enum op op)
{
    return op == OP_WHERE || op == OP_MINIMUM || op == OP_MAXIMUM || op == OP_FMIN || op == OP_FMAX;
}

static enum op narrow_name(enum op op, enum dtype dtype)
{
    if (dtype_is_float(dtype) || (op != OP_FMIN && op != OP_FMAX))
        return op;
    return op == OP_FMIN ? OP_MINIMUM : OP_MAXIMUM;
}

/* The constant in the narrower dtype; false where that has not its value. */
static bool narrow_const(const struct graph_node *n, enum dtype from, union scalar *ret)
{
    enum dtype wide = (enum dtype)n->dtype;
    union scalar back;
    memset(ret, 0, sizeof(*ret));
    memset(&back, 0, sizeof(back));
    if (!fold_cast(wide, n->value, from, ret) || !fold_cast(from, *ret, wide, &back))
        return false;
    return back.u64 == n->value.u64;
}

/* The one dtype before the casts; DTYPE_COUNT where they differ, or where there is none. */
static enum dtype source_dtype(const struct graph *g, unsigned n_src, const uint16_t *src)
{
    enum dtype from = DTYPE_COUNT;
    for (unsigned i = 0; i < n_src; i++) {
        const struct graph_node *n = &g->nodes[src[i]];
        if (n->kind == NODE_CONST)
            continue;
        if (!is_lossless_cast(n) || (from != DTYPE_COUNT && from != n->compute))
            return DTYPE_COUNT;
        from = (enum dtype)n->compute;
    }
    return from;
}

int narrow_op(struct compiler *c, enum op op, enum dtype compute, unsigned n_src,
              const uint16_t *src, bool *ret_is_narrower, struct narrowed *ret)
{
    const struct graph *g = &c->graph;
    unsigned first = op == OP_WHERE ? 1 : 0;
    union scalar values[3];
    *ret_is_narrower = false;
    if (!passes_values_on(op) && op_info(op)->rule != OP_RULE_COMPARE)
        return 0;
    enum dtype from = source_dtype(g, n_src - first, src + first);
    if (from == DTYPE_COUNT || (from == DTYPE_BOOL && op != OP_WHERE))
        return 0;
    for (unsigned i = first; i < n_src; i++) {
        const struct graph_node *n = &g->nodes[src[i]];
        if (n->dtype != compute) /* int64 with uint64 */
            return 0;
        if (n->kind == NODE_CONST && !narrow_const(n, from, &values[i]))
            return 0;
    }
    *ret = (struct narrowed){.op = narrow_name(op, from), .compute = from, .src = {src[0]}};
    for (unsigned i = first; i < n_src; i++) {
        const struct graph_node *n = &g->nodes[src[i]];
        ret->src[i] = n->src[0];
        int r = n->kind != NODE_CONST ? 0 : graph_const(c, from, values[i], n->shape, &ret->src[i]);
        if (r)
            return r;
    }
    *ret_is_narrower = true;
    return 0;
}
