/* The Python type Array. With the GIL. */
#pragma once

#include "core/session.h"

struct blocks;
struct mapped;
struct request;

struct array {
    PyObject ob_base;
    struct session *session; /* a reference */
    struct gad_array *array; /* given up through `release` */
    struct release *release;
    bool has_memory;  /* that is exported */
    bool is_writable; /* the memory */
    bool has_buffer;
    Py_buffer buffer;      /* of from_buffer() */
    struct blocks *blocks; /* of from_blocks(), else NULL */
    struct mapped *mapped; /* of from_function(), else NULL; the gad_array's */
    PyObject *viewed;      /* of view(), take() and the like: what it is made of; else NULL */
    /* Of stream(), else NULL: the library's, which lives as long as `array`; what is called with
     * this object when its job is about to be sent; the exception that made it fail. */
    struct gad_stream *stream;
    PyObject *begin, *failure;
};

PyTypeObject *array_add_type(PyObject *module, struct module_state *state);

/* An Array without a gad_array yet. NULL with an exception. */
struct array *array_new(struct session *session);
/* Inside a section, when the library has made array->array. */
void array_joined(struct array *array);

/* stream_array.c: methods of those of stream(). */
PyObject *stream_begun(PyObject *self, PyObject *unused);
PyObject *stream_push(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *stream_take(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *stream_end(PyObject *self, PyObject *unused);
PyObject *stream_fail(PyObject *self, PyObject *const *args, Py_ssize_t n);
/* Before a job is sent: its streams that have a function for it have it called. Returns false with
 * an exception. */
bool stream_begin_all(const struct session *session, const struct request *request);
/* It was not sent after all. */
void stream_abandon_all(const struct session *session, const struct request *request);
