/* The symbols of math_entries.c over what ptx_to_c.py made of its PTX, of an old and of a new kind
 * of device: nvcc has another compiler for each. */
#include "tests/unit/kernels/cuda/math/math_entries.h"

#include <stdbool.h>

extern _Thread_local bool ptx_model_is_rough, ptx_is_of_new;
_Thread_local bool ptx_model_is_rough, ptx_is_of_new;

#define ONE_OF(name, T, R)                                                                         \
    void old_entry_##name(void *result, void *a);                                                  \
    void new_entry_##name(void *result, void *a);                                                  \
    R entry_##name(T a)                                                                            \
    {                                                                                              \
        R result;                                                                                  \
        (ptx_is_of_new ? new_entry_##name : old_entry_##name)(&result, &a);                        \
        return result;                                                                             \
    }
#define TWO_OF(name, T, U)                                                                         \
    void old_entry_##name(void *result, void *a, void *b);                                         \
    void new_entry_##name(void *result, void *a, void *b);                                         \
    T entry_##name(T a, U b)                                                                       \
    {                                                                                              \
        T result;                                                                                  \
        (ptx_is_of_new ? new_entry_##name : old_entry_##name)(&result, &a, &b);                    \
        return result;                                                                             \
    }
#define ONE(op, name) ONE_OF(name##_f32, float, float) ONE_OF(name##_f64, double, double)
#define TWO(op, name) TWO_OF(name##_f32, float, float) TWO_OF(name##_f64, double, double)
#include "tests/unit/kernels/cuda/math/math_list.def"
ONE_OF(frexp_exponent_f32, float, int32_t)
ONE_OF(frexp_exponent_f64, double, int32_t)
TWO_OF(ldexp_f32, float, int32_t)
TWO_OF(ldexp_f64, double, int64_t)
