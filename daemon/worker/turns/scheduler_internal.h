/* What scheduler.c, pick.c, and the threads in threads.c share. */
#pragma once

#include "daemon/turns.h"
#include "daemon/worker/io/disk.h"
#include "daemon/worker/engine.h"
#include "daemon/worker/turns/scheduler.h"

struct io_slot { /* what an I/O thread is at */
    bool is_busy, is_reading;
    const struct wjob *job;
    uint64_t device; /* of the file that it is at; 0: of none */
};

struct sched_user_load {
    unsigned n_jobs, n_paused;
    unsigned n_long;      /* long tiles for which a spare thread is kept */
    unsigned n_displaced; /* of these, tiles whose thread has lost its place in a call */
};

/* Tiles with the device: those with a slot, of which some have left the carry, and those without.
 */
enum device_kind { DEVICE_SLOTS, DEVICE_LEFT, DEVICE_PRODUCTS, N_DEVICE_KINDS };

struct sched {
    struct sched_config config;
    pthread_mutex_t lock;
    pthread_cond_t compute_wake, io_wake;
    bool is_stopping;
    struct slots *slots;

    /* Active jobs: jobs[i] and turns[i] belong together. */
    struct wjob **jobs;
    struct turn_job *turns;
    unsigned n_jobs, n_jobs_room;
    /* Users that have active jobs: users[i] and user_loads[i] belong together. */
    struct turn_user *users;
    struct sched_user_load *user_loads;
    unsigned n_users, n_users_room;

    unsigned n_idle, n_busy;    /* compute threads */
    unsigned n_threads_compute; /* that have a place: as the engine's limits say */
    /* aside.c: compute threads beside them; those without a turn, and how many of these are kept
     * for long tiles, without those that are aside. */
    struct thread_context *bench;
    unsigned n_spares, n_bench, n_kept;
    unsigned n_reserved;  /* of the spare ones: not for long tiles */
    unsigned n_displaced; /* threads that are in a call that lasts, and another has their place */
    unsigned n_with_device[N_DEVICE_KINDS];
    unsigned n_rings;                      /* of all jobs that were not closed yet */
    struct tile *reads, **reads_end;       /* for I/O threads, in order */
    struct wjob *openings;                 /* whose journals are to be read */
    struct wjob *closings, **closings_end; /* ended, with descriptors to be closed */
    struct wjob *ended;
    bool is_wake_written;

    pthread_t watch; /* watch.c */
    pthread_cond_t watch_wake;
    bool has_watch, watches_calls; /* the last: it looks often, under the lock */
    _Atomic bool is_watch_asleep;

    struct io_slot io[SCHED_N_IO];
    struct disk_meter disk;
    struct thread_context **threads; /* compute, spare ones, then I/O */
    unsigned n_threads;              /* all of them, as far as they were started */
};

struct turn { /* of a compute thread */
    struct wjob *job;
    struct tile *tile; /* NULL: tell the job's clients what was asked */
    struct thread_context
        *aside; /* instead: the thread that is to go on; in any turn but this NULL */
};

struct io_work { /* of an I/O thread: one of the three */
    struct tile *read;
    struct wjob *opening, *closing;
};

/* All under the lock. pick: false when there is nothing to do now. */
bool sched_pick(struct sched *s, struct turn *ret_turn);
/* After a pick that found nothing: clients are asked to signal. True: there is news already, do not
 * wait. */
bool sched_wish_signals(struct sched *s);
/* Whether there is work for one thread more. */
bool sched_wants_another(struct sched *s);
void sched_turn_over(struct sched *s, const struct turn *turn, struct thread_context *th,
                     enum tile_outcome outcome, uint64_t elapsed_ns);
/* The index of the job that is next; -1: none. */
int sched_next_job(struct sched *s);

/* turn_users.c. Whose time it was; a job more or less of the user's, for whom there is room. */
void sched_charge(struct sched *s, const struct wjob *job, uint64_t elapsed_ns);
void sched_enter_user(struct sched *s, uint32_t user, bool is_paused);
void sched_leave_user(struct sched *s, uint32_t user, bool is_paused);
unsigned sched_user_index(const struct sched *s, uint32_t user);
bool sched_has_others(const struct sched *s, uint32_t user);         /* who are not away */
struct wjob *sched_find_job(const struct sched *s, uint64_t job_id); /* NULL: there is none */

/* waits.c. Nobody is at the job any more, unless somebody is; somebody is again; what it waited for
 * until now was this. */
void sched_wait_begins(struct wjob *job);
void sched_wait_ends(struct wjob *job);
void sched_wait_was_for(struct wjob *job, enum traffic_wait reason);
/* Whether a tile with these ports could have a slot, if it needs one. */
bool sched_has_room(const struct sched *s, const struct wjob *job, const struct pass_ports *ports);

/* aside.c. A thread without a place waits for one, or for the end. */
void sched_sit_on_bench(struct sched *s, struct thread_context *th);
/* A turn that was put aside goes on; without a place only as far as its end. */
void sched_resume(struct sched *s, struct thread_context *th, bool with_place);
/* Whether a long tile of the user may begin, or go on without a spare thread that is kept for it;
 * then one is, if it is long; until it is given back, which may be twice. */
bool sched_may_begin_long(const struct sched *s, uint32_t user);
/* The same for one that is written to a slow disk. */
bool sched_may_begin_write(const struct sched *s, uint32_t user);
void sched_keep_spare(struct sched *s, struct tile *tile);
void sched_give_spare_back(struct sched *s, struct tile *tile);
/* Calls that last. The thread is in one: a spare thread gets its place, if there is one for that.
 * It has come back, without a place: what is to be charged, its turn up to where it lost that. */
void sched_displace(struct sched *s, struct thread_context *th);
uint64_t sched_come_back(struct sched *s, struct thread_context *th);
/* Whether so many threads are in calls that last that no more tiles with such may begin. */
bool sched_calls_are_enough(const struct sched *s);
/* A user came, went, or was paused: the others' shares are different. */
void sched_notice_presence(struct sched *s);
void sched_note_slow_disks(struct sched *s); /* jobs or displaced threads have come or gone */

bool sched_pick_io(struct sched *s, unsigned io_index, struct io_work *ret_work);
/* Whether tiles that wait for disks, as one of the job's may, hold as many of the n_slots as they
 * may. */
bool sched_reads_are_enough(const struct sched *s, const struct wjob *job, unsigned n_slots);
void sched_read_over(struct sched *s, struct tile *tile, int status, const struct gad_error *error);
void sched_closed(struct sched *s, struct wjob *job);
void sched_opened(struct sched *s, struct wjob *job, int status, const struct gad_error *error);
/* Something of the job has changed: go on to its next pass, or end it. */
void sched_job_changed(struct sched *s, struct wjob *job);

/* watch.c. -errno. */
int sched_start_watch(struct sched *s) GAD_MUST_CHECK;
/* A job or a turn more: if there are others whom a call could hold up, it looks at calls from now
 * on. Under the lock. */
void sched_watch_calls(struct sched *s);
