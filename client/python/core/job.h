/* The Python type Job, and how jobs are waited for. With the GIL. */
#pragma once

#include "core/session.h"
#include "core/wait.h"

struct job {
    PyObject ob_base;
    struct session *session; /* a reference */
    struct work *work;
    PyObject *cause; /* of its failure: what a function of from_blocks() raised; or NULL */
};

PyTypeObject *job_add_type(PyObject *module, struct module_state *state);

/* One that has not been started. NULL with an exception. */
struct job *job_new(struct session *session);
bool job_is_done(const struct job *job);
void job_cancel(struct job *job);
/* How a job has ended: 0, or -1 with its error raised. */
int job_judge(struct job *job);

/* Reads seconds or None. Returns -1 with an exception. */
int job_read_deadline(PyObject *timeout, int64_t *ret_ns);
/* Waits until one of the works is done, and looks for signals. Returns -1 with the exception of a
 * signal's handler. */
int job_wait_for(struct session *session, struct work *const *works, size_t n_works,
                 bool is_wakable, int64_t deadline_ns, enum wait_end *ret_end);
