/* LZ4 as HDF5's filter frames it: the chunk's bytes in eight, those of a block in four, both
 * big-endian; then of each block its stored bytes in four and the bytes. A block that is stored in
 * as many bytes as it has is stored as it is.
 *
 * values[0]: bytes of a block; 0: the filter's own, 1 GiB.
 */
#include "client/codecs/scratch.h"

#include <limits.h>
#include <lz4.h>
#include <string.h>

#define HEAD_BYTES    12
#define LENGTH_BYTES  4
#define DEFAULT_BLOCK (UINT32_C(1) << 30)

static int decode_block(const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to)
{
    if (n_from == n_to) {
        memcpy(to, from, n_to);
        return 0;
    }
    if (n_from > INT_MAX || n_to > INT_MAX)
        return CODEC_FAULT_CORRUPT;
    int n = LZ4_decompress_safe((const char *)from, (char *)to, (int)n_from, (int)n_to);
    return n >= 0 && (size_t)n == n_to ? 0 : CODEC_FAULT_CORRUPT;
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    const uint8_t *at = from, *end = at + n_from;
    uint8_t *to = ret_bytes;
    if (n_from < HEAD_BYTES)
        return CODEC_FAULT_SHORT;
    uint64_t n_bytes = codec_read_big(at, 8), block = codec_read_big(at + 8, 4);
    if (n_bytes > room)
        return CODEC_FAULT_LONG;
    if (block == 0 && n_bytes > 0)
        return CODEC_FAULT_CORRUPT;
    at += HEAD_BYTES;
    for (uint64_t left = n_bytes; left > 0;) {
        size_t n = block < left ? (size_t)block : (size_t)left;
        if (end - at < LENGTH_BYTES)
            return CODEC_FAULT_SHORT;
        size_t n_stored = (size_t)codec_read_big(at, LENGTH_BYTES);
        at += LENGTH_BYTES;
        if (n_stored > (size_t)(end - at))
            return CODEC_FAULT_SHORT;
        int r = decode_block(at, n_stored, to, n);
        if (r)
            return r;
        at += n_stored;
        to += n;
        left -= n;
    }
    *ret_n_bytes = (size_t)n_bytes;
    return 0;
}

static size_t block_of(const struct codec_step *step, size_t n_bytes)
{
    size_t block = step->n_values > 0 && step->values[0] > 0 ? step->values[0] : DEFAULT_BLOCK;
    if (block > DEFAULT_BLOCK)
        block = DEFAULT_BLOCK;
    return n_bytes > 0 && n_bytes < block ? n_bytes : block;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    const char *at = from;
    uint8_t *to = ret_bytes, *end = to + room;
    size_t block = block_of(step, n_from);
    if (room < HEAD_BYTES)
        return CODEC_FAULT_LONG;
    codec_write_big(to, 8, n_from);
    codec_write_big(to + 8, 4, block);
    to += HEAD_BYTES;
    for (size_t left = n_from; left > 0;) {
        size_t n = block < left ? block : left;
        if ((size_t)(end - to) < LENGTH_BYTES + n)
            return CODEC_FAULT_LONG;
        int n_stored = LZ4_compress_default(at, (char *)to + LENGTH_BYTES, (int)n, (int)n - 1);
        if (n_stored <= 0) {
            memcpy(to + LENGTH_BYTES, at, n);
            n_stored = (int)n;
        }
        codec_write_big(to, LENGTH_BYTES, (uint64_t)n_stored);
        to += LENGTH_BYTES + n_stored;
        at += n;
        left -= n;
    }
    *ret_n_bytes = (size_t)(to - (uint8_t *)ret_bytes);
    return 0;
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    size_t n_blocks = n_bytes / block_of(step, n_bytes) + 1;
    return n_bytes + n_blocks * (LENGTH_BYTES + 16) + HEAD_BYTES + n_bytes / 255;
}

const struct codec codec_lz4 = {
    .name = "lz4",
    .hdf5_id = 32004,
    .package = "liblz4-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
