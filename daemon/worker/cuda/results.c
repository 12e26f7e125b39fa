/* Results of earlier passes' reductions on their way to the device.
 *
 * They lie in the carry, in the host's memory. One of a single element is written into the code of
 * the tile; of the others each grain gets its part in the slot, dense in visiting order, as inputs
 * do. Along axes that were reduced a result stands still and is copied once; a grain that reads the
 * same part as the one before shares its copy.
 *
 * Called by tile.c while it stages.
 */
#include "daemon/worker/cuda/results.h"
#include "daemon/worker/cuda/boxcopy.h"
#include "daemon/worker/nodes.h"
#include "proto/util.h"

static const struct geometry *geometry_of(const struct tile *t)
{
    return &t->job->plan.passes[t->job->pass].geometry;
}

static int64_t item_bytes(const struct tile *t, const struct cuda_result *result)
{
    enum dtype dtype = t->job->program->reductions[result->reduction].result;
    return (int64_t)dtype_size(dtype);
}

static uint64_t room(const struct tile *t, const struct cuda_result *result,
                     const struct cpu_view *home, const int64_t *count)
{
    const struct geometry *g = geometry_of(t);
    int64_t n_bytes = item_bytes(t, result);
    for (int i = 0; i < g->ndim; i++)
        n_bytes *= home->strides[i] == 0 ? 1 : count[i];
    return (uint64_t)n_bytes;
}

uint64_t cuda_results_begin(struct cuda_results *results, const struct tile *t,
                            struct thread_context *th)
{
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    uint64_t n_bytes = 0;
    results->n = 0;
    if (wjob_pass(t->job)->reduced_used == 0)
        return 0;
    geometry_grain(geometry_of(t), t->grain, start, count); /* in the round in hand */
    tile_result_views(t, start, th->results);
    for (uint32_t left = wjob_pass(t->job)->reduced_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (cuda_tile_is_uniform(t->job->program, i))
            continue;
        struct cuda_result *result = &results->items[results->n++];
        *result = (struct cuda_result){.reduction = i};
        n_bytes += round_up_u64(room(t, result, &th->results[i], th->count), CUDA_TILE_ALIGN);
    }
    return n_bytes;
}

static void copy(const struct tile *t, struct cuda_result *result, const struct cpu_view *home,
                 const int64_t *count, char *memory)
{
    const struct geometry *g = geometry_of(t);
    struct boxcopy b = {.is_past_cache = false, .item_bytes = item_bytes(t, result)};
    int64_t stride = b.item_bytes;
    result->home = home->base;
    result->copy = (struct cpu_view){.base = memory};
    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i];
        if (home->strides[axis] == 0)
            continue;
        result->copy.strides[axis] = stride;
        stride *= count[axis];
    }
    for (int i = 0; i < g->ndim; i++) {
        int axis = g->axis_order[i];
        if (home->strides[axis] != 0)
            b.axes[b.n_axes++] =
                (struct boxcopy_axis){count[axis], home->strides[axis], result->copy.strides[axis]};
    }
    boxcopy(&b, memory, home->base);
}

void cuda_results_stage(struct cuda_results *results, struct cuda_tile *code, const struct tile *t,
                        struct thread_context *th)
{
    tile_result_views(t, th->start, th->results);
    for (unsigned k = 0; k < results->n; k++) {
        struct cuda_result *result = &results->items[k];
        struct cpu_view *view = &th->results[result->reduction];
        if (result->home != view->base)
            copy(t, result, view, th->count,
                 cuda_tile_place_input(code, room(t, result, view, th->count)));
        *view = result->copy;
    }
}
