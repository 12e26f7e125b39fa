/* What a job holds of the pool for its life: scratch of the stage in hand, results of all
 * reductions.
 *
 *     | scratch of the stage in hand | result | result | ... |
 *     0                              results, each 64-byte aligned (places.c)
 *
 * An engine with a link has that twice: of products in the device's memory, where the host touches
 * nothing of it, and of all else in the pool.
 *
 * Of a pass the scratch is its nodes: a tree or stacks. Of a matrix product it is a tile of C and
 * panels of the operands, as large as there is room for.
 *
 * Tried in this order, until everything fits the limit for carries:
 *
 * 1. all results at once, with nodes of a good size;
 * 2. rounds (rounds.c), unless there is a product, or an output overwrites an input of several
 *    passes: the parts that a round reads could then be what an earlier one has written;
 * 3. all results at once, with nodes as small as need be.
 *
 * Then the job is refused, with what it would need at least. The geometry along reduced axes is the
 * same in all of them, and so are the bits of the results.
 *
 * Called by plan.c.
 */
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <inttypes.h>

#define GOOD_SHARE   4 /* nodes of at least a quarter of their best size */
#define STREAM_SHARE 8 /* of what is there, for rounds of what comes from streams */

static int cut_product(struct planner *p, unsigned index)
{
    const struct plan_limits *limits = p->limits;
    const struct pass *passes = &p->program->passes[p->program->products[index].first_pass];

    for (unsigned i = 0; i < PRODUCT_N_PASSES; i++)
        if (planner_open_axis(p, &passes[i]) >= 0)
            return planner_refuse_open(p, "multiplies matrices along it");
    int r = limits->engine->check_product(limits, p->program->products[index].dtype, p->error);
    r = r ? r : planner_cut_product(p, index, p->room.product_bytes);
    return r == GAD_TOO_LARGE_FOR_POOL && p->room.is_for_refusal ? 0 : r;
}

static int refuse_slab(const struct planner *p)
{
    error_set(p->error, GAD_NO_ENGINE, "engine",
              "the engine does not share one read of a matrix among several products");
    error_expected(p->error, "cpu or auto");
    return GAD_NO_ENGINE;
}

static int cut_slab(struct planner *p, const struct stage *stage, bool *ret_fits)
{
    for (unsigned i = 0; i < stage->n_passes; i++)
        if (planner_open_axis(p, &p->program->passes[stage->first_pass + i]) >= 0)
            return planner_refuse_open(p, "multiplies matrices along it");
    int r = p->limits->engine->walks_slabs ? planner_cut_slab(p, stage->slab) : refuse_slab(p);
    *ret_fits = r == 0 && p->plan->slabs[stage->slab].scratch_bytes <= p->room.product_bytes;
    return r;
}

static int cut_stages(struct planner *p, bool *ret_fits)
{
    *ret_fits = true;
    for (unsigned i = 0; i < p->program->n_stages; i++) {
        const struct stage *stage = &p->program->stages[i];
        bool fits = true;
        int r = stage->kind == STAGE_PRODUCT ? cut_product(p, stage->product)
                : stage->kind == STAGE_SLAB  ? cut_slab(p, stage, &fits)
                                             : planner_cut_pass(p, stage->first_pass, &fits);
        if (r)
            return r;
        *ret_fits &= fits;
    }
    return 0;
}

/* of_device: in the device's memory, not in the pool. of_least: of products what is needed at
 * least, not what there is room for. */
static uint64_t most_scratch_bytes(const struct planner *p, bool of_device, bool of_least)
{
    bool has_link = p->limits->engine->has_link;
    uint64_t most = 0;

    for (unsigned i = 0; i < p->program->n_stages; i++) {
        const struct stage *stage = &p->program->stages[i];
        const struct plan_product *product = &p->plan->products[stage->product];
        if ((has_link && stage->kind == STAGE_PRODUCT) != of_device)
            continue;
        if (stage->kind == STAGE_PRODUCT)
            most = max_u64(most, of_least ? product->least_bytes : product->scratch_bytes);
        else if (stage->kind == STAGE_SLAB)
            most = max_u64(most, p->plan->slabs[stage->slab].scratch_bytes);
        else
            most = max_u64(most, planner_tree_bytes(&p->plan->passes[stage->first_pass]));
    }
    return round_up_u64(most, PLANNER_CARRY_ALIGN);
}

static unsigned busy_window(const struct planner *p)
{
    return p->limits->n_threads + 2;
}

/* Bytes of the results of all stages. */
struct kept {
    uint64_t in_pool, on_device;
};

static uint64_t product_limit(const struct planner *p)
{
    uint64_t limit = p->limits->carry_limit_bytes, own = p->limits->product_carry_bytes;

    return own == 0 ? limit : p->limits->engine->has_link ? own : max_u64(limit, own);
}

static uint64_t left_of(uint64_t limit, uint64_t n_bytes)
{
    return limit > n_bytes ? limit - n_bytes : 0;
}

/* Of a product, beside the results where it is. */
static uint64_t product_room(const struct planner *p, const struct kept *kept)
{
    bool has_link = p->limits->engine->has_link;

    return left_of(product_limit(p), has_link ? kept->on_device : kept->in_pool);
}

static int try_whole(struct planner *p, const struct kept *kept, bool is_tight, bool *ret_fits)
{
    uint64_t limit = p->limits->carry_limit_bytes;

    *ret_fits = false;
    p->round_length = 0;
    p->room = (struct planner_room){.tree_bytes = left_of(limit, kept->in_pool),
                                    .product_bytes = product_room(p, kept),
                                    .least_window = is_tight ? 2 : busy_window(p),
                                    .least_share = is_tight ? 0 : GOOD_SHARE};
    bool is_room = kept->in_pool <= limit && kept->on_device <= product_limit(p);
    return is_room ? cut_stages(p, ret_fits) : 0;
}

static bool has_streams(const struct planner *p)
{
    for (unsigned i = 0; i < p->request->n_args; i++)
        if (!p->request->args[i].is_scalar && planner_is_stream(&p->request->args[i].array))
            return true;
    return false;
}

/* Who waits for a program to make its elements leaves room for others meanwhile, some of which may
 * read the same ones. */
static bool choose_rounds(struct planner *p, uint64_t max_bytes)
{
    return (has_streams(p) && planner_choose_rounds(p, max_bytes / STREAM_SHARE)) ||
           planner_choose_rounds(p, max_bytes);
}

/* The passes' axes are walked in the same order in rounds, so they are cut without any first. */
static int try_rounds(struct planner *p, bool *ret_fits)
{
    uint64_t limit = p->limits->carry_limit_bytes;

    p->round_length = 0;
    p->room = (struct planner_room){.tree_bytes = limit / 2, .least_window = 2};
    int r = cut_stages(p, ret_fits);
    if (r || !*ret_fits)
        return r;
    uint64_t tree_bytes = most_scratch_bytes(p, false, false);
    *ret_fits = choose_rounds(p, limit - tree_bytes);
    if (!*ret_fits)
        return 0;
    p->room.tree_bytes = tree_bytes;
    return cut_stages(p, ret_fits);
}

/* A program of one pass reads an element only where it writes it. */
static bool overwrites_itself(const struct planner *p)
{
    return p->in_place && p->program->n_passes > 1;
}

static const char *advice(const struct planner *p)
{
    if (p->program->n_slabs + p->program->n_products > 0)
        return "store what a product gives, and use it in another job, or take a larger pool; no "
               "place needs what a @ b with b of at most 524288 elements is reduced to, but for "
               "quantiles, nor v.T @ w of 1048576";
    if (overwrites_itself(p))
        return "write to another array than a source, so that it can go in rounds, or take a "
               "larger "
               "pool";
    const char *counts = NULL;
    for (unsigned i = 0; i < p->program->n_reductions; i++) {
        if (p->program->reductions[i].is_cumulative)
            return "find one quantile at a time, or those of fewer slices at a time, or take a "
                   "larger pool";
        if (p->program->reductions[i].n_bins > 0)
            counts = p->program->reductions[i].op == OP_QR_R
                         ? "take fewer columns, or a larger pool"
                         : "count in fewer bins, or take a larger pool";
    }
    if (counts != NULL)
        return counts;
    return "reduce fewer arrays at a time, or take a larger pool";
}

/* The first walk by slabs that is too large beside results that are not; NULL. */
static const struct plan_slab *large_slab(const struct planner *p, const struct kept *kept)
{
    for (unsigned i = 0; i < p->program->n_slabs && kept->in_pool < product_limit(p); i++)
        if (p->plan->slabs[i].scratch_bytes > product_room(p, kept))
            return &p->plan->slabs[i];
    return NULL;
}

/* Where its memory goes: what X's slab has, the rest is of operands and sums. */
static int refuse_large_slab(struct planner *p, const struct plan_slab *slab,
                             const struct kept *kept)
{
    uint64_t there = product_room(p, kept), needed = slab->scratch_bytes;
    uint64_t of_x = slab->lane_bytes[0] * slab->n_lanes;

    error_set(p->error, GAD_TOO_LARGE_FOR_POOL, "pool",
              "a walk by slabs of %" PRId64 " rows of %" PRId64 " columns needs %" PRIu64
              " bytes of the pool, %" PRIu64
              " of them for slabs and the others for operands and sums, there are %" PRIu64
              ": compute what shares a matrix in several jobs, which read it more often, or take a "
              "larger pool",
              slab->slab_rows, slab->n_columns, needed, of_x, there);
    error_expected(p->error, "%" PRIu64 " bytes", needed);
    error_found(p->error, "%" PRIu64 " bytes", there);
    return GAD_TOO_LARGE_FOR_POOL;
}

static int refuse(struct planner *p, const struct kept *kept)
{
    bool of_device = kept->on_device > product_limit(p);
    uint64_t there = of_device ? product_limit(p) : p->limits->carry_limit_bytes;
    uint64_t needed = of_device ? kept->on_device : kept->in_pool;

    for (unsigned i = 0; i < p->program->n_reductions; i++)
        if (planner_keeps_open(p, i))
            return planner_refuse_open(p, "would keep something of each row for later");
    p->room = (struct planner_room){.least_window = 2, .is_for_refusal = true};
    bool fits;
    int r =
        cut_stages(p, &fits); /* the smallest nodes: what does not fit stays as small as it is */
    const struct plan_slab *slab = large_slab(p, kept);
    if (r == 0 && slab)
        return refuse_large_slab(p, slab, kept);
    if (r)
        return r;
    if (__builtin_add_overflow(needed, most_scratch_bytes(p, of_device, true), &needed))
        needed = UINT64_MAX;
    error_set(p->error, GAD_TOO_LARGE_FOR_POOL, "pool",
              "the job needs %" PRIu64 " bytes of the pool for the results of its reductions and "
              "for partial results, there are %" PRIu64 ": %s",
              needed, there, advice(p));
    error_expected(p->error, "%" PRIu64 " bytes", needed);
    error_found(p->error, "%" PRIu64 " bytes", there);
    return GAD_TOO_LARGE_FOR_POOL;
}

static int cut_to_fit(struct planner *p)
{
    uint64_t of_device = planner_device_results(p);
    const struct kept kept = {.in_pool = planner_result_bytes(p, ~of_device),
                              .on_device = planner_result_bytes(p, of_device)};
    bool fits;

    int r = try_whole(p, &kept, false, &fits);
    if (!r && !fits && p->program->n_products == 0 && p->program->n_slabs == 0 &&
        !overwrites_itself(p))
        r = try_rounds(p, &fits);
    if (!r && !fits)
        r = try_whole(p, &kept, true, &fits);
    return r || fits ? r : refuse(p, &kept);
}

/* Those of `which`, behind the scratch where they are; returns the bytes of both. */
static uint64_t place_results(struct planner *p, bool on_device, uint64_t which)
{
    uint64_t offset = most_scratch_bytes(p, on_device, false), offsets[PROGRAM_MAX_REDUCTIONS];
    uint64_t n_bytes = planner_place_results(p, which, offsets);

    for (unsigned i = 0; i < p->program->n_reductions; i++)
        if (which >> i & 1)
            p->plan->results[i] = (struct plan_result){
                .offset_bytes = offset + offsets[i], .round_axis = planner_result_round_axis(p, i)};
    return offset + n_bytes;
}

int planner_cut_all(struct planner *p)
{
    p->round_length = 0;
    int r = cut_to_fit(p);
    if (r)
        return r;
    uint64_t of_device = planner_device_results(p);
    p->plan->carry_bytes = place_results(p, false, ~of_device);
    p->plan->device_carry_bytes = place_results(p, true, of_device);
    p->plan->n_rounds = 1;
    for (unsigned i = 0; i < p->program->n_passes; i++) {
        const struct geometry *g = &p->plan->passes[i].geometry;
        if (g->n_grains > 0) /* every round has something to do */
            p->plan->n_rounds = max_u64(p->plan->n_rounds, g->n_rounds);
    }
    return 0;
}
