/* The Python type Plan. With the GIL. */
#pragma once

#include "core/session.h"

PyTypeObject *plan_add_type(PyObject *module, struct module_state *state);
PyObject *plan_make(PyObject *self, PyObject *const *args, Py_ssize_t n); /* Session.plan() */
