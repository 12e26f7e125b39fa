/* What all types of the extension are made with, and the module's state. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

struct session;

struct module_state {
    PyTypeObject *session_type, *array_type, *job_type, *plan_type, *block_type, *loader_type,
        *part_type;
    PyObject *from_status;    /* errors.from_status, from the first failure on; or NULL */
    struct session *sessions; /* all that are alive; with the GIL */
    unsigned n_calls;         /* functions of from_blocks() that run; with the GIL */
    unsigned calls_in;        /* the generation of n_calls; a child has none of its parent's */
    bool is_ending;           /* no further ones are called */
};

/* Once in a process, however many interpreters import the module. */
void base_watch_forks(void);
/* Counts forks: other in a child than in its parent. */
unsigned base_generation(void);
/* Whether signals are for this thread to look at. */
bool base_is_main_thread(void);

/* From a thread that is not Python's: takes the GIL. NULL: memory is short, and it is not taken. */
PyThreadState *base_enter(PyInterpreterState *interpreter);
void base_leave(PyThreadState *state);

PyObject *base_new_object(PyTypeObject *type);
void base_free_object(PyObject *self);
PyObject *base_as_tuple(int n, const int64_t *numbers);
PyTypeObject *base_add_type(PyObject *module, PyType_Spec *spec);
