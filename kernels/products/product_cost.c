/* What a tile of C costs: the seconds that the whole product would take with tiles of its size, by
 * the rates that were measured.
 *
 * An operand costs what one pass through it takes, by where it lies, times how often it is read:
 * the left one once for each column of tiles, the right one once for each row of them, but for the
 * panels that stay. So of an operand that is slow to read, tiles are long: they read it less often,
 * and the other one more often.
 *
 *     one pass     CPU:     | read at its source's rate, written to the panel at memory's |
 *                  device:  | read, written to a slot |  link  | there into the panel |
 *
 * What lies in short pieces is as slow to read as if each were PIECE_BYTES longer, and a line of C
 * costs as much as STORE_BYTES more. A library for floats copies the operands before it multiplies,
 * anew for each part of the other one that it takes at a time. Where a tile has fewer blocks than
 * there are threads, some are idle all along. Where a tile ends, and where its blocks are few, they
 * wait for each other about as long as a block takes: that is a guess, and so counts no more than
 * some share of what is moved, which is known.
 *
 *     CPU:      the same threads do all of it, so the times add; a disk works beside them
 *     device:   host, link and device work at the same time if there are two buffers: the slowest
 *               counts, and a small share of the others, so that among tiles that the same thing
 *               bounds that with least traffic is taken
 *
 * With one buffer nothing is loaded while a panel is multiplied, so the times add everywhere. For
 * a device, and where the CPU waits for a disk, the second one is had where that ends sooner, by
 * 1 / MORE_SHARE of what is moved more for it. Where the CPU's threads load from memory what they
 * multiply themselves, it saves no time that is counted here, only their waiting for each other: it
 * is had unless it makes more than 1 / DOUBLE_SHARE of the moving.
 *
 * A plan with a journal is made for rates that are not measured: the daemon that goes on with it
 * may have measured others, and has to come to a carry of the same size. With as many threads it
 * does; with others the carry may be too small for the journal's tiles, which is said then.
 *
 * Called by product_tiles.c. Pure code.
 */
#include "kernels/products/product_cost.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#define DOUBLE_SHARE  10
#define MORE_SHARE    8 /* of what is moved more: that it has to save, whoever waits for it */
#define PIECE_BYTES   512
#define STORE_BYTES   4096
#define PACKED_EXTENT 1152
#define PACKED_LINES  3   /* one of them is stored while others are multiplied */
#define EDGE_SHARE    0.1 /* of the moving: what waiting counts at most */
#define IDLE_SHARE    0.5
#define HIDDEN_SHARE  (1.0 / 16) /* of what is hidden behind something slower */

/* What is the same for all tiles -------------------------------------------------------------- */

static double elements_of(int ndim, const int64_t *shape)
{
    double n = 1;

    for (int i = 0; i < ndim; i++)
        n *= (double)shape[i];
    return n;
}

/* How often a pass through it is made because outer batch axes of C are longer. */
static double times_broadcast(const struct planner *p, enum product_pass pass)
{
    const struct program_product *product = p->product->whole;
    const struct pass *space = planner_product_space(p, pass);
    int n_own = p->product->axes[pass].n_batch;
    double n = 1;

    for (int i = 0; i < p->product->cut_axis; i++) {
        int own = i - (product->n_batch_axes - n_own);
        if (own < 0 || space->shape[own] < product->batch_shape[i])
            n *= (double)product->batch_shape[i];
    }
    return n;
}

static struct product_way way_of(struct planner *p, enum product_pass pass,
                                 const struct plan_rates *rates)
{
    const struct pass *space = planner_product_space(p, pass);
    double panel_bytes = elements_of(space->ndim, space->shape) * (double)p->product->item_bytes;
    struct product_way way = {.n_times = times_broadcast(p, pass),
                              .has_matrices = p->product->has_matrices[pass]};

    planner_collect_operands(p, space);
    for (unsigned i = 0; i < p->n_operands; i++) {
        const struct geometry_operand *operand = &p->operands[i].shape;
        double n_bytes =
            elements_of(operand->ndim, operand->shape) * (double)dtype_size(operand->dtype);
        bool is_memory = planner_is_in_memory(p->operands[i].kind);
        if (p->operands[i].kind == LOCATION_FILE && rates->disk > 0)
            way.disk += n_bytes / rates->disk;
        else
            way.host += n_bytes / (is_memory ? rates->memory : rates->file);
        if (is_memory && p->limits->engine->has_link)
            way.host += n_bytes / rates->memory; /* written to the slot */
        way.link += p->limits->engine->has_link ? n_bytes / rates->to_device : 0;
        way.kernel += p->limits->engine->has_link ? n_bytes / rates->device : 0;
    }
    if (p->limits->engine->has_link)
        way.kernel += panel_bytes / rates->device;
    else
        way.host += panel_bytes / rates->memory;
    return way;
}

/* C's, and what is added to it: the same for all tiles but for its lines, which a device's host
 * stores in boxes of its own. */
static void cost_result(struct planner *p, const struct plan_rates *rates,
                        struct product_costs *ret)
{
    bool is_file = false;

    planner_collect_operands(p, planner_product_space(p, PRODUCT_RESULT));
    for (unsigned i = 0; i < p->n_operands; i++) {
        const struct geometry_operand *operand = &p->operands[i].shape;
        double n_bytes =
            elements_of(operand->ndim, operand->shape) * (double)dtype_size(operand->dtype);
        bool is_memory = planner_is_in_memory(p->operands[i].kind);
        is_file |= operand->is_output && !is_memory;
        if (!p->limits->engine->has_link)
            continue;
        ret->result_host += n_bytes / (is_memory ? rates->memory / 2 : rates->file);
        ret->result_link += n_bytes / rates->from_device;
    }
    if (!p->limits->engine->has_link)
        ret->store_seconds = STORE_BYTES / (is_file ? rates->file : rates->memory / 2);
}

void product_costs_init(struct planner *p, struct product_costs *ret)
{
    const struct plan_product *product = p->product;
    const struct plan_limits *limits = p->limits;
    const struct plan_rates rates =
        p->request->has_journal ? planner_default_rates(limits) : planner_rates(p);
    double rate = planner_product_rate(&rates, product);
    double block = 2.0 * (double)product->block_rows * (double)product->block_columns *
                   (double)product->step_depth * (double)product->block_matrices;

    *ret = (struct product_costs){.product = product,
                                  .has_link = limits->engine->has_link,
                                  .is_stored_by_columns = planner_product_rows_are_fastest(p)};
    ret->n_threads = limits->engine->n_computing(limits);
    ret->enough_blocks = limits->engine->enough_blocks(limits);
    ret->n_outer = (double)product->n_outer;
    for (unsigned i = 0; i < 2; i++)
        ret->ways[i] = way_of(p, (enum product_pass)i, &rates);
    cost_result(p, &rates, ret);
    ret->multiply_seconds = product->n_operations / rate;
    ret->block_seconds = block * ret->n_threads / rate;
    if (!ret->has_link && dtype_is_float(product->whole->dtype))
        ret->packing_rate = rates.memory;
}

/* Of a tile ----------------------------------------------------------------------------------- */

/* As many bytes as there are, more for what lies in pieces of so many elements. */
static double in_pieces(const struct plan_product *product, const struct product_tile *t, int side)
{
    int64_t depth = min_i64(t->panel_depth, max_i64(product->depth, 1));
    int64_t outer = side == PRODUCT_LEFT ? t->rows : t->columns;
    int64_t n = product->is_depth_fastest[side] ? depth : outer;

    return 1 + PIECE_BYTES / ((double)n * (double)product->item_bytes);
}

struct tile_counts {
    double rows, columns, matrices; /* of tiles, in one of the outer batch */
};

static struct tile_counts count_tiles(const struct plan_product *product,
                                      const struct product_tile *t)
{
    return (struct tile_counts){
        .rows = (double)divide_up_i64(max_i64(product->n_rows, 1), t->rows),
        .columns = (double)divide_up_i64(max_i64(product->n_columns, 1), t->columns),
        .matrices = (double)divide_up_i64(max_i64(product->n_matrices, 1), t->matrices)};
}

/* Tiles of a row that follow each other share what stays of one operand's panels: the first loads
 * all of it, the others the rest. They share the left operand's as long as there are several
 * columns of tiles. */
struct tile_kind {
    double share;     /* of all tiles */
    double kept_side; /* of a panel of the operand that is shared, what is loaded */
};

static void tell_kinds(const struct plan_product *product, const struct product_tile *t,
                       const struct tile_counts *n, struct tile_kind ret[2])
{
    double first = product->is_symmetric ? 1 : 1 / (n->columns > 1 ? n->columns : n->rows);

    ret[0] = (struct tile_kind){.share = first, .kept_side = 1};
    ret[1] = (struct tile_kind){.share = 1 - first,
                                .kept_side = 1 - (double)t->n_kept / (double)t->n_panels};
}

/* How often an operand would be read for one matrix of C if all tiles were of this kind. */
static double times_read(const struct plan_product *product, const struct tile_counts *n,
                         const struct tile_kind *kind, enum product_pass side)
{
    enum product_pass kept_side = n->columns > 1 ? PRODUCT_LEFT : PRODUCT_RIGHT;
    double times = side == PRODUCT_LEFT ? n->columns : n->rows;

    if (product->is_symmetric)
        return (n->rows + 1) / 2;
    return side == kept_side ? kind->kept_side * times : times;
}

static double packed_extent(int64_t tile, int64_t block, int64_t n_lines)
{
    int64_t n = tile / n_lines;

    return (double)min_i64(n < block ? block : n, PACKED_EXTENT);
}

/* How long a library rearranges before it multiplies floats: an operand anew for each such part of
 * the other's rows or columns. */
static double packing(const struct product_costs *c, const struct product_tile *t)
{
    const struct plan_product *product = c->product;

    if (!(c->packing_rate > 0))
        return 0;
    return product->n_operations / 2 * (double)product->item_bytes / c->packing_rate *
           (1 / packed_extent(t->rows, product->block_rows, PACKED_LINES) +
            1 / packed_extent(t->columns, product->block_columns, 1));
}

/* Lines of tiles, written one by one. */
static double storing(const struct product_costs *c, const struct product_tile *t)
{
    double n = c->product->n_operations / 2 / (double)max_i64(c->product->depth, 1);

    return n / (double)(c->is_stored_by_columns ? t->rows : t->columns) * c->store_seconds;
}

/* Arithmetic, with what threads wait for each other; nothing else could be done where there is one
 * tile. */
static double multiplying(const struct product_costs *c, const struct product_tile *t,
                          const struct tile_counts *n)
{
    const struct plan_product *product = c->product;
    double n_tiles = n->rows * n->columns * n->matrices * c->n_outer;
    double n_down = (double)divide_up_i64(t->rows, product->block_rows);
    double n_across = (double)divide_up_i64(t->columns, product->block_columns);
    double n_blocks =
        n_down * n_across * (double)divide_up_i64(t->matrices, product->block_matrices);
    double idle = 0, ends, few;

    if (n_tiles <= 1)
        return c->multiply_seconds;
    if (n_blocks < c->n_threads)
        idle = c->multiply_seconds * (c->n_threads / n_blocks - 1);
    ends =
        min_f64(n_tiles * c->block_seconds, t->moving * EDGE_SHARE) * (1 / n_down + 1 / n_across);
    few = n_blocks < c->enough_blocks
              ? min_f64(c->multiply_seconds * (1 - n_blocks / c->enough_blocks),
                        t->moving * IDLE_SHARE)
              : 0;
    return c->multiply_seconds + idle + ends + few;
}

/* What works at the same time, or one after the other. */
static double together(bool is_at_once, double a, double b)
{
    double slower = max_f64(a, b);

    return is_at_once ? slower + HIDDEN_SHARE * (a + b - slower) : a + b;
}

/* Of a device: the first panels are waited for, and C as it leaves, but for what of it a tile's
 * last panel and the next tile's first one hide. */
static double ending(const struct product_costs *c, const struct product_tile *t,
                     const struct tile_counts *n, double outside)
{
    double n_tiles = n->rows * n->columns * n->matrices * max_f64(c->n_outer, 1);
    double leaving = c->result_link / n_tiles;
    double panel = c->multiply_seconds / n_tiles / (double)t->n_panels;
    double hidden = t->has_two_buffers ? panel : 0;

    return outside / n_tiles / (double)t->n_panels + max_f64(leaving - hidden, 0) +
           (n_tiles - 1) * max_f64(leaving - 2 * hidden, 0);
}

/* Seconds that the whole product's moving would take if all tiles were of this kind. outside: of
 * host and link together, beside which a device multiplies. */
struct moved {
    double host, disk, link, panels, outside;
};

static struct moved move(const struct product_costs *c, const struct product_tile *t,
                         const struct tile_counts *n, const struct tile_kind *kind)
{
    struct moved m = {.host = storing(c, t)};

    for (int side = 0; side < 2; side++) {
        const struct product_way *way = &c->ways[side];
        double times = times_read(c->product, n, kind, (enum product_pass)side) * way->n_times *
                       (way->has_matrices ? 1 : n->matrices);
        double pieces = times * in_pieces(c->product, t, side);
        m.host += way->host * pieces;
        m.disk += way->disk * pieces;
        m.link += way->link * times;
        m.panels += way->kernel * times;
    }
    /* Boxes of one panel follow each other through host and link. */
    m.outside = together(true, m.host + m.disk + c->result_host, max_f64(m.link, c->result_link));
    return m;
}

void product_cost(const struct product_costs *c, struct product_tile *t)
{
    const struct tile_counts n = count_tiles(c->product, t);
    struct tile_kind kinds[2];
    struct moved moved[2];

    tell_kinds(c->product, t, &n, kinds);
    t->moving = t->seconds = 0;
    for (int i = 0; i < 2; i++) {
        moved[i] = move(c, t, &n, &kinds[i]);
        t->moving +=
            kinds[i].share * (moved[i].host + moved[i].disk + moved[i].link + moved[i].panels);
    }
    double kernel = multiplying(c, t, &n);
    bool is_two = t->has_two_buffers;
    for (int i = 0; i < 2; i++) {
        const struct moved *m = &moved[i];
        double seconds = c->has_link ? together(is_two, m->outside, kernel + m->panels)
                                     : together(is_two, m->disk, m->host + packing(c, t) + kernel);
        t->seconds += kinds[i].share * seconds;
    }
    if (c->has_link)
        t->seconds += ending(c, t, &n, moved[0].outside);
}

bool product_cost_prefers_two(const struct product_costs *c, const struct product_tile *one,
                              const struct product_tile *two)
{
    bool has_disk = c->ways[0].disk > 0 || c->ways[1].disk > 0;

    if (one->n_bytes == 0 || two->n_bytes == 0)
        return two->n_bytes > 0;
    double more = max_f64(two->moving - one->moving, 0);
    if (c->has_link || has_disk)
        return two->seconds + more / MORE_SHARE <= one->seconds;
    return two->moving <= one->moving + one->moving / DOUBLE_SHARE;
}
