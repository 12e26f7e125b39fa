/* What stream.c and stream_move.c share. */
#pragma once

#include "client/lib/memory/stream.h"

#include <pthread.h>

struct stream_slot { /* of the ring, as far as it was looked at */
    uint64_t request;
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    uint64_t n_bytes, n_moved,
        run_bytes; /* of the block; of its runs that lie dense in the array */
    uint64_t next; /* where in the array, in bytes, the block's next byte is; UINT64_MAX: nowhere */
};

struct gad_stream {
    struct gad_client *client;
    struct gad_array *array;
    bool is_output, in_other_thread, is_open; /* the last: total_bytes is the most that may be */
    int wake_fd; /* written when something below has changed that a waiting thread must know */
    uint32_t n_slots;
    uint64_t total_bytes, row_bytes, item_bytes;
    int64_t n_rows;
    /* Of one that a thread of the library carries from or to a descriptor. */
    bool has_carrier, is_joined, is_pipe;
    int pipe_fd; /* owned; -1: none */
    pthread_t carrier;
    size_t n_header_bytes; /* that were written, the thread's */

    pthread_mutex_t lock;
    pthread_cond_t woken;
    /* Under the lock. */
    struct feed *feed; /* NULL: no job; the job's */
    struct pump *pump;
    const struct feed *polled; /* whose eventfd is waited for, and must stay; NULL: none */
    bool is_ended;             /* a source: all was pushed */
    bool has_failed;           /* on this side */
    bool has_job_ended;
    struct gad_error failure, job_error;
    int job_status;
    uint64_t at;       /* bytes that have moved */
    uint32_t current;  /* the slot that was used last */
    uint32_t n_untold; /* answers that the worker may not know of */
    struct stream_slot slots[RING_MAX_SLOTS];
};

/* Under the lock, with a feed: moves up to n_bytes between `bytes` and the blocks that the worker
 * asks for, and answers those that are whole; but not the last one of a source before its end.
 * Returns how many. *ret_is_stuck: the ring has no room for the block that comes next. */
uint64_t stream_move(struct gad_stream *stream, char *bytes, uint64_t n_bytes, bool *ret_is_stuck);
/* The same in two steps: where the next bytes go to or come from, and how many lie there in a row;
 * NULL: nowhere now, or the stream has failed. As long as `polled` is the feed the place stays.
 * Then so many of them have moved. */
char *stream_place(struct gad_stream *stream, uint64_t *ret_n_bytes);
void stream_advance(struct gad_stream *stream, uint64_t n_bytes);
/* The last block of a source, which was held back. */
void stream_answer_last(struct gad_stream *stream);
/* stream.c, under the lock. What `failure` says is why; the job, if it has one, fails. */
void stream_fail(struct gad_stream *stream);
/* An open source has ended, at a whole row. */
void stream_end_open(struct gad_stream *stream);
/* Waits until something may have changed, without the lock meanwhile. */
enum gad_status stream_wait(struct gad_stream *stream, int64_t deadline, struct gad_error *error);
/* The worker asks for blocks, and none is the next: the stream fails. */
void stream_fail_stuck(struct gad_stream *stream);
/* Begins anew with another feed. */
void stream_forget_slots(struct gad_stream *stream);
/* stream.c: gad_stream_new(), also without a client: no job reads it. */
enum gad_status stream_new(struct gad_client *client, const struct gad_layout *layout,
                           bool is_output, const struct gad_stream_options *options,
                           struct gad_stream **ret_stream, struct gad_error *error);
