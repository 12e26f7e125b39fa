/* A queue of bytes in one piece of memory, whose memory follows what it holds. Inside proto/. */
#pragma once

#include "proto/error.h"

#include <stddef.h>
#include <stdint.h>

struct buffer {
    uint8_t *bytes;
    size_t capacity_bytes;
    size_t start, end;  /* what is held: [start, end) */
    size_t peak_bytes;  /* the most that was held since the memory was last looked at */
    unsigned n_emptied; /* how often it was emptied since */
    size_t kept_bytes;  /* this much of the memory is not given back */
};

void buffer_deinit(struct buffer *buffer);
size_t buffer_n_bytes(const struct buffer *buffer);

/* Room for n bytes behind `end`, moving or growing what is there. 0 or -ENOMEM. */
int buffer_reserve(struct buffer *buffer, size_t n_bytes) GAD_MUST_CHECK;

/* n bytes were written behind `end`; were used up at `start`. */
void buffer_produced(struct buffer *buffer, size_t n_bytes);
void buffer_consumed(struct buffer *buffer, size_t n_bytes);

/* Gives its memory back when nothing is in it. */
void buffer_trim(struct buffer *buffer);
