/* Methods of Session that decompose tensors. */
#pragma once

#include "core/session.h"

PyObject *tensor_cp(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *tensor_tucker(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *tensor_mttkrp(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *tensor_relative_error(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *tensor_reconstruct(PyObject *self, PyObject *const *args, Py_ssize_t n);
