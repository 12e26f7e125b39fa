/* Gathers: wanted rows, sorted by where they lie, are read by several threads.
 *
 *     wanted rows, sorted    3 4 5    9    40 41        95
 *     spans                  [3 .. 9]      [40 41]      [95]
 *
 * A thread takes the next piece of the order: of a source that has units (chunks, see row_source.h)
 * the rows of one unit, which is decoded once; of others some hundred rows. A unit that lies dense
 * with wanted rows is read whole, since that is decoded without a copy; otherwise from its first
 * wanted row to its last, which the source's cache serves. In other sources neighbours are read
 * together, and rows with a gap that takes less time to copy than another call takes.
 *
 * Where all rows of a span go to one place in their order, they are read there; else into a buffer
 * of the thread, from which they are put where they belong, each time that they are wanted.
 *
 * Threads are started for large gathers alone, and end with them. All signals are blocked in them.
 *
 * Called by the windows of loaders, and where rows are kept.
 */
#include "client/rows/gather.h"
#include "client/process.h"
#include "proto/util.h"

#include <signal.h>
#include <string.h>

#define MAX_THREADS      16u
#define LEAST_READERS    4u /* of files: a disk has several reads in hand at once */
#define ROWS_AT_A_TIME   256u
#define SPAN_BYTES       (256 * 1024)
#define GAP_BYTES        4096 /* copied in the time of a call */
#define PIECE_BYTES      (INT64_C(16) << 20)
#define BYTES_OF_THREADS (UINT64_C(512) << 10) /* less is not worth another one */

struct gathering {
    struct row_source *source;
    const struct row_order *order;
    const struct row_target *target;
    const struct gather_options *options;
    pthread_mutex_t lock; /* of what follows */
    uint64_t next;        /* of the order */
    struct row_failure failure;
    atomic_bool is_over;
};

struct reader { /* a thread's */
    struct gathering *gathering;
    char *buffer;
    size_t buffer_bytes;
};

/* One block of rows that is there: the wanted ones among its rows [first, first + n) go to the
 * target. from: the order's first one at or behind `first`. Returns where the next block begins. */
static uint64_t gather_scatter(const struct row_order *order, uint64_t from, const void *block,
                               int64_t first, int64_t n, size_t row_bytes,
                               const struct row_target *target)
{
    for (; from < order->n && order->wanted[from].row < first + n; from++) {
        const struct wanted_row *wanted = &order->wanted[from];
        memcpy(row_target_place(target, wanted->place),
               (const char *)block + (size_t)(wanted->row - first) * row_bytes, row_bytes);
    }
    return from;
}

/* Spans ---------------------------------------------------------------------------------------- */

static int reserve(struct reader *reader, size_t n_bytes)
{
    if (reader->buffer_bytes >= n_bytes)
        return 0;
    free(reader->buffer);
    reader->buffer = malloc(n_bytes);
    reader->buffer_bytes = reader->buffer ? n_bytes : 0;
    return reader->buffer ? 0 : ENOMEM;
}

/* Whether wanted rows [from, to) are rows [first, ...) in their order, and go behind each other. */
static bool is_straight(const struct gathering *gathering, uint64_t from, uint64_t to)
{
    const struct wanted_row *wanted = gathering->order->wanted;
    const struct row_target *target = gathering->target;
    uint64_t n = to - from;
    if (n > 1 && target->stride_bytes != gathering->source->row_bytes)
        return false;
    if (wanted[from].place / target->rows_per_base !=
        (wanted[from].place + n - 1) / target->rows_per_base)
        return false;
    for (uint64_t i = 1; i < n; i++)
        if (wanted[from + i].place != wanted[from].place + i ||
            wanted[from + i].row != wanted[from].row + (int64_t)i)
            return false;
    return true;
}

static int fail(struct gathering *gathering, uint64_t from, uint64_t to, int64_t first, int64_t n,
                int error_number)
{
    pthread_mutex_lock(&gathering->lock);
    if (gathering->failure.n == 0)
        gathering->failure = (struct row_failure){first, n, error_number};
    pthread_mutex_unlock(&gathering->lock);
    if (!gathering->options->failed || error_number == ESTALE || error_number == ENOMEM)
        return error_number; /* that is no matter of some rows */
    for (; from < to; from++)
        gathering->options->failed[gathering->order->wanted[from].place] = gathering->options->mark;
    return 0;
}

/* Wanted rows [from, to), by reading rows [first, first + n). A positive errno. */
static int try_span(struct reader *reader, uint64_t from, uint64_t to, int64_t first, int64_t n)
{
    struct gathering *gathering = reader->gathering;
    struct row_source *source = gathering->source;
    const struct wanted_row *wanted = gathering->order->wanted;
    if (n == (int64_t)(to - from) && is_straight(gathering, from, to))
        return row_source_read(source, first, n,
                               row_target_place(gathering->target, wanted[from].place));
    int r = reserve(reader, (size_t)n * source->row_bytes);
    if (r == 0)
        r = row_source_read(source, first, n, reader->buffer);
    if (r)
        return r;
    const struct row_order own = {to, gathering->order->wanted}; /* others are another thread's */
    gather_scatter(&own, from, reader->buffer, first, n, source->row_bytes, gathering->target);
    return 0;
}

/* What fails is read by halves, until it is known which of the wanted rows it is: what was read
 * together by chance has nothing to do with that. */
static int read_span(struct reader *reader, uint64_t from, uint64_t to, int64_t first, int64_t n)
{
    const struct gathering *gathering = reader->gathering;
    const struct wanted_row *wanted = gathering->order->wanted;
    int r = try_span(reader, from, to, first, n);
    if (r == 0)
        return 0;
    uint64_t middle = row_order_find(gathering->order, from, wanted[from + (to - from) / 2].row);
    if (middle == from) /* many are the first row */
        middle = min_u64(row_order_find(gathering->order, from, wanted[from].row + 1), to);
    if (!gathering->options->failed || r == ESTALE || r == ENOMEM ||
        gathering->source->is_chunked || middle == to)
        return fail(reader->gathering, from, to, first, n, r);
    r = read_span(reader, from, middle, wanted[from].row,
                  wanted[middle - 1].row - wanted[from].row + 1);
    if (r == 0)
        r = read_span(reader, middle, to, wanted[middle].row,
                      wanted[to - 1].row - wanted[middle].row + 1);
    return r;
}

/* Rows that are read by themselves: those that lie near each other together. */
static int read_near(struct reader *reader, uint64_t from, uint64_t to)
{
    const struct row_source *source = reader->gathering->source;
    const struct wanted_row *wanted = reader->gathering->order->wanted;
    int64_t row_bytes = (int64_t)source->row_bytes;
    int r = 0;
    while (from < to && r == 0) {
        int64_t first = wanted[from].row, last = first;
        uint64_t end = from + 1;
        for (; end < to; end++) {
            int64_t row = wanted[end].row;
            if (row - last > 1 && (row - last - 1) * row_bytes > GAP_BYTES)
                break;
            if ((row - first + 1) * row_bytes > SPAN_BYTES && row != last)
                break;
            last = row;
        }
        r = read_span(reader, from, end, first, last - first + 1);
        from = end;
    }
    return r;
}

/* Rows of one unit, or of a part of it where it is large. */
static int read_unit(struct reader *reader, uint64_t from, uint64_t to)
{
    const struct row_source *source = reader->gathering->source;
    const struct row_order *order = reader->gathering->order;
    int64_t most = max_i64(1, PIECE_BYTES / (int64_t)source->row_bytes);
    int64_t unit = order->wanted[from].row / source->unit_rows * source->unit_rows;
    int64_t n = min_i64(source->unit_rows, source->n_rows - unit);
    int64_t first = order->wanted[from].row, last = order->wanted[to - 1].row;
    if (n <= most && last - first >= n / 2 && !is_straight(reader->gathering, from, to))
        return read_span(reader, from, to, unit, n);
    int r = 0;
    while (from < to && r == 0) {
        first = order->wanted[from].row;
        uint64_t end = min_u64(row_order_find(order, from, first + most), to);
        r = read_span(reader, from, end, first, order->wanted[end - 1].row - first + 1);
        from = end;
    }
    return r;
}

/* Threads -------------------------------------------------------------------------------------- */

/* False: there is nothing left. */
static bool take_piece(struct gathering *gathering, uint64_t *ret_from, uint64_t *ret_to)
{
    const struct row_order *order = gathering->order;
    const atomic_bool *is_cancelled = gathering->options->is_cancelled;
    int64_t unit_rows = gathering->source->unit_rows;
    pthread_mutex_lock(&gathering->lock);
    uint64_t from = gathering->next, to = min_u64(from + ROWS_AT_A_TIME, order->n);
    if (from < order->n && unit_rows > 1)
        to = row_order_find(order, from, (order->wanted[from].row / unit_rows + 1) * unit_rows);
    gathering->next = to;
    pthread_mutex_unlock(&gathering->lock);
    *ret_from = from;
    *ret_to = to;
    return from < to && !(is_cancelled && atomic_load(is_cancelled));
}

static void *run(void *userdata)
{
    struct reader reader = {.gathering = userdata};
    struct gathering *gathering = userdata;
    uint64_t from, to;
    while (!atomic_load(&gathering->is_over) && take_piece(gathering, &from, &to)) {
        int r = gathering->source->unit_rows > 1 ? read_unit(&reader, from, to)
                                                 : read_near(&reader, from, to);
        if (r == 0)
            continue;
        atomic_store(&gathering->is_over, true);
        pthread_mutex_lock(&gathering->lock);
        if (gathering->failure.n == 0)
            gathering->failure = (struct row_failure){gathering->order->wanted[from].row, 1, r};
        pthread_mutex_unlock(&gathering->lock);
    }
    free(reader.buffer);
    return NULL;
}

static unsigned threads_for(const struct row_source *source, const struct row_order *order,
                            unsigned n_wanted)
{
    uint64_t n_bytes = order->n * source->row_bytes, n = n_processors();
    if (!source->is_concurrent || order->n < 2)
        return 1;
    if (source->array->fd >= 0 && !source->is_packed)
        n = max_u64(n, LEAST_READERS);
    if (n_wanted > 0)
        n = n_wanted;
    if (source->unit_rows == 1)
        n = min_u64(n, 1 + n_bytes / BYTES_OF_THREADS);
    return (unsigned)min_u64(n, MAX_THREADS);
}

/* Further threads; how many there are. Where there can be no more, the caller's does it alone. */
static unsigned start_threads(struct gathering *gathering, unsigned n, pthread_t *ret_threads)
{
    sigset_t all, before;
    unsigned n_started = 0;
    sigfillset(&all);
    if (n <= 1 || pthread_sigmask(SIG_SETMASK, &all, &before))
        return 0;
    while (n_started + 1 < n && pthread_create(&ret_threads[n_started], NULL, run, gathering) == 0)
        n_started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n_started;
}

int gather(struct row_source *source, const struct row_order *order,
           const struct row_target *target, const struct gather_options *options,
           struct row_failure *ret_failure)
{
    struct gathering gathering = {
        .source = source, .order = order, .target = target, .options = options};
    pthread_t threads[MAX_THREADS];
    *ret_failure = (struct row_failure){.n = 0};
    if (order->n == 0 || source->row_bytes == 0)
        return 0;
    if (source->bring)
        return source->bring(source->bring_state, source, order, target, options, ret_failure);
    pthread_mutex_init(&gathering.lock, NULL);
    unsigned n_threads =
        start_threads(&gathering, threads_for(source, order, options->n_threads), threads);
    run(&gathering);
    for (unsigned i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&gathering.lock);
    *ret_failure = gathering.failure;
    if (atomic_load(&gathering.is_over))
        return gathering.failure.error_number;
    return options->is_cancelled && atomic_load(options->is_cancelled) ? ECANCELED : 0;
}
