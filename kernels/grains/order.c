/* The walking order of a space. Every source says, for each two axes that it really has (longer
 * than 1, with different strides), which is the slower. Where no two sources contradict each other,
 * that is the order; where no source has an opinion the outputs are asked; else it is C order.
 *
 * A function of shapes, dtypes and layouts. Called by geometry.c.
 */
#include "kernels/grains/cutter.h"

struct votes {
    uint32_t before[ARRAY_MAX_NDIM]; /* bit i of before[j]: axis i is slower than axis j */
    bool has_any, has_conflict;
};

_Static_assert(ARRAY_MAX_NDIM <= 32, "a set of axes is a uint32_t");

bool cutter_has_axis(const struct geometry *g, const struct geometry_operand *operand, int axis)
{
    int own = axis - (g->ndim - operand->ndim);

    return own >= 0 && operand->shape[own] > 1;
}

/* Step between neighbours along each axis of the space, without sign; BROADCAST_STRIDE where the
 * operand does not move. */
static void cutter_strides(const struct geometry *g, const struct geometry_operand *operand,
                           uint64_t *ret_strides)
{
    int n_missing = g->ndim - operand->ndim;
    uint64_t c_stride = dtype_size(operand->dtype);

    for (int axis = g->ndim - 1; axis >= 0; axis--) {
        if (!cutter_has_axis(g, operand, axis)) {
            ret_strides[axis] = BROADCAST_STRIDE;
            continue;
        }
        int64_t stride = operand->strides ? operand->strides[axis - n_missing] : 0;
        if (!operand->strides || operand->chunk_shape)
            ret_strides[axis] = c_stride;
        else
            ret_strides[axis] = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
        if (__builtin_mul_overflow(c_stride, (uint64_t)operand->shape[axis - n_missing], &c_stride))
            c_stride = UINT64_MAX;
    }
}

static void vote(const struct geometry *g, const struct geometry_operand *operand,
                 struct votes *votes)
{
    uint64_t strides[ARRAY_MAX_NDIM];

    cutter_strides(g, operand, strides);
    for (int i = 0; i < g->ndim; i++) {
        for (int j = i + 1; j < g->ndim; j++) {
            if (strides[i] == BROADCAST_STRIDE || strides[j] == BROADCAST_STRIDE ||
                strides[i] == strides[j])
                continue;
            int slow = strides[i] > strides[j] ? i : j, fast = slow == i ? j : i;
            votes->before[fast] |= UINT32_C(1) << slow;
            votes->has_any = true;
            if (votes->before[slow] >> fast & 1)
                votes->has_conflict = true;
        }
    }
}

/* The order that the votes ask for, free choices in C order; false if they go round in a circle. */
static bool set_voted_order(struct geometry *g, const struct votes *votes)
{
    uint32_t placed = 0;

    for (int position = 0; position < g->ndim; position++) {
        int axis = 0;
        while (axis < g->ndim && ((placed >> axis & 1) || (votes->before[axis] & ~placed)))
            axis++;
        if (axis == g->ndim)
            return false;
        g->axis_order[position] = axis;
        placed |= UINT32_C(1) << axis;
    }
    return true;
}

int64_t cutter_run_bytes(const struct cutter *c, const struct geometry_operand *operand,
                         int *ret_axis)
{
    const struct geometry *g = c->g;
    uint64_t strides[ARRAY_MAX_NDIM];
    int64_t n_bytes = (int64_t)dtype_size(operand->dtype);

    cutter_strides(g, operand, strides);
    for (;;) {
        int fastest = -1;
        for (int i = 0; i < g->ndim; i++) {
            if (strides[i] != BROADCAST_STRIDE && (fastest < 0 || strides[i] <= strides[fastest]))
                fastest = i;
        }
        *ret_axis = fastest;
        if (fastest < 0)
            return n_bytes;
        n_bytes *= g->grain_shape[fastest];
        if (g->grain_shape[fastest] < g->shape[fastest])
            return n_bytes;
        strides[fastest] = BROADCAST_STRIDE;
    }
}

void cutter_choose_order(struct cutter *c)
{
    struct votes votes = {.has_any = false};

    for (int round = 0; round < 2 && !votes.has_any; round++) {
        for (unsigned i = 0; i < c->n_operands; i++) {
            const struct geometry_operand *operand = &c->operands[i];
            if (!operand->is_internal && operand->is_output == (round == 1))
                vote(c->g, operand, &votes);
        }
    }
    if (!votes.has_conflict && set_voted_order(c->g, &votes))
        return;
    for (int i = 0; i < c->g->ndim; i++)
        c->g->axis_order[i] = i;
}

bool cutter_has_contrary_layout(const struct cutter *c)
{
    const struct geometry *g = c->g;

    for (unsigned n = 0; n < c->n_operands; n++) {
        uint64_t strides[ARRAY_MAX_NDIM];
        uint64_t least = UINT64_MAX;
        if (c->operands[n].is_internal)
            continue;
        cutter_strides(g, &c->operands[n], strides);
        for (int i = 0; i < g->ndim; i++) {
            uint64_t stride = strides[g->axis_order[i]];
            if (stride == BROADCAST_STRIDE)
                continue;
            if (stride > least)
                return true;
            least = stride;
        }
    }
    return false;
}
