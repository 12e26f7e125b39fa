/* What of a batch is computed from it.
 *
 *     x: "(x - m) / s + 0.1*normal()"     reads the batch's x and two arguments, goes over x
 *     y: "float32(y) / 255"               has another dtype than y, so memory of its own
 *
 * Random functions are numbered by the rows of the dataset and seeded by seed, epoch and part, so
 * that a row's numbers are the same in whichever batch it comes. A result takes the part's place
 * where dtype and shape stay, no other transform reads the part and no product reads it again.
 * Everything about a text is found out when the loader is made, by plans for a whole and for the
 * last batch: later only what depends on elements can fail.
 *
 * Called by the loader: by whoever makes it, then by the threads that make batches.
 */
#include "client/lib/datasets/transforms.h"
#include "client/lib/connection/client.h"
#include "client/lib/arguments/unpack.h"
#include "client/lib/memory/block.h"
#include "client/lib/memory/memory.h"
#include "client/meaning.h"
#include "proto/request.h"
#include "proto/seeds.h"
#include "proto/util.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define ROWS_NAME "__rows"

struct text {
    char *expression;
    /* As it is run: with what packed parts stand for, which have other names in it. */
    char *unpacked;
    char (*unpacked_names)[ARRAY_NAME_SIZE];
    unsigned part;
    unsigned n_parts, parts[REQUEST_MAX_ARGS]; /* that it reads */
    unsigned n_args, args[REQUEST_MAX_ARGS];
};

struct transforms {
    struct gad_client *client;
    unsigned n_parts, n_texts, n_args;
    char **names;                    /* of the parts */
    const struct gad_array **packed; /* of the dataset; only while it is made */
    struct transforms_result *read, *results;
    struct text *texts;
    struct gad_argument *args; /* names and arrays are ours */
    struct gad_array *rows;
    char *engine; /* NULL: any */
    bool is_shared;
    pthread_mutex_t turn; /* of running */
};

/* ---- What a text reads ---- */

static bool is_word_char(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

/* Whether the name is a word of the text, quoted or not. */
static bool mentions(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = text; *at;) {
        size_t n_word = 0;
        while (is_word_char(at[n_word]))
            n_word++;
        if (n_word == n && memcmp(at, name, n) == 0)
            return true;
        at += n_word > 0 ? n_word : 1;
    }
    return false;
}

static int find_part(const struct transforms *t, const char *name)
{
    for (unsigned i = 0; i < t->n_parts; i++)
        if (strcmp(t->names[i], name) == 0)
            return (int)i;
    return -1;
}

static int set_text(struct transforms *t, unsigned at, const struct gad_transform *from,
                    struct gad_error *error)
{
    struct text *text = &t->texts[at];
    int part = from->part && from->expression ? find_part(t, from->part) : -1;
    if (part < 0) {
        int r = error_set(error, GAD_UNKNOWN_NAME, "transform",
                          "a transform of '%.60s', which is "
                          "no part of the dataset",
                          from->part ? from->part : "");
        error_found(error, "'%.60s'", from->part ? from->part : "");
        return r;
    }
    text->part = (unsigned)part;
    for (unsigned i = 0; i < at; i++)
        if (t->texts[i].part == text->part)
            return error_set(error, GAD_BAD_ARGUMENT, from->part, "'%s' has two transforms",
                             from->part);
    text->expression = strdup(from->expression);
    if (!text->expression)
        return -ENOMEM;
    for (unsigned i = 0; i < t->n_parts + t->n_args; i++) {
        bool is_part = i < t->n_parts;
        if (!mentions(text->expression, is_part ? t->names[i] : t->args[i - t->n_parts].name))
            continue;
        if (text->n_parts + text->n_args + 1 == REQUEST_MAX_ARGS)
            return error_set(error, GAD_LIMIT_EXCEEDED, from->part,
                             "the transform of '%s' reads too many parts and arguments",
                             from->part);
        if (is_part)
            text->parts[text->n_parts++] = i;
        else
            text->args[text->n_args++] = i - t->n_parts;
    }
    return 0;
}

static bool is_read_by_others(const struct transforms *t, const struct text *text)
{
    for (unsigned i = 0; i < t->n_texts; i++)
        for (unsigned k = 0; k < t->texts[i].n_parts && &t->texts[i] != text; k++)
            if (t->texts[i].parts[k] == text->part)
                return true;
    return false;
}

/* ---- Arrays ---- */

/* A piece of an array in shared memory, as an array in C order. It owns nothing. */
static struct gad_array *part_of(const struct gad_array *whole, size_t offset_bytes,
                                 enum gad_dtype dtype, int ndim, const int64_t *shape)
{
    struct array described = {.dtype = (enum dtype)dtype, .ndim = ndim};
    struct gad_array *array = array_new(whole->client, "region", ACCESS_REGION, NULL);
    if (!array)
        return NULL;
    for (int i = 0; i < ndim; i++)
        described.shape[i] = shape[i];
    array_c_strides(ndim, described.shape, (int64_t)dtype_size(described.dtype), described.strides);
    memory_fill_info(array, &described);
    array->is_writable = true;
    array->region = whole->region;
    array->region_offset_bytes = whole->region_offset_bytes + offset_bytes;
    array->data = (char *)whole->data + offset_bytes;
    return array;
}

static int copy_arg(struct transforms *t, const struct gad_argument *from, struct gad_argument *to,
                    struct gad_error *error)
{
    if (!from->name || find_part(t, from->name) >= 0 || strcmp(from->name, ROWS_NAME) == 0)
        return error_set(error, GAD_BAD_ARGUMENT, from->name ? from->name : "args",
                         "'%.60s' cannot be the name of an argument: parts have it",
                         from->name ? from->name : "");
    *to = *from;
    to->array = NULL;
    to->name = strdup(from->name);
    if (!to->name)
        return -ENOMEM;
    if (from->scalar != GAD_SCALAR_NONE)
        return 0;
    const struct gad_array_info *info = gad_array_info(from->array);
    const void *data = gad_array_data(from->array);
    if (!data || info->is_swapped)
        return error_set(error, GAD_BAD_ARGUMENT, from->name,
                         "%s: arguments of transforms are "
                         "numbers, and arrays in memory in this machine's byte order",
                         from->name);
    int r =
        (int)gad_array_empty(t->client, info->dtype, info->ndim, info->shape, &to->array, error);
    if (r == 0)
        block_gather(gad_array_data(to->array), data, info->ndim, info->shape, info->strides,
                     gad_dtype_size(info->dtype));
    return r;
}

/* ---- A text's job ---- */

struct job {
    struct gad_job_options options;
    struct gad_argument args[REQUEST_MAX_ARGS];
    struct gad_output output;
    struct gad_draws draws;
    int64_t size[GAD_MAX_NDIM];
    struct gad_array *made[REQUEST_MAX_ARGS + 1]; /* of part_of() */
    unsigned n_made;
};

static void job_deinit(struct job *job)
{
    while (job->n_made > 0)
        gad_array_release(job->made[--job->n_made]);
}

/* `in` NULL, of a plan: memory that nothing is known of. */
static int add_array(struct job *job, const struct transforms *t, const struct gad_array *in,
                     size_t offset_bytes, const struct transforms_result *like,
                     struct gad_array **ret)
{
    int64_t shape[GAD_MAX_NDIM];
    memcpy(shape, like->shape, sizeof(shape));
    shape[0] = job->size[0];
    *ret = part_of(in ? in : t->rows, offset_bytes, like->dtype, like->ndim, shape);
    if (!*ret)
        return -ENOMEM;
    if (!in) {
        (*ret)->access = ACCESS_MEMORY;
        (*ret)->data = NULL;
    }
    job->made[job->n_made++] = *ret;
    return 0;
}

static int add_arg(struct job *job, const struct transforms *t, const char *name,
                   const struct gad_array *in, size_t offset_bytes,
                   const struct transforms_result *like)
{
    struct gad_argument *arg = &job->args[job->options.n_args++];
    *arg = (struct gad_argument){.name = name};
    return add_array(job, t, in, offset_bytes, like, &arg->array);
}

static uint64_t seed_of_part(const char *part, const struct transforms_batch *batch)
{
    uint64_t name = UINT64_C(0xcbf29ce484222325); /* FNV-1a: parts draw different numbers */
    for (const char *at = part; *at; at++)
        name = (name ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return seed_of_draw(seed_of_draw(batch->seed, batch->epoch), name);
}

/* Of a plan batch->array is NULL, and the result the daemon's to say. */
static int job_init(struct job *job, const struct transforms *t, const struct text *text,
                    const struct transforms_batch *batch)
{
    const struct transforms_result *own = &t->read[text->part];
    struct transforms_result rows = {.dtype = GAD_INT64, .ndim = own->ndim};
    static const int64_t none[ARRAY_MAX_NDIM];
    bool is_plan = !batch->array;
    *job = (struct job){
        .options = {.args = job->args,
                    .n_outputs = 1,
                    .outputs = &job->output,
                    .engine = t->engine,
                    .label = "batch",
                    .draws = &job->draws},
        .output = {.expr = is_plan ? text->expression : text->unpacked,
                   .name = t->names[text->part]},
        .draws = {.has_seed = true,
                  .seed = seed_of_part(t->names[text->part], batch),
                  .rows = ROWS_NAME,
                  .ndim = own->ndim,
                  .size = job->size},
    };
    for (int i = 0; i < own->ndim; i++) {
        job->size[i] = i == 0 ? batch->n_rows : own->shape[i];
        rows.shape[i] = 1;
    }
    int r = add_arg(job, t, ROWS_NAME, is_plan ? NULL : t->rows, 0, &rows);
    for (unsigned i = 0; i < text->n_parts && r == 0; i++) {
        unsigned part = text->parts[i];
        r = add_arg(job, t, is_plan ? t->names[part] : text->unpacked_names[i], batch->array,
                    is_plan ? 0 : batch->from[part], &t->read[part]);
        if (r == 0 && is_plan && t->packed[part])
            r = meaning_copy_to_view(t->packed[part], job->made[job->n_made - 1], 0, NULL, none,
                                     none);
    }
    for (unsigned i = 0; i < text->n_args && r == 0; i++)
        job->args[job->options.n_args++] = t->args[text->args[i]];
    if (r == 0 && !is_plan)
        r = add_array(job, t, batch->array, batch->to[text->part], &t->results[text->part],
                      &job->output.to);
    return r;
}

/* ---- What it becomes ---- */

static bool mixes_rows(const struct gad_plan *plan, int64_t n_rows)
{
    for (unsigned i = 0; i < plan->n_passes; i++) {
        const struct gad_plan_pass *pass = plan->passes[i];
        uint32_t axes = pass->reduced_axes | pass->scanned_axes;
        if (pass->ndim > 0 && pass->shape[0] == n_rows && (axes & 1) != 0)
            return true;
    }
    return false;
}

static int check_plan(const struct transforms *t, const struct text *text,
                      const struct gad_plan *plan, int64_t n_rows, struct gad_error *error)
{
    const struct gad_plan_output *output = plan->outputs[0];
    const char *name = t->names[text->part];
    if (output->ndim == 0 || output->shape[0] != n_rows) {
        char shape[96];
        array_format_shape(output->ndim, output->shape, shape, sizeof(shape));
        int r =
            error_set(error, GAD_BAD_SHAPE, name,
                      "the transform of '%s' makes %s of %lld rows: its first axis is the rows'",
                      name, shape, (long long)n_rows);
        error_expected(error, "a first axis of %lld", (long long)n_rows);
        error_found(error, "%s", shape);
        return r;
    }
    if (t->is_shared && n_rows > 1 && mixes_rows(plan, n_rows))
        return error_set(error, GAD_BAD_SHAPE, name,
                         "the transform of '%s' computes along the rows of a batch, which several "
                         "ranks share: its results would depend on how many they are",
                         name);
    return 0;
}

/* Of several ranks one may have a single row of a batch: whether rows are mixed is seen by more. */
#define ROWS_TO_MIX 3

/* What goes to the daemon, once for all batches. The job is that of a plan: behind the rows the
 * parts are its arguments. */
static int unpack(struct text *text, const struct job *job, struct gad_error *error)
{
    text->unpacked_names = calloc(text->n_parts + 1, sizeof(*text->unpacked_names));
    if (!text->unpacked_names)
        return -ENOMEM;
    for (unsigned i = 0; i < text->n_parts; i++)
        unpack_name(&job->options, i + 1, text->unpacked_names[i]);
    int r = unpack_text(&job->options, 0, &text->unpacked, error);
    if (r == 0 && !text->unpacked)
        text->unpacked = strdup(text->expression);
    return r ? r : text->unpacked ? 0 : -ENOMEM;
}

/* A text is given the parts that it names alone; another name may be meant for any. */
static void expect_names(const struct transforms *t, struct gad_error *error)
{
    static const char kind[] = "an argument: ";
    char names[sizeof(error->expected)];
    size_t n_chars = 0;
    if (!error || error->status != GAD_UNKNOWN_NAME ||
        strncmp(error->expected, kind, strlen(kind)) != 0)
        return;
    for (unsigned i = 0; i < t->n_parts + t->n_args && n_chars < sizeof(names); i++)
        n_chars +=
            (size_t)snprintf(names + n_chars, sizeof(names) - n_chars, "%s%s", i > 0 ? ", " : "",
                             i < t->n_parts ? t->names[i] : t->args[i - t->n_parts].name);
    error_expected(error, "%s%s", kind, names);
}

static int plan_text(struct transforms *t, struct text *text, int64_t n_rows, bool is_whole,
                     struct gad_error *error)
{
    struct job job;
    struct gad_plan *plan = NULL;
    const struct transforms_batch batch = {.n_rows = n_rows};
    int r = job_init(&job, t, text, &batch);
    if (r == 0)
        r = (int)gad_plan(t->client, &job.options, &plan, error);
    if (r)
        expect_names(t, error);
    if (r == 0)
        r = check_plan(t, text, plan, n_rows, error);
    if (r == 0 && is_whole) {
        const struct gad_plan_output *output = plan->outputs[0];
        const struct transforms_result *read = &t->read[text->part];
        struct transforms_result *result = &t->results[text->part];
        *result = (struct transforms_result){.dtype = output->dtype, .ndim = output->ndim};
        memcpy(result->shape, output->shape, sizeof(result->shape));
        result->is_apart =
            is_read_by_others(t, text) || plan->product || result->dtype != read->dtype ||
            result->ndim != read->ndim ||
            memcmp(result->shape, read->shape, (size_t)read->ndim * sizeof(*read->shape)) != 0;
    }
    if (r == 0 && !text->unpacked)
        r = unpack(text, &job, error);
    gad_plan_free(plan);
    job_deinit(&job);
    return r;
}

/* ---- Making ---- */

static int connect_like(struct gad_client *client, struct gad_client **ret, struct gad_error *error)
{
    struct gad_connect_options options = {
        .socket = client->socket,
        .client_name = client->name,
        .no_private_daemon = client->no_private_daemon,
        .daemon_path = client->daemon_path,
        .timeout_ms = client->timeout_ms,
        .restart_ms = client->restart_ms > 0 ? client->restart_ms : -1,
    };
    return (int)gad_connect(&options, ret, error);
}

static int copy_parts(struct transforms *t, const struct transforms_options *options)
{
    for (unsigned i = 0; i < options->n_parts; i++) {
        const struct transforms_part *part = &options->parts[i];
        struct transforms_result *read = &t->read[i];
        t->names[i] = strdup(part->name);
        if (!t->names[i])
            return -ENOMEM;
        *read = (struct transforms_result){.dtype = part->dtype, .ndim = part->ndim};
        for (int axis = 0; axis < part->ndim; axis++)
            read->shape[axis] = part->shape[axis];
        t->packed[i] = part->packed;
        t->results[i] = *read;
    }
    return 0;
}

static int fill(struct transforms *t, struct gad_client *client,
                const struct transforms_options *options, struct gad_error *error)
{
    int64_t n_rows = options->parts[0].shape[0]; /* of every part */
    int r = connect_like(client, &t->client, error);
    if (r == 0)
        r = copy_parts(t, options);
    if (r == 0)
        r = (int)gad_array_empty(t->client, GAD_INT64, 1, &n_rows, &t->rows, error);
    for (unsigned i = 0; i < options->n_args && r == 0; i++)
        r = copy_arg(t, &options->args[i], &t->args[i], error);
    for (unsigned i = 0; i < options->n_texts && r == 0; i++)
        r = set_text(t, i, &options->texts[i], error);
    for (unsigned i = 0; i < options->n_texts && r == 0; i++)
        r = plan_text(t, &t->texts[i], n_rows, true, error);
    for (unsigned i = 0; i < options->n_texts && r == 0 && t->is_shared && n_rows == 1; i++)
        r = plan_text(t, &t->texts[i], ROWS_TO_MIX, false, error);
    for (unsigned i = 0; i < options->n_texts && r == 0 && options->last_rows > 0; i++)
        r = plan_text(t, &t->texts[i], options->last_rows, false, error);
    free_ptr(&t->packed);
    return r;
}

int transforms_new(struct gad_client *client, const struct transforms_options *options,
                   struct transforms **ret_transforms, struct gad_error *error)
{
    struct transforms *t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->n_parts = options->n_parts;
    t->n_texts = options->n_texts;
    t->n_args = options->n_args;
    t->is_shared = options->is_shared;
    pthread_mutex_init(&t->turn, NULL);
    t->names = calloc(t->n_parts, sizeof(*t->names));
    t->packed = calloc(t->n_parts, sizeof(*t->packed));
    t->read = calloc(t->n_parts, sizeof(*t->read));
    t->results = calloc(t->n_parts, sizeof(*t->results));
    t->texts = calloc(t->n_texts + 1, sizeof(*t->texts));
    t->args = calloc(t->n_args + 1, sizeof(*t->args));
    t->engine = options->engine ? strdup(options->engine) : NULL;
    int r = -ENOMEM;
    if ((t->engine || !options->engine) && t->names && t->packed && t->read && t->results &&
        t->texts && t->args)
        r = fill(t, client, options, error);
    if (r) {
        transforms_free(t);
        return r;
    }
    *ret_transforms = t;
    return 0;
}

struct transforms *transforms_free(struct transforms *t)
{
    if (!t)
        return NULL;
    for (unsigned i = 0; t->args && i < t->n_args; i++) {
        free((char *)t->args[i].name);
        gad_array_release(t->args[i].array);
    }
    for (unsigned i = 0; t->texts && i < t->n_texts; i++) {
        free(t->texts[i].expression);
        free(t->texts[i].unpacked);
        free(t->texts[i].unpacked_names);
    }
    for (unsigned i = 0; t->names && i < t->n_parts; i++)
        free(t->names[i]);
    pthread_mutex_destroy(&t->turn);
    gad_array_release(t->rows);
    gad_close(t->client);
    free(t->engine);
    free(t->args);
    free(t->texts);
    free(t->results);
    free(t->packed);
    free(t->read);
    free(t->names);
    free(t);
    return NULL;
}

struct gad_client *transforms_client(struct transforms *transforms)
{
    return transforms->client;
}

const struct transforms_result *transforms_result(const struct transforms *transforms,
                                                  unsigned part)
{
    return &transforms->results[part];
}

int transforms_run(struct transforms *t, const struct transforms_batch *batch,
                   struct gad_error *error)
{
    int r = 0;
    if (batch->n_rows == 0)
        return 0;
    pthread_mutex_lock(&t->turn);
    memcpy(gad_array_data(t->rows), batch->rows, (size_t)batch->n_rows * sizeof(*batch->rows));
    for (unsigned i = 0; i < t->n_texts && r == 0; i++) {
        struct job job;
        r = job_init(&job, t, &t->texts[i], batch);
        if (r == 0)
            r = (int)gad_run(t->client, &job.options, NULL, error);
        job_deinit(&job);
    }
    pthread_mutex_unlock(&t->turn);
    return r;
}
