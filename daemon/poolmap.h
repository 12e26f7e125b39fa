/* The map of the pool: carries as extents from a buddy allocator. Kept by the broker; the worker
 * only carries out. Pure code, no pool memory is touched.
 *
 * Carries come from the lower end, its part for carries: half of the pool; where that is more, all
 * but 1/16 of it and POOLMAP_SLOT_BYTES at least, since a tile of a matrix product is worth most of
 * the pool. Of a device's pool it is half always: all that it computes passes slots, and products
 * have memory of the device's own, all of which is lent as carries by a map like this one. What
 * lies above belongs to the slots; slot blocks below are lent too while no carry claims them (the
 * worker waits for a lent block before it starts the job whose carry claims it). So what lies
 * above, and with it the express reserve, never goes to a carry.
 */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

#define POOLMAP_MIN_EXTENT_BYTES 4096u
#define POOLMAP_SLOT_BYTES       (8u * 1024 * 1024) /* at least, beside large carries */

struct poolmap;

struct extent {
    uint64_t offset_bytes, size_bytes; /* of the pool; size 0: none */
};

/* The part of a pool from which carries are lent. */
uint64_t poolmap_part_bytes(uint64_t pool_bytes, bool is_device);
/* A slot of the CPU's pool. One has room for any grain; twice as much is faster, since what is read
 * goes where nothing was read for longer, and is taken where every thread has slots enough beside
 * the largest carries, and in no small pool. */
uint64_t poolmap_cpu_slot_bytes(uint64_t pool_bytes, unsigned n_threads, uint64_t least_bytes);
int poolmap_new(uint64_t part_bytes, struct poolmap **ret_map) GAD_MUST_CHECK;
struct poolmap *poolmap_free(struct poolmap *map); /* NULL */

/* The largest single carry of a job that is no matrix product, three quarters of the largest power
 * of two within half the pool: beside it others of a modest size have room, however long its job
 * takes. Broker and worker plan with it. */
uint64_t poolmap_carry_limit_bytes(uint64_t pool_bytes);
/* Of a matrix product on the CPU: of a large part for carries all but a power of two of about 1/16,
 * which is left to others. */
uint64_t poolmap_product_limit_bytes(uint64_t pool_bytes);
/* On a device with so many bytes for them: likewise, but for about 1/32. */
uint64_t poolmap_device_limit_bytes(uint64_t device_bytes);
uint64_t poolmap_carry_used_bytes(const struct poolmap *map);
/* Whether somebody who holds held_bytes of the carries, at most largest_bytes of them in one,
 * leaves enough to others with size_bytes more: beside the largest at most half of what others
 * left. */
bool poolmap_is_within_share(const struct poolmap *map, uint64_t held_bytes, uint64_t largest_bytes,
                             uint64_t size_bytes);

/* 0; -EAGAIN: no room now, wait; -E2BIG: would not fit the empty part either. */
int poolmap_lend(struct poolmap *map, uint64_t size_bytes,
                 struct extent *ret_extent) GAD_MUST_CHECK;
/* As poolmap_lend(), while a carry of waiting_bytes waits: only where that one will not lie. That
 * is known of a carry of nothing, and of one that is larger than the largest run, which begins at
 * 0; else -EAGAIN. */
int poolmap_lend_beside(struct poolmap *map, uint64_t size_bytes, uint64_t waiting_bytes,
                        struct extent *ret_extent) GAD_MUST_CHECK;
void poolmap_return(struct poolmap *map, const struct extent *extent);
