/* A loop of iterate() as instructions: what is there before it, the states, the steps.
 *
 *     what its steps read and that is the same in all of them
 *     a register for each state, with its first value
 *     the condition                   |
 *     the next values                 | struct program_loop: done again and again
 *     each state: where(condition, state, next) |
 *
 * Registers that are taken when the steps begin keep their values until the loop ends: what a step
 * computes takes others, which are free behind it. A node of the steps is emitted for each loop and
 * each pass that has it, so uses are counted anew.
 *
 * Called by emit.c.
 */
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"

enum of_loop {
    OF_NONE,
    IS_FIRST, /* a first value of states, and nothing else */
    IS_READ,  /* by the steps */
    IS_STEP,  /* computed in the steps */
};

struct looping {
    struct emitter *e;
    struct pass *pass;
    uint16_t loop;
    unsigned n_states;
    struct {
        struct graph_node *state;
        uint16_t next;
        struct operand value; /* of next */
    } states[EXPR_MAX_STATES];
};

/* What the loop's steps are and read. */
static void look_at(struct graph *g, uint16_t loop)
{
    for (unsigned i = 0; i < loop; i++)
        g->nodes[i].of_loop = OF_NONE;
    g->nodes[loop].of_loop = IS_STEP;
    for (unsigned i = loop + 1u; i-- > 0;) {
        struct graph_node *n = &g->nodes[i];
        if (n->of_loop == OF_NONE || (i != loop && !n->is_varying))
            continue;
        n->of_loop = IS_STEP;
        uint8_t is = n->kind == NODE_STATE ? IS_FIRST : IS_READ;
        for (unsigned k = 0; k < n->n_src; k++)
            if (g->nodes[n->src[k]].of_loop < is)
                g->nodes[n->src[k]].of_loop = is;
    }
}

/* Computed before the loop. */
static bool is_before(const struct graph_node *n)
{
    return (n->of_loop == IS_FIRST || n->of_loop == IS_READ) && graph_is_computed(n);
}

void loops_count_uses(struct emitter *e, uint16_t loop)
{
    struct graph *g = &e->c->graph;
    look_at(g, loop);
    for (unsigned i = 0; i < loop; i++)
        g->nodes[i].n_uses += is_before(&g->nodes[i]);
}

unsigned loops_push_sources(struct emitter *e, uint16_t loop, unsigned depth)
{
    struct graph *g = &e->c->graph;
    look_at(g, loop);
    for (uint16_t i = 0; i < loop; i++)
        if (is_before(&g->nodes[i]) && !emit_is_done(&g->nodes[i]))
            e->stack[depth++] = i;
    return depth;
}

static void list_states(struct looping *l)
{
    struct graph *g = &l->e->c->graph;
    const struct graph_node *step = &g->nodes[g->nodes[l->loop].src[1]];
    for (;; step = &g->nodes[step->src[2]]) {
        l->states[l->n_states].state = &g->nodes[step->src[0]];
        l->states[l->n_states++].next = step->src[1];
        if (step->n_src < 3)
            return;
    }
}

/* One use of what is there before. */
static void let_go(struct emitter *e, struct graph_node *n)
{
    if (--n->n_uses == 0)
        e->used_registers &= ~(1u << n->register_index);
}

/* A register of a first value that nobody else reads becomes the state's. */
static int begin_states(struct looping *l)
{
    struct graph *g = &l->e->c->graph;
    for (unsigned i = 0; i < l->n_states; i++) {
        struct graph_node *state = l->states[i].state, *first = &g->nodes[state->src[0]];
        struct operand value;
        int r = emit_operand(l->e, l->pass, first, &value);
        if (r == 0 && first->of_loop == IS_FIRST && is_before(first) && first->n_uses == 1)
            first->of_loop = OF_NONE;
        else if (r == 0)
            r = emit_copy(l->e, &value);
        if (r)
            return r;
        state->register_index = (uint8_t)value.index;
        emit_set_done(state, true);
    }
    for (unsigned i = 0; i < l->loop; i++)
        if (g->nodes[i].of_loop == IS_FIRST && is_before(&g->nodes[i]))
            let_go(l->e, &g->nodes[i]);
    return 0;
}

static void count_steps_uses(struct graph *g, uint16_t loop)
{
    for (unsigned i = 0; i < loop; i++) {
        struct graph_node *n = &g->nodes[i];
        if (n->of_loop != IS_STEP || n->kind != NODE_INSN)
            continue;
        n->n_uses = 0;
        emit_set_done(n, false);
    }
    for (unsigned i = 0; i <= loop; i++) {
        const struct graph_node *n = &g->nodes[i];
        for (unsigned k = 0; n->of_loop == IS_STEP && n->kind != NODE_STATE && k < n->n_src; k++)
            if (g->nodes[n->src[k]].of_loop == IS_STEP)
                g->nodes[n->src[k]].n_uses++;
    }
}

static int emit_nexts(struct looping *l, unsigned base)
{
    struct emitter *e = l->e;
    struct graph *g = &e->c->graph;
    int r = 0;
    for (unsigned i = 0; r == 0 && i < l->n_states; i++)
        r = emit_tree(e, l->pass, l->states[i].next, base);
    for (unsigned i = 0; r == 0 && i < l->n_states; i++) {
        struct graph_node *next = &g->nodes[l->states[i].next];
        r = emit_operand(e, l->pass, next, &l->states[i].value);
        /* Another state, which may have changed when this one does. */
        if (r == 0 && next->kind == NODE_STATE && next != l->states[i].state)
            r = emit_copy(e, &l->states[i].value);
    }
    return r;
}

static bool is_changed(const struct looping *l, unsigned i)
{
    return &l->e->c->graph.nodes[l->states[i].next] != l->states[i].state;
}

static bool is_any_changed(const struct looping *l)
{
    for (unsigned i = 0; i < l->n_states; i++)
        if (is_changed(l, i))
            return true;
    return false;
}

/* Where nothing changes, one state is set to itself by the condition: what it reads is an input of
 * the program, and its shape one of the result's. */
static int emit_changes(struct looping *l, const struct operand *until)
{
    bool is_any = is_any_changed(l) || until->kind == OPERAND_NONE;
    for (unsigned i = 0; i < l->n_states; i++) {
        const struct graph_node *state = l->states[i].state;
        if (!is_changed(l, i) && (is_any || i > 0))
            continue;
        struct insn *insn = emit_next_insn(l->e);
        if (insn == NULL)
            return GAD_LIMIT_EXCEEDED;
        struct operand own = {OPERAND_REGISTER, state->dtype, state->register_index};
        insn->compute = state->dtype;
        insn->dst = own;
        if (until->kind == OPERAND_NONE) {
            insn->op = emit_copy_op((enum dtype)state->dtype);
            insn->src[0] = insn->src[1] = l->states[i].value;
        } else {
            insn->op = OP_WHERE;
            insn->src[0] = *until;
            insn->src[1] = own;
            insn->src[2] = l->states[i].value;
        }
    }
    return 0;
}

/* Of a state whose result the pass reads, that; NULL: it does not. */
static struct graph_node *result_of(struct graph *g, uint16_t loop, const struct graph_node *state)
{
    for (unsigned i = loop + 1u; i < g->n_nodes; i++) {
        struct graph_node *n = &g->nodes[i];
        if (n->kind == NODE_RESULT && n->src[0] == loop && n->number == state->number)
            return n->n_uses > 0 ? n : NULL;
    }
    return NULL;
}

static void end_states(struct looping *l)
{
    struct emitter *e = l->e;
    struct graph *g = &e->c->graph;
    for (unsigned i = 0; i < l->n_states; i++) {
        const struct graph_node *state = l->states[i].state;
        struct graph_node *result = result_of(g, l->loop, state);
        if (result == NULL) {
            e->used_registers &= ~(1u << state->register_index);
            continue;
        }
        result->register_index = state->register_index;
        emit_set_done(result, true);
    }
    for (unsigned i = 0; i < l->loop; i++)
        if (g->nodes[i].of_loop == IS_READ && is_before(&g->nodes[i]))
            let_go(e, &g->nodes[i]);
}

static int add_loop(struct looping *l, const struct program_loop *loop)
{
    struct program *p = &l->e->draft;
    if (p->n_loops == PROGRAM_MAX_LOOPS) {
        int r = compiler_fail(l->e->c, GAD_LIMIT_EXCEEDED, 0,
                              "iterate: the expression needs more than %d loops in all passes",
                              PROGRAM_MAX_LOOPS);
        error_expected(l->e->c->error, "at most %d", PROGRAM_MAX_LOOPS);
        return r;
    }
    p->loops[p->n_loops++] = *loop;
    return 0;
}

int loops_emit(struct emitter *e, struct pass *pass, uint16_t loop, unsigned base)
{
    struct graph *g = &e->c->graph;
    struct graph_node *n = &g->nodes[loop], *until = &g->nodes[n->src[0]];
    struct looping l = {.e = e, .pass = pass, .loop = loop};
    bool is_endless = until->kind == NODE_CONST && until->value.u64 == 0;
    look_at(g, loop);
    list_states(&l);
    int r = begin_states(&l);
    if (r)
        return r;
    struct program_loop made = {.first_insn = e->draft.n_insns, .n_steps = n->n_bins};
    uint32_t held = e->used_registers;
    e->is_in_loop = true;
    count_steps_uses(g, loop);
    r = emit_tree(e, pass, n->src[0], base);
    if (r == 0 && !is_endless)
        r = emit_operand(e, pass, until, &made.until);
    made.n_until = e->draft.n_insns - made.first_insn;
    if (r == 0)
        r = emit_nexts(&l, base);
    if (r == 0)
        r = emit_changes(&l, &made.until);
    e->is_in_loop = false;
    if (r)
        return r;
    made.n_insns = e->draft.n_insns - made.first_insn;
    if (!is_any_changed(&l))
        made.n_steps = 1;
    e->used_registers = held;
    end_states(&l);
    emit_set_done(n, true);
    return made.n_insns > 0 ? add_loop(&l, &made) : 0;
}
