/* Serves the blocks of an array that lies in a file, for file systems that the daemon does not read
 * itself. The state is the struct gad_array: its fd, offset_bytes, shape and strides (a C or
 * Fortran order, or a selection of one: steps and either sign, no element twice). */
#pragma once

#include "client/array.h"

extern const struct provider file_provider;
