/* The device's functions of mathematics by op and dtype, over arrays. */
#pragma once

#include "proto/dtype.h"
#include "kernels/ops.h"

#include <stdbool.h>
#include <stddef.h>

/* Results of n elements, one after the other. false: no such function among them. */
bool math_run(enum op op, enum dtype dtype, size_t n, void *dst, const void *a, const void *b);
