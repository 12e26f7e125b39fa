/* Factors and solutions of matrices: methods of Session. */
#pragma once

#include "core/array.h"

PyObject *solving_factor(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *solving_plan(PyObject *self, PyObject *const *args, Py_ssize_t n);
