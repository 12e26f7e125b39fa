/* The closer: rings of descriptors, each with a thread that closes them.
 *
 * What clients hand over can be anything, also a file on a server that does not answer, and the
 * last close of a large unlinked file frees its blocks before it returns. Neither may hold up the
 * loop, and nobody's hanging file what is everybody else's: memory would stay that others have let
 * go. So what may hang has lanes of its own, one for each user who has any there; with more such
 * users than lanes some share one.
 *
 *     loop's thread: closer_close() --> lane 0                   --> its thread: close()
 *                                   --> lane 1 ... of who may hang --> its own
 *
 * A descriptor's number is open until its close() began, so it can wait here only once and a ring
 * as long as RLIMIT_NOFILE never overflows. Lanes have ring and thread from their first use on.
 * The lock is held for a few instructions on either side, never during close().
 */
#include "daemon/broker/host/closer.h"
#include "proto/util.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#define STACK_BYTES (64u * 1024u)
#define N_LANES     9u
#define USER_PART   16u /* of all descriptors that there may be */

struct lane {
    pthread_cond_t wake;
    pthread_t thread;
    int *ring;
    unsigned first, n; /* that wait */
    uid_t owner;       /* of those that do, or of the last one */
    bool is_closing, has_ended;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct lane lanes[N_LANES];
    unsigned capacity;
    bool is_running, is_stopping;
    uid_t owner;
    closer_may_hang *may_hang;
    void *userdata;
} closer = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static void *lane_main(void *userdata)
{
    struct lane *lane = userdata;
    pthread_mutex_lock(&closer.lock);
    for (;;) {
        while (lane->n == 0 && !closer.is_stopping)
            pthread_cond_wait(&lane->wake, &closer.lock);
        if (lane->n == 0)
            break;
        int fd = lane->ring[lane->first];
        lane->first = (lane->first + 1) % closer.capacity;
        lane->n--;
        lane->is_closing = true;
        pthread_mutex_unlock(&closer.lock);
        close(fd);
        pthread_mutex_lock(&closer.lock);
        lane->is_closing = false;
    }
    lane->has_ended = true;
    pthread_cond_signal(&closer.ended);
    pthread_mutex_unlock(&closer.lock);
    return NULL;
}

static int start_thread(struct lane *lane)
{
    pthread_attr_t attr;
    sigset_t all, before;

    int r = pthread_attr_init(&attr);
    if (r)
        return -r;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&lane->thread, &attr, lane_main, lane);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return -r;
}

static int start_lane(struct lane *lane)
{
    if (lane->ring)
        return 0;
    *lane = (struct lane){.wake = PTHREAD_COND_INITIALIZER};
    lane->ring = calloc(closer.capacity, sizeof(*lane->ring));
    if (!lane->ring)
        return -ENOMEM;
    int r = start_thread(lane);
    if (r < 0)
        free(steal_ptr(lane->ring));
    return r;
}

int closer_start(unsigned max_fds)
{
    closer.capacity = max_fds;
    closer.is_stopping = false;
    int r = start_lane(&closer.lanes[0]);
    closer.is_running = r == 0;
    return r;
}

void closer_look(closer_may_hang *may_hang, void *userdata)
{
    closer.may_hang = may_hang;
    closer.userdata = userdata;
}

void closer_set_owner(uid_t uid)
{
    closer.owner = uid;
}

/* Of these users' lanes, with the lock: the user's, else one that nobody has, else a shared one. */
static struct lane *find_lane(uid_t uid, bool is_new)
{
    struct lane *empty = NULL;
    for (unsigned i = 1; i < N_LANES; i++) {
        struct lane *lane = &closer.lanes[i];
        bool is_empty = lane->n == 0 && !lane->is_closing;
        if (!is_empty && lane->owner == uid)
            return lane;
        if (is_empty && !empty)
            empty = lane;
    }
    return is_new && empty ? empty : &closer.lanes[1 + uid % (N_LANES - 1)];
}

/* False: it is still the caller's. */
static bool put(int fd, bool may_hang)
{
    struct lane *lane = may_hang ? find_lane(closer.owner, true) : &closer.lanes[0];
    if (start_lane(lane) < 0)
        lane = &closer.lanes[0];
    if (lane->n == closer.capacity)
        return false;
    lane->ring[(lane->first + lane->n) % closer.capacity] = fd;
    if (lane->n++ == 0) {
        if (!lane->is_closing)
            lane->owner = closer.owner;
        pthread_cond_signal(&lane->wake);
    }
    return true;
}

void closer_close(int fd_take)
{
    if (fd_take < 0)
        return;
    bool is_queued = false;
    if (closer.is_running) {
        bool may_hang = closer.may_hang && closer.may_hang(closer.userdata, fd_take);
        pthread_mutex_lock(&closer.lock);
        is_queued = put(fd_take, may_hang);
        pthread_mutex_unlock(&closer.lock);
    }
    if (!is_queued)
        close(fd_take);
}

unsigned closer_n_pending(void)
{
    unsigned n = 0;
    pthread_mutex_lock(&closer.lock);
    for (unsigned i = 0; i < N_LANES; i++)
        n += closer.lanes[i].n;
    pthread_mutex_unlock(&closer.lock);
    return n;
}

bool closer_is_full(uid_t uid)
{
    pthread_mutex_lock(&closer.lock);
    const struct lane *lane = find_lane(uid, false);
    bool is_full = lane->owner == uid && lane->n > closer.capacity / USER_PART;
    pthread_mutex_unlock(&closer.lock);
    return is_full;
}

static struct timespec time_after(unsigned timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return until;
}

void closer_stop(unsigned timeout_ms)
{
    if (!closer.is_running)
        return;
    struct timespec until = time_after(timeout_ms);
    closer.is_running = false;
    closer.may_hang = NULL;
    pthread_mutex_lock(&closer.lock);
    closer.is_stopping = true;
    for (unsigned i = 0; i < N_LANES; i++)
        if (closer.lanes[i].ring)
            pthread_cond_signal(&closer.lanes[i].wake);
    for (unsigned i = 0; i < N_LANES; i++) {
        struct lane *lane = &closer.lanes[i];
        int r = 0;
        while (lane->ring && !lane->has_ended && r == 0)
            r = pthread_cond_timedwait(&closer.ended, &closer.lock, &until);
        if (lane->ring && !lane->has_ended)
            pthread_detach(lane->thread); /* it keeps the ring */
    }
    pthread_mutex_unlock(&closer.lock);
    for (unsigned i = 0; i < N_LANES; i++)
        if (closer.lanes[i].has_ended && closer.lanes[i].ring) {
            pthread_join(closer.lanes[i].thread, NULL);
            free(steal_ptr(closer.lanes[i].ring));
        }
}
