/* What the files of a tile share: see tile.h. */
#pragma once

#include "kernels/cuda/tile.h"
#include "kernels/made_box.h"

/* A pass as it is encoded. */
struct tile_code {
    const struct pass *pass;
    const struct code_header *header;
    const struct encode_places *places;
};

/* Where the operands of a box are. */
struct tile_views {
    const struct engine_view *inputs, *reduced, *made; /* made: see tile_write_windows() */
    const struct engine_view *outputs; /* those of the program from first_output on */
    unsigned first_output;
    /* Of steps: states are read near within the box that has been made, as if it were all. */
    const struct made_box *step_of;
};

/* Of a block, unless the grain has so many that they are longer. */
static inline uint64_t tile_block_elements(const struct code_header *header)
{
    bool is_heavy = header->n_states == 0 && header->n_insns >= CODE_HEAVY_INSNS;
    return is_heavy ? CODE_HEAVY_BLOCK_ELEMENTS : CODE_BLOCK_ELEMENTS;
}

static inline struct code_grain *tile_grain_at(const struct cuda_tile *t, unsigned grain)
{
    return (struct code_grain *)(t->slot + t->grains_offset + grain * t->grain_bytes);
}

static inline struct code_place *tile_place_in(const struct code_header *header,
                                               const struct code_grain *grain, unsigned index)
{
    return (struct code_place *)((char *)(grain + 1) + (uint64_t)index * header->place_bytes);
}

/* Of a grain: places of a pass, and what tasks are told of its axes. */
uint32_t tile_place_bytes(const struct pass *pass);
uint32_t tile_runs_bytes(const struct encode_places *places, unsigned ndim);
/* tile_grain.c: values of the grain in hand. */
#define TILE_VALUE_ALIGN 64u
void *tile_take_value(struct cuda_tile *t, uint64_t n_bytes);
/* A record but for tasks. */
void tile_write_grain(struct cuda_tile *t, const struct tile_code *code,
                      const struct engine_box *box, const struct tile_views *views,
                      struct code_grain *ret_grain);
/* The place of an operand with this view. */
void tile_write_view(const struct cuda_tile *t, const struct code_header *header,
                     const struct engine_box *box, const struct engine_view *view, enum dtype dtype,
                     struct code_place *place);

/* tile_near.c: of an input, `of`, that has the view. place: header->place_bytes. */
void tile_write_near(const struct cuda_tile *t, const struct code_header *header,
                     const struct engine_box *box, const struct program_near *near,
                     const struct program_input *of, const struct engine_view *view,
                     struct code_place *place);

/* tile_window.c: a grain's windows, once its places are written; operands that are no inputs are in
 * `made`, by the windows' numbers. */
void tile_write_windows(const struct cuda_tile *t, const struct tile_code *code,
                        const struct engine_box *box, const struct engine_view *inputs,
                        const struct engine_view *made, struct code_grain *grain);
uint32_t tile_window_bytes(const struct pass *pass);
/* For a grid of the kernels that make windows, and of that which seeks ranks: of so many blocks. */
void tile_window_grids(const struct cuda_tile *t, const struct encode_places *places,
                       uint32_t n_blocks, struct interpreter_launch *launch);

/* tile.c: encodes a pass at an offset of the slot; where that is NULL it counts. */
int tile_encode(const struct program *program, const struct pass *pass,
                const struct engine_view *reduced, uint64_t n_cells, char *slot, uint64_t at,
                struct code_header *h, struct encode_places *ret_places,
                struct encode_nodes *ret_nodes, uint64_t *ret_end) GAD_MUST_CHECK;

/* tile_phases.c: the codes of a tile's phases from *at on, then their records, which moves it. */
int tile_encode_phases(struct cuda_tile *t, const struct engine_view *reduced,
                       uint64_t *at) GAD_MUST_CHECK;
void tile_place_records(struct cuda_tile *t, uint64_t n_grains, uint64_t *at);
/* Counters of n_grains grains, among the results. */
void tile_place_counters(struct cuda_tile *t, uint64_t n_grains, uint64_t *at);
/* The records of the grain in hand. States come into the views of the pass's inputs, operands of
 * its windows into views by the windows' numbers. */
void tile_add_repeats(struct cuda_tile *t, const struct engine_box *box,
                      const struct engine_view *reduced, struct engine_view *inputs);
void tile_add_operands(struct cuda_tile *t, const struct engine_box *box,
                       const struct engine_view *inputs, const struct engine_view *reduced,
                       struct engine_view *ret_made);
/* Adds what was counted of a grain. */
void tile_add_counters(const struct cuda_tile *t, unsigned grain, uint64_t *counts);
