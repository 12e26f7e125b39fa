/* The Python type Job: what is known of a job, and waiting for it.
 *
 * The library's job and what belongs to it is a struct work, which outlives the object when that
 * dies before the job has ended: then it is cancelled and somebody else frees it (link.c), and with
 * it the tuples that hold its arrays. Progress is written by whoever reads from the daemon, as
 * plain numbers.
 *
 * When a job has ended its structure is constant, so it is read without the lock. wait() lets
 * exceptions of signals' handlers through, and the job goes on.
 */
#include "core/job.h"
#include "core/array.h"
#include "core/functions/blocks.h"
#include "core/functions/from_function.h"
#include "core/request.h"
#include "core/typestr.h"

#include <math.h>
#include <stdlib.h>

struct job *job_new(struct session *session)
{
    struct work *work = calloc(1, sizeof(*work));
    if (!work)
        return (struct job *)PyErr_NoMemory();
    work->release.work = work;
    struct job *job = (struct job *)base_new_object(session->state->job_type);
    if (!job) {
        free(work);
        return NULL;
    }
    job->work = work;
    job->session = session;
    Py_INCREF((PyObject *)session);
    return job;
}

/* Waiting -------------------------------------------------------------------------------------- */

bool job_is_done(const struct job *job)
{
    return atomic_load_explicit(&job->work->is_done, memory_order_acquire);
}

int job_read_deadline(PyObject *timeout, int64_t *ret_ns)
{
    *ret_ns = WAIT_FOR_EVER;
    if (timeout == Py_None)
        return 0;
    double seconds = PyFloat_AsDouble(timeout);
    if (seconds == -1 && PyErr_Occurred())
        return -1;
    if (isnan(seconds)) {
        PyErr_SetString(PyExc_ValueError, "the time-out is not a number");
        return -1;
    }
    if (seconds < 1e9)
        *ret_ns = wait_now_ns() + (seconds > 0 ? (int64_t)(seconds * 1e9) : 0);
    return 0;
}

int job_wait_for(struct session *session, struct work *const *works, size_t n_works,
                 bool is_wakable, int64_t deadline_ns, enum wait_end *ret_end)
{
    do {
        bool sees_signals = base_is_main_thread();
        struct section section = session_enter(session, true);
        *ret_end = link_wait(&session->link, works, n_works, is_wakable, deadline_ns, sees_signals);
        session_leave(session, section);
        if (*ret_end == WAIT_INTERRUPTED && (PyErr_CheckSignals() || !session_check(session)))
            return -1; /* the latter: the handler has called fork() */
    } while (*ret_end == WAIT_INTERRUPTED);
    return 0;
}

/* That of an array, or of what it is a view of or made of. */
static PyObject *find_cause_of(const struct job *job, struct array *array)
{
    PyObject *cause = array->failure;
    array->failure = NULL;
    if (!cause && array->blocks)
        cause = blocks_take_error(array->blocks);
    if (!cause && array->mapped)
        cause = mapped_take_error(array->mapped);
    if (!cause && array->viewed && Py_IS_TYPE(array->viewed, job->session->state->array_type))
        return find_cause_of(job, (struct array *)array->viewed);
    for (Py_ssize_t i = 0; array->mapped && !cause && i < PyTuple_Size(array->viewed); i++)
        cause = find_cause_of(
            job, (struct array *)PyTuple_GetItem(PyTuple_GetItem(array->viewed, i), 0));
    return cause;
}

/* The exception that a function of from_blocks(), or who pushes a stream, raised in this job, or
 * NULL. */
static PyObject *find_cause(const struct job *job)
{
    PyObject *cause = NULL;
    for (size_t i = 0; i < 2; i++) {
        PyObject *tuple = job->work->keeps[i];
        for (Py_ssize_t j = 0; j < PyTuple_Size(tuple) && !cause; j++) {
            PyObject *entry = PyTuple_GetItem(tuple, j);
            PyObject *item = PyTuple_GetItem(entry, PyTuple_Size(entry) - 1);
            if (!Py_IS_TYPE(item, job->session->state->array_type))
                continue;
            cause = find_cause_of(job, (struct array *)item);
        }
    }
    return cause;
}

int job_judge(struct job *job)
{
    struct gad_error error;
    enum gad_status status = gad_job_wait(job->work->job, 0, &error);
    if (status == GAD_OK)
        return 0;
    PyObject *made = error_make(job->session->state, &error);
    if (!made)
        return -1;
    if (status == GAD_PROVIDER_FAILED && !job->cause)
        job->cause = find_cause(job);
    if (job->cause) {
        Py_INCREF(job->cause);
        PyException_SetCause(made, job->cause);
    }
    PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_DECREF(made);
    return -1;
}

static PyObject *job_wait(PyObject *self, PyObject *timeout)
{
    struct job *job = (struct job *)self;
    enum wait_end end = WAIT_DONE;
    int64_t deadline;
    if (job_read_deadline(timeout, &deadline))
        return NULL;
    if (!job_is_done(job) && (!session_check(job->session) ||
                              job_wait_for(job->session, &job->work, 1, false, deadline, &end)))
        return NULL;
    if (end == WAIT_TIMEOUT)
        Py_RETURN_FALSE;
    if (job_judge(job))
        return NULL;
    Py_RETURN_TRUE;
}

void job_cancel(struct job *job)
{
    struct section section = session_enter(job->session, true);
    if (!job_is_done(job))
        (void)!gad_job_cancel(job->work->job, NULL);
    session_leave(job->session, section);
}

/* Properties ----------------------------------------------------------------------------------- */

static PyObject *job_get_is_done(PyObject *self, void *unused)
{
    return PyBool_FromLong(job_is_done((struct job *)self));
}

static PyObject *job_get_session(PyObject *self, void *unused)
{
    PyObject *session = (PyObject *)((struct job *)self)->session;
    Py_INCREF((PyObject *)session);
    return session;
}

static PyObject *job_get_id(PyObject *self, void *unused)
{
    struct job *job = (struct job *)self;
    uint64_t id;
    if (job_is_done(job))
        return PyLong_FromUnsignedLongLong(gad_job_id(job->work->job));
    if (!session_check(job->session))
        return NULL;
    struct section section = session_enter(job->session, false);
    id = gad_job_id(job->work->job);
    session_leave(job->session, section);
    return PyLong_FromUnsignedLongLong(id);
}

static PyObject *job_ask_cancel(PyObject *self, PyObject *unused)
{
    struct job *job = (struct job *)self;
    if (!job_is_done(job)) {
        if (!session_check(job->session))
            return NULL;
        job_cancel(job);
    }
    Py_RETURN_NONE;
}

static const struct gad_job_stats *stats_of(const struct job *job)
{
    return job_is_done(job) ? gad_job_stats(job->work->job) : NULL;
}

static PyObject *job_get_progress(PyObject *self, void *unused)
{
    struct job *job = (struct job *)self;
    const struct gad_job_stats *stats = stats_of(job);
    uint64_t n[5];
    for (int i = 0; i < 5; i++)
        n[i] = atomic_load_explicit(&job->work->progress[i], memory_order_relaxed);
    if (stats) {
        n[0] = n[1] = stats->n_tiles;
        n[2] = stats->read_bytes;
        n[3] = stats->write_bytes;
        n[4] = n[2] + n[3];
    }
    return Py_BuildValue("(KKKKK)", n[0], n[1], n[2], n[3], n[4]);
}

static PyObject *job_get_stats(PyObject *self, void *unused)
{
    const struct gad_job_stats *s = stats_of((struct job *)self);
    if (!s)
        Py_RETURN_NONE;
    return Py_BuildValue(
        "{sKsssssKsKsKsdsdsdsdsdsdsdsKsKsKsssss(LLL)sKsKsKss}", "job", s->job, "engine", s->engine,
        "engine_why", s->engine_why, "n_tiles", s->n_tiles, "read_bytes", s->read_bytes,
        "write_bytes", s->write_bytes, "total_s", s->total_s, "source_s", s->source_s, "kernel_s",
        s->kernel_s, "sink_s", s->sink_s, "client_s", s->client_s, "to_device_s", s->to_device_s,
        "from_device_s", s->from_device_s, "n_divide_by_zero", s->n_divide_by_zero,
        "n_invalid_casts", s->n_invalid_casts, "around_cache_bytes", s->around_cache_bytes,
        "product_library", s->product_library, "product_precision", s->product_precision,
        "product_tile", (long long)s->product_tile[0], (long long)s->product_tile[1],
        (long long)s->product_tile[2], "n_product_tiles", s->n_product_tiles, "left_bytes",
        s->left_bytes, "right_bytes", s->right_bytes, "journal", s->journal);
}

static PyObject *job_result(PyObject *self, PyObject *index)
{
    struct job *job = (struct job *)self;
    struct gad_plan_output what;
    char typestr[TYPESTR_SIZE];
    long i = PyLong_AsLong(index);
    if (i == -1 && PyErr_Occurred())
        return NULL;
    if (i < 0 || i >= REQUEST_MAX_OUTPUTS || !job_is_done(job))
        Py_RETURN_NONE;
    const void *data = gad_job_result(job->work->job, (unsigned)i, &what);
    if (!data)
        Py_RETURN_NONE;
    int64_t n_bytes = (int64_t)gad_dtype_size(what.dtype);
    for (int axis = 0; axis < what.ndim; axis++)
        n_bytes *= what.shape[axis];
    typestr_write(what.dtype, false, typestr);
    return Py_BuildValue("(sNN)", typestr, base_as_tuple(what.ndim, what.shape),
                         PyBytes_FromStringAndSize(data, n_bytes));
}

/* The type ------------------------------------------------------------------------------------- */

static int job_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct job *job = (struct job *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)job->session);
    Py_VISIT(job->cause);
    for (int i = 0; i < 2 && job->work; i++)
        Py_VISIT((PyObject *)job->work->keeps[i]);
    return 0;
}

static int job_clear(PyObject *self)
{
    Py_CLEAR(((struct job *)self)->cause);
    return 0;
}

static void job_dealloc(PyObject *self)
{
    struct job *job = (struct job *)self;
    PyObject_GC_UnTrack(self);
    job_clear(self);
    if (job->work && job->work->job)
        session_release(job->session, &job->work->release);
    else
        free(job->work);
    Py_XDECREF((PyObject *)job->session);
    base_free_object(self);
}

static PyMethodDef methods[] = {
    {"wait", job_wait, METH_O,
     "wait(timeout, /)\n--\n\nFalse: the time is over. Raises the job's error. Exceptions of "
     "signals come through; the job goes on."},
    {"cancel", job_ask_cancel, METH_NOARGS, "cancel()\n--\n\nAsks for its end."},
    {"result", job_result, METH_O,
     "result(i, /)\n--\n\nOf output i, when it had no destination: typestr, shape, elements in C "
     "order."},
    {NULL},
};

static PyGetSetDef properties[] = {
    {"is_done", job_get_is_done, NULL, "Without asking; moves when somebody waits."},
    {"id", job_get_id, NULL, "The daemon's number, 0 while it is not known."},
    {"progress", job_get_progress, NULL,
     "Tiles done, tiles, bytes read, written, in all (0: not known yet)."},
    {"stats", job_get_stats, NULL,
     "The members of struct gad_job_stats; None before the end and of a job that failed."},
    {"session", job_get_session, NULL, "The session that it was started in."},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)"A job. One that dies before its end is cancelled."},
    {Py_tp_dealloc, job_dealloc},
    {Py_tp_traverse, job_traverse},
    {Py_tp_clear, job_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0},
};

static PyType_Spec spec = {
    .name = "gpuarrayd._core.Job",
    .basicsize = sizeof(struct job),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyTypeObject *job_add_type(PyObject *module, struct module_state *state)
{
    return state->job_type = base_add_type(module, &spec);
}
