/* Arrays in memory: the caller's own, and blocks of shared memory. */
#pragma once

#include "client/array.h"

/* Checks what a caller says of an array and fills all but the location; strides NULL: C order.
 * bad-argument, bad-shape, bad-extent. */
int memory_describe(enum gad_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                    struct array *ret_array, struct gad_error *error) GAD_MUST_CHECK;

/* The region is known to the daemon in this session. Waits for the answer where it was not. */
int memory_attach(struct gad_client *client, struct region *region,
                  struct gad_error *error) GAD_MUST_CHECK;

/* An array in shared memory, not attached yet. */
int memory_new_array(struct gad_client *client, const struct array *described,
                     struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;

/* Whether the two arrays have a byte of this process's memory in common, judged by their ranges. */
bool memory_overlaps(const struct gad_array *a, const struct gad_array *b);
