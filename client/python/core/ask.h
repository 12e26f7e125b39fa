/* Plain questions. With the GIL. */
#pragma once

#include "core/session.h"

/* To the daemon: methods of Session. */
PyObject *ask_ping(PyObject *self, PyObject *unused);
PyObject *ask_info_json(PyObject *self, PyObject *unused);
PyObject *ask_stats_json(PyObject *self, PyObject *unused);
PyObject *ask_ops_json(PyObject *self, PyObject *unused);

/* To a file: contents.c, a function of the module. */
PyObject *contents_list(PyObject *module, PyObject *spec);
/* picture.c: a function of the module, with METH_VARARGS. */
PyObject *picture_draw(PyObject *module, PyObject *args);
