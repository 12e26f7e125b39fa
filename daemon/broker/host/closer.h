/* Closes descriptors in threads of their own, since close() on FUSE or NFS can block. One for the
 * process, because conn knows a plain function only. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* max_fds: no descriptor has a number beyond it (RLIMIT_NOFILE), so no more can be waiting. */
int closer_start(unsigned max_fds) GAD_MUST_CHECK;

/* What is asked of each from now on; none may hang before, and after closer_stop(). */
typedef bool closer_may_hang(void *userdata, int fd);
void closer_look(closer_may_hang *may_hang, void *userdata);

/* Takes the descriptor; -1 is ignored. Without a running closer it closes at once. */
void closer_close(int fd_take);

/* Of those that follow, until another is said: the user who handed them over. */
void closer_set_owner(uid_t uid);

/* Handed over and still open. */
unsigned closer_n_pending(void);

/* Whether so many of the user's hang that nobody should take more of them. */
bool closer_is_full(uid_t uid);

/* Waits at most timeout_ms for the rest; a close that hangs longer is left to the kernel. */
void closer_stop(unsigned timeout_ms);
