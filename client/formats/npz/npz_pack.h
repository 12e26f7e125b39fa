/* Deflating a file into another one, on all processors. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

struct npz_packing {
    int from, to;
    uint64_t n_bytes;   /* from the beginning of `from`; more than 0 */
    uint64_t to_offset; /* in `to` */
    int level;          /* 0 to 9, of which ISA-L knows four: 3 and more are the same */
};

/* ret_packed_bytes: less than n_bytes, or 0: it is not worth it. 0 or -errno. */
int npz_pack(const struct npz_packing *packing, uint64_t *ret_packed_bytes,
             uint32_t *ret_crc) GAD_MUST_CHECK;
