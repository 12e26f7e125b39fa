/* gzip members, one or several behind each other, by libdeflate: the "gzip" of numcodecs and of
 * Zarr version 3.
 *
 * values[0]: the level, 0 to 9. Written: one member, without a name or a time.
 */
#include "client/codecs/scratch.h"

#include <errno.h>
#include <libdeflate.h>

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    const uint8_t *at = from;
    uint8_t *to = ret_bytes;
    size_t left = n_from, done = 0;
    if (!codec_inflater(scratch))
        return -ENOMEM;
    if (n_from == 0)
        return CODEC_FAULT_SHORT;
    while (left > 0) {
        size_t n_in = 0, n_out = 0;
        switch (libdeflate_gzip_decompress_ex(scratch->inflater, at, left, to + done, room - done,
                                              &n_in, &n_out)) {
        case LIBDEFLATE_SUCCESS: break;
        case LIBDEFLATE_INSUFFICIENT_SPACE: return CODEC_FAULT_LONG;
        default: return CODEC_FAULT_CORRUPT;
        }
        at += n_in;
        left -= n_in;
        done += n_out;
    }
    *ret_n_bytes = done;
    return 0;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    int r = codec_use_deflater(step, scratch, 5);
    if (r)
        return r;
    *ret_n_bytes = libdeflate_gzip_compress(scratch->deflater, from, n_from, ret_bytes, room);
    return *ret_n_bytes > 0 ? 0 : CODEC_FAULT_LONG;
}

/* Others store incompressible bytes in blocks of 16 KiB or less, and write names. */
static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes + n_bytes / 256 + 4096;
}

const struct codec codec_gzip = {
    .name = "gzip",
    .zarr_name = "gzip",
    .package = "libdeflate-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
