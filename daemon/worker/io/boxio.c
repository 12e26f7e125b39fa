/* Boxes between files and memory.
 *
 * A box has axes with a stride in the file and one in memory, and those that run on in both are
 * merged (proto/box.h); what is left is a run of bytes, contiguous in both, and the outer axes over
 * it:
 *
 *     file     |run|..gap..|run|..gap..|run|......................|run|..gap..|run|..gap..|run|
 *              `----------- span ----------'
 *
 * Long runs are read straight into their place. Short ones that lie near each other are read
 * together, gaps included, as a span into the thread's bounce buffer and copied from there: a
 * system call costs about as much as copying GAP_MAX_BYTES.
 *
 * What is written goes run by run: bytes between the elements belong to others and must not be
 * written back. The exception is a job that says that nobody else writes there (`gaps`): then a
 * span is read, its runs are put into it, and it is written, under the locks of the stretches of
 * the file that it touches. Other threads of the job take the same locks for what is short enough
 * to lie in a gap.
 *
 * Reads that may not block use RWF_NOWAIT; where a file system does not know it the answer is the
 * same as for data that is not in the page cache. Writes say in the crash page that they may block,
 * and count their calls, so that one that lasts is seen (turns/aside.c).
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
    struct box outer;
    /* Whole outer axes [0, n_inside) and `partial` steps of the next are one span. */
    int n_inside;
    int64_t partial;
    int64_t inside_bytes; /* of the axes inside alone */
};

static void layout_runs(struct layout *l, const struct boxio *b)
{
    l->outer.n = b->box.n;
    memcpy(l->outer.axes, b->box.axes, (size_t)b->box.n * sizeof(b->box.axes[0]));
    l->run_bytes = box_take_run(&l->outer, b->item_bytes);
    l->n_inside = 0;
    l->partial = 1;
    l->inside_bytes = l->run_bytes;
}

static void layout_span(struct layout *l, const struct boxio *b, int64_t gap_max_bytes)
{
    layout_runs(l, b);
    if (l->run_bytes >= LONG_RUN_BYTES)
        return;
    for (; l->n_inside < l->outer.n; l->n_inside++) {
        const struct box_axis *axis = &l->outer.axes[l->n_inside];
        int64_t stride = axis->strides[BOXIO_FILE];
        if (stride - l->inside_bytes > gap_max_bytes)
            return;
        if (stride > 0 && axis->count - 1 > (BOXIO_BOUNCE_BYTES - l->inside_bytes) / stride) {
            l->partial = (BOXIO_BOUNCE_BYTES - l->inside_bytes) / stride + 1;
            return;
        }
        l->inside_bytes += (axis->count - 1) * stride;
    }
}

/* Pieces ------------------------------------------------------------------------------------- */

/* What is read or written at once: a run, or a span of several. */
struct piece {
    int64_t offset, n_bytes; /* in the file */
    char *memory;
    bool is_run;
    int64_t run_bytes;
    int n_axes; /* over the runs of a span, fastest first */
    struct box_axis axes[BOX_MAX_AXES];
};

typedef int piece_fn(const struct boxio *b, const struct piece *p, const struct port_io *io,
                     struct gad_error *error);

static int each_piece(const struct boxio *b, const struct layout *l, char *memory, piece_fn *fn,
                      const struct port_io *io, struct gad_error *error)
{
    int n_cut = l->n_inside < l->outer.n ? 1 : 0, n_outside = l->outer.n - l->n_inside - n_cut;
    const struct box_axis *outside = &l->outer.axes[l->outer.n - n_outside];
    struct box_axis cut = {.count = 1};
    struct box_place place = {.index = {0}};
    struct piece p = {.run_bytes = l->run_bytes, .n_axes = l->n_inside + 1};
    if (n_cut)
        cut = l->outer.axes[l->n_inside];
    memcpy(p.axes, l->outer.axes, (size_t)l->n_inside * sizeof(p.axes[0]));
    p.axes[l->n_inside] = cut;
    do
        for (int64_t i = 0; i < cut.count; i += l->partial) {
            int64_t n_steps = (int64_t)min_u64((uint64_t)l->partial, (uint64_t)(cut.count - i));
            p.axes[l->n_inside].count = n_steps;
            p.is_run = n_steps == 1 && l->n_inside == 0;
            p.offset = b->offset + place.offset[BOXIO_FILE] + i * cut.strides[BOXIO_FILE];
            p.n_bytes = (n_steps - 1) * cut.strides[BOXIO_FILE] + l->inside_bytes;
            p.memory = memory + place.offset[BOXIO_MEMORY] + i * cut.strides[BOXIO_MEMORY];
            int r = fn(b, &p, io, error);
            if (r)
                return r;
        }
    while (box_next(outside, n_outside, &place));
    return 0;
}

/* A span's runs out of the bounce buffer, or into it. */
static void copy_span(const struct piece *p, char *bounce, bool is_into)
{
    const struct box_axis *line = &p->axes[0];
    int64_t in_file = line->strides[BOXIO_FILE], in_memory = line->strides[BOXIO_MEMORY];
    size_t run_bytes = (size_t)p->run_bytes;
    struct box_place place = {.index = {0}};
    do {
        char *file = bounce + place.offset[BOXIO_FILE];
        char *memory = p->memory + place.offset[BOXIO_MEMORY];
        if (is_into)
            box_copy_line(file, in_file, memory, in_memory, line->count, run_bytes);
        else
            box_copy_line(memory, in_memory, file, in_file, line->count, run_bytes);
    } while (box_next(p->axes + 1, p->n_axes - 1, &place));
}

/* Reading ------------------------------------------------------------------------------------ */

static int read_failed(const struct boxio *b, int number, struct gad_error *error)
{
    if (number == EBADF)
        return error_set(error, GAD_BAD_DESCRIPTOR, b->name, "the file is not open for reading");
    return error_from_errno(error, number, b->name, "reading the file");
}

/* found: where a read gave nothing. The file's end is told where it lies before that. */
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

static void go_to_disk(const struct boxio *b, const struct port_io *io)
{
    if (io->go_to_disk)
        io->go_to_disk(io->thread, b->is_in_memory ? 0 : b->device);
}

int boxio_read(const struct boxio *b, void *memory, const struct port_io *io,
               struct gad_error *error)
{
    struct layout l;
    go_to_disk(b, io);
    layout_span(&l, b, GAP_MAX_BYTES);
    return each_piece(b, &l, memory, read_piece, io, error);
}

/* Writing ------------------------------------------------------------------------------------ */

/* The thread's own number, which others read. */
static void count_calls(const struct port_io *io, uint64_t n)
{
    if (!io->call || io->may_block)
        return;
    uint64_t call = atomic_load_explicit(io->call, memory_order_relaxed);
    atomic_store_explicit(io->call, call + n, memory_order_relaxed);
}

void boxio_enter_blocking(const struct port_io *io)
{
    count_calls(io, 1);
    if (io->page && !io->may_block)
        atomic_store_explicit(&io->page->state, CRASHPAGE_BLOCKING, memory_order_relaxed);
}

void boxio_leave_blocking(const struct port_io *io)
{
    count_calls(io, 1);
    if (io->page && !io->may_block) {
        atomic_store_explicit(&io->page->since_ns, clock_ns(), memory_order_relaxed);
        atomic_store_explicit(&io->page->state, CRASHPAGE_COMPUTING, memory_order_relaxed);
    }
}

/* A short run may lie in a gap of a span that another output is about to write back. */
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
    count_calls(io, 2);
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
    for (int i = 0; i < b->box.n; i++)
        end += (b->box.axes[i].count - 1) * b->box.axes[i].strides[BOXIO_FILE];
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
    if (b->gaps && b->may_span)
        layout_span(&l, b, GAP_MAX_BACK);
    else
        layout_runs(&l, b);
    go_to_disk(b, io);
    boxio_enter_blocking(io);
    r = each_piece(b, &l, (char *)memory, write_piece, io, error); /* which only reads it */
    boxio_leave_blocking(io);
    return r;
}

void boxio_zero(const struct boxio *b, void *memory)
{
    struct layout l;
    struct box_place place = {.index = {0}};
    layout_runs(&l, b);
    do
        memset((char *)memory + place.offset[BOXIO_MEMORY], 0, (size_t)l.run_bytes);
    while (box_next(l.outer.axes, l.outer.n, &place));
}
