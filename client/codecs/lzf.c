/* LZF, the filter of h5py: a chunk is one stream, and goes without where it does not become
 * smaller.
 *
 * values: the filter's version, the library's, and the chunk's bytes, which are not believed.
 */
#include "client/codecs/scratch.h"

#include <liblzf/lzf.h>
#include <limits.h>

#include <errno.h>

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    if (n_from > UINT_MAX || n_from == 0)
        return CODEC_FAULT_CORRUPT;
    unsigned n = lzf_decompress(from, (unsigned)n_from, ret_bytes,
                                room > UINT_MAX ? UINT_MAX : (unsigned)room);
    if (n == 0)
        return errno == E2BIG ? CODEC_FAULT_LONG : CODEC_FAULT_CORRUPT;
    *ret_n_bytes = n;
    return 0;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    if (n_from > UINT_MAX || n_from < 4)
        return CODEC_FAULT_LONG;
    *ret_n_bytes = lzf_compress(from, (unsigned)n_from, ret_bytes, (unsigned)n_from - 1);
    return *ret_n_bytes > 0 ? 0 : CODEC_FAULT_LONG;
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes + n_bytes / 16 + 64; /* a literal run of 32 bytes takes one more */
}

const struct codec codec_lzf = {
    .name = "lzf",
    .hdf5_id = 32000,
    .package = "liblzf-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
