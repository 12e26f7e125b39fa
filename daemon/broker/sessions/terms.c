/* The terms of users: from settings to accounts.
 *
 * Groups are those that the process had as it connected (SO_PEERGROUPS): the kernel's word, for
 * which no directory of users is asked, which may be slow. A user who connects from processes of
 * other groups has the terms of the last one. Groups can be left, not entered: a group's rule gives
 * more for certain, but one who wants to can do without its lower limits; those are for [user] and
 * [users].
 *
 * Called by session.c for each connection, and by broker.c.
 */
#include "daemon/broker/sessions/terms.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/config/policy.h"
#include "daemon/broker/sessions/session.h"
#include "daemon/broker/workers/workers.h"
#include "proto/util.h"

#include <stdlib.h>
#include <sys/socket.h>

#define RESERVED_SESSIONS 8u  /* of a user: to look and to cancel when all others are in use */
#define SCANS             32u /* of a user: what it reads from shared ones */
#define REFUSED_SESSIONS  16u /* of a user: who knocks beyond these is not told why */
#define FEW_GROUPS        64u

static const struct {
    enum account_resource resource;
    enum setting_id id;
} of_settings[] = {
    {ACCOUNT_SESSIONS, SETTING_USER_SESSIONS},      {ACCOUNT_JOBS, SETTING_USER_JOBS},
    {ACCOUNT_REGION_BYTES, SETTING_REGION_LIMIT},   {ACCOUNT_DESCRIPTORS, SETTING_USER_DESCRIPTORS},
    {ACCOUNT_REQUEST_BYTES, SETTING_USER_REQUESTS}, {ACCOUNT_REPLY_BYTES, SETTING_USER_REPLIES},
    {ACCOUNT_COMING_BYTES, SETTING_USER_REPLIES},   {ACCOUNT_PLAN_NS, SETTING_USER_PLAN_TIME},
    {ACCOUNT_LOG_LINES, SETTING_USER_LOG_LINES},
};

static uint64_t twice(uint64_t n)
{
    return n > UINT64_MAX / 2 ? UINT64_MAX : n * 2;
}

/* Of all users together. Of what the machine or the queue has a part; of the rest twice what one
 * may hold, who is alone with it: that is what the share of the first is. */
static void find_totals(const struct options *o, const uint64_t *user, uint64_t *ret)
{
    uint64_t n_files = settings_max_files();
    for (unsigned i = 0; i < ACCOUNT_N_RESOURCES; i++)
        ret[i] = twice(user[i]);
    for (unsigned i = 0; i < ARRAY_LENGTH(of_settings); i++)
        ret[of_settings[i].resource] = twice(policy_most(o, of_settings[i].id));
    ret[ACCOUNT_REPLY_BYTES] = twice(ret[ACCOUNT_REPLY_BYTES]); /* lists may pass the limit */
    ret[ACCOUNT_SESSIONS] = n_files / 8;
    ret[ACCOUNT_RESERVE] = n_files / 32;
    ret[ACCOUNT_REFUSED] = n_files / 32;
    ret[ACCOUNT_DESCRIPTORS] = n_files / 8 * 5;
    ret[ACCOUNT_JOBS] =
        max_u64((uint64_t)o->max_queue + (uint64_t)o->max_active, ret[ACCOUNT_JOBS]);
}

void terms_limits(const struct options *o, struct account_limits *ret)
{
    ret->user[ACCOUNT_RESERVE] = RESERVED_SESSIONS;
    ret->user[ACCOUNT_REFUSED] = REFUSED_SESSIONS;
    ret->user[ACCOUNT_SCANS] = SCANS;
    ret->user[ACCOUNT_WAITS] = o->session_requests;
    ret->user[ACCOUNT_MESSAGE_BYTES] = o->message_memory_bytes;
    for (unsigned i = 0; i < ARRAY_LENGTH(of_settings); i++)
        ret->user[of_settings[i].resource] = setting_number(setting_at(of_settings[i].id), o);
    ret->weight = o->user_weight;
    find_totals(o, ret->user, ret->total);
}

static void set_terms(struct broker *broker, uid_t uid, const gid_t *groups, unsigned n_groups)
{
    uint64_t values[SETTING_N_OF_USERS];
    struct account_limits terms;
    policy_find(&broker->options, uid, groups, n_groups, values);
    terms_limits(&broker->options, &terms);
    for (unsigned i = 0; i < ARRAY_LENGTH(of_settings); i++)
        terms.user[of_settings[i].resource] = values[of_settings[i].id - SETTING_USER_WEIGHT];
    accounts_set_terms(broker->accounts, uid, terms.user, (uint32_t)values[0]);
}

/* The one that counts for files, and all others. */
static unsigned list_groups(int fd, gid_t **groups, unsigned n_room)
{
    struct ucred peer;
    socklen_t n_bytes = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_bytes) < 0)
        return 0;
    (*groups)[0] = peer.gid;
    n_bytes = (socklen_t)((n_room - 1) * sizeof(gid_t));
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, *groups + 1, &n_bytes) == 0)
        return 1 + n_bytes / (unsigned)sizeof(gid_t);
    gid_t *more = errno == ERANGE ? malloc(sizeof(gid_t) + n_bytes) : NULL;
    if (!more)
        return 1;
    more[0] = peer.gid;
    *groups = more;
    return getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, more + 1, &n_bytes) == 0
               ? 1 + n_bytes / (unsigned)sizeof(gid_t)
               : 1;
}

bool terms_of_user(struct broker *broker, int fd, uid_t uid)
{
    const struct options *o = &broker->options;
    gid_t few[FEW_GROUPS], *groups = few;
    unsigned n_groups = 0;
    bool is_admin = false;
    if (o->policy.n_rules > 0 || o->admin_gid != (gid_t)-1)
        n_groups = list_groups(fd, &groups, FEW_GROUPS);
    if (o->policy.n_rules > 0)
        set_terms(broker, uid, groups, n_groups);
    else
        accounts_forget_terms(broker->accounts, uid);
    for (unsigned i = 0; i < n_groups && o->admin_gid != (gid_t)-1; i++)
        is_admin |= groups[i] == o->admin_gid;
    if (groups != few)
        free(groups);
    return is_admin;
}

/* Jobs that run are told of it; others as they start. */
static bool tell_weight(void *userdata, const struct account_state *state)
{
    if (state->use[ACCOUNT_JOBS] > 0)
        workers_set_weight(userdata, state->uid, state->weight);
    return true;
}

void terms_apply(struct broker *broker)
{
    struct account_limits limits;
    terms_limits(&broker->options, &limits);
    accounts_set_limits(broker->accounts, &limits);
    accounts_forget_weights(broker->accounts);
    list_for_each (it, &broker->sessions) {
        struct session *session = list_entry(it, struct session, link);
        if (session->state != SESSION_CLOSED)
            session->is_of_admins = terms_of_user(broker, conn_fd(session->conn), session->uid);
    }
    accounts_for_each(broker->accounts, tell_weight, broker);
}
