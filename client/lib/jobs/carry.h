/* What a result has beside its elements, from what its sources have: names of axes, coordinates,
 * units. */
#pragma once

#include "client/array.h"
#include "client/carried.h"

/* Of output i, which is a new array: of an expression that names a source, casts it, reduces axes
 * of it, or works element by element. Of all else nothing is known. */
void carry_expression(const struct gad_job_options *options, unsigned i, struct gad_array *to);

/* The argument that `t` or `float32(t)` is or casts, and nothing else; NULL: it is something else.
 */
const struct gad_argument *carry_whole_source(const struct gad_job_options *options,
                                              const char *expr);

/* Whether the format of a new array writes such things. */
bool carry_is_written(const struct gad_array *to);
