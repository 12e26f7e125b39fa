/* Loops of many jobs in the library, seen from Python.
 *
 * The library's function runs in a section: without the GIL, with the session's lock. It calls back
 * between jobs and while it waits for one; then the section is left, so that other threads of the
 * session get their turns, and entered again. The session's client stays, whoever closes the
 * session meanwhile: the loop is then ended.
 */
#include "core/linalg/loop.h"

#include <string.h>

static void leave(struct loop *loop)
{
    session_leave(loop->session, loop->section);
}

/* Returns whether the loop may go on. */
static bool enter(struct loop *loop)
{
    struct gad_error error;
    loop->section = session_enter(loop->session, true);
    return !loop->has_failed && !session_is_closed(loop->session, &error);
}

static bool is_cancelled(const void *data)
{
    struct loop *loop = (struct loop *)data;
    leave(loop);
    if (!loop->has_failed && PyErr_CheckSignals())
        loop->has_failed = true;
    return !enter(loop);
}

static int iteration(void *data, const struct gad_iteration *now)
{
    struct loop *loop = data;
    bool is_enough = false;
    leave(loop);
    if (loop->callback && !loop->has_failed) {
        PyObject *said = PyObject_CallFunction(
            loop->callback, "IIddKKdd", now->iteration, now->n_iterations, now->fit, now->change,
            (unsigned long long)now->reads.n_reads, (unsigned long long)now->reads.read_bytes,
            now->seconds, now->seconds_left);
        int is_true = said ? PyObject_IsTrue(said) : -1;
        loop->has_failed = is_true < 0;
        is_enough = is_true > 0;
        Py_XDECREF(said);
    }
    return !enter(loop) || is_enough;
}

bool loop_begin(struct loop *loop, struct session *session, PyObject *callback,
                struct gad_linalg_run *run)
{
    struct gad_error error;
    *loop = (struct loop){.session = session, .callback = callback == Py_None ? NULL : callback};
    run->iteration = iteration;
    run->is_cancelled = is_cancelled;
    run->data = loop;
    loop->section = session_enter(session, true);
    if (!session_is_closed(session, &error)) {
        session->link.n_holders++;
        return true;
    }
    leave(loop);
    error_raise(session->state, &error);
    return false;
}

bool loop_end(struct loop *loop, enum gad_status status, const struct gad_error *error)
{
    struct link *link = &loop->session->link;
    link->n_holders--;
    link_talked(link);
    leave(loop);
    if (loop->has_failed)
        return false;
    if (status != GAD_OK)
        error_raise(loop->session->state, error);
    return status == GAD_OK;
}

PyObject *loop_dense(const struct gad_dense *dense)
{
    Py_ssize_t n = sizeof(double);
    PyObject *shape = PyTuple_New(dense->ndim);
    for (int i = 0; shape && i < dense->ndim; i++) {
        PyObject *size = PyLong_FromLongLong(dense->shape[i]);
        n *= (Py_ssize_t)dense->shape[i];
        if (!size || PyTuple_SetItem(shape, i, size) < 0)
            Py_CLEAR(shape);
    }
    PyObject *bytes = shape ? PyByteArray_FromStringAndSize((const char *)dense->data, n) : NULL;
    PyObject *pair = bytes ? PyTuple_Pack(2, shape, bytes) : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(bytes);
    return pair;
}

PyObject *loop_reads(const struct gad_reads *reads)
{
    return Py_BuildValue("{s:K,s:K,s:K,s:K}", "jobs", (unsigned long long)reads->n_jobs, "reads",
                         (unsigned long long)reads->n_reads, "read_bytes",
                         (unsigned long long)reads->read_bytes, "write_bytes",
                         (unsigned long long)reads->write_bytes);
}

PyObject *loop_plan(const struct gad_linalg_plan *plan)
{
    return Py_BuildValue("{s:s,s:I,s:N,s:N,s:N,s:N,s:K,s:d}", "method", plan->method, "iterations",
                         plan->n_iterations, "start", loop_reads(&plan->start), "iteration",
                         loop_reads(&plan->iteration), "finish", loop_reads(&plan->finish), "total",
                         loop_reads(&plan->total), "carry_bytes",
                         (unsigned long long)plan->carry_bytes, "seconds", plan->seconds);
}
