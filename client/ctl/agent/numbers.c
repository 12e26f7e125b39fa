/* wait, status, cancel, trace and jobs for a number that may be older than the daemon.
 *
 *     the registry has no such number     the daemon is asked, as it is
 *     it has one, and the outcome         that is the answer; a daemon that was restarted may have
 *                                         given the number again
 *     it has one, and so has the daemon   the daemon is asked, for the present number
 *     the daemon does not know it, or has lost it:
 *         the agent lives                 it is on its way back to the daemon: wait for it
 *         the agent is gone               the job ended with it: cancelled
 *
 * The registry also says on which socket the daemon is, so that another shell without the first
 * one's $GPUARRAYD_SOCKET finds the job. Where that variable is set, it alone decides.
 *
 * Called by jobs.c, trace.c and watch.c.
 */
#include "client/ctl/agent/numbers.h"

#include "client/clock.h"
#include "proto/util.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RETRY_MS 50

struct number {
    uint64_t asked;
    bool has_entry;
    struct agent_entry entry;
};

static const char *given_socket(void)
{
    const char *path = getenv("GPUARRAYD_SOCKET");
    return path && path[0] ? path : NULL;
}

static void look_up(uint64_t asked, struct number *ret)
{
    ret->asked = asked;
    ret->has_entry = agents_find(asked, given_socket(), &ret->entry);
}

static uint64_t present(const struct number *n)
{
    return n->has_entry ? n->entry.present : n->asked;
}

/* The daemon that has the job; a private one that is not there any more has no jobs. unknown-job
 * where none has it. */
static int connect_for(const struct number *n, struct gad_client **ret_client,
                       struct gad_error *error)
{
    if (!n->has_entry)
        return ctl_connect_existing(ret_client, error);
    if (n->entry.has_ended || n->entry.present == 0)
        return error_set(error, GAD_UNKNOWN_JOB, NULL, "no daemon has job %llu",
                         (unsigned long long)n->entry.first);
    struct gad_connect_options options = {
        .socket = n->entry.socket,
        .client_name = "gpuarrayctl",
        .no_private_daemon = true,
        .restart_ms = -1, /* the registry knows more of the job than who waits */
    };
    return (int)gad_connect(&options, ret_client, error);
}

/* The daemon has nothing to say about the job, whoever is to blame for that. */
static bool is_unknown(int status)
{
    return status == GAD_UNKNOWN_JOB || status == GAD_NO_DAEMON || status == GAD_DISCONNECTED ||
           status == GAD_SHUTTING_DOWN || status == GAD_OUTCOME_UNKNOWN;
}

enum fate { FATE_ENDED, FATE_ALIVE, FATE_KILLED };

/* Reads the entry again: the agent may have written since. */
static enum fate fate_of(struct number *n)
{
    bool is_alive = agent_is_alive(&n->entry); /* before: who ends has written its outcome */
    struct agent_entry entry;
    if (agents_find(n->entry.first, n->entry.socket, &entry) && entry.first == n->entry.first)
        n->entry = entry;
    return n->entry.has_ended ? FATE_ENDED : is_alive ? FATE_ALIVE : FATE_KILLED;
}

static void set_killed(const struct agent_entry *entry, struct gad_error *ret)
{
    error_set(ret, GAD_CANCELLED, NULL,
              "job %llu was cancelled: its background process %d was killed",
              (unsigned long long)entry->first, (int)entry->pid);
}

static void status_of_entry(enum fate fate, const struct agent_entry *entry,
                            struct gad_job_status *ret)
{
    *ret = entry->last;
    if (fate == FATE_ENDED)
        return;
    snprintf(ret->state, sizeof(ret->state), "%s",
             fate == FATE_ALIVE ? "reconnecting" : "cancelled");
    if (fate == FATE_KILLED)
        set_killed(entry, &ret->error);
}

/* status --------------------------------------------------------------------------------------- */

static int status_of_number(struct number *n, struct gad_job_status *ret, struct gad_error *error)
{
    struct gad_client *client = NULL;
    int r = connect_for(n, &client, error);
    if (!r)
        r = (int)gad_job_status_by_id(client, present(n), ret, error);
    gad_close(client);
    if (!n->has_entry || (r && !is_unknown(r)))
        return r;
    if (r)
        status_of_entry(fate_of(n), &n->entry, ret);
    ret->job = n->entry.first;
    return 0;
}

int numbers_status(uint64_t number, struct gad_job_status *ret, struct gad_error *error)
{
    struct number n;
    look_up(number, &n);
    return status_of_number(&n, ret, error);
}

/* wait ----------------------------------------------------------------------------------------- */

static int wait_once(const struct number *n, int64_t deadline, struct gad_error *error)
{
    struct gad_client *client = NULL;
    int r = connect_for(n, &client, error);
    if (!r)
        r = (int)gad_job_wait_by_id(client, present(n), clock_left_ms(deadline), error);
    gad_close(client);
    return r;
}

int numbers_wait(uint64_t number, int timeout_ms, struct gad_error *error)
{
    struct number n;
    int64_t deadline = clock_deadline_ms(timeout_ms);
    look_up(number, &n);
    for (;;) {
        int r = wait_once(&n, deadline, error);
        if (!r || !n.has_entry || !is_unknown(r))
            return r;
        switch (fate_of(&n)) {
        case FATE_ENDED: *error = n.entry.last.error; return (int)n.entry.last.error.status;
        case FATE_KILLED:
            if (r != GAD_OUTCOME_UNKNOWN) /* what the daemon says of its end is more */
                set_killed(&n.entry, error);
            return (int)error->status;
        case FATE_ALIVE: break;
        }
        if (clock_left_ms(deadline) == 0)
            return error_set(error, GAD_TIMEOUT, NULL, "job %llu is on its way back to the daemon",
                             (unsigned long long)n.entry.first);
        clock_sleep_ms(RETRY_MS);
    }
}

/* trace ---------------------------------------------------------------------------------------- */

int numbers_trace(uint64_t number, char **ret_json, struct gad_error *error)
{
    struct number n;
    struct gad_client *client = NULL;
    look_up(number, &n);
    n.entry.has_ended = false; /* its worker may remember it all the same */
    int r = connect_for(&n, &client, error);
    if (!r)
        r = (int)gad_job_trace_json(client, present(&n), ret_json, error);
    gad_close(client);
    return r;
}

/* cancel --------------------------------------------------------------------------------------- */

int numbers_cancel(uint64_t number, struct gad_error *error)
{
    struct number n;
    struct gad_client *client = NULL;
    look_up(number, &n);
    int r = connect_for(&n, &client, error);
    if (!r)
        r = (int)gad_job_cancel_by_id(client, present(&n), error);
    gad_close(client);
    if (!n.has_entry || !is_unknown(r))
        return r;
    /* What has ended already, or ends now, is not an error, as with the daemon. */
    if (fate_of(&n) != FATE_ALIVE || agent_cancel(&n.entry) || fate_of(&n) != FATE_ALIVE)
        return 0;
    return error_set(error, GAD_TIMEOUT, NULL,
                     "job %llu is not cancelled yet: its background process %d does not answer; "
                     "'kill -9 %d' ends all its jobs",
                     (unsigned long long)n.entry.first, (int)n.entry.pid, (int)n.entry.pid);
}

/* pause, resume -------------------------------------------------------------------------------- */

int numbers_pause(uint64_t number, bool is_paused, struct gad_error *error)
{
    struct number n;
    struct gad_client *client = NULL;
    look_up(number, &n);
    int r = connect_for(&n, &client, error);
    if (!r)
        r = (int)(is_paused ? gad_job_pause_by_id : gad_job_resume_by_id)(client, present(&n),
                                                                          error);
    gad_close(client);
    return r;
}

/* jobs ----------------------------------------------------------------------------------------- */

/* A job of the daemon's gets the number that its user knows. */
static bool merge(const struct agent_entry *entry, const char *socket, struct gad_job_status *jobs,
                  size_t n_jobs)
{
    for (size_t i = 0; i < n_jobs && agents_same_socket(entry->socket, socket); i++)
        if (jobs[i].job == entry->present) {
            jobs[i].job = entry->first;
            return true;
        }
    return false;
}

static int compare(const void *a, const void *b)
{
    const struct gad_job_status *x = a, *y = b;
    return (x->job > y->job) - (x->job < y->job);
}

struct daemon_list {
    struct sockaddr_un address; /* of the daemon that has these */
    struct gad_job_status *jobs;
    size_t n_jobs;
};

static int list_of_daemon(struct daemon_list *ret, struct gad_error *error)
{
    struct gad_client *client = NULL;
    socklen_t size = sizeof(ret->address) - 1;
    int r = ctl_connect_existing(&client, error);
    if (!r)
        r = (int)gad_job_list(client, &ret->jobs, &ret->n_jobs, error);
    if (!r && given_socket()) /* the daemon's own path for it may be relative, or within a mount */
        snprintf(ret->address.sun_path, sizeof(ret->address.sun_path), "%s", given_socket());
    else if (!r)
        (void)getpeername(gad_fd(client), (struct sockaddr *)&ret->address, &size);
    gad_close(client);
    return r;
}

/* A job that the daemon's list lacks. One that is over is not asked for: the registry has its
 * outcome, and its daemon may hang. */
static bool add_entry(const struct agent_entry *entry, struct gad_job_status *ret)
{
    struct number number = {.has_entry = true, .entry = *entry};
    struct gad_error ignored;
    if (!entry->has_ended)
        return status_of_number(&number, ret, &ignored) == 0;
    *ret = entry->last;
    return true;
}

int numbers_list(struct gad_job_status **ret_jobs, size_t *ret_n_jobs, struct gad_error *error)
{
    struct daemon_list list = {0};
    size_t n_entries, n;
    int r = list_of_daemon(&list, error);
    if (r && r != GAD_NO_DAEMON)
        return r;
    _cleanup_free_ struct agent_entry *entries = agents_list(&n_entries);
    struct gad_job_status *all = realloc(list.jobs, (list.n_jobs + n_entries + 1) * sizeof(*all));
    if (!all) {
        free(list.jobs);
        return error_set(error, GAD_NO_MEMORY, NULL, "no memory for the list of jobs");
    }
    n = list.n_jobs;
    for (size_t i = 0; i < n_entries; i++) {
        bool is_meant = !given_socket() || agents_same_socket(given_socket(), entries[i].socket);
        if (is_meant && !merge(&entries[i], list.address.sun_path, all, list.n_jobs) &&
            add_entry(&entries[i], &all[n]))
            n++;
    }
    if (r && n == 0) { /* no daemon, and nothing is known without it */
        free(all);
        return r;
    }
    qsort(all, n, sizeof(*all), compare);
    *ret_jobs = all;
    *ret_n_jobs = n;
    return 0;
}
