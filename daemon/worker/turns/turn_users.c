/* The users of the scheduler: who has jobs, how much each counts, and who has paused all of them.
 *
 * A user is there as long as he has a job. One whose jobs are all paused is away (turns.h): tiles
 * that had begun may still be charged to him, but nobody is compared with him meanwhile, and nobody
 * leaves room for him.
 *
 * Called by scheduler.c, pick.c and aside.c, and (pausing, weights) by the main thread.
 */
#include "daemon/worker/turns/scheduler_internal.h"

unsigned sched_user_index(const struct sched *s, uint32_t user)
{
    unsigned i = 0;
    while (i < s->n_users && s->users[i].user != user)
        i++;
    return i;
}

bool sched_has_others(const struct sched *s, uint32_t user)
{
    for (unsigned i = 0; i < s->n_users; i++)
        if (s->users[i].user != user && !s->users[i].is_away)
            return true;
    return false;
}

/* After the numbers of its jobs have changed. */
static void note_away(struct sched *s, unsigned i)
{
    struct turn_user *user = &s->users[i];
    bool is_away = s->user_loads[i].n_paused == s->user_loads[i].n_jobs;
    if (is_away && !user->is_away)
        turns_go_away(user, s->users, s->n_users);
    else if (!is_away && user->is_away)
        turns_come_back(user, s->users, s->n_users);
}

void sched_enter_user(struct sched *s, uint32_t user, bool is_paused)
{
    unsigned i = sched_user_index(s, user);
    if (i == s->n_users) {
        s->users[i] = (struct turn_user){.user = user};
        s->user_loads[i] = (struct sched_user_load){0};
        turns_enter(&s->users[i], s->users, s->n_users);
        s->n_users++;
    }
    s->user_loads[i].n_jobs++;
    s->user_loads[i].n_paused += is_paused;
    note_away(s, i);
}

void sched_leave_user(struct sched *s, uint32_t user, bool is_paused)
{
    unsigned i = sched_user_index(s, user);
    s->user_loads[i].n_paused -= is_paused;
    if (--s->user_loads[i].n_jobs > 0) {
        note_away(s, i);
        return;
    }
    s->n_users--;
    s->users[i] = s->users[s->n_users];
    s->user_loads[i] = s->user_loads[s->n_users];
}

struct wjob *sched_find_job(const struct sched *s, uint64_t job_id)
{
    for (unsigned i = 0; i < s->n_jobs; i++)
        if (s->jobs[i]->identity.id == job_id)
            return s->jobs[i];
    return NULL;
}

void sched_charge(struct sched *s, const struct wjob *job, uint64_t elapsed_ns)
{
    struct turn_user *user = &s->users[sched_user_index(s, job->identity.user)];
    turns_charge(user, job->identity.weight, (double)elapsed_ns * 1e-9);
    turns_charge_kind(user, job->kind, (double)elapsed_ns * 1e-9);
}

void sched_pause(struct sched *s, uint64_t job_id, bool is_paused)
{
    pthread_mutex_lock(&s->lock);
    struct wjob *job = sched_find_job(s, job_id);
    if (job && job->identity.is_paused != is_paused) {
        unsigned i = sched_user_index(s, job->identity.user);
        job->identity.is_paused = is_paused;
        s->user_loads[i].n_paused += is_paused ? 1 : -1u;
        note_away(s, i);
        sched_notice_presence(s);
    }
    pthread_mutex_unlock(&s->lock);
}

void sched_set_weight(struct sched *s, uint32_t user, uint32_t weight)
{
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->n_jobs; i++)
        if (s->turns[i].user == user)
            s->turns[i].weight = s->jobs[i]->identity.weight = weight;
    pthread_mutex_unlock(&s->lock);
}
