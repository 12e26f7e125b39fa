/* What every fuzz target defines: one input, any bytes; returns 0. It must end the process (assert,
 * a sanitizer) when something is wrong, and leave nothing behind. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);
