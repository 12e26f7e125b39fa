/* Streams that a thread of the library carries from or to a descriptor, as npy or as they are.
 *
 *     pipe --read()--> slot of the ring --> worker       worker --> slot --write()--> pipe
 *
 * Bytes go straight between the pipe and the ring's slots: the thread takes the place of the block
 * that comes next (stream_place()), moves as much as the pipe has, or has room for, and says how
 * much that was. It never waits in read() or write(), but in poll(), together with what ends the
 * job; a pipe that poll() calls writable gets no more than it has room for, since write() would
 * wait for the rest. Other descriptors (files, sockets) are written as they are.
 *
 * A source's header is read before there is a stream, since its shape is the stream's. An output's
 * is written with the first block, so a job that is refused has written nothing. Elements without a
 * header may be as many as come.
 */
#include "client/lib/connection/client.h"
#include "client/lib/memory/stream_impl.h"
#include "client/lib/memory/pipe_header.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define PIPE_BYTES (1 << 20) /* as many as anybody may have, unless the administrator says less */
#define PAGE_BYTES 4096

/* Failures, under the lock --------------------------------------------------------------------- */

static void fail_errno(struct gad_stream *stream, int number)
{
    if (number == EPIPE)
        error_set(&stream->failure, GAD_CANCELLED, NULL, "the reader of the pipe has left");
    else
        error_from_errno(&stream->failure, number, NULL,
                         stream->is_output ? "writing the results" : "reading the elements");
    stream_fail(stream);
}

static void fail_length(struct gad_stream *stream, bool is_long)
{
    error_set(&stream->failure, is_long ? GAD_BAD_SHAPE : GAD_SHORT_READ, NULL,
              is_long           ? "the pipe has more than its array"
              : stream->is_open ? "the pipe ended in the middle of a row"
                                : "the pipe ended before the array was complete");
    if (stream->is_open)
        error_expected(&stream->failure, "whole rows of %" PRIu64 " bytes", stream->row_bytes);
    else
        error_expected(&stream->failure, "%" PRIu64 " bytes of elements", stream->total_bytes);
    if (is_long)
        error_found(&stream->failure, "more");
    else
        error_found(&stream->failure, "%" PRIu64 " bytes", stream->at);
    stream_fail(stream);
}

/* The thread ----------------------------------------------------------------------------------- */

/* How much write() takes without waiting, if poll() says that it takes anything. A pipe has pages;
 * those at both ends may be partly used. */
static uint64_t room_of(const struct gad_stream *stream)
{
    int size = stream->is_pipe ? fcntl(stream->pipe_fd, F_GETPIPE_SZ) : -1, queued = 0;
    if (size < 0 || ioctl(stream->pipe_fd, FIONREAD, &queued) < 0)
        return UINT64_MAX;
    return (uint64_t)(size - queued > 3 * PAGE_BYTES ? size - queued - 2 * PAGE_BYTES : PAGE_BYTES);
}

/* Until the descriptor is ready or the job may have ended. Without the lock. A positive errno. */
static int wait_for_pipe(struct gad_stream *stream)
{
    short events = stream->is_output ? POLLOUT : POLLIN;
    struct pollfd polled[] = {{.fd = stream->pipe_fd, .events = events},
                              {.fd = stream->wake_fd, .events = POLLIN}};
    eventfd_t n;
    if (poll(polled, ARRAY_LENGTH(polled), -1) < 0 && errno != EINTR)
        return errno;
    if (polled[1].revents)
        (void)!eventfd_read(stream->wake_fd, &n);
    return polled[0].revents ? 0 : EAGAIN;
}

/* Returns bytes that were moved, 0: the pipe has ended (a source); -errno, -EAGAIN: not now. */
static ssize_t move_bytes(struct gad_stream *stream, char *bytes, uint64_t n_bytes)
{
    int r = wait_for_pipe(stream);
    if (r)
        return -r;
    ssize_t n = stream->is_output ? write(stream->pipe_fd, bytes, min_u64(n_bytes, room_of(stream)))
                                  : read(stream->pipe_fd, bytes, n_bytes);
    return n < 0 ? (errno == EINTR ? -EAGAIN : -errno) : n;
}

/* The header, once. False: the stream has failed. Under the lock, which it gives up. */
static bool write_header(struct gad_stream *stream)
{
    const struct gad_array_info *info = &stream->array->info;
    char header[NPY_DATA_OFFSET];
    if (stream->n_header_bytes == NPY_DATA_OFFSET)
        return true;
    npy_header_format((enum dtype)info->dtype, info->ndim, info->shape, false, header);
    pthread_mutex_unlock(&stream->lock);
    ssize_t n = move_bytes(stream, header + stream->n_header_bytes,
                           NPY_DATA_OFFSET - stream->n_header_bytes);
    pthread_mutex_lock(&stream->lock);
    if (n >= 0)
        stream->n_header_bytes += (size_t)n;
    else if (n != -EAGAIN)
        fail_errno(stream, (int)-n);
    return false;
}

/* Before there is as much as there could be. */
static void end_early(struct gad_stream *stream)
{
    stream->is_ended = stream->is_open && stream->at % stream->row_bytes == 0;
    if (stream->is_ended)
        stream_end_open(stream);
    else
        fail_length(stream, false);
}

/* One part of one block, or waits for a block. Under the lock. */
static void carry_part(struct gad_stream *stream)
{
    uint64_t n_bytes;
    char *place = stream_place(stream, &n_bytes);
    if (!place) {
        (void)stream_wait(stream, DEADLINE_NEVER, NULL);
        return;
    }
    if (stream->is_output && !write_header(stream))
        return;
    const struct feed *feed = stream->polled = stream->feed;
    if (!feed)
        return;
    pthread_mutex_unlock(&stream->lock);
    ssize_t n = move_bytes(stream, place, n_bytes);
    pthread_mutex_lock(&stream->lock);
    stream->polled = NULL;
    pthread_cond_broadcast(&stream->woken);
    if (n > 0 && stream->feed == feed && !stream->has_failed)
        stream_advance(stream, (uint64_t)n);
    else if (n < 0 && n != -EAGAIN)
        fail_errno(stream, (int)-n);
    else if (n == 0 && !stream->is_output)
        end_early(stream);
}

/* Behind the last element: nothing may follow. Under the lock. */
static void carry_end(struct gad_stream *stream)
{
    char more;
    pthread_mutex_unlock(&stream->lock);
    ssize_t n = move_bytes(stream, &more, 1);
    pthread_mutex_lock(&stream->lock);
    if (n == 0) {
        stream->is_ended = true;
        if (stream->feed)
            stream_answer_last(stream);
    } else if (n > 0) {
        fail_length(stream, true);
    } else if (n != -EAGAIN) {
        fail_errno(stream, (int)-n);
    }
}

static bool is_over(const struct gad_stream *stream)
{
    return stream->has_failed || stream->has_job_ended || (stream->is_open && stream->is_ended) ||
           (stream->at == stream->total_bytes && (stream->is_output || stream->is_ended));
}

static void *carry(void *argument)
{
    struct gad_stream *stream = argument;
    pthread_mutex_lock(&stream->lock);
    while (!is_over(stream))
        if (stream->at < stream->total_bytes)
            carry_part(stream);
        else
            carry_end(stream);
    /* Of an array without elements the header is all. */
    while (stream->is_output && stream->total_bytes == 0 && !stream->has_failed &&
           !(stream->has_job_ended && stream->job_status)) {
        if (!stream->has_job_ended)
            (void)stream_wait(stream, DEADLINE_NEVER, NULL);
        else if (write_header(stream))
            break;
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

/* Making them ---------------------------------------------------------------------------------- */

/* With all signals blocked: they are the program's, and a pipe without a reader is an errno. */
static int start(struct gad_stream *stream, int fd, struct gad_error *error)
{
    sigset_t all, before;
    struct stat st;
    stream->pipe_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (stream->pipe_fd < 0)
        return error_from_errno(error, errno, NULL, "the pipe");
    stream->is_pipe = fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
    if (stream->is_pipe)
        (void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES); /* fewer signals; as it is will do */
    sigfillset(&all);
    int r = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (r == 0) {
        r = pthread_create(&stream->carrier, NULL, carry, stream);
        stream->has_carrier = r == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return r == 0 ? 0 : error_from_errno(error, r, NULL, "starting the pipe's thread");
}

static enum gad_status make(struct gad_client *client, const struct gad_layout *layout,
                            bool is_output, bool has_header, int fd, struct gad_stream **ret_stream,
                            struct gad_error *error)
{
    const struct gad_stream_options options = {.in_other_thread = true};
    struct gad_stream *stream;
    enum gad_status status = stream_new(client, layout, is_output, &options, &stream, error);
    if (status)
        return status;
    stream->n_header_bytes = has_header ? 0 : NPY_DATA_OFFSET;
    int r = start(stream, fd, error);
    if (r) {
        gad_stream_free(stream);
        return client_status(r, error);
    }
    *ret_stream = stream;
    return GAD_OK;
}

static bool is_in_c_order(const struct npy_header *header)
{
    int n_long = 0;
    for (int i = 0; i < header->ndim; i++)
        n_long += header->shape[i] != 1;
    return !header->fortran_order || n_long < 2;
}

enum gad_status gad_stream_read_npy(struct gad_client *client, int fd, const char *name,
                                    struct gad_stream **ret_stream, struct gad_error *error)
{
    struct npy_header header;
    if (!name || !ret_stream)
        return error_set(error, GAD_BAD_ARGUMENT, !name ? "name" : "ret_stream", "is NULL");
    int r = pipe_read_header(fd, name, &header, error);
    if (r == 0 && !is_in_c_order(&header)) {
        r = error_set(error, GAD_BAD_FORMAT, name,
                      "%s: an array in Fortran order cannot be read as it comes; write it in C "
                      "order, as numpy.ascontiguousarray() gives it",
                      name);
        error_expected(error, "fortran_order: False");
        error_found(error, "fortran_order: True");
    }
    if (r)
        return client_status(r, error);
    const struct gad_layout layout = {.dtype = (enum gad_dtype)header.dtype,
                                      .is_swapped = header.is_swapped,
                                      .ndim = header.ndim,
                                      .shape = header.shape};
    return make(client, &layout, false, true, fd, ret_stream, error);
}

enum gad_status gad_stream_read_raw(struct gad_client *client, int fd, const char *form,
                                    const char *name, struct gad_stream **ret_stream,
                                    struct gad_error *error)
{
    struct npy_header header;
    if (!form || !name || !ret_stream)
        return error_set(error, GAD_BAD_ARGUMENT,
                         !form   ? "form"
                         : !name ? "name"
                                 : "ret_stream",
                         "is NULL");
    int r = pipe_read_form(form, name, &header, error);
    if (r)
        return client_status(r, error);
    const struct gad_layout layout = {.dtype = (enum gad_dtype)header.dtype,
                                      .is_swapped = header.is_swapped,
                                      .ndim = header.ndim,
                                      .shape = header.shape};
    return make(client, &layout, false, false, fd, ret_stream, error);
}

enum gad_status gad_stream_write_raw(struct gad_client *client, int fd, enum gad_dtype dtype,
                                     int ndim, const int64_t *shape, struct gad_stream **ret_stream,
                                     struct gad_error *error)
{
    const struct gad_layout layout = {.dtype = dtype, .ndim = ndim, .shape = shape};
    if (!client)
        return error_set(error, GAD_BAD_ARGUMENT, "client", "is NULL");
    return make(client, &layout, true, false, fd, ret_stream, error);
}

enum gad_status gad_stream_write_npy(struct gad_client *client, int fd, enum gad_dtype dtype,
                                     int ndim, const int64_t *shape, struct gad_stream **ret_stream,
                                     struct gad_error *error)
{
    const struct gad_layout layout = {.dtype = dtype, .ndim = ndim, .shape = shape};
    if (!client)
        return error_set(error, GAD_BAD_ARGUMENT, "client", "is NULL");
    if (ndim > 0 && shape && shape[0] == GAD_UNKNOWN_LENGTH) {
        error_set(
            error, GAD_BAD_SHAPE, "shape",
            "npy says how long an array is before its elements, and that will be known behind "
            "them: write the elements alone, or to a file");
        error_expected(error, "a length for the first axis");
        error_found(error, "none");
        return GAD_BAD_SHAPE;
    }
    return make(client, &layout, true, true, fd, ret_stream, error);
}

enum gad_status gad_stream_join(struct gad_stream *stream, struct gad_error *error)
{
    if (!stream || !stream->has_carrier)
        return error_set(error, GAD_BAD_ARGUMENT, "stream",
                         stream ? "the caller moves it, not the library" : "is NULL");
    if (!stream->is_joined)
        pthread_join(stream->carrier, NULL);
    stream->is_joined = true;
    if (!stream->has_failed)
        return GAD_OK;
    if (error)
        *error = stream->failure;
    return stream->failure.status;
}
