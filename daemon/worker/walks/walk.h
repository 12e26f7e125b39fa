/* How a job is walked, tile by tile: one interface for all kinds of work that a program has.
 *
 *     round 0: stage 0, stage 1, ...     round 1: stage 0, stage 1, ...     ...
 *
 * A stage is a pass, or the passes of a matrix product together (struct stage). walk_ops is the
 * table of a kind of stage: walk_passes.c (a pass that reduces or not), walk_scan.c (a pass that
 * scans), walk_product.c, walk_slab.c. Nobody else asks which kind a job or a tile is of: the
 * scheduler asks what the next tile needs (struct walk_next), engines look at a tile's step and at
 * its grains.
 *
 * A round is a part of the arrays for which the results of all reductions fit the carry; most jobs
 * have one. Tiles are numbered through all rounds: a stage in a round has those of
 * [first_tile, end_tile). They begin in order and end in any.
 *
 * All of it under the scheduler's lock, but for what says otherwise.
 */
#pragma once

#include "daemon/worker/io/port.h"
#include "daemon/worker/io/ring.h"
#include "kernels/plan/plan.h"
#include "proto/request.h"

#include <pthread.h>

struct wjob;
struct tile;
struct thread_context;
struct walk_product;
struct walk_slab;
struct journal;

struct pass_port { /* a port that a pass uses */
    struct port *port;
    unsigned index; /* among the program's inputs or outputs */
    /* An input that the pass reads near, or that its repeats read, where a grain's box has what
     * lies around it: everything but memory that is read where it lies. */
    bool is_near;
};

struct pass_ring { /* of one of them */
    const struct port *port;
    unsigned slot; /* in struct tile's ring_slots */
    bool is_sink;
};

/* What is read and written of the job's arrays. */
struct pass_ports {
    unsigned n_inputs, n_outputs, n_rings;
    bool needs_slot;
    struct pass_port inputs[REQUEST_MAX_ARGS], outputs[REQUEST_MAX_OUTPUTS];
    struct pass_ring rings[REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS];
};

/* What an engine does with a tile. */
enum walk_step {
    WALK_COMPUTE,  /* grains: inputs through the pass to the outputs, or to a product's panel, or a
                      slab; then what of WALK_STEPS is behind them */
    WALK_LOG,      /* the same, but what they give goes to the journal, not to the output */
    WALK_FILL,     /* grains of a file, as they are, to a product's panel or a slab; only with the
                      CPU */
    WALK_APPLY,    /* grains: from the journal to the output */
    WALK_MULTIPLY, /* of a product's panels; no grains */
    WALK_STEPS,    /* of a slab; no grains */
    WALK_MARK,     /* in the journal; no grains */
    WALK_NOTHING,  /* it is over at once, and no engine's */
    WALK_N_STEPS,
};

/* What the next tile needs, where there is one. */
struct walk_next {
    const struct pass_ports *ports;
    uint64_t position; /* that rings know its first grain as */
    uint64_t n_grains;
    uint64_t needs; /* all tiles below this one are done before it begins */
    bool is_long;   /* its arithmetic may take long (struct plan_pass) */
};

struct walk_ops {
    /* Whether a tile is a run of neighbours of the pass's grains. Else grain_number() says which
     * one of the pass's the tile's grain is. */
    bool has_runs;
    uint64_t (*grain_number)(const struct tile *t, uint64_t grain);

    /* The stage begins in its round: which tiles it has, with which ports. */
    void (*begin)(struct wjob *job);
    /* Its tiles are done. May fail the job. NULL: nothing to do. */
    void (*end)(struct wjob *job);
    /* Fills walk.next, which is there. */
    void (*look)(struct wjob *job);
    /* Whether the next tile may begin. */
    bool (*can_begin)(const struct wjob *job);
    /* What was next is this tile's now: its step, pass, grains, and memory. */
    void (*take)(struct tile *t);
    /* It is done: others may wait for it. NULL: none do. */
    void (*done)(struct wjob *job, const struct tile *t);
    /* It is given up or over. NULL: it holds nothing. */
    void (*drop)(struct tile *t);

    /* Of struct ring_walk. */
    bool (*find_position)(const struct ring_walk *walk, uint64_t *position);
    void (*position_box)(const struct ring_walk *walk, uint64_t position, int64_t *ret_start,
                         int64_t *ret_count);

    /* By the thread that has the tile, without the lock. Views of what lies in the carry, for the
     * box that begins at `start`: results and states by their index among the program's reductions,
     * what a product stores for itself as outputs behind the job's. Others are left as they are. */
    void (*views)(const struct tile *t, const int64_t *start, struct engine_view *ret_outputs,
                  struct engine_view *ret_results);
    /* The grain in hand was computed; all of the tile's were. NULL: nothing to do. */
    void (*grain_done)(struct tile *t, const struct thread_context *th);
    void (*combine)(struct tile *t);
};

extern const struct walk_ops walk_pass_ops, walk_scan_ops, walk_product_ops, walk_slab_ops;

struct walk {
    const struct walk_ops *ops; /* of the stage in hand */
    const struct stage *stage;
    uint64_t round;
    uint64_t first_tile, end_tile;    /* of the stage in this round */
    uint64_t next_tile, n_tiles_done; /* of those */
    uint64_t n_tiles;                 /* of the stage in all rounds, as planned */
    struct pass_ports ports;          /* of a pass; of a product the rings of all its passes */
    /* Of the job's open axis: INT64_MAX: it has not ended yet. end_grain: of the stage, behind its
     * last one; UINT64_MAX: that of its plan. */
    int64_t length;
    uint64_t end_grain;
    struct walk_next next;
    /* Where tiles wait for others: all below `oldest` are done, and those behind it whose bits are
     * set, at their numbers' places. */
    struct walk_order {
        uint64_t oldest;
        uint64_t done[PLAN_MAX_WINDOW / 64];
    } order;

    /* walk_passes.c */
    struct walk_nodes {
        uint64_t oldest_tile;                  /* that the tree misses */
        uint64_t stacks[PLAN_MAX_WINDOW / 64]; /* without a tree: those that tiles have */
        struct reduce_tree *tree; /* NULL: none is needed. Changed under the lock below */
        int64_t open_length;      /* as tiles have it that were combined. Under the lock, too */
        pthread_mutex_t lock;     /* never held together with the scheduler's */
    } nodes;
    struct walk_product *product; /* walk_product.c; NULL: the program has none */
    struct walk_slab *slab;       /* walk_slab.c; NULL: the program has none */
    struct journal *journal;      /* journal.h; NULL: none */
};

/* What a pass reads and writes. */
void walk_collect_ports(const struct wjob *job, unsigned pass, struct pass_ports *ports);
/* For walks of several passes at a time. The port of a ring; NULL: none of these has it. */
const struct port *walk_find_port(const struct pass_ports *ports, const struct ring *ring);
/* The rings of all passes, each once, into walk.ports. */
void walk_collect_rings(struct wjob *job, unsigned n_passes, const struct pass_ports *passes);
/* The part of the ring's array that a grain of the pass with these ports has. The port may see it
 * transposed, where walk->port does not. */
void walk_ring_box(const struct ring_walk *walk, const struct pass_ports *ports,
                   const struct geometry *geometry, uint64_t grain, int64_t *ret_start,
                   int64_t *ret_count);

/* The clients have said something: where the open axis ends, perhaps. May fail the job. */
void walk_note_length(struct wjob *job);
/* The axis of an output that is open: how long it turned out to be. */
int64_t walk_length(const struct wjob *job, int64_t planned);

/* The next tile, which is there, is this one. */
void walk_take(struct wjob *job, struct tile *t);
void walk_drop(struct tile *t);

/* For walks whose tiles wait for others. */
void walk_order_begin(struct wjob *job);
bool walk_order_can_begin(const struct wjob *job);
void walk_order_done(struct wjob *job, const struct tile *t);

/* walk_passes.c, for walks whose tiles are runs of a pass's grains. */
void walk_runs_begin(struct wjob *job);
void walk_runs_look(struct wjob *job);
void walk_runs_take(struct tile *t);
bool walk_runs_find_position(const struct ring_walk *walk, uint64_t *position);
void walk_runs_position_box(const struct ring_walk *walk, uint64_t position, int64_t *ret_start,
                            int64_t *ret_count);
void walk_runs_views(const struct tile *t, const int64_t *start, struct engine_view *ret_outputs,
                     struct engine_view *ret_results);

/* What a pass reduces. Where the node of the grain in hand is to be written, and how it is laid
 * out; NULL without reductions. count: of the grain's box. The layout is that of the node asked for
 * last. Neither needs the lock of the nodes: a tile's are its own until it is combined. */
void *tile_node(struct tile *t, const int64_t *count);
const struct reduce_layout *tile_node_layout(const struct tile *t);
