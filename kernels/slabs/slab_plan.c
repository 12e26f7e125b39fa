/* How large slabs, units and grains of a walk by slabs are, and its place in the carry.
 *
 * What decides on the order in which anything is added follows from shapes and dtypes alone: lanes
 * or blocks, by lanes the rows of a slab, the columns of a LOAD. All else may depend on more: by
 * blocks sums take in one row after the other, whichever slab has it.
 *
 * By blocks a slab is so large that reading operands and sums once for each slab costs little
 * beside reading the slab itself, which has been in a cache just before; where the pool has no room
 * for that, it has fewer rows.
 *
 * Where rows are in parts no cache holds a slab, and what is copied into it is written to memory,
 * to be read again. So where X lies row by row in a file that the system can keep in memory, it is
 * not read but mapped: then a slab takes no room, and has more rows. Smaller slabs are read:
 * copying costs no more than a mapping's pages.
 *
 * Called by plan/carry.c.
 */
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#define LANE_BYTES    (64 * 1024) /* of X */
#define LANE_MAX_ROW  (8 * 1024)  /* bytes: LANE_BYTES are ROW_UNIT of them */
#define LANE_MAX_SUMS (96 * 1024)
#define LANE_MAX_ROWS 1024
#define SLAB_BYTES    (1024 * 1024)      /* by blocks, at least */
#define LARGE_SLAB    (70 * 1024 * 1024) /* as large only where operands and sums are */
#define SLAB_MAX_ROWS 512
#define LEAST_SHARE   4 /* of half of operands and sums, which are read and written: a slab */
#define ROW_UNIT      8
#define MAX_WHOLE_ROW (512 * 1024) /* bytes, of which LOADs are whole rows */
#define LOAD_BYTES    (256 * 1024)
#define LOAD_ROWS     32 /* for which an operand larger than a cache is read once */
#define LOAD_MOST     (1024 * 1024)
#define WIDE_LOADS    4
#define LOAD_COLUMNS  4096 /* of a row in parts: reads are as long */
#define ADD_BYTES     (256 * 1024)
#define FOLD_ROWS     64 /* by blocks, at most: a power of two */
#define FOLD_BYTES    (2 * 1024 * 1024)
#define LANE_FOLD     256
#define TURN_GRAINS   4
#define MAPPED_ROWS   256
#define MAPPED_SHARE  4 /* of the memory, that a mapped file may have */

/* Of an operand or a sum. */
static int64_t value_bytes(const struct program_slab *slab, unsigned value)
{
    const struct slab_value *v = &slab->values[value];
    int64_t line = (int64_t)round_up_u64((uint64_t)v->n_lines * slab_line_item(v), 64);
    return mul_saturating_i64(line, v->n_columns);
}

static int64_t kind_bytes(const struct program_slab *slab, enum slab_value_kind kind)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < slab->n_values; i++)
        if (slab->values[i].kind == kind && __builtin_add_overflow(sum, value_bytes(slab, i), &sum))
            return INT64_MAX;
    return sum;
}

static bool is_of_columns(const struct slab_step *step)
{
    return (step->kind == SLAB_COLUMNS && step->src[0] == 0) ||
           (step->kind == SLAB_GATHER && (step->src[0] == 0 || step->src[1] == 0));
}

/* Whether a pass of rows needs no array of the job: then it is done between steps. */
static bool is_inside(const struct program *program, const struct program_slab *slab,
                      const struct slab_step *step)
{
    const struct pass *pass = &program->passes[slab->first_pass + step->pass];
    if (pass->inputs_used != 0)
        return false;
    for (unsigned i = 0; i < pass->n_stores; i++)
        if (program->stores[pass->first_store + i].output < program->n_outputs)
            return false;
    return true;
}

static void set_sections(const struct program *program, struct plan_slab *s)
{
    const struct program_slab *slab = s->whole;
    s->n_sections = 1;
    for (unsigned i = 0; i < slab->n_steps; i++) {
        const struct slab_step *step = &slab->steps[i];
        s->adds_columns |= is_of_columns(step);
        s->is_whole |= step->kind == SLAB_GATHER && step->src[0] == 0 && step->src[1] == 0;
        if (step->kind == SLAB_ROWS && !is_inside(program, slab, step))
            s->section_steps[s->n_sections++] = (uint8_t)i;
    }
    s->section_steps[s->n_sections] = (uint8_t)slab->n_steps;
}

static void set_passes(struct plan_slab *s)
{
    const struct program_slab *slab = s->whole;
    s->first_rows = s->first_result = slab->n_passes;
    for (unsigned i = slab->n_passes; i-- > 0;) {
        s->first_result = slab->pass_kinds[i] == SLAB_PASS_RESULT ? i : s->first_result;
        s->first_rows = slab->pass_kinds[i] >= SLAB_PASS_ROWS ? i : s->first_rows;
    }
}

/* ---- the carry ---- */

static uint64_t take(uint64_t *at, int64_t n_bytes, uint64_t n)
{
    uint64_t own = *at, total;
    if (__builtin_mul_overflow(round_up_u64((uint64_t)n_bytes, 64), n, &total) ||
        __builtin_add_overflow(*at, total, at) || *at > INT64_MAX)
        *at = (uint64_t)INT64_MAX - 64;
    return own;
}

static void lay_out(struct plan_slab *s)
{
    const struct program_slab *slab = s->whole;
    uint64_t at = 0;
    for (unsigned i = 0; i < slab->n_values; i++) {
        const struct slab_value *v = &slab->values[i];
        int64_t item = (int64_t)dtype_size((enum dtype)v->dtype);
        int64_t n_bytes = value_bytes(slab, i);
        if (v->kind == SLAB_X && s->is_mapped)
            n_bytes = 0;
        else if (v->kind == SLAB_X)
            n_bytes = (s->is_by_columns ? s->n_loads * s->block_columns : s->n_columns) *
                      s->slab_rows * item;
        else if (v->kind == SLAB_OF_ROWS)
            n_bytes = v->n_columns * s->slab_rows * item;
        bool is_one = v->kind == SLAB_OPERAND;
        s->lane_bytes[i] = is_one ? 0 : round_up_u64((uint64_t)n_bytes, 64);
        s->offsets[i] = take(&at, n_bytes, is_one ? 1 : s->n_lanes);
    }
    for (unsigned i = 0; i < slab->n_steps; i++) {
        struct reduce_layout layout;
        if (slab->steps[i].kind == SLAB_REDUCE) {
            slab_layout(s, i, s->slab_rows, &layout);
            s->part_bytes[i] = layout.n_bytes;
            s->part_lane_bytes[i] = 2 * layout.n_bytes;
            s->part_offsets[i] = take(&at, (int64_t)s->part_lane_bytes[i], s->n_lanes);
        }
        if (slab->steps[i].kind != SLAB_PROJECT)
            continue;
        uint8_t result = slab->steps[i].result;
        int64_t n_bytes = slab->values[result].n_columns * s->slab_rows * 8;
        s->part_bytes[i] = round_up_u64((uint64_t)n_bytes, 64);
        if (slab_n_parts(s) == 1 && slab->values[result].dtype == DTYPE_FLOAT64) {
            s->part_lane_bytes[i] = s->lane_bytes[result]; /* it is the value */
            s->part_offsets[i] = s->offsets[result];
            continue;
        }
        s->part_lane_bytes[i] = s->part_bytes[i] * slab_n_parts(s);
        s->part_offsets[i] = take(&at, (int64_t)s->part_lane_bytes[i], s->n_lanes);
    }
    s->scratch_bytes = at;
}

/* ---- units ---- */

/* Units of columns: `extent` along the axis that is cut, all of those behind it. */
static void cut_columns(struct plan_slab *s, const struct pass *x)
{
    int64_t most = max_i64(LOAD_COLUMNS, divide_up_i64(s->n_columns, SLAB_MAX_UNITS / 2));
    for (;; most *= 2) {
        int64_t behind = 1, n_units = 1;
        int axis = x->ndim - 1;
        s->cut_axis = -1;
        for (; axis >= 0; axis--) {
            if (axis == s->whole->row_axis)
                continue;
            if (s->cut_axis >= 0) {
                n_units = mul_saturating_i64(n_units, x->shape[axis]);
                continue;
            }
            if (behind * x->shape[axis] <= most && axis > 0)
                behind *= x->shape[axis];
            else
                s->cut_axis = axis;
            if (s->cut_axis < 0)
                continue;
            s->cut_columns = behind;
            s->cut_extent = min_i64(max_i64(most / behind, 1), x->shape[axis]);
            n_units = divide_up_i64(x->shape[axis], s->cut_extent);
        }
        if (s->cut_axis < 0) { /* rows are the first axis, all others are one unit */
            s->cut_axis = s->whole->row_axis == 0 ? 1 : 0;
            s->cut_columns = s->n_columns / x->shape[s->cut_axis];
            s->cut_extent = x->shape[s->cut_axis];
            n_units = 1;
        }
        /* Rows are not a power of two of bytes apart. */
        s->block_columns = s->cut_extent * s->cut_columns / ROW_UNIT * ROW_UNIT + 2 * ROW_UNIT;
        s->n_loads = (unsigned)min_i64(n_units, INT32_MAX);
        if (n_units <= SLAB_MAX_UNITS)
            return;
    }
}

/* Of which rows are added up in float32: slabs of fewer would have other ones. A row is at most 128
 * KiB then, but for what is wider than X, of which several values may be there. */
static int64_t fold_rows(const struct plan_slab *s, int64_t row_bytes)
{
    int64_t n = FOLD_ROWS;
    bool is_single = false;
    for (unsigned i = 0; i < s->whole->n_steps; i++)
        is_single |= s->whole->steps[i].is_single;
    while (n > 1 && n * row_bytes > FOLD_BYTES)
        n /= 2;
    return is_single ? n : 0;
}

/* Slabs are whole LOADs, and whole folds. */
static int64_t choose_rows(struct plan_slab *s, int64_t slab_rows)
{
    int64_t unit = s->load_rows, n = s->fold_rows;
    if (s->is_by_columns && slab_rows < unit)
        return slab_rows;
    if (n > 0 && unit >= n)
        unit = s->load_rows = unit / n * n;
    while (n > s->load_rows)
        n /= 2;
    if (s->fold_rows > unit) {
        s->load_rows = n;
        unit = s->fold_rows;
    }
    return max_i64(slab_rows / unit, 1) * unit;
}

/* Units of a slab of so many rows. */
static void cut_blocks(struct plan_slab *s, const struct pass *x, int64_t row_bytes,
                       int64_t widest_bytes, int64_t slab_rows)
{
    int64_t item = row_bytes / s->n_columns;
    s->is_by_columns = row_bytes > MAX_WHOLE_ROW && !s->is_whole;
    s->reduced_rows = s->is_by_columns ? 1 : ROW_UNIT;
    /* LOADs' rows begin at multiples of theirs. */
    s->load_rows = min_i64(max_i64(LOAD_BYTES / widest_bytes, LOAD_ROWS), LOAD_MOST / row_bytes);
    s->load_rows = max_i64(min_i64(s->load_rows, slab_rows) / ROW_UNIT * ROW_UNIT, ROW_UNIT);
    s->load_rows = min_i64(s->load_rows, SLAB_MAX_ROWS);
    s->slab_rows = min_i64(choose_rows(s, slab_rows), s->n_rows);
    s->n_slabs = (uint64_t)divide_up_i64(s->n_rows, s->slab_rows);
    s->n_rounds = s->n_slabs;
    s->n_lanes = 1;
    if (s->is_by_columns) {
        cut_columns(s, x);
        s->n_adds = s->n_loads;
    } else {
        s->n_loads = (unsigned)divide_up_i64(s->slab_rows, s->load_rows);
        s->add_columns = max_i64(ADD_BYTES / (s->slab_rows * item), 64);
        s->add_columns = max_i64(s->add_columns, divide_up_i64(s->n_columns, SLAB_MAX_UNITS));
        s->add_columns = (s->add_columns + ROW_UNIT - 1) / ROW_UNIT * ROW_UNIT;
        s->n_adds = (unsigned)divide_up_i64(s->n_columns, s->add_columns);
    }
    s->n_adds = s->adds_columns ? s->n_adds : 0;
    s->slab_turns = s->n_loads + s->n_sections + s->n_adds;
}

/* Where there is less room a slab has fewer rows, as long as reading operands and sums for each one
 * costs at most LEAST_SHARE times as much as what it has itself, or it is one row. Where what is
 * made of rows is wider than X, it has some LOADs all the same. */
static void choose_blocks(struct plan_slab *s, const struct pass *x, int64_t row_bytes,
                          int64_t widest_bytes, uint64_t room_bytes)
{
    int64_t small_bytes =
        kind_bytes(s->whole, SLAB_OPERAND) / 2 + kind_bytes(s->whole, SLAB_SUM) / 2;
    int64_t wanted = min_i64(mul_saturating_i64(small_bytes, 3), max_i64(LARGE_SLAB, small_bytes));
    int64_t n_rows = max_i64(max_i64(wanted, SLAB_BYTES) / widest_bytes, 1);
    int64_t least = max_i64(small_bytes / LEAST_SHARE / widest_bytes, 1);
    if (widest_bytes > row_bytes)
        n_rows = max_i64(n_rows, WIDE_LOADS * LOAD_ROWS);
    n_rows = min_i64(n_rows, SLAB_MAX_ROWS);
    s->fold_rows = fold_rows(s, widest_bytes > row_bytes ? WIDE_LOADS * widest_bytes : row_bytes);
    least = max_i64(least, s->fold_rows);
    for (;;) {
        cut_blocks(s, x, row_bytes, widest_bytes, n_rows);
        lay_out(s);
        if (s->scratch_bytes <= room_bytes || n_rows <= least)
            return;
        n_rows = max_i64(min_i64(n_rows, s->slab_rows) / 2, least);
    }
}

/* Of X, or of the widest value of rows as it is multiplied: what a slab has of either stays in a
 * cache, and a small pool has room for all lanes. */
static int64_t widest_row(const struct program_slab *slab, int64_t row_bytes)
{
    for (unsigned i = 0; i < slab->n_values; i++)
        if (slab->values[i].kind == SLAB_OF_ROWS)
            row_bytes = max_i64(
                row_bytes, mul_saturating_i64(slab->values[i].n_columns, (int64_t)sizeof(double)));
    return row_bytes;
}

static void choose_lanes(struct plan_slab *s, int64_t row_bytes)
{
    s->slab_rows = min_i64(LANE_BYTES / row_bytes / ROW_UNIT * ROW_UNIT, LANE_MAX_ROWS);
    s->slab_rows = s->reduced_rows = min_i64(s->slab_rows, s->n_rows);
    s->fold_rows = LANE_FOLD;
    s->n_slabs = (uint64_t)divide_up_i64(s->n_rows, s->slab_rows);
    s->n_rounds = (s->n_slabs + SLAB_LANES - 1) / SLAB_LANES;
    s->n_lanes = (unsigned)min_u64(s->n_slabs, SLAB_LANES);
    s->n_loads = 1;
    s->slab_turns = (uint64_t)SLAB_LANES * s->n_sections;
    lay_out(s);
}

/* ---- X in its file's mapping ---- */

/* All columns side by side, rows behind each other. */
static bool can_be_mapped(const struct planner *p, const struct plan_slab *s, const struct pass *x)
{
    const struct array *file = planner_direct_array(p, x, s->whole->row_axis);
    if (!s->is_by_columns || file == NULL || s->whole->row_axis != 0)
        return false;
    int64_t item = (int64_t)dtype_size(file->dtype), stride = item;
    for (int i = x->ndim - 1; i > 0; i--) {
        if (file->strides[i] != stride)
            return false;
        stride *= x->shape[i];
    }
    return file->strides[0] >= stride && file->strides[0] % item == 0 &&
           file->at.file.offset_bytes % (uint64_t)item == 0 &&
           (uint64_t)mul_saturating_i64(file->strides[0], x->shape[0]) <=
               p->limits->memory_bytes / MAPPED_SHARE;
}

/* The room that a slab in memory would need is kept: where the file cannot be mapped after all, the
 * job goes on with that. */
static void choose_mapped(const struct planner *p, struct plan_slab *s, const struct pass *x,
                          int64_t row_bytes, int64_t widest_bytes)
{
    if (!p->limits->engine->has_swaths || !can_be_mapped(p, s, x))
        return;
    for (int64_t n_rows = max_i64(MAPPED_ROWS, s->slab_rows); n_rows >= s->slab_rows; n_rows /= 2) {
        struct plan_slab mapped = *s;
        mapped.is_mapped = true;
        cut_blocks(&mapped, x, row_bytes, widest_bytes, n_rows);
        lay_out(&mapped);
        if (mapped.scratch_bytes > s->scratch_bytes)
            continue;
        mapped.scratch_bytes = s->scratch_bytes;
        *s = mapped;
        return;
    }
}

/* ---- grains ---- */

static void set_fences(const struct plan_slab *s, unsigned pass, const struct pass *space,
                       int64_t *ret_fences)
{
    for (int i = 0; i < space->ndim; i++) {
        bool is_x = pass == 0 && s->is_by_columns && i != s->whole->row_axis;
        ret_fences[i] = INT64_MAX;
        if (is_x && i <= s->cut_axis)
            ret_fences[i] = i == s->cut_axis ? s->cut_extent : 1;
    }
    enum slab_pass_kind kind = (enum slab_pass_kind)s->whole->pass_kinds[pass];
    if (kind == SLAB_PASS_X)
        ret_fences[s->whole->row_axis] =
            s->is_by_lanes || s->is_by_columns ? s->slab_rows : s->load_rows;
    else if (kind == SLAB_PASS_ROWS)
        ret_fences[0] = s->slab_rows;
    for (int i = 0; i < space->ndim; i++)
        if (ret_fences[i] >= space->shape[i])
            ret_fences[i] = INT64_MAX;
}

static uint64_t grains_in(const struct plan_slab *s, unsigned pass)
{
    const struct geometry *g = &s->passes[pass].geometry;
    int64_t fences[ARRAY_MAX_NDIM];
    uint64_t n = 1;
    const struct pass space = {.ndim = g->ndim};
    struct pass shaped = space;
    for (int i = 0; i < g->ndim; i++)
        shaped.shape[i] = g->shape[i];
    set_fences(s, pass, &shaped, fences);
    for (int i = 0; i < g->ndim; i++)
        n *= (uint64_t)divide_up_i64(min_i64(fences[i], g->shape[i]), g->grain_shape[i]);
    return n;
}

static int cut_passes(struct planner *p, struct plan_slab *s)
{
    s->turn_grains = TURN_GRAINS;
    s->most_grains = s->turn_grains;
    s->first_slab_turn = 0;
    s->n_turns = s->n_rounds * s->slab_turns + 1;
    for (unsigned i = 0; i < s->whole->n_passes; i++) {
        const struct pass *space = &p->program->passes[s->whole->first_pass + i];
        enum slab_pass_kind kind = (enum slab_pass_kind)s->whole->pass_kinds[i];
        int64_t fences[ARRAY_MAX_NDIM];
        set_fences(s, i, space, fences);
        int r = planner_cut_fenced(p, s->whole->first_pass + i, fences);
        s->passes[i].geometry.reduced_axes = space->reduced_axes;
        p->traffic[s->whole->first_pass + i] = (struct planned_traffic){.memory = 0};
        if (!r && s->passes[i].geometry.n_grains > 0)
            r = planner_count_bytes(p, s->whole->first_pass + i, true);
        if (r)
            return r;
        uint64_t n = s->passes[i].geometry.n_grains;
        uint64_t n_turns = (n + s->turn_grains - 1) / s->turn_grains;
        if (kind == SLAB_PASS_OPERAND)
            s->first_slab_turn += n_turns;
        if (kind == SLAB_PASS_OPERAND || kind == SLAB_PASS_RESULT)
            s->n_turns += n_turns;
        else
            s->most_grains = max_u64(s->most_grains, grains_in(s, i));
        s->is_direct |= i == 0 && planner_is_direct(p, space, s->whole->row_axis);
    }
    if (s->is_direct)
        s->passes[0].needs_slot = false;
    return 0;
}

static double n_operations(const struct program_slab *slab)
{
    double n = 0;
    for (unsigned i = 0; i < slab->n_steps; i++) {
        const struct slab_step *step = &slab->steps[i];
        if (step->kind == SLAB_ROWS || step->kind == SLAB_REDUCE)
            continue;
        const struct slab_value *result = &slab->values[step->result];
        bool is_sum = step->kind == SLAB_GATHER || step->kind == SLAB_COLUMNS;
        double lines = (double)(is_sum ? result->n_lines : slab->values[step->src[1]].n_lines);
        n += 2.0 * (double)slab->n_rows * lines * (double)result->n_columns /
             (step->is_symmetric ? 2 : 1) / (step->is_single ? 2 : 1);
    }
    return n;
}

int planner_cut_slab(struct planner *p, unsigned index)
{
    struct plan_slab *s = &p->plan->slabs[index];
    const struct program_slab *slab = &p->program->slabs[index];
    const struct pass *x = &p->program->passes[slab->first_pass];
    int64_t row_bytes = slab->n_columns * (int64_t)dtype_size((enum dtype)slab->values[0].dtype);

    *s = (struct plan_slab){.program = p->program,
                            .whole = slab,
                            .passes = &p->plan->passes[slab->first_pass],
                            .n_rows = slab->n_rows,
                            .n_columns = slab->n_columns,
                            .n_operations = n_operations(slab)};
    set_sections(p->program, s);
    set_passes(s);
    int64_t widest_bytes = widest_row(slab, row_bytes);
    s->is_by_lanes = widest_bytes <= LANE_MAX_ROW && kind_bytes(slab, SLAB_SUM) <= LANE_MAX_SUMS;
    if (s->is_by_lanes) {
        choose_lanes(s, widest_bytes);
    } else {
        choose_blocks(s, x, row_bytes, widest_bytes, p->room.product_bytes);
        choose_mapped(p, s, x, row_bytes, widest_bytes);
    }
    int r = cut_passes(p, s);
    if (!r && s->n_turns > INT64_MAX / max_u64(s->most_grains, 1))
        r = error_set(p->error, GAD_LIMIT_EXCEEDED, "shape", "the job would have too many turns");
    return r;
}
