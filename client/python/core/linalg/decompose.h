/* Methods of Session that decompose matrices. */
#pragma once

#include "core/session.h"

PyObject *decompose_matrix(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *decompose_lstsq(PyObject *self, PyObject *const *args, Py_ssize_t n);
