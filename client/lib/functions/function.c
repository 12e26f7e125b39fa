/* Arrays that a function of the program makes.
 *
 * Such an array is a source in chunks (chunk_source.c) whose chunks are made instead of fetched and
 * decoded: the daemon asks for blocks in the order of the chunks, each is made once for all threads
 * that need parts of it, straight into its slot of the ring where it is all of one.
 *
 *     input --halo_read--> box with its halo --+
 *     input --halo_read--> box with its halo --+--> function --> chunk
 *
 * The function may take for ever. Then it holds its slot, and a thread that the pump does not count
 * (array->may_hang); the job can be cancelled, and what the function uses stays until it returns.
 *
 * What was wrong first is kept for the error of the job: the function's own words, or which input
 * could not be read.
 */
#include "client/gpuarrayd-function.h"
#include "client/formats/chunked/chunk_source.h"
#include "client/lib/connection/client.h"
#include "client/lib/functions/halo.h"
#include "client/lib/memory/memory.h"
#include "client/lib/memory/stream.h"
#include "client/meaning.h"
#include "client/process.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_BYTES (INT64_C(2) << 20) /* a slot of a ring has so many */
#define HALO_TIMES  8                  /* a block is so much longer than its halo is deep */

struct input {
    struct halo_source source;
    int axis_of[ARRAY_MAX_NDIM]; /* the output's axis that cuts it; -1: none */
};

struct function {
    struct gad_function own; /* n_inputs and inputs are these: */
    unsigned n_inputs;
    struct input *inputs;
    enum gad_dtype dtype;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    int64_t block[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM]; /* the latter of a chunk */
    struct chunk_source *chunks;                            /* NULL: the array is empty */
    pthread_mutex_t lock;                                   /* of what follows */
    bool has_failed;
    const struct gad_array *unread; /* the input; NULL: the function itself */
    struct gad_error failure;
};

/* Blocks --------------------------------------------------------------------------------------- */

static void keep_failure(struct function *f, const struct gad_array *unread,
                         const struct gad_error *failure, const int64_t *start)
{
    char place[96];
    pthread_mutex_lock(&f->lock);
    if (!f->has_failed) {
        f->has_failed = true;
        f->unread = unread;
        f->failure = *failure;
        array_format_shape(f->ndim, start, place, sizeof(place));
        size_t n = strlen(f->failure.message);
        snprintf(f->failure.message + n, sizeof(f->failure.message) - n,
                 ", of the block from %s on", place);
    }
    pthread_mutex_unlock(&f->lock);
}

static int read_input(struct function *f, struct input *input, const int64_t *start,
                      const int64_t *count, struct halo_box *ret_box, int64_t *ret_start)
{
    const struct gad_array_info *info = &input->source.array->info;
    int64_t n[ARRAY_MAX_NDIM];
    for (int i = 0; i < info->ndim; i++) {
        int axis = input->axis_of[i];
        ret_start[i] = axis < 0 ? 0 : start[axis];
        n[i] = axis < 0 ? info->shape[i] : count[axis];
    }
    return halo_read(&input->source, f->own.mode, ret_start, n, ret_box);
}

static int call(struct function *f, const struct gad_block *inputs, const struct gad_block *output)
{
    struct gad_error failure = {.status = GAD_PROVIDER_FAILED};
    const struct gad_function_call made = {
        .n_inputs = f->n_inputs, .inputs = inputs, .output = output, .error = &failure};
    int r = f->own.call(f->own.data, &made);
    if (r == 0)
        return 0;
    failure.status = failure.status == GAD_BAD_BLOCK ? GAD_BAD_BLOCK : GAD_PROVIDER_FAILED;
    failure.message[sizeof(failure.message) - 1] = '\0';
    if (!failure.message[0])
        snprintf(failure.message, sizeof(failure.message), "the function has failed: %s",
                 strerror(r > 0 ? r : EIO));
    keep_failure(f, NULL, &failure, output->start);
    return r > 0 ? r : EIO;
}

struct input_block {
    struct halo_box box;
    int64_t start[ARRAY_MAX_NDIM];
};

/* chunk_make_fn */
static int make(void *state, const int64_t *start, void *ret_elements)
{
    static const int64_t none[ARRAY_MAX_NDIM];
    struct function *f = state;
    int64_t count[ARRAY_MAX_NDIM];
    _cleanup_free_ struct input_block *boxes = calloc(f->n_inputs + 1, sizeof(*boxes));
    _cleanup_free_ struct gad_block *blocks = calloc(f->n_inputs + 1, sizeof(*blocks));
    unsigned n = 0;
    int r = boxes && blocks ? 0 : ENOMEM;
    for (int i = 0; i < f->ndim; i++)
        count[i] = min_i64(f->block[i], f->shape[i] - start[i]);
    for (; n < f->n_inputs && r == 0; n++) {
        struct gad_array *array = f->inputs[n].source.array;
        r = read_input(f, &f->inputs[n], start, count, &boxes[n].box, boxes[n].start);
        if (r) {
            const struct gad_error failure = {.status = GAD_PROVIDER_FAILED};
            keep_failure(f, array, &failure, start);
            break;
        }
        blocks[n] = (struct gad_block){.data = boxes[n].box.data,
                                       .dtype = array->info.dtype,
                                       .ndim = array->info.ndim,
                                       .shape = boxes[n].box.shape,
                                       .strides = boxes[n].box.strides,
                                       .halo = f->inputs[n].source.depth,
                                       .start = boxes[n].start,
                                       .whole = array->info.shape};
    }
    const struct gad_block output = {.data = ret_elements,
                                     .dtype = f->dtype,
                                     .ndim = f->ndim,
                                     .shape = count,
                                     .strides = f->strides,
                                     .halo = none,
                                     .start = start,
                                     .whole = f->shape};
    if (r == 0)
        r = call(f, blocks, &output);
    while (boxes && n > 0)
        halo_box_deinit(&boxes[--n].box);
    return r;
}

static int fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct function *f = state;
    return f->chunks ? chunk_source_provider.fill(f->chunks, start, count, ret_block) : 0;
}

static void explain(void *state, struct gad_error *error)
{
    struct function *f = state;
    char argument[sizeof(error->argument)];
    memcpy(argument, error->argument, sizeof(argument));
    pthread_mutex_lock(&f->lock); /* a call that has not returned yet may fail, too */
    if (f->has_failed && f->unread) {
        const struct provider *provider = f->unread->provider;
        if (provider && provider->explain)
            provider->explain(f->unread->provider_state, error);
    } else if (f->has_failed) {
        *error = f->failure;
        memcpy(error->argument, argument, sizeof(argument));
    }
    f->has_failed = false; /* the next job's is its own */
    pthread_mutex_unlock(&f->lock);
}

static const struct provider function_provider = {
    .is_concurrent = true, .fill = fill, .explain = explain};

/* The array ------------------------------------------------------------------------------------ */

static struct function *function_free(struct function *f)
{
    if (!f)
        return NULL;
    chunk_source_free(f->chunks);
    for (unsigned i = 0; i < f->n_inputs; i++) {
        gad_array_release(f->inputs[i].source.array);
        pthread_mutex_destroy(&f->inputs[i].source.turn);
    }
    if (f->own.free)
        f->own.free(f->own.data);
    pthread_mutex_destroy(&f->lock);
    free(f->inputs);
    free(f);
    return NULL;
}

static void free_array(struct gad_array *array)
{
    function_free(array->format_state);
}

static int refuse_axis(struct gad_error *error, const char *name, const struct function *f,
                       const struct gad_array_info *info)
{
    char found[128], wanted[128];
    array_format_shape(info->ndim, info->shape, found, sizeof(found));
    array_format_shape(f->ndim, f->shape, wanted, sizeof(wanted));
    error_set(error, GAD_BAD_SHAPE, name,
              "the blocks of an input of shape %s and of a result of "
              "shape %s do not go together",
              found, wanted);
    error_expected(error, "%s", wanted);
    error_found(error, "%s", found);
    return GAD_BAD_SHAPE;
}

/* As of near: where the mode mirrors, a halo has no element twice. */
static int check_mirrored(const struct function *f, const char *name, int axis, int64_t length,
                          int64_t depth, struct gad_error *error)
{
    bool is_reflect = f->own.mode == GAD_PAD_REFLECT;
    int64_t most = is_reflect ? length - 1 : length;
    if ((!is_reflect && f->own.mode != GAD_PAD_SYMMETRIC) || length <= 1 || depth <= most)
        return 0;
    error_set(error, GAD_BAD_ARGUMENT, name,
              "depth: axis %d has length %" PRId64 ", and mode '%s' says nothing of what is so far "
              "beyond its ends",
              axis, length, is_reflect ? "reflect" : "symmetric");
    error_expected(error, "at most %" PRId64, most);
    error_found(error, "%" PRId64, depth);
    return GAD_BAD_ARGUMENT;
}

static int take_axes(const struct function *f, const struct gad_function_input *given,
                     const char *name, struct input *input, struct gad_error *error)
{
    const struct gad_array_info *info = &given->array->info;
    for (int i = 0; i < info->ndim; i++) {
        int axis = given->axes ? given->axes[i] : i + f->ndim - info->ndim;
        if (axis < (given->axes ? -1 : 0) || axis >= f->ndim)
            return refuse_axis(error, name, f, info);
        if (axis >= 0 && !given->axes && info->shape[i] == 1)
            axis = f->shape[axis] == 1 ? axis : -1;
        if (axis >= 0 && info->shape[i] != f->shape[axis])
            return refuse_axis(error, name, f, info);
        int64_t depth = given->depth ? given->depth[i] : 0;
        if (depth < 0 || depth > INT32_MAX)
            return error_set(error, GAD_BAD_ARGUMENT, name, "a halo of %" PRId64 " elements",
                             depth);
        if (depth > 0 && axis < 0 && info->shape[i] == 0 && f->own.mode != GAD_PAD_CONSTANT) {
            error_set(error, GAD_BAD_ARGUMENT, name,
                      "axis %d has no elements, of which a halo could be", i);
            error_expected(error, "no halo there, or zeros (GAD_PAD_CONSTANT)");
            return GAD_BAD_ARGUMENT;
        }
        int r = check_mirrored(f, name, i, info->shape[i], depth, error);
        if (r)
            return r;
        input->axis_of[i] = axis;
        input->source.depth[i] = depth;
    }
    return 0;
}

static int take_input(struct function *f, const struct gad_client *client,
                      const struct gad_function_input *given, struct gad_error *error)
{
    struct input *input = &f->inputs[f->n_inputs];
    struct gad_array *array = given->array;
    char name[24];
    snprintf(name, sizeof(name), "inputs[%u]", f->n_inputs);
    if (!array || array->client != client || array->is_write_only)
        return error_set(error, GAD_BAD_ARGUMENT, name, "no array of this client to be read");
    if (stream_of(array) || (array->is_in_order && !f->own.in_order))
        return error_set(error, GAD_BAD_ARGUMENT, name,
                         "a stream has no blocks: its elements come once and in order");
    const struct gad_meaning *meaning = gad_array_meaning(array);
    if (meaning && meaning->is_unpacked)
        return error_set(error, GAD_BAD_ARGUMENT, name,
                         "what its attributes mean is computed by jobs: open it as it is stored");
    int r = take_axes(f, given, name, input, error);
    if (r)
        return r;
    pthread_mutex_init(&input->source.turn, NULL);
    input->source.array = array_ref(array);
    f->n_inputs++;
    return 0;
}

/* Bytes of the largest of what a block has, without halos. */
static int64_t largest_bytes(const struct function *f)
{
    int64_t largest = (int64_t)gad_dtype_size(f->dtype);
    for (int i = 0; i < f->ndim; i++)
        if (mul_overflows_i64(largest, f->block[i], &largest))
            return INT64_MAX;
    for (unsigned k = 0; k < f->n_inputs; k++) {
        const struct gad_array_info *info = &f->inputs[k].source.array->info;
        int64_t bytes = (int64_t)gad_dtype_size(info->dtype);
        for (int i = 0; i < info->ndim; i++) {
            int axis = f->inputs[k].axis_of[i];
            if (mul_overflows_i64(bytes, axis < 0 ? info->shape[i] : f->block[axis], &bytes))
                return INT64_MAX;
        }
        largest = max_i64(largest, bytes);
    }
    return largest;
}

/* Long against the halos first, then as wide as there is room, the last axes first. Axes of the
 * output's own are whole. */
static void choose_block(struct function *f)
{
    for (int i = 0; i < f->ndim; i++)
        f->block[i] = f->n_inputs > 0 ? f->shape[i] : 1;
    for (unsigned k = 0; k < f->n_inputs; k++)
        for (int i = 0; i < f->inputs[k].source.array->info.ndim; i++)
            if (f->inputs[k].axis_of[i] >= 0)
                f->block[f->inputs[k].axis_of[i]] = 1;
    for (unsigned k = 0; k < f->n_inputs; k++)
        for (int i = 0; i < f->inputs[k].source.array->info.ndim; i++) {
            int axis = f->inputs[k].axis_of[i];
            if (axis >= 0)
                f->block[axis] =
                    min_i64(f->shape[axis],
                            max_i64(f->block[axis], HALO_TIMES * f->inputs[k].source.depth[i]));
        }
    for (int i = f->ndim - 1; i >= 0; i--) {
        int64_t times = BLOCK_BYTES / largest_bytes(f);
        if (times > 1)
            f->block[i] = min_i64(f->shape[i], f->block[i] * times);
    }
}

static int take_block(struct function *f, const int64_t *block, struct gad_error *error)
{
    bool is_empty = false;
    for (int i = 0; i < f->ndim; i++)
        is_empty |= f->shape[i] == 0;
    if (!block && !is_empty)
        choose_block(f);
    for (int i = 0; block && i < f->ndim; i++) {
        if (block[i] < 1)
            return error_set(error, GAD_BAD_ARGUMENT, "block", "blocks of %" PRId64 " elements",
                             block[i]);
        f->block[i] = min_i64(block[i], f->shape[i]);
    }
    array_c_strides(f->ndim, f->block, (int64_t)gad_dtype_size(f->dtype), f->strides);
    return 0;
}

static int make_chunks(struct function *f, struct gad_array *array, struct gad_error *error)
{
    static const struct codec_pipeline none;
    struct selection whole;
    struct chunk_layout layout = {.shape = f->shape,
                                  .item_bytes = gad_dtype_size(f->dtype),
                                  .selection = &whole,
                                  .pipeline = &none,
                                  .make = make,
                                  .state = f,
                                  .path = "a function"};
    for (int i = 0; i < f->ndim; i++)
        if (f->shape[i] == 0)
            return 0;
    if (!chunk_grid_init(&layout.grid, f->ndim, f->shape, f->block, (int64_t)layout.item_bytes) ||
        layout.grid.chunk_bytes > UINT64_C(4) << 30)
        return error_set(error, GAD_LIMIT_EXCEEDED, "block", "a block has more than 4 GiB");
    selection_whole(f->ndim, f->shape, &whole);
    memcpy(array->chunk_shape, f->block, sizeof(f->block));
    array->n_chunks = layout.grid.n_chunks;
    return chunk_source_new(&layout, "block", &f->chunks, error);
}

static int make_function(struct gad_client *client, const struct gad_layout *layout,
                         const struct gad_function *function, struct gad_array *array,
                         struct gad_error *error)
{
    struct function *f = array->format_state;
    struct array described;
    struct gad_layout without_strides = *layout;
    without_strides.strides = NULL;
    int r = memory_describe(&without_strides, &described, error);
    if (r == 0 && described.is_swapped)
        r = error_set(error, GAD_BAD_DTYPE, "layout", "functions make this machine's byte order");
    if (r)
        return r;
    f->own.in_order = function->in_order;
    f->own.mode = function->mode;
    f->dtype = layout->dtype;
    f->ndim = described.ndim;
    memcpy(f->shape, described.shape, sizeof(f->shape));
    for (unsigned i = 0; i < function->n_inputs && r == 0; i++)
        r = take_input(f, client, &function->inputs[i], error);
    if (r == 0)
        r = take_block(f, function->block, error);
    if (r == 0)
        r = make_chunks(f, array, error);
    for (int i = 0; i < described.ndim; i++)
        described.strides[i] = 0; /* it lies nowhere */
    memory_fill_info(array, &described);
    f->own = *function; /* `free` from here on */
    if (r)
        f->own.free = NULL;
    return r;
}

enum gad_status gad_array_from_function(struct gad_client *client, const struct gad_layout *layout,
                                        const struct gad_function *function,
                                        struct gad_array **ret_array, struct gad_error *error)
{
    if (!client || !layout || !function || !ret_array || !function->call ||
        (function->n_inputs > 0 && !function->inputs))
        return error_set(error, GAD_BAD_ARGUMENT,
                         !client     ? "client"
                         : !layout   ? "layout"
                         : ret_array ? "function"
                                     : "ret_array",
                         "is NULL, or has no function");
    struct gad_array *array = array_new(client, "function", ACCESS_PROVIDER, NULL);
    struct function *f = calloc(1, sizeof(*f));
    if (f) {
        pthread_mutex_init(&f->lock, NULL);
        f->inputs = calloc((size_t)function->n_inputs + 1, sizeof(*f->inputs));
    }
    if (!array || !f || !f->inputs) {
        gad_array_release(array);
        function_free(f);
        return client_status(-ENOMEM, error);
    }
    array->provider = &function_provider;
    array->provider_state = array->format_state = f;
    array->maker_free = free_array;
    array->may_hang = true;
    array->is_in_order = function->in_order;
    array->n_threads = function->in_order    ? 1
                       : function->n_threads ? function->n_threads
                                             : n_processors();
    int r = make_function(client, layout, function, array, error);
    if (r) {
        gad_array_release(array);
        return client_status(r, error);
    }
    *ret_array = array;
    return GAD_OK;
}
