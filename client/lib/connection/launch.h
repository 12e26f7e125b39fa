/* Launching the private daemon of the user. */
#pragma once

#include "proto/error.h"

#include <stdint.h>

/* The lock of the private directory, so that one of two starters starts. timeout. */
int launch_lock(const char *directory, int64_t deadline, int *ret_fd,
                struct gad_error *error) GAD_MUST_CHECK;

/* Starts `gpuarrayd --private` on the socket and waits until it listens. The lock is held.
 * -EAGAIN: it ended at once, *error says so; an earlier daemon may not have gone quite yet.
 * daemon_path: NULL: $GPUARRAYD_DAEMON, else the installed one, else of $PATH. no-daemon, timeout.
 */
int launch_daemon(const char *directory, const char *socket_path, const char *daemon_path,
                  int64_t deadline, struct gad_error *error) GAD_MUST_CHECK;
