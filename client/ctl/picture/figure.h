/* A picture with axes, a bar of colours and a title, as SVG or PNG. */
#pragma once

#include "client/ctl/picture/colours.h"
#include "client/ctl/picture/preview.h"

#define FIGURE_COLUMNS 1440 /* cells that a preview may have */
#define FIGURE_ROWS    1080

struct figure {
    const struct preview *preview;
    enum colour_map map;
    const char *title, *subtitle;
    const char *row_name, *column_name, *units; /* of the axes, of the numbers; "": there is none */
};

/* The file in memory, for free(); NULL: memory is short. */
typedef void *figure_fn(const struct figure *figure, size_t *ret_n_bytes);
figure_fn figure_svg, figure_png;
