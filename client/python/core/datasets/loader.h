/* The Python type Loader: batches of a dataset; and Part: a part of a batch, as a buffer. */
#pragma once

#include "core/session.h"

PyTypeObject *loader_add_type(PyObject *module, struct module_state *state);
PyTypeObject *part_add_type(PyObject *module, struct module_state *state);

/* A method of Session: loader(parts, transforms, args, options, /). */
PyObject *loader_make(PyObject *self, PyObject *const *args, Py_ssize_t n);

struct loader {
    PyObject ob_base;
    struct session *session;     /* a reference */
    PyObject *parts, *arguments; /* tuples that hold the arrays */
    struct gad_dataset *dataset;
    struct gad_loader *loader;
    pthread_mutex_t mutex; /* of the library's loader; never waited for with the GIL */
    unsigned generation;
};

/* A batch as Python has it: (number, rows as bytes of int64, parts). Takes the batch; NULL with an
 * exception. */
PyObject *part_tuple(struct loader *loader, struct gad_batch *batch_take);
