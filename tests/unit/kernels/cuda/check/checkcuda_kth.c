/* The kth smallest on the device, against sorting: any choice of axes, boxes of any shape, walked
 * in any order, in layouts drawn at random; keys that are inputs and that are computed, with ties
 * and both ends of their dtype; places that are known and that follow from how many elements are no
 * NaN. Grains of several shapes are in one tile. */
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 9000
#define N_GRAINS     5
#define N_PLACES     4
#define SPACE        (1 << 14)

struct kth_trial {
    int ndim;
    uint32_t reduced_axes;
    enum dtype dtype;
    bool is_computed;
    struct kth_rank places[N_PLACES];
    struct built built;
    int64_t starts[N_GRAINS][3];
};

static struct grain grains[N_GRAINS];
static char keys[N_GRAINS][MAX_ELEMENTS * 8];
static uint64_t sorted[MAX_ELEMENTS][2]; /* cell, key */
static char *node;

static void report(struct checkcuda *c, const struct kth_trial *t, unsigned g, const char *what)
{
    c->check.n_failed++;
    printf("FAILED kth, axes %x of %d, %s%s: %s\n    seed %llu, grain %u, ", t->reduced_axes,
           t->ndim, dtype_name(t->dtype), t->is_computed ? ", computed" : "", what,
           (unsigned long long)c->check.seed, g);
    shape_print(&grains[g].shape);
    printf("\n");
    laid_print("keys", &grains[g].inputs[0], &grains[g].shape);
}

static void build(struct kth_trial *t)
{
    struct built *b = &t->built;
    struct operand none = {0};
    built_init(b);
    struct operand x = built_input(b, t->dtype);
    if (t->is_computed) { /* and so turned over */
        union scalar most = {.u64 = t->dtype == DTYPE_UINT32 ? UINT32_MAX : UINT64_MAX};
        x = built_insn(b, OP_SUBTRACT, t->dtype, t->dtype, 0, built_const(b, t->dtype, most), x,
                       none);
    }
    for (unsigned i = 0; i < N_PLACES; i++) {
        built_reduction(b, OP_KTH, t->dtype, x);
        b->program.reductions[i].kth = t->places[i];
    }
    struct pass *pass = &b->program.passes[0];
    pass->reduced_axes = t->reduced_axes;
    pass->ndim = t->ndim;
    for (int i = 0; i < t->ndim; i++)
        pass->shape[i] = SPACE;
}

static uint64_t n_cells_of(const struct kth_trial *t, const struct shape *s)
{
    uint64_t n = 1;
    for (int i = 0; i < s->ndim; i++)
        n *= t->reduced_axes >> i & 1 ? 1 : (uint64_t)s->count[i];
    return n;
}

/* One cell of as many elements as there may be, or one less. */
static void shape_largest(const struct kth_trial *t, struct shape *s)
{
    *s = (struct shape){.ndim = t->ndim, .n = PROGRAM_MAX_KTH_ELEMENTS - check_below(2)};
    for (int i = 0; i < t->ndim; i++) {
        s->count[i] = 1;
        s->order[i] = i;
    }
    s->count[__builtin_ctz(t->reduced_axes)] = (int64_t)s->n;
}

/* Returns how many elements a cell has. */
static uint64_t draw_shape(struct kth_trial *t, unsigned g)
{
    struct shape *s = &grains[g].shape;
    if (check_below(8) == 0)
        shape_largest(t, s);
    else
        do {
            shape_draw(s, (unsigned)t->ndim - 1 + 3 * (unsigned)check_below(13), MAX_ELEMENTS);
        } while (s->ndim != t->ndim || s->n / n_cells_of(t, s) > PROGRAM_MAX_KTH_ELEMENTS);
    for (int i = 0; i < t->ndim; i++)
        t->starts[g][i] = (int64_t)check_below(SPACE - MAX_ELEMENTS);
    grains[g].start = t->starts[g];
    return s->n / n_cells_of(t, s);
}

static void draw_keys(const struct kth_trial *t, unsigned g)
{
    static const uint64_t ranges[] = {1, 2, 50, UINT32_MAX};
    uint64_t range = ranges[check_below(4)], base = check_below(2) ? check_below(UINT32_MAX) : 0;
    uint64_t n_others = check_below(2) ? 50 : 2;
    for (size_t i = 0; i < grains[g].shape.n; i++) {
        uint64_t key = base + check_below(range) * (t->dtype == DTYPE_UINT64 ? 0x100000001u : 1);
        if (check_below(n_others) == 0)
            key = check_below(2) ? UINT64_MAX : 0;
        if (t->dtype == DTYPE_UINT32)
            ((uint32_t *)keys[g])[i] = (uint32_t)key;
        else
            ((uint64_t *)keys[g])[i] = key;
    }
    grain_draw(&grains[g].inputs[0], &grains[g].shape, t->dtype, false);
}

/* The element's cell, in the order in which kept axes are walked. */
static uint64_t cell_of(const struct kth_trial *t, const struct shape *s, size_t element)
{
    int64_t at[3] = {0};
    uint64_t cell = 0, step = 1;
    for (int i = s->ndim - 1; i >= 0; i--) {
        at[i] = (int64_t)(element % (size_t)s->count[i]);
        element /= (size_t)s->count[i];
    }
    for (int i = s->ndim - 1; i >= 0; i--) {
        int axis = s->order[i];
        if (t->reduced_axes >> axis & 1)
            continue;
        cell += step * (uint64_t)at[axis];
        step *= (uint64_t)s->count[axis];
    }
    return cell;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    if (x[0] != y[0])
        return x[0] < y[0] ? -1 : 1;
    return (x[1] > y[1]) - (x[1] < y[1]);
}

static void sort(const struct kth_trial *t, unsigned g)
{
    const struct shape *s = &grains[g].shape;
    for (size_t i = 0; i < s->n; i++) {
        uint64_t key =
            t->dtype == DTYPE_UINT32 ? ((uint32_t *)keys[g])[i] : ((uint64_t *)keys[g])[i];
        sorted[i][0] = cell_of(t, s, i);
        sorted[i][1] = !t->is_computed ? key : t->dtype == DTYPE_UINT32 ? UINT32_MAX - key : ~key;
    }
    qsort(sorted, s->n, sizeof(sorted[0]), compare);
}

/* Of the cell whose sorted keys begin at `first`; the CPU's test has the ranks' own check. */
static uint64_t wanted_of(const struct kth_trial *t, const struct kth_rank *place, uint64_t first,
                          uint64_t n)
{
    uint64_t nan = t->dtype == DTYPE_UINT32 ? UINT32_MAX : UINT64_MAX, n_numbers = n;
    while (n_numbers > 0 && sorted[first + n_numbers - 1][1] == nan)
        n_numbers--;
    if (place->by == KTH_COUNT)
        return n_numbers;
    return sorted[first + kth_rank(place, (uint32_t)n_numbers)][1];
}

static bool check_grain(struct checkcuda *c, const struct kth_trial *t,
                        const struct reduce_layout *layout, unsigned g)
{
    uint64_t n_reduced = grains[g].shape.n / layout->n_cells;
    size_t item_bytes = dtype_size(t->dtype);
    sort(t, g);
    for (unsigned i = 0; i < N_PLACES; i++) {
        const char *values = reduce_values(layout, node, i);
        for (uint64_t cell = 0; cell < layout->n_cells; cell++) {
            uint64_t got = 0, wanted = wanted_of(t, &t->places[i], cell * n_reduced, n_reduced);
            memcpy(&got, values + cell * item_bytes, item_bytes);
            if (got == wanted)
                continue;
            report(c, t, g, "another element");
            printf("    place %u by %d (%g) of cell %llu: %llx, wanted %llx\n", t->places[i].at,
                   t->places[i].by, t->places[i].q, (unsigned long long)cell,
                   (unsigned long long)got, (unsigned long long)wanted);
            return false;
        }
    }
    return true;
}

static void draw_rules(struct kth_trial *t)
{
    struct kth_rank rule = {.by = KTH_RANK,
                            .rounding = (uint8_t)check_below(3),
                            .is_inner = check_below(2),
                            .q = (double)check_below(9) / 8,
                            .shift = (double)check_below(3) / 3};
    for (unsigned i = 1; i < N_PLACES; i++) {
        t->places[i] = rule;
        rule.by = i == 1 ? KTH_BEHIND : KTH_COUNT;
    }
}

static void draw(struct kth_trial *t)
{
    uint64_t least = MAX_ELEMENTS;
    t->dtype = check_below(2) ? DTYPE_UINT32 : DTYPE_UINT64;
    t->is_computed = check_below(2);
    for (unsigned g = 0; g < N_GRAINS; g++) {
        uint64_t n = draw_shape(t, g);
        least = n < least ? n : least;
        draw_keys(t, g);
    }
    for (unsigned i = 0; i < N_PLACES; i++)
        t->places[i] = (struct kth_rank){.at = (uint32_t)check_below(least)};
    if (least > 1 && check_below(2)) /* neighbours, and both ends */
        t->places[1].at = t->places[0].at > 0 ? t->places[0].at - 1 : 1;
    if (check_below(2)) {
        t->places[2].at = 0;
        t->places[3].at = (uint32_t)least - 1;
    } else {
        draw_rules(t);
    }
}

static bool run_trial(struct checkcuda *c, struct kth_trial *t)
{
    struct cuda_tile tile;
    draw(t);
    build(t);
    rig_begin(c->rig, &tile, &t->built.program, 0, NULL, grains, N_GRAINS);
    for (unsigned g = 0; g < N_GRAINS; g++) {
        grain_place(&grains[g], &tile);
        laid_store(&grains[g].inputs[0], &grains[g].shape, t->dtype, keys[g]);
        grain_add(&grains[g], &tile);
    }
    rig_run(c->rig, &tile);
    for (unsigned g = 0; g < N_GRAINS; g++) {
        struct reduce_layout layout;
        struct engine_warnings warnings = {0};
        grain_layout(&grains[g], &tile, &layout);
        c->check.n_run++;
        if (layout.n_bytes > NODE_MAX_BYTES)
            exit(2);
        memset(node, 0x5a, layout.n_bytes);
        if (cuda_tile_result(&tile, g, &layout, node, &warnings)) {
            report(c, t, g, "another status");
            return false;
        }
        if (!check_grain(c, t, &layout, g))
            return false;
    }
    if (rig_is_input_whole(c->rig, &tile))
        return true;
    report(c, t, 0, "wrote to its inputs or to the code");
    return false;
}

void checkcuda_kth(struct checkcuda *c)
{
    static struct kth_trial t;
    if (c->check.filter && !strstr("kth", c->check.filter))
        return;
    check_restart(&c->check, "kth", 0);
    node = aligned_alloc(64, NODE_MAX_BYTES);
    for (t.ndim = 1; t.ndim <= 3; t.ndim++)
        for (t.reduced_axes = 1; t.reduced_axes < 1u << t.ndim; t.reduced_axes++)
            for (unsigned i = 0; i < c->check.n_trials; i++)
                if (!run_trial(c, &t))
                    goto end;
end:
    free(node);
}
