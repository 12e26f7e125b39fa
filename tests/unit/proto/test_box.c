#include "proto/box.h"
#include "proto/error.h"
#include "proto/util.h"

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

/* As a test lays it out: axes slowest first, none merged. */
struct laid_out {
    int64_t item_bytes;
    int n_axes;
    struct box_axis axes[4]; /* strides of `to`, of `from` */
};

/* Item by item, whatever the strides are. */
static void copy_simply(const struct laid_out *b, int axis, unsigned char *into,
                        const unsigned char *out_of)
{
    if (axis == b->n_axes) {
        memcpy(into, out_of, (size_t)b->item_bytes);
        return;
    }
    for (int64_t i = 0; i < b->axes[axis].count; i++)
        copy_simply(b, axis + 1, into + i * b->axes[axis].strides[0],
                    out_of + i * b->axes[axis].strides[1]);
}

static void make_box(const struct laid_out *b, struct box *ret)
{
    ret->n = 0;
    for (int i = b->n_axes - 1; i >= 0; i--)
        box_add(ret, b->axes[i].count, b->axes[i].strides[0], b->axes[i].strides[1]);
}

/* Checks the whole of the memory: what lies between the elements is not touched. */
static void check(const struct laid_out *b, int64_t to_offset, int64_t from_offset,
                  bool is_past_cache)
{
    struct box box;
    memset(to, 0xee, sizeof(to));
    memset(expected, 0xee, sizeof(expected));
    copy_simply(b, 0, expected + to_offset, from + from_offset);
    make_box(b, &box);
    box_copy(&box, to + to_offset, from + from_offset, (size_t)b->item_bytes, is_past_cache);
    box_fence();
    cr_assert(eq(int, memcmp(to, expected, sizeof(to)), 0));
}

/* A walk comes to every element in C order of the axes, and then to the first one again. */
static void check_walk(const struct laid_out *b)
{
    struct box box;
    struct box_place place = {.index = {0}};
    int64_t n = 1;
    make_box(b, &box);
    for (int i = 0; i < b->n_axes; i++)
        n *= b->axes[i].count;
    for (int64_t k = 0; k < n; k++) {
        int64_t offset[2] = {0, 0}, rest = k;
        for (int i = b->n_axes - 1; i >= 0; i--) {
            offset[0] += rest % b->axes[i].count * b->axes[i].strides[0];
            offset[1] += rest % b->axes[i].count * b->axes[i].strides[1];
            rest /= b->axes[i].count;
        }
        struct box_place located;
        box_locate(&box, (uint64_t)k, &located);
        cr_assert(located.offset[0] == offset[0] && located.offset[1] == offset[1]);
        cr_assert(eq(int, memcmp(located.index, place.index, (size_t)box.n * sizeof(int64_t)), 0));
        cr_assert(place.offset[0] == offset[0] && place.offset[1] == offset[1]);
        cr_assert(eq(int, box_next(box.axes, box.n, &place), k + 1 < n));
    }
    cr_assert(place.offset[0] == 0 && place.offset[1] == 0);
}

/* Steps along the two fastest axes, several at a time, come to the element that so many single ones
 * come to. */
static void check_advance(const struct laid_out *b)
{
    struct box box;
    struct box_place place = {.index = {0}}, located;
    make_box(b, &box);
    box_need_axis(&box, 0, 0);
    int64_t line = box.axes[0].count, n = line;
    for (int i = 1; i < box.n; i++)
        n *= box.axes[i].count;
    for (int64_t k = 0; k < n;) {
        int axis = box.n > 1 && place.index[0] == 0 && random_below(2);
        int64_t left = box.axes[axis].count - place.index[axis];
        int64_t n_steps = 1 + random_below(left);
        k += n_steps * (axis ? line : 1);
        cr_assert(eq(int, box_advance(box.axes, box.n, axis, n_steps, &place), k < n));
        box_locate(&box, (uint64_t)(k % n), &located);
        cr_assert(place.offset[0] == located.offset[0] && place.offset[1] == located.offset[1]);
    }
}

static void fill(void)
{
    for (int i = 0; i < MEMORY_BYTES; i++)
        from[i] = (unsigned char)random_below(256);
}

/* Strides of a dense layout of the axes in a random order, some of them with gaps, some backwards.
 * Returns the offset of element 0. */
static int64_t lay_out(struct laid_out *b, bool is_from, int64_t room)
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
        struct box_axis *axis = &b->axes[order[i]];
        int64_t own = stride;
        if (random_below(4) == 0 && stride * axis->count * 2 < room)
            own += b->item_bytes * random_below(3);
        bool is_backward = random_below(4) == 0;
        if (is_backward)
            offset += (axis->count - 1) * own;
        axis->strides[is_from] = is_backward ? -own : own;
        stride = own * axis->count;
    }
    return offset;
}

Test(box, is_copied_between_any_layouts)
{
    static const int64_t items[] = {1, 2, 4, 8, 16};
    fill();
    for (int round = 0; round < 600; round++) {
        struct laid_out b = {.item_bytes = items[random_below(5)], .n_axes = (int)random_below(5)};
        int64_t n = b.item_bytes;
        for (int i = 0; i < b.n_axes; i++) {
            int64_t most = MEMORY_BYTES / 16 / n;
            b.axes[i].count = 1 + random_below(most < 40 ? most : 40);
            n *= b.axes[i].count;
        }
        int64_t from_offset = lay_out(&b, true, MEMORY_BYTES / 8);
        int64_t to_offset = lay_out(&b, false, MEMORY_BYTES / 8);
        check(&b, to_offset, from_offset, random_below(2));
        check_walk(&b);
        check_advance(&b);
    }
}

Test(box, has_long_runs_at_any_alignment)
{
    fill();
    for (int round = 0; round < 200; round++) {
        int64_t n_bytes = 4000 + random_below(20000);
        struct laid_out b = {
            .item_bytes = 1, .n_axes = 2, .axes = {{3, {n_bytes + 7, n_bytes}}, {n_bytes, {1, 1}}}};
        check(&b, random_below(70), random_below(70), true);
    }
}

Test(box, spreads_what_stands_still)
{
    fill();
    struct laid_out b = {.item_bytes = 4, .n_axes = 2, .axes = {{5, {400, 0}}, {100, {4, 4}}}};
    check(&b, 0, 12, false);
    b = (struct laid_out){.item_bytes = 8, .n_axes = 1, .axes = {{1000, {8, 0}}}};
    check(&b, 8, 24, false);
    check_walk(&b);
}

Test(box, merges_what_runs_on_in_both_memories)
{
    static const struct {
        struct laid_out laid_out;
        int n_axes; /* when they are merged */
        int64_t run_bytes;
    } rows[] = {
        {{4, 0, {{0}}}, 0, 4},
        {{4, 3, {{2, {48, 48}}, {3, {16, 16}}, {4, {4, 4}}}}, 1, 96},
        {{4, 3, {{2, {48, 48}}, {1, {7, 9}}, {12, {4, 4}}}}, 1, 96},
        {{4, 3, {{2, {48, 96}}, {3, {16, 16}}, {4, {4, 4}}}}, 2, 48},
        {{4, 2, {{3, {16, 32}}, {4, {4, 8}}}}, 1, 4},
        {{8, 2, {{3, {-32, -32}}, {4, {-8, -8}}}}, 1, 8},
        {{8, 2, {{3, {32, 0}}, {4, {8, 0}}}}, 1, 8},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct box box;
        make_box(&rows[i].laid_out, &box);
        cr_assert(eq(int, box.n, rows[i].n_axes), "row %zu", i);
        int64_t run_bytes = box_take_run(&box, rows[i].laid_out.item_bytes);
        cr_assert(eq(i64, run_bytes, rows[i].run_bytes), "row %zu", i);
        cr_assert(eq(int, box.n, rows[i].n_axes - (run_bytes > rows[i].laid_out.item_bytes)));
    }
}

/* The box fits 63 bits, what lies behind its end does not. */
Test(box, walks_to_the_end_of_what_can_be_addressed)
{
    const int64_t far = INT64_C(1) << 62;
    struct laid_out b = {
        .item_bytes = 1, .n_axes = 2, .axes = {{2, {far, -far}}, {3, {1, far / 3}}}};
    struct box box;
    check_walk(&b);
    make_box(&b, &box);
    cr_assert(eq(int, box.n, 2));
}
