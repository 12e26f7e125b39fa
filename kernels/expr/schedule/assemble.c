/* From the schedule to a program: the draft's arrays, its passes, and the packed result.
 *
 * The draft lives in the arena, its arrays as large as they could become. The finished program is
 * one allocation of exactly its size, with its arrays behind it, so that it is cheap to make, to
 * keep and to free.
 *
 * Called once by compile.c, after passes.c.
 */
#include "kernels/expr/schedule/schedule.h"
#include "kernels/neighbours.h"

#include <string.h>

/* By argument; as it is, then those that are near, then transposed. */
static bool comes_before(const struct graph_node *a, const struct graph_node *b)
{
    if (a->arg != b->arg)
        return a->arg < b->arg;
    return a->is_transposed != b->is_transposed ? a->is_transposed < b->is_transposed
                                                : a->near < b->near;
}

#define TOGETHER_MOST_REACH 32
#define TOGETHER_MOST_BYTES (8 * 1024) /* of what is read for one element */

/* Whether one box for all of these inputs is not much larger than what they need. A client is asked
 * for one box at a time. */
static bool suits_together(const struct emitter *e, uint64_t inputs)
{
    const struct program_input *first = &e->draft.inputs[__builtin_ctzll(inputs)];
    int64_t reach[ARRAY_MAX_NDIM], n_bytes = (int64_t)dtype_size(first->dtype);
    if (e->c->request->args[first->arg].array.at.kind == LOCATION_PROVIDER)
        return true;
    for (int i = 0; neighbours_reach(&e->draft, inputs, reach) && i < first->ndim; i++) {
        n_bytes = mul_saturating_i64(n_bytes, reach[i] + 1);
        if (reach[i] > TOGETHER_MOST_REACH || n_bytes > TOGETHER_MOST_BYTES)
            return false;
        uint8_t modes = 0;
        for (uint64_t left = inputs; left; left &= left - 1) {
            const struct program_input *input = &e->draft.inputs[__builtin_ctzll(left)];
            modes |= (uint8_t)((input->offsets[i] != 0) << input->modes[i]);
        }
        if (modes & (modes - 1)) /* of several modes */
            return false;
    }
    return true;
}

/* The first input that this one is read together with. */
static uint16_t find_together(const struct emitter *e, uint16_t index)
{
    const struct program_input *inputs = e->draft.inputs;
    for (unsigned first = 0; first < index; first++) {
        uint64_t all = UINT64_C(1) << index;
        if (inputs[first].back != 0 || inputs[first].arg != inputs[index].arg ||
            inputs[first].is_transposed || inputs[index].is_transposed)
            continue;
        for (unsigned i = first; i < index; i++)
            if (i - inputs[i].back == first)
                all |= UINT64_C(1) << i;
        if (suits_together(e, all))
            return (uint16_t)first;
    }
    return index;
}

static void list_input(struct emitter *e, struct graph_node *n, uint16_t index)
{
    const struct shape *shape = &e->c->graph.shapes[n->shape];
    struct program_input *input = &e->draft.inputs[index];
    *input = (struct program_input){.arg = (uint16_t)n->arg,
                                    .is_transposed = n->is_transposed,
                                    .dtype = (enum dtype)n->dtype,
                                    .ndim = shape->ndim};
    if (shape->ndim > 0)
        memcpy(input->shape, shape->dims, (size_t)shape->ndim * sizeof(*shape->dims));
    if (n->near != 0) {
        const struct near_shift *shift = e->c->graph.shifts[n->near - 1];
        input->is_near = true;
        input->beyond = shift->beyond;
        memcpy(input->offsets, shift->offsets, sizeof(input->offsets));
        memcpy(input->modes, shift->modes, sizeof(input->modes));
    }
    input->back = index - find_together(e, index);
    n->index = index;
}

/* Those that are needed: the state says so. */
static int list_inputs(struct emitter *e)
{
    struct graph *g = &e->c->graph;
    uint16_t used[REQUEST_MAX_ARGS];
    unsigned n_used = 0;
    for (uint16_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].kind != NODE_INPUT || g->nodes[i].state == 0)
            continue;
        unsigned at = n_used++;
        if (n_used > REQUEST_MAX_ARGS)
            continue;
        for (; at > 0 && comes_before(&g->nodes[i], &g->nodes[used[at - 1]]); at--)
            used[at] = used[at - 1];
        used[at] = i;
    }
    if (n_used > REQUEST_MAX_ARGS) {
        int r = compiler_fail(e->c, GAD_LIMIT_EXCEEDED, 0,
                              "too many arguments are used in different ways: as they are, "
                              "transposed, or near with other offsets");
        error_expected(e->c->error, "at most %d, each of these counted", REQUEST_MAX_ARGS);
        error_found(e->c->error, "%u", n_used);
        return r;
    }
    for (uint16_t i = 0; i < n_used; i++)
        list_input(e, &g->nodes[used[i]], i);
    e->draft.n_inputs = (uint16_t)n_used;
    return 0;
}

static int emitter_init(struct emitter *e, struct compiler *c, const struct schedule *s)
{
    struct program *p = &e->draft;
    struct graph *g = &c->graph;
    size_t n_insns = (size_t)g->n_nodes * s->n_passes + REQUEST_MAX_OUTPUTS;
    size_t n_consts = g->n_nodes < PROGRAM_MAX_CONSTS ? g->n_nodes : PROGRAM_MAX_CONSTS;
    e->c = c;
    e->max_insns = n_insns < PROGRAM_MAX_INSNS ? (uint32_t)n_insns : PROGRAM_MAX_INSNS;
    for (unsigned i = 0; i < g->n_nodes; i++)
        g->nodes[i].index = NODE_NONE;
    p->n_passes = s->n_passes;
    p->n_insns = p->n_reductions = p->n_stores = p->n_inputs = p->n_consts = 0;
    p->n_checks = (uint16_t)c->n_checks;
    p->needs_elements = c->needs_elements;
    p->n_outputs = (uint16_t)c->request->n_outputs;
    p->n_products = s->n_products;
    p->n_slabs = s->n_slabs;
    p->n_all_outputs = s->n_all_outputs;
    for (uint16_t i = 0; i < s->n_products; i++) /* behind all others */
        g->nodes[s->products[i].node].index = (uint16_t)(s->n_reductions + i);
    slabs_number(c, s, (uint16_t)(s->n_reductions + s->n_products));
    p->insns = arena_take(&c->arena, e->max_insns * sizeof(*p->insns));
    p->consts = arena_take(&c->arena, n_consts * sizeof(*p->consts));
    p->inputs = arena_take(&c->arena, REQUEST_MAX_ARGS * sizeof(*p->inputs));
    p->outputs = arena_take(&c->arena, p->n_all_outputs * sizeof(*p->outputs));
    e->stack = arena_take(&c->arena, ((size_t)g->n_nodes * 3 + 1) * sizeof(*e->stack));
    p->checks = arena_take(&c->arena, p->n_checks * sizeof(*p->checks));
    p->products = arena_take(&c->arena, p->n_products * sizeof(*p->products));
    p->slabs = arena_take(&c->arena, p->n_slabs * sizeof(*p->slabs));
    if (p->insns == NULL || p->consts == NULL || p->inputs == NULL || p->outputs == NULL ||
        p->checks == NULL || p->products == NULL || p->slabs == NULL || e->stack == NULL)
        return compiler_no_memory(c);
    return list_inputs(e);
}

/* When all reductions have their numbers. */
static void list_checks(struct emitter *e)
{
    const struct compiler *c = e->c;
    for (unsigned i = 0; i < c->n_checks; i++) {
        e->draft.checks[i] = c->checks[i].check;
        e->draft.checks[i].reduction = c->graph.nodes[c->checks[i].node].index;
    }
}

static void *copy_part(char **at, const void *from, size_t n_bytes)
{
    void *part = memcpy(*at, from, n_bytes);
    *at += (n_bytes + 7) & ~(size_t)7;
    return part;
}

static struct program *pack_program(const struct program *draft)
{
    size_t inputs = draft->n_inputs * sizeof(*draft->inputs);
    size_t outputs = draft->n_all_outputs * sizeof(*draft->outputs);
    size_t consts = draft->n_consts * sizeof(*draft->consts);
    size_t insns = draft->n_insns * sizeof(*draft->insns);
    size_t checks = draft->n_checks * sizeof(*draft->checks);
    size_t products = draft->n_products * sizeof(*draft->products);
    size_t slabs = draft->n_slabs * sizeof(*draft->slabs);
    struct program *p =
        malloc(sizeof(*p) + inputs + outputs + consts + insns + checks + products + slabs + 56);
    if (p == NULL)
        return NULL;
    char *at = (char *)(p + 1);
    *p = *draft;
    p->n_refs = 1;
    p->inputs = copy_part(&at, draft->inputs, inputs);
    p->outputs = copy_part(&at, draft->outputs, outputs);
    p->consts = copy_part(&at, draft->consts, consts);
    p->insns = copy_part(&at, draft->insns, insns);
    p->checks = copy_part(&at, draft->checks, checks);
    p->products = copy_part(&at, draft->products, products);
    p->slabs = copy_part(&at, draft->slabs, slabs);
    return p;
}

int assemble_program(struct compiler *c, const struct schedule *schedule, struct program **ret)
{
    struct emitter e;
    int r = emitter_init(&e, c, schedule);
    for (unsigned i = 0; r == 0 && i < schedule->n_passes; i++) {
        unsigned first = schedule->first_root[i], end = schedule->first_root[i + 1];
        r = emit_pass(&e, &e.draft.passes[i], schedule->roots + first, end - first);
    }
    if (r == 0)
        r = product_passes_finish(c, schedule, &e.draft);
    if (r)
        return r;
    slabs_finish(c, schedule, &e.draft);
    program_list_stages(&e.draft);
    list_checks(&e);
    struct program *program = pack_program(&e.draft);
    if (program == NULL)
        return compiler_no_memory(c);
    *ret = program;
    return 0;
}
