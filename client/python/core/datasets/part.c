/* The Python type Part: a part of a batch, which exports its memory as a buffer.
 *
 * The parts of a batch share one struct taken, which gives the batch's slot back when the last of
 * them dies: that is when no view of its memory is left, since buffers hold their part. Each holds
 * the loader, whose memory it is. In a child of fork() the slot is the parent's, and stays.
 */
#include "core/datasets/loader.h"
#include "core/typestr.h"

#include <stdatomic.h>
#include <stdlib.h>

struct taken {
    struct gad_batch *batch;
    struct loader *loader; /* a reference */
    unsigned n_parts;      /* that are alive; with the GIL */
};

struct part {
    PyObject ob_base;
    struct taken *taken;
    void *data;
    enum gad_dtype dtype;
    int ndim;
    int64_t shape[GAD_MAX_NDIM], strides[GAD_MAX_NDIM];
};

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are exported as they are");

static void give_back(struct taken *taken)
{
    if (taken->loader->generation == base_generation())
        gad_batch_release(taken->batch);
    Py_DECREF((PyObject *)taken->loader);
    free(taken);
}

static void part_dealloc(PyObject *self)
{
    struct part *part = (struct part *)self;
    if (part->taken && --part->taken->n_parts == 0)
        give_back(part->taken);
    base_free_object(self);
}

static int part_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    struct part *part = (struct part *)self;
    Py_ssize_t n_bytes = (Py_ssize_t)gad_dtype_size(part->dtype);
    for (int i = 0; i < part->ndim; i++)
        n_bytes *= part->shape[i];
    *view = (Py_buffer){
        .buf = part->data,
        .len = n_bytes,
        .itemsize = (Py_ssize_t)gad_dtype_size(part->dtype),
        .ndim = part->ndim,
        .format = flags & PyBUF_FORMAT ? (char *)typestr_format(part->dtype, false) : NULL,
        .shape = (flags & PyBUF_ND) == PyBUF_ND ? (Py_ssize_t *)part->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? (Py_ssize_t *)part->strides : NULL,
    };
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && part->ndim > 1) {
        PyErr_SetString(PyExc_BufferError, "a batch is not contiguous in Fortran order");
        return -1;
    }
    view->obj = self;
    Py_INCREF(self);
    return 0;
}

static struct part *new_part(struct taken *taken, unsigned i)
{
    struct part *part = (struct part *)base_new_object(taken->loader->session->state->part_type);
    struct gad_layout layout;
    if (!part || gad_batch_layout(taken->batch, i, &layout))
        return part;
    part->data = gad_batch_data(taken->batch, i);
    part->dtype = layout.dtype;
    part->ndim = layout.ndim;
    int64_t stride = (int64_t)gad_dtype_size(layout.dtype);
    for (int axis = layout.ndim; axis-- > 0;) {
        part->shape[axis] = layout.shape[axis];
        part->strides[axis] = stride;
        stride *= layout.shape[axis];
    }
    part->taken = taken;
    taken->n_parts++;
    return part;
}

PyObject *part_tuple(struct loader *loader, struct gad_batch *batch_take)
{
    struct taken *taken = malloc(sizeof(*taken));
    Py_ssize_t n = PyTuple_Size(loader->parts);
    if (!taken) {
        gad_batch_release(batch_take);
        return PyErr_NoMemory();
    }
    *taken = (struct taken){.batch = batch_take, .loader = loader, .n_parts = 1};
    Py_INCREF((PyObject *)loader);
    PyObject *made = NULL, *parts = PyTuple_New(n);
    for (Py_ssize_t i = 0; parts && i < n; i++) {
        PyObject *part = (PyObject *)new_part(taken, (unsigned)i);
        if (!part || PyTuple_SetItem(parts, i, part))
            Py_CLEAR(parts);
    }
    if (parts)
        made = Py_BuildValue("Ky#O", (unsigned long long)gad_batch_index(batch_take),
                             (const char *)gad_batch_rows(batch_take),
                             (Py_ssize_t)(gad_batch_length(batch_take) * 8), parts);
    Py_XDECREF(parts);
    if (--taken->n_parts == 0)
        give_back(taken);
    return made;
}

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)"A part of a batch: its memory as a buffer."},
    {Py_tp_dealloc, part_dealloc},
    {Py_bf_getbuffer, part_getbuffer},
    {0},
};

static PyType_Spec spec = {
    .name = "gpuarrayd._core.Part",
    .basicsize = sizeof(struct part),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyTypeObject *part_add_type(PyObject *module, struct module_state *state)
{
    return state->part_type = base_add_type(module, &spec);
}
