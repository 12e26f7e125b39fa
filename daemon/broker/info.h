/* server.info and server.ops, and asking the worker for its numbers. */
#pragma once

#include "proto/message.h"

#include <sys/types.h>

struct broker;
struct session;

/* Questions of a user that may wait: each makes the worker look at itself. */
#define INFO_MAX_WAITING 64u

struct stats_wait;

/* Answers request `id`; stats: what the worker said, with a map as its result, or NULL. */
typedef void info_reply(struct session *session, uint32_t id, const struct message *stats);
info_reply info_reply_info;

/* Asks the worker for its numbers (see worker_ask_stats()), then calls reply once: with them, or
 * after a second without; not at all when the session has gone. */
int info_ask(struct session *session, uint32_t id, bool with_jobs,
             info_reply *reply) GAD_MUST_CHECK;
/* Requests of the user that wait for the worker's numbers, counted up to `most`. */
unsigned info_n_waiting(const struct broker *broker, uid_t uid, unsigned most);
void info_stats_arrived(struct stats_wait *wait, const struct message *message);
void info_worker_lost(struct broker *broker);
void info_session_gone(struct session *session);
void info_pack_ops(msgpack_packer *packer);
