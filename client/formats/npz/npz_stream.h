/* The bytes of a deflated member, as if they lay in a file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct npz_stream;

struct npz_packed {
    uint64_t offset_bytes, packed_bytes, size_bytes; /* in the file; what it unpacks to */
    uint32_t crc;
};

/* fd_take: closed at the end, also when NULL is returned for want of memory. */
struct npz_stream *npz_stream_new(int fd_take, const struct npz_packed *packed);
struct npz_stream *npz_stream_free(struct npz_stream *stream); /* NULL allowed; returns NULL */

/* Where its packed bytes lie, and the file's descriptor, which stays the stream's. */
const struct npz_packed *npz_stream_packed(const struct npz_stream *stream, int *ret_fd);

/* Between the two one thread reads. False: the stream needs no turns any more, anybody may read. */
bool npz_stream_begin(struct npz_stream *stream);
void npz_stream_end(struct npz_stream *stream);

/* state: the stream. n_bytes at offset_bytes of what is unpacked, which is inside; cheapest where
 * offsets rise. Whoever reads the last byte that is needed (npz_stream_need()) learns whether the
 * CRC is right. 0 or a positive errno; npz_stream_fault() then says more. */
int npz_stream_read(void *state, void *buffer, size_t n_bytes, uint64_t offset_bytes);
/* From now on the CRC is compared before anything is read, so that whether a damaged member can be
 * read is no matter of which of its bytes were asked for first. Before threads read. */
void npz_stream_check_first(struct npz_stream *stream);
/* The end of the bytes that are read at all. */
void npz_stream_need(struct npz_stream *stream, uint64_t end_bytes);
/* What is wrong with the data, as a sentence; NULL: nothing was found. */
const char *npz_stream_fault(struct npz_stream *stream);
/* Of a fault: how far in the archive the decoder had come. */
uint64_t npz_stream_fault_offset(const struct npz_stream *stream);
