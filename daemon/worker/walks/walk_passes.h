/* What a pass reduces, grain by grain: nodes of grains, tiles and chains in the job's carry. */
#pragma once

#include "daemon/worker/jobs/tile.h"

/* Where the node of the grain in hand is to be written, and how it is laid out; NULL without
 * reductions. count: of the grain's box. The layout is that of the node asked for last. */
void *tile_node(struct tile *t, const int64_t *count);
const struct reduce_layout *tile_node_layout(const struct tile *t);
