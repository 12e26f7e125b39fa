/* Writing SVG: a picture as text that every browser shows. */
#pragma once

#include <stddef.h>
#include <stdio.h>

struct svg_point {
    double x, y;
};

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

/* A white page of so many units, which are pixels where nobody scales it. */
void svg_begin(FILE *file, double width, double height, const char *title);
void svg_end(FILE *file);

/* Colours are "#rrggbb". */
void svg_rectangle(FILE *file, struct svg_point corner, double width, double height,
                   const char *fill, double opacity);
void svg_line(FILE *file, struct svg_point from, struct svg_point to, const char *colour);
/* Through all points; one alone is a dot. dashes: "" or as "4 3". */
void svg_curve(FILE *file, const struct svg_point *points, size_t n, const char *colour,
               const char *dashes);
/* Between the points and a line at this height. */
void svg_area(FILE *file, const struct svg_point *points, size_t n, double base, const char *colour,
              double opacity);

/* A PNG file of n bytes, stretched, its pixels as they are. */
void svg_image(FILE *file, struct svg_point corner, double width, double height, const void *png,
               size_t n);

/* At the text's base line. */
void svg_text(FILE *file, struct svg_point at, enum svg_anchor anchor, double size,
              const char *colour, const char *text);
/* About how wide it is. */
double svg_text_width(const char *text, double size);
/* Any bytes as the text of an element: what XML does not allow is '?'. */
void svg_write_escaped(FILE *file, const char *text);
