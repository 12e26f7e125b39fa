/* server.info and server.ops, and asking the workers for their numbers. */
#pragma once

#include "proto/wire/message.h"

#include <sys/types.h>

struct broker;
struct session;

/* Questions of a user that may wait: each makes the workers look at themselves. */
#define INFO_MAX_WAITING 64u

struct stats_wait;
struct worker;

/* What a worker said of itself: one packed map, and the same to look things up in. */
struct info_answer {
    char *bytes; /* NULL: it said nothing */
    size_t n_bytes;
    msgpack_unpacked unpacked;
};

/* Who wants to know: request `id` of a session, or the broker itself (session NULL). */
struct info_asker {
    struct broker *broker;
    struct session *session;
    uint32_t id;
    uint64_t job; /* asked of one worker: what it remembers of that job; 0: its numbers */
};

/* answers: one for each of the broker's workers, by place. */
typedef void info_reply(const struct info_asker *asker, const struct info_answer *answers);
info_reply info_reply_info;

#define INFO_ALL_PLACES UINT32_MAX

/* Asks the workers at these places (a bit each), as far as they are ready, for their numbers (see
 * worker_ask()), then calls reply once: with them, or after a second with those that came;
 * not at all when the session has gone. */
int info_ask(const struct info_asker *asker, uint32_t places, bool with_jobs,
             info_reply *reply) GAD_MUST_CHECK;
/* Requests of the user that wait for the workers' numbers, counted up to `most`. */
unsigned info_n_waiting(const struct broker *broker, uid_t uid, unsigned most);
void info_stats_arrived(struct stats_wait *wait, const struct worker *worker,
                        const struct message *message);
void info_worker_lost(struct broker *broker, const struct worker *worker);
void info_session_gone(struct session *session);
void info_forget_all(struct broker *broker); /* at the end; nobody is answered */
/* A number of the answer; 0 where it says none. */
uint64_t info_number(const struct info_answer *answer, const char *key);

void info_pack_ops(msgpack_packer *p);
