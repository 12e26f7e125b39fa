/* Tiles: an aligned run of grains of one pass, worked through by whichever thread has it, grain by
 * grain: inputs into their place, arithmetic, outputs to theirs. */
#pragma once

#include "daemon/worker/wjob.h"

enum tile_state {
    TILE_IN_HAND,        /* a compute thread is at it */
    TILE_READING,        /* in the queue of the I/O threads, or one is at it */
    TILE_STAGED,         /* its grain's inputs were read, it keeps its slot */
    TILE_WAITING_CLIENT, /* some block is not there; holds no slot */
};

/* Why a thread puts a tile out of its hands. */
enum tile_outcome { TILE_DONE, TILE_NEEDS_READ, TILE_NEEDS_CLIENT, TILE_FAILED };

struct sched;

struct tile {
    struct wjob *job;
    struct tile *next;
    enum tile_state state;
    uint64_t index, grain, end;            /* of the pass; the grain in hand; behind the last */
    void *slot;                            /* NULL: none */
    bool has_begun, has_blocks, is_staged; /* the last two: of the grain in hand */
    uint8_t ring_slots[REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS]; /* inputs, outputs of the pass */
    struct measure measure;
    struct reduce_stack stack; /* last: touched only as deep as the tile is */
};

/* What a thread brings along; only the memory that is used is ever touched. */
struct thread_context {
    unsigned index; /* in the crash page */
    pthread_t thread;
    struct sched *sched; /* NULL: the main thread's */
    const struct cpu_engine *engine;
    struct crashpage_thread *page;
    struct port_io io;
    void *scratch;                        /* CPU_SCRATCH_BYTES */
    _Atomic uint64_t signalling_since_ns; /* in the write to a client's eventfd; 0: not */
    /* The grain in hand. */
    struct port_box input_boxes[REQUEST_MAX_ARGS], output_boxes[REQUEST_MAX_OUTPUTS];
    void *input_memory[REQUEST_MAX_ARGS], *output_memory[REQUEST_MAX_OUTPUTS];
    struct cpu_view inputs[REQUEST_MAX_ARGS], outputs[REQUEST_MAX_OUTPUTS];
    struct partial partials[PROGRAM_MAX_REDUCTIONS];
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    /* Why the tile failed. */
    int status;
    struct gad_error error;
};

/* page may be NULL. Takes the memory for the thread's life. */
int thread_context_new(unsigned index, const struct cpu_engine *engine,
                       struct crashpage_thread *page, bool is_compute,
                       struct thread_context **ret_context) GAD_MUST_CHECK;
struct thread_context *thread_context_free(struct thread_context *th);

void tile_init(struct tile *t, struct wjob *job, uint64_t index);

/* Works on the tile until it is done or cannot go on, without the lock. TILE_FAILED: th->status
 * and th->error, or nothing when the job was stopped (status 0). */
enum tile_outcome tile_run(struct tile *t, struct thread_context *th);
/* I/O threads: reads the inputs of the grain in hand, waiting for disks, and tells the system about
 * the grains behind it. 0 or a status in th->error. */
int tile_read(struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
/* The root of the tile's reductions; nothing without. */
void tile_result(struct tile *t, struct partial *ret_partials);
/* blocks.c: the blocks of the grain in hand, in all rings. Take: false when some client has to do
 * something first. Give: the grain was computed; the clients are told. 0 or a status in th->error.
 */
bool tile_take_blocks(struct tile *t);
int tile_give_blocks(struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
/* Gives up what it holds of rings. Lock held. */
void tile_drop_blocks(struct tile *t);
/* Tells the clients of the job's rings what was asked. */
int wjob_signal(struct wjob *job, struct thread_context *th) GAD_MUST_CHECK;

/* Called as a tile begins; does nothing here. Test programs put their own in its place. */
void worker_fault_point(const char *label, uint64_t tile, uint64_t n_tiles);
