/* Tables: looking values up in an array of one axis that is there as a whole.
 *
 * The third source is the table's length, one uint64. A search halves what is left of the table for
 * a whole granule at a time: all elements take the same steps, each on its own side, and no step
 * branches on data, so the processor has many loads of the table under way. The table is read as
 * often as a search has steps; it should stay in a cache. Of a table that is not in order the
 * result is some number from 0 to its length.
 *
 * Indices may lie in memory that another process writes to: they are copied before they are
 * bounded, so that what was bounded is what is used.
 */
#include "kernels/cpu/levels/template.h"

#include <string.h>

#define BLOCK KERNEL_GRANULE
/* What the compiler knows of a block ends here. */
#define PINNED(block) __asm__ volatile("" : : "r"(block) : "memory")

/* is_below: whether table element e is counted for x. */
#define SEARCH(name, T, is_below)                                                                  \
    static void name##_##T(KERNEL_ARGS)                                                            \
    {                                                                                              \
        const T *as = pa, *table = pb;                                                             \
        u64 length = *(const u64 *)pc;                                                             \
        i64 *d = dst;                                                                              \
        for (size_t k = 0; k < n; k += BLOCK) {                                                    \
            T block[BLOCK];                                                                        \
            u64 at[BLOCK] = {0}, n_left = length;                                                  \
            memcpy(block, as + k, sizeof(block));                                                  \
            while (n_left > 0) {                                                                   \
                u64 half = (n_left + 1) / 2;                                                       \
                KERNEL_LOOP                                                                        \
                for (unsigned i = 0; i < BLOCK; i++) {                                             \
                    T x = block[i], e = table[at[i] + half - 1];                                   \
                    at[i] += half & (0 - (u64)(is_below));                                         \
                }                                                                                  \
                n_left -= half;                                                                    \
            }                                                                                      \
            memcpy(d + k, at, sizeof(at));                                                         \
        }                                                                                          \
    }
SEARCH(search_left, i64, e < x)
SEARCH(search_right, i64, e <= x)
SEARCH(search_left, u64, e < x)
SEARCH(search_right, u64, e <= x)
/* NaN is the largest number. */
SEARCH(search_left, f64, (e < x) | ((x != x) & (e == e)))
SEARCH(search_right, f64, (e <= x) | (x != x))

#define TAKE(T)                                                                                    \
    static void take_##T(KERNEL_ARGS)                                                              \
    {                                                                                              \
        const i64 *as = pa, last = (i64)(*(const u64 *)pc - 1);                                    \
        const T *table = pb;                                                                       \
        T *d = dst;                                                                                \
        if (last < 0) {                                                                            \
            memset(d, 0, KERNEL_ROUND(n) * sizeof(T));                                             \
            return;                                                                                \
        }                                                                                          \
        for (size_t k = 0; k < n; k += BLOCK) {                                                    \
            i64 at[BLOCK];                                                                         \
            memcpy(at, as + k, sizeof(at));                                                        \
            PINNED(at);                                                                            \
            KERNEL_LOOP                                                                            \
            for (unsigned i = 0; i < BLOCK; i++) {                                                 \
                i64 index = at[i] < 0 ? 0 : at[i];                                                 \
                d[k + i] = table[index > last ? last : index];                                     \
            }                                                                                      \
        }                                                                                          \
    }
TAKE(u8)
TAKE(u16)
TAKE(u32)
TAKE(u64)

/* clang-format off */
const kernel_table KERNEL_SYMBOL(table) = {
    [OP_SEARCH_LEFT] = {[DTYPE_INT64] = search_left_i64, [DTYPE_UINT64] = search_left_u64,
                        [DTYPE_FLOAT64] = search_left_f64},
    [OP_SEARCH_RIGHT] = {[DTYPE_INT64] = search_right_i64, [DTYPE_UINT64] = search_right_u64,
                         [DTYPE_FLOAT64] = search_right_f64},
    /* by the dtype of the table */
    [OP_TAKE] = {[DTYPE_BOOL] = take_u8, ROW_WIDTHS(take), [DTYPE_FLOAT32] = take_u32,
                 [DTYPE_FLOAT64] = take_u64},
};
/* clang-format on */
