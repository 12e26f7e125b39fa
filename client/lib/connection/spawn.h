/* Starting a process that is nobody's child. */
#pragma once

#include "proto/error.h"

/* Runs argv[0] (an absolute path) in a session of its own, with / as its directory, /dev/null as
 * input and output, log_fd as stderr, extra_fd as descriptor 3, and no other descriptor of the
 * caller's. Returns 0 or a positive errno, execve()'s too. */
int spawn_detached(char *const *argv, int log_fd, int extra_fd);
