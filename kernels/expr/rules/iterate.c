/* The types of iterate(): a state has the dtype in which all that it is given can be.
 *
 * The body is typed with states of the dtypes of their first values, a number counting as an array
 * of one. Where a next value has more in common with its state than the state's own dtype
 * (numpy.result_type), that becomes the state's, and the body is typed again: dtypes only rise, so
 * this ends. Then each next value is cast to its state's dtype, and the loop becomes nodes of the
 * graph. Elements stop by themselves, so the loop has the shape to which all broadcast.
 *
 * What changes from step to step is there for one element at a time: reductions and all else that
 * needs other elements are refused, unless they are the same at every step.
 *
 * Called by types.c.
 */
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/scalar.h"

#include <stdio.h>

#define FIRST_STATE 2 /* among the children, behind n and the condition */
#define MAX_ROUNDS  64

static unsigned n_states_of(const struct ast_node *n)
{
    return (n->n_children - FIRST_STATE) / 2u;
}

static struct ast_node *state_of(struct compiler *c, const struct ast_node *n, unsigned i)
{
    return &c->ast.nodes[n->children[FIRST_STATE + i]];
}

static unsigned n_parts_of(const struct value *v)
{
    return v->kind == VALUE_COMPLEX ? 2 : 1;
}

/* The number of a state's part among all that the loop has. */
static unsigned number_of(const struct ast_node *state, unsigned part)
{
    return state->result + part * EXPR_MAX_STATES;
}

static int set_state(struct compiler *c, struct ast_node *state, enum dtype dtype, unsigned n_parts)
{
    struct value parts[2];
    int r = 0;
    for (unsigned i = 0; r == 0 && i < n_parts; i++) {
        const struct value begin = complex_part(types_child(c, state, 0), i);
        uint16_t first, node;
        r = types_as(c, state->column, &begin, dtype, &first);
        if (r == 0)
            r = graph_state(c, state->column, first, number_of(state, i), &node);
        if (r == 0)
            r = types_set_node(node, &parts[i]);
    }
    state->dtype = (uint8_t)dtype;
    if (r == 0 && n_parts == 2)
        return complex_make(c, state, parts, &state->value);
    state->value = parts[0];
    return r;
}

int iterate_begin(struct compiler *c, struct ast_node *state)
{
    const struct value *first = types_child(c, state, 0), part = complex_part(first, 0);
    return set_state(c, state, types_of(c, &part), n_parts_of(first));
}

static bool is_varying_value(const struct compiler *c, const struct value *v)
{
    bool is_varying = false;
    for (unsigned i = 0; i < n_parts_of(v); i++) {
        const struct value part = complex_part(v, i);
        is_varying |= part.kind == VALUE_NODE && c->graph.nodes[part.node].is_varying;
    }
    return is_varying;
}

static bool has_value(const struct ast_node *n)
{
    return n->kind != AST_TUPLE && n->kind != AST_DTYPE && n->kind != AST_WORD;
}

int iterate_check(struct compiler *c, const struct ast_node *n)
{
    bool is_varying = false;
    const struct op_info *info = op_info((enum op)n->op);
    for (unsigned i = 0; info->rule >= OP_RULE_SUM && i < n->n_children; i++) {
        const struct value *v = types_child(c, n, i);
        is_varying |=
            v != NULL && has_value(&c->ast.nodes[n->children[i]]) && is_varying_value(c, v);
    }
    if (!is_varying)
        return 0;
    int r = compiler_fail(c, GAD_BAD_EXPRESSION, n->column,
                          "%s of what changes in iterate: a step has one element at a time",
                          info->name);
    error_expected(c->error, "elementwise functions of what changes");
    error_found(c->error, "%s", info->name);
    return r;
}

static int check_steps(struct compiler *c, const struct ast_node *n, uint32_t *ret)
{
    const struct value *v = types_child(c, n, 0);
    if (v->kind == VALUE_INTEGER && v->integer >= 1 && v->integer <= EXPR_MAX_STEPS) {
        *ret = (uint32_t)v->integer;
        return 0;
    }
    char text[64] = "an array";
    if (v->kind == VALUE_INTEGER)
        (void)scalar_format(v->integer, text);
    else if (v->kind != VALUE_NODE)
        snprintf(text, sizeof(text), "another number");
    int r = compiler_fail(c, v->kind == VALUE_INTEGER ? GAD_LIMIT_EXCEEDED : GAD_BAD_EXPRESSION,
                          types_child_column(c, n, 0),
                          "iterate: the number of steps must be an integer that is known here, "
                          "from 1 to %d",
                          EXPR_MAX_STEPS);
    error_expected(c->error, "1 to %d", EXPR_MAX_STEPS);
    error_found(c->error, "%s", text);
    return r;
}

/* What states have in common with their next values, and whether these are complex. */
static int raise_states(struct compiler *c, const struct ast_node *n, bool *ret_is_raised)
{
    unsigned n_states = n_states_of(n);
    *ret_is_raised = false;
    for (unsigned i = 0; i < n_states; i++) {
        struct ast_node *state = state_of(c, n, i);
        const struct value *next = types_child(c, n, FIRST_STATE + n_states + i);
        const struct value own = complex_part(&state->value, 0), other = complex_part(next, 0);
        bool is_complex = n_parts_of(next) == 2 || n_parts_of(&state->value) == 2;
        enum dtype d = types_common(c, &own, &other);
        if (is_complex && !dtype_is_float(d))
            d = DTYPE_FLOAT64;
        if (d == (enum dtype)state->dtype && is_complex == (n_parts_of(&state->value) == 2))
            continue;
        *ret_is_raised = true;
        int r = set_state(c, state, d, is_complex ? 2 : 1);
        if (r)
            return r;
    }
    return 0;
}

static int check_count(struct compiler *c, const struct ast_node *n)
{
    unsigned n_parts = 0;
    for (unsigned i = 0; i < n_states_of(n); i++)
        n_parts += n_parts_of(&state_of(c, n, i)->value);
    if (n_parts <= EXPR_MAX_STATES)
        return 0;
    int r =
        compiler_fail(c, GAD_LIMIT_EXCEEDED, n->column,
                      "iterate of more than %d names, complex ones counted twice", EXPR_MAX_STATES);
    error_expected(c->error, "at most %d", EXPR_MAX_STATES);
    error_found(c->error, "%u", n_parts);
    return r;
}

static int make_until(struct compiler *c, const struct ast_node *n, uint16_t *ret)
{
    static const struct value never = {.kind = VALUE_BOOL};
    const struct value *until = types_child(c, n, 1);
    if (until != NULL && until->kind == VALUE_COMPLEX)
        return complex_refuse(c, types_child_column(c, n, 1), "iterate: until is complex",
                              "z != 0, or abs2(z) > 4");
    enum dtype d = until != NULL ? types_of(c, until) : DTYPE_BOOL;
    if (d == DTYPE_BOOL)
        return types_as(c, n->column, until != NULL ? until : &never, DTYPE_BOOL, ret);
    int r = compiler_fail(c, GAD_BAD_DTYPE, types_child_column(c, n, 1),
                          "iterate: until must be bool, not %s; write x != 0", dtype_name(d));
    error_expected(c->error, "bool");
    error_found(c->error, "%s", dtype_name(d));
    return r;
}

/* One for each part of the state. */
static int add_steps(struct compiler *c, const struct ast_node *n, unsigned i, uint16_t *step)
{
    const struct ast_node *state = state_of(c, n, i);
    unsigned child = FIRST_STATE + n_states_of(n) + i;
    uint32_t column = types_child_column(c, n, child);
    int r = 0;
    for (unsigned part = 0; r == 0 && part < n_parts_of(&state->value); part++) {
        const struct value value = complex_part(types_child(c, n, child), part);
        uint16_t next;
        r = types_as(c, column, &value, (enum dtype)state->dtype, &next);
        if (r == 0)
            r = graph_step(c, column, complex_part(&state->value, part).node, next, *step, step);
    }
    return r;
}

static int make_loop(struct compiler *c, const struct ast_node *n, uint32_t n_steps,
                     struct value *ret)
{
    unsigned n_states = n_states_of(n);
    const struct ast_node *result = state_of(c, n, n->result);
    struct value parts[2];
    uint16_t step = NODE_NONE, until, loop, node;
    int r = make_until(c, n, &until);
    if (r == 0)
        r = check_count(c, n);
    for (unsigned i = 0; r == 0 && i < n_states; i++)
        r = add_steps(c, n, i, &step);
    if (r == 0)
        r = graph_loop(c, n->column, until, step, n_steps, &loop);
    for (unsigned i = 0; r == 0 && i < n_parts_of(&result->value); i++) {
        r = graph_result(c, loop, number_of(result, i), (enum dtype)result->dtype, &node);
        if (r == 0)
            r = types_set_node(node, &parts[i]);
    }
    if (r == 0 && n_parts_of(&result->value) == 2)
        return complex_make(c, n, parts, ret);
    *ret = parts[0];
    return r;
}

int iterate_end(struct compiler *c, struct ast_node *n, uint32_t *ret_again)
{
    uint32_t n_steps = 0, behind = n->children[FIRST_STATE + n_states_of(n) - 1] + 1;
    bool is_raised;
    int r = check_steps(c, n, &n_steps);
    if (r == 0)
        r = raise_states(c, n, &is_raised);
    if (r)
        return r;
    *ret_again = AST_ABSENT;
    if (!is_raised) {
        n->dtype = 0;
        return make_loop(c, n, n_steps, &n->value);
    }
    if (n->dtype++ < MAX_ROUNDS) {
        *ret_again = behind;
        return 0;
    }
    r = compiler_fail(c, GAD_LIMIT_EXCEEDED, n->column,
                      "iterate: dtypes rise from name to name without an end; begin with those "
                      "that the names come to");
    error_expected(c->error, "dtypes that do not change");
    return r;
}
