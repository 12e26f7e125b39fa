/* Any bytes as the expressions of a job, separated by '$', over a fixed set of arguments; and each
 * of them alone, since what is wrong in one is not told of others. What lies beyond the ends
 * follows from how many bytes they are.
 *
 * Checked besides the sanitizers' own: a refusal names itself, a program keeps the promises of
 * kernels/program.h, and compiling again for outputs that are there and lie over arguments gives a
 * program too, with the dtypes that were asked for. What is refused is tried once more for outputs
 * of a shape, which index() needs where there are no arrays.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/kernels/expr/validate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define N_ARGS 20

struct job {
    struct request_arg args[N_ARGS];
    struct request_output outputs[REQUEST_MAX_OUTPUTS];
    struct job_request request;
};

static void add_array(struct job *job, const char *name, enum dtype dtype, int ndim, int64_t rows,
                      int64_t columns)
{
    struct request_arg *arg = &job->args[job->request.n_args++];
    strcpy(arg->name, name);
    arg->array = (struct array){.dtype = dtype, .ndim = ndim, .shape = {rows, columns}};
    arg->array.at.kind = LOCATION_REGION;
    array_c_strides(ndim, arg->array.shape, (int64_t)dtype_size(dtype), arg->array.strides);
}

static void add_args(struct job *job)
{
    static const char *const names[DTYPE_COUNT] = {"b",  "i1", "i2", "i4", "i8", "u1",
                                                   "u2", "u4", "u8", "f4", "f8"};
    for (int i = 0; i < DTYPE_COUNT; i++)
        add_array(job, names[i], (enum dtype)i, 2, 3, 4);
    add_array(job, "r", DTYPE_FLOAT64, 1, 4, 0);
    add_array(job, "c", DTYPE_FLOAT32, 2, 3, 1);
    add_array(job, "z", DTYPE_INT32, 1, 0, 0);
    add_array(job, "p", DTYPE_FLOAT32, 0, 0, 0);
    add_array(job, "x", DTYPE_FLOAT64, 2, 400000, 3); /* x @ f8 is larger than what is kept */
    add_array(job, "y", DTYPE_FLOAT32, 2, 400000, 2);
    add_array(job, "v", DTYPE_FLOAT64, 1, 400000, 0);
    struct request_arg *scalar = &job->args[job->request.n_args++];
    strcpy(scalar->name, "k");
    scalar->is_scalar = true;
    scalar->scalar_dtype = DTYPE_INT64;
    scalar->scalar.i64 = -3;
    scalar = &job->args[job->request.n_args++];
    *scalar = scalar[-1];
    strcpy(scalar->name, "h");
    scalar->scalar_dtype = DTYPE_FLOAT64;
    scalar->scalar.f64 = 0.5;
}

/* NULL: refused. */
static struct program *compile(const struct job *job)
{
    struct program *program = NULL;
    struct gad_error error = {0};
    int r = program_compile(&job->request, &program, &error);
    if (r) {
        assert(r > 0 && r == (int)error.status && program == NULL);
        assert(error.message[0] != '\0' && error.argument[0] != '\0');
        return NULL;
    }
    const char *fault = program_validate(&job->request, program);
    assert(fault == NULL);
    char text[256];
    program_print(program, text, sizeof(text));
    assert(strnlen(text, sizeof(text)) < sizeof(text));
    return program;
}

/* As outputs that exist: of float32 and int8 where the result may be cast to that. */
static void compile_in_place(struct job *job, const struct program *first)
{
    for (unsigned i = 0; i < job->request.n_outputs; i++) {
        const struct program_output *result = &first->outputs[i];
        struct array *to = &job->outputs[i].to;
        enum dtype dtype = dtype_is_float(result->dtype) ? DTYPE_FLOAT32 : result->dtype;
        if (dtype_can_cast_same_kind(dtype, DTYPE_INT8))
            dtype = DTYPE_INT8;
        *to = (struct array){.dtype = dtype, .ndim = result->ndim};
        memcpy(to->shape, result->shape, sizeof(to->shape));
        to->at.kind = LOCATION_REGION;
        job->outputs[i].has_to = true;
    }
    struct program *program = compile(job);
    if (program == NULL)
        return; /* casts and copies may be one instruction or register too many */
    for (unsigned i = 0; i < program->n_outputs; i++)
        assert(program->outputs[i].dtype == job->outputs[i].to.dtype);
    program_free(program);
}

static void compile_each(const struct job *job)
{
    for (unsigned i = 0; job->request.n_outputs > 1 && i < job->request.n_outputs; i++) {
        struct job one = {.request = job->request};
        memcpy(one.args, job->args, sizeof(one.args));
        one.outputs[0] = job->outputs[i];
        one.request.args = one.args;
        one.request.outputs = one.outputs;
        one.request.n_outputs = 1;
        program_free(compile(&one));
    }
}

static void compile_into_a_shape(struct job *job)
{
    for (unsigned i = 0; i < job->request.n_outputs; i++) {
        job->outputs[i].has_to = true;
        job->outputs[i].to = (struct array){.dtype = DTYPE_FLOAT64, .ndim = 3, .shape = {2, 3, 4}};
        job->outputs[i].to.at.kind = LOCATION_REGION;
    }
    program_free(compile(job));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct job *job = calloc(1, sizeof(*job));
    char *text = malloc(n_bytes + 1), *at = text, *end = text + n_bytes;
    assert(job != NULL && text != NULL);
    if (n_bytes > 0)
        memcpy(text, data, n_bytes);
    job->request.args = job->args;
    job->request.outputs = job->outputs;
    add_args(job);
    while (job->request.n_outputs < REQUEST_MAX_OUTPUTS) {
        char *stop = memchr(at, '$', (size_t)(end - at));
        struct request_output *output = &job->outputs[job->request.n_outputs++];
        output->expr = at;
        output->n_expr_chars = (size_t)((stop != NULL ? stop : end) - at);
        if (stop == NULL)
            break;
        at = stop + 1;
    }
    job->request.makes_again = n_bytes % 2;
    job->request.beyond.mode = (enum near_mode)(n_bytes % NEAR_N_MODES);
    compile_each(job);
    struct program *program = compile(job);
    if (program != NULL)
        compile_in_place(job, program);
    else
        compile_into_a_shape(job);
    program_free(program);
    free(text);
    free(job);
    return 0;
}
