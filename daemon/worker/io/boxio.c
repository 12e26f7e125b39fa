/* Boxes between files and memory.
 *
 * A box is axes with a stride in the file and one in memory. First axes that run on in both are
 * merged; what is left is a run of bytes, contiguous in both, and the outer axes over it:
 *
 *     file     |run|..gap..|run|..gap..|run|......................|run|..gap..|run|..gap..|run|
 *              `----------- span ----------'
 *
 * Long runs are read straight into their place. Short ones that lie near each other are read
 * together, gaps included, as a span into the thread's bounce buffer and copied from there: a
 * system call costs about as much as copying GAP_MAX_BYTES. What is written goes run by run: bytes
 * between the elements belong to somebody else and must not be written back. Where the job says
 * that nobody else writes there, short runs go out as spans: the span is read, the runs are put
 * into it, and it is written. Meanwhile no other thread of the job may write there: whatever is
 * short enough to lie in a gap is written with the locks of the stretches of the file that it
 * touches.
 *
 * Reads that may not block use RWF_NOWAIT; where a file system does not know it the answer is the
 * same as for data that is not in the page cache. Writes say in the crash page that they may block.
 *
 * Called by the ports of files and grids, on compute and I/O threads.
 */
#include "daemon/worker/io/boxio.h"
#include "daemon/worker/io/gaps.h"
#include "daemon/worker/io/writer.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define GAP_MAX_BYTES  4096
#define GAP_MAX_BACK   8192 /* the same where it is read and written back */
#define LONG_RUN_BYTES (16 * 1024)

static_assert(BOXIO_BOUNCE_BYTES <= GAPS_STRETCH_BYTES, "a span is held as a whole");

struct layout {
    int64_t run_bytes;
    int n_outer;
    struct boxio_axis outer[ARRAY_MAX_NDIM]; /* fastest first */
    /* Whole outer axes [0, n_inside) and `partial` steps of the next are one span. */
    int n_inside;
    int64_t partial;
    int64_t inside_bytes; /* of the axes inside alone */
};

static void layout_merge(struct layout *l, const struct boxio *b)
{
    l->run_bytes = b->item_bytes;
    l->n_outer = 0;
    for (int i = b->n_axes - 1; i >= 0; i--) {
        const struct boxio_axis *axis = &b->axes[i];
        struct boxio_axis *last = l->n_outer > 0 ? &l->outer[l->n_outer - 1] : NULL;
        if (axis->count == 1)
            continue;
        if (!last && axis->file_stride == l->run_bytes && axis->memory_stride == l->run_bytes)
            l->run_bytes *= axis->count;
        else if (last && axis->file_stride == last->file_stride * last->count &&
                 axis->memory_stride == last->memory_stride * last->count)
            last->count *= axis->count;
        else
            l->outer[l->n_outer++] = *axis;
    }
}

static void layout_runs(struct layout *l)
{
    l->n_inside = 0;
    l->partial = 1;
    l->inside_bytes = l->run_bytes;
}

static void layout_span(struct layout *l, int64_t gap_max_bytes)
{
    layout_runs(l);
    if (l->run_bytes >= LONG_RUN_BYTES)
        return;
    for (; l->n_inside < l->n_outer; l->n_inside++) {
        const struct boxio_axis *axis = &l->outer[l->n_inside];
        int64_t stride = axis->file_stride;
        if (stride - l->inside_bytes > gap_max_bytes)
            return;
        if (stride > 0 && axis->count - 1 > (BOXIO_BOUNCE_BYTES - l->inside_bytes) / stride) {
            l->partial = (BOXIO_BOUNCE_BYTES - l->inside_bytes) / stride + 1;
            return;
        }
        l->inside_bytes += (axis->count - 1) * stride;
    }
}

/* Counts through axes[0..n), fastest first; false after the last. */
struct counter {
    int64_t index[ARRAY_MAX_NDIM];
    int64_t file, memory; /* offsets */
};

static bool counter_next(struct counter *c, int n, const struct boxio_axis *axes)
{
    for (int i = 0; i < n; i++) {
        if (++c->index[i] < axes[i].count) {
            c->file += axes[i].file_stride;
            c->memory += axes[i].memory_stride;
            return true;
        }
        c->file -= (axes[i].count - 1) * axes[i].file_stride;
        c->memory -= (axes[i].count - 1) * axes[i].memory_stride;
        c->index[i] = 0;
    }
    return false;
}

static void copy_runs(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                      int64_t count, int64_t run_bytes)
{
#define COPY_RUNS(n)                                                                               \
    for (int64_t i = 0; i < count; i++)                                                            \
    memcpy(to + i * to_stride, from + i * from_stride, (size_t)(n))
    switch (run_bytes) {
    case 1: COPY_RUNS(1); return;
    case 2: COPY_RUNS(2); return;
    case 4: COPY_RUNS(4); return;
    case 8: COPY_RUNS(8); return;
    default: COPY_RUNS(run_bytes); return;
    }
#undef COPY_RUNS
}

/* Pieces ------------------------------------------------------------------------------------- */

/* What is read or written at once: a run, or a span of several. */
struct piece {
    int64_t offset, n_bytes; /* in the file */
    char *memory;
    bool is_run;
    int64_t run_bytes;
    int n_axes; /* over the runs of a span, fastest first */
    struct boxio_axis axes[ARRAY_MAX_NDIM + 1];
};

typedef int piece_fn(const struct boxio *b, const struct piece *p, const struct port_io *io,
                     struct gad_error *error);

static int each_piece(const struct boxio *b, const struct layout *l, char *memory, piece_fn *fn,
                      const struct port_io *io, struct gad_error *error)
{
    int n_cut = l->n_inside < l->n_outer ? 1 : 0, n_outside = l->n_outer - l->n_inside - n_cut;
    const struct boxio_axis *outside = &l->outer[l->n_outer - n_outside];
    struct boxio_axis cut = {.count = 1};
    struct counter c = {.file = 0};
    struct piece p = {.run_bytes = l->run_bytes, .n_axes = l->n_inside + 1};
    if (n_cut)
        cut = l->outer[l->n_inside];
    memcpy(p.axes, l->outer, (size_t)l->n_inside * sizeof(p.axes[0]));
    p.axes[l->n_inside] = cut;
    do
        for (int64_t i = 0; i < cut.count; i += l->partial) {
            int64_t n_steps = (int64_t)min_u64((uint64_t)l->partial, (uint64_t)(cut.count - i));
            p.axes[l->n_inside].count = n_steps;
            p.is_run = n_steps == 1 && l->n_inside == 0;
            p.offset = b->offset + c.file + i * cut.file_stride;
            p.n_bytes = (n_steps - 1) * cut.file_stride + l->inside_bytes;
            p.memory = memory + c.memory + i * cut.memory_stride;
            int r = fn(b, &p, io, error);
            if (r)
                return r;
        }
    while (counter_next(&c, n_outside, outside));
    return 0;
}

/* A span's runs out of the bounce buffer, or into it. */
static void copy_span(const struct piece *p, char *bounce, bool is_into)
{
    int64_t in_file = p->axes[0].file_stride, in_memory = p->axes[0].memory_stride;
    int64_t count = p->axes[0].count;
    struct counter c = {.file = 0};
    do
        if (is_into)
            copy_runs(bounce + c.file, in_file, p->memory + c.memory, in_memory, count,
                      p->run_bytes);
        else
            copy_runs(p->memory + c.memory, in_memory, bounce + c.file, in_file, count,
                      p->run_bytes);
    while (counter_next(&c, p->n_axes - 1, p->axes + 1));
}

/* Reading ------------------------------------------------------------------------------------ */

static int read_failed(const struct boxio *b, int number, struct gad_error *error)
{
    if (number == EBADF)
        return error_set(error, GAD_BAD_DESCRIPTOR, b->name, "the file is not open for reading");
    return error_from_errno(error, number, b->name, "reading the file");
}

/* found: nothing was there. The file may end before that. */
static int read_short(const struct boxio *b, int64_t found, int64_t expected,
                      struct gad_error *error)
{
    struct stat st;
    if (fstat(b->fd, &st) == 0 && st.st_size < found)
        found = st.st_size;
    error_set(error, GAD_SHORT_READ, b->name, "the file ends before the array does");
    error_expected(error, "bytes up to %lld", (long long)expected);
    error_found(error, "an end at byte %lld", (long long)found);
    return GAD_SHORT_READ;
}

static ssize_t read_some(const struct boxio *b, char *memory, size_t n_bytes, int64_t offset,
                         const struct port_io *io)
{
    struct iovec vector = {.iov_base = memory, .iov_len = n_bytes};
    if (b->is_in_memory || io->may_block)
        return pread(b->fd, memory, n_bytes, offset);
    ssize_t n = preadv2(b->fd, &vector, 1, offset, RWF_NOWAIT);
    if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL))
        errno = EAGAIN;
    return n;
}

static int read_exactly(const struct boxio *b, char *memory, int64_t n_bytes, int64_t offset,
                        const struct port_io *io, struct gad_error *error)
{
    for (int64_t done = 0; done < n_bytes;) {
        ssize_t n = read_some(b, memory + done, (size_t)(n_bytes - done), offset + done, io);
        if (n > 0)
            done += n;
        else if (n == 0)
            return read_short(b, offset + done, offset + n_bytes, error);
        else if (errno == EAGAIN && !io->may_block)
            return -EAGAIN;
        else if (errno != EINTR)
            return read_failed(b, errno, error);
    }
    return 0;
}

static int read_piece(const struct boxio *b, const struct piece *p, const struct port_io *io,
                      struct gad_error *error)
{
    int r = read_exactly(b, p->is_run ? p->memory : io->bounce, p->n_bytes, p->offset, io, error);
    if (!r && !p->is_run)
        copy_span(p, io->bounce, false);
    return r;
}

int boxio_read(const struct boxio *b, void *memory, const struct port_io *io,
               struct gad_error *error)
{
    struct layout l;
    layout_merge(&l, b);
    layout_span(&l, GAP_MAX_BYTES);
    return each_piece(b, &l, memory, read_piece, io, error);
}

/* Writing ------------------------------------------------------------------------------------ */

void boxio_enter_blocking(const struct port_io *io)
{
    if (io->page && !io->may_block)
        atomic_store_explicit(&io->page->state, CRASHPAGE_BLOCKING, memory_order_relaxed);
}

void boxio_leave_blocking(const struct port_io *io)
{
    if (io->page && !io->may_block) {
        atomic_store_explicit(&io->page->since_ns, clock_ns(), memory_order_relaxed);
        atomic_store_explicit(&io->page->state, CRASHPAGE_COMPUTING, memory_order_relaxed);
    }
}

/* What is no longer than a gap may lie in one of another output. */
static int write_run(const struct boxio *b, const struct piece *p, struct gad_error *error)
{
    bool is_held = b->gaps && p->n_bytes <= GAP_MAX_BACK;
    struct gaps_hold hold;
    if (is_held)
        hold = gaps_hold(b->gaps, p->offset, p->n_bytes);
    int r = writer_write(b->fd, b->writing, b->name, p->memory, p->n_bytes, p->offset, error);
    if (is_held)
        gaps_release(hold);
    return r;
}

/* Behind the file's end there are zeros. */
static int read_between(const struct boxio *b, const struct piece *p, char *bounce,
                        struct gad_error *error)
{
    for (int64_t done = 0; done < p->n_bytes;) {
        ssize_t n = pread(b->fd, bounce + done, (size_t)(p->n_bytes - done), p->offset + done);
        if (n == 0) {
            memset(bounce + done, 0, (size_t)(p->n_bytes - done));
            return 0;
        }
        if (n > 0)
            done += n;
        else if (errno != EINTR)
            return read_failed(b, errno, error);
    }
    return 0;
}

static int write_piece(const struct boxio *b, const struct piece *p, const struct port_io *io,
                       struct gad_error *error)
{
    if (p->is_run)
        return write_run(b, p, error);
    struct gaps_hold hold = gaps_hold(b->gaps, p->offset, p->n_bytes);
    int r = read_between(b, p, io->bounce, error);
    if (!r) {
        copy_span(p, io->bounce, true);
        r = writer_write(b->fd, NULL, b->name, io->bounce, p->n_bytes, p->offset, error);
    }
    gaps_release(hold);
    return r;
}

static int64_t box_end(const struct boxio *b)
{
    int64_t end = b->offset + b->item_bytes;
    for (int i = 0; i < b->n_axes; i++)
        end += (b->axes[i].count - 1) * b->axes[i].file_stride;
    return end;
}

/* A file in memory was reserved when the job came, which a client can undo at any time. What is
 * written then takes memory of the daemon, so it is looked at before each box. */
static int check_reserved(const struct boxio *b, struct gad_error *error)
{
    struct stat st;
    int64_t end = box_end(b);
    if (fstat(b->fd, &st) < 0)
        return error_from_errno(error, errno, b->name, "asking for the file's memory");
    if (st.st_size >= end && st.st_blocks >= b->n_blocks)
        return 0;
    error_set(error, GAD_REGION_FAULT, b->name, "%s: memory of the output's file was taken away",
              b->name);
    error_expected(error, "%lld bytes, %lld of memory", (long long)end,
                   (long long)b->n_blocks * 512);
    error_found(error, "%lld, %lld of memory", (long long)st.st_size,
                (long long)st.st_blocks * 512);
    return GAD_REGION_FAULT;
}

int boxio_write(const struct boxio *b, const void *memory, const struct port_io *io,
                struct gad_error *error)
{
    struct layout l;
    int r = b->is_in_memory ? check_reserved(b, error) : 0;
    if (r)
        return r;
    layout_merge(&l, b);
    if (b->gaps && b->may_span)
        layout_span(&l, GAP_MAX_BACK);
    else
        layout_runs(&l);
    boxio_enter_blocking(io);
    r = each_piece(b, &l, (char *)memory, write_piece, io, error); /* which only reads it */
    boxio_leave_blocking(io);
    return r;
}

void boxio_zero(const struct boxio *b, void *memory)
{
    struct layout l;
    layout_merge(&l, b);
    struct counter c = {.file = 0};
    do
        memset((char *)memory + c.memory, 0, (size_t)l.run_bytes);
    while (counter_next(&c, l.n_outer, l.outer));
}
