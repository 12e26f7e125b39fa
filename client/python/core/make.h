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

/* Returns how many numbers there are, at most GAD_MAX_NDIM, or -1 with an exception. */
int make_read_numbers(struct module_state *state, PyObject *object, int64_t *ret_numbers);
/* Of an array that is made: in this machine's byte order. False with an exception. */
bool make_read_typestr(struct module_state *state, PyObject *object, struct gad_layout *layout);
/* Whether a method got as many arguments as it wants; else raises TypeError. */
bool make_has_count(const char *name, Py_ssize_t n, Py_ssize_t wanted);

/* For all ways to arrays. func fills an Array object that is empty, in a section of its session;
 * may_wait: without the GIL. Takes over the object, and returns it; NULL with an exception. */
typedef enum gad_status make_function(void *making, struct gad_client *client,
                                      struct gad_array **ret_array, struct gad_error *error);
PyObject *make_array(struct array *array_take, make_function *func, void *making, bool may_wait);
/* An Array of the session; NULL with an exception. */
struct array *make_read_array(struct session *session, PyObject *object, const char *what);
