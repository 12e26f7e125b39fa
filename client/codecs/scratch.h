/* What codecs keep from one chunk to the next: buffers, and the states of libraries. */
#pragma once

#include "client/codecs/codec.h"

struct codec_buffer {
    void *data;
    size_t room;
};

struct codec_scratch {
    struct codec_buffer buffers[2]; /* between the steps of a pipeline, in turns */
    struct codec_buffer inner;      /* a codec's own */
    /* Of libraries, made when they are first wanted. */
    struct libdeflate_decompressor *inflater;
    struct libdeflate_compressor *deflater;
    int deflater_level;
    struct ZSTD_DCtx_s *zstd_reader;
    struct ZSTD_CCtx_s *zstd_writer;
};

/* Room for n_bytes, what was in it is lost. -ENOMEM. */
int codec_buffer_reserve(struct codec_buffer *buffer, size_t n_bytes) GAD_MUST_CHECK;

/* The states of libraries, made when they are first wanted. False, NULL, -ENOMEM: no memory. */
bool codec_inflater(struct codec_scratch *scratch);
int codec_use_deflater(const struct codec_step *step, struct codec_scratch *scratch,
                       int usual_level) GAD_MUST_CHECK; /* values[0]: 0 to 9 */

/* Numbers of n bytes, the highest first. */
static inline uint64_t codec_read_big(const uint8_t *bytes, int n)
{
    uint64_t value = 0;
    for (int i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return value;
}

static inline void codec_write_big(uint8_t *bytes, int n, uint64_t value)
{
    for (int i = n; i-- > 0; value >>= 8)
        bytes[i] = (uint8_t)value;
}

/* The lowest first. */
static inline uint64_t codec_read_little(const uint8_t *bytes, int n)
{
    uint64_t value = 0;
    for (int i = n; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static inline void codec_write_little(uint8_t *bytes, int n, uint64_t value)
{
    for (int i = 0; i < n; i++, value >>= 8)
        bytes[i] = (uint8_t)value;
}

/* Of fletcher32.c, for the codec: whether the sum of the bytes is this one; and the sum. */
bool fletcher32_is(const uint8_t *bytes, size_t n_bytes, uint32_t sum);
uint32_t fletcher32(const uint8_t *bytes, size_t n_bytes);

/* Rows of the table, each in a file of its own. */
extern const struct codec codec_adler32, codec_bitshuffle, codec_blosc, codec_blosc2, codec_bz2,
    codec_crc32, codec_crc32c, codec_deflate, codec_delta, codec_fixedscaleoffset, codec_fletcher32,
    codec_gzip, codec_lz4, codec_lz4_sized, codec_lzf, codec_lzma, codec_scaleoffset, codec_shuffle,
    codec_szip, codec_zstd;
