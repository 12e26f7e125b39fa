/* Copies of elements between strided memory and strips.
 *
 * The loop order follows the memory: where an operand's rows lie closer together than the elements
 * of a row (a transposed operand), columns are walked in bands of BAND rows, so that each cache
 * line that is fetched is used up; where rows are very short, the long side becomes the inner loop.
 * Called by stream.c for whatever cannot be used in place.
 */
#include "kernels/cpu/moves/strided.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BAND             16
#define SHORT_ROW        8
#define MEMCPY_MIN_BYTES 64

#define COPY_ELEMENTS(T)                                                                           \
    static void copy_##T(const struct strided_block *b)                                            \
    {                                                                                              \
        for (size_t r = 0; r < b->n_rows; r++) {                                                   \
            char *dst = b->dst + (int64_t)r * b->dst_row;                                          \
            const char *src = b->src + (int64_t)r * b->src_row;                                    \
            int64_t dst_stride = b->dst_stride, src_stride = b->src_stride;                        \
            for (size_t i = 0, n = b->n; i < n; i++) {                                             \
                T element;                                                                         \
                memcpy(&element, src, sizeof(element));                                            \
                memcpy(dst, &element, sizeof(element));                                            \
                dst += dst_stride;                                                                 \
                src += src_stride;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }
COPY_ELEMENTS(uint8_t)
COPY_ELEMENTS(uint16_t)
COPY_ELEMENTS(uint32_t)
COPY_ELEMENTS(uint64_t)

static void copy_elements(unsigned item_log2, const struct strided_block *b)
{
    switch (item_log2) {
    case 0: copy_uint8_t(b); break;
    case 1: copy_uint16_t(b); break;
    case 2: copy_uint32_t(b); break;
    default: copy_uint64_t(b); break;
    }
}

static struct strided_block exchanged(const struct strided_block *b)
{
    return (struct strided_block){
        .n_rows = b->n,
        .n = b->n_rows,
        .dst = b->dst,
        .dst_row = b->dst_stride,
        .dst_stride = b->dst_row,
        .src = b->src,
        .src_row = b->src_stride,
        .src_stride = b->src_row,
    };
}

static bool is_transposed(const struct strided_block *b)
{
    return llabs(b->src_row) < llabs(b->src_stride) || llabs(b->dst_row) < llabs(b->dst_stride);
}

static void copy_in_bands(unsigned item_log2, const struct strided_block *block)
{
    struct strided_block band = *block;
    for (size_t done = 0; done < block->n_rows; done += band.n_rows) {
        size_t left = block->n_rows - done;
        band.n_rows = left < BAND ? left : BAND;
        struct strided_block columns = exchanged(&band);
        copy_elements(item_log2, &columns);
        band.dst += (int64_t)band.n_rows * band.dst_row;
        band.src += (int64_t)band.n_rows * band.src_row;
    }
}

/* One value over each row of a strip. */
static void fill_rows(unsigned item_log2, const struct strided_block *b)
{
    size_t item_bytes = (size_t)1 << item_log2, row_bytes = b->n << item_log2;
    for (size_t r = 0; r < b->n_rows; r++) {
        char *dst = b->dst + (int64_t)r * b->dst_row;
        memcpy(dst, b->src + (int64_t)r * b->src_row, item_bytes);
        for (size_t done = item_bytes; done < row_bytes;) {
            size_t more = row_bytes - done < done ? row_bytes - done : done;
            memcpy(dst + done, dst, more);
            done += more;
        }
    }
}

void strided_copy(unsigned item_log2, const struct strided_block *b)
{
    int64_t item_bytes = (int64_t)1 << item_log2;
    size_t row_bytes = b->n << item_log2;
    if (b->dst_stride == item_bytes && b->src_stride == item_bytes &&
        row_bytes >= MEMCPY_MIN_BYTES) {
        for (size_t r = 0; r < b->n_rows; r++)
            memcpy(b->dst + (int64_t)r * b->dst_row, b->src + (int64_t)r * b->src_row, row_bytes);
    } else if (b->src_stride == 0 && b->dst_stride == item_bytes && row_bytes >= MEMCPY_MIN_BYTES) {
        fill_rows(item_log2, b);
    } else if (b->n < SHORT_ROW && b->n_rows > b->n) {
        struct strided_block columns = exchanged(b);
        copy_elements(item_log2, &columns);
    } else if (b->n_rows > 1 && is_transposed(b)) {
        copy_in_bands(item_log2, b);
    } else {
        copy_elements(item_log2, b);
    }
}
