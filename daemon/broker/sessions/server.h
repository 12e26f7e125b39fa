/* The listening socket. */
#pragma once

#include "proto/error.h"

struct broker;
struct server;

#define SERVER_TOLD 1 /* what is wrong has been logged */

/* Takes the lock, binds and listens, or takes over the socket of options.listen_fd. -EWOULDBLOCK:
 * another daemon serves this socket; SERVER_TOLD; other errno of the system. */
int server_new(struct broker *broker, struct server **ret_server) GAD_MUST_CHECK;
struct server *server_free(struct server *server); /* NULL; the socket's name goes, if it is ours */

/* Takes whoever knocked meanwhile. How many. */
unsigned server_accept(struct server *server);
