/* Serves the blocks of an array that lies in a file, for file systems that the daemon does not read
 * itself. The state is the struct gad_array: its fd, offset_bytes, shape and strides of any
 * sign; as a source also with elements that lie over each other, strides of 0 too. */
#pragma once

#include "client/array.h"

extern const struct provider file_provider;

/* Where the bytes of such an array come from and go to. Both return 0 or a positive errno. */
struct file_bytes {
    int (*read)(void *state, void *buffer, size_t n_bytes, uint64_t offset_bytes);
    int (*write)(void *state, const void *buffer, size_t n_bytes, uint64_t offset_bytes);
    void *state;
};

/* Fills a block as provider->fill does, runs in the order of the file; only `read` is called. */
int file_bytes_fill(const struct gad_array *array, const struct file_bytes *bytes,
                    const int64_t *start, const int64_t *count, void *ret_block);
