/* What a job reduces: nodes of grains, tiles and chains in its carry, results for later passes. */
#pragma once

#include "daemon/worker/jobs/wjob.h"

struct tile;

/* Passes; the scheduler's lock is held. The pass, round and tiles of the job are set. End: its
 * tiles are done, so its results are there. */
void nodes_begin_pass(struct wjob *job);
void nodes_end_pass(struct wjob *job);
/* Whether there is memory for the next tile's nodes; of a scan: whether its states are there. */
bool nodes_can_begin_tile(const struct wjob *job);
/* A tile of the pass is done: others may wait for it. */
void nodes_tile_done(struct wjob *job, const struct tile *t);

/* A tile's memory for nodes, from when it begins until it is dropped; the scheduler's lock is held.
 */
void tile_take_nodes(struct tile *t);
void tile_drop_nodes(struct tile *t);

/* Where the node of the grain in hand is to be written, and how it is laid out; NULL without
 * reductions. count: of the grain's box. The layout is that of the node asked for last. */
void *tile_node(struct tile *t, const int64_t *count);
const struct reduce_layout *tile_node_layout(const struct tile *t);
/* It is written. */
void tile_push_node(struct tile *t);
/* All grains of the tile are: its node to those of other tiles. No lock is held. */
void tile_combine(struct tile *t);

/* What the box that begins at `start` reads of earlier passes' results, or has as the states of its
 * own scans: views by their index among the program's reductions; others are left as they are. */
void tile_result_views(const struct tile *t, const int64_t *start, struct cpu_view *ret_views);
