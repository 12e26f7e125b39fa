/* The rules of where, select and clip: operations whose result is one of their arguments.
 *
 * All choices, or the array and its limits, are cast to one common dtype. select is a chain of
 * where, the first condition outermost. clip is maximum, then minimum, so that NaN goes through and
 * an upper limit below the lower one wins.
 *
 * Called by rules.c.
 */
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/scalar.h"

int choices_where(struct compiler *c, const struct ast_node *n, const struct value *args,
                  struct value *ret)
{
    uint16_t src[3], node;
    enum dtype d = types_common(c, &args[1], &args[2]);
    int r = types_as(c, n->column, &args[0], DTYPE_BOOL, &src[0]);
    for (unsigned i = 1; r == 0 && i < 3; i++)
        r = types_as(c, types_child_column(c, n, i), &args[i], d, &src[i]);
    if (r == 0)
        r = graph_op(c, n->column, OP_WHERE, d, d, 3, src, &node);
    return r ? r : types_set_node(node, ret);
}

/* ---- select ---- */

static int check_conditions(struct compiler *c, const struct ast_node *n, unsigned n_conditions)
{
    for (unsigned i = 0; i < n_conditions; i++) {
        enum dtype d = types_of(c, types_child(c, n, i));
        if (d == DTYPE_BOOL)
            continue;
        int r =
            compiler_fail(c, GAD_BAD_DTYPE, types_child_column(c, n, i),
                          "select: a condition must be bool, not %s; write x != 0", dtype_name(d));
        error_expected(c->error, "bool");
        error_found(c->error, "%s", dtype_name(d));
        return r;
    }
    return 0;
}

int choices_select(struct compiler *c, const struct ast_node *n, const struct value *args,
                   struct value *ret)
{
    static const struct value zero = {.kind = VALUE_INTEGER};
    const struct value *choices[EXPR_MAX_SELECT + 1];
    unsigned n_conditions = n->n_children / 2u;
    uint16_t chosen = 0, src[3];
    for (unsigned i = 0; i <= n_conditions; i++)
        choices[i] = types_child(c, n, n_conditions + i);
    if (choices[n_conditions] == NULL)
        choices[n_conditions] = &zero;
    enum dtype d = types_common_of(c, choices, n_conditions + 1);
    int r = check_conditions(c, n, n_conditions);
    for (unsigned i = n_conditions + 1; r == 0 && i-- > 0;) {
        r = types_as(c, types_child_column(c, n, n_conditions + i), choices[i], d, &src[1]);
        if (r != 0 || i == n_conditions) {
            chosen = src[1];
            continue;
        }
        src[2] = chosen;
        r = types_as(c, n->column, types_child(c, n, i), DTYPE_BOOL, &src[0]);
        if (r == 0)
            r = graph_op(c, n->column, OP_WHERE, d, d, 3, src, &chosen);
    }
    return r ? r : types_set_node(chosen, ret);
}

/* ---- clip ---- */

/* NumPy leaves out limits that are numbers which no element can pass. */
static bool is_beyond(const struct value *limit, enum dtype d, bool is_lower)
{
    if (limit->kind != VALUE_INTEGER || !dtype_is_integer(d))
        return false;
    struct value next = *limit;
    next.integer += is_lower ? -1 : 1;
    return (next.integer < 0) == is_lower && !scalar_fits(&next, d);
}

static int find_limits(struct compiler *c, const struct ast_node *n, unsigned *ret_lower,
                       unsigned *ret_upper)
{
    bool is_old = types_child(c, n, 1) != NULL || types_child(c, n, 2) != NULL;
    bool is_new = types_child(c, n, 3) != NULL || types_child(c, n, 4) != NULL;
    *ret_lower = is_new ? 3 : 1;
    *ret_upper = is_new ? 4 : 2;
    if (!is_old || !is_new)
        return 0;
    int r = compiler_fail(c, GAD_BAD_EXPRESSION, n->column,
                          "clip takes a_min and a_max, or min and max, not both");
    error_expected(c->error, "two limits");
    return r;
}

static bool is_single(const struct compiler *c, const struct value *v)
{
    return v->kind != VALUE_NODE || c->graph.nodes[v->node].shape == 0;
}

/* One limit: of a common dtype, with the rules for bools of minimum and maximum. Of two equal
 * arguments these give the second. As in NumPy, a zero keeps its sign between two limits that are
 * single numbers (is_first), and takes that of any other limit. */
static int clip_at(struct compiler *c, const struct ast_node *n, unsigned child, enum dtype d,
                   enum op op, bool is_first, struct value *x)
{
    uint16_t node;
    const struct value *limit = types_child(c, n, child);
    struct value args[2] = {*x, *x};
    int r = types_as(c, types_child_column(c, n, child), limit, d, &node);
    if (r == 0)
        r = types_set_node(node, &args[is_first ? 0 : 1]);
    return r ? r : rules_lower(c, n, op, 2, args, x);
}

int choices_clip(struct compiler *c, const struct ast_node *n, const struct value *args,
                 struct value *ret)
{
    unsigned at[2];
    uint16_t node;
    int r = find_limits(c, n, &at[0], &at[1]);
    if (r == 0)
        r = types_as_node(c, n->column, &args[0], &node);
    if (r)
        return r;
    struct value x = {.kind = VALUE_NODE, .node = node};
    enum dtype own = types_of(c, &x);
    const struct value *values[3] = {&x};
    unsigned n_values = 1;
    bool is_limited[2];
    for (unsigned i = 0; i < 2; i++) {
        const struct value *limit = types_child(c, n, at[i]);
        is_limited[i] = limit != NULL && !is_beyond(limit, own, i == 0);
        if (is_limited[i])
            values[n_values++] = limit;
    }
    if (n_values == 1 && own == DTYPE_BOOL)
        return rules_bad_dtype(c, n, own, "numbers", "without limits is of numbers");
    enum dtype d = types_common_of(c, values, n_values);
    bool is_first =
        n_values == 3 && dtype_is_float(d) && is_single(c, values[1]) && is_single(c, values[2]);
    if (is_limited[0])
        r = clip_at(c, n, at[0], d, OP_MAXIMUM, is_first, &x);
    if (r == 0 && is_limited[1])
        r = clip_at(c, n, at[1], d, OP_MINIMUM, is_first, &x);
    *ret = x;
    return r;
}
