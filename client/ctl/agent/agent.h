/* The agent: the process that `gpuarrayctl submit` leaves behind, one for all jobs of a user that
 * have the same surroundings. */
#pragma once

#include "client/ctl/agent/agents.h"
#include "client/ctl/run/run.h"

/* What the agent tells the one that waits for the job's number: a byte when it has begun, then
 * this. */
#define AGENT_BEGUN 'b'
struct agent_report {
    uint64_t job;
    struct gad_error error; /* status 0: taken */
};

/* ---- agent_place.c: where agents are found */
#define AGENT_KEY_SIZE 17

struct agent_place {
    int folder_fd; /* -1: there is no private directory; an agent then serves its first order alone
                    */
    char key[AGENT_KEY_SIZE]; /* of the surroundings: only an agent with the same ones will do */
};

/* The caller's; agent_place_deinit() it. */
void agent_place_init(struct agent_place *ret);
void agent_place_deinit(struct agent_place *place);
/* Held by whoever looks for an agent or starts one. Returns a descriptor; -1 after some seconds. */
int agent_place_lock(const struct agent_place *place);
/* A connection to the n-th agent that listens; -1: there are no more. */
int agent_place_connect(const struct agent_place *place, unsigned n);
/* Listens as the agent that this process is; -1: not. ret_path: of the socket. */
int agent_place_listen(const struct agent_place *place, char ret_path[AGENTS_PATH_SIZE]);
int agent_place_connect_path(const char *path);

/* ---- agent_order.c: what an agent is asked to do */
enum order_kind { ORDER_SUBMIT, ORDER_CANCEL };

struct agent_order {
    enum order_kind kind;
    uint64_t job; /* to be cancelled, by the number first given */
    int cwd_fd,
        words_fd; /* to be submitted: from where, and the words of the command line; or -1 */
};

bool agent_order_send(int fd, const struct agent_order *order);
/* Waits a second at most. The descriptors are the caller's. */
bool agent_order_receive(int fd, struct agent_order *ret);
/* Words of a command line in a file, one NUL behind each; -1: not. */
int agent_words_put(int argc, char *const *argv);
/* free() *ret_argv and its first string. Takes the descriptor. */
bool agent_words_take(int fd_take, int *ret_argc, char ***ret_argv);
/* Until the deadline of poll(); -1: none. False: it has ended or does not answer. */
bool agent_hear_begun(int fd, int timeout_ms);

/* ---- agent_task.c: one job */
struct agent_task {
    struct agent_task *next;
    unsigned lane;
    struct gad_client *client;
    struct gad_job *job;
    uint64_t connection; /* in which it was sent */
    struct agent_entry entry;
    bool is_told;  /* the number is in the registry, and whoever asked for the job has it */
    bool is_known; /* the registry has it */
    int report_fd, cwd_fd;
    struct task_words *words;
    unsigned n_claims;
};

/* Takes the order's descriptors and the connection to report to. NULL: no memory. */
struct agent_task *agent_task_new(const struct agent_order *order, int report_fd_take);
/* Opens, and sends the job. False: refused, and told so. */
bool agent_task_start(struct agent_task *task, struct gad_client *client);
void agent_task_refuse(struct agent_task *task, const struct gad_error *error);
void agent_task_cancel(struct agent_task *task);
/* The daemon that had the job is gone. */
void agent_task_note_loss(struct agent_task *task);
/* After the client was heard; agent_path goes into the registry. True: the task is over. */
bool agent_task_step(struct agent_task *task, const char *agent_path);
struct agent_task *agent_task_free(struct agent_task *task);

/* ---- agent.c */
/* Serves the order that comes by this connection, and all that come to the place until none is
 * left. The process is the agent's own: it was forked, or started for this. Takes both; returns an
 * exit code. */
int agent_run(int order_fd_take, struct agent_place *place_take);

/* Leaves the session, the terminal, the standard streams and every descriptor but one (and a second
 * one, unless negative). */
void agent_detach(int kept_fd, int second_fd);

/* ---- agent_scope.c: out of the login's reach */
/* True when the user lingers, so has a service manager that stays, and the program to ask it is
 * there. */
bool agent_scope_is_reachable(void);
/* Becomes, through systemd-run, an agent in a scope of the user's manager that takes its order from
 * this connection; returns only when that cannot even be tried. */
void agent_scope_exec(int order_fd, const struct agent_place *place);
/* In the process that agent_scope_exec() became. False: it is none. */
bool agent_scope_inherit(int *ret_order_fd, struct agent_place *ret_place);

/* ---- agent_title.c */
/* "gpuarrayctl: job 17" or "gpuarrayctl: 3 jobs" for ps. The words of the command line are
 * overwritten. */
void agent_set_title(uint64_t job, unsigned n_jobs);
