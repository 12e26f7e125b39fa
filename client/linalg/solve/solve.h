/* Factoring and solving out of core: what the files of this room that begin with solve_ share.
 *
 *     the matrix (the caller's)          the factor, a file                the panel, shared memory
 *       +-----+---+---+                    +-----+---+---+                       +---+
 *       |     | A |   |                    |  L  |   |   |                       |   | U, of
 * columns |     |   |   |   A - L @ U  -->   |     | . |   |   <--  factored <--   +---+ |     | |
 * |   a job            |     |   |   |        here           |   | what is left
 *       +-----+---+---+                    +-----+---+---+                       +---+
 */
#pragma once

#include "client/array.h"
#include "client/gpuarrayd-solve.h"
#include "client/lib/jobs/loop_times.h"

/* The file of the factor: n x n float64 in C order from offset_bytes on, and in front of that,
 * where there is a checkpoint, how far it is. */
struct solve_work {
    int64_t n, n_done; /* columns that are in it for good */
    int fd;
    bool owns_fd, has_state;
    uint64_t offset_bytes;
    struct gad_array *array; /* all of it; a reference */
    int64_t *pivots;         /* of LU: row i went to pivots[i] when it was its turn; n of them */
    int64_t swap_end;        /* > n_done: swaps of rows for columns n_done to here are under way */
    int64_t swap_next;       /* the last that was begun; -1: none */
    unsigned slot;           /* where its rows are kept */
    uint64_t digest;
    char *path; /* NULL: it has no name */
};

struct solve {
    struct gad_client *client;
    enum gad_solve_kind kind;
    bool is_cholesky, is_upper;
    struct gad_array *a, *b;  /* the caller's; b may be NULL */
    struct gad_array *turned; /* is_upper: a view, which `a` then is; its lower half is read */
    int64_t n_right;          /* columns on the right side, or of the result */
    const struct gad_solve_options *options;
    bool only_plans;
    int64_t n;
    enum gad_dtype result; /* float32 or float64 */
    int64_t width, n_rows; /* of the panel */
    int64_t tile;          /* of a triangle that is solved with, on the diagonal */
    struct gad_array *panel;
    double *data; /* of the panel; NULL: only plans */
    struct solve_work work;
    struct gad_reads reads;
    double planned_s;
    uint64_t carry_bytes;
    int64_t started_ms;
    struct loop_times times;
    unsigned step, n_steps;
    struct gad_solved solved;
};

/* solve_jobs.c */

/* A box of a matrix: a view. transposed: its columns are the view's rows. */
struct solve_box {
    struct gad_array *array;
    int64_t row, n_rows, column, n_columns;
    bool is_transposed;
};
/* One job: `expr` of the boxes c, l and r into another box; those without an array are not there.
 */
struct solve_job {
    const char *expr;
    struct solve_box c, l, r, to;
};
int solve_run(struct solve *s, const struct solve_job *job, struct gad_error *error) GAD_MUST_CHECK;
/* A part of the panel, from the row on. */
struct solve_box solve_of_panel(const struct solve *s, int64_t row, int64_t n_rows,
                                int64_t n_columns);
struct solve_box solve_of_factor(const struct solve *s, int64_t row, int64_t n_rows, int64_t column,
                                 int64_t n_columns);
/* Of rows of the panel from `at` on, which are to become the matrix's from `row` on, k columns from
 * `column` on, of a Cholesky factor up to the diagonal: bad-argument: where they are not finite,
 * the matrix has an element that is not, either. */
int solve_check_finite(struct solve *s, int64_t at, int64_t row, int64_t n_rows, int64_t column,
                       int64_t k, struct gad_error *error) GAD_MUST_CHECK;
/* A step has been done. cancelled: it shall be the last. */
int solve_tell(struct solve *s, struct gad_error *error) GAD_MUST_CHECK;

/* solve_work.c */

/* kind: of the factor, 'C', 'U' (of the upper half) or 'L'. take: an array that is the file, whose
 * reference is taken over; or NULL: one is made. */
int solve_work_open(struct solve *s, char kind, struct gad_array *take,
                    struct gad_error *error) GAD_MUST_CHECK;
void solve_work_close(struct solve *s, bool is_over);
/* Moves rows of the file from or to memory. */
int solve_work_read(const struct solve_work *w, int64_t row, int64_t n_rows, int64_t column,
                    int64_t n_columns, double *ret, int64_t stride,
                    struct gad_error *error) GAD_MUST_CHECK;
int solve_work_write(const struct solve_work *w, int64_t row, int64_t n_rows, int64_t column,
                     int64_t n_columns, const double *data, int64_t stride,
                     struct gad_error *error) GAD_MUST_CHECK;
/* Columns until `end` are in it: what rows have in front of these is exchanged as their pivots say,
 * and then they are done. */
int solve_work_swap(struct solve_work *w, int64_t end, struct gad_error *error) GAD_MUST_CHECK;
int solve_work_done(struct solve_work *w, int64_t end, char kind,
                    struct gad_error *error) GAD_MUST_CHECK;

/* solve_tiles.c: in memory, C order, `stride` elements from a row to the next. */

enum solve_triangle {
    SOLVE_LOWER,       /* L x = b */
    SOLVE_UNIT_LOWER,  /* the same, with ones on the diagonal that are not stored */
    SOLVE_UPPER,       /* U x = b */
    SOLVE_LOWER_TURNED /* L transposed x = b */
};
struct solve_tile {
    int64_t n_rows, n_columns, stride;
    double *data;
};
/* The lower half becomes the factor, the upper half zeros. *ret_bad: -1, or the minor from 0. */
int solve_tile_cholesky(const struct solve_tile *tile, int64_t *ret_bad,
                        struct gad_error *error) GAD_MUST_CHECK;
/* x = inv(t) x, on all processors. */
int solve_tile_triangle(const struct solve_tile *t, enum solve_triangle kind,
                        const struct solve_tile *x, struct gad_error *error) GAD_MUST_CHECK;
/* rows = rows @ inv(L transposed), on all processors. */
int solve_tile_rows(const struct solve_tile *l, const struct solve_tile *rows,
                    struct gad_error *error) GAD_MUST_CHECK;
/* LU with partial pivoting of at least as many rows as columns; ret_pivots: n_columns rows of it.
 * *ret_bad: -1, or the first column without a pivot, from which on nothing is factored. */
int solve_tile_lu(const struct solve_tile *tile, int64_t *ret_pivots, int64_t *ret_bad,
                  struct gad_error *error) GAD_MUST_CHECK;
/* Exchanges row i and pivots[i], i from `first` to `end`, in the columns of the tile. */
void solve_tile_swap(const struct solve_tile *tile, const int64_t *pivots, int64_t first,
                     int64_t end);

/* solve_prepare.c */

/* What is there to be read and where it goes; *s is valid for solve_deinit() whatever the outcome.
 */
int solve_init(struct solve *s, struct gad_client *client, enum gad_solve_kind kind,
               struct gad_array *a, struct gad_array *b, const struct gad_solve_options *options,
               bool only_plans, struct gad_error *error) GAD_MUST_CHECK;
void solve_deinit(struct solve *s);
/* Another panel, in place of the one that there is. */
int solve_new_panel(struct solve *s, int64_t n_rows, int64_t width,
                    struct gad_error *error) GAD_MUST_CHECK;

/* solve_cholesky.c, solve_lu.c: factor into s->work. singular-matrix: solved.place says where. */
int solve_factor_cholesky(struct solve *s, struct gad_error *error) GAD_MUST_CHECK;
int solve_factor_lu(struct solve *s, struct gad_error *error) GAD_MUST_CHECK;
/* x = inv(L) x for the rows from `first` on, x being the panel's first n_columns; of L the columns
 * from `first` to `end`. */
int solve_forward(struct solve *s, enum solve_triangle kind, int64_t first, int64_t end,
                  int64_t n_columns, struct gad_error *error) GAD_MUST_CHECK;
int solve_backward(struct solve *s, enum solve_triangle kind, int64_t n_columns,
                   struct gad_error *error) GAD_MUST_CHECK;
