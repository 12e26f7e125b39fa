/* Arrays in memory: the caller's own, and blocks of shared memory. */
#pragma once

#include "client/array.h"

/* Checks what a caller says of an array and fills all but the location. bad-argument, bad-shape,
 * bad-extent. */
int memory_describe(const struct gad_layout *layout, struct array *ret_array,
                    struct gad_error *error) GAD_MUST_CHECK;
/* Dtype, shape and strides of what was described. */
void memory_fill_info(struct gad_array *array, const struct array *described);

/* The region is known to the daemon in this session. Waits for the answer where it was not. */
int memory_attach(struct gad_client *client, struct region *region,
                  struct gad_error *error) GAD_MUST_CHECK;

/* An array in shared memory, not attached yet. is_cleared: its elements are zero; else whatever the
 * client's earlier arrays left. */
int memory_new_array(struct gad_client *client, const struct array *described, bool is_cleared,
                     struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;

enum memory_meeting {
    MEMORY_APART,    /* no byte of this process's memory in common, or none known */
    MEMORY_IS_SAME,  /* every index at the same byte */
    MEMORY_OVERLAPS, /* anything else */
};
enum memory_meeting memory_meet(const struct gad_array *a, const struct gad_array *b);
