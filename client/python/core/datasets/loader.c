/* The Python type Loader: batches of a dataset, made ahead by the library.
 *
 * It is made in a section of its session, whose arrays it reads, and counts as one of what the
 * session's connection is kept for. After that the library's loader is apart from the client, with
 * a lock of its own here: several threads may take batches, each gets other ones. Waiting is in
 * pieces, between which signals are looked at.
 *
 * Parts of batches hold the loader. In a child of fork() there are neither its threads nor its
 * lock: nothing is touched, and its memory stays as it is.
 */
#include "core/datasets/loader.h"
#include "core/request.h"
#include "core/wait.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_MS 100

/* Making --------------------------------------------------------------------------------------- */

struct wanted {
    struct gad_loader_options options;
    struct gad_dataset_part parts[REQUEST_MAX_ARGS];
    struct gad_transform transforms[REQUEST_MAX_OUTPUTS];
    unsigned n_parts;
};

/* parts: a tuple of (name, Array). */
static bool read_parts(struct loader *loader, PyObject *parts, struct wanted *wanted)
{
    Py_ssize_t n = PyTuple_Check(parts) ? PyTuple_Size(parts) : 0;
    PyTypeObject *array_type = loader->session->state->array_type;
    if (n < 1 || n > REQUEST_MAX_ARGS) {
        error_raise_own(loader->session->state, GAD_BAD_ARGUMENT, "parts", "1 to 64 parts", NULL,
                        "a dataset has 1 to %d parts, not %zd", REQUEST_MAX_ARGS, n);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *pair = PyTuple_GetItem(parts, i), *array;
        const char *name;
        if (!PyArg_ParseTuple(pair, "sO!", &name, array_type, &array))
            return false;
        wanted->parts[i] = (struct gad_dataset_part){name, ((struct array *)array)->array};
    }
    wanted->n_parts = (unsigned)n;
    return true;
}

static bool read_options(PyObject *tuple, struct gad_loader_options *options)
{
    long long batch_size;
    unsigned long long seed, memory, scratch_bytes;
    int shuffle, drops, skips;
    if (!PyArg_ParseTuple(tuple, "LiKpIIIKzKzpz", &batch_size, &shuffle, &seed, &drops,
                          &options->rank, &options->world, &options->prefetch, &memory,
                          &options->scratch, &scratch_bytes, &options->plan, &skips,
                          &options->engine))
        return false;
    options->batch_size = batch_size;
    options->shuffle = (enum gad_shuffle)shuffle;
    options->seed = seed;
    options->drop_last = drops;
    options->memory_bytes = memory;
    options->scratch_bytes = scratch_bytes;
    options->skips_errors = skips;
    return true;
}

static bool make(struct loader *loader, struct wanted *wanted)
{
    struct session *session = loader->session;
    struct gad_error error;
    struct section section = session_enter(session, true);
    bool is_refused =
        session_is_closed(session, &error) ||
        gad_dataset_new(session->link.client, wanted->n_parts, wanted->parts, &loader->dataset,
                        &error) != GAD_OK ||
        gad_loader_new(loader->dataset, &wanted->options, &loader->loader, &error) != GAD_OK;
    if (loader->dataset)
        session->link.n_holders++;
    link_talked(&session->link);
    session_leave(session, section);
    if (is_refused && strcmp(error.argument, "memory_bytes") == 0)
        strcpy(error.argument, "memory"); /* as it is called here */
    if (is_refused)
        error_raise(session->state, &error);
    return !is_refused;
}

static struct loader *new_loader(struct session *session)
{
    struct loader *loader = (struct loader *)base_new_object(session->state->loader_type);
    if (!loader)
        return NULL;
    loader->generation = base_generation();
    loader->session = session;
    Py_INCREF((PyObject *)session);
    pthread_mutex_init(&loader->mutex, NULL);
    return loader;
}

PyObject *loader_make(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct wanted wanted = {0};
    struct request request = {0};
    if (n != 4) {
        PyErr_Format(PyExc_TypeError, "loader() takes 4 arguments (%zd given)", n);
        return NULL;
    }
    if (!session_check(session))
        return NULL;
    struct loader *loader = new_loader(session);
    /* Transforms are read as a job's outputs are: (expression, part, None). */
    bool is_good = loader && read_parts(loader, args[0], &wanted) &&
                   request_init(&request, session, args[1], args[2], NULL, NULL, NULL) &&
                   read_options(args[3], &wanted.options);
    if (is_good) {
        for (unsigned i = 0; i < request.options.n_outputs; i++)
            wanted.transforms[i] = (struct gad_transform){.part = request.outputs[i].name,
                                                          .expression = request.outputs[i].expr};
        wanted.options.n_transforms = request.options.n_outputs;
        wanted.options.transforms = wanted.transforms;
        wanted.options.n_args = request.options.n_args;
        wanted.options.args = request.args;
        loader->parts = args[0];
        Py_INCREF(args[0]);
        loader->arguments = request.arg_tuple;
        Py_INCREF(request.arg_tuple);
        is_good = make(loader, &wanted);
    }
    request_deinit(&request);
    if (!is_good)
        Py_CLEAR(loader);
    return (PyObject *)loader;
}

static void loader_dealloc(PyObject *self)
{
    struct loader *loader = (struct loader *)self;
    struct session *session = loader->session;
    if (loader->dataset && loader->generation == base_generation()) {
        struct section section = session_enter(session, true);
        gad_loader_free(loader->loader);
        gad_dataset_free(loader->dataset);
        session->link.n_holders--;
        session_leave(session, section);
        pthread_mutex_destroy(&loader->mutex);
    }
    Py_XDECREF(loader->parts);
    Py_XDECREF(loader->arguments);
    Py_DECREF((PyObject *)session);
    base_free_object(self);
}

/* Batches -------------------------------------------------------------------------------------- */

static bool is_ours(struct loader *loader)
{
    if (loader->generation == base_generation())
        return true;
    error_raise_own(loader->session->state, GAD_NO_DAEMON, NULL, NULL, NULL,
                    "this loader belongs to process %ld, the parent of this one",
                    loader->session->pid);
    return false;
}

/* Between these nothing of Python may be touched. */
static PyThreadState *enter(struct loader *loader)
{
    PyThreadState *saved = PyEval_SaveThread();
    pthread_mutex_lock(&loader->mutex);
    return saved;
}

static void leave(struct loader *loader, PyThreadState *saved)
{
    pthread_mutex_unlock(&loader->mutex);
    PyEval_RestoreThread(saved);
}

/* next(wait): a batch; None: the epoch is over; False: none is ready, of those who do not wait. */
static PyObject *loader_next(PyObject *self, PyObject *waits)
{
    struct loader *loader = (struct loader *)self;
    int may_wait = PyObject_IsTrue(waits);
    while (may_wait >= 0 && is_ours(loader)) {
        struct gad_batch *batch = NULL;
        struct gad_error error;
        PyThreadState *saved = enter(loader);
        enum gad_status status =
            gad_loader_next(loader->loader, may_wait ? PIECE_MS : 0, &batch, &error);
        leave(loader, saved);
        if (status == GAD_OK && batch)
            return part_tuple(loader, batch);
        if (status == GAD_OK)
            Py_RETURN_NONE;
        if (status != GAD_TIMEOUT)
            return error_raise(loader->session->state, &error);
        if (!may_wait)
            Py_RETURN_FALSE;
        if (PyErr_CheckSignals())
            break;
    }
    return NULL;
}

static PyObject *loader_batch(PyObject *self, PyObject *number)
{
    struct loader *loader = (struct loader *)self;
    unsigned long long k = PyLong_AsUnsignedLongLong(number);
    struct gad_batch *batch = NULL;
    struct gad_error error;
    if ((k == ULLONG_MAX && PyErr_Occurred()) || !is_ours(loader))
        return NULL;
    PyThreadState *saved = enter(loader);
    enum gad_status status = gad_loader_batch(loader->loader, k, &batch, &error);
    leave(loader, saved);
    return status ? error_raise(loader->session->state, &error) : part_tuple(loader, batch);
}

/* State ---------------------------------------------------------------------------------------- */

static PyObject *loader_set_epoch(PyObject *self, PyObject *number)
{
    struct loader *loader = (struct loader *)self;
    unsigned long long epoch = PyLong_AsUnsignedLongLong(number);
    if ((epoch == ULLONG_MAX && PyErr_Occurred()) || !is_ours(loader))
        return NULL;
    PyThreadState *saved = enter(loader);
    struct gad_error error;
    enum gad_status status = gad_loader_set_epoch(loader->loader, epoch, &error);
    leave(loader, saved);
    if (status)
        return error_raise(loader->session->state, &error);
    Py_RETURN_NONE;
}

static PyObject *loader_state(PyObject *self, PyObject *unused)
{
    struct loader *loader = (struct loader *)self;
    char text[GAD_STATE_BYTES];
    struct gad_error error;
    if (!is_ours(loader))
        return NULL;
    PyThreadState *saved = enter(loader);
    enum gad_status status = gad_loader_state(loader->loader, text, &error);
    leave(loader, saved);
    if (status)
        return error_raise(loader->session->state, &error);
    return PyUnicode_FromString(text);
}

static PyObject *loader_load_state(PyObject *self, PyObject *state)
{
    struct loader *loader = (struct loader *)self;
    const char *text = PyUnicode_AsUTF8AndSize(state, NULL);
    struct gad_error error;
    if (!text || !is_ours(loader))
        return NULL;
    PyThreadState *saved = enter(loader);
    enum gad_status status = gad_loader_load_state(loader->loader, text, &error);
    leave(loader, saved);
    if (status)
        return error_raise(loader->session->state, &error);
    Py_RETURN_NONE;
}

static PyObject *loader_explain(PyObject *self, PyObject *unused)
{
    struct loader *loader = (struct loader *)self;
    char *text = NULL;
    struct gad_error error;
    if (!is_ours(loader))
        return NULL;
    PyThreadState *saved = enter(loader);
    enum gad_status status = gad_loader_explain(loader->loader, &text, &error);
    leave(loader, saved);
    if (status)
        return error_raise(loader->session->state, &error);
    PyObject *made = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    free(text);
    return made;
}

static PyObject *loader_get_length(PyObject *self, void *unused)
{
    return PyLong_FromUnsignedLongLong(gad_loader_length(((struct loader *)self)->loader));
}

static PyObject *loader_get_skipped(PyObject *self, void *unused)
{
    return PyLong_FromUnsignedLongLong(gad_loader_skipped(((struct loader *)self)->loader));
}

/* The type ------------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"next", loader_next, METH_O,
     "next(waits, /)\n--\n\n(number, rows as bytes, parts); None: the epoch is over; False: not "
     "ready."},
    {"batch", loader_batch, METH_O, "batch(k, /)\n--\n\nAny batch of the epoch, by itself."},
    {"set_epoch", loader_set_epoch, METH_O, "set_epoch(epoch, /)\n--\n\nFrom its beginning."},
    {"state", loader_state, METH_NOARGS, "state()\n--\n\nWhere it is: JSON."},
    {"load_state", loader_load_state, METH_O, "load_state(state, /)\n--\n\nGoes there."},
    {"explain", loader_explain, METH_NOARGS, "explain()\n--\n\nThe plan, for a reader."},
    {NULL},
};

static PyGetSetDef properties[] = {
    {"length", loader_get_length, NULL, "Batches of an epoch."},
    {"skipped", loader_get_skipped, NULL, "Batches that were left out."},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)"Batches of a dataset. Made by Session.loader()."},
    {Py_tp_dealloc, loader_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0},
};

static PyType_Spec spec = {
    .name = "gpuarrayd._core.Loader",
    .basicsize = sizeof(struct loader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyTypeObject *loader_add_type(PyObject *module, struct module_state *state)
{
    return state->loader_type = base_add_type(module, &spec);
}
