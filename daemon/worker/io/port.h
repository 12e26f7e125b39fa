/* Ports: the arrays of a job on their way in (sources) and out (sinks), whatever their location.
 *
 * A tile asks a port to place a box (where are its elements, with which strides), fills it from
 * where the array lives (sources that are staged) and stores it back (sinks that are staged). What
 * a port can do is in its capabilities; nothing else of the worker asks for a location's kind.
 *
 *     kind      placed in                  fill                  store
 *     inline    the message / the result   -                     -
 *     region    the mapping                -                     -
 *     file      the tile's slot            pread                 pwrite
 *     grid      the tile's slot            pread by chunks       (sources only)
 *     provider  a slot of the ring         the client's doing    the client's doing
 */
#pragma once

#include "daemon/crashpage.h"
#include "daemon/worker/io/guard.h"
#include "daemon/worker/io/region.h"
#include "daemon/worker/io/writing.h"
#include "kernels/engine.h"
#include "proto/array.h"

enum port_capability {
    PORT_RANDOM = 1u << 0, /* any box at any time */
    PORT_MAPPED = 1u << 1, /* the array is addressable as a whole */
    PORT_STAGED = 1u << 2, /* a box passes through memory of the tile's slot */
    PORT_ASKED = 1u << 3,  /* a box is asked of the client, see ring.h */
    PORT_LONG = 1u << 4, /* the longer a box, the faster it is read; it may be of several grains */
};

struct port_box { /* in the port's own axes */
    int64_t start[ARRAY_MAX_NDIM];
    int64_t count[ARRAY_MAX_NDIM];
};

/* How the calling thread does I/O. */
struct port_io {
    bool may_block;                /* false: -EAGAIN instead of waiting for a disk */
    char *bounce;                  /* BOXIO_BOUNCE_BYTES */
    struct crashpage_thread *page; /* told when a call may block; NULL: nobody */
    /* Odd while a compute thread is in a call that may block, and another number in the next such
     * call; NULL: nobody asks. */
    _Atomic uint64_t *call;
    /* An I/O thread's, told to which disk (st_dev; 0: to none) each of its boxes goes; NULL: nobody
     * asks. */
    void (*go_to_disk)(void *thread, uint64_t device);
    void *thread;
};

uint64_t clock_ns(void); /* CLOCK_MONOTONIC */

struct port;
struct ring;
struct gaps;

struct port_ops {
    unsigned capabilities;
    /* memory: the box's place in the slot (of staged ports) or in the ring. The view's strides are
     * those of the port's own axes. */
    void (*place)(const struct port *p, const struct port_box *box, void *memory,
                  struct engine_view *ret_view);
    /* NULL where nothing is to be done. 0, -EAGAIN, or a status. */
    int (*fill)(const struct port *p, const struct port_box *box, void *memory,
                const struct port_io *io, struct gad_error *error);
    int (*store)(const struct port *p, const struct port_box *box, const void *memory,
                 const struct port_io *io, struct gad_error *error);
    /* As fill, into a box of any strides: `view` is one of the port's own axes. NULL: fill alone.
     */
    int (*fill_view)(const struct port *p, const struct port_box *box,
                     const struct engine_view *view, const struct port_io *io,
                     struct gad_error *error);
    /* Tells the system that the box will be read soon. May block. NULL: not needed. */
    void (*prefetch)(const struct port *p, const struct port_box *box);
};

struct port_file {
    int fd;
    bool is_in_memory;         /* reading never waits for a disk */
    int64_t size_bytes;        /* when the job began */
    int64_t n_blocks;          /* of an output in memory: of 512 bytes each, when the job began */
    uint64_t device;           /* st_dev */
    int order[ARRAY_MAX_NDIM]; /* axes by distance in the file, slowest first */
    struct writing *writing;   /* of a large output; NULL: through the page cache */
    struct gaps *gaps;         /* of an output of a job that has its files for itself; or NULL */
    bool may_span;             /* with gaps: the descriptor may be read, too */
    int table_fd;              /* of a grid */
    char *mapping; /* mapping.c: of a source that is not read but mapped; NULL: it is not */
    int64_t mapping_bytes, mapping_begin; /* its length; where it begins in the file */
    int64_t chunk_bytes;
    int64_t chunk_strides[ARRAY_MAX_NDIM];
    int64_t grid[ARRAY_MAX_NDIM]; /* number of chunks */
};

struct port {
    const struct port_ops *ops;          /* NULL: not opened */
    const char *name;                    /* for errors */
    char own_name[REQUEST_UNNAMED_SIZE]; /* of an output without one */
    struct array array;
    bool is_transposed; /* the program has its last two axes exchanged */
    int64_t item_bytes;
    char *base;            /* mapped: element 0 */
    struct region *region; /* the reference is the port's */
    struct ring *ring;     /* owned, unless it is another port's of the same argument */
    bool has_others_ring;
    struct port_file file; /* the descriptors are the job's */
};

/* What a location refers to: the descriptors of the message, the regions. */
struct port_context {
    const int *fds;
    unsigned n_fds;
    struct regions *regions;
    struct write_devices *devices;
    struct writing *writing; /* of the output that is opened */
    struct gaps *gaps;       /* NULL: others may write to the outputs' files */
    bool is_output;
};

/* Opens the port of p->array (name, array and nothing else set). inline_result: memory for an
 * output that goes into the reply. A status or -errno; the port may then be closed, too. */
int port_open(struct port *p, const struct port_context *context, void *inline_result,
              struct gad_error *error) GAD_MUST_CHECK;
void port_close_memory(struct port *p); /* the ring, the mapping; may take long */
void port_close_region(struct port *p); /* main thread only */

static inline bool port_can(const struct port *p, unsigned capability)
{
    return (p->ops->capabilities & capability) != 0;
}

static inline bool port_owns_ring(const struct port *p)
{
    return p->ring && !p->has_others_ring;
}

/* The array's part of a box of a pass, and a view of it in the axes of the pass: both are aligned
 * to the right, and what is broadcast stands still. */
void port_pass_box(const struct port *p, int ndim, const int64_t *start, const int64_t *count,
                   struct port_box *ret_box);
void port_pass_view(const struct port *p, int ndim, struct engine_view *view);

/* Bytes of a box, dense. */
int64_t port_box_bytes(const struct port *p, const struct port_box *box);

/* C-order strides and element 0 of a box that lies dense in `memory`. */
void port_place_dense(const struct port *p, const struct port_box *box, void *memory,
                      struct engine_view *ret_view);

/* The parts of port_open(), one a location. */
int port_open_mapped(struct port *p, const struct port_context *context, void *inline_result,
                     struct gad_error *error) GAD_MUST_CHECK;
int port_open_file(struct port *p, const struct port_context *context,
                   struct gad_error *error) GAD_MUST_CHECK;
int port_open_grid(struct port *p, const struct port_context *context,
                   struct gad_error *error) GAD_MUST_CHECK;
int port_open_provider(struct port *p, const struct port_context *context,
                       struct gad_error *error) GAD_MUST_CHECK;

/* What a SIGBUS in the file's mapping means: short-read where it was cut, else io-error. */
int port_file_fault(const struct port *p, const char *address,
                    struct gad_error *error) GAD_MUST_CHECK;

/* The regular file behind a descriptor of the message: its size and kind. */
int port_file_init(struct port *p, const struct port_context *context, uint32_t fd_index,
                   struct gad_error *error) GAD_MUST_CHECK;
