/* In which order the turns of a matrix product begin; see product_order.c. */
#pragma once

#include "kernels/plan/plan.h"

/* The blocks of a tile, line by line as they are multiplied: rows of blocks, or columns where C is
 * written along its columns. The lines' order is: the first, the cut one, the others. */
struct product_lines {
    int64_t extent;          /* of C's elements across a line */
    uint64_t n;              /* of whole blocks; the cut one comes on top */
    uint64_t across, single; /* of a line: joined blocks, cut blocks at its end */
    uint64_t first, cut;     /* MULTIPLYs of the first line, of the cut one */
    uint64_t n_multiplies;
};
void product_lines_of(const struct plan_product *p, struct product_lines *ret);
/* Where MULTIPLY n of a step is, if the tile has one matrix, or the first ones of several. */
struct product_line_place {
    bool is_cut;
    uint64_t line, within;
};
struct product_line_place product_line_place(const struct product_lines *lines, uint64_t n);

/* Numbers of turns: of a whole panel's MULTIPLYs and the LOADs among them; of all a tile's panels,
 * of which the last may have fewer steps. */
struct product_lengths {
    uint64_t redo, load, panel, panels, tile;
};
struct product_lengths product_lengths_of(const struct plan_product *p);
/* Steps of a whole panel; MULTIPLYs of one of a tile's panels before its LOADs, all of them. */
uint64_t product_panel_steps(const struct plan_product *p);
uint64_t product_first_multiplies(const struct plan_product *p, uint64_t panel);

/* Turn `place` of a tile's panels: LOAD n of the panel behind this one, or MULTIPLY n of all its
 * steps. */
struct product_panel_turn {
    uint64_t panel, n;
    bool is_load;
};
struct product_panel_turn product_panel_turn(const struct plan_product *p, uint64_t place);

/* Of a panel, numbered through all tiles, down to which row of its tile LOAD n goes; 0: it is not
 * of the left operand, or takes its grains in another order. In product.c. */
int64_t product_loaded_rows(const struct plan_product *p, uint64_t panel, uint64_t n);

/* How many STOREs are behind the first MULTIPLYs of the next tile. */
unsigned product_late_stores(const struct plan_product *p);

/* A turn of a tile (tile n_tiles: of what is behind the last one), counted from its first one:
 * STORE `item`, or (item: n_stores) the turn `place` of its panels. Items: the late STOREs of the
 * tile before, then the tile's own. */
struct product_spot {
    uint64_t item, place;
};
struct product_spot product_spot(const struct plan_product *p, uint64_t tile, uint64_t own);
/* The turns of a tile's panels before its turn `own`; the first STORE from there on, or behind all.
 */
uint64_t product_places_before(const struct plan_product *p, uint64_t own);
uint64_t product_next_store(const struct plan_product *p, uint64_t own);
/* Back: of turn `place` of a tile's panels; of MULTIPLY n of one step; of a tile's STORE n, which
 * may be behind the tile. */
uint64_t product_place_index(const struct plan_product *p, uint64_t place);
uint64_t product_multiply_index(const struct plan_product *p, uint64_t step, uint64_t n);
uint64_t product_store_index(const struct plan_product *p, uint64_t n);
/* How many of the last step's MULTIPLYs STORE n waits for; how many STOREs of the tile before one
 * of the first step's MULTIPLYs. */
uint64_t product_store_needs(const struct plan_product *p, uint64_t n);
/* How many of a step's MULTIPLYs read the first n_rows of a left panel, or come before these. 0:
 * all of them do. */
uint64_t product_load_needs(const struct plan_product *p, int64_t n_rows);
uint64_t product_multiply_needs(const struct plan_product *p, uint64_t n);
