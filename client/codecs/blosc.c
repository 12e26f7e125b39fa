/* Blosc 1: a frame that says its codec, shuffle and blocks itself.
 *
 * values, as HDF5's filter has them: two versions, the item's size, the chunk's bytes, level,
 * shuffle (0 none, 1 bytes, 2 bits), the codec (0 blosclz, 1 lz4, 2 lz4hc, 3 snappy, 4 zlib, 5
 * zstd). Only encoding needs them. One thread each: chunks are decoded side by side.
 */
#include "client/codecs/scratch.h"
#include "client/codecs/shuffle.h"

#include <blosc.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>

enum { ITEM_BYTES = 2, LEVEL = 4, SHUFFLE = 5, CODEC = 6 };

/* Of a frame's head; a bit of its flags, and where its codec begins in them. */
enum { FLAGS = 2, FRAME_ITEM_BYTES = 3, BLOCK_BYTES = 8 };
#define ONE_STREAM     0x10
#define CODEC_SHIFT    5
#define STREAM_VERSION 1    /* of all three codecs */
#define LEAST_STREAM   128u /* bytes: a block with less for each has one stream */

/* A frame of LZ4, zlib or Zstandard, with or without shuffled bytes: unpacked here, block by block.
 *
 *     head | place of block 0, 1, ... | length, stream | length, stream | ...
 *
 * The bytes of a block lie in one stream, or in one for each byte of an item. Streams that are
 * stored as they are go from the frame to their places at once, and items are joined from wherever
 * their bytes are, which takes less than half the time that the library's own way takes. */
struct frame {
    const struct codec *codec; /* of a stream; NULL: a block of LZ4 */
    const uint8_t *bytes;
    size_t n_bytes;      /* of the frame */
    size_t item_bytes;   /* 1 where nothing is shuffled */
    size_t stream_items; /* streams of a whole block, where it has several */
    size_t block_bytes, n_elements_bytes;
};

/* False: the library's. */
static bool read_frame(const uint8_t *bytes, size_t n_bytes, size_t n_elements_bytes,
                       struct frame *ret_frame)
{
    uint8_t flags = bytes[FLAGS];
    size_t item_bytes = bytes[FRAME_ITEM_BYTES], block_bytes;
    unsigned format = flags >> CODEC_SHIFT;
    block_bytes = (size_t)codec_read_little(bytes + BLOCK_BYTES, 4);
    if (bytes[0] != BLOSC_VERSION_FORMAT || bytes[1] != STREAM_VERSION ||
        (flags & (BLOSC_MEMCPYED | BLOSC_DOBITSHUFFLE)))
        return false;
    if (format != BLOSC_LZ4_FORMAT && format != BLOSC_ZLIB_FORMAT && format != BLOSC_ZSTD_FORMAT)
        return false;
    if (item_bytes == 0 || block_bytes == 0 || block_bytes > n_elements_bytes)
        return false;
    size_t n_blocks = (n_elements_bytes - 1) / block_bytes + 1;
    bool is_split = !(flags & ONE_STREAM) && item_bytes <= SHUFFLE_MAX_PLANES &&
                    block_bytes / item_bytes >= LEAST_STREAM;
    bool is_shuffled = flags & BLOSC_DOSHUFFLE && item_bytes > 1;
    if ((is_split && block_bytes % item_bytes != 0) ||
        (n_bytes - BLOSC_MIN_HEADER_LENGTH) / 4 < n_blocks)
        return false;
    *ret_frame = (struct frame){
        .codec = format == BLOSC_ZLIB_FORMAT   ? &codec_deflate
                 : format == BLOSC_ZSTD_FORMAT ? &codec_zstd
                                               : NULL,
        .bytes = bytes,
        .n_bytes = n_bytes,
        .item_bytes = is_shuffled ? item_bytes : 1,
        .stream_items = is_split ? item_bytes : 1,
        .block_bytes = block_bytes,
        .n_elements_bytes = n_elements_bytes,
    };
    return true;
}

static int unpack_stream(const struct frame *frame, struct codec_scratch *scratch,
                         const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to)
{
    size_t n = 0;
    if (frame->codec) {
        int r = frame->codec->decode(NULL, scratch, from, n_from, to, n_to, &n);
        return r == 0 && n != n_to ? CODEC_FAULT_CORRUPT : r;
    }
    int n_there = LZ4_decompress_safe((const char *)from, (char *)to, (int)n_from, (int)n_to);
    return n_there >= 0 && (size_t)n_there == n_to ? 0 : CODEC_FAULT_CORRUPT;
}

/* The next stream's bytes: where they are stored, if they are as they were, else unpacked to `to`.
 */
static int read_stream(const struct frame *frame, struct codec_scratch *scratch, size_t *at,
                       uint8_t *to, size_t n_to, const uint8_t **ret_bytes)
{
    if (*at < BLOSC_MIN_HEADER_LENGTH || *at > frame->n_bytes || frame->n_bytes - *at < 4)
        return CODEC_FAULT_CORRUPT;
    size_t n_stored = (size_t)codec_read_little(frame->bytes + *at, 4);
    const uint8_t *stored = frame->bytes + *at + 4;
    if (n_stored > frame->n_bytes - *at - 4)
        return CODEC_FAULT_CORRUPT;
    *at += 4 + n_stored;
    *ret_bytes = n_stored == n_to ? stored : to;
    return n_stored == n_to ? 0 : unpack_stream(frame, scratch, stored, n_stored, to, n_to);
}

static int decode_block(const struct frame *frame, struct codec_scratch *scratch, size_t at,
                        uint8_t *to, size_t n_bytes)
{
    const uint8_t *streams[SHUFFLE_MAX_PLANES];
    bool is_whole = n_bytes == frame->block_bytes, is_joined = frame->item_bytes > 1;
    size_t n_streams = is_whole ? frame->stream_items : 1, n = n_bytes / n_streams;
    for (size_t i = 0; i < n_streams; i++) {
        uint8_t *place = (is_joined ? (uint8_t *)scratch->inner.data : to) + i * n;
        int r = read_stream(frame, scratch, &at, place, n, &streams[i]);
        if (r)
            return r < 0 ? r : CODEC_FAULT_CORRUPT;
        if (!is_joined && streams[i] != place)
            memcpy(place, streams[i], n);
    }
    if (!is_joined)
        return 0;
    size_t n_items = n_bytes / frame->item_bytes, n_whole = n_items * frame->item_bytes;
    if (n_streams > 1) {
        shuffle_join_planes(streams, to, n_items, frame->item_bytes);
    } else {
        shuffle_join(streams[0], to, n_items, frame->item_bytes);
        memcpy(to + n_whole, streams[0] + n_whole, n_bytes - n_whole);
    }
    return 0;
}

static int decode_frame(const struct frame *frame, struct codec_scratch *scratch, uint8_t *to)
{
    int r = codec_buffer_reserve(&scratch->inner, frame->block_bytes);
    const uint8_t *place = frame->bytes + BLOSC_MIN_HEADER_LENGTH;
    for (size_t done = 0; done < frame->n_elements_bytes && r == 0; place += 4) {
        size_t n = frame->n_elements_bytes - done;
        n = n < frame->block_bytes ? n : frame->block_bytes;
        r = decode_block(frame, scratch, (size_t)codec_read_little(place, 4), to + done, n);
        done += n;
    }
    return r;
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    size_t n_bytes;
    struct frame frame;
    if (n_from < BLOSC_MIN_HEADER_LENGTH)
        return CODEC_FAULT_SHORT;
    if (blosc_cbuffer_validate(from, n_from, &n_bytes) < 0)
        return CODEC_FAULT_CORRUPT;
    if (n_bytes > room)
        return CODEC_FAULT_LONG;
    *ret_n_bytes = n_bytes;
    if (read_frame(from, n_from, n_bytes, &frame))
        return decode_frame(&frame, scratch, ret_bytes);
    int n = blosc_decompress_ctx(from, ret_bytes, n_bytes, 1);
    return n >= 0 && (size_t)n == n_bytes ? 0 : CODEC_FAULT_CORRUPT;
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
