/* The plan of a job. Pure code: the broker runs it at submission to admit or refuse, the worker
 * again to carry out; the same input gives the same plan.
 *
 * Per pass: the geometry (which alone decides the bits of the results), how many grains make a
 * tile, what is read and written (passes.c, tiles.c). Of the pool a job needs a slot (lent for a
 * turn, or while a tile is with a device) when an operand is a file or the engine has a device, and
 * the carry, for its life (carry.c). At last, how long it would take (estimate.c).
 *
 * A tile is the unit of turns, of cancelling and of time measured.
 *
 * All numbers come from a client: counts of elements and bytes are added and multiplied with
 * checks.
 */
#include "kernels/op_costs.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define SMALL_MAX_BYTES (256u * 1024)
#define SMALL_MAX_NS    5e5

static int refuse_tiles(const struct planner *p)
{
    return error_set(p->error, GAD_LIMIT_EXCEEDED, "shape", "the job would have too many tiles");
}

/* Over all stages. */
static int add_up(const struct planner *p)
{
    struct plan *plan = p->plan;

    for (unsigned i = 0; i < plan->n_passes; i++) {
        const struct plan_pass *pass = &plan->passes[i];
        if (!planner_add_checked(&plan->read_bytes, pass->read_bytes) ||
            !planner_add_checked(&plan->write_bytes, pass->write_bytes))
            return planner_refuse_bytes(p);
        if (!planner_add_checked(&plan->n_tiles, pass->n_tiles))
            return refuse_tiles(p);
    }
    for (unsigned i = 0; i < p->program->n_products; i++)
        if (!planner_add_checked(&plan->n_tiles, plan->products[i].n_turns))
            return refuse_tiles(p);
    for (unsigned i = 0; i < p->program->n_slabs; i++)
        if (!planner_add_checked(&plan->n_tiles, plan->slabs[i].n_turns))
            return refuse_tiles(p);
    return 0;
}

static int refuse(struct gad_error *error, uint64_t needed, uint64_t there, const char *what)
{
    error_set(error, GAD_TOO_LARGE_FOR_POOL, "pool",
              "the job needs %" PRIu64 " bytes of the pool for %s, there are %" PRIu64, needed,
              what, there);
    error_expected(error, "%" PRIu64 " bytes", needed);
    error_found(error, "%" PRIu64 " bytes", there);
    return GAD_TOO_LARGE_FOR_POOL;
}

static int check_slots(const struct planner *p)
{
    const struct plan_limits *limits = p->limits;

    for (unsigned i = 0; i < p->plan->n_passes; i++) {
        if (!p->plan->passes[i].needs_slot)
            continue;
        const struct plan_engine *engine = limits->engine;
        uint64_t least_bytes = engine->slot_need_bytes(p->program, i, 1, &p->plan->passes[i].room);
        uint64_t slot_bytes = max_u64(limits->slot_bytes, least_bytes);
        if (engine->fills_slots && least_bytes > limits->slot_bytes)
            return refuse(p->error, least_bytes, limits->slot_bytes, "one grain in a slot");
        if (limits->pool_bytes < slot_bytes)
            return refuse(p->error, slot_bytes, limits->pool_bytes, "one slot");
        /* The carry may lie where the only slot is. */
        uint64_t there = min_u64(limits->pool_bytes / 2, limits->pool_bytes - p->plan->carry_bytes);
        if (p->plan->carry_bytes > 0 && there < slot_bytes)
            return refuse(p->error, 2 * slot_bytes, limits->pool_bytes,
                          "a slot beside partial results");
    }
    return 0;
}

/* Of all passes, whatever the values are. */
static double worst_ns_of(const struct program *program)
{
    double ns = 0;

    for (unsigned i = 0; i < program->n_passes; i++) {
        double own = (double)op_pass_worst_ns(program, &program->passes[i]);
        for (int axis = 0; axis < program->passes[i].ndim; axis++)
            own *= (double)program->passes[i].shape[axis];
        ns += own;
    }
    return ns;
}

static bool is_small(const struct planner *p)
{
    const struct plan *plan = p->plan;

    if (p->program->n_products + p->program->n_slabs > 0) /* it goes turn by turn */
        return false;
    if (p->program->n_repeats > 0) /* it needs a slot */
        return false;
    for (unsigned i = 0; i < plan->n_passes; i++) {
        if (plan->passes[i].n_tiles > 1)
            return false;
    }
    for (unsigned i = 0; i < p->program->n_inputs; i++) {
        if (!planner_is_in_memory(p->request->args[p->program->inputs[i].arg].array.at.kind))
            return false;
    }
    for (unsigned i = 0; i < p->program->n_outputs; i++) {
        const struct request_output *output = &p->request->outputs[i];
        if (output->has_to && !planner_is_in_memory(output->to.at.kind))
            return false;
    }
    return plan->read_bytes <= SMALL_MAX_BYTES &&
           plan->write_bytes <= SMALL_MAX_BYTES - plan->read_bytes && plan->n_rounds == 1 &&
           plan->carry_bytes <= PLAN_SMALL_CARRY_BYTES && worst_ns_of(p->program) <= SMALL_MAX_NS;
}

/* NumPy's order 'K' in its simple cases: the sources with as many axes as the result are in Fortran
 * order; those that are in both orders have no say. */
static bool is_fortran_order(const struct planner *p)
{
    int ndim = 0;
    bool has_fortran = false;

    if (p->program->n_products + p->program->n_slabs > 0) /* as NumPy */
        return false;
    for (unsigned i = 0; i < p->program->n_outputs; i++) {
        if (p->program->outputs[i].ndim > ndim)
            ndim = p->program->outputs[i].ndim;
    }
    if (ndim < 2)
        return false;
    for (unsigned i = 0; i < p->program->n_inputs; i++) {
        const struct array *array = &p->request->args[p->program->inputs[i].arg].array;
        bool is_c = array_is_c_contiguous(array), is_f = array_is_f_contiguous(array);
        if (array->ndim != ndim || (is_c && is_f))
            continue;
        if (!is_f || (array->at.kind == LOCATION_FILE && array->at.file.is_grid))
            return false;
        has_fortran = true;
    }
    return has_fortran;
}

/* A job that goes on must find its output again. */
static int check_journal(const struct planner *p)
{
    const struct request_output *output = &p->request->outputs[0];
    enum location_kind kind = output->has_to ? output->to.at.kind : LOCATION_INLINE;

    if (!p->request->has_journal)
        return 0;
    if (!program_is_product(p->program))
        return error_set(p->error, GAD_BAD_JOURNAL, "journal",
                         "only jobs with a matrix product have a journal: leave it out");
    if (kind == LOCATION_FILE || kind == LOCATION_REGION ||
        (output->has_to && kind == LOCATION_NONE))
        return 0;
    error_set(p->error, GAD_BAD_JOURNAL, "journal",
              "the output's place cannot be known again when the job goes on");
    error_expected(p->error, "an output in a file or a region");
    error_found(p->error, "%s", kind == LOCATION_PROVIDER ? "a provider" : "one in the reply");
    return GAD_BAD_JOURNAL;
}

int plan_make(const struct job_request *request, const struct program *program, bool in_place,
              const struct plan_limits *limits, struct plan *ret_plan, struct gad_error *error)
{
    struct planner planner; /* large, as is the plan: only what a job uses is written */

    memset(&planner, 0, offsetof(struct planner, traffic));
    memset(ret_plan, 0, PLAN_HEAD_BYTES);
    planner.request = request;
    planner.program = program;
    planner.limits = limits;
    planner.plan = ret_plan;
    planner.error = error;
    planner.in_place = in_place;
    ret_plan->n_passes = program->n_passes;
    ret_plan->is_restartable = !in_place || request->has_journal;

    assert(program->n_passes <= PROGRAM_MAX_PASSES && program->n_outputs == request->n_outputs);
    int r = check_journal(&planner);
    if (!r)
        r = planner_cut_all(&planner);
    if (!r)
        r = add_up(&planner);
    if (!r)
        r = check_slots(&planner);
    if (!r)
        r = planner_check_streams(&planner);
    if (r)
        return r;
    planner_estimate(&planner);
    ret_plan->is_small = is_small(&planner);
    ret_plan->is_fortran_order = is_fortran_order(&planner);
    return 0;
}

uint64_t planner_scan_run(const struct plan_pass *planned)
{
    const struct geometry *g = &planned->geometry;

    return planned->chains_steps ? g->n_steps : geometry_step_grains(g);
}

void plan_tile_grains(const struct plan_pass *pass, uint64_t tile, uint64_t *ret_first,
                      uint64_t *ret_n)
{
    const struct geometry *g = &pass->geometry;
    uint64_t first, n, index;

    assert(tile < pass->n_tiles);
    geometry_round(g, tile / pass->round_tiles, &first, &n);
    index = tile % pass->round_tiles;
    if (g->n_steps > 0) {
        uint64_t run = planner_scan_run(pass);
        uint64_t run_tiles = planner_ceil_shift(run, pass->tile_log2);
        first += index / run_tiles * run;
        n = run;
        index %= run_tiles;
    }
    if (g->chain_grains > 1) {
        uint64_t chain_tiles = planner_ceil_shift(g->chain_grains, pass->tile_log2);
        first += index / chain_tiles * g->chain_grains;
        n = g->chain_grains;
        index %= chain_tiles;
    }
    *ret_first = first + (index << pass->tile_log2);
    *ret_n = min_u64(UINT64_C(1) << pass->tile_log2, n - (index << pass->tile_log2));
}

uint64_t plan_open_grains(const struct plan_pass *pass, int64_t length)
{
    const struct geometry *g = &pass->geometry;
    int64_t n = divide_up_i64(length, g->grain_shape[pass->open_axis]);

    assert(n <= g->grid[pass->open_axis]);
    return (uint64_t)n * (g->n_grains / (uint64_t)g->grid[pass->open_axis]);
}

uint64_t plan_open_tiles(const struct plan_pass *pass, uint64_t n_grains)
{
    const struct geometry *g = &pass->geometry;
    uint64_t rest = n_grains % g->round_grains, n = n_grains / g->round_grains * pass->round_tiles;
    uint64_t run = g->n_steps > 0        ? planner_scan_run(pass)
                   : g->chain_grains > 1 ? g->chain_grains
                                         : g->round_grains;

    n += rest / run * planner_ceil_shift(run, pass->tile_log2);
    return n + planner_ceil_shift(rest % run, pass->tile_log2);
}

void plan_open_clip(const struct plan_pass *pass, int64_t length, const int64_t *start,
                    int64_t *count)
{
    int axis = pass->open_axis;

    if (pass->has_open_axis && count[axis] > length - start[axis])
        count[axis] = length > start[axis] ? length - start[axis] : 0;
}

uint64_t plan_scan_needs(const struct plan_pass *pass, uint64_t tile)
{
    const struct geometry *g = &pass->geometry;
    uint64_t index = tile % pass->round_tiles;
    uint64_t step_tiles = planner_ceil_shift(planner_scan_run(pass), pass->tile_log2);
    bool is_first_step = index / step_tiles % g->n_steps == 0;

    if (pass->chains_steps)
        return index % step_tiles == 0 ? tile - index : tile;
    return is_first_step ? tile - index : tile - step_tiles + 1;
}

void plan_round_tiles(const struct plan_pass *pass, uint64_t round, uint64_t *ret_first,
                      uint64_t *ret_n)
{
    bool is_there = round < pass->geometry.n_rounds;

    *ret_first = is_there ? round * pass->round_tiles : pass->n_tiles;
    *ret_n = min_u64(pass->round_tiles, pass->n_tiles - *ret_first);
}
