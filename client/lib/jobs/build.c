/* Job requests.
 *
 * Every array gets a location by how it is accessed:
 *
 *     file, chunks    duplicates of the array's descriptors (those of a message are consumed)
 *     region          the region's id, attached first where this session does not know it
 *     memory, small   inline, packed in C order
 *     memory, else    a ring, as with a provider
 *     provider        a ring
 *
 * The request, its descriptors and its rings belong to the build until the job takes them. Small
 * outputs in memory never come here: the job puts shared memory in their place (job.c).
 *
 * Called by job.c for each submission, and by plan.c.
 */
#include "client/lib/jobs/build.h"
#include "client/lib/arguments/unpack.h"
#include "client/lib/memory/block.h"
#include "client/lib/memory/memory.h"
#include "proto/wire/ring.h"
#include "proto/util.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_PROGRESS_MS 200
#define MIN_PROGRESS_MS     50

static int add_fd(struct build *build, int fd, uint32_t *ret_index, struct gad_error *error)
{
    assert(build->n_fds < FRAME_MAX_FDS); /* room for three of each array: request_decode.c */
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return error_from_errno(error, errno, NULL, "duplicating a descriptor");
    *ret_index = build->n_fds;
    build->fds[build->n_fds++] = copy;
    return 0;
}

static int place_file(struct build *build, const struct gad_array *array, struct array *ret,
                      struct gad_error *error)
{
    ret->at.kind = LOCATION_FILE;
    ret->at.file.offset_bytes = array->offset_bytes;
    int r = add_fd(build, array->fd, &ret->at.file.fd_index, error);
    if (r || array->access != ACCESS_CHUNKS)
        return r;
    ret->at.file.offset_bytes = 0;
    ret->at.file.is_grid = true;
    ret->at.file.n_chunks = array->n_chunks;
    memcpy(ret->at.file.chunk_shape, array->chunk_shape, sizeof(array->chunk_shape));
    return add_fd(build, array->table_fd, &ret->at.file.table_fd_index, error);
}

static int place_region(struct gad_client *client, const struct build_source *source,
                        const struct gad_array *array, struct array *ret, struct gad_error *error)
{
    if (array->client != client)
        return error_set(error, GAD_BAD_ARGUMENT, NULL,
                         "an array in shared memory is used with the client that made it");
    if (source->purpose != BUILD_RUN && array->region->session != client->session)
        return 0;
    int r = memory_attach(client, array->region, error);
    ret->at.kind = LOCATION_REGION;
    ret->at.region.id = array->region->id;
    ret->at.region.offset_bytes = array->region_offset_bytes;
    return r;
}

static int place_provider(struct build *build, struct gad_array *array, bool is_output,
                          struct array *ret, struct gad_error *error)
{
    struct feed *feed;
    int r = feed_new(array, is_output, &feed, error);
    if (r)
        return r;
    feed->next = build->feeds;
    build->feeds = feed;
    ret->at.kind = LOCATION_PROVIDER;
    ret->at.provider.n_slots = feed->ring.n_slots;
    ret->at.provider.slot_bytes = feed->ring.slot_bytes;
    ret->at.provider.is_stream = feed->stream || array->is_in_order;
    ret->at.provider.wraps = !is_output && !ret->at.provider.is_stream;
    ret->at.provider.has_chunks = !is_output && array->n_chunks > 0;
    memcpy(ret->at.provider.chunk_shape, array->chunk_shape, sizeof(array->chunk_shape));
    r = add_fd(build, feed->ring.fd, &ret->at.provider.ring_fd_index, error);
    if (r == 0)
        r = add_fd(build, feed->ring.request_fd, &ret->at.provider.request_fd_index, error);
    if (r == 0)
        r = add_fd(build, feed->ring.done_fd, &ret->at.provider.done_fd_index, error);
    return r;
}

bool build_is_small(const struct gad_array *array)
{
    struct array sized = array_described(array);
    return array->access == ACCESS_MEMORY && array_n_bytes(&sized) <= ARRAY_MAX_INLINE_BYTES;
}

static int place_inline(struct build *build, const struct gad_array *array, struct array *ret,
                        struct gad_error *error)
{
    uint64_t n_bytes = (uint64_t)array_n_bytes(ret);
    ret->at.kind = LOCATION_INLINE;
    ret->at.inlined.bytes = array->data;
    ret->at.inlined.size_bytes = n_bytes;
    build->inline_bytes += n_bytes;
    if (n_bytes == 0 || array_is_c_contiguous(ret))
        return 0;
    void *packed = malloc((size_t)n_bytes);
    if (!packed)
        return error_from_errno(error, ENOMEM, NULL, "an inline array");
    block_gather(packed, array->data, ret->ndim, ret->shape, ret->strides, dtype_size(ret->dtype));
    build->packed[build->n_packed++] = packed;
    ret->at.inlined.bytes = packed;
    array_c_strides(ret->ndim, ret->shape, (int64_t)dtype_size(ret->dtype), ret->strides);
    return 0;
}

static int place_memory(struct build *build, const struct build_source *source,
                        struct gad_array *array, bool is_output, struct array *ret,
                        struct gad_error *error)
{
    if (source->purpose != BUILD_RUN)
        return 0; /* its strides decide the order of the result */
    if (!is_output && build_is_small(array) &&
        build->inline_bytes + (uint64_t)array_n_bytes(ret) <= BUILD_INLINE_BYTES)
        return place_inline(build, array, ret, error);
    return place_provider(build, array, is_output, ret, error);
}

/* Chunked sources and blocks have none, whether they are read by the daemon or provided. */
static bool has_strides(const struct gad_array *array)
{
    for (int i = 0; i < array->info.ndim; i++)
        if (array->info.strides[i] != 0)
            return true;
    return array->access == ACCESS_MEMORY || array->access == ACCESS_REGION ||
           array->access == ACCESS_FILE;
}

static int place(struct build *build, struct gad_client *client, const struct build_source *source,
                 struct gad_array *array, bool is_output, struct array *ret,
                 struct gad_error *error)
{
    *ret = array_described(array);
    if (array_is_open(array) && build->request.open_length == 0)
        return error_set(error, GAD_BAD_SHAPE, array->info.path,
                         "an output cannot be of unknown length where all sources are of known");
    if (array_is_open(array))
        ret->shape[0] = build->request.open_length;
    ret->is_open = array_is_open(array) && !is_output;
    if (!has_strides(array))
        array_c_strides(ret->ndim, ret->shape, (int64_t)dtype_size(ret->dtype), ret->strides);
    if (source->purpose == BUILD_SHAPES)
        return 0;
    switch (array->access) {
    case ACCESS_FILE:
    case ACCESS_CHUNKS: return place_file(build, array, ret, error);
    case ACCESS_REGION: return place_region(client, source, array, ret, error);
    case ACCESS_MEMORY: return place_memory(build, source, array, is_output, ret, error);
    case ACCESS_PROVIDER: break;
    }
    return place_provider(build, array, is_output, ret, error);
}

static void set_scalar(struct request_arg *arg, const struct gad_argument *argument)
{
    arg->is_scalar = true;
    switch (argument->scalar) {
    case GAD_SCALAR_BOOL:
        arg->scalar_dtype = DTYPE_BOOL;
        arg->scalar.u64 = argument->int_value != 0;
        break;
    case GAD_SCALAR_FLOAT:
        arg->scalar_dtype = DTYPE_FLOAT64;
        arg->scalar.f64 = argument->float_value;
        break;
    case GAD_SCALAR_UINT:
        arg->scalar_dtype = argument->uint_value > INT64_MAX ? DTYPE_UINT64 : DTYPE_INT64;
        arg->scalar.u64 = argument->uint_value;
        break;
    default:
        arg->scalar_dtype = DTYPE_INT64;
        arg->scalar.i64 = argument->int_value;
        break;
    }
}

static int add_args(struct build *build, struct gad_client *client,
                    const struct build_source *source, struct gad_error *error)
{
    int r = 0;
    for (unsigned i = 0; i < source->options->n_args && r == 0; i++) {
        const struct gad_argument *argument = &source->options->args[i];
        struct request_arg *arg = &build->request.args[i];
        unpack_name(source->options, i, arg->name);
        if (argument->scalar != GAD_SCALAR_NONE)
            set_scalar(arg, argument);
        else
            r = place(build, client, source, argument->array, false, &arg->array, error);
    }
    return r;
}

static int add_outputs(struct build *build, struct gad_client *client,
                       const struct build_source *source, struct gad_error *error)
{
    int r = 0;
    for (unsigned i = 0; i < source->options->n_outputs && r == 0; i++) {
        const struct gad_output *wanted = &source->options->outputs[i];
        struct request_output *output = &build->request.outputs[i];
        snprintf(output->name, sizeof(output->name), "%s", wanted->name ? wanted->name : "");
        r = unpack_text(source->options, i, &build->texts[i], error);
        if (r)
            break;
        output->expr = build->texts[i] ? build->texts[i] : wanted->expr;
        output->n_expr_chars = strlen(output->expr);
        output->has_to = source->to[i] != NULL;
        if (output->has_to)
            r = place(build, client, source, source->to[i], true, &output->to, error);
    }
    return r;
}

/* As much of the text as fits, without half a character at its end. */
static void copy_label(char *ret, size_t n_bytes, const char *text)
{
    size_t n = strlen(text);
    if (n >= n_bytes) {
        n = n_bytes - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    }
    memcpy(ret, text, n);
    ret[n] = '\0';
}

static int add_journal(struct build *build, const struct build_source *source,
                       struct gad_error *error)
{
    const struct gad_array *to = source->to[0];
    if (source->purpose == BUILD_PLAN) {
        build->request.has_journal = source->options->has_journal && to && to->fd >= 0;
        build->request.journal_fd_index = REQUEST_NO_FD;
        return 0;
    }
    if (!source->journal || !source->journal->path)
        return 0;
    build->request.has_journal = true;
    return add_fd(build, source->journal->fd, &build->request.journal_fd_index, error);
}

uint32_t build_progress_ms(const struct gad_job_options *options)
{
    uint32_t ms = options->progress_ms ? options->progress_ms : DEFAULT_PROGRESS_MS;
    return ms < MIN_PROGRESS_MS ? MIN_PROGRESS_MS : ms;
}

/* 0 is for ever. */
static uint32_t what_is_left(uint32_t allowed_ms, uint64_t passed_ms)
{
    if (allowed_ms == 0)
        return 0;
    return passed_ms < allowed_ms ? allowed_ms - (uint32_t)passed_ms : 1;
}

static void add_rest(struct job_request *request, const struct build_source *source)
{
    const struct gad_job_options *options = source->options;
    const char *engine = options->engine ? options->engine : "auto";
    int r = request_parse_engine(engine, strlen(engine), &request->engine, &request->engine_index);
    assert(r == 0); /* checked with the other options */
    (void)r;
    request->priority = options->priority;
    request->queue_timeout_ms = what_is_left(options->queue_timeout_ms, source->waited_ms);
    request->deadline_ms = what_is_left(options->deadline_ms, source->elapsed_ms);
    copy_label(request->label, sizeof(request->label), options->label ? options->label : "");
    copy_label(request->key, sizeof(request->key), source->key ? source->key : "");
    if (options->progress)
        request->progress_ms = build_progress_ms(options);
    request->settle = source->settle;
    request->tf32 = options->tf32;
    request->exclusive = options->exclusive;
}

static void add_draws(struct job_request *request, const struct gad_job_options *options)
{
    const struct gad_draws *from = options->draws;
    struct request_draws *to = &request->draws;
    if (!from)
        return;
    to->has_seed = from->has_seed;
    to->seed = from->seed;
    to->has_size = from->ndim > 0;
    to->ndim = from->ndim;
    for (int i = 0; i < from->ndim; i++)
        to->size[i] = from->size[i];
    to->has_rows = from->rows != NULL;
    for (unsigned i = 0; from->rows && i < options->n_args; i++)
        if (strcmp(options->args[i].name, from->rows) == 0)
            to->rows = i;
}

static void add_beyond(struct job_request *request, const struct gad_beyond *from)
{
    static const enum near_mode modes[] = {
        [GAD_PAD_CONSTANT] = NEAR_CONSTANT, [GAD_PAD_EDGE] = NEAR_EDGE,
        [GAD_PAD_REFLECT] = NEAR_REFLECT,   [GAD_PAD_SYMMETRIC] = NEAR_SYMMETRIC,
        [GAD_PAD_WRAP] = NEAR_WRAP,
    };
    const bool is_float = from->value.kind == GAD_SCALAR_FLOAT;
    struct gad_argument value = {.scalar = from->value.kind};
    struct request_arg arg;
    if (is_float)
        value.float_value = from->value.float_value;
    else if (value.scalar != GAD_SCALAR_NONE) /* else it is 0 */
        value.uint_value = from->value.uint_value;
    set_scalar(&arg, &value);
    request->beyond = (struct request_beyond){
        .mode = modes[from->mode], .dtype = arg.scalar_dtype, .value = arg.scalar};
}

static bool has_provider(const struct job_request *request)
{
    for (unsigned i = 0; i < request->n_args; i++)
        if (!request->args[i].is_scalar && request->args[i].array.at.kind == LOCATION_PROVIDER)
            return true;
    for (unsigned i = 0; i < request->n_outputs; i++)
        if (request->outputs[i].has_to && request->outputs[i].to.at.kind == LOCATION_PROVIDER)
            return true;
    return false;
}

/* What is open is one axis, planned with the most that it may have. */
static void set_open_length(struct build *build, const struct gad_job_options *options)
{
    int64_t *length = &build->request.open_length;
    for (unsigned i = 0; i < options->n_args; i++) {
        const struct gad_array *array = options->args[i].array;
        if (!array || !array_is_open(array))
            continue;
        int64_t most = array_open_rows(array);
        *length = *length == 0 || most < *length ? most : *length;
    }
}

void build_restore_text(int64_t open_length, char *text)
{
    char number[24];
    snprintf(number, sizeof(number), "%lld", (long long)open_length);
    for (char *at = text; open_length > 0 && (at = strstr(at, number)); at++) {
        *at = '?';
        memmove(at + 1, at + strlen(number), strlen(at + strlen(number)) + 1);
    }
}

void build_restore_length(int64_t open_length, struct gad_error *error)
{
    build_restore_text(open_length, error->message);
    build_restore_text(open_length, error->expected);
    build_restore_text(open_length, error->found);
}

int build_init(struct build *build, struct gad_client *client, const struct build_source *source,
               struct gad_error *error)
{
    const struct gad_job_options *options = source->options;
    *build = (struct build){0};
    build->request.n_args = options->n_args;
    build->request.n_outputs = options->n_outputs;
    build->request.args = calloc(options->n_args + 1, sizeof(*build->request.args));
    build->request.outputs = calloc(options->n_outputs + 1, sizeof(*build->request.outputs));
    build->packed = calloc(options->n_args + 1, sizeof(*build->packed));
    build->texts = calloc(options->n_outputs + 1, sizeof(*build->texts));
    if (!build->request.args || !build->request.outputs || !build->packed || !build->texts)
        return error_from_errno(error, ENOMEM, NULL, "a request");
    set_open_length(build, options);
    int r = add_args(build, client, source, error);
    if (r == 0)
        r = add_outputs(build, client, source, error);
    if (r == 0)
        r = add_journal(build, source, error);
    if (r == 0) {
        add_rest(&build->request, source);
        add_draws(&build->request, options);
        if (options->beyond)
            add_beyond(&build->request, options->beyond);
    }
    build->request.again = source->is_repeatable && has_provider(&build->request);
    return r;
}

void build_deinit(struct build *build)
{
    while (build->n_fds > 0)
        close_fd(&build->fds[--build->n_fds]);
    while (build->feeds) {
        struct feed *feed = build->feeds;
        build->feeds = feed->next;
        feed_free(feed);
    }
    while (build->n_packed > 0)
        free(build->packed[--build->n_packed]);
    free(steal_ptr(build->packed));
    for (unsigned i = 0; build->texts && i < build->request.n_outputs; i++)
        free(build->texts[i]);
    free(steal_ptr(build->texts));
    free(steal_ptr(build->request.args));
    free(steal_ptr(build->request.outputs));
}
