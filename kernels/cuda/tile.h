/* A tile on its way to the device: what the host writes into a slot, and what comes back.
 *
 *     | code | grains | tables | inputs | blocks' results | nodes | outputs | values |
 *      ----- to the device ------------>  <------ from the device --------->
 *
 * A slot is a piece of pinned memory and a piece of device memory of the same size; what lies at an
 * offset of the one lies at the same offset of the other. The code is the pass, encoded; a grain's
 * record says how many elements it has, where its operands are and with which strides. One launch
 * computes all grains of the tile; a grain is computed by a number of thread blocks that depends on
 * its number of elements alone. Where all axes are reduced each block leaves what it has taken in,
 * and the host combines them in order. Reductions where some are kept, counts and scans are tasks
 * of other kernels: they read operands where they are and values that were computed where the first
 * kernel has stored them, and make the grain's node (kernels/reductions/reduce.h), or write its
 * outputs and leave the scans' states: the bits depend on nothing but the grain and the states
 * before it. Windows (device/window.inc) are made before, by kernels that lay them beside the
 * values, of which the interpreter reads them as of inputs. What repeats step through, and what
 * windows are of where that is no input, is computed before all that, by launches of their passes
 * (tile_phases.c): these have codes and records of their own, and their results are values, too.
 *
 * Pure code on the host's memory: no CUDA call but in cuda_tile_launch(). Not thread-safe; the
 * struct may go from thread to thread.
 */
#pragma once

#include "kernels/cuda/encode.h"
#include "kernels/cuda/interpreter.h"
#include "kernels/engine.h"
#include "kernels/grains/geometry.h"
#include "kernels/reductions/reduce.h"

#define CUDA_TILE_MAX_GRAINS 256u

/* The least slot in which a tile of 2^0 grains of any job fits. */
#define CUDA_SLOT_MIN_BYTES (2u * 1024 * 1024)

/* Two for each repeat, or one for each window that is made. */
#define CUDA_TILE_MAX_PHASES PROGRAM_MAX_MADE_WINDOWS
_Static_assert(2 * PROGRAM_MAX_REPEATS <= CUDA_TILE_MAX_PHASES, "no pass has both");

/* Records of a phase: what one launch runs. */
struct cuda_tile_set {
    uint64_t grains_offset;
    unsigned n, most;
    /* Of the grain so far that has the most. */
    unsigned n_blocks, n_window_blocks;
};

/* A pass that is run before the tile's own, so often, over what that reads of a grain: with what
 * lies around it. A step goes from one memory to the other and back, so it has records for both
 * ways; what is counted is counted in a run of its own, over the grain itself. */
struct cuda_tile_phase {
    const struct pass *pass;
    uint32_t n_times;
    unsigned n_ways;
    unsigned n_parts; /* of a box, at most */
    struct code_header header;
    struct encode_places places;
    uint64_t results_offset; /* the counters of the grains' blocks */
    struct cuda_tile_set sets[2], counted[2];
};

struct cuda_tile {
    const struct program *program;
    unsigned pass;
    char *slot; /* pinned */
    uint64_t slot_bytes;
    unsigned n_grains, max_grains;
    bool is_chained;                     /* see cuda_tile_chain() */
    uint64_t grains_offset, grain_bytes; /* records */
    uint64_t inputs_end, inputs_limit;   /* of what is used; of what is reserved */
    uint64_t results_offset, outputs_end, outputs_limit;
    uint64_t values_offset, values_bytes; /* values_bytes: of a grain */
    uint64_t values_end;                  /* of the grain in hand */
    uint64_t nowhere_offset;              /* what is written there is not read */
    uint64_t tables;                      /* of all passes: bits of program->reductions */
    /* Of the grain so far that has the most. */
    unsigned n_blocks, n_task_blocks, n_count_blocks, n_window_blocks;
    struct interpreter_range outside_read, outside_written; /* of all grains */
    struct code_header header;
    struct encode_places places;
    struct encode_nodes nodes;     /* of the device */
    unsigned n_phases, next_phase; /* next_phase: to which the grain in hand is added */
    struct cuda_tile_phase phases[CUDA_TILE_MAX_PHASES]; /* last: only what is used is written */
};

/* Bytes of slot that n_grains grains of a pass need at most. */
uint64_t cuda_tile_need_bytes(const struct program *program, unsigned pass, uint64_t n_grains,
                              const struct engine_room *room);

/* Writes the code. reduced: views of earlier passes' results, one per program->reductions, as for
 * cpu_engine_run(); the uniform ones and tables are read here. max_grains grains will fit. -ENOSPC:
 * they do not fit the slot. */
int cuda_tile_begin(struct cuda_tile *t, const struct program *program, unsigned pass,
                    const struct engine_view *reduced, unsigned max_grains,
                    const struct engine_room *room, char *slot, uint64_t slot_bytes) GAD_MUST_CHECK;

/* Memory in the slot for one operand's box of the grain that is added next. */
void *cuda_tile_place_input(struct cuda_tile *t, uint64_t n_bytes);
void *cuda_tile_place_output(struct cuda_tile *t, uint64_t n_bytes);

/* The next grain. Views as for cpu_engine_run() (broadcast axes have stride 0), with bases in the
 * slot; of what is read near, what lies around the grain is there, too. Several grains may share an
 * input's box. What is on the device already, or stays there, has
 * a base outside of the slot, the panels and C of a matrix product and what it keeps: at a distance
 * from it that is the same on the device. reduced: of those results that are not uniform, and of
 * scans their states, dense in visiting order but for products'; states of the grain that begins at
 * the scanned axis's beginning are not read. Elements lie at multiples of their size, or the device
 * would fault. */
void cuda_tile_add(struct cuda_tile *t, const struct engine_box *box,
                   const struct engine_view *inputs, const struct engine_view *outputs,
                   const struct engine_view *reduced);

/* Of a pass that scans, for the grain that is added next: the states of its i-th reduction as the
 * grain before leaves them on the device, instead of states in the slot. Grains are scanned one
 * after the other then. */
const void *cuda_tile_chain(struct cuda_tile *t, unsigned i);

/* The two copies. */
uint64_t cuda_tile_to_device_bytes(const struct cuda_tile *t); /* from offset 0 */
void cuda_tile_from_device(const struct cuda_tile *t, uint64_t *ret_offset, uint64_t *ret_n_bytes);

/* What is launched: of the tile's own pass; and all, one after the other, from {0} on. False: there
 * is no more. */
struct interpreter_launch cuda_tile_describe(const struct cuda_tile *t);
struct cuda_tile_at {
    unsigned phase;
    uint32_t time;
    bool is_counted;
    unsigned n_scanned; /* grains, of those that are chained */
};
bool cuda_tile_next_launch(const struct cuda_tile *t, struct cuda_tile_at *at,
                           struct interpreter_launch *ret_launch);

/* Why the device does not take the repeats of a pass, for people; NULL: it does. */
const char *cuda_tile_no_repeats(const struct program *program, const struct pass *pass);

/* launch.c: puts the kernels into the stream. 0 or a runtime error. */
int cuda_tile_launch(const struct cuda_tile *t, void *device_slot,
                     cuda_stream stream) GAD_MUST_CHECK;

/* Once the results are back: of one grain, as cpu_engine_run() gives them. layout: of that grain's
 * box; NULL as ret_node for a pass without reductions. 0 or negative-integer-power. */
int cuda_tile_result(const struct cuda_tile *t, unsigned grain, const struct reduce_layout *layout,
                     void *ret_node, struct engine_warnings *warnings) GAD_MUST_CHECK;

/* The same of a pass that scans: the state that the pass's i-th reduction has behind the grain, one
 * value for each cell, in visiting order of the kept axes. */
const void *cuda_tile_states(const struct cuda_tile *t, unsigned grain, unsigned i);

/* interpreter.cu; in programs with the test double, the same source compiled for the host. Loads
 * and runs every kernel once in the stream (scratch: CUDA_SLOT_MIN_BYTES of device
 * memory), so that no later launch loads anything. 0 or a runtime error. */
int cuda_interpreter_warm_up(void *scratch, cuda_stream stream) GAD_MUST_CHECK;
/* Bytes of device memory that kernels may need beside the slots (local memory), for information. */
int cuda_interpreter_local_bytes(uint64_t *ret_n_bytes) GAD_MUST_CHECK;
/* "sm_75 sm_80 ... compute_120": what was compiled in. */
const char *cuda_interpreter_architectures(void);
