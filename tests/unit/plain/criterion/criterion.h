/* The part of Criterion that tests of threaded code use, without its processes.
 *
 * Criterion runs every test in a child that it maps at fixed addresses, which ThreadSanitizer does
 * not allow. Builds with it put this folder before the system's: the same tests then run one after
 * the other in one process, and the first failure ends it. Tests that expect a signal are left out.
 */
#pragma once

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plain_test {
    const char *suite, *name;
    void (*run)(void);
    int signal, timeout; /* the runner has one for the program */
    struct plain_test *next;
};

void plain_register(struct plain_test *test);

#define Test(suite_, name_, ...)                                                                   \
    static void suite_##_##name_(void);                                                            \
    static struct plain_test suite_##_##name_##_test = {                                           \
        .suite = #suite_, .name = #name_, .run = suite_##_##name_, ##__VA_ARGS__};                 \
    __attribute__((constructor)) static void suite_##_##name_##_register(void)                     \
    {                                                                                              \
        plain_register(&suite_##_##name_##_test);                                                  \
    }                                                                                              \
    static void suite_##_##name_(void)

__attribute__((format(printf, 4, 5), noreturn)) void
plain_fail(const char *file, int line, const char *condition, const char *format, ...);

#define cr_assert(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition))                                                                          \
            plain_fail(__FILE__, __LINE__, #condition, " " __VA_ARGS__);                           \
    } while (0)

#define cr_skip(...) return
