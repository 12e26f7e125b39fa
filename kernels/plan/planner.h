/* What the parts of the planner share: the job in hand, and the pass in hand. */
#pragma once

#include "kernels/plan/plan.h"

struct plan_blocks;

#define PLANNER_MAX_OPERANDS (REQUEST_MAX_ARGS + REQUEST_MAX_OUTPUTS)
#define PLANNER_CARRY_ALIGN  64

struct planned_operand {
    struct geometry_operand shape;
    enum location_kind kind;
    uint64_t most_grains; /* that a tile has of its ring; UINT64_MAX: it has none */
    int64_t strides[ARRAY_MAX_NDIM], chunk_shape[ARRAY_MAX_NDIM]; /* of one that is transposed */
    int64_t reach[ARRAY_MAX_NDIM]; /* of inputs that are near, or read by repeats */
};

/* What a pass moves, for the estimate: bytes. */
struct planned_traffic {
    double memory, file; /* that the kernel reads and writes there */
    /* Of all boxes, as they are copied for a device: from and to memory, from and to files. */
    double staged_memory, staged_file;
    /* Of `file` and of staged_file, what the worker itself reads. */
    double read, staged_read;
    double to_device, from_device;
};

/* How much of the carry a stage may take, and how far nodes are made smaller for it. */
struct planner_room {
    uint64_t tree_bytes;    /* of a pass */
    uint64_t product_bytes; /* of a product: its tile and panels */
    bool is_for_refusal;    /* products only say what they need at least */
    unsigned least_window;  /* of tiles that exist at a time */
    uint64_t least_share;   /* of a node's cells: down to 1 / least_share; 0: to a single one */
};

struct planner {
    const struct job_request *request;
    const struct program *program;
    const struct plan_limits *limits;
    struct plan *plan;
    struct gad_error *error;
    bool in_place;
    int64_t round_length; /* 0: there is one round */
    struct planner_room room;
    unsigned n_operands;          /* of the pass in hand: inputs, then outputs */
    struct plan_product *product; /* in hand */
    /* From here on only what is used is ever written. */
    struct planned_traffic traffic[PROGRAM_MAX_PASSES];
    /* rounds.c, with round_length: an axis of each pass; -1: it is not cut, and done in the first
     * round. */
    int round_axes[PROGRAM_MAX_PASSES];
    struct planned_operand operands[PLANNER_MAX_OPERANDS];
};

/* passes.c: one pass with p->room and the rounds: its geometry, tiles, nodes, bytes. ret_fits:
 * whether its nodes fit. Otherwise as plan_make(). */
int planner_cut_pass(struct planner *p, unsigned pass, bool *ret_fits) GAD_MUST_CHECK;
/* Its operands to p->operands. */
void planner_collect_operands(struct planner *p, const struct pass *pass);
/* Results that a pass reads, bits, but for uniform ones; at most PASS_MAX_RESULTS, with as many
 * shapes. */
unsigned planner_list_results(const struct planner *p, uint64_t results,
                              int64_t (*ret_shapes)[ARRAY_MAX_NDIM],
                              struct geometry_operand *ret_operands);
/* reach.c: what a pass's repeats keep for a grain, as operands that are in no list of others; at
 * most REACH_MAX_STATES. */
#define REACH_MAX_STATES (2 * PROGRAM_MAX_STATES)
unsigned planner_list_states(const struct planner *p, const struct pass *pass,
                             int64_t (*ret_reach)[ARRAY_MAX_NDIM],
                             struct geometry_operand *ret_operands);
/* reach.c: what repeats read of an operand, an input of the program, around a grain. */
void planner_add_reach(const struct planner *p, const struct pass *pass, unsigned input,
                       struct planned_operand *operand);
/* reach.c: likewise where what repeats read around a grain is more than long_bytes (as in struct
 * geometry_rules) have room for. */
int planner_check_repeats(const struct planner *p, const struct pass *pass,
                          uint64_t long_bytes) GAD_MUST_CHECK;
/* reach.c: no-engine, bad-argument, limit-exceeded where what it reads near each element cannot be;
 * its operands are collected. */
int planner_check_near(const struct planner *p, const struct pass *pass) GAD_MUST_CHECK;
/* reach.c: no-engine where it reads near with more offsets than the engine knows. */
int planner_check_places(const struct planner *p, unsigned pass) GAD_MUST_CHECK;
/* reach.c: of the output in whose text it stands, which the message begins with; of nowhere, of all
 * outputs. Returns status. */
int planner_refuse_at(const struct planner *p, enum gad_status status,
                      const struct program_place *place, const char *format, ...) GAD_PRINTF(4, 5);
/* reach.c: limit-exceeded where not even one element of all that the pass reads and keeps together
 * fits a grain. Those before say more; this is what none of them has foreseen. */
int planner_refuse_element(const struct planner *p, const struct pass *pass);
/* window_grids.c: what of a grain the engine keeps for windows, each of these an internal operand:
 * in a thread's memory, or in the slot.
 */
#define PLANNER_MAX_WINDOW_GRIDS (4 * PROGRAM_MAX_MADE_WINDOWS)
struct planner_windows {
    unsigned n;
    struct geometry_operand *operands;
    int64_t reach[PLANNER_MAX_WINDOW_GRIDS][ARRAY_MAX_NDIM];
    int64_t shapes[PLANNER_MAX_WINDOW_GRIDS][ARRAY_MAX_NDIM];
};
/* Those of the pass; returns how many. */
unsigned planner_list_windows(const struct planner *p, const struct pass *pass,
                              struct planner_windows *ret, struct geometry_operand *ret_operands);
/* Of one element. */
bool planner_windows_fit(const struct planner_windows *windows);
int planner_refuse_windows(const struct planner *p, const struct pass *pass);
/* bad-shape where its elements are more than 63 bits count. */
int planner_check_space(const struct planner *p, const struct pass *pass) GAD_MUST_CHECK;
/* Planning took so many steps more. */
static inline void planner_count_steps(const struct planner *p, uint64_t n)
{
    p->plan->n_steps += n;
}
static inline bool planner_is_out_of_steps(const struct planner *p)
{
    return p->plan->n_steps > PLAN_MAX_STEPS;
}

/* limit-exceeded. */
int planner_refuse_bytes(const struct planner *p);
bool planner_is_in_memory(enum location_kind kind);
bool planner_add_checked(uint64_t *sum, uint64_t value);

/* Of the largest box that an operand has in a grain, as it lies in a device's slot. */
uint64_t planner_box_bytes(const struct geometry *g, const struct geometry_operand *operand);

/* tiles.c: how many grains make a tile, at best, and at most. The geometry is there, for a device
 * the room. */
void planner_choose_tiles(const struct planner *p, unsigned pass, uint64_t most_grains);
/* How many grains a tile may have of a ring, which it shares with others; UINT64_MAX: it is none.
 */
uint64_t planner_ring_grains(const struct planner *p, const struct location *at, bool is_sink);
/* Numbers of tiles, from tile_log2. */
void planner_count_tiles(struct plan_pass *planned);
uint64_t planner_ceil_shift(uint64_t value, unsigned shift);
/* plan.c, of a scan: the neighbours of which tiles are parts, a step or all of them. */
uint64_t planner_scan_run(const struct plan_pass *planned);

/* nodes.c: the memory of a pass's nodes; tiles become smaller where that helps. False: it does not
 * fit p->room. */
bool planner_fit_nodes(const struct planner *p, unsigned pass);
/* Of a node. long_bytes: as the geometry's rules have it. */
uint64_t planner_most_cells(const struct program *program, unsigned pass, uint64_t long_bytes);
uint64_t planner_chunk_cells(const struct program *program, unsigned pass); /* of a whole chunk */
uint64_t planner_tree_bytes(const struct plan_pass *planned);

/* swaths.c: whether a pass transposes a file so large that it is worth it, and there is room for
 * its blocks. Then *rules gets the swaths, and planned their memory once the geometry is there. */
bool planner_choose_swaths(const struct planner *p, unsigned pass, struct geometry_rules *rules);
void planner_set_swaths(const struct planner *p, unsigned pass, const struct geometry_rules *rules);

/* carry.c: cuts all stages so that everything fits the carry, in rounds if need be. */
int planner_cut_all(struct planner *p) GAD_MUST_CHECK;

/* passes.c: the axis of a pass that is the job's open one; -1: it has none. */
int planner_open_axis(const struct planner *p, const struct pass *pass);
static inline bool planner_is_stream(const struct array *array)
{
    return array->at.kind == LOCATION_PROVIDER && array->at.provider.is_stream;
}
/* Whether a result of the job's has its open axis. */
static inline bool planner_keeps_open(const struct planner *p, unsigned reduction)
{
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim = program_reduction_shape(p->program, reduction, shape);
    bool has = false;
    for (int i = 0; i < ndim; i++)
        has |= p->request->open_length > 0 && shape[i] == p->request->open_length;
    return has;
}
/* streams.c: what the job would do, of which the length must be known; bad-argument. */
int planner_refuse_open(const struct planner *p, const char *what);
/* streams.c: bad-argument where a stream would not be read or written once, in C order, or where
 * the length of an open one would have to be known. */
int planner_check_streams(const struct planner *p) GAD_MUST_CHECK;

/* places.c: reductions, bits, whose results are in the device's memory alone; 0 without one. */
uint64_t planner_device_results(const struct planner *p);
/* places.c: where the results of a round of those reductions (bits) lie, from 0 on; how many bytes
 * that are. UINT64_MAX: more than that. */
uint64_t planner_place_results(const struct planner *p, uint64_t which, uint64_t *ret_offsets);

/* The same in steps: */
struct planner_life { /* of a reduction's result */
    uint64_t n_bytes, begin;
    unsigned first, last; /* stages from which to which it lives */
};
/* As where there is one round. */
void planner_set_lives(const struct program *program, struct planner_life *places);
/* Bytes that live at a time, at most: placing never needs fewer, and takes longer. */
uint64_t planner_most_alive(const struct planner_life *places, unsigned n, unsigned n_stages);
uint64_t planner_place_all(struct planner_life *places, unsigned n); /* sets `begin` */

/* rounds.c: bytes of the results of a round, each aligned; UINT64_MAX: more than that. */
uint64_t planner_result_bytes(const struct planner *p, uint64_t which);
uint64_t planner_one_result_bytes(const struct planner *p, unsigned reduction);
/* The axis of a reduction's result that is cut; -1: none. */
int planner_result_round_axis(const struct planner *p, unsigned reduction);
/* Finds rounds whose results take at most so many bytes. False: there are none. */
bool planner_choose_rounds(struct planner *p, uint64_t max_bytes);

/* Its reductions are combined from nodes; a scan's are not. */
static inline bool planner_has_nodes(const struct pass *pass)
{
    return pass->n_reductions > 0 && pass->scanned_axis < 0;
}

/* Of the product in hand, one of its three passes. */
static inline const struct pass *planner_product_space(const struct planner *p,
                                                       enum product_pass pass)
{
    return &p->program->passes[p->product->whole->first_pass + pass];
}
/* product_tiles.c: everything of one of the program's products, which is in hand then: its passes,
 * panels, tiles, bytes; scratch_bytes are at most limit_bytes. Errors as plan_make()'s. */
int planner_cut_product(struct planner *p, unsigned index, uint64_t limit_bytes) GAD_MUST_CHECK;
/* product_sizes.c: p->product's sizes of shape and dtype alone; axes, extents of C. */
void planner_product_blocks(const struct planner *p, const struct plan_blocks *blocks);
/* product_parts.c: makes blocks smaller without changing a bit of C. False: they are as small as
 * can be. */
bool planner_part_blocks(const struct plan_engine *engine, struct plan_product *product);
/* product_batch.c: n_matrices and what says which of them are a tile's; at most so many on inner
 * axes. */
void planner_cut_batch(const struct planner *p, int64_t most_inner);
/* product_batch.c: whether all of C's matrices in a tile have one of their own, or one is for all.
 */
bool product_is_even(const struct plan_product *product, enum product_pass pass);
/* product_batch.c: of one of C's batch axes, how much a tile has; INT64_MAX: all of it. */
int64_t product_tile_extent(const struct plan_product *product, int axis);
/* product_batch.c: matrices of a panel for so many of C, or of C itself. */
int64_t product_panel_matrices(const struct plan_product *product, enum product_pass pass,
                               int64_t n_matrices);
/* product_grains.c: the geometry of one of its three passes, for the tiles that are chosen. */
int planner_cut_product_pass(struct planner *p, enum product_pass pass) GAD_MUST_CHECK;
/* product_grains.c: the geometry of one of the passes that a product or slab has, whose grains are
 * parts of boxes of these extents (INT64_MAX: of all there is), room and whether it needs a slot.
 */
int planner_cut_fenced(struct planner *p, unsigned pass, const int64_t *fences) GAD_MUST_CHECK;
/* Whether a pass stores an argument as it is, from a file where the fastest axis is the last one
 * beside slow_axis. */
bool planner_is_direct(const struct planner *p, const struct pass *space, int slow_axis);
/* That argument; NULL: it does not. */
const struct array *planner_direct_array(const struct planner *p, const struct pass *space,
                                         int slow_axis);
/* slabs/slab_plan.c: everything of one of the program's slabs. What it needs of the carry is no
 * choice: scratch_bytes. Errors as plan_make()'s. */
int planner_cut_slab(struct planner *p, unsigned index) GAD_MUST_CHECK;
/* passes.c: bytes and traffic of a pass whose operands are in p->operands. counts_boxes: each
 * grain's boxes count, whatever they lie in. */
int planner_count_bytes(struct planner *p, unsigned pass, bool counts_boxes) GAD_MUST_CHECK;
/* The fastest axis of C's outputs and of what is added to it is the rows'. */
bool planner_product_rows_are_fastest(struct planner *p);
/* The fastest axis of its operands is the depth. */
bool planner_product_depth_is_fastest(struct planner *p, enum product_pass pass);
/* Bytes of all LOADs, of all STOREs. */
int planner_count_product_bytes(struct planner *p) GAD_MUST_CHECK;
/* product_turns.c: what one turn does, and how many there are. limit-exceeded where there are too
 * many.
 */
int planner_choose_turns(struct planner *p) GAD_MUST_CHECK;
/* product.c: the tiles of one matrix of C. */
uint64_t planner_matrix_tiles(const struct plan_product *product);
/* product.c: MULTIPLYs of a step; UINT32_MAX: too many. */
unsigned planner_count_multiplies(const struct plan_product *product);
/* product.c: n_turns. False: more than 63 bits count. */
bool planner_count_turns(struct plan_product *product);

/* estimate.c: the measured rates, or defaults. `disk` alone may be 0: what the job reads of files
 * is taken to be in the page cache. */
struct plan_rates planner_rates(const struct planner *p);
/* As if nothing had been measured. */
struct plan_rates planner_default_rates(const struct plan_limits *limits);
/* Of these: multiplications and additions a second, all threads. */
double planner_product_rate(const struct plan_rates *rates, const struct plan_product *product);

/* estimate.c: fills plan->seconds and plan->bound. */
void planner_estimate(const struct planner *p);

/* Instructions per element, with one more for reading and writing it; a loop is many. */
static inline uint64_t planner_work_per_element(const struct pass *pass)
{
    return 1u + pass->n_insns + pass->n_reductions + UINT16_MAX * (uint64_t)pass->n_loops;
}
