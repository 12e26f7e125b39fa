/* Random boxes and memory layouts, drawn with the runner's random numbers.
 *
 * A box has one to three axes of odd lengths and an order of walking. An operand broadcasts some of
 * its axes, has them in any order, with gaps, backwards, misaligned by bytes, in the other byte
 * order. All of it lies within an arena with a margin on both sides, so that who writes beside an
 * output's elements is seen. Used by the runners of the CPU's and of the device's kernels.
 */
#include "tests/unit/kernels/cpu/check/laid.h"

#include <stdio.h>
#include <string.h>

void shape_draw(struct shape *s, unsigned trial, size_t max_elements)
{
    static const int64_t lengths[] = {1, 2, 3, 7, 63, 64, 65, 127, 129, 500, 1000, 2049, 4100};
    static const int64_t shorts[] = {1, 2, 3, 5, 8, 17, 64, 70};
    s->ndim = 1 + (int)(trial % 3);
    s->n = 1;
    for (int i = 0; i < s->ndim; i++) {
        s->count[i] = s->ndim == 1 ? lengths[trial / 3 % 13] : shorts[check_below(8)];
        if (s->ndim == 2 && i == (int)(trial & 1))
            s->count[i] = lengths[check_below(10)];
        s->n *= (size_t)s->count[i];
        s->order[i] = i;
    }
    if (s->n > max_elements) {
        shape_draw(s, s->ndim == 1 ? trial + 3 : trial, max_elements);
        return;
    }
    for (int i = s->ndim - 1; i > 0 && check_below(3) == 0; i--) {
        int j = (int)check_below((uint64_t)i + 1), swapped = s->order[i];
        s->order[i] = s->order[j];
        s->order[j] = swapped;
    }
}

void shape_flat(struct shape *s, size_t n)
{
    *s = (struct shape){.ndim = 1, .count = {(int64_t)n}, .n = n};
}

void laid_flat(struct laid *l, const struct shape *s, enum dtype dtype)
{
    *l = (struct laid){.arena = l->arena, .n_bytes = s->n * dtype_size(dtype)};
    l->view.strides[0] = (int64_t)dtype_size(dtype);
}

void laid_draw(struct laid *l, const struct shape *s, enum dtype dtype, bool is_output)
{
    int64_t item_bytes = (int64_t)dtype_size(dtype), step = item_bytes;
    bool is_odd = check_below(3) == 0;
    bool is_any_order = check_below(4) == 0;
    l->misalignment = check_below(4) == 0 ? (int)check_below(8) : 0;
    l->view = (struct engine_view){.is_swapped = check_below(4) == 0};
    int64_t offset = LAID_MARGIN_BYTES + l->misalignment;
    int axes[3];
    for (int i = 0; i < s->ndim; i++)
        axes[i] = is_any_order ? i : s->ndim - 1 - i;
    for (int i = 0; i < s->ndim; i++) {
        int axis = axes[i];
        l->is_broadcast[axis] = !is_output && check_below(5) == 0;
        l->view.strides[axis] = 0;
        if (l->is_broadcast[axis])
            continue;
        if (is_odd && check_below(2))
            step *= 2;
        l->view.strides[axis] = step;
        if (is_odd && check_below(2)) {
            l->view.strides[axis] = -step;
            offset += (s->count[axis] - 1) * step;
        }
        step *= s->count[axis];
    }
    l->offset_bytes = (size_t)offset;
    l->n_bytes = (size_t)(LAID_MARGIN_BYTES + l->misalignment + step + LAID_MARGIN_BYTES);
    laid_place(l, l->arena);
}

void laid_place(struct laid *l, char *arena)
{
    l->arena = arena;
    l->view.base = arena ? arena + l->offset_bytes : NULL;
}

char *laid_item(const struct laid *l, const struct shape *s, size_t element)
{
    char *p = l->view.base;
    for (int i = s->ndim - 1; i >= 0; i--) {
        p += (int64_t)(element % (size_t)s->count[i]) * l->view.strides[i];
        element /= (size_t)s->count[i];
    }
    return p;
}

void laid_copy_item(void *dst, const void *src, size_t n_bytes, bool is_swapped)
{
    /* Most are: a loop over bytes is slow where each is checked. */
    if (n_bytes == 4 && !is_swapped) {
        memcpy(dst, src, 4);
        return;
    }
    if (n_bytes == 8 && !is_swapped) {
        memcpy(dst, src, 8);
        return;
    }
    for (size_t i = 0; i < n_bytes; i++)
        ((char *)dst)[i] = ((const char *)src)[is_swapped ? n_bytes - 1 - i : i];
}

void laid_store(const struct laid *l, const struct shape *s, enum dtype dtype, char *flat)
{
    size_t item_bytes = dtype_size(dtype);
    for (size_t i = 0; i < s->n; i++)
        laid_copy_item(laid_item(l, s, i), flat + i * item_bytes, item_bytes, l->view.is_swapped);
    for (size_t i = 0; i < s->n; i++)
        laid_copy_item(flat + i * item_bytes, laid_item(l, s, i), item_bytes, l->view.is_swapped);
}

void shape_print(const struct shape *s)
{
    printf("shape");
    for (int i = 0; i < s->ndim; i++)
        printf(" %lld", (long long)s->count[i]);
    printf(", walked");
    for (int i = 0; i < s->ndim; i++)
        printf(" %d", s->order[i]);
}

void laid_print(const char *what, const struct laid *l, const struct shape *s)
{
    printf("    %s: strides", what);
    for (int i = 0; i < s->ndim; i++)
        printf(" %lld", (long long)l->view.strides[i]);
    printf(", misaligned by %d%s\n", l->misalignment, l->view.is_swapped ? ", swapped" : "");
}
