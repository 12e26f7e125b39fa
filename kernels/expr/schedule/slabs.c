/* Walks by slabs in the schedule: the values and steps of each, and the roots of its passes.
 *
 *     t = x @ c; v = maximum(t, 0); p = x.T @ v       outputs t and p
 *
 *     values    0: X    1: c (operand)    2: t (of rows)    3: v (of rows)    4: p (sum)
 *     steps     PROJECT 2 = 0, 1    ROWS (v from t)    GATHER 4 = 0, 3    ROWS (output t)
 *     passes    X, then operands, then those of rows, then those of results
 *
 * A member's operand that is made element for element of values of rows, or of arguments, has a
 * pass of its own, in front of the member. Outputs that are of rows are stored by passes of rows;
 * one that is such an operand, by the same pass. What stages behind the slab read of it is stored
 * once more, to where results of reductions lie. A sum that is an output is stored by a pass of
 * results.
 *
 * A value that a reduction reads and that no step gives, but a pass, has a node of its own: a
 * product without operands, which is the value as it lies there.
 *
 * Passes are numbered when all are known; until then a root's part is a number in order of
 * appearance.
 *
 * Called by slab_find.c.
 */
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/slab_members.h"

#include <string.h>

struct builder {
    struct compiler *c;
    struct schedule *s;
    const struct slab_search *search;
    struct scheduled_slab *own;
    uint8_t number;       /* of the slab, one more */
    uint8_t *operands[2]; /* of each node, the value that it is in float64, in float32; SLAB_NONE */
    uint8_t *values;      /* the same, as a value of rows */
    unsigned n_parts;
    uint8_t kinds[PROGRAM_MAX_PASSES]; /* of parts, enum slab_pass_kind */
    uint16_t shapes[PROGRAM_MAX_PASSES];
    unsigned n_nodes; /* before */
    bool is_too_large;
};

/* ---- values ---- */

/* n_line_axes: the axis behind them, if there is one, is the columns'. */
static uint8_t add_value(struct builder *b, enum slab_value_kind kind, enum dtype dtype,
                         uint16_t node, int64_t n_lines, int64_t n_columns, int n_line_axes)
{
    struct program_slab *slab = &b->own->slab;
    const struct shape *shape = &b->c->graph.shapes[b->c->graph.nodes[node].shape];
    if (slab->n_values == SLAB_MAX_VALUES) {
        b->is_too_large = true;
        return 0;
    }
    struct slab_value *value = &slab->values[slab->n_values];
    *value = (struct slab_value){.kind = (uint8_t)kind,
                                 .dtype = (uint8_t)dtype,
                                 .output = SLAB_NO_OUTPUT,
                                 .kept_output = SLAB_NO_OUTPUT,
                                 .has_columns = shape->ndim > n_line_axes,
                                 .n_lines = n_lines,
                                 .n_columns = n_columns,
                                 .ndim = shape->ndim};
    if (shape->ndim > 0) /* of a number dims is NULL */
        memcpy(value->shape, shape->dims, (size_t)shape->ndim * sizeof(*shape->dims));
    b->own->nodes[slab->n_values] = NODE_NONE;
    return (uint8_t)slab->n_values++;
}

static uint8_t add_part(struct builder *b, enum slab_pass_kind kind, uint16_t shape)
{
    if (b->n_parts == PROGRAM_MAX_PASSES) {
        b->is_too_large = true;
        return 0;
    }
    b->kinds[b->n_parts] = (uint8_t)kind;
    b->shapes[b->n_parts] = shape;
    return (uint8_t)b->n_parts++;
}

/* What a pass stores for the slab itself; weights: which value that is, and whether it is what is
 * kept (slabs_place() takes it from there). */
static void add_root(struct builder *b, uint8_t part, uint16_t node, uint8_t value, bool is_kept)
{
    struct schedule *s = b->s;
    if (s->n_roots == SCHEDULE_MAX_ROOTS || b->is_too_large) {
        b->is_too_large = true;
        return;
    }
    s->roots[s->n_roots++] = (struct root){.node = node,
                                           .weights = NODE_NONE,
                                           .level = b->own->level,
                                           .shape = b->c->graph.nodes[node].shape,
                                           .target = (uint16_t)(value | is_kept << 8),
                                           .scan = NODE_NONE,
                                           .slab = b->number,
                                           .part = part,
                                           .is_output = true,
                                           .is_own = true};
}

static struct slab_step *add_step(struct builder *b, enum slab_step_kind kind)
{
    struct program_slab *slab = &b->own->slab;
    if (slab->n_steps == SLAB_MAX_STEPS) {
        b->is_too_large = true;
        slab->n_steps--;
    }
    struct slab_step *step = &slab->steps[slab->n_steps++];
    *step = (struct slab_step){
        .kind = (uint8_t)kind, .result = SLAB_NONE, .src = {SLAB_NONE, SLAB_NONE}};
    return step;
}

static int64_t rows_columns(const struct shape *shape)
{
    return shape->ndim > 1 ? shape->dims[1] : 1;
}

/* An operand as what a step multiplies in. */
static int operand_of(struct builder *b, uint16_t node, bool is_single, int64_t n_lines,
                      int n_line_axes, uint8_t *ret)
{
    struct graph *g = &b->c->graph;
    enum dtype dtype = is_single ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    uint16_t cast;
    *ret = b->operands[is_single][node];
    if (*ret != SLAB_NONE)
        return 0;
    int r = graph_cast(b->c, node, dtype, &cast);
    if (r)
        return r;
    g->nodes[cast].state = 1;
    *ret = add_value(b, SLAB_OPERAND, dtype, node, n_lines,
                     g->shapes[g->nodes[node].shape].n_elements / n_lines, n_line_axes);
    b->operands[is_single][node] = *ret;
    add_root(b, add_part(b, SLAB_PASS_OPERAND, g->nodes[node].shape), cast, *ret, false);
    return 0;
}

static uint8_t add_rows(struct builder *b, uint16_t node)
{
    const struct graph *g = &b->c->graph;
    const struct graph_node *n = &g->nodes[node];
    uint8_t value = add_value(b, SLAB_OF_ROWS, (enum dtype)n->dtype, node, b->search->n_rows,
                              rows_columns(&g->shapes[n->shape]), 1);
    b->values[node] = value;
    return value;
}

/* A value of rows: what a step gives, X, or what a pass makes. */
static uint8_t rows_of(struct builder *b, uint16_t node)
{
    if (slab_is_x(b->search, node))
        return 0;
    if (b->values[node] != SLAB_NONE)
        return b->values[node];
    uint8_t value = add_rows(b, node);
    uint8_t part = add_part(b, SLAB_PASS_ROWS, b->c->graph.nodes[node].shape);
    add_step(b, SLAB_ROWS)->pass = part;
    add_root(b, part, node, value, false);
    return value;
}

/* ---- steps ---- */

static int64_t lines_of(const struct builder *b, uint8_t value)
{
    return b->own->slab.values[value].n_columns;
}

/* Over rows, or all, of X or of a value of rows. */
static void add_sum(struct builder *b, uint16_t index)
{
    const struct graph *g = &b->c->graph;
    const struct graph_node *n = &g->nodes[index];
    const struct shape *shape = &g->shapes[n->shape];
    bool is_square, is_of_x = slab_is_sum_of_x(b->search, n, &is_square);
    uint8_t src = is_of_x ? 0 : rows_of(b, n->src[0]);
    uint8_t result =
        add_value(b, SLAB_SUM, (enum dtype)n->dtype, index, lines_of(b, src), 1, shape->ndim);
    struct slab_step *step = add_step(b, SLAB_COLUMNS);
    step->result = result;
    step->src[0] = src;
    step->is_joined = n->reduced_axes != UINT32_C(1) << (is_of_x ? b->search->row_axis : 0);
    step->is_square = is_of_x && is_square;
    b->own->nodes[result] = index;
    b->own->slab.values[result].has_reduction = true;
    b->own->slab.values[result].is_kept = b->search->flags[index] & SLAB_IS_OUTSIDE;
}

/* Along each row: times ones. */
static int add_row_sum(struct builder *b, uint16_t index)
{
    struct graph *g = &b->c->graph;
    uint16_t ones, shape;
    uint8_t src = rows_of(b, g->nodes[index].src[0]);
    int64_t n = lines_of(b, src);
    int r = graph_shape(b->c, 0, 1, &n, false, &shape);
    if (r == 0)
        r = graph_const(b->c, DTYPE_FLOAT64, (union scalar){.f64 = 1}, shape, &ones);
    if (r)
        return r;
    g->nodes[ones].state = 1;
    uint8_t operand = add_value(b, SLAB_OPERAND, DTYPE_FLOAT64, ones, n, 1, 1);
    add_root(b, add_part(b, SLAB_PASS_OPERAND, shape), ones, operand, false);
    uint8_t result = add_rows(b, index);
    struct slab_step *step = add_step(b, SLAB_MULTIPLY);
    step->result = result;
    step->src[0] = src;
    step->src[1] = operand;
    b->own->nodes[result] = index;
    b->own->slab.values[result].has_reduction = true;
    b->own->slab.values[result].is_kept = b->search->flags[index] & SLAB_IS_OUTSIDE;
    return 0;
}

/* The node that is the value as it lies in the slab. */
static int node_of_value(struct builder *b, uint8_t value, uint16_t made_of, uint16_t *ret)
{
    struct graph *g = &b->c->graph;
    *ret = b->own->nodes[value];
    if (*ret != NODE_NONE)
        return 0;
    struct graph_node key = graph_key(NODE_PRODUCT, (enum dtype)g->nodes[made_of].dtype);
    key.shape = g->nodes[made_of].shape;
    key.level = g->nodes[made_of].level;
    key.left_axes = b->number;
    key.right_axes = value;
    int r = graph_find_or_add(b->c, &key, ret);
    if (r)
        return r;
    g->nodes[*ret].slab = value + 1u;
    b->own->nodes[value] = *ret;
    b->own->slab.values[value].has_reduction = true;
    return 0;
}

/* A pass that reads one value and has one reduction: the node itself, or where it gives a value of
 * rows one like it. */
static int add_reduction(struct builder *b, uint16_t index)
{
    struct graph *g = &b->c->graph;
    struct graph_node own = g->nodes[index];
    bool gives_rows = slab_gives_rows(b->search, index);
    uint8_t src = rows_of(b, own.src[0]), part = add_part(b, SLAB_PASS_ROWS, own.over);
    uint16_t target = index;
    if (b->is_too_large || b->s->n_roots == SCHEDULE_MAX_ROOTS) {
        b->is_too_large = true;
        return 0;
    }
    int r = node_of_value(b, src, own.src[0], &own.src[0]);
    own.n_src = 0; /* nobody needs its source, should the slab be too large after all */
    own.src[1] = own.src[2] = index; /* else it would be the node itself */
    if (r == 0 && gives_rows)
        r = graph_find_or_add(b->c, &own, &target);
    if (r)
        return r;
    struct slab_step *step = add_step(b, SLAB_REDUCE);
    step->src[0] = src;
    step->pass = part;
    b->s->n_reductions++;
    b->s->roots[b->s->n_roots++] = (struct root){.node = own.src[0],
                                                 .weights = NODE_NONE,
                                                 .level = b->own->level,
                                                 .shape = own.over,
                                                 .target = target,
                                                 .scan = NODE_NONE,
                                                 .slab = b->number,
                                                 .part = part,
                                                 .reduced_axes = own.reduced_axes};
    if (!gives_rows)
        return 0;
    step->result = add_rows(b, index);
    b->own->nodes[step->result] = index;
    b->own->slab.values[step->result].has_reduction = true;
    b->own->slab.values[step->result].is_kept = b->search->flags[index] & SLAB_IS_OUTSIDE;
    return 0;
}

static int add_member(struct builder *b, uint16_t index)
{
    struct graph *g = &b->c->graph;
    const struct slab_search *search = b->search;
    if (slab_reduces_rows(search, index) && !slab_sums_rows(search, &g->nodes[index]))
        return add_reduction(b, index);
    if (g->nodes[index].kind == NODE_REDUCTION && slab_gives_rows(search, index))
        return add_row_sum(b, index);
    if (g->nodes[index].kind == NODE_REDUCTION) {
        add_sum(b, index);
        return 0;
    }
    const struct graph_node n = g->nodes[index]; /* the graph may grow */
    bool is_of_x = slab_is_of_x(search, &n), gives_rows = slab_gives_rows(search, index);
    uint16_t left = slab_left(g, &n);
    bool is_single =
        (enum dtype)n.dtype == DTYPE_FLOAT32 && search->n_columns <= SLAB_MAX_SINGLE_COLUMNS;
    uint8_t src[2], result;
    int n_line_axes = g->shapes[g->nodes[is_of_x ? search->x : left].shape].ndim - 1;
    src[0] = is_of_x ? 0 : rows_of(b, left);
    int r = 0;
    if (gives_rows)
        r = operand_of(b, n.src[1], is_single, lines_of(b, src[0]), n_line_axes, &src[1]);
    else
        src[1] = rows_of(b, n.src[1]);
    if (r)
        return r;
    if (gives_rows)
        result = add_rows(b, index);
    else
        result = add_value(b, SLAB_SUM, (enum dtype)n.dtype, index, lines_of(b, src[0]),
                           lines_of(b, src[1]), n_line_axes);
    struct slab_step *step =
        add_step(b, gives_rows ? is_of_x ? SLAB_PROJECT : SLAB_MULTIPLY : SLAB_GATHER);
    step->result = result;
    step->src[0] = src[0];
    step->src[1] = src[1];
    step->is_symmetric = !gives_rows && src[0] == src[1];
    step->is_single = is_single;
    b->own->nodes[result] = index;
    b->own->slab.values[result].has_reduction = true;
    b->own->slab.values[result].is_kept = search->flags[index] & SLAB_IS_OUTSIDE;
    return 0;
}

/* ---- what is stored ---- */

/* A pass that is behind all steps, of this kind and shape. */
static uint8_t last_part(struct builder *b, enum slab_pass_kind kind, uint16_t shape,
                         unsigned first)
{
    for (unsigned i = first; i < b->n_parts; i++)
        if (b->kinds[i] == kind && b->shapes[i] == shape)
            return (uint8_t)i;
    uint8_t part = add_part(b, kind, shape);
    if (kind == SLAB_PASS_ROWS)
        add_step(b, SLAB_ROWS)->pass = part;
    return part;
}

/* The pass that makes this operand of a step; -1: there is none. */
static int own_part(const struct builder *b, uint16_t node)
{
    for (unsigned i = 0; i < b->s->n_roots; i++) {
        const struct root *root = &b->s->roots[i];
        if (root->slab == b->number && root->is_own && root->node == node &&
            b->kinds[root->part] == SLAB_PASS_ROWS)
            return root->part;
    }
    return -1;
}

static void take_outputs(struct builder *b)
{
    const struct compiler *c = b->c;
    const struct slab_search *search = b->search;
    unsigned first = b->n_parts;
    for (unsigned i = 0; i < c->request->n_outputs; i++) {
        uint16_t node = c->outputs[i];
        struct root *root = &b->s->roots[i];
        bool is_sum = (search->flags[node] & SLAB_IS_MEMBER) && !slab_gives_rows(search, node);
        if (root->slab != 0 || root->scan != NODE_NONE ||
            (!is_sum && !slab_gives_rows(search, node)))
            continue;
        int part = is_sum ? -1 : own_part(b, node);
        if (part < 0)
            part = last_part(b, is_sum ? SLAB_PASS_RESULT : SLAB_PASS_ROWS, root->shape, first);
        root->slab = b->number;
        root->part = (uint8_t)part;
        root->level = b->own->level;
    }
    for (uint8_t i = 0; i < b->own->slab.n_values; i++) {
        const struct slab_value *value = &b->own->slab.values[i];
        if (!value->is_kept)
            continue;
        uint16_t node = b->own->nodes[i];
        enum slab_pass_kind kind = value->kind == SLAB_SUM ? SLAB_PASS_RESULT : SLAB_PASS_ROWS;
        add_root(b, last_part(b, kind, c->graph.nodes[node].shape, first), node, i, true);
    }
}

/* Passes of one kind follow each other. */
static void number_parts(struct builder *b)
{
    struct program_slab *slab = &b->own->slab;
    uint8_t numbers[PROGRAM_MAX_PASSES];
    unsigned n = 0;
    for (unsigned kind = SLAB_PASS_X; kind <= SLAB_PASS_RESULT; kind++)
        for (unsigned i = 0; i < b->n_parts; i++)
            if (b->kinds[i] == kind) {
                slab->pass_kinds[n] = (uint8_t)kind;
                numbers[i] = (uint8_t)n++;
            }
    slab->n_passes = (uint16_t)n;
    for (unsigned i = 0; i < b->s->n_roots; i++)
        if (b->s->roots[i].slab == b->number)
            b->s->roots[i].part = numbers[b->s->roots[i].part];
    for (unsigned i = 0; i < slab->n_steps; i++)
        if (slab->steps[i].kind == SLAB_ROWS || slab->steps[i].kind == SLAB_REDUCE)
            slab->steps[i].pass = numbers[slab->steps[i].pass];
}

static int start(struct builder *b, const struct slab_search *search)
{
    struct compiler *c = b->c;
    struct scheduled_slab *own = b->own;
    own->level = search->level;
    own->slab = (struct program_slab){
        .row_axis = search->row_axis, .n_rows = search->n_rows, .n_columns = search->n_columns};
    uint8_t **const of_nodes[] = {&b->operands[0], &b->operands[1], &b->values};
    for (size_t i = 0; i < ARRAY_LENGTH(of_nodes); i++) {
        *of_nodes[i] = arena_take(&c->arena, c->graph.n_nodes);
        if (*of_nodes[i] == NULL)
            return compiler_no_memory(c);
        memset(*of_nodes[i], SLAB_NONE, c->graph.n_nodes);
    }
    const struct graph_node *x = &c->graph.nodes[search->x];
    uint8_t value =
        add_value(b, SLAB_X, (enum dtype)x->dtype, search->x, search->n_rows, search->n_columns, 1);
    add_root(b, add_part(b, SLAB_PASS_X, x->shape), search->x, value, false);
    return 0;
}

/* Results of what is needed and no part of the walk: they are counted when it is there. */
static unsigned n_other_results(const struct builder *b)
{
    const struct graph *g = &b->c->graph;
    unsigned n = 0;
    for (unsigned i = 0; i < b->n_nodes; i++)
        n += g->nodes[i].state && g->nodes[i].slab == 0 &&
             (g->nodes[i].kind == NODE_REDUCTION || g->nodes[i].kind == NODE_PRODUCT) &&
             !(b->search->flags[i] & SLAB_IS_MEMBER);
    return n;
}

/* Where it is too large, everything is as if it had not been tried, but for nodes that nobody
 * needs. */
int slab_build(struct compiler *c, struct schedule *s, const struct slab_search *search)
{
    struct builder b = {.c = c,
                        .s = s,
                        .search = search,
                        .own = &s->slabs[s->n_slabs],
                        .n_nodes = c->graph.n_nodes,
                        .number = (uint8_t)(s->n_slabs + 1)};
    uint16_t n_roots = s->n_roots, n_reductions = s->n_reductions;
    int r = start(&b, search);
    for (unsigned i = 0; r == 0 && i < search->n_members; i++)
        r = add_member(&b, search->members[i]);
    if (r)
        return r;
    if (!b.is_too_large)
        take_outputs(&b);
    b.is_too_large |=
        schedule_n_results(s, s->n_slabs + 1u) + n_other_results(&b) > PROGRAM_MAX_REDUCTIONS;
    if (b.is_too_large) {
        for (unsigned i = b.n_nodes; i < c->graph.n_nodes; i++)
            c->graph.nodes[i].state = 0;
        s->n_roots = n_roots;
        s->n_reductions = n_reductions;
        for (unsigned i = 0; i < n_roots; i++) {
            struct root *root = &s->roots[i];
            if (root->slab != b.number)
                continue;
            root->slab = root->part = 0;
            root->level = c->graph.nodes[root->node].level;
        }
        return 0;
    }
    number_parts(&b);
    for (uint8_t i = 0; i < b.own->slab.n_values; i++)
        if (b.own->nodes[i] != NODE_NONE)
            c->graph.nodes[b.own->nodes[i]].slab = (uint8_t)(i + 1);
    for (unsigned i = n_roots; i < s->n_roots; i++)
        if (!s->roots[i].is_output)
            c->graph.nodes[s->roots[i].target].slab = SLAB_NONE;
    for (unsigned i = 0; i < search->n_members; i++) {
        struct graph_node *n = &c->graph.nodes[search->members[i]];
        if (n->kind == NODE_PRODUCT && !slab_is_of_x(search, n))
            n->src[0] = slab_left(&c->graph, n); /* nobody multiplies what was turned */
    }
    s->n_slabs++;
    return 0;
}
