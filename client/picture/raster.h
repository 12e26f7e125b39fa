/* Pictures of pixels: rectangles, curves and texts, written as PNG. Lengths are in units, which are
 * those of svg.h; a picture has `scale` pixels for each. What lies outside is not drawn. */
#pragma once

#include "client/picture/colours.h"
#include "client/picture/svg.h"

struct raster {
    unsigned width, height, scale; /* in pixels; pixels a unit */
    struct colour *pixels;         /* NULL: memory is short */
};

/* White. */
void raster_init(struct raster *raster, double width, double height, unsigned scale);
void raster_deinit(struct raster *raster);

void raster_rectangle(struct raster *raster, struct svg_point corner, double width, double height,
                      struct colour colour);
/* From left to right through all points. */
void raster_curve(struct raster *raster, const struct svg_point *points, size_t n,
                  struct colour colour);
/* Of n_columns * n_rows cells, stretched. */
void raster_image(struct raster *raster, struct svg_point corner, double width, double height,
                  const struct colour *cells, unsigned n_columns, unsigned n_rows);
/* At the text's base line; in ASCII, other characters are '?'. */
void raster_text(struct raster *raster, struct svg_point at, enum svg_anchor anchor,
                 struct colour colour, const char *text);
double raster_text_width(const char *text);

/* A PNG file in memory, for free(), of at most 256 colours; NULL: memory is short. */
void *raster_png(const struct colour *pixels, unsigned width, unsigned height, size_t *ret_n_bytes);
