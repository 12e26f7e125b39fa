/* Tiles of products of integers and bools (see multiply_kernels.h), and the packing before them.
 *
 * A tile's sums stay in vector registers for the whole depth:
 *
 *              n_columns: SUM_VECTORS vectors
 *             +--------+--------+
 *     rows    |  sums  |  sums  |     one column of the left operand times one row of the right:
 *             +--------+--------+     for each row of the tile its element, in all lanes, times
 *                                     the row's vectors
 *
 * Processors have no products of bytes: int8 and uint8 are packed as 16-bit integers, of whose sums
 * the low byte is right. Products are those of unsigned integers for both signs.
 *
 * At the plain level a vector is one element.
 */
#include "kernels/cpu/multiply/multiply_kernels.h"
#include "kernels/cpu/levels/template.h"

#include <string.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#if !defined(KERNEL_IS_VECTORISED)
#define VECTOR_TYPE(T)  typedef T vector_##T
#define VECTOR_BYTES(T) sizeof(T)
#define SUM_ROWS        2
#define TILE_BYTES      64
#else
#if defined(KERNEL_VECTOR_BYTES)
#define LANES_BYTES KERNEL_VECTOR_BYTES
#else
#define LANES_BYTES 16
#endif
#define VECTOR_TYPE(T)  typedef T vector_##T __attribute__((vector_size(LANES_BYTES)))
#define VECTOR_BYTES(T) LANES_BYTES
#if LANES_BYTES == 64
#define SUM_ROWS    8
#define SUM_VECTORS 3
#else
#define SUM_ROWS    4
#define SUM_VECTORS 2
#endif
#define TILE_BYTES (SUM_VECTORS * LANES_BYTES)
#endif

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

_Static_assert(SUM_ROWS <= MULTIPLY_MAX_TILE_ROWS && TILE_BYTES <= MULTIPLY_MAX_TILE_BYTES,
               "the packed operands have room");

VECTOR_TYPE(u8);
VECTOR_TYPE(u16);
VECTOR_TYPE(u32);
VECTOR_TYPE(u64);

#define PLUS(sum, a, b)   ((sum) + (a) * (b))
#define EITHER(sum, a, b) ((sum) | ((a) & (b)))
#define ADD_SUM(c, s)     ((c) + (s))
#define ADD_BOOL(c, s)    ((c) | (s))

/* AddressSanitizer's check of a vector costs more than the vector's products: what sums read is
 * checked as a whole, before. */
#if defined(__SANITIZE_ADDRESS__)
#define UNCHECKED __attribute__((no_sanitize("address")))
static void check_read(const void *begin, size_t size)
{
    const volatile char *bad = __asan_region_is_poisoned((void *)(uintptr_t)begin, size);
    if (bad)
        (void)*bad; /* is reported */
}
#else
#define UNCHECKED
#define check_read(begin, size) ((void)0)
#endif

/* T: of packed items and sums, R: of the result. */
#define TILE(name, T, R, STEP, ADD)                                                                \
    UNCHECKED static void name##_sums(size_t depth, const T *left, const T *right, T *sums)        \
    {                                                                                              \
        enum { N = TILE_BYTES / VECTOR_BYTES(T) };                                                 \
        vector_##T sum[SUM_ROWS][N], zero = {0};                                                   \
        memset(sum, 0, sizeof(sum));                                                               \
        for (size_t k = 0; k < depth; k++) {                                                       \
            const vector_##T *row = (const vector_##T *)(right + k * (TILE_BYTES / sizeof(T)));    \
            UNROLL                                                                                 \
            for (size_t i = 0; i < SUM_ROWS; i++) {                                                \
                vector_##T a = zero + left[k * SUM_ROWS + i];                                      \
                UNROLL                                                                             \
                for (size_t j = 0; j < N; j++)                                                     \
                    sum[i][j] = (vector_##T)STEP(sum[i][j], a, row[j]);                            \
            }                                                                                      \
        }                                                                                          \
        memcpy(sums, sum, sizeof(sum));                                                            \
    }                                                                                              \
    static void name(const struct multiply_tile *t)                                                \
    {                                                                                              \
        enum { COLUMNS = TILE_BYTES / sizeof(T) };                                                 \
        T sums[SUM_ROWS * COLUMNS] __attribute__((aligned(64)));                                   \
        check_read(t->left, sizeof(T) * SUM_ROWS * t->depth);                                      \
        check_read(t->right, TILE_BYTES * t->depth);                                               \
        name##_sums(t->depth, t->left, t->right, sums);                                            \
        for (size_t i = 0; i < t->rows; i++) {                                                     \
            R *c = (R *)((char *)t->result + (int64_t)i * t->row_bytes);                           \
            const T *s = sums + i * COLUMNS;                                                       \
            if (t->is_added) {                                                                     \
                KERNEL_LOOP                                                                        \
                for (size_t j = 0; j < t->columns; j++)                                            \
                    c[j] = (R)ADD(c[j], s[j]);                                                     \
            } else {                                                                               \
                KERNEL_LOOP                                                                        \
                for (size_t j = 0; j < t->columns; j++)                                            \
                    c[j] = (R)s[j];                                                                \
            }                                                                                      \
        }                                                                                          \
    }

TILE(tile_bool, u8, u8, EITHER, ADD_BOOL)
TILE(tile_8, u16, u8, PLUS, ADD_SUM)
TILE(tile_16, u16, u16, PLUS, ADD_SUM)
TILE(tile_32, u32, u32, PLUS, ADD_SUM)
TILE(tile_64, u64, u64, PLUS, ADD_SUM)

/* Lanes side by side: groups are copied. Else lanes are copied one after the other. */
#define PACK(name, S, T)                                                                           \
    static void name(const struct multiply_pack *p)                                                \
    {                                                                                              \
        T *dst = p->dst;                                                                           \
        if (p->n < p->width)                                                                       \
            memset(dst, 0, p->depth * p->width * sizeof(T));                                       \
        if (p->lane_bytes == (int64_t)sizeof(S)) {                                                 \
            for (size_t k = 0; k < p->depth; k++) {                                                \
                const S *src = (const S *)(p->src + (int64_t)k * p->depth_bytes);                  \
                T *group = dst + k * p->width;                                                     \
                KERNEL_LOOP                                                                        \
                for (size_t i = 0; i < p->n; i++)                                                  \
                    group[i] = src[i];                                                             \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (size_t i = 0; i < p->n; i++) {                                                        \
            const char *src = p->src + (int64_t)i * p->lane_bytes;                                 \
            for (size_t k = 0; k < p->depth; k++)                                                  \
                dst[k * p->width + i] = *(const S *)(src + (int64_t)k * p->depth_bytes);           \
        }                                                                                          \
    }

PACK(pack_bool, u8, u8)
PACK(pack_8, u8, u16)
PACK(pack_16, u16, u16)
PACK(pack_32, u32, u32)
PACK(pack_64, u64, u64)

#define ROW_INTEGERS(name)                                                                         \
    [DTYPE_BOOL] = name##_bool, [DTYPE_INT8] = name##_8, [DTYPE_UINT8] = name##_8,                 \
    [DTYPE_INT16] = name##_16, [DTYPE_UINT16] = name##_16, [DTYPE_INT32] = name##_32,              \
    [DTYPE_UINT32] = name##_32, [DTYPE_INT64] = name##_64, [DTYPE_UINT64] = name##_64

const struct multiply_tiles KERNEL_SYMBOL(multiply_tiles) = {
    .n_rows = SUM_ROWS,
    .row_bytes = TILE_BYTES,
    .multiply = {ROW_INTEGERS(tile)},
    .pack = {ROW_INTEGERS(pack)},
};
