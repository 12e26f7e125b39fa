/* Methods of Session that have no header of their own, and functions of the module. With the GIL.
 */
#pragma once

#include "core/session.h"

/* ask.c: plain questions to the daemon. */
PyObject *ask_ping(PyObject *self, PyObject *unused);
PyObject *ask_info_json(PyObject *self, PyObject *unused);
PyObject *ask_stats_json(PyObject *self, PyObject *unused);
PyObject *ask_ops_json(PyObject *self, PyObject *unused);

/* contents.c: what is in a file; a function of the module. */
PyObject *contents_list(PyObject *module, PyObject *spec);
/* picture.c: a function of the module, with METH_VARARGS. */
PyObject *picture_draw(PyObject *module, PyObject *args);

/* run.c and plan.c: jobs are planned, started and waited for; the type Plan. */
PyObject *run_submit(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *run_run(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *run_wait_any(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *plan_make(PyObject *self, PyObject *const *args, Py_ssize_t n); /* Session.plan() */
PyTypeObject *plan_add_type(PyObject *module, struct module_state *state);
