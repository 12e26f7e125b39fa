/* Names of arrays in a file of several, `/group/name`: for the rows of formats (format_impl.h). */
#pragma once

#include "client/formats/formats.h"

/* What follows the path in a spec, "" or ":group/name", as the path of a dataset: one leading
 * slash, no empty components; a heap string. NULL: no memory. */
char *dataset_path_normalise(const char *rest);
/* The same into spec->dataset; bad-argument where there is none. */
int dataset_path_parse(const char *rest, const char *whole, bool is_output, struct spec *spec,
                       struct gad_error *error) GAD_MUST_CHECK;
