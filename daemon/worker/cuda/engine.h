/* A CUDA device as an engine of the worker.
 *
 *     compute thread      pipeline's lock                      device thread     compute thread
 *     stage into slot --> to_device | compute | from_device --> wait, give back --> store outputs
 *                         `---------- a flight ----------'
 *
 * Threads stage and store, one thread waits for the device. A flight is what one tile needs while
 * it is with the device: events, an entry of the crash page. There are as many as tiles may be with
 * the device; a tile that finds none waits in a queue, and the device thread submits it. A tile's
 * slot is lent again only when the device has ended with it.
 *
 * A MULTIPLY of a matrix product is a flight, too, but without copies and slot: it goes into a
 * stream for these alone, and a thread of its own waits for it. So panels of the next step are
 * loaded, and tiles of others computed, beside it. There are flights for some, and for no more than
 * others' MULTIPLYs may find before them in the stream; many more may be queued. Jobs take turns
 * there.
 *
 * STOREs have flights and a thread of their own, too, as many as there may be slots: the device
 * copies C into slots in no time, and the link takes long to bring it to the host. The next tile's
 * first MULTIPLYs wait on the device for the former alone (`stored`, an event behind the STORE's
 * kernel), and LOADs, which bring nothing back, come in meanwhile.
 */
#pragma once

#include "daemon/worker/cuda/card.h"
#include "daemon/worker/cuda/direct.h"
#include "daemon/worker/cuda/results.h"
#include "daemon/worker/engine.h"
#include "kernels/cuda/tile.h"

#include <pthread.h>

#define CUDA_MAX_MULTIPLIES 4u  /* with the device: the host gives the next while they last */
#define CUDA_MAX_BEGUN      32u /* with those that are queued */
#define CUDA_MULTIPLIES_NS  UINT64_C(20000000) /* with the device, unless it is one alone */
#define CUDA_MAX_STORES     32u
#define CUDA_MAX_FLIGHTS    (CARD_MAX_DEPTH + CUDA_MAX_MULTIPLIES + CUDA_MAX_STORES)

#define CUDA_SHARED 1u /* offsets are multiples of ENGINE_SLOT_ALIGN */

/* What fills a slot: one a slot of the pool, and one for small jobs. */
struct cuda_work {
    struct cuda_tile code;
    char *device_slot;
    struct registered *registered; /* NULL: everything goes through the slot */
    struct direct in, out;         /* what does not */
    /* Where the grains' boxes are in the slot; of inputs CUDA_SHARED is set where it is the one of
     * the grain before. */
    uint32_t input_offsets[CUDA_TILE_MAX_GRAINS][REQUEST_MAX_ARGS];
    uint32_t output_offsets[CUDA_TILE_MAX_GRAINS][REQUEST_MAX_OUTPUTS];
    /* Of the pass's inputs, by their place among them: of the grain in hand. */
    char *memory[REQUEST_MAX_ARGS];
    bool is_shared[REQUEST_MAX_ARGS];        /* it needs what the one before needed */
    bool is_direct[REQUEST_MAX_ARGS];        /* it is in `in` */
    struct port_box boxes[REQUEST_MAX_ARGS]; /* while places are taken: of the one before */
    struct cuda_results results;
};

/* Each is a call of the host's for every tile: when a kernel and a copy back begin follows from
 * these and from the flight before, since each of the three has a stream that does one after the
 * other. */
enum cuda_mark {
    MARK_BEGIN, /* of the copy to the device; of a MULTIPLY */
    MARK_TO_END,
    MARK_KERNEL_END,
    MARK_END, /* waited for */
    MARK_N,
};

struct cuda_flight {
    struct tile *tile;        /* NULL: free */
    bool is_multiply;         /* of the marks it has the first and the last */
    uint64_t expected_ns;     /* of a MULTIPLY; else 0 */
    cuda_event marks[MARK_N]; /* NULL: it is not set */
};

/* Turns for the device of one kind: some with it, others behind them. Those with it end in order.
 */
struct cuda_line {
    struct cuda_engine *engine;
    const char *name;
    pthread_cond_t wake;
    pthread_t thread;
    bool has_thread;
    unsigned first, most; /* of the engine's flights, a ring: the oldest first */
    unsigned oldest, n_flying;
    uint64_t flying_ns; /* what those are expected to take, as far as that matters */
    /* The device thread's: of the tile that landed last. */
    bool has_landed;
    cuda_event landed;               /* its MARK_END */
    uint64_t behind_kernel_ns;       /* from its MARK_KERNEL_END to there */
    struct tile *queue, **queue_end; /* by tile->next */
};

struct cuda_engine {
    struct engine base;
    struct card *card;             /* owned */
    struct registered *registered; /* owned; NULL: none */
    struct sched *sched;
    struct cuda_work *works, *small_work;
    struct cuda_flight small_flight;

    pthread_mutex_t lock; /* of all below, and around submissions; taken before the scheduler's */
    bool is_stopping;
    struct cuda_flight flights[CUDA_MAX_FLIGHTS]; /* of tiles, then of MULTIPLYs, STOREs */
    uint64_t n_flown;                             /* of all times */
    struct cuda_line tiles, multiplies, stores;
    cuda_event stored; /* the last STORE's kernel */
    bool has_stored;
};

struct cuda_engine_config {
    struct card *card_take;
    unsigned n_threads;      /* that stage and store */
    uint64_t register_bytes; /* of clients' regions, at most; 0: none */
};

/* Takes the card (also on failure). -errno; a runtime error: see cuda_error_text(). */
int cuda_engine_new(const struct cuda_engine_config *config,
                    struct engine **ret_engine) GAD_MUST_CHECK;

/* turn.c ----------------------------------------------------------------------------------------
 */

enum tile_outcome cuda_engine_run(struct engine *base, struct tile *t, struct thread_context *th);
int cuda_engine_read(struct engine *base, struct tile *t, struct thread_context *th) GAD_MUST_CHECK;

/* The parts of a tile's life on the host. Stage: TILE_DONE when the slot is ready for the device;
 * finish: TILE_DONE. Else why not, with th->status and th->error. */
enum tile_outcome cuda_tile_stage(struct cuda_work *work, struct tile *t, struct thread_context *th,
                                  char *slot, uint64_t slot_bytes);
enum tile_outcome cuda_tile_finish(struct cuda_work *work, struct tile *t,
                                   struct thread_context *th);
void cuda_engine_drop(struct engine *base, struct tile *t);
/* The device has answered with an error, which is not one that loses the context. */
enum tile_outcome cuda_tile_failed(const struct tile *t, struct thread_context *th);

/* small.c */
enum tile_outcome cuda_engine_run_small(struct engine *base, struct tile *t,
                                        struct thread_context *th);

/* product.c: WALK_MULTIPLY, WALK_MARK, WALK_APPLY and its reads. */
enum tile_outcome cuda_product_run_multiply(struct cuda_engine *e, struct tile *t,
                                            struct thread_context *th);
enum tile_outcome cuda_product_mark(struct cuda_engine *e, struct tile *t,
                                    struct thread_context *th);
enum tile_outcome cuda_product_apply(struct cuda_engine *e, struct tile *t,
                                     struct thread_context *th);
int cuda_product_read_log(struct cuda_engine *e, struct tile *t,
                          struct thread_context *th) GAD_MUST_CHECK;
/* Puts a MULTIPLY into the stream of these. 0 or a runtime error. */
int cuda_product_multiply(const struct card *card, const struct tile *t) GAD_MUST_CHECK;
/* What that takes, by the rates that were measured. */
uint64_t cuda_product_expected_ns(const struct card *card, const struct tile *t);

/* pipeline.c ------------------------------------------------------------------------------------
 */

/* The device threads. stop: when nothing is with the device. */
int cuda_pipeline_start(struct cuda_engine *e) GAD_MUST_CHECK;
void cuda_pipeline_stop(struct cuda_engine *e);
/* The tile is staged, or a MULTIPLY: the caller has nothing to do with it any more. */
void cuda_pipeline_submit(struct cuda_engine *e, struct tile *t);

/* Events of one flight; is_small: of one whose copies and kernels are all in one stream, and which
 * the host times, the last alone: each call takes a small job longer than what it would tell. 0 or
 * a runtime error. */
int cuda_flight_init(struct cuda_flight *f, bool is_small) GAD_MUST_CHECK;
void cuda_flight_deinit(struct cuda_flight *f);
/* Puts the copies and the kernel of what was staged into the streams, with marks. A runtime error:
 * then nothing of it is with the device any more. Does not return when the device is lost. */
int cuda_flight_submit(struct cuda_flight *f, const struct cuda_work *work, cuda_stream to_device,
                       cuda_stream compute, cuda_stream from_device) GAD_MUST_CHECK;
/* What a flight took that the device has ended, and how long before the end that began. */
struct cuda_flight_times {
    uint64_t to_ns, kernel_ns, from_ns;
    uint64_t to_before_ns, kernel_before_ns;
};

static inline struct cuda_work *cuda_work_of(const struct cuda_engine *e, const struct tile *t)
{
    return &e->works[(uint64_t)((char *)t->slot - e->base.pool) / e->base.limits.slot_bytes];
}
