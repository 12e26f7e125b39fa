/* Walks by slabs: the passes of a stage that shares one matrix are walked together, in turns. A
 * turn is a tile (kernels/slabs/slab.h).
 *
 * A turn has the ports of its own pass; what it computes of the carry alone, behind its grains or
 * without any, is the engine's WALK_STEPS. Rings know a box by the number of the turn and of the
 * grain in it, as with matrix products; X is asked for once.
 */
#include "daemon/worker/walks/walk_slab.h"
#include "kernels/plan/plan.h"
#include "proto/util.h"

#include <stdlib.h>
#include <string.h>

struct walk_slab {
    const struct plan_slab *planned; /* of the stage in hand */
    struct slab_turn next;           /* where walk.next is */
    unsigned n_ports;                /* of the stage's passes */
    struct pass_ports ports[];
};

/* Jobs --------------------------------------------------------------------------------------- */

int walk_slab_new(struct wjob *job)
{
    size_t n_passes = 0;
    for (unsigned i = 0; i < job->program->n_slabs; i++)
        n_passes = max_u64(n_passes, job->program->slabs[i].n_passes);
    if (n_passes == 0)
        return 0;
    job->walk.slab = calloc(1, sizeof(*job->walk.slab) + n_passes * sizeof(struct pass_ports));
    return job->walk.slab ? 0 : -ENOMEM;
}

void walk_slab_free(struct wjob *job)
{
    free(job->walk.slab);
}

/* Ports -------------------------------------------------------------------------------------- */

static void begin(struct wjob *job)
{
    struct walk *w = &job->walk;
    struct walk_slab *slab = w->slab;
    slab->planned = &job->plan.slabs[w->stage->slab];
    slab->n_ports = w->stage->n_passes;
    w->first_tile = 0;
    w->end_tile = w->n_tiles = slab->planned->n_turns;
    for (unsigned i = 0; i < slab->n_ports; i++)
        walk_collect_ports(job, w->stage->first_pass + i, &slab->ports[i]);
    slab->ports[0].needs_slot &= !slab->planned->is_direct;
    walk_collect_rings(job, slab->n_ports, slab->ports);
    walk_order_begin(job);
}

/* Turns -------------------------------------------------------------------------------------- */

static const struct pass_ports *ports_of(const struct wjob *job, const struct slab_turn *turn)
{
    static const struct pass_ports none;
    return turn->n_grains > 0 ? &job->walk.slab->ports[turn->pass] : &none;
}

static void look(struct wjob *job)
{
    struct walk *w = &job->walk;
    const struct plan_slab *planned = w->slab->planned;
    slab_turn(planned, w->next_tile, &w->slab->next);
    w->next = (struct walk_next){.ports = ports_of(job, &w->slab->next),
                                 .position = w->next_tile * planned->most_grains,
                                 .n_grains = w->slab->next.n_grains,
                                 .needs = slab_needs(planned, w->next_tile)};
}

static enum walk_step step_of(const struct plan_slab *planned, const struct slab_turn *turn)
{
    if (turn->is_empty)
        return WALK_NOTHING;
    if (turn->n_grains == 0)
        return WALK_STEPS;
    return turn->kind == SLAB_TURN_LOAD && planned->is_direct ? WALK_FILL : WALK_COMPUTE;
}

/* Values of the slab itself are none of the results of stages before. */
static void take(struct tile *t)
{
    const struct walk *w = &t->job->walk;
    t->slab = w->slab->planned;
    t->slab_turn = w->slab->next;
    t->step = step_of(t->slab, &t->slab_turn);
    t->pass = w->stage->first_pass + t->slab_turn.pass;
    t->end = t->prefetch_end = t->slab_turn.is_empty ? 0 : t->slab_turn.n_grains;
    t->first_position = w->next.position;
}

static uint64_t grain_number(const struct tile *t, uint64_t grain)
{
    return slab_grain(t->slab, &t->slab_turn, grain);
}

void walk_slab_views(const struct tile *t, unsigned index, const int64_t *start,
                     struct engine_view *ret_outputs, struct engine_view *ret_results)
{
    const struct wjob *job = t->job;
    const struct program_slab *whole = t->slab->whole;
    const struct pass *pass = &job->program->passes[index];
    uint64_t own = 0;
    for (unsigned i = 0; i < whole->n_values; i++) {
        const struct slab_value *v = &whole->values[i];
        if (v->output != SLAB_NO_OUTPUT && job->program->outputs[v->output].pass == index)
            slab_view(t->slab, &t->slab_turn, i, start, job->carry, &ret_outputs[v->output]);
        if (v->is_kept && job->program->outputs[v->kept_output].pass == index)
            plan_state_view(&job->plan, job->program, v->reduction, start, job->carry,
                            &ret_outputs[v->kept_output]);
        if (!v->has_reduction || !(pass->reduced_used >> v->reduction & 1))
            continue;
        own |= UINT64_C(1) << v->reduction;
        slab_view(t->slab, &t->slab_turn, i, start, job->carry, &ret_results[v->reduction]);
    }
    for (uint64_t left = pass->tables_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        ret_results[i] = (struct engine_view){.base = plan_table(&job->plan, i, job->carry)};
    }
    for (uint64_t left = pass->reduced_used & ~own; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        plan_result_view(&job->plan, job->program, i, index, start, job->carry, &ret_results[i]);
    }
}

static void views(const struct tile *t, const int64_t *start, struct engine_view *ret_outputs,
                  struct engine_view *ret_results)
{
    walk_slab_views(t, t->pass, start, ret_outputs, ret_results);
}

/* Rings -------------------------------------------------------------------------------------- */

/* No turn from the returned one down to `index` has grains of one of these kinds of passes; the
 * turns of all slabs, of which there may be any number, are passed over at once. */
static uint64_t skip(const struct plan_slab *p, uint64_t index, unsigned kinds)
{
    unsigned of_slabs = 1u << SLAB_PASS_X | 1u << SLAB_PASS_ROWS;
    uint64_t end = p->first_slab_turn + p->n_rounds * p->slab_turns;
    if (index < p->first_slab_turn && !(kinds & 1u << SLAB_PASS_OPERAND))
        index = p->first_slab_turn;
    if (index >= p->first_slab_turn && index < end && !(kinds & of_slabs))
        index = end;
    return index >= end && !(kinds & 1u << SLAB_PASS_RESULT) ? p->n_turns : index;
}

static bool find_position(const struct ring_walk *walk, uint64_t *position)
{
    const struct wjob *job = walk->job;
    const struct walk_slab *slab = job->walk.slab;
    const struct plan_slab *planned = slab->planned;
    const struct ring *ring = ((const struct port *)walk->port)->ring;
    uint64_t grain = *position % planned->most_grains;
    unsigned kinds = 0;
    for (unsigned i = 0; i < slab->n_ports; i++)
        if (walk_find_port(&slab->ports[i], ring))
            kinds |= 1u << planned->whole->pass_kinds[i];
    for (uint64_t i = *position / planned->most_grains; i < planned->n_turns; i++, grain = 0) {
        struct slab_turn turn;
        uint64_t next = skip(planned, i, kinds);
        if (next >= planned->n_turns)
            return false;
        grain = next == i ? grain : 0;
        i = next;
        slab_turn(planned, i, &turn);
        if (turn.is_empty || grain >= turn.n_grains || !walk_find_port(ports_of(job, &turn), ring))
            continue;
        *position = i * planned->most_grains + grain;
        return true;
    }
    return false;
}

static void position_box(const struct ring_walk *walk, uint64_t position, int64_t *ret_start,
                         int64_t *ret_count)
{
    const struct wjob *job = walk->job;
    const struct plan_slab *planned = job->walk.slab->planned;
    struct slab_turn turn;
    slab_turn(planned, position / planned->most_grains, &turn);
    walk_ring_box(walk, ports_of(job, &turn), &planned->passes[turn.pass].geometry,
                  slab_grain(planned, &turn, position % planned->most_grains), ret_start,
                  ret_count);
}

const struct walk_ops walk_slab_ops = {
    .grain_number = grain_number,
    .begin = begin,
    .look = look,
    .can_begin = walk_order_can_begin,
    .take = take,
    .done = walk_order_done,
    .find_position = find_position,
    .position_box = position_box,
    .views = views,
};
