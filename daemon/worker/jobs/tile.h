/* Tiles: an aligned run of grains of one pass, worked through by whichever thread has it: inputs
 * into their place, arithmetic, outputs to theirs. How is the engine's business (engine.h); here is
 * what all engines share. */
#pragma once

#include "daemon/worker/jobs/wjob.h"
#include "proto/wire/trace.h"

#define TILE_MAX_BLOCKS 16u /* that it has of a ring at a time */

enum tile_state {
    TILE_IN_HAND,        /* a compute thread is at it */
    TILE_READING,        /* in the queue of the I/O threads, or one is at it */
    TILE_STAGED,         /* its grain's inputs were read, it keeps its slot */
    TILE_WAITING_CLIENT, /* some block is not there; holds no slot */
    TILE_WITH_DEVICE,    /* the engine gives it back */
    TILE_COMPUTED,       /* the device has ended; its outputs lie in its slot */
};

/* Why a thread puts a tile out of its hands. */
enum tile_outcome { TILE_DONE, TILE_NEEDS_READ, TILE_NEEDS_CLIENT, TILE_ON_DEVICE, TILE_FAILED };

struct engine;
struct sched;
struct trace;

/* Grains that the CPU's engine reads and writes at once (cpu/together.c): a range along one axis of
 * the pass. */
struct together {
    uint64_t first, end; /* grains */
    int axis;            /* -1: there is one grain */
    int64_t start, count;
};

struct tile {
    struct wjob *job;
    struct tile *next;
    enum tile_state state;
    enum walk_step step;
    unsigned pass;
    const struct pass_ports *ports; /* that it reads and writes; the walk's */
    uint64_t index, grain, end;     /* of the stage; the grain in hand; behind the last */
    uint64_t first_position;        /* a ring knows a grain as first_position + grain */
    uint64_t prefetch_end;          /* behind the last grain that will be read soon */
    int64_t open_length;            /* of the open axis, for the grain in hand */
    uint64_t results_used;          /* of the program's reductions, that it finds in the
                                       carry: of earlier passes, and states of its scans */
    unsigned n_states;              /* so many of these */
    void *slot;                     /* NULL: none */
    bool has_begun, is_staged;      /* the last: the grain in hand */
    bool is_long;                   /* see struct walk_next */
    bool is_kept;                   /* a spare thread is kept for it (aside.c) */
    bool is_in_slot;                /* with a device: it has begun to fill its slot */
    bool is_computed;               /* the device has ended, maybe before the turn did */
    bool has_left;                  /* nobody waits for it any more, though it is not done */
    int device_error;               /* then: 0 or the engine's */
    uint64_t charged_ns;            /* for its time with the device so far */
    /* blocks.c: of these grains it has the sinks' blocks, and until they are given back the
     * sources'. */
    uint64_t blocks_begin, blocks_end;
    /* Of inputs, then outputs of the pass; of a grain at its number's place. */
    uint8_t ring_slots[TILE_MAX_BLOCKS][REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS];
    struct together together; /* with the grain in hand, in the slot */
    struct measure measure;
    /* walk_product.c: NULL, its product, with the turn that it is. */
    const struct plan_product *product;
    struct product_turn turn;
    /* walk_slab.c: NULL, its slab, with the turn that it is. */
    const struct plan_slab *slab;
    struct slab_turn slab_turn;
    /* walk_passes.c */
    char *nodes;          /* memory for the stack, in the carry; NULL: no reductions */
    unsigned stack_index; /* without a tree: which of the plan's stacks that is */
    uint64_t oldest_tile; /* that the tree missed when this one was added */
    struct reduce_stack stack;
    uint64_t n_in_leaf; /* grains that the stack's next leaf has taken in */
    char *block;    /* swaths.c: memory for what it reads or writes at once; NULL: grain by grain */
    bool has_block; /* its source was read, or is in memory */
};

/* What a thread brings along; only the memory that is used is ever touched. */
struct thread_context {
    unsigned index; /* in the crash page */
    pthread_t thread;
    struct sched *sched;          /* NULL: the main thread's */
    const struct cpu_engine *cpu; /* NULL: the engine needs none */
    struct crashpage_thread *page;
    struct trace *trace;
    uint64_t traced_ns; /* up to when it has told what it did in its turn (tile_trace()) */
    struct port_io io;
    void *scratch; /* CPU_SCRATCH_BYTES, with cpu; behind it CPU_WINDOW_BYTES */
    /* aside.c, under the scheduler's lock but for its own turn's times. */
    pthread_cond_t wake;
    struct thread_context *next; /* on the bench, or of the same job */
    bool has_place;
    struct tile *aside;    /* its turn was put aside; NULL: it was not */
    uint64_t slice_ns;     /* when its turn, or what goes on of it, began */
    struct tile *in_hand;  /* of its turn; NULL: none */
    uint64_t displaced_ns; /* since when another has its place while it is in a call; 0: none has */
    uint64_t watched_since_ns, watched_from_ns; /* watch.c */
    uint64_t watched_call, watched_call_ns; /* watch.c: in which it was, and since when at least */
    uint64_t aside_ns;                      /* that turns of it were put aside, all together */
    _Atomic uint64_t call;                  /* see struct port_io */
    _Atomic uint64_t signalling_since_ns;   /* in the write to a client's eventfd; 0: not */
    uint64_t slot_bytes;                    /* the CPU engine's */
    /* The grain in hand. */
    struct port_box input_boxes[REQUEST_MAX_ARGS], output_boxes[REQUEST_MAX_OUTPUTS];
    void *input_memory[REQUEST_MAX_ARGS], *output_memory[REQUEST_MAX_OUTPUTS];
    void *states; /* of the pass's repeats; NULL: it has none */
    struct engine_view inputs[REQUEST_MAX_ARGS], outputs[PROGRAM_MAX_OUTPUTS];
    struct engine_view results[PROGRAM_MAX_REDUCTIONS]; /* of earlier passes */
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    /* Why the tile failed. */
    int status;
    struct gad_error error;
};

/* page may be NULL. Takes the memory for the thread's life. */
int thread_context_new(unsigned index, const struct cpu_engine *cpu, struct crashpage_thread *page,
                       bool is_compute, struct thread_context **ret_context) GAD_MUST_CHECK;
struct thread_context *thread_context_free(struct thread_context *th);

/* The job's next tile. Lock held. */
void tile_init(struct tile *t, struct wjob *job);

/* A turn, the whole of a small job's tile, a read of an I/O thread: the engine's functions of these
 * names (engine.h), with the thread's entry in the crash page. */
enum tile_outcome tile_run(struct engine *e, struct tile *t, struct thread_context *th);
enum tile_outcome tile_run_small(struct engine *e, struct tile *t, struct thread_context *th);
int tile_read(struct engine *e, struct tile *t, struct thread_context *th) GAD_MUST_CHECK;

/* Tells the crash page that the tile goes on, from now on. */
void tile_tell(const struct tile *t, struct thread_context *th, uint64_t now_ns);

/* For the trace: the thread has done this with the tile. */
void tile_span(const struct tile *t, const struct thread_context *th, enum trace_kind kind,
               uint64_t begin_ns, uint64_t end_ns);
/* The same in a turn of arithmetic, which went on from th->traced_ns until this began. */
void tile_trace(const struct tile *t, struct thread_context *th, enum trace_kind kind,
                uint64_t begin_ns, uint64_t end_ns);
/* Arithmetic, from th->traced_ns until now. */
void tile_trace_kernel(const struct tile *t, struct thread_context *th, uint64_t now_ns);

/* What rings know the grain in hand as. */
uint64_t tile_position(const struct tile *t);

/* What engines do it with -------------------------------------------------------------------- */

/* The boxes of a grain's operands, into th. */
void tile_boxes(const struct tile *t, uint64_t grain, struct thread_context *th);
/* Whether what its pass writes has left the cache before anybody reads it. */
bool tile_is_of_large_pass(const struct tile *t);
static inline const struct pass *tile_pass(const struct tile *t)
{
    return &t->job->program->passes[t->pass];
}
static inline const struct plan_pass *tile_plan(const struct tile *t)
{
    return &t->job->plan.passes[t->pass];
}
static inline const struct geometry *tile_geometry(const struct tile *t)
{
    return &tile_plan(t)->geometry;
}

/* The grain in hand as the engines' box; it refers to th. */
struct engine_box tile_box(const struct tile *t, const struct thread_context *th);
/* Writes the grain's outputs that are staged to where they belong. 0 or a status in th->error. */
int tile_store(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
/* The grain in hand was computed: its bytes, its node, in order. On to the next. */
void tile_grain_done(struct tile *t, struct thread_context *th);
/* What an engine's arithmetic answered that was not 0, and -EFAULT of guard_call(): the status. */
int tile_engine_error(const struct tile *t, int r, const void *address, struct gad_error *error);
/* -EFAULT of guard_call() in memory of the job's: the status. */
int tile_region_fault(const struct wjob *job, const char *address, struct gad_error *error);

/* blocks.c: the blocks of the grain in hand, and of those behind it as far as they are there, at
 * most so many grains; in all rings. Take: false when some client has to do something first, or
 * when the tile has ended before the grain in hand. Give, of the grain in hand: of sources, it was
 * read; of sinks, it was computed. The clients are told. 0 or a status in th->error.
 */
enum tile_blocks { TILE_SOURCES = 1u << 0, TILE_SINKS = 1u << 1 };
bool tile_take_blocks(struct tile *t, unsigned most);
int tile_give_blocks(struct tile *t, unsigned which, struct thread_context *th) GAD_MUST_CHECK;
static inline bool tile_has_blocks(const struct tile *t)
{
    return t->grain < t->blocks_end;
}
/* In which slot of its ring a grain's block is; `ring`: as in struct pass_ring. */
static inline uint8_t tile_ring_slot(const struct tile *t, uint64_t grain, unsigned ring)
{
    return t->ring_slots[grain % TILE_MAX_BLOCKS][ring];
}
/* Gives up what it holds of rings. Lock held. */
void tile_drop_blocks(struct tile *t);
/* Tells the clients of the job's rings what was asked. */
int wjob_signal(struct wjob *job, struct thread_context *th) GAD_MUST_CHECK;

/* Called as a tile begins; does nothing here. Test programs put their own in its place. */
void worker_fault_point(const char *label, uint64_t tile, uint64_t n_tiles);
