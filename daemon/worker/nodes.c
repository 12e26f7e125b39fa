/* Reductions of the pass in hand: whose memory a node has, when nodes are combined, when a chain's
 * values go to the results (kernels/reduce.h says what nodes, chains and trees are).
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
 * Called by the walk (passes), the scheduler (a tile's memory), engines and tile.c (grains).
 */
#include "daemon/worker/nodes.h"
#include "daemon/worker/tile.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

static const struct plan_pass *plan_of(const struct wjob *job)
{
    return &job->plan.passes[job->pass];
}

/* Passes ------------------------------------------------------------------------------------- */

void nodes_begin_pass(struct wjob *job)
{
    const struct plan_pass *plan = plan_of(job);
    job->tree = NULL;
    memset(job->stacks, 0, sizeof(job->stacks));
    if (wjob_pass(job)->n_reductions == 0 || job->first_tile == job->end_tile || !plan->has_tree)
        return;
    struct reduce_tree_shape shape = plan->tree;
    shape.n_tiles = job->end_tile - job->first_tile; /* the last round may have fewer */
    job->tree = reduce_tree_init(job->carry + job->plan.tree_offset_bytes, &shape);
}

void nodes_end_pass(struct wjob *job)
{
    assert(!job->tree || reduce_tree_is_complete(job->tree));
    if (wjob_pass(job)->n_reductions > 0 && plan_of(job)->n_tiles == 0 && job->round == 0 &&
        job->plan.n_tiles > 0) /* somebody reads them */
        plan_keep_identities(&job->plan, job->program, job->pass, job->round, job->carry);
}

bool nodes_can_begin_tile(const struct wjob *job)
{
    unsigned window = plan_of(job)->tree.window;
    if (wjob_pass(job)->n_reductions == 0 && plan_of(job)->strip_row_bytes == 0)
        return true;
    return job->tree ? job->next_tile - job->oldest_tile < window : job->n_tiles < window;
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
    t->stack.n_leaves = 0;
    t->oldest_tile = job->first_tile;
    if (plan->strip_row_bytes > 0) {
        t->stack_index = take_stack(job);
        t->block = job->carry + job->plan.tree_offset_bytes + t->stack_index * plan->node_bytes;
    }
    if (wjob_pass(job)->n_reductions == 0)
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
    if (grain_is_chain(t) || t->stack.n_leaves == 0) {
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

void tile_result_views(const struct tile *t, const int64_t *start, struct cpu_view *ret_views)
{
    const struct wjob *job = t->job;
    for (uint32_t left = wjob_pass(job)->reduced_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        plan_result_view(&job->plan, job->program, i, job->pass, start, job->carry, &ret_views[i]);
    }
}
