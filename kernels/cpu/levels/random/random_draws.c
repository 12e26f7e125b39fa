/* Draws of elements whose numbers count up by one: all the way from the number of the first to a
 * distribution, a stretch of 64 or 128 at a time.
 *
 * Elsewhere in the engine the numbers, the bits and what becomes of them are strips, each written
 * and read again. Random numbers are mostly an array from its beginning to its end, where nothing
 * but the first number is needed: here the bits of a stretch stay in registers or in the nearest
 * cache, and what they become goes to its place, past the cache if it should. The bits are those of
 * random_bits.c, the numbers those of random.c. Called by run.c, for strips that draws.c found
 * to be such.
 */
#include "kernels/cpu/levels/lines.h"
#include "kernels/cpu/levels/random/random_distribution.h"
#include "kernels/cpu/levels/random/random_philox.h"

#define BLOCK_OF_EACH(name, T, R)                                                                  \
    static inline void name##_block_##R(R *d, const T *bits)                                       \
    {                                                                                              \
        KERNEL_LOOP                                                                                \
        for (unsigned i = 0; i < BLOCK; i++)                                                       \
            d[i] = random_##name##_##R(bits[i]);                                                   \
    }
BLOCK_OF_EACH(uniform, u32, f32)
BLOCK_OF_EACH(uniform, u64, f64)
BLOCK_OF_EACH(exponential, u32, f32)
BLOCK_OF_EACH(exponential, u64, f64)

#define COPY_BLOCK(T)                                                                              \
    static inline void bits_block_##T(T *d, const T *bits)                                         \
    {                                                                                              \
        memcpy(d, bits, BLOCK * sizeof(T));                                                        \
    }
COPY_BLOCK(u32)
COPY_BLOCK(u64)

#define STRETCH(T) (STRETCH_WORDS * sizeof(u32) / sizeof(T))

#define DRAWN(prefix, name, T, R, leave)                                                           \
    static void prefix##name##_##R(KERNEL_ARGS)                                                    \
    {                                                                                              \
        R *d = dst;                                                                                \
        u64 first = *(const u64 *)pa;                                                              \
        struct keys keys;                                                                          \
        keys_init(&keys, *(const u64 *)pb, (u32) * (const u64 *)pc);                               \
        for (size_t i = 0; i < n; i += STRETCH(T)) {                                               \
            u32 words[WORDS_ROOM] __attribute__((aligned(LINE_BYTES)));                            \
            const T *bits = draws_##T(&keys, first + i, words);                                    \
            size_t n_now = n - i < STRETCH(T) ? n - i : STRETCH(T);                                \
            for (size_t k = 0; k < n_now; k += BLOCK) {                                            \
                R block[BLOCK] __attribute__((aligned(LINE_BYTES)));                               \
                name##_block_##R(block, bits + k);                                                 \
                leave(d + i + k, block, sizeof(block));                                            \
            }                                                                                      \
        }                                                                                          \
    }
#define DRAWN_EACH(prefix, leave)                                                                  \
    DRAWN(prefix, bits, u32, u32, leave)                                                           \
    DRAWN(prefix, bits, u64, u64, leave)                                                           \
    DRAWN(prefix, uniform, u32, f32, leave)                                                        \
    DRAWN(prefix, uniform, u64, f64, leave)                                                        \
    DRAWN(prefix, normal, u32, f32, leave)                                                         \
    DRAWN(prefix, normal, u64, f64, leave)                                                         \
    DRAWN(prefix, exponential, u32, f32, leave)                                                    \
    DRAWN(prefix, exponential, u64, f64, leave)

/* clang-format off */
#define ROWS(prefix)                                                                               \
    {                                                                                              \
        [OP_RANDOM_U32] = {[DTYPE_UINT64] = prefix##bits_u32},                                     \
        [OP_RANDOM_U64] = {[DTYPE_UINT64] = prefix##bits_u64},                                     \
        [OP_STANDARD_UNIFORM] = {[DTYPE_UINT32] = prefix##uniform_f32,                             \
                                 [DTYPE_UINT64] = prefix##uniform_f64},                            \
        [OP_STANDARD_NORMAL] = {[DTYPE_UINT32] = prefix##normal_f32,                               \
                                [DTYPE_UINT64] = prefix##normal_f64},                              \
        [OP_STANDARD_EXPONENTIAL] = {[DTYPE_UINT32] = prefix##exponential_f32,                     \
                                     [DTYPE_UINT64] = prefix##exponential_f64},                    \
    }
/* clang-format on */

DRAWN_EACH(drawn_, memcpy)
const kernel_table KERNEL_SYMBOL(drawn) = ROWS(drawn_);

#if defined(KERNEL_HAS_LINES)
DRAWN_EACH(past_, lines_stream)
const kernel_table KERNEL_SYMBOL(past_drawn) = ROWS(past_);
#else
const kernel_table KERNEL_SYMBOL(past_drawn) = {[OP_ADD] = {NULL}};
#endif
