/* What a picture of an array shows: a small array of the means of its parts. */
#pragma once

#include "client/ctl/ctl.h"

struct preview_options {
    unsigned most_rows, most_columns; /* of cells, 1 or more */
    bool is_fast;                     /* every n-th element instead of means */
    bool is_quiet;                    /* no bar */
};

struct preview {
    struct gad_picture picture; /* without texts and colours */
    double *numbers;            /* means, lows and highs */
    bool is_fast;               /* cells are single elements, though they stand for more */
};

/* Why there is no picture of an array, as GAD_BAD_SHAPE: 0 axes, no elements, a length that is not
 * known. */
int preview_check(const struct gad_array_info *info, struct gad_error *error) GAD_MUST_CHECK;
/* Of the last two axes, at the first place of those before; in one read, which the daemon makes.
 * info: as expressions see the array. */
int preview_read(struct gad_client *client, struct gad_array *array,
                 const struct gad_array_info *info, const struct preview_options *options,
                 struct preview *ret, struct gad_error *error) GAD_MUST_CHECK;
void preview_deinit(struct preview *preview);
