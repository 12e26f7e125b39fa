/* Asking the workers for their numbers, for server.info, server.stats and the samples, or one for
 * what it remembers of a job.
 *
 *     info_ask --> `stats` to each worker that is ready --> its answer, its end, or a second
 *              --> when nothing is missing any more: reply
 *
 * A worker that is busy starting or hangs must not keep anybody from seeing that it does: there is
 * one deadline for all. What a worker says goes into replies as it is, so it is bounded: an answer
 * of more than MAX_ANSWER_BYTES (TRACE_MAX_BYTES) or MAX_ANSWER_PAIRS counts as none.
 *
 * Called by methods.c, sampler.c, messages.c, worker.c, session.c and broker.c.
 */
#define LOG_TOPIC "info"
#include "daemon/broker/broker.h"
#include "daemon/broker/numbers/info.h"
#include "daemon/broker/numbers/traces.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/workers/workers.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <string.h>

#define STATS_NS         UINT64_C(1000000000)
#define MAX_ANSWER_BYTES 8192u
#define MAX_ANSWER_PAIRS 256u

struct part { /* a worker's */
    bool is_open;
    uint32_t pending_id;
};

struct stats_wait {
    struct list link, session_link;
    struct info_asker asker;
    info_reply *reply;
    struct deadline deadline;
    struct part parts[ENGINES_MAX];
    struct info_answer answers[ENGINES_MAX];
};

uint64_t info_number(const struct info_answer *answer, const char *key)
{
    uint64_t value = 0;
    struct gad_error ignored;
    if (!answer->bytes || map_u64(&answer->unpacked.data, key, &value, &ignored) != 0)
        value = 0;
    return value;
}

static void keep_answer(struct info_answer *answer, uint64_t most_bytes,
                        const struct worker *worker, const struct message *message)
{
    if (message->error.type != MSGPACK_OBJECT_NIL || message->result.type != MSGPACK_OBJECT_MAP)
        return;
    if (message->n_payload_bytes > most_bytes || message->result.via.map.size > MAX_ANSWER_PAIRS) {
        log_warn(NULL, "what %s says of itself is too long", worker_info(worker)->engine);
        return;
    }
    char *bytes = malloc(message->n_payload_bytes);
    if (!bytes)
        return;
    memcpy(bytes, message->payload, message->n_payload_bytes);
    msgpack_unpacked_init(&answer->unpacked);
    if (msgpack_unpack_next(&answer->unpacked, bytes, message->n_payload_bytes, NULL) !=
        MSGPACK_UNPACK_SUCCESS) {
        msgpack_unpacked_destroy(&answer->unpacked);
        free(bytes);
        return;
    }
    answer->bytes = bytes;
    answer->n_bytes = message->n_payload_bytes;
}

static void free_wait(struct stats_wait *wait)
{
    for (unsigned i = 0; i < ENGINES_MAX; i++)
        if (wait->answers[i].bytes) {
            msgpack_unpacked_destroy(&wait->answers[i].unpacked);
            free(wait->answers[i].bytes);
        }
    free(wait);
}

static void unlink_wait(struct stats_wait *wait)
{
    struct broker *broker = wait->asker.broker;
    broker_clear_deadline(broker, &wait->deadline);
    for (unsigned i = 0; i < broker->n_workers; i++)
        if (wait->parts[i].is_open)
            worker_forget(broker->workers[i], wait->parts[i].pending_id);
    list_remove(&wait->link);
    if (wait->asker.session) {
        wait->asker.session->n_pending--;
        list_remove(&wait->session_link);
    }
}

static void conclude(struct stats_wait *wait)
{
    unlink_wait(wait);
    wait->reply(&wait->asker, wait->answers);
    free_wait(wait);
}

static bool is_complete(const struct stats_wait *wait)
{
    for (unsigned i = 0; i < ENGINES_MAX; i++)
        if (wait->parts[i].is_open)
            return false;
    return true;
}

void info_stats_arrived(struct stats_wait *wait, const struct worker *worker,
                        const struct message *message)
{
    unsigned place = worker_place(worker);
    wait->parts[place].is_open = false;
    keep_answer(&wait->answers[place], wait->asker.job ? TRACE_MAX_BYTES : MAX_ANSWER_BYTES, worker,
                message);
    if (is_complete(wait))
        conclude(wait);
}

static void on_deadline(struct deadline *deadline)
{
    conclude(list_entry(deadline, struct stats_wait, deadline));
}

int info_ask(const struct info_asker *asker, uint32_t places, bool with_jobs, info_reply *reply)
{
    struct broker *broker = asker->broker;
    struct stats_wait *wait = calloc(1, sizeof(*wait));
    if (!wait)
        return -ENOMEM;
    for (unsigned i = 0; i < broker->n_workers; i++)
        wait->parts[i].is_open =
            (places >> i & 1) != 0 && worker_ask(broker->workers[i], wait, asker->job, with_jobs,
                                                 &wait->parts[i].pending_id) == 0;
    if (is_complete(wait)) {
        reply(asker, wait->answers);
        free_wait(wait);
        return 0;
    }
    wait->asker = *asker;
    wait->reply = reply;
    list_push_back(&broker->stats_waits, &wait->link);
    if (asker->session) {
        list_push_back(&asker->session->stats_waits, &wait->session_link);
        asker->session->n_pending++;
    }
    broker_set_deadline(broker, &wait->deadline, STATS_NS, on_deadline);
    return 0;
}

unsigned info_n_waiting(const struct broker *broker, uid_t uid, unsigned most)
{
    unsigned n = 0;
    list_for_each (it, &broker->stats_waits) {
        const struct session *session = list_entry(it, struct stats_wait, link)->asker.session;
        n += session && session->uid == uid;
        if (n >= most)
            break;
    }
    return n;
}

void info_worker_lost(struct broker *broker, const struct worker *worker)
{
    unsigned place = worker_place(worker);
    list_for_each_safe (it, next, &broker->stats_waits) {
        struct stats_wait *wait = list_entry(it, struct stats_wait, link);
        if (!wait->parts[place].is_open)
            continue;
        wait->parts[place].is_open = false;
        if (is_complete(wait))
            conclude(wait);
    }
}

void info_session_gone(struct session *session)
{
    struct list *first;
    while ((first = list_first(&session->stats_waits))) {
        struct stats_wait *wait = list_entry(first, struct stats_wait, session_link);
        unlink_wait(wait);
        free_wait(wait);
    }
}

void info_forget_all(struct broker *broker)
{
    struct list *first;
    while ((first = list_first(&broker->stats_waits))) {
        struct stats_wait *wait = list_entry(first, struct stats_wait, link);
        unlink_wait(wait);
        free_wait(wait);
    }
}
