/* Skinny products in tiles of the level's kernels (slab_kernels.h).
 *
 *     scratch    project: | lanes of ROWS rows | results of them |
 *                gather:  | v of float32, widened |    but of float32 in float32
 *
 * Results are done in groups of nearly equal size.
 *
 * Called by the worker, from any thread.
 */
#include "kernels/cpu/slab/skinny.h"
#include "kernels/cpu/run/run.h"
#include "kernels/cpu/slab/slab_kernels.h"
#include "proto/util.h"

#define ROWS        32   /* of a projection, whose lanes stay in the first cache */
#define COLUMNS     256  /* of the operand, which stay there too; of float32 twice as many */
#define GATHER_ROWS 1024 /* a slab has no more */
#define TILE_ROWS   16   /* of a sum: what was asked for ahead stays in the first cache */
#define LANES_BYTES (ROWS * SLAB_MAX_RESULTS * SLAB_LANES_OF * sizeof(double))

_Static_assert(LANES_BYTES + ROWS * SLAB_MAX_RESULTS * sizeof(double) <= CPU_SCRATCH_BYTES &&
                   GATHER_ROWS * SLAB_MAX_RESULTS * sizeof(double) <= CPU_SCRATCH_BYTES,
               "all of it is in the scratch");

static const void *at(const struct cpu_rows *x, int64_t row, int64_t column)
{
    return (const char *)x->base + row * x->line_bytes + column * (int64_t)dtype_size(x->dtype);
}

/* Of n results from `first` on, how many the next group has: groups are as equal as can be. */
static int64_t next_group(const struct slab_kernels *k, int64_t n, int64_t first)
{
    int64_t n_groups = divide_up_i64(n - first, (int64_t)k->n_results);
    return divide_up_i64(n - first, n_groups);
}

static void put(void *to, enum dtype dtype, int64_t index, double value)
{
    if (dtype == DTYPE_FLOAT32)
        ((float *)to)[index] = (float)value;
    else
        ((double *)to)[index] = value;
}

struct projection {
    const struct cpu_engine *engine;
    const struct cpu_rows *x;
    const struct cpu_operand *operand;
    void *to;
    enum dtype dtype;
    char *scratch;
};

static void project_rows(const struct projection *p, int64_t row, int64_t first, int64_t n_results)
{
    const struct slab_kernels *k = p->engine->slabs;
    const struct cpu_operand *o = p->operand;
    int64_t item = (int64_t)dtype_size(o->dtype),
            n_columns = COLUMNS * (int64_t)sizeof(double) / item;
    enum slab_precision precision = o->dtype == DTYPE_FLOAT32      ? SLAB_SINGLE
                                    : p->x->dtype == DTYPE_FLOAT64 ? SLAB_DOUBLE
                                                                   : SLAB_WIDENED;
    int64_t n_rows = min_i64(ROWS, p->x->n_rows - row);
    bool is_wide = p->dtype == DTYPE_FLOAT64;
    double *rounded = (double *)(p->scratch + LANES_BYTES);
    int64_t place = row * o->n_results + first;
    struct slab_tile t = {.n_rows = (size_t)n_rows,
                          .n_results = (size_t)n_results,
                          .line_bytes = p->x->line_bytes,
                          .operand_line = (size_t)(o->line_bytes / item),
                          .lanes = (double *)p->scratch,
                          .to = is_wide ? (double *)p->to + place : rounded,
                          .to_line = (size_t)(is_wide ? o->n_results : n_results)};
    for (int64_t column = 0; column < p->x->n_columns; column += n_columns) {
        t.n_columns = (size_t)min_i64(n_columns, p->x->n_columns - column);
        t.x = at(p->x, row, column);
        t.operand = (const char *)o->base + first * o->line_bytes + column * item;
        t.is_added = column > 0;
        t.is_last = column + n_columns >= p->x->n_columns;
        k->project[precision](&t);
    }
    for (int64_t i = 0; i < n_rows && !is_wide; i++)
        for (int64_t j = 0; j < n_results; j++)
            put(p->to, p->dtype, place + i * o->n_results + j, *rounded++);
}

void cpu_slab_project(const struct cpu_engine *engine, const struct cpu_rows *x,
                      const struct cpu_operand *operand, void *to, enum dtype dtype, void *scratch)
{
    const struct projection p = {engine, x, operand, to, dtype, scratch};
    for (int64_t row = 0; row < x->n_rows; row += ROWS)
        for (int64_t first = 0, n; first < operand->n_results; first += n) {
            n = next_group(engine->slabs, operand->n_results, first);
            project_rows(&p, row, first, n);
        }
}

/* Tiles of rows: in float32 those that are added up so. */
static void gather_rows(const struct slab_kernels *k, const struct slab_tile *whole,
                        enum slab_precision precision, int64_t fold_rows)
{
    size_t most = precision == SLAB_SINGLE ? (size_t)fold_rows : TILE_ROWS;
    for (size_t row = 0; row < whole->n_rows; row += most) {
        struct slab_tile t = *whole;
        t.n_rows = min_u64(most, whole->n_rows - row);
        t.x = (const char *)whole->x + (int64_t)row * whole->line_bytes;
        t.v = (const char *)whole->v +
              row * whole->v_line * (precision == SLAB_SINGLE ? sizeof(float) : sizeof(double));
        t.is_added = whole->is_added || row > 0;
        k->gather[precision](&t);
    }
}

void cpu_slab_gather(const struct cpu_engine *engine, const struct cpu_rows *x,
                     const struct cpu_rows *v, const struct cpu_sums *sums, void *scratch)
{
    const struct slab_kernels *k = engine->slabs;
    enum slab_precision precision = sums->fold_rows > 0         ? SLAB_SINGLE
                                    : x->dtype == DTYPE_FLOAT64 ? SLAB_DOUBLE
                                                                : SLAB_WIDENED;
    bool is_widened = v->dtype == DTYPE_FLOAT32 && precision != SLAB_SINGLE;
    for (int64_t first = 0, n; first < v->n_columns; first += n) {
        int64_t begin = sums->skipped == CPU_SLAB_ALL ? 0 : max_i64(first - sums->skipped, 0);
        begin = begin / SLAB_LANES_OF * SLAB_LANES_OF;
        n = next_group(k, v->n_columns, first);
        if (begin >= x->n_columns)
            return; /* it is all above the diagonal, and so are the lines behind */
        const struct slab_tile t = {
            .n_rows = (size_t)x->n_rows,
            .n_columns = (size_t)(x->n_columns - begin),
            .n_results = (size_t)n,
            .x = at(x, 0, begin),
            .line_bytes = x->line_bytes,
            .is_added = sums->is_added,
            .v = is_widened ? scratch : at(v, 0, first),
            .v_line = is_widened ? (size_t)n : (size_t)v->line_bytes / dtype_size(v->dtype),
            .sums = sums->base + first * sums->line + begin,
            .sums_line = (size_t)sums->line};
        if (is_widened)
            k->widen(at(v, 0, first), v->line_bytes, t.n_rows, t.n_results, scratch);
        gather_rows(k, &t, precision, sums->fold_rows);
    }
}

void cpu_slab_add(const struct cpu_engine *engine, const struct cpu_rows *x, bool is_square,
                  double *sums, bool is_added)
{
    const struct slab_kernels *k = engine->slabs;
    const struct slab_tile t = {.n_rows = (size_t)x->n_rows,
                                .n_columns = (size_t)x->n_columns,
                                .x = x->base,
                                .line_bytes = x->line_bytes,
                                .is_added = is_added,
                                .sums = sums};
    (is_square ? k->add_squares : k->add)[x->dtype == DTYPE_FLOAT64](&t);
}

void cpu_slab_add_parts(const double *parts, int64_t part_apart, unsigned n_parts,
                        int64_t n_elements, void *to, enum dtype dtype)
{
    for (int64_t i = 0; i < n_elements; i++) {
        double sum = parts[i];
        for (unsigned k = 1; k < n_parts; k++)
            sum += parts[k * part_apart + i];
        put(to, dtype, i, sum);
    }
}
