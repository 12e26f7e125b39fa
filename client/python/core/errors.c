/* Failures of the library as Python exceptions.
 *
 * Which class a status becomes is decided in errors.py, which is imported at the first failure: a
 * program without failures does not pay for it. Here only the texts are handed over. They may hold
 * names of files, which may be anything, so bytes that are no UTF-8 are shown escaped.
 */
#include "core/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static PyObject *as_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

static PyObject *find_maker(struct module_state *state)
{
    if (!state->from_status) {
        PyObject *errors = PyImport_ImportModule("gpuarrayd.errors");
        if (errors)
            state->from_status = PyObject_GetAttrString(errors, "from_status");
        Py_XDECREF(errors);
    }
    return state->from_status;
}

PyObject *error_make(struct module_state *state, const struct gad_error *error)
{
    PyObject *made = NULL, *maker = find_maker(state);
    PyObject *texts[] = {as_text(error->message), as_text(error->argument),
                         as_text(error->expected), as_text(error->found)};
    if (maker && texts[0] && texts[1] && texts[2] && texts[3])
        made = PyObject_CallFunction(maker, "isOOOO", (int)error->status,
                                     gad_status_word((int)error->status), texts[0], texts[1],
                                     texts[2], texts[3]);
    for (int i = 0; i < 4; i++)
        Py_XDECREF(texts[i]);
    return made;
}

void *error_raise(struct module_state *state, const struct gad_error *error)
{
    PyObject *made = error_make(state, error);
    if (made)
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    return NULL;
}

void error_fill(struct gad_error *ret_error, enum gad_status status, const char *argument,
                const char *message)
{
    *ret_error = (struct gad_error){.status = status};
    snprintf(ret_error->argument, sizeof(ret_error->argument), "%s", argument ? argument : "");
    snprintf(ret_error->message, sizeof(ret_error->message), "%s", message);
}

void *error_raise_own(struct module_state *state, enum gad_status status, const char *argument,
                      const char *expected, const char *found, const char *message, ...)
{
    struct gad_error error;
    va_list args;
    error_fill(&error, status, argument, "");
    snprintf(error.expected, sizeof(error.expected), "%s", expected ? expected : "");
    snprintf(error.found, sizeof(error.found), "%s", found ? found : "");
    va_start(args, message);
    vsnprintf(error.message, sizeof(error.message), message, args);
    va_end(args);
    return error_raise(state, &error);
}
