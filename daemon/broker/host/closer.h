/* Closes descriptors in a thread of its own, since close() on FUSE or NFS can block. One for the
 * process, because conn knows a plain function only. */
#pragma once

#include "proto/error.h"

/* max_fds: no descriptor has a number beyond it (RLIMIT_NOFILE), so no more can be waiting. */
int closer_start(unsigned max_fds) GAD_MUST_CHECK;

/* Takes the descriptor; -1 is ignored. Without a running closer it closes at once. */
void closer_close(int fd_take);

/* Handed over and still open. */
unsigned closer_n_pending(void);

/* Waits at most timeout_ms for the rest; a close that hangs longer is left to the kernel. */
void closer_stop(unsigned timeout_ms);
