/* Random numbers of a strip whose elements' numbers count up: from the first number to what is made
 * of the bits in one kernel, past the cache straight to its place where nobody else reads it.
 * Called by run.c; bind_draws.c finds the instructions.
 */
#include "kernels/cpu/levels/lines.h"
#include "kernels/cpu/run/run.h"

bool run_counts(struct run *run, uint64_t first, size_t n)
{
    run->is_counting =
        run->numbers && index_stream_counts(run->numbers, first, n, &run->first_number);
    return run->is_counting && run->is_numbered_for_draws;
}

static void draw(struct run *run, const struct bound_draw *d, kernel_fn *kernel, size_t n,
                 void *dst)
{
    kernel(n, dst, &run->first_number, run->address[d->seed], run->address[d->stream],
           &run->events);
}

void run_drawn(struct run *run, const struct bound_insn *insn, size_t n)
{
    const struct bound_draw *d = &run->draws[insn->drawn];
    void *buffer = run->address[insn->dst];
    const struct bound_store *store =
        insn->streamed == NO_STORE ? NULL : &run->stores[insn->streamed];
    if (!d->kernel)
        return;
    if (!store || !store->place) {
        draw(run, d, d->kernel, n, buffer);
    } else if (d->past && ((uintptr_t)store->place & (LINE_BYTES - 1)) == 0) {
        draw(run, d, d->past, n, store->place);
    } else {
        draw(run, d, d->kernel, n, buffer);
        run->engine->move->stream(n << store->stream.item_log2, store->place, buffer);
    }
}
