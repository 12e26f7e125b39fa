/* Where the values of a walk by slabs lie in the carry.
 *
 * Called by the worker for every grain and every step. Pure code.
 */
#include "kernels/plan/planner.h"
#include "proto/util.h"

static int64_t item_bytes(const struct plan_slab *p, unsigned value)
{
    return (int64_t)dtype_size((enum dtype)p->whole->values[value].dtype);
}

void slab_load_box(const struct plan_slab *p, const struct slab_turn *turn, unsigned unit,
                   char *carry, struct slab_box *ret)
{
    int64_t item = item_bytes(p, 0), n_outer = 0, extent = p->cut_extent;

    *ret = (struct slab_box){.base = carry + p->offsets[0] + turn->lane * p->lane_bytes[0],
                             .line_bytes = p->n_columns * item,
                             .n_rows = turn->n_rows,
                             .n_columns = p->n_columns};
    if (p->is_by_lanes)
        return;
    if (!p->is_by_columns) {
        ret->first_row = unit * p->load_rows;
        ret->n_rows = min_i64(p->load_rows, turn->n_rows - ret->first_row);
        ret->base += ret->first_row * ret->line_bytes;
        return;
    }
    int64_t length = p->passes[0].geometry.shape[p->cut_axis];
    int64_t n_cuts = divide_up_i64(length, extent);
    n_outer = unit / n_cuts;
    int64_t start = unit % n_cuts * extent;
    ret->first_column = (n_outer * length + start) * p->cut_columns;
    ret->n_columns = min_i64(extent, length - start) * p->cut_columns;
    ret->line_bytes = p->block_columns * item;
    ret->base += unit * p->slab_rows * ret->line_bytes;
}

void slab_add_box(const struct plan_slab *p, const struct slab_turn *turn, char *carry,
                  struct slab_box *ret)
{
    int64_t item = item_bytes(p, 0);

    if (p->is_by_columns) {
        slab_load_box(p, turn, turn->unit, carry, ret);
        return;
    }
    *ret = (struct slab_box){.base = carry + p->offsets[0] + turn->lane * p->lane_bytes[0],
                             .line_bytes = p->n_columns * item,
                             .n_rows = turn->n_rows,
                             .n_columns = p->n_columns};
    if (p->is_by_lanes)
        return;
    ret->first_column = turn->unit * p->add_columns;
    ret->n_columns = min_i64(p->add_columns, p->n_columns - ret->first_column);
    ret->base += ret->first_column * item;
}

char *slab_place(const struct plan_slab *p, unsigned value, unsigned lane, char *carry,
                 int64_t *ret_line_bytes)
{
    const struct slab_value *v = &p->whole->values[value];

    if (v->kind == SLAB_OPERAND || v->kind == SLAB_SUM)
        *ret_line_bytes = (int64_t)round_up_u64((uint64_t)v->n_lines * slab_line_item(v), 64);
    else
        *ret_line_bytes = v->n_columns * item_bytes(p, value);
    return carry + p->offsets[value] + lane * p->lane_bytes[value];
}

double *slab_part(const struct plan_slab *p, unsigned step, unsigned lane, unsigned part,
                  char *carry)
{
    return (double *)(carry + p->part_offsets[step] + lane * p->part_lane_bytes[step] +
                      part * p->part_bytes[step]);
}

unsigned slab_n_parts(const struct plan_slab *p)
{
    return p->is_by_columns ? p->n_loads : 1;
}

void slab_layout(const struct plan_slab *p, unsigned step, int64_t n_rows,
                 struct reduce_layout *ret)
{
    const struct slab_step *own = &p->whole->steps[step];
    unsigned pass = p->whole->first_pass + own->pass;
    int64_t n_cells =
        p->program->passes[pass].reduced_axes == 1 ? p->whole->values[own->src[0]].n_columns : 1;

    reduce_layout_init(ret, p->program, pass,
                       (uint64_t)(own->result != SLAB_NONE ? n_rows : n_cells));
}

void *slab_node(const struct plan_slab *p, unsigned step, unsigned lane, unsigned which,
                char *carry)
{
    return carry + p->part_offsets[step] + lane * p->part_lane_bytes[step] +
           which * p->part_bytes[step];
}

static void view_x(const struct plan_slab *p, const struct slab_turn *turn, const int64_t *start,
                   char *carry, struct engine_view *view)
{
    const struct geometry *g = &p->passes[0].geometry;
    struct slab_box box;
    int64_t item = item_bytes(p, 0), stride = item, column = 0;

    slab_load_box(p, turn, turn->unit, carry, &box);
    for (int i = g->ndim - 1; i >= 0; i--) {
        if (i == p->whole->row_axis)
            continue;
        view->strides[i] = stride;
        column += start[i] * (stride / item);
        stride *= g->shape[i];
    }
    int64_t row = start[p->whole->row_axis] - turn->first_row - box.first_row;
    view->strides[p->whole->row_axis] = box.line_bytes;
    view->base = box.base + row * box.line_bytes + (column - box.first_column) * item;
}

/* Lines of an operand or a sum are along its first axes, its columns are the axis behind them. */
static void view_columns(const struct plan_slab *p, unsigned value, const int64_t *start,
                         char *carry, struct engine_view *view)
{
    const struct slab_value *v = &p->whole->values[value];
    int64_t line_bytes, stride = (int64_t)slab_line_item(v);
    char *base = slab_place(p, value, 0, carry, &line_bytes);
    int ndim = v->ndim;

    if (v->has_columns) {
        ndim--;
        view->strides[ndim] = line_bytes;
        base += start[ndim] * line_bytes;
    }
    for (int i = ndim - 1; i >= 0; i--) {
        view->strides[i] = stride;
        base += start[i] * stride;
        stride *= v->shape[i];
    }
    view->base = base;
}

void slab_view(const struct plan_slab *p, const struct slab_turn *turn, unsigned value,
               const int64_t *start, char *carry, struct engine_view *ret_view)
{
    const struct slab_value *v = &p->whole->values[value];
    int64_t line_bytes;

    *ret_view = (struct engine_view){.base = NULL};
    if (v->kind == SLAB_X) {
        view_x(p, turn, start, carry, ret_view);
    } else if (v->kind != SLAB_OF_ROWS) {
        view_columns(p, value, start, carry, ret_view);
    } else {
        ret_view->base = slab_place(p, value, turn->lane, carry, &line_bytes) +
                         (start[0] - turn->first_row) * line_bytes;
        ret_view->strides[0] = line_bytes;
        if (v->ndim > 1 && v->n_columns > 1) { /* one column is read for all */
            ret_view->strides[1] = item_bytes(p, value);
            ret_view->base = (char *)ret_view->base + start[1] * item_bytes(p, value);
        }
    }
}
