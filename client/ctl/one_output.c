/* The options of verbs that have one result, which a function of the library computes: movements,
 * products, the user's own function.
 */
#include "client/ctl/ctl.h"

#define PROGRESS_MS 100

error_t ctl_parse_output(int key, char *arg, struct ctl_output *output, struct argp_state *state)
{
    switch (key) {
    case 'o':
        if (output->destination)
            return ctl_usage_error(state, "there is one destination: '%s' is too much", arg);
        output->destination = arg;
        return 0;
    case 'l': output->move.label = arg; return 0;
    case 'q': output->quiet = true; return 0;
    case 'v': output->verbose = true; return 0;
    case CTL_OPTION_JSON: output->json = true; return 0;
    case CTL_OPTION_IN_PLACE: output->in_place = true; return 0;
    case CTL_OPTION_ENGINE: output->move.engine = arg; return 0;
    case CTL_OPTION_PRIORITY: return ctl_read_priority(arg, &output->move.priority, state);
    case CTL_OPTION_QUEUE_TIMEOUT:
    case CTL_OPTION_DEADLINE:
        return ctl_parse_times(key, arg, &output->move.queue_timeout_ms, &output->move.deadline_ms,
                               state);
    default:
        return ctl_parse_masking(key, &output->masking)
                   ? 0
                   : ctl_parse_storage(key, arg, &output->storage, state);
    }
}

int ctl_open_output(struct gad_client *client, struct ctl_output *output, bool is_there,
                    struct gad_error *error)
{
    output->move.storage = &output->storage.asked;
    if (is_there)
        return (int)gad_array_open_in_place(client, output->destination, &output->move.to, error);
    output->move.to_path = output->destination;
    return 0;
}

bool ctl_is_cancelled(const void *data)
{
    (void)data;
    return ctl_was_interrupted();
}

void ctl_watch_output(struct ctl_output *output, struct ctl_progress *progress)
{
    ctl_progress_begin(progress, output->quiet || output->json);
    output->move.progress = progress->is_shown ? ctl_progress_draw : NULL;
    output->move.progress_data = progress;
    output->move.progress_ms = PROGRESS_MS;
    output->move.is_cancelled = ctl_is_cancelled;
}
