/* What the files of a tile share: see tile.h. */
#pragma once

#include "kernels/cuda/tile.h"

static inline struct code_grain *tile_grain_at(const struct cuda_tile *t, unsigned grain)
{
    return (struct code_grain *)(t->slot + t->grains_offset + grain * t->grain_bytes);
}

/* Of a grain: places of a pass with ndim axes, and what tasks are told. */
uint32_t tile_place_bytes(unsigned ndim);
uint32_t tile_runs_bytes(const struct encode_places *places, unsigned ndim);
