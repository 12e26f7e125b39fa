/* What is computed in which pass.
 *
 * A pass walks one iteration space. Its roots, the values that it reduces or stores, have exactly
 * its shape; all they need is evaluated in it, except reductions, which earlier passes have done.
 * So every root has a level, one more than the highest of the reductions below it. Roots of one
 * level and shape share a pass, where they reduce the same axes, so that arrays are read once for
 * all of them; an output is stored in any pass of its level and shape, one that is a scan in a pass
 * of scans along the same axis alone. Those come first of their level and shape. KTHs of one source
 * have a pass for themselves, whose grains are of another shape.
 *
 * A matrix product has three passes of its own, which come first of their level, and outputs that
 * are stored in the last of them stay there (product_passes.c). So has a walk by slabs, which come
 * before all others (slab_find.c).
 *
 * An output may move to a later pass of the same shape:
 * - where it would need a pass of its own now and none then;
 * - where it may be stored over an array that a later pass still reads. Within a level, passes of
 *   larger shapes come first, so that a small array is overwritten after the last broadcast of it;
 *   of those of one shape the last one stores.
 *
 * Large results of reductions are made and read for one part of the arrays after the other, in
 * rounds (kernels/plan/rounds.c), if the pass that reads them can be cut as they are. One that
 * reduces the axes along which they are large cannot be, and an output in it would need them in
 * whole: it is stored in a pass behind that one, for which arrays are read once more, and with it
 * all others of its level and shape, which may be stored over what it reads. It follows from shapes
 * alone, so that what a reduction shares its pass with, and with it the order in which numbers are
 * added, does not depend on the pool.
 *
 * Called once for each program, between types.c and emit.c.
 */
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"
#include "proto/util.h"

#define LARGE_RESULTS (UINT64_C(128) * 1024) /* elements, for which a small pool has no room */

static void add_output(struct compiler *c, struct schedule *s, uint16_t index)
{
    const struct graph_node *n = &c->graph.nodes[c->outputs[index]];
    struct root *root = &s->roots[s->n_roots++];
    *root = (struct root){.node = c->outputs[index],
                          .weights = NODE_NONE,
                          .level = n->level,
                          .shape = c->output_shapes[index],
                          .target = index,
                          .scan = NODE_NONE,
                          .is_output = true};
    if (n->kind == NODE_SCAN) {
        root->scan = root->node;
        root->node = n->src[0];
        root->reduced_axes = n->reduced_axes;
        s->n_reductions++;
    }
}

/* The output that waits for most passes: what is too much for a program is most of all its. */
static void blame_deepest(struct compiler *c)
{
    const struct graph_node *nodes = c->graph.nodes;
    unsigned deepest = 0;
    for (unsigned i = 1; i < c->request->n_outputs; i++)
        if (nodes[c->outputs[i]].level > nodes[c->outputs[deepest]].level)
            deepest = i;
    c->argument = request_output_name(&c->request->outputs[deepest], deepest, c->unnamed);
}

unsigned schedule_n_results(const struct schedule *s, unsigned n_slabs)
{
    unsigned n = (unsigned)s->n_reductions + s->n_products;
    for (unsigned i = 0; i < n_slabs; i++)
        for (unsigned k = 0; k < s->slabs[i].slab.n_values; k++)
            n += s->slabs[i].slab.values[k].has_reduction;
    return n;
}

static int refuse_results(struct compiler *c)
{
    blame_deepest(c);
    int r = compiler_fail(c, GAD_LIMIT_EXCEEDED, 0, "too many reductions");
    error_expected(c->error, "at most %d", PROGRAM_MAX_REDUCTIONS);
    return r;
}

static int add_reduction(struct compiler *c, struct schedule *s, uint16_t index)
{
    const struct graph_node *n = &c->graph.nodes[index];
    if (schedule_n_results(s, s->n_slabs) >= PROGRAM_MAX_REDUCTIONS)
        return refuse_results(c);
    s->n_reductions++;
    s->roots[s->n_roots++] = (struct root){.node = n->src[0],
                                           .weights = n->n_src > 1 ? n->src[1] : NODE_NONE,
                                           .level = n->level - 1,
                                           .shape = n->over,
                                           .target = index,
                                           .scan = NODE_NONE,
                                           .kth_of = n->op == OP_KTH ? n->src[0] + 1u : 0,
                                           .reduced_axes = n->reduced_axes};
    return 0;
}

/* Outputs, then the reductions that they and the checks need, then the products. */
static int collect_roots(struct compiler *c, struct schedule *s)
{
    struct graph *g = &c->graph;
    for (unsigned i = 0; i < g->n_nodes; i++)
        g->nodes[i].state = 0;
    for (uint16_t i = 0; i < c->request->n_outputs; i++) {
        add_output(c, s, i);
        g->nodes[c->outputs[i]].state = 1;
    }
    for (unsigned i = 0; i < c->n_checks; i++)
        g->nodes[c->checks[i].node].state = 1;
    for (unsigned i = g->n_nodes; i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        for (unsigned k = 0; n->state && k < n->n_src; k++)
            g->nodes[n->src[k]].state = 1;
        if (n->state)
            stepping_mark(c, n, 1);
    }
    int r = slabs_find(c, s);
    for (unsigned i = g->n_nodes; r == 0 && i-- > 0;) {
        const struct graph_node *n = &g->nodes[i];
        if (!n->state || n->slab != 0)
            continue;
        r = n->kind == NODE_REDUCTION ? add_reduction(c, s, (uint16_t)i)
            : n->kind == NODE_PRODUCT ? product_passes_add(c, s, (uint16_t)i)
                                      : 0;
    }
    if (r)
        return r;
    bool is_too_much = schedule_n_results(s, s->n_slabs) > PROGRAM_MAX_REDUCTIONS;
    if (is_too_much) /* products have been added unasked */
        return refuse_results(c);
    product_passes_place(c, s);
    slabs_place(s);
    return 0;
}

/* The arguments that it reads, as a node's `reads`. */
static uint64_t reads_of(const struct compiler *c, const struct root *root)
{
    uint64_t reads = c->graph.nodes[root->node].reads;
    return root->weights == NODE_NONE ? reads : reads | c->graph.nodes[root->weights].reads;
}

static bool is_storage(const struct array *array)
{
    return array->at.kind == LOCATION_REGION || array->at.kind == LOCATION_FILE;
}

/* Only what is of the same shape and item size, and of regions at the same place of the same one,
 * is stored in place (overlap.h). Which file a descriptor is of is not known here. */
static bool may_be_in_place(const struct array *to, const struct array *from)
{
    if (from->ndim != to->ndim || !is_storage(from) ||
        dtype_size(from->dtype) != dtype_size(to->dtype))
        return false;
    for (int i = 0; i < to->ndim; i++)
        if (from->shape[i] != to->shape[i])
            return false;
    const struct location *a = &from->at, *b = &to->at;
    if (a->kind != LOCATION_REGION || b->kind != LOCATION_REGION)
        return true;
    return a->region.id == b->region.id && a->region.offset_bytes == b->region.offset_bytes;
}

uint64_t passes_overwritten(const struct job_request *request, unsigned output)
{
    const struct request_output *o = &request->outputs[output];
    uint64_t args = 0;
    if (request->is_apart || !o->has_to || !is_storage(&o->to))
        return 0;
    for (unsigned i = 0; i < request->n_args; i++)
        if (!request->args[i].is_scalar && may_be_in_place(&o->to, &request->args[i].array))
            args |= UINT64_C(1) << i;
    return args;
}

bool passes_may_overwrite(const struct compiler *c, const struct root *output, uint64_t reads)
{
    return reads != 0 && !output->is_own &&
           (reads & passes_overwritten(c->request, output->target)) != 0;
}

static uint16_t highest(uint16_t a, uint16_t b)
{
    return a > b ? a : b;
}

static bool share_scan(const struct root *a, const struct root *b)
{
    return a->scan != NODE_NONE && b->scan != NODE_NONE && a->shape == b->shape &&
           a->reduced_axes == b->reduced_axes;
}

/* Scans come first of their level and shape: what reads the array that one of them is stored over
 * must be of a lower level. */
static bool comes_before(const struct root *output, const struct root *other)
{
    return output->scan != NODE_NONE && !share_scan(output, other);
}

/* Whether the other's pass may be later than the output's, or is the same. */
static bool is_behind(const struct root *output, const struct root *other)
{
    return other->level > output->level ||
           (other->level == output->level && comes_before(output, other));
}

/* The level to which an output moves, given where all others are; its own if it stays. */
static uint16_t better_level(const struct compiler *c, const struct schedule *s,
                             const struct root *output)
{
    uint16_t safe = output->level, shared = output->level;
    bool has_company = false; /* a reduction keeps its pass in any case */
    for (unsigned i = 0; i < s->n_roots; i++) {
        const struct root *other = &s->roots[i];
        if (other == output)
            continue;
        if (is_behind(output, other) && passes_may_overwrite(c, output, reads_of(c, other)))
            safe = highest(safe, (uint16_t)(other->level + comes_before(output, other)));
        if (output->scan != NODE_NONE || other->scan != NODE_NONE || other->kth_of != 0 ||
            other->product != 0 || other->slab != 0)
            continue;
        if (other->shape == output->shape && other->level > shared)
            shared = other->level;
        if (other->shape == output->shape && other->level == output->level && !other->is_output)
            has_company = true;
    }
    return has_company || safe > shared ? safe : shared;
}

/* A scan stored over what another pass reads, which is stored over what the scan reads. */
static int no_order(struct compiler *c)
{
    int r = compiler_fail(
        c, GAD_BAD_EXPRESSION, 0,
        "scans are stored over arrays that other outputs read, and these over theirs");
    error_expected(c->error, "outputs that can be stored one after the other");
    error_found(c->error, "outputs over each other's arguments");
    return r;
}

/* Levels only rise, and no further than past all that there are. */
static int move_outputs(struct compiler *c, struct schedule *s)
{
    bool has_moved = s->n_roots > 1;
    unsigned limit = 2u * s->n_roots;
    for (unsigned i = 0; i < s->n_roots; i++)
        limit += s->roots[i].level;
    while (has_moved) {
        has_moved = false;
        for (unsigned i = 0; i < c->request->n_outputs; i++) {
            if (s->roots[i].product != 0 || s->roots[i].slab != 0)
                continue;
            uint16_t level = better_level(c, s, &s->roots[i]);
            if (level > limit)
                return no_order(c);
            has_moved |= level != s->roots[i].level;
            s->roots[i].level = level;
        }
    }
    return 0;
}

static int compare_roots(const struct graph *g, const struct root *a, const struct root *b)
{
    const struct shape *x = &g->shapes[a->shape], *y = &g->shapes[b->shape];
    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    if (a->slab != b->slab)
        return a->slab > b->slab ? -1 : 1;
    if (a->product != b->product)
        return a->product > b->product ? -1 : 1;
    if (a->product != 0 || a->slab != 0)
        return a->part - b->part;
    if (x->n_elements != y->n_elements)
        return x->n_elements > y->n_elements ? -1 : 1;
    if (x->ndim != y->ndim)
        return x->ndim > y->ndim ? -1 : 1;
    if (a->shape != b->shape)
        return a->shape < b->shape ? -1 : 1;
    if ((a->scan == NODE_NONE) != (b->scan == NODE_NONE))
        return a->scan == NODE_NONE ? 1 : -1;
    if (a->is_output != b->is_output)
        return a->is_output ? 1 : -1;
    if ((a->kth_of == 0) != (b->kth_of == 0))
        return a->kth_of == 0 ? 1 : -1;
    if (a->reduced_axes != b->reduced_axes)
        return a->reduced_axes > b->reduced_axes ? 1 : -1;
    return (a->kth_of > b->kth_of) - (a->kth_of < b->kth_of);
}

static void sort_roots(const struct compiler *c, struct schedule *s)
{
    for (unsigned i = 1; i < s->n_roots; i++) {
        struct root root = s->roots[i];
        unsigned at = i;
        for (; at > 0 && compare_roots(&c->graph, &s->roots[at - 1], &root) > 0; at--)
            s->roots[at] = s->roots[at - 1];
        s->roots[at] = root;
    }
}

/* Stores join any pass of their shape: they come last, so the last one. */
static bool share_pass(const struct root *a, const struct root *b)
{
    if (a->level != b->level || a->shape != b->shape || a->product != b->product ||
        a->slab != b->slab || a->part != b->part)
        return false;
    if (a->scan != NODE_NONE || b->scan != NODE_NONE)
        return share_scan(a, b);
    if (b->is_output)
        return a->kth_of == 0;
    return a->reduced_axes == b->reduced_axes && a->kth_of == b->kth_of;
}

/* Whether the node has several elements along one of these axes of an array of `ndim` axes. */
static bool is_long(const struct shape *shape, int ndim, uint32_t axes)
{
    for (int i = 0; i < shape->ndim; i++)
        if (shape->dims[i] > 1 && (axes >> (ndim - shape->ndim + i) & 1))
            return true;
    return false;
}

/* Whether the store reads large results that are kept along some of the axes that its pass would
 * reduce. */
static bool is_apart(const struct compiler *c, const struct root *store, uint32_t reduced_axes)
{
    const struct graph *g = &c->graph;
    uint64_t n_elements = 0;
    g->nodes[store->node].state |= SCHEDULE_IS_BELOW;
    for (unsigned i = store->node + 1u; i-- > 0;) {
        struct graph_node *n = &g->nodes[i];
        bool is_needed = n->state & SCHEDULE_IS_BELOW;
        n->state &= (uint8_t)~SCHEDULE_IS_BELOW;
        if (is_needed && n->kind == NODE_REDUCTION &&
            is_long(&g->shapes[n->shape], g->shapes[store->shape].ndim, reduced_axes))
            n_elements += min_u64((uint64_t)g->shapes[n->shape].n_elements, LARGE_RESULTS + 1);
        bool is_lookup = n->kind == NODE_INSN && graph_is_lookup((enum op)n->op);
        bool has_sources = graph_is_computed(n) || n->kind == NODE_WINDOW;
        for (unsigned k = 0; is_needed && has_sources && k < n->n_src; k++)
            if (!is_lookup || k == 0)
                g->nodes[n->src[k]].state |= SCHEDULE_IS_BELOW;
    }
    return n_elements > LARGE_RESULTS;
}

/* Whether one of the stores from the first one on, all that could share its pass, is. */
static bool is_one_apart(const struct compiler *c, const struct schedule *s, unsigned first,
                         uint32_t reduced_axes)
{
    for (unsigned i = first; i < s->n_roots && share_pass(&s->roots[first], &s->roots[i]); i++)
        if (is_apart(c, &s->roots[i], reduced_axes))
            return true;
    return false;
}

int passes_assign(struct compiler *c, struct schedule *ret)
{
    unsigned n_reductions = 0; /* of the pass at hand */
    uint32_t reduced_axes = 0;
    ret->n_roots = ret->n_passes = ret->n_reductions = ret->n_products = ret->n_slabs = 0;
    int r = collect_roots(c, ret);
    if (r == 0)
        r = move_outputs(c, ret);
    if (r)
        return r;
    sort_roots(c, ret);
    for (uint16_t i = 0; i < ret->n_roots; i++) {
        const struct root *root = &ret->roots[i];
        bool is_store = root->is_output && root->scan == NODE_NONE;
        if (root->product != 0 && root->part == PRODUCT_LEFT)
            ret->products[root->product - 1].first_pass = ret->n_passes;
        if (root->slab != 0 && (i == 0 || root[-1].slab != root->slab))
            ret->slabs[root->slab - 1].slab.first_pass = ret->n_passes;
        if (i > 0 && share_pass(&root[-1], root) &&
            (is_store ? !is_one_apart(c, ret, i, reduced_axes)
                      : n_reductions < PASS_MAX_REDUCTIONS)) {
            n_reductions += !is_store;
            continue;
        }
        n_reductions = !is_store;
        reduced_axes = is_store ? 0 : root->reduced_axes;
        if (ret->n_passes == PROGRAM_MAX_PASSES) {
            blame_deepest(c);
            r = compiler_fail(c, GAD_LIMIT_EXCEEDED, 0,
                              "the reductions need more than %d passes over the data",
                              PROGRAM_MAX_PASSES);
            error_expected(c->error, "at most %d passes", PROGRAM_MAX_PASSES);
            return r;
        }
        ret->first_root[ret->n_passes++] = i;
    }
    ret->first_root[ret->n_passes] = ret->n_roots;
    product_passes_order(ret);
    return 0;
}
