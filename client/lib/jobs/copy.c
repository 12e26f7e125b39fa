/* Jobs that change nothing: the elements of a source in a file are those of the new file.
 *
 *     source  |....| run |......| run |......| run |        rows of a part of an array, say
 *     new     |hdr | run | run | run |
 *
 * The daemon has told dtype, shape and order of the result, and is not asked for more: the system
 * copies between the two descriptors without showing the bytes to anybody (copy_file_range), and
 * where the file system can it shares the blocks, or lets its server copy them. Where the system
 * refuses, bytes go through a buffer, which also tells whether reading or writing fails.
 *
 * Blocks are shared whole, so both files must have the same bytes in them, and whether the file
 * system shares any is tried with one. Where it does not, the daemon copies, unless only this
 * process may read the file system: the system's call would move pages through a pipe, by one
 * processor. Measured with 1 GiB in the page cache and two processors, in units of cp's time:
 *
 *                                   daemon    system's call
 *     ext4, bytes keep their blocks   0.82    0.75
 *     ext4, moved by 128 bytes        0.86    1.39
 *     tmpfs, either                   0.97    1.07, 1.03
 *
 * So the call is hardly faster where it is, and slower elsewhere; and jobs of the daemon have a
 * place among others, with priorities and limits.
 *
 * A piece at a time, by whoever waits for the client, so that answers for other jobs, progress and
 * cancelling have their turn; pieces are as long as the system does within a few milliseconds.
 *
 * Called by job.c, and by client.c whenever somebody waits.
 */
#include "client/lib/jobs/copy.h"
#include "client/lib/jobs/carry.h"
#include "client/lib/jobs/job.h"
#include "client/meaning.h"
#include "client/clock.h"
#include "proto/error.h"
#include "proto/system/file_systems.h"
#include "proto/util.h"

#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#define MIN_RUN_BYTES   (UINT64_C(64) << 10) /* shorter ones are gathered faster in memory */
#define BLOCK_BYTES     4096                 /* of most file systems, and of the page cache */
#define BUFFER_BYTES    (UINT64_C(1) << 20)
#define MAX_PIECE_BYTES (UINT64_C(1) << 30)
#define QUICK_NS        1000000
#define SLOW_NS         4000000

/* Whether it is one ---------------------------------------------------------------------------- */

/* Axes of more than one element, those that are farthest apart in the new file first. */
static int order_axes(const struct gad_array *to, int ret_axes[ARRAY_MAX_NDIM])
{
    int n = 0;
    for (int i = 0; i < to->info.ndim; i++) {
        if (to->info.shape[i] == 1)
            continue;
        int place = n++;
        for (; place > 0 && to->info.strides[ret_axes[place - 1]] < to->info.strides[i]; place--)
            ret_axes[place] = ret_axes[place - 1];
        ret_axes[place] = i;
    }
    return n;
}

/* The innermost axes that lie in the source as they do in the new file, which has no gaps, are a
 * run; the others lead from run to run. */
static void find_runs(struct copy *copy)
{
    const struct gad_array_info *from = &copy->source->info, *to = &copy->to->info;
    int axes[ARRAY_MAX_NDIM];
    int n = order_axes(copy->to, axes);
    copy->run_bytes = copy->n_bytes = gad_dtype_size(to->dtype);
    for (int i = 0; i < n; i++)
        copy->n_bytes *= (uint64_t)to->shape[axes[i]];
    while (n > 0 && from->strides[axes[n - 1]] == (int64_t)copy->run_bytes)
        copy->run_bytes *= (uint64_t)to->shape[axes[--n]];
    copy->n_axes = n;
    for (int i = 0; i < n; i++) {
        copy->counts[i] = to->shape[axes[i]];
        copy->strides[i] = from->strides[axes[i]];
    }
}

static bool is_in_file(const struct gad_array *array)
{
    return array && array->access == ACCESS_FILE && array->fd >= 0;
}

/* A boolean of another byte than 0 and 1 is 1 in every result. */
static bool has_same_elements(const struct gad_array *a, const struct gad_array *b)
{
    return a->info.dtype == b->info.dtype && a->info.dtype != GAD_BOOL &&
           (a->info.is_swapped == b->info.is_swapped || gad_dtype_size(a->info.dtype) == 1) &&
           a->info.ndim == b->info.ndim &&
           memcmp(a->info.shape, b->info.shape, (size_t)a->info.ndim * sizeof(int64_t)) == 0;
}

/* Where in the source's file a byte of the result comes from. */
static uint64_t source_offset(const struct copy *copy, uint64_t at_bytes)
{
    uint64_t run = at_bytes / copy->run_bytes;
    int64_t offset = (int64_t)copy->source->offset_bytes + (int64_t)(at_bytes % copy->run_bytes);
    for (int i = copy->n_axes - 1; i >= 0; i--) {
        offset += (int64_t)(run % (uint64_t)copy->counts[i]) * copy->strides[i];
        run /= (uint64_t)copy->counts[i];
    }
    return (uint64_t)offset;
}

/* Whether every block of the new file, but for the outermost, is a block of the source. */
static bool has_same_blocks(const struct copy *copy)
{
    bool is_aligned = copy->n_axes == 0 || copy->run_bytes % BLOCK_BYTES == 0;
    for (int i = 0; i < copy->n_axes; i++)
        is_aligned &= copy->strides[i] % BLOCK_BYTES == 0;
    return is_aligned && (copy->source->offset_bytes - copy->to->offset_bytes) % BLOCK_BYTES == 0;
}

/* The first whole block of both. */
static bool shares_blocks(const struct copy *copy)
{
    uint64_t before = -copy->to->offset_bytes % BLOCK_BYTES;
    struct file_clone_range block = {
        .src_fd = copy->source->fd,
        .src_offset = source_offset(copy, 0) + before,
        .src_length = BLOCK_BYTES,
        .dest_offset = copy->to->offset_bytes + before,
    };
    return before + BLOCK_BYTES <= copy->run_bytes && has_same_blocks(copy) &&
           ioctl(copy->to->fd, FICLONERANGE, &block) == 0;
}

static bool is_the_systems(const struct copy *copy)
{
    struct stat from, to;
    if (fstat(copy->source->fd, &from) || fstat(copy->to->fd, &to) || from.st_dev != to.st_dev ||
        copy->run_bytes < min_u64(MIN_RUN_BYTES, copy->n_bytes))
        return false;
    return shares_blocks(copy) || !file_system_is_local(copy->source->fd);
}

bool copy_begin(struct gad_job *job)
{
    const struct gad_job_options *options = &job->options;
    struct copy *copy = &job->copy;
    const char *engine = options->engine;
    if (!options->may_copy || (engine && strcmp(engine, "auto") != 0) || options->n_outputs != 1 ||
        !job->targets[0].is_created)
        return false;
    const struct gad_argument *argument = carry_whole_source(options, options->outputs[0].expr);
    struct gad_array *source = argument ? argument->array : NULL, *to = job->targets[0].to;
    if (!is_in_file(source) || !is_in_file(to) || meaning_unpacking(source) ||
        !has_same_elements(source, to))
        return false;
    const char *name = options->outputs[0].name;
    *copy = (struct copy){.source = source,
                          .to = to,
                          .source_name = argument->name,
                          .to_name = name ? name : "outputs[0]",
                          .piece_bytes = BUFFER_BYTES,
                          .began_ns = clock_now_ns()};
    find_runs(copy);
    return is_the_systems(copy);
}

void copy_deinit(struct copy *copy)
{
    free(steal_ptr(copy->buffer));
}

/* Copying -------------------------------------------------------------------------------------- */

static int source_ends(const struct copy *copy, uint64_t needed_bytes, struct gad_error *error)
{
    struct stat st;
    error_set(error, GAD_SHORT_READ, copy->source_name, "the file ends before the array does");
    error_expected(error, "bytes up to %llu", (unsigned long long)needed_bytes);
    if (fstat(copy->source->fd, &st) == 0)
        error_found(error, "an end at byte %lld", (long long)st.st_size);
    return GAD_SHORT_READ;
}

static int write_all(const struct copy *copy, size_t n_bytes, uint64_t to, struct gad_error *error)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = pwrite(copy->to->fd, (const char *)copy->buffer + done, n_bytes - done,
                           (off_t)(to + done));
        if (n < 0 && errno != EINTR)
            return error_from_errno(error, errno, copy->to_name, "writing the file");
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Through the buffer; *ret_n 0: the source has ended. */
static int move_some(const struct copy *copy, uint64_t from, uint64_t to, size_t most,
                     size_t *ret_n, struct gad_error *error)
{
    ssize_t n;
    do
        n = pread(copy->source->fd, copy->buffer, min_u64(most, BUFFER_BYTES), (off_t)from);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return error_from_errno(error, errno, copy->source_name, "reading the file");
    *ret_n = (size_t)n;
    return write_all(copy, (size_t)n, to, error);
}

/* By the system, until it refuses. */
static int copy_some(struct copy *copy, uint64_t from, uint64_t to, size_t most, size_t *ret_n,
                     struct gad_error *error)
{
    off_t from_at = (off_t)from, to_at = (off_t)to;
    while (!copy->buffer) {
        ssize_t n = copy_file_range(copy->source->fd, &from_at, copy->to->fd, &to_at, most, 0);
        if (n > 0) {
            *ret_n = (size_t)n;
            return 0;
        }
        if (n < 0 && errno == EINTR)
            continue;
        copy->buffer = malloc(BUFFER_BYTES); /* reading also tells whether that was the end */
        if (!copy->buffer)
            return -ENOMEM;
    }
    return move_some(copy, from, to, most, ret_n, error);
}

static int copy_piece(struct copy *copy, struct gad_error *error)
{
    uint64_t in_run = copy->done_bytes % copy->run_bytes;
    uint64_t from = source_offset(copy, copy->done_bytes);
    uint64_t whole = copy->piece_bytes - from % BLOCK_BYTES; /* ends where a block does */
    uint64_t most = min_u64(whole, copy->run_bytes - in_run);
    size_t n = 0;
    int64_t began = clock_now_ns();
    int r =
        copy_some(copy, from, copy->to->offset_bytes + copy->done_bytes, (size_t)most, &n, error);
    if (r)
        return r;
    if (n == 0)
        return source_ends(copy, from + most, error);
    copy->done_bytes += n;
    int64_t took = clock_now_ns() - began;
    if (took < QUICK_NS && n == whole && n < MAX_PIECE_BYTES)
        copy->piece_bytes *= 2;
    else if (took > SLOW_NS && copy->piece_bytes > BUFFER_BYTES)
        copy->piece_bytes /= 2;
    return 0;
}

/* The job -------------------------------------------------------------------------------------- */

static uint64_t n_pieces(uint64_t n_bytes)
{
    return (n_bytes + BUFFER_BYTES - 1) / BUFFER_BYTES;
}

static void tell_progress(struct gad_job *job)
{
    struct copy *copy = &job->copy;
    const struct gad_progress progress = {
        .tiles_done = copy->done_bytes / BUFFER_BYTES,
        .n_tiles = n_pieces(copy->n_bytes),
        .read_bytes = copy->done_bytes,
        .write_bytes = copy->done_bytes,
        .total_bytes = 2 * copy->n_bytes,
    };
    int64_t now = clock_now_ms();
    if (!job->options.progress || now - copy->told_ms < build_progress_ms(&job->options))
        return;
    copy->told_ms = now;
    job->options.progress(job->options.progress_data, &progress);
}

static void set_stats(struct gad_job *job)
{
    const struct copy *copy = &job->copy;
    struct gad_job_stats *stats = &job->result.stats;
    stats->n_tiles = n_pieces(copy->n_bytes);
    stats->read_bytes = stats->write_bytes = copy->n_bytes;
    stats->total_s = stats->client_s = (double)(clock_now_ns() - copy->began_ns) * 1e-9;
    snprintf(stats->engine, sizeof(stats->engine), "client");
    snprintf(stats->engine_why, sizeof(stats->engine_why),
             "the elements only change their place: %s",
             copy->buffer ? "this process copies them" : "the system copies them");
}

static bool is_copying(const struct gad_job *job)
{
    return job->state == JOB_COPYING;
}

bool copy_is_under_way(const struct gad_client *client)
{
    for (const struct gad_job *job = client->jobs; job; job = job->next)
        if (is_copying(job))
            return true;
    return false;
}

bool copy_jobs(struct gad_client *client)
{
    struct gad_job *job = NULL;
    for (struct gad_job *at = client->jobs; at; at = at->next)
        job = is_copying(at) ? at : job; /* newer ones stand before older ones */
    if (!job)
        return false;
    struct copy *copy = &job->copy;
    int r = job->wants_cancel ? error_set(&job->error, GAD_CANCELLED, NULL, "the job was cancelled")
                              : 0;
    if (r == 0 && copy->done_bytes < copy->n_bytes)
        r = copy_piece(copy, &job->error);
    if (r == 0) {
        tell_progress(job);
        if (copy->done_bytes < copy->n_bytes)
            return true;
        set_stats(job);
    }
    job_copied(job, r);
    return true;
}
