/* The Python type Array: what is known of a source or destination, and its memory as a buffer.
 *
 * Who keeps what alive: exported buffers (memoryviews, NumPy arrays) and jobs keep the Array, and
 * the Array its session. So when an Array dies nobody uses its memory. Its gad_array is then given
 * up without waiting (session.c, link.c), and after that the buffer that it was made of.
 *
 * Shapes and strides that are exported lie in the gad_array, which lives as long as the Array.
 */
#include "core/array.h"
#include "core/make.h"
#include "core/functions/blocks.h"
#include "core/typestr.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are exported as they are");

struct array *array_new(struct session *session)
{
    struct release *release = calloc(1, sizeof(*release));
    if (!release)
        return (struct array *)PyErr_NoMemory();
    struct array *array = (struct array *)base_new_object(session->state->array_type);
    if (!array) {
        free(release);
        return NULL;
    }
    array->release = release;
    array->session = session;
    Py_INCREF((PyObject *)session);
    return array;
}

void array_joined(struct array *array)
{
    array->session->link.n_holders++;
}

/* The end -------------------------------------------------------------------------------------- */

static int array_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct array *array = (struct array *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)array->session);
    Py_VISIT(array->viewed);
    Py_VISIT(array->begin);
    Py_VISIT(array->failure);
    if (array->has_buffer)
        Py_VISIT(array->buffer.obj);
    return array->blocks ? blocks_traverse(array->blocks, visit, arg) : 0;
}

/* Only functions and exceptions of the user's can be part of a cycle. */
static int array_clear(PyObject *self)
{
    struct array *array = (struct array *)self;
    if (array->blocks)
        blocks_clear(array->blocks);
    Py_CLEAR(array->begin);
    Py_CLEAR(array->failure);
    return 0;
}

static void array_dealloc(PyObject *self)
{
    struct array *array = (struct array *)self;
    PyObject_GC_UnTrack(self);
    array_clear(self);
    if (array->array) {
        array->release->array = array->array;
        session_release(array->session, array->release);
    } else {
        free(array->release);
        blocks_free(array->blocks);
    }
    if (array->has_buffer)
        PyBuffer_Release(&array->buffer);
    Py_XDECREF(array->viewed);
    Py_XDECREF((PyObject *)array->session);
    base_free_object(self);
}

/* Properties ----------------------------------------------------------------------------------- */

static const struct gad_array_info *info_of(PyObject *self)
{
    return gad_array_info(((struct array *)self)->array);
}

static const struct gad_meaning *meaning_of(PyObject *self)
{
    return gad_array_meaning(((struct array *)self)->array);
}

static PyObject *array_get_typestr(PyObject *self, void *unused)
{
    char text[TYPESTR_SIZE];
    const struct gad_meaning *meaning = meaning_of(self);
    if (meaning && meaning->is_unpacked)
        typestr_write(meaning->dtype, false, text);
    else
        typestr_write(info_of(self)->dtype, info_of(self)->is_swapped, text);
    return PyUnicode_FromString(text);
}

static PyObject *array_get_shape(PyObject *self, void *unused)
{
    return base_as_tuple(info_of(self)->ndim, info_of(self)->shape);
}

static PyObject *array_get_strides(PyObject *self, void *unused)
{
    const struct gad_array_info *info = info_of(self);
    const struct gad_meaning *meaning = meaning_of(self);
    if ((meaning && meaning->is_unpacked) || !strcmp(info->access, "chunks") ||
        !strcmp(info->access, "provider"))
        Py_RETURN_NONE;
    return base_as_tuple(info->ndim, info->strides);
}

static PyObject *array_get_fill(PyObject *self, void *unused)
{
    if (!info_of(self)->has_fill)
        Py_RETURN_NONE;
    const struct gad_scalar *fill = &info_of(self)->exact_fill;
    if (fill->kind == GAD_SCALAR_UINT)
        return PyLong_FromUnsignedLongLong(fill->uint_value);
    return fill->kind == GAD_SCALAR_INT ? PyLong_FromLongLong(fill->int_value)
                                        : PyFloat_FromDouble(fill->float_value);
}

static PyObject *text_or_none(const char *text)
{
    if (!text)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *array_get_packing(PyObject *self, void *unused)
{
    const struct gad_meaning *meaning = meaning_of(self);
    return meaning ? text_or_none(meaning->packing) : PyErr_NoMemory();
}

static PyObject *array_get_is_packing_unsaid(PyObject *self, void *unused)
{
    const struct gad_meaning *meaning = meaning_of(self);
    return PyBool_FromLong(meaning && meaning->is_unsaid);
}

static PyObject *array_get_units(PyObject *self, void *unused)
{
    const struct gad_meaning *meaning = meaning_of(self);
    return meaning ? text_or_none(meaning->units) : PyErr_NoMemory();
}

static PyObject *array_get_long_name(PyObject *self, void *unused)
{
    const struct gad_meaning *meaning = meaning_of(self);
    return meaning ? text_or_none(meaning->long_name) : PyErr_NoMemory();
}

static PyObject *array_get_dimensions(PyObject *self, void *unused)
{
    const struct gad_meaning *meaning = meaning_of(self);
    if (!meaning)
        return PyErr_NoMemory();
    if (!meaning->dimensions)
        Py_RETURN_NONE;
    PyObject *names = PyTuple_New(info_of(self)->ndim);
    for (int i = 0; names && i < info_of(self)->ndim; i++) {
        PyObject *name = text_or_none(meaning->dimensions[i]);
        if (!name || PyTuple_SetItem(names, i, name)) {
            Py_DECREF(names);
            return NULL;
        }
    }
    return names;
}

static PyObject *array_get_format(PyObject *self, void *unused)
{
    return PyUnicode_FromString(info_of(self)->format);
}

static PyObject *array_get_path(PyObject *self, void *unused)
{
    if (!info_of(self)->path)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(info_of(self)->path);
}

static PyObject *array_get_n_files(PyObject *self, void *unused)
{
    return PyLong_FromUnsignedLongLong(info_of(self)->n_files);
}

static PyObject *array_get_access(PyObject *self, void *unused)
{
    return PyUnicode_FromString(info_of(self)->access);
}

static PyObject *array_get_session(PyObject *self, void *unused)
{
    PyObject *session = (PyObject *)((struct array *)self)->session;
    Py_INCREF((PyObject *)session);
    return session;
}

static PyObject *array_commit(PyObject *self, PyObject *unused)
{
    struct array *array = (struct array *)self;
    struct gad_error error;
    if (!session_check(array->session))
        return NULL;
    struct section section = session_enter(array->session, true);
    bool is_refused = session_is_closed(array->session, &error) ||
                      gad_array_commit(array->array, &error) != GAD_OK;
    session_leave(array->session, section);
    if (is_refused)
        return error_raise(array->session->state, &error);
    Py_RETURN_NONE;
}

/* The arrays of a tuple, all of the session: a new list that is PyMem_Free()d; NULL with an
 * exception.
 */
static struct gad_array **read_arrays(struct session *session, PyObject *tuple, Py_ssize_t n)
{
    struct gad_array **arrays = PyMem_Calloc((size_t)n + 1, sizeof(struct gad_array *));
    if (!arrays)
        return (struct gad_array **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        struct array *array = make_read_array(session, PyTuple_GetItem(tuple, i), "carry");
        if (!array) {
            PyMem_Free(arrays);
            return NULL;
        }
        arrays[i] = array->array;
    }
    return arrays;
}

static PyObject *array_carry(PyObject *self, PyObject *args)
{
    struct array *array = (struct array *)self;
    PyObject *sources, *places;
    struct gad_error error;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &sources, &PyTuple_Type, &places) ||
        !session_check(array->session))
        return NULL;
    Py_ssize_t n = PyTuple_Size(sources);
    if (!make_has_count("carry", PyTuple_Size(places), n))
        return NULL;
    struct gad_array **from = read_arrays(array->session, sources, n);
    struct gad_array **to = from ? read_arrays(array->session, places, n) : NULL;
    bool is_refused = !to;
    if (to) { /* coordinates are read from files */
        struct section section = session_enter(array->session, true);
        is_refused = session_is_closed(array->session, &error) ||
                     gad_array_carry(array->array, (unsigned)n, from, to, &error) != GAD_OK;
        session_leave(array->session, section);
    }
    if (to && is_refused)
        error_raise(array->session->state, &error);
    PyMem_Free(from);
    PyMem_Free(to);
    if (is_refused)
        return NULL;
    Py_RETURN_NONE;
}

/* The buffer ----------------------------------------------------------------------------------- */

static int64_t n_bytes(const struct gad_array_info *info)
{
    int64_t n = (int64_t)gad_dtype_size(info->dtype);
    for (int i = 0; i < info->ndim; i++)
        n *= info->shape[i];
    return n;
}

static const char *find_refusal(struct array *array, const Py_buffer *view, int flags)
{
    if (!array->has_memory)
        return "this array is not in memory";
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && !array->is_writable)
        return "this array may not be written";
    bool is_c = PyBuffer_IsContiguous(view, 'C'), is_fortran = PyBuffer_IsContiguous(view, 'F');
    if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !is_c)
        return "this array is not contiguous in C order";
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_fortran)
        return "this array is not contiguous in Fortran order";
    if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && !is_c && !is_fortran)
        return "this array is not contiguous";
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !is_c)
        return "this array is not contiguous in C order";
    return NULL;
}

static int array_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    struct array *array = (struct array *)self;
    const struct gad_array_info *info = info_of(self);
    *view = (Py_buffer){
        .buf = gad_array_data(array->array),
        .len = n_bytes(info),
        .itemsize = (Py_ssize_t)gad_dtype_size(info->dtype),
        .readonly = !array->is_writable,
        .ndim = info->ndim,
        .format = (char *)typestr_format(info->dtype, info->is_swapped),
        .shape = (Py_ssize_t *)info->shape,
        .strides = (Py_ssize_t *)info->strides,
    };
    const char *refusal = find_refusal(array, view, flags);
    if (refusal) {
        PyErr_SetString(PyExc_BufferError, refusal);
        return -1;
    }
    if (!(flags & PyBUF_FORMAT))
        view->format = NULL;
    if ((flags & PyBUF_ND) != PyBUF_ND)
        view->shape = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        view->strides = NULL;
    view->obj = self;
    Py_INCREF(self);
    return 0;
}

/* The type ------------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"carry", array_carry, METH_VARARGS,
     "carry(sources, places, /)\n--\n\nSays what create() made is put together of."},
    {"commit", array_commit, METH_NOARGS, "commit()\n--\n\nPuts what create() made in its place."},
    {"begun", stream_begun, METH_NOARGS,
     "begun()\n--\n\nOf a stream: waits until its job has begun."},
    {"push", (PyCFunction)(void (*)(void))stream_push, METH_FASTCALL,
     "push(buffer, job=None, /)\n--\n\nOf a stream: gives the elements that come next."},
    {"end", stream_end, METH_NOARGS, "end()\n--\n\nOf a stream: all were pushed."},
    {"take", (PyCFunction)(void (*)(void))stream_take, METH_FASTCALL,
     "take(buffer, job=None, /)\n--\n\nOf a stream: takes the elements that come next; how many."},
    {"fail", (PyCFunction)(void (*)(void))stream_fail, METH_FASTCALL,
     "fail(why, exception, /)\n--\n\nOf a stream: makes its job fail, with the exception as "
     "cause."},
    {NULL},
};

static PyGetSetDef properties[] = {
    {"typestr", array_get_typestr, NULL, "NumPy's array-interface string of the dtype."},
    {"shape", array_get_shape, NULL, "Sizes of the axes."},
    {"strides", array_get_strides, NULL, "In bytes; None: chunked, or read by the library."},
    {"fill", array_get_fill, NULL, "The fill value that the source names, or None."},
    {"packing", array_get_packing, NULL,
     "Attributes by which stored elements are not what is meant; \"\": none."},
    {"is_packing_unsaid", array_get_is_packing_unsaid, NULL,
     "Whether there are some, and open() was not told what to do."},
    {"units", array_get_units, NULL, "Of the elements, or None."},
    {"long_name", array_get_long_name, NULL, "Or None."},
    {"dimensions", array_get_dimensions, NULL, "A name or None for each axis, or None."},
    {"format", array_get_format, NULL,
     "npy, npz, raw, hdf5, netcdf, region, memory, file, blocks, stream or mixed."},
    {"path", array_get_path, NULL, "Of the file, or None."},
    {"n_files", array_get_n_files, NULL, "Files that are this one array; 0: it is no such one."},
    {"access", array_get_access, NULL, "How it travels: file, chunks, provider, region, memory."},
    {"session", array_get_session, NULL, "The session that it was made from."},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)"A source or destination. Those with memory export it as a buffer."},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_traverse, array_traverse},
    {Py_tp_clear, array_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_bf_getbuffer, array_getbuffer},
    {0},
};

static PyType_Spec spec = {
    .name = "gpuarrayd._core.Array",
    .basicsize = sizeof(struct array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyTypeObject *array_add_type(PyObject *module, struct module_state *state)
{
    return state->array_type = base_add_type(module, &spec);
}
