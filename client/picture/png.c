/* A PNG file with a palette: a map has COLOUR_STEPS colours, and what stands around it a few more.
 * libpng writes its chunks; the pixels, a byte each, are packed by libdeflate, fast, so that a
 * picture costs little beside the reading of the array that it shows.
 */
#include "client/picture/raster.h"

#include <assert.h>
#include <libdeflate.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL        1 /* of libdeflate */
#define HEADER_BYTES 13
#define AROUND_BYTES 128 /* the signature, and what is around the contents of four chunks */
#define BITS         8   /* of a colour's number */
#define MOST_COLOURS 256u
#define SLOTS        1024u /* a power of two, more than colours */
#define NO_COLOUR    0u
#define IS_USED      (1u << 24) /* beside a colour's bits */

_Static_assert(sizeof(struct colour) == 3, "pixels are red, green and blue, a byte each");

struct file {
    uint8_t *bytes;
    size_t n;
};

static void append(png_struct *png, png_byte *data, size_t n)
{
    struct file *file = png_get_io_ptr(png);
    memcpy(file->bytes + file->n, data, n);
    file->n += n;
}

static void flush(png_struct *png) {}

struct palette {
    unsigned n;
    struct colour colours[MOST_COLOURS];
    uint32_t keys[SLOTS];
    uint8_t numbers[SLOTS];
};

/* The slot of a colour, or the one where it belongs. */
static unsigned slot_of(const struct palette *p, uint32_t key)
{
    unsigned slot = (key * 2654435761u) >> 22;
    while (p->keys[slot] != NO_COLOUR && p->keys[slot] != key)
        slot = (slot + 1) % SLOTS;
    return slot;
}

/* Rows have the number of their filter in front, which is none: colours are there again and again,
 * as they are. */
static void put_rows(struct palette *p, const struct colour *pixels, unsigned width,
                     unsigned height, uint8_t *ret_rows)
{
    for (unsigned y = 0; y < height; y++) {
        *ret_rows++ = PNG_FILTER_VALUE_NONE;
        for (unsigned x = 0; x < width; x++) {
            struct colour colour = *pixels++;
            uint32_t key = IS_USED | (uint32_t)colour.red << 16 | (uint32_t)colour.green << 8 |
                           (uint32_t)colour.blue;
            unsigned slot = slot_of(p, key);
            if (p->keys[slot] == NO_COLOUR) {
                assert(p->n < MOST_COLOURS);
                p->keys[slot] = key;
                p->numbers[slot] = (uint8_t)p->n;
                p->colours[p->n++] = colour;
            }
            *ret_rows++ = p->numbers[slot];
        }
    }
}

/* The rows as zlib has them; NULL: no memory. */
static uint8_t *pack(const struct colour *pixels, unsigned width, unsigned height,
                     struct palette *ret_palette, size_t *ret_n)
{
    size_t n_rows = height * (1 + (size_t)width);
    struct libdeflate_compressor *deflater = libdeflate_alloc_compressor(LEVEL);
    size_t room = libdeflate_zlib_compress_bound(deflater, n_rows);
    uint8_t *rows = malloc(n_rows), *packed = malloc(room);
    bool is_packed = false;
    *ret_palette = (struct palette){.n = 0};
    if (deflater && rows && packed) {
        put_rows(ret_palette, pixels, width, height, rows);
        *ret_n = libdeflate_zlib_compress(deflater, rows, n_rows, packed, room);
        is_packed = *ret_n > 0;
    }
    libdeflate_free_compressor(deflater);
    free(rows);
    if (is_packed)
        return packed;
    free(packed);
    return NULL;
}

static bool write_chunks(struct file *file, unsigned width, unsigned height,
                         const struct palette *palette, const uint8_t *packed, size_t n_packed)
{
    png_byte header[HEADER_BYTES] = {[8] = BITS, PNG_COLOR_TYPE_PALETTE};
    png_struct *png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    if (!png)
        return false;
    if (setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, NULL);
        return false;
    }
    png_set_write_fn(png, file, append, flush);
    png_save_uint_32(header, width);
    png_save_uint_32(header + 4, height);
    png_write_sig(png);
    png_write_chunk(png, (png_const_bytep) "IHDR", header, sizeof(header));
    png_write_chunk(png, (png_const_bytep) "PLTE", (png_const_bytep)palette->colours,
                    palette->n * sizeof(palette->colours[0]));
    png_write_chunk(png, (png_const_bytep) "IDAT", packed, n_packed);
    png_write_chunk(png, (png_const_bytep) "IEND", NULL, 0);
    png_destroy_write_struct(&png, NULL);
    return true;
}

void *raster_png(const struct colour *pixels, unsigned width, unsigned height, size_t *ret_n_bytes)
{
    size_t n_packed = 0;
    struct palette palette;
    uint8_t *packed = pack(pixels, width, height, &palette, &n_packed);
    struct file file = {
        packed ? malloc(n_packed + palette.n * sizeof(*pixels) + AROUND_BYTES) : NULL, 0};
    if (file.bytes && write_chunks(&file, width, height, &palette, packed, n_packed)) {
        free(packed);
        *ret_n_bytes = file.n;
        return file.bytes;
    }
    free(packed);
    free(file.bytes);
    return NULL;
}
