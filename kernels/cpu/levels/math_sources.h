/* Which library a level's functions of mathematics are made of, for the tests of their accuracy. */
#pragma once

#include "kernels/cpu/levels/kernels.h"

/* For float32 and float64; NULL where the other table has the function. */
typedef const char *math_sources[OP_COUNT][2];

extern const math_sources math_sources_plain, math_sources_baseline, math_sources_avx2,
    math_sources_avx512, special_sources_plain, special_sources_baseline, special_sources_avx2,
    special_sources_avx512;
