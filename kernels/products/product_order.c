/* In which order the turns of a matrix product begin, so that threads multiply while others store.
 *
 * A turn waits for all turns below some number, and turns begin in order; so what may run at the
 * same time has to be ordered for it. MULTIPLYs of a step go line by line of blocks (rows of
 * blocks; columns where C is written along its columns). STOREs go the same way, and stand among
 * the MULTIPLYs of the line behind theirs, `n_lag` turns later than they need, so that those have
 * ended when a thread comes by. The last line's STOREs stand among the MULTIPLYs of the first line
 * of the next tile:
 *
 *     line     0 0 0 | 1 1 S0 1 S0 | 2 2 S1 2 S1 ||  0 0 S2 0 S2 | 1 1 1 | ...
 *                    the tile's last step        ||  the next one's first step
 *
 * A line's first MULTIPLYs of the next tile wait for the STOREs of the lines down to theirs. The
 * line that is cut by the end of C may be at any place of a tile: it is multiplied behind the first
 * line, before all STOREs of this tile and after all of the one before.
 *
 * A tile of one line stores between two tiles, and so do those of several matrices and symmetric
 * ones. With a journal, which holds one tile, MARKs and APPLYs follow before the next one.
 *
 * Called by product.c. Pure code.
 */
#include "kernels/products/product_order.h"
#include "proto/util.h"

void product_lines_of(const struct plan_product *p, struct product_lines *ret)
{
    const int64_t tile[2] = {p->tile_rows, p->tile_columns};
    const int64_t join[2] = {p->join_rows, p->join_columns};
    const int64_t block[2] = {p->block_rows, p->block_columns};
    const bool is_cut[2] = {p->n_rows % block[0] != 0, p->n_columns % block[1] != 0};
    int along = p->is_by_columns, other = !along;
    uint64_t n_single = is_cut[other] ? (uint64_t)divide_up_i64(tile[along], block[along]) : 0;

    *ret = (struct product_lines){.extent = join[along]};
    ret->n = (uint64_t)divide_up_i64(tile[along], join[along]);
    ret->across = (uint64_t)divide_up_i64(tile[other], join[other]);
    ret->single = is_cut[other] ? (uint64_t)(join[along] / block[along]) : 0;
    ret->cut = is_cut[along] ? (uint64_t)divide_up_i64(tile[other], block[other]) : 0;
    ret->first = ret->across + min_u64(ret->single, n_single);
    ret->n_multiplies = ret->n * ret->across + n_single + ret->cut;
}

struct product_line_place product_line_place(const struct product_lines *lines, uint64_t n)
{
    uint64_t length = lines->across + lines->single;

    if (n >= lines->first && n < lines->first + lines->cut)
        return (struct product_line_place){.is_cut = true, .within = n - lines->first};
    n -= n < lines->first ? 0 : lines->cut;
    return (struct product_line_place){.line = n / length, .within = n % length};
}

/* MULTIPLYs down to a line's end. */
static uint64_t end_of_line(const struct product_lines *lines, uint64_t line)
{
    if (line + 1 >= lines->n)
        return lines->n_multiplies;
    return (line + 1) * (lines->across + lines->single) + lines->cut;
}

/* STOREs ------------------------------------------------------------------------------------- */

/* Of C's elements along the lines' direction, in one STORE; 0: they have no lines. */
static uint64_t store_extent(const struct plan_product *p)
{
    const struct product_axes *axes = &p->axes[PRODUCT_RESULT];
    const struct geometry *g = &p->passes[PRODUCT_RESULT].geometry;

    if (p->store_lines == 0)
        return 0;
    return (uint64_t)g->grain_shape[p->is_by_columns ? axes->column : axes->row] * p->store_lines;
}

/* The line in which a STORE ends, and the STOREs that end in it. */
struct store_line {
    uint64_t line, first, end;
};

static struct store_line line_of_store(const struct plan_product *p,
                                       const struct product_lines *lines, uint64_t n)
{
    uint64_t extent = store_extent(p), end = (n / p->store_parts + 1) * extent;
    uint64_t line = min_u64((end - 1) / (uint64_t)lines->extent, lines->n - 1);
    uint64_t begins = line * (uint64_t)lines->extent, ends = begins + (uint64_t)lines->extent;

    return (struct store_line){.line = line,
                               .first = begins / extent * p->store_parts,
                               .end = line + 1 == lines->n
                                          ? p->n_stores
                                          : min_u64(ends / extent * p->store_parts, p->n_stores)};
}

/* STOREs that touch the lines down to this one. */
static uint64_t stores_down_to(const struct plan_product *p, const struct product_lines *lines,
                               uint64_t line)
{
    uint64_t extent = store_extent(p);

    if (extent == 0 || line + 1 >= lines->n)
        return p->n_stores;
    uint64_t end = (line + 1) * (uint64_t)lines->extent;
    return min_u64((end + extent - 1) / extent * p->store_parts, p->n_stores);
}

/* How many MULTIPLYs stand before it, counted from the last step's first one; those of the next
 * tile's first step follow. */
static uint64_t store_place(const struct plan_product *p, const struct product_lines *lines,
                            uint64_t n)
{

    if (p->store_lines == 0)
        return p->n_multiplies;
    struct store_line at = line_of_store(p, lines, n);
    uint64_t next = at.line + 1 < lines->n ? end_of_line(lines, at.line + 1) : 0;
    uint64_t end = end_of_line(lines, at.line);
    uint64_t width = next > 0 ? next - end : lines->first - min_u64(lines->first, p->n_lag);
    uint64_t place = end + p->n_lag + (n - at.first) * width / (at.end - at.first);
    bool is_early = n < stores_down_to(p, lines, 0);
    return min_u64(place, p->n_multiplies + (is_early ? 0 : lines->first));
}

uint64_t product_store_needs(const struct plan_product *p, uint64_t n)
{
    struct product_lines lines;

    if (p->store_lines == 0)
        return p->n_multiplies;
    product_lines_of(p, &lines);
    return end_of_line(&lines, line_of_store(p, &lines, n).line);
}

uint64_t product_multiply_needs(const struct plan_product *p, uint64_t n)
{
    struct product_lines lines;

    if (p->store_lines == 0)
        return p->n_stores;
    product_lines_of(p, &lines);
    struct product_line_place at = product_line_place(&lines, n);
    return at.is_cut ? p->n_stores : stores_down_to(p, &lines, at.line);
}

uint64_t product_load_needs(const struct plan_product *p, int64_t n_rows)
{
    struct product_lines lines;

    if (p->store_lines == 0 || p->is_by_columns || n_rows <= 0)
        return p->n_multiplies;
    product_lines_of(p, &lines);
    return end_of_line(&lines, min_u64((uint64_t)((n_rows - 1) / lines.extent), lines.n - 1));
}

unsigned product_late_stores(const struct plan_product *p)
{
    struct product_lines lines;
    unsigned first = 0, end = p->n_stores;

    if (p->has_journal)
        return 0;
    product_lines_of(p, &lines);
    while (first < end) {
        unsigned middle = first + (end - first) / 2;
        if (store_place(p, &lines, middle) >= p->n_multiplies)
            end = middle;
        else
            first = middle + 1;
    }
    return p->n_stores - first;
}

/* Turns of a tile ---------------------------------------------------------------------------- */

struct product_lengths product_lengths_of(const struct plan_product *p)
{
    struct product_lengths n = {.redo = p->is_redone ? p->n_stores + UINT64_C(1) : 0,
                                .load = (uint64_t)p->n_left_loads + p->n_right_loads};
    n.panel = n.load + product_panel_steps(p) * p->n_multiplies;
    n.panels = p->n_depth_steps * p->n_multiplies + p->n_panels * n.load;
    n.tile = n.panels + p->n_stores + (p->has_journal ? p->n_stores + UINT64_C(2) : 0);
    return n;
}

uint64_t product_panel_steps(const struct plan_product *p)
{
    return (uint64_t)(p->panel_depth / p->step_depth);
}

static uint64_t product_panel_multiplies(const struct plan_product *p, uint64_t panel)
{
    uint64_t n_steps = product_panel_steps(p);

    return min_u64(p->n_depth_steps - panel * n_steps, n_steps) * p->n_multiplies;
}

uint64_t product_first_multiplies(const struct plan_product *p, uint64_t panel)
{
    uint64_t n = product_panel_multiplies(p, panel);

    return p->has_two_buffers ? min_u64(n, p->n_first_multiplies) : n;
}

struct product_panel_turn product_panel_turn(const struct plan_product *p, uint64_t place)
{
    struct product_lengths n = product_lengths_of(p);
    uint64_t panel = min_u64(place / n.panel, p->n_panels - 1), own = place - panel * n.panel;
    uint64_t n_first = product_first_multiplies(p, panel);

    if (own < n_first)
        return (struct product_panel_turn){.panel = panel, .n = own};
    if (own < n_first + n.load)
        return (struct product_panel_turn){.panel = panel, .n = own - n_first, .is_load = true};
    return (struct product_panel_turn){.panel = panel, .n = own - n.load};
}

/* Of the turns of a tile's panels, how many stand before MULTIPLY n of a step. */
static uint64_t multiply_place(const struct plan_product *p, const struct product_lengths *n,
                               uint64_t step, uint64_t multiply)
{
    uint64_t n_steps = product_panel_steps(p), panel = step / n_steps;
    uint64_t own = step % n_steps * p->n_multiplies + multiply;

    return panel * n->panel + own + (own < product_first_multiplies(p, panel) ? 0 : n->load);
}

/* Of the turns of a tile's panels, how many stand before an item. */
static uint64_t item_place(const struct plan_product *p, const struct product_lines *lines,
                           const struct product_lengths *n, uint64_t item)
{

    if (item < p->n_late_stores) {
        uint64_t store = p->n_stores - p->n_late_stores + item;
        return multiply_place(p, n, 0, store_place(p, lines, store) - p->n_multiplies);
    }
    return multiply_place(p, n, p->n_depth_steps - 1,
                          store_place(p, lines, item - p->n_late_stores));
}

/* How many items stand before the tile's turn `own`, or (is_place) before that of its panels. */
static uint64_t items_before(const struct plan_product *p, uint64_t own, bool is_place)
{
    struct product_lengths n = product_lengths_of(p);
    struct product_lines lines;
    uint64_t first = 0, end = p->n_stores;

    product_lines_of(p, &lines);
    while (first < end) {
        uint64_t middle = first + (end - first) / 2;
        uint64_t place = item_place(p, &lines, &n, middle);
        if (is_place ? place <= own : place + middle < own)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

struct product_spot product_spot(const struct plan_product *p, uint64_t tile, uint64_t own)
{
    struct product_lengths n = product_lengths_of(p);
    struct product_lines lines;

    if (tile == p->n_tiles) /* there are only its late STOREs */
        return (struct product_spot){.item = own};
    uint64_t item = items_before(p, own, false);
    product_lines_of(p, &lines);
    if (item < p->n_stores && item_place(p, &lines, &n, item) + item == own)
        return (struct product_spot){.item = item};
    return (struct product_spot){.item = p->n_stores, .place = own - item};
}

uint64_t product_places_before(const struct plan_product *p, uint64_t own)
{
    return own - items_before(p, own, false);
}

uint64_t product_next_store(const struct plan_product *p, uint64_t own)
{
    struct product_lengths n = product_lengths_of(p);
    struct product_lines lines;
    uint64_t item = items_before(p, own, false);

    product_lines_of(p, &lines);
    return item < p->n_stores ? item_place(p, &lines, &n, item) + item : n.panels + p->n_stores;
}

uint64_t product_place_index(const struct plan_product *p, uint64_t place)
{
    return place + items_before(p, place, true);
}

uint64_t product_multiply_index(const struct plan_product *p, uint64_t step, uint64_t n)
{
    struct product_lengths lengths = product_lengths_of(p);

    return product_place_index(p, multiply_place(p, &lengths, step, n));
}

uint64_t product_store_index(const struct plan_product *p, uint64_t n)
{
    struct product_lengths lengths = product_lengths_of(p);
    uint64_t n_own = p->n_stores - p->n_late_stores, behind = n < n_own ? 0 : lengths.tile;
    uint64_t item = n < n_own ? n + p->n_late_stores : n - n_own;
    struct product_lines lines;

    product_lines_of(p, &lines);
    return behind + item_place(p, &lines, &lengths, item) + item;
}
