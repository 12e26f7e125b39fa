/* Plans: what a job would do, asked of the daemon, told to a program as numbers and to a reader as
 * text.
 *
 * The text is written into a growing buffer from the same answer that the numbers are read from, so
 * it also has what gad_plan has no members for: the names that a pass reads, its grains, the
 * program.
 *
 * Called by callers, and by targets.c for the shapes of new files.
 */
#include "client/lib/jobs/plan.h"
#include "client/lib/arguments/indexed.h"
#include "client/lib/arguments/unpack.h"
#include "client/lib/jobs/targets.h"
#include "client/lib/jobs/job.h"
#include "client/lib/jobs/job_streams.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHAPE_CHARS 512

void plan_bytes_print(FILE *out, uint64_t n_bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)n_bytes;
    unsigned unit = 0;
    for (; value >= 1024 && unit + 1 < ARRAY_LENGTH(units); unit++)
        value /= 1024;
    fprintf(out, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void print_outputs(FILE *out, const struct gad_plan *plan)
{
    for (unsigned i = 0; i < plan->n_outputs; i++) {
        const struct gad_plan_output *output = plan->outputs[i];
        char shape[SHAPE_CHARS];
        fprintf(out, "output   %s%s%s %s%s\n", output->name, output->name[0] ? ": " : "",
                gad_dtype_name(output->dtype),
                array_format_shape(output->ndim, output->shape, shape, sizeof(shape)),
                output->fortran_order ? ", Fortran order" : "");
    }
}

static void print_program(FILE *out, const msgpack_object *map)
{
    const char *text = NULL;
    size_t n_chars = 0;
    if (map_str(map, "program", &text, &n_chars, NULL) || !text || n_chars == 0)
        return;
    fputs("program\n", out);
    while (n_chars > 0) {
        const char *newline = memchr(text, '\n', n_chars);
        size_t n = newline ? (size_t)(newline - text) : n_chars;
        fprintf(out, "  %.*s\n", (int)n, text);
        n += newline != NULL;
        text += n;
        n_chars -= n;
    }
}

static int print_plan(const msgpack_object *map, bool is_open, struct gad_plan *plan)
{
    size_t n_bytes = 0;
    FILE *out = open_memstream(&plan->text, &n_bytes);
    if (!out)
        return -ENOMEM;
    print_outputs(out, plan);
    plan_engines_print(out, plan);
    if (plan->product)
        plan_product_print(out, map, plan);
    else
        plan_passes_print(out, map, plan);
    fputs("reads    ", out);
    if (is_open) {
        fputs("until the streams of unknown length end", out);
    } else {
        plan_bytes_print(out, plan->read_bytes);
        fputs("\nwrites   ", out);
        plan_bytes_print(out, plan->write_bytes);
    }
    fputs("\ncarries  ", out);
    plan_bytes_print(out, plan->carry_bytes);
    if (!is_open)
        fprintf(out, "\ntime     about %.3g s", plan->seconds);
    fprintf(out, "\nrestarts %s\n", plan->is_restartable ? "yes" : "no");
    print_program(out, map);
    bool has_failed = ferror(out) != 0;
    if (fclose(out) || has_failed)
        return -ENOMEM;
    return 0;
}

void *plan_list_new(size_t n, size_t element_bytes)
{
    char **list = calloc(n + 1, sizeof(*list) + element_bytes);
    for (size_t i = 0; list && i < n; i++)
        list[i] = (char *)(list + n) + i * element_bytes;
    return list;
}

/* What is as long as the open axis is of a length that nobody knows, and so is all that goes with
 * it. */
static void forget_lengths(struct gad_plan *plan, struct gad_plan_output *const *outputs,
                           int64_t open_length)
{
    if (open_length == 0)
        return;
    for (unsigned i = 0; i < plan->n_outputs; i++)
        if (outputs[i]->ndim > 0 && outputs[i]->shape[0] == open_length)
            outputs[i]->shape[0] = GAD_UNKNOWN_LENGTH;
    for (unsigned i = 0; i < plan->n_passes; i++)
        plan_pass_forget((struct gad_plan_pass *)(uintptr_t)plan->passes[i], open_length);
    plan->n_tiles = plan->read_bytes = plan->write_bytes = 0;
    plan->seconds = 0;
}

static int read_plan(const msgpack_object *map, unsigned n_outputs, int64_t open_length,
                     struct gad_plan *plan, struct gad_error *error)
{
    const msgpack_object *outputs = map_find(map, "outputs");
    struct gad_plan_output **list = plan_list_new(n_outputs, sizeof(**list));
    int r = list ? 0 : -ENOMEM;
    plan->outputs = (const struct gad_plan_output *const *)list;
    if (r == 0)
        r = plan_engines_read(map, plan);
    if (r == 0)
        r = plan_passes_read(map, plan);
    if (r == 0)
        r = plan_product_read(map, plan);
    if (r == -ENOMEM)
        return r;
    if (r || !outputs || outputs->type != MSGPACK_OBJECT_ARRAY ||
        outputs->via.array.size != n_outputs || map_u64(map, "tiles", &plan->n_tiles, NULL) ||
        map_u64(map, "read_bytes", &plan->read_bytes, NULL) ||
        map_u64(map, "write_bytes", &plan->write_bytes, NULL) ||
        map_u64(map, "carry_bytes", &plan->carry_bytes, NULL) ||
        map_f64(map, "seconds", &plan->seconds, NULL) ||
        map_bool(map, "restartable", &plan->is_restartable, NULL))
        return error_set(error, GAD_PROTOCOL, NULL, "the daemon's answer is no plan");
    plan->n_outputs = n_outputs;
    for (unsigned i = 0; i < n_outputs && r == 0; i++)
        r = result_read_output(&outputs->via.array.ptr[i], list[i], error);
    forget_lengths(plan, list, open_length);
    r = r ? r : print_plan(map, open_length > 0, plan);
    if (r == 0)
        build_restore_text(open_length, plan->text);
    return r;
}

/* No worker has heard of the rings that are in a question: the job finds them. */
static void keep_rings(struct build *build)
{
    while (build->feeds) {
        struct feed *feed = build->feeds;
        build->feeds = feed->next;
        feed_free_done(feed);
    }
}

/* *ret_open_length: as of the request. */
static int ask_once(struct gad_client *client, const struct build_source *source,
                    struct reply **ret_reply, int64_t *ret_open_length, struct gad_error *error)
{
    struct build build;
    struct client_call call;
    uint32_t id;
    int fds[FRAME_MAX_FDS];
    int r = build_init(&build, client, source, error);
    *ret_open_length = build.request.open_length;
    if (r == 0)
        r = client_begin_call(client, "job.plan", &call, &id, error);
    if (r == 0) {
        unsigned n_fds = build.n_fds;
        request_encode(&client->writer.packer, &build.request);
        memcpy(fds, build.fds, sizeof(fds));
        build.n_fds = 0;
        r = client_finish_call(client, &call, id, fds, n_fds, clock_deadline_ms(client->answer_ms),
                               ret_reply, error);
    }
    if (r == 0)
        keep_rings(&build);
    build_deinit(&build);
    return r;
}

int plan_ask(struct gad_client *client, const struct gad_job_options *options,
             enum build_purpose purpose, struct gad_plan **ret_plan, struct gad_error *error)
{
    struct gad_array *to[REQUEST_MAX_OUTPUTS] = {NULL};
    struct build_source source = {.options = options, .to = to, .purpose = purpose};
    struct gad_error refusal;
    struct reply *reply;
    int64_t open_length = 0;
    for (unsigned i = 0; i < options->n_outputs; i++)
        to[i] = options->outputs[i].to;
    source.is_repeatable =
        !job_has_streams(options) && (options->has_journal || targets_are_repeatable(options, to));
    int r;
    do {
        r = ask_once(client, &source, &reply, &open_length, &refusal);
        /* A question may be asked again: of the daemon that follows. */
        if (r == GAD_DISCONNECTED && (r = client_ensure(client, DEADLINE_NEVER, 0, &refusal)) == 0)
            r = ask_once(client, &source, &reply, &open_length, &refusal);
        if (r > 0) {
            unpack_restore(options, &refusal);
            build_restore_length(open_length, &refusal);
        }
    } while (r == GAD_USE_PROVIDER && job_turn_to_providers(options, to, &refusal));
    if (r) {
        if (error)
            *error = refusal;
        return r;
    }
    struct gad_plan *plan = calloc(1, sizeof(*plan));
    r = plan ? read_plan(&reply->message.result, options->n_outputs, open_length, plan, error)
             : -ENOMEM;
    reply_free(reply);
    if (r)
        gad_plan_free(plan);
    else
        *ret_plan = plan;
    return r;
}

enum gad_status gad_plan(struct gad_client *client, const struct gad_job_options *options,
                         struct gad_plan **ret_plan, struct gad_error *error)
{
    if (!client || !ret_plan)
        return error_set(error, GAD_BAD_ARGUMENT, client ? "ret_plan" : "client", "is NULL");
    struct indexed indexed = {0};
    int r = build_check_options(options, error);
    if (r == 0)
        r = client_ensure(client, DEADLINE_NEVER, 0, error);
    if (r == 0)
        r = indexed_init(&indexed, client, options, error);
    if (r == 0)
        r = plan_ask(client, &indexed.options, BUILD_PLAN, ret_plan, error);
    if (r)
        indexed_restore(&indexed.options, error);
    else
        indexed_restore_text(&indexed.options, (*ret_plan)->text);
    indexed_deinit(&indexed);
    return client_status(r, error);
}

void gad_plan_free(struct gad_plan *plan)
{
    if (!plan)
        return;
    free(plan->text);
    free((void *)plan->outputs);
    free((void *)plan->engines);
    free((void *)plan->passes);
    free((void *)plan->product);
    free(plan);
}
