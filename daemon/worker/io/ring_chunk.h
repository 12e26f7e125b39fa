/* Which block a source asks for where the client has the array in chunks. */
#pragma once

#include "daemon/worker/io/ring.h"

#define RING_POSITIONS_AHEAD 256u

bool ring_box_is_inside(int ndim, const struct port_box *box, const struct port_box *outer);

/* `box` is what the walk needs of the array at `position`. Makes it what the array has of the chunk
 * around it, if that fits a slot and the positions from there on need all of it. */
void ring_widen_to_chunk(const struct array *array, uint64_t slot_bytes,
                         const struct ring_walk *walk, uint64_t position, struct port_box *box);
