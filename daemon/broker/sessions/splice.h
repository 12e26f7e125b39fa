/* Taking a packed map apart without decoding it, to pass its pairs on with more beside them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* `bytes` are one complete packed map. */
void splice_map(const char *bytes, size_t n_bytes, uint32_t *ret_n_pairs, const char **ret_pairs,
                size_t *ret_n_pair_bytes);
