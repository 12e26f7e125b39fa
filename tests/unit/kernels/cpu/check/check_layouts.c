/* Every kernel at every level through the engine, over random boxes and memory layouts, against the
 * plain level over contiguous arrays.
 *
 * A trial draws a shape of one to three axes (odd lengths), an order of walking, and for each
 * operand: which axes it broadcasts, the order of its axes in memory, gaps, signs, misalignment,
 * byte order; the output may lie on the first input. What is not an element of the output must not
 * change. Math functions may differ from the plain level within their accuracy (see
 * check_accuracy.c); here they must give the same bits wherever an element lies.
 */
#include "tests/unit/kernels/cpu/check/laid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 20000
#define ARENA_BYTES  (MAX_ELEMENTS * 8 * 16 + 4096)

static struct laid laid_inputs[3], laid_output;
static char logical[3][MAX_ELEMENTS * 8], expected[MAX_ELEMENTS * 8], before[ARENA_BYTES];

/* Random values into the operand, and the same, contiguous, into `flat`. */
static void fill_operand(const struct laid *l, const struct shape *s, enum dtype dtype, char *flat,
                         bool is_moderate)
{
    check_fill(flat, dtype, s->n, is_moderate);
    laid_store(l, s, dtype, flat);
}

static void report(struct check *c, const struct check_case *k, enum cpu_level level,
                   const struct shape *s, bool is_in_place, const char *what)
{
    c->n_failed++;
    printf("FAILED %s, level %s: %s\n    seed %llu, ", k->name, cpu_level_name(level), what,
           (unsigned long long)c->seed);
    shape_print(s);
    printf("%s\n", is_in_place ? ", in place" : "");
    for (unsigned i = 0; i < k->n_src; i++)
        laid_print("input", &laid_inputs[i], s);
    laid_print("output", &laid_output, s);
}

static bool compare_output(struct check *c, const struct check_case *k, enum cpu_level level,
                           const struct shape *s, const struct laid *out, bool is_in_place)
{
    size_t item_bytes = dtype_size(k->result);
    for (size_t i = 0; i < s->n; i++) {
        char item[8];
        laid_copy_item(item, laid_item(out, s, i), item_bytes, out->view.is_swapped);
        if (!check_same(item, expected + i * item_bytes, k->result)) {
            report(c, k, level, s, is_in_place, "another result");
            printf("    element %zu\n", i);
            for (unsigned j = 0; j < k->n_src; j++)
                check_print("source", logical[j] + i * dtype_size(k->src[j]), k->src[j]);
            check_print("wanted", expected + i * item_bytes, k->result);
            check_print("got   ", item, k->result);
            return false;
        }
        memcpy(laid_item(out, s, i), before + (laid_item(out, s, i) - out->arena), item_bytes);
    }
    if (memcmp(out->arena, before, out->n_bytes) == 0)
        return true;
    report(c, k, level, s, is_in_place, "wrote beside its output");
    return false;
}

static bool run_trial(struct check *c, const struct check_case *k, enum cpu_level level,
                      unsigned trial)
{
    struct shape s;
    shape_draw(&s, trial, MAX_ELEMENTS);
    bool is_moderate = check_below(3) == 0 || k->op == OP_POWER;
    const void *flat[3];
    for (unsigned i = 0; i < k->n_src; i++) {
        laid_draw(&laid_inputs[i], &s, k->src[i], false);
        fill_operand(&laid_inputs[i], &s, k->src[i], logical[i], is_moderate);
        flat[i] = logical[i];
    }
    bool is_in_place = check_below(4) == 0 && dtype_size(k->src[0]) == dtype_size(k->result);
    for (int i = 0; i < s.ndim; i++)
        is_in_place &= !laid_inputs[0].is_broadcast[i];
    struct laid out = laid_inputs[0];
    if (!is_in_place) {
        laid_draw(&laid_output, &s, k->result, true);
        out = laid_output;
    }
    memcpy(before, out.arena, out.n_bytes);

    static struct built b;
    check_build(&b, k);
    struct engine_warnings wanted, got = {0};
    const struct cpu_engine *engine = cpu_engine_get(level);
    const struct cpu_engine *reference = k->is_exact ? cpu_engine_get(CPU_LEVEL_PLAIN) : engine;
    int wanted_r = run_flat(reference, &b, s.n, flat, (void *[]){expected}, NULL, &wanted);
    struct engine_box box = {.ndim = s.ndim, .count = s.count, .axis_order = s.order};
    struct engine_view in[3] = {laid_inputs[0].view, laid_inputs[1].view, laid_inputs[2].view};
    int r = cpu_engine_run(engine, &b.program, 0, &box, in, &out.view, NULL, NULL, NULL, &got,
                           test_scratch());
    c->n_run++;
    if (r != wanted_r) {
        report(c, k, level, &s, is_in_place, "another status");
        return false;
    }
    if (r)
        return true;
    if (wanted.n_divide_by_zero != got.n_divide_by_zero ||
        wanted.n_invalid_casts != got.n_invalid_casts) {
        report(c, k, level, &s, is_in_place, "another number of warnings");
        return false;
    }
    return compare_output(c, k, level, &s, &out, is_in_place);
}

static void check_case_layouts(struct check *c, const struct check_case *k)
{
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        if (!check_has_level(level))
            continue;
        check_restart(c, k->name, level);
        for (unsigned i = 0; i < c->n_trials; i++)
            if (!run_trial(c, k, (enum cpu_level)level, i))
                break;
    }
}

void check_layouts(struct check *c)
{
    for (int i = 0; i < 3; i++)
        laid_inputs[i].arena = aligned_alloc(64, (ARENA_BYTES + 63) & ~63);
    laid_output.arena = aligned_alloc(64, (ARENA_BYTES + 63) & ~63);
    memset(laid_output.arena, 0x5a, ARENA_BYTES);
    check_each_case(c, check_case_layouts);
    for (int i = 0; i < 3; i++)
        free(laid_inputs[i].arena);
    free(laid_output.arena);
}
