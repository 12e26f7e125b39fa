/* What all types of the extension are made with.
 *
 * Objects are allocated and freed as the limited interface of Python wants it for types made at run
 * time: each object holds its type. Forks are counted, because what a child inherits of sessions,
 * threads and locks is its parent's; comparing two counts is cheaper than asking for the process's
 * number in every call.
 *
 * A thread of the library's that calls Python gets a state of its own each time. The interpreter
 * has a lock around the list of these, which is taken without the GIL; a child of fork() that
 * inherits it locked waits for ever. So fork() waits for whoever is in there, and these wait for
 * nothing else.
 *
 * Called by module.c once, and by every type. Knows none of them.
 */
#include "core/base.h"

#include <pthread.h>
#include <unistd.h>

static unsigned generation;
static pthread_mutex_t states_lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&states_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&states_lock);
}

static void in_child(void)
{
    generation++;
    pthread_mutex_unlock(&states_lock);
}

unsigned base_generation(void)
{
    return generation;
}

bool base_is_main_thread(void)
{
    static _Thread_local unsigned known_generation = UINT_MAX;
    static _Thread_local bool is_main;
    if (known_generation != generation) {
        is_main = gettid() == getpid(); /* also of the thread that a child of fork() begins with */
        known_generation = generation;
    }
    return is_main;
}

static void watch_forks(void)
{
    (void)!pthread_atfork(before_fork, after_fork, in_child);
}

void base_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

PyThreadState *base_enter(PyInterpreterState *interpreter)
{
    pthread_mutex_lock(&states_lock);
    PyThreadState *state = PyThreadState_New(interpreter);
    pthread_mutex_unlock(&states_lock);
    if (state)
        PyEval_RestoreThread(state);
    return state;
}

void base_leave(PyThreadState *state)
{
    PyThreadState_Clear(state);
    (void)PyEval_SaveThread();
    pthread_mutex_lock(&states_lock);
    PyThreadState_Delete(state);
    pthread_mutex_unlock(&states_lock);
}

/* Objects -------------------------------------------------------------------------------------- */

PyObject *base_new_object(PyTypeObject *type)
{
    return PyType_GenericAlloc(type, 0);
}

void base_free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(self);
    Py_DECREF(type);
}

PyObject *base_as_tuple(int n, const int64_t *numbers)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyTuple_SetItem(tuple, i, number))
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyTypeObject *base_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, (PyTypeObject *)type)) {
        Py_DECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}
