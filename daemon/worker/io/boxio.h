/* Moving an n-dimensional box between a file and memory with few system calls. */
#pragma once

#include "daemon/worker/io/port.h"
#include "proto/box.h"

#define BOXIO_BOUNCE_BYTES (64 * 1024)

enum { BOXIO_FILE, BOXIO_MEMORY }; /* whose strides are which in a struct box */

struct boxio {
    int fd;
    bool is_in_memory;       /* never waits, so may be read whatever the caller allows */
    uint64_t device;         /* else: st_dev, of who asks for it */
    int64_t n_blocks;        /* with is_in_memory: what the file had when the job began */
    const char *name;        /* of the array, for errors */
    struct writing *writing; /* NULL: writes go through the page cache */
    struct gaps *gaps;       /* NULL: what lies between elements is somebody else's */
    bool may_span;           /* with gaps: the descriptor may be read, too */
    int64_t offset; /* in the file, of the box's first element; all of the box fits 63 bits */
    int64_t item_bytes;
    struct box box; /* fastest in the file first; strides there are not negative */
};

/* 0; -EAGAIN (only without io->may_block): part of it is not in the page cache; short-read with the
 * numbers; io-error and others from errno. */
int boxio_read(const struct boxio *b, void *memory, const struct port_io *io,
               struct gad_error *error) GAD_MUST_CHECK;

/* 0; no-space, read-only, io-error, region-fault. Writes the elements and nothing between them,
 * unless there are gaps and it may_span. */
int boxio_write(const struct boxio *b, const void *memory, const struct port_io *io,
                struct gad_error *error) GAD_MUST_CHECK;

/* Around calls that may wait for a disk on a thread whose io does not say so: a compute thread that
 * writes, which is no hang: its time begins anew after it. While it is in one call for long another
 * thread has its place. I/O threads count as blocked all along. */
void boxio_enter_blocking(const struct port_io *io);
void boxio_leave_blocking(const struct port_io *io);

/* The box as zeros, without a file. */
void boxio_zero(const struct boxio *b, void *memory);
