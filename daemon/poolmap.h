/* The map of the pool: carries as extents from a buddy allocator. Kept by the broker; the worker
 * only carries out. Pure code, no pool memory is touched.
 *
 * Carries come from the lower end, together at most half the pool. What lies above belongs to the
 * slots; slot blocks in the lower half are lent too while no carry claims them (the worker waits
 * for a lent block before it starts the job whose carry claims it). So the upper half, and with it
 * the express reserve, never goes to a carry.
 */
#pragma once

#include "proto/error.h"

#include <stdint.h>

#define POOLMAP_MIN_EXTENT_BYTES 4096u

struct poolmap;

struct extent {
    uint64_t offset_bytes, size_bytes; /* of the pool; size 0: none */
};

int poolmap_new(uint64_t pool_bytes, struct poolmap **ret_map) GAD_MUST_CHECK;
struct poolmap *poolmap_free(struct poolmap *map); /* NULL */

/* The largest single carry that a pool of this size lends, three quarters of the largest power of
 * two within half the pool: beside it others of a modest size have room, however long its job
 * takes. What is above is -E2BIG for ever. Broker and worker plan with it. */
uint64_t poolmap_carry_limit_bytes(uint64_t pool_bytes);
uint64_t poolmap_carry_used_bytes(const struct poolmap *map);

/* 0; -EAGAIN: no room now, wait; -E2BIG: would not fit an empty pool either. */
int poolmap_lend(struct poolmap *map, uint64_t size_bytes,
                 struct extent *ret_extent) GAD_MUST_CHECK;
void poolmap_return(struct poolmap *map, const struct extent *extent);
