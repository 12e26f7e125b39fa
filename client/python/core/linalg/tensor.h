/* Methods of Session that decompose tensors. */
#pragma once

#include "core/request.h"
#include "core/session.h"

/* Data of decompositions: expressions of outputs, and how jobs run. */
struct tensor_data {
    struct request request;
    struct gad_operand operand; /* of the first output */
    struct gad_linalg_run run;
};
/* args: outputs, arguments, engine, priority, label, of which outputs are [(expression, None,
 * destination)]. tensor_data_deinit() either way. */
bool tensor_data_init(struct tensor_data *data, struct session *session, PyObject *const *args);
void tensor_data_deinit(struct tensor_data *data);
/* Of the i-th output: an array, where the expression is but its name. */
struct gad_operand tensor_operand(const struct tensor_data *data, unsigned i);

PyObject *tensor_cp(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *tensor_tucker(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *tensor_mttkrp(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *tensor_relative_error(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *tensor_reconstruct(PyObject *self, PyObject *const *args, Py_ssize_t n);
