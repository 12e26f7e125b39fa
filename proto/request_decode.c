/* Decoding a job request.
 *
 * The broker decodes to inspect, compile and plan; the worker decodes the same bytes again with
 * the same code, so both see the same job. What comes out holds no number that was not checked:
 * counts are limited before memory is taken (one allocation for everything, sized by the counts),
 * names are identifiers and occur once, every array has passed array_check(), every descriptor
 * index is valid and used once. Expressions and inline data stay in the message's body.
 *
 * Errors name the argument or output they are about; one that has no name yet is "outputs[i]".
 */
#include "proto/request.h"

#include "proto/array_decode.h"
#include "proto/text.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MIN_PROGRESS_MS 50
#define MAX_PRIORITY    100

_Static_assert(3 * (REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS) + 1 <= FRAME_MAX_FDS,
               "a frame carries the rings of every array, and a journal");
_Static_assert(ARRAY_NAME_SIZE <= sizeof(((struct gad_error *)0)->argument), "a name fits");

static int too_many(const char *what, uint32_t n, unsigned max, struct gad_error *error)
{
    int r = error_set(error, GAD_LIMIT_EXCEEDED, what, "%" PRIu32 " %s are too many", n, what);
    error_expected(error, "at most %u", max);
    error_found(error, "%" PRIu32, n);
    return r;
}

/* Arguments --------------------------------------------------------------------------------- */

static int decode_name(const msgpack_object *key, char *ret_name, struct gad_error *error)
{
    if (key->type != MSGPACK_OBJECT_STR)
        return error_set(error, GAD_BAD_REQUEST, "args", "an argument's name is not a text");
    int shown = (int)min_u64(key->via.str.size, ARRAY_NAME_SIZE - 1);
    if (key->via.str.size >= ARRAY_NAME_SIZE ||
        !text_is_identifier(key->via.str.ptr, key->via.str.size)) {
        char quoted[ARRAY_NAME_SIZE];
        snprintf(quoted, sizeof(quoted), "%.*s", shown, key->via.str.ptr);
        int r = error_set(error, GAD_BAD_REQUEST, quoted, "'%s' cannot be the name of an argument",
                          quoted);
        error_expected(error, "a letter or _, then letters, digits and _, at most %d",
                       ARRAY_NAME_SIZE - 1);
        error_found(error, "%s", quoted);
        return r;
    }
    memcpy(ret_name, key->via.str.ptr, key->via.str.size);
    ret_name[key->via.str.size] = '\0';
    return 0;
}

static int decode_scalar(const msgpack_object *value, const char *name, enum dtype *ret_dtype,
                         union scalar *ret, struct gad_error *error)
{
    switch (value->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        *ret_dtype = DTYPE_BOOL;
        ret->u64 = value->via.boolean;
        return 0;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        *ret_dtype = value->via.u64 > INT64_MAX ? DTYPE_UINT64 : DTYPE_INT64;
        ret->u64 = value->via.u64;
        return 0;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        *ret_dtype = DTYPE_INT64;
        ret->i64 = value->via.i64;
        return 0;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        *ret_dtype = DTYPE_FLOAT64;
        ret->f64 = value->via.f64;
        return 0;
    default: break;
    }
    int r = error_set(error, GAD_BAD_REQUEST, name, "the scalar is not a number");
    error_expected(error, "an integer, a float or a bool");
    return r;
}

struct decoding {
    unsigned n_fds;
    bool is_plan;
    struct used_fds used_fds;
    struct gad_error *error;
};

static int decode_arg(struct decoding *d, const msgpack_object_kv *pair, struct request_arg *arg)
{
    int r = decode_name(&pair->key, arg->name, d->error);
    if (r)
        return r;
    const msgpack_object *scalar = map_find(&pair->val, "scalar");
    arg->is_scalar = scalar != NULL;
    if (scalar != NULL)
        return decode_scalar(scalar, arg->name, &arg->scalar_dtype, &arg->scalar, d->error);
    return array_decode_with(&pair->val, arg->name, d->n_fds, &d->used_fds, !d->is_plan,
                             &arg->array, d->error);
}

static int decode_args(struct decoding *d, const msgpack_object *args, struct job_request *request)
{
    for (unsigned i = 0; i < request->n_args; i++) {
        int r = decode_arg(d, &args->via.map.ptr[i], &request->args[i]);
        if (r)
            return r;
        const char *name = request->args[i].name;
        for (unsigned j = 0; j < i; j++)
            if (strcmp(request->args[j].name, name) == 0)
                return error_set(d->error, GAD_BAD_REQUEST, name, "there are two arguments '%s'",
                                 name);
    }
    return 0;
}

/* One axis of the job is open: its arrays have it in common. */
static int set_open_length(struct job_request *request, struct gad_error *error)
{
    for (unsigned i = 0; i < request->n_args; i++) {
        const struct request_arg *arg = &request->args[i];
        if (arg->is_scalar || !arg->array.is_open)
            continue;
        int64_t length = arg->array.shape[0];
        if (request->open_length == 0)
            request->open_length = length;
        if (request->open_length == length)
            continue;
        int r = error_set(error, GAD_BAD_REQUEST, arg->name,
                          "open arrays of one job may have equally many rows at most");
        error_expected(error, "%" PRId64, request->open_length);
        error_found(error, "%" PRId64, length);
        return r;
    }
    return 0;
}

/* Outputs ------------------------------------------------------------------------------------ */

/* Every job passes here several times: no printf. */
const char *request_output_name(const struct request_output *output, unsigned index,
                                char buffer[static REQUEST_UNNAMED_SIZE])
{
    static const char start[] = "outputs[";
    char *at = buffer + sizeof(start) - 1;
    if (output->name[0] != '\0')
        return output->name;
    assert(index < REQUEST_MAX_OUTPUTS);
    memcpy(buffer, start, sizeof(start));
    if (index >= 10)
        *at++ = (char)('0' + index / 10);
    *at++ = (char)('0' + index % 10);
    *at++ = ']';
    *at = '\0';
    return buffer;
}

static int decode_expr(const msgpack_object *map, const char *name, struct request_output *output,
                       struct gad_error *error)
{
    const msgpack_object *expr = map_find(map, "expr");
    if (expr == NULL || expr->type != MSGPACK_OBJECT_STR)
        return error_set(error, GAD_BAD_REQUEST, name, "'expr' is missing or not a text");
    if (expr->via.str.size > REQUEST_MAX_EXPR_CHARS) {
        int r =
            error_set(error, GAD_LIMIT_EXCEEDED, name,
                      "an expression of %" PRIu32 " characters is too long", expr->via.str.size);
        error_expected(error, "at most %d characters", REQUEST_MAX_EXPR_CHARS);
        error_found(error, "%" PRIu32, expr->via.str.size);
        return r;
    }
    output->expr = expr->via.str.ptr;
    output->n_expr_chars = expr->via.str.size;
    return 0;
}

static int decode_to(struct decoding *d, const msgpack_object *to, const char *name,
                     struct request_output *output)
{
    int r = array_decode_with(to, name, d->n_fds, &d->used_fds, !d->is_plan, &output->to, d->error);
    if (r)
        return r;
    const struct location *at = &output->to.at;
    if (at->kind == LOCATION_INLINE)
        return error_set(d->error, GAD_BAD_REQUEST, name,
                         "an output cannot be written inline: leave out 'to' to get it back so");
    if (at->kind == LOCATION_FILE && at->file.is_grid)
        return error_set(d->error, GAD_BAD_REQUEST, name,
                         "an output cannot be written to a grid of chunks");
    output->has_to = true;
    return 0;
}

static int decode_output(struct decoding *d, const msgpack_object *map, unsigned i,
                         struct request_output *output)
{
    char buffer[REQUEST_UNNAMED_SIZE];
    const char *name = request_output_name(output, i, buffer);
    if (map->type != MSGPACK_OBJECT_MAP)
        return error_set(d->error, GAD_BAD_REQUEST, name, "the output is not a map");
    int r = map_copy_str(map, "name", output->name, sizeof(output->name), d->error);
    if (r > 0 && d->error != NULL)
        snprintf(d->error->argument, sizeof(d->error->argument), "%s", name);
    if (r)
        return r;
    name = request_output_name(output, i, buffer);
    r = decode_expr(map, name, output, d->error);
    if (r)
        return r;
    const msgpack_object *to = map_find(map, "to");
    return to == NULL || to->type == MSGPACK_OBJECT_NIL ? 0 : decode_to(d, to, name, output);
}

static int decode_outputs(struct decoding *d, const msgpack_object *outputs,
                          struct job_request *request)
{
    for (unsigned i = 0; i < request->n_outputs; i++) {
        int r = decode_output(d, &outputs->via.array.ptr[i], i, &request->outputs[i]);
        if (r)
            return r;
    }
    return 0;
}

/* The rest ----------------------------------------------------------------------------------- */

int request_parse_engine(const char *word, size_t n_chars, enum engine_choice *ret_engine,
                         int *ret_index)
{
    static const char *const words[] = {
        [ENGINE_AUTO] = "auto", [ENGINE_CPU] = "cpu", [ENGINE_CUDA] = "cuda"};
    static const char prefix[] = "cuda:";
    size_t n_prefix = sizeof(prefix) - 1, index = 0;
    for (unsigned i = 0; i < ARRAY_LENGTH(words); i++) {
        if (strlen(words[i]) == n_chars && memcmp(words[i], word, n_chars) == 0) {
            *ret_engine = (enum engine_choice)i;
            *ret_index = -1;
            return 0;
        }
    }
    if (n_chars <= n_prefix || n_chars > n_prefix + 2 || memcmp(word, prefix, n_prefix) != 0)
        return -EINVAL;
    for (size_t i = n_prefix; i < n_chars; i++) {
        if (word[i] < '0' || word[i] > '9')
            return -EINVAL;
        index = index * 10 + (size_t)(word[i] - '0');
    }
    bool is_padded = word[n_prefix] == '0' && n_chars > n_prefix + 1;
    if (is_padded || index >= ENGINE_MAX_DEVICES)
        return -EINVAL;
    *ret_engine = ENGINE_CUDA;
    *ret_index = (int)index;
    return 0;
}

static int decode_engine(const msgpack_object *params, struct job_request *request,
                         struct gad_error *error)
{
    const char *word = NULL;
    size_t n_chars = 0;
    request->engine_index = -1;
    int r = map_str(params, "engine", &word, &n_chars, error);
    if (r != 0 || word == NULL)
        return r;
    if (request_parse_engine(word, n_chars, &request->engine, &request->engine_index) == 0)
        return 0;
    int shown = (int)min_u64(n_chars, 64);
    r = error_set(error, GAD_NO_ENGINE, "engine", "there is no engine '%.*s'", shown, word);
    error_expected(error, "auto, cpu, cuda, or cuda:0 to cuda:%d", ENGINE_MAX_DEVICES - 1);
    error_found(error, "%.*s", shown, word);
    return r;
}

static int decode_priority(const msgpack_object *params, int *ret, struct gad_error *error)
{
    int64_t priority = 0;
    int r = map_i64(params, "priority", &priority, error);
    if (r)
        return r;
    if (priority < -MAX_PRIORITY || priority > MAX_PRIORITY) {
        r = error_set(error, GAD_BAD_REQUEST, "priority", "priority %" PRId64 " is out of range",
                      priority);
        error_expected(error, "%d to %d", -MAX_PRIORITY, MAX_PRIORITY);
        error_found(error, "%" PRId64, priority);
        return r;
    }
    *ret = (int)priority;
    return 0;
}

/* A time from 0, which stands for none, on. */
static int decode_ms(const msgpack_object *params, const char *key, uint64_t least_ms,
                     uint32_t *ret, struct gad_error *error)
{
    uint64_t ms = 0;
    int r = map_u64(params, key, &ms, error);
    if (r == 0 && ms > UINT32_MAX) {
        r = error_set(error, GAD_BAD_REQUEST, key, "'%s' is too large", key);
        error_expected(error, "at most %" PRIu32, UINT32_MAX);
        error_found(error, "%" PRIu64, ms);
    }
    if (r)
        return r;
    *ret = ms == 0 ? 0 : (uint32_t)max_u64(ms, least_ms);
    return 0;
}

static int decode_options(const msgpack_object *params, struct job_request *request,
                          struct gad_error *error)
{
    int r = decode_engine(params, request, error);
    if (r == 0)
        r = decode_priority(params, &request->priority, error);
    if (r == 0)
        r = map_copy_str(params, "label", request->label, sizeof(request->label), error);
    if (r == 0)
        r = map_copy_str(params, "key", request->key, sizeof(request->key), error);
    if (r == 0)
        r = decode_ms(params, "progress_ms", MIN_PROGRESS_MS, &request->progress_ms, error);
    if (r == 0)
        r = decode_ms(params, "queue_timeout_ms", 1, &request->queue_timeout_ms, error);
    if (r == 0)
        r = decode_ms(params, "deadline_ms", 1, &request->deadline_ms, error);
    if (r == 0)
        r = map_bool(params, "settle", &request->settle, error);
    if (r == 0)
        r = map_bool(params, "tf32", &request->tf32, error);
    if (r == 0)
        r = map_bool(params, "exclusive", &request->exclusive, error);
    if (r == 0)
        r = map_bool(params, "again", &request->again, error);
    return r;
}

/* A plan needs no descriptor. */
static int decode_journal(struct decoding *d, const msgpack_object *params,
                          struct job_request *request)
{
    const msgpack_object *journal = map_find(params, "journal");
    if (journal == NULL || journal->type == MSGPACK_OBJECT_NIL)
        return 0;
    if (journal->type != MSGPACK_OBJECT_MAP)
        return error_set(d->error, GAD_BAD_REQUEST, "journal", "'journal' is not a map");
    request->has_journal = true;
    request->journal_fd_index = REQUEST_NO_FD;
    if (d->is_plan && map_find(journal, "fd") == NULL)
        return 0;
    return descriptor_decode_with(journal, "journal", "fd", d->n_fds, &d->used_fds,
                                  &request->journal_fd_index, d->error);
}

static int decode_size(const msgpack_object *list, struct request_draws *draws,
                       struct gad_error *error)
{
    if (list->type != MSGPACK_OBJECT_ARRAY)
        return error_set(error, GAD_BAD_REQUEST, "draws", "'size' is not an array");
    if (list->via.array.size > ARRAY_MAX_NDIM)
        return too_many("axes", list->via.array.size, ARRAY_MAX_NDIM, error);
    draws->has_size = true;
    draws->ndim = (int)list->via.array.size;
    for (int i = 0; i < draws->ndim; i++) {
        const msgpack_object *length = &list->via.array.ptr[i];
        if (length->type != MSGPACK_OBJECT_POSITIVE_INTEGER || length->via.u64 > INT64_MAX)
            return error_set(error, GAD_BAD_SHAPE, "draws", "'size' has a length that is none");
        draws->size[i] = length->via.i64;
    }
    return 0;
}

static int decode_rows(const char *name, size_t n_chars, struct job_request *request,
                       struct gad_error *error)
{
    for (unsigned i = 0; i < request->n_args; i++)
        if (strlen(request->args[i].name) == n_chars &&
            memcmp(request->args[i].name, name, n_chars) == 0) {
            request->draws.has_rows = true;
            request->draws.rows = i;
            return 0;
        }
    return error_set(error, GAD_UNKNOWN_NAME, "draws", "'rows' names no argument");
}

/* Behind the arguments. */
static int decode_draws(const msgpack_object *params, struct job_request *request,
                        struct gad_error *error)
{
    const msgpack_object *draws = map_find(params, "draws"), *size;
    const char *rows = NULL;
    size_t n_chars = 0;
    if (draws == NULL || draws->type == MSGPACK_OBJECT_NIL)
        return 0;
    if (draws->type != MSGPACK_OBJECT_MAP)
        return error_set(error, GAD_BAD_REQUEST, "draws", "'draws' is not a map");
    request->draws.has_seed = map_find(draws, "seed") != NULL;
    int r = map_u64(draws, "seed", &request->draws.seed, error);
    if (r == 0 && (size = map_find(draws, "size")) != NULL)
        r = decode_size(size, &request->draws, error);
    if (r == 0)
        r = map_str(draws, "rows", &rows, &n_chars, error);
    return r == 0 && rows != NULL ? decode_rows(rows, n_chars, request, error) : r;
}

const char *const request_modes[NEAR_N_MODES] = {
    [NEAR_EDGE] = "edge",           [NEAR_CONSTANT] = "constant", [NEAR_REFLECT] = "reflect",
    [NEAR_SYMMETRIC] = "symmetric", [NEAR_WRAP] = "wrap",
};

static int decode_beyond(const msgpack_object *params, struct request_beyond *ret,
                         struct gad_error *error)
{
    const msgpack_object *beyond = map_find(params, "beyond"), *value;
    const char *word = "edge";
    size_t n_chars = strlen(word);
    int mode = 0;
    if (beyond == NULL || beyond->type == MSGPACK_OBJECT_NIL)
        return 0;
    if (beyond->type != MSGPACK_OBJECT_MAP)
        return error_set(error, GAD_BAD_REQUEST, "beyond", "'beyond' is not a map");
    int r = map_str(beyond, "mode", &word, &n_chars, error);
    if (r)
        return r;
    while (mode < NEAR_N_MODES && (strlen(request_modes[mode]) != n_chars ||
                                   memcmp(request_modes[mode], word, n_chars) != 0))
        mode++;
    if (mode == NEAR_N_MODES) {
        int shown = (int)min_u64(n_chars, 64);
        r = error_set(error, GAD_BAD_ARGUMENT, "mode", "there is no mode '%.*s'", shown, word);
        error_expected(error, "edge, constant, reflect, symmetric or wrap");
        error_found(error, "%.*s", shown, word);
        return r;
    }
    ret->mode = (enum near_mode)mode;
    ret->dtype = DTYPE_INT64;
    value = map_find(beyond, "value");
    if (value != NULL && mode != NEAR_CONSTANT)
        return error_set(error, GAD_BAD_ARGUMENT, "mode",
                         "a value lies beyond the ends with mode 'constant' alone, not with '%s'",
                         request_modes[mode]);
    return value != NULL ? decode_scalar(value, "mode", &ret->dtype, &ret->value, error) : 0;
}

/* Finds the two lists and checks their counts. *ret_args may be NULL: no arguments. */
static int find_lists(const msgpack_object *params, const msgpack_object **ret_args,
                      const msgpack_object **ret_outputs, struct gad_error *error)
{
    const msgpack_object *args = map_find(params, "args");
    const msgpack_object *outputs = map_find(params, "outputs");
    if (outputs == NULL || outputs->type != MSGPACK_OBJECT_ARRAY)
        return error_set(error, GAD_BAD_REQUEST, "outputs", "'outputs' is missing or not an array");
    if (args != NULL && args->type != MSGPACK_OBJECT_MAP)
        return error_set(error, GAD_BAD_REQUEST, "args", "'args' is not a map");
    if (outputs->via.array.size == 0)
        return error_set(error, GAD_BAD_REQUEST, "outputs", "a job has at least one output");
    if (outputs->via.array.size > REQUEST_MAX_OUTPUTS)
        return too_many("outputs", outputs->via.array.size, REQUEST_MAX_OUTPUTS, error);
    if (args != NULL && args->via.map.size > REQUEST_MAX_ARGS)
        return too_many("args", args->via.map.size, REQUEST_MAX_ARGS, error);
    *ret_args = args;
    *ret_outputs = outputs;
    return 0;
}

/* Request, arguments and outputs in one piece. */
static struct job_request *request_new(unsigned n_args, unsigned n_outputs)
{
    _Static_assert(_Alignof(struct request_output) <= _Alignof(struct request_arg), "in a row");
    struct {
        struct job_request request;
        struct request_arg args[];
    } *block = calloc(1, sizeof(*block) + n_args * sizeof(struct request_arg) +
                             n_outputs * sizeof(struct request_output));
    if (block == NULL)
        return NULL;
    block->request.n_args = n_args;
    block->request.n_outputs = n_outputs;
    block->request.args = block->args;
    block->request.outputs = (struct request_output *)(void *)(block->args + n_args);
    return &block->request;
}

int request_decode(const msgpack_object *params, unsigned n_fds, bool is_plan,
                   struct job_request **ret_request, struct gad_error *error)
{
    const msgpack_object *args = NULL, *outputs = NULL;
    struct decoding d = {.n_fds = n_fds, .is_plan = is_plan, .error = error};
    assert(n_fds <= FRAME_MAX_FDS);
    int r = find_lists(params, &args, &outputs, error);
    if (r)
        return r;
    struct job_request *request =
        request_new(args != NULL ? args->via.map.size : 0, outputs->via.array.size);
    if (request == NULL)
        return -ENOMEM;
    r = decode_options(params, request, error);
    if (r == 0)
        r = decode_args(&d, args, request);
    if (r == 0)
        r = set_open_length(request, error);
    if (r == 0)
        r = decode_outputs(&d, outputs, request);
    if (r == 0)
        r = decode_journal(&d, params, request);
    if (r == 0)
        r = decode_draws(params, request, error);
    if (r == 0)
        r = decode_beyond(params, &request->beyond, error);
    if (r) {
        request_free(request);
        return r;
    }
    *ret_request = request;
    return 0;
}

struct job_request *request_free(struct job_request *request)
{
    free(request);
    return NULL;
}
