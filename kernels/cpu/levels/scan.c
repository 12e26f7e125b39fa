/* Running sums and products.
 *
 * along: one row, of one state: element i is what the state and the elements up to and with i give.
 * Floats are added and multiplied one after the other in double, so that the bits are those of a
 * plain loop however the row is cut; integers wrap in 64 bits, in any order.
 *
 * across: rows of which element i belongs to state i; n states, one row behind the other.
 *
 * One pass over memory. Nothing beyond n elements is read or written. Called by scanner.c.
 */
#include "kernels/cpu/levels/template.h"

#define SCAN(name, T, R, NEXT)                                                                     \
    static void name##_along_##T(size_t n, void *dst, const void *src, void *state)                \
    {                                                                                              \
        const T *as = src;                                                                         \
        R *d = dst, v = *(R *)state;                                                               \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = v = NEXT(v, as[i]);                                                             \
        *(R *)state = v;                                                                           \
    }                                                                                              \
    static void name##_across_##T(size_t n_rows, size_t n, void *dst, const void *src,             \
                                  void *state)                                                     \
    {                                                                                              \
        const T *as = src;                                                                         \
        R *d = dst, *v = state;                                                                    \
        for (; n_rows > 0; n_rows--, as += n, d += n) {                                            \
            KERNEL_LOOP                                                                            \
            for (size_t i = 0; i < n; i++)                                                         \
                d[i] = v[i] = NEXT(v[i], as[i]);                                                   \
        }                                                                                          \
    }

#define SUM(v, a)              ((v) + (f64)(a))
#define PRODUCT(v, a)          ((v) * (f64)(a))
#define SUM_SIGNED(v, a)       ((v) + (u64)(i64)(a))
#define SUM_UNSIGNED(v, a)     ((v) + (u64)(a))
#define PRODUCT_SIGNED(v, a)   ((v) * (u64)(i64)(a))
#define PRODUCT_UNSIGNED(v, a) ((v) * (u64)(a))
#define SCANS(name, NAME)                                                                          \
    SCAN(name, f32, f64, NAME)                                                                     \
    SCAN(name, f64, f64, NAME)                                                                     \
    SCAN(name, i8, u64, NAME##_SIGNED)                                                             \
    SCAN(name, i16, u64, NAME##_SIGNED)                                                            \
    SCAN(name, i32, u64, NAME##_SIGNED)                                                            \
    SCAN(name, u8, u64, NAME##_UNSIGNED)                                                           \
    SCAN(name, u16, u64, NAME##_UNSIGNED)                                                          \
    SCAN(name, u32, u64, NAME##_UNSIGNED)                                                          \
    SCAN(name, u64, u64, NAME##_UNSIGNED)
SCANS(sum, SUM)
SCANS(prod, PRODUCT)

#define BY_DTYPE(name)                                                                             \
    {                                                                                              \
        [DTYPE_BOOL] = name##_u8, [DTYPE_INT8] = name##_i8, [DTYPE_INT16] = name##_i16,            \
        [DTYPE_INT32] = name##_i32, [DTYPE_INT64] = name##_u64, ROW_UNSIGNED(name),                \
        ROW_FLOATS(name)                                                                           \
    }
const struct scan_kernels KERNEL_SYMBOL(scan_sum) = {BY_DTYPE(sum_along), BY_DTYPE(sum_across)};
const struct scan_kernels KERNEL_SYMBOL(scan_prod) = {BY_DTYPE(prod_along), BY_DTYPE(prod_across)};
