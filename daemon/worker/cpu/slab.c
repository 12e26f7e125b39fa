/* What the CPU does with slabs beside what passes do with grains: the steps of struct program_slab.
 *
 *     LOAD          PROJECTs of the unit's part; by lanes, the first section behind them
 *     ROWS          its section
 *     ADD           GATHERs and COLUMNS of X, of the unit's columns; by lanes, behind the last
 * section FINISH        lanes' sums in pairs, then rounded to their dtypes
 *
 * In a section steps are done in their order, each for all rows of the slab. One more kind of step
 * is a function in `steps`.
 *
 * Called by the CPU engine's turns (turn.c).
 */
#include "daemon/worker/cpu/engine.h"
#include "daemon/worker/io/guard.h"
#include "daemon/worker/jobs/mapping.h"
#include "daemon/worker/turns/scheduler.h"
#include "daemon/worker/walks/walk_slab.h"
#include "kernels/cpu/slab/skinny.h"
#include "proto/util.h"

#include <errno.h>
#include <string.h>

struct call {
    struct tile *tile;
    struct thread_context *th;
    const struct plan_slab *plan;
    const struct slab_turn *turn;
    char *carry;
};

static enum dtype dtype_of(const struct call *c, unsigned value)
{
    return (enum dtype)c->plan->whole->values[value].dtype;
}

/* Rows of a value that the slab has. */
static struct cpu_rows rows_of(const struct call *c, unsigned value)
{
    struct cpu_rows rows = {.dtype = dtype_of(c, value),
                            .n_rows = c->turn->n_rows,
                            .n_columns = c->plan->whole->values[value].n_columns};
    rows.base = slab_place(c->plan, value, c->turn->lane, c->carry, &rows.line_bytes);
    return rows;
}

static const struct port *mapped_port(const struct tile *t)
{
    const struct pass *x = &t->job->program->passes[t->slab->whole->first_pass];
    return &t->job->ports[__builtin_ctzll(x->inputs_used)];
}

static struct cpu_rows rows_of_x(const struct call *c, const struct slab_box *box)
{
    struct cpu_rows rows = {.base = box->base,
                            .dtype = dtype_of(c, 0),
                            .line_bytes = box->line_bytes,
                            .n_rows = box->n_rows,
                            .n_columns = box->n_columns};
    if (!c->plan->is_mapped)
        return rows;
    const struct port_box at = {.start = {c->turn->first_row + box->first_row}};
    struct engine_view view;
    mapping_view(mapped_port(c->tile), &at, &view);
    rows.base = (const char *)view.base + box->first_column * (int64_t)dtype_size(rows.dtype);
    rows.line_bytes = view.strides[0];
    return rows;
}

/* From a column of X on. */
static struct cpu_operand operand_of(const struct call *c, const struct slab_step *step,
                                     int64_t first)
{
    struct cpu_operand operand = {.dtype = dtype_of(c, step->src[1]),
                                  .n_results = c->plan->whole->values[step->result].n_columns};
    char *base = slab_place(c->plan, step->src[1], c->turn->lane, c->carry, &operand.line_bytes);
    operand.base = base + first * (int64_t)dtype_size(operand.dtype);
    return operand;
}

/* A step's, from a column of X on. */
static struct cpu_sums sums_of(const struct call *c, const struct slab_step *step, int64_t first)
{
    int64_t line_bytes;
    char *base = slab_place(c->plan, step->result, c->turn->lane, c->carry, &line_bytes);
    return (struct cpu_sums){.base = (double *)base + first,
                             .line = line_bytes / (int64_t)sizeof(double),
                             .is_added = !c->turn->is_first,
                             .skipped = CPU_SLAB_ALL,
                             .fold_rows = step->is_single ? c->plan->fold_rows : 0};
}

/* Steps of rows ------------------------------------------------------------------------------ */

/* LOADs have multiplied: their parts of columns are added up. */
static int add_parts(const struct call *c, unsigned index)
{
    const struct slab_step *step = &c->plan->whole->steps[index];
    struct cpu_rows to = rows_of(c, step->result);
    const double *parts = slab_part(c->plan, index, c->turn->lane, 0, c->carry);
    if (parts == to.base)
        return 0;
    cpu_slab_add_parts(parts, (int64_t)(c->plan->part_bytes[index] / sizeof(double)),
                       slab_n_parts(c->plan), to.n_rows * to.n_columns, (void *)to.base, to.dtype);
    return 0;
}

static int multiply(const struct call *c, unsigned index)
{
    const struct slab_step *step = &c->plan->whole->steps[index];
    struct cpu_rows from = rows_of(c, step->src[0]), to = rows_of(c, step->result);
    const struct cpu_operand operand = operand_of(c, step, 0);
    cpu_slab_project(c->th->cpu, &from, &operand, (void *)to.base, to.dtype, c->th->scratch);
    return 0;
}

/* Of values of rows; those of X are ADDs'. */
static int gather(const struct call *c, unsigned index)
{
    const struct slab_step *step = &c->plan->whole->steps[index];
    if (step->src[0] == 0)
        return 0;
    struct cpu_rows left = rows_of(c, step->src[0]), right = rows_of(c, step->src[1]);
    const struct cpu_sums sums = sums_of(c, step, 0);
    cpu_slab_gather(c->th->cpu, &left, &right, &sums, c->th->scratch);
    return 0;
}

/* The same of sums. */
static int add_up(const struct call *c, unsigned index)
{
    const struct slab_step *step = &c->plan->whole->steps[index];
    if (step->src[0] == 0)
        return 0;
    const struct cpu_rows rows = rows_of(c, step->src[0]);
    const struct cpu_sums sums = sums_of(c, step, 0);
    cpu_slab_add(c->th->cpu, &rows, step->is_square, sums.base, sums.is_added);
    return 0;
}

/* Of a pass that needs nothing but what is in the carry, so many rows from one of the slab's on. */
static int run_rows(const struct call *c, unsigned index, int64_t first, int64_t n_rows,
                    const struct reduce_layout *layout, void *node)
{
    const struct wjob *job = c->tile->job;
    struct thread_context *th = c->th;
    unsigned pass = c->plan->whole->first_pass + c->plan->whole->steps[index].pass;
    const struct geometry *g = &job->plan.passes[pass].geometry;
    int64_t start[2] = {c->turn->first_row + first, 0}, count[2] = {n_rows, 1};
    if (g->ndim > 1)
        count[1] = g->shape[1];
    struct engine_box box = {
        .ndim = g->ndim, .count = count, .axis_order = g->axis_order, .start = start};
    walk_slab_views(c->tile, pass, start, th->outputs, th->results);
    int r = cpu_engine_run(th->cpu, job->program, pass, &box, th->inputs, th->outputs, th->results,
                           layout, node, &c->tile->measure.warnings, th->scratch);
    return r ? tile_engine_error(c->tile, r, NULL, &th->error) : 0;
}

static int run_pass(const struct call *c, unsigned index)
{
    return run_rows(c, index, 0, c->turn->n_rows, NULL, NULL);
}

static int reduce_along_rows(const struct call *c, unsigned index)
{
    struct cpu_rows to = rows_of(c, c->plan->whole->steps[index].result);
    struct reduce_layout layout;
    void *node = slab_node(c->plan, index, c->turn->lane, 0, c->carry);
    slab_layout(c->plan, index, to.n_rows, &layout);
    int r = run_rows(c, index, 0, to.n_rows, &layout, node);
    if (r == 0)
        memcpy((void *)to.base, reduce_values(&layout, node, 0),
               (size_t)to.n_rows * dtype_size(to.dtype));
    return r;
}

/* A node for as many rows as shapes say, taken in by that of all rows before. */
static int reduce(const struct call *c, unsigned index)
{
    const struct plan_slab *p = c->plan;
    struct reduce_layout layout;
    void *all = slab_node(p, index, c->turn->lane, 0, c->carry);
    int r = 0;
    if (p->whole->steps[index].result != SLAB_NONE)
        return reduce_along_rows(c, index);
    slab_layout(p, index, p->reduced_rows, &layout);
    for (int64_t i = 0; r == 0 && i < c->turn->n_rows; i += p->reduced_rows) {
        bool is_first = c->turn->is_first && i == 0;
        void *own = slab_node(p, index, c->turn->lane, is_first ? 0 : 1, c->carry);
        r = run_rows(c, index, i, min_i64(p->reduced_rows, c->turn->n_rows - i), &layout, own);
        if (r == 0 && !is_first)
            reduce_combine(&layout, all, own);
    }
    return r;
}

static int (*const steps[SLAB_N_STEP_KINDS])(const struct call *c, unsigned index) = {
    [SLAB_PROJECT] = add_parts, [SLAB_MULTIPLY] = multiply, [SLAB_GATHER] = gather,
    [SLAB_COLUMNS] = add_up,    [SLAB_ROWS] = run_pass,     [SLAB_REDUCE] = reduce,
};

/* The first step of a section but the first is its pass, whose grains were done. */
static int run_section(const struct call *c, unsigned section)
{
    unsigned first = section > 0 ? c->plan->section_steps[section] + 1u : 0;
    for (unsigned i = first; i < c->plan->section_steps[section + 1]; i++) {
        if (!sched_may_go_on(c->tile, c->th))
            return -ECANCELED;
        int r = steps[c->plan->whole->steps[i].kind](c, i);
        if (r)
            return r;
    }
    return 0;
}

/* Steps of X --------------------------------------------------------------------------------- */

static int project(const struct call *c)
{
    const struct plan_slab *p = c->plan;
    struct slab_box box;
    slab_load_box(p, c->turn, c->turn->unit, c->carry, &box);
    const struct cpu_rows x = rows_of_x(c, &box);
    for (unsigned i = 0; i < p->whole->n_steps; i++) {
        const struct slab_step *step = &p->whole->steps[i];
        if (step->kind != SLAB_PROJECT)
            continue;
        if (!sched_may_go_on(c->tile, c->th))
            return -ECANCELED;
        const struct cpu_operand operand = operand_of(c, step, box.first_column);
        double *to = slab_part(p, i, c->turn->lane, p->is_by_columns ? c->turn->unit : 0, c->carry);
        cpu_slab_project(c->th->cpu, &x, &operand, to + box.first_row * operand.n_results,
                         DTYPE_FLOAT64, c->th->scratch);
    }
    return 0;
}

/* x.T @ x: of the unit's columns what is on and below the diagonal. */
static void gather_square(const struct call *c, const struct slab_step *step,
                          const struct cpu_rows *x, const struct slab_box *box)
{
    struct cpu_rows v = *x;
    struct cpu_sums sums = sums_of(c, step, box->first_column);
    v.base = (const char *)x->base - box->first_column * (int64_t)dtype_size(x->dtype);
    v.n_columns = c->plan->n_columns;
    sums.skipped = box->first_column;
    cpu_slab_gather(c->th->cpu, x, &v, &sums, c->th->scratch);
}

static int add(const struct call *c)
{
    const struct plan_slab *p = c->plan;
    struct slab_box box;
    slab_add_box(p, c->turn, c->carry, &box);
    const struct cpu_rows x = rows_of_x(c, &box);
    for (unsigned i = 0; i < p->whole->n_steps; i++) {
        const struct slab_step *step = &p->whole->steps[i];
        if ((step->kind != SLAB_GATHER && step->kind != SLAB_COLUMNS) || step->src[0] != 0)
            continue;
        if (!sched_may_go_on(c->tile, c->th))
            return -ECANCELED;
        const struct cpu_sums sums = sums_of(c, step, box.first_column);
        if (step->kind == SLAB_COLUMNS) {
            cpu_slab_add(c->th->cpu, &x, step->is_square, sums.base, sums.is_added);
            continue;
        }
        if (step->is_symmetric) {
            gather_square(c, step, &x, &box);
            continue;
        }
        struct cpu_rows v = rows_of(c, step->src[1]);
        cpu_slab_gather(c->th->cpu, &x, &v, &sums, c->th->scratch);
    }
    return 0;
}

/* The end ------------------------------------------------------------------------------------ */

/* In pairs: lane i takes in lane i + half. */
static void add_lanes(const struct call *c, unsigned value)
{
    const struct plan_slab *p = c->plan;
    size_t n = p->lane_bytes[value] / sizeof(double);
    for (unsigned half = SLAB_LANES / 2; half > 0; half /= 2)
        for (unsigned i = 0; i < half && i + half < p->n_lanes; i++) {
            int64_t line_bytes;
            double *to = (double *)slab_place(p, value, i, c->carry, &line_bytes);
            const double *from =
                (const double *)slab_place(p, value, i + half, c->carry, &line_bytes);
            for (size_t k = 0; k < n; k++)
                to[k] += from[k];
        }
}

static void mirror(double *sums, int64_t line, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < i; k++)
            sums[i * line + k] = sums[k * line + i];
}

/* All columns of X, in pairs: the first takes in the one behind the half. */
static void join(double *sums, int64_t n)
{
    for (int64_t half; n > 1; n = half) {
        half = (n + 1) / 2;
        for (int64_t i = 0; i + half < n; i++)
            sums[i] += sums[i + half];
    }
}

/* In place: elements stay where they are. */
static void round_sums(double *sums, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float rounded = (float)sums[i];
        memcpy(&sums[i], &rounded, sizeof(rounded));
    }
}

/* Likewise; then it is a result. */
static void keep_reduced(const struct call *c, unsigned index)
{
    const struct plan_slab *p = c->plan;
    const struct wjob *job = c->tile->job;
    unsigned pass = p->whole->first_pass + p->whole->steps[index].pass;
    struct reduce_layout layout;
    slab_layout(p, index, p->reduced_rows, &layout);
    for (unsigned half = SLAB_LANES / 2; half > 0; half /= 2)
        for (unsigned i = 0; i < half && i + half < p->n_lanes; i++)
            reduce_combine(&layout, slab_node(p, index, i, 0, c->carry),
                           slab_node(p, index, i + half, 0, c->carry));
    plan_keep_results(&job->plan, job->program, pass, 0, INT64_MAX, &layout,
                      slab_node(p, index, 0, 0, c->carry), c->carry);
}

static int finish(const struct call *c)
{
    const struct program_slab *whole = c->plan->whole;
    for (unsigned i = 0; i < whole->n_steps; i++) {
        const struct slab_step *step = &whole->steps[i];
        if (step->kind == SLAB_REDUCE && step->result == SLAB_NONE)
            keep_reduced(c, i);
        if (step->kind != SLAB_GATHER && step->kind != SLAB_COLUMNS)
            continue;
        const struct slab_value *v = &whole->values[step->result];
        const struct cpu_sums sums = sums_of(c, step, 0);
        add_lanes(c, step->result);
        if (step->is_joined)
            join(sums.base, v->n_lines);
        if (step->is_symmetric)
            mirror(sums.base, sums.line, v->n_columns);
        if (v->dtype == DTYPE_FLOAT32)
            round_sums(sums.base, sums.line * v->n_columns);
    }
    return 0;
}

/* Turns -------------------------------------------------------------------------------------- */

int cpu_slab_fill(const struct tile *t, struct thread_context *th)
{
    const struct port *port = t->ports->inputs[0].port;
    struct engine_view view;
    if (t->slab->is_mapped)
        return mapping_fill(port, &th->input_boxes[0], th);
    slab_view(t->slab, &t->slab_turn, 0, th->start, t->job->carry, &view);
    return port->ops->fill_view(port, &th->input_boxes[0], &view, &th->io, &th->error);
}

static int run_turn(void *argument)
{
    const struct call *c = argument;
    const struct plan_slab *p = c->plan;
    const struct slab_turn *turn = c->turn;
    unsigned section = turn->section;
    int r = 0;
    switch (turn->kind) {
    case SLAB_TURN_LOAD:
        r = project(c);
        if (r == 0 && p->is_by_lanes)
            r = run_section(c, 0);
        break;
    case SLAB_TURN_ROWS: r = run_section(c, section); break;
    case SLAB_TURN_ADD: return add(c);
    case SLAB_TURN_FINISH: return finish(c);
    case SLAB_TURN_OPERAND:
    case SLAB_TURN_STORE: return 0;
    }
    return r == 0 && p->is_by_lanes && section + 1 == p->n_sections ? add(c) : r;
}

/* Of X in its mapping what a turn computes is no better than the file behind it. */
int cpu_slab_steps(struct tile *t, struct thread_context *th)
{
    struct call call = {t, th, t->slab, &t->slab_turn, t->job->carry};
    const void *address = NULL;
    if (!t->slab->is_mapped)
        return run_turn(&call);
    int r = guard_call(t->job->ranges, t->job->n_ranges, run_turn, &call, &address);
    if (r == -EFAULT)
        return tile_engine_error(t, r, address, &th->error);
    return r || t->slab_turn.kind != SLAB_TURN_FINISH ? r
                                                      : mapping_check(mapped_port(t), &th->error);
}
