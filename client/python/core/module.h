/* What belongs to the module as a whole. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

struct session;

struct module_state {
    PyTypeObject *session_type, *array_type, *job_type, *plan_type, *block_type;
    PyObject *from_status;    /* errors.from_status, from the first failure on; or NULL */
    struct session *sessions; /* all that are alive; with the GIL */
};

/* Counts forks: other in a child than in its parent. */
unsigned module_generation(void);
/* Whether signals are for this thread to look at. */
bool module_is_main_thread(void);

PyObject *module_new_object(PyTypeObject *type);
void module_free_object(PyObject *self);
PyObject *module_as_tuple(int n, const int64_t *numbers);
PyTypeObject *module_add_type(PyObject *module, PyType_Spec *spec);
