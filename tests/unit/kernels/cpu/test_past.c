/* The kernels that store past the cache give the bits of those beside them in the tables, for every
 * op and dtype that has one, at every level; and the roots of float64, which AVX-512 computes in
 * two ways, are the exactly rounded ones, next to ties above all.
 */
#include "kernels/cpu/run/run.h"
#include "tests/unit/kernels/cpu/check/check.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#define N       ((size_t)3 * KERNEL_GRANULE)
#define N_ROOTS ((size_t)1 << 16)

struct strip {
    char bytes[N * 8 + 64] __attribute__((aligned(64)));
};

static const struct cpu_engine *engine_at(int level)
{
    const struct cpu_engine *engine = cpu_engine_get((enum cpu_level)level);
    return (int)cpu_engine_level(engine) == level ? engine : NULL;
}

static void compare(const struct insn *insn, kernel_fn *kernel, kernel_fn *past, int level)
{
    static struct strip src[3], usual, streamed;
    struct kernel_events events = {0};
    enum dtype dtype = (enum dtype)insn->compute;
    size_t item_bytes = dtype_size(dtype);
    for (int i = 0; i < 3; i++) /* sources need not begin a line */
        check_fill(src[i].bytes + item_bytes, insn->op == OP_WHERE && i == 0 ? DTYPE_BOOL : dtype,
                   N, false);
    memset(streamed.bytes, 0x5a, sizeof(streamed.bytes));
    kernel(N, usual.bytes, src[0].bytes + item_bytes, src[1].bytes + item_bytes,
           src[2].bytes + item_bytes, &events);
    past(N, streamed.bytes, src[0].bytes + item_bytes, src[1].bytes + item_bytes,
         src[2].bytes + item_bytes, &events);
    cpu_engine_fence();
    for (size_t i = 0; i < N * item_bytes; i++)
        cr_assert(eq(chr, streamed.bytes[i], usual.bytes[i]), "op %d, %s, level %d, byte %zu",
                  insn->op, dtype_name(dtype), level, i);
    cr_assert(eq(chr, streamed.bytes[N * item_bytes], 0x5a));
}

Test(past, kernels_give_the_bits_of_the_others)
{
    int n_compared = 0;
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        const struct cpu_engine *engine = engine_at(level);
        for (unsigned op = 0; engine && op < OP_COUNT; op++) {
            for (unsigned dtype = 0; dtype < DTYPE_COUNT; dtype++) {
                struct insn insn = {.op = (uint16_t)op, .compute = (uint8_t)dtype};
                bool is_exchanged;
                insn.dst.dtype = (uint8_t)dtype;
                kernel_fn *past = engine_find_past(engine, &insn);
                if (!past)
                    continue;
                kernel_fn *kernel = engine_find_kernel(engine, &insn, &is_exchanged);
                cr_assert_not_null(kernel);
                compare(&insn, kernel, past, level);
                n_compared++;
            }
        }
    }
#if defined(__x86_64__)
    cr_assert(lt(int, 0, n_compared));
#endif
}

/* A number whose root lies by no more than |offset| / 2^55 of its last bit from a tie: (k^2 -
 * offset) / 4, but for a power of 4, with odd k of 54 bits, where 2^55 divides k^2 - offset. k is
 * found bit by bit, which an offset of 1 more than a multiple of 8 allows. */
static double beside_tie(int64_t offset)
{
    uint64_t k = 1;
    for (int bit = 3; bit < 55; bit++)
        if ((k * k - (uint64_t)offset) >> bit & 1)
            k += (uint64_t)1 << (bit - 1);
    k &= ((uint64_t)1 << 54) - 1;
    if (!(k >> 53))
        k = ((uint64_t)1 << 54) - k; /* the same square but for a multiple of 2^55 */
    __extension__ typedef __int128 wide;
    wide square = (wide)k * (wide)k - offset;
    cr_assert(eq(u64, (uint64_t)square & (((uint64_t)1 << 55) - 1), 0));
    return (double)(uint64_t)(square >> 54);
}

static double hard_argument(size_t i)
{
    double root = (double)((check_random() >> 12) | (uint64_t)1 << 51); /* at most 52 bits */
    double whole = floor(root * 0x1p-26);
    int exponent = 2 * ((int)check_below(900) - 450);
    switch (i % 8) {
    case 0: return ldexp(beside_tie(1 + 8 * (int64_t)check_below(1000)), exponent);
    case 1: return ldexp(beside_tie(1 - 8 * (int64_t)check_below(1000)), exponent);
    case 2: return root * root;
    case 3: return whole * whole;
    case 4: return nextafter(whole * whole, INFINITY);
    case 5: return ldexp(root, -1120 + (int)check_below(200)); /* denormals and near them */
    case 6: return nextafter(ldexp(1, exponent), i & 8 ? 0 : INFINITY); /* powers of four */
    default: return ldexp(root, exponent);
    }
}

/* The processor's own scalar root is the reference. */
static void check_roots(const struct cpu_engine *engine, const double *arguments, size_t n)
{
    static double roots[N_ROOTS];
    struct insn insn = {.op = OP_SQRT, .compute = DTYPE_FLOAT64};
    struct kernel_events events = {0};
    bool is_exchanged;
    insn.dst.dtype = DTYPE_FLOAT64;
    kernel_fn *kernel = engine_find_kernel(engine, &insn, &is_exchanged);
    kernel(n, roots, arguments, arguments, arguments, &events);
    for (size_t i = 0; i < n; i++) {
        double expected = sqrt(arguments[i]);
        bool is_same = memcmp(&roots[i], &expected, sizeof(expected)) == 0 ||
                       (isnan(roots[i]) && isnan(expected));
        cr_assert(is_same, "sqrt(%a) is %a, expected %a", arguments[i], roots[i], expected);
    }
}

Test(past, roots_next_to_ties_are_exactly_rounded)
{
    static double arguments[N_ROOTS];
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        const struct cpu_engine *engine = engine_at(level);
        if (!engine)
            continue;
        /* In steps of an odd length, so that every kind comes into every lane. */
        for (size_t i = 0; i < N_ROOTS; i++)
            arguments[i] = hard_argument(i * 5 + i / 8);
        check_roots(engine, arguments, N_ROOTS);
    }
}

Test(past, roots_of_what_is_no_ordinary_number)
{
    static const double special[] = {0.0,      -0.0, INFINITY, -INFINITY, NAN,       -1.0,
                                     0x1p-960, 1.0,  5e-324,   0x1p-961,  0x1p-1022, 0x1.fp1023};
    double arguments[KERNEL_GRANULE];
    for (int level = CPU_LEVEL_PLAIN; level <= CPU_LEVEL_AVX512; level++) {
        const struct cpu_engine *engine = engine_at(level);
        for (size_t k = 0; engine && k < sizeof(special) / sizeof(special[0]); k++) {
            for (size_t lane = 0; lane < KERNEL_GRANULE; lane++) {
                for (size_t i = 0; i < KERNEL_GRANULE; i++)
                    arguments[i] = i == lane ? special[k] : 2.0 + (double)i;
                check_roots(engine, arguments, KERNEL_GRANULE);
            }
        }
    }
}
