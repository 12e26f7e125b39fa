/* Turns of a walk by slabs: their order, what each does and waits for.
 *
 *     | OPERANDs | slab 0: LOADs ROWS.. ADDs | slab 1 | ... | FINISH | STOREs |
 *                                              by lanes: slabs 0 to 15 together, then 16 to 31, ...
 *
 * By lanes each kind of a slab's turns has one for each lane: LOADs of all lanes, then the second
 * sections' ROWS of all, and so on; a turn waits for its lane's turn before. The last slabs may be
 * fewer than lanes: turns of the others are empty.
 *
 * By blocks a LOAD overwrites what an ADD of the slab before has read: that of the same columns, or
 * all of them; ROWS wait for all LOADs.
 *
 * Called by the worker under the scheduler's lock: a turn costs a few divisions.
 */
#include "kernels/plan/planner.h"
#include "proto/util.h"

/* Kinds of turns that a slab has, in order: LOADs; ROWS of each section; ADDs. */
static unsigned first_section(const struct plan_slab *p)
{
    return p->is_by_lanes ? 1 : 0; /* the first one is done behind the LOAD */
}

static unsigned rows_turns(const struct plan_slab *p)
{
    return p->is_by_lanes ? SLAB_LANES : 1;
}

static void set_slab(const struct plan_slab *p, uint64_t slab, struct slab_turn *t)
{
    t->slab = slab;
    t->is_empty = slab >= p->n_slabs;
    t->is_first = slab < SLAB_LANES && (p->is_by_lanes || slab == 0);
    t->first_row = (int64_t)slab * p->slab_rows;
    t->n_rows = min_i64(p->slab_rows, p->n_rows - t->first_row);
}

/* The grains of a box of the pass. */
static void set_grid(const struct plan_slab *p, const int64_t *start, const int64_t *count,
                     struct slab_turn *t)
{
    const struct geometry *g = &p->passes[t->pass].geometry;
    t->n_grains = 1;
    for (int i = 0; i < g->ndim; i++) {
        int64_t end = min_i64(start[i] + count[i], g->shape[i]);
        t->grid_start[i] = start[i] / g->grain_shape[i];
        t->grid_count[i] = divide_up_i64(end, g->grain_shape[i]) - t->grid_start[i];
        t->n_grains *= (uint64_t)t->grid_count[i];
    }
}

static void set_load(const struct plan_slab *p, struct slab_turn *t)
{
    const struct geometry *g = &p->passes[0].geometry;
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    int64_t rest = t->unit;

    for (int i = 0; i < g->ndim; i++) {
        start[i] = 0;
        count[i] = g->shape[i];
    }
    int row = p->whole->row_axis;
    start[row] = t->first_row;
    count[row] = t->n_rows;
    for (int i = p->cut_axis; p->is_by_columns && i >= 0; i--) {
        if (i == row)
            continue;
        count[i] = i == p->cut_axis ? p->cut_extent : 1;
        int64_t n = divide_up_i64(g->shape[i], count[i]);
        start[i] = rest % n * count[i];
        rest /= n;
    }
    if (!p->is_by_columns && !p->is_by_lanes) {
        start[row] += t->unit * p->load_rows;
        count[row] = min_i64(p->load_rows, t->n_rows - t->unit * p->load_rows);
        t->is_empty |= count[row] <= 0;
    }
    t->pass = 0;
    if (!t->is_empty)
        set_grid(p, start, count, t);
}

static void set_rows(const struct plan_slab *p, struct slab_turn *t)
{
    if (t->section == 0 || t->is_empty)
        return;
    const struct slab_step *step = &p->whole->steps[p->section_steps[t->section]];
    t->pass = step->pass;
    const struct geometry *g = &p->passes[t->pass].geometry;
    int64_t start[ARRAY_MAX_NDIM] = {t->first_row}, count[ARRAY_MAX_NDIM] = {t->n_rows};
    if (g->ndim > 1)
        count[1] = g->shape[1];
    set_grid(p, start, count, t);
}

static void set_in_slab(const struct plan_slab *p, uint64_t round, uint64_t index,
                        struct slab_turn *t)
{
    unsigned n_loads = p->is_by_lanes ? SLAB_LANES : p->n_loads, n_rows = rows_turns(p);
    unsigned n_sections = p->n_sections - first_section(p);
    t->kind = SLAB_TURN_LOAD;
    if (index >= n_loads + (uint64_t)n_sections * n_rows) {
        t->kind = SLAB_TURN_ADD;
        index -= n_loads + (uint64_t)n_sections * n_rows;
    } else if (index >= n_loads) {
        t->kind = SLAB_TURN_ROWS;
        t->section = first_section(p) + (unsigned)(index - n_loads) / n_rows;
        index = (index - n_loads) % n_rows;
    }
    t->lane = p->is_by_lanes ? (unsigned)index : 0;
    t->unit = p->is_by_lanes ? 0 : (unsigned)index;
    set_slab(p, p->is_by_lanes ? round * SLAB_LANES + index : round, t);
    if (t->kind == SLAB_TURN_LOAD)
        set_load(p, t);
    else if (t->kind == SLAB_TURN_ROWS)
        set_rows(p, t);
}

/* Of passes whose grains are done in their order: which pass, which grains. */
static bool set_run(const struct plan_slab *p, unsigned first, unsigned end, uint64_t index,
                    struct slab_turn *t)
{
    for (unsigned i = first; i < end; i++) {
        uint64_t n_grains = p->passes[i].geometry.n_grains;
        uint64_t n = (n_grains + p->turn_grains - 1) / p->turn_grains;
        if (index >= n) {
            index -= n;
            continue;
        }
        t->pass = i;
        t->first_grain = index * p->turn_grains;
        t->n_grains = min_u64(p->turn_grains, n_grains - t->first_grain);
        return true;
    }
    return false;
}

void slab_turn(const struct plan_slab *p, uint64_t index, struct slab_turn *ret_turn)
{
    uint64_t first = p->first_slab_turn, end = first + p->n_rounds * p->slab_turns;
    struct slab_turn *t = ret_turn;
    *t = (struct slab_turn){.kind = SLAB_TURN_OPERAND};
    if (index < first) {
        (void)set_run(p, 1, p->first_rows, index, t);
    } else if (index < end) {
        set_in_slab(p, (index - first) / p->slab_turns, (index - first) % p->slab_turns, t);
    } else if (index == end) {
        t->kind = SLAB_TURN_FINISH;
    } else {
        t->kind = SLAB_TURN_STORE;
        (void)set_run(p, p->first_result, p->whole->n_passes, index - end - 1, t);
    }
}

uint64_t slab_needs(const struct plan_slab *p, uint64_t index)
{
    uint64_t first = p->first_slab_turn, end = first + p->n_rounds * p->slab_turns;
    struct slab_turn t;

    if (index < first)
        return 0;
    if (index >= end)
        return index == end ? index : end + 1;
    slab_turn(p, index, &t);
    uint64_t begin = first + (index - first) / p->slab_turns * p->slab_turns;
    bool is_load = t.kind == SLAB_TURN_LOAD, is_first = begin == first;
    if (p->is_by_lanes && is_load)
        return is_first ? first : begin - SLAB_LANES + t.lane + 1;
    if (p->is_by_lanes)
        return index - SLAB_LANES + 1;
    if (is_load && (is_first || !p->adds_columns || p->is_whole || !p->is_by_columns))
        return begin;
    if (is_load)
        return begin - p->n_adds + t.unit + 1;
    if (t.kind == SLAB_TURN_ROWS)
        return index;
    return begin + p->slab_turns - p->n_adds;
}

uint64_t slab_grain(const struct plan_slab *p, const struct slab_turn *turn, uint64_t i)
{
    const struct geometry *g = &p->passes[turn->pass].geometry;
    uint64_t number = 0, weight = 1;

    if (turn->kind == SLAB_TURN_OPERAND || turn->kind == SLAB_TURN_STORE)
        return turn->first_grain + i;
    for (int k = g->ndim - 1; k >= 0; k--) {
        int axis = g->grid_order[k];
        uint64_t n = (uint64_t)turn->grid_count[axis];
        number += ((uint64_t)turn->grid_start[axis] + i % n) * weight;
        weight *= (uint64_t)g->grid[axis];
        i /= n;
    }
    return number;
}
