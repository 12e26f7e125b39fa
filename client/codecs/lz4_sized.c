/* One block of LZ4 behind the number of its bytes, in four, little-endian: the "lz4" of numcodecs.
 * HDF5 frames its blocks otherwise (lz4.c).
 */
#include "client/codecs/scratch.h"

#include <limits.h>
#include <lz4.h>

#define HEAD_BYTES 4

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    const uint8_t *at = from;
    if (n_from < HEAD_BYTES)
        return CODEC_FAULT_SHORT;
    uint32_t n_bytes = (uint32_t)codec_read_little(at, HEAD_BYTES);
    if (n_bytes > room)
        return CODEC_FAULT_LONG;
    if (n_bytes > INT_MAX || n_from - HEAD_BYTES > INT_MAX)
        return CODEC_FAULT_CORRUPT;
    int n = LZ4_decompress_safe((const char *)at + HEAD_BYTES, ret_bytes,
                                (int)(n_from - HEAD_BYTES), (int)n_bytes);
    if (n < 0 || (uint32_t)n != n_bytes)
        return CODEC_FAULT_CORRUPT;
    *ret_n_bytes = n_bytes;
    return 0;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    uint8_t *to = ret_bytes;
    if (n_from > LZ4_MAX_INPUT_SIZE || room < HEAD_BYTES)
        return CODEC_FAULT_LONG;
    size_t left = room - HEAD_BYTES;
    int n = LZ4_compress_default(from, (char *)to + HEAD_BYTES, (int)n_from,
                                 left > INT_MAX ? INT_MAX : (int)left);
    if (n <= 0)
        return CODEC_FAULT_LONG;
    codec_write_little(to, HEAD_BYTES, n_from);
    *ret_n_bytes = HEAD_BYTES + (size_t)n;
    return 0;
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return HEAD_BYTES + n_bytes + n_bytes / 255 + 16;
}

const struct codec codec_lz4_sized = {
    .name = "lz4-sized",
    .zarr_name = "lz4",
    .package = "liblz4-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
