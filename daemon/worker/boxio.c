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
#include "daemon/worker/boxio.h"
#include "daemon/worker/writer.h"
#include "proto/util.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define GAP_MAX_BYTES  4096
#define GAP_MAX_BACK   8192 /* the same where it is read and written back */
#define LONG_RUN_BYTES (16 * 1024)

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

static void layout_span(struct layout *l, int64_t gap_max_bytes)
{
    l->n_inside = 0;
    l->partial = 1;
    l->inside_bytes = l->run_bytes;
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

/* One span out of the bounce buffer: `axes` fastest first, the first one counts the runs. */
static void copy_span(char *memory, const char *bounce, int n, const struct boxio_axis *axes,
                      int64_t run_bytes)
{
    struct counter c = {.file = 0};
    do
        copy_runs(memory + c.memory, axes[0].memory_stride, bounce + c.file, axes[0].file_stride,
                  axes[0].count, run_bytes);
    while (n > 1 && counter_next(&c, n - 1, axes + 1));
}

/* The other way. */
static void copy_into_span(char *bounce, const char *memory, int n, const struct boxio_axis *axes,
                           int64_t run_bytes)
{
    struct counter c = {.file = 0};
    do
        copy_runs(bounce + c.file, axes[0].file_stride, memory + c.memory, axes[0].memory_stride,
                  axes[0].count, run_bytes);
    while (n > 1 && counter_next(&c, n - 1, axes + 1));
}

/* A compute thread that writes may wait for a disk, which is no hang: its time begins anew after
 * it. I/O threads count as blocked all along. */
static void enter_blocking(const struct port_io *io)
{
    if (io->page && !io->may_block)
        atomic_store_explicit(&io->page->state, CRASHPAGE_BLOCKING, memory_order_relaxed);
}

static void leave_blocking(const struct port_io *io)
{
    if (io->page && !io->may_block) {
        atomic_store_explicit(&io->page->since_ns, clock_ns(), memory_order_relaxed);
        atomic_store_explicit(&io->page->state, CRASHPAGE_COMPUTING, memory_order_relaxed);
    }
}

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

/* One place of the axes outside the spans: all spans along the axis that is cut. */
static int read_spans(const struct boxio *b, const struct layout *l, char *memory, int64_t offset,
                      const struct port_io *io, struct gad_error *error)
{
    struct boxio_axis axes[ARRAY_MAX_NDIM + 1];
    int n_axes = l->n_inside;
    memcpy(axes, l->outer, (size_t)n_axes * sizeof(axes[0]));
    struct boxio_axis cut = {.count = 1};
    if (l->n_inside < l->n_outer)
        cut = l->outer[l->n_inside];
    for (int64_t i = 0; i < cut.count; i += l->partial) {
        int64_t n_steps = (int64_t)min_u64((uint64_t)l->partial, (uint64_t)(cut.count - i));
        int64_t n_bytes = (n_steps - 1) * cut.file_stride + l->inside_bytes;
        int64_t from = offset + i * cut.file_stride;
        char *to = memory + i * cut.memory_stride;
        bool is_run = n_steps == 1 && n_axes == 0;
        int r = read_exactly(b, is_run ? to : io->bounce, n_bytes, from, io, error);
        if (r)
            return r;
        if (is_run)
            continue;
        axes[n_axes] = cut;
        axes[n_axes].count = n_steps;
        copy_span(to, io->bounce, n_axes + 1, axes, l->run_bytes);
    }
    return 0;
}

int boxio_read(const struct boxio *b, void *memory, const struct port_io *io,
               struct gad_error *error)
{
    struct layout l;
    layout_merge(&l, b);
    layout_span(&l, GAP_MAX_BYTES);
    int n_cut = l.n_inside < l.n_outer ? 1 : 0;
    int n_outside = l.n_outer - l.n_inside - n_cut;
    const struct boxio_axis *outside = &l.outer[l.n_outer - n_outside];
    struct counter c = {.file = 0};
    do {
        int r = read_spans(b, &l, (char *)memory + c.memory, b->offset + c.file, io, error);
        if (r)
            return r;
    } while (counter_next(&c, n_outside, outside));
    return 0;
}

/* Writing with what lies between ------------------------------------------------------------- */

void boxio_gaps_init(struct boxio_gaps *gaps)
{
    for (int i = 0; i < BOXIO_STRETCHES; i++)
        pthread_mutex_init(&gaps->stretches[i], NULL);
}

void boxio_gaps_deinit(struct boxio_gaps *gaps)
{
    for (int i = 0; i < BOXIO_STRETCHES; i++)
        pthread_mutex_destroy(&gaps->stretches[i]);
}

/* The stretches in which bytes of a file lie that are no more than one: one or two of them. */
struct hold {
    pthread_mutex_t *lower, *upper; /* NULL: the same */
};

static struct hold hold(struct boxio_gaps *gaps, int64_t offset, int64_t n_bytes)
{
    uint64_t first = (uint64_t)offset / BOXIO_BOUNCE_BYTES % BOXIO_STRETCHES;
    uint64_t last = (uint64_t)(offset + n_bytes - 1) / BOXIO_BOUNCE_BYTES % BOXIO_STRETCHES;
    struct hold h = {.lower = &gaps->stretches[min_u64(first, last)]};
    pthread_mutex_lock(h.lower);
    if (first != last) {
        h.upper = &gaps->stretches[max_u64(first, last)];
        pthread_mutex_lock(h.upper);
    }
    return h;
}

static void release(struct hold h)
{
    if (h.upper)
        pthread_mutex_unlock(h.upper);
    pthread_mutex_unlock(h.lower);
}

/* What is no longer than a gap may lie in one of another output. */
static int write_run(const struct boxio *b, const char *memory, int64_t n_bytes, int64_t offset,
                     struct gad_error *error)
{
    if (!b->gaps || n_bytes > GAP_MAX_BACK)
        return writer_write(b->fd, b->writing, b->name, memory, n_bytes, offset, error);
    struct hold h = hold(b->gaps, offset, n_bytes);
    int r = writer_write(b->fd, b->writing, b->name, memory, n_bytes, offset, error);
    release(h);
    return r;
}

/* Behind the file's end there are zeros. */
static int read_span(const struct boxio *b, char *bounce, int64_t n_bytes, int64_t offset,
                     struct gad_error *error)
{
    for (int64_t done = 0; done < n_bytes;) {
        ssize_t n = pread(b->fd, bounce + done, (size_t)(n_bytes - done), offset + done);
        if (n == 0) {
            memset(bounce + done, 0, (size_t)(n_bytes - done));
            return 0;
        }
        if (n > 0)
            done += n;
        else if (errno != EINTR)
            return read_failed(b, errno, error);
    }
    return 0;
}

/* `axes` fastest first, the first one counts the runs. */
static int write_span(const struct boxio *b, const char *memory, int64_t n_bytes, int64_t offset,
                      int n_axes, const struct boxio_axis *axes, int64_t run_bytes, char *bounce,
                      struct gad_error *error)
{
    struct hold h = hold(b->gaps, offset, n_bytes);
    int r = read_span(b, bounce, n_bytes, offset, error);
    if (!r) {
        copy_into_span(bounce, memory, n_axes, axes, run_bytes);
        r = writer_write(b->fd, NULL, b->name, bounce, n_bytes, offset, error);
    }
    release(h);
    return r;
}

/* As read_spans(). */
static int write_spans(const struct boxio *b, const struct layout *l, const char *memory,
                       int64_t offset, char *bounce, struct gad_error *error)
{
    struct boxio_axis axes[ARRAY_MAX_NDIM + 1];
    int n_axes = l->n_inside;
    memcpy(axes, l->outer, (size_t)n_axes * sizeof(axes[0]));
    struct boxio_axis cut = {.count = 1};
    if (l->n_inside < l->n_outer)
        cut = l->outer[l->n_inside];
    for (int64_t i = 0; i < cut.count; i += l->partial) {
        int64_t n_steps = (int64_t)min_u64((uint64_t)l->partial, (uint64_t)(cut.count - i));
        int64_t n_bytes = (n_steps - 1) * cut.file_stride + l->inside_bytes;
        int64_t to = offset + i * cut.file_stride;
        const char *from = memory + i * cut.memory_stride;
        axes[n_axes] = cut;
        axes[n_axes].count = n_steps;
        int r = n_steps == 1 && n_axes == 0 ? write_run(b, from, n_bytes, to, error)
                                            : write_span(b, from, n_bytes, to, n_axes + 1, axes,
                                                         l->run_bytes, bounce, error);
        if (r)
            return r;
    }
    return 0;
}

static int write_runs(const struct boxio *b, const struct layout *l, const char *memory,
                      struct gad_error *error)
{
    struct counter c = {.file = 0};
    int r;
    do
        r = write_run(b, memory + c.memory, l->run_bytes, b->offset + c.file, error);
    while (!r && counter_next(&c, l->n_outer, l->outer));
    return r;
}

static int write_with_gaps(const struct boxio *b, struct layout *l, const char *memory,
                           char *bounce, struct gad_error *error)
{
    struct counter c = {.file = 0};
    int r;
    layout_span(l, GAP_MAX_BACK);
    int n_cut = l->n_inside < l->n_outer ? 1 : 0;
    int n_outside = l->n_outer - l->n_inside - n_cut;
    do
        r = write_spans(b, l, memory + c.memory, b->offset + c.file, bounce, error);
    while (!r && counter_next(&c, n_outside, &l->outer[l->n_outer - n_outside]));
    return r;
}

int boxio_write(const struct boxio *b, const void *memory, const struct port_io *io,
                struct gad_error *error)
{
    struct layout l;
    layout_merge(&l, b);
    enter_blocking(io);
    int r = b->gaps ? write_with_gaps(b, &l, memory, io->bounce, error)
                    : write_runs(b, &l, memory, error);
    leave_blocking(io);
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
