/* The steps that reductions are written with: which axes, under which mask, and one reduction of
 * the engines.
 *
 * Engines know SUM, PROD, MIN, MAX, COUNT_NONZERO, ARGMIN, ARGMAX, SQUARED_DEVIATIONS and BINCOUNT,
 * each over some axes of one array. A mask is a choice in front of them: what it leaves out is
 * replaced by a value that changes nothing. Where no axis is reduced (of a single number, or of
 * axis=()) they are instructions: each element is its own sum.
 *
 * Called by reductions.c, moments.c and norms.c.
 */
#include "kernels/expr/functions/reductions.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/keywords.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/scalar.h"

#include "proto/util.h"

#include <assert.h>

#define KTH_LINE_BYTES    64
#define KTH_LINE_ELEMENTS (KTH_LINE_BYTES / sizeof(union scalar))
#define KTH_SHARE_BESIDE  4 /* of the elements, where results of other passes lie beside them */

static const struct shape *source_shape(const struct reduce *k)
{
    return &k->l.c->graph.shapes[k->l.c->graph.nodes[k->src].shape];
}

/* ---- axes ---- */

void reduce_these_axes(struct reduce *k, uint32_t axes)
{
    const struct shape *shape = source_shape(k);
    k->axes = axes;
    k->n_reduced = 1;
    for (int i = 0; i < shape->ndim; i++)
        if (axes >> i & 1)
            k->n_reduced *= shape->dims[i];
}

bool reduce_is_open(const struct reduce *k)
{
    const struct shape *shape = source_shape(k);
    int64_t open_length = k->l.c->request->open_length;
    for (int i = 0; i < shape->ndim && open_length > 0; i++)
        if ((k->axes >> i & 1) && shape->dims[i] == open_length)
            return true;
    return false;
}

static void reduce_all_axes(struct reduce *k)
{
    reduce_these_axes(k, (uint32_t)((1ull << source_shape(k)->ndim) - 1));
}

static int bad_axis(struct reduce *k, uint32_t column, __int128 axis)
{
    const struct shape *shape = source_shape(k);
    char text[96], number[64];
    struct compiler *c = k->l.c;
    array_format_shape(shape->ndim, shape->dims, text, sizeof(text));
    int r = compiler_fail(c, GAD_BAD_SHAPE, column, "%s: axis %s is out of range for shape %s",
                          op_info((enum op)k->l.n->op)->name, scalar_format(axis, number), text);
    if (shape->ndim > 0)
        error_expected(c->error, "%d to %d", -shape->ndim, shape->ndim - 1);
    else
        error_expected(c->error, "no axis: the array has none");
    error_found(c->error, "%s", number);
    return r;
}

static int axis_twice(struct reduce *k, uint32_t column, int axis)
{
    int r = compiler_fail(k->l.c, GAD_BAD_SHAPE, column, "%s: axis %d is given twice",
                          op_info((enum op)k->l.n->op)->name, axis);
    error_expected(k->l.c->error, "each axis once");
    error_found(k->l.c->error, "%d twice", axis);
    return r;
}

static int read_axes(struct reduce *k)
{
    __int128 axes[ARRAY_MAX_NDIM];
    unsigned n;
    bool is_tuple;
    int ndim = source_shape(k)->ndim;
    const struct ast_node *given = literals_find(k->l.c, k->l.n, "axis");
    reduce_all_axes(k);
    if (given == NULL)
        return 0;
    int r = literals_integers(k->l.c, k->l.n, "axis", axes, &n, &is_tuple);
    uint32_t chosen = 0;
    if (r == 0 && ndim == 0 && !is_tuple && (axes[0] == 0 || axes[0] == -1))
        return 0; /* NumPy takes a single number as an array of one here */
    for (unsigned i = 0; r == 0 && i < n; i++) {
        if (axes[i] < -ndim || axes[i] >= ndim)
            return bad_axis(k, given->column, axes[i]);
        int axis = (int)axes[i] + (axes[i] < 0 ? ndim : 0);
        if (chosen >> axis & 1)
            return axis_twice(k, given->column, axis);
        chosen |= 1u << axis;
    }
    reduce_these_axes(k, chosen);
    return r;
}

/* ---- the mask ---- */

static int bad_mask_dtype(struct reduce *k, uint32_t column, enum dtype found)
{
    int r = compiler_fail(k->l.c, GAD_BAD_DTYPE, column,
                          "%s: 'where' must be bool, not %s; write x != 0",
                          op_info((enum op)k->l.n->op)->name, dtype_name(found));
    error_expected(k->l.c->error, "bool");
    error_found(k->l.c->error, "%s", dtype_name(found));
    return r;
}

/* It may be smaller than the source, not larger. */
static int check_mask_shape(struct reduce *k, uint32_t column)
{
    struct compiler *c = k->l.c;
    struct lower l = k->l;
    uint16_t both = lower_where(&l, k->mask, k->src, k->src);
    if (l.r != 0 || c->graph.nodes[both].shape == c->graph.nodes[k->src].shape)
        return l.r;
    const struct shape *mask = &c->graph.shapes[c->graph.nodes[k->mask].shape];
    char a[96], b[96];
    array_format_shape(source_shape(k)->ndim, source_shape(k)->dims, a, sizeof(a));
    array_format_shape(mask->ndim, mask->dims, b, sizeof(b));
    int r =
        compiler_fail(c, GAD_BAD_SHAPE, column, "%s: 'where' of shape %s does not broadcast to %s",
                      op_info((enum op)k->l.n->op)->name, b, a);
    error_expected(c->error, "%s", a);
    error_found(c->error, "%s", b);
    return r;
}

static int read_mask(struct reduce *k)
{
    struct compiler *c = k->l.c;
    k->mask = NODE_NONE;
    if (keywords_find((enum op)k->l.n->op, "where", 5) == keywords_count((enum op)k->l.n->op))
        return 0;
    const struct ast_node *given = literals_find(c, k->l.n, "where");
    if (given == NULL || (given->value.kind == VALUE_BOOL && given->value.integer != 0))
        return 0;
    enum dtype d = types_of(c, &given->value);
    if (d != DTYPE_BOOL)
        return bad_mask_dtype(k, given->column, d);
    int r = types_as(c, given->column, &given->value, d, &k->mask);
    return r ? r : check_mask_shape(k, given->column);
}

void reduce_ignore_nan(struct reduce *k)
{
    if (!dtype_is_float(types_of_node(k->l.c, k->src)))
        return;
    uint16_t is_number = lower_binary(&k->l, OP_EQUAL, k->src, k->src);
    k->mask =
        k->mask == NODE_NONE ? is_number : lower_binary(&k->l, OP_BITWISE_AND, k->mask, is_number);
}

uint16_t reduce_masked(struct reduce *k, uint16_t src, const struct value *otherwise)
{
    if (k->l.r != 0 || k->mask == NODE_NONE)
        return src;
    return lower_where(&k->l, k->mask, src,
                       lower_value(&k->l, otherwise, types_of_node(k->l.c, src)));
}

/* ---- reductions ---- */

static enum dtype result_dtype(enum op op, enum dtype d)
{
    switch (op) {
    case OP_MIN:
    case OP_MAX: return d;
    case OP_COUNT_NONZERO:
    case OP_ARGMIN:
    case OP_ARGMAX: return DTYPE_INT64;
    default:
        if (dtype_is_float(d) || op == OP_SQUARED_DEVIATIONS)
            return DTYPE_FLOAT64;
        return dtype_is_unsigned(d) ? DTYPE_UINT64 : DTYPE_INT64;
    }
}

/* Of each element by itself. */
static uint16_t reduce_nothing(struct reduce *k, enum op op, uint16_t src)
{
    struct compiler *c = k->l.c;
    uint16_t node = src;
    switch (op) {
    case OP_MIN:
    case OP_MAX: return src;
    case OP_COUNT_NONZERO:
        return lower_cast(&k->l, lower_cast(&k->l, src, DTYPE_BOOL), DTYPE_INT64);
    case OP_ARGMIN:
    case OP_ARGMAX:
        k->l.r =
            graph_const(c, DTYPE_INT64, (union scalar){.u64 = 0}, c->graph.nodes[src].shape, &node);
        return node;
    case OP_SQUARED_DEVIATIONS: /* NaN of infinity */
        node = lower_cast(&k->l, src, DTYPE_FLOAT64);
        return lower_binary(&k->l, OP_SUBTRACT, node, node);
    default: return lower_cast(&k->l, src, result_dtype(op, types_of_node(c, src)));
    }
}

/* Sums are in double anyway, and of integers in 64 bits. */
static uint16_t before_widening(const struct graph *g, enum op op, uint16_t src)
{
    const struct graph_node *n = &g->nodes[src];
    enum dtype from = (enum dtype)n->compute, to = (enum dtype)n->dtype;
    bool is_cast = n->kind == NODE_INSN && n->op == OP_CAST && narrow_is_lossless(from, to) &&
                   dtype_is_float(from) == dtype_is_float(to);
    bool is_sum = op == OP_SUM || op == OP_PROD || op == OP_SQUARED_DEVIATIONS;
    return is_cast && is_sum && result_dtype(op, from) == result_dtype(op, to) ? n->src[0] : src;
}

/* ---- streams ---- */

static bool is_of_stream(const struct compiler *c, const struct graph_node *src)
{
    bool is_of = false;
    for (uint64_t left = src->reads; left && !is_of; left &= left - 1) {
        const struct request_arg *arg = &c->request->args[__builtin_ctzll(left)];
        is_of = !arg->is_scalar && arg->array.at.kind == LOCATION_PROVIDER &&
                arg->array.at.provider.is_stream;
    }
    return is_of;
}

/* Whether it is the same of all elements, and of what it is of those along an axis. */
static bool can_be_nested(enum op op)
{
    return op == OP_SUM || op == OP_PROD || op == OP_MIN || op == OP_MAX || op == OP_COUNT_NONZERO;
}

static bool has_first_axis(uint32_t axes)
{
    return (axes & 1) && axes != 1;
}

bool reduce_streams_apart(const struct compiler *c)
{
    const struct graph *g = &c->graph;
    uint32_t axes = 0;
    bool are_apart = false, can_help = false;
    for (unsigned i = 0; i < g->n_nodes; i++) {
        const struct graph_node *n = &g->nodes[i];
        if (n->kind != NODE_REDUCTION || !is_of_stream(c, &g->nodes[n->src[0]]))
            continue;
        are_apart |= axes != 0 && axes != n->reduced_axes;
        can_help |= has_first_axis(n->reduced_axes) && can_be_nested((enum op)n->op);
        axes = n->reduced_axes;
    }
    return are_apart && can_help;
}

static bool is_nested(const struct reduce *k, enum op op, uint16_t src)
{
    const struct compiler *c = k->l.c;
    return c->is_first_axis_first && can_be_nested(op) && has_first_axis(k->axes) &&
           is_of_stream(c, &c->graph.nodes[src]);
}

/* ---- one reduction ---- */

static uint16_t reduce_as(struct reduce *k, enum op op, uint16_t src, bool keeps_dims)
{
    struct compiler *c = k->l.c;
    uint16_t node = 0;
    if (k->l.r != 0)
        return node;
    if (k->axes == 0)
        return reduce_nothing(k, op, src);
    k->l.r = axes_check(c, src, &c->graph.shapes[c->graph.nodes[src].shape]);
    if (k->l.r != 0)
        return node;
    src = before_widening(&c->graph, op, src);
    if (is_nested(k, op, src)) {
        k->l.r = graph_reduce(c, op, result_dtype(op, types_of_node(c, src)), src, 1, true, &src);
        op = op == OP_COUNT_NONZERO ? OP_SUM : op;
    }
    if (k->l.r == 0)
        k->l.r = graph_reduce(c, op, result_dtype(op, types_of_node(c, src)), src, k->axes,
                              keeps_dims, &node);
    return node;
}

uint16_t reduce_by(struct reduce *k, enum op op, uint16_t src)
{
    return reduce_as(k, op, src, k->keeps_dims);
}

uint16_t reduce_by_keeping(struct reduce *k, enum op op, uint16_t src)
{
    return reduce_as(k, op, src, true);
}

/* Shapes are aligned to the right: axes that are kept must not move. */
static bool must_keep(const struct reduce *k)
{
    int ndim = source_shape(k)->ndim, n_reduced = __builtin_popcount(k->axes);
    bool are_leading = k->axes == (uint32_t)((1ull << n_reduced) - 1);
    return k->keeps_dims || (!are_leading && n_reduced < ndim);
}

uint16_t reduce_beside(struct reduce *k, enum op op, uint16_t src)
{
    return reduce_as(k, op, src, must_keep(k));
}

uint16_t reduce_sum(struct reduce *k, uint16_t src, bool from_minus_zero)
{
    uint16_t node = 0;
    if (k->axes == 0 && !from_minus_zero)
        return lower_binary(&k->l, OP_ADD, lower_cast(&k->l, src, DTYPE_FLOAT64),
                            lower_float(&k->l, DTYPE_FLOAT64, 0));
    if (k->axes == 0 || !from_minus_zero)
        return reduce_by(k, OP_SUM, src);
    if (k->l.r == 0)
        k->l.r = axes_check(k->l.c, src, source_shape(k));
    if (k->l.r == 0)
        k->l.r = graph_sum_from_minus_zero(k->l.c, before_widening(&k->l.c->graph, OP_SUM, src),
                                           k->axes, k->keeps_dims, &node);
    return node;
}

uint16_t reduce_bincount(struct reduce *k, uint16_t bins, uint16_t weights, uint32_t n_bins,
                         bool is_cumulative)
{
    struct compiler *c = k->l.c;
    uint16_t node = 0, over = c->graph.nodes[k->src].shape;
    uint32_t axes = k->axes;
    if (k->l.r == 0 && source_shape(k)->ndim == 0) {
        k->l.r = graph_shape(c, 0, 1, (int64_t[]){1}, false, &over);
        axes = 1;
    }
    assert(axes != 0);
    if (k->l.r == 0)
        k->l.r = graph_bincount(c, bins, weights, over, axes, must_keep(k), n_bins, is_cumulative,
                                &node);
    return node;
}

/* Chunks are read once where they stay whole, which a cell's elements need not be in. */
bool reduce_has_kth(const struct reduce *k)
{
    const struct compiler *c = k->l.c;
    const struct graph_node *src = &c->graph.nodes[k->src];
    uint64_t most =
        src->level > 0 ? PROGRAM_MAX_KTH_ELEMENTS / KTH_SHARE_BESIDE : PROGRAM_MAX_KTH_ELEMENTS;
    for (uint64_t left = src->reads; left; left &= left - 1)
        if (array_chunk_shape(&c->request->args[__builtin_ctzll(left)].array))
            return false;
    if (src->reads)
        most = min_u64(most, PROGRAM_MAX_KTH_BYTES / KTH_LINE_BYTES /
                                 (unsigned)__builtin_popcountll(src->reads) * KTH_LINE_ELEMENTS);
    return k->axes != 0 && k->n_reduced > 1 && (uint64_t)k->n_reduced <= most;
}

uint16_t reduce_kth(struct reduce *k, uint16_t keys, const struct kth_rank *place)
{
    uint16_t node = 0;
    if (k->l.r == 0)
        k->l.r = graph_kth(k->l.c, keys, k->axes, must_keep(k), place, &node);
    return node;
}

uint16_t reduce_repeat(struct reduce *k, uint16_t value)
{
    uint16_t shape = 0, node = 0;
    if (k->l.r == 0)
        k->l.r = graph_shape_reduced(k->l.c, k->l.c->graph.nodes[k->src].shape, k->axes,
                                     k->keeps_dims, &shape);
    if (k->l.r == 0)
        k->l.r = graph_const(k->l.c, DTYPE_BOOL, (union scalar){.u64 = 1}, shape, &node);
    return lower_where(&k->l, node, value, value);
}

uint16_t reduce_count(struct reduce *k, bool is_beside)
{
    struct compiler *c = k->l.c;
    uint16_t all = 0, shape = c->graph.nodes[k->src].shape;
    if (k->mask == NODE_NONE && !reduce_is_open(k))
        return lower_float(&k->l, DTYPE_FLOAT64, (double)k->n_reduced);
    if (k->l.r != 0)
        return 0;
    if (k->mask == NODE_NONE || c->graph.nodes[k->mask].shape != shape)
        k->l.r = graph_const(c, DTYPE_BOOL, (union scalar){.u64 = 1}, shape, &all);
    if (k->mask != NODE_NONE)
        all = all != 0 ? lower_binary(&k->l, OP_BITWISE_AND, k->mask, all) : k->mask;
    all = is_beside ? reduce_beside(k, OP_COUNT_NONZERO, all) : reduce_by(k, OP_COUNT_NONZERO, all);
    return lower_cast(&k->l, all, DTYPE_FLOAT64);
}

int reduce_check_not_empty(struct reduce *k)
{
    const struct shape *shape = source_shape(k);
    struct compiler *c = k->l.c;
    if (k->n_reduced > 0 && reduce_is_open(k))
        c->needs_elements = (int16_t)k->l.n->op;
    if (k->n_reduced > 0)
        return 0;
    char text[96];
    array_format_shape(shape->ndim, shape->dims, text, sizeof(text));
    int r = compiler_fail(c, GAD_BAD_SHAPE, k->l.n->column,
                          "zero-size array to reduction operation %s which has no identity",
                          op_info((enum op)k->l.n->op)->name);
    error_expected(c->error, "at least one element");
    error_found(c->error, "%s", text);
    return r;
}

int reduce_begin(struct reduce *k, struct compiler *c, const struct ast_node *n,
                 const struct value *args)
{
    *k = (struct reduce){.l = {c, n, 0}, .mask = NODE_NONE};
    int r = types_as_node(c, n->column, &args[0], &k->src);
    if (r == 0)
        r = axes_check(c, k->src, source_shape(k));
    if (r == 0)
        r = read_axes(k);
    if (r == 0)
        r = literals_flag(c, n, "keepdims", &k->keeps_dims);
    return r ? r : read_mask(k);
}

int reduce_finish(struct reduce *k, uint16_t node, struct value *ret)
{
    return lower_finish(&k->l, node, ret);
}
