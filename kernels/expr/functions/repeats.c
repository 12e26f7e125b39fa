/* repeat: the types of its arrays, and what its steps may be made of.
 *
 * An array keeps its dtype from step to step. So the dtypes are looked for: the steps are typed
 * with those of the beginning, and again with what they promote to, until nothing changes; dtypes
 * only grow, so that ends soon. A number at the beginning has the dtype of what it meets, as
 * everywhere.
 *
 * All arrays have one shape, which a step does not change. In the graph each is a NODE_INPUT, a
 * state: one in the steps, another for what comes out. Two repeats that begin with the same arrays
 * begin with the same states, and where their steps are the same, too, they are one: as where two
 * outputs are different arrays of it.
 *
 * A step is computed for a part of the arrays at a time: what needs all of them (a sum, a product)
 * is not there. Of other arrays it may be one number, which another pass has made before.
 *
 * Called by types.c.
 */
#include "kernels/expr/functions/functions.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/text/scalar.h"

#include <inttypes.h>
#include <string.h>

static int refuse(struct compiler *c, uint32_t column, const char *what, const char *expected)
{
    int r = compiler_fail(c, GAD_BAD_EXPRESSION, column, "repeat: %s", what);
    error_expected(c->error, "%s", expected);
    return r;
}

static int refuse_complex(struct compiler *c, uint32_t column)
{
    return complex_refuse(c, column, "repeat of complex arrays is not computed",
                          "two arrays, of the real parts and the imaginary ones");
}

/* ---- at first ---- */

static int read_count(struct compiler *c, const struct ast_node *n, uint32_t *ret)
{
    const struct value *v = types_child(c, n, 0);
    uint32_t column = types_child_column(c, n, 0);
    if (v->kind != VALUE_INTEGER || v->integer < 1) {
        int r = refuse(c, column, "how often must be an integer that is known here",
                       "an integer from 1 on");
        if (v->kind == VALUE_INTEGER)
            error_found(c->error, "%" PRId64, (int64_t)v->integer);
        else
            error_found(c->error, "%s", v->kind == VALUE_NODE ? "an array" : "another number");
        return r;
    }
    if (v->integer > REPEAT_MAX_STEPS) {
        int r = compiler_fail(c, GAD_LIMIT_EXCEEDED, column, "repeat: too many steps at once");
        error_expected(c->error, "at most %d", REPEAT_MAX_STEPS);
        return r;
    }
    *ret = (uint32_t)v->integer;
    return 0;
}

static int other_shape(struct compiler *c, uint32_t column, const char *what, uint16_t expected,
                       uint16_t found)
{
    const struct shape *a = &c->graph.shapes[expected], *b = &c->graph.shapes[found];
    char expected_text[96], found_text[96];
    array_format_shape(a->ndim, a->dims, expected_text, sizeof(expected_text));
    array_format_shape(b->ndim, b->dims, found_text, sizeof(found_text));
    int r = compiler_fail(c, GAD_BAD_SHAPE, column, "repeat: %s has shape %s, and the arrays %s",
                          what, found_text, expected_text);
    error_expected(c->error, "%s", expected_text);
    error_found(c->error, "%s", found_text);
    return r;
}

static const struct value *initial_of(const struct compiler *c, const struct repeat *repeat,
                                      unsigned state)
{
    return types_child(c, &c->ast.nodes[repeat->first + state], 0);
}

/* The one shape of all that are no numbers. */
static int find_shape(struct compiler *c, struct repeat *repeat)
{
    for (unsigned i = 0; i < repeat->n_states; i++) {
        const struct value *v = initial_of(c, repeat, i);
        uint16_t shape = v->kind == VALUE_NODE ? c->graph.nodes[v->node].shape : 0;
        if (shape == 0 || shape == repeat->shape)
            continue;
        if (repeat->shape != 0)
            return other_shape(c, c->ast.nodes[repeat->first + i].column, "this one", repeat->shape,
                               shape);
        repeat->shape = shape;
    }
    return 0;
}

/* Whether what an array begins with can be of the dtype. */
static bool may_be(const struct value *v, enum dtype dtype)
{
    switch (v->kind) {
    case VALUE_INTEGER: return dtype != DTYPE_BOOL && scalar_fits(v, dtype);
    case VALUE_FLOAT: return dtype_is_float(dtype);
    default: return true;
    }
}

/* Whether all arrays of both begin as the same. */
static bool begins_like(struct compiler *c, const struct repeat *repeat, const struct repeat *other)
{
    if (repeat->n_states != other->n_states || repeat->shape != other->shape)
        return false;
    for (unsigned i = 0; i < repeat->n_states; i++) {
        uint16_t node;
        const struct value *v = initial_of(c, repeat, i);
        enum dtype dtype = (enum dtype)other->dtypes[i];
        if (!may_be(v, dtype) || types_as(c, 0, v, dtype, &node) != 0 || node != other->begin[i])
            return false;
    }
    return true;
}

/* From another one on that has the same states, or as the first of its kind. */
static void begin_as(struct compiler *c, struct repeat *repeat, const struct repeat *other)
{
    while (other != NULL && !begins_like(c, repeat, other))
        other = other->next;
    repeat->like = other;
    repeat->first_state = other != NULL ? other->first_state : c->n_states;
    if (other == NULL)
        c->n_states += (uint16_t)repeat->n_states;
    for (unsigned i = 0; i < repeat->n_states; i++) {
        const struct value *v = initial_of(c, repeat, i);
        repeat->is_number[i] = other == NULL && v->kind != VALUE_NODE;
        repeat->dtypes[i] = (uint8_t)(other != NULL ? other->dtypes[i] : types_of(c, v));
    }
}

int repeats_state(struct compiler *c, struct ast_node *n, const struct value *initial)
{
    struct repeat *repeat = n->repeat;
    const struct graph_node like = {.shape = repeat->shape};
    uint16_t node;
    for (unsigned i = 0; i < repeat->n_states; i++) /* the first one looks at all */
        if (initial_of(c, repeat, i)->kind == VALUE_COMPLEX)
            return refuse_complex(c, c->ast.nodes[repeat->first + i].column);
    if (!repeat->has_begun) { /* with the first state */
        int r = find_shape(c, repeat);
        if (r)
            return r;
        begin_as(c, repeat, c->repeats);
        repeat->has_begun = true;
        return repeats_state(c, n, initial);
    }
    if (repeat->is_number[n->result]) {
        n->value = *initial;
        return 0;
    }
    int r = graph_stepped(c, GRAPH_STATE(repeat->first_state + n->result, false),
                          (enum dtype)repeat->dtypes[n->result], &like, &node);
    return r ? r : types_set_node(node, &n->value);
}

/* ---- steps ---- */

/* Of what a step gives, and the array before it. */
static bool grow_dtypes(struct compiler *c, const struct ast_node *n)
{
    struct repeat *repeat = n->repeat;
    bool has_grown = false;
    for (unsigned i = 0; i < repeat->n_states; i++) {
        const struct value *state = types_child(c, n, 1 + i);
        const struct value *step = types_child(c, n, 1 + repeat->n_states + i);
        enum dtype dtype = types_common(c, state, step);
        if (repeat->is_number[i] && repeat->shape == 0 && step->kind == VALUE_NODE)
            repeat->shape = c->graph.nodes[step->node].shape; /* numbers have any */
        has_grown |= dtype != repeat->dtypes[i] || repeat->is_number[i];
        repeat->dtypes[i] = (uint8_t)dtype;
        repeat->is_number[i] = false;
    }
    return has_grown;
}

static bool broadcasts_to(const struct compiler *c, uint16_t shape, uint16_t to)
{
    const struct shape *a = &c->graph.shapes[to], *b = &c->graph.shapes[shape];
    int64_t dims[ARRAY_MAX_NDIM];
    int ndim = a->ndim;
    if (shape == to || b->ndim == 0)
        return true;
    if (ndim > 0)
        memcpy(dims, a->dims, (size_t)ndim * sizeof(*dims));
    return b->ndim <= ndim && array_broadcast(&ndim, dims, b->ndim, b->dims, NULL) == 0 &&
           memcmp(dims, a->dims, (size_t)ndim * sizeof(*dims)) == 0;
}

/* A running sum is no node of anything. */
static int set_node(struct compiler *c, uint32_t column, const struct value *v, enum dtype dtype,
                    uint16_t *ret)
{
    if (v->kind == VALUE_NODE && c->graph.nodes[v->node].kind == NODE_SCAN)
        return graph_used_scan(c, column, (enum op)c->graph.nodes[v->node].op);
    return types_as(c, column, v, dtype, ret);
}

static int set_nodes(struct compiler *c, const struct ast_node *n)
{
    struct repeat *repeat = n->repeat;
    const struct shape *shape = &c->graph.shapes[repeat->shape];
    for (unsigned i = 0; i < repeat->n_states; i++) {
        unsigned child = 1 + repeat->n_states + i;
        enum dtype dtype = (enum dtype)repeat->dtypes[i];
        uint32_t column = types_child_column(c, n, child);
        int r = set_node(c, column, types_child(c, n, child), dtype, &repeat->step[i]);
        if (r == 0)
            r = set_node(c, c->ast.nodes[repeat->first + i].column, initial_of(c, repeat, i), dtype,
                         &repeat->begin[i]);
        if (r)
            return r;
        uint16_t of_step = c->graph.nodes[repeat->step[i]].shape;
        if (!broadcasts_to(c, of_step, repeat->shape))
            return other_shape(c, column, "this step", repeat->shape, of_step);
        r = axes_check(c, repeat->step[i], shape);
        if (r == 0)
            r = axes_check(c, repeat->begin[i], shape);
        if (r)
            return r;
    }
    return 0;
}

static bool is_looked_through(const struct graph_node *n)
{
    return n->kind != NODE_REDUCTION && n->kind != NODE_PRODUCT && n->kind != NODE_SCAN;
}

/* What of the graph the steps and the beginning are made of: marks, one for each node. */
static uint8_t *mark_nodes(struct compiler *c, const struct repeat *repeat)
{
    const struct graph *g = &c->graph;
    uint8_t *marks = arena_take(&c->arena, g->n_nodes);
    if (marks == NULL)
        return NULL;
    memset(marks, 0, g->n_nodes);
    for (unsigned i = 0; i < repeat->n_states; i++)
        marks[repeat->begin[i]] = marks[repeat->step[i]] = 1;
    for (unsigned i = g->n_nodes; i-- > 0;) /* what reductions are of is other passes' */
        for (unsigned k = 0; marks[i] && is_looked_through(&g->nodes[i]) && k < g->nodes[i].n_src;
             k++)
            marks[g->nodes[i].src[k]] = 1;
    return marks;
}

/* Whether a node is made of the repeat's own states, by others before it that are. */
static bool is_of_states(const struct repeat *repeat, const struct graph_node *n,
                         const uint8_t *of_states)
{
    bool is = false;
    for (unsigned k = 0; k < n->n_src; k++)
        is |= of_states[n->src[k]];
    uint32_t first = GRAPH_STATE(repeat->first_state, false);
    return is || (n->kind == NODE_INPUT && n->arg >= first &&
                  n->arg < first + 2 * repeat->n_states && !graph_is_final(n->arg));
}

static int check_node(struct compiler *c, const struct repeat *repeat, const struct graph_node *n,
                      bool is_of_states)
{
    bool is_result = n->kind == NODE_REDUCTION || n->kind == NODE_PRODUCT || n->kind == NODE_SCAN;
    if (is_result && is_of_states)
        return refuse(c, repeat->column,
                      "a step cannot have a reduction, product or scan of the arrays that it "
                      "changes, which needs all of them",
                      "elements, and such as are near");
    if (n->kind == NODE_PRODUCT ||
        (n->kind == NODE_REDUCTION && n->shape != 0 && c->graph.shapes[n->shape].n_elements != 1))
        return refuse(c, repeat->column,
                      "a step can have one number that another pass makes, not an array of them",
                      "it stored first");
    if (n->kind == NODE_INPUT && graph_is_final(n->arg))
        return refuse(c, repeat->column, "a step cannot have what another repeat gives",
                      "it stored first");
    if (n->kind == NODE_INPUT && !graph_is_state(n->arg) && n->is_transposed)
        return refuse(c, repeat->column, "a step cannot have a transposed argument",
                      "it stored so");
    return 0;
}

static bool is_table_of(const struct graph *g, unsigned node, const uint8_t *marks)
{
    for (unsigned i = node + 1u; i < g->n_nodes; i++)
        if (marks[i] && g->nodes[i].kind == NODE_INSN && graph_is_lookup((enum op)g->nodes[i].op) &&
            g->nodes[i].src[1] == node)
            return true;
    return false;
}

static int check_nodes(struct compiler *c, const struct repeat *repeat)
{
    const struct graph *g = &c->graph;
    uint8_t *marks = mark_nodes(c, repeat), *of_states = arena_take(&c->arena, g->n_nodes);
    if (marks == NULL || of_states == NULL)
        return compiler_no_memory(c);
    for (unsigned i = 0; i < g->n_nodes; i++) {
        const struct graph_node *n = &g->nodes[i];
        of_states[i] = is_of_states(repeat, n, of_states);
        bool is_table =
            marks[i] && n->kind == NODE_REDUCTION && !of_states[i] && is_table_of(g, i, marks);
        int r = marks[i] && !is_table ? check_node(c, repeat, n, of_states[i]) : 0;
        if (r)
            return r;
    }
    return 0;
}

/* Nodes behind reductions belong to these: only what is above them counts. */
static int set_results(struct compiler *c, struct repeat *repeat)
{
    struct graph_node like = {.shape = repeat->shape};
    for (unsigned i = 0; i < repeat->n_states; i++) {
        const struct graph_node *begin = &c->graph.nodes[repeat->begin[i]];
        const struct graph_node *step = &c->graph.nodes[repeat->step[i]];
        like.reads |= begin->reads | step->reads;
        like.level = begin->level > like.level ? begin->level : like.level;
        like.level = step->level > like.level ? step->level : like.level;
    }
    for (unsigned i = 0; i < repeat->n_states; i++) {
        int r = graph_stepped(c, GRAPH_STATE(repeat->first_state + i, true),
                              (enum dtype)repeat->dtypes[i], &like, &repeat->final[i]);
        if (r)
            return r;
    }
    return 0;
}

static bool is_like(const struct repeat *repeat, const struct repeat *other)
{
    return repeat->n_steps == other->n_steps &&
           memcmp(repeat->step, other->step, repeat->n_states * sizeof(repeat->step[0])) == 0;
}

int repeats_apply(struct compiler *c, struct ast_node *n, uint32_t *ret_again)
{
    struct repeat *repeat = n->repeat;
    int r = repeat->is_known ? 0 : read_count(c, n, &repeat->n_steps);
    if (r)
        return r;
    for (unsigned i = 0; i < repeat->n_states; i++)
        if (types_child(c, n, 1 + repeat->n_states + i)->kind == VALUE_COMPLEX)
            return refuse_complex(c, types_child_column(c, n, 1 + repeat->n_states + i));
    if (grow_dtypes(c, n)) {
        *ret_again = repeat->first;
        return 0;
    }
    r = set_nodes(c, n);
    if (r)
        return r;
    if (repeat->like != NULL && !is_like(repeat, repeat->like)) { /* states of its own, then */
        begin_as(c, repeat, repeat->like->next);
        *ret_again = repeat->first;
        return 0;
    }
    if (repeat->like == NULL) {
        r = check_nodes(c, repeat);
        if (r == 0)
            r = set_results(c, repeat);
        if (r)
            return r;
        repeat->next = c->repeats;
        c->repeats = repeat;
    } else {
        memcpy(repeat->final, repeat->like->final, sizeof(repeat->final));
    }
    repeat->is_known = true;
    return types_set_node(repeat->final[n->result], &n->value);
}
