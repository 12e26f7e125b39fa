/* What a picture of an array shows: a small array of the means of its parts. */
#pragma once

#include "client/ctl/ctl.h"

struct preview_options {
    unsigned most_rows, most_columns; /* of cells, 1 or more */
    bool is_fast;                     /* every n-th element instead of means */
    bool is_quiet;                    /* no bar */
};

struct preview {
    bool is_line; /* of one axis: one row */
    bool is_even; /* cells are as many elements high as wide */
    bool is_fast; /* cells are single elements, though they stand for more */
    unsigned n_rows, n_columns;
    int64_t height, width;         /* in elements */
    int64_t row_step, column_step; /* elements of a cell; the last one of an axis may have fewer */
    double *means;                 /* n_rows * n_columns; NaN: there is nothing but NaN and fill */
    double *lows, *highs;          /* of a line: the least and greatest of each cell; else NULL */
    double least, greatest;        /* finite ones of what is shown; NaN: there are none */
    bool has_nothing;              /* there is NaN */
};

/* Why there is no picture of an array, as GAD_BAD_SHAPE: 0 axes, no elements, a length that is not
 * known. */
int preview_check(const struct gad_array_info *info, struct gad_error *error) GAD_MUST_CHECK;
/* Of the last two axes, at the first place of those before; in one read, which the daemon makes.
 * info: as expressions see the array. */
int preview_read(struct gad_client *client, struct gad_array *array,
                 const struct gad_array_info *info, const struct preview_options *options,
                 struct preview *ret, struct gad_error *error) GAD_MUST_CHECK;
/* A number's place on the scale: 0 to 1; NaN of NaN. */
double preview_place(const struct preview *preview, double value);
void preview_deinit(struct preview *preview);
