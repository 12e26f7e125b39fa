/* Copying an n-dimensional box from one layout to another. */
#pragma once

#include "proto/array.h"

struct boxcopy_axis {
    int64_t count;                  /* > 0 */
    int64_t from_stride, to_stride; /* bytes */
};

struct boxcopy {
    bool is_past_cache; /* long runs are not kept in the cache: see boxcopy_fence() */
    int64_t item_bytes;
    int n_axes;
    struct boxcopy_axis axes[ARRAY_MAX_NDIM]; /* slowest first */
};

void boxcopy(const struct boxcopy *b, void *to, const void *from);
/* What was written past the cache comes before whatever the calling thread writes after this. */
void boxcopy_fence(void);
