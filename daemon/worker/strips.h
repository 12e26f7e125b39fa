/* What a tile reads of its source at once, where a pass transposes a file (kernels/plan/strips.c).
 */
#pragma once

#include "daemon/worker/tile.h"

/* Reads it, if that was not done. As the fill of a port. */
int strips_fill(struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
/* Of what was read the part of the grain in hand, whose boxes are set. */
void strips_view(const struct tile *t, const struct thread_context *th, struct cpu_view *ret_view);
