/* NumPy 2's types: from the AST to nodes whose dtypes all agree.
 *
 * One loop over the AST, children first. A value is either a number of Python's (which takes the
 * dtype of what it meets) or a node of the graph. Each rule of the catalogue finds the dtype to
 * compute in (rules.c). Two numbers under an operator fold as in Python (scalar.c); under a
 * function they are arrays, as in NumPy: `2**-1` is 0.5, `sqrt(2)` is float64 and no longer adapts.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/scalar.h"

#include <string.h>

const struct value *types_child(const struct compiler *c, const struct ast_node *n, unsigned child)
{
    uint32_t index = n->children[child];
    return index != AST_ABSENT ? &c->ast.nodes[index].value : NULL;
}

uint32_t types_child_column(const struct compiler *c, const struct ast_node *n, unsigned child)
{
    if (n->children == NULL || child >= n->n_children || n->children[child] == AST_ABSENT)
        return n->column;
    return c->ast.nodes[n->children[child]].column;
}

enum dtype types_of_node(const struct compiler *c, uint16_t node)
{
    return (enum dtype)c->graph.nodes[node].dtype;
}

enum dtype types_of(const struct compiler *c, const struct value *v)
{
    switch (v->kind) {
    case VALUE_BOOL: return DTYPE_BOOL;
    case VALUE_INTEGER: return scalar_fits(v, DTYPE_INT64) ? DTYPE_INT64 : DTYPE_UINT64;
    case VALUE_FLOAT: return DTYPE_FLOAT64;
    default: return types_of_node(c, v->node);
    }
}

enum dtype types_common(const struct compiler *c, const struct value *a, const struct value *b)
{
    if (a->kind == VALUE_NODE && b->kind != VALUE_NODE) {
        const struct value *swapped = a;
        a = b;
        b = swapped;
    }
    if (a->kind == VALUE_NODE || b->kind != VALUE_NODE) {
        if (a->kind == VALUE_INTEGER && b->kind == VALUE_INTEGER)
            return DTYPE_INT64;
        return dtype_promote(types_of(c, a), types_of(c, b));
    }
    enum dtype strong = types_of_node(c, b->node);
    if (a->kind == VALUE_BOOL || dtype_is_float(strong))
        return strong;
    if (a->kind == VALUE_FLOAT)
        return DTYPE_FLOAT64;
    return strong == DTYPE_BOOL ? DTYPE_INT64 : strong;
}

/* Of arrays first, numbers adapt to that. Not pairwise: int16, uint16 and float32 have float32 in
 * common, though int32 and float32 have float64. */
enum dtype types_common_of(const struct compiler *c, const struct value *const *values,
                           unsigned n_values)
{
    enum dtype whole = DTYPE_COUNT, inexact = DTYPE_COUNT; /* of integers, of floats */
    unsigned most_kind = VALUE_NODE;                       /* of the numbers */
    for (unsigned i = 0; i < n_values; i++) {
        enum dtype d = types_of(c, values[i]);
        if (values[i]->kind != VALUE_NODE) {
            most_kind = values[i]->kind > most_kind ? values[i]->kind : most_kind;
            continue;
        }
        enum dtype *sum = dtype_is_float(d) ? &inexact : &whole;
        *sum = *sum == DTYPE_COUNT ? d : dtype_promote(*sum, d);
    }
    if (inexact != DTYPE_COUNT) {
        for (unsigned i = 0; i < n_values; i++)
            if (values[i]->kind == VALUE_NODE)
                inexact = dtype_promote(inexact, types_of(c, values[i]));
        return inexact;
    }
    if (most_kind == VALUE_FLOAT)
        return DTYPE_FLOAT64;
    if (most_kind == VALUE_INTEGER && (whole == DTYPE_COUNT || whole == DTYPE_BOOL))
        return DTYPE_INT64;
    return whole == DTYPE_COUNT ? DTYPE_BOOL : whole;
}

int types_as(struct compiler *c, uint32_t column, const struct value *v, enum dtype dtype,
             uint16_t *ret)
{
    union scalar scalar;
    if (v->kind == VALUE_NODE)
        return graph_cast(c, v->node, dtype, ret);
    int r = scalar_convert(c, column, v, dtype, &scalar);
    return r ? r : graph_const(c, dtype, scalar, 0, ret);
}

int types_as_node(struct compiler *c, uint32_t column, const struct value *v, uint16_t *ret)
{
    return types_as(c, column, v, types_of(c, v), ret);
}

int types_set_node(uint16_t node, struct value *ret)
{
    *ret = (struct value){.kind = VALUE_NODE, .node = node};
    return 0;
}

int types_apply(struct compiler *c, const struct ast_node *n, enum op op, enum dtype compute,
                enum dtype dtype, unsigned n_args, const struct value *args, struct value *ret)
{
    uint16_t src[3], node;
    for (unsigned i = 0; i < n_args; i++) {
        int r = types_as(c, types_child_column(c, n, i), &args[i], compute, &src[i]);
        if (r)
            return r;
    }
    int r = graph_op(c, n->column, op, compute, dtype, n_args, src, &node);
    return r ? r : types_set_node(node, ret);
}

/* ---- the walk ---- */

static int type_plus(struct compiler *c, const struct ast_node *n, const struct value *arg,
                     struct value *ret)
{
    if (arg->kind == VALUE_NODE && types_of(c, arg) == DTYPE_BOOL) {
        int r = compiler_fail(c, GAD_BAD_DTYPE, n->column,
                              "+x is not defined for bools, write int8(x)");
        error_expected(c->error, "numbers");
        error_found(c->error, "bool");
        return r;
    }
    *ret = *arg;
    if (arg->kind == VALUE_BOOL)
        ret->kind = VALUE_INTEGER;
    return 0;
}

static int type_arg(struct compiler *c, const struct ast_node *n, struct value *ret)
{
    const struct request_arg *arg = &c->request->args[n->arg];
    if (!arg->is_scalar) {
        uint16_t node;
        int r = graph_input(c, n->arg, n->is_transposed, &node);
        return r ? r : types_set_node(node, ret);
    }
    *ret = scalar_of_request(arg->scalar_dtype, arg->scalar);
    return 0;
}

static int type_turned(struct compiler *c, const struct ast_node *n, const struct value *arg,
                       struct value *ret)
{
    struct value parts[2], turned[2];
    if (arg->kind != VALUE_COMPLEX)
        return turned_apply(c, n, arg, ret);
    int r = complex_whole(c, n, arg, parts);
    for (unsigned i = 0; r == 0 && i < 2; i++)
        r = turned_apply(c, n, &parts[i], &turned[i]);
    return r ? r : complex_make(c, n, turned, ret);
}

static int check_tuple(struct compiler *c, const struct ast_node *n)
{
    return complex_is_in(c, n)
               ? complex_refuse(c, n->column, "a complex number in a list", "real numbers there")
               : 0;
}

static int type_op(struct compiler *c, const struct ast_node *n, const struct value *args,
                   struct value *ret)
{
    int r = iterate_check(c, n);
    if (r)
        return r;
    if (complex_is_in(c, n))
        return complex_apply(c, n, args, ret);
    bool has_node = !n->is_operator || n->op == OP_MATMUL;
    for (unsigned i = 0; n->is_operator && i < n->n_children; i++)
        has_node |= args[i].kind == VALUE_NODE;
    return has_node ? rules_apply(c, n, args, ret) : scalar_fold(c, n, args, ret);
}

static int type_node(struct compiler *c, struct ast_node *n)
{
    struct value args[3];
    for (unsigned i = 0; i < n->n_children && i < 3; i++)
        if (types_child(c, n, i) != NULL)
            args[i] = *types_child(c, n, i);
    switch (n->kind) {
    case AST_ARG: return type_arg(c, n, &n->value);
    case AST_PART: return complex_part_of(c, n, args, &n->value);
    case AST_PLUS: return type_plus(c, n, &args[0], &n->value);
    case AST_TURNED: return type_turned(c, n, &args[0], &n->value);
    case AST_BOUND: n->value = args[0]; return 0;
    case AST_STATE: return iterate_begin(c, n);
    case AST_OP: return type_op(c, n, args, &n->value);
    case AST_TUPLE: return check_tuple(c, n);
    case AST_STEPPED: return repeats_state(c, n, &args[0]);
    default: return 0;
    }
}

/* An output that exists already: the same shape, a dtype that takes the result. What has no shape
 * where index()s are takes the output's. */
static int fit_output(struct compiler *c, const struct array *to, uint16_t *shape_index,
                      uint16_t *node)
{
    const struct graph_node *n = &c->graph.nodes[*node];
    enum dtype dtype = types_of_node(c, *node);
    int fitted = n->is_free && *shape_index == 0
                     ? graph_shape(c, 0, to->ndim, to->shape, true, shape_index)
                     : 0;
    if (fitted != 0)
        return fitted;
    const struct shape *shape = &c->graph.shapes[*shape_index];
    if (shape->ndim != to->ndim ||
        (to->ndim > 0 &&
         memcmp(shape->dims, to->shape, (size_t)to->ndim * sizeof(*to->shape)) != 0)) {
        char result[96], there[96];
        array_format_shape(shape->ndim, shape->dims, result, sizeof(result));
        array_format_shape(to->ndim, to->shape, there, sizeof(there));
        int r = compiler_fail(c, GAD_BAD_SHAPE, 0, "the result has shape %s, the output %s", result,
                              there);
        error_expected(c->error, "%s", result);
        error_found(c->error, "%s", there);
        return r;
    }
    if (!dtype_can_cast_same_kind(dtype, to->dtype)) {
        int r = compiler_fail(c, GAD_BAD_DTYPE, 0, "the result is %s, which cannot be stored as %s",
                              dtype_name(dtype), dtype_name(to->dtype));
        error_expected(c->error, "%s", dtype_name(dtype));
        error_found(c->error, "%s", dtype_name(to->dtype));
        return r;
    }
    if (n->kind == NODE_SCAN)
        return scans_fit(c, *node, to->dtype, node);
    return graph_cast(c, *node, to->dtype, node);
}

int types_resolve(struct compiler *c, unsigned index)
{
    struct ast *ast = &c->ast;
    for (uint32_t i = 0; i < ast->n_nodes; i++) {
        uint32_t again = AST_ABSENT; /* the first node to be typed once more, with other dtypes */
        struct ast_node *n = &ast->nodes[i];
        c->typed_column = n->column;
        int r = n->kind == AST_ITERATE  ? iterate_end(c, n, &again)
                : n->kind == AST_REPEAT ? repeats_apply(c, n, &again)
                                        : type_node(c, n);
        c->n_steps += COMPILER_NODE_STEPS;
        if (r == 0)
            r = compiler_check_steps(c, n->column);
        if (r)
            return r;
        i = again == AST_ABSENT ? i : again - 1;
    }
    c->typed_column = 0;
    const struct ast_node *root = &ast->nodes[ast->n_nodes - 1];
    const struct request_output *output = &c->request->outputs[index];
    uint16_t *node = &c->outputs[index], *shape = &c->output_shapes[index];
    if (root->value.kind == VALUE_COMPLEX)
        return complex_refuse(c, root->column, "the result is complex",
                              "an output for each part, real(z) and imag(z)");
    int r = types_as_node(c, root->column, &root->value, node);
    if (r)
        return r;
    *shape = c->graph.nodes[*node].shape;
    if (output->has_to)
        r = fit_output(c, &output->to, shape, node);
    return r ? r : axes_check(c, *node, &c->graph.shapes[*shape]);
}
