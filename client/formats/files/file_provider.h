/* Serves the blocks of an array that lies in a file, for file systems that the daemon does not read
 * itself. The state is the struct gad_array: its fd, offset_bytes, shape and strides of any
 * sign; as a source also with elements that lie over each other, strides of 0 too. */
#pragma once

#include "client/array.h"

extern const struct provider file_provider;
