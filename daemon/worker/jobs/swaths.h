/* Blocks of tiles of passes that transpose a file (kernels/plan/swaths.c). */
#pragma once

#include "daemon/worker/jobs/tile.h"

/* As the fill of a port, for all of the tile's source: reads it into the block, or sees to it that
 * what is mapped is in memory. Once for each tile. */
int swaths_fill(struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
/* The source of the grain in hand, whose boxes are set. False: it lies in the slot. */
bool swaths_input(const struct tile *t, const struct thread_context *th,
                  struct engine_view *ret_view);
/* The output of the grain in hand. False: it lies in the slot. */
bool swaths_output(const struct tile *t, const struct thread_context *th,
                   struct engine_view *ret_view);
/* The grain was computed: writes the tile's output with its last one, where that is the block. As
 * tile_store(). */
int swaths_store(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
