/* Arrays that a Python function makes of blocks of others: gad_array_from_function().
 *
 * The library calls call() in threads of its own, several at once, without any lock of ours; it has
 * read the blocks and their halos before, without the GIL. They are the library's memory: as of
 * from_blocks(), a view that is kept after the call fails the block (what a cycle of objects keeps
 * is looked for first).
 *
 * A call may never return, and its job may be gone meanwhile. So what it needs, the function and
 * the Arrays of its inputs with their memory, belongs to the library's array, whose end comes in a
 * section without the GIL: they then go to the session's garbage.
 */
#include "core/functions/from_function.h"
#include "core/array.h"
#include "core/functions/blocks.h"
#include "core/make.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INPUTS 64
#define MORE_BYTES 120 /* of a message: the library says of which block */

struct mapped {
    struct work *bag;   /* what is garbage at the end: the function and the inputs, the error */
    PyObject *function; /* in the bag */
    PyObject *error;    /* with the GIL */
    struct session *session;
    struct module_state *state;
    PyInterpreterState *interpreter;
};

/* In the library's threads --------------------------------------------------------------------- */

/* Appends an attribute, or with NULL the exception itself. */
static void copy_text(PyObject *error, const char *name, char *ret, size_t n_bytes)
{
    PyObject *found = name ? PyObject_GetAttrString(error, name) : Py_NewRef(error);
    PyObject *text = found ? PyObject_Str(found) : NULL;
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    const char *chars = bytes ? PyBytes_AsString(bytes) : NULL;
    if (chars && found != Py_None)
        strncat(ret, chars, n_bytes - 1 - strlen(ret));
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    Py_XDECREF(found);
}

static bool is_bad_block(PyObject *error)
{
    char code[16] = "";
    copy_text(error, "code", code, sizeof(code));
    return strcmp(code, "bad-block") == 0;
}

static void tell(PyObject *error, struct gad_error *ret)
{
    if (is_bad_block(error)) {
        ret->status = GAD_BAD_BLOCK;
        copy_text(error, "expected", ret->expected, sizeof(ret->expected));
        copy_text(error, "found", ret->found, sizeof(ret->found));
        copy_text(error, "message", ret->message, sizeof(ret->message) - MORE_BYTES);
    } else {
        strcpy(ret->message, "the function raised ");
        copy_text((PyObject *)Py_TYPE(error), "__name__", ret->message, 100);
        strcat(ret->message, ": ");
        copy_text(error, NULL, ret->message, sizeof(ret->message) - MORE_BYTES);
    }
}

/* Keeps the exception that is set, if it is the first. */
static void keep_error(struct mapped *mapped, struct gad_error *ret)
{
    PyObject *error = blocks_fetch_error();
    if (!error)
        return;
    tell(error, ret);
    if (mapped->error)
        Py_DECREF(error);
    else
        mapped->error = error;
}

static bool are_kept(PyObject *const *blocks, Py_ssize_t n)
{
    if (!blocks_are_viewed(blocks, n))
        return false;
    PyGC_Collect();
    return blocks_are_viewed(blocks, n);
}

static PyObject *call_with(struct mapped *mapped, const struct gad_function_call *call,
                           PyObject **blocks)
{
    PyObject *inputs = PyTuple_New((Py_ssize_t)call->n_inputs), *done = NULL;
    PyObject *start = base_as_tuple(call->output->ndim, call->output->start);
    for (unsigned i = 0; i <= call->n_inputs; i++) {
        const struct gad_block *typed = i < call->n_inputs ? &call->inputs[i] : call->output;
        blocks[i] = blocks_new_typed(mapped->state, typed, i < call->n_inputs);
        PyObject *view = blocks[i] ? PyMemoryView_FromObject(blocks[i]) : NULL;
        if (!view || !inputs || !start) {
            Py_XDECREF(view);
            break;
        }
        if (i < call->n_inputs) {
            (void)!PyTuple_SetItem(inputs, (Py_ssize_t)i, view);
            continue;
        }
        done = PyObject_CallFunctionObjArgs(mapped->function, inputs, view, start, NULL);
        Py_DECREF(view);
    }
    Py_XDECREF(inputs);
    Py_XDECREF(start);
    return done;
}

static int call_function(struct mapped *mapped, const struct gad_function_call *call)
{
    PyObject *blocks[MAX_INPUTS + 1] = {NULL};
    PyObject *done = call_with(mapped, call, blocks);
    int r = done ? 0 : EIO;
    if (!done)
        keep_error(mapped, call->error);
    Py_XDECREF(done);
    Py_ssize_t n = 0;
    while (n <= (Py_ssize_t)call->n_inputs && blocks[n])
        n++;
    if (r == 0 && are_kept(blocks, n)) {
        PyErr_SetString(PyExc_BufferError,
                        "a view of the block was kept after the call: keep a copy");
        keep_error(mapped, call->error);
        r = EIO;
    }
    while (n > 0)
        Py_DECREF(blocks[--n]);
    return r;
}

static int call_from_library(void *data, const struct gad_function_call *call)
{
    struct mapped *mapped = data;
    PyThreadState *own = base_enter(mapped->interpreter);
    if (!own)
        return ENOMEM;
    int r = ECANCELED;
    if (!mapped->state->is_ending) {
        blocks_count_call(mapped->state);
        r = call_function(mapped, call);
        blocks_uncount_call(mapped->state);
    }
    base_leave(own);
    return r;
}

static void give_up(void *data)
{
    struct mapped *mapped = data;
    mapped->bag->keeps[1] = mapped->error;
    link_push_release(&mapped->session->link.garbage, &mapped->bag->release);
    free(mapped);
}

/* Making --------------------------------------------------------------------------------------- */

struct input_form {
    int64_t depth[GAD_MAX_NDIM];
    int axes[GAD_MAX_NDIM];
};

struct form {
    struct gad_layout layout;
    int64_t shape[GAD_MAX_NDIM], block[GAD_MAX_NDIM];
    struct gad_function function;
    Py_ssize_t n_inputs;
    struct gad_function_input inputs[MAX_INPUTS];
    struct input_form forms[MAX_INPUTS];
};

/* (Array, depths, axes) */
static bool read_input(struct session *session, PyObject *entry, struct form *form, Py_ssize_t i)
{
    struct gad_function_input *input = &form->inputs[i];
    struct input_form *own = &form->forms[i];
    int64_t axes[GAD_MAX_NDIM];
    PyObject *item, *depth, *along;
    if (!PyArg_ParseTuple(entry, "OOO", &item, &depth, &along))
        return false;
    if (!Py_IS_TYPE(item, session->state->array_type) ||
        ((struct array *)item)->session != session) {
        PyErr_SetString(PyExc_TypeError, "an input is no array of this session");
        return false;
    }
    input->array = ((struct array *)item)->array;
    int ndim = gad_array_info(input->array)->ndim;
    if (make_read_numbers(session->state, depth, own->depth) != ndim ||
        make_read_numbers(session->state, along, axes) != ndim) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "one depth and one axis for each of an input's axes");
        return false;
    }
    for (int k = 0; k < ndim; k++)
        own->axes[k] = axes[k] < -1 || axes[k] >= GAD_MAX_NDIM ? -2 : (int)axes[k];
    input->depth = own->depth;
    input->axes = own->axes;
    return true;
}

static bool read_inputs(struct session *session, PyObject *inputs, struct form *form)
{
    form->n_inputs = PyTuple_Check(inputs) ? PyTuple_Size(inputs) : MAX_INPUTS + 1;
    if (form->n_inputs > MAX_INPUTS) {
        PyErr_SetString(PyExc_ValueError, "a tuple of at most 64 inputs is wanted");
        return false;
    }
    for (Py_ssize_t i = 0; i < form->n_inputs; i++)
        if (!read_input(session, PyTuple_GetItem(inputs, i), form, i))
            return false;
    form->function.n_inputs = (unsigned)form->n_inputs;
    form->function.inputs = form->inputs;
    return true;
}

static bool read_form(struct session *session, PyObject *const *args, struct form *form)
{
    form->layout.shape = form->shape;
    form->layout.ndim = make_read_numbers(session->state, args[1], form->shape);
    if (form->layout.ndim < 0 || !make_read_typestr(session->state, args[0], &form->layout))
        return false;
    if (args[2] != Py_None) {
        if (make_read_numbers(session->state, args[2], form->block) != form->layout.ndim) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "one size of blocks for each axis");
            return false;
        }
        form->function.block = form->block;
    }
    long mode = PyLong_AsLong(args[4]), n_threads = PyLong_AsLong(args[5]);
    form->function.in_order = PyObject_IsTrue(args[7]) > 0;
    if (PyErr_Occurred() || !read_inputs(session, args[3], form))
        return false;
    form->function.mode = (enum gad_pad_mode)mode;
    form->function.n_threads = (unsigned)n_threads;
    return true;
}

static struct mapped *mapped_new(struct session *session, PyObject *function, PyObject *inputs)
{
    struct mapped *mapped = calloc(1, sizeof(*mapped));
    struct work *bag = calloc(1, sizeof(*bag));
    PyObject *kept = PyTuple_Pack(2, function, inputs);
    if (!mapped || !bag || !kept) {
        free(mapped);
        free(bag);
        Py_XDECREF(kept);
        return (struct mapped *)PyErr_NoMemory();
    }
    bag->release.work = bag;
    bag->keeps[0] = kept;
    *mapped = (struct mapped){.bag = bag,
                              .function = function,
                              .session = session,
                              .state = session->state,
                              .interpreter = PyInterpreterState_Get()};
    return mapped;
}

/* typestr, shape, block or None, inputs, mode, threads, function, whether blocks come in order */
PyObject *mapped_make(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct gad_error error;
    struct form form = {.function.call = call_from_library, .function.free = give_up};
    struct array *array = NULL;
    if (!make_has_count("from_function", n, 8) || !session_check(session) ||
        !read_form(session, args, &form) || !(array = array_new(session)))
        return NULL;
    array->mapped = mapped_new(session, args[6], args[3]);
    array->viewed = array->mapped ? Py_NewRef(args[3]) : NULL;
    if (!array->mapped) {
        Py_DECREF((PyObject *)array);
        return NULL;
    }
    form.function.data = array->mapped;
    struct section section = session_enter(session, false);
    bool is_refused = session_is_closed(session, &error) ||
                      gad_array_from_function(session->link.client, &form.layout, &form.function,
                                              &array->array, &error) != GAD_OK;
    if (!is_refused)
        array_joined(array);
    else
        give_up(array->mapped);
    session_leave(session, section);
    if (!is_refused)
        return (PyObject *)array;
    array->mapped = NULL;
    error_raise(session->state, &error);
    Py_DECREF((PyObject *)array);
    return NULL;
}

PyObject *mapped_take_error(struct mapped *mapped)
{
    PyObject *error = mapped->error;
    mapped->error = NULL;
    return error;
}
