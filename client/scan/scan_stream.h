/* A deflated stream, chunk after chunk; and reading files in whole pages. */
#pragma once

#include "proto/wire/shared_scan.h"

struct inflate_state;

struct scan_stream {
    struct inflate_state *decoder; /* NULL: not needed so far */
    uint8_t *input;
    uint64_t n_taken; /* of the packed bytes */
    uint32_t crc;     /* of what was decoded */
    uint64_t next;    /* part, by whoever numbers them; UINT64_MAX: none, until one begins */
};

/* Part `index` is the first one. */
void scan_stream_begin(struct scan_stream *stream, uint64_t index);
void scan_stream_deinit(struct scan_stream *stream); /* zeroed: nothing */
/* Whether both are parts of one stream, if they are parts of streams. */
bool scan_stream_is_same(const struct scan_entry *a, const struct scan_entry *b);
/* A part, which must be the next one. Behind the last one nothing may follow, and the CRC is the
 * entry's. 0, -errno or a codec_fault, which all later parts have too. */
int scan_stream_step(struct scan_stream *stream, uint64_t index, int file_fd,
                     const struct scan_entry *entry, bool is_last, void *ret_bytes) GAD_MUST_CHECK;

/* Whole pages from a page's beginning on, of which n_needed bytes must be there. -errno; -ENODATA.
 */
int scan_read_pages(int fd, void *to, size_t n_bytes, uint64_t offset,
                    size_t n_needed) GAD_MUST_CHECK;
