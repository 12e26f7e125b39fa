/* The command line, and what the file adds to it.
 *
 *     defaults <-- file <-- command line <-- (reload: the file again, under the same command line)
 *
 * argp's options are made from the table of settings, so every setting has one. Values of the
 * command line are checked when argp meets them; the file is read afterwards and leaves alone what
 * the command line has set. Limits are compared when both are known.
 *
 * A private daemon belongs to one user: the file of the system is not for it, and it reads none but
 * one that --config names.
 *
 * A worker is looked for around our own executable (proto/system/beside.h), then in the libexec
 * directory. Called by main.c and reload.c.
 */
#include "daemon/broker/config/options.h"
#include "daemon/broker/config/contradictions.h"
#include "proto/system/beside.h"
#include "proto/ops.h"
#include "proto/util.h"

#include <argp.h>
#include <string.h>

#define WORKER_NAME      "gpuarrayd-worker-cpu"
#define CUDA_WORKER_NAME "gpuarrayd-worker-cuda"
#define SCAN_NAME        "gpuarrayd-scan"
#define DEFAULT_CONFIG   GAD_SYSCONFDIR "/gpuarrayd/gpuarrayd.conf"
#define MAX_FD           (1u << 20)
#define DOC_SIZE         320

enum {
    KEY_SETTING = 256, /* and the setting's number */
    KEY_CONFIG = KEY_SETTING + SETTING_COUNT,
    KEY_CHECK_CONFIG,
    KEY_PRINT_CONFIG,
    KEY_PRIVATE,
    KEY_READY_FD,
};

static const struct argp_option others[] = {
    {"config", KEY_CONFIG, "FILE", 0, "read settings from FILE, not from " DEFAULT_CONFIG, 0},
    {"check-config", KEY_CHECK_CONFIG, NULL, 0,
     "say what is wrong with the settings, and leave: 0 nothing, 2 something", 0},
    {"print-config", KEY_PRINT_CONFIG, NULL, 0, "print a file with all defaults, and leave", 0},
    {"private", KEY_PRIVATE, NULL, 0,
     "for this user alone: the socket's directory is 0700, and the system's file is not read", 0},
    {"ready-fd", KEY_READY_FD, "N", 0, "write one byte to this descriptor when listening", 0},
};

static const struct argp_option of_argp[] = {
    {.name = "help"}, {.name = "usage"}, {.name = "version"}};

struct command_line {
    const char *given[SETTING_COUNT];
    const char *config, *ready_fd;
    bool is_private;
    enum options_action action;
};

const char *argp_program_version = "gpuarrayd " GPUARRAYD_VERSION;

static const char *value_name(const struct setting *setting)
{
    static const char *const names[] = {
        [SETTING_IS_SIZE] = "SIZE",    [SETTING_IS_SECONDS] = "TIME",
        [SETTING_IS_NUMBER] = "N",     [SETTING_IS_MODE] = "OCTAL",
        [SETTING_IS_LEVEL] = "NAME",   [SETTING_IS_LOG_LEVEL] = "NAME",
        [SETTING_IS_TEXT] = "STRING",  [SETTING_IS_ENGINE] = "NAME",
        [SETTING_IS_DEVICES] = "LIST",
    };
    return names[setting->kind];
}

static void check_value(const struct argp_state *state, enum setting_id id, const char *value)
{
    struct options unused;
    char expected[160];
    if (!setting_parse(setting_at(id), value, &unused, expected, sizeof(expected)))
        argp_error(state, "--%s: expected %s; found '%s'", setting_at(id)->name, expected, value);
}

static error_t on_option(int key, char *value, struct argp_state *state)
{
    struct command_line *line = state->input;
    if (key >= KEY_SETTING && key < KEY_CONFIG) {
        enum setting_id id = (enum setting_id)(key - KEY_SETTING);
        check_value(state, id, value);
        line->given[id] = value;
        return 0;
    }
    switch (key) {
    case KEY_CONFIG:
        if (line->config)
            argp_error(state, "--config: expected once, found twice: '%s' and '%s'", line->config,
                       value);
        if (strlen(value) >= SETTING_PATH_SIZE)
            argp_error(state, "--config: expected a path of less than %d bytes", SETTING_PATH_SIZE);
        line->config = value;
        return 0;
    case KEY_CHECK_CONFIG: line->action = OPTIONS_CHECK_CONFIG; return 0;
    case KEY_PRINT_CONFIG: line->action = OPTIONS_PRINT_CONFIG; return 0;
    case KEY_PRIVATE: line->is_private = true; return 0;
    case KEY_READY_FD: line->ready_fd = value; return 0;
    case ARGP_KEY_ARG: argp_error(state, "unexpected argument '%s'", value); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* The table of argp, and room for the texts in it. */
struct argp_table {
    struct argp_option options[SETTING_COUNT + ARRAY_LENGTH(others) + 1];
    char docs[SETTING_COUNT][DOC_SIZE];
};

static void fill_table(struct argp_table *table)
{
    *table = (struct argp_table){0};
    for (unsigned i = 0; i < SETTING_COUNT; i++) {
        const struct setting *setting = setting_at((enum setting_id)i);
        snprintf(table->docs[i], DOC_SIZE, "%s (default %s)", setting->doc, setting->by_default);
        table->options[i] = (struct argp_option){.name = setting->name,
                                                 .key = (int)(KEY_SETTING + i),
                                                 .arg = value_name(setting),
                                                 .doc = table->docs[i]};
    }
    memcpy(table->options + SETTING_COUNT, others, sizeof(others));
}

static const struct argp_option *find_option(const struct argp_table *table, const char *name,
                                             size_t n)
{
    for (const struct argp_option *option = table->options; option->name; option++)
        if (strncmp(option->name, name, n) == 0) /* argp takes beginnings of names too */
            return option;
    for (unsigned i = 0; i < ARRAY_LENGTH(of_argp); i++)
        if (strncmp(of_argp[i].name, name, n) == 0)
            return &of_argp[i];
    return NULL;
}

static const char *nearest_option(const struct argp_table *table, const char *name, size_t n)
{
    const char *best = NULL;
    unsigned best_distance = 4;
    for (const struct argp_option *option = table->options; option->name; option++) {
        unsigned distance = n > OP_NAME_MAX_CHARS
                                ? best_distance
                                : op_name_distance(name, n, option->name, strlen(option->name));
        if (distance < best_distance) {
            best_distance = distance;
            best = option->name;
        }
    }
    return best;
}

/* What argp would only call unrecognized is told with the nearest name. */
static bool are_options_known(int argc, char **argv, const struct argp_table *table)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        const char *name = argv[i] + 2;
        size_t n = strcspn(name, "=");
        const struct argp_option *option = find_option(table, name, n);
        const char *nearest = option ? NULL : nearest_option(table, name, n);
        if (nearest) {
            fprintf(stderr, "gpuarrayd: unknown option '%s'; did you mean '--%s'?\n", argv[i],
                    nearest);
            return false;
        }
        i += option && option->arg && name[n] == '\0';
    }
    return true;
}

static int read_command_line(int argc, char **argv, struct command_line *line)
{
    struct argp_table table;
    fill_table(&table);
    if (!are_options_known(argc, argv, &table))
        return -EINVAL;
    const struct argp argp = {
        .options = table.options,
        .parser = on_option,
        .doc = "Serves array jobs to the users of this machine.\vSettings have the same names in "
               "the file, see gpuarrayd.conf(5); the command line wins. SIGHUP reads the file "
               "again.",
    };
    argp_err_exit_status = 2;
    return -argp_parse(&argp, argc, argv, 0, NULL, line);
}

static void apply_command_line(const struct command_line *line, struct options *o)
{
    char unused[160];
    for (unsigned i = 0; i < SETTING_COUNT; i++)
        if (line->given[i] && setting_parse(setting_at((enum setting_id)i), line->given[i], o,
                                            unused, sizeof(unused)))
            o->sources[i].origin = SETTING_OF_COMMAND_LINE;
}

static int parse_fd(const char *text)
{
    char *end;
    errno = 0;
    unsigned long fd = strtoul(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && fd > 0 && fd <= MAX_FD ? (int)fd : -1;
}

int options_parse(int argc, char **argv, struct options *ret_options,
                  enum options_action *ret_action, struct config_faults *faults)
{
    struct command_line line = {.action = OPTIONS_SERVE};
    struct options o = {.ready_fd = -1, .listen_fd = -1};
    int r = read_command_line(argc, argv, &line);
    if (r < 0)
        return r;
    o.is_private = line.is_private;
    o.has_config = line.config != NULL;
    o.is_without_config = line.is_private && !line.config;
    snprintf(o.config_path, sizeof(o.config_path), "%s",
             line.config ? line.config : DEFAULT_CONFIG);
    settings_set_defaults(&o, o.is_private);
    apply_command_line(&line, &o);
    if (line.ready_fd && (o.ready_fd = parse_fd(line.ready_fd)) < 0)
        config_fault(faults, 0, "--ready-fd: expected a descriptor, found '%s'", line.ready_fd);
    if (line.action != OPTIONS_PRINT_CONFIG)
        config_load(&o, faults);
    contradictions_check(&o, faults);
    *ret_action = line.action;
    *ret_options = o;
    return 0;
}

void options_reload(const struct options *running, struct options *ret_options,
                    struct config_faults *faults)
{
    struct options o = *running;
    settings_set_defaults(&o, running->is_private);
    for (unsigned i = 0; i < SETTING_COUNT; i++)
        if (running->sources[i].origin == SETTING_OF_COMMAND_LINE)
            setting_copy((enum setting_id)i, running, &o);
    config_load(&o, faults);
    contradictions_check(&o, faults);
    *ret_options = o;
}

/* The worker ---------------------------------------------------------------------------------- */

static int find_worker(const char *set, const char *name, char *path, size_t n_bytes)
{
    char installed[SETTING_PATH_SIZE];
    snprintf(installed, sizeof(installed), GAD_LIBEXECDIR "/gpuarrayd/%s", name);
    if (!set[0])
        return beside_find(name, installed, path, n_bytes) ? 0 : -ENOENT;
    snprintf(path, n_bytes, "%s", set);
    return access(path, X_OK) == 0 ? 0 : -ENOENT;
}

int options_find_worker(struct options *o)
{
    return find_worker(o->worker, WORKER_NAME, o->worker_path, sizeof(o->worker_path));
}

int options_find_cuda_worker(struct options *o)
{
    return find_worker(o->cuda_worker, CUDA_WORKER_NAME, o->cuda_worker_path,
                       sizeof(o->cuda_worker_path));
}

void options_find_scan(struct options *o)
{
    if (find_worker("", SCAN_NAME, o->scan_path, sizeof(o->scan_path)) < 0)
        o->scan_path[0] = '\0';
}
