/** gpuarrayd: elements of arrays by their indices, or where a mask is true. Included by
 * gpuarrayd-move.h.
 *
 *     gad_array_take(a, indices, NULL, &rows, &error)          rows 7, 3, 3, ... of a
 *     gad_run(... {"sum(rows * 2)", rows} ...)                 as an argument of any job
 *     gad_take(client, a, indices, NULL, &to_file, NULL, &error)
 *     gad_run(... {"sum(a[i] * 2)"} ...)                       of arguments; i may be a mask
 *     gad_run(... {"a[:, i] - take(b, j, axis=-1)"} ...)       along any axis
 */
#pragma once

#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gad_move_options;

/** What becomes of indices that are outside of the axis, as of numpy.take(). */
enum gad_take_mode {
    GAD_TAKE_RAISE, /**< they are refused; those from -length to -1 count from the end */
    GAD_TAKE_WRAP,  /**< they are taken modulo the length */
    GAD_TAKE_CLIP   /**< the nearest is taken: of negative ones the first */
};

/** Zeroed: along the first axis, GAD_TAKE_RAISE. */
struct gad_take_options {
    int axis;   /**< of the array, that indices are of; negative: from the end */
    int n_axes; /**< so many axes from there on are one, in C order, whose length is the product of
                     theirs; 0: one; -1: all to the last, as numpy.take() without an axis */
    enum gad_take_mode mode;
    uint64_t memory_bytes; /**< that reading in a better order may take, see below; 0: 256 MiB */
};

/** An array that has an array's elements by their indices, as numpy.take(): its shape is the
 * array's, where the shape of the indices stands for the axis. Nothing is copied here; it is read
 * by jobs, and is not written.
 * array: not NULL, no stream; of any place and size. It may be released before the result.
 * indices: integers in any order, each any number of times, of any shape, place and size: a job
 * reads them as it goes, and holds the file's or memory's own to be right at that time.
 * options: NULL: zeroed.
 * ret_array: the caller's, given up by gad_array_release().
 *
 * What lies in a file is read in the order of its places, neighbours together. Where elements are
 * short, or packed in chunks with others, blocks of the result are made together, so many at a time
 * as fit memory_bytes, and each chunk is decoded once for all of them.
 *
 * GAD_BAD_ARGUMENT: a stream, or a mode that there is not. GAD_BAD_SHAPE: an axis that the array
 * does not have, or more dimensions than an array can have. GAD_BAD_DTYPE: indices that are no
 * integers (of a mask gad_array_positions() gives them). GAD_BAD_INDEX: any index of an axis of no
 * elements. A job fails with GAD_BAD_INDEX when it meets an index that is outside: the error says
 * which, and its place among the indices. */
enum gad_status gad_array_take(struct gad_array *array, struct gad_array *indices,
                               const struct gad_take_options *options, struct gad_array **ret_array,
                               struct gad_error *error);

/** The same as a movement (see gpuarrayd-move.h).
 * client, move, ret_stats: as of movements.
 * array, options: as of gad_array_take().
 * indices: those, or a mask: of bool, with the shape of the array's axes from options->axis on, as
 * many as it has; the result has those elements, in C order, at which it is true.
 * GAD_BAD_SHAPE: also a mask of another shape. Those of gad_array_take() and of movements. */
enum gad_status gad_take(struct gad_client *client, struct gad_array *array,
                         struct gad_array *indices, const struct gad_take_options *options,
                         const struct gad_move_options *move, struct gad_job_stats *ret_stats,
                         struct gad_error *error);

/** An output of bool, for a job, that remembers where it is true: a bit for each element.
 *
 *     gad_array_new_marks(client, ndim, shape, &marks, &error)
 *     gad_run(... {.expr = "a > 0", .to = marks} ...)
 *     gad_array_positions(marks, &positions, &error)
 *
 * client: not NULL. ndim, shape: of the mask; shape may be NULL when ndim is 0.
 * ret_marks: the caller's, given up by gad_array_release(). It cannot be read; nothing is true in
 * it at first.
 * GAD_BAD_SHAPE. GAD_NO_MEMORY. */
enum gad_status gad_array_new_marks(struct gad_client *client, int ndim, const int64_t *shape,
                                    struct gad_array **ret_marks, struct gad_error *error);

/** Where marks are true: int64 in one axis, in ascending order, each the number of an element in C
 * order, as numpy.flatnonzero(). Indices of gad_array_take() with n_axes as many as the mask has.
 * marks: of gad_array_new_marks(); no job writes it any more. It may be released before the result.
 * ret_positions: the caller's, given up by gad_array_release().
 * GAD_BAD_ARGUMENT: another array. */
enum gad_status gad_array_positions(struct gad_array *marks, struct gad_array **ret_positions,
                                    struct gad_error *error);

#ifdef __cplusplus
}
#endif
