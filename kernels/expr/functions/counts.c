/* bincount: how often each of 0 to length - 1 is there, or the sum of its weights.
 *
 *     bincount(x, length=10)     BINCOUNT of int64(x), and a check that all are in 0 to 9
 *
 * The length is written, since the shape of a result must be known before the data is read.
 *
 * Called by rules.c.
 */
#include "kernels/expr/functions/reductions.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"
#include "kernels/expr/text/literals.h"
#include "kernels/expr/text/scalar.h"

#include <inttypes.h>
#include <stdio.h>

static int bad_length(struct compiler *c, const struct ast_node *n, __int128 length)
{
    char text[64];
    int r = compiler_fail(c, GAD_BAD_EXPRESSION, literals_find(c, n, "length")->column,
                          "%s: 'length' must be from 0 to %" PRIu32, op_info((enum op)n->op)->name,
                          UINT32_MAX);
    error_expected(c->error, "0 to %" PRIu32, UINT32_MAX);
    error_found(c->error, "%s", scalar_format(length, text));
    return r;
}

static int read_length(struct compiler *c, const struct ast_node *n, uint32_t *ret)
{
    __int128 length;
    int r = literals_integer(c, n, "length", &length);
    if (r)
        return r;
    if (length < 0 || length > UINT32_MAX)
        return bad_length(c, n, length);
    *ret = (uint32_t)length;
    return 0;
}

int counts_weights(struct reduce *k, uint16_t *ret, enum dtype *ret_dtype)
{
    struct compiler *c = k->l.c;
    const struct ast_node *given = literals_find(c, k->l.n, "weights");
    uint16_t node;
    *ret = NODE_NONE;
    if (given == NULL)
        return 0;
    int r = types_as_node(c, given->column, &given->value, &node);
    if (r)
        return r;
    const struct graph_node *n = &c->graph.nodes[node], *src = &c->graph.nodes[k->src];
    *ret_dtype = (enum dtype)n->dtype;
    if (n->kind == NODE_SCAN)
        return graph_used_scan(c, given->column, (enum op)n->op);
    if (n->is_free || n->shape == src->shape)
        return graph_cast(c, node, DTYPE_FLOAT64, ret);
    const struct shape *wanted = &c->graph.shapes[src->shape], *found = &c->graph.shapes[n->shape];
    char a[96], b[96];
    array_format_shape(wanted->ndim, wanted->dims, a, sizeof(a));
    array_format_shape(found->ndim, found->dims, b, sizeof(b));
    r = compiler_fail(c, GAD_BAD_SHAPE, given->column, "%s: 'weights' has shape %s, the array %s",
                      op_info((enum op)k->l.n->op)->name, b, a);
    error_expected(c->error, "%s", a);
    error_found(c->error, "%s", b);
    return r;
}

/* A comparison of the elements with a number. */
static uint16_t compare(struct reduce *k, enum op op, int64_t number)
{
    struct value args[2] = {{.kind = VALUE_NODE, .node = k->src},
                            {.kind = VALUE_INTEGER, .integer = number}};
    struct value result = {.kind = VALUE_NODE};
    if (k->l.r == 0)
        k->l.r = rules_lower(k->l.c, k->l.n, op, 2, args, &result);
    return result.node;
}

/* Elements below 0, or from length on. */
static int check_values(struct reduce *k, uint32_t length)
{
    struct compiler *c = k->l.c;
    char expected[64];
    uint16_t wrong = compare(k, OP_GREATER_EQUAL, length);
    if (dtype_is_signed(types_of_node(c, k->src)))
        wrong = lower_binary(&k->l, OP_BITWISE_OR, wrong, compare(k, OP_LESS, 0));
    if (k->l.r != 0)
        return k->l.r;
    if (length > 0)
        snprintf(expected, sizeof(expected), "0 to %" PRIu32, length - 1);
    else
        snprintf(expected, sizeof(expected), "no elements: the length is 0");
    return checks_add(c, k->l.n, wrong, c->graph.nodes[k->src].shape,
                      "there are values below 0, or not below 'length': give a larger one",
                      expected, "values outside");
}

static int check_source(struct reduce *k)
{
    struct compiler *c = k->l.c;
    const struct graph_node *src = &c->graph.nodes[k->src];
    const struct shape *shape = &c->graph.shapes[src->shape];
    char text[96];
    if (dtype_is_float((enum dtype)src->dtype))
        return rules_bad_dtype(c, k->l.n, (enum dtype)src->dtype, "integers",
                               "counts integers; write int64(x)");
    if (shape->ndim == 1)
        return 0;
    array_format_shape(shape->ndim, shape->dims, text, sizeof(text));
    int r = compiler_fail(c, GAD_BAD_SHAPE, k->l.n->column,
                          "%s counts an array of one axis, not of shape %s",
                          op_info((enum op)k->l.n->op)->name, text);
    error_expected(c->error, "one axis");
    error_found(c->error, "%s", text);
    return r;
}

uint16_t counts_none(struct lower *l, enum dtype dtype)
{
    uint16_t shape = 0, node = 0;
    if (l->r == 0)
        l->r = graph_shape(l->c, 0, 1, (int64_t[]){0}, false, &shape);
    if (l->r == 0)
        l->r = graph_const(l->c, dtype, (union scalar){.u64 = 0}, shape, &node);
    return node;
}

int counts_apply(struct compiler *c, const struct ast_node *n, const struct value *args,
                 struct value *ret)
{
    struct reduce k;
    uint16_t weights = NODE_NONE;
    uint32_t length = 0;
    enum dtype unused;
    int r = reduce_begin(&k, c, n, args);
    if (r == 0)
        r = check_source(&k);
    if (r == 0)
        r = read_length(c, n, &length);
    if (r == 0)
        r = counts_weights(&k, &weights, &unused);
    if (r == 0)
        r = check_values(&k, length);
    if (r)
        return r;
    if (k.n_reduced == 0) /* as NumPy does */
        weights = NODE_NONE;
    enum dtype d = weights == NODE_NONE ? DTYPE_INT64 : DTYPE_FLOAT64;
    if (length == 0)
        return reduce_finish(&k, counts_none(&k.l, d), ret);
    uint16_t bins = lower_cast(&k.l, k.src, DTYPE_INT64);
    return reduce_finish(&k, reduce_bincount(&k, bins, weights, length, false), ret);
}
