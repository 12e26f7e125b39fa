/* Windows of a box: what a pass reads of them, made before it is walked. */
#pragma once

#include "kernels/cpu/engine.h"
#include "kernels/cpu/windows/window_kernels.h"
#include "kernels/grains/geometry.h"

struct run_call;

/* A thread's memory for all that the windows of one box have. */
struct window_room {
    char *boxes;
    size_t used_bytes;
    char *lines;
    const struct engine_pace *pace;
    uint64_t since_asked_ns;
};
#define WINDOW_LINE_BYTES (CPU_WINDOW_BYTES - WINDOW_BOX_BYTES)
#define WINDOW_BOX_BYTES  (GRAIN_MAX_WINDOW_BYTES + WINDOW_VIEW_BYTES)
#define WINDOW_VIEW_BYTES (2048u * 1024u) /* of operands' views */
#define WINDOW_PAD_BYTES  GRAIN_WINDOW_PAD_BYTES

void window_room_init(struct window_room *room, const struct engine_box *box);
/* Something that takes so long at its worst was done. -ECANCELED: the rest need not be. */
int window_room_pace(struct window_room *room, uint64_t worst_ns) GAD_MUST_CHECK;

/* An array in such memory. */
struct window_grid {
    int ndim;
    char *base;
    int64_t count[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM]; /* bytes, the last axis the fastest */
};
/* False: there is no room. */
bool window_grid_take(struct window_room *room, int ndim, const int64_t *count, size_t item_bytes,
                      struct window_grid *ret);

/* window_make.c: makes the windows that the pass reads. ret_views: by their numbers in the program,
 * as the pass sees them. */
int windows_make(const struct run_call *call, const struct engine_box *box,
                 struct engine_view *ret_views) GAD_MUST_CHECK;

/* window_pad.c: what of an axis of a grid lies in the array, or is made in its place: the elements
 * [first, first + count) where the axis goes on with what is at its other end. */
struct window_span {
    int64_t first;  /* of the grid, along the axis; below 0: before its beginning */
    int64_t length; /* of the axis */
    int64_t made_first, made_end;
    enum near_mode mode;
};
struct window_span window_span(enum near_mode mode, int64_t length, int64_t first, int64_t count);
/* The rest of the grid. `beyond`: an element. */
void window_pad(const struct window_grid *grid, const struct window_span *spans, size_t item_bytes,
                const void *beyond);

/* window_axis.c: what the window gives of `from`, which has as many elements more than `to` along
 * each axis as the window has around a place, in both directions. first: the place of the first
 * element of `to` along each axis. length: 0, or that of the last axis, along which alone the
 * window has more than one element and which has window_lane_axis(): then what is beyond the axis's
 * ends is not there. */
int window_filter(const struct cpu_engine *engine, const struct program *program,
                  const struct program_window *w, const struct window_grid *from,
                  const int64_t *first, int64_t length, const struct window_grid *to,
                  struct window_room *room) GAD_MUST_CHECK;
/* The axis whose elements are lanes of lines along `axis`: the last one, or of the others that with
 * most elements; -1: there are few. */
int window_lane_axis(const struct window_grid *to, int axis);
