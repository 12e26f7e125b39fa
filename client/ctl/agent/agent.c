/* The agent of detached jobs.
 *
 * A small process of the user's: it holds the descriptors, feeds and drains what only the client
 * can, and puts the files in their place. The daemon keeps no job without a live connection, so
 * jobs live exactly as long as their agent: SIGTERM cancels them and leaves nothing behind; SIGKILL
 * cancels them too, and the daemon says why.
 *
 *     submit --order--> first connection, or the socket in the private directory (agent_place.c)
 *                           |
 *                        tasks (agent_task.c), each in one of N_LANES lanes
 *                           |
 *                        lane: a client, one session with the daemon, while it has a task
 *
 * One thread does all of this. What takes long, moving blocks, is done by the threads of the lanes'
 * clients, so there is more than one lane. A lane whose daemon went away is mended by
 * gad_job_wait() of its jobs.
 *
 * What is done for one job holds up the others as long as it lasts: its files are opened and given
 * their names, which may write them to the disk first; other users of an HDF5 file or of a journal
 * are waited for some seconds, a plan for a minute at most. A file system that never answers holds
 * them up for ever, and only SIGKILL ends that. So whoever submits opens the sources first, and
 * starts another agent where this one does not hear an order within seconds.
 *
 * The agent leaves with its last job. Who orders from one that is leaving hears nothing, and starts
 * another. One that is short of descriptors stops listening, which has the same effect.
 *
 * Called by submit.c.
 */
#include "client/ctl/agent/agent.h"
#include "client/clock.h"
#include "proto/error.h"
#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define N_LANES   4u
#define STEP_MS   250 /* within which a signal is seen */
#define RETRY_MS  20  /* while a daemon is away */
#define SPARE_FDS 512u

struct lane {
    struct gad_client *client;
    uint64_t connection; /* in which all its jobs are known to be sent */
    unsigned n_tasks;
};

struct agent {
    struct agent_place *place;
    int listen_fd;
    char path[AGENTS_PATH_SIZE]; /* of the socket; "": none */
    struct lane lanes[N_LANES];
    struct agent_task *tasks;
    unsigned n_tasks, n_titled;
    bool is_ending;
};

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
    ctl_watch_signals(); /* SIGTERM cancels the jobs, so that nothing is left behind */
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

/* Descriptors ---------------------------------------------------------------------------------- */

static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The lowest free number tells how many are in use. */
static bool is_full(void)
{
    struct rlimit limit;
    int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
    bool is_over =
        fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)fd + SPARE_FDS > limit.rlim_cur;
    close_fd(&fd);
    return is_over;
}

static void stop_listening(struct agent *agent)
{
    const char *name = strrchr(agent->path, '/');
    if (agent->listen_fd >= 0 && name)
        unlinkat(agent->place->folder_fd, name + 1, 0);
    close_fd(&agent->listen_fd);
}

/* Lanes ---------------------------------------------------------------------------------------- */

static struct lane *least_busy(struct agent *agent)
{
    struct lane *found = &agent->lanes[0];
    for (unsigned i = 1; i < N_LANES; i++)
        if (agent->lanes[i].n_tasks < found->n_tasks)
            found = &agent->lanes[i];
    return found;
}

static bool is_lost(const struct lane *lane)
{
    return lane->n_tasks > 0 &&
           (gad_fd(lane->client) < 0 || lane->connection != gad_connection(lane->client));
}

/* To the daemon that there is, or it has ended. */
static bool is_sent(const struct agent_task *task)
{
    return gad_job_is_done(task->job) ||
           (gad_fd(task->client) >= 0 && task->connection == gad_connection(task->client));
}

/* Jobs of an earlier connection are sent again, each once the daemon is there. */
static void mend(struct agent *agent, struct lane *lane)
{
    struct gad_error ignored;
    for (struct agent_task *task = agent->tasks; task; task = task->next)
        if (task->client == lane->client && !is_sent(task))
            agent_task_note_loss(task);
    for (struct agent_task *task = agent->tasks; task; task = task->next) {
        if (task->client != lane->client || is_sent(task))
            continue;
        (void)gad_job_wait(task->job, 0, &ignored);
        task->connection = gad_connection(lane->client);
        if (gad_fd(lane->client) < 0 && !gad_job_is_done(task->job))
            return; /* not yet */
    }
    if (gad_fd(lane->client) >= 0)
        lane->connection = gad_connection(lane->client);
}

static void hear(struct agent *agent, struct lane *lane)
{
    struct gad_error ignored;
    if (!lane->client)
        return;
    while (gad_dispatch(lane->client, 0, &ignored) == GAD_OK)
        ;
    if (is_lost(lane))
        mend(agent, lane);
}

static void leave_lane(struct agent *agent, struct agent_task *task)
{
    struct lane *lane = &agent->lanes[task->lane];
    if (--lane->n_tasks > 0)
        return;
    gad_close(lane->client);
    *lane = (struct lane){.client = NULL};
}

/* Tasks ---------------------------------------------------------------------------------------- */

static void add(struct agent *agent, struct agent_task *task)
{
    struct gad_error error = {0};
    struct lane *lane = least_busy(agent);
    int r = lane->client ? 0 : ctl_connect(&lane->client, &error);
    if (r) {
        agent_task_refuse(task, &error);
        agent_task_free(task);
        return;
    }
    if (lane->n_tasks++ == 0)
        lane->connection = gad_connection(lane->client);
    task->lane = (unsigned)(lane - agent->lanes);
    if (!agent_task_start(task, lane->client)) {
        agent_task_free(task);
        leave_lane(agent, &(struct agent_task){.lane = (unsigned)(lane - agent->lanes)});
        return;
    }
    task->next = agent->tasks;
    agent->tasks = task;
    agent->n_tasks++;
}

static void step(struct agent *agent)
{
    for (struct agent_task **link = &agent->tasks; *link;) {
        struct agent_task *task = *link;
        if (!agent_task_step(task, agent->path)) {
            link = &task->next;
            continue;
        }
        *link = task->next;
        agent->n_tasks--;
        struct agent_task of_lane = {.lane = task->lane};
        agent_task_free(task); /* before its client may be closed */
        leave_lane(agent, &of_lane);
    }
    if (agent->n_tasks > 0 && agent->n_tasks != agent->n_titled) {
        agent_set_title(agent->tasks->entry.first, agent->n_tasks);
        agent->n_titled = agent->tasks->is_told ? agent->n_tasks : 0;
        malloc_trim(0);
    }
}

static void cancel_all(struct agent *agent)
{
    agent->is_ending = true;
    stop_listening(agent);
    for (struct agent_task *task = agent->tasks; task; task = task->next)
        agent_task_cancel(task);
}

/* Orders --------------------------------------------------------------------------------------- */

static bool say_begun(int fd)
{
    char begun = AGENT_BEGUN;
    return send(fd, &begun, 1, MSG_NOSIGNAL) == 1;
}

static void cancel_one(struct agent *agent, uint64_t job, int fd)
{
    for (struct agent_task *task = agent->tasks; task; task = task->next)
        if (task->is_told && task->entry.first == job) {
            agent_task_cancel(task);
            (void)say_begun(fd);
        }
}

/* Takes the connection. */
static void obey(struct agent *agent, int fd_take)
{
    struct agent_order order;
    if (!agent_order_receive(fd_take, &order)) {
        close(fd_take);
        return;
    }
    if (order.kind == ORDER_CANCEL) {
        cancel_one(agent, order.job, fd_take);
        close(fd_take);
        return;
    }
    if (say_begun(fd_take)) {
        struct agent_task *task = agent_task_new(&order, fd_take);
        if (task)
            add(agent, task);
        return;
    }
    close(order.cwd_fd);
    close(order.words_fd);
    close(fd_take);
}

static void accept_orders(struct agent *agent)
{
    while (agent->listen_fd >= 0) {
        if (is_full()) {
            stop_listening(agent); /* who waits in it hears nothing, and starts another agent */
            return;
        }
        int fd = accept4(agent->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return;
        obey(agent, fd);
    }
}

/* ---------------------------------------------------------------------------------------------- */

static void wait_for_events(struct agent *agent)
{
    struct pollfd polled[N_LANES + 1] = {{.fd = agent->listen_fd, .events = POLLIN}};
    int timeout_ms = STEP_MS;
    for (unsigned i = 0; i < N_LANES; i++) {
        const struct lane *lane = &agent->lanes[i];
        polled[i + 1].fd = gad_fd(lane->client);
        polled[i + 1].events = (short)(gad_wants_write(lane->client) ? POLLIN | POLLOUT : POLLIN);
        if (is_lost(lane))
            timeout_ms = RETRY_MS;
    }
    (void)!poll(polled, N_LANES + 1, timeout_ms);
}

int agent_run(int order_fd_take, struct agent_place *place_take)
{
    struct agent agent = {.place = place_take, .listen_fd = -1};
    set_signals();
    raise_limit();
    prctl(PR_SET_NAME, "gpuarrayctl");
    if (chdir("/")) {
        close(order_fd_take);
        return EXIT_FAILED;
    }
    agent.listen_fd = agent_place_listen(place_take, agent.path);
    obey(&agent, order_fd_take);
    while (agent.tasks) {
        step(&agent);
        if (!agent.tasks)
            break;
        wait_for_events(&agent);
        accept_orders(&agent);
        for (unsigned i = 0; i < N_LANES; i++)
            hear(&agent, &agent.lanes[i]);
        if (ctl_was_interrupted() && !agent.is_ending)
            cancel_all(&agent);
    }
    stop_listening(&agent);
    agent_place_deinit(place_take);
    return EXIT_OK;
}
