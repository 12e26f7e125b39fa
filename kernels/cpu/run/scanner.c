/* Scans of a box along one axis, strip by strip in visiting order.
 *
 * Neighbours in visiting order that are not scanned are one axis here, so a box is
 *
 *     n_outer x n_length x n_inner,    scanned along the one in the middle
 *
 * and n_inner is 1 where the scanned axis is the fastest: then a row is a run of one state, and
 * else a row's elements belong to one state each. States lie in the caller's memory, at any
 * strides: those of a run of neighbours are used where they lie if they are dense, else copied to a
 * small buffer and back. They are written after every piece, so that the next strip, or the next
 * box, goes on from there.
 *
 * Called by run.c for each strip.
 */
#include "kernels/cpu/run/scanner.h"

#include "proto/box.h"
#include "proto/util.h"

#include <string.h>

#define GATHERED 256 /* states in the small buffer */

void scanner_init(struct scanner *s, const struct engine_box *box, unsigned scanned_axis)
{
    bool is_faster = true;
    *s = (struct scanner){.n_length = (uint64_t)box->count[scanned_axis], .n_inner = 1};
    s->is_beginning = !box->start || box->start[scanned_axis] == 0;
    for (int i = box->ndim - 1; i >= 0; i--) {
        unsigned axis = (unsigned)box->axis_order[i];
        is_faster &= axis != scanned_axis;
        if (axis != scanned_axis && (is_faster || s->n_length == 1))
            s->n_inner *= (uint64_t)box->count[axis];
    }
}

static void merge_axes(struct scanning *d, const struct engine_box *box, unsigned scanned_axis,
                       const int64_t *strides)
{
    struct box cells;
    cells.n = 0;
    for (int i = box->ndim - 1; i >= 0; i--) {
        unsigned axis = (unsigned)box->axis_order[i];
        if (axis != scanned_axis)
            box_add(&cells, box->count[axis], strides[axis], 0);
    }
    box_need_axis(&cells, sizeof(uint64_t), 0);
    d->n = cells.n;
    for (int i = 0; i < cells.n; i++) {
        d->count[i] = cells.axes[i].count;
        d->stride[i] = cells.axes[i].strides[0];
    }
}

void scanning_init(struct scanning *d, const struct reduction *reduction,
                   const struct engine_box *box, unsigned scanned_axis,
                   const struct engine_view *states)
{
    union scalar identity = {.u64 = reduction->op == OP_CUMPROD};
    if (reduction->result == DTYPE_FLOAT64) /* -0.0 leaves a negative zero as it is */
        identity.f64 = reduction->op == OP_CUMPROD ? 1.0 : -0.0;
    d->reduction = reduction;
    d->identity = identity.u64;
    d->item_log2 = (unsigned)__builtin_ctzl(dtype_size((enum dtype)reduction->src.dtype));
    d->states = states->base;
    merge_axes(d, box, scanned_axis, states->strides);
}

/* Where the state of a cell is. Returns how many, it and those behind it, are ret_stride apart. */
static uint64_t locate_states(const struct scanning *d, uint64_t cell, char **ret_state)
{
    char *at = d->states;
    uint64_t n_left = 0;
    for (int i = 0; i < d->n; i++) {
        uint64_t count = (uint64_t)d->count[i], index = cell % count;
        at += (int64_t)index * d->stride[i];
        cell /= count;
        if (i == 0)
            n_left = count - index;
    }
    *ret_state = at;
    return n_left;
}

static void begin_states(const struct scanning *d, uint64_t *states, size_t n)
{
    for (size_t i = 0; i < n; i++)
        states[i] = d->identity;
}

static void take_along(const struct scanner *s, struct scanning *d, uint64_t first, size_t n,
                       const char *src, char *dst)
{
    while (n > 0) {
        uint64_t at = first % s->n_length;
        size_t n_now = min_u64(n, s->n_length - at);
        char *state;
        (void)locate_states(d, first / s->n_length, &state);
        if (at == 0 && s->is_beginning)
            memcpy(state, &d->identity, sizeof(d->identity));
        d->along(n_now, dst, src, state);
        first += n_now;
        n -= n_now;
        src += n_now << d->item_log2;
        dst += n_now * sizeof(uint64_t);
    }
}

/* n_rows rows of n elements that follow on each other in memory; n states from `cell` on. Several
 * rows only where the states are dense. */
static void take_rows(const struct scanner *s, struct scanning *d, uint64_t cell, bool is_first,
                      size_t n_rows, size_t n, const char *src, char *dst)
{
    uint64_t gathered[GATHERED];
    (void)s;
    while (n > 0) {
        char *state;
        int64_t stride = d->stride[0];
        size_t n_now = min_u64(n, locate_states(d, cell, &state));
        bool is_dense = stride == sizeof(uint64_t);
        uint64_t *states = is_dense ? (uint64_t *)state : gathered;
        if (!is_dense)
            n_now = min_u64(n_now, GATHERED);
        if (is_first)
            begin_states(d, states, n_now);
        for (size_t i = 0; !is_dense && !is_first && i < n_now; i++)
            memcpy(&states[i], state + (int64_t)i * stride, sizeof(states[i]));
        d->across(n_rows, n_now, dst, src, states);
        for (size_t i = 0; !is_dense && i < n_now; i++)
            memcpy(state + (int64_t)i * stride, &states[i], sizeof(states[i]));
        cell += n_now;
        n -= n_now;
        src += n_now << d->item_log2;
        dst += n_now * sizeof(uint64_t);
    }
}

static void take_across(const struct scanner *s, struct scanning *d, uint64_t first, size_t n,
                        const char *src, char *dst)
{
    while (n > 0) {
        uint64_t at = first % s->n_inner, row = first / s->n_inner % s->n_length;
        uint64_t cell = first / s->n_inner / s->n_length * s->n_inner + at;
        bool is_first = row == 0 && s->is_beginning;
        size_t n_now = min_u64(n, s->n_inner - at), n_rows = 1;
        bool is_dense = d->n == 1 && d->stride[0] == sizeof(uint64_t);
        if (at == 0 && n >= s->n_inner && is_dense)
            n_rows = min_u64(n / s->n_inner, s->n_length - row);
        take_rows(s, d, cell, is_first, n_rows, n_now, src, dst);
        n_now *= n_rows;
        first += n_now;
        n -= n_now;
        src += n_now << d->item_log2;
        dst += n_now * sizeof(uint64_t);
    }
}

void scanning_take(const struct scanner *s, struct scanning *d, uint64_t first, size_t n,
                   const void *src)
{
    if (s->n_inner == 1)
        take_along(s, d, first, n, src, d->buffer);
    else
        take_across(s, d, first, n, src, d->buffer);
}
