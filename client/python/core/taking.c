/* Arrays of elements that are picked: methods of Session.
 *
 * What is made holds the Array objects that it is made of, whose buffers it reads. Nothing is read
 * here.
 */
#include "core/make.h"

#include <limits.h>

struct taking {
    enum gad_status (*func)(struct taking *taking, struct gad_client *client,
                            struct gad_array **ret_array, struct gad_error *error);
    struct gad_array *array, *indices;
    struct gad_take_options options;
    int ndim;
    int64_t shape[GAD_MAX_NDIM];
};

/* Takes over `of`, what the array is made of; NULL with an exception: nothing is made. */
static PyObject *make_picked(struct session *session, PyObject *of, struct taking *taking)
{
    struct array *array = of ? array_new(session) : NULL;
    if (!array) {
        Py_XDECREF(of);
        return NULL;
    }
    struct gad_error error;
    array->viewed = of;
    struct section section = session_enter(session, false);
    bool is_refused = session_is_closed(session, &error) ||
                      taking->func(taking, session->link.client, &array->array, &error) != GAD_OK;
    if (!is_refused)
        array_joined(array);
    session_leave(session, section);
    if (!is_refused)
        return (PyObject *)array;
    error_raise(session->state, &error);
    Py_DECREF((PyObject *)array);
    return NULL;
}

/* NULL with an exception. */
static struct gad_array *read_array(struct session *session, PyObject *object, const char *what)
{
    if (PyObject_TypeCheck(object, session->state->array_type) &&
        ((struct array *)object)->session == session)
        return ((struct array *)object)->array;
    PyErr_Format(PyExc_TypeError, "%s() is of Arrays of the same session", what);
    return NULL;
}

static bool read_int(PyObject *object, int *ret)
{
    long number = PyLong_AsLong(object);
    if (number == -1 && PyErr_Occurred())
        return false;
    *ret = number > INT_MAX ? INT_MAX : number < INT_MIN ? INT_MIN : (int)number;
    return true;
}

static enum gad_status call_take(struct taking *t, struct gad_client *client,
                                 struct gad_array **ret_array, struct gad_error *error)
{
    (void)client;
    return gad_array_take(t->array, t->indices, &t->options, ret_array, error);
}

PyObject *taking_take(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct taking taking = {.func = call_take};
    int mode;
    if (!make_has_count("take", n, 5) || !session_check(session) ||
        !(taking.array = read_array(session, args[0], "take")) ||
        !(taking.indices = read_array(session, args[1], "take")) ||
        !read_int(args[2], &taking.options.axis) || !read_int(args[3], &taking.options.n_axes) ||
        !read_int(args[4], &mode))
        return NULL;
    taking.options.mode = (enum gad_take_mode)mode;
    return make_picked(session, PyTuple_Pack(2, args[0], args[1]), &taking);
}

static enum gad_status call_new_marks(struct taking *t, struct gad_client *client,
                                      struct gad_array **ret_array, struct gad_error *error)
{
    return gad_array_new_marks(client, t->ndim, t->shape, ret_array, error);
}

PyObject *taking_new_marks(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct taking taking = {.func = call_new_marks};
    if (!make_has_count("new_marks", n, 1) || !session_check(session))
        return NULL;
    PyObject *sizes = PySequence_Tuple(args[0]);
    Py_ssize_t ndim = sizes ? PyTuple_Size(sizes) : 0;
    taking.ndim = ndim > GAD_MAX_NDIM ? GAD_MAX_NDIM + 1 : (int)ndim;
    for (int i = 0; i < ndim && i < GAD_MAX_NDIM; i++)
        taking.shape[i] = PyLong_AsLongLong(PyTuple_GetItem(sizes, i));
    if (PyErr_Occurred())
        Py_CLEAR(sizes);
    return make_picked(session, sizes, &taking);
}

static enum gad_status call_positions(struct taking *t, struct gad_client *client,
                                      struct gad_array **ret_array, struct gad_error *error)
{
    (void)client;
    return gad_array_positions(t->array, ret_array, error);
}

PyObject *taking_positions(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct taking taking = {.func = call_positions};
    if (!make_has_count("positions", n, 1) || !session_check(session) ||
        !(taking.array = read_array(session, args[0], "positions")))
        return NULL;
    Py_INCREF(args[0]);
    return make_picked(session, args[0], &taking);
}
