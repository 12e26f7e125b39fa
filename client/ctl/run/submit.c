/* gpuarrayctl submit: the same job as run's, in the background.
 *
 * Hands it to an agent (agent.c) and prints the number of the job as soon as the daemon has taken
 * it; a job that is refused fails here, as it would in run. The sources are opened here first, and
 * closed again: one that is missing, or whose server does not answer, is met where somebody sees
 * it, and not by an agent that has other jobs.
 *
 * Where no agent is there that will do, one is started: out of the login's reach where that can be
 * had (agent_scope.c), else as a child that leaves this session; which of the two worked is known
 * by the byte that an agent says first. Many that are submitted at once take turns at this, so that
 * there is one agent for all.
 */
#include "client/ctl/agent/agent.h"

#include "client/clock.h"
#include "proto/error.h"
#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* For an agent that listens, or a service manager that is asked, and does not answer. */
#define BEGIN_MS 5000
/* For an agent that has the order: many others may be before it, and each may take its time. */
#define REPORT_MS 120000

/* What was sent before this end stopped hearing counts: whoever sends later is told that nobody
 * hears it. So both ends agree on whether the words have come. */
static int hear_last(int fd, void *ret, size_t n_bytes)
{
    shutdown(fd, SHUT_RD);
    return recv(fd, ret, n_bytes, MSG_DONTWAIT) == (ssize_t)n_bytes ? 0 : -ETIMEDOUT;
}

/* Until it has all of it; -ETIMEDOUT: it has not, and hears no more; -EPIPE: the other end is
 * closed. */
static int hear(int fd, void *ret, size_t n_bytes)
{
    int64_t deadline = clock_deadline_ms(REPORT_MS);
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    for (size_t used = 0; used < n_bytes;) {
        int n_ready = poll(&polled, 1, clock_left_ms(deadline));
        ssize_t n = n_ready > 0 ? read(fd, (char *)ret + used, n_bytes - used) : -1;
        if (n_ready == 0)
            return hear_last(fd, (char *)ret + used, n_bytes - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -EPIPE;
        used += (size_t)n;
    }
    return 0;
}

/* Nobody is there to print a result, nor a plan. */
static int check_words(struct run_options *o)
{
    int r = 0;
    if (o->explain)
        r = error_set(&o->error, GAD_BAD_ARGUMENT, NULL, "submit explains nothing: use run");
    for (unsigned i = 0; i < o->job.n_args && !r; i++)
        if (ctl_is_pipe(o->job.sources[i]))
            r = error_set(&o->error, GAD_BAD_ARGUMENT, o->job.args[i].name,
                          "a job in the background has no pipe: use run");
    for (unsigned i = 0; i < o->job.n_outputs && !r; i++) {
        const struct gad_output *output = &o->job.outputs[i];
        if (ctl_is_pipe(output->to_path))
            r = error_set(&o->error, GAD_BAD_ARGUMENT, output->name,
                          "a job in the background has no pipe: use run");
        else if (!output->to_path)
            r = error_set(&o->error, GAD_BAD_ARGUMENT, output->name,
                          "in the background every result needs a destination: -o %s%sFILE",
                          output->name ? output->name : "", output->name ? "=" : "");
    }
    if (!r)
        r = ctl_check_used(&o->job, &o->error);
    if (!r)
        return 0;
    ctl_fail(&o->error, o->json);
    return EXIT_USAGE;
}

static int try_sources(struct run_options *o)
{
    int r = ctl_open_sources(&o->job, NULL, &o->error);
    if (!r)
        ctl_warn_packed_job(&o->job);
    for (unsigned i = 0; i < o->job.n_args; i++) {
        gad_array_release(o->job.args[i].array);
        o->job.args[i].array = NULL;
    }
    return r ? ctl_fail(&o->error, o->json) : 0;
}

static char **free_words(char **words)
{
    for (char **word = words; word && *word; word++)
        free(*word);
    free(words);
    return NULL;
}

/* Parsing cuts words up, and an agent needs them as they were given. */
static char **copy_words(int argc, char **argv)
{
    char **copy = calloc((size_t)argc + 1, sizeof(*copy));
    for (int i = 0; copy && i < argc; i++) {
        copy[i] = strdup(argv[i]);
        if (!copy[i])
            return free_words(copy);
    }
    return copy;
}

struct start {
    struct agent_place place;
    struct agent_order order;
};

/* Neither end takes the place of a standard stream that was closed. */
static bool make_pair(int fds[2])
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return false;
    for (int i = 0; i < 2; i++) {
        fds[i] = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
        close(ends[i]);
    }
    if (fds[0] >= 0 && fds[1] >= 0)
        return true;
    for (int i = 0; i < 2; i++)
        close_fd(&fds[i]);
    return false;
}

/* The child is the agent, or becomes it. Returns the end to hear it by, with the order sent;
 * -errno.
 */
static int start_agent(struct start *start, bool in_scope, pid_t *ret_pid)
{
    int fds[2];
    if (!make_pair(fds))
        return -errno;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        if (in_scope) {
            agent_scope_exec(fds[1], &start->place);
            _exit(EXIT_FAILED);
        }
        agent_detach(fds[1], start->place.folder_fd);
        _exit(agent_run(fds[1], &start->place));
    }
    int r = pid < 0 ? -errno : agent_order_send(fds[0], &start->order) ? fds[0] : -ECHILD;
    close(fds[1]);
    if (r < 0)
        close(fds[0]);
    *ret_pid = pid;
    return r;
}

/* An agent that has the order, by its descriptor; or -errno. */
static int start_somewhere(struct start *start)
{
    pid_t pid;
    int fd = agent_scope_is_reachable() ? start_agent(start, true, &pid) : -ENOENT;
    if (fd >= 0) {
        if (agent_hear_begun(fd, BEGIN_MS))
            return fd;
        close(fd);
        kill(pid, SIGKILL); /* our child until it is waited for, so the number is still its own */
        waitpid(pid, NULL, 0);
    }
    fd = start_agent(start, false, &pid);
    if (fd < 0 || agent_hear_begun(fd, -1))
        return fd;
    close(fd);
    return -ECHILD;
}

/* One that is there already; -1: none that answers. */
static int order_from_agent(const struct start *start)
{
    int fd;
    for (unsigned n = 0; (fd = agent_place_connect(&start->place, n)) >= 0; n++) {
        if (agent_order_send(fd, &start->order) && agent_hear_begun(fd, BEGIN_MS))
            return fd;
        close(fd);
    }
    return -1;
}

/* What the library reads in the agent, which is in "/". */
static void make_absolute(const char *variable)
{
    const char *given = getenv(variable);
    _cleanup_free_ char *path =
        given && given[0] != '/' && strchr(given, '/') ? realpath(given, NULL) : NULL;
    if (path)
        setenv(variable, path, 1);
}

static int hand_over(struct start *start)
{
    agent_place_init(&start->place);
    _cleanup_fd_ int lock = start->place.folder_fd < 0 ? -1 : agent_place_lock(&start->place);
    (void)lock; /* given back at the end */
    int fd = start->place.folder_fd < 0 ? -1 : order_from_agent(start);
    if (fd < 0)
        fd = start_somewhere(start);
    agent_place_deinit(&start->place);
    return fd;
}

static int submit(int argc, char *const *argv, struct agent_report *ret_report)
{
    make_absolute("GPUARRAYD_SOCKET");
    make_absolute("GPUARRAYD_DAEMON");
    _cleanup_fd_ int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int words = agent_words_put(argc, argv);
    if (cwd < 0 || words < 0)
        return error_from_errno(&ret_report->error, errno, NULL, "the words of the command line");
    struct start start = {.order = {.kind = ORDER_SUBMIT, .cwd_fd = cwd, .words_fd = words}};
    int fd = hand_over(&start);
    if (fd < 0)
        return error_from_errno(&ret_report->error, -fd, NULL, "starting the background process");
    int r = hear(fd, ret_report, sizeof(*ret_report));
    if (r == -ETIMEDOUT)
        error_set(&ret_report->error, GAD_TIMEOUT, NULL,
                  "the background process has not sent the job within %d s: it waits for the "
                  "daemon, or for a file system that does not answer (try 'ls' where the "
                  "destinations are); a job that it sends later it cancels",
                  REPORT_MS / 1000);
    else if (r)
        error_set(&ret_report->error, GAD_INTERNAL, NULL,
                  "the background process ended before it said a word");
    close(fd); /* an agent that nobody hears any more cancels what it sends */
    return (int)ret_report->error.status;
}

static int print_number(uint64_t job, bool json)
{
    if (json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "job", json_object_new_uint64(job));
        ctl_put_json(object);
    } else {
        printf("%llu\n", (unsigned long long)job);
    }
    return EXIT_OK;
}

int verb_submit(int argc, char **argv)
{
    struct run_options o = {0};
    struct agent_report report = {0};
    struct agent_place place;
    int order_fd = -1;
    if (agent_scope_inherit(&order_fd, &place))
        return agent_run(order_fd, &place);
    char **parsed = copy_words(argc, argv);
    if (!parsed) {
        fputs("gpuarrayctl: no memory\n", stderr);
        return EXIT_FAILED;
    }
    int code = run_parse_words(&o, argc, parsed);
    if (!code)
        code = check_words(&o);
    if (!code)
        code = try_sources(&o);
    if (!code) {
        int r = submit(argc, argv, &report);
        code = r ? ctl_fail(&report.error, o.json) : print_number(report.job, o.json);
    }
    ctl_job_deinit(&o.job);
    free_words(parsed);
    return code;
}
