/* Small tools that every folder uses: ownership of descriptors and pointers, checked arithmetic. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#define steal_ptr(p)                                                                               \
    __extension__({                                                                                \
        __typeof__(p) *steal_p_ = &(p);                                                            \
        __typeof__(p) steal_v_ = *steal_p_;                                                        \
        *steal_p_ = NULL;                                                                          \
        steal_v_;                                                                                  \
    })

static inline int steal_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

static inline void close_fd(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
        *fd = -1;
    }
}

static inline void free_ptr(void *p)
{
    free(*(void **)p);
    *(void **)p = NULL;
}

#define _cleanup_fd_   __attribute__((cleanup(close_fd)))
#define _cleanup_free_ __attribute__((cleanup(free_ptr)))

/* True when the result does not fit; the result is then undefined. */
static inline bool mul_overflows_i64(int64_t a, int64_t b, int64_t *ret)
{
    return __builtin_mul_overflow(a, b, ret);
}

static inline bool add_overflows_i64(int64_t a, int64_t b, int64_t *ret)
{
    return __builtin_add_overflow(a, b, ret);
}

/* Of numbers that are not below 0. INT64_MAX when the sum does not fit. */
static inline int64_t add_saturating_i64(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* Neither factor is negative. INT64_MAX when the product does not fit. */
static inline int64_t mul_saturating_i64(int64_t a, int64_t b)
{
    int64_t product;
    return mul_overflows_i64(a, b, &product) ? INT64_MAX : product;
}

/* a / b, rounded up; a is not negative, b is positive. */
static inline int64_t divide_up_i64(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* The greatest number that divides both; neither is negative. */
static inline int64_t common_divisor_i64(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* b where one is NaN. */
static inline double min_f64(double a, double b)
{
    return a < b ? a : b;
}

static inline double max_f64(double a, double b)
{
    return a > b ? a : b;
}

static inline uint64_t round_up_u64(uint64_t value, uint64_t power_of_two)
{
    return (value + power_of_two - 1) & ~(power_of_two - 1);
}
