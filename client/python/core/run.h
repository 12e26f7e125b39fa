/* Methods of Session that start jobs and wait for them. With the GIL. */
#pragma once

#include "core/session.h"

PyObject *run_submit(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *run_run(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *run_wait_any(PyObject *self, PyObject *const *args, Py_ssize_t n);
