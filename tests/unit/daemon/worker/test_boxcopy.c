#include "daemon/worker/cuda/boxcopy.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_BYTES (256 * 1024)

static unsigned char from[MEMORY_BYTES], to[MEMORY_BYTES], expected[MEMORY_BYTES];
static uint64_t state = 1;

static int64_t random_below(int64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* Item by item, whatever the strides are. */
static void copy_simply(const struct boxcopy *b, int axis, unsigned char *into,
                        const unsigned char *out_of)
{
    if (axis == b->n_axes) {
        memcpy(into, out_of, (size_t)b->item_bytes);
        return;
    }
    for (int64_t i = 0; i < b->axes[axis].count; i++)
        copy_simply(b, axis + 1, into + i * b->axes[axis].to_stride,
                    out_of + i * b->axes[axis].from_stride);
}

/* Checks the whole of the memory: what lies between the elements is not touched. */
static void check(const struct boxcopy *b, int64_t to_offset, int64_t from_offset)
{
    memset(to, 0xee, sizeof(to));
    memset(expected, 0xee, sizeof(expected));
    copy_simply(b, 0, expected + to_offset, from + from_offset);
    boxcopy(b, to + to_offset, from + from_offset);
    boxcopy_fence();
    cr_assert(eq(int, memcmp(to, expected, sizeof(to)), 0));
}

static void fill(void)
{
    for (int i = 0; i < MEMORY_BYTES; i++)
        from[i] = (unsigned char)random_below(256);
}

/* Strides of a dense layout of the axes in a random order, some of them with gaps, some backwards.
 * Returns the offset of element 0. */
static int64_t lay_out(struct boxcopy *b, bool is_from, int64_t room)
{
    int order[ARRAY_MAX_NDIM];
    int64_t stride = b->item_bytes, offset = random_below(64);
    for (int i = 0; i < b->n_axes; i++)
        order[i] = i;
    for (int i = b->n_axes - 1; i > 0 && random_below(2); i--) {
        int j = (int)random_below(i + 1), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (int i = b->n_axes - 1; i >= 0; i--) {
        struct boxcopy_axis *axis = &b->axes[order[i]];
        int64_t own = stride;
        if (random_below(4) == 0 && stride * axis->count * 2 < room)
            own += b->item_bytes * random_below(3);
        bool is_backward = random_below(4) == 0;
        if (is_backward)
            offset += (axis->count - 1) * own;
        *(is_from ? &axis->from_stride : &axis->to_stride) = is_backward ? -own : own;
        stride = own * axis->count;
    }
    return offset;
}

Test(boxcopy, copies_any_box_between_any_layouts)
{
    static const int64_t items[] = {1, 2, 4, 8, 16};
    fill();
    for (int round = 0; round < 600; round++) {
        struct boxcopy b = {.is_past_cache = random_below(2),
                            .item_bytes = items[random_below(5)],
                            .n_axes = (int)random_below(5)};
        int64_t n = b.item_bytes;
        for (int i = 0; i < b.n_axes; i++) {
            int64_t most = MEMORY_BYTES / 16 / n;
            b.axes[i].count = 1 + random_below(most < 40 ? most : 40);
            n *= b.axes[i].count;
        }
        int64_t from_offset = lay_out(&b, true, MEMORY_BYTES / 8);
        int64_t to_offset = lay_out(&b, false, MEMORY_BYTES / 8);
        check(&b, to_offset, from_offset);
    }
}

Test(boxcopy, copies_long_runs_at_any_alignment)
{
    fill();
    for (int round = 0; round < 200; round++) {
        int64_t n_bytes = 4000 + random_below(20000);
        struct boxcopy b = {.is_past_cache = true,
                            .item_bytes = 1,
                            .n_axes = 2,
                            .axes = {{3, n_bytes + 7, n_bytes}, {n_bytes, 1, 1}}};
        check(&b, random_below(70), random_below(70));
    }
}

Test(boxcopy, spreads_what_stands_still)
{
    fill();
    struct boxcopy b = {.item_bytes = 4, .n_axes = 2, .axes = {{5, 0, 400}, {100, 4, 4}}};
    check(&b, 0, 12);
    b = (struct boxcopy){.item_bytes = 8, .n_axes = 1, .axes = {{1000, 0, 8}}};
    check(&b, 8, 24);
}
