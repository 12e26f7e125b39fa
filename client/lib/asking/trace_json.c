/* The trace of a job, asked of the daemon (job.trace). */
#include "client/lib/asking/ask.h"
#include "client/lib/asking/json.h"
#include "client/lib/asking/trace_events.h"

#include <json-c/json.h>

enum gad_status gad_job_trace_json(struct gad_client *client, uint64_t job, char **ret_json,
                                   struct gad_error *error)
{
    struct reply *reply;
    struct json_object *events = NULL;
    if (!ret_json)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_json", "ret_json is NULL");
    int r = client_ask_of_job(client, "job.trace", job, &reply, error);
    if (r)
        return client_status(r, error);
    r = trace_events_make(&reply->message.result, &events, error);
    reply_free(reply);
    if (r == 0)
        r = json_text(events, ret_json);
    json_object_put(events);
    return client_status(r, error);
}
