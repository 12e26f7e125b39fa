/* The closer: a ring of descriptors and one thread that closes them.
 *
 * What clients hand over can be anything, also a file on a server that does not answer, and the
 * last close of a large unlinked file frees its blocks before it returns. Neither may hold up the
 * loop. A descriptor's number is open until its close() began, so it can wait here only once and a
 * ring as long as RLIMIT_NOFILE never overflows.
 *
 *     loop's thread: closer_close() --> ring --> closer's thread: close()
 *
 * The lock is held for a few instructions on either side, never during close().
 */
#include "daemon/broker/host/closer.h"
#include "proto/util.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#define STACK_BYTES (64u * 1024u)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, ended;
    pthread_t thread;
    int *ring;
    unsigned capacity, first, n;
    bool is_running, is_stopping, has_ended;
} closer = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .ended = PTHREAD_COND_INITIALIZER,
            .wake = PTHREAD_COND_INITIALIZER};

static void *closer_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&closer.lock);
    for (;;) {
        while (closer.n == 0 && !closer.is_stopping)
            pthread_cond_wait(&closer.wake, &closer.lock);
        if (closer.n == 0)
            break;
        int fd = closer.ring[closer.first];
        closer.first = (closer.first + 1) % closer.capacity;
        closer.n--;
        pthread_mutex_unlock(&closer.lock);
        close(fd);
        pthread_mutex_lock(&closer.lock);
    }
    closer.has_ended = true;
    pthread_cond_signal(&closer.ended);
    pthread_mutex_unlock(&closer.lock);
    return NULL;
}

static int start_thread(void)
{
    pthread_attr_t attr;
    sigset_t all, before;

    int r = pthread_attr_init(&attr);
    if (r)
        return -r;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&closer.thread, &attr, closer_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return -r;
}

int closer_start(unsigned max_fds)
{
    closer.ring = calloc(max_fds, sizeof(*closer.ring));
    if (!closer.ring)
        return -ENOMEM;
    closer.capacity = max_fds;
    closer.first = closer.n = 0;
    closer.is_stopping = closer.has_ended = false;
    int r = start_thread();
    if (r < 0) {
        free(steal_ptr(closer.ring));
        return r;
    }
    closer.is_running = true;
    return 0;
}

void closer_close(int fd_take)
{
    if (fd_take < 0)
        return;
    bool is_queued = false;
    if (closer.is_running) {
        pthread_mutex_lock(&closer.lock);
        if (closer.n < closer.capacity) {
            closer.ring[(closer.first + closer.n) % closer.capacity] = fd_take;
            closer.n++;
            is_queued = true;
            if (closer.n == 1)
                pthread_cond_signal(&closer.wake);
        }
        pthread_mutex_unlock(&closer.lock);
    }
    if (!is_queued)
        close(fd_take);
}

unsigned closer_n_pending(void)
{
    pthread_mutex_lock(&closer.lock);
    unsigned n = closer.n;
    pthread_mutex_unlock(&closer.lock);
    return n;
}

void closer_stop(unsigned timeout_ms)
{
    if (!closer.is_running)
        return;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&closer.lock);
    closer.is_stopping = true;
    pthread_cond_signal(&closer.wake);
    int r = 0;
    while (!closer.has_ended && r == 0)
        r = pthread_cond_timedwait(&closer.ended, &closer.lock, &until);
    bool has_ended = closer.has_ended;
    pthread_mutex_unlock(&closer.lock);
    closer.is_running = false;
    if (has_ended) {
        pthread_join(closer.thread, NULL);
        free(steal_ptr(closer.ring));
    } else {
        pthread_detach(closer.thread); /* it keeps the ring */
    }
}
