/* What a shared scan is of: the file's chunks and how they are packed, as a client hands it over.
 */
#pragma once

#include "client/codecs/codec.h"
#include "proto/wire/shared_scan.h"

struct scan_description {
    uint64_t n_chunks, chunk_bytes;
    struct codec_pipeline pipeline;
    const struct scan_entry *entries; /* n_chunks, in the bytes that were read */
};

/* `bytes` are aligned to 8, and needed as long as what is read. bad-chunk-table, limit-exceeded;
 * bad-argument: a codec that is not there, or has other parameters. */
int scan_description_read(const void *bytes, size_t n_bytes, struct scan_description *ret,
                          struct gad_error *error) GAD_MUST_CHECK;

/* The sealed memfd. limit-exceeded; no-memory and the like. */
int scan_description_make(const struct scan_description *description, int *ret_fd,
                          struct gad_error *error) GAD_MUST_CHECK;

/* For one thread at a time. */
struct scan_tools {
    struct codec_scratch *scratch;
    void *stored;
    size_t room;
};
int scan_tools_init(struct scan_tools *tools) GAD_MUST_CHECK; /* -ENOMEM */
void scan_tools_deinit(struct scan_tools *tools);             /* zeroed: nothing */

/* What was wrong with a chunk. */
struct scan_fault {
    int number; /* -errno of reading it (-ENODATA: the file ends before it does), or a codec_fault
                 */
    unsigned step;
};

/* Reads and decodes a chunk; the elements have chunk_bytes. index < n_chunks. */
enum scan_status scan_decode(const struct scan_description *description, int file_fd,
                             uint64_t index, struct scan_tools *tools, void *ret_elements,
                             struct scan_fault *ret_fault);
