/* The ways to arrays: methods of Session. */
#pragma once

#include "core/array.h"

PyObject *make_new(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *make_open(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *make_open_many(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *make_create(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *make_from_buffer(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *make_from_file(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *make_from_blocks(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *make_stream(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *make_view(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *make_reshape(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* taking.c */
PyObject *taking_take(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *taking_new_marks(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *taking_positions(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* Whether a method got as many arguments as it wants; else raises TypeError. */
bool make_has_count(const char *name, Py_ssize_t n, Py_ssize_t wanted);
