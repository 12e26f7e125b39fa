/* Many steps of time: a method of Session. */
#pragma once

#include "core/array.h"

PyObject *repeating_repeat(PyObject *self, PyObject *const *args, Py_ssize_t n);
