/* gpuarrayctl run: expressions over arrays. Waits, draws progress, and on Ctrl-C cancels the job
 * and leaves nothing behind. Its words are shared with submit.c.
 */
#include "client/ctl/move/verb_move.h"
#include "client/ctl/run/profile.h"
#include "client/ctl/run/run.h"

#include "proto/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTION_EXPLAIN = 0x100,
    OPTION_JSON,
    OPTION_ENGINE,
    OPTION_IN_PLACE,
    OPTION_PRIORITY,
    OPTION_JOURNAL,
    OPTION_TF32,
    OPTION_ALL,
    OPTION_CSV,
    OPTION_REPEAT,
    OPTION_MODE,
    OPTION_PROFILE,
};

#define PROFILE_MS 20u /* between tidings of a job that is looked at closely */
#define JOURNAL_DOC                                                                                \
    "of a matrix product that is added to what its destination holds: what is being added is "     \
    "kept here, and the same command goes on from there; with --in-place"
#define MODE_DOC                                                                                   \
    "what near() and windows that name none have beyond the ends of an axis: edge (without it), "  \
    "constant (0) or constant=VALUE, reflect, symmetric, wrap"
#define TF32_DOC                                                                                   \
    "a device may round float32 to the 10 bits of TF32 before it multiplies matrices: faster"

static const struct argp_option run_argp_options[] = {
    {"output", 'o', "[NAME=]DEST", 0,
     "where a result goes: " CTL_DESTINATIONS ", or - for npy on standard output, -:raw for its "
     "elements alone; without it the result is printed",
     0},
    {"explain", OPTION_EXPLAIN, NULL, 0,
     "print the plan, with what each engine would take, and run nothing", 0},
    {"engine", OPTION_ENGINE, "NAME", 0, "auto, cpu, cuda, or cuda:N for one device", 0},
    {"in-place", OPTION_IN_PLACE, NULL, 0,
     "write into existing files, which may be sources of the same job", 0},
    CTL_MASKING_OPTIONS,
    CTL_STORAGE_OPTIONS,
    {"journal", OPTION_JOURNAL, "FILE", 0, JOURNAL_DOC, 0},
    {"repeat", OPTION_REPEAT, "N", 0,
     "N steps of time: the expression is what a step makes of the argument that its name says (or "
     "the only array); many steps go from file to file beside the destination, and the same "
     "command goes on where it was ended",
     0},
    {"mode", OPTION_MODE, "NAME", 0, MODE_DOC, 0},
    {"tf32", OPTION_TF32, NULL, 0, TF32_DOC, 0},
    {"priority", OPTION_PRIORITY, "N", 0, "-100 to 100 among your own jobs", 0},
    CTL_TIME_OPTIONS,
    {"label", 'l', "TEXT", 0, "shown in lists of jobs", 0},
    {"json", OPTION_JSON, NULL, 0, "print the outcome as JSON", 0},
    {"all", OPTION_ALL, NULL, 0, "print all elements, not the first of long arrays", 0},
    {"csv", OPTION_CSV, NULL, 0, "print all elements as comma-separated values, a line a row", 0},
    CTL_SHOW_OPTION,
    {"quiet", 'q', NULL, 0, "no progress bar", 0},
    {"verbose", 'v', NULL, 0, "say how long it took and why", 0},
    {"profile", OPTION_PROFILE, "FILE", 0,
     "draw memory of client, broker and workers and the bytes that went in and out, over the job's "
     "time, into FILE, as SVG",
     0},
    {0},
};

static error_t read_repeats(const char *text, uint64_t *ret, const struct argp_state *state)
{
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || *ret == 0)
        return ctl_usage_error(state, "--repeat takes a number of steps from 1 on, not '%s'", text);
    return 0;
}

static error_t read_mode(const char *text, struct gad_beyond *ret, const struct argp_state *state)
{
    static const char constant[] = "constant=";
    size_t n = sizeof(constant) - 1;
    bool has_value = strncmp(text, constant, n) == 0;
    if (has_value && ctl_read_scalar(text + n, &ret->value) && ret->value.kind != GAD_SCALAR_NONE) {
        ret->mode = GAD_PAD_CONSTANT;
        return 0;
    }
    if (!has_value && move_read_mode(text, &ret->mode))
        return 0;
    return ctl_usage_error(state,
                           "--mode takes edge, constant, constant=NUMBER, reflect, symmetric or "
                           "wrap, not '%s'",
                           text);
}

static error_t parse_run_option(int key, char *arg, struct argp_state *state)
{
    struct run_options *o = state->input;
    switch (key) {
    case 'o':
        if (o->n_destinations == CTL_MAX_OUTPUTS)
            return ctl_usage_error(state, "at most %d destinations", CTL_MAX_OUTPUTS);
        o->destinations[o->n_destinations++] = arg;
        return 0;
    case 'l': o->label = arg; return 0;
    case 'q': o->quiet = true; return 0;
    case 'v': o->verbose = true; return 0;
    case OPTION_JSON: o->json = true; return 0;
    case CTL_OPTION_SHOW: o->show = true; return 0;
    case OPTION_ALL: o->printing = o->printing ? o->printing : CTL_PRINT_ALL; return 0;
    case OPTION_CSV: o->printing = CTL_PRINT_CSV; return 0;
    case OPTION_EXPLAIN: o->explain = true; return 0;
    case OPTION_IN_PLACE: o->in_place = true; return 0;
    case OPTION_ENGINE: o->engine = arg; return 0;
    case OPTION_JOURNAL: o->journal_path = arg; return 0;
    case OPTION_TF32: o->tf32 = true; return 0;
    case OPTION_PROFILE:
        if (arg[0] == '\0')
            return ctl_usage_error(state, "--profile needs the name of a file");
        o->profile_path = arg;
        return 0;
    case OPTION_MODE: o->has_mode = true; return read_mode(arg, &o->beyond, state);
    case OPTION_REPEAT: return read_repeats(arg, &o->n_repeats, state);
    case CTL_OPTION_QUEUE_TIMEOUT:
    case CTL_OPTION_DEADLINE:
        return ctl_parse_times(key, arg, &o->queue_timeout_ms, &o->deadline_ms, state);
    case OPTION_PRIORITY: return ctl_read_priority(arg, &o->priority, state);
    case ARGP_KEY_ARG:
        if (!o->expression) {
            o->expression = arg;
            return 0;
        }
        if (!o->error.status && ctl_parse_argument(&o->job, arg, &o->error))
            return 0; /* reported once, after the options are known */
        return 0;
    case ARGP_KEY_NO_ARGS:
        return ctl_usage_error(state, "an expression is needed, as in 'sqrt(a)' a=x.npy");
    default:
        return ctl_parse_masking(key, &o->job.masking)
                   ? 0
                   : ctl_parse_storage(key, arg, &o->job.storage, state);
    }
}

static const struct argp run_argp = {
    run_argp_options,
    parse_run_option,
    "EXPRESSION [NAME=SOURCE...]",
    "Computes an expression over arrays of any size.\v"
    "Several expressions, with names and separated by ';', are computed in one pass. Both results "
    "of a function that has two: 'q, r = divmod(a, 7)'. 'gpuarrayctl ops' lists the functions.\n"
    "Sources: file.npy, file.npz:name, file.h5:/dataset, store.zarr:/array, "
    "file.raw:f4:1000x1000, or a number; of an array also a selection as in NumPy: "
    "'a=file.npy[10:20, ::2]', in quotes. "
    "Many files are one array as a pattern: 'a=runs/*.npy', behind each other along the first "
    "axis; 'a=runs/*.npy:stack', along a new one. "
    "'-' is npy on standard input, as a source, and on standard output, as a destination; "
    "'-:f4:?x3' are elements alone, rows of 3, as many as come, and '-:raw' writes them so.\n"
    "Write -- before an expression that begins with a minus sign.\n"
    "\nExamples:\n"
    "  gpuarrayctl run 'hypot(u, v)' u=winds.h5:/UWND v=winds.h5:/VWND -o w.npy\n"
    "  gpuarrayctl run 'm = mean(a); r = a / 2' a=a.npy -o r=out.npy\n"
    "  gpuarrayctl run 'a * k' a=scan.raw:u2:4096x4096 k=0.5 --explain\n"
    "  gpuarrayctl run 'mean(a)' 'a=winds.h5:/UWND[-1, ::2]' --json\n"
    "  gpuarrayctl run 'mean(a, axis=0)' a=a.npy --csv > means.csv\n"
    "  gpuarrayctl run --repeat 90 'u + (near(u, 0, 1) - u)/9' u=heat.npy -o v.npy\n"
    "  produce | gpuarrayctl run 'sqrt(a)' a=- -o - | consume" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* The same options, but for those of somebody who waits: they are understood, to be refused. */
static const struct argp_option submit_argp_options[] = {
    {"output", 'o', "[NAME=]DEST", 0,
     "where a result goes: " CTL_DESTINATIONS "; each result needs one", 0},
    {"engine", OPTION_ENGINE, "NAME", 0, "auto, cpu, cuda, or cuda:N for one device", 0},
    {"in-place", OPTION_IN_PLACE, NULL, 0,
     "write into existing files, which may be sources of the same job", 0},
    CTL_MASKING_OPTIONS,
    CTL_STORAGE_OPTIONS,
    {"journal", OPTION_JOURNAL, "FILE", 0, JOURNAL_DOC, 0},
    {"mode", OPTION_MODE, "NAME", 0, MODE_DOC, 0},
    {"tf32", OPTION_TF32, NULL, 0, TF32_DOC, 0},
    {"priority", OPTION_PRIORITY, "N", 0, "-100 to 100 among your own jobs", 0},
    CTL_TIME_OPTIONS,
    {"label", 'l', "TEXT", 0, "shown in lists of jobs", 0},
    {"json", OPTION_JSON, NULL, 0, "print the number as JSON", 0},
    {"explain", OPTION_EXPLAIN, NULL, OPTION_HIDDEN, "", 0},
    {"quiet", 'q', NULL, OPTION_HIDDEN, "", 0},
    {"verbose", 'v', NULL, OPTION_HIDDEN, "", 0},
    {0},
};

static const struct argp submit_argp = {
    submit_argp_options,
    parse_run_option,
    "EXPRESSION [NAME=SOURCE...]",
    "Computes an expression in the background and prints the job's number as soon as the daemon "
    "has taken it. A small process of yours, one for all such jobs, stays until the files are in "
    "their place.\v"
    "Expressions, sources and destinations are those of run.\n"
    "The process survives the shell and the terminal, and restarts of the daemon: the job then "
    "runs again under the same number. It survives the login too, with KillUserProcesses=yes in "
    "logind.conf only after 'loginctl enable-linger'. When it is killed, its jobs are cancelled. "
    "The "
    "outcome is kept for a day.\n"
    "\nExamples:\n"
    "  gpuarrayctl submit 'exp(a)' a=big.npy -o e.npy\n"
    "  gpuarrayctl submit 'm = a * 2; r = a / 2' a=a.npy -o m=m.npy -o r=r.npy\n"
    "  gpuarrayctl submit 'a / 2' a=a.npy -o h.h5:/half -l 'night shift' --json" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

void run_set_label(struct run_options *o, const char *text)
{
    size_t used = 0;
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = text_character_bytes(text, left);
        n = n ? n : 1;
        if (used + n >= sizeof(o->own_label))
            break;
        memcpy(o->own_label + used, text, n);
        if (isspace((unsigned char)text[0]))
            o->own_label[used] = ' ';
        used += n;
    }
    o->own_label[used] = '\0';
    text_make_printable(o->own_label);
    o->label = o->own_label;
}

/* Whoever reads it knows neither names nor where one table ends. */
static int check_csv(const struct run_options *o)
{
    unsigned n_printed = 0;
    for (unsigned i = 0; i < o->job.n_outputs; i++)
        n_printed += !o->job.outputs[i].to_path;
    if (o->printing != CTL_PRINT_CSV || (n_printed == 1 && !o->json))
        return 0;
    if (o->json)
        return ctl_usage_report("gpuarrayctl run", true, "one of them",
                                "--csv and --json together");
    return ctl_usage_report("gpuarrayctl run", false, "-o for the others, or --json",
                            "--csv prints one result; here are %u to print", n_printed);
}

static int check_profile(const struct run_options *o)
{
    if (!o->profile_path || (o->n_repeats == 0 && !o->explain))
        return 0;
    return ctl_usage_report("gpuarrayctl run", o->json, "one of them",
                            "--profile is of one job, --%s is not",
                            o->explain ? "explain" : "repeat");
}

/* 0, an exit code, or EXIT_USAGE after the message was printed. */
int run_parse_words(struct run_options *o, int argc, char **argv)
{
    bool is_submit = strstr(argv[0], "submit") != NULL;
    if (ctl_parse(is_submit ? &submit_argp : &run_argp, argc, argv, o))
        return EXIT_USAGE;
    if (!o->label)
        run_set_label(o, o->expression);
    int r = (int)o->error.status;
    if (!r)
        r = ctl_parse_expressions(&o->job, o->expression, &o->error);
    for (unsigned i = 0; i < o->n_destinations && !r; i++)
        r = ctl_parse_destination(&o->job, o->destinations[i], &o->error);
    if (!r && check_profile(o))
        return EXIT_USAGE;
    if (!r)
        return check_csv(o);
    ctl_fail(&o->error, o->json);
    return EXIT_USAGE;
}

/* Destinations first: a dataset that is written in place gets its storage, in which a source that
 * is the same then is seen to be. */
int run_open_all(struct run_options *o, struct gad_client *client)
{
    int r = 0;
    for (unsigned i = 0; i < o->job.n_outputs && !r && o->in_place; i++) {
        struct gad_output *output = &o->job.outputs[i];
        if (!output->to_path)
            continue;
        r = (int)gad_array_open_in_place(client, output->to_path, &output->to, &o->error);
        output->to_path = NULL;
    }
    if (!r)
        r = run_open_input_pipe(o, client);
    if (!r)
        r = ctl_open_sources(&o->job, client, &o->error);
    return r ? r : run_open_output_pipe(o, client);
}

struct gad_job_options run_job_options(struct run_options *o, struct ctl_progress *progress)
{
    return (struct gad_job_options){
        .n_args = o->job.n_args,
        .args = o->job.args,
        .n_outputs = o->job.n_outputs,
        .outputs = o->job.outputs,
        .engine = o->engine,
        .priority = o->priority,
        .queue_timeout_ms = o->queue_timeout_ms,
        .deadline_ms = o->deadline_ms,
        .label = o->label,
        .progress = progress && progress->is_shown ? ctl_progress_draw : NULL,
        .progress_data = progress,
        .progress_ms = 100,
        .has_journal = o->journal_path != NULL,
        .journal_path = o->journal_path,
        .tf32 = o->tf32,
        .beyond = o->has_mode ? &o->beyond : NULL,
    };
}

static void print_verbose(const struct gad_job_stats *s)
{
    char moved[32], rate[32];
    double bytes = (double)s->read_bytes + (double)s->write_bytes;
    fprintf(stderr,
            "%s: %s in %.3f s, %s/s (thread-seconds: source %.3f, kernel %.3f, sink %.3f, "
            "client %.3f",
            s->engine, ctl_format_bytes(bytes, moved), s->total_s,
            ctl_format_bytes(s->total_s > 0 ? bytes / s->total_s : 0, rate), s->source_s,
            s->kernel_s, s->sink_s, s->client_s);
    if (s->to_device_s > 0 || s->from_device_s > 0)
        fprintf(stderr, "; to the device %.3f s, back %.3f s", s->to_device_s, s->from_device_s);
    fprintf(stderr, ")\n");
    if (s->product_library[0])
        fprintf(stderr, "matrices were multiplied by %s in %s\n", s->product_library,
                s->product_precision);
    fprintf(stderr, "%s\n", s->engine_why);
}

static void print_outcome(const struct run_options *o, const struct gad_job *job)
{
    const struct gad_job_stats *stats = gad_job_stats(job);
    struct json_object *outputs = o->json ? json_object_new_array() : NULL;
    for (unsigned i = 0; i < o->job.n_outputs; i++) {
        struct gad_plan_output what = {0};
        const void *data = gad_job_result(job, i, &what);
        const char *name = o->job.outputs[i].name;
        if (o->json) {
            struct json_object *entry =
                data ? ctl_array_json(&what, data) : json_object_new_object();
            if (name)
                json_object_object_add(entry, "name", json_object_new_string(name));
            if (o->job.outputs[i].to_path)
                json_object_object_add(entry, "to",
                                       json_object_new_string(o->job.outputs[i].to_path));
            json_object_array_add(outputs, entry);
        } else if (data) {
            if (name && o->printing != CTL_PRINT_CSV)
                printf("%s = ", name);
            ctl_print_array(stdout, &what, data, o->printing);
        }
    }
    if (o->json) {
        struct json_object *object = stats ? ctl_stats_json(stats) : json_object_new_object();
        json_object_object_add(object, "outputs", outputs);
        if (o->has_seed)
            json_object_object_add(object, "seed", json_object_new_uint64(o->seed));
        ctl_put_json(object);
        return;
    }
    if (!stats)
        return;
    ctl_print_journal(stats);
    if (o->verbose)
        print_verbose(stats);
    if (stats->n_divide_by_zero)
        fprintf(stderr, "warning: integer divisions by zero, which gave 0: %llu\n",
                (unsigned long long)stats->n_divide_by_zero);
    if (stats->n_invalid_casts)
        fprintf(stderr,
                "warning: values that did not fit the integer that they were cast to: %llu\n",
                (unsigned long long)stats->n_invalid_casts);
}

struct told {
    struct ctl_progress *progress;
    struct profile *profile;
};

static void tell_both(void *data, const struct gad_progress *now)
{
    const struct told *told = data;
    profile_progress(told->profile, now);
    ctl_progress_draw(told->progress, now);
}

/* r: how the job ended; of one that failed there is a profile, too. Whether it was drawn. */
static int end_profile(struct run_options *o, const struct gad_job *job, int r)
{
    struct gad_error ignored = {0};
    if (!o->profile)
        return 0;
    profile_end(o->profile, r ? NULL : gad_job_stats(job));
    return profile_write(o->profile, o->profile_path, o->expression, r ? &ignored : &o->error);
}

/* --show: of files by their names, of what was printed from memory. job NULL: all are files. */
static int show_results(struct run_options *o, struct gad_client *client, const struct gad_job *job)
{
    int r = 0;
    for (unsigned i = 0; i < o->job.n_outputs && o->show && !r; i++) {
        const struct gad_output *output = &o->job.outputs[i];
        struct gad_plan_output what;
        const void *data = job ? gad_job_result(job, i, &what) : NULL;
        if (output->to_path) {
            r = ctl_show_file(client, output->to_path, &o->error);
        } else if (data) {
            const struct gad_layout layout = {
                .dtype = what.dtype, .ndim = what.ndim, .shape = what.shape};
            struct gad_array *array = NULL;
            r = (int)gad_array_from_memory(client, &layout, (void *)(uintptr_t)data, false, &array,
                                           &o->error);
            r = r ? r
                  : ctl_show_array(client, output->name ? output->name : o->label, array,
                                   &o->error);
            gad_array_release(array);
        } else if (output->to && !o->output) {
            r = ctl_show_array(client, output->name ? output->name : o->label, output->to,
                               &o->error);
        }
    }
    return r;
}

static int run_job(struct run_options *o, struct gad_client *client)
{
    struct ctl_progress progress;
    ctl_progress_begin(&progress, o->quiet || o->json);
    struct gad_job_options options = run_job_options(o, &progress);
    struct told told = {&progress, o->profile};
    options.may_copy = true;
    if (o->profile) {
        options.progress = tell_both;
        options.progress_data = &told;
        options.progress_ms = PROFILE_MS;
    }
    struct ctl_journal journal = {.path = NULL};
    struct gad_job *job = NULL;
    if (o->journal_path && !o->json)
        ctl_look_at_journal(o->job.outputs[0].to, NULL, o->journal_path, &journal);
    int r = (int)gad_submit(client, &options, &job, &o->error);
    if (!r) {
        r = run_join_output_pipe(o, ctl_wait(job, &o->error));
        ctl_progress_end(&progress);
        int r_profile = end_profile(o, job, r);
        if (!r)
            print_outcome(o, job);
        r = r ? r : r_profile;
    }
    if (!r)
        r = show_results(o, client, job);
    gad_job_free(job); /* lets go of the journal, so that one with nothing in it is gone */
    if (r)
        ctl_note_journal(&journal, r);
    ctl_journal_deinit(&journal);
    return r;
}

/* A word that nothing uses. What is wrong in the expressions may be why: that is told instead. */
static int check_used(struct run_options *o, struct gad_client *client)
{
    struct gad_job_options options = run_job_options(o, NULL);
    struct gad_plan *plan = NULL;
    struct gad_error error;
    int r = ctl_check_used(&o->job, &o->error);
    if (r && o->n_repeats == 0 && gad_plan(client, &options, &plan, &error)) {
        o->error = error;
        r = (int)error.status;
    }
    gad_plan_free(plan);
    return r;
}

int run_execute(struct run_options *o)
{
    int code = run_check_pipes(o);
    if (!code && o->show && o->json)
        code =
            ctl_usage_report("gpuarrayctl run", true, "one of them", "--show and --json together");
    if (code) {
        ctl_job_deinit(&o->job);
        return code;
    }
    ctl_watch_signals();
    struct gad_client *client = NULL;
    int r = ctl_connect(&client, &o->error);
    if (!r)
        r = run_open_all(o, client);
    if (!r)
        r = check_used(o, client);
    if (!r && o->profile_path)
        r = profile_begin(&o->profile, &o->error);
    if (!r) {
        ctl_warn_packed_job(&o->job);
        r = o->n_repeats > 0 ? run_repeated(o, client)
            : o->explain     ? run_explain(o, client)
                             : run_job(o, client);
        if (!r && o->n_repeats > 0 && !o->explain)
            r = show_results(o, client, NULL);
    }
    o->profile = profile_free(o->profile);
    run_close_pipes(o);
    ctl_job_deinit(&o->job);
    gad_close(client);
    ctl_end_if_reader_left();
    return r ? ctl_fail(&o->error, o->json) : EXIT_OK;
}

int verb_run(int argc, char **argv)
{
    struct run_options o = {0};
    int code = run_parse_words(&o, argc, argv);
    if (code) {
        ctl_job_deinit(&o.job);
        return code;
    }
    return run_execute(&o);
}
