/* Elements by their places in ascending order, exactly: a key is found bit by bit, from the highest
 * one down. It is the largest v below which there are no more elements than its place says:
 *
 *     v = 0;   for each bit:   if (elements < (v | bit)) <= place then v = v | bit
 *
 * Nothing branches on data and nothing is moved, so that vectors do it, and a block of columns, or
 * a row, stays in the first-level cache meanwhile. Bits that all elements have in common are known
 * without it: narrow ranges take few steps. The next larger place is found in one step: it has the
 * same element where more than `place` elements are up to that one, else the least larger one.
 * Places that follow from how many elements are no NaN differ from column to column.
 *
 * Keys are kept as signed integers of the same order, which processors compare in one instruction:
 * their highest bit is turned over. A column is one lane of the block's vectors.
 *
 * Called by kth.c.
 */
#include "kernels/cpu/levels/template.h"

#include <string.h>

#if defined(KERNEL_VECTOR_BYTES)
#define VECTOR_BYTES KERNEL_VECTOR_BYTES
#else
#define VECTOR_BYTES 16
#endif
#define N_VECTORS      (RANKS_BLOCK_BYTES / VECTOR_BYTES)
#define EACH_VECTOR(j) _Pragma("GCC unroll 8") for (size_t j = 0; j < N_VECTORS; j++)

#define LEAST_i32 INT32_MIN
#define LEAST_i64 INT64_MIN
#define MOST_i32  INT32_MAX
#define MOST_i64  INT64_MAX

#define PICK(mask, a, b) (((a) & (mask)) | ((b) & ~(mask)))

/* T: of kept keys; U: without sign. */
#define RANKS_ROWS(T, U)                                                                           \
    typedef T T##_lanes __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias)); \
    static void keep_##T(size_t n, void *dst, const void *src)                                     \
    {                                                                                              \
        U *d = dst;                                                                                \
        const U *s = src;                                                                          \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = s[i] ^ (U)LEAST_##T;                                                            \
    }                                                                                              \
    static inline const T##_lanes *row_at_##T(const struct ranked *r, const T *src, size_t i)      \
    {                                                                                              \
        return (const T##_lanes *)(src + i * r->step);                                             \
    }                                                                                              \
    /* Of the bits that differ: from the highest one down. */                                      \
    static inline unsigned n_bits_of_##T(U differs)                                                \
    {                                                                                              \
        unsigned n_all = 8 * sizeof(T), n_zeros = (unsigned)__builtin_clzll(differs | 1);          \
        return differs ? n_all - n_zeros % n_all : 0;                                              \
    }                                                                                              \
    static inline U upper_##T(unsigned n_bits)                                                     \
    {                                                                                              \
        return n_bits == 8 * sizeof(T) ? 0 : (U)(~(U)0 << n_bits);                                 \
    }

/* Columns. Bits of v are those of keys before they were kept. */
#define RANKS_COLUMNS(T, U)                                                                        \
    static inline unsigned common_##T(const struct ranked *r, const T *src, T##_lanes *v)          \
    {                                                                                              \
        T##_lanes ors[N_VECTORS], ands[N_VECTORS];                                                 \
        U differs = 0;                                                                             \
        EACH_VECTOR(j)                                                                             \
        ors[j] = ands[j] = row_at_##T(r, src, 0)[j];                                               \
        for (size_t i = 1; i < r->n; i++) {                                                        \
            const T##_lanes *row = row_at_##T(r, src, i);                                          \
            EACH_VECTOR(j)                                                                         \
            {                                                                                      \
                ands[j] &= row[j];                                                                 \
                ors[j] |= row[j];                                                                  \
            }                                                                                      \
        }                                                                                          \
        EACH_VECTOR(j)                                                                             \
        for (size_t k = 0; k < VECTOR_BYTES / sizeof(T); k++)                                      \
            differs |= (U)(ors[j][k] ^ ands[j][k]);                                                \
        unsigned n_bits = n_bits_of_##T(differs);                                                  \
        EACH_VECTOR(j)                                                                             \
        v[j] = (ands[j] ^ LEAST_##T) & (T)upper_##T(n_bits);                                       \
        return n_bits;                                                                             \
    }                                                                                              \
    static inline void step_##T(const struct ranked *r, const T *src, const T##_lanes *places,     \
                                U bit, T##_lanes *v)                                               \
    {                                                                                              \
        T##_lanes counts[N_VECTORS], limits[N_VECTORS];                                            \
        EACH_VECTOR(j)                                                                             \
        {                                                                                          \
            counts[j] = (T##_lanes){0};                                                            \
            limits[j] = (v[j] | (T)bit) ^ LEAST_##T;                                               \
        }                                                                                          \
        for (size_t i = 0; i < r->n; i++) {                                                        \
            const T##_lanes *row = row_at_##T(r, src, i);                                          \
            EACH_VECTOR(j)                                                                         \
            counts[j] -= row[j] < limits[j];                                                       \
        }                                                                                          \
        EACH_VECTOR(j)                                                                             \
        v[j] |= (counts[j] <= places[j]) & (T)bit;                                                 \
    }                                                                                              \
    /* From the element at place - 1, or at place, to that at place. */                            \
    static inline void next_##T(const struct ranked *r, const T *src, const T##_lanes *places,     \
                                T##_lanes *v)                                                      \
    {                                                                                              \
        T##_lanes counts[N_VECTORS], least[N_VECTORS], own[N_VECTORS];                             \
        EACH_VECTOR(j)                                                                             \
        {                                                                                          \
            counts[j] = (T##_lanes){0};                                                            \
            own[j] = v[j] ^ LEAST_##T;                                                             \
            least[j] = counts[j] + MOST_##T;                                                       \
        }                                                                                          \
        for (size_t i = 0; i < r->n; i++) {                                                        \
            const T##_lanes *row = row_at_##T(r, src, i);                                          \
            EACH_VECTOR(j)                                                                         \
            {                                                                                      \
                T##_lanes key = row[j], is_up_to = key <= own[j];                                  \
                T##_lanes is_least = ~is_up_to & (key < least[j]);                                 \
                counts[j] -= is_up_to;                                                             \
                least[j] = PICK(is_least, key, least[j]);                                          \
            }                                                                                      \
        }                                                                                          \
        EACH_VECTOR(j)                                                                             \
        v[j] = PICK(counts[j] > places[j], own[j], least[j]) ^ LEAST_##T;                          \
    }                                                                                              \
    static inline void largest_##T(const struct ranked *r, const T *src, T##_lanes *v)             \
    {                                                                                              \
        EACH_VECTOR(j)                                                                             \
        v[j] = row_at_##T(r, src, 0)[j];                                                           \
        for (size_t i = 1; i < r->n; i++) {                                                        \
            const T##_lanes *row = row_at_##T(r, src, i);                                          \
            EACH_VECTOR(j)                                                                         \
            v[j] = PICK(row[j] > v[j], row[j], v[j]);                                              \
        }                                                                                          \
        EACH_VECTOR(j)                                                                             \
        v[j] ^= LEAST_##T;                                                                         \
    }                                                                                              \
    static inline void count_##T(const struct ranked *r, const T *src, T##_lanes *counts)          \
    {                                                                                              \
        EACH_VECTOR(j)                                                                             \
        counts[j] = (T##_lanes){0};                                                                \
        for (size_t i = 0; i < r->n; i++) {                                                        \
            const T##_lanes *row = row_at_##T(r, src, i);                                          \
            EACH_VECTOR(j)                                                                         \
            counts[j] -= row[j] < MOST_##T;                                                        \
        }                                                                                          \
    }                                                                                              \
    /* Neighbours often have as many elements. */                                                  \
    static inline void places_##T(const struct kth_rank *kth, const T##_lanes *counts,             \
                                  T##_lanes *places)                                               \
    {                                                                                              \
        T n[RANKS_BLOCK_BYTES / sizeof(T)], at[RANKS_BLOCK_BYTES / sizeof(T)];                     \
        if (kth->by == KTH_AT) {                                                                   \
            EACH_VECTOR(j)                                                                         \
            places[j] = (T##_lanes){0} + (T)kth->at;                                               \
            return;                                                                                \
        }                                                                                          \
        memcpy(n, counts, sizeof(n));                                                              \
        for (size_t i = 0; i < RANKS_BLOCK_BYTES / sizeof(T); i++)                                 \
            at[i] = i > 0 && n[i] == n[i - 1] ? at[i - 1] : (T)kth_rank(kth, (u32)n[i]);           \
        memcpy(places, at, sizeof(at));                                                            \
    }                                                                                              \
    static inline void find_##T(const struct ranked *r, const T *src, const T##_lanes *places,     \
                                unsigned n_bits, const T##_lanes *bases, T##_lanes *v)             \
    {                                                                                              \
        EACH_VECTOR(j)                                                                             \
        v[j] = bases[j];                                                                           \
        for (unsigned bit = n_bits; bit-- > 0;)                                                    \
            step_##T(r, src, places, (U)1 << bit, v);                                              \
    }                                                                                              \
    static void columns_##T(const struct ranked *r, const void *src)                               \
    {                                                                                              \
        T##_lanes bases[N_VECTORS], v[N_VECTORS], counts[N_VECTORS], places[N_VECTORS];            \
        unsigned n_bits = common_##T(r, src, bases);                                               \
        if (r->has_counts)                                                                         \
            count_##T(r, src, counts);                                                             \
        for (unsigned k = 0; k < r->n_places; k++) {                                               \
            const struct ranked_place *place = &r->places[k];                                      \
            if (place->kth.by != KTH_COUNT)                                                        \
                places_##T(&place->kth, counts, places);                                           \
            if (place->kth.by == KTH_COUNT)                                                        \
                memcpy(v, counts, sizeof(v));                                                      \
            else if (place->is_near)                                                               \
                next_##T(r, src, places, v);                                                       \
            else if (place->kth.by == KTH_AT && place->kth.at + 1 == r->n)                         \
                largest_##T(r, src, v);                                                            \
            else                                                                                   \
                find_##T(r, src, places, n_bits, bases, v);                                        \
            memcpy(r->results[k], v, r->n_columns * sizeof(T));                                    \
        }                                                                                          \
    }

/* One row. */
#define RANKS_ROW(T, U)                                                                            \
    static inline U below_##T(size_t n, const T *src, T limit)                                     \
    {                                                                                              \
        U count = 0;                                                                               \
        for (size_t i = 0; i < n; i++)                                                             \
            count += src[i] < limit;                                                               \
        return count;                                                                              \
    }                                                                                              \
    static inline T next_of_row_##T(const struct ranked *r, const T *src, U place, T v)            \
    {                                                                                              \
        T least = MOST_##T;                                                                        \
        U count = 0;                                                                               \
        for (size_t i = 0; i < r->n; i++) {                                                        \
            T larger = src[i] > v ? src[i] : MOST_##T;                                             \
            count += src[i] <= v;                                                                  \
            least = larger < least ? larger : least;                                               \
        }                                                                                          \
        return count > place ? v : least;                                                          \
    }                                                                                              \
    static inline T find_in_row_##T(const struct ranked *r, const T *src, U place)                 \
    {                                                                                              \
        T ands = (T)-1, ors = 0;                                                                   \
        for (size_t i = 0; i < r->n; i++) {                                                        \
            ands &= src[i];                                                                        \
            ors |= src[i];                                                                         \
        }                                                                                          \
        unsigned n_bits = n_bits_of_##T((U)(ands ^ ors));                                          \
        U v = ((U)ands ^ (U)LEAST_##T) & upper_##T(n_bits);                                        \
        for (unsigned bit = n_bits; bit-- > 0;) {                                                  \
            U limit = v | (U)1 << bit;                                                             \
            if (below_##T(r->n, src, (T)(limit ^ (U)LEAST_##T)) <= place)                          \
                v = limit;                                                                         \
        }                                                                                          \
        return (T)(v ^ (U)LEAST_##T);                                                              \
    }                                                                                              \
    static void row_##T(const struct ranked *r, const void *from)                                  \
    {                                                                                              \
        const T *src = from;                                                                       \
        U count = r->has_counts ? below_##T(r->n, src, MOST_##T) : 0;                              \
        T v = 0;                                                                                   \
        for (unsigned k = 0; k < r->n_places; k++) {                                               \
            const struct ranked_place *place = &r->places[k];                                      \
            U result = count;                                                                      \
            if (place->kth.by != KTH_COUNT) {                                                      \
                U at = kth_rank(&place->kth, (u32)count);                                          \
                v = place->is_near ? next_of_row_##T(r, src, at, v) : find_in_row_##T(r, src, at); \
                result = (U)v ^ (U)LEAST_##T;                                                      \
            }                                                                                      \
            memcpy(r->results[k], &result, sizeof(result));                                        \
        }                                                                                          \
    }

#define RANKS(T, U) RANKS_ROWS(T, U) RANKS_COLUMNS(T, U) RANKS_ROW(T, U)
RANKS(i32, u32)
RANKS(i64, u64)

const struct rank_kernels KERNEL_SYMBOL(ranks) = {
    .keep = {keep_i32, keep_i64},
    .columns = {columns_i32, columns_i64},
    .row = {row_i32, row_i64},
};
