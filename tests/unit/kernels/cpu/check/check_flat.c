/* Every kernel at every level, called directly: all lengths around KERNEL_GRANULE, sources and
 * result misaligned by elements, the result beside the sources or on one of them.
 *
 * Exact ops: the plain level gives the truth (check_truth.c), every other level the plain level's
 * bits, and all count the same events. Functions of a vector library: every level is within
 * CHECK_MAX_ULP of the plain level, with the same special results, and an element's bits do not
 * depend on its place and its neighbours. Buffers are allocated to the byte, so that a sanitizer
 * sees what is read beyond them; behind the result lies a margin that must not change.
 */
#include "tests/unit/kernels/cpu/check/check.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN_BYTES 64
#define MAX_ITEMS    2112
#define GRANULES(n)  (((n) + KERNEL_GRANULE - 1) / KERNEL_GRANULE * KERNEL_GRANULE)

struct array_of { /* one operand */
    char *block, *items;
    size_t n_items, item_bytes;
    unsigned offset; /* elements from an aligned address */
};

struct trial {
    const struct check_case *k;
    enum cpu_level level;
    size_t n;
    int place; /* of the result: beside the sources (-1), or on source 0 to 2 */
    struct array_of src[3], copy[3], dst;
};

static void array_init(struct array_of *a, enum dtype dtype, size_t n, size_t margin_bytes)
{
    a->item_bytes = dtype_size(dtype);
    a->n_items = n;
    a->offset = check_below(2) ? (unsigned)check_below(16) : 0;
    if (posix_memalign((void **)&a->block, 64, (a->offset + n) * a->item_bytes + margin_bytes))
        exit(2);
    a->items = a->block + a->offset * a->item_bytes;
}

static void array_deinit(struct array_of *a)
{
    free(a->block);
}

static void trial_init(struct trial *t)
{
    const struct check_case *k = t->k;
    size_t n = GRANULES(t->n);
    assert(n <= MAX_ITEMS);
    void *items[3] = {NULL};
    for (unsigned j = 0; j < k->n_src; j++) {
        array_init(&t->src[j], k->src[j], n, MARGIN_BYTES);
        array_init(&t->copy[j], k->src[j], n, 0);
        items[j] = t->src[j].items;
    }
    check_fill_sources(k, items, n, check_below(4) == 0);
    for (unsigned j = 0; j < k->n_src; j++)
        memcpy(t->copy[j].items, t->src[j].items, n * t->src[j].item_bytes);
    array_init(&t->dst, k->result, n, MARGIN_BYTES);
    t->place = (int)check_below(6) - 2;
    if (t->place < 0 || (unsigned)t->place >= k->n_src ||
        t->src[t->place].item_bytes != t->dst.item_bytes)
        t->place = -1;
}

static void trial_deinit(struct trial *t)
{
    for (unsigned j = 0; j < t->k->n_src; j++) {
        array_deinit(&t->src[j]);
        array_deinit(&t->copy[j]);
    }
    array_deinit(&t->dst);
}

static struct kernel_events call(const struct check_case *k, enum cpu_level level, size_t n,
                                 void *dst, const void *a, const void *b, const void *c)
{
    struct kernel_events events = {0};
    bool is_exchanged;
    kernel_fn *kernel = check_kernel(k, level, &is_exchanged);
    kernel(n, dst, is_exchanged ? b : a, is_exchanged ? a : b, c, &events);
    return events;
}

static void report(struct check *c, const struct trial *t, size_t i, const char *what,
                   const void *got, const void *wanted)
{
    c->n_failed++;
    printf("FAILED %s, level %s: %s\n", t->k->name, cpu_level_name(t->level), what);
    printf("    length %zu, seed %llu, result misaligned by %u%s", t->n,
           (unsigned long long)c->seed, t->dst.offset, t->place < 0 ? "" : ", on source");
    if (t->place >= 0)
        printf(" %d", t->place);
    printf(", sources misaligned by");
    for (unsigned j = 0; j < t->k->n_src; j++)
        printf(" %u", t->src[j].offset);
    printf("\n");
    if (!got)
        return;
    printf("    element %zu\n", i);
    for (unsigned j = 0; j < t->k->n_src; j++)
        check_print("source", t->copy[j].items + i * t->copy[j].item_bytes, t->k->src[j]);
    check_print("wanted", wanted, t->k->result);
    check_print("got   ", got, t->k->result);
}

static bool is_same_event(struct kernel_events a, struct kernel_events b)
{
    return a.n_divide_by_zero == b.n_divide_by_zero && a.n_invalid_casts == b.n_invalid_casts &&
           a.has_negative_power == b.has_negative_power;
}

static bool check_against_truth(struct check *c, const struct trial *t, const char *got,
                                struct kernel_events got_events)
{
    const void *src[3] = {t->copy[0].items, t->copy[1].items, t->copy[2].items};
    struct kernel_events events = {0};
    for (size_t i = 0; i < t->n; i++) {
        char wanted[8];
        const char *item = got + i * t->dst.item_bytes;
        bool is_any_bit = check_truth(t->k, src, i, wanted, &events);
        if (got_events.has_negative_power)
            continue;
        if (is_any_bit ? memcmp(item, wanted, t->dst.item_bytes) != 0
                       : !check_same(item, wanted, t->k->result)) {
            report(c, t, i, "not what plain C gives", item, wanted);
            return false;
        }
    }
    if (is_same_event(events, got_events))
        return true;
    report(c, t, 0, "not the events that plain C counts", NULL, NULL);
    return false;
}

static bool compare_items(struct check *c, const struct trial *t, const char *got,
                          const char *wanted)
{
    for (size_t i = 0; i < t->n; i++) {
        const char *x = got + i * t->dst.item_bytes, *y = wanted + i * t->dst.item_bytes;
        const char *sources[2] = {NULL, NULL};
        for (int k = 0; k < 2 && t->copy[k].items; k++)
            sources[k] = t->copy[k].items + i * t->copy[k].item_bytes;
        if (t->k->is_exact ? !check_same(x, y, t->k->result)
                           : !check_is_close(t->k, sources[0], sources[1], x, y)) {
            report(c, t, i, "not the plain level's result", x, y);
            return false;
        }
    }
    return true;
}

/* Each element again, at another place among other neighbours. */
static bool check_places(struct check *c, const struct trial *t, const char *got)
{
    size_t n = GRANULES(t->n), item_bytes = t->dst.item_bytes, order[MAX_ITEMS];
    struct array_of moved[3] = {0}, again;
    for (size_t i = 0; i < n; i++) {
        size_t j = check_below(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (unsigned j = 0; j < t->k->n_src; j++) {
        const struct array_of *from = &t->copy[j];
        array_init(&moved[j], t->k->src[j], n, 0);
        for (size_t i = 0; i < n; i++)
            memcpy(moved[j].items + i * from->item_bytes, from->items + order[i] * from->item_bytes,
                   from->item_bytes);
    }
    array_init(&again, t->k->result, n, 0);
    call(t->k, t->level, n, again.items, moved[0].items, moved[1].items, moved[2].items);
    bool is_same = true;
    for (size_t i = 0; i < n && is_same; i++) {
        const char *x = again.items + i * item_bytes, *y = got + order[i] * item_bytes;
        if (order[i] >= t->n || check_same(x, y, t->k->result))
            continue;
        report(c, t, order[i], "another result at another place", x, y);
        is_same = false;
    }
    for (unsigned j = 0; j < t->k->n_src; j++)
        array_deinit(&moved[j]);
    array_deinit(&again);
    return is_same;
}

static bool is_margin_whole(const struct array_of *a)
{
    for (size_t i = 0; i < MARGIN_BYTES; i++)
        if (a->items[a->n_items * a->item_bytes + i] != 0x5a)
            return false;
    return true;
}

static bool check_surroundings(struct check *c, const struct trial *t, const struct array_of *dst)
{
    if (!is_margin_whole(dst)) {
        report(c, t, 0, "wrote behind its result", NULL, NULL);
        return false;
    }
    for (int j = 0; j < (int)t->k->n_src; j++) {
        if (j != t->place &&
            memcmp(t->src[j].items, t->copy[j].items, t->src[j].n_items * t->src[j].item_bytes)) {
            report(c, t, 0, "wrote to a source", NULL, NULL);
            return false;
        }
    }
    return true;
}

static bool run_trial(struct check *c, struct trial *t)
{
    const struct check_case *k = t->k;
    trial_init(t);
    struct array_of *dst = t->place < 0 ? &t->dst : &t->src[t->place], plain;
    memset(dst->items + dst->n_items * dst->item_bytes, 0x5a, MARGIN_BYTES);
    struct kernel_events events =
        call(k, t->level, t->n, dst->items, t->src[0].items, t->src[1].items, t->src[2].items);
    bool is_good = check_surroundings(c, t, dst);
    if (is_good && t->level == CPU_LEVEL_PLAIN) {
        is_good = k->is_exact ? check_against_truth(c, t, dst->items, events)
                              : check_places(c, t, dst->items);
    } else if (is_good) {
        array_init(&plain, k->result, GRANULES(t->n), MARGIN_BYTES);
        struct kernel_events wanted = call(k, CPU_LEVEL_PLAIN, t->n, plain.items, t->copy[0].items,
                                           t->copy[1].items, t->copy[2].items);
        if (!is_same_event(events, wanted)) {
            report(c, t, 0, "another number of events", NULL, NULL);
            is_good = false;
        } else if (!wanted.has_negative_power) {
            is_good = compare_items(c, t, dst->items, plain.items) &&
                      (k->is_exact || check_places(c, t, dst->items));
        }
        array_deinit(&plain);
    }
    trial_deinit(t);
    c->n_run++;
    return is_good;
}

static void check_case_flat(struct check *c, const struct check_case *k)
{
    static const size_t long_lengths[] = {191, 192, 193, 255, 256, 257, 500, 1000, 2049};
    bool is_exchanged;
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        if (!check_has_level(level) ||
            (level > CPU_LEVEL_PLAIN && check_kernel(k, (enum cpu_level)level, &is_exchanged) ==
                                            check_kernel(k, CPU_LEVEL_PLAIN, &is_exchanged)))
            continue;
        check_restart(c, k->name, level);
        struct trial t = {.k = k, .level = (enum cpu_level)level};
        bool is_good = true;
        for (t.n = 1; t.n <= 2 * KERNEL_GRANULE + 2 && is_good; t.n++)
            is_good = run_trial(c, &t);
        for (size_t i = 0; i < c->n_trials && is_good; i++) {
            t.n = long_lengths[i % (sizeof(long_lengths) / sizeof(long_lengths[0]))];
            is_good = run_trial(c, &t);
        }
    }
}

void check_flat(struct check *c)
{
    check_each_case(c, check_case_flat);
}
