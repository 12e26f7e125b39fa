/* A window's kernels over a grid.
 *
 * Windows that go by steps (window_lanes.c) take one axis after the other, WINDOW_LANES lines at a
 * time. Along any axis but the fastest, lanes are neighbours, and rows are read where they lie.
 * Along the fastest axis lines are turned around on their way in and out, from where the array has
 * them if the operand is nothing but an array; where there are few of them a line is cut into
 * parts, each a lane: they begin at multiples of the window's size, so that blocks are at the same
 * places in all lanes, and every element's bits are as in any other cut.
 *
 *     lines    a0 a1 a2 a3 ...          rows     a0 b0 c0 ...
 *              b0 b1 b2 b3 ...    -->            a1 b1 c1 ...
 *
 * Windows that go by taps (window_taps.c) take the whole window at once, row by row.
 *
 * Called by window_make.c.
 */
#include "kernels/common/near_place.h"
#include "kernels/cpu/run/run.h"
#include "kernels/cpu/windows/window_make.h"
#include "kernels/grains/geometry.h"
#include "kernels/op_costs.h"
#include "proto/util.h"

#include <errno.h>
#include <string.h>

#define CHUNK_ROWS    96 /* of outputs at a time, to half a window's size: they stay in a cache */
#define LEAST_LINES   8  /* with fewer, a line is cut into lanes */
#define STEP_WORST_NS 8u
#define SPREAD_PLANES 2 /* means, and squared deviations */

/* In the memory for lines: */
struct line_memory {
    char *in, *out, *suffix;
};

struct axis_walk {
    const struct cpu_engine *engine;
    const struct program_window *w;
    struct window_room *room;
    struct line_memory memory;
    int axis;
    size_t size;
    window_slide_fn *slide;
    double each, n;             /* of a row; of the whole window */
    size_t in_bytes, out_bytes; /* of an element: read, stored */
    unsigned n_in, n_out;       /* planes that are read and stored */
    int64_t length;             /* of the axis where what is beyond its ends is not there; else 0 */
    const char *in[SPREAD_PLANES];
    char *out[SPREAD_PLANES];
};

/* Lines that are computed side by side. */
struct lines {
    size_t n_lanes;
    size_t n, n_last; /* outputs of a lane; of the last one */
    bool is_turned;   /* a line's elements are neighbours */
    int64_t in_lane, in_step, out_lane, out_step;
    int64_t place; /* of the first row along the axis */
    size_t phase;
};

static void turn(const struct axis_walk *a, size_t item_bytes, const struct transposing *t)
{
    a->engine->transpose->by_item[__builtin_ctzl(item_bytes)](t);
}

/* How many of the rows from this place on, of n at most, lie in the array one after the other.
 * *ret_place: where the first one does; below 0: it is the window's `beyond`. *ret_direction: 1, or
 * -1 where they are mirrored. */
static size_t count_run(const struct axis_walk *a, int64_t place, size_t n, int64_t *ret_place,
                        int64_t *ret_direction)
{
    enum near_mode mode = (enum near_mode)a->w->modes[a->axis];
    int64_t at = near_place_again(mode, place, a->length);
    int64_t direction = near_place_again(mode, place + 1, a->length) - at;
    *ret_place = at;
    *ret_direction = direction < 0 ? -1 : 1;
    if (at < 0 || (direction != 1 && direction != -1))
        return 1;
    return min_u64(n, (uint64_t)(direction < 0 ? at + 1 : a->length - at));
}

/* Rows of lines that lie in the array itself. first: the first one's place along the axis. */
static void gather_from_array(const struct axis_walk *a, const struct lines *l, int64_t at,
                              int64_t first, size_t n_rows, size_t row_bytes, char *dst)
{
    int64_t place, direction;
    for (size_t i = 0, n; i < n_rows; i += n) {
        n = count_run(a, first + (int64_t)i, n_rows - i, &place, &direction);
        char *to = dst + i * row_bytes;
        if (place < 0) {
            for (size_t k = 0; k < l->n_lanes; k++)
                memcpy(to + k * a->in_bytes, &a->w->beyond, a->in_bytes);
            continue;
        }
        int64_t lowest = direction < 0 ? place - (int64_t)n + 1 : place;
        const struct transposing t = {.n_rows = l->n_lanes,
                                      .n_columns = n,
                                      .src = a->in[0] + at + (lowest - first) * l->in_step,
                                      .src_row = l->in_lane,
                                      .dst = direction < 0 ? to + (n - 1) * row_bytes : to,
                                      .dst_row = direction * (int64_t)row_bytes};
        turn(a, a->in_bytes, &t);
    }
}

/* Rows, side by side in memory. */
static void gather_rows(const struct axis_walk *a, const struct lines *l, unsigned plane,
                        int64_t at, size_t n_rows, size_t row_bytes, char *dst)
{
    const char *src = a->in[plane] + at;
    dst += plane * WINDOW_LANES * a->in_bytes;
    if (l->is_turned) {
        const struct transposing t = {.n_rows = l->n_lanes,
                                      .n_columns = n_rows,
                                      .src = src,
                                      .src_row = l->in_lane,
                                      .dst = dst,
                                      .dst_row = (int64_t)row_bytes};
        turn(a, a->in_bytes, &t);
        return;
    }
    for (size_t i = 0; i < n_rows; i++)
        memcpy(dst + i * row_bytes, src + (int64_t)i * l->in_step, l->n_lanes * a->in_bytes);
}

static void store_last_lane(const struct axis_walk *a, const struct lines *l, const char *src,
                            size_t row_bytes, char *dst, size_t n_rows)
{
    size_t lane = l->n_lanes - 1;
    src += lane * a->out_bytes;
    dst += (int64_t)lane * l->out_lane;
    for (size_t i = 0; i < n_rows; i++)
        memcpy(dst + (int64_t)i * l->out_step, src + i * row_bytes, a->out_bytes);
}

/* Outputs [first, first + n) of all lanes, of which the last one may end before. */
static void store_rows(const struct axis_walk *a, const struct lines *l, unsigned plane, int64_t at,
                       size_t first, size_t n, const char *src, size_t row_bytes)
{
    char *dst = a->out[plane] + at;
    size_t n_whole = l->n_last < l->n ? l->n_lanes - 1 : l->n_lanes;
    src += plane * WINDOW_LANES * a->out_bytes;
    if (!l->is_turned) {
        for (size_t i = 0; i < n; i++)
            memcpy(dst + (int64_t)i * l->out_step, src + i * row_bytes, l->n_lanes * a->out_bytes);
        return;
    }
    const struct transposing t = {.n_rows = n,
                                  .n_columns = n_whole,
                                  .src = src,
                                  .src_row = (int64_t)row_bytes,
                                  .dst = dst,
                                  .dst_row = l->out_lane};
    turn(a, a->out_bytes, &t);
    if (n_whole < l->n_lanes && first < l->n_last)
        store_last_lane(a, l, src, row_bytes, dst, min_u64(n, l->n_last - first));
}

/* Outputs [first, first + n), n at most a chunk; in_at, out_at: of the lines' first elements. What
 * the n_before outputs before these have read of theirs is there. */
static void filter_chunk(const struct axis_walk *a, const struct lines *l, int64_t in_at,
                         int64_t out_at, size_t first, size_t n, size_t n_before)
{
    size_t n_kept = n_before > 0 ? a->size - 1 : 0;
    bool is_whole = l->n_lanes == WINDOW_LANES && !l->is_turned;
    bool reads_in_place = is_whole && a->n_in == 1, stores_in_place = is_whole && a->n_out == 1;
    size_t in_row = a->n_in * WINDOW_LANES * a->in_bytes;
    size_t out_row = a->n_out * WINDOW_LANES * a->out_bytes;
    in_at += (int64_t)first * l->in_step;
    out_at += (int64_t)first * l->out_step;
    if (n_kept > 0 && !reads_in_place)
        memmove(a->memory.in, a->memory.in + n_before * in_row, n_kept * in_row);
    size_t n_gathered = n + a->size - 1 - n_kept;
    int64_t gathered_at = in_at + (int64_t)n_kept * l->in_step;
    char *gathered = a->memory.in + n_kept * in_row;
    if (a->length > 0)
        gather_from_array(a, l, gathered_at, l->place + (int64_t)(first + n_kept), n_gathered,
                          in_row, gathered);
    for (unsigned i = 0; i < a->n_in && !reads_in_place && a->length == 0; i++)
        gather_rows(a, l, i, gathered_at, n_gathered, in_row, gathered);
    const struct window_lanes lanes = {
        .src = reads_in_place ? a->in[0] + in_at : a->memory.in,
        .src_row = reads_in_place ? l->in_step : (int64_t)in_row,
        .n = n,
        .size = a->size,
        .phase = (l->phase + first) % a->size,
        .each = a->each,
        .n_elements = a->n,
        .suffix = a->memory.suffix,
        .dst = stores_in_place ? a->out[0] + out_at : a->memory.out,
        .dst_row = stores_in_place ? l->out_step : (int64_t)out_row,
    };
    a->slide(&lanes);
    for (unsigned i = 0; i < a->n_out && !stores_in_place; i++)
        store_rows(a, l, i, out_at, first, n, a->memory.out, out_row);
}

/* Chunks end where blocks do: then no block is begun twice. */
static int filter_lines(const struct axis_walk *a, const struct lines *l, int64_t in_at,
                        int64_t out_at)
{
    size_t chunk = max_u64((CHUNK_ROWS + a->size / 2) / a->size, 1) * a->size;
    int r = 0;
    for (size_t first = 0, n = 0, n_before; r == 0 && first < l->n; first += n) {
        n_before = n;
        n = min_u64(chunk - (l->phase + first) % a->size, l->n - first);
        filter_chunk(a, l, in_at, out_at, first, n, n_before);
        r = window_room_pace(a->room, STEP_WORST_NS * WINDOW_LANES * (n + a->size));
    }
    return r;
}

/* One line, whose elements are neighbours, in parts side by side. */
static int filter_line(const struct axis_walk *a, const struct lines *whole, int64_t in_at,
                       int64_t out_at)
{
    struct lines l = *whole;
    size_t n = (whole->n + WINDOW_LANES - 1) / WINDOW_LANES;
    l.n = (n + a->size - 1) / a->size * a->size;
    l.n_lanes = (whole->n + l.n - 1) / l.n;
    l.n_last = whole->n - (l.n_lanes - 1) * l.n;
    if (l.n_lanes == 1)
        l.n = l.n_last;
    l.in_lane = (int64_t)l.n * l.in_step;
    l.out_lane = (int64_t)l.n * l.out_step;
    return filter_lines(a, &l, in_at, out_at);
}

int window_lane_axis(const struct window_grid *to, int axis)
{
    int best = -1;
    if (axis != to->ndim - 1)
        return to->ndim - 1;
    for (int i = 0; i < to->ndim; i++)
        if (i != axis && to->count[i] >= LEAST_LINES &&
            (best < 0 || to->count[i] > to->count[best]))
            best = i;
    return best;
}

/* The next place along all axes but these two. False: there is none. */
static bool next_place(const struct window_grid *to, int axis, int lane, int64_t *index)
{
    for (int i = to->ndim - 1; i >= 0; i--) {
        if (i == axis || i == lane)
            continue;
        if (++index[i] < to->count[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static int64_t place_in(const struct window_grid *grid, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < grid->ndim; i++)
        at += index[i] * grid->strides[i];
    return at;
}

/* All lines along the axis. in_first: of the input's, the row that is the first one's first. */
static int filter_axis(const struct axis_walk *a, const struct window_grid *from, int64_t in_first,
                       int64_t place, const struct window_grid *to)
{
    int64_t index[ARRAY_MAX_NDIM] = {0};
    int lane = window_lane_axis(to, a->axis), r = 0;
    struct lines l = {.n = (size_t)to->count[a->axis],
                      .n_last = (size_t)to->count[a->axis],
                      .is_turned = a->axis == to->ndim - 1,
                      .in_step = from->strides[a->axis],
                      .out_step = to->strides[a->axis],
                      .place = place,
                      .phase = (size_t)near_modulo(place, (int64_t)a->size)};
    do {
        int64_t in_at = place_in(from, index) + in_first * l.in_step, out_at = place_in(to, index);
        if (lane < 0)
            r = filter_line(a, &l, in_at, out_at);
        for (int64_t i = 0; lane >= 0 && r == 0 && i < to->count[lane]; i += WINDOW_LANES) {
            l.n_lanes = min_u64((uint64_t)(to->count[lane] - i), WINDOW_LANES);
            l.in_lane = from->strides[lane];
            l.out_lane = to->strides[lane];
            r = filter_lines(a, &l, in_at + i * l.in_lane, out_at + i * l.out_lane);
        }
    } while (r == 0 && next_place(to, a->axis, lane, index));
    return r;
}

/* Axis after axis ---------------------------------------------------------------------------- */

static struct line_memory take_lines(const struct window_room *room, size_t size)
{
    size_t n_chunk = max_u64(size, CHUNK_ROWS + CHUNK_ROWS / 2);
    struct line_memory m = {.in = room->lines};
    m.out = m.in + (n_chunk + size) * WINDOW_ROW_BYTES;
    m.suffix = m.out + n_chunk * WINDOW_ROW_BYTES;
    return m;
}
_Static_assert(WINDOW_LINE_BYTES >= WINDOW_MAX_SIZE * (3 * WINDOW_ROW_BYTES + WINDOW_SUFFIX_BYTES),
               "lines of the largest window fit");

static size_t computed_bytes(const struct program_window *w, unsigned *ret_planes)
{
    bool is_extremum = w->op == OP_WINDOW_MIN || w->op == OP_WINDOW_MAX;
    *ret_planes = w->op == OP_WINDOW_STD ? SPREAD_PLANES : 1;
    return is_extremum ? dtype_size((enum dtype)w->dtype) : sizeof(double);
}

/* Between two axes: planes of what is computed, which lie one behind the other. */
static bool take_planes(struct window_room *room, const struct window_grid *to, unsigned n_planes,
                        size_t item_bytes, struct window_grid *ret, char **ret_planes)
{
    for (unsigned i = 0; i < n_planes; i++) {
        if (!window_grid_take(room, to->ndim, to->count, item_bytes, ret))
            return false;
        ret_planes[i] = ret->base;
    }
    return true;
}

static enum window_step which_step(bool is_first, bool is_last)
{
    if (is_last)
        return is_first ? WINDOW_ONLY : WINDOW_LAST;
    return is_first ? WINDOW_FIRST : WINDOW_AGAIN;
}

static int filter_by_steps(struct axis_walk *a, const struct window_grid *from,
                           const int64_t *first, const struct window_grid *to)
{
    const struct program_window *w = a->w;
    const struct window_kernels *k = a->engine->windows;
    unsigned n_planes, n_left = 0;
    size_t made_bytes = computed_bytes(w, &n_planes), item_bytes = dtype_size((enum dtype)w->dtype);
    struct window_grid now = *from;
    for (int i = 0; i < to->ndim; i++)
        n_left += w->size[i] > 1;
    bool is_first = true;
    a->in[0] = from->base;
    a->n = 1;
    for (int axis = 0; axis < to->ndim; axis++) {
        bool is_alone = n_left == 0 && axis == to->ndim - 1; /* nowhere more than one */
        if (w->size[axis] == 1 && !(is_first && is_alone))
            continue;
        bool is_last = n_left <= 1;
        struct window_grid next = now;
        next.count[axis] = to->count[axis];
        n_left -= n_left > 0;
        a->axis = axis;
        a->size = (size_t)w->size[axis];
        a->each = a->n;
        a->n *= (double)w->size[axis];
        a->slide = k->steps[which_step(is_first, is_last)][w->op][w->dtype];
        a->n_in = is_first ? 1 : n_planes;
        a->in_bytes = is_first ? item_bytes : made_bytes;
        a->n_out = is_last ? 1 : n_planes;
        a->out_bytes = is_last ? item_bytes : made_bytes;
        a->memory = take_lines(a->room, a->size);
        if (is_last)
            next = *to;
        a->out[0] = to->base;
        if (!is_last && !take_planes(a->room, &next, n_planes, made_bytes, &next, a->out))
            return -EINVAL;
        /* Of axes that are done the grid has its own elements alone. */
        int r = filter_axis(a, &now, window_around(w, axis) - w->before[axis],
                            first[axis] - w->before[axis], &next);
        if (r)
            return r;
        now = next;
        memcpy(a->in, a->out, sizeof(a->in));
        is_first = false;
    }
    return 0;
}

/* By taps ------------------------------------------------------------------------------------ */

static size_t list_taps(const struct program_window *w, const struct window_grid *from,
                        int64_t *ret_offsets)
{
    int64_t index[ARRAY_MAX_NDIM] = {0}, item_bytes = (int64_t)dtype_size((enum dtype)w->dtype);
    for (size_t n = 0;; n++) {
        int64_t at = 0;
        int i = from->ndim - 1;
        for (int k = 0; k < from->ndim; k++)
            at += index[k] * from->strides[k];
        ret_offsets[n] = at / item_bytes;
        for (; i >= 0 && ++index[i] == w->size[i]; i--)
            index[i] = 0;
        if (i < 0)
            return n + 1;
    }
}

static int filter_by_taps(const struct axis_walk *a, const struct program *program,
                          const struct window_grid *from, const struct window_grid *to)
{
    const struct program_window *w = a->w;
    int fastest = to->ndim - 1, r = 0;
    int64_t index[ARRAY_MAX_NDIM] = {0}, before = 0;
    int64_t *offsets = (int64_t *)(void *)a->room->lines;
    struct window_taps taps = {.offsets = offsets,
                               .n = (size_t)to->count[fastest],
                               .weights = program->weights + w->first_weight,
                               .ranks = {w->ranks[0], w->ranks[1]},
                               .n_taps = list_taps(w, from, offsets)};
    taps.room = a->room->lines + round_up_u64(taps.n_taps * sizeof(*offsets), 64);
    uint64_t worst_ns =
        taps.n * taps.n_taps * (w->n_weights ? OP_WINDOW_TAP_WORST_NS : OP_WINDOW_PLACE_WORST_NS);
    for (int i = 0; i < from->ndim; i++)
        before += (window_around(w, i) - w->before[i]) * from->strides[i];
    do {
        taps.src = from->base + before + place_in(from, index);
        taps.dst = to->base + place_in(to, index);
        a->engine->windows->taps[w->op][w->dtype](&taps);
        r = window_room_pace(a->room, worst_ns);
    } while (r == 0 && next_place(to, fastest, fastest, index));
    return r;
}

int window_filter(const struct cpu_engine *engine, const struct program *program,
                  const struct program_window *w, const struct window_grid *from,
                  const int64_t *first, int64_t length, const struct window_grid *to,
                  struct window_room *room)
{
    struct axis_walk a = {.engine = engine, .w = w, .room = room, .length = length};
    if (engine->windows->taps[w->op][w->dtype])
        return filter_by_taps(&a, program, from, to);
    return engine->windows->steps[WINDOW_ONLY][w->op][w->dtype]
               ? filter_by_steps(&a, from, first, to)
               : -EINVAL;
}
