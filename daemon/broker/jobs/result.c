/* Results of jobs.
 *
 *     job  ------------ is_kept ---+
 *     connection --- reference --> result --> the worker's message
 *     connection --- reference ----+
 *
 * However many wait for a job, its result is in memory once. The records of ended jobs have a bound
 * of their own; what connections have still to send counts as replies of the job's user, once,
 * until the last of them has sent it.
 *
 * Called by finish.c and job.c.
 */
#include "daemon/broker/jobs/result.h"
#include "proto/util.h"

static void free_result(struct result *result)
{
    charge_release(&result->charge);
    free(result->body);
    free(result);
}

static void on_unused(struct shared *shared)
{
    struct result *result = (struct result *)(void *)shared; /* its first member */
    charge_release(&result->charge);
    if (!result->is_kept)
        free_result(result);
}

struct result *result_new(void)
{
    return calloc(1, sizeof(struct result));
}

void result_fill(struct result *result, char *body_take, size_t n_body_bytes, const char *map,
                 size_t n_map_bytes)
{
    *result = (struct result){
        .shared = {.unused = on_unused},
        .body = body_take,
        .n_body_bytes = n_body_bytes,
        .map = map,
        .n_map_bytes = n_map_bytes,
        .is_kept = true,
    };
}

struct result *result_drop(struct result *result)
{
    if (!result)
        return NULL;
    result->is_kept = false;
    if (result->shared.n_refs == 0)
        free_result(result);
    return NULL;
}
