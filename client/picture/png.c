/* A PNG file of 8 bits of red, green and blue, by libpng. */
#include "client/picture/raster.h"

#include <png.h>
#include <stdlib.h>

_Static_assert(sizeof(struct colour) == 3, "pixels are what libpng calls PNG_FORMAT_RGB");

void *raster_png(const struct colour *pixels, unsigned width, unsigned height, size_t *ret_n_bytes)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    png_alloc_size_t n = PNG_IMAGE_PNG_SIZE_MAX(image);
    void *file = malloc(n);
    if (file && png_image_write_to_memory(&image, file, &n, 0, pixels, 0, NULL)) {
        *ret_n_bytes = n;
        return file;
    }
    png_image_free(&image);
    free(file);
    return NULL;
}
