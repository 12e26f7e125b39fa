/* From the schedule to a program: the draft's arrays, its passes, and the packed result.
 *
 * The draft lives in the arena, its arrays as large as they could become. The finished program is
 * one allocation of exactly its size, with its arrays behind it, so that it is cheap to make, to
 * keep and to free.
 *
 * Called once by compile.c, after passes.c.
 */
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"
#include "proto/util.h"

#include <string.h>

/* By argument; as it is, then those that are near, then transposed. */
static bool comes_before(const struct graph_node *a, const struct graph_node *b)
{
    if (a->arg != b->arg)
        return a->arg < b->arg;
    return a->is_transposed != b->is_transposed ? a->is_transposed < b->is_transposed
                                                : a->near < b->near;
}

#define TOGETHER_MOST_REACH 128
#define TOGETHER_MOST_BYTES (8 * 1024) /* of what is read for one element */

/* The offsets that an input has so far. */
struct extent {
    int64_t low[ARRAY_MAX_NDIM], high[ARRAY_MAX_NDIM];
    int64_t around[ARRAY_MAX_NDIM];
    uint8_t modes[ARRAY_MAX_NDIM]; /* bits */
};

static void extend(struct extent *x, const struct near_shift *shift, int ndim)
{
    for (int i = 0; i < ndim; i++) {
        int64_t offset = shift ? shift->offsets[i] : 0;
        x->low[i] = offset < x->low[i] ? offset : x->low[i];
        x->high[i] = offset > x->high[i] ? offset : x->high[i];
        x->modes[i] |= (uint8_t)((offset != 0) << (shift ? shift->modes[i] : 0));
        if (!shift || shift->around[i] == 0)
            continue;
        x->around[i] = max_i64(x->around[i], shift->around[i]);
        x->modes[i] |= shift->wraps_axes >> i & 1 ? 1u << NEAR_WRAP : 1u << NEAR_EDGE;
    }
}

/* Whether one box for all of it is not much larger than what is needed. A client is asked for one
 * box at a time, and a state is there once. */
static bool suits_together(const struct emitter *e, const struct program_input *input,
                           const struct extent *x)
{
    int64_t n_bytes = (int64_t)dtype_size(input->dtype);
    if (input->is_state || e->c->request->args[input->arg].array.at.kind == LOCATION_PROVIDER)
        return true;
    for (int i = 0; i < input->ndim; i++) {
        int64_t reach = x->high[i] - x->low[i] + 2 * x->around[i];
        n_bytes = mul_saturating_i64(n_bytes, reach + 1);
        if (reach > TOGETHER_MOST_REACH || n_bytes > TOGETHER_MOST_BYTES)
            return false;
        if (x->modes[i] & (x->modes[i] - 1)) /* of several modes */
            return false;
    }
    return true;
}

/* The input whose box this node is read in, too; one more than all: there is none. */
static unsigned find_together(const struct emitter *e, const struct graph_node *n,
                              const struct near_shift *shift, struct extent *extents)
{
    const struct program *p = &e->draft;
    uint32_t arg = graph_is_state(n->arg) ? stepping_output(e->c, n->arg) : n->arg;
    for (unsigned i = 0; i < program_all_inputs(p) && !n->is_transposed; i++) {
        struct extent x = extents[i];
        if (p->inputs[i].arg != arg || p->inputs[i].is_transposed ||
            p->inputs[i].is_state != graph_is_state(n->arg))
            continue;
        extend(&x, shift, p->inputs[i].ndim);
        if (!suits_together(e, &p->inputs[i], &x))
            continue;
        extents[i] = x;
        return i;
    }
    return program_all_inputs(p);
}

static int too_many_inputs(struct emitter *e, uint32_t column, unsigned n_more)
{
    int r = compiler_fail(e->c, GAD_LIMIT_EXCEEDED, column,
                          "too many arguments are used in different ways: as they are, "
                          "transposed, or near and far apart");
    error_expected(e->c->error, "at most %d, each of these counted", REQUEST_MAX_ARGS);
    error_found(e->c->error, "%u", REQUEST_MAX_ARGS + n_more);
    return r;
}

/* False: there is no room for one more. */
static bool list_input(struct emitter *e, struct graph_node *n, struct extent *extents)
{
    const struct graph *g = &e->c->graph;
    const struct shape *shape = &g->shapes[n->shape];
    const struct near_shift *shift = n->near != 0 ? g->shifts[n->near - 1] : NULL;
    unsigned index = find_together(e, n, shift, extents);
    if (index == REQUEST_MAX_ARGS)
        return false;
    struct program_input *input = &e->draft.inputs[index];
    if (index == program_all_inputs(&e->draft)) {
        bool is_state = graph_is_state(n->arg);
        *(is_state ? &e->draft.n_states : &e->draft.n_inputs) += 1;
        *input = (struct program_input){.arg = is_state ? stepping_output(e->c, n->arg)
                                                        : (uint16_t)n->arg,
                                        .is_state = is_state,
                                        .is_transposed = n->is_transposed,
                                        .dtype = (enum dtype)n->dtype,
                                        .ndim = shape->ndim};
        if (shape->ndim > 0)
            memcpy(input->shape, shape->dims, (size_t)shape->ndim * sizeof(*shape->dims));
        for (int i = 0; i < shape->ndim; i++)
            extents[index].low[i] = extents[index].high[i] = shift ? shift->offsets[i] : 0;
        extend(&extents[index], shift, shape->ndim);
    }
    if (shift && input->place.column == 0)
        input->place = compiler_place(e->c, shift->column);
    memcpy(input->around, extents[index].around, sizeof(input->around));
    input->wraps_axes |= shift ? shift->wraps_axes : 0;
    bool is_moved = graph_is_moved(g, n);
    input->has_own |= !is_moved;
    if (!is_moved)
        n->index = (uint16_t)index;
    else
        n->register_index = (uint8_t)index;
    return true;
}

/* Those that are needed: the state says so. */
static int list_inputs(struct emitter *e)
{
    struct graph *g = &e->c->graph;
    unsigned n_used = 0, n_more = 0;
    uint32_t column = 0; /* of the first offsets for which there is no room */
    uint16_t *used = arena_take(&e->c->arena, g->n_nodes * sizeof(*used));
    struct extent *extents = arena_take(&e->c->arena, REQUEST_MAX_ARGS * sizeof(*extents));
    if (used == NULL || extents == NULL)
        return compiler_no_memory(e->c);
    memset(extents, 0, REQUEST_MAX_ARGS * sizeof(*extents));
    for (uint16_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].kind != NODE_INPUT || g->nodes[i].state == 0)
            continue;
        unsigned at = n_used++;
        for (; at > 0 && comes_before(&g->nodes[i], &g->nodes[used[at - 1]]); at--)
            used[at] = used[at - 1];
        used[at] = i;
    }
    for (unsigned i = 0; i < n_used; i++) {
        const struct graph_node *n = &g->nodes[used[i]];
        if (list_input(e, &g->nodes[used[i]], extents))
            continue;
        column = column == 0 && n->near != 0 ? g->shifts[n->near - 1]->column : column;
        n_more++;
    }
    return n_more > 0 ? too_many_inputs(e, column, n_more) : 0;
}

/* Numbers those that are needed, sources first; their weights follow each other. */
static int list_windows(struct emitter *e)
{
    struct program *p = &e->draft;
    struct graph *g = &e->c->graph;
    for (uint16_t i = 0; i < g->n_nodes; i++) {
        struct graph_node *n = &g->nodes[i];
        if (n->kind != NODE_WINDOW || n->state == 0)
            continue;
        const struct window *window = g->windows[n->window];
        unsigned n_weights = p->n_weights + window->program.n_weights;
        if (p->n_windows == PROGRAM_MAX_WINDOWS || n_weights > PROGRAM_MAX_WEIGHTS) {
            bool is_full = p->n_windows == PROGRAM_MAX_WINDOWS;
            unsigned limit = is_full ? PROGRAM_MAX_WINDOWS : PROGRAM_MAX_WEIGHTS;
            int r = compiler_fail(e->c, GAD_LIMIT_EXCEEDED, window->column, "too many %s",
                                  is_full ? "windows" : "numbers in kernels");
            error_expected(e->c->error, "at most %u", limit);
            return r;
        }
        struct program_window *w = &p->windows[p->n_windows];
        *w = window->program;
        w->dtype = g->nodes[n->src[0]].dtype;
        w->pass = (uint16_t)(p->n_passes + p->n_windows);
        w->place = compiler_place(e->c, window->column);
        w->first_weight = p->n_weights;
        if (w->n_weights > 0)
            memcpy(p->weights + p->n_weights, window->weights, w->n_weights * sizeof(*p->weights));
        p->n_weights = (uint16_t)n_weights;
        e->windows[p->n_windows] = i;
        n->index = p->n_windows++;
    }
    return 0;
}

static int beside_repeat(struct emitter *e, uint32_t column)
{
    int r = compiler_fail(e->c, GAD_BAD_EXPRESSION, column,
                          "a window in one pass with a repeat: store one of the two first");
    error_expected(e->c->error, "one of the two, stored");
    return r;
}

/* What a pass reads through windows is read with it. ret_made: how many windows are made for it. */
static int add_windows_reads(struct emitter *e, struct pass *pass, unsigned *made,
                             unsigned *ret_made)
{
    uint32_t column = 0;
    *ret_made = 0;
    for (uint64_t left = pass->windows_used; left; left &= left - 1) {
        unsigned of = e->draft.windows[__builtin_ctzll(left)].pass;
        column = emit_window_column(e, left);
        *ret_made += 1 + made[__builtin_ctzll(left)];
        pass->inputs_used |= e->draft.passes[of].inputs_used;
        pass->reduced_used |= e->draft.passes[of].reduced_used;
        pass->tables_used |= e->draft.passes[of].tables_used;
    }
    if (*ret_made > PROGRAM_MAX_MADE_WINDOWS) {
        int r = compiler_fail(e->c, GAD_LIMIT_EXCEEDED, column, "too many windows of windows");
        error_expected(e->c->error, "at most %d, each counted wherever it is read",
                       PROGRAM_MAX_MADE_WINDOWS);
        return r;
    }
    if (pass->windows_used && pass->repeats)
        return beside_repeat(e, column);
    return pass->windows_used ? emit_check_results(e, pass) : 0;
}

/* Their operands; windows of smaller numbers first, which others read. */
static int emit_windows(struct emitter *e)
{
    struct program *p = &e->draft;
    unsigned made[PROGRAM_MAX_WINDOWS], n_made;
    int r = 0;
    e->is_inner = false;
    for (uint16_t i = 0; r == 0 && i < p->n_windows; i++) {
        uint16_t node = e->c->graph.nodes[e->windows[i]].src[0];
        const struct root root = {.node = node,
                                  .weights = NODE_NONE,
                                  .shape = e->c->graph.nodes[node].shape,
                                  .target = (uint16_t)(p->n_all_outputs - p->n_windows + i),
                                  .scan = NODE_NONE,
                                  .is_output = true,
                                  .is_own = true};
        struct pass *pass = &p->passes[p->windows[i].pass];
        r = emit_pass(e, pass, &root, 1);
        if (r == 0 && pass->states_used != 0)
            r = beside_repeat(e,
                              e->c->graph.windows[e->c->graph.nodes[e->windows[i]].window]->column);
        if (r == 0)
            r = add_windows_reads(e, pass, made, &made[i]);
    }
    for (uint16_t i = 0; r == 0 && i < p->n_passes; i++)
        r = add_windows_reads(e, &p->passes[i], made, &n_made);
    return r;
}

static int emitter_init(struct emitter *e, struct compiler *c, const struct schedule *s)
{
    struct program *p = &e->draft;
    struct graph *g = &c->graph;
    size_t n_consts = g->n_nodes < PROGRAM_MAX_CONSTS ? g->n_nodes : PROGRAM_MAX_CONSTS;
    size_t n_loops = g->n_loops > 0 ? PROGRAM_MAX_LOOPS : 0;
    e->c = c;
    e->is_inner = e->is_in_loop = false;
    for (unsigned i = 0; i < g->n_nodes; i++)
        g->nodes[i].index = NODE_NONE;
    p->n_passes = s->n_passes;
    p->n_insns = p->n_loops = p->n_reductions = p->n_stores = p->n_consts = p->n_nears = 0;
    p->n_inputs = p->n_states = p->n_windows = p->n_weights = 0;
    p->n_checks = (uint16_t)c->n_checks;
    p->needs_elements = c->needs_elements;
    p->n_outputs = (uint16_t)c->request->n_outputs;
    p->n_products = s->n_products;
    p->n_slabs = s->n_slabs;
    p->n_all_outputs = s->n_all_outputs;
    for (uint16_t i = 0; i < s->n_products; i++) /* behind all others */
        g->nodes[s->products[i].node].index = (uint16_t)(s->n_reductions + i);
    slabs_number(c, s, (uint16_t)(s->n_reductions + s->n_products));
    p->windows = arena_take(&c->arena, PROGRAM_MAX_WINDOWS * sizeof(*p->windows));
    p->weights = arena_take(&c->arena, PROGRAM_MAX_WEIGHTS * sizeof(*p->weights));
    if (p->windows == NULL || p->weights == NULL)
        return compiler_no_memory(c);
    int r = stepping_number(e);
    if (r == 0)
        r = list_windows(e);
    if (r)
        return r;
    p->n_all_outputs = (uint16_t)(p->n_all_outputs + p->n_windows);
    size_t n_passes = (size_t)s->n_passes + 2u * p->n_repeats + p->n_windows;
    size_t n_insns =
        g->n_loops > 0 ? PROGRAM_MAX_INSNS : (size_t)g->n_nodes * n_passes + REQUEST_MAX_OUTPUTS;
    e->max_insns = n_insns < PROGRAM_MAX_INSNS ? (uint32_t)n_insns : PROGRAM_MAX_INSNS;
    p->insns = arena_take(&c->arena, e->max_insns * sizeof(*p->insns));
    p->loops = arena_take(&c->arena, n_loops * sizeof(*p->loops));
    p->consts = arena_take(&c->arena, n_consts * sizeof(*p->consts));
    p->inputs = arena_take(&c->arena, REQUEST_MAX_ARGS * sizeof(*p->inputs));
    e->max_nears = g->n_shifts == 0 ? 0 : (uint32_t)min_u64(n_insns, PROGRAM_MAX_NEARS);
    p->nears = arena_take(&c->arena, e->max_nears * sizeof(*p->nears));
    p->outputs = arena_take(&c->arena, p->n_all_outputs * sizeof(*p->outputs));
    e->stack =
        arena_take(&c->arena, ((size_t)g->n_nodes * (3u + g->n_loops) + 1) * sizeof(*e->stack));
    p->checks = arena_take(&c->arena, p->n_checks * sizeof(*p->checks));
    p->products = arena_take(&c->arena, p->n_products * sizeof(*p->products));
    p->slabs = arena_take(&c->arena, p->n_slabs * sizeof(*p->slabs));
    if (p->insns == NULL || p->loops == NULL || p->consts == NULL || p->inputs == NULL ||
        p->nears == NULL || p->outputs == NULL || p->checks == NULL || p->products == NULL ||
        p->slabs == NULL || e->stack == NULL)
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
    void *part = n_bytes > 0 ? memcpy(*at, from, n_bytes) : *at;
    *at += (n_bytes + 7) & ~(size_t)7;
    return part;
}

static struct program *pack_program(const struct program *draft)
{
    size_t inputs = program_all_inputs(draft) * sizeof(*draft->inputs);
    size_t nears = draft->n_nears * sizeof(*draft->nears);
    size_t outputs = draft->n_all_outputs * sizeof(*draft->outputs);
    size_t consts = draft->n_consts * sizeof(*draft->consts);
    size_t insns = draft->n_insns * sizeof(*draft->insns);
    size_t loops = draft->n_loops * sizeof(*draft->loops);
    size_t checks = draft->n_checks * sizeof(*draft->checks);
    size_t products = draft->n_products * sizeof(*draft->products);
    size_t slabs = draft->n_slabs * sizeof(*draft->slabs);
    size_t repeats = draft->n_repeats * sizeof(*draft->repeats);
    size_t inner = draft->n_inner * sizeof(*draft->inner);
    size_t windows = draft->n_windows * sizeof(*draft->windows);
    size_t weights = draft->n_weights * sizeof(*draft->weights);
    struct program *p =
        malloc(sizeof(*p) + inputs + nears + outputs + consts + insns + loops + checks + products +
               slabs + repeats + inner + windows + weights + 104);
    if (p == NULL)
        return NULL;
    char *at = (char *)(p + 1);
    *p = *draft;
    p->n_refs = 1;
    p->inputs = copy_part(&at, draft->inputs, inputs);
    p->nears = copy_part(&at, draft->nears, nears);
    p->outputs = copy_part(&at, draft->outputs, outputs);
    p->consts = copy_part(&at, draft->consts, consts);
    p->insns = copy_part(&at, draft->insns, insns);
    p->loops = copy_part(&at, draft->loops, loops);
    p->checks = copy_part(&at, draft->checks, checks);
    p->products = copy_part(&at, draft->products, products);
    p->slabs = copy_part(&at, draft->slabs, slabs);
    p->repeats = copy_part(&at, draft->repeats, repeats);
    p->inner = copy_part(&at, draft->inner, inner);
    p->windows = copy_part(&at, draft->windows, windows);
    p->weights = copy_part(&at, draft->weights, weights);
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
        r = stepping_emit(&e);
    if (r == 0)
        r = emit_windows(&e);
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
