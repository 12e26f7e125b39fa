/* Movements: the destination, its pieces, and the jobs that fill them.
 *
 *     move_init()  destination made (new file) or checked, apart from the sources
 *     move_add()   one piece: what goes where
 *     move_run()   as many pieces as a request can name, the next request, ..., commit
 *
 * The pieces lie apart in the destination, which the daemon checks within a request. Since sources
 * and destination share nothing, no request reads what another has written, and their order does
 * not matter. The destination is committed when the last has ended well, so a new file appears
 * whole or not at all.
 *
 * Called by move_verbs.c, move_roll.c and move_pad.c; move_diff.c has a job of its own.
 */
#include "client/lib/views/move.h"
#include "client/formats/formats.h"
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "client/lib/views/move_request.h"
#include "proto/overlap.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_PIECES 65536
#define WAIT_MS    100

/* Beginning ------------------------------------------------------------------------------------ */

int move_check(const struct gad_client *client, unsigned n_arrays, struct gad_array *const *arrays,
               const struct gad_move_options *options, struct gad_error *error)
{
    const char *missing = !client ? "client" : !arrays ? "arrays" : !options ? "options" : NULL;
    if (missing)
        return error_set(error, GAD_BAD_ARGUMENT, missing, "%s is NULL", missing);
    if (n_arrays == 0) {
        error_set(error, GAD_BAD_ARGUMENT, "arrays", "there is nothing to join");
        error_expected(error, "at least one array");
        error_found(error, "none");
        return GAD_BAD_ARGUMENT;
    }
    for (unsigned i = 0; i < n_arrays; i++)
        if (!arrays[i])
            return error_set(error, GAD_BAD_ARGUMENT, "array", "array %u is NULL", i);
    if (!options->to == !options->to_path) {
        error_set(error, GAD_BAD_ARGUMENT, "options",
                  options->to ? "there are two destinations, an array and a path"
                              : "there is no destination");
        error_expected(error, "either an array or a path");
        return GAD_BAD_ARGUMENT;
    }
    return 0;
}

static int check_target(const struct gad_array *to, const struct move_result *result,
                        struct gad_error *error)
{
    char wanted[96], found[96];
    if (!to->is_writable)
        return error_set(error, GAD_READ_ONLY, "to", "the destination was opened for reading only");
    if (to->info.ndim == result->ndim &&
        memcmp(to->info.shape, result->shape, (size_t)result->ndim * sizeof(int64_t)) == 0)
        return 0;
    array_format_shape(result->ndim, result->shape, wanted, sizeof(wanted));
    array_format_shape(to->info.ndim, to->info.shape, found, sizeof(found));
    error_set(error, GAD_BAD_SHAPE, "to", "the result has shape %s, the destination %s", wanted,
              found);
    error_expected(error, "%s", wanted);
    error_found(error, "%s", found);
    return GAD_BAD_SHAPE;
}

static bool is_same_file(const struct gad_array *a, const struct gad_array *b)
{
    struct stat of_a, of_b;
    return a->fd >= 0 && b->fd >= 0 && a->n_chunks == 0 && b->n_chunks == 0 &&
           fstat(a->fd, &of_a) == 0 && fstat(b->fd, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static int check_apart(const struct gad_array *to, unsigned n, struct gad_array *const *sources,
                       struct gad_error *error)
{
    struct array of_to = array_described(to);
    for (unsigned i = 0; i < n; i++) {
        struct array of_source = array_described(sources[i]);
        if (memory_meet(sources[i], to) == MEMORY_APART &&
            (!is_same_file(sources[i], to) ||
             array_is_apart(&of_source, (int64_t)sources[i]->offset_bytes, &of_to,
                            (int64_t)to->offset_bytes)))
            continue;
        error_set(error, GAD_OVERLAPPING_OUTPUT, "to",
                  "the destination shares elements with source %u; a movement cannot be in place",
                  i);
        error_expected(error, "a destination apart from the sources");
        return GAD_OVERLAPPING_OUTPUT;
    }
    return 0;
}

static int check_result(const struct move_result *result, struct gad_error *error)
{
    struct array described = {.dtype = (enum dtype)result->dtype, .ndim = result->ndim};
    if (result->ndim > ARRAY_MAX_NDIM)
        return error_set(error, GAD_BAD_SHAPE, "ndim", "%d dimensions: 0 to %d are possible",
                         result->ndim, ARRAY_MAX_NDIM);
    memcpy(described.shape, result->shape, sizeof(described.shape));
    return array_check(&described, "the result", error);
}

int move_init(struct move *move, struct gad_client *client, const struct gad_move_options *options,
              const struct move_result *result, unsigned n_sources,
              struct gad_array *const *sources, struct gad_error *error)
{
    *move =
        (struct move){.client = client,
                      .options = options,
                      .n_reads = 1,
                      .times = loop_times_begin(options->queue_timeout_ms, options->deadline_ms)};
    int r = check_result(result, error);
    if (r)
        return r;
    if (options->to) {
        move->to = array_ref(options->to);
        r = check_target(move->to, result, error);
        if (r == 0)
            r = format_check_unstored(options->storage, "the result", error);
        return r ? r : check_apart(move->to, n_sources, sources, error);
    }
    move->is_created = true;
    return format_create_as(client, options->to_path, true, (enum dtype)result->dtype, result->ndim,
                            result->shape, false, options->storage, &result->limits, &move->to,
                            error);
}

void move_deinit(struct move *move)
{
    for (unsigned i = 0; i < move->n_pieces; i++) {
        gad_array_release(move->pieces[i].source);
        free(move->pieces[i].source_axes);
        free(move->pieces[i].segments);
    }
    free(move->pieces);
    gad_array_release(move->to);
    *move = (struct move){0};
}

/* Pieces --------------------------------------------------------------------------------------- */

static int reserve_piece(struct move *move, struct gad_error *error)
{
    if (move->n_pieces == MAX_PIECES) {
        error_set(error, GAD_LIMIT_EXCEEDED, NULL, "the movement has too many pieces");
        error_expected(error, "at most %d", MAX_PIECES);
        return GAD_LIMIT_EXCEEDED;
    }
    if (move->n_pieces < move->n_allocated)
        return 0;
    unsigned n = move->n_allocated ? 2 * move->n_allocated : 16;
    struct move_piece *pieces = realloc(move->pieces, n * sizeof(*pieces));
    if (!pieces)
        return -ENOMEM;
    move->pieces = pieces;
    move->n_allocated = n;
    return 0;
}

int move_add(struct move *move, struct gad_array *source, const int *source_axes,
             const struct move_segment *segments, struct gad_error *error)
{
    size_t ndim = (size_t)move->to->info.ndim;
    uint64_t n_bytes = gad_dtype_size(move->to->info.dtype);
    for (size_t i = 0; i < ndim; i++)
        n_bytes *= (uint64_t)(segments[i].count * segments[i].n_repeats); /* of the destination's */
    if (n_bytes == 0)
        return 0;
    int r = reserve_piece(move, error);
    if (r)
        return r;
    struct move_piece *piece = &move->pieces[move->n_pieces];
    *piece = (struct move_piece){.source_axes = malloc((ndim + 1) * sizeof(*source_axes)),
                                 .segments = malloc((ndim + 1) * sizeof(*segments))};
    if (!piece->source_axes || !piece->segments) {
        free(piece->source_axes);
        free(piece->segments);
        return -ENOMEM;
    }
    memcpy(piece->source_axes, source_axes, ndim * sizeof(*source_axes));
    memcpy(piece->segments, segments, ndim * sizeof(*segments));
    piece->source = array_ref(source);
    move->n_pieces++;
    move->total_bytes += n_bytes;
    return 0;
}

/* Jobs ----------------------------------------------------------------------------------------- */

/* Progress of one request as that of the whole movement. */
static void on_progress(void *data, const struct gad_progress *now)
{
    const struct move *move = data;
    const struct gad_job_stats *before = &move->stats;
    struct gad_progress all = *now;
    all.tiles_done += before->n_tiles;
    all.read_bytes += before->read_bytes;
    all.write_bytes += before->write_bytes;
    all.total_bytes = (1 + (uint64_t)move->n_reads) * move->total_bytes;
    double share = (double)move->total_bytes / (double)(all.write_bytes ? all.write_bytes : 1);
    all.n_tiles += before->n_tiles;
    if (all.write_bytes > 0 && (double)all.tiles_done * share > (double)all.n_tiles)
        all.n_tiles = (uint64_t)((double)all.tiles_done * share);
    move->options->progress(move->options->progress_data, &all);
}

static void add_stats(struct gad_job_stats *sum, const struct gad_job_stats *one)
{
    sum->job = one->job;
    memcpy(sum->engine, one->engine, sizeof(sum->engine));
    memcpy(sum->engine_why, one->engine_why, sizeof(sum->engine_why));
    sum->n_tiles += one->n_tiles;
    sum->read_bytes += one->read_bytes;
    sum->write_bytes += one->write_bytes;
    sum->total_s += one->total_s;
    sum->source_s += one->source_s;
    sum->kernel_s += one->kernel_s;
    sum->sink_s += one->sink_s;
    sum->client_s += one->client_s;
    sum->n_divide_by_zero += one->n_divide_by_zero;
    sum->n_invalid_casts += one->n_invalid_casts;
    sum->around_cache_bytes += one->around_cache_bytes;
    sum->to_device_s += one->to_device_s;
    sum->from_device_s += one->from_device_s;
}

int move_wait(const struct gad_move_options *options, struct gad_job *job, struct gad_error *error)
{
    enum gad_status status;
    int timeout_ms = options->is_cancelled ? WAIT_MS : -1;
    while ((status = gad_job_wait(job, timeout_ms, error)) == GAD_TIMEOUT) {
        if (options->is_cancelled && options->is_cancelled(options->progress_data)) {
            (void)!gad_job_cancel(job, NULL);
            timeout_ms = -1;
        }
    }
    return (int)status;
}

int move_submit(struct gad_client *client, const struct gad_job_options *wanted,
                const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                struct gad_error *error)
{
    struct gad_job *job;
    int r = (int)gad_submit(client, wanted, &job, error);
    if (r)
        return r;
    r = move_wait(options, job, error);
    if (r == 0 && ret_stats)
        *ret_stats = *gad_job_stats(job);
    gad_job_free(job);
    return r;
}

static int wait_for(struct move *move, struct gad_job *job, struct gad_error *error)
{
    int r = move_wait(move->options, job, error);
    if (r == 0)
        add_stats(&move->stats, gad_job_stats(job));
    return r;
}

/* Whatever lies between elements of a part of it is its own, and is written by this movement. */
static bool is_dense(const struct gad_array *to)
{
    struct array described = array_described(to);
    int64_t low, high;
    array_extent(&described, &low, &high);
    return high - low == array_n_bytes(&described);
}

int move_run_job(struct move *move, unsigned n_args, const struct gad_argument *args,
                 unsigned n_outputs, const struct gad_output *outputs, struct gad_error *error)
{
    const struct gad_move_options *options = move->options;
    struct gad_job *job;
    struct gad_job_options wanted = {
        .n_args = n_args,
        .args = args,
        .n_outputs = n_outputs,
        .outputs = outputs,
        .engine = options->engine,
        .priority = options->priority,
        .label = options->label,
        .progress = options->progress ? on_progress : NULL,
        .progress_data = move,
        .progress_ms = options->progress_ms,
        .exclusive = is_dense(move->to),
    };
    int r = loop_times_give(&move->times, &wanted, error);
    if (r == 0)
        r = (int)gad_submit(move->client, &wanted, &job, error);
    if (r)
        return r;
    r = wait_for(move, job, error);
    gad_job_free(job);
    return loop_times_tell(&move->times, r, error);
}

static int run_request(struct move *move, const struct move_request *request,
                       struct gad_error *error)
{
    struct gad_argument args[REQUEST_MAX_OUTPUTS];
    struct gad_output outputs[REQUEST_MAX_OUTPUTS];
    char names[REQUEST_MAX_OUTPUTS][12]; /* "x" and 32 bits in decimal */
    for (unsigned i = 0; i < request->n; i++) {
        snprintf(names[i], sizeof(names[i]), "x%u", i);
        args[i] = (struct gad_argument){.name = names[i], .array = request->parts[i].from};
        outputs[i] = (struct gad_output){.expr = names[i], .to = request->parts[i].to};
    }
    return move_run_job(move, request->n, args, request->n, outputs, error);
}

static bool is_cancelled(const struct gad_move_options *options)
{
    return options->is_cancelled && options->is_cancelled(options->progress_data);
}

int move_run(struct move *move, struct gad_job_stats *ret_stats, struct gad_error *error)
{
    int r = 0;
    for (unsigned first = 0; first < move->n_pieces && r == 0;) {
        struct move_request request;
        if (is_cancelled(move->options))
            return error_set(error, GAD_CANCELLED, NULL, "the movement was cancelled");
        r = move_request_init(&request, move, first, error);
        if (r == 0)
            r = run_request(move, &request, error);
        first += request.n;
        move_request_deinit(&request);
    }
    if (r)
        return r;
    move_carry(move);
    return move_finish(move, ret_stats, error);
}

int move_finish(struct move *move, struct gad_job_stats *ret_stats, struct gad_error *error)
{
    int r = move->is_created ? (int)gad_array_commit(move->to, error) : 0;
    if (r == 0 && ret_stats)
        *ret_stats = move->stats;
    return r;
}
