/* Reductions of the pass in hand: whose memory a node has, when nodes are combined, when a chain's
 * values go to the results (kernels/reductions/reduce.h says what nodes, chains and trees are).
 *
 *     engine --node of a grain--> the tile's stack --the tile's node--> tree --a chain--> results
 *                                 `--- no lock ---'                 `-- nodes_lock --'
 *
 * All of it lies in the job's carry. A tile has memory for its stack from its beginning to its end:
 * a place of the tree's where chains have several tiles, else one of the plan's stacks. A chain of
 * one tile needs no tree, and a chain of one grain not even a tile's end: its values are kept as
 * soon as they are there, by the thread that has them, since nobody else writes those.
 *
 * Combining takes as long as a node is large, so it is not done under the scheduler's lock, which
 * all jobs share, but under one of the job's own. The two are never held together: what the tree
 * misses is noted in the tile, and wjob_tile_done() tells the walk. Whoever reads results is a tile
 * of a later pass, and begins after the scheduler's lock has seen all tiles of this one end.
 *
 * A pass that scans has no nodes: its tiles read and write the states of the scans in the carry,
 * each those that a tile of the step before it has written. So a tile begins when that one is done,
 * and waits for nothing once it has begun: the oldest can always go on, whatever slots and rings
 * hold.
 *
 * Called by the walk (passes), the scheduler (a tile's memory), engines and tile.c (grains).
 */
#include "daemon/worker/jobs/nodes.h"
#include "daemon/worker/jobs/product.h"
#include "daemon/worker/jobs/tile.h"
#include "proto/util.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static const struct plan_pass *plan_of(const struct wjob *job)
{
    return &job->plan.passes[job->pass];
}

/* Passes ------------------------------------------------------------------------------------- */

static bool is_scan(const struct wjob *job)
{
    return wjob_pass(job)->scanned_axis >= 0;
}

static bool has_nodes(const struct wjob *job)
{
    return wjob_pass(job)->n_reductions > 0 && !is_scan(job);
}

void nodes_begin_pass(struct wjob *job)
{
    const struct plan_pass *plan = plan_of(job);
    job->tree = NULL;
    memset(job->stacks, 0, sizeof(job->stacks));
    if (!has_nodes(job) || job->first_tile == job->end_tile || !plan->has_tree)
        return;
    struct reduce_tree_shape shape = plan->tree;
    shape.n_tiles = job->end_tile - job->first_tile; /* the last round may have fewer */
    job->tree = reduce_tree_init(job->carry + job->plan.tree_offset_bytes, &shape);
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

void nodes_end_pass(struct wjob *job)
{
    if (job->product)
        return;
    assert(!job->tree || reduce_tree_is_complete(job->tree));
    const struct plan_pass *plan = plan_of(job);
    if (!has_nodes(job) || job->plan.n_tiles == 0)
        return;
    /* Somebody may read them; what goes in rounds shares its memory with others in each of them. */
    if (plan->n_tiles == 0 && (job->round == 0 || plan->geometry.round_axis >= 0))
        plan_keep_identities(&job->plan, job->program, job->pass, job->round, job->carry);
    for (unsigned i = 0; job->round == 0 && i < job->program->n_checks; i++)
        if (job->program->reductions[job->program->checks[i].reduction].pass == job->pass)
            check(job, &job->program->checks[i]);
}

bool nodes_can_begin_tile(const struct wjob *job)
{
    if (job->product)
        return product_can_begin_turn(job);
    unsigned window = plan_of(job)->tree.window;
    if (is_scan(job))
        return job->next_tile - job->oldest_tile < PLAN_MAX_WINDOW &&
               job->oldest_tile >= plan_scan_needs(plan_of(job), job->next_tile);
    if (!has_nodes(job) && !plan_of(job)->has_strips)
        return true;
    return job->tree ? job->next_tile - job->oldest_tile < window : job->n_tiles < window;
}

/* Tiles end in any order: done ones in front of the oldest are marked at their numbers' places. */
void nodes_tile_done(struct wjob *job, const struct tile *t)
{
    if (!is_scan(job) && !job->product)
        return;
    job->stacks[t->index / 64 % ARRAY_LENGTH(job->stacks)] |= UINT64_C(1) << t->index % 64;
    for (;; job->oldest_tile++) {
        uint64_t *word = &job->stacks[job->oldest_tile / 64 % ARRAY_LENGTH(job->stacks)];
        uint64_t bit = UINT64_C(1) << job->oldest_tile % 64;
        if (!(*word & bit))
            return;
        *word &= ~bit;
    }
}

/* Tiles -------------------------------------------------------------------------------------- */

static unsigned take_stack(struct wjob *job)
{
    unsigned i = 0;
    while (job->stacks[i / 64] >> (i % 64) & 1)
        i++;
    assert(i < plan_of(job)->tree.window);
    job->stacks[i / 64] |= UINT64_C(1) << (i % 64);
    return i;
}

void tile_take_nodes(struct tile *t)
{
    struct wjob *job = t->job;
    const struct plan_pass *plan = plan_of(job);
    t->nodes = t->block = NULL;
    t->has_block = false;
    t->stack.n_leaves = t->n_in_leaf = 0;
    t->oldest_tile = job->first_tile;
    if (job->product)
        return;
    if (plan->has_strips) {
        t->stack_index = take_stack(job);
        t->block = job->carry + job->plan.tree_offset_bytes + t->stack_index * plan->node_bytes;
    }
    if (!has_nodes(job))
        return;
    if (job->tree) {
        t->nodes = reduce_tree_place(job->tree, t->index - job->first_tile);
        return;
    }
    t->stack_index = take_stack(job);
    t->nodes = job->carry + job->plan.tree_offset_bytes +
               t->stack_index * plan->stack_nodes * plan->node_bytes;
}

void tile_drop_nodes(struct tile *t)
{
    struct wjob *job = t->job;
    if (t->block || (t->nodes && !job->tree))
        job->stacks[t->stack_index / 64] &= ~(UINT64_C(1) << (t->stack_index % 64));
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
        reduce_layout_init(&layout, job->program, job->pass, n_cells);
        reduce_stack_init(&t->stack, &layout, t->nodes);
    }
    return reduce_stack_next(&t->stack);
}

const struct reduce_layout *tile_node_layout(const struct tile *t)
{
    return t->nodes ? &t->stack.layout : NULL;
}

static void keep(const struct wjob *job, uint64_t grain, const struct reduce_layout *layout,
                 const void *node)
{
    plan_keep_results(&job->plan, job->program, job->pass, grain, layout, node, job->carry);
}

void tile_push_node(struct tile *t)
{
    if (!t->nodes)
        return;
    t->n_in_leaf++;
    if (t->n_in_leaf >> plan_of(t->job)->leaf_log2 == 0 && t->grain + 1 < t->end)
        return;
    t->n_in_leaf = 0;
    reduce_stack_push(&t->stack);
    if (grain_is_chain(t))
        keep(t->job, t->grain, &t->stack.layout, reduce_stack_finish(&t->stack));
}

static void keep_chain(void *argument, uint64_t chain, const struct reduce_layout *layout,
                       const void *node)
{
    const struct wjob *job = argument;
    const struct geometry *g = &plan_of(job)->geometry;
    uint64_t first, n;
    geometry_round(g, job->round, &first, &n);
    keep(job, first + chain * g->chain_grains, layout, node);
}

void tile_combine(struct tile *t)
{
    struct wjob *job = t->job;
    if (!t->nodes || grain_is_chain(t))
        return;
    const void *node = reduce_stack_finish(&t->stack);
    if (!job->tree) {
        keep(job, t->end - 1, &t->stack.layout, node);
        return;
    }
    pthread_mutex_lock(&job->nodes_lock);
    reduce_tree_add(job->tree, t->index - job->first_tile, &t->stack.layout, keep_chain, job);
    t->oldest_tile = job->first_tile + reduce_tree_oldest_missing(job->tree);
    pthread_mutex_unlock(&job->nodes_lock);
}

/* Results ------------------------------------------------------------------------------------ */

static void state_views(const struct wjob *job, const int64_t *start, struct cpu_view *ret_views)
{
    const struct pass *pass = wjob_pass(job);
    for (unsigned i = 0; i < pass->n_reductions; i++) {
        unsigned k = pass->first_reduction + i;
        plan_state_view(&job->plan, job->program, k, start, job->carry, &ret_views[k]);
    }
}

void tile_result_views(const struct tile *t, const int64_t *start, struct cpu_view *ret_views)
{
    const struct wjob *job = t->job;
    if (is_scan(job))
        state_views(job, start, ret_views);
    for (uint64_t left = wjob_pass(job)->tables_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        ret_views[i] = (struct cpu_view){.base = plan_table(&job->plan, i, job->carry)};
    }
    for (uint64_t left = wjob_pass(job)->reduced_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        plan_result_view(&job->plan, job->program, i, job->pass, start, job->carry, &ret_views[i]);
    }
}
