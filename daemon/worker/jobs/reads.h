/* What of an argument a grain reads: its part, and with inputs that are near what lies around it.
 */
#pragma once

#include "daemon/worker/jobs/tile.h"

/* The box of a port for a box of the pass, in the port's own axes. Of a port that is not mapped it
 * has what all inputs need that are read together; it may go on beyond the end of an axis
 * (kernels/neighbours.h). */
void reads_box(const struct program *program, const struct pass_port *input, int ndim,
               const int64_t *start, const int64_t *count, struct port_box *ret_box);
/* As the port's own. */
int reads_fill(const struct pass_port *input, const struct port_box *box, void *memory,
               const struct port_io *io, struct gad_error *error) GAD_MUST_CHECK;
void reads_prefetch(const struct pass_port *input, const struct port_box *box);

/* The port's box is where views[input->index] says, in the axes of the pass: from that the views of
 * all inputs that are read together, for the grain that begins at `start`. */
void reads_views(const struct program *program, const struct pass_port *input, int ndim,
                 const int64_t *start, const struct port_box *box, struct engine_view *views);
