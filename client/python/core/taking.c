/* Arrays of elements that are picked: methods of Session.
 *
 * What is made holds the Array objects that it is made of, whose buffers it reads. Nothing is read
 * here.
 */
#include "core/make.h"

#include <limits.h>

struct taking {
    struct gad_array *array, *indices;
    struct gad_take_options options;
    int ndim;
    int64_t shape[GAD_MAX_NDIM];
};

/* Takes over `of`, what the array is made of; NULL with an exception: nothing is made. */
static PyObject *make_picked(struct session *session, PyObject *of, make_function *func,
                             struct taking *taking)
{
    struct array *array = of ? array_new(session) : NULL;
    if (!array) {
        Py_XDECREF(of);
        return NULL;
    }
    array->viewed = of;
    return make_array(array, func, taking, false);
}

static bool read_array(struct session *session, PyObject *object, const char *what,
                       struct gad_array **ret)
{
    struct array *array = make_read_array(session, object, what);
    *ret = array ? array->array : NULL;
    return array != NULL;
}

static bool read_int(PyObject *object, int *ret)
{
    long number = PyLong_AsLong(object);
    if (number == -1 && PyErr_Occurred())
        return false;
    *ret = number > INT_MAX ? INT_MAX : number < INT_MIN ? INT_MIN : (int)number;
    return true;
}

static enum gad_status call_take(void *making, struct gad_client *client,
                                 struct gad_array **ret_array, struct gad_error *error)
{
    const struct taking *t = making;
    (void)client;
    return gad_array_take(t->array, t->indices, &t->options, ret_array, error);
}

PyObject *taking_take(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct taking taking = {0};
    int mode;
    if (!make_has_count("take", n, 5) || !session_check(session) ||
        !read_array(session, args[0], "take", &taking.array) ||
        !read_array(session, args[1], "take", &taking.indices) ||
        !read_int(args[2], &taking.options.axis) || !read_int(args[3], &taking.options.n_axes) ||
        !read_int(args[4], &mode))
        return NULL;
    taking.options.mode = (enum gad_take_mode)mode;
    return make_picked(session, PyTuple_Pack(2, args[0], args[1]), call_take, &taking);
}

static enum gad_status call_new_marks(void *making, struct gad_client *client,
                                      struct gad_array **ret_array, struct gad_error *error)
{
    const struct taking *t = making;
    return gad_array_new_marks(client, t->ndim, t->shape, ret_array, error);
}

PyObject *taking_new_marks(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct taking taking = {0};
    if (!make_has_count("new_marks", n, 1) || !session_check(session))
        return NULL;
    taking.ndim = make_read_numbers(session->state, args[0], taking.shape);
    if (taking.ndim < 0)
        return NULL;
    Py_INCREF(args[0]);
    return make_picked(session, args[0], call_new_marks, &taking);
}

static enum gad_status call_positions(void *making, struct gad_client *client,
                                      struct gad_array **ret_array, struct gad_error *error)
{
    const struct taking *t = making;
    (void)client;
    return gad_array_positions(t->array, ret_array, error);
}

PyObject *taking_positions(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct taking taking = {0};
    if (!make_has_count("positions", n, 1) || !session_check(session) ||
        !read_array(session, args[0], "positions", &taking.array))
        return NULL;
    Py_INCREF(args[0]);
    return make_picked(session, args[0], call_positions, &taking);
}
