/* What of an argument a grain reads: its part, and where it is read near what lies around it.
 */
#pragma once

#include "daemon/worker/jobs/tile.h"

/* The box of a port for a box of the pass, in the port's own axes. Where that is_near it has what
 * all nears of the pass need; it may go on beyond the end of an axis (kernels/neighbours.h). */
void reads_box(const struct program *program, const struct pass *pass,
               const struct pass_port *input, const int64_t *start, const int64_t *count,
               struct port_box *ret_box);
/* Whether it does: only a client that is asked for it has such a box as one. */
bool reads_goes_on(const struct pass_port *input, const struct port_box *box);
/* What such a box has of the array as boxes of the array, one after the other, each with its view
 * in that of the whole: *part is 0 at first. False: it was the last. */
bool reads_next_part(const struct pass_port *input, const struct port_box *box,
                     const struct engine_view *whole, uint32_t *part, struct port_box *ret_box,
                     struct engine_view *ret_view);
/* As the port's own. */
int reads_fill(const struct pass_port *input, const struct port_box *box, void *memory,
               const struct port_io *io, struct gad_error *error) GAD_MUST_CHECK;
void reads_prefetch(const struct pass_port *input, const struct port_box *box);

/* The port's box is where the view says, in the axes of the pass: the view becomes that of the
 * grain which begins at `start`. */
void reads_view(const struct pass_port *input, int ndim, const int64_t *start,
                const struct port_box *box, struct engine_view *view);
