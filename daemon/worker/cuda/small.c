/* Small jobs of the CUDA engine: the main thread stages, submits and waits itself, in a slot
 * outside the pool and on a stream of its own that goes before the others. Between two looks at the
 * device nothing else is done: waking a thread takes longer than what is waited for. When it takes
 * long after all, because the device is busy, the processor is offered to others at every look.
 *
 * One event says that it has ended; what it took with the device is counted as a whole, by the
 * host's clock, as `kernel`.
 *
 * Called by the main thread; its entry of the crash page says what is in hand.
 */
#include "daemon/worker/cuda/engine.h"
#include "daemon/worker/cuda/fault.h"

#include <sched.h>

#define SPIN_NS UINT64_C(200000)

static int wait_for(const struct cuda_flight *f)
{
    uint64_t begin_ns = clock_ns();
    for (bool is_done = false; !is_done;) {
        int r = cuda_event_query(f->marks[MARK_END], &is_done);
        if (r)
            return r;
        if (!is_done && clock_ns() - begin_ns > SPIN_NS)
            sched_yield();
    }
    return 0;
}

enum tile_outcome cuda_engine_run_small(struct engine *base, struct tile *t,
                                        struct thread_context *th)
{
    struct cuda_engine *e = (struct cuda_engine *)base;
    struct cuda_work *work = e->small_work;
    cuda_stream stream = e->card->small;
    enum tile_outcome outcome =
        cuda_tile_stage(work, t, th, e->card->pinned + e->card->small_offset, e->card->slot_bytes);
    if (outcome != TILE_DONE)
        return outcome;
    uint64_t begin_ns = clock_ns();
    int r = cuda_flight_submit(&e->small_flight, work, stream, stream, stream);
    if (!r)
        r = wait_for(&e->small_flight);
    uint64_t end_ns = clock_ns();
    t->measure.kernel_ns += end_ns - begin_ns;
    tile_span(t, th, TRACE_KERNEL, begin_ns, end_ns);
    if (r && cuda_error_is_sticky(r))
        device_fault("waiting for a small job", r);
    t->device_error = r;
    return cuda_tile_finish(work, t, th);
}
