/* Tiles: how many grains of a pass make one. The size never changes results.
 *
 * A tile grows as long as the engine says that it suits (plan_engine.h).
 *
 * A provider's blocks come one by one into few slots. An engine that takes them grain by grain has
 * tiles of one, or a leaf: with several, few tiles would wait for all of the ring. One that takes
 * together what is there (blocks.c) has tiles of as many as a part of the ring has room for, so
 * that the client fills or drains the others meanwhile.
 *
 * Where the grains of a chain are several, a tile is of one chain alone, at most the whole of it;
 * where each is a chain of its own, a tile is of several chains. A scan's tile is of one step
 * alone: what a device computes at once does not depend on each other. But where each step is one
 * grain (of a vector) a tile has several, if the engine chains them: they wait for each other
 * there, not for the host.
 *
 * Where rows belong to many cells (a mean along the first axis) nodes are as large as a part of a
 * grain, so that combining one a grain would take as long as making it: some grains go into one
 * node, one after the other, which is a leaf of the chain's tree. That changes bits, so it follows
 * from the whole shapes, dtypes and layouts alone. A tile has whole leaves.
 *
 * Called by passes.c.
 */
#include "kernels/op_costs.h"
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#define TILES_A_SOURCE      2 /* at least: one is filled while the other is read */
#define TILES_A_SINK        4 /* likewise: room is taken before the device computes */
#define MAX_LEAF_LOG2       3
#define MAX_QR_LEAF_LOG2    8
#define QR_LEAF_ROWS        4 /* for each column: combining two triangles costs little beside them */
#define LEAF_MAX_WORK       8                  /* an element */
#define LEAF_LEAST_ELEMENTS (INT64_C(1) << 24) /* of the pass: there are tiles for all threads */

uint64_t planner_ceil_shift(uint64_t value, unsigned shift)
{
    return (value >> shift) + ((value & ((UINT64_C(1) << shift) - 1)) != 0);
}

/* Of a round's grains, n in number: where chains have several, a tile is of one chain; where they
 * are scanned, of one step, or of a chain of steps. */
static uint64_t count_tiles(const struct plan_pass *planned, uint64_t n, unsigned tile_log2)
{
    const struct geometry *g = &planned->geometry;

    if (g->n_steps > 0) {
        uint64_t run = planner_scan_run(planned);
        return n / run * planner_ceil_shift(run, tile_log2);
    }
    if (g->chain_grains == 1)
        return planner_ceil_shift(n, tile_log2);
    return n / g->chain_grains * planner_ceil_shift(g->chain_grains, tile_log2);
}

void planner_count_tiles(struct plan_pass *planned)
{
    const struct geometry *g = &planned->geometry;
    uint64_t first, n;

    geometry_round(g, g->n_rounds - 1, &first, &n);
    planned->round_tiles = count_tiles(planned, g->round_grains, planned->tile_log2);
    planned->n_tiles =
        (g->n_rounds - 1) * planned->round_tiles + count_tiles(planned, n, planned->tile_log2);
}

/* Tiles of a round, of a scan those of a step: that do not wait for each other. Of a chain of steps
 * all do, and the fewer there are the better. */
static uint64_t tiles_at(const struct plan_pass *planned, unsigned tile_log2)
{
    const struct geometry *g = &planned->geometry;

    if (planned->chains_steps)
        return UINT64_MAX;
    if (g->n_steps > 0)
        return planner_ceil_shift(geometry_step_grains(g), tile_log2);
    return count_tiles(planned, g->round_grains, tile_log2);
}

/* Whether larger tiles would still hold more grains. */
static bool can_grow(const struct plan_pass *planned, unsigned tile_log2)
{
    const struct geometry *g = &planned->geometry;
    uint64_t n = g->chain_grains > 1 ? g->chain_grains : g->round_grains;
    if (g->n_steps > 0)
        n = planner_scan_run(planned);
    return planner_ceil_shift(n, tile_log2) > 1;
}

static bool is_fastest_kept(const struct geometry *g)
{
    for (int i = g->ndim - 1; i >= 0; i--)
        if (g->shape[g->axis_order[i]] > 1)
            return !(g->reduced_axes >> g->axis_order[i] & 1);
    return false;
}

static unsigned choose_leaf_log2(const struct planner *p, unsigned index)
{
    const struct geometry *g = &p->plan->passes[index].geometry;
    const struct pass *pass = &p->program->passes[index];
    int64_t n_rows = 1, n_elements = 1;
    unsigned k = 0;

    int64_t n_columns = (int64_t)program_qr_columns(p->program, pass);
    if (!planner_has_nodes(pass) || g->chain_grains == 1 ||
        (n_columns == 0 && (!is_fastest_kept(g) || planner_work_per_element(pass) > LEAF_MAX_WORK)))
        return 0;
    int64_t most_rows = p->limits->engine->most_continued_rows(p->program, pass);
    for (int axis = 0; axis < g->ndim; axis++) {
        n_elements *= g->shape[axis]; /* 63 bits count them */
        if (g->reduced_axes >> axis & 1)
            n_rows *= g->grain_shape[axis];
    }
    bool has_many = n_elements >= LEAF_LEAST_ELEMENTS || p->plan->passes[index].has_stream;
    while (has_many && k < MAX_LEAF_LOG2 && n_rows << (k + 1) <= most_rows)
        k++;
    while (k < MAX_QR_LEAF_LOG2 && n_rows << k < QR_LEAF_ROWS * n_columns)
        k++;
    return k;
}

static uint64_t grain_worst_ns(const struct planner *p, unsigned index)
{
    const struct geometry *g = &p->plan->passes[index].geometry;
    uint64_t ns = op_pass_worst_ns(p->program, &p->program->passes[index]);

    for (int i = 0; i < g->ndim; i++)
        ns *= (uint64_t)g->grain_shape[i]; /* a grain has at most 2^18 elements */
    return ns;
}

uint64_t planner_ring_grains(const struct planner *p, const struct location *at, bool is_sink)
{
    if (at->kind != LOCATION_PROVIDER)
        return UINT64_MAX;
    if (!p->limits->engine->fills_slots)
        return 1;
    uint64_t n = at->provider.n_slots;
    if (at->provider.has_chunks) /* those that are blocks are of so many grains, or more */
        n *= at->provider.slot_bytes / GRAIN_MAX_OPERAND_BYTES;
    return max_u64(n / (is_sink ? TILES_A_SINK : TILES_A_SOURCE), 1);
}

/* The largest that suits the engine, of at most so many grains. */
static unsigned choose_tile_log2(const struct planner *p, unsigned index, uint64_t most_grains)
{
    const struct plan_pass *planned = &p->plan->passes[index];
    unsigned k = planned->leaf_log2;
    struct plan_tile_size size = {.program = p->program,
                                  .pass = index,
                                  .limits = p->limits,
                                  .room = &planned->room,
                                  .bytes = (planned->read_bytes + planned->write_bytes) /
                                           planned->geometry.n_grains,
                                  .worst_ns = grain_worst_ns(p, index)};

    if (program_qr_columns(p->program, &p->program->passes[index]) > 0)
        return k; /* triangles are combined leaf after leaf */
    for (; can_grow(planned, k) && UINT64_C(2) << k <= most_grains; k++) {
        size.n_grains = UINT64_C(2) << k;
        size.n_tiles = tiles_at(planned, k + 1);
        if (!p->limits->engine->suits_tile(&size))
            break;
    }
    return k;
}

void planner_choose_tiles(const struct planner *p, unsigned pass, uint64_t most_grains)
{
    struct plan_pass *planned = &p->plan->passes[pass];

    if (planned->geometry.n_grains > 0) {
        planned->chains_steps = p->limits->engine->chains_steps && planned->geometry.n_steps > 0 &&
                                geometry_step_grains(&planned->geometry) == 1;
        planned->leaf_log2 = choose_leaf_log2(p, pass);
        planned->tile_log2 = choose_tile_log2(p, pass, most_grains);
        if (p->limits->engine->can_pause)
            planned->tile_worst_ns = grain_worst_ns(p, pass) << planned->tile_log2;
    }
    planner_count_tiles(planned);
}
