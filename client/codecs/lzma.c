/* LZMA in xz's container or in the old one of .lzma files: the "lzma" of numcodecs, formats 1
 * and 2.
 *
 * values[0]: the preset, 0 to 9. Written: xz with CRC64. What a stream asks for to be decoded is
 * limited: the highest preset needs 65 MiB.
 */
#include "client/codecs/scratch.h"

#include <errno.h>
#include <lzma.h>

#define MAX_MEMORY_BYTES (UINT64_C(192) << 20)
#define DEFAULT_PRESET   6

static int fault_of(lzma_ret status, const lzma_stream *stream)
{
    switch (status) {
    case LZMA_STREAM_END: return 0;
    case LZMA_OK:
    case LZMA_BUF_ERROR: return stream->avail_out == 0 ? CODEC_FAULT_LONG : CODEC_FAULT_SHORT;
    case LZMA_MEM_ERROR:
    case LZMA_MEMLIMIT_ERROR: return -ENOMEM;
    case LZMA_DATA_ERROR: return CODEC_FAULT_CHECKSUM;
    default: return CODEC_FAULT_CORRUPT;
    }
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    if (n_from == 0)
        return CODEC_FAULT_SHORT;
    lzma_ret status = lzma_auto_decoder(&stream, MAX_MEMORY_BYTES, LZMA_CONCATENATED);
    stream.next_in = from;
    stream.avail_in = n_from;
    stream.next_out = ret_bytes;
    stream.avail_out = room;
    if (status == LZMA_OK)
        status = lzma_code(&stream, LZMA_FINISH);
    int r = fault_of(status, &stream);
    *ret_n_bytes = room - stream.avail_out;
    lzma_end(&stream);
    return r;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    uint32_t preset = step->n_values > 0 ? step->values[0] : DEFAULT_PRESET;
    if (preset > 9)
        return CODEC_FAULT_VALUES;
    *ret_n_bytes = 0;
    lzma_ret status = lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC64, NULL, from, n_from,
                                              ret_bytes, ret_n_bytes, room);
    if (status == LZMA_MEM_ERROR)
        return -ENOMEM;
    return status == LZMA_OK ? 0 : CODEC_FAULT_LONG;
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    return lzma_stream_buffer_bound(n_bytes) + n_bytes / 64 + 1024;
}

const struct codec codec_lzma = {
    .name = "lzma",
    .zarr_name = "lzma",
    .package = "liblzma-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
