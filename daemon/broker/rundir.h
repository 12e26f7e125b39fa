/* The place of the socket: a private daemon's directory, the lock against two daemons on one
 * socket, the bound socket itself. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* For a private daemon: makes the socket's directory (0700) or checks that it is ours alone.
 * -EPERM when it is not, other errno of the system. */
int rundir_prepare(const char *socket_path) GAD_MUST_CHECK;

/* Locks `socket_path`.lock. -EWOULDBLOCK: another daemon has it. */
int rundir_lock(const char *socket_path, int *ret_fd) GAD_MUST_CHECK;

/* Binds and listens; a socket that an earlier daemon left is replaced, so hold the lock. */
int rundir_listen(const char *socket_path, mode_t mode, int *ret_fd) GAD_MUST_CHECK;
