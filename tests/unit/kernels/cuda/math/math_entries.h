/* What math_entries.c defines. */
#pragma once

#include <stdint.h>

#define ONE(op, name)                                                                              \
    float entry_##name##_f32(float a);                                                             \
    double entry_##name##_f64(double a);
#define TWO(op, name)                                                                              \
    float entry_##name##_f32(float a, float b);                                                    \
    double entry_##name##_f64(double a, double b);
#include "tests/unit/kernels/cuda/math/math_list.def"
#undef ONE
#undef TWO

float entry_ldexp_f32(float a, int32_t power);
double entry_ldexp_f64(double a, int64_t power);
int32_t entry_frexp_exponent_f32(float a);
int32_t entry_frexp_exponent_f64(double a);
