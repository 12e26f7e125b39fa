/* The Python type Session, and how its connection is used. With the GIL unless said otherwise. */
#pragma once

#include "core/errors.h"
#include "core/link.h"

struct session {
    PyObject ob_base;
    struct module_state *state;
    struct session *previous, *next; /* in state->sessions */
    struct link link;
    bool has_link;       /* false: connecting failed */
    bool is_forgotten;   /* given up: in a child, or at the interpreter's end */
    unsigned generation; /* base_generation() where it was made */
    long pid;
};

PyTypeObject *session_add_type(PyObject *module, struct module_state *state);
void session_close_all(struct module_state *state);

/* Whether this process made it; a child may touch nothing of it. */
bool session_is_ours(const struct session *session);
/* Raises no-daemon and returns false when it is a parent's. A closed one is found by
 * session_enter(). */
bool session_check(struct session *session);

/* Between these there is the lock and perhaps no GIL: nothing of Python may be touched. */
struct section {
    PyThreadState *saved; /* NULL: the GIL is still held */
};

/* may_wait: the calls that follow may take long; the GIL is released. Otherwise it is only when
 * another thread has the lock. */
struct section session_enter(struct session *session, bool may_wait);
void session_leave(struct session *session, struct section section);
/* Inside: whether it was closed; then `ret_error` says so. */
bool session_is_closed(struct session *session, struct gad_error *ret_error);

/* Gives up an array or a job of the library; in a child only Python's objects. Never waits. */
void session_release(struct session *session, struct release *node);
/* Gives Python objects back that ended jobs have held. */
void session_collect(struct session *session);
