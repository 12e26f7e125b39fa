/* The monotonic clock, and deadlines in milliseconds of it. */
#pragma once

#include <stdint.h>
#include <time.h>

#define DEADLINE_NEVER INT64_MAX

static inline int64_t clock_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t clock_now_ms(void)
{
    return clock_now_ns() / 1000000;
}

/* timeout_ms < 0: never. */
static inline int64_t clock_deadline_ms(int64_t timeout_ms)
{
    return timeout_ms < 0 ? DEADLINE_NEVER : clock_now_ms() + timeout_ms;
}

/* For poll(): -1 for never, else what is left, rounded up so that nobody spins at the end. */
static inline int clock_left_ms(int64_t deadline)
{
    if (deadline == DEADLINE_NEVER)
        return -1;
    int64_t left = deadline - clock_now_ms();
    return left <= 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

static inline void clock_sleep_ms(int ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}
