/* What the turns of a matrix product wait for.
 *
 * A turn waits for a number of turns that all have to be done:
 *
 *     LOAD(s)      the MULTIPLYs that read what lies in its buffer: those of panel s - 2, or with
 *                  one buffer of panel s - 1; what a kept panel is written over was read before
 *                  these, since a tile with such memory has two panels or more. Of the left
 *                  operand, those of the lines of blocks down to its last row
 *     MULTIPLY(s)  LOAD(s), and the same block's MULTIPLY of the step before; a tile's first ones
 *                  those STOREs of the tile before, which read what is overwritten
 *     STORE        the MULTIPLYs of the blocks that it reads; with a journal, which holds one tile,
 *                  the last MARK of the tile before comes earlier than these
 *     MARK, APPLY  what is before
 *
 * To wait for more than is needed is always right, and so nothing waits for less than what lies
 * MAX_DISTANCE below it.
 *
 * Called by the worker for every turn. Pure code.
 */
#include "kernels/plan/plan.h"
#include "kernels/products/product_order.h"
#include "proto/util.h"

#include <assert.h>

#define MAX_DISTANCE 192

/* A panel of a tile, and where the tile's turns begin. */
struct panel_place {
    uint64_t start, tile, panel;
    bool is_first; /* of all */
};

/* The panel that is multiplied before this one, which is not the first of all. */
static struct panel_place panel_before(const struct plan_product *p, const struct panel_place *at)
{
    struct product_lengths n = product_lengths_of(p);

    if (at->panel > 0)
        return (struct panel_place){at->start, at->tile, at->panel - 1, false};
    return (struct panel_place){at->start - n.tile, at->tile - 1, p->n_panels - 1, false};
}

/* All turns down to the n-th MULTIPLY of a panel's last step, to its last LOAD. */
static uint64_t multiplied(const struct plan_product *p, const struct panel_place *at, uint64_t n)
{
    uint64_t end = min_u64((at->panel + 1) * product_panel_steps(p), p->n_depth_steps);

    return at->start + product_multiply_index(p, end - 1, n - 1) + 1;
}

static uint64_t loaded(const struct plan_product *p, const struct panel_place *at)
{
    struct product_lengths n = product_lengths_of(p);
    uint64_t end = at->panel * n.panel + product_first_multiplies(p, at->panel) + n.load;

    return n.load > 0 ? at->start + product_place_index(p, end - 1) + 1 : 0;
}

static uint64_t load_needs(const struct plan_product *p, const struct panel_place *at, uint64_t n)
{
    if (!p->has_two_buffers)
        return multiplied(p, at, p->n_multiplies); /* they come first */
    if (at->is_first)
        return 0;
    struct panel_place before = panel_before(p, at);
    int64_t n_rows = product_loaded_rows(p, at->tile * p->n_panels + at->panel + 1, n);
    return multiplied(p, &before, product_load_needs(p, n_rows));
}

/* n: of the panel's. */
static uint64_t multiply_needs(const struct plan_product *p, const struct panel_place *at,
                               uint64_t n)
{
    uint64_t step = at->panel * product_panel_steps(p) + n / p->n_multiplies;
    struct panel_place before = {.start = 0};
    uint64_t needs = at->start;

    n %= p->n_multiplies;
    if (!at->is_first) {
        before = panel_before(p, at);
        needs = loaded(p, &before);
    }
    if (step > 0)
        return max_u64(needs, at->start + product_multiply_index(p, step - 1, n) + 1);
    uint64_t n_stored = product_multiply_needs(p, n);
    if (at->is_first || n_stored == 0)
        return needs;
    return max_u64(needs, before.start + product_store_index(p, n_stored - 1) + 1);
}

/* `start`: of the tile in whose turns the STORE stands. */
static uint64_t store_needs(const struct plan_product *p, uint64_t start, uint64_t tile,
                            uint64_t item)
{
    bool is_late = item < p->n_late_stores;
    uint64_t n = is_late ? p->n_stores - p->n_late_stores + item : item - p->n_late_stores;

    if (is_late && tile == p->first_tile)
        return 0;
    start -= is_late ? product_lengths_of(p).tile : 0;
    return start + product_multiply_index(p, p->n_depth_steps - 1, product_store_needs(p, n) - 1) +
           1;
}

static uint64_t needs_in_tile(const struct plan_product *p, uint64_t start, uint64_t index)
{
    struct product_lengths n = product_lengths_of(p);
    uint64_t tile = (index - start) / n.tile, own = (index - start) % n.tile;
    uint64_t stored = n.panels + p->n_stores;

    start += tile * n.tile;
    tile += p->first_tile;
    if (own == stored || own == stored + p->n_stores + 1) /* MARKs */
        return start + own;
    if (own > stored) /* APPLYs */
        return start + stored + 1;
    struct product_spot spot = product_spot(p, tile, own);
    if (spot.item < p->n_stores)
        return store_needs(p, start, tile, spot.item);
    struct product_panel_turn turn = product_panel_turn(p, spot.place);
    struct panel_place at = {.start = start, .tile = tile, .panel = turn.panel};
    at.is_first = tile == p->first_tile && at.panel == 0;
    return turn.is_load ? load_needs(p, &at, turn.n) : multiply_needs(p, &at, turn.n);
}

uint64_t product_needs(const struct plan_product *p, uint64_t index)
{
    struct product_lengths n = product_lengths_of(p);
    uint64_t needs = 0, start = n.redo + n.load;

    if (index >= start)
        needs = needs_in_tile(p, start, index);
    else if (n.redo > 0 && index == n.redo - 1)
        needs = index;
    assert(needs <= index);
    return max_u64(needs, index > MAX_DISTANCE ? index - MAX_DISTANCE : 0);
}
