/* Arrays that a Python function makes of blocks of others. See from_function.c. */
#pragma once

#include "core/session.h"

struct mapped;

PyObject *mapped_make(PyObject *self, PyObject *const *args, Py_ssize_t n);
/* The first exception of its function, which is then no longer kept; a reference, or NULL. */
PyObject *mapped_take_error(struct mapped *mapped);
