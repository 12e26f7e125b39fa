/* Draws for the tests of random numbers: a kernel by operation and level, over buffers with room
 * for a granule more. */
#pragma once

#include "kernels/cpu/run/run.h"
#include "kernels/cpu/levels/template.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

#define SEED 0x0123456789abcdefu

static inline const struct cpu_engine *rig_engine(int level)
{
    const struct cpu_engine *engine = cpu_engine_get((enum cpu_level)level);
    return (int)cpu_engine_level(engine) == level ? engine : NULL;
}

static inline void *rig_room(size_t n)
{
    void *room = aligned_alloc(64, (KERNEL_ROUND(n) + KERNEL_GRANULE) * 8);
    cr_assert(room != NULL);
    return room;
}

static inline struct kernel_events rig_run(const struct cpu_engine *engine, enum op op,
                                           enum dtype compute, size_t n, void *dst, const void *a,
                                           const void *b, const void *c)
{
    struct insn insn = {.op = (uint16_t)op, .compute = (uint8_t)compute};
    struct kernel_events events = {0};
    bool is_exchanged;
    kernel_fn *kernel = engine_find_kernel(engine, &insn, &is_exchanged);
    cr_assert(kernel != NULL);
    kernel(n, dst, a, b, c, &events);
    return events;
}

static inline u64 *rig_filled(size_t n, u64 value)
{
    u64 *all = rig_room(n);
    for (size_t i = 0; i < KERNEL_ROUND(n); i++)
        all[i] = value;
    return all;
}

static inline u64 *rig_counting(size_t n, u64 first)
{
    u64 *all = rig_room(n);
    for (size_t i = 0; i < KERNEL_ROUND(n); i++)
        all[i] = first + i;
    return all;
}

/* RANDOM_U32 or RANDOM_U64 of numbered elements. */
static inline void rig_bits(const struct cpu_engine *engine, enum op op, size_t n, void *dst,
                            const u64 *numbers, u64 seed, u64 stream)
{
    u64 *seeds = rig_filled(n, seed), *streams = rig_filled(n, stream);
    (void)rig_run(engine, op, DTYPE_UINT64, n, dst, numbers, seeds, streams);
    free(seeds);
    free(streams);
}

/* A distribution of elements 0 to n - 1, as float64, by the best level: float32's or float64's. */
static inline f64 *rig_draw(enum op op, bool is_f32, size_t n, u64 seed, u64 stream)
{
    const struct cpu_engine *engine = cpu_engine_get(CPU_LEVEL_AVX512);
    u64 *numbers = rig_counting(n, 0);
    void *bits = rig_room(n);
    f64 *drawn = rig_room(n);
    rig_bits(engine, is_f32 ? OP_RANDOM_U32 : OP_RANDOM_U64, n, bits, numbers, seed, stream);
    if (is_f32) {
        f32 *narrow = (f32 *)numbers;
        (void)rig_run(engine, op, DTYPE_UINT32, n, narrow, bits, NULL, NULL);
        for (size_t i = 0; i < n; i++)
            drawn[i] = (f64)narrow[i];
    } else {
        (void)rig_run(engine, op, DTYPE_UINT64, n, drawn, bits, NULL, NULL);
    }
    free(numbers);
    free(bits);
    return drawn;
}
