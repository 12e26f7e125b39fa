/* The scheduler: which thread does what next. Jobs come from the main thread, turns go to compute
 * threads, reads and the closing of descriptors to I/O threads, ended jobs back to the main thread.
 */
#pragma once

#include "daemon/worker/turns/slots.h"
#include "daemon/worker/jobs/wjob.h"

#define SCHED_N_IO        16u /* I/O threads */
#define SCHED_IO_PER_DISK 4u  /* of them, at most this many at files on one disk */
#define SCHED_IO_PER_USER 2u  /* and this many at one user's there */
#define SCHED_TICK_MS     100u

/* So many of a user's tiles may wait for one disk, each with its slot, while others are there too,
 * and twice as many for all disks. */
#define SCHED_READS_PER_USER (2 * SCHED_IO_PER_USER)

/* Compute threads beside those that compute, for turns that are put aside (aside.c). */
#define SCHED_LEAST_SPARES  16u
#define SCHED_MOST_SPARES   128u
#define SCHED_MOST_RESERVED 32u
/* Of them, for calls that turn out to last: one for each thread that computes may be in one. */
static inline unsigned sched_n_reserved(unsigned n_compute)
{
    return n_compute > SCHED_MOST_RESERVED ? SCHED_MOST_RESERVED : n_compute;
}
static inline unsigned sched_n_spares(unsigned n_compute)
{
    unsigned n = 4 * n_compute;
    n = n < SCHED_LEAST_SPARES ? SCHED_LEAST_SPARES : n;
    n = n > SCHED_MOST_SPARES ? SCHED_MOST_SPARES : n;
    return n + sched_n_reserved(n_compute);
}

struct engine;
struct sched;

struct sched_config {
    struct engine *engine;       /* not owned */
    struct thread_context *main; /* the main thread's, for the watch; NULL: none */
    struct crashpage *page;      /* NULL: none. Main is thread 0, then compute, spare, I/O */
    int wake_fd;                 /* eventfd, written when jobs have ended */
    int epoll_fd;                /* rings' done_fd are taken out of it before they are closed */
};

/* Starts the threads. -errno. */
int sched_new(const struct sched_config *config, struct sched **ret_sched) GAD_MUST_CHECK;
/* Stops them at the next boundary and frees the jobs that are left. NULL. */
struct sched *sched_free(struct sched *s);

pthread_mutex_t *sched_lock(struct sched *s); /* for the jobs */

/* Takes the job, unless it fails: bad-request, -ENOMEM. */
int sched_add(struct sched *s, struct wjob *job, struct gad_error *error) GAD_MUST_CHECK;
void sched_cancel(struct sched *s, uint64_t job_id);
/* The job begins no tile until it is no longer paused. */
void sched_pause(struct sched *s, uint64_t job_id, bool is_paused);
/* The user's jobs count so much from now on. */
void sched_set_weight(struct sched *s, uint32_t user, uint32_t weight);
/* If clients that the job waits for have said nothing for limit_ns: it fails, or (again) parks:
 * gives up its carry, and ends as soon as one of them answers. True: it is parked; how long it was.
 */
bool sched_yield_carry(struct sched *s, uint64_t job_id, uint64_t limit_ns, bool again,
                       uint64_t *ret_silent_ns);
/* The engine's: the device has ended with the tile; error: 0 or the engine's. Maybe before the turn
 * that began it is over. */
void sched_device_done(struct sched *s, struct tile *tile, int error);
/* The engine's: what the tile reads of the carry has been read when the device comes to what it is
 * given from now on. Others of the job need not wait for the tile, and it takes no place from those
 * that may be with the device. */
void sched_device_left(struct sched *s, struct tile *tile);
/* Asked by a turn in the middle of its arithmetic, often; no lock held. May wait, while others go
 * first. False: the job was stopped. */
bool sched_may_go_on(struct tile *tile, struct thread_context *th);
/* The same between calls that may block, for a turn that is not to be put aside: it waits if it has
 * lost its place in one. */
bool sched_may_call_on(struct tile *tile, struct thread_context *th);
/* A client has answered on a ring of the job. */
void sched_ring_event(struct sched *s, uint64_t serial);
/* Main thread, when it has taken a job in hand in the crash page: the watch looks at it (watch.c).
 */
void sched_wake_watch(struct sched *s);
/* The jobs that have ended since, as a list; the caller's. */
struct wjob *sched_take_ended(struct sched *s);

/* Calls report(job, argument) for every job whose progress is due, under the lock. Returns when to
 * come again, in ms, -1: never. Also frees threads that hang in a client's eventfd. */
int sched_tick(struct sched *s, void (*report)(struct wjob *job, void *argument), void *argument);

/* Calls report(job, argument) for every job that has not ended, under the lock. */
void sched_each(struct sched *s, void (*report)(struct wjob *job, void *argument), void *argument);

/* What a job is at, or waits for. Its waits are counted up to now. Under the lock. */
enum wjob_stage {
    WSTAGE_OPENING, /* its journal is read */
    WSTAGE_WORKING, /* a thread is at it */
    WSTAGE_DEVICE,
    WSTAGE_INPUT,
    WSTAGE_ROOM,
    WSTAGE_TURN,
    WSTAGE_PAUSED,
    WSTAGE_ENDING,
};
enum wjob_stage sched_settle_wait(const struct sched *s, struct wjob *job);
const char *wjob_stage_name(enum wjob_stage stage);

struct sched_stats {
    struct slots_use slots;
    unsigned n_jobs, n_busy, n_rings;
    double disk_rate; /* of files, in bytes a second; 0: not known */
};
struct sched_stats sched_stats(struct sched *s);
