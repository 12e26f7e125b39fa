/* The methods for who looks after the daemon: who is there, and what is changed while it runs.
 *
 * Anybody may ask who is there, and is told of others what server.stats tells. What changes things
 * for others is for admins: root, the daemon's own user, and the members of `admin-group`. It lasts
 * as long as the daemon, or until it reads its settings again; and it is in the log with the uid of
 * who did it.
 *
 * Called through the table in methods.c.
 */
#define LOG_TOPIC "admin"
#include "daemon/broker/broker.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/numbers/stats.h"
#include "daemon/broker/numbers/users.h"
#include "daemon/broker/sessions/methods.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/workers/workers.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#define MAX_WEIGHT 1000u /* as of user-weight */

int methods_check_admin(const struct session *session, const char *what, struct gad_error *error)
{
    if (session_is_admins(session))
        return 0;
    error_set(error, GAD_PERMISSION, NULL, "%s is for admins", what);
    error_expected(error, "root, the daemon's user, or one of its admin-group");
    error_found(error, "uid %u", (unsigned)session->uid);
    return GAD_PERMISSION;
}

int handle_server_users(const struct request *q, struct gad_error *error)
{
    int r = session_check_room(q->session, users_most_bytes(q->session->broker));
    if (r == 0)
        r = methods_check_asking(q->session, STATS_MAX_WAITING, error);
    return r ? r : methods_ask_all(q, true, users_reply);
}

static int read_weight(const struct request *q, uid_t *ret_uid, uint32_t *ret_weight,
                       struct gad_error *error)
{
    uint64_t uid, weight = 0;
    int r = map_require_u64(q->params, "user", &uid, error);
    if (r == 0)
        r = map_u64(q->params, "weight", &weight, error);
    if (r == 0 && uid >= UINT32_MAX)
        r = error_set(error, GAD_BAD_REQUEST, "user", "%llu is no user's number",
                      (unsigned long long)uid);
    if (r == 0 && weight > MAX_WEIGHT) {
        r = error_set(error, GAD_BAD_REQUEST, "weight", "weight %llu is out of range",
                      (unsigned long long)weight);
        error_expected(error, "1 to %u, or 0: as the settings say", MAX_WEIGHT);
        error_found(error, "%llu", (unsigned long long)weight);
    }
    if (r)
        return r;
    *ret_uid = (uid_t)uid;
    *ret_weight = (uint32_t)weight;
    return 0;
}

int handle_server_weight(const struct request *q, struct gad_error *error)
{
    struct broker *broker = q->session->broker;
    uid_t uid;
    uint32_t weight;
    int r = methods_check_admin(q->session, "saying what weight a user has", error);
    if (r == 0)
        r = read_weight(q, &uid, &weight, error);
    if (r)
        return r;
    uint32_t before = account_weight(broker->accounts, uid);
    r = accounts_set_weight(broker->accounts, uid, weight, error);
    if (r)
        return r;
    weight = account_weight(broker->accounts, uid);
    workers_set_weight(broker, uid, weight);
    log_info(LOG_UID(uid), "user %u has weight %u; it was %u, user %u says", (unsigned)uid, weight,
             before, (unsigned)q->session->uid);
    session_reply_empty(q->session, q->id);
    return 0;
}

/* What was taken before waits, or goes on to its end; the next daemon knows nothing of it. */
int handle_server_drain(const struct request *q, struct gad_error *error)
{
    struct broker *broker = q->session->broker;
    struct message_writer *w = &broker->writer;
    char notice[BROKER_NOTICE_SIZE] = "";
    bool is_undone = false;
    int r = methods_check_admin(q->session, "having the daemon take no more jobs", error);
    if (r == 0)
        r = map_bool(q->params, "undo", &is_undone, error);
    if (r == 0)
        r = map_copy_str(q->params, "message", notice, sizeof(notice), error);
    if (r)
        return r;
    broker_close(broker, !is_undone, is_undone ? "" : notice);
    log_warn(NULL, "%s, user %u says; %u jobs run, %u wait",
             is_undone ? "jobs are taken again" : "no jobs are taken and begun any more",
             (unsigned)q->session->uid, workers_n_active(broker), workers_n_waiting(broker));
    message_begin_result(w, q->id);
    msgpack_pack_map(&w->packer, 2);
    pack_key_u64(&w->packer, "running", jobs_n_live(broker->jobs) - workers_n_waiting(broker));
    pack_key_u64(&w->packer, "queued", workers_n_waiting(broker));
    session_send(q->session);
    return 0;
}
