/* Drawing pixels. Letters are of 5 * 7 dots, two more for what hangs below the line. Called by
 * figure.c.
 */
#include "client/picture/raster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LETTER_COLUMNS 5
#define LETTER_ADVANCE 6
#define LETTER_ROWS    8
#define LETTER_ABOVE   7 /* the base line */
#define CURVE_PIXELS   3

/* Of ' ' to '~': columns from the left, in each the upper dot is bit 0. */
static const char letters[][LETTER_COLUMNS + 1] = {
    "\x00\x00\x00\x00\x00", "\x00\x00\x5f\x00\x00", "\x00\x07\x00\x07\x00", "\x14\x7f\x14\x7f\x14",
    "\x24\x2a\x7f\x2a\x12", "\x23\x13\x08\x64\x62", "\x36\x49\x56\x20\x50", "\x00\x00\x07\x00\x00",
    "\x00\x1c\x22\x41\x00", "\x00\x41\x22\x1c\x00", "\x14\x08\x3e\x08\x14", "\x08\x08\x3e\x08\x08",
    "\x00\x40\x30\x00\x00", "\x08\x08\x08\x08\x08", "\x00\x60\x60\x00\x00", "\x20\x10\x08\x04\x02",
    "\x3e\x51\x49\x45\x3e", "\x00\x42\x7f\x40\x00", "\x42\x61\x51\x49\x46", "\x21\x41\x45\x4b\x31",
    "\x18\x14\x12\x7f\x10", "\x27\x45\x45\x45\x39", "\x3c\x4a\x49\x49\x30", "\x01\x71\x09\x05\x03",
    "\x36\x49\x49\x49\x36", "\x06\x49\x49\x29\x1e", "\x00\x36\x36\x00\x00", "\x00\x56\x36\x00\x00",
    "\x08\x14\x22\x41\x00", "\x14\x14\x14\x14\x14", "\x00\x41\x22\x14\x08", "\x02\x01\x51\x09\x06",
    "\x32\x49\x79\x41\x3e", "\x7e\x11\x11\x11\x7e", "\x7f\x49\x49\x49\x36", "\x3e\x41\x41\x41\x22",
    "\x7f\x41\x41\x22\x1c", "\x7f\x49\x49\x49\x41", "\x7f\x09\x09\x09\x01", "\x3e\x41\x49\x49\x7a",
    "\x7f\x08\x08\x08\x7f", "\x00\x41\x7f\x41\x00", "\x20\x40\x41\x3f\x01", "\x7f\x08\x14\x22\x41",
    "\x7f\x40\x40\x40\x40", "\x7f\x02\x0c\x02\x7f", "\x7f\x04\x08\x10\x7f", "\x3e\x41\x41\x41\x3e",
    "\x7f\x09\x09\x09\x06", "\x3e\x41\x51\x21\x5e", "\x7f\x09\x19\x29\x46", "\x46\x49\x49\x49\x31",
    "\x01\x01\x7f\x01\x01", "\x3f\x40\x40\x40\x3f", "\x1f\x20\x40\x20\x1f", "\x3f\x40\x38\x40\x3f",
    "\x63\x14\x08\x14\x63", "\x07\x08\x70\x08\x07", "\x61\x51\x49\x45\x43", "\x00\x7f\x41\x41\x00",
    "\x02\x04\x08\x10\x20", "\x00\x41\x41\x7f\x00", "\x04\x02\x01\x02\x04", "\x40\x40\x40\x40\x40",
    "\x00\x01\x02\x04\x00", "\x20\x54\x54\x54\x78", "\x7f\x48\x44\x44\x38", "\x38\x44\x44\x44\x20",
    "\x38\x44\x44\x48\x7f", "\x38\x54\x54\x54\x18", "\x08\x7e\x09\x01\x02", "\x18\xa4\xa4\xa4\x7c",
    "\x7f\x08\x04\x04\x78", "\x00\x44\x7d\x40\x00", "\x40\x80\x84\x7d\x00", "\x7f\x10\x28\x44\x00",
    "\x00\x41\x7f\x40\x00", "\x7c\x04\x18\x04\x78", "\x7c\x08\x04\x04\x78", "\x38\x44\x44\x44\x38",
    "\xfc\x24\x24\x24\x18", "\x18\x24\x24\x24\xfc", "\x7c\x08\x04\x04\x08", "\x48\x54\x54\x54\x20",
    "\x04\x3f\x44\x40\x20", "\x3c\x40\x40\x20\x7c", "\x1c\x20\x40\x20\x1c", "\x3c\x40\x30\x40\x3c",
    "\x44\x28\x10\x28\x44", "\x1c\xa0\xa0\xa0\x7c", "\x44\x64\x54\x4c\x44", "\x00\x08\x36\x41\x00",
    "\x00\x00\x7f\x00\x00", "\x00\x41\x36\x08\x00", "\x10\x08\x08\x10\x08",
};

void raster_init(struct raster *raster, double width, double height, unsigned scale)
{
    *raster =
        (struct raster){(unsigned)ceil(width * scale), (unsigned)ceil(height * scale), scale, NULL};
    size_t n = (size_t)raster->width * raster->height * sizeof(*raster->pixels);
    raster->pixels = malloc(n);
    if (raster->pixels)
        memset(raster->pixels, 0xff, n);
}

void raster_deinit(struct raster *raster)
{
    free(raster->pixels);
}

/* The nearest of 0 to most; NaN is 0. */
static unsigned clipped(double value, unsigned most)
{
    return !(value > 0) ? 0 : value < most ? (unsigned)(value + 0.5) : most;
}

/* In pixels. */
static void fill(struct raster *r, double left, double top, double right, double bottom,
                 struct colour colour)
{
    unsigned x0 = clipped(left, r->width), x1 = clipped(right, r->width);
    unsigned y0 = clipped(top, r->height), y1 = clipped(bottom, r->height);
    for (size_t y = y0; y < y1 && r->pixels; y++)
        for (size_t x = x0; x < x1; x++)
            r->pixels[y * r->width + x] = colour;
}

void raster_rectangle(struct raster *raster, struct svg_point corner, double width, double height,
                      struct colour colour)
{
    double scale = raster->scale;
    fill(raster, corner.x * scale, corner.y * scale, (corner.x + width) * scale,
         (corner.y + height) * scale, colour);
}

/* What a piece covers of one column of pixels is a stroke up or down. */
static void draw_piece(struct raster *r, struct svg_point from, struct svg_point to,
                       struct colour colour)
{
    double width = to.x - from.x, half = CURVE_PIXELS / 2.0;
    for (double x = from.x; x <= to.x; x++) {
        double y = width > 0 ? from.y + (to.y - from.y) * (x - from.x) / width : from.y;
        double next =
            width > 0 ? from.y + (to.y - from.y) * fmin((x + 1 - from.x) / width, 1) : to.y;
        fill(r, x - half, fmin(y, next) - half, x + half, fmax(y, next) + half, colour);
    }
}

void raster_curve(struct raster *raster, const struct svg_point *points, size_t n,
                  struct colour colour)
{
    double scale = raster->scale;
    for (size_t i = 0; i < n; i++) {
        const struct svg_point *next = &points[i + 1 < n ? i + 1 : i];
        draw_piece(raster, (struct svg_point){points[i].x * scale, points[i].y * scale},
                   (struct svg_point){next->x * scale, next->y * scale}, colour);
    }
}

/* A row of cells is drawn one pixel high; the others are copies. */
void raster_image(struct raster *raster, struct svg_point corner, double width, double height,
                  const struct colour *cells, unsigned n_columns, unsigned n_rows)
{
    double scale = raster->scale, left = corner.x * scale, top = corner.y * scale;
    double cell_width = width * scale / n_columns, cell_height = height * scale / n_rows;
    size_t stride = raster->width;
    for (unsigned y = 0; y < n_rows && raster->pixels; y++) {
        const struct colour *row = &cells[(size_t)y * n_columns];
        unsigned y0 = clipped(top + y * cell_height, raster->height),
                 y1 = clipped(top + (y + 1) * cell_height, raster->height);
        struct colour *first = raster->pixels + y0 * stride;
        unsigned x1 = clipped(left, raster->width);
        for (unsigned x = 0; x < n_columns && y0 < y1; x++) {
            unsigned x0 = x1;
            x1 = clipped(left + (x + 1) * cell_width, raster->width);
            for (unsigned i = x0; i < x1; i++)
                first[i] = row[x];
        }
        unsigned x0 = clipped(left, raster->width);
        for (unsigned i = y0 + 1; i < y1; i++)
            memcpy(raster->pixels + i * stride + x0, first + x0, (x1 - x0) * sizeof(*first));
    }
}

static void draw_letter(struct raster *r, double left, double top, char character,
                        struct colour colour)
{
    const char *letter = letters[(character < ' ' || character > '~' ? '?' : character) - ' '];
    double dot = r->scale;
    for (unsigned x = 0; x < LETTER_COLUMNS; x++)
        for (unsigned y = 0; y < LETTER_ROWS; y++)
            if ((unsigned char)letter[x] >> y & 1)
                fill(r, left + x * dot, top + y * dot, left + (x + 1) * dot, top + (y + 1) * dot,
                     colour);
}

double raster_text_width(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return (double)(n * LETTER_ADVANCE);
}

void raster_text(struct raster *raster, struct svg_point at, enum svg_anchor anchor,
                 struct colour colour, const char *text)
{
    double width = raster_text_width(text), scale = raster->scale;
    double left = at.x - (anchor == SVG_END ? width : anchor == SVG_MIDDLE ? width / 2 : 0);
    for (; *text; text++) {
        if (((unsigned char)*text & 0xc0) == 0x80)
            continue;
        draw_letter(raster, round(left * scale), round((at.y - LETTER_ABOVE) * scale), *text,
                    colour);
        left += LETTER_ADVANCE;
    }
}
