/* The same exact values from another source: MPFR, with 300 bits. */
#pragma once

#include "tests/unit/kernels/cpu/accuracy/accuracy.h"

long double accuracy_mpfr(const struct accuracy_function *f, const double x[2]);
