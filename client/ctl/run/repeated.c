/* gpuarrayctl run --repeat N: steps of time, as many jobs as it takes (gad_repeat()).
 *
 *     gpuarrayctl run --repeat 1000 'lap(u) = ...; u = u + k*v; v = v + lap(u)' u=.. v=.. k=0.1 -o
 * ..
 *
 * Every expression is what a step makes of the array of its name; one without a name is of the only
 * array among the arguments. Ctrl-C ends the job that runs and leaves what is done: the same
 * command goes on from there.
 */
#include "client/ctl/run/run.h"

#include <inttypes.h>
#include <string.h>

static bool is_cancelled(const void *data)
{
    (void)data;
    return ctl_was_interrupted();
}

static int tell(void *data, uint64_t n_done, uint64_t n_steps)
{
    struct run_options *o = data;
    char text[64];
    snprintf(text, sizeof(text), "%" PRIu64 " of %" PRIu64 " steps", n_done, n_steps);
    ctl_progress_count(&o->steps, n_done, n_steps, -1, text);
    return 0;
}

/* Of the only array among the arguments. */
static int find_name(struct run_options *o)
{
    const char *name = NULL;
    unsigned n = 0;
    for (unsigned i = 0; i < o->job.n_args; i++)
        if (o->job.args[i].array) {
            name = o->job.args[i].name;
            n++;
        }
    if (n == 1 && o->job.n_outputs == 1) {
        o->job.outputs[0].name = name;
        return 0;
    }
    int r = error_set(&o->error, GAD_BAD_ARGUMENT, "outputs",
                      "repeat: which array the step is of is not said");
    error_expected(&o->error, "NAME = EXPRESSION");
    return r;
}

static void print_outcome(const struct run_options *o, const struct gad_repeat_outcome *outcome)
{
    char read[32], written[32];
    if (o->json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "steps", json_object_new_uint64(outcome->n_done));
        json_object_object_add(object, "steps_before", json_object_new_uint64(outcome->n_before));
        json_object_object_add(object, "steps_at_once",
                               json_object_new_uint64(outcome->steps_at_once));
        json_object_object_add(object, "jobs", json_object_new_uint64(outcome->n_jobs));
        json_object_object_add(object, "read_bytes", json_object_new_uint64(outcome->read_bytes));
        json_object_object_add(object, "write_bytes", json_object_new_uint64(outcome->write_bytes));
        ctl_put_json(object);
        return;
    }
    if (outcome->n_before > 0)
        fprintf(stderr, "went on after %" PRIu64 " steps of before\n", outcome->n_before);
    if (o->verbose)
        fprintf(stderr, "%" PRIu64 " jobs of up to %" PRIu32 " steps, %s read, %s written\n",
                outcome->n_jobs, outcome->steps_at_once,
                ctl_format_bytes((double)outcome->read_bytes, read),
                ctl_format_bytes((double)outcome->write_bytes, written));
}

static void explain(const struct run_options *o, const struct gad_repeat_outcome *outcome)
{
    uint64_t n_left = o->n_repeats - outcome->n_before, at_once = outcome->steps_at_once;
    uint64_t n_jobs = (n_left + at_once - 1) / at_once;
    printf("%" PRIu64 " steps, %" PRIu64 " of them done; %" PRIu64 " at once, in one read and one "
           "write: %" PRIu64 " job%s\n",
           o->n_repeats, outcome->n_before, at_once, n_jobs, n_jobs == 1 ? "" : "s");
}

int run_repeated(struct run_options *o, struct gad_client *client)
{
    struct gad_repeat_outcome outcome;
    int r = 0;
    for (unsigned i = 0; i < o->job.n_outputs && r == 0; i++)
        if (!o->job.outputs[i].name)
            r = find_name(o);
    if (r)
        return r;
    const struct gad_repeat options = {.n_steps = o->n_repeats,
                                       .n_args = o->job.n_args,
                                       .args = o->job.args,
                                       .n_outputs = o->job.n_outputs,
                                       .outputs = o->job.outputs,
                                       .engine = o->engine,
                                       .label = o->label,
                                       .beyond = o->has_mode ? &o->beyond : NULL,
                                       .priority = o->priority,
                                       .queue_timeout_ms = o->queue_timeout_ms,
                                       .deadline_ms = o->deadline_ms,
                                       .step = tell,
                                       .is_cancelled = is_cancelled,
                                       .data = o,
                                       .only_plans = o->explain};
    ctl_progress_begin(&o->steps, o->quiet || o->json);
    r = (int)gad_repeat(client, &options, &outcome, &o->error);
    ctl_progress_end(&o->steps);
    if (r == 0 && o->explain && !o->json)
        explain(o, &outcome);
    else if (r == 0)
        print_outcome(o, &outcome);
    else if (outcome.n_done > 0 && !o->json)
        fprintf(stderr, "%" PRIu64 " steps are done: the same command goes on from there\n",
                outcome.n_done);
    return r;
}
