/* What windows need of a thread's memory while a grain is computed: the operand with what lies
 * around the grain, what comes between two axes, and the result (kernels/cpu/windows). A window
 * that another one reads is made of that one's larger box, beside all that is there already.
 *
 *     grid of            elements more than the grain along an axis
 *     the result         what the windows that read it have around them
 *     the operand        and what this one has
 *
 * All are taken to be there at a time, which they hardly ever are. A device has the results and the
 * operands that are no arrays, among the values of its slot. Called by passes.c.
 */
#include "kernels/plan/plan_engine.h"
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <inttypes.h>
#include <string.h>

struct listing {
    const struct program *program;
    struct planner_windows *windows;
};

/* Rows end with some bytes that are not used. */
static void add_grid(const struct listing *l, const struct pass *pass, const int64_t *around,
                     enum dtype dtype)
{
    struct planner_windows *w = l->windows;
    int64_t *reach = w->reach[w->n];
    for (int i = 0; i < pass->ndim; i++)
        reach[i] = 2 * around[i];
    if (pass->ndim > 0)
        reach[pass->ndim - 1] += (int64_t)(GRAIN_WINDOW_PAD_BYTES / dtype_size(dtype));
    w->operands[w->n++] = (struct geometry_operand){.dtype = dtype,
                                                    .ndim = pass->ndim,
                                                    .shape = pass->shape,
                                                    .reach = reach,
                                                    .is_internal = true,
                                                    .is_window = true};
}

/* around: of the pass's axes; the window's are the last of them. */
static void add_window(const struct listing *l, unsigned index, int ndim, const int64_t *around)
{
    const struct program_window *w = &l->program->windows[index];
    const struct pass *pass = &l->program->passes[w->pass];
    int64_t own[ARRAY_MAX_NDIM];
    unsigned n_axes = 0;
    for (int i = 0; i < pass->ndim; i++) {
        own[i] = pass->shape[i] > 1 ? around[ndim - pass->ndim + i] : 0;
        n_axes += w->size[i] > 1;
    }
    add_grid(l, pass, own, (enum dtype)w->dtype);
    for (int i = 0; i < pass->ndim; i++)
        own[i] += window_around(w, i);
    add_grid(l, pass, own, (enum dtype)w->dtype);
    bool goes_by_axes = w->op != OP_CORRELATE && w->op != OP_WINDOW_RANK;
    for (int i = 0; goes_by_axes && n_axes > 1 && i < 1 + (w->op == OP_WINDOW_STD); i++)
        add_grid(l, pass, own, DTYPE_FLOAT64);
    for (uint64_t left = pass->windows_used; left; left &= left - 1)
        add_window(l, (unsigned)__builtin_ctzll(left), pass->ndim, own);
}

struct made_list {
    const struct plan_engine *engine;
    const struct listing *l;
    struct geometry_operand *operands;
    unsigned n;
};

/* Boxes that a pass goes over for a grain, along its axes: elements more than the grain has, of all
 * of them, and how many there are. */
struct boxes {
    int64_t n_more[ARRAY_MAX_NDIM], n[ARRAY_MAX_NDIM];
};

/* None of them has more than the axis. */
static void add_made(struct made_list *list, const struct pass *pass, const struct boxes *boxes,
                     enum dtype dtype)
{
    struct planner_windows *w = list->l->windows;
    int64_t *reach = w->reach[list->n], *shape = w->shapes[list->n];
    for (int i = 0; i < pass->ndim; i++) {
        reach[i] = boxes->n_more[i];
        shape[i] = mul_saturating_i64(pass->shape[i], boxes->n[i]);
    }
    list->operands[list->n++] = (struct geometry_operand){
        .dtype = dtype, .ndim = pass->ndim, .shape = shape, .reach = reach, .is_internal = true};
}

/* What a device makes at once for a pass: of the elements that this computes, and operands of what
 * lies around them, too: which is in two parts along an axis that goes on with its other end. */
static void list_made(struct made_list *list, const struct pass *pass, const struct boxes *boxes)
{
    for (uint64_t left = pass->windows_used; left; left &= left - 1) {
        const struct program_window *w = &list->l->program->windows[__builtin_ctzll(left)];
        const struct pass *of = &list->l->program->passes[w->pass];
        struct boxes own;
        add_made(list, pass, boxes, (enum dtype)w->dtype);
        if (!list->engine->makes_operand(list->l->program, w))
            continue;
        for (int i = 0; i < of->ndim; i++) {
            int axis = pass->ndim - of->ndim + i;
            int64_t n_around = of->shape[i] > 1 ? window_around(w, i) : 0;
            bool wraps = n_around > 0 && w->modes[i] == NEAR_WRAP;
            own.n[i] = of->shape[i] > 1 ? boxes->n[axis] : 1;
            own.n_more[i] = of->shape[i] > 1 ? boxes->n_more[axis] : 0;
            own.n_more[i] =
                add_saturating_i64(own.n_more[i], mul_saturating_i64(own.n[i], 2 * n_around));
            own.n[i] = mul_saturating_i64(own.n[i], wraps ? 2 : 1);
        }
        add_made(list, of, &own, (enum dtype)w->dtype);
        list_made(list, of, &own);
    }
}

unsigned planner_list_windows(const struct planner *p, const struct pass *pass,
                              struct planner_windows *ret, struct geometry_operand *ret_operands)
{
    const struct listing l = {p->program, ret};
    const int64_t none[ARRAY_MAX_NDIM] = {0};
    ret->n = 0;
    ret->operands = ret_operands;
    if (p->limits->engine->fills_slots) {
        struct made_list list = {p->limits->engine, &l, ret_operands, 0};
        struct boxes grain = {.n_more = {0}};
        for (int i = 0; i < pass->ndim; i++)
            grain.n[i] = 1;
        list_made(&list, pass, &grain);
        return list.n;
    }
    for (uint64_t left = pass->windows_used; left; left &= left - 1)
        add_window(&l, (unsigned)__builtin_ctzll(left), pass->ndim, none);
    return ret->n;
}

bool planner_windows_fit(const struct planner_windows *windows)
{
    uint64_t n_all = 0;
    for (unsigned i = 0; i < windows->n; i++) {
        const struct geometry_operand *operand = &windows->operands[i];
        int64_t n_bytes = (int64_t)dtype_size(operand->dtype);
        for (int k = 0; k < operand->ndim; k++)
            n_bytes = mul_saturating_i64(n_bytes, 1 + operand->reach[k]);
        n_all += round_up_u64((uint64_t)min_i64(n_bytes, GRAIN_MAX_WINDOW_BYTES + 1),
                              GRAIN_WINDOW_PAD_BYTES);
    }
    return n_all <= GRAIN_MAX_WINDOW_BYTES;
}

int planner_refuse_windows(const struct planner *p, const struct pass *pass)
{
    int r = planner_refuse_at(
        p, GAD_LIMIT_EXCEEDED, &p->program->windows[__builtin_ctzll(pass->windows_used)].place,
        "windows are so large, or windows of windows so deep, that one element needs more memory "
        "than a thread has for them");
    error_expected(p->error, "at most %u bytes", GRAIN_MAX_WINDOW_BYTES);
    error_found(p->error, "more");
    return r;
}
