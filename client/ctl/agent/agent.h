/* The agent: the process that `gpuarrayctl submit` leaves behind. */
#pragma once

#include "client/ctl/run.h"

/* What the agent tells the one that waits for the job's number: a byte when it has begun, then
 * this. */
#define AGENT_BEGUN 'b'
struct agent_report {
    uint64_t job;
    struct gad_error error; /* status 0: taken */
};

/* From connecting to the last file in its place. The process is the agent's own: it has forked, or
 * was started for this. Takes the descriptor; returns an exit code. */
int agent_run(struct run_options *o, int report_fd_take);

/* Leaves the session, the terminal, the standard streams and every descriptor but one (and a second
 * one, unless negative). */
void agent_detach(int kept_fd, int second_fd);

/* ---- agent_scope.c: out of the login's reach */
/* True when the user lingers, so has a service manager that stays, and the program to ask it is
 * there. */
bool scope_is_reachable(void);
/* Becomes, through systemd-run, an agent in a scope of the user's manager, with these words as its
 * command line; returns only when that cannot even be tried. */
void scope_exec(int argc, char *const *argv, int report_fd);
/* In the process that scope_exec() became: its words and descriptor. False: it is none. free()
 * ret_argv; the strings stay. */
bool scope_inherit(int *ret_argc, char ***ret_argv, int *ret_report_fd);

/* ---- agent_title.c */
/* "gpuarrayctl: job 17" for ps. The words of the command line are overwritten. */
void agent_set_title(uint64_t job);
