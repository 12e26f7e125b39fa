/* Sources that are used where their file is mapped: of passes that transpose (swaths.c), X of walks
 * by slabs. */
#pragma once

#include "daemon/worker/jobs/tile.h"

/* Maps the sources of the job that are to be mapped. False: one cannot be, or would have to come
 * from a disk where it had better be read. The ports are open. */
bool mapping_open(struct wjob *job);

/* Reads one element and forgets it: then its page is in the cache. As the fill of a port. */
int mapping_touch(const struct port *port, const struct port_box *at,
                  struct thread_context *th) GAD_MUST_CHECK;
/* Sees to it that a box is in memory, as rows of its first axis. May block: all of it; else it
 * looks at its two ends alone. As the fill of a port. */
int mapping_fill(const struct port *port, const struct port_box *box,
                 struct thread_context *th) GAD_MUST_CHECK;
/* Where the box is, in the port's own axes. */
void mapping_view(const struct port *port, const struct port_box *box,
                  struct engine_view *ret_view);
/* To be asked behind the last use: beyond the end of a file that was cut, the rest of its last page
 * reads as zeros. */
int mapping_check(const struct port *port, struct gad_error *error) GAD_MUST_CHECK;
