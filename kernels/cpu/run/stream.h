/* One array of a pass, walked strip by strip in visiting order: where a strip can be used where it
 * lies, and how it is copied where it cannot. Elements of a box are numbered in visiting order. */
#pragma once

#include "kernels/cpu/engine.h"
#include "kernels/cpu/levels/kernels.h"

enum stream_kind {
    STREAM_LINEAR,   /* one contiguous, native, aligned run: used in place */
    STREAM_RUNS,     /* such runs of n_run elements: in place where a strip lies in one run */
    STREAM_COPIED,   /* gathered or scattered */
    STREAM_PERIODIC, /* repeats after n_run elements (1: the same everywhere): copied once */
};

struct stream {
    enum stream_kind kind;
    enum dtype dtype;
    unsigned item_log2;
    bool is_swapped, bypasses_cache, is_fetched_ahead;
    uint64_t n_run;
    /* STREAM_RUNS: the run that was used last begins at this element; INT64_MAX: none was. Where it
     * is (NULL: all of it is beyond), and which of its elements are there. */
    uint64_t run_first, run_low, run_high;
    char *run;
    char *base;
    const int64_t *strides;
    uintptr_t low, high; /* the bytes touched, [low, high) */
    void *buffer;        /* for strips that are copied */
    uint16_t slot;
    uint16_t last_use;
    /* Of a near, where some of the box's elements lie beyond an end of an axis (edges.c), and its
     * input; else NULL. Such a stream is never linear. */
    const struct program_near *near;
    const struct program_input *near_of;
    uint32_t goes_on_axes;
};

/* period_limit: no longer period becomes STREAM_PERIODIC; 0 for outputs. */
void stream_init(struct stream *s, const struct engine_box *box, const struct engine_view *view,
                 enum dtype dtype, uint64_t period_limit);
/* The view is the input's. */
void stream_init_near(struct stream *s, const struct engine_box *box,
                      const struct engine_view *view, const struct program *program,
                      const struct program_near *near, uint64_t period_limit);

static inline bool stream_overlaps(const struct stream *a, const struct stream *b)
{
    return a->low < b->high && b->low < a->high;
}

/* The elements [first, first + n) where they lie, or NULL where they must be copied. */
void *stream_direct(struct stream *s, const struct engine_box *box, uint64_t first, size_t n);

/* Copies the elements to `buffer`, native, bools as 0 and 1, and repeats the last one up to
 * KERNEL_GRANULE. */
void stream_load(const struct stream *s, const struct engine_box *box, uint64_t first, size_t n,
                 const struct move_kernels *move, void *buffer);

/* edges.c, of nears, where s->near is set: where the row begins in which an element lies, NULL:
 * beyond, and which elements of each row are not; and elements to a strip, in the byte order of the
 * array. */
char *edges_find_row(const struct stream *s, const struct engine_box *box, uint64_t element);
void edges_find_inside(const struct stream *s, const struct engine_box *box, uint64_t *ret_low,
                       uint64_t *ret_high);
void edges_load(const struct stream *s, const struct engine_box *box, uint64_t first, size_t n,
                char *strip);

/* Copies a strip to its place, past the cache where it should and is contiguous. `spare` is a
 * strip's buffer that may be overwritten. */
void stream_store(struct stream *s, const struct engine_box *box, uint64_t first, size_t n,
                  const struct move_kernels *move, const void *strip, void *spare);

/* An operand without memory: the elements' coordinates along one axis of the pass, as int64; or
 * their numbers in C order of the pass's shape, as uint64. */
struct index_stream {
    bool is_flat;
    const struct engine_box *box;
    uint64_t flat_start;                  /* of the box's first element */
    int64_t flat_strides[ARRAY_MAX_NDIM]; /* how far a step along each axis goes */
    unsigned axis;
    int64_t start;           /* of the box, along the axis */
    uint64_t count, n_inner; /* the axis's extent; the elements of all faster axes together */
    int64_t *buffer;
    uint16_t slot;
};
void index_stream_init(struct index_stream *s, const struct engine_box *box, unsigned axis);
/* axes: bit i: axis i counts; the others are not there. */
void index_stream_init_flat(struct index_stream *s, const struct engine_box *box,
                            const int64_t *shape, uint32_t axes);
/* Those of the elements [first, first + n), n rounded up to KERNEL_GRANULE. */
void index_stream_load(const struct index_stream *s, uint64_t first, size_t n);
/* Whether those elements' numbers count up by one, from *ret_number on. */
bool index_stream_counts(const struct index_stream *s, uint64_t first, size_t n,
                         uint64_t *ret_number);

/* Of a flat one: how many elements from `first` on, at most n, have the numbers *ret_number,
 * *ret_number + *ret_step and so on. */
size_t index_stream_run(const struct index_stream *s, uint64_t first, size_t n, int64_t *ret_number,
                        int64_t *ret_step);

/* buffer[i] = buffer[i % n_first_bytes] up to n_bytes. */
void stream_repeat(void *buffer, size_t n_first_bytes, size_t n_bytes);
