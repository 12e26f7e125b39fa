/* The memory of a pass's nodes: how large a node may be, how many tiles exist at a time.
 *
 * A node is at most NODE_BYTES, so that combining two stays in the cache, and with long runs
 * LONG_NODE_BYTES; but it has at least NODE_LEAST_CELLS cells, however many reductions there are.
 * Chunks that would be read several times may have larger ones, and so may counts: as many bytes as
 * they have bins, if they must.
 *
 * Tiles that exist at a time (the window): as many as keep all threads busy, also when the oldest
 * is slow; more where that costs little, since nobody waits for the oldest then. In a small pool
 * tiles become smaller first, then they become fewer; the geometry makes the nodes smaller if that
 * is not enough (passes.c). None of it changes a bit of the results.
 */
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#define NODE_BYTES            (128u * 1024)
#define LONG_NODE_BYTES       (256u * 1024)
#define NODE_LEAST_CELLS      256u
#define BESIDE_BYTES          (256u * 1024)
#define LINE_CELLS            8u
#define BINS_NODE_BYTES       (256u * 1024) /* with fewer cells the runs of files would be short */
#define BINS_CHUNK_NODE_BYTES (2048u * 1024)
#define SCAN_CELLS            (256u * 1024) /* any number that a grain may have: scans have no nodes */
#define CHEAP_BYTES           (1024u * 1024) /* for a window larger than is needed */

/* Of one cell. */
struct cell_values {
    uint64_t n_bytes;  /* in a node */
    uint64_t n_beside; /* values that the CPU's engine keeps beside one (kernels/cpu/engine.h) */
    bool has_bins;
};

static struct cell_values values_of(const struct program *program, unsigned pass)
{
    const struct pass *p = &program->passes[pass];
    struct cell_values v = {.has_bins = false};

    for (unsigned i = 0; i < p->n_reductions; i++) {
        const struct reduction *r = &program->reductions[p->first_reduction + i];
        unsigned n_planes = reduce_n_planes(r);
        v.n_bytes += n_planes * reduce_values_per_cell(r) * sizeof(union scalar);
        v.has_bins |= r->n_bins > 0;
        if (r->n_bins == 0)
            v.n_beside += n_planes + (r->op == OP_SQUARED_DEVIATIONS);
    }
    return v;
}

/* For so many cells the engine has room beside a node, in lines of LINE_CELLS. */
static uint64_t cells_beside(const struct cell_values *v)
{
    uint64_t line_bytes = LINE_CELLS * sizeof(union scalar);

    return v->n_beside == 0 ? UINT64_MAX : BESIDE_BYTES / line_bytes / v->n_beside * LINE_CELLS;
}

static uint64_t cells_with_bins(const struct cell_values *v, uint64_t node_bytes)
{
    return min_u64(max_u64(node_bytes / v->n_bytes, 1), cells_beside(v));
}

uint64_t planner_most_cells(const struct program *program, unsigned pass, uint64_t long_bytes)
{
    struct cell_values v = values_of(program, pass);

    if (v.n_bytes == 0)
        return 0;
    if (program->passes[pass].scanned_axis >= 0)
        return SCAN_CELLS;
    if (v.has_bins)
        return cells_with_bins(&v, BINS_NODE_BYTES);
    uint64_t n_cells = max_u64(NODE_BYTES / v.n_bytes, NODE_LEAST_CELLS);
    if (long_bytes > GRAIN_MAX_TOTAL_BYTES)
        n_cells = max_u64(n_cells, min_u64(LONG_NODE_BYTES / v.n_bytes, cells_beside(&v)));
    return n_cells;
}

uint64_t planner_chunk_cells(const struct program *program, unsigned pass)
{
    struct cell_values v = values_of(program, pass);

    if (v.n_bytes == 0)
        return 0;
    if (program->passes[pass].scanned_axis >= 0)
        return SCAN_CELLS;
    return v.has_bins ? cells_with_bins(&v, BINS_CHUNK_NODE_BYTES) : cells_beside(&v);
}

uint64_t planner_tree_bytes(const struct plan_pass *planned)
{
    if (planned->node_bytes == 0)
        return 0;
    return planned->has_tree ? reduce_tree_size_bytes(&planned->tree)
                             : planned->tree.window * planned->stack_nodes * planned->node_bytes;
}

static void set_window(struct plan_pass *planned, unsigned window)
{
    planned->tree.window = (unsigned)min_u64(window, max_u64(planned->round_tiles, 1));
}

static void set_shape(struct plan_pass *planned, bool is_flat)
{
    const struct geometry *g = &planned->geometry;

    planner_count_tiles(planned);
    planned->tree.node_bytes = planned->node_bytes;
    planned->tree.leaves_log2 = planned->tile_log2 - planned->leaf_log2;
    planned->tree.is_flat = is_flat;
    planned->tree.n_tiles = planned->round_tiles;
    planned->tree.chain_tiles = 1;
    if (g->chain_grains > 1)
        planned->tree.chain_tiles = planner_ceil_shift(g->chain_grains, planned->tile_log2);
    planned->has_tree = planned->tree.chain_tiles > 1;
    planned->stack_nodes =
        g->chain_grains > 1 ? reduce_stack_nodes(planned->tree.leaves_log2, is_flat) : 1;
}

/* The largest window that costs little, or the one that is needed. */
static void set_good_window(const struct planner *p, struct plan_pass *planned)
{
    unsigned n_busy = p->limits->engine->n_busy(p->limits), window = PLAN_MAX_WINDOW;

    for (;; window /= 2) {
        set_window(planned, window);
        if (window <= n_busy || planner_tree_bytes(planned) <= CHEAP_BYTES)
            return;
    }
}

bool planner_fit_nodes(const struct planner *p, unsigned pass)
{
    struct plan_pass *planned = &p->plan->passes[pass];
    struct reduce_layout layout;

    if (!planner_has_nodes(&p->program->passes[pass]) || planned->geometry.n_grains == 0)
        return true;
    reduce_layout_init(&layout, p->program, pass,
                       geometry_n_cells(&planned->geometry, planned->geometry.grain_shape));
    planned->node_bytes = layout.n_bytes;
    for (;; planned->tile_log2--) {
        set_shape(planned, layout.is_flat);
        set_good_window(p, planned);
        while (planner_tree_bytes(planned) > p->room.tree_bytes &&
               planned->tree.window / 2 >= p->room.least_window)
            set_window(planned, planned->tree.window / 2);
        if (planner_tree_bytes(planned) <= p->room.tree_bytes)
            return true;
        if (planned->tile_log2 == planned->leaf_log2)
            return false;
    }
}
