/* Codecs: from the bytes of a chunk to its elements and back, for all formats whose chunks are
 * packed.
 *
 * A pipeline is what a file says of a dataset: steps in the order in which they were applied. It is
 * data, checked when the file is opened; a chunk is then decoded by any thread that has a scratch.
 * What a chunk decodes to is never longer than its caller says, whatever it claims itself. */
#pragma once

#include "proto/dtype.h"
#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODEC_MAX_STEPS  16
#define CODEC_MAX_VALUES 32

/* What is wrong with a chunk; 0: nothing. */
enum codec_fault {
    CODEC_FAULT_CORRUPT = 1, /* not what this codec writes */
    CODEC_FAULT_CHECKSUM,    /* a checksum differs */
    CODEC_FAULT_SHORT,       /* it ends before the elements do */
    CODEC_FAULT_LONG,        /* there is more in it than the chunk has room for */
    CODEC_FAULT_VALUES,      /* parameters that do not fit the chunk */
};
const char *codec_fault_text(int fault);

struct codec;

/* One step, as a file describes it. */
struct codec_step {
    const struct codec *codec;
    unsigned n_values;
    uint32_t values[CODEC_MAX_VALUES]; /* as HDF5 has them for its filter: level, item size, ... */
    bool is_optional;                  /* a chunk that it does not make smaller goes without */
    /* Of codecs of elements (delta, fixedscaleoffset): what they map, `dtype` to `stored`. */
    enum dtype dtype, stored;
    double scale, offset;
};

struct codec_pipeline {
    unsigned n_steps;
    struct codec_step steps[CODEC_MAX_STEPS]; /* in the order in which they encode */
};

/* How chunks are packed that lie somewhere: each by itself, or as parts of a deflated stream
 * (RFC 1951, as in zip archives), which can only be decoded one after the other. */
struct codec_packing {
    bool is_stream;
    struct codec_pipeline pipeline; /* of a stream: empty */
};

/* Buffers and states of libraries, for one thread at a time. NULL: no memory. */
struct codec_scratch;
struct codec_scratch *codec_scratch_new(void);
struct codec_scratch *codec_scratch_free(struct codec_scratch *scratch); /* NULL; returns NULL */

/* A row of the table (codec_table.c). Functions return 0, -ENOMEM or a codec_fault. */
struct codec {
    const char *name;      /* HDF5's or numcodecs', for messages and `formats`: "deflate" */
    uint32_t hdf5_id;      /* of HDF5's registry of filters; 0: none */
    const char *zarr_name; /* as Zarr's metadata name it; NULL: not there */
    const char *package;   /* Debian's, of the library that it needs; NULL: none */
    /* NULL: that library was not there when this was built. The result has at most `room` bytes. */
    int (*decode)(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes);
    /* NULL: this codec is only read. The same; CODEC_FAULT_LONG: it does not fit. */
    int (*encode)(const struct codec_step *step, struct codec_scratch *scratch, const void *from,
                  size_t n_from, void *ret_bytes, size_t room, size_t *ret_n_bytes);
    /* The most that n_bytes may become. */
    size_t (*bound)(const struct codec_step *step, size_t n_bytes);
};

/* NULL: not in the table. */
const struct codec *codec_of_hdf5(uint32_t id);
const struct codec *codec_of_zarr(const char *name);
const struct codec *codec_of_name(const char *name);
/* The i-th row; NULL behind the last. */
const struct codec *codec_at(size_t i);
/* A filter of HDF5's registry that is not in the table. */
struct codec_elsewhere {
    uint32_t hdf5_id;
    const char *name;    /* "zfp" */
    const char *package; /* that has a plugin for HDF5 */
};
const struct codec_elsewhere *codec_elsewhere(uint32_t hdf5_id); /* NULL: not known to us */
const struct codec_elsewhere *codec_elsewhere_at(size_t i);      /* NULL behind the last */

/* n_from bytes at `from` into exactly n_bytes. skipped: bit i: step i was not applied to this
 * chunk. ret_step: where it failed. 0, -ENOMEM or a codec_fault. */
int codec_decode(const struct codec_pipeline *pipeline, uint32_t skipped,
                 struct codec_scratch *scratch, const void *from, size_t n_from, void *ret_bytes,
                 size_t n_bytes, unsigned *ret_step) GAD_MUST_CHECK;
/* ret_bytes: the scratch's, until its next use. ret_skipped: optional steps that did not help. */
int codec_encode(const struct codec_pipeline *pipeline, struct codec_scratch *scratch,
                 const void *from, size_t n_from, const void **ret_bytes, size_t *ret_n_bytes,
                 uint32_t *ret_skipped) GAD_MUST_CHECK;
