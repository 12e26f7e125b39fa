/* How much of C a product computes at a time, and where everything lies in the carry.
 *
 * A tile of C with rows x columns reads an element of the left operand once for each column of
 * tiles, one of the right once for each row of tiles. So traffic is least where a tile is large and
 * nearly square, or longer along the operand that is slow to read. Of all extents that fit the
 * carry, in whole blocks, those are taken with which the product would take least time, by the
 * rates that were measured (product_cost.c), and of about the same moving those that need least
 * memory. Then extents are made nearly equal.
 *
 *     carry:  | tile of C | left panel | right panel | left panel | right panel | kept | kept | ...
 *
 * What lies in short pieces costs more to read and to store, so panels may be several steps deep,
 * up to DEEP_BYTES along an operand's fastest axis. What is left of the carry keeps panels of the
 * operand that tiles share which follow each other; keeping all of it, with less for C, is tried as
 * well.
 *
 * The second pair of panels is there so that one panel loads while another multiplies. It is given
 * up where only one pair fits, or where one is better (product_cost_prefers_two()). Lines that are
 * a multiple of many cache lines apart are moved by one, where there is room.
 *
 * Of numbers of rows that are large, not all are tried: each is about a FINE_SHARE-th larger than
 * the one before.
 *
 * Where not even one block fits, blocks become smaller (product_parts.c).
 *
 * None of that changes a bit of the result. Called by carry.c.
 */
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "kernels/products/product_cost.h"
#include "proto/util.h"

#include <inttypes.h>

#define CLOSE_SHARE        100 /* of the moving: about the same */
#define FINE_SHARE         16
#define LEAST_PADDED_BYTES 1024
#define DEEP_BYTES         8192
#define MAX_EXTENT         (INT64_C(1) << 30)

struct chooser {
    struct planner *p;
    struct product_costs costs;
    uint64_t limit_bytes;
    bool has_two_buffers, is_padded, keeps_all;
    int64_t panel_depth;
    uint64_t n_panels;
    struct product_tile best;
    uint64_t least_bytes; /* of all that were tried */
};

static int64_t line_bytes(int64_t n_elements, int64_t item_bytes, bool is_padded)
{
    int64_t n = mul_saturating_i64(n_elements, item_bytes);

    if (!is_padded || n < LEAST_PADDED_BYTES || n > INT64_MAX / 2)
        return n;
    n = (int64_t)round_up_u64((uint64_t)n, PLANNER_CARRY_ALIGN);
    return n % LEAST_PADDED_BYTES == 0 ? n + PLANNER_CARRY_ALIGN : n;
}

/* Parts of an axis, of a matrix: one where it is empty, as planes of tiles are counted. */
static uint64_t n_tiles_along(int64_t length, int64_t extent)
{
    return (uint64_t)divide_up_i64(max_i64(length, 1), extent);
}

static enum product_pass kept_pass(const struct plan_product *product,
                                   const struct product_tile *choice)
{
    return n_tiles_along(product->n_columns, choice->columns) > 1 ? PRODUCT_LEFT : PRODUCT_RIGHT;
}

static bool has_buffers(const struct plan_product *product, const struct product_tile *choice,
                        int side)
{
    return kept_pass(product, choice) != (enum product_pass)side || choice->n_panels == 1 ||
           choice->n_kept < choice->n_panels;
}

/* Where everything lies; returns the bytes of the carry. */
static uint64_t lay_out(const struct chooser *c, const struct product_tile *choice,
                        struct plan_product *ret)
{
    const int64_t outer[2] = {choice->rows, choice->columns};
    int64_t depth = min_i64(choice->panel_depth, max_i64(ret->depth, 1));
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
    ret->result_matrix_bytes = mul_saturating_i64(ret->result_line_bytes, choice->rows);
    ret->tile_bytes = (uint64_t)mul_saturating_i64(ret->result_matrix_bytes, choice->matrices);
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
                mul_saturating_i64(ret->panel_line_bytes[side], n_lines);
            int64_t n = mul_saturating_i64(
                ret->panel_matrix_bytes[side],
                product_panel_matrices(ret, (enum product_pass)side, choice->matrices));
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
    int64_t n_parts = divide_up_i64(max_i64(length, 1), extent);
    int64_t n_blocks = divide_up_i64(divide_up_i64(max_i64(length, 1), n_parts), block);

    return n_parts == 1 ? max_i64(length, 1) : n_blocks * block;
}

static bool fits(struct chooser *c, struct product_tile *t)
{
    struct plan_product scratch = *c->p->product;

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
static bool widest(struct chooser *c, struct product_tile *t)
{
    const struct plan_product *product = c->p->product;
    int64_t block = product->block_columns, length = max_i64(product->n_columns, 1);
    int64_t good = 0, bad = divide_up_i64(length, block) + 1;

    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        t->columns = min_i64(mul_saturating_i64(middle, block), length);
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
static void keep_panels(const struct chooser *c, struct product_tile *t)
{
    struct plan_product scratch = *c->p->product;

    t->n_kept = 0;
    uint64_t room = c->limit_bytes - lay_out(c, t, &scratch);
    if (scratch.is_symmetric || scratch.n_sharing <= 1)
        return;
    t->n_kept = t->n_panels;
    if (t->n_panels == 1 || lay_out(c, t, &scratch) <= c->limit_bytes)
        return;
    t->n_kept = min_u64(room / max_u64(scratch.kept_bytes, 1), t->n_panels - 1);
}

static void consider(struct chooser *c, struct product_tile *t)
{
    const struct product_tile *best = &c->best;

    keep_panels(c, t);
    product_cost(&c->costs, t);
    double close = t->moving / CLOSE_SHARE;
    bool is_better = best->n_bytes == 0 || t->seconds + close < best->seconds ||
                     (t->seconds < best->seconds + close && t->n_bytes < best->n_bytes);
    if (is_better)
        c->best = *t;
}

/* Of numbers of blocks that make the same number of tiles, the least; of large ones not all. */
static int64_t next_rows(int64_t n_blocks, int64_t i)
{
    int64_t n_tiles = divide_up_i64(n_blocks, i);
    int64_t fewer = n_tiles > 1 ? divide_up_i64(n_blocks, n_tiles - 1) : n_blocks + 1;
    int64_t next = i + i / FINE_SHARE > fewer ? i + i / FINE_SHARE : fewer;

    return i < n_blocks && next > n_blocks ? n_blocks : next;
}

static void try_rows(struct chooser *c, int64_t matrices)
{
    const struct plan_product *product = c->p->product;
    int64_t length = max_i64(product->n_rows, 1);
    int64_t n_blocks = divide_up_i64(length, product->block_rows);

    for (int64_t i = 1; i <= n_blocks; i = next_rows(n_blocks, i)) {
        struct product_tile t = {
            .matrices = matrices,
            .rows = even_out(length, i * product->block_rows, product->block_rows)};
        t.columns = t.rows;
        if (!product->is_symmetric && !widest(c, &t))
            return;
        if (fits(c, &t))
            consider(c, &t);
    }
}

/* Of matrices. */
static int64_t least_batch(const struct plan_product *product)
{
    return product->block_matrices > product->n_inner ? product->block_matrices : product->n_inner;
}

static void try_matrices(struct chooser *c)
{
    const struct plan_product *product = c->p->product;
    int64_t length = max_i64(product->n_matrices, 1);
    int64_t step = least_batch(product), n = step;

    for (;;) {
        try_rows(c, even_out(length, min_i64(n, length), step));
        if (n >= length)
            return;
        n = min_i64(mul_saturating_i64(2, n),
                    mul_saturating_i64(divide_up_i64(length, step), step));
    }
}

/* At most so many steps a panel, evenly. */
static void set_panels(struct chooser *c, int64_t n_steps)
{
    const struct plan_product *product = c->p->product;
    int64_t n_all = (int64_t)product->n_depth_steps;

    c->n_panels = (uint64_t)divide_up_i64(n_all, n_steps);
    c->panel_depth = divide_up_i64(n_all, (int64_t)c->n_panels) * product->step_depth;
    c->n_panels = (uint64_t)divide_up_i64(n_all, c->panel_depth / product->step_depth);
}

static int64_t most_steps(const struct plan_product *product)
{
    bool has_short = product->is_depth_fastest[0] || product->is_depth_fastest[1];
    int64_t step_bytes = mul_saturating_i64(product->step_depth, product->item_bytes);

    return has_short ? max_i64(DEEP_BYTES / step_bytes, 1) : 1;
}

/* Where a library takes other kernels, and may add in another order, when lines are aligned
 * otherwise, they are the same for every pool. */
static bool may_be_unpadded(const struct chooser *c)
{
    return c->p->limits->engine->adds_alike;
}

static void try_all(struct chooser *c, bool has_two_buffers, bool is_padded)
{
    const struct plan_product *product = c->p->product;

    c->has_two_buffers = has_two_buffers;
    c->is_padded = is_padded;
    c->best = (struct product_tile){.n_bytes = 0};
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
    c->p->product->least_bytes = needed;
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
    length = max_i64(length, 1);
    return given > 0 && given <= length && (given == length || given % block == 0);
}

static bool is_given_tile(const struct chooser *c)
{
    const struct plan_product *product = c->p->product;
    const int64_t *given = c->p->limits->product_tile;

    return is_extent(given[0], product->n_matrices, least_batch(product)) &&
           is_extent(given[1], product->n_rows, product->block_rows) &&
           is_extent(given[2], product->n_columns, product->block_columns) &&
           (!product->is_symmetric || given[1] == given[2]);
}

static bool fits_given(struct chooser *c, struct product_tile *t)
{
    const struct plan_product *product = c->p->product;

    for (int i = 0; i < 4; i++) {
        c->has_two_buffers = i < 2;
        c->is_padded = i % 2 == 0;
        if (!c->is_padded && !may_be_unpadded(c))
            continue;
        for (int64_t n_steps = most_steps(product); n_steps > 0; n_steps /= 2) {
            set_panels(c, n_steps);
            if (!fits(c, t))
                continue;
            keep_panels(c, t);
            c->best = *t;
            return true;
        }
    }
    return false;
}

/* Smaller blocks that change no bit. */
static bool part_blocks(struct chooser *c)
{
    struct planner *p = c->p;

    if (!p->limits->engine->adds_alike || !planner_part_blocks(p->limits->engine, p->product))
        return false;
    product_costs_init(p, &c->costs);
    return true;
}

/* As a journal has them, which is a file of the client's. */
static int take_given(struct chooser *c)
{
    const int64_t *given = c->p->limits->product_tile;
    struct product_tile t = {.matrices = given[0], .rows = given[1], .columns = given[2]};
    bool is_tile = false;

    do {
        if (!is_given_tile(c))
            continue;
        is_tile = true;
        if (fits_given(c, &t))
            return 0;
    } while (part_blocks(c));
    if (is_tile)
        return refuse(c, t.n_bytes);
    return error_set(c->p->error, GAD_BAD_JOURNAL, "journal",
                     "the journal is damaged: its tiles are not of whole blocks");
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
    struct product_tile one = c->best;
    try_all(c, true, true);
    if (!product_cost_prefers_two(&c->costs, &one, &c->best))
        c->best = one;
    if (c->best.n_bytes == 0 && may_be_unpadded(c))
        try_all(c, false, false);
    while (c->best.n_bytes == 0 && part_blocks(c))
        try_all(c, false, false);
    return c->best.n_bytes > 0 ? 0 : refuse(c, c->least_bytes);
}

/* All of it ---------------------------------------------------------------------------------- */

static bool count_tiles(struct plan_product *product)
{
    uint64_t n = (uint64_t)product->n_outer;

    product->n_matrix_tiles = (uint64_t)divide_up_i64(product->n_matrices, product->tile_matrices);
    product->n_row_tiles = (uint64_t)divide_up_i64(product->n_rows, product->tile_rows);
    product->n_column_tiles = (uint64_t)divide_up_i64(product->n_columns, product->tile_columns);
    if (product->n_row_tiles > UINT32_MAX / 2 || product->n_column_tiles > UINT32_MAX / 2)
        return false;
    n = (uint64_t)mul_saturating_i64((int64_t)n, (int64_t)product->n_matrix_tiles);
    n = (uint64_t)mul_saturating_i64((int64_t)n, (int64_t)planner_matrix_tiles(product));
    product->n_tiles = n;
    return n < INT64_MAX;
}

static void set_axes(const struct planner *p)
{
    struct plan_product *ret = p->product;
    const struct program_product *product = ret->whole;
    int left = planner_product_space(p, PRODUCT_LEFT)->ndim;
    int right = planner_product_space(p, PRODUCT_RIGHT)->ndim;
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

static void start_choice(struct planner *p, uint64_t limit_bytes, struct chooser *ret)
{
    *ret = (struct chooser){.p = p, .limit_bytes = limit_bytes, .least_bytes = UINT64_MAX};
    for (unsigned i = 0; i < 2; i++)
        p->product->is_depth_fastest[i] = planner_product_depth_is_fastest(p, (enum product_pass)i);
    product_costs_init(p, &ret->costs);
}

static double n_operations(const struct program_product *product,
                           const struct plan_product *planned)
{
    double n = 2.0 * (double)product->n_rows * (double)product->n_columns * (double)product->depth;
    double n_blocks = (double)divide_up_i64(max_i64(product->n_rows, 1), planned->block_rows);

    if (product->is_symmetric)
        n *= (n_blocks + 1) / (2 * n_blocks);
    for (int i = 0; i < product->n_batch_axes; i++)
        n *= (double)product->batch_shape[i];
    return n;
}

int planner_cut_product(struct planner *p, unsigned index, uint64_t limit_bytes)
{
    struct plan_product *product = p->product = &p->plan->products[index];
    const struct program_product *whole = &p->program->products[index];
    struct chooser chooser;

    *product = (struct plan_product){.whole = whole, .passes = &p->plan->passes[whole->first_pass]};
    planner_product_blocks(p, &p->limits->engine->blocks);
    set_axes(p);
    product->n_operations = n_operations(whole, product);
    product->has_journal = p->request->has_journal;
    product->is_tf32 = p->request->tf32 && p->limits->has_tf32 && whole->dtype == DTYPE_FLOAT32;
    start_choice(p, limit_bytes, &chooser);
    int r = choose(&chooser);
    if (r)
        return r;
    product->tile_matrices = chooser.best.matrices;
    product->tile_rows = chooser.best.rows;
    product->tile_columns = chooser.best.columns;
    product->scratch_bytes = lay_out(&chooser, &chooser.best, product);
    for (unsigned i = 0; i < PRODUCT_N_PASSES && !r; i++)
        r = planner_cut_product_pass(p, (enum product_pass)i);
    if (r)
        return r;
    if (!count_tiles(product))
        return error_set(p->error, GAD_LIMIT_EXCEEDED, "shape",
                         "the job would have too many turns");
    r = planner_choose_turns(p);
    return r ? r : planner_count_product_bytes(p);
}
