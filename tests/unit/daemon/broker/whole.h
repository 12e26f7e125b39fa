/* A whole broker in a child, on a socket of its own, and one who asks it. The worker is a program
 * that is none. */
#pragma once

#include "proto/wire/conn.h"
#include "proto/wire/message.h"

#include <sys/types.h>

extern pid_t daemon_pid;
extern char path[100]; /* of its socket */

void start(const char *worker, uint64_t idle_exit_ns);
int exit_status(void); /* waits for its end */
struct conn *connect_to_it(void);
/* The answer to this request, which is the next: the word of the error, "ok", or "closed". */
const char *receive(struct conn *c, uint32_t id);
