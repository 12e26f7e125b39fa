/* gpuarrayctl doctor: what is wrong, or will be, and what to do about it.
 *
 * The table is the order in which things depend on each other: what the process may have, what the
 * machine gives, who serves, with what, on which files. Each check is a function that says what it
 * found (doctor_say); this file asks the daemon once, runs the table and prints.
 *
 * Exit code 0 when there is no problem, else 1: warnings alone do not fail a script.
 */
#include "client/ctl/doctor/doctor.h"

#include "proto/util.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#define PATIENCE_MS 2000 /* for a daemon that hangs */

static const struct check {
    const char *name;
    doctor_fn *run;
} checks[] = {
    {"locked memory", doctor_locked_memory},
    {"descriptors", doctor_descriptors},
    {"address space", doctor_address_space},
    {"shared memory", doctor_shared_memory},
    {"overcommit", doctor_overcommit},
    {"cgroup", doctor_cgroup},
    {"socket", doctor_socket},
    {"group", doctor_group},
    {"daemon", doctor_daemon},
    {"gpu", doctor_gpu},
    {"libraries", doctor_libraries},
    {"environment", doctor_environment},
    {"files", doctor_files},
    {"page cache", doctor_cache},
    {"login", doctor_login},
};

static const char *const level_names[] = {
    [FINDING_OK] = "ok",
    [FINDING_NOTE] = "note",
    [FINDING_WARNING] = "warning",
    [FINDING_PROBLEM] = "problem",
};

void doctor_say(struct doctor *d, enum finding_level level, const char *advice, const char *format,
                ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    d->n_findings[level]++;
    if (d->json) {
        struct json_object *map = json_object_new_object();
        json_object_object_add(map, "check", json_object_new_string(d->check));
        json_object_object_add(map, "level", json_object_new_string(level_names[level]));
        json_object_object_add(map, "found", json_object_new_string(text));
        if (advice)
            json_object_object_add(map, "advice", json_object_new_string(advice));
        json_object_array_add(d->findings, map);
        return;
    }
    printf("%-8s %-14s %s\n", level_names[level], d->check, text);
    if (advice)
        printf("%23s try: %s\n", "", advice);
}

bool doctor_read(const char *path, char *ret, size_t n_bytes)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, n_bytes - 1);
    if (n < 0)
        return false;
    ret[n] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return true;
}

/* Words ---------------------------------------------------------------------------------------- */

enum { OPTION_JSON = 0x100 };

static const struct argp_option doctor_argp_options[] = {
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct doctor *d = state->input;
    switch (key) {
    case OPTION_JSON: d->json = true; return 0;
    case ARGP_KEY_ARG: return ARGP_ERR_UNKNOWN; /* all of them at once: */
    case ARGP_KEY_ARGS:
        d->paths = state->argv + state->next;
        d->n_paths = (size_t)(state->argc - state->next);
        return 0;
    default: (void)arg; return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp doctor_argp = {
    doctor_argp_options,
    parse_option,
    "[PATH...]",
    "Looks at what arrays and jobs depend on, and says what to do about what is wrong: limits, "
    "shared memory, the socket and its group, the daemon, library versions, the environment, and "
    "the file systems of the PATHs, of this folder, $HOME and $TMPDIR. Changes nothing and starts "
    "nothing.\v"
    "Each line is ok, a note, a warning or a problem.\n"
    "Examples:\n"
    "  gpuarrayctl doctor\n"
    "  gpuarrayctl doctor /data/winds.h5 /scratch\n"
    "  gpuarrayctl doctor --json"
    "\nExit codes: 0 no problem, 1 at least one, 2 wrong command line.",
    NULL,
    NULL,
    NULL};

/* ---------------------------------------------------------------------------------------------- */

static void ask_daemon(struct doctor *d)
{
    const char *given = getenv("GPUARRAYD_SOCKET");
    struct gad_client *client = NULL;
    struct gad_connect_options options = {
        .client_name = "gpuarrayctl",
        .no_private_daemon = true,
        .timeout_ms = PATIENCE_MS,
        .restart_ms = -1,
    };
    d->is_given = given && given[0];
    d->socket = ctl_socket_path();
    d->has_daemon = gad_connect(&options, &client, &d->error) == 0 &&
                    facts_get(client, &d->facts, &d->error) == 0;
    gad_close(client);
}

static void put_findings(struct doctor *d)
{
    struct json_object *map = json_object_new_object();
    json_object_object_add(map, "findings", d->findings);
    for (int i = 0; i < FINDING_N_LEVELS; i++)
        json_object_object_add(map, level_names[i], json_object_new_int((int)d->n_findings[i]));
    ctl_put_json(map);
}

static void print_sum(const struct doctor *d)
{
    unsigned n_problems = d->n_findings[FINDING_PROBLEM];
    unsigned n_warnings = d->n_findings[FINDING_WARNING];
    printf("\n%u problem%s, %u warning%s, %u note%s\n", n_problems, n_problems == 1 ? "" : "s",
           n_warnings, n_warnings == 1 ? "" : "s", d->n_findings[FINDING_NOTE],
           d->n_findings[FINDING_NOTE] == 1 ? "" : "s");
}

int verb_doctor(int argc, char **argv)
{
    struct doctor d = {0};
    if (ctl_parse(&doctor_argp, argc, argv, &d))
        return EXIT_USAGE;
    d.findings = json_object_new_array();
    ask_daemon(&d);
    for (size_t i = 0; i < ARRAY_LENGTH(checks); i++) {
        d.check = checks[i].name;
        checks[i].run(&d);
    }
    facts_deinit(&d.facts);
    if (d.json) {
        put_findings(&d);
    } else {
        json_object_put(d.findings);
        print_sum(&d);
    }
    return d.n_findings[FINDING_PROBLEM] ? EXIT_FAILED : EXIT_OK;
}
