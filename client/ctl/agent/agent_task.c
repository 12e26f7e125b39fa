/* One job of an agent.
 *
 *     start       opens the files in the directory of whoever asked, and sends the job
 *     claim       its number, in the registry; one that another living agent holds is given back
 *     report      to the foreground, which prints the number and ends
 *     follow      to the end, through restarts of the daemon; a new number goes into the registry
 *     conclude    the outcome goes there too
 *
 * No step waits for the job to run: the agent has others. Only a job whose number is taken is
 * cancelled, and waited for, before it is sent again. The working directory is left when the job
 * was sent: every file is open then, and what is still to be named is named from its open
 * directory.
 *
 * Called by agent.c.
 */
#include "client/ctl/agent/agent.h"
#include "client/process.h"
#include "proto/error.h"
#include "proto/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_CLAIMS 64 /* numbers in a row that others hold */

struct task_words { /* needed until the number is claimed */
    struct run_options o;
    char **argv;
    int argc;
};

static struct task_words *free_words(struct task_words *words)
{
    if (!words)
        return NULL;
    ctl_job_deinit(&words->o.job);
    if (words->argv)
        free(words->argv[0]);
    free(words->argv);
    free(words);
    return NULL;
}

struct agent_task *agent_task_new(const struct agent_order *order, int report_fd_take)
{
    struct agent_task *task = calloc(1, sizeof(*task));
    struct task_words *words = calloc(1, sizeof(*words));
    if (!task || !words || !agent_words_take(order->words_fd, &words->argc, &words->argv)) {
        free(task);
        free(words);
        close(order->cwd_fd);
        close(report_fd_take);
        return NULL;
    }
    task->words = words;
    task->report_fd = report_fd_take;
    task->cwd_fd = order->cwd_fd;
    return task;
}

struct agent_task *agent_task_free(struct agent_task *task)
{
    gad_job_free(task->job); /* it has ended, so this does not wait */
    free_words(task->words);
    close_fd(&task->report_fd);
    close_fd(&task->cwd_fd);
    free(task);
    return NULL;
}

/* Reports -------------------------------------------------------------------------------------- */

/* False when nobody hears it any more. */
static bool tell(struct agent_task *task, const struct gad_error *error)
{
    struct agent_report report = {.job = task->entry.first};
    ssize_t n;
    if (error)
        report.error = *error;
    do
        n = send(task->report_fd, &report, sizeof(report), MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    close_fd(&task->report_fd);
    task->is_told = true;
    return n == (ssize_t)sizeof(report);
}

void agent_task_refuse(struct agent_task *task, const struct gad_error *error)
{
    (void)tell(task, error);
}

/* Starting ------------------------------------------------------------------------------------- */

static void describe(struct agent_task *task, const char *agent_path)
{
    const struct run_options *o = &task->words->o;
    struct sockaddr_un address = {0};
    socklen_t size = sizeof(address) - 1;
    uint64_t number = gad_job_id(task->job);
    struct agent_entry *entry = &task->entry;
    *entry = (struct agent_entry){.first = number, .present = number, .pid = getpid()};
    entry->pid_start = process_start(entry->pid);
    snprintf(entry->agent, sizeof(entry->agent), "%s", agent_path);
    if (getpeername(gad_fd(task->client), (struct sockaddr *)&address, &size) == 0)
        memcpy(entry->socket, address.sun_path, sizeof(address.sun_path) - 1);
    /* The daemon was told a path that is relative to a directory of its own: ours leads there. */
    if (entry->socket[0] != '/')
        snprintf(entry->socket, sizeof(entry->socket), "%.107s", ctl_socket_path());
    entry->last.job = number;
    snprintf(entry->last.label, sizeof(entry->last.label), "%.63s", o->label);
}

static int send_job(struct agent_task *task, struct gad_error *error)
{
    struct gad_job_options options = run_job_options(&task->words->o, NULL);
    int r = (int)gad_submit(task->client, &options, &task->job, error);
    task->connection = gad_connection(task->client);
    return r;
}

static int open_and_send(struct agent_task *task, struct gad_error *error)
{
    struct task_words *words = task->words;
    if (fchdir(task->cwd_fd))
        return error_from_errno(error, errno, NULL, "the working directory");
    int r = run_parse_words(&words->o, words->argc, words->argv)
                ? error_set(error, GAD_INTERNAL, NULL, "the words were not understood again")
                : 0;
    if (!r) {
        r = run_open_all(&words->o, task->client);
        *error = words->o.error;
    }
    return r ? r : send_job(task, error);
}

bool agent_task_start(struct agent_task *task, struct gad_client *client)
{
    struct gad_error error = {0};
    task->client = client;
    int r = open_and_send(task, &error);
    if (chdir("/") && !r)
        r = error_from_errno(&error, errno, NULL, "leaving the working directory");
    if (!r)
        return true;
    agent_task_refuse(task, &error);
    return false;
}

/* Claiming ------------------------------------------------------------------------------------- */

/* The number is one that others hold: the job gets another. Returns false when it got none. */
static bool send_again(struct agent_task *task)
{
    struct gad_error error = {0};
    gad_job_free(task->job);
    task->job = NULL;
    int r = ++task->n_claims < MAX_CLAIMS
                ? 0
                : error_set(&error, GAD_BUSY, NULL,
                            "the daemon gives numbers that other jobs of yours still go by");
    if (!r && fchdir(task->cwd_fd))
        r = error_from_errno(&error, errno, NULL, "the working directory");
    if (!r)
        r = send_job(task, &error);
    if (chdir("/") == 0 && !r)
        return true;
    agent_task_refuse(task, &error);
    return false;
}

/* Returns false when the task is over. */
static bool claim(struct agent_task *task, const char *agent_path)
{
    if (gad_job_id(task->job) == 0) {
        struct gad_error error = {0};
        if (!gad_job_is_done(task->job))
            return true;
        if (gad_job_wait(task->job, 0, &error) == GAD_OK)
            error_set(&error, GAD_INTERNAL, NULL, "the job ended without a number");
        agent_task_refuse(task, &error); /* by the daemon */
        return false;
    }
    describe(task, agent_path);
    if (!agents_claim(&task->entry))
        return send_again(task);
    task->is_known = true;
    if (!tell(task, NULL)) { /* a job whose number nobody has */
        agents_forget(&task->entry);
        task->is_known = false;
        agent_task_cancel(task);
    }
    task->words = free_words(task->words);
    close_fd(&task->cwd_fd);
    return true;
}

/* Following ------------------------------------------------------------------------------------ */

void agent_task_cancel(struct agent_task *task)
{
    struct gad_error ignored;
    (void)gad_job_cancel(task->job, &ignored);
    if (gad_fd(task->client) < 0)
        (void)gad_job_wait(task->job, 0, &ignored); /* without the daemon it ends at once */
}

static void set_present(struct agent_task *task, uint64_t number)
{
    if (number == task->entry.present || !task->is_known)
        return;
    task->entry.present = number;
    agents_update(&task->entry);
}

void agent_task_note_loss(struct agent_task *task)
{
    set_present(task, 0);
}

/* The number that a job had before its daemon went is no number of the next one's. */
static void note_number(struct agent_task *task)
{
    uint64_t number = gad_job_id(task->job);
    if (number != 0 && gad_fd(task->client) >= 0 &&
        task->connection == gad_connection(task->client))
        set_present(task, number);
}

/* How far a job came that did not end well: only the daemon knows. */
static void ask_how_far(struct agent_task *task)
{
    struct gad_job_status *last = &task->entry.last, now;
    bool is_there = task->entry.present != 0 && gad_fd(task->client) >= 0 &&
                    task->connection == gad_connection(task->client);
    if (!is_there || gad_job_status_by_id(task->client, task->entry.present, &now, NULL) != 0)
        return;
    last->tiles_done = now.tiles_done;
    last->n_tiles = now.n_tiles;
    last->read_bytes = now.read_bytes;
    last->write_bytes = now.write_bytes;
    last->queued_s = now.queued_s;
    last->running_s = now.running_s;
}

static void conclude(struct agent_task *task)
{
    struct agent_entry *entry = &task->entry;
    struct gad_error error = {0};
    int r = (int)gad_job_wait(task->job, 0, &error);
    const struct gad_job_stats *stats = gad_job_stats(task->job);
    const char *state = r == 0 ? "done" : r == GAD_CANCELLED ? "cancelled" : "failed";
    entry->has_ended = true;
    snprintf(entry->last.state, sizeof(entry->last.state), "%s", state);
    if (r)
        entry->last.error = error;
    if (stats) {
        entry->last.tiles_done = entry->last.n_tiles = stats->n_tiles;
        entry->last.read_bytes = stats->read_bytes;
        entry->last.write_bytes = stats->write_bytes;
        entry->last.running_s = stats->total_s;
    } else {
        ask_how_far(task);
    }
    if (task->is_known)
        agents_update(entry);
}

bool agent_task_step(struct agent_task *task, const char *agent_path)
{
    if (!task->is_told)
        return !claim(task, agent_path);
    note_number(task);
    if (!gad_job_is_done(task->job))
        return false;
    conclude(task);
    return true;
}
