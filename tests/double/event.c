/* Events of the test double. A recording is an object of its own: who waits for an event waits for
 * the recording that it had then, however often it is recorded again before.
 *
 * What a thread of the program has seen to end, all its threads are taken to know: whether they
 * told each other is for ThreadSanitizer to say.
 */
#include "tests/double/internal.h"

#include <stdlib.h>

static void check_locked(const struct CUevent_st *event, const char *what)
{
    if (!event || event->device != double_device())
        double_abort("%s: the event is not of the thread's device", what);
}

static void forget_locked(struct CUevent_st *event)
{
    event->record = record_unref(event->record);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    const cudaError_t error = double_enter(true);
    if (!error) {
        the_double.stats->n_events++;
        double_allocates_locked("cudaEventCreateWithFlags");
        struct CUevent_st *e = calloc(1, sizeof *e);
        if (!e)
            double_abort("no memory");
        e->device = double_device();
        *event = e;
    }
    return double_leave(error);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    const cudaError_t error = double_enter(true);
    check_locked(event, "cudaEventDestroy");
    forget_locked(event);
    free(event);
    the_double.stats->n_frees++;
    return double_leave(error);
}

static void record_locked(struct CUevent_st *event, struct CUstream_st *stream)
{
    struct operation *o = operation_new(OPERATION_RECORD);
    struct record *r = calloc(1, sizeof *r);
    if (!r)
        double_abort("no memory");
    clock_join(&stream->clock, &the_double.host);
    r->clock = stream->clock;
    r->n_users = 2; /* the event, the operation */
    forget_locked(event);
    event->record = o->record = r;
    stream_put_locked(stream, o);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const cudaError_t error = double_enter(true);
    if (!error) {
        timeline_call_locked();
        check_locked(event, "cudaEventRecord");
        stream_check_locked(stream, "cudaEventRecord");
        record_locked(event, stream);
        the_double.stats->n_records++;
    }
    return double_leave(error);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    const cudaError_t error = double_enter(true);
    if (!error) {
        timeline_call_locked();
        check_locked(event, "cudaStreamWaitEvent");
        stream_check_locked(stream, "cudaStreamWaitEvent");
        if (!event->record) /* the runtime lets it pass, and nothing would be waited for */
            double_abort("cudaStreamWaitEvent: the event was never recorded");
        struct operation *o = operation_new(OPERATION_WAIT);
        o->record = event->record;
        o->record->n_users++;
        clock_join(&stream->clock, &o->record->clock);
        stream_put_locked(stream, o);
        the_double.stats->n_waits++;
    }
    return double_leave(error);
}

/* The program has seen it: what it does from here on comes behind. */
static cudaError_t see_locked(const struct record *r)
{
    if (the_double.sticky)
        return the_double.sticky;
    if (r && !r->is_done)
        return cudaErrorNotReady;
    if (r) {
        clock_join(&the_double.host, &r->clock);
        if (the_double.timeline.machine)
            timeline_see_locked(r->time_ns);
    }
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t error = double_enter(true);
    if (!error) {
        check_locked(event, "cudaEventQuery");
        error = see_locked(event->record);
        if (error != cudaErrorNotReady)
            timeline_call_locked();
    }
    return double_leave(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t error = double_enter(true);
    if (!error) {
        timeline_call_locked();
        check_locked(event, "cudaEventSynchronize");
        struct record *r = event->record;
        if (r)
            r->n_users++;
        while (r && !r->is_done && !the_double.sticky)
            pthread_cond_wait(&the_double.recorded, &the_double.lock);
        error = see_locked(r);
        record_unref(r);
    }
    return double_leave(error);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    cudaError_t error = double_enter(true);
    if (!error) {
        timeline_call_locked();
        const struct record *from = begin->record, *to = end->record;
        if (!from || !to)
            error = cudaErrorInvalidResourceHandle;
        else if (!from->is_done || !to->is_done)
            error = cudaErrorNotReady;
        else
            *ms = (float)((double)(to->time_ns - from->time_ns) / 1e6);
    }
    return double_leave(error);
}
