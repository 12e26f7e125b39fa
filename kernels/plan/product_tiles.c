/* How much of C a product computes at a time, and where everything lies in the carry.
 *
 * A tile of C with rows x columns reads an element of the left operand once for each column of
 * tiles, one of the right once for each row of tiles. So traffic is least where a tile is large and
 * nearly square; of all extents that fit the carry, in whole blocks, that with the least bytes is
 * taken, and of about the same the one that needs least memory. Then extents are made nearly equal.
 *
 *     carry:  | tile of C | left panel | right panel | left panel | right panel | kept | kept | ...
 *
 * What lies in short pieces costs more to read and to store (SHORT_BYTES), so panels may be several
 * steps deep, up to DEEP_BYTES along an operand's fastest axis. What is left of the carry keeps
 * panels of the operand that tiles share which follow each other; keeping all of it, with less for
 * C, is tried as well.
 *
 * The second pair of panels is there so that one panel loads while another multiplies. It is given
 * up where tiles would be so much smaller that it costs more than 1 / DOUBLE_SHARE of traffic, or
 * where only one pair fits. Lines that are a multiple of many cache lines apart are moved by one,
 * where there is room.
 *
 * None of that changes a bit of the result. Called by plan.c.
 */
#include "kernels/plan/cutter.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <inttypes.h>
#include <math.h>

#define DOUBLE_SHARE       6
#define CLOSE_COST         1.01
#define EDGE_COST          0.1
#define PACKED_EXTENT      1152
#define PACKED_LINES       3 /* one of them is stored while others are multiplied */
#define PACKED_SHARE       4
#define IDLE_COST          1.5 /* of a tile with too few blocks for the threads */
#define BLOCKS_PER_THREAD  4
#define BLOCKS_OF_DEVICE   4
#define MAX_CANDIDATES     256
#define LEAST_PADDED_BYTES 1024
#define SHORT_BYTES        512 /* a piece's cost beside that of its bytes */
#define SHORT_STORE_BYTES  4096
#define DEEP_BYTES         8192
#define MAX_EXTENT         (INT64_C(1) << 30)

struct tile_choice {
    int64_t matrices, rows, columns, panel_depth;
    uint64_t n_panels, n_kept;
    bool has_two_buffers, is_padded;
    uint64_t n_bytes;
    double cost;
};

struct chooser {
    struct planner *p;
    uint64_t limit_bytes;
    double operand_bytes[2]; /* of one pass through all of it */
    bool has_matrices[2];    /* one for each of the last batch axis */
    bool has_two_buffers, is_padded, keeps_all, is_stored_by_columns;
    int64_t panel_depth;
    uint64_t n_panels;
    struct tile_choice best;
    uint64_t least_bytes; /* of all that were tried */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least_one(int64_t a)
{
    return a > 0 ? a : 1;
}

static int64_t line_bytes(int64_t n_elements, int64_t item_bytes, bool is_padded)
{
    int64_t n = multiply_saturating(n_elements, item_bytes);

    if (!is_padded || n < LEAST_PADDED_BYTES || n > INT64_MAX / 2)
        return n;
    n = (int64_t)round_up_u64((uint64_t)n, PLANNER_CARRY_ALIGN);
    return n % LEAST_PADDED_BYTES == 0 ? n + PLANNER_CARRY_ALIGN : n;
}

/* Parts of an axis, of a matrix: one where it is empty, as planes of tiles are counted. */
static uint64_t n_tiles_along(int64_t length, int64_t extent)
{
    return (uint64_t)divide_up(at_least_one(length), extent);
}

static enum product_pass kept_pass(const struct plan_product *product,
                                   const struct tile_choice *choice)
{
    return n_tiles_along(product->n_columns, choice->columns) > 1 ? PRODUCT_LEFT : PRODUCT_RIGHT;
}

static bool has_buffers(const struct plan_product *product, const struct tile_choice *choice,
                        int side)
{
    return kept_pass(product, choice) != (enum product_pass)side || choice->n_panels == 1 ||
           choice->n_kept < choice->n_panels;
}

/* Where everything lies; returns the bytes of the carry. */
static uint64_t lay_out(const struct chooser *c, const struct tile_choice *choice,
                        struct plan_product *ret)
{
    const int64_t outer[2] = {choice->rows, choice->columns};
    int64_t depth = least(choice->panel_depth, at_least_one(ret->depth));
    uint64_t offset;

    ret->panel_depth = choice->panel_depth;
    ret->n_panels = choice->n_panels;
    ret->n_kept = choice->n_kept;
    ret->kept_pass = kept_pass(ret, choice);
    ret->n_sharing = ret->kept_pass == PRODUCT_LEFT ? n_tiles_along(ret->n_columns, choice->columns)
                                                    : n_tiles_along(ret->n_rows, choice->rows);
    ret->has_two_buffers = choice->has_two_buffers;
    ret->result_offset_bytes = 0;
    ret->result_line_bytes = line_bytes(choice->columns, ret->item_bytes, choice->is_padded);
    ret->result_matrix_bytes = multiply_saturating(ret->result_line_bytes, choice->rows);
    ret->tile_bytes = (uint64_t)multiply_saturating(ret->result_matrix_bytes, choice->matrices);
    if (ret->tile_bytes > INT64_MAX / 8)
        return UINT64_MAX;
    offset = round_up_u64(ret->tile_bytes, PLANNER_CARRY_ALIGN);
    for (int buffer = 0; buffer < 2; buffer++) {
        for (int side = 0; side < 2; side++) {
            bool is_along = ret->is_depth_fastest[side];
            int64_t n_lines = is_along ? outer[side] : depth;
            ret->panel_line_bytes[side] =
                line_bytes(is_along ? depth : outer[side], ret->item_bytes, choice->is_padded);
            ret->panel_matrix_bytes[side] =
                multiply_saturating(ret->panel_line_bytes[side], n_lines);
            int64_t n = multiply_saturating(ret->panel_matrix_bytes[side],
                                            c->has_matrices[side] ? choice->matrices : 1);
            if (n > INT64_MAX / 8)
                return UINT64_MAX;
            uint64_t n_bytes = round_up_u64((uint64_t)n, PLANNER_CARRY_ALIGN);
            ret->panel_offset_bytes[side][buffer] =
                buffer == 1 && !choice->has_two_buffers ? ret->panel_offset_bytes[side][0] : offset;
            if (has_buffers(ret, choice, side) && (buffer == 0 || choice->has_two_buffers))
                offset += n_bytes;
            if (side == (int)ret->kept_pass)
                ret->kept_bytes = n_bytes;
        }
    }
    ret->kept_offset_bytes = offset;
    uint64_t n_kept = choice->n_panels > 1 ? choice->n_kept : 0, kept_bytes;
    if (__builtin_mul_overflow(n_kept, ret->kept_bytes, &kept_bytes) || kept_bytes > INT64_MAX / 8)
        return UINT64_MAX;
    return offset + kept_bytes;
}

/* Nearly equal parts of an axis, in whole blocks. */
static int64_t even_out(int64_t length, int64_t extent, int64_t block)
{
    int64_t n_parts = divide_up(at_least_one(length), extent);
    int64_t n_blocks = divide_up(divide_up(at_least_one(length), n_parts), block);

    return n_parts == 1 ? at_least_one(length) : n_blocks * block;
}

static uint64_t n_parts(int64_t length, int64_t extent)
{
    return length > 0 ? (uint64_t)divide_up(length, extent) : 0;
}

/* Of a byte, more for what lies in pieces of so many elements. */
static double cost_of_pieces(const struct plan_product *product, int64_t n_elements)
{
    return 1 + SHORT_BYTES / ((double)n_elements * (double)product->item_bytes);
}

static double cost_of_panel(const struct plan_product *product, const struct tile_choice *t,
                            int side)
{
    int64_t depth = least(t->panel_depth, at_least_one(product->depth));
    int64_t outer = side == PRODUCT_LEFT ? t->rows : t->columns;

    return cost_of_pieces(product, product->is_depth_fastest[side] ? depth : outer);
}

/* How much of a tile is multiplied at a time, in about so many lines. */
static double packed_extent(int64_t tile, int64_t block, int64_t n_lines)
{
    int64_t n = tile / n_lines;

    n = n < block ? block : n;
    return (double)least(n, PACKED_EXTENT);
}

/* Bytes that a library rearranges before it multiplies floats: an operand anew for each such part
 * of the other's rows or columns. It takes about as long as reading them. */
static double packed_bytes(const struct chooser *c, const struct tile_choice *t)
{
    const struct plan_product *product = &c->p->plan->product;

    if (c->p->limits->is_device || !dtype_is_float(c->p->program->product.dtype))
        return 0;
    return product->n_operations / 2 * (double)product->item_bytes *
           (1 / packed_extent(t->rows, product->block_rows, PACKED_LINES) +
            1 / packed_extent(t->columns, product->block_columns, 1));
}

/* What C's pieces, a line of a tile each, cost beside their bytes. */
static double cost_of_storing(const struct chooser *c, const struct tile_choice *t)
{
    const struct plan_product *product = &c->p->plan->product;
    double n = product->n_operations / 2 / (double)at_least_one(product->depth);

    if (c->p->limits->is_device)
        return 0;
    return n / (double)(c->is_stored_by_columns ? t->rows : t->columns) * SHORT_STORE_BYTES;
}

/* More for thin tiles, which have few lines of blocks: one stores while others are multiplied. */
static double cost_of_edges(const struct plan_product *product, const struct tile_choice *t)
{
    return 1 + EDGE_COST * ((double)product->block_rows / (double)t->rows +
                            (double)product->block_columns / (double)t->columns);
}

/* Bytes that are read and packed for C; more where the threads would have too little to do at a
 * time. */
static double cost_of(const struct chooser *c, const struct tile_choice *t)
{
    const struct plan_product *product = &c->p->plan->product;
    uint64_t n_enough = BLOCKS_PER_THREAD * max_u64(c->p->limits->n_threads, 1);
    uint64_t n_rows = n_parts(product->n_rows, t->rows), n = 1;
    uint64_t n_columns = n_parts(product->n_columns, t->columns);
    uint64_t n_matrices = n_parts(product->n_matrices, t->matrices);
    double kept = (double)t->n_kept / (double)t->n_panels;
    double left = c->operand_bytes[0] * (kept + (1 - kept) * (double)n_columns);
    double right = c->operand_bytes[1] * (double)n_rows;

    if (n_columns <= 1)
        right = c->operand_bytes[1] * (kept + (1 - kept) * (double)n_rows);

    if (c->p->limits->is_device)
        n_enough = BLOCKS_OF_DEVICE;
    if (product->is_symmetric)
        left = right = c->operand_bytes[0] * (double)(n_rows + 1) / 2;

    left *= cost_of_panel(product, t, PRODUCT_LEFT) * (c->has_matrices[0] ? 1 : (double)n_matrices);
    right *=
        cost_of_panel(product, t, PRODUCT_RIGHT) * (c->has_matrices[1] ? 1 : (double)n_matrices);
    n = (uint64_t)divide_up(t->rows, product->block_rows) *
        (uint64_t)divide_up(t->columns, product->block_columns) *
        (uint64_t)divide_up(t->matrices, product->block_matrices);
    bool is_all = n_rows * n_columns * n_matrices <= 1;
    bool is_idle = !is_all && n < n_enough;
    double sum = (left + right) * (is_all ? 1 : cost_of_edges(product, t)) + cost_of_storing(c, t);
    return (sum + packed_bytes(c, t) / PACKED_SHARE) * (is_idle ? IDLE_COST : 1);
}

static bool fits(struct chooser *c, struct tile_choice *t)
{
    struct plan_product scratch = c->p->plan->product;

    if (t->rows > MAX_EXTENT || t->columns > MAX_EXTENT || t->matrices > MAX_EXTENT)
        return false;
    t->has_two_buffers = c->has_two_buffers;
    t->is_padded = c->is_padded;
    t->panel_depth = c->panel_depth;
    t->n_panels = c->n_panels;
    t->n_kept = c->keeps_all ? c->n_panels : 0;
    t->n_bytes = lay_out(c, t, &scratch);
    c->least_bytes = min_u64(c->least_bytes, t->n_bytes);
    return t->n_bytes <= c->limit_bytes;
}

/* The most whole blocks of C's columns that fit beside the other two. */
static bool widest(struct chooser *c, struct tile_choice *t)
{
    const struct plan_product *product = &c->p->plan->product;
    int64_t block = product->block_columns, length = at_least_one(product->n_columns);
    int64_t good = 0, bad = divide_up(length, block) + 1;

    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        t->columns = least(multiply_saturating(middle, block), length);
        if (fits(c, t))
            good = middle;
        else
            bad = middle;
    }
    t->columns = even_out(length, good > 0 ? good * block : block, block);
    return good > 0;
}

/* As many panels of the operand that is shared as there is room for. With one panel, it is in a
 * buffer. */
static void keep_panels(const struct chooser *c, struct tile_choice *t)
{
    struct plan_product scratch = c->p->plan->product;

    t->n_kept = 0;
    uint64_t room = c->limit_bytes - lay_out(c, t, &scratch);
    if (scratch.is_symmetric || scratch.n_sharing <= 1)
        return;
    t->n_kept = t->n_panels;
    if (t->n_panels == 1 || lay_out(c, t, &scratch) <= c->limit_bytes)
        return;
    t->n_kept = min_u64(room / max_u64(scratch.kept_bytes, 1), t->n_panels - 1);
}

static void consider(struct chooser *c, struct tile_choice *t)
{
    const struct tile_choice *best = &c->best;

    keep_panels(c, t);
    t->cost = cost_of(c, t);
    bool is_better = best->n_bytes == 0 || t->cost * CLOSE_COST < best->cost ||
                     (t->cost < best->cost * CLOSE_COST && t->n_bytes < best->n_bytes);
    if (is_better)
        c->best = *t;
}

static void try_rows(struct chooser *c, int64_t matrices)
{
    const struct plan_product *product = &c->p->plan->product;
    int64_t length = at_least_one(product->n_rows);
    int64_t n_blocks = divide_up(length, product->block_rows), step = 1;

    for (int64_t i = 1; i <= n_blocks; i += step) {
        struct tile_choice t = {.matrices = matrices,
                                .rows =
                                    even_out(length, i * product->block_rows, product->block_rows)};
        t.columns = t.rows;
        if (!product->is_symmetric && !widest(c, &t))
            return;
        if (fits(c, &t))
            consider(c, &t);
        step = i < MAX_CANDIDATES ? 1 : i / MAX_CANDIDATES * 2;
        if (i < n_blocks && i + step > n_blocks)
            step = n_blocks - i;
    }
}

static void try_matrices(struct chooser *c)
{
    const struct plan_product *product = &c->p->plan->product;
    int64_t length = at_least_one(product->n_matrices), n = product->block_matrices;

    for (;;) {
        try_rows(c, even_out(length, least(n, length), product->block_matrices));
        if (n >= length)
            return;
        n = least(2 * n, divide_up(length, product->block_matrices) * product->block_matrices);
    }
}

/* At most so many steps a panel, evenly. */
static void set_panels(struct chooser *c, int64_t n_steps)
{
    const struct plan_product *product = &c->p->plan->product;
    int64_t n_all = (int64_t)product->n_depth_steps;

    c->n_panels = (uint64_t)divide_up(n_all, n_steps);
    c->panel_depth = divide_up(n_all, (int64_t)c->n_panels) * product->step_depth;
    c->n_panels = (uint64_t)divide_up(n_all, c->panel_depth / product->step_depth);
}

static int64_t most_steps(const struct plan_product *product)
{
    bool has_short = product->is_depth_fastest[0] || product->is_depth_fastest[1];
    int64_t step_bytes = multiply_saturating(product->step_depth, product->item_bytes);

    return has_short ? at_least_one(DEEP_BYTES / step_bytes) : 1;
}

/* A device's library takes other kernels, and may add in another order, where lines are aligned
 * otherwise: there they are the same for every pool. */
static bool may_be_unpadded(const struct chooser *c)
{
    return !c->p->limits->is_device;
}

static void try_all(struct chooser *c, bool has_two_buffers, bool is_padded)
{
    const struct plan_product *product = &c->p->plan->product;

    c->has_two_buffers = has_two_buffers;
    c->is_padded = is_padded;
    c->best = (struct tile_choice){.n_bytes = 0};
    for (int64_t n_steps = most_steps(product); n_steps > 0; n_steps /= 2) {
        set_panels(c, n_steps);
        c->keeps_all = false;
        try_matrices(c);
        c->keeps_all = !product->is_symmetric && c->n_panels > 1;
        if (c->keeps_all)
            try_matrices(c);
        c->keeps_all = false;
    }
}

static int refuse(const struct chooser *c, uint64_t needed)
{
    error_set(c->p->error, GAD_TOO_LARGE_FOR_POOL, "pool",
              "the product needs %" PRIu64 " bytes of the pool for a block of the result and what "
              "is multiplied for it, there are %" PRIu64 ": take a larger pool",
              needed, c->limit_bytes);
    error_expected(c->p->error, "%" PRIu64 " bytes", needed);
    error_found(c->p->error, "%" PRIu64 " bytes", c->limit_bytes);
    return GAD_TOO_LARGE_FOR_POOL;
}

static bool is_extent(int64_t given, int64_t length, int64_t block)
{
    length = at_least_one(length);
    return given > 0 && given <= length && (given == length || given % block == 0);
}

/* As a journal has them, which is a file of the client's. */
static int take_given(struct chooser *c)
{
    const struct plan_product *product = &c->p->plan->product;
    const int64_t *given = c->p->limits->product_tile;
    struct tile_choice t = {.matrices = given[0], .rows = given[1], .columns = given[2]};
    bool is_tile = is_extent(given[0], product->n_matrices, product->block_matrices) &&
                   is_extent(given[1], product->n_rows, product->block_rows) &&
                   is_extent(given[2], product->n_columns, product->block_columns) &&
                   (!product->is_symmetric || given[1] == given[2]);

    if (!is_tile)
        return error_set(c->p->error, GAD_BAD_JOURNAL, "journal",
                         "the journal is damaged: its tiles are not of whole blocks");
    for (int i = 0; i < 4; i++) {
        c->has_two_buffers = i < 2;
        c->is_padded = i % 2 == 0;
        if (!c->is_padded && !may_be_unpadded(c))
            continue;
        for (int64_t n_steps = most_steps(product); n_steps > 0; n_steps /= 2) {
            set_panels(c, n_steps);
            if (!fits(c, &t))
                continue;
            keep_panels(c, &t);
            c->best = t;
            return 0;
        }
    }
    return refuse(c, t.n_bytes);
}

static bool has_given(const struct plan_limits *limits)
{
    const int64_t *given = limits->product_tile;
    return given[0] != 0 || given[1] != 0 || given[2] != 0;
}

static int choose(struct chooser *c)
{
    if (has_given(c->p->limits))
        return take_given(c);
    try_all(c, false, true);
    struct tile_choice one = c->best;
    try_all(c, true, true);
    bool has_two = c->best.n_bytes > 0 &&
                   (one.n_bytes == 0 || c->best.cost <= one.cost + one.cost / DOUBLE_SHARE);
    if (!has_two)
        c->best = one;
    if (c->best.n_bytes == 0 && may_be_unpadded(c))
        try_all(c, false, false);
    return c->best.n_bytes > 0 ? 0 : refuse(c, c->least_bytes);
}

/* All of it ---------------------------------------------------------------------------------- */

static bool count_tiles(const struct program *program, struct plan_product *product)
{
    uint64_t n = 1;

    product->n_matrix_tiles = n_parts(product->n_matrices, product->tile_matrices);
    product->n_row_tiles = n_parts(product->n_rows, product->tile_rows);
    product->n_column_tiles = n_parts(product->n_columns, product->tile_columns);
    for (int i = 0; i + 1 < program->product.n_batch_axes; i++)
        n = (uint64_t)multiply_saturating((int64_t)n, program->product.batch_shape[i]);
    if (product->n_row_tiles > UINT32_MAX / 2 || product->n_column_tiles > UINT32_MAX / 2)
        return false;
    n = (uint64_t)multiply_saturating((int64_t)n, (int64_t)product->n_matrix_tiles);
    n = (uint64_t)multiply_saturating((int64_t)n, (int64_t)planner_matrix_tiles(product));
    product->n_tiles = n;
    return n < INT64_MAX;
}

static void set_axes(const struct program *program, struct plan_product *ret)
{
    const struct program_product *product = &program->product;
    const struct pass *passes = program->passes;
    int left = passes[PRODUCT_LEFT].ndim, right = passes[PRODUCT_RIGHT].ndim;
    int n_batch = product->n_batch_axes;

    ret->axes[PRODUCT_LEFT] = (struct product_axes){.n_batch = left - 1 - product->has_rows,
                                                    .row = product->has_rows ? left - 2 : -1,
                                                    .column = -1,
                                                    .depth = left - 1};
    ret->axes[PRODUCT_RIGHT] =
        (struct product_axes){.n_batch = right - 1 - product->has_columns,
                              .row = -1,
                              .column = product->has_columns ? right - 1 : -1,
                              .depth = right - 1 - product->has_columns};
    ret->axes[PRODUCT_RESULT] =
        (struct product_axes){.n_batch = n_batch,
                              .row = product->has_rows ? n_batch : -1,
                              .column = product->has_columns ? n_batch + product->has_rows : -1,
                              .depth = -1};
}

static void start_choice(struct planner *p, struct chooser *ret)
{
    const struct plan_limits *limits = p->limits;

    *ret = (struct chooser){.p = p, .least_bytes = UINT64_MAX};
    ret->limit_bytes = max_u64(limits->carry_limit_bytes, limits->product_carry_bytes);
    ret->is_stored_by_columns = planner_product_rows_are_fastest(p);
    for (unsigned i = 0; i < 2; i++) {
        enum product_pass pass = (enum product_pass)i;
        const struct pass *space = &p->program->passes[i];
        int last = p->plan->product.axes[i].n_batch - 1;
        ret->operand_bytes[i] = planner_product_operand_bytes(p, pass);
        ret->has_matrices[i] = last >= 0 && space->shape[last] > 1;
        p->plan->product.is_depth_fastest[i] = planner_product_depth_is_fastest(p, pass);
    }
}

static double n_operations(const struct program_product *product,
                           const struct plan_product *planned)
{
    double n = 2.0 * (double)product->n_rows * (double)product->n_columns * (double)product->depth;
    double n_blocks = (double)divide_up(at_least_one(product->n_rows), planned->block_rows);

    if (product->is_symmetric)
        n *= (n_blocks + 1) / (2 * n_blocks);
    for (int i = 0; i < product->n_batch_axes; i++)
        n *= (double)product->batch_shape[i];
    return n;
}

int planner_cut_product(struct planner *p)
{
    struct plan_product *product = &p->plan->product;
    struct chooser chooser;

    planner_product_blocks(p->program, p->limits->is_device, product);
    set_axes(p->program, product);
    product->n_operations = n_operations(&p->program->product, product);
    product->has_journal = p->request->has_journal;
    product->is_tf32 =
        p->request->tf32 && p->limits->has_tf32 && p->program->product.dtype == DTYPE_FLOAT32;
    start_choice(p, &chooser);
    int r = choose(&chooser);
    if (r)
        return r;
    product->tile_matrices = chooser.best.matrices;
    product->tile_rows = chooser.best.rows;
    product->tile_columns = chooser.best.columns;
    p->plan->carry_bytes = lay_out(&chooser, &chooser.best, product);
    p->plan->n_rounds = 1;
    for (unsigned i = 0; i < PRODUCT_N_PASSES && !r; i++)
        r = planner_cut_product_pass(p, (enum product_pass)i);
    if (r)
        return r;
    if (!count_tiles(p->program, product))
        return error_set(p->error, GAD_LIMIT_EXCEEDED, "shape",
                         "the job would have too many turns");
    r = planner_choose_turns(p);
    return r ? r : planner_count_product_bytes(p);
}
