/* Blosc 1: a frame that says its codec, shuffle and blocks itself.
 *
 * values, as HDF5's filter has them: two versions, the item's size, the chunk's bytes, level,
 * shuffle (0 none, 1 bytes, 2 bits), the codec (0 blosclz, 1 lz4, 2 lz4hc, 3 snappy, 4 zlib, 5
 * zstd). Only encoding needs them. One thread each: chunks are decoded side by side.
 */
#include "client/codecs/scratch.h"

#include <blosc.h>
#include <limits.h>

enum { ITEM_BYTES = 2, LEVEL = 4, SHUFFLE = 5, CODEC = 6 };

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    size_t n_bytes;
    if (n_from < BLOSC_MIN_HEADER_LENGTH)
        return CODEC_FAULT_SHORT;
    if (blosc_cbuffer_validate(from, n_from, &n_bytes) < 0)
        return CODEC_FAULT_CORRUPT;
    if (n_bytes > room)
        return CODEC_FAULT_LONG;
    int n = blosc_decompress_ctx(from, ret_bytes, n_bytes, 1);
    if (n < 0 || (size_t)n != n_bytes)
        return CODEC_FAULT_CORRUPT;
    *ret_n_bytes = n_bytes;
    return 0;
}

static uint32_t value_of(const struct codec_step *step, unsigned i, uint32_t otherwise)
{
    return i < step->n_values ? step->values[i] : otherwise;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    const char *name = NULL;
    uint32_t item_bytes = value_of(step, ITEM_BYTES, 1);
    if (blosc_compcode_to_compname((int)value_of(step, CODEC, BLOSC_BLOSCLZ), &name) < 0)
        return CODEC_FAULT_VALUES;
    if (n_from > BLOSC_MAX_BUFFERSIZE)
        return CODEC_FAULT_LONG;
    int n = blosc_compress_ctx((int)value_of(step, LEVEL, 5), (int)value_of(step, SHUFFLE, 1),
                               item_bytes > BLOSC_MAX_TYPESIZE ? 1 : item_bytes, n_from, from,
                               ret_bytes, room, name, 0, 1);
    if (n < 0)
        return CODEC_FAULT_VALUES;
    *ret_n_bytes = (size_t)n;
    return n > 0 ? 0 : CODEC_FAULT_LONG;
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes + n_bytes / 256 + 4096;
}

const struct codec codec_blosc = {
    .name = "blosc",
    .hdf5_id = 32001,
    .zarr_name = "blosc",
    .package = "libblosc-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
