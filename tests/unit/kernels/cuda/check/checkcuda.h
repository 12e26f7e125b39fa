/* The parts of the runner of the device's kernels: a rig that takes tiles there and back, and what
 * is compared. */
#pragma once

#include "kernels/cuda/runtime.h"
#include "kernels/cuda/tile.h"
#include "tests/unit/kernels/cpu/check/laid.h"

#define RIG_SLOT_BYTES   (32u * 1024 * 1024)
#define RIG_FILL_BYTE    0x5a /* what the device's slot holds before a tile comes */
#define RIG_DOUBLES_BYTE 0xa5 /* what the test double puts where a kernel may write */
#define RIG_ALIGNED(n)   (((n) + ENGINE_SLOT_ALIGN - 1) / ENGINE_SLOT_ALIGN * ENGINE_SLOT_ALIGN)

struct rig {
    struct cuda_device device;
    cuda_stream stream;
    cuda_event begin, end;
    char *slot, *fill, *back; /* pinned */
    char *device_slot;
};

/* 0; a runtime's error, with words on stderr. */
int rig_open(struct rig *rig, int index);
void rig_close(struct rig *rig);

extern bool rig_is_unfilled; /* tiles come into slots that nobody has written */

/* Fills the device's slot with RIG_FILL_BYTE, takes the tile there, computes, brings the results
 * back into the slot and everything into rig->back. Ends the program when the runtime fails: after
 * that no result of the device may be believed. */
void rig_run(struct rig *rig, const struct cuda_tile *tile);
/* Nothing but results and outputs has changed on the device. */
bool rig_is_input_whole(const struct rig *rig, const struct cuda_tile *tile);
/* Ends the program with the runtime's words unless error is 0. */
void rig_must(int error, const char *what);

#define GRAIN_MAX_REDUCED 4
#define NODE_MAX_BYTES    (2u * 1024 * 1024)

/* One grain of a tile of the checks. */
struct grain {
    struct shape shape;
    const int64_t *start; /* NULL: 0 */
    struct laid inputs[REQUEST_MAX_ARGS], outputs[REQUEST_MAX_OUTPUTS];
    struct laid reduced[GRAIN_MAX_REDUCED]; /* of program->reductions: not uniform ones, states */
};

/* Gives the program's pass a space that boxes of all grains lie in. */
void grain_space(struct built *b);
/* As laid_draw(), but aligned to items: what lies in a slot is, and devices ask for it. */
void grain_draw(struct laid *l, const struct shape *s, enum dtype dtype, bool is_output);
/* What a grain needs of a slot. */
struct engine_room grain_room(const struct grain *g, const struct program *program, unsigned pass);
/* Of its node, in a tile. */
void grain_layout(const struct grain *g, const struct cuda_tile *tile,
                  struct reduce_layout *ret_layout);
/* Whether the pass reads it from the slot. */
bool grain_reads(const struct program *program, unsigned pass, unsigned reduction);
/* Takes its boxes from the slot: to be called before its inputs are stored. */
void grain_place(struct grain *g, struct cuda_tile *tile);
void grain_add(const struct grain *g, struct cuda_tile *tile);
/* Begins a tile in the rig's slot that has room for the grains; ends the program when it does not.
 */
void rig_begin(struct rig *rig, struct cuda_tile *tile, const struct program *program,
               unsigned pass, const struct engine_view *reduced, const struct grain *grains,
               unsigned n_grains);
/* Whether what lies in the output's arena beside its elements is as it was. Changes the arena. */
bool grain_is_margin_whole(const struct grain *g, unsigned output, enum dtype dtype);

/* near_box.c: an array, whole, and what a grain of the program's first pass reads of it as an
 * input: its box, which goes on beyond the end of an axis where the mode is wrap. lay: how it lies,
 * before the grain is placed; fill: what comes from beyond the end of an axis is from its
 * beginning. */
struct whole_array {
    char *memory;
    int64_t strides[ARRAY_MAX_NDIM]; /* of its own axes */
    bool is_swapped;
};
struct near_box {
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
};
void near_box_lay(const struct program *program, unsigned index, const struct whole_array *array,
                  struct grain *grain, struct near_box *ret_box);
void near_box_fill(const struct program *program, unsigned index, const struct whole_array *array,
                   struct grain *grain, const struct near_box *box);
/* The grain's view of the whole. */
struct engine_view whole_view(const struct program *program, unsigned index,
                              const struct whole_array *array, const struct grain *grain);

struct checkcuda {
    struct check check;
    struct rig *rig;
};

void checkcuda_cases(struct checkcuda *c);
void checkcuda_accuracy(struct checkcuda *c);
void checkcuda_reductions(struct checkcuda *c);
void checkcuda_axes(struct checkcuda *c);
void checkcuda_counts(struct checkcuda *c);
void checkcuda_kth(struct checkcuda *c);
void checkcuda_scans(struct checkcuda *c);
void checkcuda_tables(struct checkcuda *c);
void checkcuda_near(struct checkcuda *c);
void checkcuda_made(struct checkcuda *c);
void checkcuda_programs(struct checkcuda *c);
void checkcuda_multiply(struct checkcuda *c);
/* max_bytes: of the device, 0: as much as is polite. */
void checkcuda_bench(struct checkcuda *c, uint64_t max_bytes);
