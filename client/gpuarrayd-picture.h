/** gpuarrayd: pictures of small arrays that stand for large ones, as PNG and SVG files. Included by
 * gpuarrayd.h.
 *
 * An array is cut into cells, each of so many rows and columns of elements, and shown by what they
 * come to, as their means: by jobs of the caller's. No daemon is asked here.
 */
#pragma once

#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GAD_PICTURE_ROWS    1080 /**< of cells, at most */
#define GAD_PICTURE_COLUMNS 1440

/** How numbers become colours, of which lightness rises evenly. */
enum gad_colours { GAD_VIRIDIS, GAD_MAGMA, GAD_GREY };

/** What a picture shows. All members that are not said are zero. */
struct gad_picture {
    size_t size;        /**< sizeof(struct gad_picture) */
    bool is_line;       /**< of one axis: height, row_step and n_rows are 1 */
    bool is_even;       /**< cells are drawn as high as wide */
    unsigned n_rows;    /**< of cells: height / row_step, rounded up */
    unsigned n_columns; /**< the same of width and column_step */
    int64_t height;     /**< of the array, in elements */
    int64_t width;
    int64_t row_step; /**< elements of a cell; the last one of an axis may have fewer */
    int64_t column_step;
    const double *means; /**< n_rows * n_columns, row by row; NaN: there is nothing */
    const double *lows;  /**< of a line: the least of each cell; else NULL */
    const double *highs; /**< and the greatest */
    enum gad_colours colours;
    const char *title; /**< texts in UTF-8; NULL: none */
    const char *subtitle;
    const char *row_name; /**< of the axes */
    const char *column_name;
    const char *units; /**< of the numbers */
};

/** Draws a picture as a PNG file in memory: with axes, a bar of colours and a title.
 * picture: not NULL.
 * ret_file: gets the file, the caller's, for free().
 * ret_n_bytes: gets its size.
 * GAD_BAD_ARGUMENT also where the picture's numbers do not fit each other, or there are more cells
 * than GAD_PICTURE_ROWS and GAD_PICTURE_COLUMNS. */
enum gad_status gad_picture_png(const struct gad_picture *picture, void **ret_file,
                                size_t *ret_n_bytes, struct gad_error *error);

/** The same as SVG, a text without a zero at its end.
 * picture: as for gad_picture_png().
 * ret_file: likewise.
 * ret_n_bytes: likewise.
 * The statuses of gad_picture_png(). */
enum gad_status gad_picture_svg(const struct gad_picture *picture, void **ret_file,
                                size_t *ret_n_bytes, struct gad_error *error);

#ifdef __cplusplus
}
#endif
