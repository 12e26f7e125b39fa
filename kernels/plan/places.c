/* Where the results of reductions lie in the carry: in the same memory, where one is no longer read
 * when the other is made. A quantile has counts for each of its digits, but only two of them live
 * at a time.
 *
 *     passes           0    1    2    3
 *     counts           |----|
 *     digit                 |---------|
 *     next counts                |----|      in the place of the first
 *
 * A result lives from the pass that makes it to the last one that reads it. Where the job goes in
 * rounds and its pass is done in the first one alone, it lives as long as the job: every round
 * reads it. Results are placed in their order, each at the lowest place where no other one lives at
 * the same time.
 *
 * Placing takes at most reductions^3 steps of a few instructions. Whoever asks for many lengths of
 * a round asks first for what lives at a time, which takes reductions x passes.
 *
 * Called by carry.c and rounds.c.
 */
#include "kernels/plan/planner.h"
#include "proto/util.h"

struct placed {
    uint64_t begin, end;  /* bytes */
    unsigned first, last; /* passes */
};

static void set_life(const struct planner *p, unsigned reduction, struct placed *ret)
{
    const struct program *program = p->program;
    unsigned pass = program->reductions[reduction].pass;

    ret->first = ret->last = pass;
    for (unsigned i = pass + 1u; i < program->n_passes; i++)
        if ((program->passes[i].reduced_used | program->passes[i].tables_used) >> reduction & 1)
            ret->last = i;
    if (p->round_length > 0 && p->round_axes[pass] < 0) {
        ret->first = 0;
        ret->last = program->n_passes - 1u;
    }
}

uint64_t planner_least_result_bytes(const struct planner *p)
{
    uint64_t alive[PROGRAM_MAX_PASSES] = {0}, most = 0;

    for (unsigned i = 0; i < p->program->n_reductions; i++) {
        struct placed own;
        uint64_t size = planner_one_result_bytes(p, i);
        set_life(p, i, &own);
        for (unsigned pass = own.first; pass <= own.last; pass++) {
            if (!planner_add_checked(&alive[pass], size))
                return UINT64_MAX;
            most = max_u64(most, alive[pass]);
        }
    }
    return most;
}

/* One of those placed that is in the way; NULL: none is. */
static const struct placed *find_obstacle(const struct placed *all, unsigned n,
                                          const struct placed *own)
{
    for (unsigned i = 0; i < n; i++) {
        const struct placed *other = &all[i];
        if (own->begin < other->end && other->begin < own->end && own->first <= other->last &&
            other->first <= own->last)
            return other;
    }
    return NULL;
}

uint64_t planner_place_results(const struct planner *p, uint64_t *ret_offsets)
{
    struct placed all[PROGRAM_MAX_REDUCTIONS];
    uint64_t n_bytes = 0;

    for (unsigned i = 0; i < p->program->n_reductions; i++) {
        struct placed *own = &all[i];
        const struct placed *obstacle;
        uint64_t size = planner_one_result_bytes(p, i);
        set_life(p, i, own);
        own->begin = 0;
        for (;;) {
            own->end = own->begin;
            if (!planner_add_checked(&own->end, size))
                return UINT64_MAX;
            obstacle = find_obstacle(all, i, own);
            if (!obstacle)
                break;
            own->begin = obstacle->end;
        }
        ret_offsets[i] = own->begin;
        n_bytes = max_u64(n_bytes, own->end);
    }
    return n_bytes;
}
