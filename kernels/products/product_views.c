/* Where the panels and the tile of a matrix product lie in the carry.
 *
 * A panel is matrices, of lines: along the depth, a line for each row (or column), where the
 * operand is walked fastest along its depth; else along the rows (or columns), a line for each step
 * of the depth. A tile is matrices of rows. Tiles and panels begin at multiples of their extents,
 * so a place in an array is a place in its panel or tile by the rest of a division.
 *
 * A panel's matrices are in the order of its operand's batch axes; where it is broadcast, it has
 * one for all.
 *
 * Called by the worker for every grain and every block. Pure code.
 */
#include "kernels/plan/planner.h"

#include <assert.h>

#define MIRROR_SQUARE 32

/* Bytes from one element to the next. */
struct panel_strides {
    int64_t outer, depth; /* outer: of rows or columns */
};

static struct panel_strides panel_strides(const struct plan_product *p, enum product_pass pass)
{
    int64_t line = p->panel_line_bytes[pass];
    bool is_depth_fastest = p->is_depth_fastest[pass];

    return (struct panel_strides){.outer = is_depth_fastest ? line : p->item_bytes,
                                  .depth = is_depth_fastest ? p->item_bytes : line};
}

static char *panel_base(const struct plan_product *p, const struct product_turn *turn,
                        enum product_pass pass, char *carry)
{
    if (pass == p->kept_pass && turn->panel_index < p->n_kept && p->n_panels > 1)
        return carry + p->kept_offset_bytes + turn->panel_index * p->kept_bytes;
    return carry + p->panel_offset_bytes[pass][turn->buffer[pass]];
}

static void add_axis(int axis, int64_t stride, int64_t start, int64_t extent,
                     struct engine_view *view)
{
    if (axis < 0 || stride == 0)
        return;
    view->strides[axis] = stride;
    view->base = (char *)view->base + start % extent * stride;
}

/* Of the matrices of a panel or tile, `matrix_bytes` apart. */
static void add_batch(const struct plan_product *p, enum product_pass pass, int64_t matrix_bytes,
                      const int64_t *start, struct engine_view *view)
{
    const int64_t *shape = p->passes[pass].geometry.shape;
    int first = p->axes[PRODUCT_RESULT].n_batch - p->axes[pass].n_batch;
    int64_t stride = matrix_bytes;

    for (int i = p->axes[pass].n_batch - 1; i >= 0 && first + i >= p->cut_axis; i--) {
        if (shape[i] == 1)
            continue;
        add_axis(i, stride, start[i], product_tile_extent(p, first + i), view);
        stride *= shape[i];
    }
}

void product_panel_view(const struct plan_product *p, const struct product_turn *turn,
                        const int64_t *start, char *carry, struct engine_view *ret_view)
{
    const struct product_axes *axes = &p->axes[turn->pass];
    struct panel_strides strides = panel_strides(p, turn->pass);
    bool is_left = turn->pass == PRODUCT_LEFT;
    int outer = is_left ? axes->row : axes->column;

    *ret_view = (struct engine_view){.base = panel_base(p, turn, turn->pass, carry)};
    add_batch(p, turn->pass, p->panel_matrix_bytes[turn->pass], start, ret_view);
    if (outer >= 0)
        add_axis(outer, strides.outer, start[outer], is_left ? p->tile_rows : p->tile_columns,
                 ret_view);
    add_axis(axes->depth, strides.depth, start[axes->depth], p->panel_depth, ret_view);
}

void product_result_view(const struct plan_product *p, const int64_t *start, char *carry,
                         struct engine_view *ret_view)
{
    const struct product_axes *axes = &p->axes[PRODUCT_RESULT];
    int64_t row = axes->row >= 0 ? start[axes->row] : 0;
    int64_t column = axes->column >= 0 ? start[axes->column] : 0;
    bool is_above = p->is_symmetric && row / p->block_rows < column / p->block_columns;

    *ret_view = (struct engine_view){.base = carry + p->result_offset_bytes};
    add_batch(p, PRODUCT_RESULT, p->result_matrix_bytes, start, ret_view);
    add_axis(axes->row, is_above ? p->item_bytes : p->result_line_bytes, row, p->tile_rows,
             ret_view);
    add_axis(axes->column, is_above ? p->result_line_bytes : p->item_bytes, column, p->tile_columns,
             ret_view);
}

/* Elements are copied as whole words: of small squares, so that both sides stay in the cache. */
#define MIRROR(T)                                                                                  \
    for (int64_t i = row; i < row_end; i++)                                                        \
        for (int64_t j = column; j < column_end && j < i; j++)                                     \
    *(T *)(base + j * line + i * (int64_t)sizeof(T)) =                                             \
        *(const T *)(base + i * line + j * (int64_t)sizeof(T))

static void mirror_square(char *base, int64_t line, int64_t item_bytes, int64_t row,
                          int64_t row_end, int64_t column, int64_t column_end)
{
    switch (item_bytes) {
    case 1: MIRROR(uint8_t); break;
    case 2: MIRROR(uint16_t); break;
    case 4: MIRROR(uint32_t); break;
    default: MIRROR(uint64_t); break;
    }
}

void product_mirror(const struct plan_product *p, const struct product_turn *turn, char *carry)
{
    char *base = carry + p->result_offset_bytes + turn->row * p->result_line_bytes +
                 turn->column * p->item_bytes;
    int64_t n = turn->n_rows;

    assert(turn->is_mirrored && turn->n_rows == turn->n_columns);
    for (int64_t m = turn->matrix; m < turn->matrix + turn->n_matrices; m++)
        for (int64_t i = 0; i < n; i += MIRROR_SQUARE)
            for (int64_t j = 0; j <= i; j += MIRROR_SQUARE)
                mirror_square(base + m * p->result_matrix_bytes, p->result_line_bytes,
                              p->item_bytes, i, i + MIRROR_SQUARE < n ? i + MIRROR_SQUARE : n, j,
                              j + MIRROR_SQUARE < n ? j + MIRROR_SQUARE : n);
}

/* Bytes from the panel's first matrix to the one of C's matrix `matrix`. */
static int64_t panel_matrix(const struct plan_product *p, enum product_pass pass, int64_t matrix)
{
    const int64_t *shape = p->passes[pass].geometry.shape;
    const int64_t *whole = p->passes[PRODUCT_RESULT].geometry.shape;
    int n_batch = p->axes[PRODUCT_RESULT].n_batch, first = n_batch - p->axes[pass].n_batch;
    int64_t stride = p->panel_matrix_bytes[pass], sum = 0;

    if (product_is_even(p, pass))
        return p->has_matrices[pass] ? matrix * stride : 0;
    for (int i = n_batch - 1; i >= 0 && i >= p->cut_axis; i--) {
        int64_t at = i == p->cut_axis ? matrix : matrix % whole[i];
        matrix /= whole[i];
        if (i < first || shape[i - first] == 1)
            continue;
        sum += at * stride;
        stride *= shape[i - first];
    }
    return sum;
}

int64_t product_run(const struct plan_product *p, const struct product_turn *turn, int64_t matrix)
{
    int64_t run = p->run_matrices, n = run - (turn->matrix + matrix) % run;

    return n < turn->n_matrices - matrix ? n : turn->n_matrices - matrix;
}

void product_block(const struct plan_product *p, const struct product_turn *turn, int64_t matrix,
                   char *carry, struct product_matrix *ret_left, struct product_matrix *ret_right,
                   struct product_matrix *ret_result)
{
    struct panel_strides left = panel_strides(p, PRODUCT_LEFT);
    struct panel_strides right = panel_strides(p, PRODUCT_RIGHT);
    int64_t depth = (int64_t)turn->step_index * p->step_depth % p->panel_depth;

    assert(turn->step == PRODUCT_MULTIPLY && matrix >= 0 && matrix < turn->n_matrices);
    matrix += turn->matrix;
    *ret_left = (struct product_matrix){.base = panel_base(p, turn, PRODUCT_LEFT, carry) +
                                                panel_matrix(p, PRODUCT_LEFT, matrix) +
                                                turn->row * left.outer + depth * left.depth,
                                        .row_bytes = left.outer,
                                        .column_bytes = left.depth};
    *ret_right = (struct product_matrix){.base = panel_base(p, turn, PRODUCT_RIGHT, carry) +
                                                 panel_matrix(p, PRODUCT_RIGHT, matrix) +
                                                 turn->column * right.outer + depth * right.depth,
                                         .row_bytes = right.depth,
                                         .column_bytes = right.outer};
    *ret_result = (struct product_matrix){
        .base = carry + p->result_offset_bytes + matrix * p->result_matrix_bytes +
                turn->row * p->result_line_bytes + turn->column * p->item_bytes,
        .row_bytes = p->result_line_bytes,
        .column_bytes = p->item_bytes};
}
