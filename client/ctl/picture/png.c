/* A PNG file: 8 bits of red, green and blue, one IDAT chunk that libdeflate packs, with the filter
 * that is the difference to the pixel on the left (W3C, Portable Network Graphics).
 */
#include "client/ctl/picture/raster.h"
#include "proto/util.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 12 /* length, name, CRC */
#define IHDR_BYTES  13
#define FILTER_SUB  1
#define LEVEL       6

static void put_u32(uint8_t *to, size_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Around n bytes that lie at to + 8 already; returns its end. */
static uint8_t *end_chunk(uint8_t *to, const char name[4], size_t n)
{
    put_u32(to, n);
    memcpy(to + 4, name, 4);
    put_u32(to + 8 + n, libdeflate_crc32(0, to + 4, n + 4));
    return to + CHUNK_BYTES + n;
}

static void filter(uint8_t *to, const struct colour *pixels, unsigned width, unsigned height)
{
    for (size_t y = 0; y < height; y++) {
        struct colour before = {0, 0, 0};
        *to++ = FILTER_SUB;
        for (size_t x = 0; x < width; x++) {
            struct colour now = pixels[y * width + x];
            *to++ = (uint8_t)(now.red - before.red);
            *to++ = (uint8_t)(now.green - before.green);
            *to++ = (uint8_t)(now.blue - before.blue);
            before = now;
        }
    }
}

void *raster_png(const struct colour *pixels, unsigned width, unsigned height, size_t *ret_n_bytes)
{
    static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    size_t n_raw = (size_t)height * (1 + 3 * (size_t)width);
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(LEVEL);
    size_t most = compressor ? libdeflate_zlib_compress_bound(compressor, n_raw) : 0;
    _cleanup_free_ uint8_t *raw = malloc(n_raw);
    uint8_t *file = malloc(sizeof(signature) + 3 * CHUNK_BYTES + IHDR_BYTES + most);
    size_t n = 0;
    if (raw && file && compressor) {
        uint8_t *at = file + sizeof(signature);
        memcpy(file, signature, sizeof(signature));
        put_u32(at + 8, width);
        put_u32(at + 12, height);
        memcpy(at + 16, (uint8_t[]){8, 2, 0, 0, 0}, 5); /* bits, RGB, deflate, filters, no Adam7 */
        at = end_chunk(at, "IHDR", IHDR_BYTES);
        filter(raw, pixels, width, height);
        n = libdeflate_zlib_compress(compressor, raw, n_raw, at + 8, most);
        at = end_chunk(end_chunk(at, "IDAT", n), "IEND", 0);
        *ret_n_bytes = (size_t)(at - file);
    }
    libdeflate_free_compressor(compressor);
    if (n > 0)
        return file;
    free(file);
    return NULL;
}
