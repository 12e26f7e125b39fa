/* Methods of Session that decompose matrices.
 *
 * Data are the expressions of the first outputs and the arguments, as of jobs; small arrays come
 * back as (shape, bytes of float64).
 */
#include "core/linalg/decompose.h"
#include "core/linalg/loop.h"
#include "core/linalg/tensor.h"
#include "core/make.h"

#include <string.h>

enum kind { SVD, PCA, EIGH, QR, COV };

struct call {
    struct tensor_data data;
    struct loop loop;
    struct gad_linalg_plan plan;
    struct gad_error error;
};

/* A dense array, None of what there is not. */
static PyObject *dense_or_none(const struct gad_dense *dense)
{
    return dense->data ? loop_dense(dense) : Py_NewRef(Py_None);
}

static bool begin(struct call *call, PyObject *self, PyObject *const *args, PyObject *callback,
                  PyObject *explains, struct gad_linalg_run *ret_run)
{
    int is_plan = PyObject_IsTrue(explains);
    if (is_plan < 0)
        return false;
    *ret_run = call->data.run;
    if (!loop_begin(&call->loop, (struct session *)self, callback, ret_run))
        return false;
    ret_run->plan = is_plan ? &call->plan : NULL;
    return true;
}

static PyObject *svd_result(const struct gad_svd_result *result)
{
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:d,s:O,s:I,s:O,s:N,s:d,s:s}", "s", loop_dense(&result->s), "vectors",
        dense_or_none(&result->vectors), "mean", dense_or_none(&result->mean), "squares",
        result->squares, "has_u", result->has_u ? Py_True : Py_False, "iterations",
        result->n_iterations, "converged", result->is_converged ? Py_True : Py_False, "reads",
        loop_reads(&result->reads), "seconds", result->seconds, "warning", result->warning);
}

/* kind, (k, values_only, n_iterations, n_oversamples, seed, tolerance, checkpoint). */
static bool read_options(PyObject *tuple, struct gad_svd_options *options)
{
    long long k, n_oversamples;
    unsigned long long seed;
    int values_only;
    if (!PyArg_ParseTuple(tuple, "LpILKdz", &k, &values_only, &options->n_iterations,
                          &n_oversamples, &seed, &options->tolerance, &options->checkpoint))
        return false;
    options->k = k;
    options->values_only = values_only;
    options->n_oversamples = n_oversamples;
    options->seed = seed;
    return true;
}

static PyObject *run_svd(struct call *call, PyObject *self, PyObject *const *args, long kind,
                         struct gad_svd_options *options)
{
    struct gad_svd_result result = {.n_rows = 0};
    const struct gad_output *output = &call->data.request.outputs[0];
    options->to = output->to;
    options->to_path = output->to_path;
    options->storage = output->storage;
    if (!begin(call, self, args, args[7], args[8], &options->run))
        return NULL;
    struct gad_client *client = ((struct session *)self)->link.client;
    const struct gad_operand *x = &call->data.operand;
    enum gad_status status = kind == EIGH  ? gad_eigh(client, x, options, &result, &call->error)
                             : kind == PCA ? gad_pca(client, x, options, &result, &call->error)
                                           : gad_svd(client, x, options, &result, &call->error);
    PyObject *made = NULL;
    if (loop_end(&call->loop, status, &call->error))
        made = options->run.plan ? loop_plan(&call->plan) : svd_result(&result);
    gad_svd_result_deinit(&result);
    return made;
}

/* R; or sums of products and the mean. */
static PyObject *run_triangle(struct call *call, PyObject *self, PyObject *const *args, long kind)
{
    struct gad_dense made_of = {.ndim = 0}, mean = {.ndim = 0};
    struct gad_linalg_run run;
    if (!begin(call, self, args, args[7], args[8], &run))
        return NULL;
    struct gad_client *client = ((struct session *)self)->link.client;
    const struct gad_operand *x = &call->data.operand;
    enum gad_status status = kind == COV ? gad_cov(client, x, &run, &made_of, &mean, &call->error)
                                         : gad_qr_r(client, x, &run, &made_of, &call->error);
    PyObject *made = NULL;
    if (loop_end(&call->loop, status, &call->error))
        made = run.plan ? loop_plan(&call->plan) : loop_dense(&made_of);
    gad_dense_deinit(&made_of);
    gad_dense_deinit(&mean);
    return made;
}

PyObject *decompose_matrix(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct call call = {.plan = {.n_iterations = 0}};
    struct gad_svd_options options = {.size = sizeof(options)};
    PyObject *made = NULL;
    long kind;
    if (!make_has_count("decompose", n, 9))
        return NULL;
    if (tensor_data_init(&call.data, (struct session *)self, args) &&
        PyArg_ParseTuple(args[5], "l", &kind) && read_options(args[6], &options))
        made = kind == QR || kind == COV ? run_triangle(&call, self, args, kind)
                                         : run_svd(&call, self, args, kind, &options);
    tensor_data_deinit(&call.data);
    return made;
}

#define MOST_RIDGES 4096

/* A sequence of numbers from 0 on. */
static bool read_ridges(PyObject *sequence, double *ret_ridges, unsigned *ret_n)
{
    Py_ssize_t n = PySequence_Size(sequence);
    if (n < 0 || n > MOST_RIDGES)
        return PyErr_Format(PyExc_ValueError, "at most %d ridges", MOST_RIDGES), false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *one = PySequence_GetItem(sequence, i);
        ret_ridges[i] = one ? PyFloat_AsDouble(one) : -1;
        Py_XDECREF(one);
        if (PyErr_Occurred())
            return false;
    }
    *ret_n = (unsigned)n;
    return true;
}

/* outputs: a and b. (rcond, ridges). */
PyObject *decompose_lstsq(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct call call = {.plan = {.n_iterations = 0}};
    struct gad_lstsq_options options = {.size = sizeof(options)};
    struct gad_lstsq_result result = {.rank = 0};
    double ridges[MOST_RIDGES];
    PyObject *made = NULL, *sequence;
    if (!make_has_count("lstsq", n, 7))
        return NULL;
    if (tensor_data_init(&call.data, (struct session *)self, args) &&
        PyArg_ParseTuple(args[5], "dO", &options.rcond, &sequence) &&
        read_ridges(sequence, ridges, &options.n_ridges) &&
        begin(&call, self, args, Py_None, args[6], &options.run)) {
        struct gad_operand b = tensor_operand(&call.data, 1);
        options.ridges = ridges;
        enum gad_status status = gad_lstsq(((struct session *)self)->link.client,
                                           &call.data.operand, &b, &options, &result, &call.error);
        if (loop_end(&call.loop, status, &call.error))
            made = options.run.plan
                       ? loop_plan(&call.plan)
                       : Py_BuildValue("NNLN", loop_dense(&result.x), loop_dense(&result.residuals),
                                       (long long)result.rank, loop_dense(&result.s));
    }
    gad_lstsq_result_deinit(&result);
    tensor_data_deinit(&call.data);
    return made;
}
