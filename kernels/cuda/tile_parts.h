/* What the files of a tile share: see tile.h. */
#pragma once

#include "kernels/cuda/tile.h"

static inline struct code_grain *tile_grain_at(const struct cuda_tile *t, unsigned grain)
{
    return (struct code_grain *)(t->slot + t->grains_offset + grain * t->grain_bytes);
}

static inline struct code_place *tile_place_in(const struct cuda_tile *t,
                                               const struct code_grain *grain, unsigned index)
{
    return (struct code_place *)((char *)(grain + 1) + (uint64_t)index * t->header.place_bytes);
}

/* Of a grain: places of a pass, and what tasks are told of its axes. */
uint32_t tile_place_bytes(const struct pass *pass);
/* tile_grain.c: the place of an operand with this view. */
void tile_write_view(const struct cuda_tile *t, const struct engine_box *box,
                     const struct engine_view *view, enum dtype dtype, struct code_place *place);
/* tile_near.c: of program->nears[index], whose input has the view. place: header.place_bytes. */
void tile_write_near(const struct cuda_tile *t, const struct engine_box *box, unsigned index,
                     const struct engine_view *view, struct code_place *place);
/* tile_window.c: of a grain whose places are written, the window that the i-th of them is of. */
void tile_write_window(const struct cuda_tile *t, const struct engine_box *box, unsigned i,
                       const struct engine_view *inputs, const struct code_grain *grain,
                       struct code_window *ret);
uint32_t tile_window_bytes(const struct pass *pass);
uint32_t tile_runs_bytes(const struct encode_places *places, unsigned ndim);
