/* A job's description, from Python's objects to the library's options.
 *
 * Lists are copied into tuples first, and their items must be tuples: another thread may change a
 * list while the library reads the texts without the GIL. The tuples are kept as long as the job
 * runs, and hold its arrays. Nothing is allocated but those tuples and the paths' bytes.
 *
 * Scalars are Python's own: bool, int, float. They are weak, as in NumPy; what has a dtype of its
 * own arrives here as an Array.
 */
#include "core/request.h"

#include <stdio.h>
#include <string.h>

/* Text of the object's own, or NULL with an exception. */
static const char *read_text(PyObject *object, const char *what)
{
    Py_ssize_t size;
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s: a str is wanted, not %R", what, Py_TYPE(object));
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text && strlen(text) != (size_t)size) {
        PyErr_Format(PyExc_ValueError, "%s: a character of value 0", what);
        return NULL;
    }
    return text;
}

static bool read_optional_text(PyObject *object, const char *what, const char **ret)
{
    if (!object || object == Py_None)
        return true;
    *ret = read_text(object, what);
    return *ret;
}

/* The items of an entry of a list. */
static bool open_entry(PyObject *tuple, Py_ssize_t i, Py_ssize_t n, const char *what,
                       PyObject **ret_items)
{
    PyObject *entry = PyTuple_GetItem(tuple, i);
    if (!PyTuple_Check(entry) || PyTuple_Size(entry) != n) {
        PyErr_Format(PyExc_TypeError, "%s %zd: a tuple of %zd is wanted", what, i, n);
        return false;
    }
    for (Py_ssize_t j = 0; j < n; j++)
        ret_items[j] = PyTuple_GetItem(entry, j);
    return true;
}

static bool read_array(struct session *session, PyObject *object, const char *name,
                       struct gad_array **ret)
{
    struct array *array = (struct array *)object;
    *ret = array->array;
    if (array->session == session)
        return true;
    error_raise_own(session->state, GAD_BAD_ARGUMENT, name, "an array of this session", NULL,
                    "%s: the array is of another session", name);
    return false;
}

static bool read_scalar(PyObject *object, struct gad_argument *arg)
{
    if (PyBool_Check(object)) {
        arg->scalar = GAD_SCALAR_BOOL;
        arg->int_value = object == Py_True;
        return true;
    }
    if (PyFloat_Check(object)) {
        arg->scalar = GAD_SCALAR_FLOAT;
        arg->float_value = PyFloat_AsDouble(object);
        return true;
    }
    if (!PyLong_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s: an Array, bool, int or float is wanted, not %R",
                     arg->name, Py_TYPE(object));
        return false;
    }
    int overflow;
    arg->scalar = GAD_SCALAR_INT;
    arg->int_value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (!overflow)
        return true;
    arg->scalar = GAD_SCALAR_UINT;
    arg->uint_value = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : UINT64_MAX;
    if (overflow > 0 && !(arg->uint_value == UINT64_MAX && PyErr_Occurred()))
        return true;
    PyErr_Clear();
    PyErr_Format(PyExc_OverflowError, "%s: the int does not fit 64 bits", arg->name);
    return false;
}

static bool read_arg(struct session *session, PyObject *tuple, Py_ssize_t i,
                     struct gad_argument *arg)
{
    PyObject *items[2];
    if (!open_entry(tuple, i, 2, "argument", items))
        return false;
    *arg = (struct gad_argument){.name = read_text(items[0], "an argument's name")};
    if (!arg->name)
        return false;
    if (Py_IS_TYPE(items[1], session->state->array_type))
        return read_array(session, items[1], arg->name, &arg->array);
    return read_scalar(items[1], arg);
}

static bool read_path(struct request *request, PyObject *object, const char **ret)
{
    PyObject **bytes = &request->paths[request->n_paths];
    if (!PyUnicode_FSConverter(object, bytes))
        return false;
    request->n_paths++;
    *ret = PyBytes_AsString(*bytes);
    return true;
}

/* None, a tuple of sizes, or False. */
static bool read_sizes(PyObject *object, const char *what, int64_t *ret_sizes, int *ret_n)
{
    if (object == Py_None)
        return true;
    if (object == Py_False) {
        *ret_n = GAD_CONTIGUOUS;
        return true;
    }
    Py_ssize_t n = PyTuple_Check(object) ? PyTuple_Size(object) : -1;
    if (n == 0) { /* chosen by the library */
        *ret_n = -1;
        return true;
    }
    if (n < 0 || n > GAD_MAX_NDIM) {
        PyErr_Format(PyExc_TypeError, "%s: a tuple of sizes is wanted, not %R", what, object);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        ret_sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(object, i));
        if (ret_sizes[i] == -1 && PyErr_Occurred())
            return false;
    }
    *ret_n = (int)n;
    return true;
}

/* None, or a tuple of levels, each a tuple of as many sizes. */
static bool read_shards(PyObject *object, struct storage *storage)
{
    struct gad_storage *asked = &storage->asked;
    Py_ssize_t n = object == Py_None ? 0 : PyTuple_Check(object) ? PyTuple_Size(object) : -1;
    if (n < 0 || n > GAD_MAX_SHARD_LEVELS) {
        PyErr_Format(PyExc_TypeError, "shards: up to %d tuples of sizes are wanted, not %R",
                     GAD_MAX_SHARD_LEVELS, object);
        return false;
    }
    for (; asked->n_shard_levels < (unsigned)n; asked->n_shard_levels++) {
        unsigned level = asked->n_shard_levels;
        int n_axes = 0;
        if (!read_sizes(PyTuple_GetItem(object, level), "shards",
                        storage->shards + level * (unsigned)asked->n_shard_axes, &n_axes))
            return false;
        if (level > 0 && n_axes != asked->n_shard_axes) {
            PyErr_Format(PyExc_TypeError, "shards: tuples of one length are wanted, not %R",
                         object);
            return false;
        }
        asked->n_shard_axes = n_axes;
    }
    return true;
}

bool request_read_storage(PyObject *tuple, struct storage *ret_storage)
{
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 6) {
        PyErr_SetString(PyExc_TypeError, "storage: a tuple of 6 is wanted");
        return false;
    }
    ret_storage->asked = (struct gad_storage){
        .chunk_shape = ret_storage->chunks,
        .shard_shape = ret_storage->shards,
        .shuffle = PyTuple_GetItem(tuple, 3) == Py_True,
        .fletcher32 = PyTuple_GetItem(tuple, 4) == Py_True,
        .sync = PyTuple_GetItem(tuple, 5) == Py_True,
    };
    return read_sizes(PyTuple_GetItem(tuple, 0), "chunks", ret_storage->chunks,
                      &ret_storage->asked.n_chunk_axes) &&
           read_shards(PyTuple_GetItem(tuple, 1), ret_storage) &&
           read_optional_text(PyTuple_GetItem(tuple, 2), "compression",
                              &ret_storage->asked.compress);
}

/* (path, storage) */
static bool read_stored_path(struct request *request, PyObject *tuple, struct storage *storage,
                             struct gad_output *output)
{
    if (PyTuple_Size(tuple) != 2) {
        PyErr_SetString(PyExc_TypeError, "output: a path and its storage are wanted");
        return false;
    }
    output->storage = &storage->asked;
    return request_read_storage(PyTuple_GetItem(tuple, 1), storage) &&
           read_path(request, PyTuple_GetItem(tuple, 0), &output->to_path);
}

static bool read_output(struct request *request, struct session *session, Py_ssize_t i,
                        struct gad_output *output)
{
    PyObject *items[3];
    if (!open_entry(request->output_tuple, i, 3, "output", items))
        return false;
    *output = (struct gad_output){.expr = read_text(items[0], "an expression")};
    if (!output->expr || !read_optional_text(items[1], "an output's name", &output->name))
        return false;
    if (items[2] == Py_None)
        return true;
    if (Py_IS_TYPE(items[2], session->state->array_type))
        return read_array(session, items[2], output->name ? output->name : "out", &output->to);
    if (PyTuple_Check(items[2]))
        return read_stored_path(request, items[2], &request->storages[i], output);
    return read_path(request, items[2], &output->to_path);
}

static bool is_within(struct session *session, const char *what, Py_ssize_t n, Py_ssize_t most)
{
    char expected[32], found[32];
    if (n <= most)
        return true;
    snprintf(expected, sizeof(expected), "at most %zd", most);
    snprintf(found, sizeof(found), "%zd", n);
    error_raise_own(session->state, GAD_LIMIT_EXCEEDED, what, expected, found,
                    "a job has at most %zd %s", most, what);
    return false;
}

static bool read_priority(struct session *session, PyObject *object, int *ret)
{
    long priority = object ? PyLong_AsLong(object) : 0;
    if (priority == -1 && PyErr_Occurred())
        return false;
    if (priority < -100 || priority > 100) {
        error_raise_own(session->state, GAD_BAD_ARGUMENT, "priority", "-100 to 100", NULL,
                        "the priority %ld is out of its range", priority);
        return false;
    }
    *ret = (int)priority;
    return true;
}

static bool read_lists(struct request *request, struct session *session)
{
    Py_ssize_t n_args = PyTuple_Size(request->arg_tuple);
    Py_ssize_t n_outputs = PyTuple_Size(request->output_tuple);
    if (!is_within(session, "args", n_args, REQUEST_MAX_ARGS) ||
        !is_within(session, "outputs", n_outputs, REQUEST_MAX_OUTPUTS))
        return false;
    for (Py_ssize_t i = 0; i < n_args; i++)
        if (!read_arg(session, request->arg_tuple, i, &request->args[i]))
            return false;
    for (Py_ssize_t i = 0; i < n_outputs; i++)
        if (!read_output(request, session, i, &request->outputs[i]))
            return false;
    request->options.n_args = (unsigned)n_args;
    request->options.n_outputs = (unsigned)n_outputs;
    return true;
}

/* Of the thread, as they are of whole blocks of Python. */
static _Thread_local unsigned int queue_timeout_ms, deadline_ms;

PyObject *request_set_times(PyObject *module, PyObject *args)
{
    unsigned int queue_ms, end_ms;
    if (!PyArg_ParseTuple(args, "II", &queue_ms, &end_ms))
        return NULL;
    PyObject *before = Py_BuildValue("II", queue_timeout_ms, deadline_ms);
    if (before) {
        queue_timeout_ms = queue_ms;
        deadline_ms = end_ms;
    }
    return before;
}

void request_get_times(uint32_t *ret_queue_timeout_ms, uint32_t *ret_deadline_ms)
{
    *ret_queue_timeout_ms = queue_timeout_ms;
    *ret_deadline_ms = deadline_ms;
}

bool request_init(struct request *request, struct session *session, PyObject *outputs,
                  PyObject *args, PyObject *engine, PyObject *priority, PyObject *label)
{
    request->options = (struct gad_job_options){.args = request->args,
                                                .outputs = request->outputs,
                                                .queue_timeout_ms = queue_timeout_ms,
                                                .deadline_ms = deadline_ms};
    request->n_paths = 0;
    request->output_tuple = PySequence_Tuple(outputs);
    request->arg_tuple = request->output_tuple ? PySequence_Tuple(args) : NULL;
    return request->arg_tuple && read_lists(request, session) &&
           read_optional_text(engine, "engine", &request->options.engine) &&
           read_optional_text(label, "label", &request->options.label) &&
           read_priority(session, priority, &request->options.priority);
}

bool request_add_journal(struct request *request, PyObject *journal)
{
    if (journal == Py_None || journal == Py_False)
        return true;
    request->options.has_journal = true;
    return journal == Py_True || read_path(request, journal, &request->options.journal_path);
}

bool request_add_tf32(struct request *request, PyObject *tf32)
{
    int is_allowed = PyObject_IsTrue(tf32);
    request->options.tf32 = is_allowed > 0;
    return is_allowed >= 0;
}

bool request_add_beyond(struct request *request, PyObject *beyond)
{
    int mode;
    PyObject *value;
    struct gad_argument scalar = {.name = "mode"};
    if (beyond == Py_None)
        return true;
    if (!PyArg_ParseTuple(beyond, "iO", &mode, &value) || !read_scalar(value, &scalar))
        return false;
    request->beyond.mode = (enum gad_pad_mode)mode;
    request->beyond.value.kind = mode == GAD_PAD_CONSTANT ? scalar.scalar : GAD_SCALAR_NONE;
    if (scalar.scalar == GAD_SCALAR_FLOAT)
        request->beyond.value.float_value = scalar.float_value;
    else
        request->beyond.value.uint_value = scalar.uint_value;
    request->options.beyond = &request->beyond;
    return true;
}

void request_deinit(struct request *request)
{
    for (unsigned i = 0; i < request->n_paths; i++)
        Py_DECREF(request->paths[i]);
    Py_XDECREF(request->output_tuple);
    Py_XDECREF(request->arg_tuple);
}

void request_move_tuples(struct request *request, void *ret_keeps[2])
{
    ret_keeps[0] = request->output_tuple;
    ret_keeps[1] = request->arg_tuple;
    request->output_tuple = request->arg_tuple = NULL;
}
