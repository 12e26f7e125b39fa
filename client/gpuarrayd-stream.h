/** gpuarrayd: arrays that a program makes, or takes, as it goes. Included by gpuarrayd.h.
 *
 * A stream is an array whose elements come one after the other, in C order: as the source of a job
 * they are pushed, as its output they are taken. Nothing is kept but a few MiB on the way: a slow
 * daemon makes the producer wait, and a slow producer nobody else. Elements come once. So a job
 * that would read a stream in several passes (`a - mean(a)`), in another order (`a.T`) or again for
 * other elements is refused with GAD_BAD_ARGUMENT before it begins, and no job with a stream is
 * begun anew by itself. Sums, means, products, extremes and counts of all of it are made of those
 * along its first axis where the job has others along that: they round otherwise then.
 *
 *     gad_stream_new(client, &layout, false, NULL, &stream, &error);
 *     options.args = {"a", gad_stream_array(stream)}; gad_submit(client, &options, &job, &error);
 *     while (... more ...)
 *         gad_stream_push(stream, slab, n_elements, -1, NULL, &error);
 *     gad_stream_end(stream, &error);
 *     gad_job_wait(job, -1, &error);
 *     gad_stream_free(stream);
 *
 * The first axis may be of a length that nobody knows before its end: GAD_UNKNOWN_LENGTH. Such a
 * source ends where gad_stream_end() says so; what is computed of it, row by row or of all rows, is
 * the same, bit for bit, as of a stream that was known to be as long. A result that is as long is
 * taken from a stream of unknown length, or goes to a new array in a file of any kind; gad_plan()
 * tells it with that length. What must be known before the end is refused with GAD_BAD_ARGUMENT.
 * Several sources of one job are equally long, or it fails with GAD_BAD_SHAPE.
 *
 * A job that has ended says so to whoever pushes or takes: these functions then return its status.
 * Where a job has both, one thread that only pushes will wait for ever for one that takes.
 */
#pragma once

#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gad_stream;

/** The length of a first axis that is known at its end only: of streams, and of what a plan says of
 * results that are as long. */
#define GAD_UNKNOWN_LENGTH (-1)

/** Zeroed: what is right for most. */
struct gad_stream_options {
    size_t buffer_bytes; /**< on the way, at most; 0: 4 MiB. From 512 KiB to 16 MiB */
    /** gad_stream_push(), gad_stream_take(), gad_stream_end() and gad_stream_fail() are called in
     * another thread than the one that has the client, where gad_job_wait() waits meanwhile. Else
     * they are called in the client's own, and handle what the daemon says as gad_dispatch(). */
    bool in_other_thread;
};

/** Makes a stream, for one job.
 * client: not NULL; whose job it is for.
 * layout: not NULL; copied. Its strides are not used. Its first axis may be GAD_UNKNOWN_LENGTH, of
 * rows that have elements. is_output: whether it is taken from, as an output's `to`; else it is a
 * source. options: NULL for the defaults. ret_stream: the caller's, given up by gad_stream_free().
 * GAD_BAD_SHAPE: sizes that no array can have. */
enum gad_status gad_stream_new(struct gad_client *client, const struct gad_layout *layout,
                               bool is_output, const struct gad_stream_options *options,
                               struct gad_stream **ret_stream, struct gad_error *error);

/** The array to be named in a job's options.
 * stream: not NULL. Returns its array, which lives as long; the job keeps what it needs. A stream
 * is one argument, or one output, of one job: others get GAD_BUSY. */
struct gad_array *gad_stream_array(struct gad_stream *stream);

/** Waits until a job has begun with a stream: before that nothing is moved, and a producer need not
 * begin either.
 * stream: not NULL.
 * timeout_ms: < 0 waits for ever.
 * GAD_TIMEOUT: the time is over, or a signal came. Otherwise the job's status, where it has ended.
 */
enum gad_status gad_stream_wait(struct gad_stream *stream, int timeout_ms, struct gad_error *error);

/** Gives the elements that come next. Waits while the buffer is full, or no job has begun.
 * stream: a source.
 * elements: n_elements of them, in C order, in the array's dtype and byte order; the caller's.
 * n_elements: any number: rows need not be whole.
 * timeout_ms: < 0 waits for ever.
 * ret_n_elements: how many were taken over, in any case; may be NULL.
 * GAD_TIMEOUT: the time is over, or a signal came, with some of them left to be pushed.
 * GAD_BAD_SHAPE: there are more than the array has; the job fails with it. Otherwise the job's
 * status, where it has ended; GAD_DISCONNECTED: gad_job_wait() says what has become of it. */
enum gad_status gad_stream_push(struct gad_stream *stream, const void *elements, size_t n_elements,
                                int timeout_ms, size_t *ret_n_elements, struct gad_error *error);

/** Says that all elements were pushed. No job ends well before.
 * stream: a source.
 * GAD_SHORT_READ: there are fewer than the array has, or, where its length was unknown, a part of a
 * row; the job fails with it. Otherwise the job's status, where it has ended. */
enum gad_status gad_stream_end(struct gad_stream *stream, struct gad_error *error);

/** Says that no more elements come, or are taken: the job fails with GAD_PROVIDER_FAILED. Nothing
 * happens where it has ended.
 * stream: not NULL.
 * why: for the job's message; not NULL. */
void gad_stream_fail(struct gad_stream *stream, const char *why);

/** Takes the elements that come next. Waits until there are some.
 * stream: an output.
 * ret_elements: room for n_elements, which are in C order, in the array's dtype and byte order.
 * n_elements: any number: rows need not be whole.
 * timeout_ms: < 0 waits for ever.
 * ret_n_elements: how many were written, in any case; not NULL. With GAD_OK they are n_elements, or
 * fewer, or none, where the array ends. That the whole is right is known when the job has ended
 * well.
 * GAD_TIMEOUT: the time is over, or a signal came. Otherwise as of gad_stream_push(). */
enum gad_status gad_stream_take(struct gad_stream *stream, void *ret_elements, size_t n_elements,
                                int timeout_ms, size_t *ret_n_elements, struct gad_error *error);

/** Makes a source of what comes through a pipe, as numpy.save() writes it. Waits for the header;
 * the rest is read by a thread of the library as the job needs it. The job ends well when the pipe
 * ends behind the last element, neither before (GAD_SHORT_READ) nor later (GAD_BAD_SHAPE). client:
 * not NULL; whose job it is for. fd: open for reading: a pipe, a socket, a terminal or a file. It
 * is duplicated and stays the caller's, who reads nothing from it any more. name: for errors, as
 * "standard input"; not NULL. ret_stream: the caller's, given up by gad_stream_free(); nobody
 * pushes to it. GAD_BAD_FORMAT: no npy, or in Fortran order. GAD_SHORT_READ: it ends in its header.
 * Those of gad_stream_new(), and of reading. */
enum gad_status gad_stream_read_npy(struct gad_client *client, int fd, const char *name,
                                    struct gad_stream **ret_stream, struct gad_error *error);

/** Makes a source of elements that come through a pipe as they are, in C order. Nothing but the
 * pipe's end says how many rows of an unknown number there are: a producer that dies behind a whole
 * row is taken for one that has ended. An npy, or a shape that says the number, tells both apart.
 * client: as of gad_stream_read_npy().
 * fd: open for reading. It is duplicated and stays the caller's, who reads nothing from it any
 * more.
 * form: "DTYPE:SHAPE", as behind the path of a raw file: "f4:1000x3"; "f4:?x3" for as many rows as
 * come.
 * name: for errors, as "standard input"; not NULL.
 * ret_stream: the caller's, given up by gad_stream_free(); nobody pushes to it. The job ends well
 * when the pipe ends behind the last element, or, where their number is unknown, behind a whole row
 * (else GAD_SHORT_READ). GAD_BAD_DTYPE, GAD_BAD_SHAPE: of the form. Those of gad_stream_new(). */
enum gad_status gad_stream_read_raw(struct gad_client *client, int fd, const char *form,
                                    const char *name, struct gad_stream **ret_stream,
                                    struct gad_error *error);

/** Makes an array of what comes through a pipe, for what reads it in another order than it comes
 * in, or several times. Waits until the pipe ends: all of it is put into a file without a name, in
 * the folder that TMPDIR names, else in /var/tmp or /tmp. What is a file already stays where it is.
 * client: not NULL; whose jobs may use the array.
 * fd: open for reading; it stays the caller's.
 * form: as of gad_stream_read_raw(); NULL for npy, which may be in Fortran order.
 * name: for errors, as "standard input"; not NULL.
 * ret_array: the caller's, given up by gad_array_release(), with which the file goes.
 * GAD_SHORT_READ, GAD_BAD_SHAPE: fewer elements come, or more. GAD_NO_SPACE: there is no room for
 * them. GAD_CANCELLED: a signal came. GAD_BAD_FORMAT, GAD_BAD_DTYPE: as of gad_stream_read_npy().
 */
enum gad_status gad_array_from_pipe(struct gad_client *client, int fd, const char *form,
                                    const char *name, struct gad_array **ret_array,
                                    struct gad_error *error);

/** Makes an output that a thread of the library writes to a pipe, as numpy.load() reads it. Nothing
 * is written before the job has its first results. The job fails with GAD_CANCELLED where the pipe
 * has no reader any more.
 * client: not NULL; whose job it is for.
 * fd: open for writing. It is duplicated and stays the caller's, who writes nothing meanwhile.
 * dtype, ndim, shape: of the result, as gad_plan() tells it.
 * ret_stream: the caller's, given up by gad_stream_free(); nobody takes from it.
 * GAD_BAD_SHAPE: also where its length is unknown, which an npy says first. Those of
 * gad_stream_new().
 */
enum gad_status gad_stream_write_npy(struct gad_client *client, int fd, enum gad_dtype dtype,
                                     int ndim, const int64_t *shape, struct gad_stream **ret_stream,
                                     struct gad_error *error);

/** Makes an output that a thread of the library writes to a pipe without a header: the elements as
 * they are, in C order and this machine's byte order. Otherwise as gad_stream_write_npy().
 * client: not NULL; whose job it is for.
 * fd: open for writing. It is duplicated and stays the caller's, who writes nothing meanwhile.
 * dtype, ndim, shape: of the result, as gad_plan() tells it; of unknown length, too.
 * ret_stream: the caller's, given up by gad_stream_free(); nobody takes from it. */
enum gad_status gad_stream_write_raw(struct gad_client *client, int fd, enum gad_dtype dtype,
                                     int ndim, const int64_t *shape, struct gad_stream **ret_stream,
                                     struct gad_error *error);

/** Waits, after its job has ended, until the library's thread is done with a stream: then all was
 * written.
 * stream: of gad_stream_read_npy(), gad_stream_write_raw() and their like.
 * What the stream has failed with, if it has; GAD_CANCELLED: the pipe has no reader. */
enum gad_status gad_stream_join(struct gad_stream *stream, struct gad_error *error);

/** Gives a stream up, in the client's thread. A job that has not had all its elements fails with
 * GAD_SHORT_READ, one whose results were not all taken with GAD_CANCELLED.
 * stream: NULL is allowed. */
void gad_stream_free(struct gad_stream *stream);

#ifdef __cplusplus
}
#endif
