/* Arrays that Python functions move, block by block.
 *
 * The library calls fill() and drain() in a thread of its own, one call at a time, without any lock
 * of ours. They take the GIL, so whoever waits for such a call to end (freeing a job, closing)
 * must not hold it. The functions and the last exception belong to the Array object, which lives as
 * long as a job uses it; the structure itself belongs to the gad_array, whose end may come without
 * the GIL.
 *
 * A block is the ring's own memory, handed over as a memoryview of bytes that is released after the
 * call. If somebody kept a view of it, releasing fails, and so does the block: its memory goes
 * away. The frames of an exception's traceback keep such views, so their variables are dropped.
 */
#include "core/functions/blocks.h"
#include "core/typestr.h"

#include <errno.h>
#include <stdlib.h>

struct blocks {
    PyObject *read, *write; /* NULL: not that way, or cleared by the garbage collector */
    PyObject *error;
    struct module_state *state; /* lives as long as its sessions */
    PyInterpreterState *interpreter;
    int ndim;
    int64_t element_bytes;
};

struct blocks *blocks_new(struct module_state *state, PyObject *read, PyObject *write,
                          const struct gad_layout *layout)
{
    struct blocks *blocks = calloc(1, sizeof(*blocks));
    if (!blocks)
        return (struct blocks *)PyErr_NoMemory();
    Py_XINCREF(read);
    Py_XINCREF(write);
    *blocks = (struct blocks){
        .read = read,
        .write = write,
        .state = state,
        .interpreter = PyInterpreterState_Get(),
        .ndim = layout->ndim,
        .element_bytes = (int64_t)gad_dtype_size(layout->dtype),
    };
    return blocks;
}

void blocks_clear(struct blocks *blocks)
{
    Py_CLEAR(blocks->read);
    Py_CLEAR(blocks->write);
    Py_CLEAR(blocks->error);
}

void blocks_free(struct blocks *blocks)
{
    if (blocks)
        blocks_clear(blocks);
    free(blocks);
}

int blocks_traverse(struct blocks *blocks, visitproc visit, void *arg)
{
    Py_VISIT(blocks->read);
    Py_VISIT(blocks->write);
    Py_VISIT(blocks->error);
    return 0;
}

PyObject *blocks_take_error(struct blocks *blocks)
{
    PyObject *error = blocks->error;
    blocks->error = NULL;
    return error;
}

/* Blocks as exporters -------------------------------------------------------------------------- */

struct block {
    PyObject ob_base;
    void *data;
    int64_t n_bytes;
    bool is_readonly;
    unsigned n_views;
    const struct gad_block *typed; /* NULL: bytes */
};

/* With a dtype, a shape and strides. */
static int get_typed(struct block *block, PyObject *self, Py_buffer *view)
{
    const struct gad_block *typed = block->typed;
    *view = (Py_buffer){
        .buf = typed->data,
        .len = (Py_ssize_t)gad_dtype_size(typed->dtype),
        .itemsize = (Py_ssize_t)gad_dtype_size(typed->dtype),
        .readonly = block->is_readonly,
        .ndim = typed->ndim,
        .format = (char *)typestr_format(typed->dtype, false),
        .shape = (Py_ssize_t *)typed->shape,
        .strides = (Py_ssize_t *)typed->strides,
    };
    for (int i = 0; i < typed->ndim; i++)
        view->len *= typed->shape[i];
    Py_INCREF(self);
    view->obj = self;
    block->n_views++;
    return 0;
}

static int block_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    struct block *block = (struct block *)self;
    if (block->typed && (flags & PyBUF_FULL_RO) == PyBUF_FULL_RO)
        return get_typed(block, self, view);
    int r = PyBuffer_FillInfo(view, self, block->data, block->n_bytes, block->is_readonly, flags);
    block->n_views += r == 0;
    return r;
}

static void block_releasebuffer(PyObject *self, Py_buffer *view)
{
    ((struct block *)self)->n_views--;
}

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)"The memory of one block, during one call."},
    {Py_tp_dealloc, base_free_object},
    {Py_bf_getbuffer, block_getbuffer},
    {Py_bf_releasebuffer, block_releasebuffer},
    {0},
};

static PyType_Spec spec = {
    .name = "gpuarrayd._core._Block",
    .basicsize = sizeof(struct block),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyTypeObject *blocks_add_type(PyObject *module, struct module_state *state)
{
    return state->block_type = base_add_type(module, &spec);
}

/* In the library's thread ---------------------------------------------------------------------- */

/* The variables of the frames that an exception went through. */
static void drop_variables(PyObject *traceback)
{
    PyObject *module = PyImport_ImportModule("traceback");
    PyObject *done = module ? PyObject_CallMethod(module, "clear_frames", "O", traceback) : NULL;
    if (!done)
        PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(module);
}

PyObject *blocks_fetch_error(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) {
        drop_variables(traceback);
        PyException_SetTraceback(value, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

/* Keeps the exception that is set. */
static void keep_error(struct blocks *blocks)
{
    PyObject *error = blocks_fetch_error();
    Py_XDECREF(blocks->error);
    blocks->error = error;
}

PyObject *blocks_new_typed(struct module_state *state, const struct gad_block *typed,
                           bool is_readonly)
{
    struct block *block = (struct block *)base_new_object(state->block_type);
    if (!block)
        return NULL;
    block->is_readonly = is_readonly;
    block->typed = typed;
    return (PyObject *)block;
}

bool blocks_are_viewed(PyObject *const *blocks, Py_ssize_t n)
{
    unsigned n_views = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        n_views += ((struct block *)blocks[i])->n_views;
    return n_views > 0;
}

static struct block *new_block(const struct blocks *blocks, const int64_t *count, void *data,
                               bool is_readonly)
{
    struct block *block = (struct block *)base_new_object(blocks->state->block_type);
    if (!block)
        return NULL;
    block->data = data;
    block->is_readonly = is_readonly;
    block->n_bytes = blocks->element_bytes;
    for (int i = 0; i < blocks->ndim; i++)
        block->n_bytes *= count[i];
    return block;
}

static PyObject *call_function(const struct blocks *blocks, PyObject *func, const int64_t *start,
                               const int64_t *count, PyObject *block)
{
    PyObject *done = NULL, *at = base_as_tuple(blocks->ndim, start);
    PyObject *size = base_as_tuple(blocks->ndim, count);
    PyObject *view = PyMemoryView_FromObject(block);
    if (at && size && view)
        done = PyObject_CallFunctionObjArgs(func, at, size, view, NULL);
    Py_XDECREF(at);
    Py_XDECREF(size);
    Py_XDECREF(view);
    return done;
}

/* Returns a positive errno when something failed; the exception is kept. */
static int call(struct blocks *blocks, PyObject *func, const int64_t *start, const int64_t *count,
                void *data, bool is_readonly)
{
    struct block *block = new_block(blocks, count, data, is_readonly);
    PyObject *done = block ? call_function(blocks, func, start, count, (PyObject *)block) : NULL;
    int r = done ? 0 : EIO;
    if (!done)
        keep_error(blocks);
    Py_XDECREF(done);
    if (r == 0 && block->n_views > 0) {
        PyErr_SetString(PyExc_BufferError, "a view of the block was kept after the call");
        keep_error(blocks);
        r = EIO;
    }
    Py_XDECREF((PyObject *)block);
    return r;
}

unsigned blocks_n_calls(const struct module_state *state)
{
    return state->calls_in == base_generation() ? state->n_calls : 0;
}

void blocks_count_call(struct module_state *state)
{
    state->n_calls = blocks_n_calls(state) + 1;
    state->calls_in = base_generation();
}

void blocks_uncount_call(struct module_state *state)
{
    if (blocks_n_calls(state) > 0) /* else the function has called fork(), and this is the child */
        state->n_calls--;
}

static int move(struct blocks *blocks, bool is_write, const int64_t *start, const int64_t *count,
                void *block)
{
    PyThreadState *own = base_enter(blocks->interpreter);
    if (!own)
        return ENOMEM;
    PyObject *func = is_write ? blocks->write : blocks->read;
    struct module_state *state = blocks->state;
    int r = ECANCELED;
    if (func && !state->is_ending) {
        blocks_count_call(state);
        Py_INCREF(func);
        r = call(blocks, func, start, count, block, is_write);
        Py_DECREF(func);
        blocks_uncount_call(state);
    }
    base_leave(own);
    return r;
}

static int fill(void *data, const int64_t *start, const int64_t *count, void *ret_block)
{
    return move(data, false, start, count, ret_block);
}

static int drain(void *data, const int64_t *start, const int64_t *count, const void *block)
{
    return move(data, true, start, count, (void *)block);
}

struct gad_blocks blocks_for_library(struct blocks *blocks)
{
    return (struct gad_blocks){
        .read = blocks->read ? fill : NULL,
        .write = blocks->write ? drain : NULL,
        .free = free, /* its Python objects have gone before: see array.c */
        .data = blocks,
    };
}
