/* Passes that scan. A tile is a run of the pass's grains, as of other passes; but it has no nodes:
 * it reads and writes the states of the scans in the carry, each those that a tile of the step
 * before it has written. So a tile begins when that one is done, and waits for nothing once it has
 * begun: the oldest can always go on, whatever slots and rings hold.
 */
#include "daemon/worker/jobs/tile.h"

static void begin(struct wjob *job)
{
    walk_runs_begin(job);
    walk_order_begin(job);
}

static void look(struct wjob *job)
{
    struct walk *w = &job->walk;
    walk_runs_look(job);
    w->next.needs = plan_scan_needs(&job->plan.passes[w->stage->first_pass], w->next_tile);
}

static void take(struct tile *t)
{
    walk_runs_take(t);
    const struct pass *pass = tile_pass(t);
    t->n_states = pass->n_reductions;
    t->results_used |= ((UINT64_C(1) << t->n_states) - 1) << pass->first_reduction;
}

const struct walk_ops walk_scan_ops = {
    .has_runs = true,
    .begin = begin,
    .look = look,
    .can_begin = walk_order_can_begin,
    .take = take,
    .done = walk_order_done,
    .find_position = walk_runs_find_position,
    .position_box = walk_runs_position_box,
    .views = walk_runs_views,
};
