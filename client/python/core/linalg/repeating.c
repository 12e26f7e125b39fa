/* Many steps of time, gad_repeat(): a method of Session. It may take hours, in which others get the
 * session between jobs and while one runs.
 */
#include "core/linalg/repeating.h"
#include "core/linalg/loop.h"
#include "core/make.h"
#include "core/request.h"

PyObject *repeating_repeat(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct request request;
    struct gad_repeat repeat = {0};
    struct gad_repeat_outcome outcome;
    struct gad_linalg_run run = {0};
    struct gad_error error;
    struct loop loop;
    unsigned long long n_steps;
    if (!make_has_count("repeat", n, 7) || !session_check(session) ||
        !PyArg_ParseTuple(args[5], "KI", &n_steps, &repeat.steps_at_once))
        return NULL;
    bool is_done = false;
    if (request_init(&request, session, args[0], args[1], args[2], args[3], args[4]) &&
        request_add_beyond(&request, args[6]) && loop_begin(&loop, session, Py_None, &run)) {
        repeat.n_steps = n_steps;
        repeat.n_args = request.options.n_args;
        repeat.args = request.options.args;
        repeat.n_outputs = request.options.n_outputs;
        repeat.outputs = request.options.outputs;
        repeat.engine = request.options.engine;
        repeat.priority = request.options.priority;
        repeat.label = request.options.label;
        repeat.queue_timeout_ms = request.options.queue_timeout_ms;
        repeat.deadline_ms = request.options.deadline_ms;
        repeat.beyond = request.options.beyond;
        repeat.is_cancelled = run.is_cancelled;
        repeat.data = run.data;
        enum gad_status status = gad_repeat(session->link.client, &repeat, &outcome, &error);
        is_done = loop_end(&loop, status, &error);
    }
    request_deinit(&request);
    if (!is_done)
        return NULL;
    return Py_BuildValue("KKK", (unsigned long long)outcome.n_before,
                         (unsigned long long)outcome.n_jobs,
                         (unsigned long long)outcome.steps_at_once);
}
