/* Frames: how messages travel on a stream socket, and the check that precedes msgpack-c.
 *
 *      0        2        4                8
 *     +--------+--------+----------------+------- ... -------+
 *     | 'G' 'A'| n_fds  | body size      | body (msgpack)    |     little-endian
 *     +--------+--------+----------------+------- ... -------+
 *
 * The descriptors of a frame are sent with its first byte and consumed in order.
 */
#pragma once

#include "proto/error.h"

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_BYTES   8u
#define FRAME_MAX_BODY_BYTES (1024u * 1024u)
#define FRAME_MAX_FDS        253u /* the kernel's SCM_MAX_FD; 3 for each array of the largest job */
#define FRAME_MAX_DEPTH      32u  /* of nested arrays and maps; msgpack-c can do no more */
#define FRAME_MAX_OBJECTS    65536u /* msgpack objects in a body */

struct frame {
    char *body; /* heap, owned */
    size_t size_bytes;
    int fds[FRAME_MAX_FDS]; /* owned; -1 where taken */
    unsigned n_fds;
};

/* Frees the body and closes what was not taken, with close_fd(fd) or close() when NULL. */
void frame_deinit(struct frame *frame, void (*close_fd)(int fd));

void frame_header_encode(unsigned n_fds, size_t body_bytes, uint8_t ret_header[8]);
/* -EPROTO: bad magic; -EMSGSIZE: over a limit. */
int frame_header_decode(const uint8_t header[8], unsigned *ret_n_fds,
                        size_t *ret_body_bytes) GAD_MUST_CHECK;

/* One bounded pass, no allocation, no recursion: exactly one msgpack object, declared counts no
 * larger than the bytes left, depth, total of objects and of the memory that msgpack-c would take,
 * no extension types. 0 or -EPROTO. Only what passed may be given to msgpack-c. */
int frame_body_check(const void *body, size_t size_bytes) GAD_MUST_CHECK;
