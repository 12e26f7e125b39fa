/* The registry of the user's detached jobs: one small file for each, in a private directory.
 *
 * A job's number is the daemon's, and the daemon may restart under it: the job then goes on under
 * another number, and the old one means nothing to the daemon. The registry knows both, and keeps
 * the outcome when the daemon has forgotten it.
 */
#pragma once

#include "client/gpuarrayd.h"

#include <sys/types.h>

#define AGENTS_SOCKET_SIZE 108
#define AGENTS_PATH_SIZE   160

struct agent_entry {
    uint64_t first; /* the number that was printed: the file's name */
    uint64_t
        present; /* the one that the daemon has for it; 0: it was lost and is being sent again */
    pid_t pid;   /* of the agent, which may have other jobs, too */
    uint64_t pid_start; /* clock ticks, so that another process with this pid is not taken for it */
    char socket[AGENTS_SOCKET_SIZE]; /* of its daemon */
    char agent[AGENTS_PATH_SIZE];    /* the agent's own socket; "": none, this is its only job */
    bool has_ended;
    struct gad_job_status last; /* the label; once it has ended all of it */
};

/* Files the entry under its number. False: the number belongs to an agent that lives. A registry
 * that cannot be written is no fault: the job runs, only less is known of it later. */
bool agents_claim(const struct agent_entry *entry);
/* Replaces what the file says, in one step. */
void agents_update(const struct agent_entry *entry);
void agents_forget(const struct agent_entry *entry);

/* By the number first given or, failing that, by the present one; only of the daemon on `socket`,
 * unless NULL. False: there is none. */
bool agents_find(uint64_t number, const char *socket, struct agent_entry *ret);
/* All that the registry has, in no order; free() it. NULL: none. */
struct agent_entry *agents_list(size_t *ret_n);

/* True while the process that wrote it runs. */
bool agent_is_alive(const struct agent_entry *entry);
/* The agent cancels the job and leaves nothing behind. False: it is gone, or hears nobody. */
bool agent_cancel(const struct agent_entry *entry);
/* Two paths of one socket. */
bool agents_same_socket(const char *a, const char *b);

/* ---- agent_folder.c */
#define AGENTS_N_FOLDERS 3
/* "PLACE/gpuarrayd/jobs", the n-th place where a registry may be; false where there is no such
 * place, or it is not the user's alone. With `create` the directories are made. */
bool agents_folder(unsigned n, bool create, char ret_path[AGENTS_PATH_SIZE]);

/* ---- agent_entry.c: an entry as a file's text */
char *agent_entry_write(const struct agent_entry *entry); /* free() it; NULL: no memory */
bool agent_entry_read(const char *text, struct agent_entry *ret);
