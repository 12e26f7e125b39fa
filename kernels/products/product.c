/* The turns of a matrix product: which they are.
 *
 *     redone tile   | APPLY ... | MARK |                         (only where a journal says so)
 *     the first     | LOAD ...  |
 *     a tile        | panel | panel | ... |  among them STOREs  (| MARK | APPLY ... | MARK |)
 *     a panel       | MULTIPLY ... | LOAD ... of the next panel | MULTIPLY ... |  step by step
 *     the end       | STORE ... | of the last tile
 *
 * Where the STOREs stand is product_order.c's, what turns wait for is product_needs.c's; the
 * numbers of turns are the same for all tiles.
 *
 * Called by the worker for every turn. Pure code.
 */
#include "kernels/plan/planner.h"
#include "kernels/products/product_order.h"
#include "proto/util.h"

#include <assert.h>
#include <math.h>

uint64_t planner_matrix_tiles(const struct plan_product *p)
{
    return p->is_symmetric ? p->n_row_tiles * (p->n_row_tiles + 1) / 2
                           : p->n_row_tiles * p->n_column_tiles;
}

bool planner_count_turns(struct plan_product *p)
{
    uint64_t n_tiles = p->n_tiles - p->first_tile;
    struct product_lengths n = product_lengths_of(p);

    if (__builtin_mul_overflow(n.tile, n_tiles, &p->n_turns) || p->n_turns > INT64_MAX)
        return false;
    p->n_turns += n.redo + (n_tiles > 0 ? n.load + p->n_late_stores : 0);
    return p->n_turns <= INT64_MAX;
}

void product_resume(struct plan_product *p, uint64_t first_tile, bool is_redone)
{
    assert(first_tile <= p->n_tiles && (first_tile > 0 || !is_redone));
    p->first_tile = first_tile;
    p->is_redone = is_redone;
    bool fits = planner_count_turns(p);
    assert(fits); /* no more than before, or one tile's less */
    (void)fits;
}

/* Grains ------------------------------------------------------------------------------------- */

/* Those of a panel, or of a tile: a box of the pass's grid. */
struct grain_box {
    int64_t first[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    uint64_t n;
};

struct tile_place {
    uint64_t batch, matrix, row, column; /* of the outer batch axes together, of tiles */
};

/* Of tiles at and below the diagonal, row after row, the row. */
static uint64_t row_of_triangle(uint64_t tile)
{
    uint64_t row = (uint64_t)((sqrt(8.0 * (double)tile + 1) - 1) / 2);

    while (row > 0 && row * (row + 1) / 2 > tile)
        row--;
    while ((row + 1) * (row + 2) / 2 <= tile)
        row++;
    return row;
}

static struct tile_place place_of(const struct plan_product *p, uint64_t tile)
{
    uint64_t n_of_matrix = planner_matrix_tiles(p), own = tile % n_of_matrix;
    struct tile_place at = {.row = own / p->n_column_tiles, .column = own % p->n_column_tiles};

    if (p->is_symmetric) {
        at.row = row_of_triangle(own);
        at.column = own - at.row * (at.row + 1) / 2;
    }
    tile /= n_of_matrix;
    at.matrix = tile % p->n_matrix_tiles;
    at.batch = tile / p->n_matrix_tiles;
    return at;
}

static void set_part(const struct geometry *g, int axis, uint64_t part, int64_t extent,
                     struct grain_box *box)
{
    int64_t start = (int64_t)part * extent, end = g->shape[axis];

    if (extent < end - start)
        end = start + extent;
    box->first[axis] = start / g->grain_shape[axis];
    box->count[axis] = (end - 1) / g->grain_shape[axis] - box->first[axis] + 1;
}

/* is_mirrored: those of the tile's place on the other side of the diagonal; none without one. */
static void grains_of(const struct plan_product *p, const struct product_turn *turn,
                      bool is_mirrored, struct grain_box *box)
{
    const struct product_axes *axes = &p->axes[turn->pass];
    const struct geometry *g = &p->passes[turn->pass].geometry;
    struct tile_place at = place_of(p, turn->tile);
    const int n_batch = p->axes[PRODUCT_RESULT].n_batch;

    box->n = 0;
    if (g->n_grains == 0 ||
        (is_mirrored && (!p->is_symmetric || turn->pass != PRODUCT_RESULT || at.row == at.column)))
        return;
    if (is_mirrored)
        at = (struct tile_place){at.batch, at.matrix, at.column, at.row};
    for (int i = n_batch - 1; i >= 0; i--) {
        int own = i - (n_batch - axes->n_batch);
        uint64_t length = (uint64_t)p->passes[PRODUCT_RESULT].geometry.shape[i], part = 0;
        if (i == p->cut_axis)
            part = at.matrix;
        if (i < p->cut_axis) {
            part = at.batch % length;
            at.batch /= length;
        }
        if (own >= 0)
            set_part(g, own, g->shape[own] == 1 ? 0 : part, product_tile_extent(p, i), box);
    }
    if (axes->row >= 0)
        set_part(g, axes->row, at.row, p->tile_rows, box);
    if (axes->column >= 0)
        set_part(g, axes->column, at.column, p->tile_columns, box);
    if (axes->depth >= 0)
        set_part(g, axes->depth, turn->panel_index, p->panel_depth, box);
    box->n = 1;
    for (int i = 0; i < g->ndim; i++)
        box->n *= (uint64_t)box->count[i];
}

uint64_t product_grain(const struct plan_product *p, const struct product_turn *turn, uint64_t i)
{
    const struct geometry *g = &p->passes[turn->pass].geometry;
    struct grain_box box;
    uint64_t grain = 0, scale = 1;

    assert(i < turn->n_grains);
    i += turn->first_cell;
    grains_of(p, turn, false, &box);
    if (i >= box.n) {
        i -= box.n;
        grains_of(p, turn, true, &box);
    }
    for (int k = g->ndim - 1; k >= 0; k--) {
        int axis = g->grid_order[k];
        uint64_t own = i % (uint64_t)box.count[axis];
        i /= (uint64_t)box.count[axis];
        grain += ((uint64_t)box.first[axis] + own) * scale;
        scale *= (uint64_t)g->grid[axis];
    }
    return grain;
}

/* The n-th part of a panel's or tile's grains. */
static void take_grains(const struct plan_product *p, unsigned n, unsigned most,
                        struct product_turn *turn)
{
    struct grain_box box, mirrored;

    grains_of(p, turn, false, &box);
    grains_of(p, turn, true, &mirrored);
    uint64_t n_all = box.n + mirrored.n;
    turn->first_cell = (uint64_t)n * most;
    turn->n_grains = n_all > turn->first_cell ? min_u64(n_all - turn->first_cell, most) : 0;
    turn->is_empty = turn->n_grains == 0;
}

/* Of STOREs that take lines of grains, or parts of one, the n-th. */
static void take_lines(const struct plan_product *p, uint64_t n, struct product_turn *turn)
{
    const struct product_axes *axes = &p->axes[PRODUCT_RESULT];
    struct grain_box box;

    grains_of(p, turn, false, &box);
    uint64_t n_lines = (uint64_t)box.count[p->is_by_columns ? axes->column : axes->row];
    uint64_t in_line = box.n / n_lines, line = n / p->store_parts * p->store_lines;
    uint64_t first = n % p->store_parts * p->store_grains;

    turn->is_empty = line >= n_lines || first >= in_line;
    if (turn->is_empty)
        return;
    turn->first_cell = line * in_line + first;
    turn->n_grains = p->store_parts > 1 ? min_u64(in_line - first, p->store_grains)
                                        : min_u64(n_lines - line, p->store_lines) * in_line;
}

/* Turns -------------------------------------------------------------------------------------- */

/* Whether a tile's panel, of the operand that is kept, is there since an earlier tile. */
static bool is_there(const struct plan_product *p, uint64_t tile, uint64_t panel)
{
    return panel < p->n_kept && tile > p->first_tile && tile % p->n_sharing > 0;
}

/* panel: numbered through all tiles. */
static void set_panel(const struct plan_product *p, uint64_t panel, struct product_turn *turn)
{
    turn->tile = panel / p->n_panels;
    turn->panel_index = panel % p->n_panels;
    turn->buffer[0] = turn->buffer[1] = panel % 2;
    if (p->n_kept > 0 && p->n_panels == 1)
        turn->buffer[p->kept_pass] = turn->tile / p->n_sharing % 2;
}

static void set_load(const struct plan_product *p, uint64_t panel, uint64_t n,
                     struct product_turn *turn)
{
    bool is_left = n < p->n_left_loads;

    turn->step = PRODUCT_LOAD;
    turn->pass = is_left ? PRODUCT_LEFT : PRODUCT_RIGHT;
    set_panel(p, panel, turn);
    turn->is_empty = turn->tile >= p->n_tiles ||
                     (turn->pass == p->kept_pass && is_there(p, turn->tile, turn->panel_index));
    if (!turn->is_empty)
        take_grains(p, (unsigned)(is_left ? n : n - p->n_left_loads), p->load_grains, turn);
}

/* Grains along the depth follow each other first, or there is one. */
static bool has_rows_in_order(const struct plan_product *p, const struct grain_box *box)
{
    const struct product_axes *axes = &p->axes[PRODUCT_LEFT];
    const struct geometry *g = &p->passes[PRODUCT_LEFT].geometry;

    return axes->n_batch == 0 && axes->row >= 0 &&
           (box->count[axes->depth] == 1 || g->grid_order[g->ndim - 1] == axes->depth);
}

int64_t product_loaded_rows(const struct plan_product *p, uint64_t panel, uint64_t n)
{
    const struct geometry *g = &p->passes[PRODUCT_LEFT].geometry;
    struct product_turn turn;
    struct grain_box box;

    set_load(p, panel, n, &turn);
    if (turn.pass != PRODUCT_LEFT || turn.is_empty)
        return 0;
    grains_of(p, &turn, false, &box);
    if (!has_rows_in_order(p, &box))
        return 0;
    uint64_t in_row = (uint64_t)box.count[p->axes[PRODUCT_LEFT].depth];
    uint64_t end = (turn.first_cell + turn.n_grains + in_row - 1) / in_row;
    return (int64_t)end * g->grain_shape[p->axes[PRODUCT_LEFT].row];
}

/* The blocks of a tile along one axis of C: whole ones, which go several at a time, and perhaps one
 * that is cut by the end of C, which goes alone. */
struct tile_blocks {
    int64_t block, join; /* elements */
    int64_t whole, rest; /* elements of whole blocks; of the cut one */
};

static struct tile_blocks blocks_along(int64_t length, uint64_t part, int64_t tile, int64_t block,
                                       int64_t join)
{
    int64_t n = min_i64(length - (int64_t)part * tile, tile);

    return (struct tile_blocks){
        .block = block, .join = join, .whole = n - n % block, .rest = n % block};
}

/* Matrices go block_matrices at a time, and begin anew with each place along the cut axis, so that
 * the same ones go together in tiles of all sizes: a device's library may add in another order
 * where it multiplies another number. */
struct groups {
    int64_t of_place, n_of_place; /* matrices; groups of them */
    int64_t n;                    /* of a tile */
};

static struct groups groups_of(const struct plan_product *p)
{
    int64_t of_place = p->block_matrices > p->n_inner ? p->block_matrices : p->n_inner;
    int64_t n_of_place = divide_up_i64(of_place, p->block_matrices);

    return (struct groups){of_place, n_of_place,
                           divide_up_i64(p->tile_matrices, of_place) * n_of_place};
}

unsigned planner_count_multiplies(const struct plan_product *p)
{
    struct product_lines lines;

    product_lines_of(p, &lines);
    int64_t n_groups = groups_of(p).n;
    uint64_t n = (uint64_t)mul_saturating_i64((int64_t)lines.n_multiplies, n_groups);
    return n < UINT32_MAX / 4 ? (unsigned)n : UINT32_MAX;
}

/* A part [first, first + extent) of the elements below `end`; none if it begins there. */
static void set_extent(int64_t first, int64_t extent, int64_t end, int64_t *ret_first,
                       int64_t *ret_n)
{
    *ret_first = first;
    *ret_n = first < end ? min_i64(extent, end - first) : 0;
}

/* A block, or several: from the tile's beginning. */
struct span {
    int64_t first, n;
};

static struct span part_of(int64_t first, int64_t extent, int64_t end)
{
    struct span span;

    set_extent(first, extent, end, &span.first, &span.n);
    return span;
}

/* Of one matrix of a tile, MULTIPLY n. In a line: whole blocks, then those at its end that are cut,
 * one by one; of the line that is cut, all blocks one by one. `along`: from line to line. */
static void set_block(const struct product_lines *lines, const struct tile_blocks *along,
                      const struct tile_blocks *other, uint64_t n, struct span *ret_along,
                      struct span *ret_other)
{
    struct product_line_place at = product_line_place(lines, n);
    int64_t line = (int64_t)at.line, within = (int64_t)at.within;
    int64_t single = within - (int64_t)lines->across;

    if (at.is_cut) {
        *ret_along = part_of(along->whole, along->rest, along->whole + along->rest);
        *ret_other = part_of(within * other->block, other->block, other->whole + other->rest);
    } else if (single < 0) {
        *ret_along = part_of(line * along->join, along->join, along->whole);
        *ret_other = part_of(within * other->join, other->join, other->whole);
    } else {
        *ret_along =
            part_of(line * along->join + single * along->block, along->block, along->whole);
        *ret_other = part_of(other->whole, other->rest, other->whole + other->rest);
    }
}

static void set_multiply(const struct plan_product *p, uint64_t tile, uint64_t step_index,
                         uint64_t n, struct product_turn *turn)
{
    struct tile_place at = place_of(p, tile);
    struct tile_blocks rows =
        blocks_along(p->n_rows, at.row, p->tile_rows, p->block_rows, p->join_rows);
    struct tile_blocks columns =
        blocks_along(p->n_columns, at.column, p->tile_columns, p->block_columns, p->join_columns);
    struct groups groups = groups_of(p);
    uint64_t n_of_matrix = p->n_multiplies / (uint64_t)groups.n;
    int64_t group = (int64_t)(n / n_of_matrix), place = group / groups.n_of_place;
    int64_t n_matrices =
        min_i64(p->n_matrices - (int64_t)at.matrix * p->tile_matrices, p->tile_matrices);
    struct product_lines lines;
    struct span along, other;

    turn->step = PRODUCT_MULTIPLY;
    set_panel(p, tile * p->n_panels + step_index / product_panel_steps(p), turn);
    turn->step_index = step_index;
    turn->is_first = step_index == 0;
    product_lines_of(p, &lines);
    set_block(&lines, p->is_by_columns ? &columns : &rows, p->is_by_columns ? &rows : &columns,
              n % n_of_matrix, &along, &other);
    struct span down = p->is_by_columns ? other : along, across = p->is_by_columns ? along : other;
    turn->row = down.first;
    turn->n_rows = down.n;
    turn->column = across.first;
    turn->n_columns = across.n;
    set_extent(place * groups.of_place + group % groups.n_of_place * p->block_matrices,
               p->block_matrices, min_i64(n_matrices, (place + 1) * groups.of_place), &turn->matrix,
               &turn->n_matrices);
    turn->n_depth = min_i64(p->depth - (int64_t)step_index * p->step_depth, p->step_depth);
    turn->is_empty = turn->n_columns == 0 || turn->n_rows == 0 || turn->n_matrices == 0;
    if (p->is_symmetric && at.row == at.column) {
        turn->is_empty |= turn->row < turn->column;
        turn->is_mirrored = turn->row == turn->column && step_index + 1 == p->n_depth_steps;
    }
}

static void set_grains_of_tile(const struct plan_product *p, enum product_step step, uint64_t tile,
                               uint64_t n, struct product_turn *turn)
{
    turn->step = step;
    turn->pass = PRODUCT_RESULT;
    turn->tile = tile;
    if (p->store_lines > 0)
        take_lines(p, n, turn);
    else
        take_grains(p, (unsigned)n, p->store_grains, turn);
}

/* Of a tile's items; there is no tile before the first one. */
static void set_item(const struct plan_product *p, uint64_t tile, uint64_t item,
                     struct product_turn *turn)
{
    bool is_late = item < p->n_late_stores;

    turn->step = PRODUCT_STORE;
    turn->is_empty = is_late && tile == p->first_tile;
    if (!turn->is_empty)
        set_grains_of_tile(
            p, PRODUCT_STORE, tile - is_late,
            is_late ? p->n_stores - p->n_late_stores + item : item - p->n_late_stores, turn);
}

static void set_mark(uint64_t tile, bool is_applied, struct product_turn *turn)
{
    turn->step = PRODUCT_MARK;
    turn->pass = PRODUCT_RESULT;
    turn->tile = tile;
    turn->is_applied = is_applied;
}

/* With a journal: what comes behind a tile's STOREs. */
static void set_end(const struct plan_product *p, uint64_t tile, uint64_t n,
                    struct product_turn *turn)
{
    const uint64_t n_stores = p->n_stores;

    if (n == 0 || n == n_stores + 1)
        set_mark(tile, n > 0, turn);
    else
        set_grains_of_tile(p, PRODUCT_APPLY, tile, n - 1, turn);
}

static void set_redo(const struct plan_product *p, uint64_t index, struct product_turn *turn)
{
    if (index < p->n_stores)
        set_grains_of_tile(p, PRODUCT_APPLY, p->first_tile - 1, index, turn);
    else
        set_mark(p->first_tile - 1, true, turn);
}

void product_turn(const struct plan_product *p, uint64_t index, struct product_turn *ret_turn)
{
    struct product_lengths n = product_lengths_of(p);

    assert(index < p->n_turns);
    *ret_turn = (struct product_turn){.step = PRODUCT_LOAD};
    if (index < n.redo) {
        set_redo(p, index, ret_turn);
        return;
    }
    index -= n.redo;
    if (index < n.load) {
        set_load(p, p->first_tile * p->n_panels, index, ret_turn);
        return;
    }
    index -= n.load;
    uint64_t tile = p->first_tile + index / n.tile, own = index % n.tile;
    if (own >= n.panels + p->n_stores) {
        set_end(p, tile, own - n.panels - p->n_stores, ret_turn);
        return;
    }
    struct product_spot spot = product_spot(p, tile, own);
    if (spot.item < p->n_stores) {
        set_item(p, tile, spot.item, ret_turn);
        return;
    }
    struct product_panel_turn at = product_panel_turn(p, spot.place);
    if (at.is_load)
        set_load(p, tile * p->n_panels + at.panel + 1, at.n, ret_turn);
    else
        set_multiply(p, tile, at.panel * product_panel_steps(p) + at.n / p->n_multiplies,
                     at.n % p->n_multiplies, ret_turn);
}

/* Whether LOADs in a tile's panel, of the panel behind it, load nothing of the kept operand. */
static bool loads_no_kept(const struct plan_product *p, uint64_t tile, uint64_t panel)
{
    bool is_last = panel + 1 == p->n_panels;

    return is_there(p, tile + is_last, is_last ? 0 : panel + 1);
}

/* Of a tile's turns, from `own` on, a LOAD; kept_only: that may be of the kept operand. */
static uint64_t next_load(const struct plan_product *p, uint64_t tile, uint64_t own, bool kept_only)
{
    struct product_lengths n = product_lengths_of(p);
    uint64_t place = product_places_before(p, own);

    if (place >= n.panels)
        return n.tile;
    struct product_panel_turn at = product_panel_turn(p, place);
    uint64_t n_first = product_first_multiplies(p, at.panel);
    uint64_t panel = at.panel + (!at.is_load && at.n >= n_first);

    if (kept_only && panel + 1 < p->n_kept && loads_no_kept(p, tile, panel))
        panel = p->n_kept - 1;
    if (kept_only && panel < p->n_panels && loads_no_kept(p, tile, panel))
        panel++;
    if (panel >= p->n_panels)
        return n.tile;
    if (!at.is_load || panel > at.panel)
        place = panel * n.panel + product_first_multiplies(p, panel);
    return product_place_index(p, place);
}

/* How many tiles load nothing of the kept operand, neither for themselves nor for the next one. */
static uint64_t n_without_kept(const struct plan_product *p, uint64_t tile)
{
    if (p->n_kept < p->n_panels || !is_there(p, tile, 0))
        return 0;
    return min_u64(p->n_sharing - tile % p->n_sharing, p->n_tiles - tile) - 1;
}

uint64_t product_skip(const struct plan_product *p, uint64_t index, unsigned passes)
{
    struct product_lengths n = product_lengths_of(p);
    uint64_t start = n.redo + n.load, next = n.tile;
    bool has_stores = passes >> PRODUCT_RESULT & 1;

    if (index < start)
        return index;
    uint64_t tile = p->first_tile + (index - start) / n.tile, own = (index - start) % n.tile;
    bool kept_only = passes == 1u << p->kept_pass;
    if (tile == p->n_tiles || own >= n.panels + p->n_stores)
        return has_stores ? index : min_u64(index - own + n.tile, p->n_turns);
    uint64_t n_others = kept_only ? n_without_kept(p, tile) : 0;
    if (n_others > 0) {
        index += n_others * n.tile - own;
        tile += n_others;
        own = 0;
    }
    if (has_stores)
        next = product_next_store(p, own);
    if (passes >> PRODUCT_LEFT & 1 || passes >> PRODUCT_RIGHT & 1)
        next = min_u64(next, next_load(p, tile, own, kept_only));
    return index - own + next;
}
