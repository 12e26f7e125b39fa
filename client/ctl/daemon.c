/* gpuarrayctl daemon status|start|stop|path|log: the daemon as a process.
 *
 * stop ends only what is surely meant: a daemon of this user, which listens on its own socket. The
 * kernel names the process that listens; a pidfd is opened for it, and one more round trip on the
 * same connection shows that the process was still there then, so its number cannot have passed to
 * another. A service belongs to systemd, which would start it anew. The daemon lets running jobs
 * end before it leaves, so --force cancels them first; a second signal ends it at once.
 *
 * log prints the end of the private daemon's log, which is there when the daemon is not.
 */
#include "client/ctl/facts.h"
#include "client/ctl/joblist.h"

#include "proto/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STOP_MS   10000 /* until it is told again, and until it is given up */
#define LOG_BYTES 65536

struct daemon_options {
    const char *action;
    bool json, force;
    long n_lines;
    struct gad_error error;
};

enum { OPTION_JSON = 0x100, OPTION_FORCE };

static const struct argp_option daemon_argp_options[] = {
    {"force", OPTION_FORCE, NULL, 0, "stop: although jobs are running or waiting", 0},
    {"lines", 'n', "N", 0, "log: the last N lines (20)", 0},
    {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
    {0},
};

static const char *const actions[] = {"status", "start", "stop", "path", "log"};

static int set_action(struct daemon_options *o, const char *word, const struct argp_state *state)
{
    struct ctl_nearest nearest = {.word = word};
    if (o->action)
        return ctl_usage_error(state, "'%s' is too much", word);
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        ctl_nearest_consider(&nearest, actions[i]);
        if (strcmp(actions[i], word) == 0)
            o->action = actions[i];
    }
    if (o->action)
        return 0;
    if (nearest.best)
        return ctl_usage_error(state, "there is no '%s'; did you mean '%s'?", word, nearest.best);
    return ctl_usage_error(state, "there is no '%s'; there are status, start, stop, path and log",
                           word);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct daemon_options *o = state->input;
    char *end;
    switch (key) {
    case OPTION_JSON: o->json = true; return 0;
    case OPTION_FORCE: o->force = true; return 0;
    case 'n':
        o->n_lines = strtol(arg, &end, 10);
        if (end == arg || *end || o->n_lines < 1 || o->n_lines > 1000000)
            return ctl_usage_error(state, "a number of lines is 1 to 1000000, not '%s'", arg);
        return 0;
    case ARGP_KEY_ARG: return set_action(o, arg, state);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp daemon_argp = {
    daemon_argp_options,
    parse_option,
    "[status|start|stop|path|log]",
    "Says which daemon answers, starts a private one when none does, stops a private one, prints "
    "the path of its socket or the end of its log.\v"
    "Examples:\n"
    "  gpuarrayctl daemon status\n"
    "  gpuarrayctl daemon path\n"
    "  gpuarrayctl daemon log -n 5\n"
    "\nThe service is systemd's: systemctl status gpuarrayd, journalctl -u "
    "gpuarrayd." CTL_EXIT_CODES
    "\nstatus and path end with 3 when there is no daemon; stop then has nothing to do.",
    NULL,
    NULL,
    NULL};

static void add(struct json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, json_object_new_string(text));
}

static const char *user_name(uid_t uid, char buffer[32])
{
    const struct passwd *user = getpwuid(uid);
    snprintf(buffer, 32, "%u", uid);
    return user ? user->pw_name : buffer;
}

static struct json_object *count_of(const struct daemon_facts *facts, const char *key)
{
    return json_object_object_get(json_object_object_get(facts->info, "counts"), key);
}

static void print_workers(const struct daemon_facts *facts)
{
    struct json_object *engines = json_object_object_get(facts->info, "engines");
    size_t n =
        json_object_is_type(engines, json_type_array) ? json_object_array_length(engines) : 0;
    for (size_t i = 0; i < n; i++) {
        struct json_object *engine = json_object_array_get_idx(engines, i);
        const char *why = json_object_get_string(json_object_object_get(engine, "why"));
        printf("  worker   %s, %s, restarted %d times%s%s\n",
               json_object_get_string(json_object_object_get(engine, "name")),
               json_object_get_string(json_object_object_get(engine, "state")),
               json_object_get_int(json_object_object_get(engine, "restarts")), why ? ": " : "",
               why ? why : "");
    }
}

static void print_facts_json(const struct daemon_facts *facts)
{
    struct json_object *object = json_object_new_object();
    char buffer[32];
    add(object, "kind", facts_kind_name(facts->kind));
    add(object, "socket", facts->socket);
    json_object_object_add(object, "pid", json_object_new_int(facts->pid));
    add(object, "user", user_name(facts->uid, buffer));
    if (facts_text(facts, "program")[0])
        add(object, "program", facts_text(facts, "program"));
    for (const char *const *key = (const char *const[]){"version", "uptime_s", "engines", NULL};
         *key; key++)
        json_object_object_add(object, *key,
                               json_object_get(json_object_object_get(facts->info, *key)));
    json_object_object_add(object, "jobs_running",
                           json_object_get(count_of(facts, "jobs_running")));
    json_object_object_add(object, "jobs_queued", json_object_get(count_of(facts, "jobs_queued")));
    ctl_put_json(object);
}

static void print_facts(const struct daemon_facts *facts)
{
    char buffer[32];
    printf("gpuarrayd %s, %s\n", facts_text(facts, "version"), facts_kind_name(facts->kind));
    printf("  socket   %s\n", facts->socket);
    printf("  process  %d of %s, for %.0f s\n", (int)facts->pid, user_name(facts->uid, buffer),
           json_object_get_double(json_object_object_get(facts->info, "uptime_s")));
    if (facts_text(facts, "program")[0])
        printf("  program  %s\n", facts_text(facts, "program"));
    print_workers(facts);
    printf("  jobs     %d running, %d queued\n",
           json_object_get_int(count_of(facts, "jobs_running")),
           json_object_get_int(count_of(facts, "jobs_queued")));
}

static int show_facts(struct gad_client *client, struct daemon_options *o)
{
    struct daemon_facts facts;
    int r = facts_get(client, &facts, &o->error);
    if (r)
        return r;
    if (strcmp(o->action, "path") == 0 && !o->json)
        puts(facts.socket);
    else
        (o->json ? print_facts_json : print_facts)(&facts);
    facts_deinit(&facts);
    return 0;
}

/* The private one, even where there is a service; the one that GPUARRAYD_SOCKET names. */
static int connect_to_stop(struct gad_client **ret_client, struct gad_error *error)
{
    char own[256];
    const char *given = getenv("GPUARRAYD_SOCKET");
    facts_private_path("socket", own, sizeof(own));
    struct gad_connect_options options = {
        .client_name = "gpuarrayctl",
        .socket = given && given[0] ? NULL : own,
        .no_private_daemon = true,
    };
    int r = (int)gad_connect(&options, ret_client, error);
    if (r != GAD_NO_DAEMON || options.socket == NULL)
        return r;
    return ctl_connect_existing(ret_client, error); /* the service, to say whose it is */
}

static int check_may_stop(const struct daemon_facts *facts, const struct daemon_options *o,
                          struct gad_error *error, const char **ret_hint)
{
    int n_jobs = json_object_get_int(count_of(facts, "jobs_running")) +
                 json_object_get_int(count_of(facts, "jobs_queued"));
    if (facts->kind == DAEMON_SERVICE) {
        *ret_hint = "sudo systemctl stop gpuarrayd.socket gpuarrayd.service";
        return error_set(error, GAD_PERMISSION, facts->socket,
                         "this is the service of the machine, which systemd keeps");
    }
    if (facts->listener != facts->pid) {
        *ret_hint = "systemctl --user stop gpuarrayd.socket gpuarrayd.service";
        return error_set(error, GAD_PERMISSION, facts->socket,
                         "process %d made the socket for this daemon and would start it again",
                         (int)facts->listener);
    }
    if (facts->uid != geteuid()) {
        *ret_hint = "whoever started it stops it";
        error_set(error, GAD_PERMISSION, facts->socket, "the daemon belongs to another user");
        error_expected(error, "user %u", geteuid());
        error_found(error, "user %u", facts->uid);
        return GAD_PERMISSION;
    }
    if (n_jobs > 0 && !o->force) {
        *ret_hint = "'gpuarrayctl watch' until they have ended, or --force to cancel them";
        return error_set(error, GAD_BUSY, NULL, "jobs that are running or waiting: %d", n_jobs);
    }
    return 0;
}

/* All of a private daemon's jobs are this user's. Those that end meanwhile are no fault. */
static int cancel_jobs(struct gad_client *client, struct gad_error *error)
{
    struct gad_job_status *jobs;
    size_t n_jobs;
    int r = (int)gad_job_list(client, &jobs, &n_jobs, error);
    if (r)
        return r;
    for (size_t i = 0; i < n_jobs; i++)
        if (joblist_is_active(&jobs[i]))
            (void)!gad_job_cancel_by_id(client, jobs[i].job, NULL);
    free(jobs);
    return 0;
}

static bool is_gone(int pidfd)
{
    struct pollfd gone = {.fd = pidfd, .events = POLLIN};
    int n;
    do
        n = poll(&gone, 1, STOP_MS);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

static int end_process(int pidfd, struct gad_error *error)
{
    for (int i = 0; i < 2; i++) {
        if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) && errno != ESRCH)
            return error_from_errno(error, errno, "pidfd_send_signal", "the daemon's process");
        if (is_gone(pidfd))
            return 0;
    }
    return error_set(error, GAD_TIMEOUT, NULL, "the daemon has not left within %d s",
                     2 * STOP_MS / 1000);
}

static int stop_process(struct gad_client *client, const struct daemon_facts *facts, bool force,
                        struct gad_error *error)
{
    int pidfd = (int)syscall(SYS_pidfd_open, facts->listener, 0);
    if (pidfd < 0)
        return error_from_errno(error, errno, "pidfd_open", "the daemon's process");
    int r = force ? cancel_jobs(client, error) : 0;
    if (!r)
        r = (int)gad_ping(client, error); /* it was still there, so the pidfd is its */
    if (!r && !facts_are_of(facts, client))
        r = error_set(error, GAD_DISCONNECTED, facts->socket,
                      "the daemon has left meanwhile, and another one answers");
    if (!r)
        r = end_process(pidfd, error);
    close(pidfd);
    return r;
}

static void print_stopped(pid_t pid, bool json)
{
    if (json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "stopped", pid ? json_object_new_int(pid) : NULL);
        ctl_put_json(object);
    } else if (pid) {
        printf("process %d has ended\n", (int)pid);
    } else {
        puts("no daemon runs");
    }
}

static int stop(struct daemon_options *o)
{
    struct gad_client *client = NULL;
    struct daemon_facts facts = {0};
    const char *hint = NULL;
    int r = connect_to_stop(&client, &o->error);
    if (!r)
        r = facts_get(client, &facts, &o->error);
    if (!r)
        r = check_may_stop(&facts, o, &o->error, &hint);
    if (!r)
        r = stop_process(client, &facts, o->force, &o->error);
    facts_deinit(&facts);
    gad_close(client);
    if (!r || r == GAD_NO_DAEMON) {
        print_stopped(r ? 0 : facts.listener, o->json);
        return EXIT_OK;
    }
    return hint ? ctl_fail_hint(&o->error, hint, o->json) : ctl_fail(&o->error, o->json);
}

/* Where the last n lines begin. */
static const char *last_lines(const char *text, size_t n_bytes, long n_lines)
{
    const char *at = text + n_bytes;
    for (at -= n_bytes > 0; at > text; at--)
        if (at[-1] == '\n' && --n_lines == 0)
            return at;
    return text;
}

/* In /tmp anybody may have put something there first, even a pipe that would be waited for. */
static FILE *open_log(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    FILE *file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid()
                     ? fdopen(fd, "r")
                     : NULL;
    if (!file)
        close(fd);
    return file;
}

static int print_log(struct daemon_options *o)
{
    char path[256], *text = calloc(1, LOG_BYTES + 1);
    facts_private_path("log", path, sizeof(path));
    FILE *file = open_log(path);
    if (!file || !text) {
        error_set(&o->error, GAD_NOT_FOUND, path, "there is no log of a private daemon: %s", path);
        free(text);
        if (file)
            fclose(file);
        return ctl_fail_hint(&o->error, "journalctl -u gpuarrayd for the service", o->json);
    }
    if (fseek(file, -LOG_BYTES, SEEK_END))
        rewind(file);
    size_t n = fread(text, 1, LOG_BYTES, file);
    const char *lines = last_lines(text, n, o->n_lines);
    if (o->json) {
        struct json_object *object = json_object_new_object();
        add(object, "path", path);
        add(object, "text", lines);
        ctl_put_json(object);
    } else {
        fputs(lines, stdout);
    }
    fclose(file);
    free(text);
    return EXIT_OK;
}

int verb_daemon(int argc, char **argv)
{
    struct daemon_options o = {.n_lines = 20};
    struct gad_client *client = NULL;
    if (ctl_parse(&daemon_argp, argc, argv, &o))
        return EXIT_USAGE;
    if (!o.action)
        o.action = actions[0];
    if (strcmp(o.action, "stop") == 0)
        return stop(&o);
    if (strcmp(o.action, "log") == 0)
        return print_log(&o);
    int r = strcmp(o.action, "start") == 0 ? ctl_connect(&client, &o.error)
                                           : ctl_connect_existing(&client, &o.error);
    if (!r)
        r = show_facts(client, &o);
    gad_close(client);
    return r ? ctl_fail(&o.error, o.json) : EXIT_OK;
}
