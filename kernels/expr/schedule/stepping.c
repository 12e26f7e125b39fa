/* Repeats: their two passes, and how far these read around an element.
 *
 * What a repeat gives is an input of the passes that read it, as an argument is; its own passes,
 * which make it, are in no stage (struct program_repeat). They are emitted behind all others, since
 * they may read numbers that these have reduced, and what they read of arguments and results is
 * then read by each pass that has the repeat.
 *
 * Beyond the ends of an axis a step has what the modes of its near() say of the arrays as the step
 * before has left them. With NEAR_REFLECT and NEAR_SYMMETRIC that lies on the other side of the
 * place, as far away. With NEAR_WRAP it is at the other end of the axis: then what is around a box
 * goes on beyond the end, and all that is read along the axis must.
 *
 * Called by passes.c and product_passes.c for what is needed, by assemble.c for the rest.
 */
#include "kernels/expr/schedule/schedule.h"
#include "proto/util.h"

#include <string.h>

void stepping_mark(struct compiler *c, const struct graph_node *n, uint8_t state)
{
    if (n->kind != NODE_INPUT || !graph_is_final(n->arg))
        return;
    for (const struct repeat *r = c->repeats; r != NULL; r = r->next) {
        uint32_t first = GRAPH_STATE(r->first_state, true);
        if (n->arg < first || n->arg >= first + 2 * r->n_states)
            continue;
        for (unsigned i = 0; i < r->n_states; i++) {
            c->graph.nodes[r->begin[i]].state |= state;
            c->graph.nodes[r->step[i]].state |= state;
        }
    }
}

uint16_t stepping_output(const struct compiler *c, uint32_t arg)
{
    unsigned state = (arg - GRAPH_FIRST_STATE) / 2;
    const struct repeat *r = c->repeats;
    while (state < r->first_state || state >= r->first_state + r->n_states)
        r = r->next;
    return (uint16_t)(r->first_output + state - r->first_state);
}

/* Whether some pass reads what comes out, as it is or near. */
static bool is_needed(const struct compiler *c, const struct repeat *r)
{
    uint32_t first = GRAPH_STATE(r->first_state, true);
    for (unsigned i = 0; i < c->graph.n_nodes; i++) {
        const struct graph_node *n = &c->graph.nodes[i];
        if (n->state != 0 && n->kind == NODE_INPUT && graph_is_final(n->arg) && n->arg >= first &&
            n->arg < first + 2 * r->n_states)
            return true;
    }
    return false;
}

int stepping_number(struct emitter *e)
{
    struct program *p = &e->draft;
    unsigned n_states = 0;
    p->n_repeats = p->n_inner = 0;
    p->repeats = NULL;
    p->inner = NULL;
    for (struct repeat *r = e->c->repeats; r != NULL; r = r->next) {
        r->number = NODE_NONE;
        if (!is_needed(e->c, r))
            continue;
        n_states += r->n_states;
        if (p->n_repeats == PROGRAM_MAX_REPEATS || n_states > PROGRAM_MAX_STATES) {
            int status = compiler_fail(e->c, GAD_LIMIT_EXCEEDED, r->column, "too many repeats");
            error_expected(e->c->error, "at most %d, of %d arrays together", PROGRAM_MAX_REPEATS,
                           PROGRAM_MAX_STATES);
            return status;
        }
        r->number = p->n_repeats++;
        r->first_output = p->n_all_outputs;
        p->n_all_outputs += (uint16_t)r->n_states;
    }
    if (p->n_repeats == 0)
        return 0;
    p->repeats = arena_take(&e->c->arena, p->n_repeats * sizeof(*p->repeats));
    p->inner = arena_take(&e->c->arena, 2 * p->n_repeats * sizeof(*p->inner));
    return p->repeats == NULL || p->inner == NULL ? compiler_no_memory(e->c) : 0;
}

/* ---- around an element ---- */

static bool is_state_of(const struct program *p, const struct program_repeat *of, unsigned input)
{
    const struct program_input *i = &p->inputs[input];
    return i->is_state && i->arg >= of->first_output && i->arg < of->first_output + of->n_states;
}

/* What a pass reads near of the repeat's states, added to what is there. modes: bits of each axis.
 */
static void add_reach(const struct program *p, const struct program_repeat *of,
                      const struct pass *pass, int64_t *before, int64_t *behind, uint8_t *modes)
{
    for (unsigned k = 0; k < pass->n_nears; k++) {
        const struct program_near *near = &p->nears[pass->first_near + k];
        for (int i = 0; is_state_of(p, of, near->input) && i < of->ndim; i++) {
            int64_t offset = near->offsets[i];
            if (offset == 0)
                continue;
            bool is_mirrored = near->modes[i] == NEAR_REFLECT || near->modes[i] == NEAR_SYMMETRIC;
            modes[i] |= (uint8_t)(1u << near->modes[i]);
            if ((offset < 0 || is_mirrored) && llabs(offset) > before[i])
                before[i] = llabs(offset);
            if ((offset > 0 || is_mirrored) && llabs(offset) > behind[i])
                behind[i] = llabs(offset);
        }
    }
}

static int find_reach(struct emitter *e, const struct repeat *r, struct program_repeat *of)
{
    const struct program *p = &e->draft;
    uint8_t modes[ARRAY_MAX_NDIM] = {0};
    add_reach(p, of, &p->inner[of->step], of->before, of->behind, modes);
    for (unsigned i = 0; i < p->n_passes; i++)
        add_reach(p, of, &p->passes[i], of->last_before, of->last_behind, modes);
    for (int i = 0; i < of->ndim; i++) {
        if (!(modes[i] >> NEAR_WRAP & 1))
            continue;
        of->wrapped_axes |= UINT32_C(1) << i;
        if (modes[i] == 1u << NEAR_WRAP)
            continue;
        int status = compiler_fail(e->c, GAD_BAD_EXPRESSION, r->column,
                                   "repeat: along axis %d one near() has mode 'wrap', another "
                                   "another one",
                                   i);
        error_expected(e->c->error, "one of the two along an axis");
        return status;
    }
    return 0;
}

/* ---- passes ---- */

static int emit_inner(struct emitter *e, const struct repeat *r, const uint16_t *nodes)
{
    struct root roots[PROGRAM_MAX_STATES];
    for (uint16_t i = 0; i < r->n_states; i++)
        roots[i] = (struct root){.node = nodes[i],
                                 .weights = NODE_NONE,
                                 .shape = r->shape,
                                 .target = r->first_output + i,
                                 .scan = NODE_NONE,
                                 .is_output = true,
                                 .is_own = true};
    return emit_pass(e, &e->draft.inner[e->draft.n_inner++], roots, r->n_states);
}

/* What may be counted or go wrong in an instruction. */
static bool has_events(const struct insn *insn)
{
    bool is_integer = !dtype_is_float((enum dtype)insn->compute);
    switch (insn->op) {
    case OP_CAST: return !is_integer && !dtype_is_float((enum dtype)insn->dst.dtype);
    case OP_FLOOR_DIVIDE:
    case OP_REMAINDER:
    case OP_FMOD:
    case OP_POWER: return is_integer;
    default: return false;
    }
}

static void find_kind(const struct program *p, struct program_repeat *of)
{
    const struct pass *step = &p->inner[of->step];
    of->is_flat = true;
    for (unsigned i = 0; i < step->n_insns; i++) {
        const struct insn *insn = &p->insns[step->first_insn + i];
        of->warns |= has_events(insn);
        for (unsigned k = 0; k < 3; k++)
            of->is_flat &= insn->src[k].kind != OPERAND_INDEX;
    }
    of->is_flat &= !of->warns;
}

static bool reads(const struct program *p, const struct pass *pass, const struct program_repeat *of)
{
    for (uint64_t left = pass->states_used; left != 0; left &= left - 1)
        if (is_state_of(p, of, (unsigned)__builtin_ctzll(left)))
            return true;
    return false;
}

/* What the repeat reads is read by every pass that has it. */
static int join(struct emitter *e, const struct repeat *r, const struct program_repeat *of)
{
    struct program *p = &e->draft;
    const struct pass *inner[2] = {&p->inner[of->begin], &p->inner[of->step]};
    for (unsigned i = 0; i < p->n_passes; i++) {
        struct pass *pass = &p->passes[i];
        if (!reads(p, pass, of))
            continue;
        pass->repeats |= UINT32_C(1) << r->number;
        for (unsigned k = 0; k < 2; k++) {
            pass->inputs_used |= inner[k]->inputs_used;
            pass->reduced_used |= inner[k]->reduced_used;
            pass->tables_used |= inner[k]->tables_used;
        }
        if (__builtin_popcountll(pass->reduced_used) + __builtin_popcountll(pass->tables_used) <=
            PASS_MAX_RESULTS)
            continue;
        int status = compiler_fail(e->c, GAD_LIMIT_EXCEEDED, r->column,
                                   "repeat: too many results of reductions in one pass");
        error_expected(e->c->error, "at most %d", PASS_MAX_RESULTS);
        return status;
    }
    return 0;
}

int stepping_emit(struct emitter *e)
{
    struct program *p = &e->draft;
    int status = 0;
    e->is_inner = true;
    for (const struct repeat *r = e->c->repeats; status == 0 && r != NULL; r = r->next) {
        if (r->number == NODE_NONE)
            continue;
        const struct shape *shape = &e->c->graph.shapes[r->shape];
        struct program_repeat *of = &p->repeats[r->number];
        *of = (struct program_repeat){.n_steps = r->n_steps,
                                      .place = compiler_place(e->c, r->column),
                                      .begin = p->n_inner,
                                      .step = p->n_inner + 1u,
                                      .first_output = r->first_output,
                                      .n_states = (uint16_t)r->n_states,
                                      .ndim = shape->ndim};
        if (shape->ndim > 0)
            memcpy(of->shape, shape->dims, (size_t)shape->ndim * sizeof(*shape->dims));
        status = emit_inner(e, r, r->begin);
        if (status == 0)
            status = emit_inner(e, r, r->step);
        if (status == 0)
            status = find_reach(e, r, of);
        if (status == 0) {
            find_kind(p, of);
            status = join(e, r, of);
        }
    }
    return status;
}
