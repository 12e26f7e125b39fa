/* Movements: pieces of arrays to pieces of one destination, as jobs. */
#pragma once

#include "client/array.h"
#include "client/gpuarrayd-move.h"
#include "client/lib/jobs/loop_times.h"
#include "client/meaning.h"

/* What goes where along one axis of the destination:
 *
 *     destination  to, to + 1, ...           (count of them)
 *     source       from, from + step, ...
 *
 * and the same n_repeats times, each count elements further in the destination. */
struct move_segment {
    int64_t to, from, step, count, n_repeats;
};

struct move_piece {
    struct gad_array *source; /* a reference */
    int *source_axes;         /* for each axis of the destination */
    struct move_segment *segments;
};

struct move {
    struct gad_client *client;
    const struct gad_move_options *options;
    struct gad_array *to; /* a reference */
    bool is_created;
    unsigned n_pieces, n_allocated;
    struct move_piece *pieces;
    uint64_t total_bytes; /* of pieces */
    unsigned n_reads;     /* how often each of them is read */
    struct gad_job_stats stats;
    struct loop_times times;
};

/* What comes out: the destination is made, or checked against it. No source may share its bytes. */
struct move_result {
    enum gad_dtype dtype;
    int ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    struct axis_limits limits; /* of a new destination's axes */
};
/* Axis i of the result goes along axis source_axes[i] of all sources, or along none (-1); NULL:
 * each along its own. Where all have names, the same in all sources, it grows as theirs do. */
void move_take_limits(struct move_result *result, unsigned n_sources,
                      struct gad_array *const *sources, const int *source_axes);
/* *move is valid for move_deinit() whatever the outcome. bad-argument, bad-shape, read-only,
 * overlapping-output, and those of creating. */
int move_init(struct move *move, struct gad_client *client, const struct gad_move_options *options,
              const struct move_result *result, unsigned n_sources,
              struct gad_array *const *sources, struct gad_error *error) GAD_MUST_CHECK;
void move_deinit(struct move *move);

/* One piece: a segment for each axis of the destination, which goes along axis source_axes[i] of
 * the source, or along none (-1: count and n_repeats say how often the same is there). Empty ones
 * are left out. limit-exceeded: too many pieces. */
int move_add(struct move *move, struct gad_array *source, const int *source_axes,
             const struct move_segment *segments, struct gad_error *error) GAD_MUST_CHECK;

/* move_carry.c: what the destination has beside its elements, of what the pieces' sources have. */
void move_carry(struct move *move);
/* Moves, waits, commits. ret_stats may be NULL. */
int move_run(struct move *move, struct gad_job_stats *ret_stats,
             struct gad_error *error) GAD_MUST_CHECK;

/* Waits for a job; cancels it when options->is_cancelled says so. Its status. */
int move_wait(const struct gad_move_options *options, struct gad_job *job,
              struct gad_error *error) GAD_MUST_CHECK;
/* Submits a job of the caller's own making, and waits for it. ret_stats: may be NULL. */
int move_submit(struct gad_client *client, const struct gad_job_options *wanted,
                const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                struct gad_error *error) GAD_MUST_CHECK;

/* One job of the movement, and waiting for it; the destination is among the outputs. */
int move_run_job(struct move *move, unsigned n_args, const struct gad_argument *args,
                 unsigned n_outputs, const struct gad_output *outputs,
                 struct gad_error *error) GAD_MUST_CHECK;
/* The end of move_run(): commits. */
int move_finish(struct move *move, struct gad_job_stats *ret_stats,
                struct gad_error *error) GAD_MUST_CHECK;

/* Checks what every public function is given. */
int move_check(const struct gad_client *client, unsigned n_arrays, struct gad_array *const *arrays,
               const struct gad_move_options *options, struct gad_error *error) GAD_MUST_CHECK;
