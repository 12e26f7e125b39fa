/* Passes that reduce or not. A tile is a run of the pass's grains.
 *
 * Of reductions: whose memory a node has, when nodes are combined, when a chain's values go to the
 * results (kernels/reductions/reduce.h says what nodes, chains and trees are).
 *
 *     engine --node of a grain--> the tile's stack --the tile's node--> tree --a chain--> results
 *                                 `--- no lock ---'                 `-- a lock ---'
 *
 * All of it lies in the job's carry. A tile has memory for its stack from its beginning to its end:
 * a place of the tree's where chains have several tiles, else one of the plan's stacks; that bounds
 * how many tiles there are at a time and how far one is ahead of the oldest. A chain of one tile
 * needs no tree, and a chain of one grain not even a tile's end: its values are kept as soon as
 * they are there, by the thread that has them, since nobody else writes those.
 *
 * Combining takes as long as a node is large, so it is not done under the scheduler's lock, which
 * all jobs share, but under one of the job's own. The two are never held together: what the tree
 * misses is noted in the tile, and done() tells the walk. Whoever reads results is a tile of a
 * later pass, and begins after the scheduler's lock has seen all tiles of this one end.
 */
#include "daemon/worker/jobs/reads.h"
#include "proto/util.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Runs of grains ----------------------------------------------------------------------------- */

static const struct plan_pass *plan_of(const struct wjob *job)
{
    return &job->plan.passes[job->walk.stage->first_pass];
}

static const struct pass *pass_of(const struct wjob *job)
{
    return &job->program->passes[job->walk.stage->first_pass];
}

void walk_runs_begin(struct wjob *job)
{
    struct walk *w = &job->walk;
    uint64_t n_tiles;
    plan_round_tiles(plan_of(job), w->round, &w->first_tile, &n_tiles);
    w->end_tile = w->first_tile + n_tiles;
    w->n_tiles = plan_of(job)->n_tiles;
    walk_collect_ports(job, w->stage->first_pass, &w->ports);
}

void walk_runs_look(struct wjob *job)
{
    struct walk_next *next = &job->walk.next;
    *next = (struct walk_next){.ports = &job->walk.ports,
                               .is_long = plan_of(job)->tile_worst_ns > PLAN_LONG_TURN_NS};
    plan_tile_grains(plan_of(job), job->walk.next_tile, &next->position, &next->n_grains);
}

void walk_runs_take(struct tile *t)
{
    const struct wjob *job = t->job;
    uint64_t first, n;
    t->step = WALK_COMPUTE;
    t->pass = job->walk.stage->first_pass;
    t->results_used = pass_of(job)->reduced_used;
    plan_tile_grains(plan_of(job), t->index, &t->grain, &n);
    t->end = t->grain + n;
    geometry_round(&plan_of(job)->geometry, job->walk.round, &first, &n);
    t->prefetch_end = min_u64(first + n, job->walk.end_grain);
    t->end = min_u64(t->end, job->walk.end_grain);
    t->open_length = job->walk.length;
}

bool walk_runs_find_position(const struct ring_walk *walk, uint64_t *position)
{
    const struct wjob *job = walk->job;
    uint64_t first, n;
    geometry_round(&plan_of(job)->geometry, job->walk.round, &first, &n);
    *position = max_u64(*position, first);
    return *position < min_u64(first + n, job->walk.end_grain);
}

void walk_runs_position_box(const struct ring_walk *walk, uint64_t position, int64_t *ret_start,
                            int64_t *ret_count)
{
    const struct wjob *job = walk->job;
    const struct port *port = walk->port;
    const struct geometry *g = &plan_of(job)->geometry;
    const struct pass *pass = &job->program->passes[job->walk.stage->first_pass];
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    struct port_box box;
    geometry_grain(g, position, start, count);
    plan_open_clip(plan_of(job), job->walk.length, start, count);
    port_pass_box(port, g->ndim, start, count, &box);
    for (unsigned i = 0; i < job->walk.ports.n_inputs; i++)
        if (job->walk.ports.inputs[i].port == port)
            reads_box(job->program, pass, &job->walk.ports.inputs[i], start, count, &box);
    memcpy(ret_start, box.start, (size_t)port->array.ndim * sizeof(*ret_start));
    memcpy(ret_count, box.count, (size_t)port->array.ndim * sizeof(*ret_count));
}

/* Of the results, the states of a scan are those of its own pass. */
void walk_runs_views(const struct tile *t, const int64_t *start, struct engine_view *ret_outputs,
                     struct engine_view *ret_results)
{
    const struct wjob *job = t->job;
    uint64_t of_products = program_product_results(job->program);
    for (uint64_t left = tile_pass(t)->tables_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        ret_results[i] = (struct engine_view){.base = plan_table(&job->plan, i, job->carry)};
    }
    for (uint64_t left = t->results_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        if (job->program->reductions[i].pass == t->pass)
            plan_state_view(&job->plan, job->program, i, start, job->carry, &ret_results[i]);
        else
            plan_result_view(&job->plan, job->program, i, t->pass, start,
                             of_products >> i & 1 ? job->product_carry : job->carry,
                             &ret_results[i]);
    }
}

/* The stage ---------------------------------------------------------------------------------- */

static reduce_chain_done keep_chain;

static bool has_nodes(const struct wjob *job)
{
    return pass_of(job)->n_reductions > 0;
}

static void begin(struct wjob *job)
{
    struct walk_nodes *nodes = &job->walk.nodes;
    const struct plan_pass *plan = plan_of(job);
    walk_runs_begin(job);
    nodes->oldest_tile = job->walk.first_tile;
    nodes->tree = NULL;
    nodes->open_length = INT64_MAX;
    memset(nodes->stacks, 0, sizeof(nodes->stacks));
    if (!has_nodes(job) || job->walk.first_tile == job->walk.end_tile || !plan->has_tree)
        return;
    struct reduce_tree_shape shape = plan->tree;
    shape.n_tiles = job->walk.end_tile - job->walk.first_tile; /* the last round may have fewer */
    nodes->tree = reduce_tree_init(job->carry + job->plan.tree_offset_bytes, &shape);
}

/* The index as it was given: where it was below 0, the limit was added to it. */
static void found_index(struct gad_error *error, const struct program_check *check, uint64_t value)
{
    if (check->is_signed && value > INT64_MAX)
        error_found(error, "%s %" PRId64, check->found, (int64_t)(value - check->limit));
    else
        error_found(error, "%s %" PRIu64, check->found, value);
}

/* What the program takes for granted about the results of this pass. */
static void check(struct wjob *job, const struct program_check *check)
{
    const uint64_t *value = plan_table(&job->plan, check->reduction, job->carry);
    struct gad_error error;
    if (*value < check->limit)
        return;
    error_set(&error, check->status, check->argument, "%s", check->message);
    error_expected(&error, "%s", check->expected);
    if (check->status == GAD_BAD_INDEX)
        found_index(&error, check, *value);
    else
        error_found(&error, "%" PRIu64 " %s", *value, check->found);
    wjob_fail(job, check->status, &error);
}

static void end(struct wjob *job)
{
    const struct walk *w = &job->walk;
    const struct plan_pass *plan = plan_of(job);
    bool is_cut = w->end_grain < UINT64_MAX;
    assert(!w->nodes.tree || is_cut || reduce_tree_is_complete(w->nodes.tree));
    if (!has_nodes(job) || job->plan.n_tiles == 0)
        return;
    if (w->nodes.tree && is_cut)
        reduce_tree_end(w->nodes.tree, keep_chain, job);
    /* Somebody may read them; what goes in rounds shares its memory with others in each of them. */
    if ((plan->n_tiles == 0 && (w->round == 0 || plan->geometry.round_axis >= 0)) ||
        w->end_grain == 0)
        plan_keep_identities(&job->plan, job->program, w->stage->first_pass, w->round, job->carry);
    for (unsigned i = 0; w->round == 0 && i < job->program->n_checks; i++)
        if (job->program->reductions[job->program->checks[i].reduction].pass ==
            w->stage->first_pass)
            check(job, &job->program->checks[i]);
}

static bool can_begin(const struct wjob *job)
{
    const struct walk *w = &job->walk;
    unsigned window = plan_of(job)->tree.window;
    if (!has_nodes(job) && !plan_of(job)->has_swaths)
        return true;
    return w->nodes.tree ? w->next_tile - w->nodes.oldest_tile < window : job->n_tiles < window;
}

/* Threads may come here in another order than they combined in. */
static void done(struct wjob *job, const struct tile *t)
{
    job->walk.nodes.oldest_tile = max_u64(job->walk.nodes.oldest_tile, t->oldest_tile);
}

/* Tiles -------------------------------------------------------------------------------------- */

static unsigned take_stack(struct wjob *job)
{
    uint64_t *stacks = job->walk.nodes.stacks;
    unsigned i = 0;
    while (stacks[i / 64] >> (i % 64) & 1)
        i++;
    assert(i < plan_of(job)->tree.window);
    stacks[i / 64] |= UINT64_C(1) << (i % 64);
    return i;
}

static void take(struct tile *t)
{
    struct wjob *job = t->job;
    const struct walk *w = &job->walk;
    const struct plan_pass *plan = plan_of(job);
    walk_runs_take(t);
    t->oldest_tile = w->first_tile;
    if (plan->has_swaths) {
        t->stack_index = take_stack(job);
        t->block = job->carry + job->plan.tree_offset_bytes + t->stack_index * plan->node_bytes;
    }
    if (!has_nodes(job))
        return;
    if (w->nodes.tree) {
        t->nodes = reduce_tree_place(w->nodes.tree, t->index - w->first_tile);
        return;
    }
    t->stack_index = take_stack(job);
    t->nodes = job->carry + job->plan.tree_offset_bytes +
               t->stack_index * plan->stack_nodes * plan->node_bytes;
}

static void drop(struct tile *t)
{
    struct walk_nodes *nodes = &t->job->walk.nodes;
    if (t->block || (t->nodes && !nodes->tree))
        nodes->stacks[t->stack_index / 64] &= ~(UINT64_C(1) << (t->stack_index % 64));
    t->nodes = t->block = NULL;
}

static bool grain_is_chain(const struct tile *t)
{
    return plan_of(t->job)->geometry.chain_grains == 1;
}

void *tile_node(struct tile *t, const int64_t *count)
{
    const struct wjob *job = t->job;
    struct reduce_layout layout;
    if (!t->nodes)
        return NULL;
    if (t->n_in_leaf == 0 && (grain_is_chain(t) || t->stack.n_leaves == 0)) {
        uint64_t n_cells = geometry_n_cells(&plan_of(job)->geometry, count);
        reduce_layout_init(&layout, job->program, job->walk.stage->first_pass, n_cells);
        reduce_stack_init(&t->stack, &layout, t->nodes);
    }
    return reduce_stack_next(&t->stack);
}

const struct reduce_layout *tile_node_layout(const struct tile *t)
{
    return t->nodes ? &t->stack.layout : NULL;
}

static void keep(const struct wjob *job, uint64_t grain, int64_t open_length,
                 const struct reduce_layout *layout, const void *node)
{
    plan_keep_results(&job->plan, job->program, job->walk.stage->first_pass, grain, open_length,
                      layout, node, job->carry);
}

static void push_node(struct tile *t, const struct thread_context *th)
{
    if (!t->nodes)
        return;
    t->n_in_leaf++;
    if (t->n_in_leaf >> plan_of(t->job)->leaf_log2 == 0 && t->grain + 1 < t->end)
        return;
    t->n_in_leaf = 0;
    reduce_stack_push(&t->stack);
    if (grain_is_chain(t))
        keep(t->job, t->grain, t->open_length, &t->stack.layout, reduce_stack_finish(&t->stack));
}

static void keep_chain(void *argument, uint64_t chain, const struct reduce_layout *layout,
                       const void *node)
{
    const struct wjob *job = argument;
    const struct geometry *g = &plan_of(job)->geometry;
    uint64_t first, n;
    geometry_round(g, job->walk.round, &first, &n);
    keep(job, first + chain * g->chain_grains, job->walk.nodes.open_length, layout, node);
}

static void combine(struct tile *t)
{
    struct wjob *job = t->job;
    struct walk_nodes *nodes = &job->walk.nodes;
    uint64_t first_tile = job->walk.first_tile;
    if (!t->nodes || grain_is_chain(t))
        return;
    if (t->n_in_leaf > 0) /* the open axis has ended in a leaf */
        reduce_stack_push(&t->stack);
    const void *node = reduce_stack_finish(&t->stack);
    if (!nodes->tree) {
        keep(job, t->end - 1, t->open_length, &t->stack.layout, node);
        return;
    }
    pthread_mutex_lock(&nodes->lock);
    nodes->open_length = (int64_t)min_u64((uint64_t)nodes->open_length, (uint64_t)t->open_length);
    reduce_tree_add(nodes->tree, t->index - first_tile, &t->stack.layout, keep_chain, job);
    t->oldest_tile = first_tile + reduce_tree_oldest_missing(nodes->tree);
    pthread_mutex_unlock(&nodes->lock);
}

const struct walk_ops walk_pass_ops = {
    .has_runs = true,
    .begin = begin,
    .end = end,
    .look = walk_runs_look,
    .can_begin = can_begin,
    .take = take,
    .done = done,
    .drop = drop,
    .find_position = walk_runs_find_position,
    .position_box = walk_runs_position_box,
    .views = walk_runs_views,
    .grain_done = push_node,
    .combine = combine,
};
