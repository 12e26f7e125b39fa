/* Factors and solutions of matrices: methods of Session.
 *
 * A call may take hours: it is made on a session of its own, which nobody else waits for.
 */
#include "core/linalg/solving.h"
#include "core/linalg/loop.h"
#include "core/make.h"
#include "core/request.h"

#include <string.h>

struct solving {
    struct session *session;
    int kind;
    struct gad_array *a, *b;
    struct gad_solve_options options;
};

/* ---- arguments ---- */

/* An Array of the session, or None. */
static bool read_array(struct solving *s, PyObject *object, struct gad_array **ret)
{
    bool is_array = PyObject_TypeCheck(object, s->session->state->array_type);
    if (is_array && ((struct array *)object)->session == s->session) {
        *ret = ((struct array *)object)->array;
        return true;
    }
    if (object == Py_None)
        return true;
    PyErr_SetString(PyExc_TypeError, "matrices are Arrays of the same session");
    return false;
}

/* kind, a, b, to, options. */
static bool read_call(struct solving *s, PyObject *const *args)
{
    struct gad_solve_options *options = &s->options;
    unsigned long long memory;
    int is_upper, is_positive;
    s->kind = (int)PyLong_AsLong(args[0]);
    if (PyErr_Occurred() || !read_array(s, args[1], &s->a) || !read_array(s, args[2], &s->b))
        return false;
    options->size = sizeof(*options);
    if (PyUnicode_Check(args[3]))
        options->to_path = PyUnicode_AsUTF8AndSize(args[3], NULL);
    else if (!read_array(s, args[3], &options->to))
        return false;
    if (PyErr_Occurred() ||
        !PyArg_ParseTuple(args[4], "Kzzppziz", &memory, &options->scratch, &options->checkpoint,
                          &is_upper, &is_positive, &options->run.engine, &options->run.priority,
                          &options->run.label))
        return false;
    request_get_times(&options->run.queue_timeout_ms, &options->run.deadline_ms);
    options->memory_bytes = memory;
    options->is_upper = is_upper;
    options->is_positive = is_positive;
    return true;
}

/* ---- calls ---- */

static enum gad_status call(struct solving *s, struct gad_solved *solved, struct gad_error *error)
{
    struct gad_client *client = s->session->link.client;
    switch ((enum gad_solve_kind)s->kind) {
    case GAD_CHOLESKY: return gad_cholesky(client, s->a, &s->options, solved, error);
    case GAD_SOLVE: return gad_solve(client, s->a, s->b, &s->options, solved, error);
    case GAD_INV: return gad_inv(client, s->a, &s->options, solved, error);
    case GAD_SLOGDET: break;
    }
    return gad_slogdet(client, s->a, &s->options, solved, error);
}

PyObject *solving_factor(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct solving s = {.session = (struct session *)self};
    struct gad_solved solved = {0};
    struct gad_error error;
    struct loop loop;
    if (!make_has_count("factor", n, 6) || !session_check(s.session) || !read_call(&s, args))
        return NULL;
    if (!loop_begin(&loop, s.session, args[5], &s.options.run) ||
        !loop_end(&loop, call(&s, &solved, &error), &error))
        return NULL;
    return Py_BuildValue("ddLLKKKd", solved.sign, solved.log_abs, (long long)solved.width,
                         (long long)solved.n_continued, (unsigned long long)solved.reads.n_jobs,
                         (unsigned long long)solved.reads.read_bytes,
                         (unsigned long long)solved.reads.write_bytes, solved.seconds);
}

PyObject *solving_plan(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct solving s = {.session = (struct session *)self};
    struct gad_linalg_plan plan;
    struct gad_error error;
    if (!make_has_count("factor_plan", n, 5) || !session_check(s.session) || !read_call(&s, args))
        return NULL;
    struct section section = session_enter(s.session, true);
    bool is_refused = session_is_closed(s.session, &error) ||
                      gad_solve_plan(s.session->link.client, (enum gad_solve_kind)s.kind, s.a, s.b,
                                     &s.options, &plan, &error) != GAD_OK;
    link_talked(&s.session->link);
    session_leave(s.session, section);
    if (is_refused)
        return error_raise(s.session->state, &error);
    return Py_BuildValue(
        "sIKKKKd", plan.method, plan.n_iterations, (unsigned long long)plan.total.n_jobs,
        (unsigned long long)plan.total.read_bytes, (unsigned long long)plan.total.write_bytes,
        (unsigned long long)plan.carry_bytes, plan.seconds);
}
