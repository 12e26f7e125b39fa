/* Where the results of reductions lie in the carry: in the same memory, where one is no longer read
 * when the other is made. A quantile has counts for each of its digits, but only two of them live
 * at a time.
 *
 *     stages           0    1    2    3
 *     counts           |----|
 *     digit                 |---------|
 *     next counts                |----|      in the place of the first
 *
 * A result lives from the stage that makes it to the last one that reads it: the passes of a
 * product, which are walked together, are one instant. Where the job goes in rounds and its pass is
 * done in the first one alone, it lives as long as the job: every round reads it. Results are
 * placed in their order, each at the lowest place where no other one lives at the same time.
 *
 * Placing takes at most reductions^2 steps of a few instructions. Whoever asks for many lengths of
 * a round asks first for what lives at a time, which takes reductions + stages.
 *
 * Called by carry.c and rounds.c.
 */
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <string.h>

void planner_set_lives(const struct program *program, struct planner_life *places)
{
    unsigned stages[PROGRAM_MAX_PASSES]; /* in which a pass is */

    for (unsigned i = 0; i < program->n_stages; i++)
        for (unsigned k = 0; k < program->stages[i].n_passes; k++)
            stages[program->stages[i].first_pass + k] = i;
    for (unsigned i = 0; i < program->n_reductions; i++)
        places[i].first = places[i].last = stages[program->reductions[i].pass];
    for (unsigned pass = 0; pass < program->n_passes; pass++) {
        const struct pass *p = &program->passes[pass];
        for (uint64_t left = p->reduced_used | p->tables_used; left; left &= left - 1) {
            struct planner_life *place = &places[__builtin_ctzll(left)];
            place->last = (unsigned)max_u64(place->last, stages[pass]);
        }
    }
}

uint64_t planner_most_alive(const struct planner_life *places, unsigned n, unsigned n_stages)
{
    __uint128_t begins[PROGRAM_MAX_PASSES + 1] = {0}, ends[PROGRAM_MAX_PASSES + 1] = {0};
    __uint128_t alive = 0, most = 0;

    for (unsigned i = 0; i < n; i++) {
        begins[places[i].first] += places[i].n_bytes;
        ends[places[i].last] += places[i].n_bytes;
    }
    for (unsigned i = 0; i < n_stages; i++) {
        alive += begins[i];
        most = alive > most ? alive : most;
        alive -= ends[i];
    }
    return most > INT64_MAX ? UINT64_MAX : (uint64_t)most;
}

/* The lowest place for `own` among those placed, which are in the order of where they begin. */
static uint64_t lowest_place(const struct planner_life *places, const uint8_t *order, unsigned n,
                             const struct planner_life *own)
{
    uint64_t begin = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct planner_life *other = &places[order[i]];
        if (own->first > other->last || other->first > own->last)
            continue;
        if (begin + own->n_bytes <= other->begin)
            break;
        begin = max_u64(begin, other->begin + other->n_bytes);
    }
    return begin;
}

static void insert(const struct planner_life *places, uint8_t *order, unsigned n)
{
    unsigned at = n;

    for (; at > 0 && places[order[at - 1]].begin > places[n].begin; at--)
        order[at] = order[at - 1];
    order[at] = (uint8_t)n;
}

uint64_t planner_place_all(struct planner_life *places, unsigned n)
{
    uint8_t order[PROGRAM_MAX_REDUCTIONS];
    uint64_t n_bytes = 0;

    for (unsigned i = 0; i < n; i++) {
        uint64_t end;
        if (places[i].n_bytes > INT64_MAX)
            return UINT64_MAX;
        end = places[i].begin = lowest_place(places, order, i, &places[i]);
        if (!planner_add_checked(&end, places[i].n_bytes))
            return UINT64_MAX;
        insert(places, order, i);
        n_bytes = max_u64(n_bytes, end);
    }
    return n_bytes;
}

uint64_t planner_device_results(const struct planner *p)
{
    return p->limits->engine->has_link ? program_product_results(p->program) : 0;
}

uint64_t planner_place_results(const struct planner *p, uint64_t which, uint64_t *ret_offsets)
{
    const struct program *program = p->program;
    struct planner_life places[PROGRAM_MAX_REDUCTIONS];

    if (which == 0)
        return 0;
    planner_set_lives(program, places);
    for (unsigned i = 0; i < program->n_reductions; i++) {
        places[i].n_bytes = which >> i & 1 ? planner_one_result_bytes(p, i) : 0;
        if (p->round_length > 0 && p->round_axes[program->reductions[i].pass] < 0) {
            places[i].first = 0;
            places[i].last = program->n_stages - 1u;
        }
    }
    uint64_t n_bytes = planner_place_all(places, program->n_reductions);
    for (unsigned i = 0; i < program->n_reductions && n_bytes < UINT64_MAX; i++)
        if (which >> i & 1)
            ret_offsets[i] = places[i].begin;
    return n_bytes;
}
