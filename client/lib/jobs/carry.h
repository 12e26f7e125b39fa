/* What a result has beside its elements, from what its sources have: names of axes, coordinates,
 * units. */
#pragma once

#include "client/array.h"
#include "client/carried.h"

/* Of output i, a new array of this dtype and shape, whose format writes such things: of an
 * expression that names a source, casts it, reduces axes of it, or works element by element. Of all
 * else nothing is known. To be ended by carried_free(); NULL: there is nothing. */
struct carried *carry_expression(const struct gad_job_options *options, unsigned i,
                                 const struct array *to);

/* The argument that `t` or `float32(t)` is or casts, and nothing else; NULL: it is something else.
 */
const struct gad_argument *carry_whole_source(const struct gad_job_options *options,
                                              const char *expr);

/* Whether the format of this name writes such things; NULL: it does not. */
bool carry_is_written(const char *format);
