/* The agent of a detached job.
 *
 * A small process of the user's: it holds the descriptors, feeds and drains what only the client
 * can, and puts the files in their place. The daemon keeps no job without a live connection, so the
 * job lives exactly as long as its agent: SIGTERM cancels it and leaves nothing behind; SIGKILL
 * cancels it too, and the daemon says why.
 *
 *     begin       nothing of the shell's is kept: session, terminal, streams, descriptors
 *     submit      until the daemon has taken or refused the job
 *     claim       its number, in the registry; one that another living agent holds is given back
 *     report      to the foreground, which prints the number and ends
 *     follow      to the end, through restarts of the daemon; a new number goes into the registry
 *     conclude    the outcome goes there too
 *
 * The working directory is left once the job is taken: every file is open then, and what is still
 * to be named is named from its open directory.
 *
 * Called by submit.c.
 */
#include "client/ctl/agent/agent.h"
#include "client/ctl/agent/agents.h"

#include "proto/error.h"
#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define STEP_MS    250 /* within which a signal is seen */
#define MAX_CLAIMS 64  /* numbers in a row that others hold */

static void close_all_but(unsigned low, unsigned high)
{
    if (low > 3)
        syscall(SYS_close_range, 3u, low - 1, 0u);
    if (high > low + 1)
        syscall(SYS_close_range, low + 1, high - 1, 0u);
    syscall(SYS_close_range, high + 1, ~0u, 0u);
}

void agent_detach(int kept_fd, int second_fd)
{
    unsigned low = (unsigned)kept_fd, high = second_fd < 0 ? low : (unsigned)second_fd;
    setsid(); /* fails for one that leads a session already */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2 && null >= 0; fd++)
        dup2(null, fd);
    close_all_but(low < high ? low : high, low < high ? high : low);
}

static void set_signals(void)
{
    ctl_watch_signals(); /* SIGTERM cancels the job, so that nothing is left behind */
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

/* False when nobody hears it any more. */
static bool tell(int fd, const void *what, size_t n_bytes)
{
    ssize_t n;
    do
        n = write(fd, what, n_bytes); /* below PIPE_BUF: whole or not at all */
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)n_bytes;
}

/* Until the daemon has taken the job or refused it. */
static int submit_once(struct run_options *o, struct gad_client *client, struct gad_job **ret_job,
                       struct gad_error *error)
{
    struct gad_job_options options = run_job_options(o, NULL);
    int r = (int)gad_submit(client, &options, ret_job, error);
    while (!r && gad_job_id(*ret_job) == 0 && !gad_job_is_done(*ret_job)) {
        int waited = (int)gad_dispatch(client, STEP_MS, error);
        if (waited == GAD_TIMEOUT && ctl_was_interrupted())
            (void)gad_job_cancel(*ret_job, NULL);
        else if (waited != 0 && waited != GAD_TIMEOUT)
            r = waited;
    }
    if (!r && gad_job_id(*ret_job) == 0)
        r = (int)gad_job_wait(*ret_job, 0, error); /* refused: its error is the report */
    return r;
}

/* What the library reads again when it connects anew, from "/" by then. */
static void make_absolute(const char *variable)
{
    const char *given = getenv(variable);
    _cleanup_free_ char *path =
        given && given[0] != '/' && strchr(given, '/') ? realpath(given, NULL) : NULL;
    if (path)
        setenv(variable, path, 1);
}

/* The daemon was told a path that is relative to a directory of its own: ours leads there too. */
static void absolute_socket(char ret_path[AGENTS_SOCKET_SIZE])
{
    const char *given = getenv("GPUARRAYD_SOCKET");
    _cleanup_free_ char *path = given ? realpath(given, NULL) : NULL;
    snprintf(ret_path, AGENTS_SOCKET_SIZE, "%s", path ? path : "");
}

static void describe(const struct run_options *o, const struct gad_client *client, uint64_t number,
                     struct agent_entry *ret)
{
    struct sockaddr_un address = {0};
    socklen_t size = sizeof(address) - 1;
    *ret = (struct agent_entry){.first = number, .present = number, .pid = getpid()};
    ret->pid_start = agent_pid_start(ret->pid);
    if (getpeername(gad_fd(client), (struct sockaddr *)&address, &size) == 0)
        memcpy(ret->socket, address.sun_path, sizeof(address.sun_path) - 1);
    if (ret->socket[0] != '/')
        absolute_socket(ret->socket);
    ret->last.job = number;
    snprintf(ret->last.label, sizeof(ret->last.label), "%.63s", o->label);
}

/* The job, under a number that no other living agent of the user goes by. */
static int submit_and_claim(struct run_options *o, struct gad_client *client,
                            struct gad_job **ret_job, struct agent_entry *entry,
                            struct gad_error *error)
{
    for (unsigned i = 0; i < MAX_CLAIMS; i++) {
        int r = submit_once(o, client, ret_job, error);
        if (r)
            return r;
        describe(o, client, gad_job_id(*ret_job), entry);
        if (agents_claim(entry))
            return 0;
        gad_job_free(*ret_job);
        *ret_job = NULL;
    }
    return error_set(error, GAD_BUSY, NULL,
                     "the daemon gives numbers that other jobs of yours still go by");
}

static void note_number(const struct gad_job *job, struct agent_entry *entry)
{
    uint64_t number = gad_job_id(job);
    if (number == 0 || number == entry->present)
        return;
    entry->present = number;
    agents_update(entry);
}

static int follow(struct gad_job *job, struct agent_entry *entry, struct gad_error *error)
{
    for (;;) {
        int r = (int)gad_job_wait(job, STEP_MS, error);
        note_number(job, entry);
        if (r != GAD_TIMEOUT)
            return r;
        if (ctl_was_interrupted() && gad_job_cancel(job, error))
            return (int)error->status;
    }
}

static void conclude(const struct gad_job *job, int r, const struct gad_error *error,
                     struct agent_entry *entry)
{
    const struct gad_job_stats *stats = gad_job_stats(job);
    const char *state = r == 0 ? "done" : r == GAD_CANCELLED ? "cancelled" : "failed";
    entry->has_ended = true;
    snprintf(entry->last.state, sizeof(entry->last.state), "%s", state);
    if (r)
        entry->last.error = *error;
    if (stats) {
        entry->last.tiles_done = entry->last.n_tiles = stats->n_tiles;
        entry->last.read_bytes = stats->read_bytes;
        entry->last.write_bytes = stats->write_bytes;
        entry->last.running_s = stats->total_s;
    }
    agents_update(entry);
}

static int begin(struct run_options *o, struct gad_client **ret_client, struct gad_job **ret_job,
                 struct agent_entry *entry, struct gad_error *error)
{
    make_absolute("GPUARRAYD_SOCKET");
    make_absolute("GPUARRAYD_DAEMON");
    int r = ctl_connect(ret_client, error);
    if (!r) {
        r = run_open_all(o, *ret_client);
        *error = o->error;
    }
    return r ? r : submit_and_claim(o, *ret_client, ret_job, entry, error);
}

/* The job runs and its number is known. */
static int live(struct gad_job *job, struct agent_entry *entry)
{
    struct gad_error error = {0};
    if (chdir("/"))
        return GAD_IO_ERROR;
    agent_set_title(entry->first);
    malloc_trim(0);
    int r = follow(job, entry, &error);
    conclude(job, r, &error, entry);
    return r;
}

int agent_run(struct run_options *o, int report_fd_take)
{
    struct agent_report report = {0};
    struct gad_client *client = NULL;
    struct gad_job *job = NULL;
    struct agent_entry entry = {0};
    char begun = AGENT_BEGUN;
    set_signals();
    prctl(PR_SET_NAME, "gpuarrayctl");
    tell(report_fd_take, &begun, 1);
    int r = begin(o, &client, &job, &entry, &report.error);
    report.error.status = (enum gad_status)r;
    report.job = entry.first;
    if (!tell(report_fd_take, &report, sizeof(report)) && !r) {
        r = GAD_CANCELLED; /* a job whose number nobody has: gad_job_free() cancels it */
        agents_forget(&entry);
    }
    close(report_fd_take);
    if (!r)
        r = live(job, &entry);
    gad_job_free(job);
    ctl_job_deinit(&o->job);
    gad_close(client);
    return r ? EXIT_FAILED : EXIT_OK;
}
