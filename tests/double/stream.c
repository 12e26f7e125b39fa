/* Streams of the test double: queues that a thread each works off in order, and the threads.
 *
 * States of a queue's head: waiting (for a record of another stream), running (without the lock),
 * hanging (for ever: what never ends on a device ends with the process). When the context is lost,
 * what is queued is thrown away and every record counts as done, so that nobody waits for nothing;
 * whoever asks is told of the loss.
 */
#include "tests/double/internal.h"

#include <stdlib.h>
#include <string.h>

struct record *record_unref(struct record *r)
{
    if (r && --r->n_users == 0)
        free(r);
    return NULL;
}

struct operation *operation_new(enum operation_kind kind)
{
    struct operation *o = calloc(1, sizeof *o);
    if (!o)
        double_abort("no memory");
    o->kind = kind;
    return o;
}

void stream_check_locked(const struct CUstream_st *stream, const char *what)
{
    if (!stream)
        double_abort("%s: the default stream waits for all others", what);
    if (stream->device != double_device())
        double_abort("%s: the stream is of device %d, the thread's device is %d", what,
                     stream->device, double_device());
}

const struct clock *stream_tick_locked(struct CUstream_st *stream)
{
    clock_join(&stream->clock, &the_double.host);
    stream->clock.at[stream->index] = ++the_double.ticks[stream->index];
    return &stream->clock;
}

void stream_set_sticky_locked(cudaError_t error)
{
    if (!the_double.sticky)
        the_double.sticky = error;
    pthread_cond_broadcast(&the_double.recorded);
}

void stream_lose_locked(void)
{
    char path[sizeof the_double.settings.back + 8] = "";
    if (*the_double.settings.back) {
        strcat(strcpy(path, the_double.settings.back), ".lost");
        (void)file_make(path);
    }
    stream_set_sticky_locked(cudaErrorUnknown);
}

void stream_put_locked(struct CUstream_st *stream, struct operation *o)
{
    o->issued_ns = the_double.timeline.host_ns;
    *stream->tail = o;
    stream->tail = &o->next;
    if (++the_double.n_queued > the_double.stats->most_queued)
        the_double.stats->most_queued = the_double.n_queued;
    pthread_cond_signal(&stream->has_work);
}

static void hang_locked(struct CUstream_st *stream)
{
    stream->is_hanging = true;
    pthread_cond_broadcast(&the_double.recorded);
    for (;;)
        pthread_cond_wait(&the_double.recorded, &the_double.lock);
}

static void work_locked(struct CUstream_st *stream, const struct operation *o)
{
    struct double_stats *stats = the_double.stats;
    the_double.n_running++;
    if (the_double.n_running > stats->most_at_once)
        stats->most_at_once = the_double.n_running;
    if (the_double.n_running > 1)
        stats->n_overlapped++;
    pthread_mutex_unlock(&the_double.lock);
    operation_run(stream, o);
    pthread_mutex_lock(&the_double.lock);
    if (the_double.timeline.machine)
        timeline_work_locked(stream, o);
    the_double.n_running--;
    if (o->is_faulty)
        stream_set_sticky_locked(cudaErrorIllegalAddress);
}

/* Faults that the data ask for. False: the kernel must not run. */
static bool obey_data_locked(struct CUstream_st *stream, struct operation *o)
{
    const struct settings *s = &the_double.settings;
    const uint64_t words[] = {s->sticky_data, s->hang_data, s->lost_data};
    bool is_there[3] = {false};
    if (o->kind != OPERATION_KERNEL || !(words[0] || words[1] || words[2]) || !is_armed())
        return true;
    pthread_mutex_unlock(&the_double.lock);
    for (unsigned i = 0; i < 3; i++)
        is_there[i] = words[i] && operation_reads_word(o, words[i]);
    pthread_mutex_lock(&the_double.lock);
    if (is_there[0])
        o->is_faulty = true;
    if (is_there[1])
        hang_locked(stream);
    if (is_there[2])
        stream_lose_locked();
    return !is_there[2];
}

static void step_locked(struct CUstream_st *stream, struct operation *o)
{
    switch (o->kind) {
    case OPERATION_WAIT:
        while (!o->record->is_done && !the_double.sticky)
            pthread_cond_wait(&the_double.recorded, &the_double.lock);
        timeline_wait_locked(stream, o);
        break;
    case OPERATION_RECORD:
        if (the_double.timeline.machine)
            timeline_record_locked(stream, o);
        else
            o->record->time_ns = now_ns();
        o->record->is_done = true;
        pthread_cond_broadcast(&the_double.recorded);
        break;
    case OPERATION_COPY:
    case OPERATION_KERNEL:
        if (the_double.sticky)
            break;
        if (o->is_hanging)
            hang_locked(stream);
        if (obey_data_locked(stream, o))
            work_locked(stream, o);
        break;
    }
}

static void *run(void *argument)
{
    struct CUstream_st *stream = argument;
    pthread_mutex_lock(&the_double.lock);
    for (;;) {
        while (!stream->head && !stream->is_closing)
            pthread_cond_wait(&stream->has_work, &the_double.lock);
        struct operation *o = stream->head;
        if (!o)
            break;
        step_locked(stream, o);
        stream->head = o->next;
        if (!stream->head)
            stream->tail = &stream->head;
        the_double.n_queued--;
        record_unref(o->record);
        free(o);
        if (stream->is_closing)
            pthread_cond_broadcast(&the_double.recorded);
    }
    pthread_mutex_unlock(&the_double.lock);
    return NULL;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return double_leave(double_enter(true));
}

static cudaError_t create_locked(cudaStream_t *ret_stream, unsigned flags, int priority)
{
    the_double.stats->n_streams++;
    double_allocates_locked("cudaStreamCreateWithPriority");
    if (flags != cudaStreamNonBlocking)
        double_abort("a stream that waits for the default stream");
    unsigned index = 0;
    while (index < N_STREAMS && the_double.streams[index])
        index++;
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (index == N_STREAMS || !stream)
        double_abort("too many streams");
    stream->tail = &stream->head;
    stream->index = index;
    stream->device = double_device();
    stream->priority = priority;
    stream->random = the_double.settings.seed * 0x9E3779B97F4A7C15u + index + 1;
    stream->clock = the_double.host;
    pthread_cond_init(&stream->has_work, NULL);
    if (pthread_create(&stream->thread, NULL, run, stream))
        double_abort("no thread");
    the_double.streams[index] = stream;
    *ret_stream = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    cudaError_t error = double_enter(true);
    if (!error)
        error = create_locked(stream, flags, priority);
    return double_leave(error);
}

/* Waits until the queue is empty; a stream that hangs is left to the end of the process. */
static void destroy_locked(struct CUstream_st *stream)
{
    stream->is_closing = true;
    pthread_cond_signal(&stream->has_work);
    while (stream->head && !stream->is_hanging)
        pthread_cond_wait(&the_double.recorded, &the_double.lock);
    if (stream->is_hanging)
        return;
    pthread_mutex_unlock(&the_double.lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&the_double.lock);
    the_double.streams[stream->index] = NULL;
    the_double.stats->n_frees++;
    pthread_cond_destroy(&stream->has_work);
    free(stream);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const cudaError_t error = double_enter(true);
    stream_check_locked(stream, "cudaStreamDestroy");
    destroy_locked(stream); /* also after a loss: threads must end */
    return double_leave(error);
}
