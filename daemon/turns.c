/* Who gets the next turn. Pure functions over arrays that the worker keeps; called by its threads
 * under the scheduler's lock each time one of them is free, so they must be quick: one pass over
 * the jobs to find the user, one to find that user's job.
 *
 * Fairness is start-time fair queueing over users: each turn adds its seconds, divided by the
 * user's weight, to the user's virtual time, and the ready user with the least one is next. How
 * many jobs a user has makes no difference. Inside a user only priority counts, and among equals
 * the order that the caller gives them.
 *
 * Time in which a user was not there is never credited: see turns_enter().
 */
#include "daemon/turns.h"

#include <assert.h>
#include <stddef.h>

static double virtual_time_of(uint32_t user, const struct turn_user *users, unsigned n_users)
{
    for (unsigned i = 0; i < n_users; i++) {
        if (users[i].user == user)
            return users[i].virtual_time;
    }
    assert(!"every job's user is among the users");
    return 0;
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
        double time = virtual_time_of(jobs[i].user, users, n_users);
        if (best < 0 || time < best_time || (time == best_time && jobs[i].user < jobs[best].user)) {
            best = (int)i;
            best_time = time;
        }
    }
    return best;
}

int turns_next(const struct turn_job *jobs, unsigned n_jobs, const struct turn_user *users,
               unsigned n_users)
{
    int best = find_user(jobs, n_jobs, users, n_users);

    if (best < 0)
        return -1;
    for (unsigned i = (unsigned)best + 1; i < n_jobs; i++) {
        const struct turn_job *job = &jobs[i], *chosen = &jobs[best];
        if (!job->is_ready || job->user != chosen->user)
            continue;
        if (job->priority > chosen->priority ||
            (job->priority == chosen->priority && job->order < chosen->order))
            best = (int)i;
    }
    return best;
}

void turns_charge(struct turn_user *user, uint32_t weight, double seconds)
{
    assert(weight >= 1);
    if (seconds > 0)
        user->virtual_time += seconds / weight;
}

void turns_enter(struct turn_user *user, const struct turn_user *active, unsigned n_active)
{
    const struct turn_user *least = NULL;

    for (unsigned i = 0; i < n_active; i++) {
        if (active[i].user != user->user &&
            (!least || active[i].virtual_time < least->virtual_time))
            least = &active[i];
    }
    user->virtual_time = least ? least->virtual_time : 0;
}
