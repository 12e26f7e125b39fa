/* The common ground of CUDA C++ and C11: types and the words that stand before functions.
 *
 * Everything in this folder is compiled by nvcc for the device and by the host's compiler for
 * tests, so it keeps to the subset of both languages: no templates, no compound literals, no
 * designated initializers, no implicit conversion from void *.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define DEVICE       static __device__ __forceinline__
#define DEVICE_CALL  static __device__ __noinline__ /* large: one copy, whoever calls it */
#define DEVICE_TABLE static __device__ const
#else
#include <math.h>
#include <string.h>
#define DEVICE       static inline
#define DEVICE_CALL  static inline
#define DEVICE_TABLE static const
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;
