/* Windows of which each element is looked at: sums of products with a kernel, and elements by their
 * place in the ascending order.
 *
 * WINDOW_LANES outputs of a row are computed at a time, from as many neighbours at each of the
 * window's places (taps). Sums of floats are in float64, in the order of the kernel. Of a small
 * window all taps are sorted by a network of comparisons (K. Batcher, Sorting networks and their
 * applications, 1968, merge exchange: D. Knuth, The Art of Computer Programming, vol. 3, 5.2.2M),
 * in all lanes at once; of a larger one the element is found bit by bit from the highest, in all
 * lanes at once: a bit is set where no more elements than the place are below what it makes (D.
 * Knuth, vol. 3, 5.2.2R, radix exchange, with counting in place of moving). A window with a NaN
 * gives NaN.
 */
#include "kernels/cpu/levels/template.h"
#include "kernels/cpu/windows/window_vectors.h"

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

/* Signed integers in the order of the elements, and back. -0 is below 0. */
#define TOP(M)                ((M)((u64)1 << (8 * sizeof(M) - 1)))
#define KEY_SIGNED(V, M, x)   (x)
#define KEY_UNSIGNED(V, M, x) ((V)((x) ^ TOP(M)))
#define KEY_FLOAT(V, M, x)    ((V)((x) ^ ((V)((x) < (M)0) & (M)~TOP(M))))

/* Rows that an integer as narrow as the keys can count. */
#define MOST_COUNTED(M) (sizeof(M) == 1 ? (size_t)INT8_MAX : (size_t)INT16_MAX)

#define RANK(T, M, KEY, MIDDLE)                                                                    \
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
    static void keys_##T(struct T##_lanes *rows, size_t n)                                         \
    {                                                                                              \
        for (size_t r = 0; r < n; r++)                                                             \
            for (int i = 0; i < VECTORS(T); i++)                                                   \
                rows[r].v[i] = (T##_vector)KEY(T##_mask, M, (T##_mask)rows[r].v[i]);               \
    }                                                                                              \
                                                                                                   \
    /* How many of the keys of each lane are below `at`. */                                        \
    static void count_##T(const struct T##_lanes *rows, size_t n, const T##_mask *at, u32 *ret)    \
    {                                                                                              \
        memset(ret, 0, WINDOW_LANES * sizeof(*ret));                                               \
        for (size_t first = 0, end; first < n; first = end) {                                      \
            T##_mask below[VECTORS(T)];                                                            \
            M counts[WINDOW_LANES];                                                                \
            memset(below, 0, sizeof(below));                                                       \
            end = n - first > MOST_COUNTED(M) ? first + MOST_COUNTED(M) : n;                       \
            for (size_t r = first; r < end; r++)                                                   \
                for (int i = 0; i < VECTORS(T); i++)                                               \
                    below[i] -= (T##_mask)((T##_mask)rows[r].v[i] < at[i]);                        \
            memcpy(counts, below, sizeof(counts));                                                 \
            for (size_t k = 0; k < WINDOW_LANES; k++)                                              \
                ret[k] += (u32)counts[k];                                                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* The bits in which keys of a lane differ, of all lanes together. */                          \
    static u64 differing_##T(const struct T##_lanes *rows, size_t n)                               \
    {                                                                                              \
        T##_mask bits[VECTORS(T)];                                                                 \
        M each[WINDOW_LANES], any = 0;                                                             \
        memset(bits, 0, sizeof(bits));                                                             \
        for (size_t r = 1; r < n; r++)                                                             \
            for (int i = 0; i < VECTORS(T); i++)                                                   \
                bits[i] |= (T##_mask)rows[r].v[i] ^ (T##_mask)rows[0].v[i];                        \
        memcpy(each, bits, sizeof(each));                                                          \
        for (size_t k = 0; k < WINDOW_LANES; k++)                                                  \
            any = (M)(any | each[k]);                                                              \
        return (u64)any & (~(u64)0 >> (64 - 8 * sizeof(M)));                                       \
    }                                                                                              \
                                                                                                   \
    static void find_##T(const struct T##_lanes *rows, size_t n, size_t rank, T *ret)              \
    {                                                                                              \
        u64 differing = differing_##T(rows, n);                                                    \
        int n_bits = differing == 0 ? 0 : 64 - __builtin_clzll(differing);                         \
        M low = (M)(n_bits == 64 ? ~(u64)0 : ((u64)1 << n_bits) - 1);                              \
        T##_mask found[VECTORS(T)], at[VECTORS(T)];                                                \
        for (int i = 0; i < VECTORS(T); i++)                                                       \
            found[i] = (((T##_mask)rows[0].v[i] ^ TOP(M)) & (M)~low) ^ TOP(M);                     \
        for (int k = n_bits - 1; k >= 0; k--) {                                                    \
            u32 below[WINDOW_LANES];                                                               \
            M set[WINDOW_LANES];                                                                   \
            for (int i = 0; i < VECTORS(T); i++)                                                   \
                at[i] = found[i] ^ (M)((u64)1 << k);                                               \
            count_##T(rows, n, at, below);                                                         \
            for (size_t j = 0; j < WINDOW_LANES; j++)                                              \
                set[j] = (M)(below[j] <= rank ? (u64)1 << k : 0);                                  \
            memcpy(at, set, sizeof(at));                                                           \
            for (int i = 0; i < VECTORS(T); i++)                                                   \
                found[i] ^= at[i];                                                                 \
        }                                                                                          \
        for (int i = 0; i < VECTORS(T); i++)                                                       \
            found[i] = KEY(T##_mask, M, found[i]);                                                 \
        memcpy(ret, found, sizeof(found));                                                         \
    }                                                                                              \
                                                                                                   \
    static void pick_##T(const struct window_taps *t, struct T##_lanes *rows, T *ret)              \
    {                                                                                              \
        size_t low = (size_t)t->ranks[0], high = (size_t)t->ranks[1];                              \
        T a[WINDOW_LANES], b[WINDOW_LANES];                                                        \
        if (t->n_taps <= MOST_SORTED) {                                                            \
            sort_##T(rows, t->n_taps);                                                             \
            memcpy(a, &rows[low], sizeof(a));                                                      \
            memcpy(b, &rows[high], sizeof(b));                                                     \
        } else {                                                                                   \
            keys_##T(rows, t->n_taps);                                                             \
            find_##T(rows, t->n_taps, low, a);                                                     \
            if (high != low)                                                                       \
                find_##T(rows, t->n_taps, high, b);                                                \
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
RANK(f32, i32, KEY_FLOAT, MIDDLE_f32)
RANK(f64, i64, KEY_FLOAT, MIDDLE_f64)
RANK(u8, i8, KEY_UNSIGNED, MIDDLE_OTHER)
RANK(u16, i16, KEY_UNSIGNED, MIDDLE_OTHER)
RANK(u32, i32, KEY_UNSIGNED, MIDDLE_OTHER)
RANK(u64, i64, KEY_UNSIGNED, MIDDLE_OTHER)
RANK(i8, i8, KEY_SIGNED, MIDDLE_OTHER)
RANK(i16, i16, KEY_SIGNED, MIDDLE_OTHER)
RANK(i32, i32, KEY_SIGNED, MIDDLE_OTHER)
RANK(i64, i64, KEY_SIGNED, MIDDLE_OTHER)
