/* All kernels of products: one of a kind, one mirror of an item. For nvcc and for the host. */
#pragma once

#include "kernels/cuda/device/lane.h"
#include "kernels/cuda/product/product_kernels.h"

#define PRODUCT_ADD(sum, a, b)   (sum) += (a) * (b)
#define PRODUCT_OR(sum, a, b)    (sum) |= (a) & (b)
#define PRODUCT_SUM(old, sum)    (old) + (sum)
#define PRODUCT_EITHER(old, sum) ((old) | (sum)) != 0
#define PRODUCT_TAKE_IN          PRODUCT_ADD
#define PRODUCT_END              PRODUCT_SUM

#define PRODUCT_NAME(x) product_u8_##x
#define PRODUCT_ITEM    u8
#define PRODUCT_WIDE    u32
#include "kernels/cuda/device/product.inc"
#undef PRODUCT_NAME
#undef PRODUCT_ITEM

#define PRODUCT_NAME(x) product_u16_##x
#define PRODUCT_ITEM    u16
#include "kernels/cuda/device/product.inc"
#undef PRODUCT_NAME
#undef PRODUCT_ITEM

#define PRODUCT_NAME(x) product_u32_##x
#define PRODUCT_ITEM    u32
#include "kernels/cuda/device/product.inc"
#undef PRODUCT_NAME
#undef PRODUCT_ITEM
#undef PRODUCT_WIDE

#define PRODUCT_NAME(x) product_u64_##x
#define PRODUCT_ITEM    u64
#define PRODUCT_WIDE    u64
#include "kernels/cuda/device/product.inc"
#undef PRODUCT_NAME
#undef PRODUCT_ITEM
#undef PRODUCT_WIDE
#undef PRODUCT_TAKE_IN
#undef PRODUCT_END

#define PRODUCT_NAME(x) product_b8_##x
#define PRODUCT_ITEM    u8
#define PRODUCT_WIDE    u32
#define PRODUCT_TAKE_IN PRODUCT_OR
#define PRODUCT_END     PRODUCT_EITHER
#include "kernels/cuda/device/product.inc"
#undef PRODUCT_NAME
#undef PRODUCT_ITEM
#undef PRODUCT_WIDE
#undef PRODUCT_TAKE_IN
#undef PRODUCT_END

#define MIRROR_NAME(x) mirror_u8_##x
#define MIRROR_ITEM    u8
#include "kernels/cuda/device/mirror.inc"
#undef MIRROR_NAME
#undef MIRROR_ITEM

#define MIRROR_NAME(x) mirror_u16_##x
#define MIRROR_ITEM    u16
#include "kernels/cuda/device/mirror.inc"
#undef MIRROR_NAME
#undef MIRROR_ITEM

#define MIRROR_NAME(x) mirror_u32_##x
#define MIRROR_ITEM    u32
#include "kernels/cuda/device/mirror.inc"
#undef MIRROR_NAME
#undef MIRROR_ITEM

#define MIRROR_NAME(x) mirror_u64_##x
#define MIRROR_ITEM    u64
#include "kernels/cuda/device/mirror.inc"
#undef MIRROR_NAME
#undef MIRROR_ITEM
