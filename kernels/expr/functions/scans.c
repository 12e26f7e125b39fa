/* cumsum and cumprod: running sums and products along one axis.
 *
 * Dtypes are those of sum and prod: integers are added in 64 bits, floats in double, and each
 * result is cast to the output's dtype when it is stored. A scan is a whole output (reducing.c), so
 * all that can be done to it is storing it in an array that is there: in that array's dtype, where
 * this gives what a cast behind it would.
 *
 * Called by rules.c, and by types.c for outputs that are there.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/functions/reductions.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/scalar.h"

static enum dtype wide(enum dtype d)
{
    if (dtype_is_float(d))
        return DTYPE_FLOAT64;
    return dtype_is_unsigned(d) ? DTYPE_UINT64 : DTYPE_INT64;
}

static int bad_axis(struct compiler *c, const struct ast_node *n, const struct ast_node *given,
                    const struct shape *shape, bool is_tuple, __int128 axis)
{
    char text[96], number[64];
    const char *name = op_info((enum op)n->op)->name;
    int r;
    array_format_shape(shape->ndim, shape->dims, text, sizeof(text));
    if (given == NULL)
        r = compiler_fail(c, GAD_BAD_EXPRESSION, n->column,
                          "%s: an array of shape %s has no one axis; write axis=...", name, text);
    else if (is_tuple)
        r = compiler_fail(c, GAD_BAD_EXPRESSION, given->column, "%s: 'axis' must be one integer",
                          name);
    else
        r = compiler_fail(c, GAD_BAD_SHAPE, given->column,
                          "%s: axis %s is out of range for shape %s", name,
                          scalar_format(axis, number), text);
    if (is_tuple)
        error_expected(c->error, "an integer");
    else
        error_expected(c->error, "axis from %d to %d", shape->ndim > 0 ? -shape->ndim : -1,
                       shape->ndim > 0 ? shape->ndim - 1 : 0);
    error_found(c->error, "%s", given == NULL ? "no axis" : is_tuple ? "a tuple" : number);
    return r;
}

/* A single number is an array of one. */
static int read_axis(struct compiler *c, const struct ast_node *n, const struct shape *shape,
                     int *ret)
{
    const struct ast_node *given = literals_find(c, n, "axis");
    __int128 axes[ARRAY_MAX_NDIM] = {0};
    unsigned n_axes = 1;
    bool is_tuple = false;
    int ndim = shape->ndim > 0 ? shape->ndim : 1;
    int r = given != NULL ? literals_integers(c, n, "axis", axes, &n_axes, &is_tuple) : 0;
    if (r)
        return r;
    if (is_tuple || (given == NULL && ndim > 1) || axes[0] < -ndim || axes[0] >= ndim)
        return bad_axis(c, n, given, shape, is_tuple, axes[0]);
    *ret = (int)axes[0] + (axes[0] < 0 ? ndim : 0);
    return 0;
}

/* Where there is nothing to add up: each element by itself, of one axis at least. */
static int single(struct lower *l, uint16_t src, enum dtype d, struct value *ret)
{
    uint16_t shape = l->c->graph.nodes[src].shape, one = 0;
    src = lower_cast(l, src, d);
    if (l->r == 0 && shape == 0) {
        l->r = graph_shape(l->c, 0, 1, (int64_t[]){1}, false, &shape);
        if (l->r == 0)
            l->r = graph_const(l->c, DTYPE_BOOL, (union scalar){.u64 = 1}, shape, &one);
        src = lower_where(l, one, src, src);
    }
    return lower_finish(l, src, ret);
}

/* Sums are wide anyway. */
static uint16_t before_widening(const struct graph *g, uint16_t src)
{
    const struct graph_node *n = &g->nodes[src];
    enum dtype from = (enum dtype)n->compute, to = (enum dtype)n->dtype;
    bool is_cast = n->kind == NODE_INSN && n->op == OP_CAST && narrow_is_lossless(from, to);
    return is_cast && wide(from) == wide(to) ? n->src[0] : src;
}

int scans_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                struct value *ret)
{
    struct lower l = {c, n, 0};
    uint16_t src = 0, node;
    int axis = 0;
    int r = types_as_node(c, n->column, &args[0], &src);
    const struct shape *shape = &c->graph.shapes[c->graph.nodes[src].shape];
    if (r == 0)
        r = axes_check(c, src, shape);
    if (r == 0)
        r = read_axis(c, n, shape, &axis);
    if (r)
        return r;
    enum dtype own = types_of_node(c, src), d = dtype_is_float(own) ? own : wide(own);
    if (literals_find(c, n, "dtype") != NULL) {
        d = literals_dtype(c, n, d);
        src = lower_cast(&l, src, d);
    }
    if (shape->n_elements == 0 || shape->ndim == 0 || shape->dims[axis] == 1)
        return single(&l, src, d, ret);
    if (l.r != 0)
        return l.r;
    src = before_widening(&c->graph, src);
    r = graph_scan(c, (enum op)n->op, wide(types_of_node(c, src)), d, src, axis, &node);
    return r ? r : types_set_node(node, ret);
}

/* Of integers that were cut off the rest is gone. */
static bool fits(enum dtype compute, enum dtype own, enum dtype to)
{
    if (own == to || own == compute || dtype_is_float(own))
        return true;
    return own != DTYPE_BOOL && dtype_is_integer(to) && dtype_size(to) <= dtype_size(own);
}

int scans_fit(struct compiler *c, uint16_t scan, enum dtype to, uint16_t *ret)
{
    const struct graph_node *n = &c->graph.nodes[scan];
    enum dtype own = (enum dtype)n->dtype;
    if (fits((enum dtype)n->compute, own, to))
        return graph_scan(c, (enum op)n->op, (enum dtype)n->compute, to, n->src[0],
                          __builtin_ctz(n->reduced_axes), ret);
    int r = compiler_fail(c, GAD_BAD_DTYPE, 0, "%s of %s cannot be stored as %s; write dtype=%s",
                          op_info((enum op)n->op)->name, dtype_name(own), dtype_name(to),
                          dtype_name(to));
    error_expected(c->error, "%s", dtype_name(own));
    error_found(c->error, "%s", dtype_name(to));
    return r;
}
