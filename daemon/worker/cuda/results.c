/* Results of earlier passes' reductions on their way to the device, and states of scans there and
 * back.
 *
 * They lie in the carry, in the host's memory, but for those of matrix products, which lie there in
 * the device's and are read where they are. One of a single element is written into the code of
 * the tile; of the others each grain gets its part in the slot, dense in visiting order, as inputs
 * do. Along axes that were reduced a result stands still and is copied once; a grain that reads the
 * same part as the one before shares its copy. What is read as a table is copied whole, once a
 * tile, by cuda_tile_begin().
 *
 * A pass that scans has the states of its own scans in the carry. They go to the slot as results
 * do, and those that a grain leaves come back. Nobody else touches them meanwhile: the tile of the
 * grains before has ended, and that of the grains behind has not begun. Where a tile has several
 * steps, each but the first goes on from the states that the one before leaves on the device.
 *
 * Called by turn.c while it stages and finishes.
 */
#include "daemon/worker/cuda/results.h"
#include "proto/box.h"
#include "proto/util.h"

static int64_t item_bytes(const struct tile *t, const struct cuda_result *result)
{
    enum dtype dtype = t->job->program->reductions[result->reduction].result;
    return (int64_t)dtype_size(dtype);
}

static uint64_t room(const struct tile *t, const struct cuda_result *result,
                     const struct engine_view *home, const int64_t *count)
{
    const struct geometry *g = tile_geometry(t);
    int64_t n_bytes = item_bytes(t, result);
    for (int i = 0; i < g->ndim; i++)
        n_bytes *= home->strides[i] == 0 ? 1 : count[i];
    return (uint64_t)n_bytes;
}

void cuda_results_begin(struct cuda_results *results, const struct tile *t,
                        struct thread_context *th)
{
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    results->n = 0;
    if ((t->results_used | tile_pass(t)->tables_used) == 0)
        return;
    geometry_grain(tile_geometry(t), t->grain, start, count); /* in the round in hand */
    t->job->walk.ops->views(t, start, th->outputs, th->results);
    uint64_t staged = t->results_used & ~program_product_results(t->job->program);
    for (uint64_t left = staged; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        bool is_state = t->job->program->reductions[i].pass == t->pass;
        if (is_state || !program_is_uniform(t->job->program, i))
            results->items[results->n++] = (struct cuda_result){.reduction = i};
    }
}

/* Dense in visiting order, but for axes along which it stands still. */
static struct engine_view dense_view(const struct tile *t, const struct engine_view *home,
                                     const int64_t *count, int64_t stride, void *memory)
{
    const struct geometry *g = tile_geometry(t);
    struct engine_view view = {.base = memory};
    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i];
        if (home->strides[axis] == 0)
            continue;
        view.strides[axis] = stride;
        stride *= count[axis];
    }
    return view;
}

static void copy(const struct tile *t, int64_t n_item_bytes, const int64_t *count,
                 const struct engine_view *from, const struct engine_view *to)
{
    const struct geometry *g = tile_geometry(t);
    struct box box;
    box.n = 0;
    for (int i = g->ndim - 1; i >= 0; i--) {
        int axis = g->axis_order[i];
        if (from->strides[axis] != 0)
            box_add(&box, count[axis], to->strides[axis], from->strides[axis]);
    }
    box_copy(&box, to->base, from->base, (size_t)n_item_bytes, false);
}

static void stage(const struct tile *t, struct cuda_result *result, const struct engine_view *home,
                  const int64_t *count, char *memory)
{
    result->home = home->base;
    result->copy = dense_view(t, home, count, item_bytes(t, result), memory);
    copy(t, item_bytes(t, result), count, home, &result->copy);
}

void cuda_results_stage(struct cuda_results *results, struct cuda_tile *code, const struct tile *t,
                        struct thread_context *th)
{
    t->job->walk.ops->views(t, th->start, th->outputs, th->results);
    for (unsigned k = 0; k < results->n; k++) {
        struct cuda_result *result = &results->items[k];
        struct engine_view *view = &th->results[result->reduction];
        if (result->home != view->base)
            stage(t, result, view, th->count,
                  cuda_tile_place_input(code, room(t, result, view, th->count)));
        *view = result->copy;
        bool is_state = t->job->program->reductions[result->reduction].pass == t->pass;
        if (is_state && tile_plan(t)->chains_steps && code->n_grains > 0)
            view->base = (void *)(uintptr_t)cuda_tile_chain(
                code, result->reduction - tile_pass(t)->first_reduction);
    }
}

void cuda_results_keep_states(const struct cuda_tile *code, unsigned grain, const struct tile *t,
                              struct thread_context *th)
{
    if (t->n_states == 0)
        return;
    t->job->walk.ops->views(t, th->start, th->outputs, th->results);
    for (unsigned i = 0; i < t->n_states; i++) {
        const struct engine_view *home = &th->results[tile_pass(t)->first_reduction + i];
        const void *states = cuda_tile_states(code, grain, i);
        struct engine_view from =
            dense_view(t, home, th->count, sizeof(uint64_t), (void *)(uintptr_t)states);
        copy(t, sizeof(uint64_t), th->count, &from, home);
    }
}
