/* server.users: who is there, and what each holds and may hold.
 *
 * Those who are connected or have jobs are those who have an account. What server.stats tells
 * everybody of a user is told here, too; the rest, which says how much is left, only to the user
 * and to admins. The asking user comes first, so that it is never among those left out: a reply
 * must fit a frame, 1 MiB and 65536 objects, of which a user takes some 145.
 *
 * Jobs are counted as they are found, user by user. Slots are what the workers told of their jobs
 * before they answered (ask.c).
 *
 * Called by ask.c, after methods_admin.c asked it.
 */
#include "daemon/broker/numbers/users.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/jobs/pause.h"
#include "daemon/broker/sessions/session.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#define MAX_USERS  400u
#define USER_BYTES 1300u /* about what one takes in the reply */

struct tally { /* of a user's jobs */
    uint64_t n_queued, n_running, n_settling, n_paused, n_slots, n_carries, carry_bytes;
};

struct listing {
    struct broker *broker;
    msgpack_packer *packer; /* the broker's scratch */
    uid_t reader;
    bool sees_all, is_readers_turn;
    unsigned n, n_left_out;
};

static bool count_job(void *userdata, const struct job *job)
{
    struct tally *tally = userdata;
    const struct extent *carries = job->item.carries;
    tally->n_queued += job->state == JOB_QUEUED;
    tally->n_running += job->state == JOB_RUNNING;
    tally->n_settling += job->state == JOB_SETTLING;
    tally->n_paused += pause_is_on(job);
    if (job->state == JOB_RUNNING)
        tally->n_slots += job->n_slots;
    tally->n_carries += queue_has_carry(&job->item);
    for (unsigned i = 0; i < CARRY_N; i++)
        tally->carry_bytes += carries[i].size_bytes;
    return true;
}

static void pack_holdings(msgpack_packer *p, const struct account_state *state)
{
    pack_str(p, "holds");
    msgpack_pack_map(p, ACCOUNT_N_RESOURCES);
    for (unsigned i = 0; i < ACCOUNT_N_RESOURCES; i++) {
        pack_str(p, account_resource_key((enum account_resource)i));
        msgpack_pack_map(p, 3);
        pack_key_u64(p, "use", state->use[i]);
        pack_key_u64(p, "limit", state->limit[i]);
        pack_key_u64(p, "share", state->share[i]);
    }
}

static void pack_user(const struct listing *l, const struct account_state *state)
{
    msgpack_packer *p = l->packer;
    bool tells_all = l->sees_all || state->uid == l->reader;
    struct tally tally = {0};
    jobs_for_each_live(l->broker->jobs, state->uid, count_job, &tally);
    msgpack_pack_map(p, tells_all ? 13 : 7);
    pack_key_u64(p, "uid", state->uid);
    pack_key_u64(p, "weight", state->weight);
    pack_key_u64(p, "sessions", state->use[ACCOUNT_SESSIONS]);
    pack_key_u64(p, "jobs_queued", tally.n_queued);
    pack_key_u64(p, "jobs_running", tally.n_running);
    pack_key_u64(p, "jobs_settling", tally.n_settling);
    pack_key_u64(p, "region_bytes", state->use[ACCOUNT_REGION_BYTES]);
    if (!tells_all)
        return;
    pack_key_bool(p, "weight_said", state->is_weight_said);
    pack_key_u64(p, "jobs_paused", tally.n_paused);
    pack_key_u64(p, "slots", tally.n_slots);
    pack_key_u64(p, "carries", tally.n_carries);
    pack_key_u64(p, "carry_bytes", tally.carry_bytes);
    pack_holdings(p, state);
}

static bool list_user(void *userdata, const struct account_state *state)
{
    struct listing *l = userdata;
    if ((state->uid == l->reader) != l->is_readers_turn)
        return true;
    if (l->n == MAX_USERS) {
        l->n_left_out++;
        return true;
    }
    pack_user(l, state);
    l->n++;
    return true;
}

uint64_t users_most_bytes(const struct broker *broker)
{
    return min_u64(accounts_n(broker->accounts), MAX_USERS) * USER_BYTES;
}

void users_reply(const struct info_asker *asker, const struct info_answer *answers)
{
    struct broker *broker = asker->broker;
    struct session *session = asker->session;
    struct message_writer *scratch = &broker->scratch;
    struct listing l = {.broker = broker,
                        .packer = &scratch->packer,
                        .reader = session->uid,
                        .sees_all = session_is_admins(session),
                        .is_readers_turn = true};
    (void)answers; /* what they told of jobs is at the jobs */
    accounts_forget(broker->accounts, loop_now_ns());
    message_writer_clear(scratch);
    accounts_for_each(broker->accounts, list_user, &l);
    l.is_readers_turn = false;
    accounts_for_each(broker->accounts, list_user, &l);
    if (scratch->has_failed) /* without memory */
        l.n = 0;
    message_begin_result(&broker->writer, asker->id);
    msgpack_packer *p = &broker->writer.packer;
    msgpack_pack_map(p, 3);
    pack_key_bool(p, "admin", l.sees_all);
    pack_str(p, "users");
    msgpack_pack_array(p, l.n);
    pack_raw(p, scratch->buffer.data, scratch->buffer.size);
    pack_key_u64(p, "left_out", l.n_left_out);
    message_writer_clear(scratch); /* a long list's memory goes back at once */
    session_send(session);
}
