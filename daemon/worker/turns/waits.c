/* What a job waits for, and for how long, by reason.
 *
 *     nobody is at it:  input   its clients or its disk have something to do first
 *                       room    no slot is free, or one lies where its carry is to be
 *                       turn    it could go on, and others do
 *
 * A wait begins when no thread and no device has anything of the job in hand any more, and ends
 * when some has. Which reason it was is known at its end: what clients answered meanwhile, whether
 * a slot was looked for in vain. Whoever asks in the middle of a wait has what passed so far
 * settled by what the job waits for at that moment.
 *
 * All under the scheduler's lock. Called by scheduler.c, pick.c, aside.c and reply.c.
 */
#include "daemon/worker/turns/scheduler_internal.h"
#include "proto/util.h"

static bool is_idle(const struct wjob *job)
{
    return job->n_in_flight == 0 && job->n_with_device == 0;
}

void sched_wait_begins(struct wjob *job)
{
    if (is_idle(job) && job->still_since_ns == 0)
        job->still_since_ns = clock_ns();
}

static void add(struct wjob *job, enum traffic_wait reason, uint64_t from_ns, uint64_t until_ns)
{
    if (until_ns > from_ns)
        job->wait_ns[reason] += until_ns - from_ns;
}

void sched_wait_ends(struct wjob *job)
{
    uint64_t since_ns = job->still_since_ns;
    if (since_ns == 0)
        return;
    uint64_t now_ns = clock_ns(), ready_ns = since_ns;
    if (job->has_rings)
        ready_ns = max_u64(since_ns, min_u64(job->heard_ns, now_ns));
    add(job, TRAFFIC_INPUT, since_ns, ready_ns);
    add(job, job->lacked_room ? TRAFFIC_ROOM : TRAFFIC_TURN, ready_ns, now_ns);
    job->still_since_ns = 0;
    job->lacked_room = false;
}

void sched_wait_was_for(struct wjob *job, enum traffic_wait reason)
{
    if (job->still_since_ns != 0)
        add(job, reason, job->still_since_ns, clock_ns());
    job->still_since_ns = 0;
    job->lacked_room = false;
}

/* Of one that runs, and that nobody is at. */
static enum wjob_stage stage_of_idle(const struct sched *s, const struct wjob *job)
{
    unsigned n_waiting = 0;
    bool could_go_on = job->aside != NULL;
    for (const struct tile *tile = job->waiting; tile; tile = tile->next, n_waiting++)
        could_go_on |= tile->state != TILE_WAITING_CLIENT;
    if (could_go_on)
        return WSTAGE_TURN;
    if (n_waiting < job->n_tiles || wjob_awaits_clients(job)) /* the others wait for the disk */
        return WSTAGE_INPUT;
    const struct pass_ports *ports = job->waiting              ? job->waiting->ports
                                     : wjob_has_next_tile(job) ? job->walk.next.ports
                                                               : NULL;
    return ports && !sched_has_room(s, job, ports) ? WSTAGE_ROOM : WSTAGE_TURN;
}

static enum wjob_stage sched_stage(const struct sched *s, const struct wjob *job)
{
    const struct wjob_identity *id = &job->identity;
    switch (job->state) {
    case WJOB_OPENING: return WSTAGE_OPENING;
    case WJOB_CLAIMING:
        return id->carry_size_bytes > 0 &&
                       !slots_claim_is_clear(s->slots, id->carry_offset_bytes, id->carry_size_bytes)
                   ? WSTAGE_ROOM
                   : WSTAGE_TURN;
    case WJOB_PARKED: return WSTAGE_INPUT;
    case WJOB_RUNNING: break;
    default: return WSTAGE_ENDING;
    }
    if (job->n_in_flight > 0)
        return WSTAGE_WORKING;
    if (job->n_with_device > 0)
        return WSTAGE_DEVICE;
    return id->is_paused ? WSTAGE_PAUSED : stage_of_idle(s, job);
}

enum wjob_stage sched_settle_wait(const struct sched *s, struct wjob *job)
{
    enum wjob_stage stage = sched_stage(s, job);
    if (job->still_since_ns == 0)
        return stage;
    bool lacked_room = job->lacked_room;
    sched_wait_was_for(job, stage == WSTAGE_INPUT  ? TRAFFIC_INPUT
                            : stage == WSTAGE_ROOM ? TRAFFIC_ROOM
                                                   : TRAFFIC_TURN);
    job->still_since_ns = clock_ns();
    job->lacked_room = lacked_room && stage == WSTAGE_ROOM;
    return stage;
}

const char *wjob_stage_name(enum wjob_stage stage)
{
    static const char *const names[] = {
        [WSTAGE_OPENING] = "opening", [WSTAGE_WORKING] = "working", [WSTAGE_DEVICE] = "device",
        [WSTAGE_INPUT] = "input",     [WSTAGE_ROOM] = "room",       [WSTAGE_TURN] = "turn",
        [WSTAGE_PAUSED] = "paused",   [WSTAGE_ENDING] = "ending"};
    return names[stage];
}
