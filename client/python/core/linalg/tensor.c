/* Methods of Session that decompose tensors.
 *
 * Data are an expression and its arguments, as of jobs; factors come and go as buffers of float64.
 */
#include "core/linalg/tensor.h"
#include "core/linalg/loop.h"
#include "core/make.h"
#include "core/methods.h"

#include <string.h>

/* The data ------------------------------------------------------------------------------------- */

struct gad_operand tensor_operand(const struct tensor_data *data, unsigned i)
{
    const struct gad_job_options *options = &data->request.options;
    const char *expr = options->outputs[i].expr;
    for (unsigned j = 0; j < options->n_args; j++)
        if (options->args[j].array && strcmp(options->args[j].name, expr) == 0)
            return (struct gad_operand){.array = options->args[j].array};
    return (struct gad_operand){.expr = expr, .n_args = options->n_args, .args = options->args};
}

bool tensor_data_init(struct tensor_data *data, struct session *session, PyObject *const *args)
{
    *data = (struct tensor_data){.operand = {.array = NULL}};
    if (!session_check(session) ||
        !request_init(&data->request, session, args[0], args[1], args[2], args[3], args[4]))
        return false;
    const struct gad_job_options *options = &data->request.options;
    data->operand = tensor_operand(data, 0);
    data->run = (struct gad_linalg_run){.engine = options->engine,
                                        .priority = options->priority,
                                        .label = options->label,
                                        .queue_timeout_ms = options->queue_timeout_ms,
                                        .deadline_ms = options->deadline_ms};
    return true;
}

void tensor_data_deinit(struct tensor_data *data)
{
    request_deinit(&data->request);
}

/* Factors -------------------------------------------------------------------------------------- */

/* Of Python: (is_tucker, core, factor, factor, ...), buffers of float64 in C order. */
struct given {
    struct gad_factors factors;
    Py_buffer buffers[1 + GAD_MAX_FACTORS];
    int n_buffers;
};

static void given_deinit(struct given *given)
{
    for (int i = 0; i < given->n_buffers; i++)
        PyBuffer_Release(&given->buffers[i]);
}

static bool read_dense(struct given *given, PyObject *object, struct gad_dense *dense)
{
    Py_buffer *buffer = &given->buffers[given->n_buffers];
    if (PyObject_GetBuffer(object, buffer, PyBUF_ND | PyBUF_FORMAT) < 0)
        return false;
    given->n_buffers++;
    if (buffer->ndim > GAD_MAX_NDIM || !buffer->format || strcmp(buffer->format, "d") != 0) {
        PyErr_SetString(PyExc_TypeError, "a factor: float64 in C order is wanted");
        return false;
    }
    *dense = (struct gad_dense){.ndim = buffer->ndim, .data = buffer->buf};
    for (int i = 0; i < buffer->ndim; i++)
        dense->shape[i] = buffer->shape[i];
    return true;
}

static bool given_init(struct given *given, PyObject *tuple)
{
    *given = (struct given){.n_buffers = 0};
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;
    if (n < 3 || n > 2 + GAD_MAX_FACTORS) {
        PyErr_Format(PyExc_TypeError, "factors: 1 to %d of them, not %zd", GAD_MAX_FACTORS, n - 2);
        return false;
    }
    given->factors.is_tucker = PyTuple_GetItem(tuple, 0) == Py_True;
    given->factors.ndim = (int)n - 2;
    if (!read_dense(given, PyTuple_GetItem(tuple, 1), &given->factors.core))
        return false;
    for (int i = 0; i < given->factors.ndim; i++)
        if (!read_dense(given, PyTuple_GetItem(tuple, 2 + i), &given->factors.factors[i]))
            return false;
    return true;
}

/* To Python: (core, [factor ...], dict). */
static PyObject *result_of(const struct gad_tensor_result *result)
{
    PyObject *factors = PyList_New(0);
    for (int i = 0; factors && i < result->factors.ndim; i++) {
        PyObject *one = loop_dense(&result->factors.factors[i]);
        if (!one || PyList_Append(factors, one) < 0)
            Py_CLEAR(factors);
        Py_XDECREF(one);
    }
    if (!factors)
        return NULL;
    return Py_BuildValue(
        "(NN{s:s,s:d,s:d,s:I,s:O,s:O,s:d,s:N,s:d,s:s})", loop_dense(&result->factors.core), factors,
        "dtype", gad_dtype_name(result->dtype), "norm", result->norm, "relative_error",
        result->relative_error, "iterations", result->n_iterations, "converged",
        result->is_converged ? Py_True : Py_False, "stopped",
        result->is_stopped ? Py_True : Py_False, "ridge_added", result->ridge_added, "reads",
        loop_reads(&result->reads), "seconds", result->seconds, "warning", result->warning);
}

/* Methods -------------------------------------------------------------------------------------- */

/* CP or Tucker: exactly one of the options. */
static PyObject *decompose(struct session *session, struct tensor_data *data,
                           struct gad_cp_options *cp, struct gad_tucker_options *tucker,
                           PyObject *callback, bool explains)
{
    struct gad_client *client = session->link.client;
    struct gad_tensor_result result = {.norm = 0};
    struct gad_linalg_plan plan = {.n_iterations = 0};
    struct gad_error error = {0};
    struct loop loop;
    enum gad_status status;
    if (!loop_begin(&loop, session, callback, cp ? &cp->run : &tucker->run))
        return NULL;
    client = session->link.client;
    if (cp)
        status = explains ? gad_cp_explain(client, &data->operand, cp, &plan, &error)
                          : gad_cp(client, &data->operand, cp, &result, &error);
    else
        status = explains ? gad_tucker_explain(client, &data->operand, tucker, &plan, &error)
                          : gad_tucker(client, &data->operand, tucker, &result, &error);
    PyObject *made = NULL;
    if (loop_end(&loop, status, &error))
        made = explains ? loop_plan(&plan) : result_of(&result);
    gad_tensor_result_deinit(&result);
    return made;
}

PyObject *tensor_cp(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct gad_cp_options options = {.size = sizeof(options)};
    struct tensor_data data = {.operand = {.array = NULL}};
    long long rank;
    unsigned long long seed;
    int nonnegative, init, explains;
    PyObject *made = NULL;
    if (!make_has_count("cp", n, 8))
        return NULL;
    if (tensor_data_init(&data, (struct session *)self, args) &&
        PyArg_ParseTuple(args[5], "LpdiKIdz", &rank, &nonnegative, &options.ridge, &init, &seed,
                         &options.n_iterations, &options.tolerance, &options.checkpoint) &&
        (explains = PyObject_IsTrue(args[7])) >= 0) {
        options.rank = rank;
        options.nonnegative = nonnegative;
        options.init = (enum gad_cp_init)init;
        options.seed = seed;
        options.run = data.run;
        made = decompose((struct session *)self, &data, &options, NULL, args[6], explains);
    }
    tensor_data_deinit(&data);
    return made;
}

static bool read_ranks(PyObject *tuple, int64_t *ret_ranks)
{
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    if (n < 0 || n > GAD_MAX_FACTORS) {
        PyErr_Format(PyExc_TypeError, "ranks: a tuple of at most %d", GAD_MAX_FACTORS);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        ret_ranks[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (ret_ranks[i] == -1 && PyErr_Occurred())
            return false;
    }
    return true;
}

PyObject *tensor_tucker(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct gad_tucker_options options = {.size = sizeof(options)};
    struct tensor_data data = {.operand = {.array = NULL}};
    unsigned long long seed;
    int explains;
    PyObject *ranks, *made = NULL;
    if (!make_has_count("tucker", n, 8))
        return NULL;
    if (tensor_data_init(&data, (struct session *)self, args) &&
        PyArg_ParseTuple(args[5], "OdKIz", &ranks, &options.tolerance, &seed, &options.n_reads,
                         &options.checkpoint) &&
        read_ranks(ranks, options.ranks) && (explains = PyObject_IsTrue(args[7])) >= 0) {
        options.seed = seed;
        options.run = data.run;
        made = decompose((struct session *)self, &data, NULL, &options, args[6], explains);
    }
    tensor_data_deinit(&data);
    return made;
}

/* The data, factors, and for the right side of one axis which; else is_error. */
static PyObject *compare(PyObject *self, PyObject *const *args, bool is_error, long mode)
{
    struct session *session = (struct session *)self;
    struct tensor_data data = {.operand = {.array = NULL}};
    struct given given = {.n_buffers = 0};
    struct gad_dense dense = {.ndim = 0};
    struct gad_error error = {0};
    struct loop loop;
    enum gad_status status;
    double relative = 0;
    PyObject *made = NULL;
    if (tensor_data_init(&data, session, args) && given_init(&given, args[5]) &&
        loop_begin(&loop, session, Py_None, &data.run)) {
        struct gad_client *client = session->link.client;
        if (is_error)
            status = gad_relative_error(client, &data.operand, &given.factors, &data.run, &relative,
                                        &error);
        else
            status = gad_mttkrp(client, &data.operand, &given.factors, (int)mode, &data.run, &dense,
                                &error);
        if (loop_end(&loop, status, &error))
            made = is_error ? PyFloat_FromDouble(relative) : loop_dense(&dense);
    }
    gad_dense_deinit(&dense);
    given_deinit(&given);
    tensor_data_deinit(&data);
    return made;
}

PyObject *tensor_mttkrp(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    if (!make_has_count("mttkrp", n, 7))
        return NULL;
    long mode = PyLong_AsLong(args[6]);
    if (mode == -1 && PyErr_Occurred())
        return NULL;
    return compare(self, args, false, mode < -99 || mode > 99 ? 99 : mode);
}

PyObject *tensor_relative_error(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    return make_has_count("relative_error", n, 6) ? compare(self, args, true, 0) : NULL;
}

/* outputs: [("", None, where)], of which where alone is used; factors, whether float32. */
PyObject *tensor_reconstruct(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct tensor_data data = {.operand = {.array = NULL}};
    struct given given = {.n_buffers = 0};
    struct gad_error error = {0};
    struct loop loop;
    PyObject *made = NULL;
    if (!make_has_count("reconstruct", n, 7))
        return NULL;
    if (tensor_data_init(&data, session, args) && given_init(&given, args[5])) {
        const struct gad_output *output = &data.request.outputs[0];
        const struct gad_move_options move = {.to = output->to,
                                              .to_path = output->to_path,
                                              .storage = output->storage,
                                              .engine = data.run.engine,
                                              .priority = data.run.priority,
                                              .label = data.run.label,
                                              .queue_timeout_ms = data.run.queue_timeout_ms,
                                              .deadline_ms = data.run.deadline_ms};
        enum gad_dtype dtype = args[6] == Py_True ? GAD_FLOAT32 : GAD_FLOAT64;
        if (loop_begin(&loop, session, Py_None, &data.run)) {
            struct gad_move_options waited = move;
            waited.is_cancelled = data.run.is_cancelled;
            waited.progress_data = data.run.data;
            enum gad_status status =
                gad_reconstruct(session->link.client, &given.factors, dtype, &waited, NULL, &error);
            if (loop_end(&loop, status, &error))
                made = Py_NewRef(Py_None);
        }
    }
    given_deinit(&given);
    tensor_data_deinit(&data);
    return made;
}
