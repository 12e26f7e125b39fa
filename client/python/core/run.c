/* Methods of Session that start jobs and wait for them: submit(), run(), wait_any().
 *
 * run() submits and waits in one section, so a single thread takes the lock once and gives up the
 * GIL once. When a signal's handler raises an exception run() cancels the job first and waits for
 * its end, so that nothing is written to its outputs afterwards, unless another exception comes or
 * the daemon does not answer for PATIENCE_NS.
 */
#include "core/methods.h"
#include "core/job.h"
#include "core/make.h"
#include "core/request.h"

#include <stdlib.h>

#define PATIENCE_NS INT64_C(10000000000)

/* Starting ------------------------------------------------------------------------------------- */

/* Called by whoever reads from the daemon, without the GIL. */
static void note_progress(void *data, const struct gad_progress *progress)
{
    struct work *work = data;
    const uint64_t numbers[] = {progress->tiles_done, progress->n_tiles, progress->read_bytes,
                                progress->write_bytes, progress->total_bytes};
    for (int i = 0; i < 5; i++)
        atomic_store_explicit(&work->progress[i], numbers[i], memory_order_relaxed);
}

/* Inside a section. Returns false with an error. */
static bool start(struct job *job, const struct gad_job_options *options, struct gad_error *error)
{
    struct link *link = &job->session->link;
    if (session_is_closed(job->session, error))
        return false;
    enum gad_status status = gad_submit(link->client, options, &job->work->job, error);
    link_talked(link);
    if (status == GAD_OK)
        link_add(link, job->work);
    return status == GAD_OK;
}

/* Starts what the request says; for run() also waits in the same section, and says how that ended.
 */
static struct job *start_request(struct session *session, struct request *request,
                                 bool has_progress, enum wait_end *ret_end)
{
    struct gad_error error;
    struct job *job = job_new(session);
    if (!job)
        return NULL;
    if (has_progress) {
        request->options.progress = note_progress;
        request->options.progress_data = job->work;
    }
    request->options.may_copy = ret_end != NULL; /* goes on only while somebody waits */
    bool sees_signals = base_is_main_thread();
    if (!stream_begin_all(session, request)) {
        stream_abandon_all(session, request);
        Py_DECREF((PyObject *)job);
        return NULL;
    }
    struct section section = session_enter(session, true);
    bool is_started = start(job, &request->options, &error);
    if (is_started && ret_end)
        *ret_end = link_wait(&session->link, &job->work, 1, false, WAIT_FOR_EVER, sees_signals);
    session_leave(session, section);
    if (is_started) {
        request_move_tuples(request, job->work->keeps);
        return job;
    }
    stream_abandon_all(session, request);
    error_raise(session->state, &error);
    Py_DECREF((PyObject *)job);
    return NULL;
}

/* outputs, args, engine, priority, label as all that run anything have them. rest: journal,
 * tf32 and what lies beyond the ends, as many as were given. */
static struct job *start_call(PyObject *self, PyObject *const *args, PyObject *const *rest,
                              Py_ssize_t n_rest, bool has_progress, enum wait_end *ret_end)
{
    struct session *session = (struct session *)self;
    struct request request;
    struct job *job = NULL;
    if (!session_check(session))
        return NULL;
    if (request_init(&request, session, args[0], args[1], args[2], args[3], args[4]) &&
        (n_rest < 1 || request_add_journal(&request, rest[0])) &&
        (n_rest < 2 || request_add_tf32(&request, rest[1])) &&
        (n_rest < 3 || request_add_beyond(&request, rest[2])))
        job = start_request(session, &request, has_progress, ret_end);
    request_deinit(&request);
    return job;
}

PyObject *run_submit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int has_progress;
    if ((!(n > 6 && n <= 9) && !make_has_count("submit", n, 6)) ||
        (has_progress = PyObject_IsTrue(args[5])) < 0)
        return NULL;
    return (PyObject *)start_call(self, args, args + 6, n - 6, has_progress, NULL);
}

/* An exception is set: the job ends first, unless another one comes. */
static void cancel_and_wait(struct job *job)
{
    PyObject *type, *value, *traceback;
    enum wait_end end;
    if (!session_is_ours(job->session)) /* the handler has called fork() */
        return;
    PyErr_Fetch(&type, &value, &traceback);
    job_cancel(job);
    if (job_wait_for(job->session, &job->work, 1, false, wait_now_ns() + PATIENCE_NS, &end))
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

PyObject *run_run(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    enum wait_end end = WAIT_DONE;
    if (!(n > 5 && n <= 8) && !make_has_count("run", n, 5))
        return NULL;
    struct job *job = start_call(self, args, args + 5, n - 5, false, &end);
    if (!job)
        return NULL;
    int r = 0;
    if (end == WAIT_INTERRUPTED)
        r = PyErr_CheckSignals() || !session_check(job->session) ||
            job_wait_for(job->session, &job->work, 1, false, WAIT_FOR_EVER, &end);
    if (r)
        cancel_and_wait(job);
    else
        r = job_judge(job);
    if (r)
        Py_CLEAR(job);
    return (PyObject *)job;
}

/* Waiting for several -------------------------------------------------------------------------- */

/* Returns the works of a tuple of jobs, to be freed; NULL with an exception. */
static struct work **read_jobs(struct session *session, PyObject *tuple)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    struct work **works = calloc((size_t)n + 1, sizeof(struct work *));
    if (!works)
        return (struct work **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        struct job *job = (struct job *)PyTuple_GetItem(tuple, i);
        bool is_job = Py_IS_TYPE((PyObject *)job, session->state->job_type);
        if (!is_job || job->session != session) {
            PyErr_SetString(PyExc_TypeError,
                            is_job ? "a job of another session" : "a list of jobs is wanted");
            free(works);
            return NULL;
        }
        works[i] = job->work;
    }
    return works;
}

static PyObject *list_done(PyObject *tuple)
{
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < PyTuple_Size(tuple); i++) {
        PyObject *job = PyTuple_GetItem(tuple, i);
        if (job_is_done((struct job *)job) && PyList_Append(list, job))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *run_wait_any(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    int64_t deadline;
    if (!make_has_count("wait_any", n, 2) || !session_check(session) ||
        job_read_deadline(args[1], &deadline))
        return NULL;
    PyObject *done = NULL, *tuple = PySequence_Tuple(args[0]);
    struct work **works = tuple ? read_jobs(session, tuple) : NULL;
    enum wait_end end;
    if (works &&
        job_wait_for(session, works, (size_t)PyTuple_Size(tuple), true, deadline, &end) == 0)
        done = list_done(tuple);
    free(works);
    Py_XDECREF(tuple);
    return done;
}
