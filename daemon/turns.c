/* Who gets the next turn. Pure functions over arrays that the worker keeps; called by its threads
 * under the scheduler's lock each time one of them is free, so they must be quick: one pass over
 * the jobs to find the user, one to find that user's job.
 *
 * Fairness is start-time fair queueing over users: each turn adds its seconds, divided by the
 * user's weight, to the user's virtual time, and the ready user with the least one is next. How
 * many jobs a user has makes no difference. Inside a user priority counts first. Among equals it is
 * the same fair queueing once more, over kinds of jobs by their size, the smaller ones with the
 * larger parts; and inside a kind the order that the caller gives them.
 *
 * Time in which a user was not there is never credited, nor time in which a kind had nothing to do:
 * see turns_enter() and turns_level_kinds(). A user whose jobs are all paused is away: its time
 * stands still, and would be a measure for nobody. What tiles that had begun before still take is
 * added to what it is ahead when it comes back, or pausing in time would make them free.
 */
#include "daemon/turns.h"

#include <assert.h>
#include <stddef.h>

/* Every job's user is among the users. */
static const struct turn_user *find(uint32_t user, const struct turn_user *users, unsigned n_users)
{
    unsigned i = 0;
    while (i < n_users && users[i].user != user)
        i++;
    assert(i < n_users);
    return &users[i];
}

/* The ready job's index that stands for the user who is next; -1: nobody. */
static int find_user(const struct turn_job *jobs, unsigned n_jobs, const struct turn_user *users,
                     unsigned n_users)
{
    int best = -1;
    double best_time = 0;
    uint32_t last_user = 0;

    for (unsigned i = 0; i < n_jobs; i++) {
        if (!jobs[i].is_ready || (best >= 0 && jobs[i].user == last_user))
            continue; /* neighbours are often of one user */
        last_user = jobs[i].user;
        double time = find(jobs[i].user, users, n_users)->virtual_time;
        if (best < 0 || time < best_time || (time == best_time && jobs[i].user < jobs[best].user)) {
            best = (int)i;
            best_time = time;
        }
    }
    return best;
}

static bool goes_before(const struct turn_job *a, const struct turn_job *b,
                        const double *kind_times)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->kind == b->kind)
        return a->order < b->order;
    double time_a = kind_times[a->kind], time_b = kind_times[b->kind];
    return time_a < time_b || (!(time_a > time_b) && a->kind < b->kind);
}

int turns_next(const struct turn_job *jobs, unsigned n_jobs, const struct turn_user *users,
               unsigned n_users)
{
    int best = find_user(jobs, n_jobs, users, n_users);

    if (best < 0)
        return -1;
    const double *kind_times = find(jobs[best].user, users, n_users)->kind_times;
    for (unsigned i = (unsigned)best + 1; i < n_jobs; i++)
        if (jobs[i].is_ready && jobs[i].user == jobs[best].user &&
            goes_before(&jobs[i], &jobs[best], kind_times))
            best = (int)i;
    return best;
}

void turns_charge(struct turn_user *user, uint32_t weight, double seconds)
{
    assert(weight >= 1);
    double *time = user->is_away ? &user->ahead : &user->virtual_time;
    if (seconds > 0)
        *time += seconds / weight;
}

void turns_charge_kind(struct turn_user *user, unsigned kind, double seconds)
{
    assert(kind < TURN_N_KINDS);
    for (unsigned i = 0; i < kind; i++)
        seconds *= TURN_KIND_SHARE;
    if (seconds > 0)
        user->kind_times[kind] += seconds;
}

void turns_level_kinds(struct turn_user *user, const struct turn_job *jobs, unsigned n_jobs,
                       const struct turn_job *next)
{
    bool is_ready[TURN_N_KINDS] = {false};
    double level = user->kind_times[next->kind];
    for (unsigned i = 0; i < n_jobs; i++)
        if (jobs[i].is_ready && jobs[i].user == user->user && jobs[i].priority == next->priority)
            is_ready[jobs[i].kind] = true;
    for (unsigned kind = 0; kind < TURN_N_KINDS; kind++)
        if (!is_ready[kind] && user->kind_times[kind] < level)
            user->kind_times[kind] = level;
}

/* Of the others, those who are away left out; NULL: there is nobody. */
static const struct turn_user *least_other(const struct turn_user *user,
                                           const struct turn_user *active, unsigned n_active)
{
    const struct turn_user *least = NULL;
    for (unsigned i = 0; i < n_active; i++)
        if (active[i].user != user->user && !active[i].is_away &&
            (!least || active[i].virtual_time < least->virtual_time))
            least = &active[i];
    return least;
}

void turns_enter(struct turn_user *user, const struct turn_user *active, unsigned n_active)
{
    const struct turn_user *least = least_other(user, active, n_active);
    user->virtual_time = least ? least->virtual_time : 0;
}

void turns_go_away(struct turn_user *user, const struct turn_user *active, unsigned n_active)
{
    const struct turn_user *least = least_other(user, active, n_active);
    double ahead = least ? user->virtual_time - least->virtual_time : 0;
    user->ahead = ahead > 0 ? ahead : 0;
    user->is_away = true;
}

void turns_come_back(struct turn_user *user, const struct turn_user *active, unsigned n_active)
{
    turns_enter(user, active, n_active);
    user->virtual_time += user->ahead;
    user->is_away = false;
}
