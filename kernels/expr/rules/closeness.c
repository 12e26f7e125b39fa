/* isclose and nan_to_num: NumPy's own steps.
 *
 *     isclose      |a - b| <= atol + rtol |b|, and b finite; or a == b; or both NaN (equal_nan)
 *     nan_to_num   NaN, +inf, -inf replaced; by 0 and the dtype's largest numbers unless told
 *
 * In isclose an integer `b` becomes a float, so that its smallest value has an absolute one; what
 * the steps then compute in follows from the arguments. Infinities that are replaced by the largest
 * numbers need no test: limits do, and leave NaN for the last step.
 *
 * Called by rules.c.
 */
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/scalar.h"

#include <float.h>
#include <math.h>

/* An option must be a number; 0 is off. */
static int find_option(struct compiler *c, const struct ast_node *n, unsigned child,
                       const char *name, bool initial, bool *ret)
{
    const struct value *v = types_child(c, n, child);
    *ret = initial;
    if (v == NULL)
        return 0;
    if (v->kind == VALUE_NODE) {
        int r = compiler_fail(c, GAD_BAD_EXPRESSION, types_child_column(c, n, child),
                              "%s: '%s' must be True or False, known here",
                              op_info((enum op)n->op)->name, name);
        error_expected(c->error, "True or False");
        error_found(c->error, "an array");
        return r;
    }
    *ret = v->kind == VALUE_FLOAT ? v->number != 0 : v->integer != 0;
    return 0;
}

/* ---- isclose ---- */

static int absolute(struct compiler *c, const struct ast_node *n, const struct value *x,
                    struct value *ret)
{
    if (x->kind == VALUE_NODE)
        return rules_lower(c, n, OP_ABSOLUTE, 1, x, ret);
    *ret = (struct value){.kind = VALUE_FLOAT, .number = fabs(scalar_as_double(x))};
    return 0;
}

/* a <= atol + rtol |b| */
static int is_within(struct compiler *c, const struct ast_node *n, const struct value *a,
                     const struct value *b, struct value *ret)
{
    static const struct value initial_rtol = {.kind = VALUE_FLOAT, .number = 1e-5};
    static const struct value initial_atol = {.kind = VALUE_FLOAT, .number = 1e-8};
    const struct value *rtol = types_child(c, n, 2), *atol = types_child(c, n, 3);
    struct value difference, tolerance;
    int r = rules_lower_operator(c, n, OP_SUBTRACT, a, b, &difference);
    if (r == 0)
        r = absolute(c, n, &difference, &difference);
    if (r == 0)
        r = absolute(c, n, b, &tolerance);
    if (r == 0)
        r = rules_lower_operator(c, n, OP_MULTIPLY, rtol != NULL ? rtol : &initial_rtol, &tolerance,
                                 &tolerance);
    if (r == 0)
        r = rules_lower_operator(c, n, OP_ADD, atol != NULL ? atol : &initial_atol, &tolerance,
                                 &tolerance);
    return r ? r : rules_lower_operator(c, n, OP_LESS_EQUAL, &difference, &tolerance, ret);
}

/* A float, of a dtype where it is an array. */
static int make_inexact(struct compiler *c, struct value *b)
{
    uint16_t node;
    if (b->kind != VALUE_NODE) {
        *b = (struct value){.kind = VALUE_FLOAT, .number = scalar_as_double(b)};
        return 0;
    }
    if (dtype_is_float(types_of(c, b)))
        return 0;
    int r = graph_cast(c, b->node, DTYPE_FLOAT64, &node);
    return r ? r : types_set_node(node, b);
}

static int are_both_nan(struct compiler *c, const struct ast_node *n, const struct value *a,
                        const struct value *b, struct value *ret)
{
    struct value x, y;
    int r = rules_lower(c, n, OP_ISNAN, 1, a, &x);
    if (r == 0)
        r = rules_lower(c, n, OP_ISNAN, 1, b, &y);
    return r ? r : rules_lower_operator(c, n, OP_BITWISE_AND, &x, &y, ret);
}

int closeness_isclose(struct compiler *c, const struct ast_node *n, const struct value *args,
                      struct value *ret)
{
    struct value a = args[0], b = args[1], close, other;
    bool can_be_nan = dtype_is_float(types_of(c, &a)) && dtype_is_float(types_of(c, &b));
    bool can_be_infinite = dtype_is_float(types_of(c, &b)), is_nan_equal;
    int r = find_option(c, n, 4, "equal_nan", false, &is_nan_equal);
    if (r == 0)
        r = make_inexact(c, &b);
    if (r == 0)
        r = is_within(c, n, &a, &b, &close);
    if (r == 0 && can_be_infinite)
        r = rules_lower(c, n, OP_ISFINITE, 1, &b, &other);
    if (r == 0 && can_be_infinite)
        r = rules_lower_operator(c, n, OP_BITWISE_AND, &close, &other, &close);
    if (r == 0)
        r = rules_lower_operator(c, n, OP_EQUAL, &a, &b, &other);
    if (r == 0)
        r = rules_lower_operator(c, n, OP_BITWISE_OR, &close, &other, &close);
    if (r == 0 && is_nan_equal && can_be_nan)
        r = are_both_nan(c, n, &a, &b, &other);
    if (r == 0 && is_nan_equal && can_be_nan)
        r = rules_lower_operator(c, n, OP_BITWISE_OR, &close, &other, &close);
    struct lower l = {c, n, r};
    return lower_finish(&l, lower_value(&l, &close, DTYPE_BOOL), ret);
}

/* ---- nan_to_num ---- */

/* The replacement is cast to the array's dtype and must not enlarge its shape. */
static uint16_t replace(struct lower *l, enum op predicate, uint16_t x, unsigned child,
                        const struct value *initial, uint16_t where_not)
{
    const struct value *v = types_child(l->c, l->n, child);
    struct compiler *c = l->c;
    uint16_t by = lower_value(l, v != NULL ? v : initial, types_of_node(c, x));
    uint16_t node = lower_where(l, lower_unary(l, predicate, x), by, where_not);
    if (l->r != 0 || c->graph.nodes[node].shape == c->graph.nodes[x].shape)
        return node;
    const struct shape *shape = &c->graph.shapes[c->graph.nodes[x].shape];
    const struct shape *found = &c->graph.shapes[c->graph.nodes[by].shape];
    char text[96], found_text[96];
    array_format_shape(shape->ndim, shape->dims, text, sizeof(text));
    array_format_shape(found->ndim, found->dims, found_text, sizeof(found_text));
    l->r = compiler_fail(c, GAD_BAD_SHAPE, types_child_column(c, l->n, child),
                         "nan_to_num: a replacement of shape %s does not fit into %s", found_text,
                         text);
    error_expected(c->error, "%s", text);
    error_found(c->error, "%s", found_text);
    return node;
}

static uint16_t replace_infinities(struct lower *l, uint16_t x)
{
    enum dtype d = types_of_node(l->c, x);
    double largest = d == DTYPE_FLOAT32 ? FLT_MAX : DBL_MAX;
    bool has_posinf = types_child(l->c, l->n, 3) != NULL;
    bool has_neginf = types_child(l->c, l->n, 4) != NULL;
    uint16_t node = x;
    if (!has_posinf)
        node = lower_binary(l, OP_MINIMUM, node, lower_float(l, d, largest));
    if (!has_neginf)
        node = lower_binary(l, OP_MAXIMUM, node, lower_float(l, d, -largest));
    if (has_posinf)
        node = replace(l, OP_ISPOSINF, x, 3, NULL, node);
    if (has_neginf)
        node = replace(l, OP_ISNEGINF, x, 4, NULL, node);
    return node;
}

int closeness_nan_to_num(struct compiler *c, const struct ast_node *n, const struct value *args,
                         struct value *ret)
{
    static const struct value zero = {.kind = VALUE_FLOAT, .number = 0};
    struct lower l = {c, n, 0};
    uint16_t x = lower_value(&l, &args[0], types_of(c, &args[0])), node = x;
    bool copies; /* says nothing here: arguments are never written */
    if (l.r == 0)
        l.r = find_option(c, n, 1, "copy", true, &copies);
    if (l.r == 0 && dtype_is_float(types_of_node(c, x))) {
        node = replace_infinities(&l, x);
        node = replace(&l, OP_ISNAN, x, 2, &zero, node);
    }
    return lower_finish(&l, node, ret);
}
