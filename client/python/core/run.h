/* Methods of Session that plan jobs, start them and wait for them, and the type Plan. With the GIL.
 */
#pragma once

#include "core/session.h"

PyObject *run_submit(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *run_run(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *run_wait_any(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *plan_make(PyObject *self, PyObject *const *args, Py_ssize_t n); /* Session.plan() */
PyTypeObject *plan_add_type(PyObject *module, struct module_state *state);
