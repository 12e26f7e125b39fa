/* Windows of which each element is looked at: sums of products with a kernel, and elements by their
 * place in the ascending order.
 *
 * WINDOW_LANES outputs of a row are computed at a time, from as many neighbours at each of the
 * window's places (taps). Sums of floats are in float64, in the order of the kernel. Of a small
 * window all taps are sorted by a network of comparisons (K. Batcher, Sorting networks and their
 * applications, 1968, merge exchange: D. Knuth, The Art of Computer Programming, vol. 3, 5.2.2M),
 * in all lanes at once; of a larger one the place is sought lane by lane (C. Hoare, Algorithm 65:
 * Find, 1961). A window with a NaN gives NaN.
 */
#include "kernels/cpu/levels/template.h"
#include "kernels/cpu/windows/window_vectors.h"

#include <stdbool.h>

#define MOST_SORTED 160 /* elements of a window that a network sorts */

/* Kernels ---------------------------------------------------------------------------------- */

#define STORE_TAPS(T, A)                                                                           \
    static inline void put_##T(T *dst, struct A##_lanes sum, size_t n)                             \
    {                                                                                              \
        A wide[WINDOW_LANES];                                                                      \
        memcpy(wide, &sum, sizeof(wide));                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            dst[i] = (T)wide[i];                                                                   \
    }
STORE_TAPS(f32, f64)
STORE_TAPS(f64, f64)
STORE_TAPS(u64, u64)

#define CORRELATE(T, A)                                                                            \
    void KERNEL_SYMBOL(window_correlate_##T)(const struct window_taps *t)                          \
    {                                                                                              \
        for (size_t x = 0; x < t->n; x += WINDOW_LANES) {                                          \
            const T *src = (const T *)t->src + x;                                                  \
            struct A##_lanes sum;                                                                  \
            memset(&sum, 0, sizeof(sum));                                                          \
            for (size_t k = 0; k < t->n_taps; k++) {                                               \
                struct A##_lanes v = load_##A##_of_##T(src + t->offsets[k]);                       \
                A weight = t->weights[k].A;                                                        \
                for (int i = 0; i < VECTORS(A); i++)                                               \
                    sum.v[i] += v.v[i] * weight;                                                   \
            }                                                                                      \
            size_t n = t->n - x;                                                                   \
            if (n >= WINDOW_LANES)                                                                 \
                put_##T((T *)t->dst + x, sum, WINDOW_LANES);                                       \
            else                                                                                   \
                put_##T((T *)t->dst + x, sum, n);                                                  \
        }                                                                                          \
    }
CORRELATE(f32, f64)
CORRELATE(f64, f64)
CORRELATE(u64, u64)

/* Places ----------------------------------------------------------------------------------- */

#define MIDDLE_f32(a, b)   (((a) + (b)) / 2)
#define MIDDLE_f64(a, b)   (((a) + (b)) / 2)
#define MIDDLE_OTHER(a, b) (a)

#define RANK(T, MIDDLE)                                                                            \
    static inline void exchange_##T(struct T##_lanes *a, struct T##_lanes *b)                      \
    {                                                                                              \
        for (int i = 0; i < VECTORS(T); i++) {                                                     \
            T##_mask is_less = a->v[i] < b->v[i];                                                  \
            T##_vector low = choose_##T(is_less, a->v[i], b->v[i]);                                \
            b->v[i] = choose_##T(is_less, b->v[i], a->v[i]);                                       \
            a->v[i] = low;                                                                         \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void sort_##T(struct T##_lanes *rows, size_t n)                                         \
    {                                                                                              \
        size_t top = 1;                                                                            \
        while (2 * top < n)                                                                        \
            top *= 2;                                                                              \
        for (size_t p = top; n > 1 && p > 0; p /= 2)                                               \
            for (size_t q = top, r = 0, d = p;; d = q - p, q /= 2, r = p) {                        \
                for (size_t i = 0; i + d < n; i++)                                                 \
                    if ((i & p) == r)                                                              \
                        exchange_##T(&rows[i], &rows[i + d]);                                      \
                if (q == p)                                                                        \
                    break;                                                                         \
            }                                                                                      \
    }                                                                                              \
                                                                                                   \
    static T find_##T(T *row, size_t n, size_t rank)                                               \
    {                                                                                              \
        for (size_t first = 0, last = n - 1; first < last;) {                                      \
            T pivot = row[rank];                                                                   \
            size_t i = first, j = last;                                                            \
            for (;;) {                                                                             \
                while (row[i] < pivot)                                                             \
                    i++;                                                                           \
                while (pivot < row[j])                                                             \
                    j--;                                                                           \
                if (i <= j) {                                                                      \
                    T taken = row[i];                                                              \
                    row[i++] = row[j];                                                             \
                    row[j] = taken;                                                                \
                    if (j == 0)                                                                    \
                        break;                                                                     \
                    j--;                                                                           \
                }                                                                                  \
                if (i > j)                                                                         \
                    break;                                                                         \
            }                                                                                      \
            if (j < rank)                                                                          \
                first = i;                                                                         \
            if (rank < i)                                                                          \
                last = j;                                                                          \
        }                                                                                          \
        return row[rank];                                                                          \
    }                                                                                              \
                                                                                                   \
    static void pick_##T(const struct window_taps *t, struct T##_lanes *rows, T *ret)              \
    {                                                                                              \
        size_t low = (size_t)t->ranks[0], high = (size_t)t->ranks[1];                              \
        T a[WINDOW_LANES], b[WINDOW_LANES], line[WINDOW_MAX_TAPS];                                 \
        if (t->n_taps <= MOST_SORTED) {                                                            \
            sort_##T(rows, t->n_taps);                                                             \
            memcpy(a, &rows[low], sizeof(a));                                                      \
            memcpy(b, &rows[high], sizeof(b));                                                     \
        }                                                                                          \
        for (size_t k = 0; t->n_taps > MOST_SORTED && k < WINDOW_LANES; k++) {                     \
            const T *elements = (const T *)(const void *)rows + k;                                 \
            bool has_nan = false;                                                                  \
            for (size_t i = 0; i < t->n_taps; i++) {                                               \
                line[i] = elements[i * WINDOW_LANES];                                              \
                has_nan |= line[i] != line[i];                                                     \
            }                                                                                      \
            a[k] = b[k] = has_nan ? line[0] : find_##T(line, t->n_taps, low);                      \
            if (high != low && !has_nan)                                                           \
                b[k] = find_##T(line, t->n_taps, high);                                            \
        }                                                                                          \
        for (size_t k = 0; k < WINDOW_LANES; k++)                                                  \
            ret[k] = low == high ? a[k] : (T)MIDDLE(a[k], b[k]);                                   \
    }                                                                                              \
                                                                                                   \
    void WINDOW_TAPS_OF(T)(const struct window_taps *t)                                            \
    {                                                                                              \
        struct T##_lanes *rows = t->room;                                                          \
        for (size_t x = 0; x < t->n; x += WINDOW_LANES) {                                          \
            const T *src = (const T *)t->src + x;                                                  \
            struct T##_lanes nan = load_##T(src + t->offsets[0]);                                  \
            for (size_t k = 0; k < t->n_taps; k++) {                                               \
                rows[k] = load_##T(src + t->offsets[k]);                                           \
                for (int i = 0; i < VECTORS(T); i++)                                               \
                    nan.v[i] = choose_##T(rows[k].v[i] != rows[k].v[i], rows[k].v[i], nan.v[i]);   \
            }                                                                                      \
            T found[WINDOW_LANES], nans[WINDOW_LANES];                                             \
            pick_##T(t, rows, found);                                                              \
            memcpy(nans, &nan, sizeof(nans));                                                      \
            for (size_t k = 0; k < WINDOW_LANES && x + k < t->n; k++)                              \
                ((T *)t->dst)[x + k] = nans[k] != nans[k] ? nans[k] : found[k];                    \
        }                                                                                          \
    }
RANK(f32, MIDDLE_f32)
RANK(f64, MIDDLE_f64)
RANK(u8, MIDDLE_OTHER)
RANK(u16, MIDDLE_OTHER)
RANK(u32, MIDDLE_OTHER)
RANK(u64, MIDDLE_OTHER)
RANK(i8, MIDDLE_OTHER)
RANK(i16, MIDDLE_OTHER)
RANK(i32, MIDDLE_OTHER)
RANK(i64, MIDDLE_OTHER)
