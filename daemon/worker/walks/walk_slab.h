/* Jobs that walk by slabs (kernels/slabs/slab.h), as far as others than the walk see of it. */
#pragma once

#include "daemon/worker/jobs/tile.h"

/* As a job begins and ends; nothing, where the program has no slab. -ENOMEM. */
int walk_slab_new(struct wjob *job) GAD_MUST_CHECK;
void walk_slab_free(struct wjob *job);

/* Views of what lies in the carry, for a box of one of the stage's passes: as walk_ops' views(),
 * for a pass that need not be the tile's. */
void walk_slab_views(const struct tile *t, unsigned pass, const int64_t *start,
                     struct engine_view *ret_outputs, struct engine_view *ret_results);
