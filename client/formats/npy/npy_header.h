/* The header of an npy file, as bytes: parsed (versions 1 to 3) and written (version 1). Pure. */
#pragma once

#include "proto/array.h"

#include <stddef.h>

#define NPY_PREAMBLE_BYTES   12           /* enough to know a header's size, whatever the version */
#define NPY_MAX_HEADER_BYTES (64u * 1024) /* of the text; with the preamble up to 12 more */
#define NPY_DATA_OFFSET      4096         /* where the elements begin in files that we write */

struct npy_header {
    enum dtype dtype;
    bool is_swapped;
    bool fortran_order;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    uint64_t data_offset_bytes;
};

/* From the first bytes of a file (NPY_PREAMBLE_BYTES, fewer if the file ends before), the size of
 * preamble and header together = the offset of the data. bad-format, short-read. */
int npy_header_size(const void *bytes, size_t n_bytes, const char *name, size_t *ret_n_bytes,
                    struct gad_error *error) GAD_MUST_CHECK;

/* Parses a whole header, n_bytes as of npy_header_size() or more. The shape is checked by
 * array_check() for its limits. bad-format, bad-dtype, bad-shape, bad-extent, short-read. */
int npy_header_parse(const void *bytes, size_t n_bytes, const char *name,
                     struct npy_header *ret_header, struct gad_error *error) GAD_MUST_CHECK;

/* The same for who only looks: a dtype that is not served is no fault, but told in words. Where it
 * is served, ret_what is "". */
#define NPY_WHAT_SIZE 160
int npy_header_look(const void *bytes, size_t n_bytes, const char *name,
                    struct npy_header *ret_header, char ret_what[NPY_WHAT_SIZE],
                    struct gad_error *error) GAD_MUST_CHECK;

/* Version 1.0, padded so that the data begins at NPY_DATA_OFFSET. */
void npy_header_format(enum dtype dtype, int ndim, const int64_t *shape, bool fortran_order,
                       char ret_bytes[NPY_DATA_OFFSET]);
