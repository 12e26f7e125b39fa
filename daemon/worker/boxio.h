/* Moving an n-dimensional box between a file and memory with few system calls. */
#pragma once

#include "daemon/worker/port.h"

#include <pthread.h>

#define BOXIO_BOUNCE_BYTES (64 * 1024)
#define BOXIO_STRETCHES    16

struct boxio_axis {
    int64_t count;                      /* > 0 */
    int64_t file_stride, memory_stride; /* bytes; file_stride >= 0 */
};

/* Leave to write what lies between elements as it was, for one job: its threads take turns, so that
 * each finds what the others have written. */
struct boxio_gaps {
    pthread_mutex_t stretches[BOXIO_STRETCHES]; /* of BOXIO_BOUNCE_BYTES of a file each, in turn */
};
void boxio_gaps_init(struct boxio_gaps *gaps);
void boxio_gaps_deinit(struct boxio_gaps *gaps);

struct boxio {
    int fd;
    bool is_in_memory;       /* never waits, so may be read whatever the caller allows */
    const char *name;        /* of the array, for errors */
    struct writing *writing; /* NULL: writes go through the page cache */
    struct boxio_gaps *gaps; /* NULL: what lies between elements is somebody else's */
    int64_t offset; /* in the file, of the box's first element; all of the box fits 63 bits */
    int64_t item_bytes;
    int n_axes;
    struct boxio_axis axes[ARRAY_MAX_NDIM]; /* slowest in the file first */
};

/* 0; -EAGAIN (only without io->may_block): part of it is not in the page cache; short-read with the
 * numbers; io-error and others from errno. */
int boxio_read(const struct boxio *b, void *memory, const struct port_io *io,
               struct gad_error *error) GAD_MUST_CHECK;

/* 0; no-space, read-only, io-error. Writes the elements and nothing between them, unless there are
 * b->gaps: then the descriptor may be read, too. */
int boxio_write(const struct boxio *b, const void *memory, const struct port_io *io,
                struct gad_error *error) GAD_MUST_CHECK;

/* The box as zeros, without a file. */
void boxio_zero(const struct boxio *b, void *memory);
