/* szip, by libaec: the chunk's bytes in four bytes, little-endian, then the stream.
 *
 * values: options, pixels of a block, bits of a pixel, pixels of a scanline.
 */
#include "client/codecs/scratch.h"

#include <errno.h>
#include <szlib.h>

enum { OPTIONS, BLOCK_PIXELS, PIXEL_BITS, LINE_PIXELS, N_VALUES };
#define SIZE_BYTES 4

static bool has_sane_values(const struct codec_step *step)
{
    const uint32_t *values = step->values;
    return step->n_values >= N_VALUES && values[BLOCK_PIXELS] >= 2 && values[BLOCK_PIXELS] <= 32 &&
           values[BLOCK_PIXELS] % 2 == 0 && values[PIXEL_BITS] >= 1 && values[PIXEL_BITS] <= 64 &&
           values[LINE_PIXELS] >= 1 && values[LINE_PIXELS] <= SZ_MAX_PIXELS_PER_SCANLINE;
}

static SZ_com_t parameters(const struct codec_step *step)
{
    return (SZ_com_t){
        .options_mask = (int)step->values[OPTIONS],
        .bits_per_pixel = (int)step->values[PIXEL_BITS],
        .pixels_per_block = (int)step->values[BLOCK_PIXELS],
        .pixels_per_scanline = (int)step->values[LINE_PIXELS],
    };
}

static int fault(int status)
{
    switch (status) {
    case SZ_OK: return 0;
    case SZ_MEM_ERROR: return -ENOMEM;
    case SZ_PARAM_ERROR: return CODEC_FAULT_VALUES;
    case SZ_OUTBUFF_FULL: return CODEC_FAULT_LONG;
    default: return CODEC_FAULT_CORRUPT;
    }
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    const uint8_t *head = from;
    if (!has_sane_values(step))
        return CODEC_FAULT_VALUES;
    if (n_from < SIZE_BYTES)
        return CODEC_FAULT_SHORT;
    size_t n = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (n > room)
        return CODEC_FAULT_LONG;
    SZ_com_t values = parameters(step);
    int r = fault(
        SZ_BufftoBuffDecompress(ret_bytes, &n, head + SIZE_BYTES, n_from - SIZE_BYTES, &values));
    if (r == 0)
        *ret_n_bytes = n;
    return r;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    uint8_t *head = ret_bytes;
    if (!has_sane_values(step))
        return CODEC_FAULT_VALUES;
    if (room < SIZE_BYTES || n_from > UINT32_MAX)
        return CODEC_FAULT_LONG;
    SZ_com_t values = parameters(step);
    size_t n = room - SIZE_BYTES;
    int r = fault(SZ_BufftoBuffCompress(head + SIZE_BYTES, &n, from, n_from, &values));
    if (r)
        return r;
    for (int i = 0; i < SIZE_BYTES; i++)
        head[i] = (uint8_t)(n_from >> 8 * i);
    *ret_n_bytes = n + SIZE_BYTES;
    return 0;
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes + n_bytes / 4 + 1024;
}

const struct codec codec_szip = {
    .name = "szip",
    .hdf5_id = 4,
    .package = "libaec-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
