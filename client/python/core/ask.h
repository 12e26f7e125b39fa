/* Plain questions to the daemon: methods of Session. With the GIL. */
#pragma once

#include "core/session.h"

PyObject *ask_ping(PyObject *self, PyObject *unused);
PyObject *ask_info_json(PyObject *self, PyObject *unused);
PyObject *ask_stats_json(PyObject *self, PyObject *unused);
PyObject *ask_ops_json(PyObject *self, PyObject *unused);
