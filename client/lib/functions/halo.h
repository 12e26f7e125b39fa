/* Boxes of arrays with a halo around them, read by this process. */
#pragma once

#include "client/array.h"
#include "client/gpuarrayd-move.h"

#include <pthread.h>

struct halo_source {
    struct gad_array *array; /* a reference */
    int64_t depth[ARRAY_MAX_NDIM];
    pthread_mutex_t turn; /* of arrays that one thread at a time reads */
};

struct halo_box {
    char *data; /* the first element; in `kept`, or in the array's own memory */
    int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    void *kept[2];
};

/* The box [start, start + count) and `depth` elements around it; those beyond the array's borders
 * as numpy.pad() has them, a constant being 0. By several threads at once. 0 or a positive errno.
 */
int halo_read(struct halo_source *source, enum gad_pad_mode mode, const int64_t *start,
              const int64_t *count, struct halo_box *ret_box) GAD_MUST_CHECK;
void halo_box_deinit(struct halo_box *box);
