/* deflate in zlib's wrapping, by libdeflate: HDF5's "gzip", Zarr's "zlib".
 *
 * values[0]: the level, 0 to 9.
 */
#include "client/codecs/scratch.h"

#include <errno.h>
#include <libdeflate.h>

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    if (!scratch->inflater)
        scratch->inflater = libdeflate_alloc_decompressor();
    if (!scratch->inflater)
        return -ENOMEM;
    switch (
        libdeflate_zlib_decompress(scratch->inflater, from, n_from, ret_bytes, room, ret_n_bytes)) {
    case LIBDEFLATE_SUCCESS: return 0;
    case LIBDEFLATE_INSUFFICIENT_SPACE: return CODEC_FAULT_LONG;
    default: return CODEC_FAULT_CORRUPT;
    }
}

static int use_level(const struct codec_step *step, struct codec_scratch *scratch)
{
    int level = step->n_values > 0 && step->values[0] <= 9 ? (int)step->values[0] : 6;
    if (scratch->deflater && scratch->deflater_level == level)
        return 0;
    libdeflate_free_compressor(scratch->deflater);
    scratch->deflater = libdeflate_alloc_compressor(level);
    scratch->deflater_level = level;
    return scratch->deflater ? 0 : -ENOMEM;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    int r = use_level(step, scratch);
    if (r)
        return r;
    *ret_n_bytes = libdeflate_zlib_compress(scratch->deflater, from, n_from, ret_bytes, room);
    return *ret_n_bytes > 0 ? 0 : CODEC_FAULT_LONG;
}

/* zlib's own bound: stored blocks of at least 16 KiB less some, and the wrapping. */
static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes + n_bytes / 256 + 1024;
}

const struct codec codec_deflate = {
    .name = "deflate",
    .hdf5_id = 1,
    .zarr_name = "zlib",
    .package = "libdeflate-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
