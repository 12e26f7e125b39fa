/* The Python type Session: one connection, used by all threads of the process that made it.
 *
 * Arrays and jobs hold a reference to their session, so the connection's memory lives as long as
 * any array in it. close() leaves the daemon at once all the same: the socket is shut, the memory
 * stays. A child of fork() has a copy of all this whose lock may be held by a thread that it does
 * not have, so there nothing is touched but by forget().
 *
 * Every call into the library is a section: session_enter() gets the lock without ever waiting for
 * it while holding the GIL, session_leave() gives it back before it takes the GIL. What was found
 * out in between is raised afterwards. What the destructors of arrays and jobs give up goes through
 * session_release(), which never waits. In a child of fork() no section is ever entered.
 */
#include "core/session.h"
#include "core/methods.h"
#include "core/functions/blocks.h"
#include "core/datasets/loader.h"
#include "core/linalg/repeating.h"
#include "core/linalg/solving.h"
#include "core/linalg/decompose.h"
#include "core/linalg/tensor.h"
#include "core/make.h"
#include "core/functions/from_function.h"
#include "core/wait.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define END_PATIENCE_NS INT64_C(5000000000)

_Static_assert(offsetof(struct session, ob_base) == 0, "objects begin with their head");

/* Sections ------------------------------------------------------------------------------------- */

bool session_is_ours(const struct session *session)
{
    return session->generation == base_generation() && !session->is_forgotten;
}

bool session_check(struct session *session)
{
    if (session_is_ours(session))
        return true;
    if (session->generation == base_generation())
        error_raise_own(session->state, GAD_NO_DAEMON, NULL, NULL, NULL, "the interpreter ends");
    else
        error_raise_own(session->state, GAD_NO_DAEMON, NULL, NULL, NULL,
                        "this session belongs to process %ld, the parent of this one: connect anew",
                        session->pid);
    return false;
}

struct section session_enter(struct session *session, bool may_wait)
{
    struct section section = {NULL};
    if (!may_wait && link_try_lock(&session->link))
        return section;
    section.saved = PyEval_SaveThread();
    link_lock(&session->link);
    return section;
}

void session_leave(struct session *session, struct section section)
{
    link_unlock(&session->link);
    if (section.saved)
        PyEval_RestoreThread(section.saved);
    session_collect(session);
}

bool session_is_closed(struct session *session, struct gad_error *ret_error)
{
    if (!session->link.is_closed)
        return false;
    error_fill(ret_error, GAD_NO_DAEMON, NULL, "this session was closed: connect anew");
    return true;
}

static void drop_keeps(struct work *work)
{
    for (size_t i = 0; i < sizeof(work->keeps) / sizeof(work->keeps[0]); i++) {
        Py_XDECREF((PyObject *)work->keeps[i]);
        work->keeps[i] = NULL;
    }
}

void session_release(struct session *session, struct release *node)
{
    if (!session_is_ours(session)) {
        if (node->work && session->generation != base_generation())
            drop_keeps(node->work); /* else threads of the library may still use its arrays */
        return;
    }
    link_release(&session->link, node);
    session_collect(session);
}

void session_collect(struct session *session)
{
    struct release *next;
    for (struct release *node = link_take_releases(&session->link.garbage); node; node = next) {
        next = node->next;
        drop_keeps(node->work);
        free(node->work);
    }
}

/* Beginning ------------------------------------------------------------------------------------ */

static void join_list(struct session *session)
{
    struct module_state *state = session->state;
    session->next = state->sessions;
    if (state->sessions)
        state->sessions->previous = session;
    state->sessions = session;
}

static void leave_list(struct session *session)
{
    if (session->previous)
        session->previous->next = session->next;
    else if (session->state->sessions == session)
        session->state->sessions = session->next;
    if (session->next)
        session->next->previous = session->previous;
    session->previous = session->next = NULL;
}

/* Returns -1 with an exception. */
static int parse_timeout(struct module_state *state, double seconds, int *ret_ms)
{
    if (!(seconds > 0)) {
        error_raise_own(state, GAD_BAD_ARGUMENT, "timeout", "seconds, more than 0", NULL,
                        "the time-out must be more than 0 seconds");
        return -1;
    }
    double ms = ceil(seconds * 1000);
    *ret_ms = ms < INT_MAX ? (int)ms : INT_MAX;
    return 0;
}

static int connect_session(struct session *session, const struct gad_connect_options *options)
{
    struct gad_client *client = NULL;
    struct gad_error error;
    enum gad_status status;
    int r = 0;
    Py_BEGIN_ALLOW_THREADS status = gad_connect(options, &client, &error);
    if (status == GAD_OK && (r = link_init(&session->link, client)))
        gad_close(client);
    Py_END_ALLOW_THREADS if (status)
    {
        error_raise(session->state, &error);
        return -1;
    }
    if (r) {
        error_raise_own(session->state, GAD_IO_ERROR, NULL, NULL, NULL,
                        "a descriptor for waking threads: %s", strerror(r));
        return -1;
    }
    session->has_link = true;
    join_list(session);
    return 0;
}

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"socket", "client_name", "start",
                                        "daemon", "timeout",     NULL};
    struct gad_connect_options options = {0};
    PyObject *socket = NULL, *daemon = NULL;
    int start;
    double timeout;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OzpOd:Session", (char **)names, &socket,
                                     &options.client_name, &start, &daemon, &timeout))
        return NULL;
    PyObject *paths[2] = {NULL};
    struct session *session = NULL;
    if ((socket == Py_None || PyUnicode_FSConverter(socket, &paths[0])) &&
        (daemon == Py_None || PyUnicode_FSConverter(daemon, &paths[1])))
        session = (struct session *)base_new_object(type);
    if (session) {
        options.no_private_daemon = !start;
        options.socket = paths[0] ? PyBytes_AsString(paths[0]) : NULL;
        options.daemon_path = paths[1] ? PyBytes_AsString(paths[1]) : NULL;
        session->state = PyType_GetModuleState(type);
        session->generation = base_generation();
        session->pid = (long)getpid();
        if (parse_timeout(session->state, timeout, &options.timeout_ms) ||
            connect_session(session, &options))
            Py_CLEAR(session);
    }
    Py_XDECREF(paths[0]);
    Py_XDECREF(paths[1]);
    return (PyObject *)session;
}

/* The end -------------------------------------------------------------------------------------- */

static void session_dealloc(PyObject *self)
{
    struct session *session = (struct session *)self;
    leave_list(session);
    if (session->has_link && session_is_ours(session)) {
        Py_BEGIN_ALLOW_THREADS link_deinit(&session->link);
        Py_END_ALLOW_THREADS session_collect(session);
    }
    base_free_object(self);
}

static void close_session(struct session *session)
{
    struct section section = session_enter(session, true);
    link_close(&session->link);
    session_leave(session, section);
}

static PyObject *session_close(PyObject *self, PyObject *unused)
{
    struct session *session = (struct session *)self;
    if (session->is_forgotten && session->generation == base_generation())
        Py_RETURN_NONE;
    if (!session_check(session))
        return NULL;
    close_session(session);
    Py_RETURN_NONE;
}

static PyObject *session_forget(PyObject *self, PyObject *unused)
{
    struct session *session = (struct session *)self;
    if (session->generation != base_generation() && !session->is_forgotten) {
        session->is_forgotten = true;
        gad_forget(session->link.client);
        close(session->link.wake_fd);
    }
    Py_RETURN_NONE;
}

static struct session *find_open(struct module_state *state)
{
    struct session *session = state->sessions;
    while (session && (!session_is_ours(session) || session->link.is_closed))
        session = session->next;
    return session;
}

/* Closing waits for functions of from_blocks() that run: returns whether they have ended in time.
 */
static bool wait_for_calls(const struct module_state *state)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int64_t until = wait_now_ns() + END_PATIENCE_NS;
    while (blocks_n_calls(state) > 0 && wait_now_ns() < until) {
        Py_BEGIN_ALLOW_THREADS nanosleep(&pause, NULL);
        Py_END_ALLOW_THREADS
    }
    return blocks_n_calls(state) == 0;
}

/* Returns false if somebody keeps the connection: the daemon stands still in the middle of a call.
 */
static bool close_soon(struct session *session)
{
    bool is_locked;
    Py_BEGIN_ALLOW_THREADS is_locked =
        link_lock_until(&session->link, wait_now_ns() + END_PATIENCE_NS);
    if (is_locked) {
        link_close(&session->link);
        link_unlock(&session->link);
    }
    Py_END_ALLOW_THREADS session_collect(session);
    return is_locked;
}

/* What runs or waits may never end. Then the sessions are left as they are, for the end of the
 * process to close. */
void session_close_all(struct module_state *state)
{
    struct session *session = find_open(state);
    if (!session)
        return;
    state->is_ending = true;
    bool is_quiet = wait_for_calls(state);
    while ((session = find_open(state))) {
        Py_INCREF((PyObject *)session);
        is_quiet = is_quiet && close_soon(session);
        session->is_forgotten = !session->link.is_closed;
        Py_DECREF((PyObject *)session);
    }
    state->is_ending = !is_quiet;
}

/* Questions ------------------------------------------------------------------------------------ */

static PyObject *session_get_is_open(PyObject *self, void *unused)
{
    struct session *session = (struct session *)self;
    return PyBool_FromLong(session_is_ours(session) && !session->link.is_closed);
}

static PyObject *session_get_pid(PyObject *self, void *unused)
{
    return PyLong_FromLong(((struct session *)self)->pid);
}

static PyObject *session_wake(PyObject *self, PyObject *unused)
{
    struct session *session = (struct session *)self;
    if (!session_check(session))
        return NULL;
    link_wake_soon(&session->link);
    session_collect(session);
    Py_RETURN_NONE;
}

/* The type ------------------------------------------------------------------------------------- */

#define FAST(func) (PyCFunction)(void (*)(void))(func), METH_FASTCALL

static PyMethodDef methods[] = {
    {"close", session_close, METH_NOARGS,
     "close()\n--\n\nCancels what still runs and leaves the daemon, which sees the connection end "
     "at once.\nMemory of arrays stays until their last view has gone. Using the session "
     "afterwards raises no-daemon."},
    {"forget", session_forget, METH_NOARGS,
     "forget()\n--\n\nFor a child after fork(): gives up the parent's connection without a word; "
     "arrays keep\ntheir memory, which is the parent's. In the process that made the session "
     "nothing happens."},
    {"ping", ask_ping, METH_NOARGS, "ping()\n--\n\nOne round trip to the daemon."},
    {"info_json", ask_info_json, METH_NOARGS, "info_json()\n--\n\nWhat the daemon says of itself."},
    {"stats_json", ask_stats_json, METH_NOARGS,
     "stats_json()\n--\n\nWhat the daemon has done and does."},
    {"ops_json", ask_ops_json, METH_NOARGS,
     "ops_json()\n--\n\nWhat can be written in an expression."},
    {"new", FAST(make_new),
     "new(typestr, shape, zeroed, /)\n--\n\nAn array in shared memory, in C order."},
    {"open", FAST(make_open),
     "open(spec, in_place, /)\n--\n\nA file, dataset or a selection of one."},
    {"open_many", FAST(make_open_many),
     "open_many(specs, axis, is_new_axis, /)\n--\n\nSeveral as one array, for reading."},
    {"create", FAST(make_create),
     "create(spec, typestr, shape, fortran_order, replace, /)\n--\n\nAn output that appears with "
     "commit()."},
    {"from_buffer", FAST(make_from_buffer),
     "from_buffer(buffer, writable, /)\n--\n\nAny strides. Holds the buffer."},
    {"from_file", FAST(make_from_file),
     "from_file(fd, offset, typestr, shape, strides, writable, /)\n--\n\nAn array in an open "
     "file. The descriptor is duplicated."},
    {"from_blocks", FAST(make_from_blocks),
     "from_blocks(typestr, shape, read, write, /)\n--\n\nAn array that Python functions move "
     "block by block."},
    {"from_function", FAST(mapped_make),
     "from_function(typestr, shape, block, inputs, mode, threads, function, in_order, /)\n--\n\nAn "
     "array "
     "that "
     "a Python function makes of blocks of others."},
    {"stream", FAST(make_stream),
     "stream(typestr, shape, is_output, begin, /)\n--\n\nAn array that is pushed or taken in "
     "order."},
    {"reshape", FAST(make_reshape),
     "reshape(array, shape, /)\n--\n\nThe array's elements in C order by other sizes; bad-shape "
     "where "
     "they do not\nlie so."},
    {"view", FAST(make_view),
     "view(array, start, axes, /)\n--\n\nThe array's elements in another order: start along each "
     "of its axes, and for each\naxis of the view (axis of the array or -1, count, step)."},
    {"repeat", FAST(repeating_repeat),
     "repeat(outputs, args, engine, priority, label, (n_steps, steps_at_once), beyond, "
     "/)\n--\n\nMany steps of time, from file to file."},
    {"factor", FAST(solving_factor),
     "factor(kind, a, b, to, options, callback, /)\n--\n\nFactors a matrix by panels, and solves "
     "with it."},
    {"factor_plan", FAST(solving_plan),
     "factor_plan(kind, a, b, to, options, /)\n--\n\nWhat factor() would read and write."},
    {"take", FAST(taking_take),
     "take(array, indices, axis, n_axes, mode, /)\n--\n\nThe array's elements by their indices "
     "along so many axes as one. mode: 0 raise, 1 wrap,\n2 clip."},
    {"new_marks", FAST(taking_new_marks),
     "new_marks(shape, /)\n--\n\nAn output of bool that remembers where it is true."},
    {"positions", FAST(taking_positions),
     "positions(marks, /)\n--\n\nWhere that is, as numpy.flatnonzero()."},
    {"loader", FAST(loader_make),
     "loader(parts, transforms, args, options, /)\n--\n\nBatches of arrays' rows."},
    {"submit", FAST(run_submit),
     "submit(outputs, args, engine, priority, label, progress, journal=False, tf32=False, "
     "beyond=None, /)\n--\n\nStarts a job."},
    {"run", FAST(run_run),
     "run(outputs, args, engine, priority, label, journal=False, tf32=False, beyond=None, "
     "/)\n--\n\nRuns a job; it is done when this returns."},
    {"plan", FAST(plan_make),
     "plan(outputs, args, engine, beyond=None, /)\n--\n\nWhat a job would do. Nothing is run."},
    {"decompose", FAST(decompose_matrix),
     "decompose(outputs, args, engine, priority, label, kind, options, callback, explains, "
     "/)\n--\n\n"
     "gad_svd(), gad_pca(), gad_eigh(), gad_qr_r(), gad_cov() of the first output's expression."},
    {"lstsq", FAST(decompose_lstsq),
     "lstsq(outputs, args, engine, priority, label, options, explains, /)\n--\n\n"
     "gad_lstsq() of the first two outputs' expressions."},
    {"cp", FAST(tensor_cp),
     "cp(outputs, args, engine, priority, label, options, callback, explains, /)\n--\n\n"
     "gad_cp() of the first output's expression."},
    {"tucker", FAST(tensor_tucker),
     "tucker(outputs, args, engine, priority, label, options, callback, explains, /)\n--\n\n"
     "gad_tucker()."},
    {"mttkrp", FAST(tensor_mttkrp),
     "mttkrp(outputs, args, engine, priority, label, factors, mode, /)\n--\n\ngad_mttkrp()."},
    {"relative_error", FAST(tensor_relative_error),
     "relative_error(outputs, args, engine, priority, label, factors, /)\n--\n\n"
     "gad_relative_error()."},
    {"reconstruct", FAST(tensor_reconstruct),
     "reconstruct(outputs, args, engine, priority, label, factors, is_float32, /)\n--\n\n"
     "gad_reconstruct() into the first output's destination."},
    {"wait_any", FAST(run_wait_any),
     "wait_any(jobs, timeout, /)\n--\n\nThose that have ended; waits until there is one, the "
     "time is over or wake() is called."},
    {"wake", session_wake, METH_NOARGS,
     "wake()\n--\n\nMakes a wait_any() in another thread return; if there is none, the next one."},
    {NULL},
};

static PyGetSetDef properties[] = {
    {"is_open", session_get_is_open, NULL, "Whether it can be used, by this process."},
    {"pid", session_get_pid, NULL, "The process that made it."},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     (char *)"Session(socket, client_name, start, daemon, timeout)\n--\n\nOne connection to a "
             "daemon. It connects again by itself when it was lost."},
    {Py_tp_new, session_new},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0},
};

static PyType_Spec spec = {
    .name = "gpuarrayd._core.Session",
    .basicsize = sizeof(struct session),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

PyTypeObject *session_add_type(PyObject *module, struct module_state *state)
{
    return state->session_type = base_add_type(module, &spec);
}
