/* Reductions, counts, tables and scans as nodes of the graph.
 *
 * Each is evaluated in a pass of a shape of its own, `over`, to which its sources broadcast: mostly
 * its source's, for a table (1, n), so that a result is there that lookups can read as a whole.
 * What a reduction gives has the axes that it keeps, and an axis of bins behind them where it
 * counts; it can be used one level of passes later. A scan is stored while it runs, so it is a
 * whole output: what else is to be computed with it must be another job's.
 *
 * Called by the rules of reductions and counts; graph.c has all other nodes.
 */
#include "kernels/expr/schedule/build.h"

#include <string.h>

bool graph_is_lookup(enum op op)
{
    return op == OP_SEARCH_LEFT || op == OP_SEARCH_RIGHT || op == OP_TAKE;
}

int graph_used_scan(struct compiler *c, uint32_t column, enum op op)
{
    int r =
        compiler_fail(c, GAD_BAD_EXPRESSION, column,
                      "%s can only be a whole output: store it, then compute with what is stored",
                      op_info(op)->name);
    error_expected(c->error, "an output %s(...) and nothing around it; dtype=... is its argument",
                   op_info(op)->name);
    error_found(c->error, "%s(...) in an expression", op_info(op)->name);
    return r;
}

static int too_many_axes(struct compiler *c)
{
    int r =
        compiler_fail(c, GAD_LIMIT_EXCEEDED, 0, "counts have one axis more, which is one too many");
    error_expected(c->error, "at most %d axes", ARRAY_MAX_NDIM);
    error_found(c->error, "%d", ARRAY_MAX_NDIM + 1);
    return r;
}

static int shape_of_result(struct compiler *c, uint16_t over, uint32_t axes, bool keeps_dims,
                           uint32_t n_bins, bool is_square, uint16_t *ret)
{
    const struct shape *s = &c->graph.shapes[over];
    int64_t dims[ARRAY_MAX_NDIM + 2];
    int ndim = 0;
    for (int i = 0; i < s->ndim; i++) {
        bool is_reduced = axes >> i & 1;
        if (!is_reduced || keeps_dims)
            dims[ndim++] = is_reduced ? 1 : s->dims[i];
    }
    if (n_bins > 0)
        dims[ndim++] = n_bins;
    if (is_square)
        dims[ndim++] = n_bins;
    if (ndim > ARRAY_MAX_NDIM)
        return too_many_axes(c);
    return graph_shape(c, 0, ndim, dims, false, ret);
}

int graph_shape_reduced(struct compiler *c, uint16_t shape, uint32_t axes, bool keeps_dims,
                        uint16_t *ret)
{
    return shape_of_result(c, shape, axes, keeps_dims, 0, false, ret);
}

static int add_source(struct compiler *c, struct graph_node *key, uint16_t src)
{
    const struct graph_node *n = &c->graph.nodes[src];
    if (n->kind == NODE_SCAN)
        return graph_used_scan(c, 0, (enum op)n->op);
    key->src[key->n_src++] = src;
    if (n->level + 1 > key->level)
        key->level = n->level + 1;
    return 0;
}

int graph_reduce_over(struct compiler *c, enum op op, enum dtype dtype, uint16_t src, uint16_t over,
                      uint32_t axes, bool keeps_dims, uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_REDUCTION, dtype);
    key.op = (uint16_t)op;
    key.compute = c->graph.nodes[src].dtype;
    key.over = over;
    key.reduced_axes = axes;
    key.keeps_dims = keeps_dims;
    int r = add_source(c, &key, src);
    if (r == 0)
        r = shape_of_result(c, over, axes, keeps_dims, 0, false, &key.shape);
    return r ? r : graph_find_or_add(c, &key, ret);
}

int graph_sum_from_minus_zero(struct compiler *c, uint16_t src, uint32_t axes, bool keeps_dims,
                              uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_REDUCTION, DTYPE_FLOAT64);
    key.op = OP_SUM;
    key.compute = c->graph.nodes[src].dtype;
    key.over = c->graph.nodes[src].shape;
    key.reduced_axes = axes;
    key.keeps_dims = keeps_dims;
    key.has_minus_zero = 1;
    int r = add_source(c, &key, src);
    if (r == 0)
        r = shape_of_result(c, key.over, axes, keeps_dims, 0, false, &key.shape);
    return r ? r : graph_find_or_add(c, &key, ret);
}

int graph_reduce(struct compiler *c, enum op op, enum dtype dtype, uint16_t src, uint32_t axes,
                 bool keeps_dims, uint16_t *ret)
{
    return graph_reduce_over(c, op, dtype, src, c->graph.nodes[src].shape, axes, keeps_dims, ret);
}

int graph_kth(struct compiler *c, uint16_t src, uint32_t axes, bool keeps_dims,
              const struct kth_rank *place, uint16_t *ret)
{
    enum dtype dtype = (enum dtype)c->graph.nodes[src].dtype;
    struct graph_node key = graph_key(NODE_REDUCTION, dtype);
    key.op = OP_KTH;
    key.compute = (uint8_t)dtype;
    key.over = c->graph.nodes[src].shape;
    key.reduced_axes = axes;
    key.keeps_dims = keeps_dims;
    key.kth = *place;
    int r = add_source(c, &key, src);
    if (r == 0)
        r = shape_of_result(c, key.over, axes, keeps_dims, 0, false, &key.shape);
    return r ? r : graph_find_or_add(c, &key, ret);
}

int graph_bincount(struct compiler *c, uint16_t bins, uint16_t weights, uint16_t over,
                   uint32_t axes, bool keeps_dims, uint32_t n_bins, bool is_cumulative,
                   uint16_t *ret)
{
    struct graph_node key =
        graph_key(NODE_REDUCTION, weights == NODE_NONE ? DTYPE_INT64 : DTYPE_FLOAT64);
    key.op = OP_BINCOUNT;
    key.compute = DTYPE_INT64;
    key.over = over;
    key.reduced_axes = axes;
    key.keeps_dims = keeps_dims;
    key.is_cumulative = is_cumulative;
    key.n_bins = n_bins;
    int r = add_source(c, &key, bins);
    if (r == 0 && weights != NODE_NONE)
        r = add_source(c, &key, weights);
    if (r == 0)
        r = shape_of_result(c, over, axes, keeps_dims, n_bins, false, &key.shape);
    return r ? r : graph_find_or_add(c, &key, ret);
}

int graph_qr(struct compiler *c, uint16_t src, uint16_t column, uint32_t n_columns, uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_REDUCTION, DTYPE_FLOAT64);
    key.op = OP_QR_R;
    key.compute = DTYPE_FLOAT64;
    key.over = c->graph.nodes[src].shape;
    key.reduced_axes = 3;
    key.n_bins = n_columns;
    int r = add_source(c, &key, src);
    if (r == 0 && column != NODE_NONE)
        r = add_source(c, &key, column);
    if (r == 0)
        r = shape_of_result(c, key.over, key.reduced_axes, false, n_columns, true, &key.shape);
    return r ? r : graph_find_or_add(c, &key, ret);
}

int graph_table(struct compiler *c, uint16_t src, int64_t n, uint16_t *ret)
{
    const struct graph_node *node = &c->graph.nodes[src];
    const struct shape *shape = &c->graph.shapes[node->shape];
    uint16_t over;
    if (node->kind == NODE_REDUCTION && shape->ndim == 1 && shape->dims[0] == n) {
        *ret = src;
        return 0;
    }
    int r = graph_shape(c, 0, 2, (int64_t[]){1, n}, false, &over);
    if (r)
        return r;
    return graph_reduce_over(c, OP_MAX, (enum dtype)node->dtype, src, over, 1, false, ret);
}

int graph_scan(struct compiler *c, enum op op, enum dtype compute, enum dtype dtype, uint16_t src,
               int axis, uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_SCAN, dtype);
    key.op = (uint16_t)op;
    key.compute = (uint8_t)compute;
    key.over = key.shape = c->graph.nodes[src].shape;
    key.reduced_axes = 1u << axis;
    int r = add_source(c, &key, src);
    if (r)
        return r;
    key.level = c->graph.nodes[src].level;
    return graph_find_or_add(c, &key, ret);
}
