/* The scans of a strip: running results to buffers, and from there, cast, to the outputs.
 *
 * All scans of a strip are computed before the first result is stored: an output may lie on an
 * input. A result goes to its place in one step where that is contiguous and native, and else by
 * the same ways as other stores. Called by run.c, in place of reductions and stores.
 */
#include "kernels/cpu/run/run.h"

#include "proto/util.h"

/* The strip in the output's dtype. */
static const void *cast_strip(struct run *run, const struct bound_store *store, size_t n, void *to)
{
    const void *results = run->scans[store->src].buffer;
    if (!store->cast)
        return results;
    store->cast(n, to, results, NULL, NULL, &run->events);
    return to;
}

static void store_scan(struct run *run, struct bound_store *store, uint64_t first, size_t n)
{
    struct stream *s = &store->stream;
    bool is_whole = n % KERNEL_GRANULE == 0 && (s->kind == STREAM_LINEAR || s->kind == STREAM_RUNS);
    void *place = NULL;
    if (is_whole && store->cast && !s->bypasses_cache)
        place = stream_direct(s, run->box, first, n);
    if (place) {
        (void)cast_strip(run, store, n, place);
        return;
    }
    const void *strip = cast_strip(run, store, n, run->cast_strip);
    stream_store(s, run->box, first, n, run->engine->move, strip, run->spare);
}

void run_scans(struct run *run, uint64_t first, size_t n)
{
    for (unsigned i = 0; i < run->n_scans; i++) {
        struct scanning *d = &run->scans[i];
        scanning_take(&run->scanner, d, first, n, run->address[d->src]);
    }
    for (unsigned i = 0; i < run->n_stores; i++)
        store_scan(run, &run->stores[i], first, n);
}
