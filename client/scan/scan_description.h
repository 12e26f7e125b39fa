/* What a shared scan is of: chunks of files and how they are packed, as a client hands it over. */
#pragma once

#include "client/codecs/codec.h"
#include "client/scan/scan_stream.h"
#include "proto/wire/shared_scan.h"

struct scan_description {
    uint64_t n_chunks, chunk_bytes; /* the latter of the largest */
    uint32_t n_files, n_kinds;
    const struct scan_file *files;
    struct codec_packing *kinds;      /* heap, where it was read */
    const struct scan_entry *entries; /* n_chunks; like the files in the bytes that were read */
};

/* `bytes` are aligned to 8, and needed as long as what is read, which scan_description_deinit()
 * ends. bad-chunk-table, limit-exceeded; bad-argument: a codec that is not there, or has other
 * parameters; no-memory. */
int scan_description_read(const void *bytes, size_t n_bytes, struct scan_description *ret,
                          struct gad_error *error) GAD_MUST_CHECK;
void scan_description_deinit(struct scan_description *description); /* zeroed: nothing */

/* The sealed memfd. limit-exceeded; no-memory and the like. */
int scan_description_make(const struct scan_description *description, int *ret_fd,
                          struct gad_error *error) GAD_MUST_CHECK;

/* Whether a chunk is part of a stream that has other ones: those are decoded one after the other,
 * in the order of their numbers. index < n_chunks. */
bool scan_goes_on(const struct scan_description *description, uint64_t index);

/* For one thread at a time. */
struct scan_tools {
    struct codec_scratch *scratch;
    struct scan_stream stream; /* of streams that are one chunk */
    void *stored;
    size_t room;
};
int scan_tools_init(struct scan_tools *tools) GAD_MUST_CHECK; /* -ENOMEM */
void scan_tools_deinit(struct scan_tools *tools);             /* zeroed: nothing */

/* Reads and decodes a chunk into chunk_bytes at most. files: n_files descriptors. stream: of chunks
 * that go on (scan_goes_on()), the same for all; may be NULL for others. ret_fault: what was wrong:
 * -errno of reading (-ENODATA: the file ends before the chunk does), or a codec_fault. */
enum scan_status scan_decode(const struct scan_description *description, const int *files,
                             uint64_t index, struct scan_tools *tools, struct scan_stream *stream,
                             void *ret_elements, int *ret_fault);
