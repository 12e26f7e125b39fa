/* What a factorisation is of, and how much memory it takes.
 *
 *     LU          a panel of n rows, as wide as memory allows: n^3 / (3 width) elements are read
 *     Cholesky    the same, which reads half as many; or where that is too narrow part of the rows
 *                 of a wider one, whose diagonal rows are then read once for each part
 */
#include "client/clock.h"
#include "client/lib/memory/stream.h"
#include "client/linalg/solve/solve.h"
#include "client/meaning.h"
#include "proto/util.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define DEFAULT_MEMORY (UINT64_C(256) << 20)
#define LEAST_WIDTH    64
#define MOST_TILE      2048
#define MOST_ROWS      (INT64_C(1) << 30)

static int check_numbers(const struct gad_array *array, const char *name, struct gad_error *error)
{
    if (array->client == NULL || stream_of((struct gad_array *)array))
        return error_set(error, GAD_BAD_ARGUMENT, name, "a stream is read once: save it first");
    if (meaning_dtype(array) == GAD_BOOL)
        return error_set(error, GAD_BAD_DTYPE, name, "linear algebra is of numbers, not of bool");
    return 0;
}

static int bad_shape(const struct gad_array *array, const char *name, const char *wanted,
                     struct gad_error *error)
{
    char found[96];
    array_format_shape(array->info.ndim, array->info.shape, found, sizeof(found));
    error_set(error, GAD_BAD_SHAPE, name, "%s has shape %s, not %s", name, found, wanted);
    error_expected(error, "%s", wanted);
    error_found(error, "%s", found);
    return GAD_BAD_SHAPE;
}

static int check_right(struct solve *s, struct gad_error *error)
{
    const struct gad_array_info *info = &s->b->info;
    char wanted[96];
    snprintf(wanted, sizeof(wanted), "%" PRId64 " rows", s->n);
    if (info->ndim < 1 || info->ndim > 2 || info->shape[0] != s->n)
        return bad_shape(s->b, "b", wanted, error);
    s->n_right = info->ndim == 2 ? info->shape[1] : 1;
    return check_numbers(s->b, "b", error);
}

static int check(struct solve *s, struct gad_error *error)
{
    const struct gad_solve_options *options = s->options;
    if (!s->client || !s->a || !options || (s->kind == GAD_SOLVE && !s->b))
        return error_set(error, GAD_BAD_ARGUMENT,
                         !s->client ? "client"
                         : !s->a    ? "a"
                         : options  ? "b"
                                    : "options",
                         "is NULL");
    if (options->size != sizeof(*options))
        return error_set(error, GAD_BAD_ARGUMENT, "size", "size is not that of the structure");
    if (s->a->info.ndim != 2 || s->a->info.shape[0] != s->a->info.shape[1])
        return bad_shape(s->a, "a", "(n, n)", error);
    s->n = s->n_right = s->a->info.shape[0];
    if (s->n > MOST_ROWS)
        return error_set(error, GAD_LIMIT_EXCEEDED, "a", "the matrix has over 2^30 rows");
    int r = check_numbers(s->a, "a", error);
    return r == 0 && s->b ? check_right(s, error) : r;
}

static int64_t whole_widths(int64_t width, int64_t n)
{
    return min_i64(max_i64(width / LEAST_WIDTH * LEAST_WIDTH, LEAST_WIDTH), max_i64(n, 1));
}

static int choose_sizes(struct solve *s, uint64_t *ret_memory, struct gad_error *error)
{
    uint64_t memory = s->options->memory_bytes ? s->options->memory_bytes : DEFAULT_MEMORY;
    int64_t n = max_i64(s->n, 1), n_elements = (int64_t)(memory / sizeof(double));
    int64_t square = (int64_t)sqrt((double)n_elements / 2), least = min_i64(LEAST_WIDTH, n);
    s->width = whole_widths(n_elements / n, n);
    s->n_rows = n;
    s->tile = whole_widths(min_i64(square, MOST_TILE), n);
    if (s->is_cholesky && whole_widths(square, n) > 2 * s->width) {
        s->width = whole_widths(square, n);
        s->n_rows = max_i64(n_elements / s->width, s->width);
    }
    *ret_memory = (uint64_t)(s->is_cholesky && s->kind != GAD_SOLVE ? least : n) * (uint64_t)least *
                  sizeof(double);
    if (memory >= *ret_memory)
        return 0;
    error_set(error, GAD_LIMIT_EXCEEDED, "memory_bytes",
              "%" PRIu64 " bytes of memory hold no panel of a matrix of %" PRId64 " rows", memory,
              s->n);
    error_expected(error, "at least %" PRIu64 " bytes", *ret_memory);
    error_found(error, "%" PRIu64 " bytes", memory);
    return GAD_LIMIT_EXCEEDED;
}

/* A plan reads nothing: the panel lies behind the factor in a file of holes. */
static int plan_panel(struct solve *s, const int64_t *shape, struct gad_error *error)
{
    const struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 2, .shape = shape};
    uint64_t at = s->work.offset_bytes + (uint64_t)s->n * (uint64_t)s->n * sizeof(double);
    uint64_t n_bytes = (uint64_t)shape[0] * (uint64_t)shape[1] * sizeof(double);
    if (ftruncate(s->work.fd, (off_t)(at + n_bytes)) < 0)
        return error_from_errno(error, errno, "scratch", "making");
    return (int)gad_array_from_file(s->client, s->work.fd, &layout, at, true, &s->panel, error);
}

int solve_new_panel(struct solve *s, int64_t n_rows, int64_t width, struct gad_error *error)
{
    const int64_t shape[] = {n_rows, width};
    gad_array_release(s->panel);
    s->panel = NULL;
    s->data = NULL;
    s->n_rows = n_rows;
    s->width = width;
    if (s->only_plans)
        return plan_panel(s, shape, error);
    int r = (int)gad_array_new(s->client, GAD_FLOAT64, 2, shape, &s->panel, error);
    if (r == 0)
        s->data = gad_array_data(s->panel);
    return r;
}

int solve_init(struct solve *s, struct gad_client *client, enum gad_solve_kind kind,
               struct gad_array *a, struct gad_array *b, const struct gad_solve_options *options,
               bool only_plans, struct gad_error *error)
{
    uint64_t least;
    *s = (struct solve){.client = client,
                        .kind = kind,
                        .a = a,
                        .b = b,
                        .options = options,
                        .only_plans = only_plans,
                        .started_ms = clock_now_ms(),
                        .solved = {.place = -1},
                        .work = {.fd = -1}};
    s->is_cholesky = kind == GAD_CHOLESKY || (kind == GAD_SOLVE && options && options->is_positive);
    int r = check(s, error);
    s->is_upper = r == 0 && kind == GAD_CHOLESKY && options->is_upper;
    if (s->is_upper) {
        r = (int)gad_array_transpose(a, NULL, &s->turned, error);
        s->a = s->turned;
    }
    if (r == 0)
        s->times = loop_times_begin(options->run.queue_timeout_ms, options->run.deadline_ms);
    if (r == 0)
        r = choose_sizes(s, &least, error);
    if (r)
        return r;
    bool is_single = meaning_dtype(a) == GAD_FLOAT32 && (!b || meaning_dtype(b) == GAD_FLOAT32);
    s->result = is_single ? GAD_FLOAT32 : GAD_FLOAT64;
    s->solved.width = s->width;
    s->n_steps = (unsigned)divide_up_i64(s->n, s->width);
    return 0;
}

void solve_deinit(struct solve *s)
{
    gad_array_release(s->panel);
    gad_array_release(s->turned);
    s->panel = s->turned = NULL;
}
