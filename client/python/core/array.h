/* The Python type Array. With the GIL. */
#pragma once

#include "core/session.h"

struct blocks;

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
    struct array *viewed;  /* of view(): a reference, else NULL */
};

PyTypeObject *array_add_type(PyObject *module, struct module_state *state);

/* An Array without a gad_array yet. NULL with an exception. */
struct array *array_new(struct session *session);
/* Inside a section, when the library has made array->array. */
void array_joined(struct array *array);
