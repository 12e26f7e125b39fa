/* Failures of the library as Python exceptions. With the GIL. */
#pragma once

#include "core/base.h"

#include "gpuarrayd.h"

/* Makes what errors.from_status() returns. NULL with an exception: it could not be made. */
PyObject *error_make(struct module_state *state, const struct gad_error *error);
/* Raises it. Returns NULL. */
void *error_raise(struct module_state *state, const struct gad_error *error);
/* For what is found here. Texts may be NULL; the message is a format. Returns NULL. */
void *error_raise_own(struct module_state *state, enum gad_status status, const char *argument,
                      const char *expected, const char *found, const char *message, ...)
    __attribute__((format(printf, 6, 7)));
void error_fill(struct gad_error *ret_error, enum gad_status status, const char *argument,
                const char *message);
