/* Transposing files: grains that are long along the output's runs, read by tiles at once.
 *
 * A pass that only reads one file and writes another, whose fastest axes differ, would have blocks
 * of a grain's size, so that runs of both are short, and a system call for each. Instead a grain is
 * long along the output's fastest axis and narrow along the source's, and the grains of a tile are
 * neighbours along that one. Then the tile's part of the source is a block with longer runs: it is
 * read at once, into memory of the tile's in the job's carry, and its grains read from there.
 *
 *     source  | tile: rows x (grains side by side) |     output   | a grain: few long rows |
 *
 * The rows of that block are PAD_BYTES further apart than they are long, so that a column does not
 * lie in few sets of a cache. Nothing is reduced, so results do not depend on it; where the pool is
 * too small for blocks that are worth it, and with a device, grains are as always.
 *
 * Called by passes.c.
 */
#include "kernels/plan/cutter.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#define LONG_RUN_BYTES  (16 * 1024)
#define SHORT_RUN_BYTES 64
#define LEAST_RUN_BYTES 8192 /* of the output's: with shorter ones blocks are as good */
#define LEAST_ROW_BYTES 1024
#define MOST_ROW_BYTES  8192
#define PAD_BYTES       64
#define LEAST_BYTES     (UINT64_C(16) << 20) /* of the array */

/* The fastest axis of an operand of the whole space; -1: there is none. */
static int fastest_axis(const struct geometry_operand *operand)
{
    int fastest = -1;

    for (int i = 0; i < operand->ndim; i++) {
        if (operand->shape[i] > 1 && operand->strides[i] != 0 &&
            (fastest < 0 || llabs(operand->strides[i]) < llabs(operand->strides[fastest])))
            fastest = i;
    }
    return fastest;
}

static bool is_plain_file(const struct planned_operand *operand, const struct pass *pass)
{
    const struct geometry_operand *shape = &operand->shape;

    if (operand->kind != LOCATION_FILE || shape->chunk_shape || !shape->strides ||
        shape->ndim != pass->ndim)
        return false;
    for (int i = 0; i < pass->ndim; i++) {
        if (shape->shape[i] != pass->shape[i])
            return false;
    }
    return true;
}

static bool is_dense(const struct geometry_operand *operand, int axis)
{
    return axis >= 0 && llabs(operand->strides[axis]) == (int64_t)dtype_size(operand->dtype);
}

static uint64_t block_bytes(const struct geometry_rules *rules, uint64_t row_bytes)
{
    return round_up_u64((uint64_t)rules->strip_extents[0] * (row_bytes + PAD_BYTES), 64);
}

/* Blocks that exist at a time: one for each thread. */
static unsigned n_blocks(const struct planner *p)
{
    return (unsigned)min_u64(max_u64(p->limits->n_threads, 1), PLAN_MAX_WINDOW);
}

/* The longest rows of the source such that each thread may have a block of them. */
static unsigned choose_log2(const struct planner *p, const struct geometry_rules *rules,
                            uint64_t grain_bytes)
{
    unsigned k = 0;

    while ((grain_bytes << (k + 1)) <= MOST_ROW_BYTES &&
           block_bytes(rules, grain_bytes << (k + 1)) * n_blocks(p) <= p->limits->carry_limit_bytes)
        k++;
    return k;
}

bool planner_choose_strips(const struct planner *p, unsigned index, struct geometry_rules *rules)
{
    const struct pass *pass = &p->program->passes[index];

    if (p->limits->is_device || p->program->n_reductions > 0 || p->n_operands != 2 ||
        !is_plain_file(&p->operands[0], pass) || !is_plain_file(&p->operands[1], pass))
        return false;
    bool is_first_output = p->operands[0].shape.is_output;
    const struct geometry_operand *from = &p->operands[is_first_output ? 1 : 0].shape;
    const struct geometry_operand *to = &p->operands[is_first_output ? 0 : 1].shape;
    int row = fastest_axis(to), column = fastest_axis(from);
    if (from->is_output || !to->is_output || row == column || !is_dense(to, row) ||
        !is_dense(from, column))
        return false;
    int64_t item = (int64_t)max_u64(dtype_size(from->dtype), dtype_size(to->dtype));
    uint64_t n_bytes = (uint64_t)item;
    for (int i = 0; i < pass->ndim; i++)
        n_bytes *= (uint64_t)pass->shape[i]; /* counted before: within 63 bits */
    rules->strip_axes[0] = row;
    rules->strip_axes[1] = column;
    rules->strip_extents[0] =
        (int64_t)min_u64((uint64_t)pass->shape[row], (uint64_t)(LONG_RUN_BYTES / item));
    rules->strip_extents[1] = SHORT_RUN_BYTES / item;
    uint64_t grain_bytes = (uint64_t)rules->strip_extents[1] * dtype_size(from->dtype);
    return n_bytes >= LEAST_BYTES && rules->strip_extents[0] * item >= LEAST_RUN_BYTES &&
           pass->shape[column] * item >= LEAST_ROW_BYTES &&
           (grain_bytes << choose_log2(p, rules, grain_bytes)) >= LEAST_ROW_BYTES;
}

void planner_set_strips(const struct planner *p, unsigned index, const struct geometry_rules *rules)
{
    struct plan_pass *planned = &p->plan->passes[index];
    const struct planned_operand *from = &p->operands[p->operands[0].shape.is_output ? 1 : 0];
    uint64_t grain_bytes = (uint64_t)rules->strip_extents[1] * dtype_size(from->shape.dtype);

    planned->tile_log2 = choose_log2(p, rules, grain_bytes);
    planned->strip_row_bytes = (grain_bytes << planned->tile_log2) + PAD_BYTES;
    planned->strip_axis = rules->strip_axes[0];
    planned->node_bytes = block_bytes(rules, grain_bytes << planned->tile_log2);
    planned->stack_nodes = 1;
    planned->has_tree = false;
    planned->tree.window = n_blocks(p);
    planner_count_tiles(planned);
}
