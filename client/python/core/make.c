/* The ways to arrays: methods of Session.
 *
 * Each reads its arguments into C first, makes an empty Array object, and lets the library fill it
 * in a section. When something fails the object dies as it is: array_dealloc() gives back what
 * there is. Making arrays in shared memory and opening files may take long and happens without the
 * GIL; the others only describe.
 */
#include "core/make.h"
#include "core/request.h"
#include "core/functions/blocks.h"
#include "core/typestr.h"

#include <limits.h>
#include <stdio.h>

/* Arguments ------------------------------------------------------------------------------------ */

struct form { /* what gad_layout points to */
    struct gad_layout layout;
    int64_t shape[GAD_MAX_NDIM], strides[GAD_MAX_NDIM];
};

bool make_has_count(const char *name, Py_ssize_t n, Py_ssize_t wanted)
{
    if (n == wanted)
        return true;
    PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments (%zd given)", name, wanted, n);
    return false;
}

static bool read_typestr(struct module_state *state, PyObject *object, struct gad_layout *layout)
{
    const char *text = PyUnicode_AsUTF8AndSize(object, NULL);
    if (!text)
        return false;
    if (typestr_parse(text, &layout->dtype, &layout->is_swapped))
        return true;
    error_raise_own(state, GAD_BAD_DTYPE, "dtype", NULL, text, "no dtype that is computed: %s",
                    text);
    return false;
}

/* Whether new elements may have this dtype: this machine's byte order. */
bool make_read_typestr(struct module_state *state, PyObject *object, struct gad_layout *layout)
{
    if (!read_typestr(state, object, layout))
        return false;
    if (!layout->is_swapped)
        return true;
    error_raise_own(state, GAD_BAD_DTYPE, "dtype", "this machine's byte order",
                    PyUnicode_AsUTF8AndSize(object, NULL),
                    "new arrays are stored in this machine's byte order");
    return false;
}

static bool raise_ndim(struct module_state *state, Py_ssize_t ndim)
{
    char found[32];
    snprintf(found, sizeof(found), "%zd", ndim);
    error_raise_own(state, GAD_BAD_SHAPE, "shape", "at most 32 dimensions", found,
                    "%zd dimensions: at most %d are possible", ndim, GAD_MAX_NDIM);
    return false;
}

static bool read_number(PyObject *item, int64_t *ret)
{
    PyObject *number = PyNumber_Index(item);
    if (!number)
        return false;
    *ret = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return !(*ret == -1 && PyErr_Occurred());
}

int make_read_numbers(struct module_state *state, PyObject *object, int64_t *ret_numbers)
{
    PyObject *tuple = PySequence_Tuple(object);
    if (!tuple)
        return -1;
    Py_ssize_t n = PyTuple_Size(tuple);
    bool is_good = n <= GAD_MAX_NDIM || raise_ndim(state, n);
    for (Py_ssize_t i = 0; i < n && is_good; i++)
        is_good = read_number(PyTuple_GetItem(tuple, i), &ret_numbers[i]);
    Py_DECREF(tuple);
    return is_good ? (int)n : -1;
}

static bool read_shape(struct module_state *state, PyObject *object, struct form *form)
{
    form->layout.ndim = make_read_numbers(state, object, form->shape);
    form->layout.shape = form->shape;
    return form->layout.ndim >= 0;
}

static bool read_strides(struct module_state *state, PyObject *object, struct form *form)
{
    if (object == Py_None)
        return true;
    int n = make_read_numbers(state, object, form->strides);
    if (n >= 0 && n != form->layout.ndim) {
        error_raise_own(state, GAD_BAD_SHAPE, "strides", NULL, NULL, "%d strides for %d dimensions",
                        n, form->layout.ndim);
        return false;
    }
    form->layout.strides = form->strides;
    return n >= 0;
}

static bool read_bool(PyObject *object, bool *ret)
{
    int truth = PyObject_IsTrue(object);
    *ret = truth > 0;
    return truth >= 0;
}

/* Making --------------------------------------------------------------------------------------- */

/* Everything that the library needs for one of the ways. */
struct making {
    enum gad_status (*func)(struct making *making, struct gad_client *client,
                            struct gad_array **ret_array, struct gad_error *error);
    bool may_wait;
    struct form form;
    const char *spec;
    enum gad_masking masking;
    size_t n_specs;
    const char **specs;
    int64_t axis;
    bool flag, is_fortran, is_writable, has_storage;
    struct storage storage;
    void *data;
    int fd;
    uint64_t offset_bytes;
    struct gad_blocks blocks;
    struct gad_stream *stream;
    struct gad_array *viewed;
    struct gad_view_axis axes[GAD_MAX_NDIM];
};

PyObject *make_array(struct array *array, make_function *func, void *making, bool may_wait)
{
    struct session *session = array->session;
    struct gad_error error;
    struct section section = session_enter(session, may_wait);
    bool is_refused = session_is_closed(session, &error);
    if (!is_refused) {
        is_refused = func(making, session->link.client, &array->array, &error) != GAD_OK;
        if (may_wait)
            link_talked(&session->link);
        if (!is_refused)
            array_joined(array);
    }
    session_leave(session, section);
    if (!is_refused)
        return (PyObject *)array;
    error_raise(session->state, &error);
    Py_DECREF((PyObject *)array);
    return NULL;
}

static enum gad_status call(void *making, struct gad_client *client, struct gad_array **ret_array,
                            struct gad_error *error)
{
    return ((struct making *)making)->func(making, client, ret_array, error);
}

static PyObject *make(struct array *array, struct making *making)
{
    return make_array(array, call, making, making->may_wait);
}

static enum gad_status call_new(struct making *m, struct gad_client *client,
                                struct gad_array **ret_array, struct gad_error *error)
{
    return (m->flag ? gad_array_new : gad_array_empty)(
        client, m->form.layout.dtype, m->form.layout.ndim, m->form.shape, ret_array, error);
}

PyObject *make_new(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct making making = {.func = call_new, .may_wait = true};
    struct array *array;
    if (!make_has_count("new", n, 3) || !session_check(session) ||
        !make_read_typestr(session->state, args[0], &making.form.layout) ||
        !read_shape(session->state, args[1], &making.form) || !read_bool(args[2], &making.flag) ||
        !(array = array_new(session)))
        return NULL;
    array->has_memory = array->is_writable = true;
    return make(array, &making);
}

static enum gad_status call_open(struct making *m, struct gad_client *client,
                                 struct gad_array **ret_array, struct gad_error *error)
{
    const struct gad_open_options options = {.in_place = m->flag, .masking = m->masking};
    return gad_array_open_as(client, m->spec, &options, ret_array, error);
}

/* None, False or True. */
static bool read_masking(PyObject *object, enum gad_masking *ret)
{
    bool is_wanted;
    if (object == Py_None)
        return true;
    if (!read_bool(object, &is_wanted))
        return false;
    *ret = is_wanted ? GAD_MASK_AND_SCALE : GAD_AS_STORED;
    return true;
}

/* What the library makes of a spec, which is text or a path. */
static PyObject *make_at(struct session *session, PyObject *spec, struct making *making)
{
    PyObject *bytes, *made = NULL;
    if (!PyUnicode_FSConverter(spec, &bytes))
        return NULL;
    making->spec = PyBytes_AsString(bytes);
    struct array *array = array_new(session);
    if (array)
        made = make(array, making);
    Py_DECREF(bytes);
    return made;
}

PyObject *make_open(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct making making = {.func = call_open, .may_wait = true};
    if (!make_has_count("open", n, n == 2 ? 2 : 3) || !session_check(session) ||
        !read_bool(args[1], &making.flag) || (n == 3 && !read_masking(args[2], &making.masking)))
        return NULL;
    return make_at(session, args[0], &making);
}

static enum gad_status call_open_many(struct making *m, struct gad_client *client,
                                      struct gad_array **ret_array, struct gad_error *error)
{
    int axis = m->axis > INT_MAX ? INT_MAX : m->axis < INT_MIN ? INT_MIN : (int)m->axis;
    const struct gad_join_options options = {
        .axis = axis, .is_new_axis = m->flag, .masking = m->masking};
    return gad_array_open_many(client, m->n_specs, m->specs, &options, ret_array, error);
}

/* The texts belong to `kept`, a new list of bytes. */
static bool read_specs(PyObject *object, PyObject *kept, struct making *making)
{
    PyObject *tuple = PySequence_Tuple(object);
    if (!tuple)
        return false;
    Py_ssize_t n = PyTuple_Size(tuple);
    making->n_specs = (size_t)n;
    making->specs = PyMem_Calloc((size_t)n + 1, sizeof(*making->specs));
    bool is_good = making->specs != NULL;
    if (!is_good)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n && is_good; i++) {
        PyObject *bytes;
        is_good = PyUnicode_FSConverter(PyTuple_GetItem(tuple, i), &bytes);
        if (is_good) {
            is_good = PyList_Append(kept, bytes) == 0;
            making->specs[i] = PyBytes_AsString(bytes);
            Py_DECREF(bytes);
        }
    }
    Py_DECREF(tuple);
    return is_good;
}

PyObject *make_open_many(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct making making = {.func = call_open_many, .may_wait = true};
    PyObject *made = NULL, *kept;
    struct array *array;
    if (!make_has_count("open_many", n, n == 3 ? 3 : 4) || !session_check(session) ||
        !read_number(args[1], &making.axis) || !read_bool(args[2], &making.flag) ||
        (n == 4 && !read_masking(args[3], &making.masking)) || !(kept = PyList_New(0)))
        return NULL;
    if (read_specs(args[0], kept, &making) && (array = array_new(session)))
        made = make(array, &making);
    PyMem_Free(making.specs);
    Py_DECREF(kept);
    return made;
}

static enum gad_status call_create(struct making *m, struct gad_client *client,
                                   struct gad_array **ret_array, struct gad_error *error)
{
    return gad_array_create(client, m->spec, m->flag, m->form.layout.dtype, m->form.layout.ndim,
                            m->form.shape, m->is_fortran, m->has_storage ? &m->storage.asked : NULL,
                            ret_array, error);
}

PyObject *make_create(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct making making = {.func = call_create, .may_wait = true};
    making.has_storage = n == 6 && args[5] != Py_None;
    if (!make_has_count("create", n, n == 6 ? 6 : 5) || !session_check(session) ||
        !make_read_typestr(session->state, args[1], &making.form.layout) ||
        !read_shape(session->state, args[2], &making.form) ||
        !read_bool(args[3], &making.is_fortran) || !read_bool(args[4], &making.flag) ||
        (making.has_storage && !request_read_storage(args[5], &making.storage)))
        return NULL;
    return make_at(session, args[0], &making);
}

/* From a buffer -------------------------------------------------------------------------------- */

static enum gad_status call_from_memory(struct making *m, struct gad_client *client,
                                        struct gad_array **ret_array, struct gad_error *error)
{
    return gad_array_from_memory(client, &m->form.layout, m->data, m->is_writable, ret_array,
                                 error);
}

static bool read_buffer(struct module_state *state, const Py_buffer *buffer, struct making *making)
{
    struct gad_layout *layout = &making->form.layout;
    if (!typestr_parse_format(buffer->format, buffer->itemsize, &layout->dtype,
                              &layout->is_swapped)) {
        error_raise_own(state, GAD_BAD_DTYPE, "buffer",
                        "bool, int8 to int64, uint8 to uint64, "
                        "float32 or float64",
                        buffer->format, "elements of format '%s' are not computed", buffer->format);
        return false;
    }
    if (buffer->ndim > GAD_MAX_NDIM)
        return raise_ndim(state, buffer->ndim);
    if (making->is_writable && buffer->readonly) {
        error_raise_own(state, GAD_READ_ONLY, "buffer", NULL, NULL,
                        "the buffer may not be written");
        return false;
    }
    layout->ndim = buffer->ndim;
    layout->shape = (const int64_t *)buffer->shape;
    layout->strides = (const int64_t *)buffer->strides;
    making->data = buffer->buf;
    return true;
}

PyObject *make_from_buffer(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct making making = {.func = call_from_memory};
    struct array *array;
    if (!make_has_count("from_buffer", n, 2) || !session_check(session) ||
        !read_bool(args[1], &making.is_writable) || !(array = array_new(session)))
        return NULL;
    array->has_buffer = PyObject_GetBuffer(args[0], &array->buffer, PyBUF_RECORDS_RO) == 0;
    if (!array->has_buffer || !read_buffer(session->state, &array->buffer, &making)) {
        Py_DECREF((PyObject *)array);
        return NULL;
    }
    array->has_memory = true;
    array->is_writable = making.is_writable;
    return make(array, &making);
}

/* From a file, from functions ------------------------------------------------------------------ */

static enum gad_status call_from_file(struct making *m, struct gad_client *client,
                                      struct gad_array **ret_array, struct gad_error *error)
{
    return gad_array_from_file(client, m->fd, &m->form.layout, m->offset_bytes, m->is_writable,
                               ret_array, error);
}

static bool read_fd_and_offset(struct module_state *state, PyObject *const *args,
                               struct making *making)
{
    int64_t fd, offset;
    if (!read_number(args[0], &fd) || !read_number(args[1], &offset))
        return false;
    making->fd = fd < 0 || fd > INT32_MAX ? -1 : (int)fd;
    making->offset_bytes = (uint64_t)offset;
    if (offset >= 0)
        return true;
    error_raise_own(state, GAD_BAD_EXTENT, "offset", "0 or more", NULL,
                    "the offset %lld is before the file", (long long)offset);
    return false;
}

PyObject *make_from_file(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct module_state *state = session->state;
    struct making making = {.func = call_from_file, .may_wait = true};
    struct array *array;
    if (!make_has_count("from_file", n, 6) || !session_check(session) ||
        !read_fd_and_offset(state, args, &making) ||
        !read_typestr(state, args[2], &making.form.layout) ||
        !read_shape(state, args[3], &making.form) || !read_strides(state, args[4], &making.form) ||
        !read_bool(args[5], &making.is_writable) || !(array = array_new(session)))
        return NULL;
    return make(array, &making);
}

static enum gad_status call_from_blocks(struct making *m, struct gad_client *client,
                                        struct gad_array **ret_array, struct gad_error *error)
{
    return gad_array_from_blocks(client, &m->form.layout, &m->blocks, ret_array, error);
}

static bool read_function(PyObject *object, PyObject **ret)
{
    *ret = object == Py_None ? NULL : object;
    if (!*ret || PyCallable_Check(object))
        return true;
    PyErr_Format(PyExc_TypeError, "a callable or None is wanted, not %R", Py_TYPE(object));
    return false;
}

PyObject *make_from_blocks(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct making making = {.func = call_from_blocks};
    PyObject *read, *write;
    struct array *array;
    if (!make_has_count("from_blocks", n, 4) || !session_check(session) ||
        !read_typestr(session->state, args[0], &making.form.layout) ||
        !read_shape(session->state, args[1], &making.form) || !read_function(args[2], &read) ||
        !read_function(args[3], &write) || !(array = array_new(session)))
        return NULL;
    array->blocks = blocks_new(session->state, read, write, &making.form.layout);
    if (!array->blocks) {
        Py_DECREF((PyObject *)array);
        return NULL;
    }
    making.blocks = blocks_for_library(array->blocks);
    return make(array, &making);
}

static enum gad_status call_stream(struct making *m, struct gad_client *client,
                                   struct gad_array **ret_array, struct gad_error *error)
{
    const struct gad_stream_options options = {.in_other_thread = true};
    enum gad_status status =
        gad_stream_new(client, &m->form.layout, m->flag, &options, &m->stream, error);
    if (status == GAD_OK)
        *ret_array = gad_stream_array(m->stream);
    return status;
}

PyObject *make_stream(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct making making = {.func = call_stream};
    PyObject *begin;
    struct array *array;
    if (!make_has_count("stream", n, 4) || !session_check(session) ||
        !read_typestr(session->state, args[0], &making.form.layout) ||
        !read_shape(session->state, args[1], &making.form) || !read_bool(args[2], &making.flag) ||
        !read_function(args[3], &begin) || !(array = array_new(session)))
        return NULL;
    Py_XINCREF(begin);
    array->begin = begin;
    array = (struct array *)make(array, &making);
    if (array)
        array->stream = making.stream;
    return (PyObject *)array;
}

/* Views ---------------------------------------------------------------------------------------- */

static enum gad_status call_view(struct making *m, struct gad_client *client,
                                 struct gad_array **ret_array, struct gad_error *error)
{
    (void)client;
    return gad_array_view(m->viewed, m->form.strides, m->form.layout.ndim, m->axes, ret_array,
                          error);
}

static enum gad_status call_reshape(struct making *m, struct gad_client *client,
                                    struct gad_array **ret_array, struct gad_error *error)
{
    (void)client;
    return gad_array_reshape(m->viewed, m->form.layout.ndim, m->form.shape, ret_array, error);
}

/* A sequence of (axis, count, step); axis -1: none. */
static bool read_axes(struct module_state *state, PyObject *object, struct making *making)
{
    PyObject *tuple = PySequence_Tuple(object);
    if (!tuple)
        return false;
    Py_ssize_t n = PyTuple_Size(tuple);
    bool is_good = n <= GAD_MAX_NDIM || raise_ndim(state, n);
    for (Py_ssize_t i = 0; i < n && is_good; i++) {
        int64_t numbers[GAD_MAX_NDIM];
        is_good = make_read_numbers(state, PyTuple_GetItem(tuple, i), numbers) == 3;
        if (is_good)
            making->axes[i] = (struct gad_view_axis){
                .axis = (int)numbers[0], .count = numbers[1], .step = numbers[2]};
        else if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "an axis of a view is (axis, count, step)");
    }
    making->form.layout.ndim = (int)n;
    Py_DECREF(tuple);
    return is_good;
}

struct array *make_read_array(struct session *session, PyObject *object, const char *what)
{
    if (PyObject_TypeCheck(object, session->state->array_type) &&
        ((struct array *)object)->session == session)
        return (struct array *)object;
    PyErr_Format(PyExc_TypeError, "%s() is of Arrays of the same session", what);
    return NULL;
}

/* Takes over the making of a view. */
static PyObject *finish_view(struct session *session, struct array *viewed, struct making *making)
{
    struct array *array = array_new(session);
    if (!array)
        return NULL;
    array->viewed = (PyObject *)viewed;
    Py_INCREF(array->viewed);
    return make(array, making);
}

PyObject *make_view(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct making making = {.func = call_view};
    if (!make_has_count("view", n, 3) || !session_check(session))
        return NULL;
    struct array *viewed = make_read_array(session, args[0], "view");
    if (!viewed)
        return NULL;
    making.viewed = viewed->array;
    int n_starts = make_read_numbers(session->state, args[1], making.form.strides);
    if (n_starts >= 0 && n_starts != gad_array_info(viewed->array)->ndim)
        PyErr_SetString(PyExc_TypeError, "view() takes a start for each axis of the array");
    if (PyErr_Occurred() || !read_axes(session->state, args[2], &making))
        return NULL;
    return finish_view(session, viewed, &making);
}

PyObject *make_reshape(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct making making = {.func = call_reshape};
    if (!make_has_count("reshape", n, 2) || !session_check(session))
        return NULL;
    struct array *viewed = make_read_array(session, args[0], "reshape");
    if (!viewed || !read_shape(session->state, args[1], &making.form))
        return NULL;
    making.viewed = viewed->array;
    return finish_view(session, viewed, &making);
}
