/* How threads use a session's connection.
 *
 * Every call into the library is a section: session_enter() gets the lock without ever waiting for
 * it while holding the GIL, session_leave() gives it back before it takes the GIL. What was found
 * out in between is raised afterwards. What the destructors of arrays and jobs give up goes through
 * session_release(), which never waits.
 *
 * In a child of fork() no section is ever entered: the lock may be held by a thread that the child
 * does not have.
 */
#include "core/session.h"

#include <stddef.h>
#include <stdlib.h>

_Static_assert(offsetof(struct session, ob_base) == 0, "objects begin with their head");

bool session_is_ours(const struct session *session)
{
    return session->generation == base_generation() && !session->is_forgotten;
}

bool session_check(struct session *session)
{
    if (session_is_ours(session))
        return true;
    if (session->generation == base_generation())
        error_raise_own(session->state, GAD_NO_DAEMON, NULL, NULL, NULL, "the interpreter ends");
    else
        error_raise_own(session->state, GAD_NO_DAEMON, NULL, NULL, NULL,
                        "this session belongs to process %ld, the parent of this one: connect anew",
                        session->pid);
    return false;
}

struct section session_enter(struct session *session, bool may_wait)
{
    struct section section = {NULL};
    if (!may_wait && link_try_lock(&session->link))
        return section;
    section.saved = PyEval_SaveThread();
    link_lock(&session->link);
    return section;
}

void session_leave(struct session *session, struct section section)
{
    link_unlock(&session->link);
    if (section.saved)
        PyEval_RestoreThread(section.saved);
    session_collect(session);
}

bool session_is_closed(struct session *session, struct gad_error *ret_error)
{
    if (!session->link.is_closed)
        return false;
    error_fill(ret_error, GAD_NO_DAEMON, NULL, "this session was closed: connect anew");
    return true;
}

static void drop_keeps(struct work *work)
{
    for (size_t i = 0; i < sizeof(work->keeps) / sizeof(work->keeps[0]); i++) {
        Py_XDECREF((PyObject *)work->keeps[i]);
        work->keeps[i] = NULL;
    }
}

void session_release(struct session *session, struct release *node)
{
    if (!session_is_ours(session)) {
        if (node->work && session->generation != base_generation())
            drop_keeps(node->work); /* else threads of the library may still use its arrays */
        return;
    }
    link_release(&session->link, node);
    session_collect(session);
}

void session_collect(struct session *session)
{
    struct release *next;
    for (struct release *node = link_take_releases(&session->link.garbage); node; node = next) {
        next = node->next;
        drop_keeps(node->work);
        free(node->work);
    }
}
