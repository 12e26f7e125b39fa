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
    if (!codec_inflater(scratch))
        return -ENOMEM;
    switch (
        libdeflate_zlib_decompress(scratch->inflater, from, n_from, ret_bytes, room, ret_n_bytes)) {
    case LIBDEFLATE_SUCCESS: return 0;
    case LIBDEFLATE_INSUFFICIENT_SPACE: return CODEC_FAULT_LONG;
    default: return CODEC_FAULT_CORRUPT;
    }
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    int r = codec_use_deflater(step, scratch, 6);
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
