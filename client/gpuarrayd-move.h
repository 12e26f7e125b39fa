/** gpuarrayd: views of arrays, and moving arrays into another layout. Included by gpuarrayd.h.
 *
 * A view shows the elements of an array in another order, and copies nothing: an argument or an
 * output of any job. Movements are jobs that write a new arrangement of their sources, of any size,
 * from any array to any array, with the results and the rules of NumPy's functions of the same
 * names.
 *
 *     struct gad_move_options move = {.to_path = "b.npy"};
 *     gad_transpose(client, a, NULL, &move, NULL, &error)
 */
#pragma once

#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Views -------------------------------------------------------------------------------- */

/** One axis of a view. */
struct gad_view_axis {
    int axis; /**< of the array, along which it goes; -1: none, the same elements again and again.
                   Several axes of a view may go along one of the array: a row of 6 as 2 times 3 */
    int64_t count; /**< 0 or more elements */
    int64_t step;  /**< in the array, from one to the next, of either sign; of -1: not used */
};

/** Makes a view of an array, which stays as it is.
 * array: not NULL; it may be released before the view.
 * start: for each axis of the array where the view's element [0, ..., 0] is; NULL: all 0.
 * ndim, axes: the view's axes, at most GAD_MAX_NDIM; axes may be NULL when ndim is 0.
 * ret_view: the caller's, given up by gad_array_release(). It can be written if the array can and
 * no element is there twice; a view of a created output is a part of it, and the output is
 * committed, not the view.
 * GAD_BAD_ARGUMENT: a negative count, or elements outside of the array; the message says which.
 * GAD_BAD_SHAPE: an axis that the array does not have, or sizes that no array can have. */
enum gad_status gad_array_view(struct gad_array *array, const int64_t *start, int ndim,
                               const struct gad_view_axis *axes, struct gad_array **ret_view,
                               struct gad_error *error);

/** A view with the axes in another order, as numpy.transpose().
 * array: not NULL.
 * axes: as many numbers as the array has axes: which of them comes there, each once; negative ones
 * count from the end. NULL: reversed.
 * ret_view: as of gad_array_view().
 * GAD_BAD_SHAPE: an axis out of range, or twice. */
enum gad_status gad_array_transpose(struct gad_array *array, const int *axes,
                                    struct gad_array **ret_view, struct gad_error *error);

/** A view with the elements along some axes in reverse, as numpy.flip().
 * array: not NULL.
 * n_axes, axes: which, each once; negative ones count from the end. axes NULL: all.
 * ret_view: as of gad_array_view().
 * GAD_BAD_SHAPE: an axis out of range, or twice. */
enum gad_status gad_array_flip(struct gad_array *array, int n_axes, const int *axes,
                               struct gad_array **ret_view, struct gad_error *error);

/** A view with other sizes, the elements in C order, as numpy.reshape() without a copy.
 * array: not NULL.
 * ndim, shape: of the view, as many elements as the array has; shape may be NULL when ndim is 0.
 * ret_view: as of gad_array_view().
 * GAD_BAD_SHAPE: not as many elements, or they do not lie so that they could be read by such sizes:
 * a copy can be (chunked arrays, blocks, most arrays whose axes are permuted or cut). */
enum gad_status gad_array_reshape(struct gad_array *array, int ndim, const int64_t *shape,
                                  struct gad_array **ret_view, struct gad_error *error);

/* ---- Movements ---------------------------------------------------------------------------- */

/** Where a movement goes, and how. Copied. */
struct gad_move_options {
    struct gad_array *to; /**< of exactly the result's shape, and of a dtype that the result can be
                               cast to by NumPy's rule "same_kind"; shares nothing with a source */
    const char *to_path;  /**< or a new file, in C order, with the dtype of the sources (of several:
                               numpy.result_type), committed at the end */
    const struct gad_storage *storage; /**< of `to_path`; may be NULL */
    const char *engine, *label;        /**< as of struct gad_job_options */
    int priority;                      /**< likewise */
    gad_progress_fn *progress;         /**< likewise; told of all of its jobs as one */
    bool (*is_cancelled)(const void *progress_data); /**< asked some times a second; true: it ends
                                                        with GAD_CANCELLED; may be NULL */
    void *progress_data;
    uint32_t progress_ms;
    uint32_t queue_timeout_ms; /**< each job has so long to begin, or it ends with
                                    GAD_QUEUE_TIMEOUT; 0: for ever */
    uint32_t deadline_ms;      /**< all of them together to end, or it does with
                                    GAD_DEADLINE_EXCEEDED; 0: for ever */
};

/* Each of these moves, and waits for the end. One movement is one job, or where its pieces are many
 * several, one after the other. A new file appears whole or not at all; an array that was given may
 * be partly written after a failure.
 *
 * client, options: not NULL. ret_stats: how it went, of several jobs together; may be NULL.
 * Statuses of each: GAD_BAD_ARGUMENT (no destination or two; what the function says),
 * GAD_BAD_SHAPE (of `to`, or a result that no array can be), GAD_BAD_DTYPE,
 * GAD_OVERLAPPING_OUTPUT (`to` shares memory or a file's bytes with a source), and those of
 * gad_run(). */

/** Permutes axes, as numpy.transpose().
 * client, options, ret_stats: see above.
 * array, axes: as of gad_array_transpose(). */
enum gad_status gad_transpose(struct gad_client *client, struct gad_array *array, const int *axes,
                              const struct gad_move_options *options,
                              struct gad_job_stats *ret_stats, struct gad_error *error);

/** Reverses elements along axes, as numpy.flip().
 * client, options, ret_stats: see above.
 * array, n_axes, axes: as of gad_array_flip(). */
enum gad_status gad_flip(struct gad_client *client, struct gad_array *array, int n_axes,
                         const int *axes, const struct gad_move_options *options,
                         struct gad_job_stats *ret_stats, struct gad_error *error);

/** Joins arrays along an axis that they have, as numpy.concatenate().
 * client, options, ret_stats: see above.
 * n_arrays, arrays: at least one, none without axes; of the same shape but along `axis`.
 * axis: negative: from the end.
 * GAD_BAD_SHAPE: the shapes do not match, or the axis is out of range. */
enum gad_status gad_concatenate(struct gad_client *client, unsigned n_arrays,
                                struct gad_array *const *arrays, int axis,
                                const struct gad_move_options *options,
                                struct gad_job_stats *ret_stats, struct gad_error *error);

/** Joins arrays along a new axis, as numpy.stack().
 * client, options, ret_stats: see above.
 * n_arrays, arrays: at least one; all of the same shape.
 * axis: of the result; negative: from its end.
 * GAD_BAD_SHAPE: the shapes differ, or the axis is out of range. */
enum gad_status gad_stack(struct gad_client *client, unsigned n_arrays,
                          struct gad_array *const *arrays, int axis,
                          const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                          struct gad_error *error);

/** Moves elements along axes, those beyond the end to the beginning, as numpy.roll().
 * client, options, ret_stats: see above.
 * array: not NULL.
 * n_shifts, shifts: by how much; any numbers. Shifts along the same axis add up.
 * axes: n_shifts of them; negative: from the end. NULL: the array is rolled as if it were flat, by
 * the sum of the shifts.
 * GAD_BAD_SHAPE: an axis is out of range. */
enum gad_status gad_roll(struct gad_client *client, struct gad_array *array, int n_shifts,
                         const int64_t *shifts, const int *axes,
                         const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                         struct gad_error *error);

/** Repeats a whole array, as numpy.tile().
 * client, options, ret_stats: see above.
 * array: not NULL.
 * n_repeats, repeats: how often along each of the last axes, 0 or more; more of them than the array
 * has axes give it new ones in front.
 * GAD_BAD_ARGUMENT: a negative number of repeats. */
enum gad_status gad_tile(struct gad_client *client, struct gad_array *array, int n_repeats,
                         const int64_t *repeats, const struct gad_move_options *options,
                         struct gad_job_stats *ret_stats, struct gad_error *error);

/** What stands in the border. */
enum gad_pad_mode {
    GAD_PAD_CONSTANT,  /**< a value */
    GAD_PAD_EDGE,      /**< the array's outermost elements */
    GAD_PAD_REFLECT,   /**< its mirror image without the outermost: c b | a b c | b a */
    GAD_PAD_SYMMETRIC, /**< its mirror image: b a | a b c | c b */
    GAD_PAD_WRAP       /**< its other end: b c | a b c | a b */
};

/** What lies beyond the ends of an axis for near() and windows that name no mode; where a job does
 * not say it, the element at the end. */
struct gad_beyond {
    enum gad_pad_mode mode;
    struct gad_scalar value; /**< of GAD_PAD_CONSTANT; GAD_SCALAR_NONE: 0. In an array of integers
                                  it is one that the dtype has: GAD_BAD_EXPRESSION */
};

/** The border of one axis: before and after the array. */
struct gad_pad {
    int64_t before, after;            /**< elements, 0 or more */
    double before_value, after_value; /**< of GAD_PAD_CONSTANT, cast to the array's dtype */
    struct gad_scalar before_exact, after_exact; /**< the same, where the kind is not
                           GAD_SCALAR_NONE, and no cast: an integer array takes whole numbers that
                           its dtype has, up to the ends of int64 and uint64 */
};

/** Puts a border around an array, as numpy.pad().
 * client, options, ret_stats: see above.
 * array: not NULL.
 * pads: one for each axis.
 * mode: an enum gad_pad_mode.
 * GAD_BAD_ARGUMENT: a negative width, a constant that the dtype does not have, or a border other
 * than constant around an empty axis. */
enum gad_status gad_pad(struct gad_client *client, struct gad_array *array,
                        const struct gad_pad *pads, enum gad_pad_mode mode,
                        const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                        struct gad_error *error);

/* ---- Pieces -------------------------------------------------------------------------------- */

/** Says what a created output is put together of, where it is written in several jobs: names of its
 * axes, coordinates along them, units and other attributes are then written beside its elements, as
 * far as the pieces agree, as movements do it. In formats that have such. What jobs alone have said
 * of it is replaced.
 * output: not NULL, not committed yet; of one that is, and of sources, nothing is done.
 * n_pieces, sources, places: sources[i], an array or a view of one, is what was or will be written
 * to places[i], a view of `output` or itself, of the same shape. Pieces that are put otherwise than
 * movements put theirs leave it without names.
 * GAD_BAD_ARGUMENT: a piece is NULL, a place is none of `output`, or of another shape. */
enum gad_status gad_array_carry(struct gad_array *output, unsigned n_pieces,
                                struct gad_array *const *sources, struct gad_array *const *places,
                                struct gad_error *error);

/* ---- Differences -------------------------------------------------------------------------- */

#define GAD_MAX_DIFF 16 /**< times that gad_diff() takes differences in one call */

/** Differences of neighbours along an axis, as numpy.diff(): each element less the one before it;
 * of bool whether they differ. A job that reads the array n + 1 times, and runs as movements do.
 * client, options, ret_stats: see above; the dtype is the array's.
 * array: not NULL, with at least one axis.
 * n: how many times, 0 to GAD_MAX_DIFF; more only where nothing is left. The axis has n elements
 * less, or none.
 * axis: negative: from the end.
 * GAD_BAD_ARGUMENT: n is negative. GAD_BAD_SHAPE: the axis is out of range, or there are none.
 * GAD_LIMIT_EXCEEDED: n is more than GAD_MAX_DIFF. */
enum gad_status gad_diff(struct gad_client *client, struct gad_array *array, int n, int axis,
                         const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                         struct gad_error *error);

#ifdef __cplusplus
}
#endif

#include "gpuarrayd-function.h"
#include "gpuarrayd-take.h"
