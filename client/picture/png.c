/* A PNG file of 8 bits of red, green and blue. libpng writes its chunks; the pixels are packed by
 * libdeflate, fast, so that a picture costs little beside the reading of the array that it shows.
 */
#include "client/picture/raster.h"

#include <libdeflate.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL         1 /* of libdeflate */
#define HEADER_BYTES  13
#define AROUND_BYTES  128 /* the signature, and what is around the contents of three chunks */
#define BITS_A_COLOUR 8

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

/* Each row behind the number of its filter, which is none: colours of a map are there again and
 * again, as they are. */
static void put_rows(const struct colour *pixels, unsigned width, unsigned height,
                     uint8_t *ret_rows)
{
    size_t n = width * sizeof(*pixels);
    for (unsigned y = 0; y < height; y++, ret_rows += n) {
        *ret_rows++ = PNG_FILTER_VALUE_NONE;
        memcpy(ret_rows, pixels + (size_t)y * width, n);
    }
}

/* The rows as zlib has them; NULL: no memory. */
static uint8_t *pack(const struct colour *pixels, unsigned width, unsigned height, size_t *ret_n)
{
    size_t n_rows = height * (1 + width * sizeof(*pixels));
    struct libdeflate_compressor *deflater = libdeflate_alloc_compressor(LEVEL);
    size_t room = libdeflate_zlib_compress_bound(deflater, n_rows);
    uint8_t *rows = malloc(n_rows), *packed = malloc(room);
    bool is_packed = false;
    if (deflater && rows && packed) {
        put_rows(pixels, width, height, rows);
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

static bool write_chunks(struct file *file, unsigned width, unsigned height, const uint8_t *packed,
                         size_t n_packed)
{
    png_byte header[HEADER_BYTES] = {[8] = BITS_A_COLOUR, PNG_COLOR_TYPE_RGB};
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
    png_write_chunk(png, (png_const_bytep) "IDAT", packed, n_packed);
    png_write_chunk(png, (png_const_bytep) "IEND", NULL, 0);
    png_destroy_write_struct(&png, NULL);
    return true;
}

void *raster_png(const struct colour *pixels, unsigned width, unsigned height, size_t *ret_n_bytes)
{
    size_t n_packed = 0;
    uint8_t *packed = pack(pixels, width, height, &n_packed);
    struct file file = {packed ? malloc(n_packed + AROUND_BYTES) : NULL, 0};
    if (file.bytes && write_chunks(&file, width, height, packed, n_packed)) {
        free(packed);
        *ret_n_bytes = file.n;
        return file.bytes;
    }
    free(packed);
    free(file.bytes);
    return NULL;
}
