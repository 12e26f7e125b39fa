/* A queue with the maps of a pool and of a device, and items that are put into it. */
#pragma once

#include "daemon/broker/jobs/queue.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#define POOL_BYTES     (UINT64_C(1) << 20) /* carries: half of it */
#define LARGEST        poolmap_carry_limit_bytes(POOL_BYTES)
#define DEVICE_BYTES   (UINT64_C(60) * 4096) /* no power of two */
#define DEVICE_EIGHT   (UINT64_C(8) * 4096)
#define DEVICE_LARGEST poolmap_device_limit_bytes(DEVICE_BYTES)

static struct queue *queue;
static struct carry_maps maps;
static struct queue_item items[64];

static inline void set_up_with(unsigned max_waiting, unsigned max_active, unsigned guarantee)
{
    const struct queue_limits limits = {max_waiting, max_active, guarantee};
    cr_assert(eq(int, queue_new(&limits, &queue), 0));
    cr_assert(eq(int, poolmap_new(poolmap_part_bytes(POOL_BYTES, false), &maps.of[0]), 0));
    cr_assert(eq(int, poolmap_new(DEVICE_BYTES, &maps.of[1]), 0));
}

static inline void set_up(void)
{
    set_up_with(100, 100, 2);
}

static inline void tear_down(void)
{
    for (unsigned i = 0; i < 64; i++)
        queue_remove(queue, &maps, &items[i]);
    for (unsigned i = 0; i < CARRY_N; i++)
        cr_assert(eq(u64, poolmap_carry_used_bytes(maps.of[i]), 0));
    cr_assert(eq(uint, queue_n_waiting(queue), 0));
    cr_assert(eq(uint, queue_n_active(queue), 0));
    cr_assert(eq(uint, queue_n_carries(queue), 0));
    queue = queue_free(queue);
    for (unsigned i = 0; i < CARRY_N; i++)
        maps.of[i] = poolmap_free(maps.of[i]);
}

static inline void push(unsigned i, uid_t uid, int priority, uint64_t carry_bytes)
{
    items[i].priority = priority;
    items[i].sizes.of[CARRY_IN_POOL] = carry_bytes;
    cr_assert(eq(int, queue_push(queue, uid, &items[i], NULL), 0));
}

static inline void push_product(unsigned i, uid_t uid, uint64_t device_bytes, uint64_t carry_bytes)
{
    items[i].sizes.of[CARRY_ON_DEVICE] = device_bytes;
    push(i, uid, 0, carry_bytes);
}

static inline uint64_t used(enum carry_memory memory)
{
    return poolmap_carry_used_bytes(maps.of[memory]);
}

/* The index of the next one, or a negative errno. */
static inline int admit(void)
{
    struct queue_item *item = NULL;
    int r = queue_admit(queue, &maps, &item);
    return r == 0 ? (int)(item - items) : r;
}
