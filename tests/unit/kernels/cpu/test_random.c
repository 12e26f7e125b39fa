/* Random numbers, what must be exact: Philox's known answers, the numbering of draws, the same bits
 * at all levels and in any order, ends of ranges, the accuracy of the inverse distribution
 * functions, the rule for means that are none, permutations being permutations.
 */
#include "kernels/common/random_poisson.h"
#include "tests/unit/kernels/cpu/random_rig.h"

#include <math.h>
#include <string.h>

#define N ((size_t)1000) /* granules and a tail */

/* The known answers that Random123's authors give for philox4x32-10. */
Test(random, philox_gives_the_known_answers)
{
    static const struct {
        u32 counter[4], key[2], answer[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const u32 *c = known[i].counter, *k = known[i].key;
        struct philox_block block =
            philox(k[0] | (u64)k[1] << 32, c[0] | (u64)c[1] << 32, c[2], c[3]);
        for (int j = 0; j < 4; j++)
            cr_assert(eq(u32, block.word[j], known[i].answer[j]), "vector %zu, word %d", i, j);
    }
}

/* Vectors compute blocks whose try is 0: the first known answer, at every level. */
Test(random, kernels_give_the_known_answer)
{
    static const u32 answer[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        const struct cpu_engine *engine = rig_engine(level);
        if (!engine)
            continue;
        u64 *numbers = rig_counting(4, 0), *wide = rig_room(4);
        u32 *narrow = rig_room(4);
        rig_bits(engine, OP_RANDOM_U32, 4, narrow, numbers, 0, 0);
        rig_bits(engine, OP_RANDOM_U64, 4, wide, numbers, 0, 0);
        cr_assert(eq(int, memcmp(narrow, answer, sizeof(answer)), 0), "level %d", level);
        cr_assert(eq(u64, wide[0], answer[0] | (u64)answer[1] << 32), "level %d", level);
        cr_assert(eq(u64, wide[1], answer[2] | (u64)answer[3] << 32), "level %d", level);
        free(numbers);
        free(wide);
        free(narrow);
    }
}

static void expect_draws(const struct cpu_engine *engine, const u64 *numbers)
{
    u32 *narrow = rig_room(N);
    u64 *wide = rig_room(N);
    rig_bits(engine, OP_RANDOM_U32, N, narrow, numbers, SEED, 3);
    rig_bits(engine, OP_RANDOM_U64, N, wide, numbers, SEED, 3);
    for (size_t i = 0; i < N; i++) {
        cr_assert(eq(u32, narrow[i], random_u32(numbers[i], SEED, 3)), "element %zu", i);
        cr_assert(eq(u64, wide[i], random_u64(numbers[i], SEED, 3)), "element %zu", i);
    }
    free(narrow);
    free(wide);
}

/* Runs from any number on, rows with gaps between them, steps, backwards, beyond 2^32: an element's
 * bits depend on its number alone. */
Test(random, draws_depend_on_the_number_alone)
{
    static const struct {
        u64 first, row, gap, step;
    } orders[] = {{0, N, 0, 1},
                  {1, N, 0, 1},
                  {2, N, 0, 1},
                  {3, N, 0, 1},
                  {0, 64, 7, 1},
                  {5, 100, 28, 1},
                  {9, 3, 2, 1},
                  {0, N, 0, 2},
                  {1, N, 0, 4},
                  {4000, N, 0, -(u64)1},
                  {0xffffffc0u * (u64)4, N, 0, 1},
                  {(u64)1 << 62, 130, 1, 1}};
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        const struct cpu_engine *engine = rig_engine(level);
        for (size_t k = 0; engine && k < sizeof(orders) / sizeof(orders[0]); k++) {
            u64 *numbers = rig_counting(N, 0);
            for (size_t i = 0; i < KERNEL_ROUND(N); i++)
                numbers[i] =
                    orders[k].first + i * orders[k].step + i / orders[k].row * orders[k].gap;
            expect_draws(engine, numbers);
            free(numbers);
        }
    }
}

/* The kernels for numbers that count up, and what they store past the cache, against the steps that
 * they replace: from any draw of a block on, across the end of the lower half of blocks' numbers.
 */
static void expect_drawn(const struct cpu_engine *engine, enum op op, bool is_wide, u64 first)
{
    enum dtype dtype = is_wide ? DTYPE_UINT64 : DTYPE_UINT32;
    bool is_draw = op == OP_RANDOM_U32 || op == OP_RANDOM_U64;
    struct insn insn = {.op = (uint16_t)op, .compute = is_draw ? DTYPE_UINT64 : (uint8_t)dtype};
    u64 *numbers = rig_counting(N, first), seed = SEED, stream = 3;
    char *bits = rig_room(N), *made = rig_room(N), *drawn = rig_room(N);
    size_t n_bytes = N * dtype_size(dtype), n_whole = N / KERNEL_GRANULE * KERNEL_GRANULE;
    rig_bits(cpu_engine_get(CPU_LEVEL_PLAIN), is_wide ? OP_RANDOM_U64 : OP_RANDOM_U32, N, bits,
             numbers, seed, stream);
    if (!is_draw)
        (void)rig_run(cpu_engine_get(CPU_LEVEL_PLAIN), op, dtype, N, made, bits, NULL, NULL);
    kernel_fn *kernel = engine_find_drawn(engine, &insn, is_draw, false);
    kernel_fn *past = engine_find_drawn(engine, &insn, is_draw, true);
    cr_assert(kernel != NULL);
    kernel(N, drawn, &first, &seed, &stream, NULL);
    cr_assert(eq(int, memcmp(drawn, is_draw ? bits : made, n_bytes), 0), "op %d, first %lu", op,
              first);
    if (past) {
        memset(drawn, 0x5a, KERNEL_ROUND(N) * 8);
        past(n_whole, drawn, &first, &seed, &stream, NULL);
        cpu_engine_fence();
        n_bytes = n_whole * dtype_size(dtype);
        cr_assert(eq(int, memcmp(drawn, is_draw ? bits : made, n_bytes), 0));
        cr_assert(eq(chr, drawn[n_bytes], 0x5a));
    }
    free(numbers);
    free(bits);
    free(made);
    free(drawn);
}

Test(random, counting_draws_are_those_of_the_steps)
{
    static const u64 firsts[] = {0,
                                 1,
                                 2,
                                 3,
                                 64,
                                 (u64)0xfffffff0u * 4,
                                 ((u64)1 << 34) - 1,
                                 (u64)0xfffffff0u * 2 + 1,
                                 (u64)1 << 62};
    static const enum op made[] = {OP_STANDARD_UNIFORM, OP_STANDARD_NORMAL,
                                   OP_STANDARD_EXPONENTIAL};
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        const struct cpu_engine *engine = rig_engine(level);
        for (size_t k = 0; engine && k < sizeof(firsts) / sizeof(firsts[0]); k++) {
            expect_drawn(engine, OP_RANDOM_U32, false, firsts[k]);
            expect_drawn(engine, OP_RANDOM_U64, true, firsts[k]);
            for (int is_wide = 0; is_wide < 2; is_wide++)
                for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
                    expect_drawn(engine, made[i], is_wide, firsts[k]);
        }
    }
}

/* 64-bit draws may replace the numbers that they were drawn for. */
Test(random, draws_may_overwrite_the_numbers)
{
    for (u64 step = 1; step < 4; step++) {
        u64 *numbers = rig_counting(N, 0);
        for (size_t i = 0; i < KERNEL_ROUND(N); i++)
            numbers[i] *= step;
        rig_bits(cpu_engine_get(CPU_LEVEL_AVX512), OP_RANDOM_U64, N, numbers, numbers, SEED, 1);
        for (size_t i = 0; i < N; i++)
            cr_assert(eq(u64, numbers[i], random_u64(i * step, SEED, 1)));
        free(numbers);
    }
}

/* Every bit pattern of interest: few bits set at either end, and random ones. */
static u64 *awkward(size_t n)
{
    u64 *bits = rig_room(n);
    rig_bits(cpu_engine_get(CPU_LEVEL_AVX512), OP_RANDOM_U64, n, bits, bits, SEED, 9);
    for (size_t i = 0; i < KERNEL_ROUND(n); i++) {
        u64 x = random_u64(i, SEED, 9);
        unsigned shift = (unsigned)(random_u64(i, SEED, 10) % 64);
        u64 small = x >> shift,
            forms[] = {x, small, ~small, ((u64)1 << 63) + small, ((u64)1 << 63) - 1 - small};
        bits[i] = i < 2 ? (u64)0 - i : forms[i % 5];
    }
    return bits;
}

static u32 *narrowed(const u64 *bits, size_t n)
{
    u32 *narrow = rig_room(n);
    for (size_t i = 0; i < KERNEL_ROUND(n); i++)
        narrow[i] = i & 1 ? (u32)(bits[i] >> 32) : (u32)bits[i];
    return narrow;
}

static const enum op distributions[] = {OP_STANDARD_UNIFORM, OP_STANDARD_NORMAL,
                                        OP_STANDARD_EXPONENTIAL};
static const enum op of_three[] = {OP_RANDOM_U32, OP_RANDOM_U64, OP_RANDOM_PERMUTED};

static void expect_bits(enum op op, enum dtype compute, const void *a, const void *b, const void *c)
{
    char *expected = rig_room(N), *got = rig_room(N);
    size_t n_bytes = op == OP_RANDOM_U32 || compute == DTYPE_UINT32 ? N * 4 : N * 8;
    (void)rig_run(cpu_engine_get(CPU_LEVEL_PLAIN), op, compute, N, expected, a, b, c);
    for (int level = CPU_LEVEL_BASELINE; level <= CPU_LEVEL_AVX512; level++) {
        const struct cpu_engine *engine = rig_engine(level);
        if (!engine)
            continue;
        (void)rig_run(engine, op, compute, N, got, a, b, c);
        cr_assert(eq(int, memcmp(got, expected, n_bytes), 0), "op %d, level %d", op, level);
    }
    free(expected);
    free(got);
}

Test(random, all_levels_give_the_same_bits)
{
    u64 *bits = awkward(N), *numbers = rig_counting(N, 3), *seeds = rig_filled(N, SEED);
    u32 *narrow = narrowed(bits, N);
    f64 *means = rig_room(N);
    for (size_t i = 0; i < 3; i++) {
        expect_bits(distributions[i], DTYPE_UINT32, narrow, NULL, NULL);
        expect_bits(distributions[i], DTYPE_UINT64, bits, NULL, NULL);
        u64 *third = rig_filled(N, i < 2 ? 5 : 12345);
        expect_bits(of_three[i], DTYPE_UINT64, numbers, seeds, third);
        free(third);
    }
    expect_bits(OP_MULTIPLY_HIGH, DTYPE_UINT64, bits, bits + 1, NULL);
    for (size_t i = 0; i < KERNEL_ROUND(N); i++)
        means[i] = exp((f64)(i % 97) * 0.45 - 4);
    expect_bits(OP_RANDOM_POISSON, DTYPE_FLOAT64, numbers, seeds, means);
    free(bits);
    free(numbers);
    free(seeds);
    free(narrow);
    free(means);
}

Test(random, uniform_is_below_one)
{
    cr_assert(eq(flt, random_uniform_f32(0), 0));
    cr_assert(eq(flt, random_uniform_f32(UINT32_MAX), 1 - 0x1p-24f));
    cr_assert(eq(flt, random_uniform_f32(256), 0x1p-24f));
    cr_assert(eq(dbl, random_uniform_f64(0), 0));
    cr_assert(eq(dbl, random_uniform_f64(UINT64_MAX), 1 - 0x1p-53));
    cr_assert(eq(dbl, random_uniform_f64((u64)1 << 63), 0.5));
    cr_assert(eq(dbl, random_uniform_f64(0x8000000100000800u), 0.5 + 0x1p-32 + 0x1p-53));
}

Test(random, multiply_high_is_the_upper_half)
{
    u64 *bits = awkward(N);
    for (size_t i = 0; i + 1 < N; i++) {
        unsigned __int128 product = (unsigned __int128)bits[i] * bits[i + 1];
        cr_assert(eq(u64, random_multiply_high(bits[i], bits[i + 1]), (u64)(product >> 64)));
    }
    free(bits);
}

/* The largest error in units of the last place. Of the normal distribution: how far the
 * distribution function at z is from u, by the density. */
static long double normal_error(long double z, long double u, long double from_middle)
{
    long double density = expl(-z * z / 2) / sqrtl(2 * acosl(-1));
    if (fabsl(from_middle) < 0.25L)
        return (erfl(z / sqrtl(2)) / 2 - from_middle) / density;
    long double tail = from_middle < 0 ? u : 0.5L - from_middle;
    return (erfcl(fabsl(z) / sqrtl(2)) / 2 - tail) / density;
}

static long double ulp_f32(f32 x)
{
    x = fabsf(x);
    return (long double)(nextafterf(x, INFINITY) - x);
}

static long double ulp_f64(f64 x)
{
    x = fabs(x);
    return (long double)(nextafter(x, INFINITY) - x);
}

#define N_ACCURACY ((size_t)400000)

Test(random, float32_is_within_4_ulp)
{
    u64 *wide = awkward(N_ACCURACY);
    u32 *bits = narrowed(wide, N_ACCURACY);
    for (size_t i = 0; i < N_ACCURACY; i++) {
        long double u = ((long double)bits[i] + 0.5L) * 0x1p-32L;
        f32 z = random_normal_f32(bits[i]), e = random_exponential_f32(bits[i]);
        long double error = normal_error((long double)z, u, u - 0.5L) / ulp_f32(z);
        cr_assert(fabsl(error) <= 4, "normal of %08x: %.2Lf ulp", bits[i], error);
        error = ((long double)e + log1pl(-u)) / ulp_f32(e);
        cr_assert(fabsl(error) <= 4, "exponential of %08x: %.2Lf ulp", bits[i], error);
    }
    free(wide);
    free(bits);
}

Test(random, float64_is_within_6_ulp)
{
    u64 *bits = awkward(N_ACCURACY);
    for (size_t i = 0; i < N_ACCURACY; i++) {
        long double u = ((long double)bits[i] + 0.5L) * 0x1p-64L;
        long double from_middle = ((long double)(i64)(bits[i] ^ (u64)1 << 63) + 0.5L) * 0x1p-64L;
        f64 z = random_normal_f64(bits[i]), e = random_exponential_f64(bits[i]);
        cr_assert(eq(int, z < 0, from_middle < 0));
        long double error = normal_error((long double)z, u, from_middle) / ulp_f64(z);
        cr_assert(fabsl(error) <= 6, "normal of %016lx: %.2Lf ulp", bits[i], error);
        long double exact = from_middle < 0 ? -log1pl(-u) : -logl(0.5L - from_middle);
        error = ((long double)e - exact) / ulp_f64(e);
        cr_assert(fabsl(error) <= 4, "exponential of %016lx: %.2Lf ulp", bits[i], error);
    }
    free(bits);
}

Test(random, tails_reach_as_far_as_the_bits)
{
    cr_assert(eq(flt, random_normal_f32(0), -random_normal_f32(UINT32_MAX)));
    cr_assert(random_normal_f32(0) < -6.3f && random_normal_f32(0) > -6.4f);
    cr_assert(eq(dbl, random_normal_f64(0), -random_normal_f64(UINT64_MAX)));
    cr_assert(random_normal_f64(0) < -9.1 && random_normal_f64(0) > -9.2);
    cr_assert(random_exponential_f32(UINT32_MAX) > 22.8f);
    cr_assert(random_exponential_f32(0) > 0 && random_exponential_f32(0) < 0x1p-32f);
    cr_assert(random_exponential_f64(UINT64_MAX) > 45.0);
    cr_assert(random_exponential_f64(0) > 0 && random_exponential_f64(0) < 0x1p-64);
}

/* Neighbouring bits give neighbouring numbers, also where one formula ends and another begins. */
Test(random, normal_grows_with_the_bits)
{
    for (u32 bits = 0; bits < UINT32_MAX - 4096; bits += 4093)
        cr_assert(random_normal_f32(bits) <= random_normal_f32(bits + 4093), "%08x", bits);
}

/* A mean that is none gives the least int64 and is counted, but beyond the n elements. */
Test(random, poisson_of_what_is_no_mean_is_counted)
{
    static const f64 means[] = {NAN, -1, INFINITY, -INFINITY, 0x1.8p62, -0x1p-1074, 0, -0.0, 3};
    u64 *numbers = rig_counting(70, 0), *seeds = rig_filled(70, SEED);
    f64 *all = rig_room(70);
    i64 *drawn = rig_room(70);
    for (size_t i = 0; i < KERNEL_ROUND(70); i++)
        all[i] = means[i % 9];
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        if (!rig_engine(level))
            continue;
        struct kernel_events events = rig_run(rig_engine(level), OP_RANDOM_POISSON, DTYPE_FLOAT64,
                                              70, drawn, numbers, seeds, all);
        cr_assert(eq(u64, events.n_invalid_casts, 7 * 6 + 6));
        for (size_t i = 0; i < 70; i++) {
            bool is_mean = i % 9 >= 6;
            cr_assert(is_mean ? drawn[i] >= 0 : drawn[i] == INT64_MIN);
            cr_assert(all[i] != 0 || drawn[i] == 0);
        }
    }
    free(numbers);
    free(seeds);
    free(all);
    free(drawn);
}

static void expect_permutation(const struct cpu_engine *engine, u64 n)
{
    u64 *numbers = rig_counting(n, 0), *seeds = rig_filled(n, SEED), *lengths = rig_filled(n, n);
    u64 *taken = rig_room(n);
    char *is_there = calloc(n, 1);
    cr_assert(is_there != NULL);
    (void)rig_run(engine, OP_RANDOM_PERMUTED, DTYPE_UINT64, n, taken, numbers, seeds, lengths);
    for (u64 i = 0; i < n; i++) {
        cr_assert(taken[i] < n && !is_there[taken[i]], "n %lu, element %lu", n, i);
        is_there[taken[i]] = 1;
        cr_assert(eq(u64, taken[i], random_permuted(i, SEED, n)));
    }
    free(numbers);
    free(seeds);
    free(lengths);
    free(taken);
    free(is_there);
}

Test(random, permutations_are_permutations)
{
    for (u64 n = 1; n < 200; n++)
        expect_permutation(cpu_engine_get(CPU_LEVEL_AVX512), n);
    static const u64 lengths[] = {255, 256, 257, 1000, 1024, 1025, 65537};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        expect_permutation(cpu_engine_get(CPU_LEVEL_AVX512), lengths[i]);
}

/* Long ones: below n, and no two of a stretch the same; what is not below n ends too. */
Test(random, long_permutations_stay_below_n)
{
    static const u64 lengths[] = {(u64)1 << 32, ((u64)1 << 33) + 1, (u64)1 << 62,
                                  ((u64)1 << 63) + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        u64 seen[128];
        for (u64 k = 0; k < 128; k++) {
            seen[k] = random_permuted(lengths[i] - 1 - k, SEED, lengths[i]);
            cr_assert(seen[k] < lengths[i]);
            for (u64 j = 0; j < k; j++)
                cr_assert(seen[j] != seen[k]);
        }
        cr_assert(random_permuted(lengths[i], SEED, lengths[i]) < lengths[i]);
    }
}
