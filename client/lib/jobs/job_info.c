/* What is known of a job: its progress while it runs, its numbers and inline results at the end.
 * Nothing here changes a job. Called by callers, and by client.c for notifications.
 */
#include "client/lib/jobs/job.h"
#include "proto/wire/map.h"

void job_progress(struct gad_client *client, const msgpack_object *params)
{
    struct gad_progress progress = {0};
    if (map_u64(params, "job", &progress.job, NULL) ||
        map_u64(params, "tiles_done", &progress.tiles_done, NULL) ||
        map_u64(params, "tiles", &progress.n_tiles, NULL) ||
        map_u64(params, "read_bytes", &progress.read_bytes, NULL) ||
        map_u64(params, "write_bytes", &progress.write_bytes, NULL))
        return;
    for (struct gad_job *job = client->jobs; job; job = job->next)
        if (job->id == progress.job && job->options.progress) {
            progress.total_bytes = job->total_bytes;
            job->options.progress(job->options.progress_data, &progress);
            return;
        }
}

bool gad_job_is_done(const struct gad_job *job)
{
    return job && job->state == JOB_DONE;
}

uint64_t gad_job_id(const struct gad_job *job)
{
    return job ? job->id : 0;
}

const struct gad_job_stats *gad_job_stats(const struct gad_job *job)
{
    return job && job->state == JOB_DONE && job->status == GAD_OK ? &job->result.stats : NULL;
}

const void *gad_job_result(const struct gad_job *job, unsigned i,
                           struct gad_plan_output *ret_output)
{
    if (!gad_job_stats(job) || i >= job->result.n_outputs || !job->result.outputs[i].data)
        return NULL;
    if (ret_output)
        *ret_output = job->result.outputs[i].what;
    return job->result.outputs[i].data;
}
