/* Array descriptors: dtype, shape, strides, and where the elements are.
 *
 * Strides are bytes and may be negative or zero (sources only); `offset` of a location points at
 * element [0, ..., 0], as NumPy's data pointer does.
 */
#pragma once

#include "proto/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#define ARRAY_MAX_NDIM         32
#define ARRAY_NAME_SIZE        64          /* bytes, with the NUL */
#define ARRAY_MAX_INLINE_BYTES (64 * 1024) /* of one inline array */

enum location_kind {
    LOCATION_NONE, /* an output without `to`: the result comes inline in the reply */
    LOCATION_INLINE,
    LOCATION_REGION,
    LOCATION_FILE,
    LOCATION_PROVIDER,
};

/* Descriptors are named by their index among those of the message (fd_index). */
struct location {
    enum location_kind kind;
    union {
        struct { /* sources only; C order, no strides; points into the message's body */
            const void *bytes;
            uint64_t size_bytes;
        } inlined;
        struct {
            uint64_t id;
            uint64_t offset_bytes;
        } region;
        struct {
            uint32_t fd_index;
            uint64_t offset_bytes; /* contiguous: of element 0; grid: unused, 0 */
            /* A grid of chunks (sources only): every chunk is whole (edge chunks too, as in HDF5),
             * in C order, chunk_shape elements; table_fd is a sealed memfd of n_chunks entries
             * (struct chunk_entry) in C order of the grid. */
            bool is_grid;
            uint32_t table_fd_index;
            uint64_t n_chunks;
            int64_t chunk_shape[ARRAY_MAX_NDIM];
        } file;
        struct {
            uint32_t ring_fd_index;    /* sealed memfd, see proto/wire/ring.h */
            uint32_t request_fd_index; /* eventfd, worker to client */
            uint32_t done_fd_index;    /* eventfd, client to worker */
            uint32_t n_slots;
            uint64_t slot_bytes;
            bool is_stream;  /* its elements come, or are taken, once and in C order */
            bool wraps;      /* of a source: a block may go on beyond the end of an axis, with what
                                is at its beginning */
            bool has_chunks; /* the client stores it in such chunks: one is best asked for whole */
            int64_t chunk_shape[ARRAY_MAX_NDIM];
        } provider;
    };
};

/* One entry of a chunk table, native endian (the peer is on the same machine). */
struct chunk_entry {
    uint64_t offset_bytes; /* in the file; CHUNK_ABSENT: never written, reads as `fill` (zero) */
    uint64_t size_bytes;   /* must be the full chunk's size */
};
#define CHUNK_ABSENT UINT64_MAX

struct array {
    enum dtype dtype;
    bool is_swapped; /* stored big-endian */
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    int64_t strides[ARRAY_MAX_NDIM]; /* bytes; always filled (C order when none were given) */
    /* A source whose first axis ends where its client says so; shape[0] is the most it may be.
     * Every axis of the job that is as long is this one. */
    bool is_open;
    struct location at;
};

/* C-order strides of a shape. */
void array_c_strides(int ndim, const int64_t *shape, int64_t item_bytes, int64_t *ret_strides);

/* Checks ndim, each dimension >= 0, and that the number of elements, bytes and every address fit
 * 63 bits; with `array->strides`. Array name for the error. bad-shape, bad-extent. */
int array_check(const struct array *array, const char *name,
                struct gad_error *error) GAD_MUST_CHECK;

/* Valid only after array_check(). */
int64_t array_n_elements(const struct array *array);
int64_t array_n_bytes(const struct array *array); /* n_elements x item size */

/* The byte range touched, relative to element 0: [ret_low, ret_high). Empty arrays: 0, 0.
 * Valid only after array_check(). */
void array_extent(const struct array *array, int64_t *ret_low, int64_t *ret_high);

/* In which its elements are stored, or NULL: files' own and those of a client that provides them.
 */
const int64_t *array_chunk_shape(const struct array *array);

/* C- or Fortran-contiguous (dimensions of 1 do not count). */
bool array_is_c_contiguous(const struct array *array);
bool array_is_f_contiguous(const struct array *array);

/* NumPy's broadcasting of shape `b` into `shape` (in and out). bad-shape when they do not fit;
 * the message names both shapes. ret_ndim in and out. */
int array_broadcast(int *ndim, int64_t *shape, int b_ndim, const int64_t *b_shape,
                    struct gad_error *error) GAD_MUST_CHECK;

/* "(3, 4)", "(5,)", "()" into buffer, "?" for a length below 0; returns buffer. */
char *array_format_shape(int ndim, const int64_t *shape, char *buffer, size_t n_bytes);
