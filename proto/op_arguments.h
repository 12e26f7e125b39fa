/* What the arguments that a function of the catalogue must have are called. */
#pragma once

#include "proto/ops.h"

/* NumPy's names, "a, q", where they may be given by name; NULL where they come by position only, as
 * a ufunc's do. Static text. */
const char *op_arguments(unsigned row);
