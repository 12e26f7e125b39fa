/* Chains of additions, subtractions and multiplications of floats.
 *
 * What one instruction gives the next one takes: a block of elements goes through the whole chain
 * in registers, so that each source is read once and only the last result is written. Every step is
 * rounded by itself, in the order of the instructions, so the bits are those of one kernel after
 * the other. KERNEL_GRANULE elements are blocks of eight vectors, or one of four. What is the same
 * for all elements is read once a block: loads are what a chain has most of.
 *
 * The plain level has none: there the kernels of arith.c are the reference.
 */
#include "kernels/cpu/levels/lines.h"
#include "kernels/cpu/levels/template.h"

#if defined(KERNEL_HAS_LINES)
/* M(k) of the vectors of a block, each of which is a variable v0, v1, ... */
#define FOUR(M)  M(0) M(1) M(2) M(3)
#define EIGHT(M) FOUR(M) M(4) M(5) M(6) M(7)

#define BEGIN(k)    vector v##k = {0};
#define LOAD(k)     v##k = a[k];
#define PRODUCT(k)  v##k = a[k] * b[k];
#define ADD(k)      v##k = v##k + a[k];
#define SUB(k)      v##k = v##k - a[k];
#define SUB_IT(k)   v##k = a[k] - v##k;
#define MUL(k)      v##k = v##k * a[k];
#define ADD_P(k)    v##k = v##k + a[k] * b[k];
#define SUB_P(k)    v##k = v##k - a[k] * b[k];
#define SUB_IT_P(k) v##k = a[k] * b[k] - v##k;
#define STORE(k)    ((unaligned *)at)[k] = v##k;
#define STREAM(k)   LINE_VECTOR((vector *)at + k, (const void *)&v##k);

/* The last source is a number. */
#define LOAD_N(k)     v##k = c[0];
#define PRODUCT_N(k)  v##k = a[k] * c[0];
#define ADD_N(k)      v##k = v##k + c[0];
#define SUB_N(k)      v##k = v##k - c[0];
#define SUB_IT_N(k)   v##k = c[0] - v##k;
#define MUL_N(k)      v##k = v##k * c[0];
#define ADD_P_N(k)    v##k = v##k + a[k] * c[0];
#define SUB_P_N(k)    v##k = v##k - a[k] * c[0];
#define SUB_IT_P_N(k) v##k = a[k] * c[0] - v##k;

#define STEP(EACH, op, M)                                                                          \
    case op: EACH(M) break;                                                                        \
    case CHAIN_OF_NUMBER | op: EACH(M##_N) break;

/* As many blocks as there are left of so many vectors. */
#define BLOCKS(T, EACH, n_vectors, FINISH)                                                         \
    for (; i + n_vectors * KERNEL_VECTOR_BYTES / sizeof(T) <= n;                                   \
         i += n_vectors * KERNEL_VECTOR_BYTES / sizeof(T)) {                                       \
        T *at = (T *)dst + i;                                                                      \
        EACH(BEGIN)                                                                                \
        for (const struct chain_step *s = steps; s < steps + n_steps; s++) {                       \
            const unaligned *a = (const unaligned *)((const T *)address[s->a] + first + i);        \
            const unaligned *b = (const unaligned *)((const T *)address[s->b] + first + i);        \
            const unaligned *c = address[s->b];                                                    \
            switch (s->op) {                                                                       \
                STEP(EACH, CHAIN_LOAD, LOAD)                                                       \
                STEP(EACH, CHAIN_PRODUCT, PRODUCT)                                                 \
                STEP(EACH, CHAIN_ADD, ADD)                                                         \
                STEP(EACH, CHAIN_SUBTRACT, SUB)                                                    \
                STEP(EACH, CHAIN_SUBTRACT_IT, SUB_IT)                                              \
                STEP(EACH, CHAIN_MULTIPLY, MUL)                                                    \
                STEP(EACH, CHAIN_ADD_PRODUCT, ADD_P)                                               \
                STEP(EACH, CHAIN_SUBTRACT_PRODUCT, SUB_P)                                          \
                STEP(EACH, CHAIN_SUBTRACT_IT_OF_PRODUCT, SUB_IT_P)                                 \
            }                                                                                      \
        }                                                                                          \
        EACH(FINISH)                                                                               \
    }

#define CHAIN(name, T, FINISH)                                                                     \
    static void name##_##T(size_t n, void *dst, size_t first, void *const *address,                \
                           const struct chain_step *steps, unsigned n_steps)                       \
    {                                                                                              \
        typedef T vector __attribute__((vector_size(KERNEL_VECTOR_BYTES)));                        \
        typedef vector unaligned __attribute__((aligned(sizeof(T)), may_alias));                   \
        size_t i = 0;                                                                              \
        n = KERNEL_ROUND(n);                                                                       \
        BLOCKS(T, EIGHT, 8, FINISH)                                                                \
        BLOCKS(T, FOUR, 4, FINISH)                                                                 \
    }

CHAIN(chain, f32, STORE)
CHAIN(chain, f64, STORE)
CHAIN(past_chain, f32, STREAM)
CHAIN(past_chain, f64, STREAM)

const struct chain_kernels KERNEL_SYMBOL(chains) = {
    .kernel = {[DTYPE_FLOAT32] = chain_f32, [DTYPE_FLOAT64] = chain_f64},
    .past = {[DTYPE_FLOAT32] = past_chain_f32, [DTYPE_FLOAT64] = past_chain_f64},
};
#else
const struct chain_kernels KERNEL_SYMBOL(chains) = {.kernel = {NULL}};
#endif
