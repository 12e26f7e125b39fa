/* The outputs of a job.
 *
 *     output of the caller     what the request names        at the end
 *     (none)                   nothing: inline               read from the answer
 *     array: file, region      the array itself              nothing
 *     array in memory          the array itself, by a ring   nothing
 *       small, or a source     shared memory (stand-in)      copied
 *     path                     a new file, as planned        committed
 *
 * A stand-in spares small results the ring. It also makes work in place safe in the caller's
 * memory: the daemon cannot see that two rings lead to the same bytes, so nothing is stored before
 * everything was read, and such a job can be run again.
 *
 * Called by job.c.
 */
#include "client/lib/jobs/targets.h"
#include "client/lib/jobs/carry.h"
#include "client/lib/memory/block.h"
#include "client/formats/formats.h"
#include "client/lib/memory/memory.h"
#include "client/lib/memory/stream.h"
#include "client/lib/jobs/plan.h"
#include "proto/overlap.h"
#include "proto/util.h"

#include <string.h>
#include <sys/stat.h>

/* The daemon sees that two regions are the same bytes; of the caller's memory behind a ring it
 * knows nothing. */
static bool is_hidden_source(const struct gad_job_options *options, const struct gad_array *to)
{
    for (unsigned i = 0; i < options->n_args; i++) {
        const struct gad_array *source = options->args[i].array;
        if (source && (source->access == ACCESS_MEMORY || to->access == ACCESS_MEMORY) &&
            memory_meet(source, to) != MEMORY_APART)
            return true;
    }
    return false;
}

static int make_stand_in(struct gad_job *job, struct job_target *target, struct gad_error *error)
{
    const struct gad_array *to = target->to;
    struct array described;
    if (!build_is_small(to) && !is_hidden_source(&job->options, to))
        return 0;
    struct gad_layout layout = {
        .dtype = to->info.dtype,
        .is_swapped = to->info.is_swapped, /* its bytes are copied as they are */
        .ndim = to->info.ndim,
        .shape = to->info.shape,
    };
    int r = memory_describe(&layout, &described, error);
    return r ? r : memory_new_array(job->client, &described, false, &target->stand_in, error);
}

/* What is carried is known before there is a file: axes without a limit say how it is stored. */
static int create(struct gad_job *job, unsigned i, const struct gad_plan_output *planned,
                  struct gad_error *error)
{
    const struct gad_output *output = &job->options.outputs[i];
    struct job_target *target = &job->targets[i];
    struct array what = {.dtype = (enum dtype)planned->dtype, .ndim = planned->ndim};
    struct carried *carried = NULL;
    memcpy(what.shape, planned->shape, (size_t)planned->ndim * sizeof(int64_t));
    if (carry_is_written(format_of_new(output->to_path)))
        carried = carry_expression(&job->options, i, &what);
    int r = format_create_as(job->client, output->to_path, true, what.dtype, what.ndim, what.shape,
                             planned->fortran_order, output->storage,
                             carried ? &carried->limits : NULL, &target->to, error);
    if (r) {
        carried_free(carried);
        return r;
    }
    target->to->carried = carried;
    target->is_created = job->needs_settling = true;
    return 0;
}

/* An array that is not yet committed: it stays as its maker has made it. */
static void carry_to(const struct gad_job_options *options, unsigned i, struct gad_array *to)
{
    const struct array what = array_described(to);
    if (!to->commit || to->is_committed || !carry_is_written(to->info.format))
        return;
    carried_free(to->carried);
    to->carried = carry_expression(options, i, &what);
}

/* Of two new files for one name the second would silently replace the first. */
static int check_target(const struct gad_job *job, unsigned i, struct gad_error *error)
{
    struct gad_array *to = job->targets[i].to;
    for (unsigned j = 0; to && to->is_same_target && j < i; j++) {
        struct gad_array *other = job->targets[j].to;
        if (!other || other->is_same_target != to->is_same_target)
            continue;
        if (to->is_same_target(to, other))
            return error_set(error, GAD_OVERLAPPING_OUTPUT, to->info.path,
                             "two results cannot both go to %s", to->info.path);
        bool are_new = job->targets[i].is_created && job->targets[j].is_created;
        int r = are_new && to->join ? to->join(to, other, error) : 0;
        if (r)
            return r;
    }
    return 0;
}

static bool has_paths(const struct gad_job_options *options)
{
    for (unsigned i = 0; i < options->n_outputs; i++)
        if (options->outputs[i].to_path)
            return true;
    return false;
}

int targets_init(struct gad_job *job, struct gad_error *error)
{
    const struct gad_job_options *options = &job->options;
    struct gad_plan *plan = NULL;
    job->targets = calloc(options->n_outputs, sizeof(*job->targets));
    job->to = calloc(options->n_outputs, sizeof(struct gad_array *));
    if (!job->targets || !job->to)
        return -ENOMEM;
    int r = 0;
    if (has_paths(options) || options->progress)
        r = plan_ask(job->client, options, BUILD_SHAPES, &plan, error);
    if (plan)
        job->total_bytes = plan->read_bytes + plan->write_bytes;
    for (unsigned i = 0; i < options->n_outputs && r == 0; i++) {
        const struct gad_output *output = &options->outputs[i];
        struct job_target *target = &job->targets[i];
        if (output->to_path) {
            r = create(job, i, plan->outputs[i], error);
        } else if (output->to) {
            target->to = array_ref(output->to);
            carry_to(options, i, target->to);
            r = make_stand_in(job, target, error);
        }
        if (r == 0)
            r = check_target(job, i, error);
        job->to[i] = target->stand_in ? target->stand_in : target->to;
    }
    gad_plan_free(plan);
    return r;
}

static void copy_out(const struct job_target *target)
{
    const struct gad_array_info *info = &target->to->info;
    block_scatter(target->to->data, target->stand_in->data, info->ndim, info->shape, info->strides,
                  gad_dtype_size(info->dtype), false);
}

static int check_sources(const struct gad_job_options *options, struct gad_error *error)
{
    int r = 0;
    for (unsigned i = 0; i < options->n_args && r == 0; i++) {
        struct gad_array *source = options->args[i].array;
        if (source && source->was_read)
            r = source->was_read(source, error);
    }
    return r;
}

int targets_finish(struct gad_job *job, struct gad_error *error)
{
    int r = check_sources(&job->options, error);
    for (unsigned i = 0; i < job->options.n_outputs && r == 0; i++) {
        struct job_target *target = &job->targets[i];
        if (target->stand_in)
            copy_out(target);
        if (target->to && array_is_open(target->to) && !stream_of(target->to))
            target->to->info.shape[0] = job->result.outputs[i].what.shape[0];
        if (target->is_created)
            r = (int)gad_array_commit(target->to, error);
        else if (target->to && target->to->written)
            r = target->to->written(target->to, error);
    }
    return r;
}

void targets_deinit(struct gad_job *job)
{
    for (unsigned i = 0; i < job->options.n_outputs && job->targets; i++) {
        gad_array_release(job->targets[i].stand_in);
        gad_array_release(job->targets[i].to);
    }
    free(steal_ptr(job->targets));
    free(steal_ptr(job->to));
}

static bool is_same_file(const struct gad_array *a, const struct gad_array *b)
{
    struct stat st_a, st_b;
    return a->fd >= 0 && b->fd >= 0 && fstat(a->fd, &st_a) == 0 && fstat(b->fd, &st_b) == 0 &&
           st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino;
}

/* Where they lie in one file, as far as that is known: not of chunks, which are never outputs, and
 * whose file's other datasets are elsewhere. */
static bool files_overlap(const struct gad_array *a, const struct gad_array *b)
{
    struct array of_a = array_described(a), of_b = array_described(b);
    return a->n_chunks == 0 && b->n_chunks == 0 && is_same_file(a, b) &&
           !array_is_apart(&of_a, (int64_t)a->offset_bytes, &of_b, (int64_t)b->offset_bytes);
}

bool targets_are_repeatable(const struct gad_job_options *options, struct gad_array *const *to_all)
{
    for (unsigned i = 0; i < options->n_outputs; i++) {
        const struct gad_array *to = to_all[i];
        for (unsigned j = 0; to && j < options->n_args; j++) {
            const struct gad_array *source = options->args[j].array;
            if (source && (source == to || memory_meet(source, to) != MEMORY_APART ||
                           files_overlap(source, to)))
                return false;
        }
    }
    return true;
}

static bool meets_unseen(const struct gad_array *to, const struct gad_array *other)
{
    return other && (to->access == ACCESS_PROVIDER || other->access == ACCESS_PROVIDER) &&
           files_overlap(to, other);
}

int targets_check_unseen(const struct gad_job *job, struct gad_error *error)
{
    const struct gad_job_options *options = &job->options;
    for (unsigned i = 0; i < options->n_outputs; i++) {
        const struct gad_array *to = job->to[i];
        bool is_shared = false;
        for (unsigned j = 0; to && j < options->n_args; j++)
            is_shared |= meets_unseen(to, options->args[j].array);
        for (unsigned j = 0; to && j < i; j++)
            is_shared |= meets_unseen(to, job->to[j]);
        if (is_shared)
            return error_set(error, GAD_OVERLAPPING_OUTPUT, to->info.path,
                             "%s: working in place is not possible on its file system",
                             to->info.path ? to->info.path : "the output");
    }
    return 0;
}
