/* Streams: arrays whose elements are pushed or taken by the program, as it makes or needs them.
 *
 *     IDLE --a job's request is sent: attach--> MOVING --all moved, a source's end--> detach
 *                                                 |----too few, too many, fail, free--> FAILED
 *                                                 '----the job ends otherwise---------> detach
 *
 * There is no buffer but the ring: whoever pushes or takes serves the blocks that the worker asks
 * for in its own thread (stream_move.c), and waits for the ring's eventfd. So a stream that waits
 * holds no thread of the pump, and a worker whose client is silent holds no slot of its pool. A
 * stream that has failed gives its feed to the pump, whose threads then answer every block with an
 * errno; the job's error is replaced by the stream's own, which has the numbers (job.c).
 *
 * A source of unknown length ends where gad_stream_end() says so: the pump then answers what the
 * worker asks for with the rows that are there, in the last block, and none behind it. An output of
 * unknown length ends when its job has.
 *
 * Two threads meet here, where the program wants it so: the client's, which attaches, detaches and
 * tells the end, and the one that moves elements. The lock is held while bytes are copied, but not
 * while anybody waits. The ring's descriptors are polled without it: who detaches waits until that
 * is over. In the client's own thread, what waits handles the daemon's messages, too, or the end of
 * the job would be seen by nobody.
 */
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "client/lib/memory/pump.h"
#include "client/lib/memory/stream_impl.h"
#include "proto/util.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#define DEFAULT_SLOTS 16u
#define LEAST_SLOTS   2u

/* The array ------------------------------------------------------------------------------------ */

/* Of one that has failed: the pump answers so. */
static int fill_none(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    (void)state;
    (void)start;
    (void)count;
    (void)ret_block;
    return ECANCELED;
}

static int drain_none(void *state, const int64_t *start, const int64_t *count, const void *block)
{
    (void)state;
    (void)start;
    (void)count;
    (void)block;
    return ECANCELED;
}

static const struct provider stream_provider = {
    .is_concurrent = true, .fill = fill_none, .drain = drain_none};

struct gad_stream *stream_of(const struct gad_array *array)
{
    return array->provider == &stream_provider ? array->provider_state : NULL;
}

uint32_t stream_n_slots(const struct gad_stream *stream)
{
    return stream->n_slots;
}

static void stream_close(struct gad_stream *stream)
{
    close_fd(&stream->wake_fd);
    close_fd(&stream->pipe_fd);
    pthread_cond_destroy(&stream->woken);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static void free_stream(struct gad_array *array)
{
    stream_close(array->format_state);
}

static uint32_t slots_for(const struct gad_stream_options *options)
{
    uint64_t n = options && options->buffer_bytes > 0 ? options->buffer_bytes / FEED_SLOT_BYTES
                                                      : DEFAULT_SLOTS;
    return (uint32_t)min_u64(max_u64(n, LEAST_SLOTS), RING_MAX_SLOTS);
}

static void measure(struct gad_stream *stream, const struct array *described)
{
    stream->item_bytes = dtype_size(described->dtype);
    stream->row_bytes = stream->item_bytes;
    for (int i = 1; i < described->ndim; i++)
        stream->row_bytes *= (uint64_t)described->shape[i];
    stream->is_open = array_is_open(stream->array);
    stream->n_rows = described->ndim > 0 ? described->shape[0] : 1;
    if (stream->is_open)
        stream->n_rows = array_open_rows(stream->array);
    stream->total_bytes = stream->row_bytes * (uint64_t)stream->n_rows;
}

static int make(struct gad_client *client, const struct array *described, bool is_output,
                const struct gad_stream_options *options, struct gad_stream **ret_stream)
{
    struct gad_stream *stream = calloc(1, sizeof(*stream));
    struct gad_array *array = array_new(client, "stream", ACCESS_PROVIDER, NULL);
    int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!stream || !array || wake_fd < 0) {
        close_fd(&wake_fd);
        free(stream);
        gad_array_release(array);
        return -ENOMEM;
    }
    stream->client = client;
    stream->array = array;
    stream->is_output = is_output;
    stream->in_other_thread = options && options->in_other_thread;
    stream->wake_fd = wake_fd;
    stream->pipe_fd = -1;
    stream->n_slots = slots_for(options);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->woken, NULL);
    memory_fill_info(array, described);
    measure(stream, described);
    stream_forget_slots(stream);
    array->is_writable = array->is_write_only = is_output;
    array->provider = &stream_provider;
    array->provider_state = array->format_state = stream;
    array->maker_free = free_stream;
    *ret_stream = stream;
    return 0;
}

static int describe(const struct gad_layout *layout, struct array *ret, struct gad_error *error)
{
    struct gad_layout dense = *layout;
    int64_t shape[GAD_MAX_NDIM];
    bool is_open = layout->ndim > 0 && layout->ndim <= GAD_MAX_NDIM && layout->shape &&
                   layout->shape[0] == GAD_UNKNOWN_LENGTH;
    dense.strides = NULL;
    if (is_open) {
        memcpy(shape, layout->shape, (size_t)layout->ndim * sizeof(*shape));
        shape[0] = 1;
        dense.shape = shape;
    }
    int r = memory_describe(&dense, ret, error);
    for (int i = 0; r == 0 && i < ret->ndim; i++)
        ret->strides[i] = 0; /* it lies nowhere */
    if (r == 0 && is_open)
        ret->shape[0] = GAD_UNKNOWN_LENGTH;
    return r;
}

enum gad_status gad_stream_new(struct gad_client *client, const struct gad_layout *layout,
                               bool is_output, const struct gad_stream_options *options,
                               struct gad_stream **ret_stream, struct gad_error *error)
{
    if (!client || !ret_stream || !layout)
        return error_set(error, GAD_BAD_ARGUMENT,
                         !client       ? "client"
                         : !ret_stream ? "ret_stream"
                                       : "layout",
                         "is NULL");
    return stream_new(client, layout, is_output, options, ret_stream, error);
}

enum gad_status stream_new(struct gad_client *client, const struct gad_layout *layout,
                           bool is_output, const struct gad_stream_options *options,
                           struct gad_stream **ret_stream, struct gad_error *error)
{
    struct array described;
    int r = describe(layout, &described, error);
    if (r == 0)
        r = make(client, &described, is_output, options, ret_stream);
    if (r == 0 && (*ret_stream)->is_open && (*ret_stream)->n_rows == 0) {
        gad_stream_free(steal_ptr(*ret_stream));
        r = error_set(error, GAD_BAD_SHAPE, "shape",
                      "rows without elements, or of more than 1 PiB, cannot be of unknown number");
    }
    return client_status(r, error);
}

struct gad_array *gad_stream_array(struct gad_stream *stream)
{
    return stream->array;
}

/* Its own failures, under the lock ------------------------------------------------------------- */

static void wake(struct gad_stream *stream)
{
    eventfd_write(stream->wake_fd, 1); /* fails only when full: then it is signalled anyway */
}

/* Rows, and elements of one more that is not whole. */
static void count_moved(const struct gad_stream *stream, struct gad_error *error)
{
    uint64_t row_bytes = max_u64(stream->row_bytes, 1);
    uint64_t n_rows = stream->at / row_bytes, rest = stream->at % row_bytes / stream->item_bytes;
    if (stream->is_open)
        error_expected(error, "whole rows, and an end");
    else
        error_expected(error, "%" PRId64 " rows", stream->n_rows);
    if (rest > 0)
        error_found(error, "%" PRIu64 " rows and %" PRIu64 " elements", n_rows, rest);
    else
        error_found(error, "%" PRIu64 " rows", n_rows);
}

/* What `failure` says is why. The job, if it has one, ends by the pump's answers. */
void stream_fail(struct gad_stream *stream)
{
    struct gad_error ignored;
    stream->has_failed = true;
    if (stream->feed && !stream->feed->is_in_pump &&
        pump_add(stream->pump, stream->feed, &ignored) != 0)
        for (uint32_t i = 0; i < stream->feed->ring.n_slots; i++) /* what is asked now, at least */
            if (feed_has_request(stream->feed, i)) {
                feed_answer(stream->feed, i, ECANCELED);
                feed_tell(stream->feed);
            }
    wake(stream);
}

void stream_end_open(struct gad_stream *stream)
{
    struct feed *feed = stream->feed;
    struct gad_error ignored;
    if (!feed)
        return;
    feed->end_row = (int64_t)(stream->at / stream->row_bytes);
    if (pump_add(stream->pump, feed, &ignored) != 0) {
        error_set(&stream->failure, GAD_NO_MEMORY, NULL, "no memory to tell the stream's end");
        stream_fail(stream);
    }
}

static enum gad_status fail(struct gad_stream *stream)
{
    stream_fail(stream);
    return stream->failure.status;
}

static enum gad_status fail_short(struct gad_stream *stream)
{
    error_set(&stream->failure, GAD_SHORT_READ, NULL,
              stream->is_open && stream->is_ended
                  ? "the stream ended in the middle of a row"
                  : "the stream ended before the array was complete");
    count_moved(stream, &stream->failure);
    return fail(stream);
}

static enum gad_status fail_long(struct gad_stream *stream, uint64_t n_more)
{
    error_set(&stream->failure, GAD_BAD_SHAPE, NULL,
              "more elements were pushed than the stream's array has");
    error_expected(&stream->failure, "%" PRId64 " rows", stream->n_rows);
    error_found(&stream->failure, "%" PRIu64 " elements more", n_more / stream->item_bytes);
    return fail(stream);
}

void stream_fail_stuck(struct gad_stream *stream)
{
    error_set(&stream->failure, GAD_PROVIDER_FAILED, NULL,
              "the daemon asks for the stream's elements in another order");
    stream_fail(stream);
}

static enum gad_status fail_left(struct gad_stream *stream)
{
    error_set(&stream->failure, GAD_CANCELLED, NULL, "nobody takes the rest of the stream");
    count_moved(stream, &stream->failure);
    return fail(stream);
}

/* The job's side ------------------------------------------------------------------------------- */

int stream_attach(struct gad_stream *stream, struct pump *pump, struct feed *feed,
                  struct gad_error *error)
{
    int r = 0;
    pthread_mutex_lock(&stream->lock);
    if (stream->has_failed) {
        if (error)
            *error = stream->failure;
        r = (int)stream->failure.status;
    } else if (stream->feed || stream->at > 0 || stream->has_job_ended) {
        r = error_set(error, GAD_BUSY, NULL,
                      "a stream is one argument, or one output, of one job: it has had its own");
    } else if (feed->is_sink != stream->is_output) {
        r = error_set(error, GAD_BAD_ARGUMENT, NULL,
                      stream->is_output ? "the stream is for an output, and used as a source"
                                        : "the stream is a source, and used as an output");
    } else {
        stream->feed = feed;
        stream->pump = pump;
        stream_forget_slots(stream);
        if (stream->is_open && stream->is_ended)
            stream_end_open(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    wake(stream);
    return r;
}

void stream_detach(struct gad_stream *stream, const struct feed *feed)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->feed == feed) {
        stream->feed = NULL;
        while (stream->polled == feed) {
            wake(stream);
            pthread_cond_wait(&stream->woken, &stream->lock);
        }
    }
    pthread_mutex_unlock(&stream->lock);
}

bool stream_has_failed(struct gad_stream *stream, struct gad_error *ret_error)
{
    pthread_mutex_lock(&stream->lock);
    bool has_failed = stream->has_failed;
    if (has_failed)
        *ret_error = stream->failure;
    pthread_mutex_unlock(&stream->lock);
    return has_failed;
}

void stream_job_ended(struct gad_stream *stream, int status, const struct gad_error *error)
{
    pthread_mutex_lock(&stream->lock);
    stream->has_job_ended = true;
    stream->job_status = status;
    if (status)
        stream->job_error = *error;
    pthread_mutex_unlock(&stream->lock);
    wake(stream);
}

/* Moving --------------------------------------------------------------------------------------- */

/* Whether it is over, under the lock; then how. */
static bool is_over(const struct gad_stream *stream, enum gad_status *ret_status,
                    struct gad_error *error)
{
    const struct gad_error *why = stream->has_failed ? &stream->failure : &stream->job_error;
    *ret_status = stream->has_failed      ? stream->failure.status
                  : stream->has_job_ended ? (enum gad_status)stream->job_status
                                          : GAD_OK;
    if (*ret_status && error)
        *error = *why;
    return stream->has_failed || stream->has_job_ended;
}

static void drain(int fd)
{
    eventfd_t n;
    if (fd >= 0)
        (void)!eventfd_read(fd, &n);
}

/* Until something may have changed. Under the lock, which it gives up. */
enum gad_status stream_wait(struct gad_stream *stream, int64_t deadline, struct gad_error *error)
{
    int conn_fd = stream->in_other_thread ? -1 : gad_fd(stream->client);
    struct pollfd polled[] = {
        {.fd = stream->wake_fd, .events = POLLIN},
        {.fd = stream->feed ? stream->feed->ring.request_fd : -1, .events = POLLIN},
        {.fd = conn_fd, .events = POLLIN}};
    if (!stream->in_other_thread && conn_fd < 0)
        return error_set(error, GAD_DISCONNECTED, NULL, "the connection to the daemon is lost");
    stream->polled = stream->feed;
    pthread_mutex_unlock(&stream->lock);
    int n = poll(polled, ARRAY_LENGTH(polled), clock_left_ms(deadline));
    int saved = errno;
    pthread_mutex_lock(&stream->lock);
    drain(stream->wake_fd);
    drain(polled[1].fd);
    stream->polled = NULL;
    pthread_cond_broadcast(&stream->woken);
    if (n == 0)
        return error_set(error, GAD_TIMEOUT, NULL, "the stream waits for the %s",
                         stream->feed ? "daemon" : "job");
    if (n < 0 && saved == EINTR)
        return error_set(error, GAD_TIMEOUT, NULL, "interrupted by a signal");
    if (n < 0)
        return error_from_errno(error, saved, NULL, "waiting for the daemon");
    if (polled[2].revents == 0)
        return GAD_OK;
    pthread_mutex_unlock(&stream->lock); /* handling it may end the job */
    int r = client_wait(stream->client, 0, error);
    pthread_mutex_lock(&stream->lock);
    return r == GAD_TIMEOUT || r == -EINTR ? GAD_OK : client_status(r, error);
}

/* All that can be moved now. Under the lock. */
static uint64_t move_now(struct gad_stream *stream, char *bytes, uint64_t n_bytes)
{
    bool is_stuck = false;
    uint64_t n = stream->feed ? stream_move(stream, bytes, n_bytes, &is_stuck) : 0;
    if (n < n_bytes && stream->feed && !is_stuck) { /* what came since is not signalled */
        feed_wish(stream->feed, RING_TELL_ONCE);
        n += stream_move(stream, bytes + n, n_bytes - n, &is_stuck);
    }
    if (is_stuck)
        stream_fail_stuck(stream);
    return n;
}

/* n_bytes are no more than are left. */
static enum gad_status move(struct gad_stream *stream, char *bytes, uint64_t n_bytes,
                            int timeout_ms, uint64_t *ret_n_moved, struct gad_error *error)
{
    int64_t deadline = clock_deadline_ms(timeout_ms);
    enum gad_status status = GAD_OK;
    while (*ret_n_moved < n_bytes && !is_over(stream, &status, error)) {
        *ret_n_moved += move_now(stream, bytes + *ret_n_moved, n_bytes - *ret_n_moved);
        if (*ret_n_moved == n_bytes || stream->has_failed)
            continue;
        status = stream_wait(stream, deadline, error);
        if (status)
            break;
    }
    return status;
}

enum gad_status gad_stream_wait(struct gad_stream *stream, int timeout_ms, struct gad_error *error)
{
    int64_t deadline = clock_deadline_ms(timeout_ms);
    enum gad_status status = GAD_OK;
    if (!stream)
        return error_set(error, GAD_BAD_ARGUMENT, "stream", "is NULL");
    pthread_mutex_lock(&stream->lock);
    while (!is_over(stream, &status, error) && !stream->feed)
        if ((status = stream_wait(stream, deadline, error)))
            break;
    pthread_mutex_unlock(&stream->lock);
    return status;
}

static enum gad_status check(const struct gad_stream *stream, bool is_output, const void *elements,
                             size_t n_elements, struct gad_error *error)
{
    if (!stream || (!elements && n_elements > 0))
        return error_set(error, GAD_BAD_ARGUMENT, stream ? "elements" : "stream", "is NULL");
    if (stream->has_carrier)
        return error_set(error, GAD_BAD_ARGUMENT, "stream", "a thread of the library moves it");
    if (stream->is_output != is_output)
        return error_set(error, GAD_BAD_ARGUMENT, "stream",
                         is_output ? "a source is pushed to, not taken from"
                                   : "an output is taken from, not pushed to");
    if (!is_output && stream->is_ended)
        return error_set(error, GAD_BAD_ARGUMENT, "stream", "it was said that nothing follows");
    return GAD_OK;
}

enum gad_status gad_stream_push(struct gad_stream *stream, const void *elements, size_t n_elements,
                                int timeout_ms, size_t *ret_n_elements, struct gad_error *error)
{
    uint64_t n_moved = 0;
    enum gad_status status = check(stream, false, elements, n_elements, error);
    if (ret_n_elements)
        *ret_n_elements = 0;
    if (status)
        return status;
    uint64_t n_bytes =
        n_elements > UINT64_MAX / stream->item_bytes ? UINT64_MAX : n_elements * stream->item_bytes;
    pthread_mutex_lock(&stream->lock);
    uint64_t n_left = stream->total_bytes - stream->at;
    if (n_bytes > n_left && !is_over(stream, &status, error)) {
        status = fail_long(stream, n_bytes - n_left);
        if (error)
            *error = stream->failure;
    } else if (status == GAD_OK) {
        status = move(stream, (char *)elements, n_bytes, timeout_ms, &n_moved, error);
        if (status == GAD_OK && n_moved < n_bytes)
            status = error_set(error, GAD_BAD_ARGUMENT, "stream",
                               "its job has ended, and nothing more is read");
    }
    pthread_mutex_unlock(&stream->lock);
    if (ret_n_elements)
        *ret_n_elements = (size_t)(n_moved / stream->item_bytes);
    return status;
}

enum gad_status gad_stream_take(struct gad_stream *stream, void *ret_elements, size_t n_elements,
                                int timeout_ms, size_t *ret_n_elements, struct gad_error *error)
{
    uint64_t n_moved = 0;
    enum gad_status status = check(stream, true, ret_elements, n_elements, error);
    if (status)
        return status;
    if (!ret_n_elements)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_n_elements", "is NULL");
    pthread_mutex_lock(&stream->lock);
    uint64_t n_left = (stream->total_bytes - stream->at) / stream->item_bytes;
    uint64_t n_bytes = min_u64(n_elements, n_left) * stream->item_bytes;
    status = move(stream, ret_elements, n_bytes, timeout_ms, &n_moved, error);
    pthread_mutex_unlock(&stream->lock);
    *ret_n_elements = (size_t)(n_moved / stream->item_bytes);
    return status;
}

/* Ending --------------------------------------------------------------------------------------- */

enum gad_status gad_stream_end(struct gad_stream *stream, struct gad_error *error)
{
    enum gad_status status = check(stream, false, NULL, 0, NULL);
    if (status)
        return check(stream, false, NULL, 0, error);
    pthread_mutex_lock(&stream->lock);
    stream->is_ended = true;
    if (!is_over(stream, &status, error)) {
        if (stream->is_open ? stream->at % stream->row_bytes != 0
                            : stream->at < stream->total_bytes) {
            status = fail_short(stream);
            if (error)
                *error = stream->failure;
        } else if (stream->is_open) {
            stream_end_open(stream);
        } else if (stream->feed) {
            stream_answer_last(stream);
        }
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

void gad_stream_fail(struct gad_stream *stream, const char *why)
{
    enum gad_status status;
    pthread_mutex_lock(&stream->lock);
    if (!is_over(stream, &status, NULL) && !(stream->is_open && stream->is_ended)) {
        error_set(&stream->failure, GAD_PROVIDER_FAILED, NULL, "%s", why);
        count_moved(stream, &stream->failure);
        (void)fail(stream);
    }
    pthread_mutex_unlock(&stream->lock);
}

void gad_stream_free(struct gad_stream *stream)
{
    enum gad_status status;
    if (!stream)
        return;
    pthread_mutex_lock(&stream->lock);
    if (!is_over(stream, &status, NULL)) {
        if (stream->is_output && stream->at < stream->total_bytes)
            (void)fail_left(stream);
        else if (!stream->is_output && !stream->is_ended)
            (void)fail_short(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    if (stream->has_carrier)
        (void)gad_stream_join(stream, NULL);
    gad_array_release(stream->array);
}
