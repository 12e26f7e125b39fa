/* Plain questions to the daemon: methods of Session.
 *
 * Each is one round trip in one section. Answers are JSON, as the daemon gives them; what they mean
 * is for Python to read.
 */
#include "core/methods.h"

#include <stdlib.h>
#include <string.h>

PyObject *ask_ping(PyObject *self, PyObject *unused)
{
    struct session *session = (struct session *)self;
    struct gad_error error;
    if (!session_check(session))
        return NULL;
    struct section section = session_enter(session, true);
    bool is_refused = session_is_closed(session, &error);
    if (!is_refused) {
        is_refused = gad_ping(session->link.client, &error);
        link_talked(&session->link);
    }
    session_leave(session, section);
    if (is_refused)
        return error_raise(session->state, &error);
    Py_RETURN_NONE;
}

typedef enum gad_status ask_func(struct gad_client *client, char **ret_json,
                                 struct gad_error *error);

static PyObject *ask(PyObject *self, ask_func *func)
{
    struct session *session = (struct session *)self;
    struct gad_error error;
    char *json = NULL;
    if (!session_check(session))
        return NULL;
    struct section section = session_enter(session, true);
    bool is_refused = session_is_closed(session, &error);
    if (!is_refused) {
        is_refused = func(session->link.client, &json, &error);
        link_talked(&session->link);
    }
    session_leave(session, section);
    if (is_refused)
        return error_raise(session->state, &error);
    PyObject *text = PyUnicode_DecodeUTF8(json, (Py_ssize_t)strlen(json), "backslashreplace");
    free(json);
    return text;
}

PyObject *ask_info_json(PyObject *self, PyObject *unused)
{
    return ask(self, gad_info_json);
}

PyObject *ask_stats_json(PyObject *self, PyObject *unused)
{
    return ask(self, gad_stats_json);
}

PyObject *ask_ops_json(PyObject *self, PyObject *unused)
{
    return ask(self, gad_ops_json);
}
