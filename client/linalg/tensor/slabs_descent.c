/* One sweep of coordinate descent over the columns of a slab's rows, as expressions of its walk:
 *
 *     t  = X_s C I                                     I: inverse of the diagonal of g
 *     v0 = where(index(1) == 0, maximum(b + t, 0), a)  a: the rows before; b = a - a E
 *     u1 = v0 N                                        N: ones on the diagonal
 *     v1 = where(index(1) == 1, maximum(u1 - u1 E + t, 0), u1)       E: g, scaled
 *     ...
 *
 * A column takes in those before it, as the textbook's loop does; that each product makes all
 * columns of which one is used costs nothing beside X_s C. u is v to the bit: results of products
 * are kept beside the slab, where what is made of v would compute all before it once more.
 */
#include "client/linalg/tensor/slabs_job.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>

#define MOST_COLUMNS 16 /* for which a walk has steps */
#define PART_CHARS   128

static const char *const names[SLABS_N_DESCENT] = {"_a", "_b", "_e", "_i", "_n"};

/* The parts in front of an output, whose last one is `_v`. */
static char *write_parts(const struct slabs *s)
{
    size_t n_chars = sizeof(s->product) + (size_t)(s->rank + 2) * PART_CHARS;
    char *text = malloc(n_chars);
    if (!text)
        return NULL;
    int at =
        snprintf(text, n_chars,
                 "_t = %s @ _i; _v0 = where(index(1) == 0, maximum(_b + _t, 0), _a); ", s->product);
    for (int q = 1; q < (int)s->rank; q++)
        at += snprintf(text + at, n_chars - (size_t)at,
                       "_u%d = _v%d @ _n; "
                       "_v%d = where(index(1) == %d, maximum(_u%d - _u%d @ _e + _t, 0), _u%d); ",
                       q, q - 1, q, q, q, q, q);
    return text;
}

static int run(struct slabs *s, bool with_squares, bool only_tries, struct gad_error *error)
{
    struct slabs_job job = {.names = {""}};
    _cleanup_free_ char *parts = write_parts(s), *rows = NULL, *rest = NULL;
    int last = (int)s->rank - 1;
    if (!parts || asprintf(&rows, "%s_v%d", parts, last) < 0 ||
        asprintf(&rest, "%stensordot(_x, _v%d, (%d, 0))", parts, last, s->axis) < 0)
        return -ENOMEM;
    slabs_job_add_factors(s, &job);
    for (int i = 0; i < SLABS_N_DESCENT; i++)
        if (last > 0 || (i != SLABS_SCALED && i != SLABS_ONES))
            slabs_job_add_input(&job, names[i], s->descent[i]);
    slabs_job_add_output(&job, rows, s->factors[s->axis]);
    slabs_job_add_output(&job, rest, s->rest);
    return slabs_job_run(s, &job, with_squares, only_tries, error);
}

int slabs_use_descent(struct slabs *s, bool *ret_is, struct gad_error *error)
{
    int64_t n = s->p->shape[s->axis], rank = s->rank;
    const int64_t shapes[SLABS_N_DESCENT][2] = {
        {n, rank}, {n, rank}, {rank, rank}, {rank, rank}, {rank, rank}};
    struct gad_error refusal = {.status = GAD_OK};
    *ret_is = false;
    if (s->is_split || rank > MOST_COLUMNS)
        return 0;
    for (int i = 0; i < SLABS_N_DESCENT; i++) {
        int r = passes_new_matrix(s->p, 2, shapes[i], &s->descent[i], error);
        if (r)
            return r;
    }
    int r = run(s, true, true, &refusal);
    *ret_is = r == 0;
    if (r == 0 || r == GAD_TOO_LARGE_FOR_POOL || r == GAD_LIMIT_EXCEEDED)
        return 0;
    if (error)
        *error = refusal;
    return r;
}

int slabs_read_descent(struct slabs *s, bool with_squares, struct gad_error *error)
{
    return run(s, with_squares, false, error);
}
