/* bzip2 streams, one or several behind each other: the "bz2" of numcodecs and the "bzip2" of
 * PyTables, netCDF-4 and hdf5plugin.
 *
 * values[0]: the level, 1 to 9.
 */
#include "client/codecs/scratch.h"
#include "proto/util.h"

#include <bzlib.h>
#include <errno.h>
#include <limits.h>

static int fault_of(int status)
{
    switch (status) {
    case BZ_MEM_ERROR: return -ENOMEM;
    case BZ_UNEXPECTED_EOF: return CODEC_FAULT_SHORT;
    case BZ_OUTBUFF_FULL: return CODEC_FAULT_LONG;
    default: return CODEC_FAULT_CORRUPT;
    }
}

/* One stream, whose bytes are in stream->next_in and next_out. */
static int decode_stream(bz_stream *stream)
{
    int status = BZ2_bzDecompressInit(stream, 0, 0);
    if (status != BZ_OK)
        return fault_of(status);
    status = BZ2_bzDecompress(stream);
    unsigned n_in = stream->avail_in, n_out = stream->avail_out;
    BZ2_bzDecompressEnd(stream);
    if (status == BZ_STREAM_END)
        return 0;
    if (status != BZ_OK)
        return fault_of(status);
    return n_in == 0 && n_out > 0 ? CODEC_FAULT_SHORT : CODEC_FAULT_LONG;
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    bz_stream stream = {
        .next_in = (char *)(uintptr_t)from,
        .avail_in = (unsigned)n_from,
        .next_out = ret_bytes,
        .avail_out = (unsigned)min_u64(room, UINT_MAX),
    };
    if (n_from == 0)
        return CODEC_FAULT_SHORT;
    if (n_from > UINT_MAX)
        return CODEC_FAULT_LONG;
    while (stream.avail_in > 0) {
        int r = decode_stream(&stream);
        if (r)
            return r;
    }
    *ret_n_bytes = (size_t)(stream.next_out - (char *)ret_bytes);
    return 0;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    unsigned level = step->n_values > 0 ? step->values[0] : 9;
    unsigned n_to = (unsigned)min_u64(room, UINT_MAX);
    if (level < 1 || level > 9)
        return CODEC_FAULT_VALUES;
    if (n_from > UINT_MAX)
        return CODEC_FAULT_LONG;
    int status = BZ2_bzBuffToBuffCompress(ret_bytes, &n_to, (char *)(uintptr_t)from,
                                          (unsigned)n_from, (int)level, 0, 0);
    if (status != BZ_OK)
        return fault_of(status);
    *ret_n_bytes = n_to;
    return 0;
}

/* The library's manual: a hundredth more and 600 bytes. */
static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return n_bytes + n_bytes / 64 + 1024;
}

const struct codec codec_bz2 = {
    .name = "bz2",
    .hdf5_id = 307,
    .zarr_name = "bz2",
    .package = "libbz2-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
