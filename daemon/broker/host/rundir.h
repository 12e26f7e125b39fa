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

/* Binds and listens; a socket that an earlier daemon left is replaced, so hold the lock. group:
 * (gid_t)-1 for the process' own. */
int rundir_listen(const char *socket_path, mode_t mode, gid_t group, int *ret_fd) GAD_MUST_CHECK;
/* A group by its name or number. -ENOENT: there is none. May ask the network. */
int rundir_find_group(const char *name, gid_t *ret_group) GAD_MUST_CHECK;
