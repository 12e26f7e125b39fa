/* Elements at places of the sorted order, known ones and ones that follow from how many elements
 * are no NaN: those that sorting gives, of boxes of any shape, walked in any order, at every level.
 */
#include "tests/unit/kernels/cpu/builder.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NDIM         4
#define MAX_ELEMENTS (ENGINE_MAX_KEY_BYTES / sizeof(uint32_t))

static struct built b;
static uint64_t elements[MAX_ELEMENTS], cell_keys[MAX_ELEMENTS];
static uint8_t node[64 + 8 * 8 * (MAX_ELEMENTS + 8)] __attribute__((aligned(64)));

struct trial {
    enum dtype dtype;
    int64_t count[NDIM];
    int order[NDIM];
    uint32_t axes;
    unsigned n_places;
    struct kth_rank places[8];
    bool is_computed;
};

static uint64_t below(uint64_t n)
{
    return (uint64_t)rand() % n;
}

static uint64_t key_at(const struct trial *t, uint64_t i)
{
    return t->dtype == DTYPE_UINT32 ? ((const uint32_t *)elements)[i] : elements[i];
}

/* Ties, narrow ranges, and both ends of the dtype's. */
static void fill(const struct trial *t, size_t n)
{
    uint64_t base = ((uint64_t)rand() << 33) ^ ((uint64_t)rand() << 11) ^ (uint64_t)rand();
    uint64_t kind = below(5), range = kind == 0 ? 1 : kind == 1 ? 3 : kind == 2 ? 1000 : 0;
    uint64_t ends = kind == 4 ? 2 : 8;
    for (size_t i = 0; i < n; i++) {
        uint64_t any = ((uint64_t)rand() << 33) ^ ((uint64_t)rand() << 11) ^ (uint64_t)rand();
        uint64_t key = range ? base + any % range : any;
        if (kind >= 3 && below(ends) == 0)
            key = below(4) ? UINT64_MAX : 0;
        if (t->dtype == DTYPE_UINT32)
            ((uint32_t *)elements)[i] = (uint32_t)key;
        else
            elements[i] = key;
    }
}

static void build(const struct trial *t)
{
    struct operand none = {0};
    built_init(&b);
    struct operand x = built_input(&b, t->dtype);
    if (t->is_computed) { /* the keys, by a way around */
        union scalar most = {.u64 = t->dtype == DTYPE_UINT32 ? UINT32_MAX : UINT64_MAX};
        struct operand c = built_const(&b, t->dtype, most);
        x = built_insn(&b, OP_BITWISE_XOR, t->dtype, t->dtype, 0, x, c, none);
        x = built_insn(&b, OP_BITWISE_XOR, t->dtype, t->dtype, 0, x, c, none);
    }
    for (unsigned i = 0; i < t->n_places; i++) {
        built_reduction(&b, OP_KTH, t->dtype, x);
        b.program.reductions[i].kth = t->places[i];
    }
    struct pass *pass = &b.program.passes[0];
    pass->ndim = NDIM;
    pass->reduced_axes = t->axes;
    for (int i = 0; i < NDIM; i++)
        pass->shape[i] = t->count[i];
}

static int run(const struct trial *t, enum cpu_level level, struct reduce_layout *layout)
{
    struct engine_warnings warnings = {0};
    struct engine_view view = {.base = elements};
    struct engine_box box = {.ndim = NDIM, .count = t->count, .axis_order = t->order};
    int64_t step = (int64_t)dtype_size(t->dtype);
    uint64_t n_cells = 1;
    for (int i = NDIM - 1; i >= 0; i--) {
        view.strides[i] = step;
        step *= t->count[i];
        n_cells *= t->axes >> i & 1 ? 1 : (uint64_t)t->count[i];
    }
    reduce_layout_init(layout, &b.program, 0, n_cells);
    memset(node, 0x5a, layout->n_bytes);
    return cpu_engine_run(cpu_engine_get(level), &b.program, 0, &box, &view, NULL, NULL, layout,
                          node, &warnings, test_scratch());
}

static int compare(const void *a, const void *c)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)c;
    return (x > y) - (x < y);
}

static uint64_t number_of(const struct trial *t, const int64_t *at)
{
    int64_t number = 0;
    for (int i = 0; i < NDIM; i++)
        number = number * t->count[i] + at[i];
    return (uint64_t)number;
}

/* In the words of kth_rank.h, with the library's functions. */
static uint64_t ranked(const struct kth_rank *place, uint64_t n)
{
    double x = (place->is_inner ? (double)n - 1 : (double)n) * place->q + place->shift;
    x = place->rounding == KTH_CEIL ? ceil(x) : place->rounding == KTH_RINT ? rint(x) : floor(x);
    x = fmax(place->is_inner ? x : x - 1, 0) + (place->by == KTH_BEHIND);
    return (uint64_t)fmax(fmin(x, (double)n - 1), 0);
}

static uint64_t wanted(const struct trial *t, const struct kth_rank *place, uint64_t n)
{
    uint64_t nan = t->dtype == DTYPE_UINT32 ? UINT32_MAX : UINT64_MAX, n_numbers = n;
    while (n_numbers > 0 && cell_keys[n_numbers - 1] == nan)
        n_numbers--;
    if (place->by == KTH_COUNT)
        return n_numbers;
    return cell_keys[place->by == KTH_AT ? place->at : ranked(place, n_numbers)];
}

/* Cells are in the order in which their kept axes are walked. */
static void check_cells(const struct trial *t, enum cpu_level level,
                        const struct reduce_layout *layout)
{
    for (uint64_t cell = 0; cell < layout->n_cells; cell++) {
        int64_t start[NDIM] = {0}, at[NDIM];
        uint64_t rest = cell, n = 0;
        for (int i = NDIM - 1; i >= 0; i--) {
            int axis = t->order[i];
            if (t->axes >> axis & 1)
                continue;
            start[axis] = (int64_t)(rest % (uint64_t)t->count[axis]);
            rest /= (uint64_t)t->count[axis];
        }
        int64_t most[NDIM];
        for (int i = 0; i < NDIM; i++)
            most[i] = t->axes >> i & 1 ? t->count[i] : start[i] + 1;
        for (at[0] = start[0]; at[0] < most[0]; at[0]++)
            for (at[1] = start[1]; at[1] < most[1]; at[1]++)
                for (at[2] = start[2]; at[2] < most[2]; at[2]++)
                    for (at[3] = start[3]; at[3] < most[3]; at[3]++)
                        cell_keys[n++] = key_at(t, number_of(t, at));
        qsort(cell_keys, n, sizeof(cell_keys[0]), compare);
        for (unsigned i = 0; i < t->n_places; i++) {
            const char *plane = reduce_values(layout, node, i);
            uint64_t got = 0;
            memcpy(&got, plane + cell * dtype_size(t->dtype), dtype_size(t->dtype));
            cr_assert(
                eq(u64, got, wanted(t, &t->places[i], n)),
                "level %d, %s (%d, %d, %d, %d) axes %x order %d%d%d%d, cell %d, %d: %d (%g) of %d",
                (int)level, dtype_name(t->dtype), (int)t->count[0], (int)t->count[1],
                (int)t->count[2], (int)t->count[3], t->axes, t->order[0], t->order[1], t->order[2],
                t->order[3], (int)cell, t->places[i].by, (int)t->places[i].at, t->places[i].q,
                (int)n);
        }
    }
}

static uint64_t n_reduced_of(const struct trial *t)
{
    uint64_t n = 1;
    for (int i = 0; i < NDIM; i++)
        n *= t->axes >> i & 1 ? (uint64_t)t->count[i] : 1;
    return n;
}

/* Halves and other shares of small numbers of elements are where methods differ. */
static void choose_rule(struct kth_rank *place)
{
    static const double qs[] = {0, 1, 0.5, 0.25, 0.1, 1 / 3.0}, shifts[] = {0, 0.5, 1 / 3.0, 0.9};
    place->by = (uint8_t)(KTH_RANK + below(3));
    if (place->by == KTH_COUNT)
        return;
    place->q = below(2) ? qs[below(6)] : (double)rand() / RAND_MAX;
    place->shift = shifts[below(4)];
    place->rounding = (uint8_t)below(3);
    place->is_inner = below(2);
}

/* kinds: 0: known places, 1: others, 2: of both kinds. */
static void choose_places(struct trial *t)
{
    uint64_t n = n_reduced_of(t), kinds = below(3);
    t->n_places = 1 + (unsigned)below(8);
    for (unsigned i = 0; i < t->n_places; i++) {
        struct kth_rank *place = &t->places[i], *before = i > 0 ? place - 1 : place;
        bool has_rule = kinds == 1 || (kinds == 2 && below(2));
        if (has_rule && before->by == KTH_RANK && below(2)) {
            *place = *before;
            place->by = KTH_BEHIND;
        } else if (has_rule) {
            choose_rule(place);
        } else {
            place->at = (uint32_t)below(n);
            if (i > 0 && before->by == KTH_AT && below(2) && before->at + 1 < n)
                place->at = before->at + 1;
            else if (below(4) == 0)
                place->at = below(2) ? (uint32_t)n - 1 : 0;
        }
    }
}

static void choose_box(struct trial *t)
{
    static const uint64_t most[] = {2, 5, 40, 300, 9000};
    *t = (struct trial){.dtype = below(2) ? DTYPE_UINT32 : DTYPE_UINT64, .is_computed = below(2)};
    for (int i = 0; i < NDIM; i++) {
        int at = (int)below((uint64_t)i + 1);
        t->order[i] = t->order[at];
        t->order[at] = i;
    }
    uint64_t n;
    do {
        n = dtype_size(t->dtype);
        t->axes = 1 + (uint32_t)below((1u << NDIM) - 1);
        for (int i = 0; i < NDIM; i++)
            n *= (uint64_t)(t->count[i] = 1 + (int64_t)below(most[below(5)]));
    } while (n > ENGINE_MAX_KEY_BYTES || n_reduced_of(t) > PROGRAM_MAX_KTH_ELEMENTS);
}

Test(kth, are_those_that_sorting_gives)
{
    for (unsigned k = 0; k < 900; k++) {
        struct reduce_layout layout;
        struct trial t;
        srand(k);
        choose_box(&t);
        choose_places(&t);
        fill(&t, (size_t)(t.count[0] * t.count[1] * t.count[2] * t.count[3]));
        build(&t);
        cr_assert(zero(int, run(&t, (enum cpu_level)(k % 4), &layout)));
        check_cells(&t, (enum cpu_level)(k % 4), &layout);
    }
}

/* No plan has these; the engine writes nowhere that it must not. */
Test(kth, of_boxes_that_are_no_plans_are_refused)
{
    struct reduce_layout layout;
    struct trial t = {.dtype = DTYPE_UINT32,
                      .count = {1, 100, 10, 1},
                      .order = {0, 1, 2, 3},
                      .axes = 2,
                      .n_places = 2,
                      .places = {{.at = 0}, {.at = 99}}};
    build(&t);
    cr_assert(zero(int, run(&t, CPU_LEVEL_AVX2, &layout)));
    t.places[1].at = 100; /* beyond the end */
    build(&t);
    cr_assert(eq(int, run(&t, CPU_LEVEL_AVX2, &layout), -EINVAL));
    t.places[1].at = 99;
    build(&t);
    b.program.reductions[1].op = OP_MIN; /* another reduction beside it */
    cr_assert(eq(int, run(&t, CPU_LEVEL_AVX2, &layout), -EINVAL));
    t.count[1] = PROGRAM_MAX_KTH_ELEMENTS + 1;
    t.count[2] = 1;
    build(&t);
    cr_assert(eq(int, run(&t, CPU_LEVEL_AVX2, &layout), -EINVAL));
    t.count[1] = 10;
    t.count[2] = MAX_ELEMENTS / 10 + 1; /* more keys than there is room for */
    t.places[1].at = 1;
    build(&t);
    cr_assert(eq(int, run(&t, CPU_LEVEL_AVX2, &layout), -EINVAL));
}
