/* The turns of a matrix product that are no tiles with a slot on the device (kernels/product.h).
 *
 * LOADs and STOREs are (tile.c). A MULTIPLY is given to the device, where panels and C are: it has
 * no slot and copies nothing. MARKs and APPLYs are the host's alone. So are turns for which there
 * is nothing to do: they are over at once.
 *
 * The carry is on the device at the same offset as in the pool. Nobody clears it there: a block of
 * C is set by its tile's first MULTIPLY, and what of a panel is multiplied was loaded.
 *
 * Called by compute and I/O threads; cuda_product_multiply() by whoever submits, under the
 * pipeline's lock.
 */
#include "daemon/worker/cuda/engine.h"
#include "daemon/worker/journal.h"
#include "daemon/worker/product.h"

#include <errno.h>

bool cuda_product_is_own(const struct tile *t)
{
    bool has_grains = t->turn.step == PRODUCT_LOAD || t->turn.step == PRODUCT_STORE;
    return t->job->product && (!has_grains || t->end == 0);
}

/* Multiplying -------------------------------------------------------------------------------- */

/* The first one, and how far behind it the second is. */
static struct cuda_matrix matrix_of(const struct product_matrix *first,
                                    const struct product_matrix *second)
{
    return (struct cuda_matrix){.base = first->base,
                                .row_bytes = first->row_bytes,
                                .column_bytes = first->column_bytes,
                                .matrix_bytes = second->base - first->base};
}

static void describe(const struct card *card, const struct tile *t, struct cuda_multiply *ret)
{
    const struct wjob *job = t->job;
    const struct product_turn *turn = &t->turn;
    char *carry = card->slab + (job->carry - card->pinned);
    struct product_matrix left[2], right[2], result[2];
    int64_t second = turn->n_matrices > 1;
    product_block(&job->plan, job->program, turn, 0, carry, &left[0], &right[0], &result[0]);
    product_block(&job->plan, job->program, turn, second, carry, &left[1], &right[1], &result[1]);
    *ret = (struct cuda_multiply){.dtype = job->program->product.dtype,
                                  .is_tf32 = job->plan.product.is_tf32,
                                  .n_matrices = turn->n_matrices,
                                  .n_rows = turn->n_rows,
                                  .n_columns = turn->n_columns,
                                  .left = matrix_of(&left[0], &left[1]),
                                  .right = matrix_of(&right[0], &right[1]),
                                  .result = matrix_of(&result[0], &result[1])};
}

/* In pieces of a step's depth, one added to the other: the bits do not depend on how many steps a
 * turn has. Without any depth C is set all the same. */
int cuda_product_multiply(const struct card *card, const struct tile *t)
{
    const struct product_turn *turn = &t->turn;
    const struct plan_product *planned = &t->job->plan.product;
    struct cuda_multiply m;
    int64_t depth = 0;
    int r;
    describe(card, t, &m);
    do {
        int64_t left = turn->n_depth - depth;
        m.n_depth = left < planned->step_depth ? left : planned->step_depth;
        m.adds = !turn->is_first || depth > 0;
        r = cuda_multiply(card->blas, &m, card->compute);
        m.left.base += m.n_depth * m.left.column_bytes;
        m.right.base += m.n_depth * m.right.row_bytes;
        depth += m.n_depth;
    } while (!r && depth < turn->n_depth);
    if (!r && turn->is_mirrored)
        r = cuda_mirror(&m.result, planned->item_bytes, turn->n_matrices, turn->n_rows,
                        card->compute);
    return r;
}

static enum tile_outcome multiply(struct cuda_engine *e, struct tile *t, struct thread_context *th)
{
    if (t->device_error)
        return cuda_tile_failed(t, th);
    if (t->is_computed)
        return TILE_DONE;
    cuda_pipeline_submit(e, t);
    return TILE_ON_DEVICE;
}

/* The journal -------------------------------------------------------------------------------- */

static void take_grain(struct tile *t, struct thread_context *th)
{
    tile_boxes(t, t->grain, th);
    th->output_memory[0] = t->slot;
}

int cuda_product_read(struct tile *t, struct thread_context *th)
{
    take_grain(t, th);
    return product_read_log(t, th);
}

static enum tile_outcome apply(struct tile *t, struct thread_context *th)
{
    while (t->grain < t->end) {
        if (atomic_load_explicit(&t->job->is_stopped, memory_order_relaxed))
            return TILE_FAILED;
        take_grain(t, th);
        int r = t->is_staged ? 0 : product_read_log(t, th);
        if (r == -EAGAIN)
            return TILE_NEEDS_READ;
        th->status = r ? r : product_apply(t, th);
        if (th->status)
            return TILE_FAILED;
        tile_grain_done(t, th);
    }
    return TILE_DONE;
}

static enum tile_outcome mark(const struct tile *t, struct thread_context *th)
{
    th->status = journal_mark(t->job, t->turn.tile, t->turn.is_applied, &th->io, &th->error);
    return th->status ? TILE_FAILED : TILE_DONE;
}

static enum tile_outcome on_host(struct tile *t, struct thread_context *th)
{
    uint64_t begin_ns = clock_ns();
    enum tile_outcome outcome = t->turn.step == PRODUCT_MARK ? mark(t, th) : apply(t, th);
    t->measure.sink_ns += clock_ns() - begin_ns;
    return outcome;
}

enum tile_outcome cuda_product_run(struct cuda_engine *e, struct tile *t, struct thread_context *th)
{
    if (t->turn.is_empty)
        return TILE_DONE;
    switch (t->turn.step) {
    case PRODUCT_MULTIPLY: return multiply(e, t, th);
    case PRODUCT_MARK:
    case PRODUCT_APPLY: return on_host(t, th);
    case PRODUCT_LOAD:
    case PRODUCT_STORE: break; /* without grains */
    }
    return TILE_DONE;
}
