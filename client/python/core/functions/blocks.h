/* Arrays that Python functions move. See blocks.c. */
#pragma once

#include "core/base.h"

#include "gpuarrayd.h"

struct blocks;

PyTypeObject *blocks_add_type(PyObject *module, struct module_state *state);

/* read, write: callables, or NULL; references are taken. NULL with an exception. */
struct blocks *blocks_new(struct module_state *state, PyObject *read, PyObject *write,
                          const struct gad_layout *layout);
struct gad_blocks blocks_for_library(struct blocks *blocks);
/* Frees blocks that the library did not take; NULL is allowed. */
void blocks_free(struct blocks *blocks);
void blocks_clear(struct blocks *blocks);
int blocks_traverse(struct blocks *blocks, visitproc visit, void *arg);
/* For functions of from_function(): a block of the library's memory as an exporter, whether
 * somebody still has a view of one of them, and the exception that is set, without the variables
 * that its frames keep. */
PyObject *blocks_new_typed(struct module_state *state, const struct gad_block *typed,
                           bool is_readonly);
bool blocks_are_viewed(PyObject *const *blocks, Py_ssize_t n);
PyObject *blocks_fetch_error(void);
void blocks_count_call(struct module_state *state);
void blocks_uncount_call(struct module_state *state);
/* How many functions run, in this process. */
unsigned blocks_n_calls(const struct module_state *state);
/* The last exception of its functions, which is then no longer kept; a reference, or NULL. */
PyObject *blocks_take_error(struct blocks *blocks);
