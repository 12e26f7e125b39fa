/* One pass of the graph as instructions: their order and their registers.
 *
 * From the roots down every node is emitted once, sources first, the source that needs most
 * registers before the others. A register is free again after the last use of its value, and the
 * result of an instruction takes over a register of its sources where both have the same item
 * size (an engine may then work in place without care for overlapping widths). Registers of roots
 * live to the end of the pass, where they are reduced and stored.
 *
 * A root that is a bare input is read as late as it is reduced or stored, and another store of the
 * pass may be in place over it (`a, b = b, a`): such an input is first copied to a register, so
 * that no store changes what another one has still to read. A bare index(axis) is copied to one
 * too: engines make indices for instructions only.
 *
 * Called by assemble.c, pass after pass.
 */
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"

#include <inttypes.h>
#include <string.h>

enum { STATE_NEW, STATE_DONE };

#define IS_OPEN 0x8000u /* on the stack: sources are done, emit the node itself */

static int too_many(struct emitter *e, uint32_t column, const char *what, unsigned limit)
{
    int r = compiler_fail(e->c, GAD_LIMIT_EXCEEDED, column, "the expression needs more than %u %s",
                          limit, what);
    error_expected(e->c->error, "at most %u %s", limit, what);
    return r;
}

static struct graph_node *node_at(struct emitter *e, uint16_t index)
{
    return &e->c->graph.nodes[index];
}

/* ---- registers ---- */

static int take_register(struct emitter *e, uint8_t *ret)
{
    *ret = 0;
    uint32_t free_registers = ~e->used_registers;
    if (free_registers == 0)
        return too_many(e, 0, "registers", PROGRAM_MAX_REGISTERS);
    uint32_t index = (uint32_t)__builtin_ctz(free_registers);
    e->used_registers |= 1u << index;
    if (index + 1 > e->most_registers)
        e->most_registers = index + 1;
    *ret = (uint8_t)index;
    return 0;
}

/* One use of a source is made. */
static void release(struct emitter *e, struct graph_node *n)
{
    bool is_held = e->is_in_loop && !n->is_varying; /* steps to come read it too */
    if ((n->kind == NODE_INSN || n->kind == NODE_RESULT) && !is_held && --n->n_uses == 0)
        e->used_registers &= ~(1u << n->register_index);
}

/* ---- operands ---- */

static int const_operand(struct emitter *e, struct graph_node *n, uint16_t *ret)
{
    struct program *p = &e->draft;
    if (n->index == NODE_NONE) {
        if (p->n_consts == PROGRAM_MAX_CONSTS)
            return too_many(e, 0, "constants", PROGRAM_MAX_CONSTS);
        p->consts[p->n_consts] = (struct program_const){(enum dtype)n->dtype, n->value};
        n->index = p->n_consts++;
    }
    *ret = n->index;
    return 0;
}

static void use_input(struct pass *pass, const struct graph_node *n, unsigned input)
{
    *(graph_is_state(n->arg) ? &pass->states_used : &pass->inputs_used) |= UINT64_C(1) << input;
}

/* Each pass has nears of its own: a node's index may be of an earlier one. */
static int near_operand(struct emitter *e, struct pass *pass, struct graph_node *n, uint16_t *ret)
{
    struct program *p = &e->draft;
    const struct near_shift *shift = e->c->graph.shifts[n->near - 1];
    if (n->index == NODE_NONE || n->index < pass->first_near) {
        if (pass->n_nears == PASS_MAX_NEARS)
            return too_many(e, shift->column, "offsets of near() in one pass", PASS_MAX_NEARS);
        if (p->n_nears == e->max_nears)
            return too_many(e, shift->column, "offsets of near()", e->max_nears);
        struct program_near *near = &p->nears[p->n_nears];
        *near = (struct program_near){.input = n->register_index, .beyond = shift->beyond};
        memcpy(near->offsets, shift->offsets, sizeof(near->offsets));
        memcpy(near->modes, shift->modes, sizeof(near->modes));
        n->index = p->n_nears++;
        if (pass->n_nears++ == 0)
            e->near_column = shift->column;
    }
    *ret = n->index;
    use_input(pass, n, n->register_index);
    return 0;
}

int emit_operand(struct emitter *e, struct pass *pass, struct graph_node *n, struct operand *ret)
{
    *ret = (struct operand){.dtype = n->dtype};
    switch (n->kind) {
    case NODE_INPUT:
        ret->kind = graph_is_moved(&e->c->graph, n) ? OPERAND_NEAR : OPERAND_INPUT;
        if (ret->kind == OPERAND_NEAR)
            return near_operand(e, pass, n, &ret->index);
        ret->index = n->index;
        use_input(pass, n, ret->index);
        return 0;
    case NODE_CONST: ret->kind = OPERAND_CONST; return const_operand(e, n, &ret->index);
    case NODE_REDUCTION:
    case NODE_PRODUCT:
        ret->kind = OPERAND_REDUCED;
        ret->index = n->index;
        pass->reduced_used |= UINT64_C(1) << n->index;
        return 0;
    case NODE_WINDOW:
        if (e->is_inner) {
            int r = compiler_fail(e->c, GAD_BAD_EXPRESSION, e->c->graph.windows[n->window]->column,
                                  "a window in the steps of a repeat: take one step at a time");
            error_expected(e->c->error, "steps without windows");
            return r;
        }
        ret->kind = OPERAND_WINDOW;
        ret->index = n->index;
        pass->windows_used |= UINT64_C(1) << n->index;
        return 0;
    case NODE_INDEX:
        ret->kind = OPERAND_INDEX;
        ret->index = (uint16_t)(n->axis < 0 ? n->axis + pass->ndim : n->axis);
        if (n->axis == INDEX_FLAT)
            ret->index = OPERAND_INDEX_FLAT;
        return 0;
    default:
        ret->kind = OPERAND_REGISTER;
        ret->index = n->register_index;
        return 0;
    }
}

/* ---- instructions ---- */

struct insn *emit_next_insn(struct emitter *e)
{
    if (e->draft.n_insns == e->max_insns) {
        (void)too_many(e, 0, "instructions", PROGRAM_MAX_INSNS);
        return NULL;
    }
    struct insn *insn = &e->draft.insns[e->draft.n_insns++];
    memset(insn, 0, sizeof(*insn));
    return insn;
}

/* The whole result of a reduction. */
static int make_table(struct pass *pass, const struct graph_node *n, struct operand *ret)
{
    *ret = (struct operand){.kind = OPERAND_TABLE, .dtype = n->dtype, .index = n->index};
    pass->tables_used |= UINT64_C(1) << n->index;
    return 0;
}

static int emit_insn(struct emitter *e, struct pass *pass, struct graph_node *n)
{
    struct insn *insn = emit_next_insn(e);
    if (insn == NULL)
        return GAD_LIMIT_EXCEEDED;
    int r = 0;
    insn->op = n->op;
    insn->compute = n->compute;
    for (unsigned i = 0; r == 0 && i < n->n_src; i++)
        r = i == 1 && graph_is_lookup((enum op)n->op)
                ? make_table(pass, node_at(e, n->src[i]), &insn->src[i])
                : emit_operand(e, pass, node_at(e, n->src[i]), &insn->src[i]);
    bool is_widened[3] = {false};
    for (unsigned i = 0; i < n->n_src; i++) {
        struct graph_node *src = node_at(e, n->src[i]);
        is_widened[i] = dtype_size((enum dtype)src->dtype) != dtype_size((enum dtype)n->dtype);
        if (!is_widened[i])
            release(e, src);
    }
    if (r == 0)
        r = take_register(e, &n->register_index);
    for (unsigned i = 0; i < n->n_src; i++)
        if (is_widened[i])
            release(e, node_at(e, n->src[i]));
    if (r)
        return r;
    n->state = STATE_DONE;
    insn->dst = (struct operand){OPERAND_REGISTER, n->dtype, n->register_index};
    return 0;
}

/* Pushes the sources so that the one that needs most is popped first. */
static unsigned push_sources(struct emitter *e, const struct graph_node *n, unsigned depth)
{
    uint16_t order[3];
    unsigned n_pending = 0;
    for (unsigned i = 0; i < n->n_src; i++) {
        const struct graph_node *src = node_at(e, n->src[i]);
        if (!graph_is_computed(src) || src->state == STATE_DONE)
            continue;
        unsigned at = n_pending++;
        for (; at > 0 && node_at(e, order[at - 1])->need >= src->need; at--)
            order[at] = order[at - 1];
        order[at] = n->src[i];
    }
    memcpy(e->stack + depth, order, n_pending * sizeof(*order));
    return depth + n_pending;
}

/* A loop gives all of its results. */
static int emit_node(struct emitter *e, struct pass *pass, uint16_t index, unsigned base)
{
    struct graph_node *n = node_at(e, index);
    if (n->kind == NODE_INSN)
        return emit_insn(e, pass, n);
    return n->kind == NODE_LOOP ? loops_emit(e, pass, index, base) : 0;
}

/* The root and all that it needs and that is not there yet. */
int emit_tree(struct emitter *e, struct pass *pass, uint16_t root, unsigned base)
{
    unsigned depth = base;
    if (graph_is_computed(node_at(e, root)))
        e->stack[depth++] = root;
    while (depth > base) {
        uint16_t top = e->stack[depth - 1];
        struct graph_node *n = node_at(e, top & ~IS_OPEN);
        if (top & IS_OPEN || n->state == STATE_DONE) {
            depth--;
            int r = n->state == STATE_DONE ? 0 : emit_node(e, pass, top & ~IS_OPEN, depth);
            if (r)
                return r;
            continue;
        }
        e->stack[depth - 1] |= IS_OPEN;
        depth =
            n->kind == NODE_LOOP ? loops_push_sources(e, top, depth) : push_sources(e, n, depth);
    }
    return 0;
}

/* ---- passes ---- */

/* What is to be evaluated for the roots: their nodes and weights. */
static unsigned list_values(const struct root *roots, unsigned n_roots, uint16_t *ret)
{
    unsigned n = 0;
    for (unsigned i = 0; i < n_roots; i++) {
        ret[n++] = roots[i].node;
        if (roots[i].weights != NODE_NONE)
            ret[n++] = roots[i].weights;
    }
    return n;
}

/* How often each node's register is read in a pass. */
static void count_uses(struct emitter *e, const uint16_t *values, unsigned n_values)
{
    struct graph *g = &e->c->graph;
    unsigned end = 0;
    for (unsigned i = 0; i < g->n_nodes; i++) {
        g->nodes[i].n_uses = 0;
        g->nodes[i].state = STATE_NEW;
    }
    for (unsigned i = 0; i < n_values; i++) {
        g->nodes[values[i]].n_uses++;
        if (values[i] + 1u > end)
            end = values[i] + 1u;
    }
    for (unsigned i = end; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        if (n->n_uses > 0 && n->kind == NODE_LOOP)
            loops_count_uses(e, (uint16_t)i);
        else if (n->n_uses > 0 && graph_is_computed(n))
            for (unsigned k = 0; k < n->n_src; k++)
                g->nodes[n->src[k]].n_uses++;
    }
}

/* Roots that need most registers come first, before others hold theirs. */
static int emit_trees(struct emitter *e, struct pass *pass, const uint16_t *values,
                      unsigned n_values)
{
    uint16_t order[2 * SCHEDULE_MAX_ROOTS];
    for (unsigned i = 0; i < n_values; i++) {
        unsigned at = i;
        for (; at > 0 && node_at(e, order[at - 1])->need < node_at(e, values[i])->need; at--)
            order[at] = order[at - 1];
        order[at] = values[i];
    }
    for (unsigned i = 0; i < n_values; i++) {
        int r = emit_tree(e, pass, order[i], 0);
        if (r)
            return r;
    }
    return 0;
}

bool emit_is_done(const struct graph_node *n)
{
    return n->state == STATE_DONE;
}

void emit_set_done(struct graph_node *n, bool is_done)
{
    n->state = is_done ? STATE_DONE : STATE_NEW;
}

enum op emit_copy_op(enum dtype dtype)
{
    return dtype_is_float(dtype) ? OP_MINIMUM : OP_BITWISE_OR;
}

int emit_copy(struct emitter *e, struct operand *operand)
{
    uint8_t register_index;
    struct insn *insn = emit_next_insn(e);
    if (insn == NULL)
        return GAD_LIMIT_EXCEEDED;
    int r = take_register(e, &register_index);
    if (r)
        return r;
    insn->op = emit_copy_op((enum dtype)operand->dtype);
    insn->compute = operand->dtype;
    insn->src[0] = insn->src[1] = *operand;
    insn->dst = (struct operand){OPERAND_REGISTER, operand->dtype, register_index};
    *operand = insn->dst;
    return 0;
}

/* Of root `index` its node, or its weights. */
static int root_operand(struct emitter *e, struct pass *pass, const struct root *roots,
                        unsigned n_roots, unsigned index, uint16_t node, struct operand *ret)
{
    struct graph_node *n = node_at(e, node);
    int r = emit_operand(e, pass, n, ret);
    if (r == 0 && n->kind == NODE_INDEX)
        return emit_copy(e, ret);
    if (r != 0 || n->kind != NODE_INPUT)
        return r;
    for (unsigned i = 0; i < n_roots; i++)
        if (i != index && roots[i].is_output && passes_may_overwrite(e->c, &roots[i], n->reads))
            return emit_copy(e, ret);
    return 0;
}

static void set_output(struct emitter *e, const struct pass *pass, const struct root *root,
                       enum dtype dtype)
{
    struct program_output *output = &e->draft.outputs[root->target];
    output->dtype = dtype;
    output->ndim = pass->ndim;
    memcpy(output->shape, pass->shape, sizeof(output->shape));
    output->pass = e->is_inner ? 0 : (uint16_t)(pass - e->draft.passes);
}

static int emit_store(struct emitter *e, struct pass *pass, const struct root *roots,
                      unsigned n_roots, unsigned index)
{
    struct program *p = &e->draft;
    struct store *store = &p->stores[p->n_stores++];
    const struct root *root = &roots[index];
    *store = (struct store){.output = root->target};
    set_output(e, pass, root, (enum dtype)node_at(e, root->node)->dtype);
    return root_operand(e, pass, roots, n_roots, index, root->node, &store->src);
}

static int emit_reduction(struct emitter *e, struct pass *pass, const struct root *roots,
                          unsigned n_roots, unsigned index)
{
    struct program *p = &e->draft;
    const struct root *root = &roots[index];
    struct graph_node *n = node_at(e, root->target);
    struct reduction *reduction = &p->reductions[p->n_reductions];
    n->index = p->n_reductions++;
    pass->reduced_axes = n->reduced_axes;
    *reduction = (struct reduction){.op = n->op,
                                    .result = n->dtype,
                                    .keeps_dims = n->keeps_dims,
                                    .is_cumulative = n->is_cumulative,
                                    .has_minus_zero = n->has_minus_zero,
                                    .pass = (uint16_t)(pass - p->passes),
                                    .n_bins = n->n_bins,
                                    .kth = n->kth};
    int r = root_operand(e, pass, roots, n_roots, index, root->node, &reduction->src);
    if (r != 0 || root->weights == NODE_NONE)
        return r;
    return root_operand(e, pass, roots, n_roots, index, root->weights, &reduction->weights);
}

/* The state, and the output that its running values are stored to. */
static int emit_scan(struct emitter *e, struct pass *pass, const struct root *roots,
                     unsigned n_roots, unsigned index)
{
    struct program *p = &e->draft;
    const struct root *root = &roots[index];
    const struct graph_node *n = node_at(e, root->scan);
    uint16_t number = p->n_reductions++;
    struct reduction *reduction = &p->reductions[number];
    pass->reduced_axes = n->reduced_axes;
    pass->scanned_axis = (int8_t)__builtin_ctz(n->reduced_axes);
    *reduction =
        (struct reduction){.op = n->op, .result = n->compute, .pass = (uint16_t)(pass - p->passes)};
    p->stores[p->n_stores++] = (struct store){.output = root->target, .scan = number};
    set_output(e, pass, root, (enum dtype)n->dtype);
    return root_operand(e, pass, roots, n_roots, index, root->node, &reduction->src);
}

static int emit_root(struct emitter *e, struct pass *pass, const struct root *roots,
                     unsigned n_roots, unsigned index)
{
    if (roots[index].scan != NODE_NONE)
        return emit_scan(e, pass, roots, n_roots, index);
    return roots[index].is_output ? emit_store(e, pass, roots, n_roots, index)
                                  : emit_reduction(e, pass, roots, n_roots, index);
}

/* What the pass reads of earlier ones. */
int emit_check_results(struct emitter *e, const struct pass *pass)
{
    const struct program *p = &e->draft;
    uint64_t n_bytes = 0;
    for (uint64_t rest = pass->tables_used; rest != 0; rest &= rest - 1) {
        unsigned i = (unsigned)__builtin_ctzll(rest);
        int64_t shape[ARRAY_MAX_NDIM];
        int ndim = program_reduction_shape(p, i, shape);
        n_bytes +=
            (uint64_t)(ndim > 0 ? shape[0] : 1) * dtype_size((enum dtype)p->reductions[i].result);
    }
    if (__builtin_popcountll(pass->reduced_used) + __builtin_popcountll(pass->tables_used) >
        PASS_MAX_RESULTS)
        return too_many(e, 0, "results of reductions in one pass", PASS_MAX_RESULTS);
    if (n_bytes <= PASS_MAX_TABLE_BYTES)
        return 0;
    int r = compiler_fail(e->c, GAD_LIMIT_EXCEEDED, 0,
                          "what is looked up in, edges of bins too, has %" PRIu64
                          " bytes; look up in parts of it, or count in fewer bins",
                          n_bytes);
    error_expected(e->c->error, "at most %u bytes", PASS_MAX_TABLE_BYTES);
    error_found(e->c->error, "%" PRIu64, n_bytes);
    return r;
}

/* What walks its arrays in an order of its own has no place for what lies around a box. */
static int check_near(struct emitter *e, const struct pass *pass, const struct root *roots)
{
    const struct program *p = &e->draft;
    const struct reduction *first = &p->reductions[pass->first_reduction];
    bool has_first = p->n_reductions > pass->first_reduction;
    const char *what = roots[0].product != 0 || roots[0].slab != 0 ? "a matrix product"
                       : has_first && first->op == OP_QR_R         ? "qr_r"
                       : has_first && first->op == OP_KTH          ? "a quantile"
                                                                   : NULL;
    bool is_near = pass->n_nears != 0 || pass->states_used != 0 || pass->windows_used != 0;
    if (!is_near || what == NULL)
        return 0;
    uint32_t column = pass->windows_used != 0 ? emit_window_column(e, pass->windows_used)
                      : pass->n_nears != 0    ? e->near_column
                                              : 0;
    int r = compiler_fail(e->c, GAD_BAD_EXPRESSION, column,
                          "%s in one pass with %s: store one of the two first",
                          pass->windows_used != 0 ? "a window" : "near", what);
    error_expected(e->c->error, "one of the two, stored");
    error_found(e->c->error, "both, of %s", what);
    return r;
}

int emit_pass(struct emitter *e, struct pass *pass, const struct root *roots, unsigned n_roots)
{
    struct program *p = &e->draft;
    const struct shape *shape = &e->c->graph.shapes[roots[0].shape];
    memset(pass, 0, sizeof(*pass));
    pass->ndim = shape->ndim;
    pass->scanned_axis = -1;
    if (shape->ndim > 0)
        memcpy(pass->shape, shape->dims, (size_t)shape->ndim * sizeof(*shape->dims));
    pass->first_insn = p->n_insns;
    pass->first_loop = p->n_loops;
    pass->first_reduction = p->n_reductions;
    pass->first_store = p->n_stores;
    pass->first_near = p->n_nears;
    e->used_registers = e->most_registers = 0;
    uint16_t values[2 * SCHEDULE_MAX_ROOTS];
    unsigned n_values = list_values(roots, n_roots, values);
    count_uses(e, values, n_values);
    int r = emit_trees(e, pass, values, n_values);
    for (unsigned i = 0; r == 0 && i < n_roots; i++)
        r = emit_root(e, pass, roots, n_roots, i);
    if (r == 0)
        r = emit_check_results(e, pass);
    if (r == 0)
        r = check_near(e, pass, roots);
    pass->n_insns = p->n_insns - pass->first_insn;
    pass->n_loops = p->n_loops - pass->first_loop;
    pass->n_reductions = p->n_reductions - pass->first_reduction;
    pass->n_stores = p->n_stores - pass->first_store;
    pass->n_registers = (uint16_t)e->most_registers;
    return r;
}
