/* The turns of a matrix product: how many grains one loads or stores, how many blocks one
 * multiplies.
 *
 * None of it changes a bit of C: a library gives whole blocks the same bits together as one by one
 * (kernels/cpu/multiply/multiply.h says which). Together they are faster, since each operand is
 * rearranged once for all of them; so as many are joined as take about TURN_SECONDS, while there
 * are still several turns for each thread. Blocks of integers gain nothing by it.
 *
 * Called by product_tiles.c.
 */
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "kernels/products/product_order.h"
#include "proto/util.h"

#define TURN_SECONDS     0.02
#define TURNS_PER_THREAD 2
#define MAX_JOINED       1536
#define MANY_STEPS       8 /* of a tile: storing it takes little beside them */

static uint64_t grains_along(const struct geometry *g, int axis, int64_t extent)
{
    return (uint64_t)divide_up_i64(min_i64(extent, g->shape[axis]), g->grain_shape[axis]);
}

static uint64_t most_grains(const struct plan_product *product, enum product_pass pass)
{
    const struct product_axes *axes = &product->axes[pass];
    const struct geometry *g = &product->passes[pass].geometry;
    const int64_t extents[3] = {product->tile_rows, product->tile_columns, product->panel_depth};
    const int own[3] = {axes->row, axes->column, axes->depth};
    int first = product->axes[PRODUCT_RESULT].n_batch - axes->n_batch;
    uint64_t n = 1;

    for (int i = 0; i < axes->n_batch && g->n_grains > 0; i++)
        n *= grains_along(g, i, product_tile_extent(product, first + i));
    for (int i = 0; i < 3 && g->n_grains > 0; i++)
        n *= own[i] < 0 ? 1 : grains_along(g, own[i], extents[i]);
    if (pass == PRODUCT_RESULT && product->is_symmetric && product->n_row_tiles > 1)
        n *= 2; /* stored twice */
    return g->n_grains == 0 ? 0 : n;
}

static uint64_t grains_of_rings(const struct planner *p)
{
    uint64_t n = UINT64_MAX;

    for (unsigned i = 0; i < p->program->n_inputs; i++)
        n = min_u64(n, planner_ring_grains(p, &p->request->args[p->program->inputs[i].arg].array.at,
                                           false));
    for (unsigned i = 0; i < p->program->n_outputs; i++)
        if (p->request->outputs[i].has_to)
            n = min_u64(n, planner_ring_grains(p, &p->request->outputs[i].to.at, true));
    return n;
}

/* Of all passes from `first` to `last` together. Where all of a turn's lie in one slot, as many as
 * fit. */
static unsigned grains_of_turn(struct planner *p, enum product_pass first, enum product_pass last,
                               uint64_t n_grains)
{
    const struct plan_engine *engine = p->limits->engine;
    uint64_t n = min_u64(engine->turn_grains(p->limits, n_grains), grains_of_rings(p));

    for (unsigned pass = first; pass <= last && engine->fills_slots; pass++) {
        const struct plan_pass *planned = &p->product->passes[pass];
        while (n > 1 && planned->geometry.n_grains > 0 &&
               engine->slot_need_bytes(p->program, p->product->whole->first_pass + pass, n,
                                       &planned->room) > p->limits->slot_bytes)
            n -= n / 4 > 0 ? n / 4 : 1;
    }
    return (unsigned)n;
}

/* C's grains follow each other down its columns first. */
static bool is_stored_by_columns(const struct plan_product *product)
{
    const struct product_axes *axes = &product->axes[PRODUCT_RESULT];
    const struct geometry *g = &product->passes[PRODUCT_RESULT].geometry;

    if (product->is_symmetric || axes->row < 0 || axes->column < 0)
        return false;
    for (int i = 0; i < g->ndim; i++)
        if (g->grid_order[i] == axes->row || g->grid_order[i] == axes->column)
            return g->grid_order[i] == axes->column;
    return false;
}

/* Tiles of several lines of blocks are stored while others are multiplied. */
static bool has_lines(const struct plan_product *product)
{
    int64_t tile = product->is_by_columns ? product->tile_columns : product->tile_rows;
    int64_t block = product->is_by_columns ? product->block_columns : product->block_rows;
    int64_t join = product->is_by_columns ? product->join_columns : product->join_rows;
    int64_t n_wanted = product->n_depth_steps < MANY_STEPS ? 3 : 2;

    return divide_up_i64(tile, join) >= min_i64(divide_up_i64(tile, block), n_wanted);
}

static int64_t tile_extent(const struct plan_product *product, const int64_t *join)
{
    return join == &product->join_rows ? product->tile_rows : product->tile_columns;
}

/* Every step's blocks have to be such that may be joined, the last one's too. */
static bool may_join(const struct planner *p, enum dtype dtype)
{
    const struct plan_product *product = p->product;
    int64_t n_before = (int64_t)(product->n_depth_steps - 1) * product->step_depth;
    int64_t depth = min_i64(product->step_depth, product->depth - n_before);

    return p->limits->engine->may_join(dtype, product->block_rows, product->block_columns, depth);
}

/* So many whole blocks a MULTIPLY that it takes about TURN_SECONDS, and that there are still
 * several for each thread. */
static void choose_joins(struct planner *p)
{
    struct plan_product *product = p->product;
    enum dtype dtype = p->product->whole->dtype;
    double n_threads = (double)max_u64(p->limits->n_threads, 1);
    const struct plan_rates rates = planner_rates(p);
    double most = planner_product_rate(&rates, product) / n_threads * TURN_SECONDS / 2;
    double depth = (double)product->step_depth;
    int64_t *rows = &product->join_rows, *columns = &product->join_columns;

    *rows = product->block_rows;
    *columns = product->block_columns;
    bool is_down_only = !p->limits->engine->may_join_beside(dtype);
    if (!may_join(p, dtype) || (product->is_symmetric && is_down_only))
        return;
    for (;;) {
        bool is_tall = is_down_only || *columns > *rows || *columns >= product->tile_columns;
        if (product->is_symmetric) /* square on the diagonal */
            is_tall = true;
        bool is_down = is_down_only || (is_tall && *rows < product->tile_rows);
        int64_t *shorter = is_down ? rows : columns, before = *shorter;
        *shorter += shorter == rows ? product->block_rows : product->block_columns;
        if (product->is_symmetric)
            *columns = *rows;
        if (*rows <= MAX_JOINED && *columns <= MAX_JOINED &&
            before < tile_extent(product, shorter) && has_lines(product) &&
            (double)*rows * (double)*columns * depth <= most &&
            planner_count_multiplies(product) >= TURNS_PER_THREAD * n_threads)
            continue;
        *shorter = before;
        if (product->is_symmetric)
            *columns = *rows;
        return;
    }
}

/* STOREs of whole lines of grains, or of parts of one, in the order in which blocks are multiplied,
 * if tiles can be stored while others are begun: see product_order.c. */
static void choose_stores(struct planner *p, uint64_t n_result)
{
    struct plan_product *product = p->product;
    const struct product_axes *axes = &product->axes[PRODUCT_RESULT];
    const struct geometry *g = &p->product->passes[PRODUCT_RESULT].geometry;
    unsigned most = product->store_grains;

    product->n_stores = (unsigned)((n_result + most - 1) / most);
    product->n_lag = p->limits->engine->n_computing(p->limits);
    product->store_lines = 0;
    product->store_parts = 1;
    if (product->has_journal || product->is_symmetric || product->tile_matrices > 1 ||
        axes->row < 0 || axes->column < 0 || n_result == 0)
        return;
    int along = product->is_by_columns ? axes->column : axes->row;
    int64_t extent = product->is_by_columns ? product->tile_columns : product->tile_rows;
    int64_t line = product->is_by_columns ? product->join_columns : product->join_rows;
    uint64_t n_lines =
        (uint64_t)divide_up_i64(min_i64(extent, g->shape[along]), g->grain_shape[along]);
    uint64_t in_line = n_result / n_lines, of_line = (uint64_t)(line / g->grain_shape[along]);

    product->store_parts = (unsigned)((in_line + most - 1) / most);
    product->store_lines = (unsigned)max_u64(min_u64(most / in_line, min_u64(of_line, n_lines)), 1);
    product->n_stores = (unsigned)((n_lines + product->store_lines - 1) / product->store_lines) *
                        product->store_parts;
}

/* How many of a panel's come before the next panel is loaded. A device is only told of them, so
 * that it has something to do while threads load. */
static unsigned first_multiplies(const struct planner *p)
{
    const struct plan_product *product = p->product;
    uint64_t most = p->limits->engine->n_multiplies_ahead(p->limits);

    if (!product->has_two_buffers) /* all of a panel's: product_first_multiplies() */
        return product->n_multiplies;
    return (unsigned)min_u64(product->n_multiplies / 2, most);
}

int planner_choose_turns(struct planner *p)
{
    struct plan_product *product = p->product;
    uint64_t n_left = most_grains(product, PRODUCT_LEFT);
    uint64_t n_right = most_grains(product, PRODUCT_RIGHT);
    uint64_t n_result = most_grains(product, PRODUCT_RESULT);

    product->is_by_columns = is_stored_by_columns(product);
    choose_joins(p);
    uint64_t n_multiplies = planner_count_multiplies(product);

    product->load_grains = grains_of_turn(p, PRODUCT_LEFT, PRODUCT_RIGHT, n_left + n_right);
    product->store_grains = grains_of_turn(p, PRODUCT_RESULT, PRODUCT_RESULT, n_result);
    product->n_cells = n_result;
    if (max_u64(max_u64(n_left, n_right), max_u64(n_result, n_multiplies)) > UINT32_MAX / 4)
        return error_set(p->error, GAD_LIMIT_EXCEEDED, "shape",
                         "the job would have too many turns");
    product->n_left_loads = (unsigned)((n_left + product->load_grains - 1) / product->load_grains);
    product->n_right_loads =
        (unsigned)((n_right + product->load_grains - 1) / product->load_grains);
    choose_stores(p, n_result);
    product->n_multiplies = (unsigned)n_multiplies;
    product->n_first_multiplies = first_multiplies(p);
    product->n_late_stores = product_late_stores(product);
    if (!planner_count_turns(product))
        return error_set(p->error, GAD_LIMIT_EXCEEDED, "shape",
                         "the job would have too many turns");
    return 0;
}
