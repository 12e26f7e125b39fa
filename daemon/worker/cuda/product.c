/* The tiles of a matrix product that have no slot on the device.
 *
 * Panels and C are on the device, so a MULTIPLY is given to it without a slot and copies nothing.
 * What goes on between the journal and the output is the host's alone.
 *
 * The carry is on the device as far from its slots as its address says (engine.h). Nobody clears it
 * there: a block of C is set by its tile's first MULTIPLY, and what of a panel is multiplied was
 * loaded.
 *
 * Called by compute and I/O threads; cuda_product_multiply() by whoever submits, under the
 * pipeline's lock.
 */
#include "daemon/worker/cuda/engine.h"
#include "daemon/worker/turns/scheduler.h"
#include "daemon/worker/walks/walk_product.h"

#include <errno.h>

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

/* Of the turn's matrices, n from `first` on: equally far from one to the next. */
static void describe(const struct card *card, const struct tile *t, int64_t first, int64_t n,
                     struct cuda_multiply *ret)
{
    const struct product_turn *turn = &t->turn;
    char *carry = card->slab + (t->job->product_carry - card->pinned);
    struct product_matrix left[2], right[2], result[2];
    for (int i = 0; i < 2; i++)
        product_block(t->product, turn, first + (n > 1 ? i : 0), carry, &left[i], &right[i],
                      &result[i]);
    *ret = (struct cuda_multiply){.dtype = t->product->whole->dtype,
                                  .adds = !turn->is_first,
                                  .is_tf32 = t->product->is_tf32,
                                  .n_matrices = n,
                                  .n_rows = turn->n_rows,
                                  .n_columns = turn->n_columns,
                                  .n_depth = turn->n_depth,
                                  .left = matrix_of(&left[0], &left[1]),
                                  .right = matrix_of(&right[0], &right[1]),
                                  .result = matrix_of(&result[0], &result[1])};
}

/* Without any depth C is set all the same. */
int cuda_product_multiply(const struct card *card, const struct tile *t)
{
    const struct product_turn *turn = &t->turn;
    int r = 0;
    for (int64_t i = 0, n; i < turn->n_matrices && !r; i += n) {
        struct cuda_multiply m;
        n = product_run(t->product, turn, i);
        describe(card, t, i, n, &m);
        r = cuda_multiply(card->blas, &m, card->products);
        if (!r && turn->is_mirrored)
            r = cuda_mirror(&m.result, t->product->item_bytes, n, turn->n_rows, card->products);
    }
    return r;
}

/* Integers were measured with 4 bytes; of 8, every multiplication is several. */
static double rate_of(const struct plan_rates *rates, const struct plan_product *product)
{
    enum dtype dtype = product->whole->dtype;
    if (product->is_tf32)
        return rates->product_tf32;
    if (dtype_is_float(dtype))
        return dtype == DTYPE_FLOAT32 ? rates->product_float32 : rates->product_float64;
    return dtype_size(dtype) == 8 ? rates->product_integer / 4 : rates->product_integer;
}

uint64_t cuda_product_expected_ns(const struct card *card, const struct tile *t)
{
    const struct product_turn *turn = &t->turn;
    double rate = rate_of(&card->rates, t->product);
    double n = 2.0 * (double)turn->n_matrices * (double)turn->n_rows * (double)turn->n_columns *
               (double)turn->n_depth;
    return rate > 0 ? (uint64_t)(n / rate * 1e9) : 0;
}

enum tile_outcome cuda_product_run_multiply(struct cuda_engine *e, struct tile *t,
                                            struct thread_context *th)
{
    if (t->device_error)
        return cuda_tile_failed(t, th);
    if (t->is_computed)
        return TILE_DONE;
    cuda_pipeline_submit(e, t);
    return TILE_ON_DEVICE;
}

/* The journal -------------------------------------------------------------------------------- */

static int read_log(struct tile *t, struct thread_context *th)
{
    tile_boxes(t, t->grain, th);
    th->output_memory[0] = t->slot;
    return t->is_staged ? 0 : walk_log_load(t, th);
}

int cuda_product_read_log(struct cuda_engine *e, struct tile *t, struct thread_context *th)
{
    return read_log(t, th);
}

static enum tile_outcome apply(struct tile *t, struct thread_context *th)
{
    while (t->grain < t->end) {
        if (!sched_may_call_on(t, th))
            return TILE_FAILED;
        int r = read_log(t, th);
        if (r == -EAGAIN)
            return TILE_NEEDS_READ;
        th->status = r ? r : walk_log_apply(t, th);
        if (th->status)
            return TILE_FAILED;
        tile_grain_done(t, th);
    }
    return TILE_DONE;
}

static void count_sink(struct tile *t, const struct thread_context *th, uint64_t begin_ns)
{
    uint64_t end_ns = clock_ns();
    t->measure.sink_ns += end_ns - begin_ns;
    tile_span(t, th, TRACE_WRITE, begin_ns, end_ns);
}

enum tile_outcome cuda_product_apply(struct cuda_engine *e, struct tile *t,
                                     struct thread_context *th)
{
    uint64_t begin_ns = clock_ns();
    enum tile_outcome outcome = apply(t, th);
    count_sink(t, th, begin_ns);
    return outcome;
}

enum tile_outcome cuda_product_mark(struct cuda_engine *e, struct tile *t,
                                    struct thread_context *th)
{
    uint64_t begin_ns = clock_ns();
    th->status = walk_log_mark(t, th);
    count_sink(t, th, begin_ns);
    return th->status ? TILE_FAILED : TILE_DONE;
}
