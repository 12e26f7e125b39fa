/* Transposing files: what of the two sides a tile has in memory.
 *
 * A pass that only reads one file and writes another, whose fastest axes differ, would have blocks
 * of a grain's size, so that runs of both are short, and a system call for each. There are two
 * better ways; both keep a block of each tile in the job's carry.
 *
 * Mapped: a source that the system can keep in memory is not read but mapped. Then short runs of it
 * cost nothing, and the block is the output's: grains that are one line of the cache wide, side by
 * side along the output's rows, until the tile's part is whole rows, written at once.
 *
 *     source, mapped  | tile: a line of many rows |    output  | block: few whole rows |
 *
 * Read: the source may be larger than that, and what is near what was read is gone when the next
 * tile comes. So a grain is long along the output's fastest axis and narrow along the source's, and
 * the grains of a tile are neighbours along that one. The block is the source's, with longer runs:
 * it is read at once, and its grains read from there.
 *
 *     source  | block: rows x (grains side by side) |     output  | a grain: few long rows |
 *
 * The rows of that block are PAD_BYTES further apart than they are long, so that a column does not
 * lie in few sets of a cache. Nothing is reduced, so results do not depend on any of it; where the
 * pool is too small for blocks that are worth it, and with a device, grains are as always.
 *
 * Called by passes.c.
 */
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#define LONG_RUN_BYTES    (16 * 1024)
#define SHORT_RUN_BYTES   64
#define LEAST_RUN_BYTES   8192 /* of the output's: with shorter ones blocks are as good */
#define LEAST_ROW_BYTES   1024
#define MOST_ROW_BYTES    8192
#define PAD_BYTES         64
#define LEAST_BYTES       (UINT64_C(16) << 20) /* of the array */
#define MAPPED_SHARE      4                    /* of the memory, that a source may have */
#define MAPPED_WIDTH      64   /* bytes: a line of the cache; wider blocks leave it */
#define MAPPED_RUN_BYTES  1024 /* of the output's, at least */
#define MAPPED_ROW_BYTES  256  /* of the source's */
#define MOST_MAPPED_BYTES (UINT64_C(4) << 20) /* of a block */

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

/* What a pass moves, and along which axes each side is fastest. */
struct transfer {
    const struct geometry_operand *from, *to;
    int row, column; /* the fastest axes of `to` and of `from` */
    int64_t item;    /* bytes of the wider side's elements */
    uint64_t n_bytes;
};

static bool find_transfer(const struct planner *p, const struct pass *pass, struct transfer *ret)
{
    if (p->n_operands != 2 || p->operands[0].shape.reach || p->operands[1].shape.reach ||
        !is_plain_file(&p->operands[0], pass) || !is_plain_file(&p->operands[1], pass))
        return false;
    bool is_first_output = p->operands[0].shape.is_output;
    struct transfer t = {.from = &p->operands[is_first_output ? 1 : 0].shape,
                         .to = &p->operands[is_first_output ? 0 : 1].shape};
    t.row = fastest_axis(t.to);
    t.column = fastest_axis(t.from);
    if (t.from->is_output || !t.to->is_output || t.row == t.column || !is_dense(t.to, t.row) ||
        !is_dense(t.from, t.column))
        return false;
    t.item = (int64_t)max_u64(dtype_size(t.from->dtype), dtype_size(t.to->dtype));
    t.n_bytes = (uint64_t)t.item;
    for (int i = 0; i < pass->ndim; i++)
        t.n_bytes *= (uint64_t)pass->shape[i]; /* counted before: within 63 bits */
    *ret = t;
    return t.n_bytes >= LEAST_BYTES;
}

/* Blocks that exist at a time: one for each thread. */
static unsigned n_blocks(const struct planner *p)
{
    return (unsigned)min_u64(max_u64(p->limits->n_threads, 1), PLAN_MAX_WINDOW);
}

/* Mapped ------------------------------------------------------------------------------------- */

/* From the first byte of the operand to its last. */
static uint64_t extent_bytes(const struct geometry_operand *operand)
{
    uint64_t n_bytes = dtype_size(operand->dtype);
    for (int i = 0; i < operand->ndim; i++)
        n_bytes += (uint64_t)(operand->shape[i] - 1) * (uint64_t)llabs(operand->strides[i]);
    return n_bytes; /* an array's extent is within 63 bits */
}

static uint64_t mapped_block_bytes(const struct geometry_operand *to,
                                   const struct geometry_rules *rules, unsigned tile_log2)
{
    int row = rules->swath_axes[1];
    uint64_t length =
        min_u64((uint64_t)rules->swath_extents[1] << tile_log2, (uint64_t)to->shape[row]);
    return round_up_u64((uint64_t)rules->swath_extents[0] * length * dtype_size(to->dtype), 64);
}

/* While one is read ahead by another thread, each thread has one. */
static unsigned n_mapped_blocks(const struct planner *p)
{
    return (unsigned)min_u64(2 * n_blocks(p), PLAN_MAX_WINDOW);
}

static bool has_mapped_room(const struct planner *p, uint64_t n_bytes)
{
    return n_bytes <= MOST_MAPPED_BYTES &&
           n_bytes * n_mapped_blocks(p) <= p->limits->carry_limit_bytes;
}

/* The longest runs of the output, up to its whole rows. */
static unsigned choose_mapped_log2(const struct planner *p, const struct geometry_operand *to,
                                   const struct geometry_rules *rules)
{
    unsigned k = 0;
    while ((uint64_t)rules->swath_extents[1] << k < (uint64_t)to->shape[rules->swath_axes[1]] &&
           has_mapped_room(p, mapped_block_bytes(to, rules, k + 1)))
        k++;
    return k;
}

/* One line of the cache wide, or more where that makes grains larger. */
static void set_mapped_rules(const struct transfer *t, struct geometry_rules *rules)
{
    int64_t width = MAPPED_WIDTH / t->item;
    int64_t run =
        (int64_t)min_u64((uint64_t)t->to->shape[t->row], GRAIN_MAX_OPERAND_BYTES / MAPPED_WIDTH);
    while (2 * width <= t->from->shape[t->column] &&
           2 * width * run * t->item <= (int64_t)GRAIN_MAX_OPERAND_BYTES)
        width *= 2;
    rules->swath_axes[0] = t->column;
    rules->swath_axes[1] = t->row;
    rules->swath_extents[0] = width;
    rules->swath_extents[1] = run;
}

static bool choose_mapped(const struct planner *p, const struct transfer *t,
                          struct geometry_rules *rules)
{
    set_mapped_rules(t, rules);
    return extent_bytes(t->from) <= p->limits->memory_bytes / MAPPED_SHARE &&
           rules->swath_extents[1] * t->item >= MAPPED_RUN_BYTES &&
           t->from->shape[t->column] * t->item >= MAPPED_ROW_BYTES &&
           has_mapped_room(p, mapped_block_bytes(t->to, rules, 0));
}

static void set_mapped(const struct planner *p, const struct geometry_operand *to,
                       const struct geometry_rules *rules, struct plan_pass *planned)
{
    planned->tile_log2 = choose_mapped_log2(p, to, rules);
    planned->node_bytes = mapped_block_bytes(to, rules, planned->tile_log2);
    planned->swaths_are_mapped = true;
    planned->tree.window = n_mapped_blocks(p);
}

/* Read --------------------------------------------------------------------------------------- */

static uint64_t block_bytes(const struct geometry_rules *rules, uint64_t row_bytes)
{
    return round_up_u64((uint64_t)rules->swath_extents[0] * (row_bytes + PAD_BYTES), 64);
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

static bool choose_read(const struct planner *p, const struct transfer *t,
                        struct geometry_rules *rules)
{
    rules->swath_axes[0] = t->row;
    rules->swath_axes[1] = t->column;
    rules->swath_extents[0] =
        (int64_t)min_u64((uint64_t)t->to->shape[t->row], (uint64_t)(LONG_RUN_BYTES / t->item));
    rules->swath_extents[1] = SHORT_RUN_BYTES / t->item;
    uint64_t grain_bytes = (uint64_t)rules->swath_extents[1] * dtype_size(t->from->dtype);
    return rules->swath_extents[0] * t->item >= LEAST_RUN_BYTES &&
           t->from->shape[t->column] * t->item >= LEAST_ROW_BYTES &&
           (grain_bytes << choose_log2(p, rules, grain_bytes)) >= LEAST_ROW_BYTES;
}

static void set_read(const struct planner *p, const struct geometry_operand *from,
                     const struct geometry_rules *rules, struct plan_pass *planned)
{
    uint64_t grain_bytes = (uint64_t)rules->swath_extents[1] * dtype_size(from->dtype);

    planned->tile_log2 = choose_log2(p, rules, grain_bytes);
    planned->swath_row_bytes = (grain_bytes << planned->tile_log2) + PAD_BYTES;
    planned->swath_axis = rules->swath_axes[0];
    planned->node_bytes = block_bytes(rules, grain_bytes << planned->tile_log2);
    planned->tree.window = n_blocks(p);
}

/* -------------------------------------------------------------------------------------------- */

bool planner_choose_swaths(const struct planner *p, unsigned index, struct geometry_rules *rules)
{
    struct transfer t;

    if (!p->limits->engine->has_swaths || p->program->n_reductions > 0 ||
        !find_transfer(p, &p->program->passes[index], &t))
        return false;
    return choose_mapped(p, &t, rules) || choose_read(p, &t, rules);
}

void planner_set_swaths(const struct planner *p, unsigned index, const struct geometry_rules *rules)
{
    struct plan_pass *planned = &p->plan->passes[index];
    bool is_first_output = p->operands[0].shape.is_output;
    const struct geometry_operand *from = &p->operands[is_first_output ? 1 : 0].shape;
    const struct geometry_operand *to = &p->operands[is_first_output ? 0 : 1].shape;

    planned->has_swaths = true;
    planned->stack_nodes = 1;
    planned->has_tree = false;
    if (rules->swath_axes[1] == fastest_axis(to))
        set_mapped(p, to, rules, planned);
    else
        set_read(p, from, rules, planned);
    planner_count_tiles(planned);
}
