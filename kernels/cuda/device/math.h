/* The functions of mathematics on the device, all of them: fn_OP_f32 and fn_OP_f64 for every
 * instruction of enum op (kernels/ops.h) that computes with floats.
 *
 * Exact functions (math_bits.h, math_modulo.h) give the CPU engine's bits. The others are within
 * 4 ulp of exact over the whole range, with the CPU engine's NaN, infinities and signs of zeros
 * (kernels/cuda/ACCURACY.md). They are CUDA's own where these are near enough, and the project's
 * where not (gamma, lgamma, erfc, some of float32). Compiled for the host, CUDA's are libm's.
 *
 * Compile for the device with -fmad=false: a * b + c is two roundings here, and fma() is written
 * where one is meant. Divisions and square roots are correctly rounded, denormals are kept (nvcc's
 * defaults -prec-div=true -prec-sqrt=true -ftz=false).
 *
 * Functions that are large on the device are DEVICE_CALL: called, not inlined, so that an
 * interpreter holds one copy of each and needs the registers of the largest only.
 */
#pragma once

#include "kernels/cuda/device/math_bits.h"
#include "kernels/cuda/device/math_elementary.h"
#include "kernels/cuda/device/math_erfc.h"
#include "kernels/cuda/device/math_gamma.h"
#include "kernels/cuda/device/math_gamma_f64.h"
#include "kernels/cuda/device/math_modulo.h"
#include "kernels/cuda/device/math_special.h"
