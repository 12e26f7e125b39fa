/* gpuarrayctl submit: the same job as run's, in the background.
 *
 * Leaves an agent (agent.c) and prints the number of the job as soon as the daemon has taken it; a
 * job that is refused fails here, as it would in run. The agent is started out of the login's reach
 * where that can be had (agent_scope.c), else as a child that leaves this session; which of the two
 * worked is known by the byte that an agent says first.
 */
#include "client/ctl/agent/agent.h"

#include "proto/error.h"
#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BEGIN_MS 5000 /* for a service manager that is asked and does not answer */

/* Until it has all of it; false: the other end is closed. */
static bool hear(int fd, void *ret, size_t n_bytes)
{
    size_t used = 0;
    while (used < n_bytes) {
        ssize_t n = read(fd, (char *)ret + used, n_bytes - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        used += (size_t)n;
    }
    return true;
}

static bool hear_begun(int fd, int timeout_ms)
{
    char byte;
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return poll(&polled, 1, timeout_ms) > 0 && hear(fd, &byte, 1) && byte == AGENT_BEGUN;
}

/* Nobody is there to print a result, nor a plan. */
static int check_words(struct run_options *o)
{
    int r = 0;
    if (o->explain)
        r = error_set(&o->error, GAD_BAD_ARGUMENT, NULL, "submit explains nothing: use run");
    for (unsigned i = 0; i < o->job.n_outputs && !r; i++) {
        const struct gad_output *output = &o->job.outputs[i];
        if (!output->to_path)
            r = error_set(&o->error, GAD_BAD_ARGUMENT, output->name,
                          "in the background every result needs a destination: -o %s%sFILE",
                          output->name ? output->name : "", output->name ? "=" : "");
    }
    if (!r)
        return 0;
    ctl_fail(&o->error, o->json);
    return EXIT_USAGE;
}

static char **free_words(char **words)
{
    for (char **word = words; word && *word; word++)
        free(*word);
    free(words);
    return NULL;
}

/* Parsing cuts words up, an agent's title goes over the kernel's own, and a scope needs them as
 * they were given. */
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
    struct run_options *o;
    int argc;
    char *const *argv; /* as they were given */
};

/* Neither end takes the place of a standard stream that was closed. */
static bool make_pipe(int fds[2])
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
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

/* The child is the agent, or becomes it. Returns the end to hear it by; -errno. */
static int start_agent(const struct start *start, bool in_scope, pid_t *ret_pid)
{
    int fds[2];
    if (!make_pipe(fds))
        return -errno;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        if (in_scope) {
            scope_exec(start->argc, start->argv, fds[1]);
            _exit(EXIT_FAILED);
        }
        agent_detach(fds[1], -1);
        _exit(agent_run(start->o, fds[1]));
    }
    int r = pid < 0 ? -errno : fds[0];
    close(fds[1]);
    if (pid < 0)
        close(fds[0]);
    *ret_pid = pid;
    return r;
}

/* An agent that has begun, by its descriptor; or -errno. */
static int start_somewhere(const struct start *start)
{
    pid_t pid;
    int fd = scope_is_reachable() ? start_agent(start, true, &pid) : -ENOENT;
    if (fd >= 0) {
        if (hear_begun(fd, BEGIN_MS))
            return fd;
        close(fd);
        kill(pid, SIGKILL); /* our child until it is waited for, so the number is still its own */
        waitpid(pid, NULL, 0);
    }
    fd = start_agent(start, false, &pid);
    if (fd < 0 || hear_begun(fd, -1))
        return fd;
    close(fd);
    return -ECHILD;
}

static int submit(const struct start *start, struct agent_report *ret_report)
{
    int fd = start_somewhere(start);
    if (fd < 0)
        return error_from_errno(&ret_report->error, -fd, NULL, "starting the background process");
    if (!hear(fd, ret_report, sizeof(*ret_report)))
        error_set(&ret_report->error, GAD_INTERNAL, NULL,
                  "the background process ended before it said a word");
    close(fd);
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
    int report_fd = -1;
    char **given = argv;
    bool is_agent = scope_inherit(&argc, &given, &report_fd);
    struct start start = {.o = &o, .argc = argc, .argv = given};
    char **parsed = copy_words(argc, given);
    if (!parsed) {
        fputs("gpuarrayctl: no memory\n", stderr);
        return EXIT_FAILED;
    }
    int code = run_parse_words(&o, argc, parsed);
    if (!code)
        code = check_words(&o);
    if (!code && is_agent) {
        code = agent_run(&o, report_fd);
    } else if (!code) {
        int r = submit(&start, &report);
        code = r ? ctl_fail(&report.error, o.json) : print_number(report.job, o.json);
    }
    ctl_job_deinit(&o.job);
    free_words(parsed);
    return code;
}
