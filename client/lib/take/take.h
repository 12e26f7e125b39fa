/* Arrays whose elements along some axes are picked by a list of indices.
 *
 *     array's axes     before...  [axis, axis + n_axes)  after...
 *     the result's     before...  those of the indices   after...
 *
 * The axes in the middle are one here, in C order; a place is an element's number along it. */
#pragma once

#include "client/array.h"
#include "client/gpuarrayd-take.h"
#include "client/rows/row_order.h"

#include <pthread.h>

#define TAKE_BOUNCE_BYTES                                                                          \
    (256u * 1024u) /* that are read at once, more where one place has more                         \
                    */

struct take_window;
struct gad_move_options;

struct take {
    struct gad_array *array, *indices; /* references */
    int axis, n_axes, n_index_axes, n_after;
    enum gad_take_mode mode;
    int64_t length;             /* of the axes that are one */
    int64_t gap_bytes;          /* between elements, that are read rather than passed over */
    int64_t chunk_places;       /* that are decoded together, or cost as much as one; at least 1 */
    bool is_in_file;            /* its elements lie there as they are */
    bool is_in_memory;          /* the array's elements can be copied */
    uint64_t memory_bytes;      /* of windows */
    struct take_window *window; /* NULL: blocks are made one by one */

    pthread_mutex_t lock; /* of what follows */
    bool has_failed;      /* an index is outside, which is: */
    bool is_unsigned;
    int64_t value;
    int64_t failed_at[ARRAY_MAX_NDIM]; /* its place among the indices */
    struct gad_array *unread;          /* whose block could not be had; NULL: none */
};

/* Blocks of the result. Their state is a struct take. */
extern const struct provider take_provider, take_provider_alone;

/* The array's elements by indices, or, by a job, where a mask is true. */
int take_indexed(struct gad_client *client, struct gad_array *array, struct gad_array *indices,
                 const struct gad_take_options *options, const struct gad_move_options *move,
                 struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;

/* A block of any array that is no stream, from its provider or its memory. Positive errno. */
int take_read(const struct gad_array *array, const int64_t *start, const int64_t *count,
              void *ret_block);

/* Indices as places --------------------------------------------------------------------------- */

/* Of a box of the indices, in C order. ret_places has room for all. Positive errno. */
int take_places(struct take *take, const int64_t *start, const int64_t *count, int64_t *ret_places);

/* Elements at places -------------------------------------------------------------------------- */

/* What is read of each place: a box of the axes before and after. */
struct take_part {
    int64_t start[ARRAY_MAX_NDIM],
        count[ARRAY_MAX_NDIM]; /* of the array; 1 along those that are one */
    int64_t n_outer;           /* elements along those before */
    size_t inner_bytes;        /* of those after */
    char *to;                  /* where [outer][order][inner] begin */
    int64_t outer_stride;      /* there, bytes */
};

/* n of an order whose rows are places, by as many threads as there are parts of it. Positive errno.
 */
int take_gather(struct take *take, const struct take_part *part, const struct wanted_row *wanted,
                size_t n);
/* From memory, in any order. */
void take_copy(const struct take *take, const struct take_part *part, const int64_t *places,
               size_t n);

/* Windows ------------------------------------------------------------------------------------- */

/* For a take whose blocks are better made together; else take->window stays NULL. -ENOMEM. */
int take_window_new(struct take *take, const struct gad_array_info *result) GAD_MUST_CHECK;
void take_window_free(struct take_window *window); /* NULL allowed */
/* A block, or *ret_is_done false: it is to be made by itself. Positive errno. */
int take_window_fill(struct take *take, const int64_t *start, const int64_t *count, char *block,
                     bool *ret_is_done);
/* A block by itself. */
int take_block(struct take *take, const int64_t *start, const int64_t *count, char *block);
