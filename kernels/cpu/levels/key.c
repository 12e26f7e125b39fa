/* Floats as unsigned integers of the same order, and back.
 *
 * The bits of a positive float, read as an integer, grow with it, and those of a negative one fall:
 *
 *     sign 0:  bits with the sign bit set         sign 1:  all bits turned over
 *
 * so keys are in the floats' order. Before that -0.0 becomes 0.0, and afterwards NaN of any sign
 * becomes the largest key: what NumPy takes for equal has one key. On the way back every key of no
 * number is the NaN that NumPy writes. One pass, no branch on data.
 */
#include "kernels/cpu/levels/template.h"

#include <string.h>

#define KEYS(F, U, SIGN, QUIET_NAN)                                                                \
    static inline U key_of_##F(F a)                                                                \
    {                                                                                              \
        U bits;                                                                                    \
        memcpy(&bits, &a, sizeof(bits));                                                           \
        bits = bits == SIGN ? 0 : bits;                                                            \
        U key = bits & SIGN ? ~bits : bits | SIGN;                                                 \
        return a != a ? (U)-1 : key;                                                               \
    }                                                                                              \
    static inline F float_of_##U(U key)                                                            \
    {                                                                                              \
        F a;                                                                                       \
        U bits = key & SIGN ? key ^ SIGN : ~key, nan = QUIET_NAN;                                  \
        memcpy(&a, &bits, sizeof(a));                                                              \
        bits = a != a ? nan : bits;                                                                \
        memcpy(&a, &bits, sizeof(a));                                                              \
        return a;                                                                                  \
    }                                                                                              \
    UNARY(ordered_key, F, U, key_of_##F(a))                                                        \
    UNARY(from_ordered_key, U, F, float_of_##U(a))
KEYS(f32, u32, UINT32_C(0x80000000), UINT32_C(0x7fc00000))
KEYS(f64, u64, UINT64_C(0x8000000000000000), UINT64_C(0x7ff8000000000000))

/* clang-format off */
const kernel_table KERNEL_SYMBOL(key) = {
    [OP_ORDERED_KEY] = {ROW_FLOATS(ordered_key)},
    [OP_FROM_ORDERED_KEY] = {[DTYPE_UINT32] = from_ordered_key_u32,
                             [DTYPE_UINT64] = from_ordered_key_u64},
};
/* clang-format on */
