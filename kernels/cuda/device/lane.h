/* A thread's values in shared memory: see kernels/cuda/code.h for where they lie. Four at a time by
 * accesses of up to 16 bytes, or one by one. */
#pragma once

#include "kernels/cuda/code.h"
#include "kernels/cuda/device/device.h"

#if defined(__CUDACC__)
#define UNROLLED   _Pragma("unroll")
#define ONE_BY_ONE _Pragma("unroll 1")
#else
#define UNROLLED
#define ONE_BY_ONE
#endif

typedef u8 b8;

/* An operand, prepared for the block: 16 bytes of shared memory that all threads read. */
struct operand_place {
    char *first;     /* the grain's first element */
    u16 dst;         /* of an input that is loaded ahead */
    u16 group_bytes; /* of neighbours */
    u8 item_bytes, way;
    u8 thread_log2; /* thread x 16, shifted down by this, is where its bytes begin in a strip */
    u8 unused;
};
enum place_way {
    WAY_SLOW, /* element by element */
    WAY_16,   /* a group's bytes at once */
    WAY_8,
    WAY_4,
    WAY_2,
    WAY_BOOL_4, /* and made 0 and 1 */
    WAY_BOOL_2,
};

struct block {
    char *shared;
    char *slot;
    const struct code_header *header;
    const struct code_grain *grain;
    u32 begin, end;     /* of the grain's elements */
    u32 plane;          /* bytes */
    u32 strip_elements; /* of all threads */
};

/* What a strip is for a thread. */
struct strip {
    u32 first;     /* element */
    u32 set;       /* bytes to the planes of this strip's inputs */
    u32 is_valid;  /* bit i: the thread's element i exists */
    bool is_whole; /* all threads' elements do */
};

struct value {
    char *at;
    u32 plane; /* bytes to the second half of 8-byte items */
};

DEVICE struct value value_at(const struct block *b, u32 thread, u32 set, u32 code)
{
    struct value v;
    u32 at = (code & CODE_PLACE_MASK) << 4;
    at += code & CODE_UNIFORM ? 0 : thread << 4;
    at += code & CODE_ROTATES ? set : 0;
    v.at = b->shared + at;
    v.plane = code & CODE_UNIFORM ? 0 : b->plane;
    return v;
}

/* Element k of items of the given size. */
DEVICE char *item_at(struct value v, u32 item_bytes, u32 k)
{
    return item_bytes == 8 ? v.at + (k >> 1) * v.plane + (k & 1) * 8 : v.at + k * item_bytes;
}

#if defined(__CUDACC__)
#define NARROW(T, vector)                                                                          \
    DEVICE void get_##T(struct value v, T *x)                                                      \
    {                                                                                              \
        vector all = *(const vector *)v.at;                                                        \
        x[0] = all.x, x[1] = all.y, x[2] = all.z, x[3] = all.w;                                    \
    }                                                                                              \
    DEVICE void put_##T(struct value v, const T *x)                                                \
    {                                                                                              \
        vector all;                                                                                \
        all.x = x[0], all.y = x[1], all.z = x[2], all.w = x[3];                                    \
        *(vector *)v.at = all;                                                                     \
    }
#define WIDE(T, vector)                                                                            \
    DEVICE void get_##T(struct value v, T *x)                                                      \
    {                                                                                              \
        vector low = *(const vector *)v.at, high = *(const vector *)(v.at + v.plane);              \
        x[0] = low.x, x[1] = low.y, x[2] = high.x, x[3] = high.y;                                  \
    }                                                                                              \
    DEVICE void put_##T(struct value v, const T *x)                                                \
    {                                                                                              \
        vector low, high;                                                                          \
        low.x = x[0], low.y = x[1], high.x = x[2], high.y = x[3];                                  \
        *(vector *)v.at = low;                                                                     \
        *(vector *)(v.at + v.plane) = high;                                                        \
    }
#else
#define NARROW(T, vector)                                                                          \
    DEVICE void get_##T(struct value v, T *x)                                                      \
    {                                                                                              \
        memcpy(x, v.at, 4 * sizeof(T));                                                            \
    }                                                                                              \
    DEVICE void put_##T(struct value v, const T *x)                                                \
    {                                                                                              \
        memcpy(v.at, x, 4 * sizeof(T));                                                            \
    }
#define WIDE(T, vector)                                                                            \
    DEVICE void get_##T(struct value v, T *x)                                                      \
    {                                                                                              \
        memcpy(x, v.at, 2 * sizeof(T));                                                            \
        memcpy(x + 2, v.at + v.plane, 2 * sizeof(T));                                              \
    }                                                                                              \
    DEVICE void put_##T(struct value v, const T *x)                                                \
    {                                                                                              \
        memcpy(v.at, x, 2 * sizeof(T));                                                            \
        memcpy(v.at + v.plane, x + 2, 2 * sizeof(T));                                              \
    }
#endif
NARROW(u8, uchar4)
NARROW(u16, ushort4)
NARROW(u32, uint4)
NARROW(i8, char4)
NARROW(i16, short4)
NARROW(i32, int4)
NARROW(f32, float4)
WIDE(u64, ulong2)
WIDE(i64, long2)
WIDE(f64, double2)
#undef NARROW
#undef WIDE
#define get_b8 get_u8
#define put_b8 put_u8

/* The thread's group g of 2^group_log2 neighbours, in the strip. */
DEVICE u32 group_first(const struct block *b, u32 thread, u32 strip_first, u32 g)
{
    u32 log2 = b->header->group_log2;
    return strip_first + ((g * b->header->n_threads + thread) << log2);
}

/* How many of a group's elements exist. */
DEVICE u32 group_length(u32 first, u32 end, u32 length)
{
    if (first >= end)
        return 0;
    return end - first < length ? end - first : length;
}
