/* Looking things up in tables, and floats as integers of the same order: the CPU engine's rules
 * (kernels/cpu/levels/table.c, key.c). A search halves what is left of the table; of one that is
 * not in order the result is some number from 0 to its length. NaN is the largest number. Nothing
 * outside of a table is read, whatever is looked up. */
#pragma once

#include "kernels/cuda/device/math_bits.h"

/* is_below: whether table element e is counted for x. */
#define SEARCH(name, T, is_below)                                                                  \
    DEVICE_CALL i64 name##_##T(const T *table, u32 n, T x)                                         \
    {                                                                                              \
        u32 at = 0;                                                                                \
        while (n > 0) {                                                                            \
            u32 half = n - n / 2;                                                                  \
            T e = table[at + half - 1];                                                            \
            at += (is_below) ? half : 0;                                                           \
            n -= half;                                                                             \
        }                                                                                          \
        return (i64)at;                                                                            \
    }
SEARCH(search_left, i64, e < x)
SEARCH(search_right, i64, e <= x)
SEARCH(search_left, u64, e < x)
SEARCH(search_right, u64, e <= x)
SEARCH(search_left, f64, (e < x) | ((x != x) & (e == e)))
SEARCH(search_right, f64, (e <= x) | (x != x))
#undef SEARCH

#define TAKE(T)                                                                                    \
    DEVICE T take_##T(const T *table, u32 n, i64 index)                                            \
    {                                                                                              \
        i64 last = (i64)n - 1, at = index < 0 ? 0 : index;                                         \
        return n == 0 ? (T)0 : table[at > last ? last : at];                                       \
    }
TAKE(u8)
TAKE(u16)
TAKE(u32)
TAKE(u64)
#undef TAKE

/* -0.0 is 0.0; NaN of any sign is the largest key, and all keys of no number are one NaN. */
#define KEYS(F, U, QUIET_NAN)                                                                      \
    DEVICE U ordered_key_##F(F a)                                                                  \
    {                                                                                              \
        U bits = bits_of_##F(a);                                                                   \
        bits = bits == SIGN_MASK_##F ? 0 : bits;                                                   \
        bits = bits & SIGN_MASK_##F ? ~bits : bits | SIGN_MASK_##F;                                \
        return is_nan_##F(a) ? (U) ~(U)0 : bits;                                                   \
    }                                                                                              \
    DEVICE F from_ordered_key_##U(U key)                                                           \
    {                                                                                              \
        U bits = key & SIGN_MASK_##F ? key ^ SIGN_MASK_##F : ~key;                                 \
        return from_bits_##F((bits & ~SIGN_MASK_##F) > INFINITE_##F ? QUIET_NAN : bits);           \
    }
KEYS(f32, u32, 0x7fc00000u)
KEYS(f64, u64, (u64)0x7ff8 << 48)
#undef KEYS
