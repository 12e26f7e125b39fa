/* Turns at the stretches of a file.
 *
 *     file     |  stretch 0   |  stretch 1   |  stretch 2   | ...
 *     held                |----------|
 *
 * A stretch's lock is that of its number modulo GAPS_N_LOCKS. Two locks are taken in the order of
 * their numbers, so nobody waits in a circle. Called by boxio.c and by wjob.c, whose job has them.
 */
#include "daemon/worker/io/gaps.h"
#include "proto/util.h"

#include <assert.h>

void gaps_init(struct gaps *gaps)
{
    for (int i = 0; i < GAPS_N_LOCKS; i++)
        pthread_mutex_init(&gaps->locks[i], NULL);
}

void gaps_deinit(struct gaps *gaps)
{
    for (int i = 0; i < GAPS_N_LOCKS; i++)
        pthread_mutex_destroy(&gaps->locks[i]);
}

struct gaps_hold gaps_hold(struct gaps *gaps, int64_t offset, int64_t n_bytes)
{
    assert(offset >= 0 && n_bytes > 0 && n_bytes <= GAPS_STRETCH_BYTES);
    uint64_t first = (uint64_t)offset / GAPS_STRETCH_BYTES % GAPS_N_LOCKS;
    uint64_t last = (uint64_t)(offset + n_bytes - 1) / GAPS_STRETCH_BYTES % GAPS_N_LOCKS;
    struct gaps_hold hold = {.lower = &gaps->locks[min_u64(first, last)]};
    pthread_mutex_lock(hold.lower);
    if (first != last) {
        hold.upper = &gaps->locks[max_u64(first, last)];
        pthread_mutex_lock(hold.upper);
    }
    return hold;
}

void gaps_release(struct gaps_hold hold)
{
    if (hold.upper)
        pthread_mutex_unlock(hold.upper);
    pthread_mutex_unlock(hold.lower);
}
