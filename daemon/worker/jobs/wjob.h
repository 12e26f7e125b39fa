/* A job in the worker: what it computes, with which arrays, and how far it is.
 *
 * The main thread makes and frees it. While it is with the scheduler everything below "walk" is
 * written under the scheduler's lock; what lies above does not change. Tiles refer to their job,
 * and it lives as long as it has tiles.
 */
#pragma once

#include "daemon/traffic.h"
#include "daemon/worker/io/gaps.h"
#include "daemon/worker/turns/slots.h"
#include "daemon/worker/walks/walk.h"
#include "proto/wire/frame.h"
#include "proto/wire/message.h"

enum wjob_state {
    WJOB_NEW,
    WJOB_OPENING,  /* an I/O thread reads its journal */
    WJOB_CLAIMING, /* its carry is claimed, lent slots in it have to return */
    WJOB_RUNNING,
    WJOB_PARKED, /* its client is silent and its carry is others': it ends when the client is back
                  */
    WJOB_ENDING, /* complete, failed or cancelled: no turn begins, some may not be over */
    WJOB_ENDED,
};

struct wjob_identity { /* as the broker says */
    uint64_t id;
    uint32_t message_id; /* of the request to be answered */
    uint32_t user, weight;
    int priority;
    bool is_paused; /* begins no tile; those that it has begun go on to their end */
    uint64_t carry_offset_bytes, carry_size_bytes;               /* of the pool */
    uint64_t device_carry_offset_bytes, device_carry_size_bytes; /* of the device's own memory */
};

/* What was done, added up over tiles. */
struct measure {
    uint64_t read_bytes[TRAFFIC_N_PATHS], write_bytes[TRAFFIC_N_PATHS];
    uint64_t source_ns, to_device_ns, kernel_ns, from_device_ns, sink_ns;
    struct engine_warnings warnings;
    uint64_t operand_bytes[2]; /* of the read_bytes: a product's left and right operand */
};

struct tile;
struct thread_context;

struct wjob {
    struct wjob_identity identity;
    uint64_t serial; /* unique in this worker; names the job in epoll's data */
    unsigned kind;   /* of turns: by its size */
    struct frame frame;
    struct job_request *request;
    struct program *program; /* shared: not to be changed */
    struct port *ports;      /* the program's inputs, then its outputs */
    unsigned n_ports;
    struct guard_range *ranges; /* client memory that tiles touch */
    unsigned n_ranges;
    char *inline_results;
    struct writing writings[REQUEST_MAX_OUTPUTS];
    struct gaps gaps; /* of files that the job has for itself */
    bool has_rings, is_express, is_in_place;
    bool fills_slots;   /* every tile needs a slot, see struct plan_engine */
    unsigned n_threads; /* of the engine */
    uint64_t begun_ns;
    pthread_mutex_t *lock; /* the scheduler's */

    /* walk */
    enum wjob_state state;
    struct walk walk;
    bool is_complete;
    char *carry;
    char *product_carry; /* of products: the carry, or where the device's is (engine.h) */

    /* turns */
    unsigned n_in_flight;   /* turns and reads that threads are at */
    unsigned n_with_device; /* tiles */
    unsigned n_tiles;       /* tiles that exist */
    unsigned n_slots;       /* of these, with a slot */
    uint64_t last_flight;   /* the engine's, under its lock: when a tile went to the device last */
    struct tile *waiting;   /* those that could go on: staged, computed, waiting for the client */
    struct thread_context *aside; /* threads whose turn was put aside, in order; not in flight */
    bool wants_signal;            /* some ring has asked and its client was not told yet */
    bool is_wished;               /* clients were asked to signal and none has */
    uint64_t told_ns;             /* when clients were told last */
    uint64_t turn_ns;             /* with rings: what a turn takes, lately */
    uint64_t heard_ns;            /* with rings: when a client answered or a turn ended last */
    uint64_t idle_since_ns;       /* with rings: no tile is in hand since; 0: some is */
    uint64_t still_since_ns;      /* nobody is at it since; 0: somebody is (turns/waits.c) */
    bool lacked_room;             /* since then a slot was looked for in vain */
    bool writes_slowly; /* some thread has lost its place while it writes to a disk of the job's */
    uint64_t wait_ns[TRAFFIC_N_WAITS];

    /* outcome */
    _Atomic bool is_stopped; /* read by tiles in between */
    int status;
    struct gad_error error;
    uint64_t n_all_tiles_done, client_ns, ended_ns;
    struct measure measure;
    uint64_t next_progress_ns;
    struct wjob *next; /* in a list of the scheduler's */

    struct plan plan; /* large: only what the job uses of it is ever written */
};

struct wjob_context {
    struct regions *regions;
    struct programs *programs;
    struct write_devices *devices;
    const struct plan_limits *limits;
    pthread_mutex_t *lock;
};

/* What a job.start says of the job, but for its message's id. bad-request. */
int wjob_read_identity(const msgpack_object *params, struct wjob_identity *identity,
                       struct gad_error *error) GAD_MUST_CHECK;
/* Takes the frame (also on failure) whose message is given. A status or -errno. */
int wjob_new(struct frame *frame_take, const struct message *message,
             const struct wjob_identity *identity, const struct wjob_context *context,
             struct wjob **ret_job, struct gad_error *error) GAD_MUST_CHECK;
/* Main thread; no tile is left. NULL. */
struct wjob *wjob_free(struct wjob *job);
/* Takes the rings out of the epoll set. */
void wjob_unwatch_rings(const struct wjob *job, int epoll_fd);
/* Whether outputs of both, or a journal, lie on the same disk. */
bool wjob_shares_disk(const struct wjob *job, const struct wjob *other);
/* The ith disk that the job has a file on: of its inputs, outputs, and (n_ports) of its journal.
 * False: that is on none. */
bool wjob_find_disk(const struct wjob *job, unsigned i, uint64_t *ret_device);
/* Whether inputs of both lie on the same disk. */
bool wjob_reads_same_disk(const struct wjob *job, const struct wjob *other);
/* Descriptors and rings; may take long. Rings are out of the epoll set by then. io: NULL, nobody
 * asks for the disks. */
void wjob_close(struct wjob *job, const struct port_io *io);
/* Whether the regions still have their memory; else the job fails. Main thread. */
void wjob_check_regions(struct wjob *job);

void wjob_set_state(struct wjob *job, enum wjob_state state);
/* The first failure stays. */
void wjob_fail(struct wjob *job, int status, const struct gad_error *error);

/* Whether the plan needs no more than the carries that the job was given: after each planning. */
int wjob_check_carries(const struct wjob *job, const struct plan_limits *limits,
                       struct gad_error *error) GAD_MUST_CHECK;

/* walks/walk.c ----------------------------------------------------------------------------- */

/* The first stage begins; the carries are there. Stages without tiles are over at once: the job may
 * be complete afterwards, or have failed. */
void wjob_begin(struct wjob *job, char *carry, char *product_carry);
/* As long as the current stage is over, goes to the next one, or to the next round's first. */
void wjob_advance(struct wjob *job);
/* Whether another tile of the stage may begin: walk.next says what it needs. */
bool wjob_has_next_tile(const struct wjob *job);
/* A tile is done, and its node combined if it has any. */
void wjob_tile_done(struct wjob *job, const struct tile *tile);
/* All that the tile reads of the carry is read before anything that begins from now on: others need
 * not wait until it is done. */
void wjob_tile_left(struct wjob *job, struct tile *tile);

/* blocks.c: the rings of the stage in hand ---------------------------------------------------- */

/* Whether every ring has what a grain needs: the tile's that is in hand, the next tile's first. */
bool wjob_has_blocks(const struct tile *tile);
bool wjob_has_next_blocks(const struct wjob *job);
/* Reads the clients' answers on all rings; fails the job. True: there was news. */
bool wjob_collect(struct wjob *job);
/* The clients are to signal their next answers on these rings; then reads as above. */
bool wjob_collect_last(struct wjob *job);
/* Whether the job can do nothing but wait for clients that know what they were asked. */
bool wjob_awaits_clients(const struct wjob *job);
/* Whether one thread does what the clients of its rings provide in less time than it takes to wake
 * another. */
bool wjob_is_for_one(const struct wjob *job);
/* Whether clients are to be told now what was asked: they are told together what is asked within a
 * short time, unless nothing is left to be done meanwhile (is_idle). */
bool wjob_must_tell(const struct wjob *job, bool is_idle);
