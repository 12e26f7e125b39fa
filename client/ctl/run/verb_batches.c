/* gpuarrayctl batches, shuffle: rows of arrays in an order of their own.
 *
 * Both are the library's loaders. `batches` shows what a training program would get: a batch by
 * number into a file, how it is read, or how fast. `shuffle` writes all rows in the order of epoch
 * 0: the batches go through a stream into a job that writes any format, window by window, so that
 * arrays of any size are shuffled in bounded memory.
 *
 * Elements are taken as they are stored.
 */
#include "client/ctl/run/batch_transforms.h"
#include "client/ctl/run/run.h"
#include "proto/system/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_SOURCES  16 /* outputs of a job */
#define PUSHED_BYTES ((int64_t)1 << 20)

enum {
    OPTION_JSON = 0x100,
    OPTION_BATCH_SIZE,
    OPTION_SHUFFLED,
    OPTION_SEED,
    OPTION_EPOCH,
    OPTION_SHARD,
    OPTION_DROP_LAST,
    OPTION_MEMORY,
    OPTION_SKIP_ERRORS,
    OPTION_SCRATCH,
    OPTION_PLAN,
    OPTION_TRANSFORM,
    OPTION_WITH,
    OPTION_ENGINE,
    OPTION_INDEX,
    OPTION_BENCH,
    OPTION_EXPLAIN,
};

struct batches_options {
    struct gad_loader_options loader;
    struct batch_transforms transforms;
    unsigned n_parts;
    char *names[MAX_SOURCES], *specs[MAX_SOURCES];
    struct gad_array *source; /* of the first part, where it is open already */
    const char *destination;
    struct ctl_storage storage;
    uint64_t epoch, index;
    bool has_index, benches, explains, json;
};

static const struct argp_option batches_argp_options[] = {
    {"batch-size", OPTION_BATCH_SIZE, "N", 0, "rows of a batch, of all shards together", 0},
    {"shuffle", OPTION_SHUFFLED, "HOW", OPTION_ARG_OPTIONAL,
     "in random order: exact (as without HOW), or blocks, which is an approximation", 0},
    {"seed", OPTION_SEED, "N", 0, "of the order; without it 0", 0},
    {"epoch", OPTION_EPOCH, "N", 0, "which has an order of its own; without it 0", 0},
    {"shard", OPTION_SHARD, "K/N", 0, "part K of N of each batch, K from 0 on", 0},
    {"drop-last", OPTION_DROP_LAST, NULL, 0, "no batch that is shorter than the others", 0},
    {"memory", OPTION_MEMORY, "SIZE", 0, "of what is read ahead; without it 256M", 0},
    {"skip-errors", OPTION_SKIP_ERRORS, NULL, 0, "leave out batches that cannot be read", 0},
    {"scratch", OPTION_SCRATCH, "FOLDER", 0, "rows that are packed may be copied there", 0},
    {"plan", OPTION_PLAN, "NAME", 0, "direct, scan, copy or resident; without it the best", 0},
    {"transform", OPTION_TRANSFORM, "NAME=EXPR", 0, "what a part becomes, of its rows and others'",
     0},
    {"with", OPTION_WITH, "NAME=VALUE", 0, "what transforms name: a number or a source", 0},
    {"engine", OPTION_ENGINE, "NAME", 0, "of transforms: auto, cpu, cuda, or cuda:N", 0},
    {"index", OPTION_INDEX, "K", 0, "write batch K", 0},
    {"output", 'o', "FILE", 0, "where to: b.npz has an array of each name", 0},
    {"bench", OPTION_BENCH, NULL, 0, "take all batches of the epoch, and say how long it took", 0},
    {"explain", OPTION_EXPLAIN, NULL, 0, "say how rows are read, and read none", 0},
    {"json", OPTION_JSON, NULL, 0, "print the outcome as JSON", 0},
    {0},
};

static int read_count(const char *text, uint64_t most, uint64_t *ret,
                      const struct argp_state *state)
{
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *ret <= most)
        return 0;
    return ctl_usage_error(state, "a number from 0 to %" PRIu64 ", not '%s'", most, text);
}

static int read_size(const char *text, uint64_t *ret, const struct argp_state *state)
{
    uint64_t n_bytes;
    if (!units_parse_size(text, &n_bytes) || n_bytes == 0)
        return ctl_usage_error(state, "a size is a number of bytes, as 256M, not '%s'", text);
    *ret = n_bytes;
    return 0;
}

static int read_shard(struct gad_loader_options *loader, const char *text,
                      const struct argp_state *state)
{
    unsigned long long rank, world;
    int n_chars = 0;
    if (!text[strspn(text, "0123456789/")] &&
        sscanf(text, "%llu/%llu%n", &rank, &world, &n_chars) == 2 && text[n_chars] == '\0' &&
        rank < world && world <= UINT32_MAX) {
        loader->rank = (uint32_t)rank;
        loader->world = (uint32_t)world;
        return 0;
    }
    return ctl_usage_error(state, "a shard is K/N with K from 0 to N - 1, not '%s'", text);
}

static int add_part(struct batches_options *o, char *text, const struct argp_state *state)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return ctl_usage_error(state, "a part is NAME=SOURCE, not '%s'", text);
    if (o->n_parts == MAX_SOURCES)
        return ctl_usage_error(state, "at most %d parts", MAX_SOURCES);
    *equals = '\0';
    o->names[o->n_parts] = text;
    o->specs[o->n_parts++] = equals + 1;
    return 0;
}

static int check_batches(const struct batches_options *o, const struct argp_state *state)
{
    if (o->n_parts == 0)
        return ctl_usage_error(state, "a part is needed, as x=a.npy");
    if (o->loader.batch_size == 0)
        return ctl_usage_error(state, "how many rows are a batch? --batch-size 256");
    if (o->has_index + o->benches + o->explains != 1)
        return ctl_usage_error(state, "one of --index, --bench and --explain is needed");
    if (o->has_index != (o->destination != NULL))
        return ctl_usage_error(state, "--index and -o go together");
    return 0;
}

static error_t parse_batches(int key, char *arg, struct argp_state *state)
{
    struct batches_options *o = state->input;
    uint64_t number = 0;
    int r = 0;
    switch (key) {
    case OPTION_BATCH_SIZE:
        r = read_count(arg, INT64_MAX, &number, state);
        o->loader.batch_size = (int64_t)number;
        return r;
    case OPTION_SHUFFLED:
        o->loader.shuffle = arg && !strcmp(arg, "blocks") ? GAD_SHUFFLE_BLOCKS : GAD_SHUFFLE_EXACT;
        if (arg && strcmp(arg, "blocks") != 0 && strcmp(arg, "exact") != 0)
            return ctl_usage_error(state, "shuffle exact or blocks, not '%s'", arg);
        return 0;
    case OPTION_SEED: return read_count(arg, UINT64_MAX, &o->loader.seed, state);
    case OPTION_EPOCH: return read_count(arg, UINT64_MAX, &o->epoch, state);
    case OPTION_SHARD: return read_shard(&o->loader, arg, state);
    case OPTION_DROP_LAST: o->loader.drop_last = true; return 0;
    case OPTION_MEMORY: return read_size(arg, &o->loader.memory_bytes, state);
    case OPTION_SKIP_ERRORS: o->loader.skips_errors = true; return 0;
    case OPTION_SCRATCH: o->loader.scratch = arg; return 0;
    case OPTION_PLAN: o->loader.plan = arg; return 0;
    case OPTION_TRANSFORM: return batch_transforms_add(&o->transforms, arg, state);
    case OPTION_WITH: return batch_transforms_with(&o->transforms, arg, state);
    case OPTION_ENGINE: o->loader.engine = arg; return 0;
    case OPTION_INDEX: o->has_index = true; return read_count(arg, UINT64_MAX, &o->index, state);
    case 'o': o->destination = arg; return 0;
    case OPTION_BENCH: o->benches = true; return 0;
    case OPTION_EXPLAIN: o->explains = true; return 0;
    case OPTION_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG: return add_part(o, arg, state);
    case ARGP_KEY_END: return check_batches(o, state);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp batches_argp = {
    batches_argp_options,
    parse_batches,
    "NAME=SOURCE...",
    "Takes batches of rows of arrays of one length, in order or shuffled, as a training program "
    "gets them: without the daemon but for --index and --transform, and without loading the "
    "arrays.\v"
    "Batch K of an epoch depends on the arrays, the seed and the batch size alone. Shards, one "
    "behind the other, are the whole batch.\n"
    "Examples:\n"
    "  gpuarrayctl batches x=speed.npy y=rates.npy --batch-size 64 --explain\n"
    "  gpuarrayctl batches x=speed.npy --batch-size 64 --shuffle --index 3 -o b.npz\n"
    "  gpuarrayctl batches x=speed.npy --batch-size 64 --shard 0/4 --bench\n"
    "  gpuarrayctl batches x=speed.npy --batch-size 8 --transform x='x-1' --bench" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* Datasets ------------------------------------------------------------------------------------- */

static int open_loader(struct batches_options *o, struct gad_client *client,
                       struct gad_loader **ret_loader, struct gad_error *error)
{
    struct gad_dataset_part parts[MAX_SOURCES] = {{NULL}};
    struct gad_dataset *dataset = NULL;
    int r = 0;
    parts[0].array = o->source;
    for (unsigned i = 0; i < o->n_parts && r == 0; i++) {
        parts[i].name = o->names[i];
        if (!parts[i].array)
            r = ctl_open_source(client, o->specs[i], GAD_AS_STORED, &parts[i].array, error);
    }
    if (r == 0)
        r = (int)gad_dataset_new(client, o->n_parts, parts, &dataset, error);
    if (r == 0)
        r = batch_transforms_open(&o->transforms, client, &o->loader, error);
    if (r == 0)
        r = (int)gad_loader_new(dataset, &o->loader, ret_loader, error);
    if (r == 0 && o->epoch > 0)
        r = (int)gad_loader_set_epoch(*ret_loader, o->epoch, error);
    gad_dataset_free(dataset);
    for (unsigned i = o->source ? 1 : 0; i < o->n_parts; i++)
        gad_array_release(parts[i].array);
    return r;
}

static int bench(const struct batches_options *o, struct gad_loader *loader,
                 struct gad_error *error)
{
    struct gad_batch *batch;
    uint64_t n_batches = 0, n_rows = 0;
    double begin = ctl_now_s();
    int r;
    while ((r = (int)gad_loader_next(loader, -1, &batch, error)) == 0 && batch) {
        n_batches++;
        n_rows += (uint64_t)gad_batch_length(batch);
        gad_batch_release(batch);
        if (ctl_was_interrupted())
            return (int)error_set(error, GAD_CANCELLED, NULL, "interrupted");
    }
    double seconds = ctl_now_s() - begin;
    uint64_t n_skipped = gad_loader_skipped(loader);
    if (r == 0 && o->json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "batches", json_object_new_uint64(n_batches));
        json_object_object_add(object, "rows", json_object_new_uint64(n_rows));
        json_object_object_add(object, "skipped", json_object_new_uint64(n_skipped));
        json_object_object_add(object, "seconds", json_object_new_double(seconds));
        json_object_object_add(object, "daemon", json_object_new_boolean(o->transforms.n > 0));
        ctl_put_json(object);
    } else if (r == 0) {
        printf("%" PRIu64 " batches, %" PRIu64 " rows in %.3f s: %.0f rows/s%s\n", n_batches,
               n_rows, seconds, (double)n_rows / (seconds > 0 ? seconds : 1e-9),
               o->transforms.n > 0 ? "" : ", without the daemon");
        if (n_skipped > 0)
            printf("%" PRIu64 " batches were left out: rows of them cannot be read\n", n_skipped);
    }
    return r;
}

static int explain(const struct batches_options *o, struct gad_loader *loader,
                   struct gad_error *error)
{
    char *text;
    int r = (int)gad_loader_explain(loader, &text, error);
    if (r)
        return r;
    if (o->json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "explain", json_object_new_string(text));
        ctl_put_json(object);
    } else {
        fputs(text, stdout);
    }
    free(text);
    return 0;
}

/* Where a part goes; heap text. Files of several arrays, and groups in them, get it by its name. */
static char *path_of(const struct batches_options *o, const char *name)
{
    static const char *const hdf5[] = {".h5", ".hdf5", ".he5", ".h5p", ".nc", ".nc4"};
    const char *dot = strrchr(o->destination, '.');
    bool is_npz = dot && strcmp(dot, ".npz") == 0, has_names = is_npz || o->n_parts > 1;
    char *path;
    for (size_t i = 0; dot && i < sizeof(hdf5) / sizeof(hdf5[0]); i++)
        has_names |= strcmp(dot, hdf5[i]) == 0;
    if (!has_names)
        return strdup(o->destination);
    const char *format = dot && strchr(dot, ':') ? "%s/%s" : is_npz ? "%s:%s" : "%s:/%s";
    return asprintf(&path, format, o->destination, name) < 0 ? NULL : path;
}

static int write_batch(const struct batches_options *o, struct gad_client *client,
                       struct gad_batch *batch, struct gad_error *error)
{
    struct gad_argument args[MAX_SOURCES] = {{NULL}};
    struct gad_output outputs[MAX_SOURCES] = {{NULL}};
    int r = 0;
    for (unsigned i = 0; i < o->n_parts && r == 0; i++) {
        struct gad_layout layout;
        r = (int)gad_batch_layout(batch, i, &layout);
        if (r == 0)
            r = (int)gad_array_from_memory(client, &layout, gad_batch_data(batch, i), false,
                                           &args[i].array, error);
        args[i].name = o->names[i];
        outputs[i].expr = o->names[i];
        outputs[i].to_path = path_of(o, o->names[i]);
        if (r == 0 && !outputs[i].to_path)
            r = error_set(error, GAD_NO_MEMORY, NULL, "no memory");
    }
    const struct gad_job_options job = {
        .n_args = o->n_parts, .args = args, .n_outputs = o->n_parts, .outputs = outputs};
    if (r == 0)
        r = (int)gad_run(client, &job, NULL, error);
    for (unsigned i = 0; i < o->n_parts; i++) {
        gad_array_release(args[i].array);
        free((char *)outputs[i].to_path);
    }
    return r;
}

static int take_batch(const struct batches_options *o, struct gad_client *client,
                      struct gad_loader *loader, struct gad_error *error)
{
    struct gad_batch *batch;
    int r = (int)gad_loader_batch(loader, o->index, &batch, error);
    if (r)
        return r;
    r = write_batch(o, client, batch, error);
    if (r == 0 && o->json) {
        struct json_object *object = json_object_new_object(), *rows = json_object_new_array();
        for (int64_t i = 0; i < gad_batch_length(batch); i++)
            json_object_array_add(rows, json_object_new_int64(gad_batch_rows(batch)[i]));
        json_object_object_add(object, "batch", json_object_new_uint64(gad_batch_index(batch)));
        json_object_object_add(object, "rows", rows);
        json_object_object_add(object, "to", json_object_new_string(o->destination));
        ctl_put_json(object);
    }
    gad_batch_release(batch);
    return r;
}

/* A pipe's elements go to shared memory first. */
static bool reads_pipe(const struct batches_options *o)
{
    unsigned i = 0;
    while (i < o->n_parts && strcmp(o->specs[i], "-") != 0)
        i++;
    return i < o->n_parts;
}

int verb_batches(int argc, char **argv)
{
    struct batches_options o = {.json = ctl_wants_json(argc, argv)};
    struct gad_client *client = NULL;
    struct gad_loader *loader = NULL;
    struct gad_error error;
    if (ctl_parse(&batches_argp, argc, argv, &o)) {
        batch_transforms_deinit(&o.transforms);
        return EXIT_USAGE;
    }
    ctl_watch_signals();
    bool needs_client = o.has_index || o.transforms.n > 0 || reads_pipe(&o);
    int r = needs_client ? ctl_connect(&client, &error) : 0;
    if (r == 0)
        r = open_loader(&o, client, &loader, &error);
    if (r == 0 && o.explains)
        r = explain(&o, loader, &error);
    if (r == 0 && o.benches)
        r = bench(&o, loader, &error);
    if (r == 0 && o.has_index)
        r = take_batch(&o, client, loader, &error);
    gad_loader_free(loader);
    batch_transforms_deinit(&o.transforms);
    gad_close(client);
    return r ? ctl_fail(&error, o.json) : EXIT_OK;
}

/* Shuffling ------------------------------------------------------------------------------------ */

static const struct argp_option shuffle_argp_options[] = {
    {"seed", OPTION_SEED, "N", 0, "of the order; without it 0", 0},
    {"memory", OPTION_MEMORY, "SIZE", 0, "of windows of rows; without it 256M", 0},
    {"scratch", OPTION_SCRATCH, "FOLDER", 0, "rows that are packed may be copied there", 0},
    {"output", 'o', "FILE", 0, "the destination", 0},
    {"json", OPTION_JSON, NULL, 0, "print the outcome as JSON", 0},
    {0},
};

static error_t parse_shuffle(int key, char *arg, struct argp_state *state)
{
    struct batches_options *o = state->input;
    static char name[] = "x";
    switch (key) {
    case ARGP_KEY_ARG:
        if (o->n_parts == 1)
            return ctl_usage_error(state, "one source: '%s' is too much", arg);
        o->names[0] = name;
        o->specs[o->n_parts++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (o->n_parts == 0 || !o->destination)
            return ctl_usage_error(state, "a source and a destination are needed, as in "
                                          "'shuffle a.npy -o b.npy'");
        return 0;
    case OPTION_SEED:
    case OPTION_MEMORY:
    case OPTION_SCRATCH:
    case OPTION_JSON:
    case 'o': return parse_batches(key, arg, state);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp shuffle_argp = {
    shuffle_argp_options,
    parse_shuffle,
    "SOURCE -o DESTINATION",
    "Writes the rows of an array of any size in random order, in bounded memory.\v"
    "The order is that of permutation(n, seed), and of batches --shuffle in epoch 0.\n"
    "Examples:\n"
    "  gpuarrayctl shuffle a.npy -o mixed.npy --seed 7\n"
    "  gpuarrayctl shuffle x.h5:/x -o mixed.zarr" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

static size_t row_elements(const struct gad_array_info *info)
{
    size_t n = 1;
    for (int i = 1; i < info->ndim; i++)
        n *= (size_t)info->shape[i];
    return n;
}

/* The epoch's batches into the stream, then its end. */
static int push_all(struct gad_loader *loader, struct gad_stream *stream, size_t n_row_elements,
                    struct gad_error *error)
{
    struct gad_batch *batch = NULL;
    int r;
    while ((r = (int)gad_loader_next(loader, -1, &batch, error)) == 0 && batch) {
        const char *data = gad_batch_data(batch, 0);
        struct gad_layout layout;
        size_t n = (size_t)gad_batch_length(batch) * n_row_elements, n_pushed;
        r = (int)gad_batch_layout(batch, 0, &layout);
        while (r == 0 && n > 0) {
            r = (int)gad_stream_push(stream, data, n, -1, &n_pushed, error);
            data += n_pushed * gad_dtype_size(layout.dtype);
            n -= n_pushed;
            r = r == GAD_TIMEOUT && !ctl_was_interrupted() ? 0 : r;
        }
        gad_batch_release(batch);
        if (r)
            return r;
    }
    if (r) {
        gad_stream_fail(stream, error->message);
        return r;
    }
    return (int)gad_stream_end(stream, error);
}

static int shuffle(struct batches_options *o, struct gad_client *client,
                   const struct gad_array_info *info, struct gad_error *error)
{
    struct gad_layout layout = {.dtype = info->dtype, .ndim = info->ndim, .shape = info->shape};
    struct gad_loader *loader = NULL;
    struct gad_stream *stream = NULL;
    struct gad_job *job = NULL;
    int64_t row_bytes = (int64_t)(row_elements(info) * gad_dtype_size(info->dtype));
    struct ctl_progress progress;
    ctl_progress_begin(&progress, o->json);
    o->loader.shuffle = GAD_SHUFFLE_EXACT;
    o->loader.batch_size = row_bytes > 0 && row_bytes < PUSHED_BYTES ? PUSHED_BYTES / row_bytes : 1;
    int r = open_loader(o, client, &loader, error);
    if (r == 0)
        r = (int)gad_stream_new(client, &layout, false, NULL, &stream, error);
    if (r == 0) {
        const struct gad_argument arg = {.name = "x", .array = gad_stream_array(stream)};
        const struct gad_output output = {.expr = "x", .to_path = o->destination};
        const struct gad_job_options options = {.n_args = 1,
                                                .args = &arg,
                                                .n_outputs = 1,
                                                .outputs = &output,
                                                .progress = ctl_progress_draw,
                                                .progress_data = &progress,
                                                .progress_ms = 100};
        r = (int)gad_submit(client, &options, &job, error);
    }
    if (r == 0)
        r = push_all(loader, stream, row_elements(info), error);
    if (r == 0)
        r = ctl_wait(job, error);
    gad_job_free(job);
    ctl_progress_end(&progress);
    gad_stream_free(stream);
    gad_loader_free(loader);
    return r;
}

int verb_shuffle(int argc, char **argv)
{
    struct batches_options o = {.json = ctl_wants_json(argc, argv)};
    struct gad_client *client = NULL;
    struct gad_error error;
    if (ctl_parse(&shuffle_argp, argc, argv, &o))
        return EXIT_USAGE;
    ctl_watch_signals();
    int r = ctl_connect(&client, &error);
    if (r == 0)
        r = ctl_open_source(client, o.specs[0], GAD_AS_STORED, &o.source, &error);
    if (r == 0)
        r = shuffle(&o, client, gad_array_info(o.source), &error);
    if (r == 0 && o.json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "rows",
                               json_object_new_int64(gad_array_info(o.source)->shape[0]));
        json_object_object_add(object, "to", json_object_new_string(o.destination));
        ctl_put_json(object);
    }
    gad_array_release(o.source);
    gad_close(client);
    return r ? ctl_fail(&error, o.json) : EXIT_OK;
}
