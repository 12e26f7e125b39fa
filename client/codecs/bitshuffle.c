/* bitshuffle, alone or with LZ4 or Zstandard: all first bits of the items of a block, then all
 * second ones, and so on.
 *
 *     block of n items (a multiple of 8):  plane of byte 0 bit 0, n / 8 bytes; of byte 0 bit 1; ...
 *     in a plane:                          item i is bit i % 8 of byte i / 8
 *
 * Blocks follow each other; behind the last whole one is a shorter one of as many items as are
 * left, down to a multiple of 8, and then up to 7 items as they are. With a compressor the chunk
 * begins with its bytes in eight and those of a block in four, big-endian, and each block with its
 * stored bytes in four. values: two versions, the item's size, items of a block (0: as many as make
 * 8 KiB), the compressor (0 none, 2 LZ4, 3 Zstandard), its level.
 *
 * A block goes through a buffer that stays in the cache: bits are exchanged with bytes there, eight
 * at a time, the rest is the byte shuffle.
 */
#include "client/codecs/scratch.h"
#include "client/codecs/shuffle.h"

#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>

enum { ITEM_BYTES = 2, BLOCK_ITEMS = 3, COMPRESSOR = 4, LEVEL = 5 };
enum { COMPRESSOR_NONE = 0, COMPRESSOR_LZ4 = 2, COMPRESSOR_ZSTD = 3 };

#define TARGET_BYTES    8192
#define MIN_BLOCK_ITEMS 128
#define HEAD_BYTES      12
#define LENGTH_BYTES    4
#define BLOCK_OVERHEAD  96 /* what a compressor may add to a small block, and its length */
#define MAX_BLOCK_BYTES (UINT32_C(1) << 30)

struct blocks {
    size_t item_bytes, n_block_items, compressor;
};

static uint32_t value_of(const struct codec_step *step, unsigned i)
{
    return i < step->n_values ? step->values[i] : 0;
}

static bool blocks_of(const struct codec_step *step, struct blocks *ret)
{
    struct blocks blocks = {
        .item_bytes = value_of(step, ITEM_BYTES),
        .n_block_items = value_of(step, BLOCK_ITEMS),
        .compressor = value_of(step, COMPRESSOR),
    };
    if (blocks.item_bytes == 0 || blocks.item_bytes > 1024)
        return false;
    if (blocks.n_block_items == 0) {
        blocks.n_block_items = TARGET_BYTES / blocks.item_bytes / 8 * 8;
        if (blocks.n_block_items < MIN_BLOCK_ITEMS)
            blocks.n_block_items = MIN_BLOCK_ITEMS;
    }
    *ret = blocks;
    return blocks.n_block_items % 8 == 0 &&
           blocks.n_block_items <= MAX_BLOCK_BYTES / blocks.item_bytes &&
           (blocks.compressor == COMPRESSOR_NONE || blocks.compressor == COMPRESSOR_LZ4 ||
            blocks.compressor == COMPRESSOR_ZSTD);
}

/* Eight bytes as a matrix of bits, its rows and columns exchanged. */
static inline uint64_t transpose_bits(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & UINT64_C(0x00aa00aa00aa00aa);
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & UINT64_C(0x0000cccc0000cccc);
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & UINT64_C(0x00000000f0f0f0f0);
    return x ^ t ^ t << 28;
}

/* Byte i of eight, whatever the machine's order is. */
static inline uint64_t pack_byte(uint8_t byte, int i)
{
    return (uint64_t)byte << 8 * i;
}

/* Eight planes of bits, n_bytes each, into a plane of bytes. */
static void join_bits(const uint8_t *restrict planes, uint8_t *restrict bytes, size_t n_bytes)
{
    for (size_t m = 0; m < n_bytes; m++) {
        uint64_t x = 0;
        for (int b = 0; b < 8; b++)
            x |= pack_byte(planes[(size_t)b * n_bytes + m], b);
        x = transpose_bits(x);
        for (int i = 0; i < 8; i++)
            bytes[8 * m + (size_t)i] = (uint8_t)(x >> 8 * i);
    }
}

static void split_bits(const uint8_t *restrict bytes, uint8_t *restrict planes, size_t n_bytes)
{
    for (size_t m = 0; m < n_bytes; m++) {
        uint64_t x = 0;
        for (int i = 0; i < 8; i++)
            x |= pack_byte(bytes[8 * m + (size_t)i], i);
        x = transpose_bits(x);
        for (int b = 0; b < 8; b++)
            planes[(size_t)b * n_bytes + m] = (uint8_t)(x >> 8 * b);
    }
}

/* One block; work: as many bytes as it has. */
static void join_block(const uint8_t *from, uint8_t *to, uint8_t *work, size_t n_items,
                       size_t item_bytes)
{
    for (size_t k = 0; k < item_bytes; k++)
        join_bits(from + k * n_items, work + k * n_items, n_items / 8);
    shuffle_join(work, to, n_items, item_bytes);
}

static void split_block(const uint8_t *from, uint8_t *to, uint8_t *work, size_t n_items,
                        size_t item_bytes)
{
    shuffle_split(from, work, n_items, item_bytes);
    for (size_t k = 0; k < item_bytes; k++)
        split_bits(work + k * n_items, to + k * n_items, n_items / 8);
}

static int inflate(size_t compressor, struct codec_scratch *scratch, const uint8_t *from,
                   size_t n_from, uint8_t *to, size_t n_to)
{
    if (compressor == COMPRESSOR_LZ4) {
        if (n_from > INT_MAX)
            return CODEC_FAULT_CORRUPT;
        int n = LZ4_decompress_safe((const char *)from, (char *)to, (int)n_from, (int)n_to);
        return n >= 0 && (size_t)n == n_to ? 0 : CODEC_FAULT_CORRUPT;
    }
    if (!scratch->zstd_reader)
        scratch->zstd_reader = ZSTD_createDCtx();
    if (!scratch->zstd_reader)
        return -ENOMEM;
    return ZSTD_decompressDCtx(scratch->zstd_reader, to, n_to, from, n_from) == n_to
               ? 0
               : CODEC_FAULT_CORRUPT;
}

/* Room for a block twice: as it is stored, and to work in. */
static int reserve_block(struct codec_scratch *scratch, size_t n_bytes, uint8_t **ret_stored,
                         uint8_t **ret_work)
{
    int r = codec_buffer_reserve(&scratch->inner, 2 * n_bytes);
    *ret_stored = scratch->inner.data;
    *ret_work = *ret_stored ? *ret_stored + n_bytes : NULL;
    return r;
}

/* What is left of the items, as many as make the next block. */
static size_t next_block(const struct blocks *blocks, size_t n_left)
{
    return n_left >= blocks->n_block_items ? blocks->n_block_items : n_left / 8 * 8;
}

static int decode_blocks(const struct blocks *blocks, struct codec_scratch *scratch,
                         const uint8_t *at, const uint8_t *end, uint8_t *to, size_t n_bytes)
{
    uint8_t *stored, *work;
    size_t n_left = n_bytes / blocks->item_bytes, n_items;
    int r = reserve_block(scratch, next_block(blocks, n_left) * blocks->item_bytes, &stored, &work);
    for (; r == 0 && (n_items = next_block(blocks, n_left)) > 0; n_left -= n_items) {
        size_t n_block = n_items * blocks->item_bytes, n_stored = n_block;
        const uint8_t *from = at;
        if (blocks->compressor != COMPRESSOR_NONE) {
            if (end - at < LENGTH_BYTES)
                return CODEC_FAULT_SHORT;
            n_stored = (size_t)codec_read_big(at, LENGTH_BYTES);
            at += LENGTH_BYTES;
        }
        if (n_stored > (size_t)(end - at))
            return CODEC_FAULT_SHORT;
        if (blocks->compressor != COMPRESSOR_NONE) {
            r = inflate(blocks->compressor, scratch, at, n_stored, stored, n_block);
            from = stored;
        }
        if (r == 0)
            join_block(from, to, work, n_items, blocks->item_bytes);
        at += n_stored;
        to += n_block;
    }
    if (r)
        return r;
    size_t n_tail = n_left * blocks->item_bytes + n_bytes % blocks->item_bytes;
    if (n_tail > (size_t)(end - at))
        return CODEC_FAULT_SHORT;
    memcpy(to, at, n_tail);
    return 0;
}

static int decode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    const uint8_t *at = from, *end = at + n_from;
    struct blocks blocks;
    size_t n_bytes = n_from;
    if (!blocks_of(step, &blocks))
        return CODEC_FAULT_VALUES;
    if (blocks.compressor != COMPRESSOR_NONE) {
        if (n_from < HEAD_BYTES)
            return CODEC_FAULT_SHORT;
        uint64_t n_said = codec_read_big(at, 8), n_block = codec_read_big(at + 8, LENGTH_BYTES);
        if (n_said > room)
            return CODEC_FAULT_LONG;
        if (n_block == 0 || n_block > MAX_BLOCK_BYTES || n_block % (8 * blocks.item_bytes) != 0)
            return CODEC_FAULT_CORRUPT;
        blocks.n_block_items = (size_t)n_block / blocks.item_bytes;
        n_bytes = (size_t)n_said;
        at += HEAD_BYTES;
    }
    if (n_bytes > room)
        return CODEC_FAULT_LONG;
    *ret_n_bytes = n_bytes;
    return decode_blocks(&blocks, scratch, at, end, ret_bytes, n_bytes);
}

/* 0: it does not fit. */
static size_t deflate(const struct codec_step *step, size_t compressor,
                      struct codec_scratch *scratch, const uint8_t *from, size_t n_from,
                      uint8_t *to, size_t room)
{
    if (compressor == COMPRESSOR_LZ4) {
        int n = LZ4_compress_default((const char *)from, (char *)to, (int)n_from,
                                     room > INT_MAX ? INT_MAX : (int)room);
        return n > 0 ? (size_t)n : 0;
    }
    if (!scratch->zstd_writer)
        scratch->zstd_writer = ZSTD_createCCtx();
    if (!scratch->zstd_writer)
        return 0;
    uint32_t level = value_of(step, LEVEL);
    size_t n = ZSTD_compressCCtx(scratch->zstd_writer, to, room, from, n_from,
                                 level > 0 && level <= 22 ? (int)level : 3);
    return ZSTD_isError(n) ? 0 : n;
}

static int encode(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes)
{
    const uint8_t *at = from;
    uint8_t *to = ret_bytes, *end = to + room, *planes, *work;
    struct blocks blocks;
    if (!blocks_of(step, &blocks))
        return CODEC_FAULT_VALUES;
    size_t n_left = n_from / blocks.item_bytes, n_items;
    bool is_plain = blocks.compressor == COMPRESSOR_NONE;
    int r = reserve_block(scratch, next_block(&blocks, n_left) * blocks.item_bytes, &planes, &work);
    if (r)
        return r;
    if (room < HEAD_BYTES + n_from)
        return CODEC_FAULT_LONG;
    if (!is_plain) {
        codec_write_big(to, 8, n_from);
        codec_write_big(to + 8, LENGTH_BYTES, blocks.n_block_items * blocks.item_bytes);
        to += HEAD_BYTES;
    }
    for (; (n_items = next_block(&blocks, n_left)) > 0; n_left -= n_items) {
        size_t n_block = n_items * blocks.item_bytes, n_stored = n_block;
        split_block(at, is_plain ? to : planes, work, n_items, blocks.item_bytes);
        if (!is_plain) {
            if (end - to < LENGTH_BYTES)
                return CODEC_FAULT_LONG;
            n_stored = deflate(step, blocks.compressor, scratch, planes, n_block, to + LENGTH_BYTES,
                               (size_t)(end - to) - LENGTH_BYTES);
            if (n_stored == 0)
                return CODEC_FAULT_LONG;
            codec_write_big(to, LENGTH_BYTES, n_stored);
            to += LENGTH_BYTES;
        }
        to += n_stored;
        at += n_block;
    }
    size_t n_tail = n_left * blocks.item_bytes + n_from % blocks.item_bytes;
    if (n_tail > (size_t)(end - to))
        return CODEC_FAULT_LONG;
    memcpy(to, at, n_tail);
    *ret_n_bytes = (size_t)(to - (uint8_t *)ret_bytes) + n_tail;
    return 0;
}

static size_t bound(const struct codec_step *step, size_t n_bytes)
{
    struct blocks blocks;
    if (!blocks_of(step, &blocks))
        return n_bytes;
    if (blocks.compressor == COMPRESSOR_NONE)
        return HEAD_BYTES + n_bytes;
    size_t n_blocks = n_bytes / (blocks.n_block_items * blocks.item_bytes) + 2;
    return HEAD_BYTES + n_bytes + n_bytes / 64 + n_blocks * BLOCK_OVERHEAD;
}

const struct codec codec_bitshuffle = {
    .name = "bitshuffle",
    .hdf5_id = 32008,
    .zarr_name = NULL,
    .package = "liblz4-dev",
    .decode = decode,
    .encode = encode,
    .bound = bound,
};
