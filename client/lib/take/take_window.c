/* Windows: many blocks made together.
 *
 * The result is cut along the first axis of the indices into windows of so many rows as the memory
 * allows. All indices of a window are sorted together, and its elements are read in the order of
 * their places:
 *
 *     indices of 4 blocks    91 3 57 40 | 2 93 41 56 | 55 1 92 42 | 43 4 90 58
 *     by themselves          each block reads from 4 parts of the array
 *     together               1 2 3 4   40 41 42 43   55 56 57 58   90 91 92 93
 *
 * That is worth it where elements are short, or lie in chunks that are decoded whole. Whether it is
 * shows when the indices are there (is_local()): those that are in order already read each part
 * once by themselves.
 *
 *     none -> sorting -> filling -> ready          sorting -> apart: blocks are made by themselves
 *
 * The first block of a window begins it; what is left to read is cut into pieces, of which each
 * thread that comes with a block of it takes one after the other. Jobs walk along the rows, so
 * there is one window, and the end of the one before it for blocks that are late. Who walks
 * otherwise is noticed: when two windows were left with most of them unread, there are none any
 * more. No thread waits for a block of another: whoever fills a window needs nothing but its reads.
 */
#include "client/rows/large_memory.h"
#include "client/lib/take/take.h"
#include "proto/box.h"
#include "proto/util.h"

#include <string.h>

#define BLOCK_BYTES   (UINT64_C(256) << 10) /* that a job asks for at a time */
#define LATE_BYTES    (4 * BLOCK_BYTES)
#define MAX_INDEX_ROW (1 << 20)
#define PIECE_INDICES 65536 /* that are read at a time */
#define N_PIECES      64
#define TAIL_SHARE    8 /* of a window that is kept behind it */
#define MAX_WASTED    2
#define ORDER_BYTES   24  /* of an index, while a window is sorted */
#define WORTH         1.5 /* as many reads without a window as with it */

enum window_state { WINDOW_NONE, WINDOW_SORTING, WINDOW_FILLING, WINDOW_READY, WINDOW_APART };

struct take_window {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM]; /* of the result */
    int64_t most_rows, n_rows_all, row_indices;
    size_t row_bytes, item_bytes;
    int first_axis; /* of the indices in the result; all before it have one element */

    enum window_state state;
    bool is_off;
    uint64_t number; /* of the window, from 1 on; 0: there was none */
    int64_t first, n_rows;
    char *data, *tail;
    int64_t tail_first, n_tail_rows;
    struct row_order order;    /* of places, while it is filled */
    unsigned n_begun, n_ended; /* pieces */
    unsigned n_users;          /* threads that copy from data or tail */
    uint64_t served_bytes, late_bytes;
    unsigned n_wasted;
    uint64_t failed_number;
    int failed_error;
};

/* Making --------------------------------------------------------------------------------------- */

int take_window_new(struct take *take, const struct gad_array_info *result)
{
    struct take_window own = {.ndim = result->ndim, .first_axis = take->axis};
    size_t element_bytes = gad_dtype_size(result->dtype);
    int64_t row = 1;
    for (int i = 0; i < result->ndim; i++)
        if (result->shape[i] == 0 || (i < take->axis && result->shape[i] > 1))
            return 0;
    for (int i = take->axis + take->n_index_axes; i < result->ndim; i++)
        element_bytes *= (size_t)result->shape[i];
    for (int i = take->axis + 1; i < take->axis + take->n_index_axes; i++)
        row *= result->shape[i];
    if (take->n_index_axes == 0 || row > MAX_INDEX_ROW || take->is_in_memory ||
        take->chunk_places == 1)
        return 0;
    own.item_bytes = gad_dtype_size(result->dtype);
    own.row_indices = row;
    own.row_bytes = (size_t)row * element_bytes;
    own.n_rows_all = result->shape[take->axis];
    uint64_t with_order = own.row_bytes + own.row_bytes / TAIL_SHARE + (uint64_t)row * ORDER_BYTES;
    own.most_rows = (int64_t)min_u64(take->memory_bytes / with_order, (uint64_t)own.n_rows_all);
    if ((uint64_t)own.most_rows * own.row_bytes <= BLOCK_BYTES)
        return 0;
    memcpy(own.shape, result->shape, sizeof(own.shape));
    take->window = malloc(sizeof(*take->window));
    if (!take->window)
        return -ENOMEM;
    *take->window = own;
    pthread_mutex_init(&take->window->lock, NULL);
    pthread_cond_init(&take->window->changed, NULL);
    return 0;
}

void take_window_free(struct take_window *window)
{
    if (!window)
        return;
    pthread_cond_destroy(&window->changed);
    pthread_mutex_destroy(&window->lock);
    free(window->data);
    free(window->tail);
    row_order_deinit(&window->order);
    free(window);
}

/* Sorting: without the lock, by one thread ----------------------------------------------------- */

static int read_places(struct take *take, int64_t *ret_places)
{
    const struct take_window *w = take->window;
    int64_t start[ARRAY_MAX_NDIM] = {0}, count[ARRAY_MAX_NDIM];
    int64_t rows = max_i64(PIECE_INDICES / w->row_indices, 1);
    memcpy(count, w->shape + w->first_axis, (size_t)take->n_index_axes * sizeof(*count));
    for (int64_t i = 0; i < w->n_rows; i += rows) {
        start[0] = w->first + i;
        count[0] = min_i64(rows, w->n_rows - i);
        int r = take_places(take, start, count, ret_places + i * w->row_indices);
        if (r)
            return r;
    }
    return 0;
}

/* Reads that places cost, as many as `n` or as their range has chunks. */
static double n_reads(const struct take *take, const int64_t *places, size_t n)
{
    int64_t low = places[0], high = places[0];
    for (size_t i = 1; i < n; i++) {
        low = min_i64(low, places[i]);
        high = max_i64(high, places[i]);
    }
    int64_t n_chunks = (high - low) / take->chunk_places + 1;
    return (double)min_i64(n_chunks, (int64_t)n);
}

/* Whether blocks by themselves read little more than together. */
static bool is_local(const struct take *take, const int64_t *places, size_t n)
{
    const struct take_window *w = take->window;
    size_t some = max_u64(BLOCK_BYTES * (size_t)w->row_indices / w->row_bytes, 1);
    double apart = 0;
    for (size_t i = 0; i < n; i += some)
        apart += n_reads(take, places + i, i + some < n ? some : n - i);
    return apart <= WORTH * n_reads(take, places, n);
}

static int sort_window(struct take *take, bool *ret_is_local)
{
    struct take_window *w = take->window;
    size_t n = (size_t)(w->n_rows * w->row_indices);
    _cleanup_free_ int64_t *places = large_alloc(n * sizeof(*places));
    int r = places ? read_places(take, places) : ENOMEM;
    *ret_is_local = r == 0 && is_local(take, places, n);
    if (r || *ret_is_local)
        return r;
    if (!w->data && !(w->data = large_alloc((size_t)w->most_rows * w->row_bytes)))
        return ENOMEM;
    return row_order_init(&w->order, n, places) ? ENOMEM : 0;
}

/* Under the lock ------------------------------------------------------------------------------- */

static void end(struct take_window *w, enum window_state state)
{
    row_order_deinit(&w->order);
    w->state = state;
    pthread_cond_broadcast(&w->changed);
}

static void fail(struct take_window *w, int error_number)
{
    w->failed_number = w->number;
    w->failed_error = error_number;
    end(w, WINDOW_NONE);
}

/* The last rows of a window that is left stay for blocks that are late. */
static void keep_tail(struct take_window *w)
{
    int64_t rows = min_i64(w->most_rows / TAIL_SHARE, w->n_rows);
    w->n_tail_rows = 0;
    if (w->state != WINDOW_READY || rows == 0 ||
        (!w->tail && !(w->tail = malloc((size_t)(w->most_rows / TAIL_SHARE) * w->row_bytes))))
        return;
    memcpy(w->tail, w->data + (size_t)(w->n_rows - rows) * w->row_bytes,
           (size_t)rows * w->row_bytes);
    w->tail_first = w->first + w->n_rows - rows;
    w->n_tail_rows = rows;
}

/* Leaves the window for that of a row. The lock is given up meanwhile. */
static void begin(struct take *take, int64_t row)
{
    struct take_window *w = take->window;
    bool is_local;
    if (w->state == WINDOW_READY && w->served_bytes < (uint64_t)w->n_rows * w->row_bytes / 2)
        w->is_off = ++w->n_wasted >= MAX_WASTED;
    if (w->is_off)
        return;
    keep_tail(w);
    w->first = row / w->most_rows * w->most_rows;
    w->n_rows = min_i64(w->most_rows, w->n_rows_all - w->first);
    w->served_bytes = w->late_bytes = 0;
    w->number++;
    w->state = WINDOW_SORTING;
    pthread_mutex_unlock(&w->lock);
    int r = sort_window(take, &is_local);
    pthread_mutex_lock(&w->lock);
    if (r == ENOMEM) {
        w->is_off = true;
        end(w, WINDOW_NONE);
    } else if (r) {
        fail(w, r);
    } else if (is_local) {
        end(w, WINDOW_APART);
    } else {
        w->n_begun = w->n_ended = 0;
        w->failed_error = 0;
        w->state = WINDOW_FILLING;
        pthread_cond_broadcast(&w->changed);
    }
}

static void fill_piece(struct take *take)
{
    struct take_window *w = take->window;
    unsigned piece = w->n_begun++;
    size_t from = w->order.n * piece / N_PIECES, to = w->order.n * (piece + 1) / N_PIECES;
    struct take_part part = {.n_outer = 1, .to = w->data};
    bool has_failed = w->failed_error != 0;
    pthread_mutex_unlock(&w->lock);
    part.inner_bytes = w->item_bytes;
    for (int i = 0; i < take->array->info.ndim; i++) {
        bool is_after = i >= take->axis + take->n_axes;
        part.count[i] = is_after ? take->array->info.shape[i] : 1;
        part.inner_bytes *= (size_t)part.count[i];
    }
    int r = has_failed ? 0 : take_gather(take, &part, w->order.wanted + from, to - from);
    pthread_mutex_lock(&w->lock);
    if (r && w->failed_error == 0)
        w->failed_error = r;
    if (++w->n_ended < N_PIECES)
        return;
    if (w->failed_error)
        fail(w, w->failed_error);
    else
        end(w, WINDOW_READY);
}

/* Rows [row, row + n) of what blocks ask for lie in some that begin with `first`. */
static bool is_in(int64_t row, int64_t first, int64_t n_rows)
{
    return row >= first && row - first < n_rows;
}

/* One that is late, and not so many that another walk has begun. */
static bool is_late(struct take_window *w, int64_t row, uint64_t n_bytes)
{
    if (w->state == WINDOW_NONE || row >= w->first || row < w->first - w->most_rows)
        return false;
    w->late_bytes += n_bytes;
    return w->late_bytes <= LATE_BYTES;
}

/* Brings the window of a row about. Returns where its rows are, for one user more, whose first one
 * is *ret_first; NULL: blocks of it are made by themselves, or it failed (positive errno). */
static const char *have_row(struct take *take, int64_t row, uint64_t n_bytes, int64_t *ret_first,
                            int64_t *ret_end, int *ret_error)
{
    struct take_window *w = take->window;
    uint64_t joined = 0;
    while (!w->is_off) {
        bool is_here = w->state != WINDOW_NONE && is_in(row, w->first, w->n_rows);
        if (joined && w->failed_number == joined) {
            *ret_error = w->failed_error;
            return NULL;
        }
        if (is_here && w->state == WINDOW_APART)
            return NULL;
        if (is_here && w->state == WINDOW_READY) {
            *ret_first = w->first;
            *ret_end = w->first + w->n_rows;
            w->served_bytes += n_bytes;
            return w->data;
        }
        if (!is_here && is_in(row, w->tail_first, w->n_tail_rows)) {
            *ret_first = w->tail_first;
            *ret_end = w->tail_first + w->n_tail_rows;
            return w->tail;
        }
        if (is_here)
            joined = w->number;
        if (is_here && w->state == WINDOW_FILLING && w->n_begun < N_PIECES) {
            fill_piece(take);
        } else if (is_here || w->state == WINDOW_SORTING || w->state == WINDOW_FILLING ||
                   w->n_users > 0) {
            pthread_cond_wait(&w->changed, &w->lock);
        } else if (is_late(w, row, n_bytes)) {
            return NULL;
        } else {
            begin(take, row);
            joined = w->number;
        }
    }
    return NULL;
}

/* Blocks --------------------------------------------------------------------------------------- */

/* The part of a window that a block has, packed. */
static void copy_rows(const struct take_window *w, const char *rows, int64_t first,
                      const int64_t *start, const int64_t *count, char *block)
{
    int64_t stride = (int64_t)w->item_bytes, block_stride = stride;
    struct box box;
    box.n = 0;
    for (int i = w->ndim - 1; i >= w->first_axis; i--) {
        rows += (start[i] - (i == w->first_axis ? first : 0)) * stride;
        box_add(&box, count[i], block_stride, stride);
        stride *= w->shape[i];
        block_stride *= count[i];
    }
    box_copy(&box, block, rows, w->item_bytes, false);
}

/* As many of the block's rows as one window has. */
static int fill_some(struct take *take, const int64_t *start, int64_t *count, char *block)
{
    struct take_window *w = take->window;
    int64_t row = start[w->first_axis], first, behind;
    uint64_t n_bytes = w->item_bytes;
    int r = 0;
    for (int i = 0; i < w->ndim; i++)
        n_bytes *= (uint64_t)count[i];
    pthread_mutex_lock(&w->lock);
    const char *rows = have_row(take, row, n_bytes, &first, &behind, &r);
    w->n_users += rows != NULL;
    pthread_mutex_unlock(&w->lock);
    if (r)
        return r;
    if (!rows) { /* to where another window may have it */
        int64_t border = (row / w->most_rows + 1) * w->most_rows;
        count[w->first_axis] = min_i64(count[w->first_axis], border - row);
        return take_block(take, start, count, block);
    }
    count[w->first_axis] = min_i64(count[w->first_axis], behind - row);
    copy_rows(w, rows, first, start, count, block);
    pthread_mutex_lock(&w->lock);
    if (--w->n_users == 0)
        pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

int take_window_fill(struct take *take, const int64_t *start, const int64_t *count, char *block,
                     bool *ret_is_done)
{
    const struct take_window *w = take->window;
    int axis = w->first_axis, r = 0;
    int64_t own_start[ARRAY_MAX_NDIM], own_count[ARRAY_MAX_NDIM];
    size_t row_bytes = w->item_bytes; /* of the block's own rows */
    memcpy(own_start, start, (size_t)w->ndim * sizeof(*start));
    memcpy(own_count, count, (size_t)w->ndim * sizeof(*count));
    for (int i = axis + 1; i < w->ndim; i++)
        row_bytes *= (size_t)count[i];
    for (int64_t done = 0; done < count[axis] && r == 0; done += own_count[axis]) {
        own_start[axis] = start[axis] + done;
        own_count[axis] = count[axis] - done;
        r = fill_some(take, own_start, own_count, block + (size_t)done * row_bytes);
    }
    *ret_is_done = true;
    return r;
}
