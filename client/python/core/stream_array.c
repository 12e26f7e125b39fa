/* Streams: a producer or consumer in Python, in any thread but one that waits for the job.
 *
 * The library lets them be moved in another thread than the client's, so no lock of ours is needed;
 * the GIL is given up while they wait or copy. They wait in slices: so a signal's exception is
 * seen, and the session's end, after which nobody tells a stream that its job has ended.
 *
 * A job that is about to be sent calls the stream's function `begin`, which starts a thread that
 * pushes. Why that failed is kept as an exception, which becomes the __cause__ of the job's error
 * (job.c).
 */
#include "core/job.h"
#include "core/request.h"
#include "core/wait.h"

#define SLICE_MS 200

static struct array *as_stream(PyObject *self)
{
    struct array *array = (struct array *)self;
    if (array->stream)
        return array;
    PyErr_SetString(PyExc_TypeError, "this array is no stream");
    return NULL;
}

/* The job's messages, which nobody else may read now: what has become of it, the stream then says.
 */
static bool look_at_job(struct job *job)
{
    enum wait_end end;
    return job_is_done(job) ||
           job_wait_for(job->session, &job->work, 1, false, wait_now_ns(), &end) == 0;
}

/* After a slice, or with an error. job: NULL, or its job, for which nobody waits. Returns whether
 * to go on; else there is an exception. */
static bool goes_on(struct array *array, struct job *job, enum gad_status status,
                    const struct gad_error *error)
{
    if (status != GAD_OK && status != GAD_TIMEOUT) {
        error_raise(array->session->state, error);
        return false;
    }
    if (base_is_main_thread() && PyErr_CheckSignals())
        return false;
    if (session_is_ours(array->session) && !atomic_load(&array->session->link.is_closed))
        return status != GAD_TIMEOUT || !job || look_at_job(job);
    error_raise_own(array->session->state, GAD_CANCELLED, NULL, NULL, NULL,
                    "the session was closed");
    return false;
}

PyObject *stream_begun(PyObject *self, PyObject *unused)
{
    struct array *array = as_stream(self);
    enum gad_status status = GAD_TIMEOUT;
    while (array && status == GAD_TIMEOUT) {
        struct gad_error error;
        Py_BEGIN_ALLOW_THREADS status = gad_stream_wait(array->stream, SLICE_MS, &error);
        Py_END_ALLOW_THREADS if (!goes_on(array, NULL, status, &error)) return NULL;
    }
    if (!array)
        return NULL;
    Py_RETURN_NONE;
}

/* All of the buffer; fewer elements only where an output ends. -1: an exception. */
static Py_ssize_t move(struct array *array, struct job *job, Py_buffer *view, bool is_push)
{
    size_t item_bytes = gad_dtype_size(gad_array_info(array->array)->dtype);
    size_t n_elements = (size_t)view->len / item_bytes, n_moved = 0;
    enum gad_status status = GAD_TIMEOUT;
    if ((size_t)view->len % item_bytes) {
        PyErr_SetString(PyExc_ValueError, "the buffer has no whole number of elements");
        return -1;
    }
    while (status == GAD_TIMEOUT) {
        struct gad_error error;
        char *place = (char *)view->buf + n_moved * item_bytes;
        size_t n = 0;
        Py_BEGIN_ALLOW_THREADS if (is_push) status =
            gad_stream_push(array->stream, place, n_elements - n_moved, SLICE_MS, &n, &error);
        else status =
            gad_stream_take(array->stream, place, n_elements - n_moved, SLICE_MS, &n, &error);
        Py_END_ALLOW_THREADS n_moved += n;
        if (!goes_on(array, job, status, &error))
            return -1;
    }
    return (Py_ssize_t)n_moved;
}

/* buffer, and perhaps the stream's job. */
static PyObject *move_buffer(PyObject *self, PyObject *const *args, Py_ssize_t n, bool is_push)
{
    struct array *array = as_stream(self);
    Py_buffer view;
    if (!array)
        return NULL;
    struct job *job = n == 2 ? (struct job *)args[1] : NULL;
    if ((n != 1 && n != 2) ||
        (job && !Py_IS_TYPE((PyObject *)job, array->session->state->job_type))) {
        PyErr_SetString(PyExc_TypeError, "a buffer is wanted, and perhaps a job");
        return NULL;
    }
    if (PyObject_GetBuffer(args[0], &view, PyBUF_C_CONTIGUOUS | (is_push ? 0 : PyBUF_WRITABLE)))
        return NULL;
    Py_ssize_t n_moved = move(array, job, &view, is_push);
    PyBuffer_Release(&view);
    return n_moved < 0 ? NULL : PyLong_FromSsize_t(n_moved);
}

PyObject *stream_push(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    return move_buffer(self, args, n, true);
}

PyObject *stream_take(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    return move_buffer(self, args, n, false);
}

PyObject *stream_end(PyObject *self, PyObject *unused)
{
    struct array *array = as_stream(self);
    struct gad_error error;
    enum gad_status status;
    if (!array)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = gad_stream_end(array->stream, &error);
    Py_END_ALLOW_THREADS if (status) return error_raise(array->session->state, &error);
    Py_RETURN_NONE;
}

PyObject *stream_fail(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct array *array = as_stream(self);
    const char *why;
    if (!array)
        return NULL;
    if (n != 2) {
        PyErr_Format(PyExc_TypeError, "fail() takes 2 arguments (%zd given)", n);
        return NULL;
    }
    why = PyUnicode_AsUTF8AndSize(args[0], NULL);
    if (!why)
        return NULL;
    if (args[1] != Py_None && !array->failure) {
        Py_INCREF(args[1]);
        array->failure = args[1];
    }
    Py_BEGIN_ALLOW_THREADS gad_stream_fail(array->stream, why);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

/* Of a job ------------------------------------------------------------------------------------- */

/* The i-th of the request's arguments, if it is a stream; else NULL. */
static struct array *stream_at(const struct session *session, const struct request *request,
                               Py_ssize_t i)
{
    struct array *array =
        (struct array *)PyTuple_GetItem(PyTuple_GetItem(request->arg_tuple, i), 1);
    bool is_array = Py_IS_TYPE((PyObject *)array, session->state->array_type);
    return is_array && array->stream ? array : NULL;
}

bool stream_begin_all(const struct session *session, const struct request *request)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(request->arg_tuple); i++) {
        struct array *array = stream_at(session, request, i);
        if (!array || !array->begin)
            continue;
        PyObject *begin = array->begin;
        array->begin = NULL; /* one job */
        PyObject *done = PyObject_CallFunctionObjArgs(begin, (PyObject *)array, NULL);
        Py_DECREF(begin);
        if (!done)
            return false;
        Py_DECREF(done);
    }
    return true;
}

void stream_abandon_all(const struct session *session, const struct request *request)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(request->arg_tuple); i++) {
        struct array *array = stream_at(session, request, i);
        if (array)
            gad_stream_fail(array->stream, "no job has begun");
    }
}
